// What kube-scheduler reports on a pod - its gates, its condition, its annotation, its nominated node - and which pods
// it is made to try again because of that (SPEC G-3, K-3, K-5, K-7, K-14).
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/pod_lifecycle.h"

namespace muster {
namespace {

// The time in which kube-scheduler tries a pod again after its activation was observed, unless it ignores the
// activation.
constexpr int64_t kSuspicionMs = 1'000;

}  // namespace

void PodLifecycle::OnAdded(const Pod& pod, ApplyContext* ctx) {
  const bool asked = r_.activations->TakeUnknownQuery(pod.facts.uid);
  if (asked) r_.activations->MarkUnschedulable(pod);
  if (pod.state != MemberState::kPending) return;
  if (pod.gang != nullptr) {
    if (pod.facts.unschedulable.empty()) return;
    r_.activations->MarkUnschedulable(pod);  // kube-scheduler has refused it
    return r_.gangs->SetUnplaceable(pod, HasUnmodelledReason(SchedulerMessage(pod)));
  }
  const bool served = r_.gangs->Serves(pod);
  for (const std::string& ignored : pod.facts.gang.ignored) {
    if (served) r_.activations->NotifyOwner(pod, /*warning=*/true, {ReasonCode::kNotAGang, ignored}, ctx);
  }
  if (asked) r_.activations->Activate(pod, kNoNode, 0, ctx);
  if (!pod.facts.nominated_node.empty()) r_.nominations->Add(pod);
  // A lone pod waits for no gang: remove the gate, which no other component would do.
  if (pod.facts.our_gate && served) r_.activations->Activate(pod, kNoNode, 0, ctx);
}

void PodLifecycle::OnChanged(const Pod& pod, bool shape, ApplyContext* ctx) {
  EndWait(pod, {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " was changed")}, ctx);
  ReleaseSlot(pod);
  if (shape) r_.activations->RemoveGuarded(pod);  // its scheduler tries a changed pod again by itself
}

// K-14: kube-scheduler may have asked about a pod, and been refused, before Muster reads that the gate is gone. The
// next activation then patches the annotation.
void PlanLifecycle::OnGateChanged(const Pod& pod, bool was_gated, bool may_activate, ApplyContext* ctx) {
  if (pod.facts.our_gate) return;
  const bool refused = r_.activations->Of(pod).unschedulable;
  if (was_gated || !refused) r_.activations->SetActivated(pod, false);
  const bool parked = was_gated && refused && pod.state == MemberState::kPending && may_activate;
  if (!parked || !r_.gangs->Serves(pod)) return;
  if (pod.gang == nullptr) return r_.activations->Activate(pod, kNoNode, 0, ctx);
  ActivateOpenPlan(*pod.gang, ctx);
}

void PlanLifecycle::ActivateOpenPlan(const Gang& gang, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(gang);
  const bool open = plan != nullptr && !plan->committed;
  if (open) r_.activations->ActivateMembers(gang, *plan, *r_.plans, /*again=*/false, ctx);
}

void PlanLifecycle::OnUnschedulable(const Pod& pod, ApplyContext* ctx) {
  const Gang& gang = *pod.gang;
  const Plan* plan = r_.plans->Of(gang);
  const bool has_open_plan = plan != nullptr && !plan->committed;
  if (has_open_plan && r_.activations->HasObservedActivation(pod, plan->id)) {
    r_.activations->SetUnschedulable(pod, true);
    return OnUnplaceable(pod, ctx);
  }
  if (has_open_plan && r_.activations->Of(pod).plan == plan->id) {
    return r_.activations->MarkUnschedulable(pod);  // its activation is in flight
  }
  r_.activations->SetUnschedulable(pod, true);
  if (plan == nullptr && HasUnmodelledReason(SchedulerMessage(pod))) r_.gangs->SetUnplaceable(pod, true);
  ActivateOpenPlan(gang, ctx);  // kube-scheduler tried the pod before the plan existed
}

// The activation for the gang's plan has reached a suspected pod: kube-scheduler may not try it again. Sets the time
// after which it is unplaceable.
void PlanLifecycle::OnCalled(const Pod& pod, int64_t now_ms) {
  const Plan* plan = pod.gang == nullptr ? nullptr : r_.plans->Of(*pod.gang);
  if (plan == nullptr || plan->committed || !r_.activations->IsSuspected(pod, plan->id)) return;
  r_.plans->SetSuspectDeadline(*pod.gang, std::min(plan->suspect_deadline_ms, now_ms + kSuspicionMs));
  r_.gangs->Touch(*pod.gang);
}

void PodLifecycle::OnNominationChanged(const Pod& pod, bool gang_changed, bool nomination) {
  if (pod.gang != nullptr) {
    if (nomination) EndNomination(pod);  // its reconciliation adds it again
    return;
  }
  if (!gang_changed && !nomination) return;
  if (r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/true);
  if (pod.facts.nominated_node.empty() || pod.state != MemberState::kPending) {
    r_.nominations->Remove(pod);
  } else {
    r_.nominations->Add(pod);
  }
}

void PodLifecycle::EndNomination(const Pod& pod) {
  if (r_.nominations->Remove(pod) && r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/true);
}

void PodLifecycle::ActivateAfterReading(const Pod& pod, ApplyContext* ctx) {
  const bool gated = pod.facts.our_gate || pod.facts.other_gates;
  const bool asked = pod.state == MemberState::kPending || IsRestored(pod);
  if (!asked || gated || !r_.gangs->Serves(pod)) return;
  // The condition on the pod may arrive later than all other facts.
  const bool parked = !pod.facts.unschedulable.empty() || r_.activations->Of(pod).unschedulable;
  if (pod.gang != nullptr || parked) r_.activations->Activate(pod, kNoNode, 0, ctx);
  r_.activations->SetUnschedulable(pod, pod.gang != nullptr);
}

void PlanLifecycle::ReconcileExtras(const Gang& gang, ApplyContext* ctx) {
  const bool alone = r_.eligibility->SchedulesIndividually(gang);
  r_.pod_lifecycle->ReconcileNominations(gang, alone);
  if (alone) ActivateExtras(gang, ctx);
}

// K-3: the plan decides the nodes of members that are not scheduled individually.
void PodLifecycle::ReconcileNominations(const Gang& gang, bool alone) {
  if (!alone && r_.nominations->uids().empty()) return;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (pod->facts.nominated_node.empty()) continue;
    const bool nominated = r_.nominations->uids().contains(pod->facts.uid);
    if (alone && !nominated) r_.nominations->Add(*pod);
    if (!alone && nominated) EndNomination(*pod);
  }
}

// Activates members beyond the quorum, except those that would be refused again. If each reconciliation activated all
// of them, their calls would touch the gang and cause the next one (K-7).
void PlanLifecycle::ActivateExtras(const Gang& gang, ApplyContext* ctx) {
  const Plan* plan = r_.plans->Of(gang);
  const bool activates = plan != nullptr && std::min(plan->next_activation_ms, plan->reactivate_ms) != kNever;
  bool full = false;
  absl::flat_hash_map<ClassId, bool> known;  // the answer is the same for all pods of a class
  r_.activations->ActivateExtras(
      gang,
      [&](const Pod& pod) {
        if (r_.pod_lifecycle->RetryAt(pod) > 0) return false;
        // The plan activates pods that have a slot, less often the longer no scheduler offers the slot's node.
        if (activates && (r_.plans->SlotIndex(pod) >= 0 || r_.plans->HasSlotFor(pod))) return false;
        const auto [fits, fresh] = known.try_emplace(pod.cls, true);
        if (fresh) fits->second = r_.queues->Check(pod).none();
        full = full || !fits->second;
        return fits->second;
      },
      ctx);
  if (full) r_.queues->AddRefused(gang);
}

}  // namespace muster
