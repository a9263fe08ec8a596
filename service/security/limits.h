// What one client may take of the doors: calls a second, and streams at once (SPEC S-6).
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
  double calls_per_s = 20'000;  // of one client, over time; a second's worth may come at once
  int32_t streams = 1'000;      // of one client, open at once
};

// Thread-safe. Clients are known by a name of the caller's: an identity, or an address.
class ClientLimits {
 public:
  explicit ClientLimits(LimitOptions options) : options_(options) {}

  // Counts one call. ResourceExhausted with the limit in its text.
  [[nodiscard]] absl::Status TakeCall(const std::string& client, absl::Time now);
  // Counts one open stream; CloseStream gives it back.
  [[nodiscard]] absl::Status OpenStream(const std::string& client);
  void CloseStream(const std::string& client);

 private:
  struct Client {
    double calls = 0;  // that may still be made now
    absl::Time at = absl::InfinitePast();
    int32_t streams = 0;
  };
  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LimitOptions options_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Client> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICE_SECURITY_LIMITS_H_
