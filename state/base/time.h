// Times are milliseconds since 1970 on the caller's clock; the core has no clock.
#ifndef MUSTER_STATE_BASE_TIME_H_
#define MUSTER_STATE_BASE_TIME_H_

#include <cstdint>
#include <limits>

namespace muster {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace muster

#endif  // MUSTER_STATE_BASE_TIME_H_
