// Limits per client: calls per second, and concurrent streams (SPEC S-6).
#ifndef MUSTER_SERVICE_SECURITY_LIMITS_H_
#define MUSTER_SERVICE_SECURITY_LIMITS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "support/sync.h"

namespace muster {

struct LimitOptions {
  double calls_per_second = 20'000;  // of one client, on average; bursts up to one second's worth
  int32_t streams = 1'000;           // of one client, concurrently
};

// Thread-safe. The caller names each client: by an identity or an address.
class ClientLimits {
 public:
  explicit ClientLimits(LimitOptions options) : options_(options) {}

  // Counts one call. ResourceExhausted with the limit in its text.
  [[nodiscard]] absl::Status CountCall(const std::string& client, absl::Time now);
  // Counts one of many calls on a stream. Not 0: it is not counted; try again after this time. A part of the allowance
  // is left for the client's other calls.
  [[nodiscard]] absl::Duration CountStreamCall(const std::string& client, absl::Time now);
  // Counts one open stream, until CloseStream. ResourceExhausted as above.
  [[nodiscard]] absl::Status OpenStream(const std::string& client);
  void CloseStream(const std::string& client);

 private:
  struct Client {
    double calls = 0;  // allowance left at the moment
    absl::Time at = absl::InfinitePast();
    int32_t streams = 0;
  };
  Client& Refill(const std::string& client, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LimitOptions options_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Client> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICE_SECURITY_LIMITS_H_
