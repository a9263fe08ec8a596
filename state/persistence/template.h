// Conversion of a pod's template to and from its message, which is part of other records. Thread-safe.
#ifndef MUSTER_STATE_PERSISTENCE_TEMPLATE_H_
#define MUSTER_STATE_PERSISTENCE_TEMPLATE_H_

#include "state/model/pod.h"

namespace muster {

namespace store::v1 {
class Template;
}  // namespace store::v1

void PutTemplate(const PodTemplate& from, store::v1::Template* to);
[[nodiscard]] PodTemplate GetTemplate(const store::v1::Template& from);

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_TEMPLATE_H_
