// What every Kubernetes object carries, read from its JSON: maps of strings and times; and fields that must be of a
// type.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_METADATA_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_METADATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/model/constraints.h"
#include "support/json.h"

namespace muster {

// A map of strings at object[key]. Values of another type are read as a person would (5 is "5", a list is its JSON), as
// real manifests have them (D-12).
[[nodiscard]] Labels StringMapAt(const Json& object, const char* key);

// RFC 3339 as the API server writes it -> milliseconds since 1970; 0 when absent or unreadable.
[[nodiscard]] int64_t TimeAt(const Json& object, const char* key);

// Looks up fields that must be of a type (SPEC S-6). What is absent or null is empty; so is what is of another type,
// and the first such is the problem: "<path>.<key>: is a <type>; expected <type>", `path` being where `holder` stands.
class Fields {
 public:
  // Null where there is none.
  [[nodiscard]] const Json& MapAt(const Json& holder, const char* key, absl::string_view path);
  // A list of maps; null where there is none. An entry that is null asks for nothing.
  [[nodiscard]] const Json& MapsAt(const Json& holder, const char* key, absl::string_view path);
  [[nodiscard]] std::string TextAt(const Json& holder, const char* key, absl::string_view path);
  [[nodiscard]] std::vector<std::string> TextsAt(const Json& holder, const char* key, absl::string_view path);
  // As StringMapAt.
  [[nodiscard]] Labels LabelsAt(const Json& holder, const char* key, absl::string_view path);
  [[nodiscard]] std::optional<int64_t> NumberAt(const Json& holder, const char* key, absl::string_view path);
  [[nodiscard]] bool FlagAt(const Json& holder, const char* key, absl::string_view path);

  // Empty: there is none.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // A problem found by other means; empty: none.
  void Note(absl::string_view problem);

 private:
  // Whether `right`; a problem otherwise.
  bool Check(bool right, const Json& value, const char* key, absl::string_view path, absl::string_view expected,
             absl::string_view verb = "is");

  std::string problem_;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_METADATA_H_
