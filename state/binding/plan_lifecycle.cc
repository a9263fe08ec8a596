#include "state/binding/plan_lifecycle.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr int64_t kBackoffStartMs = 1'000;
// kube-scheduler may have looked at an older picture than ours: the first time it is asked again soon.
constexpr int64_t kUnplaceableStartMs = 250;
constexpr int64_t kBackoffMaxMs = 60'000;

}  // namespace

Reason Claims::TimedOutReason(const Gang& gang) {
  return {ReasonCode::kTimedOut,
          absl::StrCat("gang ", gang.key, ": the wait time of ", WriteDuration(gang.rules.wait_time_ms),
                       " ran out before the gang could start")};
}

void Claims::Adopt(const Gang& gang, int64_t id, absl::Span<const Statement::Operation> operations,
                   int32_t lowest_priority, Step* step) {
  r_.plans->Make(gang, id, step->now_ms(), operations, r_.gangs->CandidateRuns(gang), lowest_priority,
                 /*uses_holds=*/!gang.submitted);
  r_.backlog->ForgetReason(gang.id);
  r_.gangs->SetRootCause(gang, "");
  if (gang.submitted) return AssignSlots(gang, step->now_ms());
  bool any_stuck = false;
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    r_.calls->NoteCalled(*pod, false);
    r_.barrier->ForgetArrival(*pod);
    any_stuck = any_stuck || pod->stuck;
  }
  r_.clock->Start(gang, /*by_plan=*/true, step->now_ms());
  // Who found no node before is tried again where the others are too few.
  if (any_stuck && !OthersCanTake(gang, *r_.plans->Of(gang))) r_.gangs->ForgetStuck(gang);
  r_.calls->CallMembers(gang, *r_.plans->Of(gang), *r_.plans, /*again=*/false, step);
}

// Every slot gets its pod at once: nobody has to come and ask.
void Claims::AssignSlots(const Gang& gang, int64_t now_ms) {
  const Plan& plan = *r_.plans->Of(gang);
  r_.plans->NeverCall(gang);
  FreePlaces places(plan);
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (!r_.gangs->Plannable(*pod)) continue;
    if (const int32_t place = places.Take(*pod); place >= 0) r_.plans->Offer(*pod, place);
  }
  r_.submissions->NotePlanned(gang, now_ms);
}

void Claims::Withdraw(const Gang& gang, ReasonCode code, absl::string_view why, Step* step) {
  const Reason reason{code, absl::StrCat("gang ", gang.key, ": ", why)};
  // D-10: what was promised together is given up together.
  if (!r_.plans->Of(gang)->committed) {
    const Group together = r_.plans->MatesOf(gang);
    r_.plans->SetMates(gang, {});
    for (const Gang* mate : together) {
      if (mate == &gang) continue;
      r_.plans->SetMates(*mate, {});  // it need not look back
      Withdraw(*mate, code, absl::StrCat("gang ", gang.key, " of its group: ", why), step);
    }
  }
  DropOpenSlots(gang, reason, step);
  EndPlanIfDone(gang);
  if (r_.plans->Of(gang) == nullptr) r_.clock->Stop(gang, step->now_ms());
  r_.submissions->NoteWithdrawn(gang);
  r_.gangs->Touch(gang);
}

// Gives back every slot that is not committed; members at the barrier are answered with `reason`.
void Claims::DropOpenSlots(const Gang& gang, const Reason& reason, Step* step) {
  std::vector<const Pod*> held;
  for (const Slot& slot : r_.plans->Of(gang)->slots) {
    if (slot.state == SlotState::kHeld) held.push_back(slot.pod);
  }
  for (const Pod* pod : held) r_.barrier->End(*pod, reason, step);
  const std::vector<Slot> open = r_.plans->DropOpen(gang);
  for (const Slot& slot : open) {
    if (slot.pod != nullptr) r_.calls->SetParked(*slot.pod, true);
  }
  if (!open.empty()) r_.backlog->WakeHolds();
}

void Claims::EndPlanIfDone(const Gang& gang) {
  if (!r_.plans->EndIfDone(gang)) return;
  r_.backlog->WakeHolds();
  r_.gangs->Touch(gang);
}

void Claims::FreeSlot(const Pod& pod) {
  if (!r_.plans->Release(pod)) return;
  r_.backlog->WakeHolds();
  EndPlanIfDone(*pod.gang);
  r_.gangs->Touch(*pod.gang);
}

void Claims::NoteMemberLoss(const Gang& gang, Step* step) {
  r_.gangs->Touch(gang);
  const Plan* plan = r_.plans->Of(gang);
  if (plan == nullptr) return;
  if (plan->committed) {
    // P-7: another who came may have the place of who is lost.
    if (gang.kept.room_until_ms != 0) r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);
    return;
  }
  if (gang.submitted) {
    // Its caller saw who goes where: with another member it is another plan.
    const bool lost =
        std::any_of(plan->slots.begin(), plan->slots.end(), [](const Slot& s) { return s.pod == nullptr; });
    if (lost) Withdraw(gang, ReasonCode::kWithdrawn, "a member left or changed", step);
    return;
  }
  if (OthersCanTake(gang, *plan) && r_.eligibility->PlanReason(gang, step->now_ms()).none()) {
    return r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);  // who takes its place may be parked
  }
  Withdraw(gang, ReasonCode::kWithdrawn, "a member left or changed", step);
}

void Claims::NoteUnplaceable(const Pod& pod, Step* step) {
  const Gang& gang = *pod.gang;
  const Plan* plan = r_.plans->Of(gang);
  MUSTER_CHECK(plan != nullptr && !plan->committed);
  r_.gangs->SetStuck(pod, true);
  if (r_.plans->SlotIndex(pod) < 0 && !r_.plans->HasPlaceFor(pod)) return;  // nobody waits for it
  FreeSlot(pod);
  if (OthersCanTake(gang, *plan)) return r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);
  r_.gangs->SetRootCause(gang,
                         absl::StrCat("kube-scheduler found no node for member ", pod.facts.name, ": ", OwnWords(pod)));
  const std::string why = gang.root_cause;
  const Group together = r_.plans->MatesOf(gang);
  Withdraw(gang, ReasonCode::kMemberUnschedulable, why, step);
  for (const Gang* each : together) PutBack(*each, kUnplaceableStartMs, step->now_ms());
}

bool Claims::OthersCanTake(const Gang& gang, const Plan& plan) const {
  FreePlaces places(plan);
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    if (r_.plans->SlotIndex(*pod) >= 0 || !r_.gangs->Plannable(*pod) || pod->stuck) continue;
    if (places.Take(*pod) >= 0 && places.empty()) return true;
  }
  return places.empty();
}

// The last in order of the gangs that are promised what the node does not carry any more; nullptr: none.
const Gang* Claims::LastOnNode(NodeId node, bool exceeded) const {
  const Gang* last = nullptr;
  for (const Ledger::Promise& promise : r_.ledger->PromisedOn(node)) {
    const Gang& gang = r_.gangs->gang(promise.claim);
    if (r_.plans->Of(gang) == nullptr) continue;  // it is only kept
    if (!exceeded && r_.cluster->Carries(node, promise.cls) && r_.domains->Kept(gang)) continue;
    if (last == nullptr || r_.eligibility->KeyOf(*last) < r_.eligibility->KeyOf(gang)) last = &gang;
  }
  return last;
}

void Claims::ReverifyNode(NodeId node, Step* step) {
  r_.pipeline->Reverify(node);
  while (true) {
    const bool exceeded = r_.cluster->ReservationsExceed(node);
    if (const Gang* last = LastOnNode(node, exceeded); last != nullptr) {
      Withdraw(*last, ReasonCode::kWithdrawn,
               absl::StrCat("node ", r_.cluster->node(node).facts.name, " can no longer take its members"), step);
      continue;
    }
    if (!exceeded) return;
    const Pod* nominated = r_.nominations->LastOn(node);
    MUSTER_CHECK(nominated != nullptr);
    r_.ledger->DischargePod(nominated->id, /*gained=*/true);
  }
}

void Claims::UseNode(const Pod& pod, Step* step) {
  if (pod.cls == kNoClass) return;
  const Ledger::PodCharge& charge = r_.ledger->ChargeOf(pod.id);
  const bool used = charge.node != kNoNode && charge.kind == ChargeKind::kUsed;
  if (used && r_.cluster->node(charge.node).facts.name == pod.facts.node_name) return;
  const NodeId node = r_.cluster->InternNode(pod.facts.node_name);
  r_.ledger->ChargePod(pod.id, node, pod.cls, ChargeKind::kUsed);
  NoteTaken(pod, node, step);
}

void Claims::NoteTaken(const Pod& pod, NodeId node, Step* step) {
  // What there is before all is read was there before anybody waited; a node's own pods go wherever it is; of whom
  // nobody knows what he asks for, nobody knows whom he is in the way of.
  const bool passes = r_.sources->complete() && !pod.facts.permanent && pod.cls != kNoClass;
  if (passes) r_.heads->NotePassed(r_.heads->PassedBy(pod, node), step->now_ms());
  ReverifyAround(pod, node, step);
}

void Claims::ReverifyAround(const Pod& pod, NodeId node, Step* step) {
  ReverifyNode(node, step);
  if (FeltElsewhere(pod)) ReverifyElsewhere(/*all=*/false, step);
}

bool Claims::FeltElsewhere(const Pod& pod) const {
  return pod.cls != kNoClass && r_.cluster->pod_class(pod.cls).has_neighbours &&
         !r_.cluster->neighbours().Local(pod.cls);
}

void Claims::ReverifyElsewhere(bool all, Step* step) {
  std::vector<NodeId> nodes;
  for (const NodeId node : r_.ledger->promised()) {
    const bool any = all || absl::c_any_of(r_.ledger->PromisedOn(node), [&](const Ledger::Promise& promise) {
                       return r_.cluster->pod_class(promise.cls).has_neighbours;
                     });
    if (any) nodes.push_back(node);
  }
  const NodeOrder& order = r_.cluster->order();
  absl::c_sort(nodes, [&](NodeId a, NodeId b) { return order.rank(a) < order.rank(b); });
  for (const NodeId node : nodes) ReverifyNode(node, step);
  // And elsewhere there may be room by it, where nothing else was gained. Who waits with a class that is no more is
  // about to be settled.
  r_.backlog->Wake(/*anew=*/false, [&](const WaitFor& wait_for, int32_t /*first*/) {
    return absl::c_any_of(wait_for.classes, [&](ClassId cls) {
      return r_.cluster->has_class(cls) && r_.cluster->pod_class(cls).has_neighbours;
    });
  });
}

void Claims::Requeue(const Gang& gang, int64_t now_ms) { PutBack(gang, kBackoffStartMs, now_ms); }

void Claims::PutBack(const Gang& gang, int64_t first_ms, int64_t now_ms) {
  const int32_t doublings = std::min(gang.kept.requeues, 16);
  r_.gangs->SetRequeues(gang, std::min(gang.kept.requeues + 1, 1 << 20));
  r_.gangs->SetRetry(gang, now_ms + std::min(kBackoffMaxMs, first_ms << doublings));
  r_.gangs->Touch(gang);
}

void Claims::ExpireWait(const Gang& gang, Step* step) {
  const Reason reason = TimedOutReason(gang);
  if (r_.plans->Of(gang) != nullptr) Withdraw(gang, ReasonCode::kTimedOut, "the wait time ran out", step);
  Group together = r_.eligibility->Unplaced(gang);
  if (std::find(together.begin(), together.end(), &gang) == together.end()) together.push_back(&gang);
  for (const Gang* each : together) {
    r_.barrier->EndAll(*each, reason, step);
    r_.clock->Stop(*each, step->now_ms());
    r_.gangs->SetHeld(*each, 0);
  }
  for (const Gang* each : together) {
    if (gang.rules.on_timeout == OnTimeout::kRequeue) {
      Requeue(*each, step->now_ms());
      continue;
    }
    r_.gangs->SetTimedOut(*each, true);
    MarkMembers(*each, step);
    r_.gangs->Touch(*each);
  }
}

void Claims::MarkMembers(const Gang& gang, Step* step) {
  Reason reason = r_.eligibility->StructureReason(gang);
  reason.text = absl::StrCat("gang ", gang.key, ": ", reason.text);
  for (const MemberSet& set : gang.members) {
    for (const Pod* pod : set) {
      if (pod->facts.timed_out_mark) continue;
      r_.gangs->SetTimedOutMark(*pod);
      step->Do(MarkTimedOut{RefOf(*pod)});
      r_.calls->Tell(*pod, /*warning=*/true, reason, step);
    }
  }
}

void Claims::ReleaseGroup(const Gang& gang, const Reason& reason, Step* step) {
  for (const Gang* each : r_.eligibility->GroupOf(gang)) {
    r_.barrier->EndAll(*each, reason, step);
    if (each != &gang && each->root_cause.empty()) r_.gangs->SetRootCause(*each, gang.root_cause);
    r_.gangs->Touch(*each);
  }
}

}  // namespace muster
