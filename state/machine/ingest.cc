#include "state/machine/ingest.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "state/base/check.h"

namespace muster {

absl::Status Announcements::PutNode(const NodeDescription& node, Step* step) {
  const NodeId known = r_.cluster->FindNode(node.name);
  const bool there = known != kNoNode && r_.cluster->node(known).present;
  const bool relabelled = there && r_.cluster->node(known).facts.labels != node.labels;
  const bool moves = !there || relabelled || r_.cluster->node(known).facts.taints != node.taints;
  const absl::StatusOr<bool> changed = r_.cluster->UpsertNode(node);
  if (!changed.ok()) {
    r_.refused->NoteNode(node.name, changed.status().message());
    return changed.status();
  }
  r_.refused->ForgetNode(node.name);
  const NodeId id = r_.cluster->FindNode(node.name);
  NoteHeard(id);
  if (!*changed) return absl::OkStatus();
  r_.ledger->MarkNode(id);
  r_.claims->ReverifyNode(id, step);
  if (moves) r_.claims->ReverifyElsewhere(/*all=*/relabelled, step);
  r_.facts->NodeIs(node, step);
  return absl::OkStatus();
}

void Announcements::NoteHeard(NodeId id) {
  if (r_.cluster->node(id).heard == Heard::kNow) return;
  r_.cluster->SetHeard(id, Heard::kNow);
  r_.ledger->MarkNode(id);
}

absl::Status Announcements::NoteUnreadable(const UnreadableFact& fact) {
  if (fact.kind == FactKind::kNode) {
    r_.refused->NoteNode(fact.name, fact.why);
  } else {
    r_.refused->Note(fact.kind);
  }
  return absl::InvalidArgumentError(fact.why);
}

void Announcements::RemoveNode(const std::string& name, Step* step) {
  r_.refused->ForgetNode(name);
  const NodeId id = r_.cluster->FindNode(name);
  if (id == kNoNode) return;
  r_.ledger->MarkNode(id);
  r_.ledger->NoteRemoved(name);  // its id may be another node's before readers are told
  r_.cluster->RemoveNode(name);
  r_.facts->NodeGoes(name, step);
  r_.claims->ReverifyNode(id, step);
  r_.claims->ReverifyElsewhere(/*all=*/false, step);
}

const Gang& Announcements::InternGang(absl::string_view name_space, absl::string_view name, int64_t created_ms,
                                      int64_t now_ms) {
  const auto [gang, fresh] = r_.gangs->Intern(name_space, name, created_ms, now_ms);
  if (!fresh) return *gang;
  if (const auto kept = r_.restored->ClaimGang(gang->key); kept.has_value()) r_.gangs->Restore(*gang, *kept);
  return *gang;
}

absl::Status Announcements::PutObject(const UpsertGangObject& command, Step* step) {
  const GangObject& object = command.object;
  const std::string key = absl::StrCat(object.name_space, "/", object.name);
  const Gang* there = r_.gangs->FindGang(key);
  const bool exists = there != nullptr && there->objects.contains(object.dialect);
  if (command.mode == UpsertGangObject::Mode::kCreate && exists) {
    return absl::AlreadyExistsError(absl::StrCat("gang ", key, " exists already; update it instead"));
  }
  if (command.mode == UpsertGangObject::Mode::kReplace && !exists) {
    return absl::NotFoundError(absl::StrCat("there is no gang ", key, " that was created here"));
  }
  const bool another = !exists || there->objects.at(object.dialect).uid != object.uid;
  const Gang& gang = InternGang(object.name_space, object.name, object.created_ms, step->now_ms());
  const bool changed = r_.gangs->PutObject(gang, object);
  if (changed) Redeclare(gang);
  if (changed || another) r_.facts->ObjectIs(gang.objects.at(object.dialect), step);
  if (another && object.dialect == GangDialect::kOwner) FollowOwner(gang, step);
  return absl::OkStatus();
}

absl::Status Announcements::RemoveObject(const RemoveGangObject& command, Step* step) {
  const std::string key = absl::StrCat(command.name_space, "/", command.name);
  const Gang* found = r_.gangs->FindGang(key);
  if (found == nullptr || !r_.gangs->DropObject(*found, command.dialect)) {
    if (!command.must_exist) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("there is no gang ", key, " that was created here"));
  }
  const Gang& gang = *found;
  r_.facts->ObjectGoes(command.dialect, gang.name_space, gang.name, step);
  Redeclare(gang);
  if (command.dialect == GangDialect::kOwner) FollowOwner(gang, step);
  // D-12: without its PodGroup the gang is gone; pods that need it wait for it to come back.
  if (r_.eligibility->StructureReason(gang).none()) return absl::OkStatus();
  if (const Plan* plan = r_.plans->Of(gang); plan != nullptr && !plan->committed) {
    r_.claims->Withdraw(gang, ReasonCode::kUnknownGang, "the PodGroup was deleted", step);
  }
  r_.barrier->EndAll(gang, {ReasonCode::kUnknownGang, absl::StrCat("gang ", gang.key, ": the PodGroup was deleted")},
                     step);
  return absl::OkStatus();
}

void Announcements::Redeclare(const Gang& gang) {
  r_.gangs->Redeclare(gang);
  RulesChanged(gang);
}

void Announcements::HoldToCome(const Gang& gang) {
  const SubgroupTree& tree = gang.rules.tree;
  if (!tree.ahead && gang.to_come.empty()) return;
  std::vector<ClassId> classes(static_cast<size_t>(tree.leaves), kNoClass);
  for (const Subgroup& node : tree.nodes) {
    if (!node.to_come.has_value()) continue;
    const absl::StatusOr<ClassId> cls = r_.cluster->AcquireClass(*node.to_come);
    MUSTER_CHECK(cls.ok());  // ReadSubgroups looked at what it asks for
    classes[static_cast<size_t>(node.leaf)] = *cls;
  }
  for (const ClassId before : r_.gangs->SetToCome(gang, std::move(classes))) {
    if (before != kNoClass) r_.cluster->ReleaseClass(before);
  }
}

void Announcements::RulesChanged(const Gang& gang) {
  HoldToCome(gang);
  if (!r_.backlog->why(gang.id).none()) r_.planning->LeaveAlike(gang);
  r_.backlog->ForgetReason(gang.id);
  // Its domains may be others: whom they kept off is called like anybody else who was refused (P-4, K-7).
  for (const Pod* pod : gang.in(MemberState::kPending)) r_.calls->Unguard(*pod);
  r_.gangs->Touch(gang);
}

// Of the gang of this name that was meant by the record: its PodGroup or one of its members is still there.
bool Announcements::IsThatGang(const Gang& gang, const std::string& incarnation) {
  if (incarnation.empty()) return true;
  const bool same_object =
      absl::c_any_of(gang.objects, [&](const auto& object) { return object.second.uid == incarnation; });
  return same_object || absl::c_any_of(gang.members, [&](const MemberSet& set) {
           return absl::c_any_of(set, [&](const Pod* pod) { return pod->facts.uid == incarnation; });
         });
}

// K-13: a commitment of which the binding is not there is a start that was interrupted. Its gang, and those that
// started with it, are finished like any that is half bound; what was recorded at the commit does not make them
// satisfied. A pod that its caller binds is permitted still, and one of no gang keeps its place for as long as its
// binding may be under way. Returns what was interrupted, by start.
Announcements::Interrupted Announcements::TakeUpCommitments(Step* step) {
  std::vector<std::string> taken_up;
  Interrupted interrupted;
  for (const Commitment& commitment : r_.restored->commitments()) {
    const Pod* pod = r_.gangs->FindPod(commitment.uid);
    if (pod != nullptr && !pod->facts.node_name.empty()) continue;
    if (pod != nullptr && r_.bindings->TakeUp(*pod, commitment, step)) {
      taken_up.push_back(commitment.uid);
      continue;
    }
    if (commitment.start == 0) continue;  // a pod alone: its gang, if any, had started before
    interrupted[commitment.start].push_back(commitment);
    if (const Gang* gang = r_.gangs->FindGang(commitment.gang); gang != nullptr) r_.gangs->SetSatisfied(*gang, false);
  }
  for (const auto& [plan, start] : r_.restored->starts()) {
    if (!interrupted.contains(plan)) continue;
    for (const std::string& key : start.gangs) {
      if (const Gang* gang = r_.gangs->FindGang(key); gang != nullptr) r_.gangs->SetSatisfied(*gang, false);
    }
  }
  // P-7: room that was kept for members to come is found anew, before anybody else's.
  r_.gangs->ForEachGang([&](const Gang& gang) {
    const bool kept = gang.kept.room_until_ms > step->now_ms() && gang.quorum().AllToCome() > 0;
    if (kept && gang.active() > 0) r_.gangs->SetSatisfied(gang, false);
  });
  r_.restored->ForgetRest(taken_up, step);
  return interrupted;
}

// The process before may have sent bindings that the API server has not carried out yet: the gangs are to have the same
// places once more, so that whatever arrives finds its room.
void Announcements::PlanAgain(const std::vector<Commitment>& start, Step* step) {
  std::vector<Planning::Destination> places;
  for (const Commitment& commitment : start) {
    const Pod* pod = r_.gangs->FindPod(commitment.uid);
    const bool to_place = pod != nullptr && pod->gang != nullptr && pod->state == MemberState::kPending;
    if (to_place && r_.gangs->Plannable(*pod)) places.push_back({pod, r_.cluster->FindNode(commitment.node)});
  }
  if (places.empty()) return;
  const Group gangs = r_.eligibility->Unplaced(*places.front().pod->gang);
  const bool may = absl::c_all_of(gangs, [&](const Gang* gang) {
    return !gang->kept.satisfied && r_.plans->Of(*gang) == nullptr &&
           r_.eligibility->PlanReason(*gang, step->now_ms()).none();
  });
  if (!may || gangs.empty() || !r_.planning->PlanAgain(gangs, places, step)) return;
  // Required domains may be others by now (P-4).
  for (const Planning::Destination& place : places) r_.claims->ReverifyNode(place.node, step);
}

// What is still being read is something else now, and gangs say what it is.
void Announcements::SayWhatIsRead() {
  if (!r_.sources->complete()) r_.gangs->ForEachGang([&](const Gang& gang) { r_.gangs->Touch(gang); });
}

void Announcements::Expect(const std::vector<std::string>& sources) {
  r_.sources->Expect(sources);
  SayWhatIsRead();
}

void Announcements::Complete(const std::string& source, Step* step) {
  if (!r_.sources->Complete(source)) return SayWhatIsRead();
  if (r_.cluster->by_namespaces()) TakeAnew(nullptr, step);
  r_.gangs->ForEachGang([&](const Gang& gang) {
    if (!IsThatGang(gang, gang.kept.incarnation)) r_.gangs->DropRestored(gang);
  });
  const Interrupted interrupted = TakeUpCommitments(step);
  for (const std::string& uid : r_.gangs->Uids()) {
    const Pod& pod = *r_.gangs->FindPod(uid);
    // Whoever had it bound by the process before may have got no answer.
    if (!pod.facts.node_name.empty()) r_.bindings->NoteCallerGone(pod, step->now_ms());
    const bool gated = pod.facts.our_gate || pod.facts.other_gates;
    const bool asked = pod.state == MemberState::kPending || r_.bindings->Resumable(pod);
    if (!asked || gated || !r_.gangs->Serves(pod)) continue;
    // K-14: kube-scheduler parked these while nobody answered, or was told that the cluster is still being read; that
    // the pod says so may be read later than everything else.
    const bool parked = !pod.facts.unschedulable.empty() || r_.calls->Of(pod).refused;
    if (pod.gang != nullptr || parked) r_.calls->Call(pod, kNoNode, 0, step);
    r_.calls->SetParked(pod, pod.gang != nullptr);
  }
  r_.gangs->ForEachGang([&](const Gang& gang) {
    // The wait time ran out before a restart: members whose mark was still on its way get it now.
    if (gang.kept.timed_out) r_.claims->MarkMembers(gang, step);
    r_.repair->GoOn(gang, step);
    r_.gangs->Touch(gang);
  });
  for (const auto& [plan, commitments] : interrupted) PlanAgain(commitments, step);
}

void Announcements::TakeUpFacts(Step* step) {
  if (r_.restored->empty()) return;
  KeptFacts kept = r_.restored->TakeFacts();
  if (!r_.facts->keeps()) {
    r_.facts->BeginTellingAgain();
    for (const GangObject& object : kept.created) step->Refuse(PutObject({object}, step));
    return r_.facts->EndTellingAgain();
  }
  absl::c_sort(kept.submissions, [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  r_.facts->BeginTellingAgain();
  for (const GangObject& object : kept.objects) step->Refuse(PutObject({object}, step));
  for (const NodeDescription& node : kept.nodes) step->Refuse(PutNode(node, step));
  for (KeptSubmission& submission : kept.submissions) {
    if (submission.ended) {
      r_.submissions->Remember(submission.id, {std::move(submission.reply), submission.sequence});
      continue;
    }
    const std::pair<std::string, std::string> key = absl::StrSplit(submission.gang, absl::MaxSplits('/', 1));
    const Gang& gang = InternGang(key.first, key.second, step->now_ms(), step->now_ms());
    if (const Submission* other = r_.submissions->Of(gang); other != nullptr) {
      step->Refuse(absl::InvalidArgumentError(absl::StrCat("kept submission ", submission.id, ": gang ", gang.key,
                                                           " is that of submission ", other->id, " already")));
      continue;
    }
    r_.submissions->Open(gang, submission.id, submission.ttl_ms, submission.fingerprint);
    r_.submissions->NoteAsked(gang, /*planned=*/false, step->now_ms());
  }
  // In the order in which they came, as far as that is known: the first that declares a gang has the word (D-9).
  absl::c_sort(kept.pods, [](const KeptPod& a, const KeptPod& b) {
    return std::tie(a.facts.created_ms, a.facts.uid) < std::tie(b.facts.created_ms, b.facts.uid);
  });
  for (const KeptPod& pod : kept.pods) step->Refuse(PutPod(pod.facts, pod.submitted, step));
  r_.facts->EndTellingAgain();
  if (!kept.announcer.empty()) {
    // A restart makes nobody fresh: who was silent before is silent since then.
    const bool silent = kept.stale_since_ms > 0;
    const int64_t since = silent ? std::min(kept.stale_since_ms, step->now_ms()) : step->now_ms();
    r_.sources->TakeStep(kept.announcer, kept.version);
    r_.sources->SetStaleSince(since);
    SetHeard(Heard::kNow, Heard::kBefore);
    if (!silent) r_.facts->StepTaken(kept.announcer, kept.version, since, step);
    if (r_.sources->ShutAt() <= step->now_ms()) ShutStale(step);
  }
  Complete("", step);
}

absl::Status Announcements::Check(const std::vector<NodeDescription>& nodes,
                                  const std::vector<PodDescription>& pods) const {
  for (const NodeDescription& node : nodes) {
    if (const absl::Status amounts = CheckAmounts(node.allocatable); !amounts.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("node ", node.name, ": ", amounts.message()));
    }
  }
  absl::flat_hash_map<absl::string_view, const PodDescription*> seen;
  for (const PodDescription& pod : pods) {
    if (pod.uid.empty() || pod.name.empty()) return absl::InvalidArgumentError("pod: uid and name must not be empty");
    const Pod* known = r_.gangs->FindPod(pod.uid);
    const PodDescription* other = known == nullptr ? nullptr : &known->facts;
    if (const auto [at, fresh] = seen.emplace(pod.uid, &pod); !fresh) other = at->second;
    if (other == nullptr || (other->name == pod.name && other->name_space == pod.name_space)) continue;
    return absl::InvalidArgumentError(absl::StrCat("pod uid ", pod.uid, ": is ", other->name_space, "/", other->name,
                                                   ", announced as ", pod.name_space, "/", pod.name,
                                                   "; a UID belongs to one pod"));
  }
  return absl::OkStatus();
}

void Announcements::RemoveUnnamed(const ReplaceFacts& snapshot, Step* step) {
  r_.refused->ForgetNodes();  // those that the snapshot names were looked at: it is taken as a whole
  absl::flat_hash_set<absl::string_view> uids;
  for (const PodDescription& pod : snapshot.pods) uids.insert(pod.uid);
  for (const std::string& uid : r_.gangs->Uids()) {
    if (!uids.contains(uid) && !r_.gangs->FindPod(uid)->submitted) RemovePod(uid, step);
  }
  absl::flat_hash_set<absl::string_view> names;
  for (const NodeDescription& node : snapshot.nodes) names.insert(node.name);
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    const Node& node = r_.cluster->node(id);
    if (node.known && node.present && !names.contains(node.facts.name)) RemoveNode(std::string(node.facts.name), step);
  }
}

void Announcements::PutAll(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods,
                           Step* step) {
  for (const NodeDescription& node : nodes) step->Refuse(PutNode(node, step));
  for (const PodDescription& pod : pods) step->Refuse(PutPod(pod, /*submitted=*/false, step));
}

void Announcements::TakeStep(const FactsStep& taken, Step* step) {
  r_.sources->TakeStep(taken.source, taken.version);
  r_.facts->StepTaken(taken.source, taken.version, /*stale_since_ms=*/0, step);
  Unstale();
}

void Announcements::SetHeard(Heard from, Heard to) {
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    const Node& node = r_.cluster->node(id);
    if (!node.known || !node.present || node.heard != from) continue;
    r_.cluster->SetHeard(id, to);
    r_.ledger->MarkNode(id);
  }
}

void Announcements::NoteSpoke(Step* step) {
  if (r_.sources->stale_since_ms() == kNever) return;
  r_.facts->StepTaken(r_.sources->announcer(), r_.sources->version(), /*stale_since_ms=*/0, step);
  Unstale();
}

void Announcements::Unstale() {
  if (r_.sources->stale_since_ms() == kNever) return;
  r_.sources->SetStaleSince(kNever);
  SetHeard(Heard::kBefore, Heard::kNow);
  SetHeard(Heard::kTooLongAgo, Heard::kNow);
}

void Announcements::ShutStale(Step* step) {
  r_.sources->SetShut();
  SetHeard(Heard::kBefore, Heard::kTooLongAgo);
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    if (r_.cluster->node(id).known && r_.cluster->node(id).heard == Heard::kTooLongAgo)
      r_.claims->ReverifyNode(id, step);
  }
}

void Announcements::TakeUpdate(const UpdateFacts& update, Step* step) {
  for (const std::string& uid : update.removed_pods) RemovePod(uid, step);
  for (const std::string& name : update.removed_nodes) RemoveNode(name, step);
  for (const RemoveGangObject& gang : update.removed_gangs) step->Refuse(RemoveObject(gang, step));
  for (const GangObject& gang : update.gangs) step->Refuse(PutObject({gang}, step));
  PutAll(update.nodes, update.pods, step);
}

}  // namespace muster
