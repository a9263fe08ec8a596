// Names as Kubernetes has them.
#ifndef MUSTER_STATE_BASE_NAMES_H_
#define MUSTER_STATE_BASE_NAMES_H_

#include "absl/strings/string_view.h"

namespace muster {

// True for an RFC 1123 subdomain: at most 253 of a-z, 0-9, '-' and '.', labels beginning and ending with a-z or 0-9.
[[nodiscard]] bool IsSubdomain(absl::string_view name);

}  // namespace muster

#endif  // MUSTER_STATE_BASE_NAMES_H_
