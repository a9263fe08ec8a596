// Reads common parts of Kubernetes objects from JSON: maps of strings, times, and fields of a required type.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_METADATA_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_METADATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/model/pod_template.h"
#include "support/json.h"

namespace muster {

// The map of strings at object[key]. Values of other types are converted as real manifests need it (D-12): 5 is "5", a
// list is its JSON.
[[nodiscard]] Labels StringMapAt(const Json& object, const char* key);

// Converts RFC 3339, as the API server writes it, into milliseconds since 1970; 0 when absent or unreadable.
[[nodiscard]] int64_t TimeAt(const Json& object, const char* key);

// The value of label muster.dev/gang-name for a gang of this name: the name itself if it is short enough and can be
// part of the name of an object, otherwise its beginning and a hash.
[[nodiscard]] std::string GangLabel(absl::string_view gang);

// Looks up fields of a required type (SPEC S-6). Absent fields and null are empty. A field of another type is empty
// too; the first such field is the problem: "<path>.<key>: is a <type>; expected <type>". `path` is the path of
// `holder`.
class Fields {
 public:
  // Null when absent.
  [[nodiscard]] const Json& MapAt(const Json& holder, const char* key, absl::string_view path);
  // A list of maps; null when absent. A null entry is an empty map.
  [[nodiscard]] const Json& MapsAt(const Json& holder, const char* key, absl::string_view path);
  [[nodiscard]] std::string TextAt(const Json& holder, const char* key, absl::string_view path);
  [[nodiscard]] std::vector<std::string> TextsAt(const Json& holder, const char* key, absl::string_view path);
  // As StringMapAt.
  [[nodiscard]] Labels LabelsAt(const Json& holder, const char* key, absl::string_view path);
  [[nodiscard]] std::optional<int64_t> NumberAt(const Json& holder, const char* key, absl::string_view path);
  [[nodiscard]] bool FlagAt(const Json& holder, const char* key, absl::string_view path);

  // Empty: no problem.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Adds a problem found by other means; empty: none.
  void AddProblem(absl::string_view problem);

 private:
  // Returns `right`; if it is false, adds a problem.
  bool Check(bool right, const Json& value, const char* key, absl::string_view path, absl::string_view expected,
             absl::string_view verb = "is");

  std::string problem_;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_METADATA_H_
