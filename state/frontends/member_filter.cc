// SlotFilter and MemberFilter: what filter answers for a member of a gang (SPEC K-6, P-11).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/api/apply_context.h"
#include "state/binding/activations.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/pod_lifecycle.h"
#include "state/cluster/class_index.h"
#include "state/frontends/extender_frontend.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"
#include "state/reservations/plans.h"
#include "state/views/wait_reasons.h"

namespace muster {
namespace {

// A missing offer proves a refusal only if the plan is at least this old, and only the second time: kube-scheduler
// decides on a snapshot that may be older than Muster's state.
constexpr int64_t kMinPlanAgeMs = 2'000;
constexpr int32_t kAbsencesForProof = 2;

// What a refusal says of a reason whose own text changes with pods, starts and ends. kube-scheduler writes a changed
// message into the pod's condition and into an Event of each pod, so the text is constant (K-3).
constexpr std::pair<ReasonCode, absl::string_view> kConstantTexts[] = {
    {ReasonCode::kNotEnoughPods, "too few of its pods exist or can be planned"},
    {ReasonCode::kNoRoom, "the cluster has no room for its missing members together"},
    {ReasonCode::kNoPlaceFound, "no place was found for its missing members together"},
    {ReasonCode::kMinResources, "its minResources exceed the free capacity"},
    {ReasonCode::kTooManyHolds, "it needs more held binds than are free"},
    {ReasonCode::kBackoff, "it waits before its next try"},
    {ReasonCode::kQueued, "it waits for its turn"},
    {ReasonCode::kPlanned, "room is reserved, and its members are being activated"},
    {ReasonCode::kBarrier, "room is reserved, and its members meet at the barrier"},
    {ReasonCode::kBinding, "it is permitted, and its members are being bound"},
    {ReasonCode::kMemberUnschedulable, "kube-scheduler found no node for one of its members"},
    {ReasonCode::kQueueLimit, "its queue has no room for it now"},
};

// The number of feasible nodes among `nodes` after which kube-scheduler stops its search (EXTENDER.md,
// numFeasibleNodesToFind).
int32_t SampleSize(int32_t nodes, int32_t percentage) {
  if (nodes < 100) return nodes;
  if (percentage == 0) percentage = std::max(5, 50 - nodes / 125);
  if (percentage >= 100) return nodes;
  return std::max(100, static_cast<int32_t>(int64_t{nodes} * percentage / 100));
}

}  // namespace

FilterReply SlotFilter::FilterPlanned(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx) {
  if (r_.plans->SlotIndex(pod) < 0 && !r_.plans->HasSlotFor(pod)) return {};
  if (const int32_t slot = ChooseSlot(pod, offer); slot >= 0) {
    r_.plans->Offer(pod, slot);
    const NodeId node = r_.plans->SlotOf(pod)->node;
    return FilterReply{FilterReply::Kind::kSingleNode, r_.cluster->node(node).facts.name, {}, {}};
  }
  CountMissingOffer(pod, offer, ctx);
  FilterReply refusal;
  refusal.reason = {ReasonCode::kNodeNotOffered,
                    "kube-scheduler does not offer a node that is reserved for this pod now"};
  return refusal;
}

// P-11, K-6: the index of the pod's own slot, else of a free slot of its class, else of a slot that can move to an
// offered node; -1: none.
int32_t SlotFilter::ChooseSlot(const Pod& pod, const NodeOffer& offer) {
  const Plan& plan = *r_.plans->Of(*pod.gang);
  const std::vector<Slot>& slots = plan.slots;
  const auto offered = [&](const Slot& slot) { return offer.Contains(r_.cluster->node(slot.node).facts.name); };
  if (const Slot* own = r_.plans->SlotOf(pod); own != nullptr && offered(*own)) return r_.plans->SlotIndex(pod);
  int32_t movable = r_.plans->SlotIndex(pod);  // its own slot, or the first free one
  NodeId last = kNoNode;                       // slots of one node are adjacent: ask once per node
  for (size_t i = plan.first_free; i < slots.size(); ++i) {
    if (slots[i].state != SlotState::kFree || !slots[i].IsFor(pod) || slots[i].node == last) continue;
    last = slots[i].node;
    if (movable < 0) movable = static_cast<int32_t>(i);
    if (!offered(slots[i])) continue;
    r_.pod_lifecycle->ReleaseSlot(pod);
    return static_cast<int32_t>(i);
  }
  return movable >= 0 && MoveSlot(pod, movable, offer) ? movable : -1;
}

// Moves the slot to an offered node. Returns false if it must stay.
bool SlotFilter::MoveSlot(const Pod& pod, int32_t index, const NodeOffer& offer) {
  const Slot& slot = r_.plans->Of(*pod.gang)->slots[static_cast<size_t>(index)];
  if (slot.state == SlotState::kHeld || slot.state == SlotState::kCommitted) return false;
  const Region region = r_.domains->For(*pod.gang, slot.leaf, index);
  for (const ClassIndex::Entry& entry : r_.index->Best(pod.cls)) {
    if (!region.Has(entry.node) || !offer.Contains(r_.cluster->node(entry.node).facts.name)) continue;
    r_.plans->Move(*pod.gang, index, entry.node);
    return true;
  }
  return false;
}

// K-6: an offer without any reserved node proves a refusal by a filter that Muster does not model only if the offer was
// complete.
void SlotFilter::CountMissingOffer(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  const int64_t now_ms = ctx->now_ms();
  r_.plans->ScheduleReactivation(gang, now_ms);
  r_.gangs->Touch(gang);
  const auto offered = static_cast<int32_t>(offer.size());
  const bool only_nominated =
      offered == 1 && !pod.facts.nominated_node.empty() && offer.Contains(pod.facts.nominated_node);
  if (only_nominated || offered >= SampleSize(r_.cluster->present_nodes(), settings_.percentage_of_nodes)) return;
  const Plan& plan = *r_.plans->Of(gang);
  if (plan.committed || now_ms - plan.created_ms < kMinPlanAgeMs) return;
  if (r_.plans->CountMissingOffer(gang) < kAbsencesForProof) return;
  const int64_t until_ms = now_ms + settings_.learned_refusal_ms;
  for (const Slot& slot : plan.slots) {
    if (slot.IsFor(pod) && (slot.pod == nullptr || slot.pod == &pod)) r_.cluster->Exclude(pod.cls, slot.node, until_ms);
  }
  refusals_until_ms_ = std::min(refusals_until_ms_, until_ms);
  r_.plan_lifecycle->Withdraw(gang, ReasonCode::kWithdrawn, "kube-scheduler refuses the reserved nodes for a member",
                              ctx);
}

void SlotFilter::ExpireRefusals(int64_t now_ms) {
  if (refusals_until_ms_ <= now_ms) refusals_until_ms_ = r_.cluster->ExpireExclusions(now_ms);
}

FilterReply MemberFilter::RefuseMember(const Pod& pod, Reason reason) {
  r_.activations->SetUnschedulable(pod, true);
  if (!reason.names_gang) reason.text = absl::StrCat("gang ", pod.gang->key, ": ", reason.text);
  r_.activations->SetLastRefusal(pod, reason.code);
  return FilterReply{FilterReply::Kind::kRefuse, "", {}, std::move(reason)};
}

FilterReply MemberFilter::RefuseWithoutFigures(const Pod& pod, const Reason& reason) {
  for (const auto& [code, text] : kConstantTexts) {
    if (code != reason.code) continue;
    return RefuseMember(pod, {code, absl::StrCat(text, "; for more, run musterctl explain gang ", pod.gang->key)});
  }
  return RefuseMember(pod, reason);
}

// Why a member gets neither a slot nor nodes; none: it may get them.
Reason MemberFilter::QueryRefusal(const Pod& pod, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  if (Reason own = r_.eligibility->PodReason(pod); !own.none()) return own;
  if (gang.submitted) {
    return {ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead"};
  }
  if (gang.durable.evicting) return r_.eligibility->StructureReason(gang);
  if (pod.state == MemberState::kCommitted) return {ReasonCode::kBinding, "the pod is being bound"};
  if (r_.pod_lifecycle->RetryAt(pod) > ctx->now_ms()) {
    return {ReasonCode::kBackoff, absl::StrCat("the pod could not be bound and is tried again later; ",
                                               r_.pod_lifecycle->BindingOf(pod).reason)};
  }
  if (pod.state == MemberState::kWaiting && r_.plans->Of(gang) != nullptr) {
    // A scheduler that asks again has given up its earlier bind call.
    r_.pod_lifecycle->EndWait(pod, {ReasonCode::kGone, "the scheduler asked again"}, ctx);
  }
  if (pod.state == MemberState::kPending) return {};
  return {ReasonCode::kGone, "the pod has a node already or is being deleted"};
}

FilterReply MemberFilter::FilterMember(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  r_.activations->ClearSuspicion(pod);
  r_.gangs->SetUnplaceable(pod, false);  // some node passes kube-scheduler's own filters
  if (Reason reason = QueryRefusal(pod, ctx); !reason.none()) return RefuseMember(pod, std::move(reason));
  r_.plan_lifecycle->ReconcileFutureSlots(gang, ctx);  // a future slot may be available to the pod now (P-7)
  if (r_.plans->Of(gang) != nullptr) {
    FilterReply reply = r_.slots->FilterPlanned(pod, offer, ctx);
    if (!reply.reason.none()) return RefuseMember(pod, std::move(reply.reason));
    if (reply.kind == FilterReply::Kind::kSingleNode) {
      r_.activations->SetUnschedulable(pod, false);
      return reply;
    }
  }
  if (r_.eligibility->SchedulesIndividually(gang)) {
    if (const Reason reason = QueueRefusal(pod); !reason.none()) return RefuseWithoutFigures(pod, reason);
    FilterReply reply = r_.guard->FilterExtra(pod, offer);
    r_.activations->SetUnschedulable(pod, !reply.guarded.empty());
    if (!reply.guarded.empty()) r_.activations->AddGuarded(pod);
    return reply;
  }
  if (r_.plans->Of(gang) != nullptr) {
    return RefuseMember(
        pod, {ReasonCode::kSlotsTaken, "other members fill the gang's minimum; this pod is scheduled after them"});
  }
  return RefuseWithoutFigures(pod, r_.reasons->Of(gang, ctx->now_ms()));
}

Reason MemberFilter::QueueRefusal(const Pod& pod) {
  Reason reason = r_.queues->Check(pod);
  if (!reason.none()) r_.queues->AddRefused(*pod.gang);
  return reason;
}

Reason MemberFilter::BindRefusal(const Pod& pod, NodeId node, const std::string& name, int64_t now_ms) {
  const Gang& gang = *pod.gang;
  if (!r_.eligibility->SchedulesIndividually(gang)) {
    return {ReasonCode::kWithdrawn,
            absl::StrCat("gang ", gang.key, " has no plan for this pod now: ", r_.reasons->Of(gang, now_ms).text)};
  }
  if (!r_.guard->InDomains(pod, node)) {
    return {ReasonCode::kWithdrawn, absl::StrCat("node ", name, " is outside the domain of gang ", gang.key)};
  }
  return QueueRefusal(pod);
}

}  // namespace muster
