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
#include "state/base/problem.h"

namespace muster {

absl::Status Ingest::PutNode(const NodeDescription& node, ApplyContext* ctx) {
  const NodeId known = r_.cluster->FindNode(node.name);
  const bool present = known != kNoNode && r_.cluster->node(known).present;
  const bool relabelled = present && r_.cluster->node(known).facts.labels != node.labels;
  const bool moves = !present || relabelled || r_.cluster->node(known).facts.taints != node.taints;
  const absl::StatusOr<bool> changed = r_.cluster->UpsertNode(node);
  if (!changed.ok()) {
    r_.refused->NoteNode(node.name, changed.status().message());
    return changed.status();
  }
  r_.refused->ClearNode(node.name);
  const NodeId id = r_.cluster->FindNode(node.name);
  MarkObserved(id);
  if (!*changed) return absl::OkStatus();
  r_.ledger->MarkNode(id);
  r_.plan_lifecycle->WithdrawBrokenPlans(id, ctx);
  if (moves) r_.plan_lifecycle->WithdrawBrokenPlansElsewhere(/*all=*/relabelled, ctx);
  r_.facts->RecordNode(node, ctx);
  return absl::OkStatus();
}

void Ingest::MarkObserved(NodeId id) {
  if (r_.cluster->node(id).freshness == Freshness::kCurrent) return;
  r_.cluster->SetFreshness(id, Freshness::kCurrent);
  r_.ledger->MarkNode(id);
}

absl::Status Ingest::OnUnreadableFact(const UnreadableFact& fact) {
  if (fact.kind == FactKind::kNode) {
    r_.refused->NoteNode(fact.name, fact.why);
  } else {
    r_.refused->Note(fact.kind);
  }
  return absl::InvalidArgumentError(fact.why);
}

void Ingest::RemoveNode(const std::string& name, ApplyContext* ctx) {
  r_.refused->ClearNode(name);
  const NodeId id = r_.cluster->FindNode(name);
  if (id == kNoNode) return;
  r_.ledger->MarkNode(id);
  r_.ledger->MarkRemoved(name);  // by name: its id may be reused before readers are notified
  r_.cluster->RemoveNode(name);
  r_.facts->EraseNode(name, ctx);
  r_.plan_lifecycle->WithdrawBrokenPlans(id, ctx);
  r_.plan_lifecycle->WithdrawBrokenPlansElsewhere(/*all=*/false, ctx);
}

const Gang& Ingest::InternGang(absl::string_view name_space, absl::string_view name, int64_t created_ms,
                               int64_t now_ms) {
  const auto [gang, fresh] = r_.gangs->Intern(name_space, name, created_ms, now_ms);
  if (!fresh) return *gang;
  if (const auto restored = r_.restored->ClaimGang(gang->key); restored.has_value())
    r_.gangs->Restore(*gang, *restored);
  return *gang;
}

absl::Status Ingest::PutObject(const UpsertGangObject& command, ApplyContext* ctx) {
  GangObject object = command.object;
  const std::string key = absl::StrCat(object.name_space, "/", object.name);
  const Gang* known = r_.gangs->FindGang(key);
  const bool exists = known != nullptr && known->objects.contains(object.dialect);
  if (command.mode == UpsertGangObject::Mode::kCreate && exists) {
    return absl::AlreadyExistsError(absl::StrCat("gang ", key, " exists already; update it instead"));
  }
  if (command.mode == UpsertGangObject::Mode::kReplace && !exists) {
    return absl::NotFoundError(absl::StrCat("there is no gang ", key, " that was created here"));
  }
  if (exists && !command.fields.empty()) {
    const GangDeclaration& declared = *known->objects.at(object.dialect).declaration;
    absl::StatusOr<GangDeclaration> merged = ReplaceFields(declared, *object.declaration, command.fields);
    if (!merged.ok()) return merged.status();
    object.declaration = *std::move(merged);
  }
  const bool another = !exists || known->objects.at(object.dialect).uid != object.uid;
  const Gang& gang = InternGang(object.name_space, object.name, object.created_ms, ctx->now_ms());
  const bool changed = r_.gangs->PutObject(gang, object);
  if (changed) Redeclare(gang);
  if (changed || another) r_.facts->RecordGangObject(gang.objects.at(object.dialect), ctx);
  if (another && object.dialect == GangDialect::kOwner) OnOwnerChanged(gang, ctx);
  return absl::OkStatus();
}

absl::Status Ingest::RemoveObject(const RemoveGangObject& command, ApplyContext* ctx) {
  const std::string key = absl::StrCat(command.name_space, "/", command.name);
  const Gang* found = r_.gangs->FindGang(key);
  if (found == nullptr || !r_.gangs->DropObject(*found, command.dialect)) {
    if (!command.must_exist) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("there is no gang ", key, " that was created here"));
  }
  const Gang& gang = *found;
  r_.facts->EraseGangObject(command.dialect, gang.name_space, gang.name, ctx);
  Redeclare(gang);
  if (command.dialect == GangDialect::kOwner) OnOwnerChanged(gang, ctx);
  // D-12: without its PodGroup the gang does not exist; pods that need the PodGroup wait for a new one.
  if (r_.eligibility->StructureReason(gang).none()) return absl::OkStatus();
  if (const Plan* plan = r_.plans->Of(gang); plan != nullptr && !plan->committed) {
    r_.plan_lifecycle->Withdraw(gang, ReasonCode::kUnknownGang, "the PodGroup was deleted", ctx);
  }
  r_.pod_lifecycle->EndAllWaits(
      gang, {ReasonCode::kUnknownGang, absl::StrCat("gang ", gang.key, ": the PodGroup was deleted")}, ctx);
  return absl::OkStatus();
}

void Ingest::Redeclare(const Gang& gang) {
  r_.gangs->Redeclare(gang);
  OnRulesChanged(gang);
}

void Ingest::RetainFutureClasses(const Gang& gang) {
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

void Ingest::OnRulesChanged(const Gang& gang) {
  RetainFutureClasses(gang);
  if (!r_.backlog->why(gang.id).none()) r_.planning->LeaveBucket(gang);
  r_.backlog->ClearReason(gang.id);
  // Its domains may have changed: pods that they refused are activated like all refused pods (P-4, K-7).
  for (const Pod* pod : gang.in(MemberState::kPending)) r_.activations->RemoveGuarded(*pod);
  r_.gangs->Touch(gang);
}

// Whether the record is of this gang and not of an earlier one with its name: its PodGroup or a member still exists.
bool Ingest::IsIncarnationOf(const Gang& gang, const std::string& incarnation) {
  if (incarnation.empty()) return true;
  const bool same_object =
      absl::c_any_of(gang.objects, [&](const auto& object) { return object.second.uid == incarnation; });
  return same_object || absl::c_any_of(gang.members, [&](const MemberSet& set) {
           return absl::c_any_of(set, [&](const Pod* pod) { return pod->facts.uid == incarnation; });
         });
}

// K-13: a commitment without a binding belongs to an interrupted start. Its gang and the gangs that started with it are
// completed like every partially bound gang: the mark recorded at the commit does not count as satisfied. A pod that
// its caller binds stays permitted. A lone pod keeps its node while its binding may be in flight. Returns the
// commitments of interrupted starts.
Ingest::InterruptedStarts Ingest::RestoreCommitments(ApplyContext* ctx) {
  std::vector<std::string> restored_uids;
  InterruptedStarts interrupted;
  for (const Commitment& commitment : r_.restored->commitments()) {
    const Pod* pod = r_.gangs->FindPod(commitment.uid);
    if (pod != nullptr && !pod->facts.node_name.empty()) continue;
    if (pod != nullptr && r_.bindings->RestoreCommitment(*pod, commitment, ctx)) {
      restored_uids.push_back(commitment.uid);
      continue;
    }
    if (commitment.start == 0) continue;  // a single pod: its gang, if any, had started before
    interrupted[commitment.start].push_back(commitment);
    if (const Gang* gang = r_.gangs->FindGang(commitment.gang); gang != nullptr) r_.gangs->SetSatisfied(*gang, false);
  }
  for (const auto& [plan, start] : r_.restored->starts()) {
    if (!interrupted.contains(plan)) continue;
    for (const std::string& key : start.gangs) {
      if (const Gang* gang = r_.gangs->FindGang(key); gang != nullptr) r_.gangs->SetSatisfied(*gang, false);
    }
  }
  // P-7: capacity for future members is reserved again, before any other gang is planned.
  r_.gangs->ForEachGang([&](const Gang& gang) {
    const bool had_future_slots =
        gang.durable.future_slots_until_ms > ctx->now_ms() && gang.quorum().FutureMembers() > 0;
    if (had_future_slots && gang.active() > 0) r_.gangs->SetSatisfied(gang, false);
  });
  r_.restored->DiscardUnclaimed(restored_uids, ctx);
  return interrupted;
}

// The previous process may have sent bindings that the API server has not carried out yet. The gangs get the same nodes
// again, so that each late binding finds its capacity reserved.
void Ingest::RestorePlans(const std::vector<Commitment>& start, ApplyContext* ctx) {
  std::vector<PlanMaker::Destination> places;
  for (const Commitment& commitment : start) {
    const Pod* pod = r_.gangs->FindPod(commitment.uid);
    const bool to_place = pod != nullptr && pod->gang != nullptr && pod->state == MemberState::kPending;
    if (to_place && r_.gangs->Plannable(*pod)) places.push_back({pod, r_.cluster->FindNode(commitment.node)});
  }
  if (places.empty()) return;
  const Group gangs = r_.eligibility->Unplaced(*places.front().pod->gang);
  const bool allowed = absl::c_all_of(gangs, [&](const Gang* gang) {
    return !gang->durable.satisfied && r_.plans->Of(*gang) == nullptr &&
           r_.eligibility->PlanReason(*gang, ctx->now_ms()).none();
  });
  if (!allowed || gangs.empty() || !r_.planning->plan_maker().Restore(ClaimsOf(gangs), places, ctx)) return;
  // The required domains may have changed since (P-4).
  for (const PlanMaker::Destination& place : places) r_.plan_lifecycle->WithdrawBrokenPlans(place.node, ctx);
}

// Reasons name the sources that are still being read: recompute them.
void Ingest::RefreshReadStatus() {
  if (!r_.sources->complete()) r_.gangs->ForEachGang([&](const Gang& gang) { r_.gangs->Touch(gang); });
}

void Ingest::ExpectSources(const std::vector<std::string>& sources) {
  r_.sources->Expect(sources);
  RefreshReadStatus();
}

void Ingest::Complete(const std::string& source, ApplyContext* ctx) {
  if (!r_.sources->Complete(source)) return RefreshReadStatus();
  if (r_.cluster->by_namespaces()) Reclassify(nullptr, ctx);
  r_.gangs->ForEachGang([&](const Gang& gang) {
    if (!IsIncarnationOf(gang, gang.durable.incarnation)) r_.gangs->DiscardRestored(gang);
  });
  const InterruptedStarts interrupted = RestoreCommitments(ctx);
  for (const std::string& uid : r_.gangs->Uids()) {
    const Pod& pod = *r_.gangs->FindPod(uid);
    // The caller that bound it through the previous process may have received no answer.
    if (!pod.facts.node_name.empty()) r_.bindings->OnCallerGone(pod, ctx->now_ms());
    const bool gated = pod.facts.our_gate || pod.facts.other_gates;
    const bool asked = pod.state == MemberState::kPending || r_.pod_lifecycle->IsRestored(pod);
    if (!asked || gated || !r_.gangs->Serves(pod)) continue;
    // K-14: kube-scheduler made these unschedulable while Muster did not answer, or answered that it is still reading.
    // The condition on the pod may arrive later than all other facts.
    const bool parked = !pod.facts.unschedulable.empty() || r_.activations->Of(pod).unschedulable;
    if (pod.gang != nullptr || parked) r_.activations->Activate(pod, kNoNode, 0, ctx);
    r_.activations->SetUnschedulable(pod, pod.gang != nullptr);
  }
  r_.gangs->ForEachGang([&](const Gang& gang) {
    // The wait time ended before the restart: set the mark on members that did not get it.
    if (gang.durable.timed_out) r_.plan_lifecycle->MarkMembersTimedOut(gang, ctx);
    r_.repair->ResumeAfterRestart(gang, ctx);
    r_.gangs->Touch(gang);
  });
  for (const auto& [plan, commitments] : interrupted) RestorePlans(commitments, ctx);
}

void Ingest::RestoreFacts(ApplyContext* ctx) {
  if (r_.restored->empty()) return;
  DurableFacts restored = r_.restored->TakeFacts();
  if (!r_.facts->records_all()) {
    r_.facts->BeginReplay();
    for (const GangObject& object : restored.created) ctx->Refuse(PutObject({object}, ctx));
    return r_.facts->EndReplay();
  }
  absl::c_sort(restored.submissions, [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  r_.facts->BeginReplay();
  for (const GangObject& object : restored.objects) ctx->Refuse(PutObject({object}, ctx));
  for (const NodeDescription& node : restored.nodes) ctx->Refuse(PutNode(node, ctx));
  for (DurableSubmission& submission : restored.submissions) {
    if (submission.ended) {
      r_.submissions->RestoreEnded(submission.id, {std::move(submission.reply), submission.sequence});
      continue;
    }
    const std::pair<std::string, std::string> key = absl::StrSplit(submission.gang, absl::MaxSplits('/', 1));
    const Gang& gang = InternGang(key.first, key.second, ctx->now_ms(), ctx->now_ms());
    if (const Submission* other = r_.submissions->Of(gang); other != nullptr) {
      ctx->Refuse(absl::InvalidArgumentError(absl::StrCat("stored submission ", submission.id, ": gang ", gang.key,
                                                          " is that of submission ", other->id, " already")));
      continue;
    }
    r_.submissions->Open(gang, submission.id, submission.ttl_ms, submission.fingerprint);
    r_.submissions->OnQueried(gang, /*planned=*/false, ctx->now_ms());
  }
  // In order of creation: the first member that declares a gang decides its rules (D-9).
  absl::c_sort(restored.pods, [](const DurablePod& a, const DurablePod& b) {
    return std::tie(a.facts.created_ms, a.facts.uid) < std::tie(b.facts.created_ms, b.facts.uid);
  });
  for (const DurablePod& pod : restored.pods) ctx->Refuse(PutPod(pod.facts, pod.submitted, ctx));
  r_.facts->EndReplay();
  if (!restored.announcer.empty()) {
    // A restart does not make facts current: an announcer that was silent before has been silent since then.
    const bool silent = restored.stale_since_ms > 0;
    const int64_t since = silent ? std::min(restored.stale_since_ms, ctx->now_ms()) : ctx->now_ms();
    r_.sources->TakeStep(restored.announcer, restored.version);
    r_.sources->SetStaleSince(since);
    SetFreshness(Freshness::kCurrent, Freshness::kRestored);
    if (!silent) r_.facts->RecordStep(restored.announcer, restored.version, since, ctx);
    if (r_.sources->ExpiresAt() <= ctx->now_ms()) ExpireStaleNodes(ctx);
  }
  Complete("", ctx);
}

absl::Status Ingest::Check(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods) const {
  for (const NodeDescription& node : nodes) {
    if (const absl::Status amounts = CheckAmounts(node.allocatable); !amounts.ok()) {
      return InvalidArgument({{Subject::kNode, node.name, absl::StrCat("node ", node.name, ": ", amounts.message())}});
    }
  }
  absl::flat_hash_map<absl::string_view, const PodDescription*> seen;
  for (const PodDescription& pod : pods) {
    if (pod.uid.empty() || pod.name.empty()) {
      return InvalidArgument({{Subject::kField, "pod", "uid and name must not be empty"}});
    }
    const Pod* known = r_.gangs->FindPod(pod.uid);
    const PodDescription* other = known == nullptr ? nullptr : &known->facts;
    if (const auto [at, fresh] = seen.emplace(pod.uid, &pod); !fresh) other = at->second;
    if (other == nullptr || (other->name == pod.name && other->name_space == pod.name_space)) continue;
    return InvalidArgument(
        {{Subject::kPod, pod.uid,
          absl::StrCat("pod uid ", pod.uid, ": is ", other->name_space, "/", other->name, ", announced as ",
                       pod.name_space, "/", pod.name, "; a UID belongs to one pod")}});
  }
  return absl::OkStatus();
}

void Ingest::RemoveAbsent(const ReplaceFacts& snapshot, ApplyContext* ctx) {
  r_.refused->ClearNodes();  // Check has accepted all nodes of the snapshot
  absl::flat_hash_set<absl::string_view> uids;
  for (const PodDescription& pod : snapshot.pods) uids.insert(pod.uid);
  for (const std::string& uid : r_.gangs->Uids()) {
    if (!uids.contains(uid) && !r_.gangs->FindPod(uid)->submitted) RemovePod(uid, ctx);
  }
  absl::flat_hash_set<absl::string_view> names;
  for (const NodeDescription& node : snapshot.nodes) names.insert(node.name);
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    const Node& node = r_.cluster->node(id);
    if (node.known && node.present && !names.contains(node.facts.name)) RemoveNode(std::string(node.facts.name), ctx);
  }
  absl::flat_hash_set<std::pair<std::string, GangDialect>> objects;
  for (const GangObject& gang : snapshot.gangs) {
    objects.emplace(absl::StrCat(gang.name_space, "/", gang.name), gang.dialect);
  }
  std::vector<RemoveGangObject> absent;
  r_.gangs->ForEachGang([&](const Gang& gang) {
    for (const auto& [dialect, object] : gang.objects) {
      if (dialect == GangDialect::kApi || objects.contains(std::pair(gang.key, dialect))) continue;
      absent.push_back({dialect, gang.name_space, gang.name, /*must_exist=*/false});
    }
  });
  for (const RemoveGangObject& object : absent) ctx->Refuse(RemoveObject(object, ctx));
}

void Ingest::PutAll(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods,
                    ApplyContext* ctx) {
  for (const NodeDescription& node : nodes) ctx->Refuse(PutNode(node, ctx));
  for (const PodDescription& pod : pods) ctx->Refuse(PutPod(pod, /*submitted=*/false, ctx));
}

void Ingest::OnFactsStep(const FactsVersion& taken, ApplyContext* ctx) {
  r_.sources->TakeStep(taken.source, taken.version);
  r_.facts->RecordStep(taken.source, taken.version, /*stale_since_ms=*/0, ctx);
  ClearStale();
}

void Ingest::SetFreshness(Freshness from, Freshness to) {
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    const Node& node = r_.cluster->node(id);
    if (!node.known || !node.present || node.freshness != from) continue;
    r_.cluster->SetFreshness(id, to);
    r_.ledger->MarkNode(id);
  }
}

void Ingest::ConfirmRestoredFacts(ApplyContext* ctx) {
  if (r_.sources->stale_since_ms() == kNever) return;
  r_.facts->RecordStep(r_.sources->announcer(), r_.sources->version(), /*stale_since_ms=*/0, ctx);
  ClearStale();
}

void Ingest::ClearStale() {
  if (r_.sources->stale_since_ms() == kNever) return;
  r_.sources->SetStaleSince(kNever);
  SetFreshness(Freshness::kRestored, Freshness::kCurrent);
  SetFreshness(Freshness::kExpired, Freshness::kCurrent);
}

void Ingest::ExpireStaleNodes(ApplyContext* ctx) {
  r_.sources->SetExpired();
  SetFreshness(Freshness::kRestored, Freshness::kExpired);
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    if (r_.cluster->node(id).known && r_.cluster->node(id).freshness == Freshness::kExpired)
      r_.plan_lifecycle->WithdrawBrokenPlans(id, ctx);
  }
}

void Ingest::ApplyUpdate(const UpdateFacts& update, ApplyContext* ctx) {
  for (const std::string& uid : update.removed_pods) RemovePod(uid, ctx);
  for (const std::string& name : update.removed_nodes) RemoveNode(name, ctx);
  for (const RemoveGangObject& gang : update.removed_gangs) ctx->Refuse(RemoveObject(gang, ctx));
  for (const GangObject& gang : update.gangs) ctx->Refuse(PutObject({gang}, ctx));
  PutAll(update.nodes, update.pods, ctx);
}

}  // namespace muster
