#include "service/security/limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kMaxClients = 10'000;
// The part of a second's allowance that calls on streams leave.
constexpr double kLeftByStreams = 0.05;

}  // namespace

// The client's entry with the allowance that it has regained.
ClientLimits::Client& ClientLimits::Refill(const std::string& client, absl::Time now) {
  if (clients_.size() >= kMaxClients && !clients_.contains(client)) RemoveIdle(now);
  Client& entry = clients_[client];
  const double passed_s = entry.at == absl::InfinitePast() ? 1 : std::max(0.0, absl::ToDoubleSeconds(now - entry.at));
  entry.calls = std::min(options_.calls_per_second, entry.calls + passed_s * options_.calls_per_second);
  entry.at = now;
  return entry;
}

absl::Status ClientLimits::CountCall(const std::string& client, absl::Time now) {
  MutexLock lock(&mutex_);
  Client& entry = Refill(client, now);
  if (entry.calls < 1) {
    return absl::ResourceExhaustedError(absl::StrCat("client ", client, ": more than ", options_.calls_per_second,
                                                     " calls a second (limits.callsPerSecond)"));
  }
  entry.calls -= 1;
  return absl::OkStatus();
}

absl::Duration ClientLimits::CountStreamCall(const std::string& client, absl::Time now) {
  MutexLock lock(&mutex_);
  Client& entry = Refill(client, now);
  const double least = std::min(options_.calls_per_second, 1 + kLeftByStreams * options_.calls_per_second);
  if (entry.calls < least) return absl::Seconds((least - entry.calls) / options_.calls_per_second);
  entry.calls -= 1;
  return absl::ZeroDuration();
}

absl::Status ClientLimits::OpenStream(const std::string& client) {
  MutexLock lock(&mutex_);
  Client& entry = clients_[client];
  if (entry.streams >= options_.streams) {
    return absl::ResourceExhaustedError(absl::StrCat("client ", client, ": ", entry.streams,
                                                     " streams are open, the limit is ", options_.streams,
                                                     " (limits.streamsPerClient)"));
  }
  ++entry.streams;
  return absl::OkStatus();
}

void ClientLimits::CloseStream(const std::string& client) {
  MutexLock lock(&mutex_);
  --clients_[client].streams;
}

// A client that was silent long enough to regain its full allowance needs no entry.
void ClientLimits::RemoveIdle(absl::Time now) {
  absl::erase_if(clients_, [&](const auto& entry) {
    return entry.second.streams == 0 && now - entry.second.at > absl::Seconds(1);
  });
}

}  // namespace muster
