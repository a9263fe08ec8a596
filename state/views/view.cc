// Builds the views of gangs, pods, nodes and submissions, and explains why gangs and members wait (SPEC G-10, S-5).
#include <algorithm>
#include <array>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/binding/activations.h"
#include "state/binding/wait_clock.h"
#include "state/gangs/sources.h"
#include "state/planner/explain_no_room.h"
#include "state/reservations/submissions.h"
#include "state/views/reader.h"
#include "state/views/wait_reasons.h"

namespace muster {
namespace {

GangPhase PhaseOf(const Gang& gang, const Plan* plan) {
  const int32_t min = std::max(0, gang.rules.min_member);
  const int32_t succeeded = gang.count(MemberState::kSucceeded);
  const int32_t running = gang.count(MemberState::kRunning);
  const int32_t pending = gang.count(MemberState::kPending) + gang.count(MemberState::kWaiting);
  const bool ended = gang.active() == 0 && pending == 0;
  if (ended && succeeded > 0 && succeeded >= min) return GangPhase::kFinished;
  if (ended && gang.count(MemberState::kFailed) > 0) return GangPhase::kFailed;
  // Future members with a future slot count as placed (P-7).
  const bool started = plan != nullptr && plan->committed && plan->bound == plan->present();
  const int32_t future_slots = started ? plan->future_slots : 0;
  if ((plan != nullptr && !started) || gang.count(MemberState::kWaiting) > 0 ||
      gang.count(MemberState::kCommitted) > 0) {
    return GangPhase::kScheduling;
  }
  // A finished run whose next members are pending is not running.
  if (gang.active() > 0 || (succeeded > 0 && pending == 0)) {
    if (running + succeeded >= min) return GangPhase::kRunning;
    if (gang.active() + succeeded + future_slots >= min) return GangPhase::kScheduled;
    if (gang.durable.satisfied) return GangPhase::kUnknown;
  }
  const bool enough = gang.rules.min_member >= 0 && gang.quorum().HasEnoughChildren();
  return enough ? GangPhase::kPreScheduling : GangPhase::kPending;
}

// Whether the gang was declared over the gRPC API and not by a PodGroup.
bool FromApi(const Gang& gang) {
  return gang.submitted || gang.objects.contains(GangDialect::kApi) ||
         absl::c_any_of(gang.members, [](const MemberSet& set) {
           return !set.empty() && (*set.begin())->facts.gang.dialect == GangDialect::kApi;
         });
}

// Whether the gang's pending members name no scheduler, so that the caller which announced them asks for them.
bool PlacedByCaller(const Gang* gang) {
  const MemberSet& pending = gang->in(MemberState::kPending);
  const auto asked = absl::c_find_if(pending, [](const Pod* pod) { return !pod->served; });
  return asked != pending.end() && (*asked)->facts.scheduler_name.empty();
}

// Members that are not at the barrier: "a-3, a-4, a-5 and 7 more".
std::string ListMissingMembers(const Gang& gang) {
  constexpr size_t kMaxListed = 3;
  const MemberSet& pending = gang.in(MemberState::kPending);
  std::string out;
  size_t listed = 0;
  for (auto pod = pending.begin(); pod != pending.end() && listed < kMaxListed; ++pod, ++listed) {
    absl::StrAppend(&out, listed == 0 ? "" : ", ", (*pod)->facts.name);
  }
  if (pending.size() > listed) absl::StrAppend(&out, " and ", pending.size() - listed, " more");
  return out;
}

// The hint for a gang at the barrier: names the missing members of the gang, or else of the first gang of its group
// with missing members. Empty: none is missing.
std::string BarrierHint(const Gang& gang, const Group& together) {
  const auto lacks = [](const Gang* each) { return !each->quorum().Met() && each->count(MemberState::kPending) > 0; };
  if (lacks(&gang)) return absl::StrCat("schedule its members that are not at the barrier: ", ListMissingMembers(gang));
  const auto other = absl::c_find_if(together, lacks);
  if (other == together.end()) return "";
  return absl::StrCat("schedule the members of gang ", (*other)->key,
                      " that are not at the barrier: ", ListMissingMembers(**other));
}

// HintFor, adapted to how this gang was declared.
std::string HintForGang(const Gang& gang, ReasonCode code, const Eligibility& eligibility, const Backlog& backlog) {
  if (code == ReasonCode::kNoRoom) return HintFor(backlog.details(eligibility.LeaderOf(gang).id).obstacle);
  if (code == ReasonCode::kGroupDisagrees) return eligibility.GroupHint(gang);
  if (code == ReasonCode::kBarrier) return BarrierHint(gang, eligibility.Unplaced(gang));
  if (code == ReasonCode::kNotServed && absl::c_any_of(eligibility.Unplaced(gang), PlacedByCaller)) {
    return "call Permit for each member, with a node (DecisionService)";
  }
  if (code == ReasonCode::kBackoff && absl::c_any_of(eligibility.Unplaced(gang), PlacedByCaller)) {
    return "try its members again, from PreFilter on, when the back-off has ended";
  }
  if (code == ReasonCode::kUnknownGang && FromApi(gang)) return "submit or create the gang";
  return HintFor(code);
}

}  // namespace

std::string HintFor(ReasonCode code) {
  if (code == ReasonCode::kNoRoom) return HintFor(MainObstacle());
  static constexpr std::pair<ReasonCode, absl::string_view> kHints[] = {
      {ReasonCode::kNotEnoughPods, "create the missing pods, or lower the minimum"},
      {ReasonCode::kUninitialised, "correct the declaration"},
      {ReasonCode::kUnknownGang, "create the PodGroup"},
      {ReasonCode::kGroupDisagrees, "list the same gangs, itself included, on every gang of the group"},
      {ReasonCode::kConflict, "declare the gang in one place only"},
      {ReasonCode::kPriorityMismatch, "give all pods of the gang one priority"},
      {ReasonCode::kTimedOut, "delete the marked pods"},
      {ReasonCode::kNoPlaceFound, "wait: Muster tries again; free or add capacity, or raise gangs.planTries"},
      {ReasonCode::kMinResources, "free or add capacity, or lower minResources"},
      {ReasonCode::kTooManyHolds, "wait for other gangs to start, or raise holds.max"},
      {ReasonCode::kQueueLimit, "wait for other gangs of the queue to end, or raise what the reason names"},
      {ReasonCode::kUnknownQueue, "declare the queue, or name another one"},
      {ReasonCode::kQueueRejected, "name a queue that accepts the gang, or change what the reason names"},
      {ReasonCode::kBackoff, "wait: Muster tries again"},
      {ReasonCode::kInvalidRequest, "correct what the reason names in the pod"},
      {ReasonCode::kNotServed,
       "set the pod's schedulerName to one in kubernetes.schedulerNames, or add its scheduler there if that calls "
       "Muster's extender"},
  };
  const auto* hint = absl::c_find_if(kHints, [code](const auto& each) { return each.first == code; });
  return hint == std::end(kHints) ? "" : std::string(hint->second);
}

absl::string_view ToString(GangPhase phase) {
  static constexpr std::array<absl::string_view, kGangPhases> kNames = {
      "Pending", "PreScheduling", "Scheduling", "Scheduled", "Running", "Unknown", "Finished", "Failed"};
  return kNames.at(static_cast<size_t>(phase));
}

GangView GangReader::View(const Gang& gang, bool with_members) const {
  GangView view;
  view.key = gang.key;
  view.name_space = gang.name_space;
  view.name = gang.name;
  if (gang.annotations.has_value()) view.sources.push_back(gang.declared_as);
  for (const auto& [dialect, object] : gang.objects) {
    view.sources.push_back(dialect);
    view.has_object = true;
    view.object_dialect = dialect;
    view.object_uid = object.uid;
  }
  const Plan* plan = r_.plans->Of(gang);
  view.rules = gang.rules;
  view.satisfied = gang.durable.satisfied;
  view.timed_out = gang.durable.timed_out;
  view.children = gang.quorum().Children();
  view.phase = PhaseOf(gang, plan);
  view.waiting = gang.count(MemberState::kWaiting);
  view.committed = gang.count(MemberState::kCommitted);
  view.bound = gang.count(MemberState::kBound) + gang.count(MemberState::kRunning);
  view.running = gang.count(MemberState::kRunning);
  view.succeeded = gang.count(MemberState::kSucceeded);
  view.failed = gang.count(MemberState::kFailed);
  view.priority = r_.eligibility->Priority(gang);
  view.requeues = gang.durable.requeues;
  view.created_ms = gang.created_ms;
  view.reason = r_.reasons->WithDetails(gang, gang.reason);
  view.reason_since_ms = gang.reason_since_ms;
  // A submission has a TTL instead (S-1).
  view.wait_left_ms = gang.submitted ? 0 : r_.clock->RemainingMs(gang, *now_ms_);
  if (view.reason.code == ReasonCode::kBackoff) {
    for (const Gang* each : r_.eligibility->Unplaced(gang))
      view.backoff_until_ms = std::max(view.backoff_until_ms, each->retry_at_ms);
  }
  if (plan != nullptr) {
    view.planned = plan->size();
    view.held = plan->held;
    view.planned_ms = plan->created_ms;
    view.asked = static_cast<int32_t>(
        absl::c_count_if(plan->slots, [](const Slot& slot) { return slot.state != SlotState::kFree; }));
  }
  view.would_help = HintForGang(gang, view.reason.code, *r_.eligibility, *r_.backlog);
  view.warnings = gang.warnings;
  if (std::string warning = r_.queues->WarningOf(gang); !warning.empty()) {
    view.warnings.push_back(std::move(warning));
  }
  view.leaves = gang.leaves;
  view.future_slots_by_leaf.assign(gang.leaves.size(), 0);
  for (size_t i = 0; plan != nullptr && plan->future_slots > 0 && i < plan->slots.size(); ++i) {
    const Slot& slot = plan->slots[i];
    if (slot.is_future && static_cast<size_t>(slot.leaf) < view.future_slots_by_leaf.size()) {
      ++view.future_slots_by_leaf[static_cast<size_t>(slot.leaf)];
    }
  }
  MembersCursor read;
  if (with_members) ViewMembers(gang, static_cast<size_t>(gang.children()), &read, &view.members);
  return view;
}

int64_t GangReader::WaitsSince(const Gang& gang) {
  int64_t since = kNever;
  for (const MemberState state : {MemberState::kPending, MemberState::kWaiting}) {
    for (const Pod* pod : gang.in(state)) {
      if (pod->facts.created_ms > 0) since = std::min(since, pod->facts.created_ms);
    }
  }
  return since;
}

bool GangReader::ViewMembers(const Gang& gang, size_t limit, MembersCursor* read, std::vector<MemberView>* out) const {
  for (; read->state < kMemberStates; ++read->state, read->last.reset()) {
    const MemberSet& set = gang.members[read->state];
    auto member = read->last.has_value() ? set.upper_bound(&*read->last) : set.begin();
    for (; member != set.end(); ++member, --limit) {
      if (limit == 0) {
        if (member != set.begin()) (read->last = **std::prev(member))->gang = nullptr;
        return false;
      }
      out->push_back(ViewMember(**member));
    }
  }
  return true;
}

// Why this member has no node yet: its own reason, or else the reason of its gang. None: it has a node.
Reason GangReader::WhyMemberWaits(const Pod& pod) const {
  const bool pending = pod.state == MemberState::kPending;
  if (pod.gang == nullptr || (!pending && pod.state != MemberState::kWaiting)) return {};
  if (pending) {
    if (Reason own = r_.eligibility->PodReason(pod); !own.none()) return own;
    if (const absl::string_view message = SchedulerMessage(pod); !message.empty()) {
      return {ReasonCode::kMemberUnschedulable, absl::StrCat("kube-scheduler found no node: ", message)};
    }
    const Plan* plan = r_.plans->Of(*pod.gang);
    if (const Slot* slot = r_.plans->SlotOf(pod); slot != nullptr) {
      return {ReasonCode::kPlanned, absl::StrCat("room is reserved on node ", r_.cluster->node(slot->node).facts.name)};
    }
    if (plan != nullptr && !r_.plans->HasSlotFor(pod)) {
      return {ReasonCode::kSlotsTaken, "other members fill the gang's minimum; this pod is scheduled after them"};
    }
  }
  if (pod.gang->reason.code != ReasonCode::kSatisfied) return r_.reasons->WithDetails(*pod.gang, pod.gang->reason);
  // Its own gang has its quorum; another gang of the group has not.
  if (!pending) return r_.eligibility->BarrierReason(*pod.gang);
  // The pod is scheduled individually.
  if (Reason queue = r_.queues->Check(pod); !queue.none()) return queue;
  if (!pod.facts.our_gate) return {};
  return {ReasonCode::kQueued, "its gang has started; the API server is asked to remove Muster's scheduling gate"};
}

MemberView GangReader::ViewMember(const Pod& pod) const {
  MemberView member;
  member.uid = pod.facts.uid;
  member.name = pod.facts.name;
  member.state = pod.state;
  member.node = pod.facts.node_name;
  if (pod.on_node() && r_.sources->complete()) {
    const NodeId at = r_.cluster->FindNode(member.node);
    member.node_gone = at == kNoNode || !r_.cluster->node(at).present;
  }
  const bool held = pod.state == MemberState::kWaiting || pod.state == MemberState::kCommitted;
  NodeId target = held ? r_.pod_lifecycle->Of(pod).node : kNoNode;
  if (const Slot* slot = r_.plans->SlotOf(pod); slot != nullptr) target = slot->node;
  if (member.node.empty() && target != kNoNode) member.node = r_.cluster->node(target).facts.name;
  member.priority = pod.facts.priority;
  member.subgroup = pod.facts.gang.subgroup;
  member.reason = WhyMemberWaits(pod);
  member.binding = r_.pod_lifecycle->BindingOf(pod);
  return member;
}

std::optional<WaitingMembers> GangReader::ViewWaitingMembers(const Gang& gang) const {
  if (!gang.reason.none() && gang.reason.code != ReasonCode::kSatisfied) return std::nullopt;
  const MemberSet& pending = gang.in(MemberState::kPending);
  const MemberSet& waiting = gang.in(MemberState::kWaiting);
  if (pending.empty() && waiting.empty()) return std::nullopt;
  const Pod& first = pending.empty() ? **waiting.begin() : **pending.begin();
  Reason reason = WhyMemberWaits(first);
  if (reason.none()) reason = r_.reasons->WhyNoNode(first);
  return WaitingMembers{static_cast<int32_t>(pending.size() + waiting.size()), first.facts.name, std::move(reason)};
}

PodView GangReader::ViewPod(const Pod& pod) const {
  PodView view;
  view.name_space = pod.facts.name_space;
  view.pod = ViewMember(pod);
  view.ignored = pod.facts.gang.ignored;
  view.in_gang = pod.gang != nullptr;
  if (view.in_gang) {
    view.gang = View(*pod.gang, /*with_members=*/false);
    if (view.pod.reason.none()) {
      MainObstacle obstacle;
      view.pod.reason = r_.reasons->WhyNoNode(pod, &obstacle);
      if (view.pod.reason.code == ReasonCode::kNoRoom) view.would_help = HintFor(obstacle, /*below_minimum=*/false);
    }
  } else if (pod.state == MemberState::kPending) {
    view.pod.reason = r_.eligibility->PodReason(pod);
    if (view.pod.reason.none()) {
      view.pod.reason = {ReasonCode::kNotAGang,
                         "it is in no gang; Muster only keeps it off capacity that is promised to gangs"};
    }
  }
  return view;
}

const Pod* GangReader::FindPodNamed(absl::string_view name_space, absl::string_view name, int32_t limit,
                                    PodId* from) const {
  const PodId end = std::min(r_.gangs->pod_limit(), *from + limit);
  for (; *from < end; ++*from) {
    const Pod* pod = r_.gangs->PodAt(*from);
    if (pod != nullptr && pod->facts.name == name && pod->facts.name_space == name_space) return pod;
  }
  return nullptr;
}

const Node* FactReader::FindNode(absl::string_view name) const {
  const NodeId id = cluster_->FindNode(name);
  return id != kNoNode && cluster_->node(id).present ? &cluster_->node(id) : nullptr;
}

NodeView FactReader::ViewNode(NodeId id) const {
  const Node& node = cluster_->node(id);
  const ResourceNames& names = cluster_->names();
  NodeView view;
  view.name = node.facts.name;
  view.present = node.present;
  view.unschedulable = node.facts.unschedulable;
  view.allocatable = names.ToList<NodeView::NamedAmounts>(node.allocatable);
  view.used = names.ToList<NodeView::NamedAmounts>(node.used);
  ResourceSum reserved = node.reserved;
  ResourceSum awaited;
  for (const auto& [id, amount] : node.future_reserved.entries()) {
    const WideSum unused = WideSum{node.allocatable.Get(id)} - node.used.Get(id) - node.reserved.Get(id);
    const WideSum now = std::min(amount, std::max<WideSum>(unused, 0));
    reserved.Add(id, now);
    awaited.Set(id, amount - now);
  }
  ResourceSum free = awaited;
  free.AddTimes(node.free, 1);
  view.reserved = names.ToList<NodeView::NamedAmounts>(reserved);
  view.awaited = names.ToList<NodeView::NamedAmounts>(awaited);
  view.free = names.ToList<NodeView::NamedAmounts>(free);
  if (node.freshness != Freshness::kCurrent) view.stale_since_ms = sources_->stale_since_ms();
  view.expired = node.freshness == Freshness::kExpired;
  view.refused = refused_->NodeRefusalReason(view.name);
  return view;
}

std::optional<NodeView> FactReader::ViewNode(const std::string& name) const {
  const NodeId id = cluster_->FindNode(name);
  std::string refused = refused_->NodeRefusalReason(name);
  const bool present = id != kNoNode && cluster_->node(id).present;
  if (!present && refused.empty()) return std::nullopt;
  if (id != kNoNode) return ViewNode(id);
  NodeView view;
  view.name = name;
  view.refused = std::move(refused);
  return view;
}

SubmissionReply SubmissionReader::View(const Gang& gang) const {
  const Submission& submission = *r_.submissions->Of(gang);
  const Plan* plan = r_.plans->Of(gang);
  SubmissionReply reply;
  reply.gang = gang.key;
  reply.expires_ms = submission.expires_ms;
  if (plan == nullptr) {
    reply.reason = r_.reasons->WithDetails(gang, r_.reasons->Of(gang, *now_ms_));
    return reply;
  }
  reply.state = SubmissionReply::State::kPlanned;
  reply.plan = plan->id;
  for (const Slot& slot : plan->slots) {
    reply.places.push_back({slot.pod->facts.uid, slot.pod->facts.name, r_.cluster->node(slot.node).facts.name});
  }
  reply.reason = {ReasonCode::kPlanned, "room is reserved; confirm the plan"};
  const auto more = absl::c_count_if(gang.in(MemberState::kPending), [this](const Pod* pod) {
    return pod->submitted && r_.plans->SlotIndex(*pod) < 0;
  });
  if (more > 0)
    absl::StrAppend(&reply.reason.text, "; ", more, " more, beyond the minimum, are scheduled with Filter and Permit");
  if (!submission.confirmed) return reply;
  for (const Gang* other : r_.plans->PeersOf(gang)) {
    if (const Submission* its = r_.submissions->Of(*other); its != nullptr && its->confirmed) continue;
    reply.reason.text = absl::StrCat("confirmed; gang ", other->key, " of its group is not confirmed yet");
    break;
  }
  return reply;
}

std::optional<SubmissionReply> SubmissionReader::View(const std::string& id) const {
  if (const SubmissionReply* ended = r_.submissions->FindFinished(id); ended != nullptr) return *ended;
  const Gang* gang = r_.submissions->Find(id);
  if (gang == nullptr) return std::nullopt;
  return View(*gang);
}

}  // namespace muster
