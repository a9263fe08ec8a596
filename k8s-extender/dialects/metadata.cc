#include "k8s-extender/dialects/metadata.h"

#include <string>

#include "absl/time/time.h"

namespace muster {

Labels StringMapAt(const Json& object, const char* key) {
  Labels out;
  const Json& map = Child(object, key);
  if (!map.is_object()) return out;
  for (const auto& [name, value] : map.items()) {
    if (value.is_null()) continue;
    if (const auto* text = value.get_ptr<const std::string*>(); text != nullptr) {
      out.emplace(name, *text);
    } else {
      out.emplace(name, value.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  }
  return out;
}

int64_t TimeAt(const Json& object, const char* key) {
  absl::Time time;
  std::string error;
  const std::string text = StringOrEmpty(object, key);
  if (text.empty() || !absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return 0;
  if (time == absl::InfiniteFuture() || time == absl::InfinitePast()) return 0;  // absl reads these words, too
  return absl::ToUnixMillis(time);
}

}  // namespace muster
