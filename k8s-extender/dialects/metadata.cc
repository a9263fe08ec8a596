#include "k8s-extender/dialects/metadata.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "state/base/hash.h"

namespace muster {
namespace {

constexpr absl::string_view kEntry = "has";

const Json& Nothing() {
  static const Json kNull;
  return kNull;
}

constexpr size_t kLabel = 56;  // with "muster-" before it at most 63: the length of a label's value
constexpr size_t kHash = 16;

}  // namespace

std::string GangLabel(absl::string_view gang) {
  const auto plain = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-'; };
  std::string label(gang.substr(0, kLabel));
  absl::c_replace_if(
      label, [&](char c) { return !plain(c); }, '-');
  if (label == gang && !absl::StartsWith(label, "-") && !absl::EndsWith(label, "-")) return label;
  StateHasher hasher;
  hasher.Add(gang);
  return absl::StrFormat("g%s-%016x", label.substr(0, kLabel - kHash - 2), hasher.value());
}

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
  // absl also parses the words "infinite-future" and "infinite-past"
  if (time == absl::InfiniteFuture() || time == absl::InfinitePast()) return 0;
  return absl::ToUnixMillis(time);
}

const Json& Fields::MapAt(const Json& holder, const char* key, absl::string_view path) {
  const Json& value = Child(holder, key);
  return Check(value.is_null() || value.is_object(), value, key, path, "a map") ? value : Nothing();
}

const Json& Fields::MapsAt(const Json& holder, const char* key, absl::string_view path) {
  const Json& list = Child(holder, key);
  if (!Check(list.is_null() || list.is_array(), list, key, path, "a list")) return Nothing();
  for (const Json& entry : list) {
    if (!Check(entry.is_null() || entry.is_object(), entry, key, path, "a list of maps", kEntry)) return Nothing();
  }
  return list;
}

std::string Fields::TextAt(const Json& holder, const char* key, absl::string_view path) {
  const Json& value = Child(holder, key);
  if (value.is_null()) return "";
  const auto* text = value.get_ptr<const std::string*>();
  return Check(text != nullptr, value, key, path, "a string") ? *text : "";
}

std::vector<std::string> Fields::TextsAt(const Json& holder, const char* key, absl::string_view path) {
  std::vector<std::string> out;
  const Json& list = Child(holder, key);
  if (!Check(list.is_null() || list.is_array(), list, key, path, "a list")) return out;
  for (const Json& entry : list) {
    const auto* text = entry.get_ptr<const std::string*>();
    if (!Check(text != nullptr || entry.is_null(), entry, key, path, "a list of strings", kEntry)) return {};
    out.push_back(text != nullptr ? *text : "");
  }
  return out;
}

Labels Fields::LabelsAt(const Json& holder, const char* key, absl::string_view path) {
  static_cast<void>(MapAt(holder, key, path));
  return StringMapAt(holder, key);
}

std::optional<int64_t> Fields::NumberAt(const Json& holder, const char* key, absl::string_view path) {
  const Json& value = Child(holder, key);
  const std::optional<int64_t> number = IntAt(holder, key);
  Check(value.is_null() || number.has_value(), value, key, path, "a whole number");
  return number;
}

bool Fields::FlagAt(const Json& holder, const char* key, absl::string_view path) {
  const Json& value = Child(holder, key);
  Check(value.is_null() || value.is_boolean(), value, key, path, "true or false");
  return BoolOrFalse(holder, key);
}

void Fields::AddProblem(absl::string_view problem) {
  if (problem_.empty()) problem_ = std::string(problem);
}

bool Fields::Check(bool right, const Json& value, const char* key, absl::string_view path, absl::string_view expected,
                   absl::string_view verb) {
  if (!right) AddProblem(absl::StrCat(path, ".", key, ": ", verb, " a ", TypeName(value), "; expected ", expected));
  return right;
}

}  // namespace muster
