// Reading untrusted JSON: look-ups that never throw and errors that name the field. Pure functions.
#ifndef MUSTER_SUPPORT_JSON_H_
#define MUSTER_SUPPORT_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

using Json = nlohmann::json;

// A value takes up to some 100 bytes of memory, and two bytes of text.
inline constexpr size_t kMaxJsonValues = 1'000'000;

// Parses the text. InvalidArgument with the position if it is not JSON; also if a number does not fit, the nesting is
// deeper than 200, or there are more than `max_values` values. `what` names the text in the message.
[[nodiscard]] absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view what,
                                             size_t max_values = kMaxJsonValues);
// As ParseJson, for objects that the API server has accepted: omits values that are nested deeper and reads the rest.
[[nodiscard]] absl::StatusOr<Json> ParseJsonCut(absl::string_view text, absl::string_view what);

// object[key]; a null value if `object` is not an object or lacks the key.
[[nodiscard]] const Json& Child(const Json& object, const char* key);

// The string at object[key]; empty when absent or null. InvalidArgument "<path>.<key>: ..." for another type.
[[nodiscard]] absl::StatusOr<std::string> StringAt(const Json& object, const char* key, absl::string_view path);
// Like StringAt, but a value of a wrong type counts as absent, so that the object as a whole is not refused.
[[nodiscard]] std::string StringOrEmpty(const Json& object, const char* key);
[[nodiscard]] bool BoolOrFalse(const Json& object, const char* key);
// The integer at object[key]; nullopt if it is absent, of another type, or does not fit an int64.
[[nodiscard]] std::optional<int64_t> IntAt(const Json& object, const char* key);

// The value as text. Strings from outside may not be UTF-8: invalid bytes become U+FFFD, and nothing throws.
[[nodiscard]] inline std::string Dump(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// "string", "object", ...: for messages.
[[nodiscard]] std::string TypeName(const Json& value);

}  // namespace muster

#endif  // MUSTER_SUPPORT_JSON_H_
