#include "state/gangs/eligibility.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/text.h"
#include "state/cluster/cluster.h"
#include "state/gangs/gangs.h"
#include "state/model/queue.h"

namespace muster {

namespace {

// REQUIRES: !pod.valid.
Reason InvalidPodReason(const Pod& pod) {
  if (!pod.facts.gang.problem.none()) return pod.facts.gang.problem;
  if (pod.foreign) {
    return {ReasonCode::kConflict,
            absl::StrCat("gang ", pod.gang->key, " was submitted as a whole, without pod ", pod.facts.name),
            /*names_gang=*/true};
  }
  if (pod.leaf < 0) {
    const std::string& named = pod.facts.gang.subgroup;
    std::vector<absl::string_view> leaves;
    for (const Subgroup& each : pod.gang->rules.tree.nodes) {
      if (each.leaf >= 0) leaves.push_back(each.name);
    }
    return {ReasonCode::kUninitialised,
            absl::StrCat("pod ", pod.facts.name, named.empty() ? " names no subgroup" : " names subgroup ", named,
                         "; its gang's members are in one of ", absl::StrJoin(leaves, ", "))};
  }
  return {ReasonCode::kInvalidRequest, absl::StrCat("pod ", pod.facts.name, ": ", pod.facts.invalid)};
}

// Why the gang has no minimum. REQUIRES: it has none.
Reason UninitialisedReason(const Gang& gang) {
  const auto because = [](const auto&... why) { return Reason{ReasonCode::kUninitialised, absl::StrCat(why...)}; };
  if (!gang.unreadable.empty()) return because(gang.unreadable);
  if (!gang.rules.tree_problem.empty()) return because(gang.rules.tree_problem);
  constexpr absl::string_view kSet = "no minimum is declared: set ";
  if (const GangObject* object = gang.object(); object != nullptr) {
    const std::string& unreadable = object->declaration->unreadable_minimum;
    if (!unreadable.empty()) return because("PodGroup: ", unreadable);
    return because(kSet, "the PodGroup's spec.",
                   object->dialect == GangDialect::kNative ? "schedulingPolicy.gang.minCount" : "minMember");
  }
  const MemberSet& pending = gang.in(MemberState::kPending);
  if (!pending.empty() && !(*pending.begin())->facts.gang.problem.none()) {
    return (*pending.begin())->facts.gang.problem;  // the pods' own declaration cannot be used
  }
  if (gang.refers_to_object()) {
    return {ReasonCode::kUnknownGang,
            absl::StrCat(
                "PodGroup ", gang.key, " does not exist yet",
                gang.one_priority() ? ", and its pods declare no pod-group.scheduling.sigs.k8s.io/min-available" : "")};
  }
  if (!gang.one_priority())
    return because(kSet, "gang.scheduling.koordinator.sh/min-available or the PodGroup's spec.minMember");
  return because(kSet, "pod-group.scheduling.sigs.k8s.io/min-available on its pods, or create its PodGroup");
}

Applicant ApplicantOf(const Gang& gang, const Cluster& cluster) {
  return {gang.name_space, gang.rules.caller, &cluster.namespaces()};
}

// SPEC section 1: an amount that overflows is refused, never wrapped.
Reason SizeReason(const Gang& gang) {
  constexpr int64_t kAlwaysCounted = std::numeric_limits<int64_t>::max() / kMaxAmount;
  if (gang.rules.min_member <= kAlwaysCounted || gang.children() == 0) return {};
  for (const auto& [name, amount] : Gangs::FirstMember(gang).facts.shape->requests) {
    if (CheckedMul(gang.rules.min_member, amount).has_value()) continue;
    return {ReasonCode::kInvalidRequest,
            absl::StrCat(gang.rules.min_member, " members of ", FormatResources({{name, amount}}),
                         " each ask for more than can be counted")};
  }
  return {};
}

}  // namespace

Reason Eligibility::PodReason(const Pod& pod) const {
  if (!pod.valid) return InvalidPodReason(pod);
  if (pod.gang == nullptr || !gangs_->OnePriority(*pod.gang)) return {};
  const Pod& first = Gangs::FirstMember(*pod.gang);
  if (first.facts.priority == pod.facts.priority) return {};
  return {ReasonCode::kPriorityMismatch,
          absl::StrCat("pod ", pod.facts.name, " has priority ", pod.facts.priority, ", its gang's first pod ",
                       first.facts.name, " has ", first.facts.priority, "; all pods of a gang must have one")};
}

int32_t Eligibility::Missing(const Claim& claim) const {
  const bool finishing = claim.durable.satisfied;
  if (!claim.submitted || !claim.rules.tree.empty()) return claim.quorum().Missing(finishing);
  // Foreign pods do not count towards a submitted claim.
  int32_t active = 0;
  for (const MemberState state : {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning}) {
    const MemberSet& set = claim.in(state);
    active += static_cast<int32_t>(std::count_if(set.begin(), set.end(), [](const Pod* pod) { return !pod->foreign; }));
  }
  const MemberCounts counts{.active = active, .succeeded = claim.count(MemberState::kSucceeded)};
  return Quorum(claim.rules.min_member, claim.rules.match_policy, counts).Missing(finishing);
}

bool Eligibility::MatchesMissing(const Gang& gang, int32_t slots, const std::vector<int32_t>& by_leaf) const {
  if (gang.rules.tree.empty()) return slots == Missing(gang);
  return gang.quorum().MetWith(gang.durable.satisfied, by_leaf);
}

bool Eligibility::SchedulesIndividually(const Gang& gang) const {
  if (!SchedulesIndividuallyAlone(gang)) return false;
  return gang.rules.group.empty() || gang.once_satisfied() || GroupReason(gang).none();
}

// SchedulesIndividually for the gang without its group.
bool Eligibility::SchedulesIndividuallyAlone(const Gang& gang) const {
  if (gang.rules.min_member < 0 || gang.durable.evicting || gang.objects.size() > 1) return false;
  if (gang.once_satisfied()) return true;
  if (gang.durable.timed_out) return false;
  return Missing(gang) == 0 && QueueReason(gang).none();
}

int32_t Eligibility::Priority(const Claim& claim) const {
  if (claim.rules.priority.has_value()) return *claim.rules.priority;
  std::optional<int32_t> highest;
  for (const MemberSet& set : claim.members) {
    if (!set.empty()) highest = std::max(highest, std::optional((*set.begin())->facts.priority));
  }
  return highest.value_or(0);
}

QueueKey Eligibility::KeyOf(const Claim& claim) const {
  QueueKey key{claim.partially_bound(), Priority(claim), claim.durable.requeues, claim.created_ms, claim.key};
  if (claim.rules.group.empty()) return key;
  const GroupSnapshot* group = FreshSnapshot(gangs_->GangOf(claim));
  if (group == nullptr || group->unplaced.empty()) return key;
  // The group is one item: its highest priority, its most requeues, its earliest creation.
  key.partially_bound = group->partially_bound;
  key.priority = std::max(key.priority, group->key.priority);
  key.requeues = std::max(key.requeues, group->key.requeues);
  key.created_ms = std::min(key.created_ms, group->key.created_ms);
  return key;
}

Reason Eligibility::ChildrenReason(const Gang& gang) const {
  const Quorum quorum = gang.quorum();
  if (quorum.HasEnoughChildren()) return {};
  std::string text = gang.rules.tree.empty()
                         ? absl::StrCat(quorum.Children(), " of ", gang.rules.min_member, " pods exist")
                         : quorum.DescribeMissingChildren();
  if (gang.gated > 0) absl::StrAppend(&text, " (", gang.gated, " more held by another scheduling gate)");
  return {ReasonCode::kNotEnoughPods, std::move(text)};
}

Reason Eligibility::StructureReason(const Gang& gang) const {
  if (gang.objects.size() > 1) {
    return {ReasonCode::kConflict,
            absl::StrCat("declared twice: by ", ToString(gang.objects.begin()->first), " and by ",
                         ToString(gang.objects.rbegin()->first), "; delete one of them")};
  }
  if (gang.rules.min_member < 0) return UninitialisedReason(gang);
  if (Reason size = SizeReason(gang); !size.none()) return size;
  const bool timed_out = gang.durable.timed_out && !gang.once_satisfied();  // G-1: once-satisfied gangs pass
  if (timed_out) {
    const bool alone = gang.rules.group.empty();
    return {ReasonCode::kTimedOut,
            absl::StrCat("the wait time of ", alone ? WriteDuration(gang.rules.wait_time_ms) : "its gang group",
                         " ran out before the ", alone ? "gang" : "group", " could start; delete its pods to free it")};
  }
  if (gang.durable.evicting) return {ReasonCode::kEvicted, "its members are being evicted so that it can start again"};
  return QueueReason(gang);
}

bool Eligibility::IsServed(const Claim& claim, QueueId queue) const {
  return queues_->Serves(queue, ApplicantOf(gangs_->GangOf(claim), *cluster_));
}

Reason Eligibility::QueueReason(const Gang& gang) const {
  if (!queues_->any()) return {};
  const bool started = gang.once_satisfied() || gang.active() > 0;
  if (started && queues_->Find(gang.durable.queue) != kNoQueue) return {};  // it stays in the queue where it started
  QueueTree::Home home = queues_->ResolveQueue(gang.rules.queue);
  if (!home.refusal.none()) return started ? Reason() : std::move(home.refusal);
  // also for a gang with members that were bound by others, and so in no queue.
  Reason access = queues_->AccessRefusal(home.queue, ApplicantOf(gang, *cluster_));
  if (!access.none() || started || !gang.rules.declares_total) return access;
  const QueueSpec& spec = queues_->at(home.queue).spec;
  if (spec.sort != QueueSort::kFair) return {};
  return {ReasonCode::kQueueRejected, absl::StrCat("it declares its total, and queue ", spec.name,
                                                   ", with sort policy fair, accepts no such gangs")};
}

Reason Eligibility::GateReason(const Gang& gang, int64_t now_ms) const {
  if (Reason structure = StructureReason(gang); !structure.none()) return structure;
  if (gang.once_satisfied()) return {};
  if (Reason children = ChildrenReason(gang); !children.none()) return children;
  if (!gang.rules.group.empty()) {
    if (Reason group = GroupReason(gang); !group.none()) return group;
    if (Reason peers = GroupMatesReason(gang); !peers.none()) return peers;
  }
  if (gang.retry_at_ms > now_ms) {
    std::string text = absl::StrCat("requeued ", gang.durable.requeues, gang.durable.requeues == 1 ? " time" : " times",
                                    ", waiting before the next try");
    if (!gang.root_cause.empty()) absl::StrAppend(&text, "; ", gang.root_cause);
    return {ReasonCode::kBackoff, std::move(text)};
  }
  return {};
}

Reason Eligibility::PlanReason(const Gang& gang, int64_t now_ms) const {
  if (Reason gate = GateReason(gang, now_ms); !gate.none()) return gate;
  if (Reason members = MembersReason(gang); !members.none() || gang.rules.group.empty()) return members;
  return GroupMatesMembersReason(gang, now_ms);
}

Reason Eligibility::MembersReason(const Gang& gang) const {
  const int32_t missing = SchedulesIndividually(gang) ? 0 : Missing(gang);
  const int32_t plannable = gang.count(MemberState::kWaiting) + gangs_->PlannableMembers(gang);
  // P-7: future members are planned together with an existing member that the minimum still needs, or for a gang that
  // started without them.
  const int32_t all_future = gang.rules.tree.empty() ? 0 : gang.quorum().FutureMembers();
  const bool some = gang.partially_bound() ||
                    (all_future > 0 ? gang.quorum().HasUsefulMember(gang.durable.satisfied) : plannable > 0);
  const int32_t future = some ? all_future : 0;
  if (plannable + future >= missing && (some || missing == 0) &&
      (missing == 0 || gang.rules.tree.empty() || gang.quorum().Placeable(gang.durable.satisfied))) {
    return {};
  }
  Reason culprit;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (gangs_->Plannable(*pod)) continue;
    culprit = PodReason(*pod);
    if (culprit.none() && !pod->served) {
      const std::string& scheduler = pod->facts.scheduler_name;
      culprit = {ReasonCode::kNotServed,
                 absl::StrCat("pod ", pod->facts.name, " is placed by ",
                              scheduler.empty() ? "its caller, which schedules pod by pod"
                                                : absl::StrCat("scheduler \"", scheduler,
                                                               "\", which schedules pod by pod: Muster plans for the "
                                                               "schedulers in kubernetes.schedulerNames"))};
    }
    if (!culprit.none()) break;
  }
  if (culprit.none() && !some && plannable >= missing) {
    return {ReasonCode::kNotEnoughPods,
            absl::StrCat("no missing member exists yet; ", gang.quorum().DescribeMissingPresent())};
  }
  std::string text = absl::StrCat(plannable, " of ", missing, " missing members can be planned");
  if (!culprit.none()) absl::StrAppend(&text, "; ", culprit.text);
  return {culprit.none() ? ReasonCode::kNotEnoughPods : culprit.code, std::move(text)};
}

}  // namespace muster
