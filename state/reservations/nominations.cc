#include "state/reservations/nominations.h"

#include "absl/algorithm/container.h"
#include "state/cluster/cluster.h"
#include "state/cluster/statement.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"

namespace muster {

void Nominations::Add(const Pod& pod) {
  uids_.insert(pod.facts.uid);
  Charge();
}

void Nominations::ForEachFitting(absl::FunctionRef<void(const Pod& pod, NodeId node)> visit) const {
  for (const std::string& uid : uids_) {
    const Pod& pod = *gangs_->FindPod(uid);
    if (ledger_->ChargeOf(pod.id).node != kNoNode || pod.cls == kNoClass) continue;
    const NodeId node = cluster_->FindNode(pod.facts.nominated_node);
    if (node != kNoNode && cluster_->HasRoom(node, pod.cls) && queues_->Check(pod).none()) visit(pod, node);
  }
}

void Nominations::Charge() {
  ForEachFitting(
      [this](const Pod& pod, NodeId node) { ledger_->ChargePod(pod.id, node, pod.cls, ChargeKind::kReserved); });
}

void Nominations::Allocate(Statement* statement) const {
  ForEachFitting([statement](const Pod& pod, NodeId node) { statement->Allocate(node, pod.cls, 1); });
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
