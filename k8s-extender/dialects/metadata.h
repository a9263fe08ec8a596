// What every Kubernetes object carries, read from its JSON: maps of strings and times. Pure functions.
#ifndef MUSTER_K8S_EXTENDER_DIALECTS_METADATA_H_
#define MUSTER_K8S_EXTENDER_DIALECTS_METADATA_H_

#include <cstdint>

#include "service/support/json.h"
#include "state/model/constraints.h"

namespace muster {

// A map of strings at object[key]. Values of another type are read as a person would (5 is "5", a list is its JSON), as
// real manifests have them (D-12).
[[nodiscard]] Labels StringMapAt(const Json& object, const char* key);

// RFC 3339 as the API server writes it -> milliseconds since 1970; 0 when absent or unreadable.
[[nodiscard]] int64_t TimeAt(const Json& object, const char* key);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_DIALECTS_METADATA_H_
