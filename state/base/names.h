// Validation of Kubernetes names. Pure functions.
#ifndef MUSTER_STATE_BASE_NAMES_H_
#define MUSTER_STATE_BASE_NAMES_H_

#include "absl/strings/string_view.h"

namespace muster {

// True for an RFC 1123 subdomain: at most 253 characters of a-z, 0-9, '-' and '.'; each label begins and ends with a-z
// or 0-9.
[[nodiscard]] bool IsSubdomain(absl::string_view name);

// True for a name of at most 63 letters, digits, '-', '_' and '.' that begins and ends with a letter or a digit.
[[nodiscard]] bool IsLabelName(absl::string_view name);

// True for a label key: an optional subdomain with a slash (as in "topology.kubernetes.io/zone"), then a label name.
[[nodiscard]] bool IsLabelKey(absl::string_view key);

}  // namespace muster

#endif  // MUSTER_STATE_BASE_NAMES_H_
