#include "state/frontends/extender_frontend.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// A missing offer proves a refusal only if the plan is at least this old, and only the second time: kube-scheduler
// decides on a snapshot that may be older than Muster's state.
constexpr int64_t kMinPlanAgeMs = 2'000;
constexpr int32_t kAbsencesForProof = 2;

// The number of feasible nodes among `nodes` after which kube-scheduler stops its search (EXTENDER.md,
// numFeasibleNodesToFind).
int32_t SampleSize(int32_t nodes, int32_t percentage) {
  if (nodes < 100) return nodes;
  if (percentage == 0) percentage = std::max(5, 50 - nodes / 125);
  if (percentage >= 100) return nodes;
  return std::max(100, static_cast<int32_t>(int64_t{nodes} * percentage / 100));
}

FilterReply Refuse(Reason reason) { return FilterReply{FilterReply::Kind::kRefuse, "", {}, std::move(reason)}; }

}  // namespace

FilterReply ExtenderFrontend::OnFilter(const Filter& question, ApplyContext* ctx) {
  const Pod* pod = r_.gangs->FindPod(question.uid);
  if (pod == nullptr) {
    r_.activations->AddUnknownQuery(question.uid);
    return Refuse({ReasonCode::kUnknownPod, "the pod is not known yet; it will be activated when it is"});
  }
  if (!r_.sources->complete()) {
    r_.activations->SetUnschedulable(*pod, true);  // its activation, if any, is used up
    return Refuse(r_.sources->Reading());
  }
  if (r_.pod_lifecycle->IsRestored(*pod)) {
    // The node of its binding, which may still be in flight. If the node is not offered, do not wait for an offer with
    // it: in a cluster of 100 nodes or more, each offer may be a sample.
    const std::string node = r_.pod_lifecycle->CommittedNode(*pod);
    if (question.offer->Contains(node)) {
      return FilterReply{FilterReply::Kind::kSingleNode, node, {}, {}};
    }
    r_.bindings->ReleaseRestored(*pod, ctx);
  }
  if (pod->gang != nullptr) return FilterMember(*pod, *question.offer, ctx);
  FilterReply reply = FilterFree(*pod, *question.offer);
  if (!reply.guarded.empty()) r_.activations->AddGuarded(*pod);
  return reply;
}

// Whether the pod fits the node only in capacity that is promised to claims of at least its rank, or is used by pods in
// flight. kube-scheduler does not know of a pod in flight after it has given up the bind call. A gang below its minimum
// comes before future reservations.
bool ExtenderFrontend::Guarded(const Pod& pod, NodeId node, const ResourceSum& regained) const {
  const absl::Span<const Ledger::Promise> promises = r_.ledger->PromisedOn(node);
  const bool in_flight = r_.ledger->in_flight().contains(node) || r_.ledger->unobserved_binds().contains(node);
  if (promises.empty() && !in_flight) return false;
  const ResourceVector& request = r_.cluster->pod_class(pod.cls).request;
  if (request.FitsIn(r_.cluster->node(node).free)) return false;
  ResourceSum yielded = regained;
  bool any_yields = !regained.entries().empty();
  if (r_.ledger->Reserves(pod.id) && r_.ledger->ChargeOf(pod.id).node == node) {
    yielded.AddTimes(request, 1);  // the pod is nominated for the node: the reservation there is its own
    any_yields = true;
  }
  for (const Ledger::Promise& promise : promises) {
    const Gang& gang = r_.gangs->gang(promise.claim);
    const Plan* plan = r_.plans->Of(gang);  // nullptr: a future reservation (P-8, Q-6)
    const bool repairs = plan == nullptr && pod.gang != nullptr && pod.gang->below_minimum();
    const bool first = r_.eligibility->Priority(gang) < pod.facts.priority || repairs;
    if (!first || (plan != nullptr && plan->committed)) continue;
    yielded.AddTimes(r_.cluster->pod_class(promise.cls).request, promise.pods);
    any_yields = true;
  }
  return !any_yields || !r_.cluster->FitsAfterRelease(node, pod.cls, yielded);
}

// Filter for a pod that needs no quorum: passes every node except those whose free capacity is promised to a claim of
// at least its rank.
FilterReply ExtenderFrontend::FilterFree(const Pod& pod, const NodeOffer& offer) const {
  FilterReply reply;
  reply.kind = FilterReply::Kind::kPass;
  if (pod.cls == kNoClass) return reply;
  const std::vector<NodeId>& promised = r_.ledger->promised();
  // Loop over the smaller set: the nodes with promises, or the offered nodes.
  const auto& in_flight = r_.ledger->in_flight();
  const auto& unobserved = r_.ledger->unobserved_binds();
  const size_t promised_count = promised.size() + in_flight.size() + unobserved.size();
  const auto guard = [&](const std::string& name) {
    if (reply.guarded.empty()) reply.guarded.reserve(std::min(offer.size(), promised_count));  // rarely a single one
    reply.guarded.push_back(name);
  };
  if (offer.size() < promised_count) {
    for (const std::string& name : offer.names()) {
      const NodeId node = r_.cluster->FindNode(name);
      if (node != kNoNode && Guarded(pod, node, {})) guard(name);
    }
  } else {
    const auto guard_if_promised = [&](NodeId node) {
      const std::string& name = r_.cluster->node(node).facts.name;
      if (Guarded(pod, node, {}) && offer.Contains(name)) guard(name);
    };
    for (const NodeId node : promised) guard_if_promised(node);
    for (const auto& [node, pods] : in_flight) {
      if (r_.ledger->PromisedOn(node).empty()) guard_if_promised(node);
    }
    for (const auto& [node, until_ms] : unobserved) {
      const bool removed = r_.cluster->node(node).facts.name.empty();
      if (!removed && r_.ledger->PromisedOn(node).empty() && !in_flight.contains(node)) guard_if_promised(node);
    }
  }
  if (!std::is_sorted(reply.guarded.begin(), reply.guarded.end())) {
    std::sort(reply.guarded.begin(), reply.guarded.end());
  }
  if (!reply.guarded.empty()) reply.reason = {ReasonCode::kGuarded, "the node's free capacity is promised to a gang"};
  return reply;
}

// Filter for a member beyond the minimum: like FilterFree, within the domains that its gang requires (P-4).
FilterReply ExtenderFrontend::FilterExtra(const Pod& pod, const NodeOffer& offer) const {
  FilterReply reply = FilterFree(pod, offer);
  const Gang& gang = *pod.gang;
  if (!gang.rules.domains) return reply;
  const Region region = r_.domains->For(gang, pod.leaf);
  for (const std::string& name : offer.names()) {
    const NodeId node = r_.cluster->FindNode(name);
    if (node != kNoNode && !region.Has(node)) reply.guarded.push_back(name);
  }
  std::sort(reply.guarded.begin(), reply.guarded.end());
  reply.guarded.erase(std::unique(reply.guarded.begin(), reply.guarded.end()), reply.guarded.end());
  if (!reply.guarded.empty()) {
    reply.reason = {ReasonCode::kGuarded,
                    "the node is outside the domain of its gang, or its free capacity is promised to another"};
  }
  return reply;
}

FilterReply ExtenderFrontend::RefuseMember(const Pod& pod, Reason reason) {
  r_.activations->SetUnschedulable(pod, true);
  if (!reason.names_gang) reason.text = absl::StrCat("gang ", pod.gang->key, ": ", reason.text);
  r_.activations->SetLastRefusal(pod, reason);
  return Refuse(std::move(reason));
}

// Why a member gets neither a slot nor nodes; none: it may get them.
Reason ExtenderFrontend::QueryRefusal(const Pod& pod, ApplyContext* ctx) {
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

FilterReply ExtenderFrontend::FilterMember(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  r_.activations->ClearSuspicion(pod);
  r_.gangs->SetUnplaceable(pod, false);  // some node passes kube-scheduler's own filters
  if (Reason reason = QueryRefusal(pod, ctx); !reason.none()) return RefuseMember(pod, std::move(reason));
  r_.plan_lifecycle->ReconcileFutureSlots(gang, ctx);  // a future slot may be available to the pod now (P-7)
  if (r_.plans->Of(gang) != nullptr) {
    FilterReply reply = FilterPlanned(pod, offer, ctx);
    if (reply.kind == FilterReply::Kind::kSingleNode || !reply.reason.none()) return reply;
  }
  if (r_.eligibility->SchedulesIndividually(gang)) {
    if (Reason reason = r_.queues->Check(pod); !reason.none()) {
      r_.queues->AddRefused(gang);
      return RefuseMember(pod, std::move(reason));
    }
    FilterReply reply = FilterExtra(pod, offer);
    r_.activations->SetUnschedulable(pod, !reply.guarded.empty());
    if (!reply.guarded.empty()) r_.activations->AddGuarded(pod);
    return reply;
  }
  if (r_.plans->Of(gang) != nullptr) {
    return RefuseMember(
        pod, {ReasonCode::kSlotsTaken, "other members fill the gang's minimum; this pod is scheduled after them"});
  }
  return RefuseMember(pod, r_.reasons->WithCurrentFigures(gang, r_.reasons->Of(gang, ctx->now_ms())));
}

// Returns the pod's slot, or a refusal because none of its possible nodes is offered. Returns an empty reply if the
// plan has no slot for the pod.
FilterReply ExtenderFrontend::FilterPlanned(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx) {
  const int32_t slot = ChooseSlot(pod, offer);
  const Plan& plan = *r_.plans->Of(*pod.gang);
  if (slot >= 0) {
    r_.plans->Offer(pod, slot);
    r_.activations->SetUnschedulable(pod, false);
    const NodeId node = plan.slots[static_cast<size_t>(slot)].node;
    return FilterReply{FilterReply::Kind::kSingleNode, r_.cluster->node(node).facts.name, {}, {}};
  }
  const bool open = r_.plans->SlotIndex(pod) >= 0 || r_.plans->HasSlotFor(pod);
  if (!open) return {};
  CountMissingOffer(pod, offer, ctx);
  return RefuseMember(
      pod, {ReasonCode::kNodeNotOffered, "kube-scheduler does not offer a node that is reserved for this pod now"});
}

// P-11, K-6: the index of the pod's own slot, else of a free slot of its class, else of a slot that can move to an
// offered node; -1: none.
int32_t ExtenderFrontend::ChooseSlot(const Pod& pod, const NodeOffer& offer) {
  const std::vector<Slot>& slots = r_.plans->Of(*pod.gang)->slots;
  const auto offered = [&](const Slot& slot) { return offer.Contains(r_.cluster->node(slot.node).facts.name); };
  if (const Slot* own = r_.plans->SlotOf(pod); own != nullptr && offered(*own)) return r_.plans->SlotIndex(pod);
  if (r_.plans->SlotIndex(pod) < 0 && !r_.plans->HasSlotFor(pod)) return -1;
  NodeId last = kNoNode;  // slots of one node are adjacent: ask once per node
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].state != SlotState::kFree || !slots[i].IsFor(pod) || slots[i].node == last) continue;
    last = slots[i].node;
    if (!offered(slots[i])) continue;
    r_.pod_lifecycle->ReleaseSlot(pod);
    return static_cast<int32_t>(i);
  }
  return MoveSlot(pod, offer);
}

int32_t ExtenderFrontend::MoveSlot(const Pod& pod, const NodeOffer& offer) {
  const std::vector<Slot>& slots = r_.plans->Of(*pod.gang)->slots;
  int32_t from = r_.plans->SlotIndex(pod);
  for (size_t i = 0; from < 0 && i < slots.size(); ++i) {
    if (slots[i].state == SlotState::kFree && slots[i].IsFor(pod)) from = static_cast<int32_t>(i);
  }
  if (from < 0) return -1;
  const Slot& slot = slots[static_cast<size_t>(from)];
  if (slot.state == SlotState::kHeld || slot.state == SlotState::kCommitted) return -1;
  const Region region = r_.domains->For(*pod.gang, slot.leaf, from);
  for (const ClassIndex::Entry& entry : r_.index->Best(pod.cls)) {
    if (!region.Has(entry.node) || !offer.Contains(r_.cluster->node(entry.node).facts.name)) continue;
    r_.plans->Move(*pod.gang, from, entry.node);
    return from;
  }
  return -1;
}

// K-6: an offer without any reserved node proves a refusal by a filter that Muster does not model only if the offer was
// complete.
void ExtenderFrontend::CountMissingOffer(const Pod& pod, const NodeOffer& offer, ApplyContext* ctx) {
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
  std::vector<NodeId> nodes;
  for (const Slot& slot : plan.slots) {
    if (slot.IsFor(pod) && (slot.pod == nullptr || slot.pod == &pod)) nodes.push_back(slot.node);
  }
  const int64_t until_ms = now_ms + settings_.learned_refusal_ms;
  for (const NodeId node : nodes) r_.cluster->Exclude(pod.cls, node, until_ms);
  refusals_until_ms_ = std::min(refusals_until_ms_, until_ms);
  r_.plan_lifecycle->Withdraw(gang, ReasonCode::kWithdrawn, "kube-scheduler refuses the reserved nodes for a member",
                              ctx);
}

void ExtenderFrontend::ExpireRefusals(int64_t now_ms) {
  if (refusals_until_ms_ <= now_ms) refusals_until_ms_ = r_.cluster->ExpireExclusions(now_ms);
}

// Why the bind call is refused; none: it may be held.
Reason ExtenderFrontend::BindRefusal(const Pod& pod, const Bind& call) const {
  if (!pod.facts.node_name.empty()) {
    return {ReasonCode::kGone, absl::StrCat("the pod is bound to node ", pod.facts.node_name, " already")};
  }
  const NodeId node = r_.cluster->FindNode(call.node);
  if (pod.state == MemberState::kCommitted || pod.state == MemberState::kWaiting) {
    if (node == r_.pod_lifecycle->Of(pod).node) return {};
    return {ReasonCode::kWithdrawn, "the pod is being bound to another node"};
  }
  if (pod.state != MemberState::kPending) {
    return {ReasonCode::kGone, absl::StrCat("the pod is ", ToString(pod.state))};
  }
  if (pod.gang != nullptr && pod.gang->submitted) {
    return {ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead"};
  }
  if (node == kNoNode || !r_.cluster->node(node).present) {
    return {ReasonCode::kWithdrawn, absl::StrCat("node ", call.node, " is not known or was removed")};
  }
  if (const Slot* slot = r_.plans->SlotOf(pod); slot != nullptr && slot->node != node) {
    return {ReasonCode::kWithdrawn, "the pod's reservation has moved to another node"};
  }
  return {};
}

void ExtenderFrontend::OnBind(const Bind& call, ApplyContext* ctx) {
  const Pod* pod = r_.gangs->FindPod(call.uid);
  if (pod == nullptr) {
    return ctx->EndHold(call.token, false,
                        {ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", call.uid, " is known; try again")});
  }
  if (!pod->facts.node_name.empty() && pod->facts.node_name == call.node) return ctx->EndHold(call.token, true, {});
  if (Reason refusal = BindRefusal(*pod, call); !refusal.none()) {
    return ctx->EndHold(call.token, false, std::move(refusal));
  }
  if (r_.pod_lifecycle->IsRestored(*pod)) return r_.bindings->RebindRestored(*pod, call.token, ctx);
  if (pod->state != MemberState::kPending)
    return r_.pod_lifecycle->AddHold(*pod, call.token);  // joins the existing wait
  if (pod->gang != nullptr && !r_.sources->complete()) {
    // K-13: the gang's records may be those of an interrupted start.
    r_.activations->SetUnschedulable(*pod, true);
    return ctx->EndHold(call.token, false, r_.sources->Reading());
  }
  const NodeId node = r_.cluster->FindNode(call.node);
  if (r_.plans->SlotIndex(*pod) >= 0) {
    r_.pod_lifecycle->SetByPermit(*pod, false);
    return r_.bindings->ArriveAtBarrier(*pod, node, call.token, ctx);
  }
  if (pod->gang != nullptr && !r_.eligibility->SchedulesIndividually(*pod->gang)) {
    r_.activations->SetUnschedulable(*pod, true);
    const Reason why = r_.reasons->Of(*pod->gang, ctx->now_ms());
    return ctx->EndHold(
        call.token, false,
        {ReasonCode::kWithdrawn, absl::StrCat("gang ", pod->gang->key, " has no plan for this pod now: ", why.text)});
  }
  if (pod->gang != nullptr && !r_.domains->For(*pod->gang, pod->leaf).Has(node)) {
    r_.activations->SetUnschedulable(*pod, true);
    return ctx->EndHold(
        call.token, false,
        {ReasonCode::kWithdrawn, absl::StrCat("node ", call.node, " is outside the domain of gang ", pod->gang->key)});
  }
  if (Reason reason = r_.queues->Check(*pod); !reason.none()) {
    r_.queues->AddRefused(*pod->gang);
    r_.activations->SetUnschedulable(*pod, true);
    return ctx->EndHold(call.token, false, std::move(reason));
  }
  r_.bindings->BindSingle(*pod, node, call.token, ctx);
}

}  // namespace muster
