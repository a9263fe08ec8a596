// Rebuilds what a recording omits of Gangs: the lookup maps and each member's pointer to its gang.
#include <memory>

#include "state/gangs/gangs.h"

namespace muster {

void Gangs::AfterRestore() {
  for (const std::unique_ptr<Pod>& pod : pod_table_) {
    if (pod != nullptr) pods_[pod->facts.uid] = pod.get();
  }
  for (const std::unique_ptr<Gang>& gang : gang_table_) {
    if (gang == nullptr) continue;
    gangs_[gang->key] = gang.get();
    for (const MemberSet& set : gang->members) {
      for (const Pod* member : set) pod_table_[static_cast<size_t>(member->id)]->gang = gang.get();
    }
  }
}

}  // namespace muster
