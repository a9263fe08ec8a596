#include "service/tracing/otlp_exporter.h"

#include <httplib.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "state/base/text.h"
#include "support/clock.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr char kPath[] = "/v1/traces";
constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
constexpr int kKindServer = 2;  // the caller asks musterd
constexpr int kKindClient = 3;  // musterd asks the API server
constexpr int kKindInternal = 1;
constexpr int kStatusError = 2;
// Limits for a collector's answer: how much is shown in messages, and how much is read.
constexpr size_t kShown = 200;
constexpr uint64_t kMaxRead = 64 << 10;

Json Text(const char* key, absl::string_view value) {
  return {{"key", key}, {"value", {{"stringValue", std::string(value)}}}};
}
// 64-bit numbers are strings in protobuf's JSON.
Json Number(const char* key, int64_t value) { return {{"key", key}, {"value", {{"intValue", std::to_string(value)}}}}; }
std::string Nanos(int64_t us) { return std::to_string(us * 1000); }

Json AttributesOf(const Span& span) {
  Json out = Json::array();
  const auto text = [&](const char* key, absl::string_view value) {
    if (!value.empty()) out.push_back(Text(key, value));
  };
  const auto part = [&](const char* key, int64_t us) {
    if (us >= 0) out.push_back(Number(key, us));
  };
  text("muster.gang", span.gang);
  const size_t slash = span.pod.find('/');
  if (slash != std::string::npos) {
    text("k8s.namespace.name", span.pod.substr(0, slash));
    text("k8s.pod.name", span.pod.substr(slash + 1));
  }
  text("k8s.pod.uid", span.pod_uid);
  text("k8s.node.name", span.node);
  text("muster.outcome", span.outcome);
  if (!span.reason.none()) {
    text("muster.reason", ReasonName(span.reason.code));
    text("muster.reason.text", span.reason.text);
  }
  if (span.pods > 0) out.push_back(Number("muster.pods", span.pods));
  part("muster.waited_us", span.parts.waited);
  part("muster.decided_us", span.parts.decided);
  part("muster.held_us", span.parts.held);
  part("muster.bound_us", span.parts.bound);
  part("muster.stored_us", span.parts.stored);
  return out;
}

Json SpanJson(const Span& span) {
  const int kind = span.name == "binding" ? kKindClient : span.name == "gang start" ? kKindInternal : kKindServer;
  Json out = {{"traceId", TraceHex(span.trace)},
              {"spanId", SpanHex(span.id)},
              {"name", std::string(span.name)},
              {"kind", kind},
              {"startTimeUnixNano", Nanos(span.begun_us)},
              {"endTimeUnixNano", Nanos(span.begun_us + span.took_us)},
              {"attributes", AttributesOf(span)}};
  if (span.parent != 0) out["parentSpanId"] = SpanHex(span.parent);
  // A pod that has to wait is a normal answer, not an error.
  if (span.outcome == "error") out["status"] = {{"code", kStatusError}, {"message", span.reason.text}};
  for (const Span::Link& link : span.links) {
    out["links"].push_back({{"traceId", TraceHex(link.to.trace)},
                            {"spanId", SpanHex(link.to.span)},
                            {"attributes", Json::array({Text("muster.why", link.why)})}});
  }
  return out;
}

}  // namespace

absl::StatusOr<OtlpTarget> ParseOtlpUrl(const std::string& url) {
  const absl::Status wrong = absl::InvalidArgumentError("a URL like http://collector:4318");
  const size_t scheme = absl::StartsWith(url, "http://") ? 7 : absl::StartsWith(url, "https://") ? 8 : 0;
  if (scheme == 0) return wrong;
  const size_t slash = url.find('/', scheme);
  OtlpTarget target{url.substr(0, slash), slash == std::string::npos ? kPath : url.substr(slash)};
  if (target.path == "/") target.path = kPath;
  // The HTTP client supports a name or an IPv4 address, and a port.
  const std::vector<std::string> parts = absl::StrSplit(target.server.substr(scheme), ':');
  const auto in_name = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  };
  if (parts.size() > 2 || parts[0].empty() || !absl::c_all_of(parts[0], in_name)) return wrong;
  int port = 0;
  if (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &port) || port < 1 || port > 65'535)) return wrong;
  const auto in_path = [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '?' && c != '#';
  };
  if (!absl::c_all_of(target.path, in_path)) return wrong;
  return target;
}

std::string OtlpJson(const Spans& spans, const OtlpOptions& options) {
  Json resource = {
      {"attributes", Json::array({Text("service.name", "musterd"), Text("service.instance.id", options.instance),
                                  Text("service.version", options.version)})}};
  Json scope = {{"scope", {{"name", "muster"}}}, {"spans", Json::array()}};
  for (const auto& span : spans) scope["spans"].push_back(SpanJson(*span));
  Json all;
  all["resourceSpans"].push_back({{"resource", std::move(resource)}, {"scopeSpans", Json::array({std::move(scope)})}});
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

OtlpExporter::OtlpExporter(OtlpOptions options)
    : options_(std::move(options)), target_(*ParseOtlpUrl(options_.url)), thread_([this] { Run(); }) {}

OtlpExporter::~OtlpExporter() { Stop(); }

void OtlpExporter::Stop() {
  {
    MutexLock lock(&mutex_);
    if (!stopping_) give_up_ = SteadyNow() + kStopFor;
    stopping_ = true;
    if (post_ != 0) watchdog_.SetDeadline(post_, std::min(post_end_, give_up_));
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

OtlpExporter::Stats OtlpExporter::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

void OtlpExporter::OnSpansEnded(const Spans& spans) {
  const auto percent = static_cast<uint64_t>(options_.sample_percent);
  MutexLock lock(&mutex_);
  for (const auto& span : spans) {
    if (span->callers ? !span->sampled : span->trace.low % 100 >= percent) continue;
    if (queue_.size() >= options_.queue) {
      ++stats_.dropped;
    } else {
      queue_.push_back(span);
    }
  }
  if (queue_.size() >= options_.batch) changed_.Signal();
}

void OtlpExporter::Run() {
  while (true) {
    Spans batch;
    bool last = false;
    {
      MutexLock lock(&mutex_);
      const absl::Time until = SteadyNow() + options_.every;
      while (!stopping_ && queue_.size() < options_.batch && SteadyNow() < until) {
        changed_.WaitWithTimeout(&mutex_, until - SteadyNow());
      }
      const size_t taken = std::min(queue_.size(), options_.batch);
      batch.assign(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(taken));
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(taken));
      last = stopping_ && queue_.empty();
    }
    const bool sent = batch.empty() || Send(OtlpJson(batch, options_));
    MutexLock lock(&mutex_);
    (sent ? stats_.exported : stats_.dropped) += static_cast<int64_t>(batch.size());
    if (stopping_ && (!sent || SteadyNow() >= give_up_)) {  // the collector accepts nothing: the rest is dropped
      stats_.dropped += static_cast<int64_t>(queue_.size());
      return;
    }
    if (last) return;
  }
}

bool OtlpExporter::Send(const std::string& body) {
  absl::Duration pause = kFirstPause;
  for (int attempt = 1;; ++attempt, pause *= 2) {
    // Each of the three timeouts may use the whole time that is left to a stop.
    const absl::Duration left = TimeLeft();
    if (left <= absl::ZeroDuration()) return false;
    const Answer answer = Post(body, left);
    if (answer.status >= 200 && answer.status < 300) {
      if (attempt > 1) spdlog::info("the trace collector {} accepts spans again", options_.url);
      return true;
    }
    const std::string why =
        answer.status > 0 ? absl::StrCat("HTTP ", answer.status, " ", Plain(answer.text)) : answer.text;
    const bool later = answer.status <= 0 || answer.status == 429 || (answer.status >= 502 && answer.status <= 504);
    if (attempt == 1) spdlog::warn("the trace collector {} accepts no spans: {}", options_.url, why);
    if (!later || attempt >= options_.tries || !Pause(pause)) return false;
  }
}

OtlpExporter::Answer OtlpExporter::Post(const std::string& body, absl::Duration left) {
  httplib::Client client(target_.server);
  client.set_connection_timeout(absl::ToChronoMicroseconds(left));
  client.set_read_timeout(absl::ToChronoMicroseconds(left));
  client.set_write_timeout(absl::ToChronoMicroseconds(left));
  Answer out;
  httplib::Request request;
  request.method = "POST";
  request.path = target_.path;
  request.headers.emplace("Content-Type", "application/json");
  request.body = body;
  request.response_handler = [&](const httplib::Response& head) {
    out.status = head.status;
    return true;
  };
  request.content_receiver = [&](const char* data, size_t size, uint64_t offset, uint64_t) {
    if (out.text.size() < kShown) out.text.append(data, std::min(size, kShown - out.text.size()));
    return offset + size < kMaxRead;
  };
  {
    MutexLock lock(&mutex_);
    post_end_ = SteadyNow() + left;
    post_ = watchdog_.Add(post_end_, [&client] { client.stop(); });
  }
  httplib::Response response;
  httplib::Error error = httplib::Error::Success;
  client.send(request, response, error);
  int64_t done = 0;
  {
    MutexLock lock(&mutex_);
    done = std::exchange(post_, 0);
  }
  watchdog_.Remove(done);
  if (out.status <= 0) out.text = httplib::to_string(error);
  return out;
}

absl::Duration OtlpExporter::TimeLeft() const {
  MutexLock lock(&mutex_);
  return stopping_ ? std::min(options_.timeout, (give_up_ - SteadyNow()) / 3) : options_.timeout;
}

bool OtlpExporter::Pause(absl::Duration pause) {
  MutexLock lock(&mutex_);
  const absl::Time until = SteadyNow() + pause;
  while (!stopping_ && SteadyNow() < until) changed_.WaitWithTimeout(&mutex_, until - SteadyNow());
  return !stopping_;
}

}  // namespace muster
