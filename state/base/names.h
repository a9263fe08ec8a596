// Names as Kubernetes has them.
#ifndef MUSTER_STATE_BASE_NAMES_H_
#define MUSTER_STATE_BASE_NAMES_H_

#include "absl/strings/string_view.h"

namespace muster {

// True for an RFC 1123 subdomain: at most 253 of a-z, 0-9, '-' and '.', labels beginning and ending with a-z or 0-9.
[[nodiscard]] bool IsSubdomain(absl::string_view name);

// True for the key of a label: at most 63 of letters, digits, '-', '_' and '.', with a letter or a digit at either end,
// and before it, perhaps, a subdomain and a slash ("topology.kubernetes.io/zone").
[[nodiscard]] bool IsLabelKey(absl::string_view key);

}  // namespace muster

#endif  // MUSTER_STATE_BASE_NAMES_H_
