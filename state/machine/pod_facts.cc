#include "state/machine/pod_facts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/binding/activations.h"
#include "state/binding/bindings.h"
#include "state/binding/broken_plans.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/pod_lifecycle.h"
#include "state/gangs/gangs.h"
#include "state/gangs/sources.h"
#include "state/machine/fact_recorder.h"
#include "state/queueing/queues.h"
#include "state/scheduling/planning.h"

namespace muster {

// --- GangFacts ---

const Gang& GangFacts::Intern(absl::string_view name_space, absl::string_view name, int64_t created_ms,
                              int64_t now_ms) {
  const auto [gang, fresh] = r_.gangs->Intern(name_space, name, created_ms, now_ms);
  if (!fresh) return *gang;
  if (const auto restored = r_.restored->ClaimGang(gang->key); restored.has_value())
    r_.gangs->Restore(*gang, *restored);
  return *gang;
}

void GangFacts::Redeclare(const Gang& gang) {
  r_.gangs->Redeclare(gang);
  OnRulesChanged(gang);
}

// P-7: acquires the classes of the gang's future members and releases the previous ones.
void GangFacts::RetainFutureClasses(const Gang& gang) {
  const SubgroupTree& tree = gang.rules.tree;
  if (!tree.ahead && gang.future_classes.empty()) return;
  std::vector<ClassId> classes(static_cast<size_t>(tree.leaves), kNoClass);
  for (const Subgroup& node : tree.nodes) {
    if (!node.future_template.has_value()) continue;
    const absl::StatusOr<ClassId> cls = r_.cluster->AcquireClass(*node.future_template);
    MUSTER_CHECK(cls.ok());  // ParseSubgroups has checked the requests
    classes[static_cast<size_t>(node.leaf)] = *cls;
  }
  for (const ClassId before : r_.gangs->SetFutureClasses(gang, std::move(classes))) {
    if (before != kNoClass) r_.cluster->ReleaseClass(before);
  }
}

void GangFacts::OnRulesChanged(const Gang& gang) {
  RetainFutureClasses(gang);
  if (!r_.backlog->why(gang.id).none()) r_.planning->LeaveBucket(gang);
  r_.backlog->ClearReason(gang.id);
  // Its domains may have changed: pods that they refused are activated like all refused pods (P-4, K-7).
  for (const Pod* pod : gang.in(MemberState::kPending)) r_.activations->RemoveGuarded(*pod);
  r_.gangs->Touch(gang);
}

void GangFacts::Join(const Pod& pod, ApplyContext* ctx) {
  if (!pod.facts.gang.in_gang()) return;
  const Gang& gang = Intern(pod.facts.name_space, pod.facts.gang.name, pod.facts.created_ms, ctx->now_ms());
  r_.gangs->Join(pod, gang);
  r_.queues->Join(pod);
  if (r_.gangs->Adopt(pod)) OnRulesChanged(gang);
  if (pod.facts.timed_out_mark) r_.gangs->SetTimedOut(gang, true);
  r_.plan_lifecycle->OnMemberJoined(pod, ctx);
  r_.gangs->Touch(gang);
}

void GangFacts::Leave(const Pod& pod) {
  const Gang* gang = pod.gang;
  r_.gangs->Leave(pod);
  r_.queues->Leave(pod);
  if (gang == nullptr || gang->declared_by != pod.facts.uid || gang->children() == 0) return;
  if (!r_.gangs->TransferDeclaration(*gang)) Redeclare(*gang);
}

// --- PodFacts ---

namespace {

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

enum class OwnerMatch : uint8_t {
  kKnown,   // the pod's owner is the known one, or the pod has no owner
  kFormer,  // the pod's owner was deleted: the known owner was created after the pod
  kUnread,  // the pod's owner is not read yet: the known owner was created before the pod
};

// D-7: a new owner may have the name of a deleted one while pods of the deleted owner still exist. These pods count as
// being deleted, whatever their announcement says, and are not members of the new owner's gang. Pods of an owner that
// is not read yet wait until it is read, because the owner declares how many there are.
OwnerMatch MatchOwner(const PodDescription& facts, const Gangs& gangs) {
  const GangMembership& membership = facts.gang;
  if (membership.dialect != GangDialect::kOwner || membership.owner_uid.empty()) return OwnerMatch::kKnown;
  const Gang* gang = gangs.FindGang(absl::StrCat(facts.name_space, "/", membership.name));
  if (gang == nullptr) return OwnerMatch::kKnown;
  const auto object = gang->objects.find(GangDialect::kOwner);
  if (object == gang->objects.end() || object->second.uid.empty()) return OwnerMatch::kKnown;
  if (object->second.uid == membership.owner_uid) return OwnerMatch::kKnown;
  if (facts.created_ms != object->second.created_ms) {
    return facts.created_ms < object->second.created_ms ? OwnerMatch::kFormer : OwnerMatch::kUnread;
  }
  // Both were created in the same second, the unit of the API server: a pod with a node is assumed to be older than the
  // known owner.
  return facts.node_name.empty() ? OwnerMatch::kUnread : OwnerMatch::kFormer;
}

}  // namespace

// Which facts differ between two announcements. `before` and `now` are compared at construction only.
struct PodFacts::Change {
  const PodDescription& before;
  const PodDescription& now;

  bool gang = before.gang.name != now.gang.name;
  bool declaration = before.gang.declares != now.gang.declares || before.gang.dialect != now.gang.dialect ||
                     before.gang.key_dialect != now.gang.key_dialect ||
                     !(before.gang.declaration == now.gang.declaration);
  bool shape =
      (!before.shape.IsSameCopy(now.shape) && before.shape->Key() != now.shape->Key()) || before.invalid != now.invalid;
  bool priority = before.priority != now.priority;
  bool nomination = before.nominated_node != now.nominated_node;
  bool unschedulable = before.unschedulable != now.unschedulable;
  bool activation_mark = before.activation_mark != now.activation_mark;
  bool subgroup = before.gang.subgroup != now.gang.subgroup;
};

absl::Status PodFacts::Put(PodDescription facts, bool submitted, ApplyContext* ctx) {
  if (facts.uid.empty() || facts.name.empty()) {
    return absl::InvalidArgumentError("pod: metadata.uid and metadata.name must not be empty");
  }
  const OwnerMatch owner = MatchOwner(facts, *r_.gangs);
  if (owner == OwnerMatch::kFormer) facts.deleting = true;
  if (owner == OwnerMatch::kUnread && facts.node_name.empty() && facts.invalid.empty()) facts.invalid = kOwnerUnread;
  if (!facts.gang.in_gang() && !facts.shape->preferences.empty()) facts.shape.Mutable().preferences = Preferences();
  const Pod* known = r_.gangs->FindPod(facts.uid);
  if (known == nullptr) {
    Learn(facts.shape, ctx);
    Add(std::move(facts), submitted, ctx);
    return absl::OkStatus();
  }
  if (known->facts.name != facts.name || known->facts.name_space != facts.name_space) {
    return absl::InvalidArgumentError(absl::StrCat("pod uid ", facts.uid, ": is ", known->facts.name_space, "/",
                                                   known->facts.name, ", announced again as ", facts.name_space, "/",
                                                   facts.name, "; a UID belongs to one pod"));
  }
  Learn(facts.shape, ctx);
  Update(*known, FillIn(known->facts, std::move(facts)), ctx);
  return absl::OkStatus();
}

void PodFacts::OnOwnerChanged(const Gang& gang, ApplyContext* ctx) {
  std::vector<const Pod*> affected;
  for (const Pod* pod : gang.AllMembers()) {
    const OwnerMatch owner = MatchOwner(pod->facts, *r_.gangs);
    const bool unread = pod->facts.invalid == kOwnerUnread;
    const bool gone = owner == OwnerMatch::kFormer && !pod->facts.deleting;
    const bool waits = owner == OwnerMatch::kUnread && pod->facts.node_name.empty();
    if (gone || unread != waits) affected.push_back(pod);
  }
  for (const Pod* pod : affected) {
    PodDescription facts = pod->facts;
    if (facts.invalid == kOwnerUnread) facts.invalid.clear();
    Put(std::move(facts), pod->submitted, ctx).IgnoreError();
  }
}

void PodFacts::Add(PodDescription facts, bool submitted, ApplyContext* ctx) {
  // All pods without a declaration share one empty declaration.
  if (facts.gang.declaration == Shared<GangDeclaration>()) facts.gang.declaration = {};
  const ClassId cls = AcquireClass(&facts);
  const MemberState state = StateFromFacts(facts);
  const Pod& pod = r_.gangs->AddPod(std::move(facts), cls, state, submitted);
  JoinGang(pod, ctx);
  r_.pod_lifecycle->OnAdded(pod, ctx);
  if (pod.on_node()) r_.bindings->ChargeBoundPod(pod, ctx);
  r_.broken_plans->TrackTermination(pod, ctx);
}

void PodFacts::JoinGang(const Pod& pod, ApplyContext* ctx) {
  r_.gang_facts->Join(pod, ctx);
  if (pod.gang != nullptr && pod.state == MemberState::kPending) ScheduleNotification(*pod.gang, ctx->now_ms());
}

void PodFacts::Update(const Pod& pod, PodDescription facts, ApplyContext* ctx) {
  Change change{pod.facts, facts};
  change.shape = change.shape || ChangesIdentity(pod, facts);
  if (!change.declaration) facts.gang.declaration = pod.facts.gang.declaration;
  const bool was_gated = pod.facts.our_gate;
  if (change.gang && r_.pod_lifecycle->IsRestored(pod))
    r_.bindings->ReleaseRestored(pod, ctx);  // a plan decides its node
  if (change.shape || change.gang || change.priority || change.subgroup) {
    r_.pod_lifecycle->OnChanged(pod, change.shape, ctx);
  }
  SetFacts(pod, std::move(facts), change.shape, ctx);
  MoveToGang(pod, change, ctx);
  r_.plan_lifecycle->OnGateChanged(pod, was_gated, r_.sources->complete(), ctx);
  const MemberState now = StateFromFacts(pod.facts);
  const bool in_flight = pod.state == MemberState::kCommitted || pod.state == MemberState::kWaiting;
  const bool stays = now == pod.state || (now == MemberState::kPending && in_flight);
  if (!stays) r_.bindings->OnStateChanged(pod, now, ctx);
  if (pod.on_node()) r_.bindings->ChargeBoundPod(pod, ctx);
  r_.broken_plans->TrackTermination(pod, ctx);
  r_.pod_lifecycle->OnNominationChanged(pod, change.gang, change.nomination);
  if (change.unschedulable && !pod.facts.unschedulable.empty()) OnUnschedulable(pod, ctx);
  if (change.activation_mark) r_.plan_lifecycle->OnActivationMarkChanged(pod, ctx->now_ms());
}

void PodFacts::MoveToGang(const Pod& pod, const Change& change, ApplyContext* ctx) {
  const Gang* gang = pod.gang;
  if (change.gang) {
    r_.pod_lifecycle->EndNomination(pod);
    r_.gang_facts->Leave(pod);
    if (gang != nullptr) r_.plan_lifecycle->OnMemberLost(*gang, ctx);
    return JoinGang(pod, ctx);
  }
  if (gang == nullptr) return;
  if (pod.facts.timed_out_mark) r_.gangs->SetTimedOut(*gang, true);
  r_.gangs->Touch(*gang);
  if (change.declaration) r_.gang_facts->Redeclare(*gang);
  if (change.shape || change.priority || change.subgroup) r_.plan_lifecycle->OnMemberLost(*gang, ctx);
}

// G-3, K-7: kube-scheduler reports the pod unschedulable for a reason that is not Muster's.
void PodFacts::OnUnschedulable(const Pod& pod, ApplyContext* ctx) {
  // IsFitMessage: a failed bind call is no reason to release the node.
  if (r_.pod_lifecycle->IsRestored(pod) && IsForeignMessage(pod) && IsFitMessage(pod))
    r_.bindings->ReleaseRestored(pod, ctx);
  if (pod.gang == nullptr || pod.state != MemberState::kPending || !IsForeignMessage(pod)) return;
  ScheduleNotification(*pod.gang, ctx->now_ms());
  r_.plan_lifecycle->OnUnschedulable(pod, ctx);
}

// Schedules the events that report to the members' owners why the gang waits.
void PodFacts::ScheduleNotification(const Gang& gang, int64_t now_ms) {
  if (!r_.sources->complete()) return;  // the end of the reading touches every gang
  r_.gangs->SetNotify(gang, std::min(gang.notify_at_ms, now_ms + Gangs::kNotifyDelayMs));
  r_.gangs->Touch(gang);
}

void PodFacts::Remove(const std::string& uid, ApplyContext* ctx) {
  const Pod* known = r_.gangs->FindPod(uid);
  if (known == nullptr) return;
  const Pod& pod = *known;
  const Gang* gang = pod.gang;
  const bool was_active = pod.active();
  const bool affects_others = r_.broken_plans->AffectsOtherNodes(pod);
  r_.pod_lifecycle->Apply(
      pod, {PodEvent::kEnded, {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " was deleted")}}, ctx);
  r_.gang_facts->Leave(pod);
  r_.pod_lifecycle->Remove(pod);
  if (gang != nullptr) r_.bindings->OnMemberLost(*gang, pod, was_active, ctx);
  if (affects_others) r_.broken_plans->WithdrawElsewhere(/*all=*/false, ctx);
  if (pod.cls != kNoClass) r_.cluster->ReleaseClass(pod.cls);
  r_.recorder->ErasePod(pod.facts.uid, ctx);
  r_.gangs->RemovePod(pod);
}

// --- PodFacts: the class of each pod, which its requests, constraints and labels decide ---

void PodFacts::Learn(const PodTemplate& shape, ApplyContext* ctx) {
  if ((shape.pod_affinity.empty() && shape.preferences.pod_affinity.empty()) || !r_.cluster->Learn(shape)) return;
  Reclassify(nullptr, ctx);
}

void PodFacts::PutNamespace(const std::string& name, const Labels* labels, ApplyContext* ctx) {
  if (!r_.cluster->SetNamespace(name, labels)) return;
  if (r_.sources->complete()) Reclassify(&name, ctx);  // else OnAllRead reclassifies all pods at once
}

void PodFacts::OnAllRead(ApplyContext* ctx) {
  if (r_.cluster->by_namespaces()) Reclassify(nullptr, ctx);
}

// Gives new classes to the pods whose label identity changed, in one namespace or in all (nullptr).
void PodFacts::Reclassify(const std::string* name_space, ApplyContext* ctx) {
  bool any = false;
  for (PodId id = 0; id < r_.gangs->pod_limit(); ++id) {
    const Pod* pod = r_.gangs->PodAt(id);
    if (pod == nullptr) continue;
    if (name_space != nullptr && pod->facts.name_space != *name_space) continue;  // short cut
    if (!ChangesIdentity(*pod, pod->facts)) continue;
    r_.pod_lifecycle->OnChanged(*pod, /*shape=*/true, ctx);
    SetFacts(*pod, pod->facts, /*shape_changed=*/true, ctx);
    if (pod->gang != nullptr) r_.plan_lifecycle->OnMemberLost(*pod->gang, ctx);
    any = true;
  }
  if (any) r_.broken_plans->WithdrawElsewhere(/*all=*/false, ctx);
}

ClassId PodFacts::AcquireClass(PodDescription* facts) {
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

bool PodFacts::ChangesIdentity(const Pod& pod, const PodDescription& facts) const {
  return pod.cls != kNoClass && !(r_.cluster->LabelIdentityOf(facts.name_space, facts.labels) ==
                                  r_.cluster->pod_class(pod.cls).label_identity);
}

// REQUIRES: PodLifecycle::OnChanged, if `shape_changed`.
void PodFacts::SetFacts(const Pod& pod, PodDescription facts, bool shape_changed, ApplyContext* ctx) {
  if (!shape_changed) {
    facts.shape = pod.facts.shape;
    return r_.gangs->SetFacts(pod, std::move(facts), pod.cls);
  }
  const Ledger::PodCharge charge = r_.ledger->ChargeOf(pod.id);
  // By name: a removed node loses its id with its last charge.
  const std::string charged = charge.node == kNoNode ? "" : r_.cluster->node(charge.node).facts.name;
  const bool affects_others = r_.broken_plans->AffectsOtherNodes(pod);
  r_.ledger->DischargePod(pod.id, /*gained=*/true);
  if (pod.cls != kNoClass) r_.cluster->ReleaseClass(pod.cls);
  const ClassId cls = AcquireClass(&facts);
  r_.gangs->SetFacts(pod, std::move(facts), cls);
  // A committed pod with unreadable requests has not been charged yet.
  const bool first_charge = charged.empty() && pod.state == MemberState::kCommitted;
  if (cls != kNoClass && (!charged.empty() || first_charge)) {
    const NodeId node = r_.cluster->InternNode(first_charge ? r_.pod_lifecycle->CommittedNode(pod) : charged);
    r_.ledger->ChargePod(pod.id, node, cls, first_charge ? ChargeKind::kUsed : charge.kind);
    if (pod.state == MemberState::kCommitted) r_.ledger->MarkInFlight(pod.id);
    r_.broken_plans->OnPodCharged(pod, node, ctx);
  }
  if (affects_others) r_.broken_plans->WithdrawElsewhere(/*all=*/false, ctx);
}

}  // namespace muster
