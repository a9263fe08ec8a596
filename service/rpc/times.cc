#include "service/rpc/times.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace muster {
namespace {

constexpr int64_t kSecondMs = 1'000;
constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kMsNs = 1'000'000;
constexpr int64_t kLastSecond = 253'402'300'799;  // of the year 9999
// More than any limit: sums of milliseconds do not overflow.
constexpr int64_t kMostSeconds = int64_t{1} << 50;

// `units` of which a second has `per_second`; the nanoseconds are never negative.
template <typename Message>
Message Split(int64_t units, int64_t per_second) {
  int64_t seconds = units / per_second;
  int64_t rest = units % per_second;
  if (rest < 0) {
    rest += per_second;
    --seconds;
  }
  Message out;
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int32_t>(rest * (kSecondNs / per_second)));
  return out;
}

std::string TextOf(int64_t ms) { return absl::FormatDuration(absl::Milliseconds(ms)); }

}  // namespace

google::protobuf::Timestamp TimestampOfMs(int64_t unix_ms) {
  return Split<google::protobuf::Timestamp>(unix_ms, kSecondMs);
}
google::protobuf::Timestamp TimestampOfUs(int64_t unix_us) {
  return Split<google::protobuf::Timestamp>(unix_us, kSecondUs);
}
google::protobuf::Duration DurationOfMs(int64_t ms) { return Split<google::protobuf::Duration>(ms, kSecondMs); }
google::protobuf::Duration DurationOfUs(int64_t us) { return Split<google::protobuf::Duration>(us, kSecondUs); }

int64_t ReadDuration(const google::protobuf::Duration& duration, int64_t max_ms, const std::string& field,
                     absl::string_view zero, Violations* violations) {
  const bool valid = duration.seconds() >= 0 && duration.seconds() <= kMostSeconds && duration.nanos() >= 0 &&
                     duration.nanos() < kSecondNs;
  const int64_t ms = valid ? duration.seconds() * kSecondMs + (duration.nanos() + kMsNs - 1) / kMsNs : -1;
  if (valid && ms <= max_ms) return ms;
  violations->Add(field, absl::StrCat(duration.seconds(), "s ", duration.nanos(), "ns; expected 0s (", zero, ") to ",
                                      TextOf(max_ms)));
  return 0;
}

int64_t ReadTime(const google::protobuf::Timestamp& time, const std::string& field, Violations* violations) {
  if (time.seconds() >= 0 && time.seconds() <= kLastSecond && time.nanos() >= 0 && time.nanos() < kSecondNs) {
    return time.seconds() * kSecondMs + time.nanos() / kMsNs;
  }
  violations->Add(field, absl::StrCat(time.seconds(), "s ", time.nanos(),
                                      "ns since 1970; expected a time of the years 1970 to 9999"));
  return 0;
}

}  // namespace muster
