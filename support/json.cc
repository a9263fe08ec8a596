#include "support/json.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {

namespace {

constexpr int kMaxDepth = 200;

// The size of the tree that a text becomes. A few bytes of text can become a hundred bytes of the tree, or a level of
// recursion.
struct TreeSize {
  int depth = 0;
  size_t values = 0;  // at least as many as there are
};

TreeSize MeasureTree(absl::string_view text) {
  TreeSize size;
  size.values = 1;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '[' || c == '{') size.depth = std::max(size.depth, ++depth);
    if (c == ']' || c == '}') --depth;
    size.values += c == '[' || c == '{' || c == ',' ? 1 : 0;
  }
  return size;
}

// Catches the parser's exceptions. The helpers below read values without throwing.
absl::StatusOr<Json> Parse(absl::string_view text, absl::string_view what, const Json::parser_callback_t& keep) {
  try {
    return Json::parse(text.begin(), text.end(), keep);
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": not JSON at byte ", error.byte, " of ", text.size()));
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": a number in it is too large"));
  }
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view what, size_t max_values) {
  const TreeSize size = MeasureTree(text);
  if (size.depth > kMaxDepth) return absl::InvalidArgumentError(absl::StrCat(what, ": nested deeper than ", kMaxDepth));
  if (size.values > max_values) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": more than ", max_values, " values"));
  }
  return Parse(text, what, nullptr);
}

absl::StatusOr<Json> ParseJsonCut(absl::string_view text, absl::string_view what) {
  if (MeasureTree(text).depth <= kMaxDepth) return Parse(text, what, nullptr);
  return Parse(text, what, [](int depth, Json::parse_event_t, Json&) { return depth < kMaxDepth; });
}

const Json& Child(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string TypeName(const Json& value) { return value.type_name(); }

absl::StatusOr<std::string> StringAt(const Json& object, const char* key, absl::string_view path) {
  const Json& value = Child(object, key);
  if (value.is_null()) return std::string();
  if (const auto* text = value.get_ptr<const std::string*>(); text != nullptr) return *text;
  return absl::InvalidArgumentError(absl::StrCat(path, ".", key, ": is a ", TypeName(value), "; expected a string"));
}

std::string StringOrEmpty(const Json& object, const char* key) {
  const auto* text = Child(object, key).get_ptr<const std::string*>();
  return text == nullptr ? std::string() : *text;
}

bool BoolOrFalse(const Json& object, const char* key) {
  const auto* value = Child(object, key).get_ptr<const bool*>();
  return value != nullptr && *value;
}

std::optional<int64_t> IntAt(const Json& object, const char* key) {
  const Json& value = Child(object, key);
  if (const auto* number = value.get_ptr<const uint64_t*>(); number != nullptr) {
    if (*number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(*number);
  }
  if (const auto* number = value.get_ptr<const int64_t*>(); number != nullptr) return *number;
  return std::nullopt;
}

}  // namespace muster
