#include "state/frontends/extender_frontend.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// An absence counts as proof only after the plan has stood this long and twice: kube-scheduler decides on a snapshot
// that may be older than what we know.
constexpr int64_t kSettlingMs = 2'000;
constexpr int32_t kAbsencesForProof = 2;

// How many feasible nodes kube-scheduler looks for among `nodes` before it stops (EXTENDER.md, numFeasibleNodesToFind).
int32_t SampleSize(int32_t nodes, int32_t percentage) {
  if (nodes < 100) return nodes;
  if (percentage == 0) percentage = std::max(5, 50 - nodes / 125);
  if (percentage >= 100) return nodes;
  return std::max(100, static_cast<int32_t>(int64_t{nodes} * percentage / 100));
}

FilterReply Refuse(Reason reason) { return FilterReply{FilterReply::Kind::kRefuse, "", {}, std::move(reason)}; }

}  // namespace

FilterReply KubeScheduler::OnFilter(const Filter& question, Step* step) {
  const Pod* pod = r_.gangs->FindPod(question.uid);
  if (pod == nullptr) {
    r_.calls->NoteAskedEarly(question.uid);
    return Refuse({ReasonCode::kUnknownPod, "the pod is not known yet; it will be called again when it is"});
  }
  if (!r_.sources->complete()) {
    r_.calls->SetParked(*pod, true);  // the call that it may have had is used up
    return Refuse(r_.sources->Reading());
  }
  if (r_.bindings->Resumable(*pod)) {
    // Where its binding went, or may go still. Where that is not offered it is not waited for: from 100 nodes on an
    // offer may be a sample, and the next as well.
    const std::string node = r_.bindings->CommittedTo(*pod);
    if (question.offer->Contains(node)) {
      return FilterReply{FilterReply::Kind::kOneNode, node, {}, {}};
    }
    r_.bindings->EndResume(*pod, step);
  }
  if (pod->gang != nullptr) return FilterMember(*pod, *question.offer, step);
  FilterReply reply = FilterFree(*pod, *question.offer);
  if (!reply.guarded.empty()) r_.calls->NoteGuarded(*pod);
  return reply;
}

// The pod fits the node only into what is promised to somebody of at least its rank, or into what somebody uses who is
// on his way there: kube-scheduler knows nothing of him once it has forgotten its call. Of what is only kept, members
// that a running gang lost have theirs first.
bool KubeScheduler::Guarded(const Pod& pod, NodeId node, const ResourceSum& regained) const {
  const absl::Span<const Ledger::Promise> promises = r_.ledger->PromisedOn(node);
  const bool going = r_.ledger->going().contains(node) || r_.ledger->unheard().contains(node);
  if (promises.empty() && !going) return false;
  const ResourceVector& request = r_.cluster->pod_class(pod.cls).request;
  if (request.FitsIn(r_.cluster->node(node).free)) return false;
  ResourceSum yielded = regained;
  bool some = !regained.entries().empty();
  if (r_.ledger->Reserves(pod.id) && r_.ledger->ChargeOf(pod.id).node == node) {
    yielded.AddTimes(request, 1);  // it was nominated for the node: what is reserved there is its own
    some = true;
  }
  for (const Ledger::Promise& promise : promises) {
    const Gang& gang = r_.gangs->gang(promise.claim);
    const Plan* plan = r_.plans->Of(gang);  // nullptr: its room is only kept (P-8, Q-6)
    const bool repairs = plan == nullptr && pod.gang != nullptr && pod.gang->depleted();
    const bool first = r_.eligibility->Priority(gang) < pod.facts.priority || repairs;
    if (!first || (plan != nullptr && plan->committed)) continue;
    yielded.AddTimes(r_.cluster->pod_class(promise.cls).request, promise.pods);
    some = true;
  }
  return !some || !r_.cluster->FitsWith(node, pod.cls, yielded);
}

// A pod that needs no quorum: every node but those whose free capacity is promised to somebody of at least its rank.
FilterReply KubeScheduler::FilterFree(const Pod& pod, const NodeOffer& offer) const {
  FilterReply reply;
  reply.kind = FilterReply::Kind::kPass;
  if (pod.cls == kNoClass) return reply;
  const std::vector<NodeId>& promised = r_.ledger->promised();
  // Whichever are fewer: the nodes that are promised, or those that are offered.
  const auto& going = r_.ledger->going();
  const auto& unheard = r_.ledger->unheard();
  const size_t concerned = promised.size() + going.size() + unheard.size();
  const auto guard = [&](const std::string& name) {
    if (reply.guarded.empty()) reply.guarded.reserve(std::min(offer.size(), concerned));  // seldom one alone
    reply.guarded.push_back(name);
  };
  if (offer.size() < concerned) {
    for (const std::string& name : offer.names()) {
      const NodeId node = r_.cluster->FindNode(name);
      if (node != kNoNode && Guarded(pod, node, {})) guard(name);
    }
  } else {
    const auto look = [&](NodeId node) {
      const std::string& name = r_.cluster->node(node).facts.name;
      if (Guarded(pod, node, {}) && offer.Contains(name)) guard(name);
    };
    for (const NodeId node : promised) look(node);
    for (const auto& [node, pods] : going) {
      if (r_.ledger->PromisedOn(node).empty()) look(node);
    }
    for (const auto& [node, until_ms] : unheard) {
      const bool forgotten = r_.cluster->node(node).facts.name.empty();
      if (!forgotten && r_.ledger->PromisedOn(node).empty() && !going.contains(node)) look(node);
    }
  }
  if (!std::is_sorted(reply.guarded.begin(), reply.guarded.end())) {
    std::sort(reply.guarded.begin(), reply.guarded.end());
  }
  if (!reply.guarded.empty()) reply.reason = {ReasonCode::kGuarded, "the node's free capacity is promised to a gang"};
  return reply;
}

// A member beyond the minimum: where any pod could go, but not out of the domains that its gang requires (P-4).
FilterReply KubeScheduler::FilterExtra(const Pod& pod, const NodeOffer& offer) const {
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

FilterReply KubeScheduler::RefuseMember(const Pod& pod, Reason reason) {
  r_.calls->SetParked(pod, true);
  if (reason.text.rfind("gang ", 0) != 0) reason.text = absl::StrCat("gang ", pod.gang->key, ": ", reason.text);
  r_.calls->NoteSaid(pod, reason);
  return Refuse(std::move(reason));
}

// What keeps a member from being answered at all; none: nothing.
Reason KubeScheduler::CannotAsk(const Pod& pod, Step* step) {
  const Gang& gang = *pod.gang;
  if (Reason own = r_.eligibility->PodReason(pod); !own.none()) return own;
  if (gang.submitted) {
    return {ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead"};
  }
  if (gang.kept.evicting) return r_.eligibility->StructureReason(gang);
  if (pod.state == MemberState::kCommitted) return {ReasonCode::kBinding, "the pod is being bound"};
  if (r_.bindings->RetryAt(pod) > step->now_ms()) {
    return {ReasonCode::kBackoff,
            absl::StrCat("the pod could not be bound and is tried again later; ", r_.bindings->Of(pod).reason)};
  }
  if (pod.state == MemberState::kWaiting && r_.plans->Of(gang) != nullptr) {
    // A scheduler that asks anew has forgotten its earlier call.
    r_.barrier->End(pod, {ReasonCode::kGone, "the scheduler asked again"}, step);
  }
  if (pod.state == MemberState::kPending) return {};
  return {ReasonCode::kGone, "the pod has a node already or is being deleted"};
}

FilterReply KubeScheduler::FilterMember(const Pod& pod, const NodeOffer& offer, Step* step) {
  const Gang& gang = *pod.gang;
  r_.calls->NoteCame(pod);
  r_.gangs->SetStuck(pod, false);  // some node passes its scheduler's own filters
  if (Reason reason = CannotAsk(pod, step); !reason.none()) return RefuseMember(pod, std::move(reason));
  r_.claims->SettleToCome(gang, step);  // what kept it off its place may be gone (P-7)
  if (r_.plans->Of(gang) != nullptr) {
    FilterReply reply = FilterPlanned(pod, offer, step);
    if (reply.kind == FilterReply::Kind::kOneNode || !reply.reason.none()) return reply;
  }
  if (r_.eligibility->PassesOneByOne(gang)) {
    if (Reason reason = r_.queues->Check(pod); !reason.none()) {
      r_.queues->NoteRefused(gang);
      return RefuseMember(pod, std::move(reason));
    }
    FilterReply reply = FilterExtra(pod, offer);
    r_.calls->SetParked(pod, !reply.guarded.empty());
    if (!reply.guarded.empty()) r_.calls->NoteGuarded(pod);
    return reply;
  }
  if (r_.plans->Of(gang) != nullptr) {
    return RefuseMember(pod,
                        {ReasonCode::kSlotsTaken, "other members take the gang's minimum; this one comes after them"});
  }
  return RefuseMember(pod, r_.reasons->Fresh(gang, r_.reasons->Of(gang, step->now_ms())));
}

// The pod's slot, or a refusal because none of the nodes it could have is offered; neither: the plan has none for it.
FilterReply KubeScheduler::FilterPlanned(const Pod& pod, const NodeOffer& offer, Step* step) {
  const int32_t slot = ChooseSlot(pod, offer);
  const Plan& plan = *r_.plans->Of(*pod.gang);
  if (slot >= 0) {
    r_.plans->Offer(pod, slot);
    r_.calls->SetParked(pod, false);
    const NodeId node = plan.slots[static_cast<size_t>(slot)].node;
    return FilterReply{FilterReply::Kind::kOneNode, r_.cluster->node(node).facts.name, {}, {}};
  }
  const bool open = r_.plans->SlotIndex(pod) >= 0 || r_.plans->HasPlaceFor(pod);
  if (!open) return {};
  NoteAbsence(pod, offer, step);
  return RefuseMember(
      pod, {ReasonCode::kNodeNotOffered, "kube-scheduler does not offer a node that is reserved for this pod now"});
}

// P-11, K-6: the pod's own slot, else a free slot of its class, else a slot that can move to an offered node. -1: none.
int32_t KubeScheduler::ChooseSlot(const Pod& pod, const NodeOffer& offer) {
  const std::vector<Slot>& slots = r_.plans->Of(*pod.gang)->slots;
  const auto offered = [&](const Slot& slot) { return offer.Contains(r_.cluster->node(slot.node).facts.name); };
  if (const Slot* own = r_.plans->SlotOf(pod); own != nullptr && offered(*own)) return r_.plans->SlotIndex(pod);
  if (r_.plans->SlotIndex(pod) < 0 && !r_.plans->HasPlaceFor(pod)) return -1;
  NodeId last = kNoNode;  // slots of one node stand together: ask once per node
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].state != SlotState::kFree || !slots[i].Suits(pod) || slots[i].node == last) continue;
    last = slots[i].node;
    if (!offered(slots[i])) continue;
    r_.claims->FreeSlot(pod);
    return static_cast<int32_t>(i);
  }
  return MoveSlot(pod, offer);
}

int32_t KubeScheduler::MoveSlot(const Pod& pod, const NodeOffer& offer) {
  const std::vector<Slot>& slots = r_.plans->Of(*pod.gang)->slots;
  int32_t from = r_.plans->SlotIndex(pod);
  for (size_t i = 0; from < 0 && i < slots.size(); ++i) {
    if (slots[i].state == SlotState::kFree && slots[i].Suits(pod)) from = static_cast<int32_t>(i);
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

// K-6: that no reserved node was offered proves a refusal by a filter we do not model only if the offer was complete.
void KubeScheduler::NoteAbsence(const Pod& pod, const NodeOffer& offer, Step* step) {
  const Gang& gang = *pod.gang;
  const int64_t now_ms = step->now_ms();
  r_.plans->CallSoon(gang, now_ms);
  r_.gangs->Touch(gang);
  const auto offered = static_cast<int32_t>(offer.size());
  const bool only_nominated =
      offered == 1 && !pod.facts.nominated_node.empty() && offer.Contains(pod.facts.nominated_node);
  if (only_nominated || offered >= SampleSize(r_.cluster->present_nodes(), settings_.percentage_of_nodes)) return;
  const Plan& plan = *r_.plans->Of(gang);
  if (plan.committed || now_ms - plan.created_ms < kSettlingMs) return;
  if (r_.plans->NoteAbsence(gang) < kAbsencesForProof) return;
  std::vector<NodeId> nodes;
  for (const Slot& slot : plan.slots) {
    if (slot.Suits(pod) && (slot.pod == nullptr || slot.pod == &pod)) nodes.push_back(slot.node);
  }
  const int64_t until_ms = now_ms + settings_.learned_refusal_ms;
  for (const NodeId node : nodes) r_.cluster->Exclude(pod.cls, node, until_ms);
  refusals_until_ms_ = std::min(refusals_until_ms_, until_ms);
  r_.claims->Withdraw(gang, ReasonCode::kWithdrawn, "kube-scheduler refuses the reserved nodes for a member", step);
}

void KubeScheduler::ExpireRefusals(int64_t now_ms) {
  if (refusals_until_ms_ <= now_ms) refusals_until_ms_ = r_.cluster->ExpireExclusions(now_ms);
}

// Why the call is not held; none: it may be.
Reason KubeScheduler::BindRefusal(const Pod& pod, const Bind& call) const {
  if (!pod.facts.node_name.empty()) {
    return {ReasonCode::kGone, absl::StrCat("the pod is bound to node ", pod.facts.node_name, " already")};
  }
  const NodeId node = r_.cluster->FindNode(call.node);
  if (pod.state == MemberState::kCommitted || pod.state == MemberState::kWaiting) {
    if (node == r_.barrier->Of(pod).node) return {};
    return {ReasonCode::kWithdrawn, "the pod is being bound to another node"};
  }
  if (pod.state != MemberState::kPending) {
    return {ReasonCode::kGone, absl::StrCat("the pod is ", ToString(pod.state))};
  }
  if (pod.gang != nullptr && pod.gang->submitted) {
    return {ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead"};
  }
  if (node == kNoNode || !r_.cluster->node(node).present) {
    return {ReasonCode::kWithdrawn, absl::StrCat("node ", call.node, " is not known or gone")};
  }
  if (const Slot* slot = r_.plans->SlotOf(pod); slot != nullptr && slot->node != node) {
    return {ReasonCode::kWithdrawn, "the pod's reservation has moved to another node"};
  }
  return {};
}

void KubeScheduler::OnBind(const Bind& call, Step* step) {
  const Pod* pod = r_.gangs->FindPod(call.uid);
  if (pod == nullptr) {
    return step->EndHold(call.token, false,
                         {ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", call.uid, " is known; try again")});
  }
  if (!pod->facts.node_name.empty() && pod->facts.node_name == call.node) return step->EndHold(call.token, true, {});
  if (Reason refusal = BindRefusal(*pod, call); !refusal.none()) {
    return step->EndHold(call.token, false, std::move(refusal));
  }
  if (r_.bindings->Resumable(*pod)) return r_.bindings->Resume(*pod, call.token, step);
  if (pod->state != MemberState::kPending) return r_.barrier->AddHold(*pod, call.token);  // it joins the same wait
  if (pod->gang != nullptr && !r_.sources->complete()) {
    // K-13: what is kept of the gang may be of a start that was interrupted.
    r_.calls->SetParked(*pod, true);
    return step->EndHold(call.token, false, r_.sources->Reading());
  }
  const NodeId node = r_.cluster->FindNode(call.node);
  if (r_.plans->SlotIndex(*pod) >= 0) {
    r_.barrier->SetByPermit(*pod, false);
    return r_.bindings->Arrive(*pod, node, call.token, step);
  }
  if (pod->gang != nullptr && !r_.eligibility->PassesOneByOne(*pod->gang)) {
    r_.calls->SetParked(*pod, true);
    const Reason why = r_.reasons->Of(*pod->gang, step->now_ms());
    return step->EndHold(
        call.token, false,
        {ReasonCode::kWithdrawn, absl::StrCat("gang ", pod->gang->key, " has no plan for this pod now: ", why.text)});
  }
  if (pod->gang != nullptr && !r_.domains->For(*pod->gang, pod->leaf).Has(node)) {
    r_.calls->SetParked(*pod, true);
    return step->EndHold(
        call.token, false,
        {ReasonCode::kWithdrawn, absl::StrCat("node ", call.node, " is outside the domain of gang ", pod->gang->key)});
  }
  if (Reason reason = r_.queues->Check(*pod); !reason.none()) {
    r_.queues->NoteRefused(*pod->gang);
    r_.calls->SetParked(*pod, true);
    return step->EndHold(call.token, false, std::move(reason));
  }
  r_.bindings->BindLone(*pod, node, call.token, step);
}

}  // namespace muster
