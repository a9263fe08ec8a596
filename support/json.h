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

// The parsed text; InvalidArgument with the position otherwise, or when a number does not fit or the nesting is deeper
// than 200. `what` names the text in the message.
[[nodiscard]] absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view what);
// The same of what the API server has taken: whatever is nested deeper is left out, and the rest is read.
[[nodiscard]] absl::StatusOr<Json> ParseJsonCut(absl::string_view text, absl::string_view what);

// object[key], or a null value when `object` is no object or lacks the key.
[[nodiscard]] const Json& Child(const Json& object, const char* key);

// The string at object[key]; empty when absent or null. InvalidArgument "<path>.<key>: ..." for another type.
[[nodiscard]] absl::StatusOr<std::string> StringAt(const Json& object, const char* key, absl::string_view path);
// The same where a wrong type is no reason to refuse the whole object.
[[nodiscard]] std::string StringOrEmpty(const Json& object, const char* key);
[[nodiscard]] bool BoolOrFalse(const Json& object, const char* key);
// An integer that fits; nullopt otherwise.
[[nodiscard]] std::optional<int64_t> IntAt(const Json& object, const char* key);

// As text. Strings that came from elsewhere need not be UTF-8: what is not is U+FFFD, and nothing throws.
[[nodiscard]] inline std::string Dump(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// "string", "object", ...: for messages.
[[nodiscard]] std::string TypeName(const Json& value);

}  // namespace muster

#endif  // MUSTER_SUPPORT_JSON_H_
