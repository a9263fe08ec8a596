// Pods as they are announced: new ones, changed ones, those that are gone.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/machine/ingest.h"

namespace muster {
namespace {

// A pod that its scheduler looks at again when called has been looked at after this time.
constexpr int64_t kDoubtMs = 1'000;

constexpr char kOwnerUnread[] = "its owner is not read yet; another of that name is known";

MemberState StateFromFacts(const PodDescription& facts) {
  if (facts.phase == PodPhase::kSucceeded) return MemberState::kSucceeded;
  if (facts.phase == PodPhase::kFailed) return MemberState::kFailed;
  if (facts.deleting) return MemberState::kLeaving;
  if (facts.node_name.empty()) return MemberState::kPending;
  return facts.phase == PodPhase::kRunning ? MemberState::kRunning : MemberState::kBound;
}

// What an announcement leaves out of what is known already.
PodDescription FillIn(const PodDescription& known, PodDescription facts) {
  // A member of a submitted gang stays one when its orchestrator reports it without saying so, or without its rules.
  const bool came_submitted = known.gang.dialect == GangDialect::kApi && known.gang.declares;
  const bool silent = !facts.gang.in_gang() || (facts.gang.name == known.gang.name && !facts.gang.declares);
  if (came_submitted && silent) facts.gang = known.gang;
  facts.timed_out_mark = facts.timed_out_mark || known.timed_out_mark;  // our own mark may still be on its way
  if (!known.node_name.empty() && facts.node_name.empty()) facts.node_name = known.node_name;
  // "It runs" says nothing of what it asks for.
  const bool says_nothing = facts.shape->requests.empty() && facts.invalid.empty();
  if (!known.node_name.empty() && says_nothing && !known.shape->requests.empty()) facts.shape = known.shape;
  return facts;
}

}  // namespace

struct Announcements::Change {
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
                    before.gang.said_in != now.gang.said_in || !(before.gang.declaration == now.gang.declaration)),
        shape((!before.shape.SharesWith(now.shape) && before.shape->Key() != now.shape->Key()) ||
              before.invalid != now.invalid),
        priority(before.priority != now.priority),
        nomination(before.nominated_node != now.nominated_node),
        unschedulable(before.unschedulable != now.unschedulable),
        called(before.called != now.called),
        subgroup(before.gang.subgroup != now.gang.subgroup) {}
};

absl::Status Announcements::PutPod(const PodDescription& facts, bool submitted, Step* step) {
  if (facts.uid.empty() || facts.name.empty()) {
    r_.refused->Note(FactKind::kPod);
    return absl::InvalidArgumentError("pod: metadata.uid and metadata.name must not be empty");
  }
  const OwnerOf owner = OwnerIs(facts);
  const bool former = owner == OwnerOf::kFormer && !facts.deleting;
  const bool unread = owner == OwnerOf::kUnread && facts.node_name.empty() && facts.invalid.empty();
  if (former || unread) {
    PodDescription doubted = facts;
    doubted.deleting = doubted.deleting || former;
    if (unread) doubted.invalid = kOwnerUnread;
    return PutPod(doubted, submitted, step);
  }
  if (!facts.gang.in_gang() && !facts.shape->preferences.empty()) {
    PodDescription of_no_gang = facts;
    of_no_gang.shape.Own().preferences = Preferences();
    return PutPod(of_no_gang, submitted, step);
  }
  const Pod* known = r_.gangs->FindPod(facts.uid);
  if (known == nullptr) {
    Learn(facts.shape, step);
    AddPod(facts, submitted, step);
    return absl::OkStatus();
  }
  if (known->facts.name != facts.name || known->facts.name_space != facts.name_space) {
    r_.refused->Note(FactKind::kPod);
    return absl::InvalidArgumentError(absl::StrCat("pod uid ", facts.uid, ": is ", known->facts.name_space, "/",
                                                   known->facts.name, ", announced again as ", facts.name_space, "/",
                                                   facts.name, "; a UID belongs to one pod"));
  }
  Learn(facts.shape, step);
  ChangePod(*known, FillIn(known->facts, facts), step);
  return absl::OkStatus();
}

// D-7: owners of one name may follow each other while pods of the first are there still. Of a deleted one they are on
// their way out, whether they say so already or not, and no members of the next one's gang; those of one that is about
// to be read wait for that: it says how many they are.
Announcements::OwnerOf Announcements::OwnerIs(const PodDescription& facts) const {
  const GangMembership& membership = facts.gang;
  if (membership.dialect != GangDialect::kOwner || membership.owner_uid.empty()) return OwnerOf::kKnown;
  const Gang* gang = r_.gangs->FindGang(absl::StrCat(facts.name_space, "/", membership.name));
  if (gang == nullptr) return OwnerOf::kKnown;
  const auto object = gang->objects.find(GangDialect::kOwner);
  if (object == gang->objects.end() || object->second.uid.empty()) return OwnerOf::kKnown;
  if (object->second.uid == membership.owner_uid) return OwnerOf::kKnown;
  if (facts.created_ms != object->second.created_ms) {
    return facts.created_ms < object->second.created_ms ? OwnerOf::kFormer : OwnerOf::kUnread;
  }
  // The API server tells times in seconds: it may be either. Who has a node had time to be bound.
  return facts.node_name.empty() ? OwnerOf::kUnread : OwnerOf::kFormer;
}

// Its owner was read, or another of its name.
void Announcements::FollowOwner(const Gang& gang, Step* step) {
  std::vector<const Pod*> others;
  for (const MemberSet& set : gang.members) {
    for (const Pod* pod : set) {
      const OwnerOf owner = OwnerIs(pod->facts);
      const bool unread = pod->facts.invalid == kOwnerUnread;
      const bool gone = owner == OwnerOf::kFormer && !pod->facts.deleting;
      const bool is_to_be = owner == OwnerOf::kUnread && pod->facts.node_name.empty();
      if (gone || unread != is_to_be) others.push_back(pod);
    }
  }
  for (const Pod* pod : others) {
    PodDescription facts = pod->facts;
    if (facts.invalid == kOwnerUnread) facts.invalid.clear();
    PutPod(facts, pod->submitted, step).IgnoreError();
  }
}

// What somebody says of pods around it may tell others apart that were alike: those are taken anew.
void Announcements::Learn(const PodTemplate& shape, Step* step) {
  if ((shape.neighbours.empty() && shape.preferences.neighbours.empty()) || !r_.cluster->Learn(shape)) return;
  TakeAnew(nullptr, step);
}

void Announcements::PutNamespace(const std::string& name, const Labels* labels, Step* step) {
  if (!r_.cluster->SetNamespace(name, labels)) return;
  if (r_.sources->complete()) TakeAnew(&name, step);  // else all at once, when everything is read
}

// Pods that are told apart now by what they were not before; of one namespace, or of all.
void Announcements::TakeAnew(const std::string* name_space, Step* step) {
  bool any = false;
  for (PodId id = 0; id < r_.gangs->pod_limit(); ++id) {
    const Pod* pod = r_.gangs->PodAt(id);
    if (pod == nullptr || pod->cls == kNoClass) continue;
    if (name_space != nullptr && pod->facts.name_space != *name_space) continue;
    const Kin kin = r_.cluster->KinOf(pod->facts.name_space, pod->facts.labels);
    if (kin == r_.cluster->pod_class(pod->cls).kin) continue;
    r_.barrier->End(*pod, Reason{ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " was changed")}, step);
    r_.claims->FreeSlot(*pod);
    TakeFacts(*pod, pod->facts, /*shape_changed=*/true, step);
    if (pod->gang != nullptr) r_.claims->NoteMemberLoss(*pod->gang, step);
    any = true;
  }
  if (any) r_.claims->ReverifyElsewhere(/*all=*/false, step);
}

ClassId Announcements::AcquireClass(PodDescription* facts) {
  if (!facts->invalid.empty()) return kNoClass;
  const absl::StatusOr<ClassId> cls =
      r_.cluster->AcquireClass(facts->shape, r_.cluster->KinOf(facts->name_space, facts->labels));
  if (cls.ok()) {
    facts->shape = r_.cluster->pod_class(*cls).shape;  // shared by all that are alike
    return *cls;
  }
  facts->invalid = std::string(cls.status().message());
  return kNoClass;
}

void Announcements::AddPod(PodDescription facts, bool submitted, Step* step) {
  if (facts.gang.declaration == Shared<GangDeclaration>()) facts.gang.declaration = {};  // not even a block of its own
  const ClassId cls = AcquireClass(&facts);
  const MemberState state = StateFromFacts(facts);
  const Pod& pod = r_.gangs->AddPod(std::move(facts), cls, state, submitted);
  const bool asked = r_.calls->TakeAskedEarly(pod.facts.uid);
  if (asked) r_.calls->NoteRefused(pod);
  JoinGang(pod, step);
  if (pod.gang != nullptr && pod.state == MemberState::kPending && !pod.facts.unschedulable.empty()) {
    r_.calls->NoteRefused(pod);  // kube-scheduler has parked it
    r_.gangs->SetStuck(pod, Unmodelled(OwnWords(pod)));
  }
  const bool lone = pod.gang == nullptr && pod.state == MemberState::kPending;
  if (lone && r_.gangs->Serves(pod)) {
    for (const std::string& ignored : pod.facts.gang.ignored) {
      r_.calls->Tell(pod, /*warning=*/true, {ReasonCode::kNotAGang, ignored}, step);
    }
  }
  if (asked && lone) r_.calls->Call(pod, kNoNode, 0, step);
  if (pod.on_node()) r_.claims->UseNode(pod, step);
  FollowEnd(pod, step);
  if (lone && !pod.facts.nominated_node.empty()) r_.nominations->Add(pod);
  // No gang to wait for: nobody else would ever take the gate away.
  if (lone && pod.facts.our_gate && r_.gangs->Serves(pod)) r_.calls->Call(pod, kNoNode, 0, step);
}

void Announcements::JoinGang(const Pod& pod, Step* step) {
  if (!pod.facts.gang.in_gang()) return;
  const Gang& gang = InternGang(pod.facts.name_space, pod.facts.gang.name, pod.facts.created_ms, step->now_ms());
  r_.gangs->Join(pod, gang);
  r_.queues->Join(pod);
  if (r_.gangs->Adopt(pod)) RulesChanged(gang);
  if (pod.facts.timed_out_mark) r_.gangs->SetTimedOut(gang, true);
  if (pod.state == MemberState::kPending) NotifySoon(gang, step->now_ms());
  const Plan* plan = r_.plans->Of(gang);
  if (plan != nullptr && !plan->committed && pod.facts.priority > plan->lowest_priority && r_.gangs->Plannable(pod)) {
    // D-11: the driver comes before its executors, also when it was created after them.
    r_.claims->Withdraw(gang, ReasonCode::kWithdrawn,
                        absl::StrCat("member ", pod.facts.name, " of higher priority came"), step);
  }
  r_.gangs->Touch(gang);
}

// What the pod said about its gang goes with it: the next that declares it has the word (D-9).
void Announcements::LeaveGang(const Pod& pod) {
  const Gang* gang = pod.gang;
  r_.gangs->Leave(pod);
  r_.queues->Leave(pod);
  if (gang == nullptr || gang->declared_by != pod.facts.uid || gang->children() == 0) return;
  if (!r_.gangs->HandOverDeclaration(*gang)) Redeclare(*gang);
}

void Announcements::ChangePod(const Pod& pod, PodDescription facts, Step* step) {
  Change change(pod.facts, facts);
  // Most labels tell nobody anything.
  const Kin kin = r_.cluster->KinOf(facts.name_space, facts.labels);
  change.shape = change.shape || (pod.cls != kNoClass && !(kin == r_.cluster->pod_class(pod.cls).kin));
  if (!change.declaration) facts.gang.declaration = pod.facts.gang.declaration;
  const bool was_gated = pod.facts.our_gate;
  if (change.gang && r_.bindings->Resumable(pod)) r_.bindings->EndResume(pod, step);  // a plan is to say where it goes
  if (change.shape || change.gang || change.priority || change.subgroup) {
    r_.barrier->End(pod, Reason{ReasonCode::kGone, absl::StrCat("pod ", facts.name, " was changed")}, step);
    r_.claims->FreeSlot(pod);
  }
  TakeFacts(pod, std::move(facts), change.shape, step);
  ChangeGang(pod, change, step);
  FollowGate(pod, was_gated, step);
  FollowState(pod, step);
  if (pod.on_node()) r_.claims->UseNode(pod, step);
  FollowEnd(pod, step);
  if (pod.gang == nullptr && (change.gang || change.nomination)) FollowNomination(pod);
  const bool elsewhere = pod.gang != nullptr && change.nomination && r_.nominations->Remove(pod);
  if (elsewhere && r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/true);  // settling adds it
  if (change.unschedulable && !pod.facts.unschedulable.empty()) NoteUnschedulable(pod, step);
  if (change.called) NoteHeard(pod, step->now_ms());
}

// K-14: kube-scheduler may have asked about a pod, and been refused, before it is read here that its gate is gone: the
// next call is one that a pod without a gate hears.
void Announcements::FollowGate(const Pod& pod, bool was_gated, Step* step) {
  if (pod.facts.our_gate) return;
  const bool refused = r_.calls->Of(pod).refused;
  if (was_gated || !refused) r_.calls->NoteCalled(pod, false);
  const bool parked = was_gated && refused && pod.state == MemberState::kPending && r_.sources->complete();
  if (!parked || !r_.gangs->Serves(pod)) return;
  if (pod.gang == nullptr) return r_.calls->Call(pod, kNoNode, 0, step);
  const Plan* plan = r_.plans->Of(*pod.gang);
  const bool claims = plan != nullptr && !plan->committed;
  if (claims) r_.calls->CallMembers(*pod.gang, *plan, *r_.plans, /*again=*/false, step);
}

// The pod's own charge, if there is one, follows its new shape.
void Announcements::TakeFacts(const Pod& pod, PodDescription facts, bool shape_changed, Step* step) {
  if (!shape_changed) {
    facts.shape = pod.facts.shape;
    return r_.gangs->SetFacts(pod, std::move(facts), pod.cls);
  }
  r_.calls->Unguard(pod);  // its scheduler looks at it anew by itself
  const Ledger::PodCharge charge = r_.ledger->ChargeOf(pod.id);
  // By name: without its last charge a node that is gone is forgotten.
  const std::string charged = charge.node == kNoNode ? "" : r_.cluster->node(charge.node).facts.name;
  const bool felt = charge.node != kNoNode && r_.claims->FeltElsewhere(pod);
  r_.ledger->DischargePod(pod.id, /*gained=*/true);
  if (pod.cls != kNoClass) r_.cluster->ReleaseClass(pod.cls);
  const ClassId cls = AcquireClass(&facts);
  r_.gangs->SetFacts(pod, std::move(facts), cls);
  // A committed pod of which the requests could not be read was charged nothing so far.
  const bool first = charged.empty() && pod.state == MemberState::kCommitted;
  if (cls != kNoClass && (!charged.empty() || first)) {
    const NodeId node = r_.cluster->InternNode(first ? r_.bindings->CommittedTo(pod) : charged);
    r_.ledger->ChargePod(pod.id, node, cls, first ? ChargeKind::kUsed : charge.kind);
    if (pod.state == MemberState::kCommitted) r_.ledger->NoteGoing(pod.id);
    r_.claims->ReverifyAround(pod, node, step);
  }
  if (felt) r_.claims->ReverifyElsewhere(/*all=*/false, step);
}

void Announcements::ChangeGang(const Pod& pod, const Change& change, Step* step) {
  const Gang* gang = pod.gang;
  if (change.gang) {
    if (r_.nominations->Remove(pod) && r_.ledger->Reserves(pod.id)) {
      r_.ledger->DischargePod(pod.id, /*gained=*/true);  // what a gang's member may use is its plan's to say
    }
    LeaveGang(pod);
    if (gang != nullptr) r_.claims->NoteMemberLoss(*gang, step);
    JoinGang(pod, step);
    return;
  }
  if (gang == nullptr) return;
  if (pod.facts.timed_out_mark) r_.gangs->SetTimedOut(*gang, true);
  r_.gangs->Touch(*gang);
  if (change.declaration) Redeclare(*gang);
  if (change.shape || change.priority || change.subgroup) r_.claims->NoteMemberLoss(*gang, step);
}

void Announcements::FollowState(const Pod& pod, Step* step) {
  const MemberState now = StateFromFacts(pod.facts);
  const bool in_flight = pod.state == MemberState::kCommitted || pod.state == MemberState::kWaiting;
  if (now == MemberState::kPending && in_flight) return;
  if (now != pod.state) r_.bindings->Follow(pod, now, step);
}

// P-8: whoever counts on what an ending pod gives back must look again when it does not end after all.
void Announcements::FollowEnd(const Pod& pod, Step* step) {
  if (!r_.pipeline->Follow(pod, step->now_ms())) return;
  const NodeId node = r_.ledger->ChargeOf(pod.id).node;
  if (node != kNoNode) r_.claims->ReverifyNode(node, step);
}

void Announcements::FollowNomination(const Pod& pod) {
  if (r_.ledger->Reserves(pod.id)) r_.ledger->DischargePod(pod.id, /*gained=*/true);
  if (pod.facts.nominated_node.empty() || pod.state != MemberState::kPending) {
    r_.nominations->Remove(pod);
  } else {
    r_.nominations->Add(pod);
  }
}

// G-3, K-7: kube-scheduler says that no node takes this pod, for a reason of its own.
void Announcements::NoteUnschedulable(const Pod& pod, Step* step) {
  // That the call in which it was being bound has failed is no such reason.
  if (r_.bindings->Resumable(pod) && SaysNothingOfUs(pod) && TellsOfNodes(pod)) r_.bindings->EndResume(pod, step);
  if (pod.gang == nullptr || pod.state != MemberState::kPending || !SaysNothingOfUs(pod)) return;
  const Gang& gang = *pod.gang;
  NotifySoon(gang, step->now_ms());
  const Plan* plan = r_.plans->Of(gang);
  const bool claims = plan != nullptr && !plan->committed;
  if (claims && r_.calls->Heard(pod, plan->id)) {
    r_.calls->SetParked(pod, true);
    return r_.claims->NoteUnplaceable(pod, step);
  }
  if (claims && r_.calls->Of(pod).plan == plan->id) return r_.calls->NoteRefused(pod);  // its call is on the way
  r_.calls->SetParked(pod, true);
  if (plan == nullptr && Unmodelled(OwnWords(pod))) r_.gangs->SetStuck(pod, true);
  if (claims) r_.calls->CallMembers(gang, *plan, *r_.plans, /*again=*/false, step);  // it tried before the plan stood
}

// The call for its gang's plan has reached a pod of which it is not known whether anybody looks at it again.
void Announcements::NoteHeard(const Pod& pod, int64_t now_ms) {
  const Plan* plan = pod.gang == nullptr ? nullptr : r_.plans->Of(*pod.gang);
  if (plan == nullptr || plan->committed || !r_.calls->Doubted(pod, plan->id)) return;
  r_.plans->SetDoubt(*pod.gang, std::min(plan->doubt_ms, now_ms + kDoubtMs));
  r_.gangs->Touch(*pod.gang);
}

// The gang's members are told why they wait, unless they were.
void Announcements::NotifySoon(const Gang& gang, int64_t now_ms) {
  if (!r_.sources->complete()) return;  // then everybody is looked at
  r_.gangs->SetNotify(gang, std::min(gang.notify_at_ms, now_ms + Gangs::kNotifyDelayMs));
  r_.gangs->Touch(gang);
}

void Announcements::RemovePod(const std::string& uid, Step* step) {
  const Pod* known = r_.gangs->FindPod(uid);
  if (known == nullptr) return;
  const Pod& pod = *known;
  const Gang* gang = pod.gang;
  const bool was_active = pod.active();
  const bool felt = r_.ledger->ChargeOf(pod.id).node != kNoNode && r_.claims->FeltElsewhere(pod);
  r_.bindings->End(pod, {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " was deleted")}, step);
  r_.ledger->DischargePod(pod.id, /*gained=*/true);
  r_.pipeline->Forget(pod);
  r_.claims->FreeSlot(pod);
  LeaveGang(pod);
  r_.nominations->Remove(pod);
  r_.calls->Forget(pod);
  r_.barrier->Forget(pod);
  r_.bindings->Forget(pod);
  r_.deadlines->Forget(pod.id, pod.facts.uid);
  if (gang != nullptr) {
    r_.claims->NoteMemberLoss(*gang, step);
    if (was_active) r_.repair->NoteActiveLoss(*gang, pod, step);
  }
  if (felt) r_.claims->ReverifyElsewhere(/*all=*/false, step);
  if (pod.cls != kNoClass) r_.cluster->ReleaseClass(pod.cls);
  r_.facts->PodGoes(pod.facts.uid, step);
  r_.gangs->RemovePod(pod);
}

}  // namespace muster
