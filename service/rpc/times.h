// Times and durations of the public API. The core counts in milliseconds.
#ifndef MUSTER_SERVICE_RPC_TIMES_H_
#define MUSTER_SERVICE_RPC_TIMES_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <string>

#include "service/rpc/errors.h"

namespace muster {

[[nodiscard]] google::protobuf::Timestamp TimestampOfMs(int64_t unix_ms);
[[nodiscard]] google::protobuf::Timestamp TimestampOfUs(int64_t unix_us);
[[nodiscard]] google::protobuf::Duration DurationOfMs(int64_t ms);
[[nodiscard]] google::protobuf::Duration DurationOfUs(int64_t us);

// Milliseconds, rounded up, from 0 to `max_ms`. Anything else is a violation of `field`, and 0 is returned. `zero`:
// what 0 means ("the default").
[[nodiscard]] int64_t ReadDuration(const google::protobuf::Duration& duration, int64_t max_ms, const std::string& field,
                                   absl::string_view zero, Violations* violations);
// Milliseconds since 1970. A time outside the years 1970 to 9999 is a violation of `field`, and 0 is returned.
[[nodiscard]] int64_t ReadTime(const google::protobuf::Timestamp& time, const std::string& field,
                               Violations* violations);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_TIMES_H_
