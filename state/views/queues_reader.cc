// What a gang waits for: its place in its queue and the gangs before it (SPEC G-9, S-5), or the holders of the capacity
// that it lacks.
#include <algorithm>
#include <utility>

#include "absl/container/btree_map.h"
#include "state/views/reader.h"
#include "state/views/wait_reasons.h"

namespace muster {
namespace {

// The largest number of gangs in QueuePositionView::first.
constexpr size_t kMaxListed = 10;

// The queued gang that represents `gang`: the gang itself or the leader of its group; nullptr: not queued.
const Gang* FindQueued(const Gang& gang, const Eligibility& eligibility, const Backlog& backlog) {
  if (backlog.queued(gang.id) != nullptr) return &gang;
  if (gang.rules.group.empty()) return nullptr;
  for (const Gang* other : eligibility.Unplaced(gang)) {
    if (backlog.queued(other->id) != nullptr) return other;
  }
  return nullptr;
}

// Whether a pod of a class fits anywhere, and the resource that limits it on most of the nodes that it may use. Nodes
// where host ports or pod affinity exclude the pod do not count.
struct Scarcity {
  bool none_has_room = true;
  std::string resource;  // empty: the class may use no node
};

Scarcity ComputeScarcity(const Cluster& cluster, ClassId cls) {
  Scarcity out;
  absl::btree_map<std::string, int32_t> nodes;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    if (!cluster.node(id).present || cluster.FindObstacle(id, cls) != Obstacle::kNone) continue;
    const bool has_room = cluster.HasRoom(id, cls);
    out.none_has_room = out.none_has_room && !has_room;
    if (!has_room && cluster.pod_class(cls).request.FitsIn(cluster.node(id).free)) continue;
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

bool QueuesReader::ViewPosition(const Gang* gang, QueueId queue, int32_t limit, QueuePositionCursor* read,
                                QueuePositionView* out) const {
  const Gang* asked = gang == nullptr ? nullptr : FindQueued(*gang, *r_.eligibility, *r_.backlog);
  if (gang != nullptr && asked == nullptr) return true;
  const QueueTree& tree = r_.queues->tree();
  const auto counts = [&](GangId id) {
    // A gang that can never run delays no other gang.
    if (id != (asked == nullptr ? -1 : asked->id) && r_.backlog->why(id).code == ReasonCode::kQueueRejected)
      return false;
    QueueId at = r_.backlog->lane(id) - 1;  // lane 0 has the gangs without a queue
    if (asked != nullptr) return at + 1 == r_.backlog->lane(asked->id);
    while (at != queue && at != kNoQueue) at = tree.at(at).parent;
    return at == queue;
  };
  const GangId end = std::min(r_.gangs->gang_limit(), read->next + limit);
  for (; read->next < end; ++read->next) {
    const QueueKey* key = r_.backlog->queued(read->next);
    if (key == nullptr || !counts(read->next)) continue;
    ++read->all;
    if (asked != nullptr && !(*key < *r_.backlog->queued(asked->id))) continue;
    ++read->before;
    if (read->first.size() == kMaxListed && read->first.back().first < *key) continue;
    std::pair<QueueKey, GangId> entry(*key, read->next);
    read->first.insert(std::upper_bound(read->first.begin(), read->first.end(), entry), std::move(entry));
    if (read->first.size() > kMaxListed) read->first.pop_back();
  }
  if (read->next < r_.gangs->gang_limit()) return false;
  const auto queue_of = [&](GangId id) {
    const QueueId at = r_.backlog->lane(id) - 1;
    return at == kNoQueue ? std::string() : tree.at(at).spec.name;
  };
  if (asked != nullptr) out->queue = queue_of(asked->id);
  out->place = asked == nullptr ? 0 : read->before + 1;
  out->places = read->all;
  for (const auto& [key, id] : read->first) {
    const Gang* each = r_.gangs->GangAt(id);
    if (each == nullptr) continue;
    out->first.push_back({each->name_space, each->name, queue_of(id), r_.reasons->WithDetails(*each, each->reason)});
  }
  return true;
}

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
  const ReasonCode why = gang.reason.code;
  if (why != ReasonCode::kNoRoom && why != ReasonCode::kNoPlaceFound) return true;
  if (!r_.backlog->details(r_.eligibility->LeaderOf(gang).id).obstacle.EndsWithCapacity()) return true;
  const bool begins = read->uid.empty();
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
