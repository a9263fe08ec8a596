// Gangs that stand in each other's way at the barrier: members of each wait with nodes that the others need (SPEC P-6).
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/frontends/verbs_frontend.h"

namespace muster {
namespace {

// The gangs start together: neither is in the other's way.
bool Together(const Gangs& gangs, const Gang& a, const Gang& b) {
  const GroupId group = gangs.groups().Of(a.id);
  return &a == &b || (group != kNoGroup && group == gangs.groups().Of(b.id));
}

}  // namespace

// Whether the pod would have room on the node without those of other gangs that wait there; `after`: only of gangs that
// come after it in order.
bool Verbs::RoomWithout(const Pod& pod, NodeId node, const QueueKey* after) const {
  const auto waiters = r_.barrier->waiters().find(node);
  if (waiters == r_.barrier->waiters().end()) return false;
  // Whoever it must not be near may be somebody who does not wait: nobody leaves for that.
  const bool apart = r_.cluster->pod_class(pod.cls).has_neighbours;
  if (apart && r_.cluster->neighbours().Room(node, pod.cls, 1) == 0) return false;
  ResourceSum theirs;
  for (const PodId id : waiters->second) {
    const Pod& other = r_.gangs->pod(id);
    if (Together(*r_.gangs, *other.gang, *pod.gang) ||
        (after != nullptr && !(*after < r_.eligibility->KeyOf(*other.gang))))
      continue;
    theirs.AddTimes(r_.cluster->pod_class(other.cls).request, 1);
  }
  return r_.cluster->FitsWith(node, pod.cls, theirs);
}

// The last in order of the gangs of which members wait on the node, `except` and its group aside; nullptr: none.
const Gang* Verbs::LastWaiting(NodeId node, const Gang& except) const {
  const Gang* last = nullptr;
  const auto waiters = r_.barrier->waiters().find(node);
  if (waiters == r_.barrier->waiters().end()) return last;
  for (const PodId id : waiters->second) {
    const Gang* gang = r_.gangs->pod(id).gang;
    if (gang == last || Together(*r_.gangs, *gang, except)) continue;
    if (last == nullptr || r_.eligibility->KeyOf(*last) < r_.eligibility->KeyOf(*gang)) last = gang;
  }
  return last;
}

// Gangs that come after the pod's leave the node, the last first, until it has room. REQUIRES: it will have.
bool Verbs::MakeRoom(const Pod& pod, NodeId node, Step* step) {
  const Gang& gang = *pod.gang;
  while (r_.cluster->Room(node, pod.cls, 1) == 0) {
    const Gang* last = LastWaiting(node, gang);
    if (last == nullptr || !(r_.eligibility->KeyOf(gang) < r_.eligibility->KeyOf(*last))) return false;
    r_.claims->ReleaseGroup(*last,
                            {ReasonCode::kWithdrawn, absl::StrCat("gang ", last->key, ": gave its places back to gang ",
                                                                  gang.key, ", which comes first")},
                            step);
  }
  return true;
}

bool Verbs::MakeWay(const Pod& pod, const NodeOffer& offer, Step* step) {
  if (pod.gang == nullptr || r_.barrier->waiters().empty()) return false;
  const Gang& gang = *pod.gang;
  if (gang.rules.min_member < 1 || r_.eligibility->PassesOneByOne(gang)) return false;  // it needs no quorum
  if (!r_.eligibility->GateReason(gang, step->now_ms()).none()) return false;           // it could not start anyway
  std::vector<NodeId> nodes;  // where others wait that the pod could use
  for (const auto& [at, waiters] : r_.barrier->waiters()) {
    if (offer.Contains(r_.cluster->node(at).facts.name) && r_.cluster->FindObstacle(at, pod.cls) == Obstacle::kNone)
      nodes.push_back(at);
  }
  const QueueKey key = r_.eligibility->KeyOf(gang);
  for (const NodeId at : nodes) {
    if (RoomWithout(pod, at, &key)) return MakeRoom(pod, at, step);
  }
  // Others who come first hold what it needs: it does not keep from them what they need.
  const bool in_the_way = absl::c_any_of(nodes, [&](NodeId at) { return RoomWithout(pod, at, nullptr); });
  if (in_the_way && gang.count(MemberState::kWaiting) > 0) {
    r_.claims->ReleaseGroup(
        gang,
        {ReasonCode::kWithdrawn, absl::StrCat("gang ", gang.key, ": gave its places back to gangs that come first")},
        step);
  }
  return false;
}

}  // namespace muster
