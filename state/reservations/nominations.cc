#include "state/reservations/nominations.h"

#include "absl/algorithm/container.h"

namespace muster {

void Nominations::Add(const Pod& pod) {
  uids_.insert(pod.facts.uid);
  Charge();
}

NodeId Nominations::FreeNodeOf(const Pod& pod) const {
  if (ledger_->ChargeOf(pod.id).node != kNoNode || pod.cls == kNoClass) return kNoNode;
  const NodeId node = cluster_->FindNode(pod.facts.nominated_node);
  const bool fits = node != kNoNode && cluster_->Room(node, pod.cls, 1) > 0 && queues_->Check(pod).none();
  return fits ? node : kNoNode;
}

void Nominations::Charge() {
  for (const std::string& uid : uids_) {
    const Pod& pod = *gangs_->FindPod(uid);
    if (const NodeId node = FreeNodeOf(pod); node != kNoNode)
      ledger_->ChargePod(pod.id, node, pod.cls, ChargeKind::kReserved);
  }
}

void Nominations::Allocate(Statement* statement) const {
  for (const std::string& uid : uids_) {
    const Pod& pod = *gangs_->FindPod(uid);
    if (const NodeId node = FreeNodeOf(pod); node != kNoNode) statement->Allocate(node, pod.cls, 1);
  }
}

void Nominations::ReleaseBelowPriority(int32_t priority) {
  for (const std::string& uid : uids_) {
    const Pod* pod = gangs_->FindPod(uid);
    if (pod->facts.priority < priority && ledger_->Reserves(pod->id)) ledger_->DischargePod(pod->id, /*gained=*/false);
  }
}

bool Nominations::HasCharged() const {
  return absl::c_any_of(uids_, [this](const std::string& uid) { return ledger_->Reserves(gangs_->FindPod(uid)->id); });
}

const Pod* Nominations::LastChargedOn(NodeId node) const {
  const Pod* last = nullptr;
  for (const std::string& uid : uids_) {
    const Pod* pod = gangs_->FindPod(uid);
    if (ledger_->Reserves(pod->id) && ledger_->ChargeOf(pod->id).node == node) last = pod;
  }
  return last;
}

}  // namespace muster
