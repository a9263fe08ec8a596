#include "state/machine/ingest.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "state/base/problem.h"
#include "state/binding/broken_plans.h"
#include "state/binding/plan_lifecycle.h"
#include "state/cluster/ledger.h"
#include "state/gangs/gangs.h"
#include "state/gangs/refused_facts.h"
#include "state/gangs/sources.h"
#include "state/machine/fact_recorder.h"
#include "state/machine/pod_facts.h"

namespace muster {

absl::Status Ingest::OnUnreadableFact(const UnreadableFact& fact) {
  if (fact.kind == FactKind::kNode) {
    r_.refused->NoteNode(fact.name, fact.why);
  } else {
    r_.refused->Note(fact.kind);
  }
  return absl::InvalidArgumentError(fact.why);
}

absl::Status Ingest::PutPod(const PodDescription& facts, bool submitted, ApplyContext* ctx) {
  absl::Status put = r_.pod_facts->Put(facts, submitted, ctx);
  if (!put.ok()) r_.refused->Note(FactKind::kPod);
  return put;
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
  const Gang& gang = r_.gang_facts->Intern(object.name_space, object.name, object.created_ms, ctx->now_ms());
  const bool changed = r_.gangs->PutObject(gang, object);
  if (changed) r_.gang_facts->Redeclare(gang);
  if (changed || another) r_.recorder->RecordGangObject(gang.objects.at(object.dialect), ctx);
  if (another && object.dialect == GangDialect::kOwner) r_.pod_facts->OnOwnerChanged(gang, ctx);
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
  r_.recorder->EraseGangObject(command.dialect, gang, ctx);
  r_.gang_facts->Redeclare(gang);
  if (command.dialect == GangDialect::kOwner) r_.pod_facts->OnOwnerChanged(gang, ctx);
  // D-12: without its PodGroup the gang does not exist; pods that need the PodGroup wait for a new one.
  r_.plan_lifecycle->OnObjectRemoved(gang, ctx);
  return absl::OkStatus();
}

absl::Status Ingest::Check(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods) const {
  constexpr absl::string_view kTwice = " is announced twice in one step, with different facts";
  absl::flat_hash_map<absl::string_view, const NodeDescription*> named;
  for (const NodeDescription& node : nodes) {
    if (const absl::Status amounts = CheckAmounts(node.allocatable); !amounts.ok()) {
      return InvalidArgument({{Subject::kNode, node.name, absl::StrCat("node ", node.name, ": ", amounts.message())}});
    }
    if (*named.emplace(node.name, &node).first->second == node) continue;
    return InvalidArgument({{Subject::kNode, node.name, absl::StrCat("node ", node.name, kTwice)}});
  }
  absl::flat_hash_map<absl::string_view, const PodDescription*> seen;
  for (const PodDescription& pod : pods) {
    if (pod.uid.empty() || pod.name.empty()) {
      return InvalidArgument({{Subject::kField, "pod", "uid and name must not be empty"}});
    }
    const Pod* known = r_.gangs->FindPod(pod.uid);
    const PodDescription* other = known == nullptr ? nullptr : &known->facts;
    const auto [at, fresh] = seen.emplace(pod.uid, &pod);
    if (!fresh) other = at->second;
    if (other == nullptr) continue;
    const bool same = other->name == pod.name && other->name_space == pod.name_space;
    if (same && (fresh || pod == *other)) continue;
    if (same) return InvalidArgument({{Subject::kPod, pod.uid, absl::StrCat("pod uid ", pod.uid, kTwice)}});
    return InvalidArgument(
        {{Subject::kPod, pod.uid,
          absl::StrCat("pod uid ", pod.uid, ": is ", other->name_space, "/", other->name, ", announced as ",
                       pod.name_space, "/", pod.name, "; a UID belongs to one pod")}});
  }
  return absl::OkStatus();
}

void Ingest::Replace(const ReplaceFacts& snapshot, ApplyContext* ctx) {
  RemoveAbsent(snapshot, ctx);
  PutAll(snapshot.gangs, snapshot.nodes, snapshot.pods, ctx);
}

void Ingest::RemoveAbsent(const ReplaceFacts& snapshot, ApplyContext* ctx) {
  absl::flat_hash_set<absl::string_view> uids;
  for (const PodDescription& pod : snapshot.pods) uids.insert(pod.uid);
  for (const std::string& uid : r_.gangs->Uids()) {
    if (!uids.contains(uid) && !r_.gangs->FindPod(uid)->submitted) r_.pod_facts->Remove(uid, ctx);
  }
  r_.refused->ClearNodes();  // Check has accepted all nodes of the snapshot
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

void Ingest::Update(const UpdateFacts& update, ApplyContext* ctx) {
  for (const std::string& uid : update.removed_pods) r_.pod_facts->Remove(uid, ctx);
  for (const std::string& name : update.removed_nodes) RemoveNode(name, ctx);
  for (const RemoveGangObject& gang : update.removed_gangs) ctx->Refuse(RemoveObject(gang, ctx));
  PutAll(update.gangs, update.nodes, update.pods, ctx);
}

void Ingest::PutAll(const std::vector<GangObject>& gangs, const std::vector<NodeDescription>& nodes,
                    const std::vector<PodDescription>& pods, ApplyContext* ctx) {
  for (const GangObject& gang : gangs) ctx->Refuse(PutObject({gang}, ctx));
  for (const NodeDescription& node : nodes) ctx->Refuse(PutNode(node, ctx));
  for (const PodDescription& pod : pods) ctx->Refuse(PutPod(pod, /*submitted=*/false, ctx));
}

bool Ingest::RestoreFacts(DurableFacts restored, ApplyContext* ctx) {
  r_.recorder->BeginReplay();
  if (!r_.recorder->records_all()) {
    PutAll(restored.created, {}, {}, ctx);
    r_.recorder->EndReplay();
    return false;
  }
  PutAll(restored.objects, restored.nodes, {}, ctx);
  absl::c_sort(restored.submissions, [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  for (DurableSubmission& submission : restored.submissions) {
    const std::pair<std::string, std::string> key = absl::StrSplit(submission.gang, absl::MaxSplits('/', 1));
    const Gang* gang =
        submission.ended ? nullptr : &r_.gang_facts->Intern(key.first, key.second, ctx->now_ms(), ctx->now_ms());
    ctx->Refuse(r_.recorder->RestoreSubmission(std::move(submission), gang, ctx->now_ms()));
  }
  // In order of creation: the first member that declares a gang decides its rules (D-9).
  absl::c_sort(restored.pods, [](const DurablePod& a, const DurablePod& b) {
    return std::tie(a.facts.created_ms, a.facts.uid) < std::tie(b.facts.created_ms, b.facts.uid);
  });
  for (const DurablePod& pod : restored.pods) ctx->Refuse(PutPod(pod.facts, pod.submitted, ctx));
  r_.recorder->EndReplay();
  RestoreAnnouncer(restored.announcer, ctx);
  return true;
}

// --- nodes, and how fresh their facts are after a restart ---

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
  SetFreshness(id, Freshness::kCurrent);
  if (!*changed) return absl::OkStatus();
  r_.ledger->MarkNode(id);
  r_.broken_plans->Withdraw(id, ctx);
  if (moves) r_.broken_plans->WithdrawElsewhere(/*all=*/relabelled, ctx);
  r_.recorder->RecordNode(node, ctx);
  return absl::OkStatus();
}

void Ingest::RemoveNode(const std::string& name, ApplyContext* ctx) {
  r_.refused->ClearNode(name);
  const NodeId id = r_.cluster->FindNode(name);
  if (id == kNoNode) return;
  r_.ledger->MarkNode(id);
  r_.ledger->MarkRemoved(name);  // by name: its id may be reused before readers are notified
  r_.cluster->RemoveNode(name);
  r_.recorder->EraseNode(name, ctx);
  r_.broken_plans->Withdraw(id, ctx);
  r_.broken_plans->WithdrawElsewhere(/*all=*/false, ctx);
}

void Ingest::OnFactsStep(const FactsVersion& taken, ApplyContext* ctx) {
  r_.sources->TakeStep(taken.source, taken.version);
  r_.recorder->RecordAnnouncer({taken.source, taken.version}, ctx);
  ClearStale();
}

// An earlier process received the facts from this announcer, and recorded them.
void Ingest::RestoreAnnouncer(const Announcer& restored, ApplyContext* ctx) {
  if (restored.source.empty()) return;
  // A restart does not make facts current: an announcer that was silent before has been silent since then.
  const bool silent = restored.stale_since_ms > 0;
  const int64_t since = silent ? std::min(restored.stale_since_ms, ctx->now_ms()) : ctx->now_ms();
  r_.sources->TakeStep(restored.source, restored.version);
  r_.sources->SetStaleSince(since);
  ReplaceFreshness(Freshness::kCurrent, Freshness::kRestored);
  if (!silent) r_.recorder->RecordAnnouncer({restored.source, restored.version, since}, ctx);
  if (r_.sources->ExpiresAt() <= ctx->now_ms()) ExpireStaleNodes(ctx);
}

void Ingest::ConfirmRestoredFacts(ApplyContext* ctx) {
  if (r_.sources->stale_since_ms() == kNever) return;
  r_.recorder->RecordAnnouncer({r_.sources->announcer(), r_.sources->version()}, ctx);
  ClearStale();
}

void Ingest::ClearStale() {
  if (r_.sources->stale_since_ms() == kNever) return;
  r_.sources->SetStaleSince(kNever);
  ReplaceFreshness(Freshness::kRestored, Freshness::kCurrent);
  ReplaceFreshness(Freshness::kExpired, Freshness::kCurrent);
}

void Ingest::ExpireStaleNodes(ApplyContext* ctx) {
  r_.sources->SetExpired();
  ReplaceFreshness(Freshness::kRestored, Freshness::kExpired);
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    if (r_.cluster->node(id).known && r_.cluster->node(id).freshness == Freshness::kExpired)
      r_.broken_plans->Withdraw(id, ctx);
  }
}

// Changes the freshness of all present nodes that have `from`.
void Ingest::ReplaceFreshness(Freshness from, Freshness to) {
  for (NodeId id = 0; id < r_.cluster->node_limit(); ++id) {
    const Node& node = r_.cluster->node(id);
    if (node.known && node.present && node.freshness == from) SetFreshness(id, to);
  }
}

void Ingest::SetFreshness(NodeId id, Freshness freshness) {
  if (r_.cluster->node(id).freshness == freshness) return;
  r_.cluster->SetFreshness(id, freshness);
  r_.ledger->MarkNode(id);
}

}  // namespace muster
