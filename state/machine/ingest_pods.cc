// Ingest of pods: new, changed and removed.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/machine/ingest.h"

namespace muster {
namespace {

// The time in which kube-scheduler tries a pod again after its activation was observed, unless it ignores the
// activation.
constexpr int64_t kSuspicionMs = 1'000;

constexpr char kOwnerUnread[] = "its owner is not read yet; another object of that name is known";

MemberState StateFromFacts(const PodDescription& facts) {
  if (facts.phase == PodPhase::kSucceeded) return MemberState::kSucceeded;
  if (facts.phase == PodPhase::kFailed) return MemberState::kFailed;
  if (facts.deleting) return MemberState::kTerminating;
  if (facts.node_name.empty()) return MemberState::kPending;
  return facts.phase == PodPhase::kRunning ? MemberState::kRunning : MemberState::kBound;
}

// Fills in the facts that an announcement omits and that are known already.
PodDescription FillIn(const PodDescription& known, PodDescription facts) {
  // A member of a submitted gang stays a member if its orchestrator announces it without its gang or the gang's rules.
  const bool was_submitted = known.gang.dialect == GangDialect::kApi && known.gang.declares;
  const bool omits_gang = !facts.gang.in_gang() || (facts.gang.name == known.gang.name && !facts.gang.declares);
  if (was_submitted && omits_gang) facts.gang = known.gang;
  facts.timed_out_mark = facts.timed_out_mark || known.timed_out_mark;  // Muster's own mark may not be written yet
  if (!known.node_name.empty() && facts.node_name.empty()) facts.node_name = known.node_name;
  // An announcement of a running pod may omit its requests.
  const bool omits_requests = facts.shape->requests.empty() && facts.invalid.empty();
  if (!known.node_name.empty() && omits_requests && !known.shape->requests.empty()) facts.shape = known.shape;
  return facts;
}

}  // namespace

struct Ingest::Change {
  bool gang = false;
  bool declaration = false;
  bool shape = false;
  bool priority = false;
  bool nomination = false;
  bool unschedulable = false;
  bool called = false;
  bool subgroup = false;

  Change(const PodDescription& before, const PodDescription& now)
      : gang(before.gang.name != now.gang.name),
        declaration(before.gang.declares != now.gang.declares || before.gang.dialect != now.gang.dialect ||
                    before.gang.key_dialect != now.gang.key_dialect ||
                    !(before.gang.declaration == now.gang.declaration)),
        shape((!before.shape.IsSameCopy(now.shape) && before.shape->Key() != now.shape->Key()) ||
              before.invalid != now.invalid),
        priority(before.priority != now.priority),
        nomination(before.nominated_node != now.nominated_node),
        unschedulable(before.unschedulable != now.unschedulable),
        called(before.activation_mark != now.activation_mark),
        subgroup(before.gang.subgroup != now.gang.subgroup) {}
};

absl::Status Ingest::PutPod(const PodDescription& facts, bool submitted, ApplyContext* ctx) {
  if (facts.uid.empty() || facts.name.empty()) {
    r_.refused->Note(FactKind::kPod);
    return absl::InvalidArgumentError("pod: metadata.uid and metadata.name must not be empty");
  }
  const OwnerMatch owner = MatchOwner(facts);
  const bool former = owner == OwnerMatch::kFormer && !facts.deleting;
  const bool unread = owner == OwnerMatch::kUnread && facts.node_name.empty() && facts.invalid.empty();
  if (former || unread) {
    PodDescription doubted = facts;
    doubted.deleting = doubted.deleting || former;
    if (unread) doubted.invalid = kOwnerUnread;
    return PutPod(doubted, submitted, ctx);
  }
  if (!facts.gang.in_gang() && !facts.shape->preferences.empty()) {
    PodDescription of_no_gang = facts;
    of_no_gang.shape.Mutable().preferences = Preferences();
    return PutPod(of_no_gang, submitted, ctx);
  }
  const Pod* known = r_.gangs->FindPod(facts.uid);
  if (known == nullptr) {
    Learn(facts.shape, ctx);
    AddPod(facts, submitted, ctx);
    return absl::OkStatus();
  }
  if (known->facts.name != facts.name || known->facts.name_space != facts.name_space) {
    r_.refused->Note(FactKind::kPod);
    return absl::InvalidArgumentError(absl::StrCat("pod uid ", facts.uid, ": is ", known->facts.name_space, "/",
                                                   known->facts.name, ", announced again as ", facts.name_space, "/",
                                                   facts.name, "; a UID belongs to one pod"));
  }
  Learn(facts.shape, ctx);
  UpdatePod(*known, FillIn(known->facts, facts), ctx);
  return absl::OkStatus();
}

// D-7: a new owner may have the name of a deleted one while pods of the old owner still exist. These pods count as
// being deleted, announced so or not, and are not members of the new owner's gang. Pods of an owner that is not read
// yet wait for it, because the owner declares their number.
Ingest::OwnerMatch Ingest::MatchOwner(const PodDescription& facts) const {
  const GangMembership& membership = facts.gang;
  if (membership.dialect != GangDialect::kOwner || membership.owner_uid.empty()) return OwnerMatch::kKnown;
  const Gang* gang = r_.gangs->FindGang(absl::StrCat(facts.name_space, "/", membership.name));
  if (gang == nullptr) return OwnerMatch::kKnown;
  const auto object = gang->objects.find(GangDialect::kOwner);
  if (object == gang->objects.end() || object->second.uid.empty()) return OwnerMatch::kKnown;
  if (object->second.uid == membership.owner_uid) return OwnerMatch::kKnown;
  if (facts.created_ms != object->second.created_ms) {
    return facts.created_ms < object->second.created_ms ? OwnerMatch::kFormer : OwnerMatch::kUnread;
  }
  // The API server reports times in seconds, so equal times decide nothing. A pod with a node is taken for the older
  // one.
  return facts.node_name.empty() ? OwnerMatch::kUnread : OwnerMatch::kFormer;
}

// The gang's owner was read or replaced: announces again the members whose match changed.
void Ingest::OnOwnerChanged(const Gang& gang, ApplyContext* ctx) {
  std::vector<const Pod*> others;
  for (const MemberSet& set : gang.members) {
    for (const Pod* pod : set) {
      const OwnerMatch owner = MatchOwner(pod->facts);
      const bool unread = pod->facts.invalid == kOwnerUnread;
      const bool gone = owner == OwnerMatch::kFormer && !pod->facts.deleting;
      const bool is_to_be = owner == OwnerMatch::kUnread && pod->facts.node_name.empty();
      if (gone || unread != is_to_be) others.push_back(pod);
    }
  }
  for (const Pod* pod : others) {
    PodDescription facts = pod->facts;
    if (facts.invalid == kOwnerUnread) facts.invalid.clear();
    PutPod(facts, pod->submitted, ctx).IgnoreError();
  }
}

// The pod affinity of a new template may select by labels that no selector used before. Pods that were alike may then
// differ: they get new classes.
void Ingest::Learn(const PodTemplate& shape, ApplyContext* ctx) {
  if ((shape.pod_affinity.empty() && shape.preferences.pod_affinity.empty()) || !r_.cluster->Learn(shape)) return;
  Reclassify(nullptr, ctx);
}

void Ingest::PutNamespace(const std::string& name, const Labels* labels, ApplyContext* ctx) {
  if (!r_.cluster->SetNamespace(name, labels)) return;
  if (r_.sources->complete()) Reclassify(&name, ctx);  // else Complete reclassifies all pods at once
}

// Gives new classes to the pods whose label identity changed, in one namespace or in all (nullptr).
void Ingest::Reclassify(const std::string* name_space, ApplyContext* ctx) {
  bool any = false;
  for (PodId id = 0; id < r_.gangs->pod_limit(); ++id) {
    const Pod* pod = r_.gangs->PodAt(id);
    if (pod == nullptr || pod->cls == kNoClass) continue;
    if (name_space != nullptr && pod->facts.name_space != *name_space) continue;
    const LabelIdentity label_identity = r_.cluster->LabelIdentityOf(pod->facts.name_space, pod->facts.labels);
    if (label_identity == r_.cluster->pod_class(pod->cls).label_identity) continue;
    r_.pod_lifecycle->EndWait(*pod, Reason{ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " was changed")},
                              ctx);
    r_.pod_lifecycle->ReleaseSlot(*pod);
    ApplyFacts(*pod, pod->facts, /*shape_changed=*/true, ctx);
    if (pod->gang != nullptr) r_.plan_lifecycle->OnMemberLost(*pod->gang, ctx);
    any = true;
  }
  if (any) r_.plan_lifecycle->WithdrawBrokenPlansElsewhere(/*all=*/false, ctx);
}

ClassId Ingest::AcquireClass(PodDescription* facts) {
  if (!facts->invalid.empty()) return kNoClass;
  const absl::StatusOr<ClassId> cls =
      r_.cluster->AcquireClass(facts->shape, r_.cluster->LabelIdentityOf(facts->name_space, facts->labels));
  if (cls.ok()) {
    facts->shape = r_.cluster->pod_class(*cls).shape;  // one copy per class
    return *cls;
  }
  facts->invalid = std::string(cls.status().message());
  return kNoClass;
}

void Ingest::AddPod(PodDescription facts, bool submitted, ApplyContext* ctx) {
  // Share the empty declaration instead of a copy of its own.
  if (facts.gang.declaration == Shared<GangDeclaration>()) facts.gang.declaration = {};
  const ClassId cls = AcquireClass(&facts);
  const MemberState state = StateFromFacts(facts);
  const Pod& pod = r_.gangs->AddPod(std::move(facts), cls, state, submitted);
  const bool asked = r_.activations->TakeUnknownQuery(pod.facts.uid);
  if (asked) r_.activations->MarkUnschedulable(pod);
  JoinGang(pod, ctx);
  if (pod.gang != nullptr && pod.state == MemberState::kPending && !pod.facts.unschedulable.empty()) {
    r_.activations->MarkUnschedulable(pod);  // kube-scheduler has refused it
    r_.gangs->SetUnplaceable(pod, HasUnmodelledReason(SchedulerMessage(pod)));
  }
  const bool lone = pod.gang == nullptr && pod.state == MemberState::kPending;
  if (lone && r_.gangs->Serves(pod)) {
    for (const std::string& ignored : pod.facts.gang.ignored) {
      r_.activations->NotifyOwner(pod, /*warning=*/true, {ReasonCode::kNotAGang, ignored}, ctx);
    }
  }
  if (asked && lone) r_.activations->Activate(pod, kNoNode, 0, ctx);
  if (pod.on_node()) r_.plan_lifecycle->ChargeBoundPod(pod, ctx);
  OnTermination(pod, ctx);
  if (lone && !pod.facts.nominated_node.empty()) r_.nominations->Add(pod);
  // A lone pod waits for no gang: remove the gate, which no other component would do.
  if (lone && pod.facts.our_gate && r_.gangs->Serves(pod)) r_.activations->Activate(pod, kNoNode, 0, ctx);
}

void Ingest::JoinGang(const Pod& pod, ApplyContext* ctx) {
  if (!pod.facts.gang.in_gang()) return;
  const Gang& gang = InternGang(pod.facts.name_space, pod.facts.gang.name, pod.facts.created_ms, ctx->now_ms());
  r_.gangs->Join(pod, gang);
  r_.queues->Join(pod);
  if (r_.gangs->Adopt(pod)) OnRulesChanged(gang);
  if (pod.facts.timed_out_mark) r_.gangs->SetTimedOut(gang, true);
  if (pod.state == MemberState::kPending) ScheduleNotification(gang, ctx->now_ms());
  const Plan* plan = r_.plans->Of(gang);
  if (plan != nullptr && !plan->committed && pod.facts.priority > plan->lowest_priority && r_.gangs->Plannable(pod)) {
    // D-11: the driver is placed before its executors, even if it was created after them.
    r_.plan_lifecycle->Withdraw(gang, ReasonCode::kWithdrawn,
                                absl::StrCat("member ", pod.facts.name, " of higher priority arrived"), ctx);
  }
  r_.gangs->Touch(gang);
}

// The pod's declaration of its gang ends: the next declaring member decides the rules (D-9).
void Ingest::LeaveGang(const Pod& pod) {
  const Gang* gang = pod.gang;
  r_.gangs->Leave(pod);
  r_.queues->Leave(pod);
  if (gang == nullptr || gang->declared_by != pod.facts.uid || gang->children() == 0) return;
  if (!r_.gangs->TransferDeclaration(*gang)) Redeclare(*gang);
}

void Ingest::UpdatePod(const Pod& pod, PodDescription facts, ApplyContext* ctx) {
  Change change(pod.facts, facts);
  // Only labels that some selector names are part of the label identity.
  const LabelIdentity label_identity = r_.cluster->LabelIdentityOf(facts.name_space, facts.labels);
  change.shape =
      change.shape || (pod.cls != kNoClass && !(label_identity == r_.cluster->pod_class(pod.cls).label_identity));
  if (!change.declaration) facts.gang.declaration = pod.facts.gang.declaration;
  const bool was_gated = pod.facts.our_gate;
  if (change.gang && r_.pod_lifecycle->IsRestored(pod))
    r_.bindings->ReleaseRestored(pod, ctx);  // a plan decides its node
  if (change.shape || change.gang || change.priority || change.subgroup) {
    r_.pod_lifecycle->EndWait(pod, Reason{ReasonCode::kGone, absl::StrCat("pod ", facts.name, " was changed")}, ctx);
    r_.pod_lifecycle->ReleaseSlot(pod);
  }
  ApplyFacts(pod, std::move(facts), change.shape, ctx);
  MoveToGang(pod, change, ctx);
  OnGateChanged(pod, was_gated, ctx);
  OnPodStateChanged(pod, ctx);
  if (pod.on_node()) r_.plan_lifecycle->ChargeBoundPod(pod, ctx);
  OnTermination(pod, ctx);
  if (pod.gang == nullptr && (change.gang || change.nomination)) OnNominationChanged(pod);
  const bool elsewhere = pod.gang != nullptr && change.nomination && r_.nominations->Remove(pod);
  if (elsewhere && r_.ledger->Reserves(pod.id))
    r_.ledger->DischargePod(pod.id, /*gained=*/true);  // the reconciler adds it again
  if (change.unschedulable && !pod.facts.unschedulable.empty()) OnUnschedulable(pod, ctx);
  if (change.called) MarkObserved(pod, ctx->now_ms());
}

// K-14: kube-scheduler may have asked about a pod, and been refused, before Muster reads that the gate is gone. The
// next activation then patches the annotation.
void Ingest::OnGateChanged(const Pod& pod, bool was_gated, ApplyContext* ctx) {
  if (pod.facts.our_gate) return;
  const bool refused = r_.activations->Of(pod).unschedulable;
  if (was_gated || !refused) r_.activations->SetActivated(pod, false);
  const bool parked = was_gated && refused && pod.state == MemberState::kPending && r_.sources->complete();
  if (!parked || !r_.gangs->Serves(pod)) return;
  if (pod.gang == nullptr) return r_.activations->Activate(pod, kNoNode, 0, ctx);
  const Plan* plan = r_.plans->Of(*pod.gang);
  const bool has_open_plan = plan != nullptr && !plan->committed;
  if (has_open_plan) r_.activations->ActivateMembers(*pod.gang, *plan, *r_.plans, /*again=*/false, ctx);
}

// Sets the pod's facts. Its charge, if any, follows its new class.
void Ingest::ApplyFacts(const Pod& pod, PodDescription facts, bool shape_changed, ApplyContext* ctx) {
  if (!shape_changed) {
    facts.shape = pod.facts.shape;
    return r_.gangs->SetFacts(pod, std::move(facts), pod.cls);
  }
  r_.activations->RemoveGuarded(pod);  // its scheduler tries a changed pod again by itself
  const Ledger::PodCharge charge = r_.ledger->ChargeOf(pod.id);
  // By name: a removed node loses its id with its last charge.
  const std::string charged = charge.node == kNoNode ? "" : r_.cluster->node(charge.node).facts.name;
  const bool affects_others = charge.node != kNoNode && r_.plan_lifecycle->AffectsOtherNodes(pod);
  r_.ledger->DischargePod(pod.id, /*gained=*/true);
  if (pod.cls != kNoClass) r_.cluster->ReleaseClass(pod.cls);
  const ClassId cls = AcquireClass(&facts);
  r_.gangs->SetFacts(pod, std::move(facts), cls);
  // A committed pod with unreadable requests has not been charged yet.
  const bool first = charged.empty() && pod.state == MemberState::kCommitted;
  if (cls != kNoClass && (!charged.empty() || first)) {
    const NodeId node = r_.cluster->InternNode(first ? r_.pod_lifecycle->CommittedNode(pod) : charged);
    r_.ledger->ChargePod(pod.id, node, cls, first ? ChargeKind::kUsed : charge.kind);
    if (pod.state == MemberState::kCommitted) r_.ledger->MarkInFlight(pod.id);
    r_.plan_lifecycle->WithdrawBrokenPlansNear(pod, node, ctx);
  }
  if (affects_others) r_.plan_lifecycle->WithdrawBrokenPlansElsewhere(/*all=*/false, ctx);
}

void Ingest::MoveToGang(const Pod& pod, const Change& change, ApplyContext* ctx) {
  const Gang* gang = pod.gang;
  if (change.gang) {
    if (r_.nominations->Remove(pod) && r_.ledger->Reserves(pod.id)) {
      r_.ledger->DischargePod(pod.id, /*gained=*/true);  // the plan decides what a member of a gang may use
    }
    LeaveGang(pod);
    if (gang != nullptr) r_.plan_lifecycle->OnMemberLost(*gang, ctx);
    JoinGang(pod, ctx);
    return;
  }
  if (gang == nullptr) return;
  if (pod.facts.timed_out_mark) r_.gangs->SetTimedOut(*gang, true);
  r_.gangs->Touch(*gang);
  if (change.declaration) Redeclare(*gang);
  if (change.shape || change.priority || change.subgroup) r_.plan_lifecycle->OnMemberLost(*gang, ctx);
}

void Ingest::OnPodStateChanged(const Pod& pod, ApplyContext* ctx) {
  const MemberState now = StateFromFacts(pod.facts);
  const bool in_flight = pod.state == MemberState::kCommitted || pod.state == MemberState::kWaiting;
  if (now == MemberState::kPending && in_flight) return;
  if (now != pod.state) r_.bindings->OnStateChanged(pod, now, ctx);
}

// P-8: plans that rely on the capacity of a terminating pod are withdrawn if the pod does not terminate after all.
void Ingest::OnTermination(const Pod& pod, ApplyContext* ctx) {
  if (!r_.future_reservations->TrackTerminating(pod, ctx->now_ms())) return;
  const NodeId node = r_.ledger->ChargeOf(pod.id).node;
  if (node != kNoNode) r_.plan_lifecycle->WithdrawBrokenPlans(node, ctx);
}

void Ingest::OnNominationChanged(const Pod& pod) {
  if (r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/true);
  if (pod.facts.nominated_node.empty() || pod.state != MemberState::kPending) {
    r_.nominations->Remove(pod);
  } else {
    r_.nominations->Add(pod);
  }
}

// G-3, K-7: kube-scheduler reports that no node can take this pod, for a reason that is not Muster's.
void Ingest::OnUnschedulable(const Pod& pod, ApplyContext* ctx) {
  // A message about a failed bind call is no such reason.
  if (r_.pod_lifecycle->IsRestored(pod) && IsForeignMessage(pod) && IsFitMessage(pod))
    r_.bindings->ReleaseRestored(pod, ctx);
  if (pod.gang == nullptr || pod.state != MemberState::kPending || !IsForeignMessage(pod)) return;
  const Gang& gang = *pod.gang;
  ScheduleNotification(gang, ctx->now_ms());
  const Plan* plan = r_.plans->Of(gang);
  const bool has_open_plan = plan != nullptr && !plan->committed;
  if (has_open_plan && r_.activations->HasObservedActivation(pod, plan->id)) {
    r_.activations->SetUnschedulable(pod, true);
    return r_.plan_lifecycle->OnUnplaceable(pod, ctx);
  }
  if (has_open_plan && r_.activations->Of(pod).plan == plan->id) {
    return r_.activations->MarkUnschedulable(pod);  // its activation is in flight
  }
  r_.activations->SetUnschedulable(pod, true);
  if (plan == nullptr && HasUnmodelledReason(SchedulerMessage(pod))) r_.gangs->SetUnplaceable(pod, true);
  // kube-scheduler tried the pod before the plan existed.
  if (has_open_plan) r_.activations->ActivateMembers(gang, *plan, *r_.plans, /*again=*/false, ctx);
}

// The activation for the gang's plan has reached a suspected pod: kube-scheduler may not try it again. Sets the time
// after which it is unplaceable.
void Ingest::MarkObserved(const Pod& pod, int64_t now_ms) {
  const Plan* plan = pod.gang == nullptr ? nullptr : r_.plans->Of(*pod.gang);
  if (plan == nullptr || plan->committed || !r_.activations->IsSuspected(pod, plan->id)) return;
  r_.plans->SetSuspectDeadline(*pod.gang, std::min(plan->suspect_deadline_ms, now_ms + kSuspicionMs));
  r_.gangs->Touch(*pod.gang);
}

// Schedules the events that report to the members' owners why the gang waits.
void Ingest::ScheduleNotification(const Gang& gang, int64_t now_ms) {
  if (!r_.sources->complete()) return;  // Complete touches every gang
  r_.gangs->SetNotify(gang, std::min(gang.notify_at_ms, now_ms + Gangs::kNotifyDelayMs));
  r_.gangs->Touch(gang);
}

void Ingest::RemovePod(const std::string& uid, ApplyContext* ctx) {
  const Pod* known = r_.gangs->FindPod(uid);
  if (known == nullptr) return;
  const Pod& pod = *known;
  const Gang* gang = pod.gang;
  const bool was_active = pod.active();
  const bool affects_others = r_.ledger->ChargeOf(pod.id).node != kNoNode && r_.plan_lifecycle->AffectsOtherNodes(pod);
  r_.pod_lifecycle->Apply(
      pod, {PodEvent::kDeleted, {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " was deleted")}}, ctx);
  r_.future_reservations->Remove(pod);
  LeaveGang(pod);
  r_.nominations->Remove(pod);
  r_.activations->Remove(pod);
  r_.pod_lifecycle->Remove(pod);
  r_.deadlines->Remove(pod.id, pod.facts.uid);
  if (gang != nullptr) {
    r_.plan_lifecycle->OnMemberLost(*gang, ctx);
    if (was_active) r_.repair->OnActiveMemberLost(*gang, pod, ctx);
  }
  if (affects_others) r_.plan_lifecycle->WithdrawBrokenPlansElsewhere(/*all=*/false, ctx);
  if (pod.cls != kNoClass) r_.cluster->ReleaseClass(pod.cls);
  r_.facts->ErasePod(pod.facts.uid, ctx);
  r_.gangs->RemovePod(pod);
}

}  // namespace muster
