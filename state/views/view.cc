// Detached views for readers, and explanations (SPEC G-10, S-5).
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "state/planner/explain_no_room.h"
#include "state/views/reader.h"

namespace muster {
namespace {

GangPhase PhaseOf(const Gang& gang, const Plan* plan) {
  const int32_t min = std::max(0, gang.rules.min_member);
  const int32_t succeeded = gang.count(MemberState::kSucceeded);
  const int32_t running = gang.count(MemberState::kRunning);
  const int32_t pending = gang.count(MemberState::kPending) + gang.count(MemberState::kWaiting);
  const bool over = gang.active() == 0 && pending == 0;
  if (over && succeeded > 0 && succeeded >= min) return GangPhase::kFinished;
  if (over && gang.count(MemberState::kFailed) > 0) return GangPhase::kFailed;
  // Members to come for which room is kept count as placed (P-7).
  const bool started = plan != nullptr && plan->committed && plan->bound == plan->present();
  const int32_t kept = started ? plan->to_come : 0;
  if ((plan != nullptr && !started) || gang.count(MemberState::kWaiting) > 0 ||
      gang.count(MemberState::kCommitted) > 0) {
    return GangPhase::kScheduling;
  }
  // Of a run that is over, beside members of the next one that have no node, nothing runs.
  if (gang.active() > 0 || (succeeded > 0 && pending == 0)) {
    if (running + succeeded >= min) return GangPhase::kRunning;
    if (gang.active() + succeeded + kept >= min) return GangPhase::kScheduled;
    if (gang.kept.satisfied) return GangPhase::kUnknown;
  }
  const bool enough = gang.rules.min_member >= 0 && gang.quorum().Enough();
  return enough ? GangPhase::kPreScheduling : GangPhase::kPending;
}

// It was told over the gRPC API, and is no PodGroup.
bool FromApi(const Gang& gang) {
  return gang.submitted || gang.objects.contains(GangDialect::kApi) ||
         absl::c_any_of(gang.members, [](const MemberSet& set) {
           return !set.empty() && (*set.begin())->facts.gang.dialect == GangDialect::kApi;
         });
}

// Its members have no scheduler: whoever announced them asks for them.
bool PlacedByCaller(const Gang& gang) {
  const MemberSet& pending = gang.in(MemberState::kPending);
  const auto asked = absl::c_find_if(pending, [](const Pod* pod) { return !pod->served; });
  return asked != pending.end() && (*asked)->facts.scheduler_name.empty();
}

// Members that are not at the barrier: "a-3, a-4, a-5 and 7 more".
std::string Absent(const Gang& gang) {
  constexpr size_t kMost = 3;
  const MemberSet& pending = gang.in(MemberState::kPending);
  std::string out;
  size_t told = 0;
  for (auto pod = pending.begin(); pod != pending.end() && told < kMost; ++pod, ++told) {
    absl::StrAppend(&out, told == 0 ? "" : ", ", (*pod)->facts.name);
  }
  if (pending.size() > told) absl::StrAppend(&out, " and ", pending.size() - told, " more");
  return out;
}

// The first of those that start together that lacks somebody at the barrier; the gang itself comes first.
std::string BarrierHint(const Gang& gang, const Group& together) {
  const auto lacks = [](const Gang* each) { return !each->quorum().Met() && each->count(MemberState::kPending) > 0; };
  if (lacks(&gang)) return absl::StrCat("have its members asked for that are not at the barrier: ", Absent(gang));
  const auto mate = absl::c_find_if(together, lacks);
  if (mate == together.end()) return "";
  return absl::StrCat("have the members of gang ", (*mate)->key,
                      " asked for that are not at the barrier: ", Absent(**mate));
}

}  // namespace

std::string HintFor(ReasonCode code) {
  switch (code) {
    case ReasonCode::kNotEnoughPods:
      return "create the missing pods, or lower the minimum";
    case ReasonCode::kUninitialised:
      return "correct the declaration";
    case ReasonCode::kUnknownGang:
      return "create the PodGroup";
    case ReasonCode::kGroupDisagrees:
      return "list the same gangs, itself included, on every gang of the group";
    case ReasonCode::kConflict:
      return "declare the gang in one place only";
    case ReasonCode::kPriorityMismatch:
      return "give all pods of the gang one priority";
    case ReasonCode::kTimedOut:
      return "delete the marked pods";
    case ReasonCode::kNoRoom:
      return "free or add capacity that its pods can use, or lower the minimum";
    case ReasonCode::kNoPlaceFound:
      return "wait: it is tried again by itself; free or add capacity, or raise gangs.planTries";
    case ReasonCode::kMinResources:
      return "free or add capacity, or lower minResources";
    case ReasonCode::kTooManyHolds:
      return "wait for other gangs to start, or raise holds.max";
    case ReasonCode::kQueueLimit:
      return "wait for other gangs of the queue to end, or raise what the reason names";
    case ReasonCode::kUnknownQueue:
      return "declare the queue, or name another one";
    case ReasonCode::kQueueRejected:
      return "name a queue that can take the gang, or change the gang or the queue as the reason says";
    case ReasonCode::kBackoff:
      return "wait: it is tried again by itself";
    case ReasonCode::kInvalidRequest:
      return "correct what the reason names in the pod";
    case ReasonCode::kNotServed:
      return "set the pod's schedulerName to one that Muster serves";
    default:
      return "";
  }
}

absl::string_view ToString(GangPhase phase) {
  switch (phase) {
    case GangPhase::kPending:
      return "Pending";
    case GangPhase::kPreScheduling:
      return "PreScheduling";
    case GangPhase::kScheduling:
      return "Scheduling";
    case GangPhase::kScheduled:
      return "Scheduled";
    case GangPhase::kRunning:
      return "Running";
    case GangPhase::kUnknown:
      return "Unknown";
    case GangPhase::kFinished:
      return "Finished";
    case GangPhase::kFailed:
      return "Failed";
  }
  return "";
}

namespace {

// As HintFor, in the words of who declared this gang.
std::string HintTo(const Gang& gang, ReasonCode code, const Eligibility& eligibility) {
  switch (code) {
    case ReasonCode::kNoRoom:
      if (!absl::StrContains(gang.reason.text, ObstaclePhrase(Obstacle::kStale))) break;
      return "have the nodes announced again: whoever announced them has said nothing since musterd started";
    case ReasonCode::kGroupDisagrees:
      return eligibility.GroupHint(gang);
    case ReasonCode::kBarrier:
      return BarrierHint(gang, eligibility.Unplaced(gang));
    case ReasonCode::kNotServed:
      if (!absl::c_any_of(eligibility.Unplaced(gang), [](const Gang* each) { return PlacedByCaller(*each); })) break;
      return "have its caller ask Permit for its members, each with a node (DecisionService)";
    case ReasonCode::kUnknownGang:
      if (FromApi(gang)) return "submit or create the gang";
      break;
    default:
      break;
  }
  return HintFor(code);
}

}  // namespace

GangView Reader::ViewGang(const Gang& gang, bool with_members, int64_t now_ms) const {
  GangView view;
  view.key = gang.key;
  view.name_space = gang.name_space;
  view.name = gang.name;
  if (gang.annotations.has_value()) view.source = std::string(ToString(gang.declared_as));
  for (const auto& [dialect, object] : gang.objects) {
    absl::StrAppend(&view.source, view.source.empty() ? "" : ", ", ToString(dialect));
    view.has_object = true;
    view.object_dialect = dialect;
    view.object_uid = object.uid;
  }
  const Plan* plan = r_.plans->Of(gang);
  view.rules = gang.rules;
  view.satisfied = gang.kept.satisfied;
  view.timed_out = gang.kept.timed_out;
  view.children = gang.quorum().Children();
  view.phase = PhaseOf(gang, plan);
  view.waiting = gang.count(MemberState::kWaiting);
  view.committed = gang.count(MemberState::kCommitted);
  view.bound = gang.count(MemberState::kBound) + gang.count(MemberState::kRunning);
  view.running = gang.count(MemberState::kRunning);
  view.succeeded = gang.count(MemberState::kSucceeded);
  view.failed = gang.count(MemberState::kFailed);
  view.priority = r_.eligibility->Priority(gang);
  view.requeues = gang.kept.requeues;
  view.created_ms = gang.created_ms;
  view.reason = r_.reasons->Named(gang, gang.reason);
  view.reason_since_ms = gang.reason_since_ms;
  view.wait_left_ms = gang.submitted ? 0 : r_.clock->LeftMs(gang, now_ms);  // it has its time to be confirmed (S-1)
  if (plan != nullptr) {
    view.planned = plan->size();
    view.held = plan->held;
    view.planned_ms = plan->created_ms;
    view.asked = static_cast<int32_t>(
        absl::c_count_if(plan->slots, [](const Slot& slot) { return slot.state != SlotState::kFree; }));
  }
  view.would_help = HintTo(gang, view.reason.code, *r_.eligibility);
  view.warnings = gang.warnings;
  if (std::string warning = r_.queues->tree().WarningOf(gang.rules.queue); !warning.empty()) {
    view.warnings.push_back(std::move(warning));
  }
  view.leaves = gang.leaves;
  view.to_come.assign(gang.leaves.size(), 0);
  for (size_t i = 0; plan != nullptr && plan->to_come > 0 && i < plan->slots.size(); ++i) {
    const Slot& slot = plan->slots[i];
    if (slot.to_come && static_cast<size_t>(slot.leaf) < view.to_come.size()) {
      ++view.to_come[static_cast<size_t>(slot.leaf)];
    }
  }
  MembersRead read;
  if (with_members) ViewMembers(gang, static_cast<size_t>(gang.children()), &read, &view.members);
  return view;
}

int64_t Reader::WaitsSince(const Gang& gang) const {
  int64_t since = kNever;
  for (const MemberState state : {MemberState::kPending, MemberState::kWaiting}) {
    for (const Pod* pod : gang.in(state)) {
      if (pod->facts.created_ms > 0) since = std::min(since, pod->facts.created_ms);
    }
  }
  return since;
}

bool Reader::ViewMembers(const Gang& gang, size_t limit, MembersRead* read, std::vector<MemberView>* out) const {
  for (; read->state < kMemberStates; ++read->state, read->begun = false) {
    const MemberSet& set = gang.members[read->state];
    auto member = set.begin();
    if (read->begun) {
      Pod last;
      last.facts.priority = read->priority;
      last.facts.created_ms = read->created_ms;
      last.facts.name = read->name;
      last.facts.uid = read->uid;
      member = set.upper_bound(&last);
    }
    for (; member != set.end(); ++member, --limit) {
      if (limit == 0) return false;
      const PodDescription& facts = (*member)->facts;
      *read = {read->state, true, facts.priority, facts.created_ms, facts.name, facts.uid};
      out->push_back(ViewMember(**member));
    }
  }
  return true;
}

// Why this member has no node yet: what concerns only it, else what its gang waits for. None: it has one.
Reason Reader::WhyMemberWaits(const Pod& pod) const {
  const bool pending = pod.state == MemberState::kPending;
  if (pod.gang == nullptr || (!pending && pod.state != MemberState::kWaiting)) return {};
  if (pending) {
    if (Reason own = r_.eligibility->PodReason(pod); !own.none()) return own;
    if (const absl::string_view words = OwnWords(pod); !words.empty()) {
      return {ReasonCode::kMemberUnschedulable, absl::StrCat("kube-scheduler found no node: ", words)};
    }
    const Plan* plan = r_.plans->Of(*pod.gang);
    if (const Slot* slot = r_.plans->SlotOf(pod); slot != nullptr) {
      return {ReasonCode::kPlanned, absl::StrCat("room is reserved on node ", r_.cluster->node(slot->node).facts.name)};
    }
    if (plan != nullptr && !r_.plans->HasPlaceFor(pod)) {
      return {ReasonCode::kSlotsTaken, "other members take the gang's minimum; this one comes after them"};
    }
  }
  if (pod.gang->reason.code != ReasonCode::kSatisfied) return r_.reasons->Named(*pod.gang, pod.gang->reason);
  // Its own gang has what it needs: another of its group has not.
  if (!pending) return r_.eligibility->BarrierReason(*pod.gang);
  // It is placed alone.
  if (Reason queue = r_.queues->Check(pod); !queue.none()) return queue;
  if (!pod.facts.our_gate) return {};
  return {ReasonCode::kQueued, "its gang has started; the API server is asked to take Muster's scheduling gate away"};
}

// Of a pod that is placed alone.
Reason Reader::WhyNoRoom(const Pod& pod) const {
  if (pod.state != MemberState::kPending || pod.cls == kNoClass) return {};
  if (!r_.sources->complete()) return r_.sources->Reading();
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    if (r_.cluster->FindObstacle(id, pod.cls) == Obstacle::kNone && r_.cluster->Room(id, pod.cls, 1) > 0) return {};
  }
  return {ReasonCode::kNoRoom, ExplainNoRoom(*r_.cluster, pod.cls)};
}

PodView Reader::ViewPod(const Pod& pod, int64_t now_ms) const {
  PodView view;
  view.name_space = pod.facts.name_space;
  view.pod = ViewMember(pod);
  view.ignored = pod.facts.gang.ignored;
  view.in_gang = pod.gang != nullptr;
  if (view.in_gang) {
    view.gang = ViewGang(*pod.gang, /*with_members=*/false, now_ms);
    if (view.pod.reason.none()) view.pod.reason = WhyNoRoom(pod);
  } else if (pod.state == MemberState::kPending) {
    view.pod.reason = r_.eligibility->PodReason(pod);
    if (view.pod.reason.none()) {
      view.pod.reason = {ReasonCode::kNotAGang,
                         "it is in no gang, so Muster holds it back from nothing but the room "
                         "that is promised to gangs"};
    }
  }
  return view;
}

const Pod* Reader::FindPodNamed(absl::string_view name_space, absl::string_view name, int32_t limit,
                                PodId* from) const {
  const PodId end = std::min(r_.gangs->pod_limit(), *from + limit);
  for (; *from < end; ++*from) {
    const Pod* pod = r_.gangs->PodAt(*from);
    if (pod != nullptr && pod->facts.name == name && pod->facts.name_space == name_space) return pod;
  }
  return nullptr;
}

MemberView Reader::ViewMember(const Pod& pod) const {
  MemberView member;
  member.uid = pod.facts.uid;
  member.name = pod.facts.name;
  member.state = pod.state;
  member.node = pod.facts.node_name;
  if (const Slot* slot = r_.plans->SlotOf(pod); member.node.empty() && slot != nullptr) {
    member.node = r_.cluster->node(slot->node).facts.name;
  }
  const bool held = pod.state == MemberState::kWaiting || pod.state == MemberState::kCommitted;
  const NodeId going_to = r_.barrier->Of(pod).node;
  if (member.node.empty() && held && going_to != kNoNode) member.node = r_.cluster->node(going_to).facts.name;
  member.priority = pod.facts.priority;
  member.subgroup = pod.facts.gang.subgroup;
  member.reason = WhyMemberWaits(pod);
  member.binding = r_.bindings->Of(pod);
  return member;
}

NodeView Reader::ViewNode(NodeId id) const {
  const Node& node = r_.cluster->node(id);
  NodeView view;
  view.name = node.facts.name;
  view.present = node.present;
  view.unschedulable = node.facts.unschedulable;
  const auto write = [this](const auto& amounts, AmountsView* to) {
    for (const auto& [resource, amount] : amounts.entries()) {
      if (amount != 0) to->Add(r_.cluster->names().Name(resource), Nearest(amount));
    }
  };
  write(node.allocatable, &view.allocatable);
  write(node.used, &view.used);
  if (node.kept_pods == 0) {
    write(node.reserved, &view.reserved);
  } else {
    ResourceSum promised = node.reserved;
    for (const auto& [resource, amount] : node.kept.entries()) promised.Add(resource, amount);
    write(promised, &view.reserved);
  }
  write(node.free, &view.free);
  if (node.heard != Heard::kNow) view.stale_since_ms = r_.sources->stale_since_ms();
  view.shut = node.heard == Heard::kTooLongAgo;
  view.refused = r_.refused->WhyNode(view.name);
  return view;
}

std::optional<NodeView> Reader::ViewNode(const std::string& name) const {
  const NodeId id = r_.cluster->FindNode(name);
  if (id != kNoNode && r_.cluster->node(id).present) return ViewNode(id);
  NodeView view;
  view.refused = r_.refused->WhyNode(name);
  if (view.refused.empty()) return std::nullopt;
  if (id != kNoNode) return ViewNode(id);  // only its pods are known
  view.name = name;
  return view;
}

}  // namespace muster
