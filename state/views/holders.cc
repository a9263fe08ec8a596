// The holders of the capacity that a gang waits for, and since when they hold it (SPEC S-5).
#include <algorithm>
#include <utility>

#include "absl/container/btree_map.h"
#include "state/views/reader.h"

namespace muster {
namespace {

// Whether a pod of a class fits anywhere, and the resource that limits it on most of the nodes that it may use.
struct Scarcity {
  bool none_has_room = true;
  std::string resource;  // empty: the class may use no node
};

Scarcity ComputeScarcity(const Cluster& cluster, ClassId cls) {
  Scarcity out;
  absl::btree_map<std::string, int32_t> nodes;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    if (!cluster.node(id).present || cluster.FindObstacle(id, cls) != Obstacle::kNone) continue;
    out.none_has_room = out.none_has_room && cluster.Room(id, cls, 1) == 0;
    ResourceId scarce = -1;
    int64_t least = 0;
    for (const auto& [resource, amount] : cluster.pod_class(cls).request.entries()) {
      if (amount <= 0) continue;
      const int64_t times = cluster.node(id).free.Get(resource) / amount;
      if (scarce >= 0 && times >= least) continue;
      scarce = resource;
      least = times;
    }
    if (scarce >= 0) ++nodes[cluster.names().Name(scarce)];
  }
  const auto most =
      std::max_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != nodes.end()) out.resource = most->first;
  return out;
}

// The entry of the gang, or of all lone pods (nullptr); added if it does not exist.
HolderView& HolderOf(const Gang* gang, absl::btree_map<std::string, HolderView>* holders) {
  static const std::string kLone;
  const auto [at, added] = holders->try_emplace(gang == nullptr ? kLone : gang->key);
  if (added && gang != nullptr) {
    at->second.gang = gang->key;
    at->second.created_ms = gang->created_ms;
  }
  return at->second;
}

}  // namespace

bool LacksRoom(ReasonCode code) { return code == ReasonCode::kNoRoom || code == ReasonCode::kNoPlaceFound; }

// Sets the cursor to the first member of the gang or its group whose class fits on no node. If every class fits alone,
// sets it to the first member.
void QueuesReader::FindMemberWithoutRoom(const Gang& gang, HoldersCursor* read) const {
  absl::btree_map<ClassId, Scarcity> seen;
  for (const Gang* each : r_.eligibility->Unplaced(gang)) {
    for (const Pod* pod : each->in(MemberState::kPending)) {
      if (!r_.gangs->Plannable(*pod) || r_.plans->SlotIndex(*pod) >= 0 || seen.contains(pod->cls)) continue;
      const Scarcity& of = seen.emplace(pod->cls, ComputeScarcity(*r_.cluster, pod->cls)).first->second;
      if (!of.none_has_room && !read->uid.empty()) continue;
      read->uid = pod->facts.uid;
      read->resource = of.resource;
      if (of.none_has_room) return;
    }
  }
}

bool QueuesReader::ViewHolders(const Gang& gang, int32_t limit, HoldersCursor* read, HoldersView* out) const {
  if (!LacksRoom(gang.reason.code)) return true;
  const bool begins = !std::exchange(read->begun, true);
  if (begins) FindMemberWithoutRoom(gang, read);
  const Pod* roomless = r_.gangs->FindPod(read->uid);
  const ResourceId resource = r_.cluster->names().Find(read->resource);
  if (roomless == nullptr || roomless->cls == kNoClass || resource < 0) return true;
  const auto amount_of = [&](NodeId node, ClassId cls) -> int64_t {
    if (cls == kNoClass || r_.cluster->FindObstacle(node, roomless->cls) != Obstacle::kNone) return 0;
    return r_.cluster->pod_class(cls).request.Get(resource);
  };
  if (begins) {
    for (const NodeId node : r_.ledger->promised()) {
      for (const Ledger::Promise& promise : r_.ledger->PromisedOn(node)) {
        const int64_t amount = amount_of(node, promise.cls);
        if (amount == 0 || promise.claim == gang.id) continue;
        const Gang& to = r_.gangs->gang(promise.claim);
        HolderView& of = HolderOf(&to, &read->holders);
        if (r_.future_reservations->HasReservationOnRunning(to)) {
          of.awaited += promise.pods;
          continue;
        }
        of.promised += promise.pods;
        if (const Plan* plan = r_.plans->Of(to); plan != nullptr) of.reserved_since_ms = plan->created_ms;
        of.amount += WideSum{amount} * promise.pods;
      }
    }
  }
  const PodId end = std::min(r_.gangs->pod_limit(), read->next + limit);
  for (; read->next < end; ++read->next) {
    const Ledger::PodCharge& charge = r_.ledger->ChargeOf(read->next);
    if (charge.node == kNoNode) continue;
    const Pod& pod = r_.gangs->pod(read->next);
    const int64_t amount = pod.gang == &gang ? 0 : amount_of(charge.node, charge.cls);
    if (amount == 0) continue;
    HolderView& of = HolderOf(pod.gang, &read->holders);
    ++of.pods;
    of.amount += amount;
  }
  if (read->next < r_.gangs->pod_limit()) return false;
  out->resource = read->resource;
  for (auto& [key, view] : read->holders) out->holders.push_back(std::move(view));
  std::stable_sort(out->holders.begin(), out->holders.end(), [](const HolderView& a, const HolderView& b) {
    return std::pair(a.awaited > 0, a.amount) > std::pair(b.awaited > 0, b.amount);
  });
  return true;
}

}  // namespace muster
