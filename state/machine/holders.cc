// Who holds the room that a gang waits for, and since when (SPEC S-5).
#include <algorithm>
#include <iterator>

#include "absl/container/btree_map.h"
#include "state/machine/machine.h"
#include "state/machine/view.h"

namespace muster {
namespace {

// The class of a member that has no node yet; kNoClass: there is none.
ClassId WaitingClass(const Gang& gang, const Ledger& ledger) {
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (pod->cls != kNoClass && ledger.ChargeOf(pod->id).node == kNoNode) return pod->cls;
  }
  return kNoClass;
}

// Of what pods of the class ask for, what most of the nodes that they may use have least of; empty: there are none.
std::string ScarceResource(const Cluster& cluster, ClassId cls) {
  const auto& request = cluster.pod_class(cls).request;
  absl::btree_map<std::string, int32_t> nodes;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    if (!cluster.node(id).present || cluster.FindObstacle(id, cls) != Obstacle::kNone) continue;
    ResourceId scarce = -1;
    int64_t least = 0;
    for (const auto& [resource, amount] : request.entries()) {
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
  return most == nodes.end() ? "" : most->first;
}

bool LacksRoom(ReasonCode code) { return code == ReasonCode::kNoRoom || code == ReasonCode::kNoPlaceFound; }

}  // namespace

bool Machine::ViewHolders(const Gang& gang, int32_t limit, HoldersRead* read, HoldersView* out) const {
  const ClassId wanted = LacksRoom(gang.reason.code) ? WaitingClass(gang, ledger_) : kNoClass;
  if (wanted == kNoClass) return true;
  const auto amount_of = [&](NodeId node, ClassId cls) -> int64_t {
    if (cls == kNoClass || cluster_.FindObstacle(node, wanted) != Obstacle::kNone) return 0;
    return cluster_.pod_class(cls).request.Get(cluster_.names().Find(read->resource));
  };
  const auto holder = [&](const Gang* of) -> HolderView& {
    HolderView& view = read->holders[of == nullptr ? "" : of->key];
    if (of == nullptr || !view.gang.empty()) return view;
    view.gang = of->key;
    const Plan* plan = plans_.Of(*of);
    if (of->reason.code == ReasonCode::kSatisfied) {
      view.since_ms = of->reason_since_ms;
    } else if (plan != nullptr) {
      view.since_ms = plan->created_ms;
    }
    return view;
  };
  if (!std::exchange(read->begun, true)) {
    read->resource = ScarceResource(cluster_, wanted);
    if (read->resource.empty()) return true;
    for (const NodeId node : ledger_.promised()) {
      for (const Ledger::Promise& promise : ledger_.PromisedOn(node)) {
        const int64_t amount = amount_of(node, promise.cls);
        if (amount == 0 || promise.claim == gang.id) continue;
        HolderView& of = holder(&gangs_.gang(promise.claim));
        of.promised += promise.pods;
        of.amount += amount * promise.pods;
      }
    }
  }
  if (cluster_.names().Find(read->resource) < 0) return true;  // nobody uses it any more
  const PodId end = std::min(gangs_.pod_limit(), read->next + limit);
  for (; read->next < end; ++read->next) {
    const Pod* pod = gangs_.PodAt(read->next);
    const Ledger::PodCharge& charge = ledger_.ChargeOf(read->next);
    if (pod == nullptr || charge.node == kNoNode || pod->gang == &gang) continue;
    const int64_t amount = amount_of(charge.node, charge.cls);
    if (amount == 0) continue;
    HolderView& of = holder(pod->gang);
    ++of.pods;
    of.amount += amount;
  }
  if (read->next < gangs_.pod_limit()) return false;
  out->resource = read->resource;
  for (auto& [key, view] : read->holders) out->holders.push_back(std::move(view));
  std::stable_sort(out->holders.begin(), out->holders.end(),
                   [](const HolderView& a, const HolderView& b) { return a.amount > b.amount; });
  return true;
}

}  // namespace muster
