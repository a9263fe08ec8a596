// When a gang may be planned, why it waits, and what follows from a change (SPEC G-1, G-5, G-8 to G-11).
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/machine/machine.h"

namespace muster {

bool Machine::Serves(const Pod& pod) const {
  return pod.submitted || absl::c_linear_search(settings_.scheduler_names, pod.facts.scheduler_name);
}

Reason Machine::PodReason(const Pod& pod) const {
  if (!pod.facts.gang.problem.none()) return pod.facts.gang.problem;
  if (pod.stranger) {
    return {ReasonCode::kConflict,
            absl::StrCat("gang ", pod.gang->key, " was submitted as a whole, without pod ", pod.facts.name)};
  }
  if (pod.cls == kNoClass) {
    return {ReasonCode::kInvalidRequest, absl::StrCat("pod ", pod.facts.name, ": ", pod.facts.invalid)};
  }
  if (pod.gang == nullptr || !OnePriority(*pod.gang)) return {};
  const Pod& first = FirstMember(pod.gang);
  if (first.facts.priority == pod.facts.priority) return {};
  return {ReasonCode::kPriorityMismatch,
          absl::StrCat("pod ", pod.facts.name, " has priority ", pod.facts.priority, ", its gang's first pod ",
                       first.facts.name, " has ", first.facts.priority, "; all pods of a gang must have one")};
}

// D-11.
bool Machine::OnePriority(const Gang& gang) const { return settings_.one_priority || gang.one_priority; }

// REQUIRES: the gang has members.
const Pod& Machine::FirstMember(Gang* gang) {
  if (gang->first != nullptr) return *gang->first;
  for (const MemberSet& set : gang->members) {
    for (Pod* pod : set) {
      if (gang->first == nullptr || CreatedBefore(*pod, *gang->first)) gang->first = pod;
    }
  }
  MUSTER_CHECK(gang->first != nullptr);
  return *gang->first;
}

// What the pod's own facts say about planning it; see Plannable.
void Machine::JudgePod(Pod* pod) const {
  pod->served = Serves(*pod);
  pod->able = pod->facts.gang.problem.none() && !pod->stranger && pod->cls != kNoClass;
}

bool Machine::Plannable(const Pod& pod) const {
  return pod.state == MemberState::kPending && !pod.facts.other_gates && pod.served && pod.able &&
         (pod.gang == nullptr || !OnePriority(*pod.gang) || PodReason(pod).none());
}

// How many pending members Plannable is true of. One priority for all is a rule about each other: counted anew.
int32_t Machine::PlannableMembers(const Gang& gang) const {
  if (!OnePriority(gang)) return gang.plannable;
  return static_cast<int32_t>(absl::c_count_if(gang.members[static_cast<size_t>(MemberState::kPending)],
                                               [this](const Pod* pod) { return Plannable(*pod); }));
}

int32_t Machine::CountedChildren(const Gang& gang) const {
  int32_t count = gang.active() + gang.count(MemberState::kWaiting) + gang.count(MemberState::kPending) - gang.gated;
  if (gang.rules.match_policy == MatchPolicy::kWaitingRunningSucceed) count += gang.count(MemberState::kSucceeded);
  return count;
}

int32_t Machine::TowardsMinimum(const Gang& gang) const {
  const int32_t waiting = gang.count(MemberState::kWaiting);
  switch (gang.rules.match_policy) {
    case MatchPolicy::kOnceSatisfied:
    case MatchPolicy::kOnlyWaiting:
      return waiting;
    case MatchPolicy::kWaitingAndRunning:
      return waiting + gang.active();
    case MatchPolicy::kWaitingRunningSucceed:
      return waiting + gang.active() + gang.count(MemberState::kSucceeded);
  }
  return waiting;
}

int32_t Machine::Missing(const Gang& gang) const {
  int32_t have = gang.active();
  if (gang.submission != nullptr) {  // who only names a submitted gang takes nobody's place in it
    for (const MemberState state : {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning}) {
      const MemberSet& set = gang.members[static_cast<size_t>(state)];
      have -= static_cast<int32_t>(std::count_if(set.begin(), set.end(), [](const Pod* pod) { return pod->stranger; }));
    }
  }
  if (gang.rules.match_policy == MatchPolicy::kWaitingRunningSucceed) have += gang.count(MemberState::kSucceeded);
  // only-waiting counts nobody who has started, except to finish a start that was interrupted (K-13).
  if (gang.rules.match_policy == MatchPolicy::kOnlyWaiting && gang.satisfied) have = 0;
  return std::max(0, gang.rules.min_member - have);
}

bool Machine::PassesOneByOne(const Gang& gang) const {
  if (gang.rules.min_member < 0 || gang.timed_out || gang.evicting || gang.objects.size() > 1) return false;
  if (gang.satisfied && gang.rules.match_policy == MatchPolicy::kOnceSatisfied) return true;
  if (!gang.rules.group.empty() && !GroupReason(gang).none()) return false;
  return Missing(gang) == 0;
}

int32_t Machine::GangPriority(const Gang& gang) const {
  if (gang.rules.priority.has_value()) return *gang.rules.priority;
  bool any = false;
  int32_t highest = 0;
  for (const MemberSet& set : gang.members) {
    if (set.empty()) continue;
    const int32_t priority = (*set.begin())->facts.priority;
    highest = any ? std::max(highest, priority) : priority;
    any = true;
  }
  return highest;
}

QueueKey Machine::KeyOf(const Gang& gang) const {
  QueueKey key{!gang.satisfied && gang.active() > 0, GangPriority(gang), gang.requeues, gang.created_ms, gang.key};
  if (gang.rules.group.empty()) return key;
  // The group is one item: its highest priority, its most requeues, its earliest creation.
  for (const Gang* mate : Unplaced(gang)) {
    key.half_bound = key.half_bound || (!mate->satisfied && mate->active() > 0);
    key.priority = std::max(key.priority, GangPriority(*mate));
    key.requeues = std::max(key.requeues, mate->requeues);
    key.created_ms = std::min(key.created_ms, mate->created_ms);
  }
  return key;
}

Reason Machine::ChildrenReason(const Gang& gang) const {
  const int32_t children = CountedChildren(gang);
  if (children >= gang.rules.min_member) return {};
  std::string text = absl::StrCat(children, " of ", gang.rules.min_member, " pods exist");
  if (gang.gated > 0) absl::StrAppend(&text, " (", gang.gated, " more held by another scheduling gate)");
  return {ReasonCode::kNotEnoughPods, std::move(text)};
}

Reason Machine::StructureReason(const Gang& gang) const {
  if (gang.objects.size() > 1) {
    return {ReasonCode::kConflict,
            absl::StrCat("declared twice: by ", ToString(gang.objects.begin()->first), " and by ",
                         ToString(gang.objects.rbegin()->first), "; delete one of them")};
  }
  if (gang.rules.min_member < 0) {
    if (!gang.unreadable.empty()) return {ReasonCode::kUninitialised, gang.unreadable};
    const MemberSet& pending = gang.members[static_cast<size_t>(MemberState::kPending)];
    if (gang.objects.empty() && !pending.empty() && !(*pending.begin())->facts.gang.problem.none()) {
      return (*pending.begin())->facts.gang.problem;  // the pods' own words cannot be used
    }
    if (!gang.objects.empty() && !gang.objects.begin()->second.declaration.unreadable_minimum.empty()) {
      return {ReasonCode::kUninitialised,
              absl::StrCat("PodGroup: ", gang.objects.begin()->second.declaration.unreadable_minimum)};
    }
    if (gang.objects.empty() && gang.refers_to_object) {
      return {ReasonCode::kUnknownGang, absl::StrCat("PodGroup ", gang.key, " does not exist yet")};
    }
    return {
        ReasonCode::kUninitialised,
        "no minimum is declared: set gang.scheduling.koordinator.sh/min-available or the PodGroup's spec.minMember"};
  }
  if (gang.timed_out && !gang.rules.group.empty()) {
    return {ReasonCode::kTimedOut,
            "the wait time of its gang group ran out before the group could start; delete its pods to free it"};
  }
  if (gang.timed_out) {
    return {ReasonCode::kTimedOut, absl::StrCat("the wait time of ", gang.rules.wait_time_ms / 1000,
                                                " s ran out before the gang could start; delete its pods to free it")};
  }
  if (gang.evicting) return {ReasonCode::kEvicted, "its members are being evicted so that it can start anew"};
  return {};
}

Reason Machine::GateReason(const Gang& gang) const {
  if (Reason structure = StructureReason(gang); !structure.none()) return structure;
  if (gang.satisfied && gang.rules.match_policy == MatchPolicy::kOnceSatisfied) return {};
  if (Reason children = ChildrenReason(gang); !children.none()) return children;
  if (!gang.rules.group.empty()) {
    if (Reason group = GroupReason(gang); !group.none()) return group;
    if (Reason mates = MatesReason(gang); !mates.none()) return mates;
  }
  if (gang.retry_at_ms > now_ms_) {
    std::string text = absl::StrCat("put back ", gang.requeues, gang.requeues == 1 ? " time" : " times",
                                    ", waiting before the next try");
    if (!gang.root_cause.empty()) absl::StrAppend(&text, "; ", gang.root_cause);
    return {ReasonCode::kBackoff, std::move(text)};
  }
  return {};
}

// What G-1 does not ask, but a plan needs: enough members that Muster itself may place, in every gang of the group.
Reason Machine::PlanReason(const Gang& gang) const {
  if (Reason gate = GateReason(gang); !gate.none()) return gate;
  if (Reason members = MembersReason(gang); !members.none() || gang.rules.group.empty()) return members;
  for (const Gang* mate : Unplaced(gang)) {
    Reason members = MembersReason(*mate);
    if (members.none() && mate->retry_at_ms > now_ms_) members = {ReasonCode::kBackoff, "waiting before the next try"};
    if (members.none()) continue;
    members.text = absl::StrCat("gang ", mate->key, " of its group: ", members.text);
    return members;
  }
  return {};
}

Reason Machine::MembersReason(const Gang& gang) const {
  const int32_t missing = PassesOneByOne(gang) ? 0 : Missing(gang);
  const int32_t plannable = gang.count(MemberState::kWaiting) + PlannableMembers(gang);
  if (plannable >= missing) return {};
  Reason culprit;
  for (const Pod* pod : gang.members[static_cast<size_t>(MemberState::kPending)]) {
    if (Plannable(*pod)) continue;
    culprit = PodReason(*pod);
    if (culprit.none() && !pod->served) {
      culprit = {ReasonCode::kNotServed, absl::StrCat("pod ", pod->facts.name, " is placed by scheduler \"",
                                                      pod->facts.scheduler_name, "\", which asks pod by pod")};
    }
    if (!culprit.none()) break;
  }
  std::string text = absl::StrCat(plannable, " of ", missing, " missing members can be planned");
  if (!culprit.none()) absl::StrAppend(&text, "; ", culprit.text);
  return {culprit.none() ? ReasonCode::kNotEnoughPods : culprit.code, std::move(text)};
}

Reason Machine::WaitReason(const Gang& gang) const {
  if (const Plan* plan = gang.plan.get(); plan != nullptr) {
    const size_t slots = plan->slots.size();
    if (plan->committed) {
      return {ReasonCode::kBinding, absl::StrCat("permitted: ", plan->bound, " of ", slots, " members are bound")};
    }
    if (plan->held > 0) {
      std::string text = absl::StrCat(plan->held, " of ", slots, " members are at the barrier");
      if (!gang.root_cause.empty()) absl::StrAppend(&text, "; ", gang.root_cause);
      return {ReasonCode::kBarrier, std::move(text)};
    }
    std::string text =
        absl::StrCat("room is reserved for ", slots, " members, ",
                     gang.submission == nullptr ? "which are being called" : "until the plan is confirmed");
    if (!gang.root_cause.empty()) absl::StrAppend(&text, "; ", gang.root_cause);
    return {ReasonCode::kPlanned, std::move(text)};
  }
  if (Reason gate = GateReason(gang); !gate.none()) return gate;
  if (PassesOneByOne(gang)) {
    if (gang.rules.min_member == 0) return {};
    if (Missing(gang) > 0) {
      return {ReasonCode::kSatisfied, absl::StrCat("the minimum was placed once; ", gang.active(), " of ",
                                                   gang.rules.min_member, " members have a node now")};
    }
    return {ReasonCode::kSatisfied, "the minimum is placed"};
  }
  if (gang.count(MemberState::kWaiting) > 0) {
    return BarrierReason(gang);
  }
  if (Reason plan = PlanReason(gang); !plan.none()) {
    // Of a gang that its scheduler places pod by pod, what its members met last says more.
    if (plan.code == ReasonCode::kNotServed && !gang.root_cause.empty()) {
      return {ReasonCode::kMemberUnschedulable, gang.root_cause};
    }
    return plan;
  }
  if (const Reason& blocked = LeaderOf(gang).blocked; !blocked.none()) return blocked;
  if (!facts_read_) return {ReasonCode::kStarting, "Muster is still reading the cluster"};
  return {ReasonCode::kQueued, "about to be planned"};
}

// D-12: nobody is left who would know the gang.
void Machine::Forget(Gang* gang) {
  // A start under repair keeps its places for members that come again (G-13); nobody will.
  if (gang->plan != nullptr) WithdrawPlan(gang, ReasonCode::kGone, "its last member is gone");
  MUSTER_CHECK(gang->plan == nullptr);
  if (gang->submission != nullptr) {
    SubmissionReply reply;
    reply.state = SubmissionReply::State::kAbandoned;
    reply.reason = {ReasonCode::kGone, "its pods were removed"};
    FinishSubmission(gang, std::move(reply));
  }
  LeaveQueue(gang);
  if (gang->timer_ms != kNever) gang_timers_.erase({gang->timer_ms, gang});
  if (gang->touched) Untouch(gang);
  MarkGang(gang);
  if (gang->recorded) out_->records.push_back({absl::StrCat("gang/", gang->key), ""});
  RegisterGroup(gang, {});
  TouchNaming(gang->key);
  gangs_.erase(gang->key);
}

void Machine::Settle(Gang* gang) {
  SettleMarks(gang);
  if (gang->children() == 0 && gang->objects.empty()) {
    Forget(gang);
    return;
  }
  SettleQueue(gang);
  SettleReason(gang);
  SettleTimer(gang);
  WriteRecord(gang);
  MarkGang(gang);
  TellGroup(gang);
  if (PassesOneByOne(*gang)) CallExtras(gang);
}

void Machine::SettleMarks(Gang* gang) {
  // Until every fact is read, members that carry a mark or a node may still be to come.
  if (gang->timed_out && facts_read_) {
    const bool marked = absl::c_any_of(gang->members, [](const MemberSet& set) {
      return absl::c_any_of(set, [](const Pod* pod) { return pod->facts.timed_out_mark; });
    });
    if (!marked) gang->timed_out = false;
  }
  if (gang->evicting && gang->active() == 0 && gang->count(MemberState::kLeaving) == 0) {
    gang->evicting = false;
    gang->evict_again_ms = kNever;
  }
  const bool in_flight = gang->plan != nullptr || gang->count(MemberState::kWaiting) > 0;
  if (gang->satisfied && facts_read_ && gang->active() == 0 && !in_flight) {
    gang->satisfied = false;
    gang->repair_until_ms = kNever;
  }
  if (!gang->satisfied && !in_flight && facts_read_ && gang->rules.min_member > 0 && gang->active() > 0 &&
      Missing(*gang) == 0 && (gang->rules.group.empty() || Unplaced(*gang).empty())) {
    gang->satisfied = true;
  }
  // A plan exists only while its gang may have one: rules and children can change under it.
  if (gang->plan != nullptr && !gang->plan->committed) {
    Reason gate = PlanReason(*gang);
    if (gate.none() && static_cast<size_t>(Missing(*gang)) != gang->plan->slots.size()) {
      gate = Reason{ReasonCode::kWithdrawn, "the number of missing members changed"};
    }
    if (gate.none() && PlannedWithOthers(*gang)) {
      gate = Reason{ReasonCode::kWithdrawn, "the gangs that must start together changed"};
    }
    if (!gate.none()) WithdrawPlan(gang, gate.code, gate.text);
  }
  // The same for members that wait without a plan (Permit): a smaller minimum may let them go (C-114).
  if (gang->plan == nullptr && gang->count(MemberState::kWaiting) > 0 && QuorumStands(gang)) PermitGroup(gang);
  if (gang->cycles_used) AdvanceCycle(gang);
  if (gang->plan == nullptr && gang->count(MemberState::kWaiting) == 0) StopHolding(gang);
}

void Machine::SettleQueue(Gang* gang) {
  const bool wants = facts_read_ && gang->plan == nullptr && gang->count(MemberState::kPending) > 0 &&
                     gang->count(MemberState::kWaiting) == 0 && PlanReason(*gang).none() && !PassesOneByOne(*gang) &&
                     GroupIsFree(*gang);
  if (!wants) {
    LeaveQueue(gang);
    gang->blocked = Reason();
    return;
  }
  QueueKey key = KeyOf(*gang);
  if (gang->queued == key && (gang->blocked_signature.empty() || gang->blocked_signature == Signature(gang))) return;
  LeaveQueue(gang);
  gang->blocked = Reason();
  gang->queued = key;
  queue_.insert(std::move(key));
}

void Machine::SettleReason(Gang* gang) {
  Reason reason = WaitReason(*gang);
  if (reason.code != gang->reason.code) {
    gang->reason_since_ms = now_ms_;
    if (facts_read_) gang->notify_at_ms = std::min(gang->notify_at_ms, now_ms_ + kNotifyDelayMs);
  }
  gang->reason = std::move(reason);
}

void Machine::SettleTimer(Gang* gang) {
  const int64_t due = GangDeadline(*gang);
  if (due == gang->timer_ms) return;
  if (gang->timer_ms != kNever) gang_timers_.erase({gang->timer_ms, gang});
  gang->timer_ms = due;
  if (due != kNever) gang_timers_.insert({due, gang});
}

}  // namespace muster
