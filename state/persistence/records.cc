#include "state/persistence/records.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/store/v1/records.pb.h"
#include "state/persistence/fields.h"

namespace muster {

namespace proto = store::v1;

// --- the fields of records (state/persistence/fields.h) ---

void Convert(Pair<Reason, proto::Reason> /*types*/, auto& value, auto& message) { MUSTER_FIELDS(code, text); }

void Convert(Pair<DurableAnswer, proto::AnswerRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(fingerprint, code, message, details, response);
}

// --- a pod's template ---

void Convert(Pair<SelectorRequirement, proto::Template::Requirement> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(key, values);
  MUSTER_FIELD(op, operator_);
}

void Convert(Pair<PodSelector, proto::Template::PodSelector> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(all_namespaces, namespaces, requirements, by_labels, namespace_labels);
}

void Convert(Pair<PodAffinityTerm, proto::Template::PodAffinityTerm> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(topology_key, selector);
}

void Convert(Pair<SpreadConstraint, proto::Template::Spread> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(topology_key, max_skew, min_domains, selector);
  MUSTER_FIELD(honor_taints, honors_taints);
  if constexpr (kReads<decltype(message)>) {
    value.honor_affinity = !message.ignores_affinity();
  } else {
    message.set_ignores_affinity(!value.honor_affinity);
  }
}

void Convert(Pair<NodeSelectorTerm, proto::Template::Term> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(expressions, fields);
}

void Convert(Pair<PreferredNode, proto::Template::PreferredNode> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(term, weight);
}

void Convert(Pair<WeightedPodAffinityTerm, proto::Template::WeightedPodAffinityTerm> /*types*/, auto& value,
             auto& message) {
  MUSTER_FIELDS(term, weight);
}

void Convert(Pair<Toleration, proto::Template::Toleration> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(key, exists, value, effect);
}

void Convert(Pair<HostPort, proto::Template::HostPort> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(protocol, port, ip);
}

void Convert(Pair<PodTemplate, proto::Template> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(requests, node_selector, has_affinity, affinity, tolerations, host_ports);
  MUSTER_FIELD(pod_affinity.affinity, pod_affinity);
  MUSTER_FIELD(pod_affinity.anti_affinity, pod_anti_affinity);
  MUSTER_FIELD(pod_affinity.spread, spread);
  MUSTER_FIELD(preferences.nodes, preferred_nodes);
  MUSTER_FIELD(preferences.pod_affinity, preferred_neighbours);
}

// --- a gang's declaration ---

void Convert(Pair<TopologyRule, proto::Topology> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(required, preferred, spread);
}

void Convert(Pair<SubgroupDeclaration, proto::Subgroup> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(name, parent, minimum, min_groups, topology, members);
}

void Convert(Pair<GangDeclaration, proto::Declaration> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(min_member, unreadable_minimum, total_number, wait_time_ms, mode, match_policy, priority, queue,
                on_timeout, on_member_failure, stale_grace_ms, preemptible, duration_ms, groups, warnings, topology,
                subgroups, caller);
  if constexpr (kReads<decltype(message)>) {
    if (message.has_min_resources()) Read(message.min_resources().amounts(), &value.min_resources);
  } else if (value.min_resources.has_value()) {  // present also when it names no resource
    Write(*value.min_resources, message.mutable_min_resources()->mutable_amounts());
  }
}

void Convert(Pair<GangMembership, proto::Membership> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(name, dialect, declares, declaration, ignored, subgroup, owner_uid);
  MUSTER_FIELD(key_dialect, said_in);
  if (!value.problem.none() || kReads<decltype(message)>) MUSTER_FIELD(problem, problem);
}

// --- records of facts; each record omits what its key contains ---

void Convert(Pair<Taint, proto::Taint> /*types*/, auto& value, auto& message) { MUSTER_FIELDS(key, value, effect); }

void Convert(Pair<NodeDescription, proto::NodeRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(labels, taints, unschedulable, allocatable);
}

void Convert(Pair<PodDescription, proto::PodRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(name, created_ms, priority, scheduler_name, shape, gang, node_name, nominated_node, phase, deleting,
                our_gate, other_gates, timed_out_mark, unschedulable, permanent, invalid);
  MUSTER_FIELD(name_space, namespace_);
  MUSTER_FIELD(activation_mark, called);
  if constexpr (kReads<decltype(message)>) {
    value.labels = PackLabels(Labels(message.labels().begin(), message.labels().end()));
  } else {
    Write(UnpackLabels(value.labels), message.mutable_labels());
  }
}

void Convert(Pair<DurablePod, proto::PodRecord> /*types*/, auto& value, auto& message) {
  Convert(Pair<PodDescription, proto::PodRecord>(), value.facts, message);
  MUSTER_FIELDS(submitted);
}

void Convert(Pair<GangObject, proto::PodGroupRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(dialect, name, uid, created_ms, declaration);
  MUSTER_FIELD(name_space, namespace_);
}

void Convert(Pair<SubmissionReply::Place, proto::SubmissionRecord::Place> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(uid, name, node);
}

void Convert(Pair<DurableSubmission, proto::SubmissionRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(gang, fingerprint, ttl_ms, ended, sequence);
  if (!value.ended) return;
  MUSTER_FIELD(reply.state, state);
  MUSTER_FIELD(reply.plan, plan);
  MUSTER_FIELD(reply.places, places);
  if (!value.reply.reason.none() || kReads<decltype(message)>) MUSTER_FIELD(reply.reason, reason);
}

void Convert(Pair<Announcer, proto::AnnouncerRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(source, version, stale_since_ms);
}

// --- records of promises ---

void Convert(Pair<DurableGangState, proto::GangRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(satisfied, timed_out, evicting, held_ms, requeues, started_ms, failed, queue);
  MUSTER_FIELD(bypassed_since_ms, passed_since_ms);
  MUSTER_FIELD(future_slots_until_ms, room_until_ms);
  if constexpr (kReads<decltype(message)>) {
    value.cycle = message.cycles_passed() + 1;
    value.cycle_valid = !message.cycle_invalid();
  } else {
    message.set_cycles_passed(value.cycle - 1);
    message.set_cycle_invalid(!value.cycle_valid);
  }
}

void Convert(Pair<Start::Place, proto::StartRecord::Place> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(uid, node, gang);
}

void Convert(Pair<Start, proto::StartRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(gangs, places, deadline_ms);
}

void Convert(Pair<Commitment, proto::CommitRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(node, gang, start, permitted, bind_within_ms);
}

void Convert(Pair<NamespaceSelector, proto::QueuesRecord::NamespaceSelector> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(requirements);
}

void Convert(Pair<QueueSpec, proto::QueuesRecord::Queue> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(name, parent, quota, limit, over_quota_weight, priority, max_applications, sort);
  MUSTER_FIELD(access.namespaces, namespaces);
  MUSTER_FIELD(access.namespace_selector, namespace_selector);
  MUSTER_FIELD(access.identities, identities);
}

// --- kinds of records ---

namespace {

constexpr char kGang[] = "gang";
constexpr char kStart[] = "start";
constexpr char kCommit[] = "commit";
constexpr char kPlans[] = "plans";
constexpr char kEffects[] = "effects";
constexpr char kQueues[] = "queues";
constexpr char kNode[] = "node";
constexpr char kPod[] = "pod";
constexpr char kPodGroup[] = "podgroup";
constexpr char kCreated[] = "created";
constexpr char kAnnouncer[] = "announcer";
constexpr char kSubmission[] = "submission";
constexpr int32_t kRecordFormat = 1;

// The value of a fact without any field: an empty value would delete the record.
constexpr char kEmptyMessage[] = "\x92\x7d\x00";  // an unknown field of length zero

// Stores the record; deletes it if `value` is empty.
void Put(const char* kind, std::string key, std::string value, ApplyContext* ctx) {
  ctx->PutRecord({.kind = kind, .key = std::move(key), .format = kRecordFormat, .value = std::move(value)});
}

template <typename Message>
void PutFact(const char* kind, std::string key, const Message& message, ApplyContext* ctx) {
  std::string value(message.ByteSizeLong(), '\0');
  {
    google::protobuf::io::ArrayOutputStream bytes(value.data(), static_cast<int>(value.size()));
    google::protobuf::io::CodedOutputStream out(&bytes);
    out.SetSerializationDeterministic(true);  // maps sorted by key: equal facts have equal bytes
    message.SerializeWithCachedSizes(&out);
  }
  if (value.empty()) value.assign(kEmptyMessage, 3);
  Put(kind, std::move(key), std::move(value), ctx);
}

std::string ObjectKey(GangDialect dialect, absl::string_view name_space, absl::string_view name) {
  return absl::StrCat(static_cast<int>(dialect), "/", name_space, "/", name);
}

absl::Status Unreadable(const Record& record, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("record \"", RecordName(record), "\": ", why));
}

}  // namespace

// --- writing ---

bool WriteGangRecord(const Gang& gang, ApplyContext* ctx) {
  proto::GangRecord record;
  Write(gang.durable, &record);
  std::string value = record.SerializeAsString();
  const bool recorded = !value.empty();
  if (!recorded && !gang.recorded) return false;
  ctx->PutRecord({kGang, gang.key, gang.durable.incarnation, kRecordFormat, std::move(value)});
  return recorded;
}

void DeleteGangRecord(absl::string_view gang, ApplyContext* ctx) { Put(kGang, std::string(gang), "", ctx); }

void WriteStartRecord(const Start& start, ApplyContext* ctx) {
  Put(kStart, absl::StrCat(start.plan), MessageOf<proto::StartRecord>(start).SerializeAsString(), ctx);
}

void DeleteStartRecord(int64_t plan, ApplyContext* ctx) { Put(kStart, absl::StrCat(plan), "", ctx); }

void WriteCommitRecord(const Commitment& commitment, ApplyContext* ctx) {
  Put(kCommit, commitment.uid, MessageOf<proto::CommitRecord>(commitment).SerializeAsString(), ctx);
}

void DeleteCommitRecord(absl::string_view uid, ApplyContext* ctx) { Put(kCommit, std::string(uid), "", ctx); }

void WritePlansRecord(int64_t next, ApplyContext* ctx) {
  proto::PlansRecord record;
  record.set_next(next);
  Put(kPlans, "", record.SerializeAsString(), ctx);
}

Record EffectsRecord(int64_t reserved) {
  proto::EffectsRecord record;
  record.set_reserved(reserved);
  return {.kind = kEffects, .key = "", .format = kRecordFormat, .value = record.SerializeAsString()};
}

void WriteQueuesRecord(absl::Span<const QueueSpec> queues, ApplyContext* ctx) {
  proto::QueuesRecord record;
  Write(queues, record.mutable_queues());
  Put(kQueues, "", record.SerializeAsString(), ctx);
}

std::vector<std::string> SnapshotKinds() { return {kNode, kAnnouncer}; }

void WriteNodeRecord(const NodeDescription& node, ApplyContext* ctx) {
  PutFact(kNode, node.name, MessageOf<proto::NodeRecord>(node), ctx);
}

void DeleteNodeRecord(absl::string_view name, ApplyContext* ctx) { Put(kNode, std::string(name), "", ctx); }

void WritePodRecord(const PodDescription& pod, bool submitted, ApplyContext* ctx) {
  proto::PodRecord record;
  Write(pod, &record);
  record.set_submitted(submitted);
  PutFact(kPod, pod.uid, record, ctx);
}

void DeletePodRecord(absl::string_view uid, ApplyContext* ctx) { Put(kPod, std::string(uid), "", ctx); }

void WriteObjectRecord(const GangObject& object, bool created, ApplyContext* ctx) {
  PutFact(created ? kCreated : kPodGroup, ObjectKey(object.dialect, object.name_space, object.name),
          MessageOf<proto::PodGroupRecord>(object), ctx);
}

void DeleteObjectRecord(GangDialect dialect, absl::string_view name_space, absl::string_view name, bool created,
                        ApplyContext* ctx) {
  Put(created ? kCreated : kPodGroup, ObjectKey(dialect, name_space, name), "", ctx);
}

void WriteAnnouncerRecord(const Announcer& announcer, ApplyContext* ctx) {
  PutFact(kAnnouncer, "", MessageOf<proto::AnnouncerRecord>(announcer), ctx);
}

void WriteSubmissionRecord(const DurableSubmission& submission, ApplyContext* ctx) {
  PutFact(kSubmission, submission.id, MessageOf<proto::SubmissionRecord>(submission), ctx);
}

void DeleteSubmissionRecord(absl::string_view id, ApplyContext* ctx) { Put(kSubmission, std::string(id), "", ctx); }

// --- RestoredRecords ---

absl::Status RestoredRecords::Load(absl::Span<const Record> records) {
  for (const Record& record : records) {
    if (absl::Status loaded = LoadOne(record); !loaded.ok()) return loaded;
    nothing_ = nothing_ && (record.kind == kEffects || record.kind == kQueues);
  }
  return absl::OkStatus();
}

absl::Status RestoredRecords::LoadOne(const Record& record) {
  if (record.format != kRecordFormat) {
    return Unreadable(record, absl::StrCat("written in format ", record.format, "; this process knows ", kRecordFormat,
                                           ": run the version of Muster that wrote it, or a newer one"));
  }
  absl::Status read = ReadByKind(record);
  return read.ok() ? read : Unreadable(record, read.message());
}

absl::Status RestoredRecords::ReadByKind(const Record& record) {
  if (record.kind == kGang) {
    DurableGangState& gang = gangs_[record.key];
    gang.incarnation = record.incarnation;
    return ReadRecord<proto::GangRecord>(record, &gang);
  }
  if (record.kind == kCommit) {
    Commitment& commitment = commitments_.emplace_back();
    commitment.uid = record.key;
    return ReadRecord<proto::CommitRecord>(record, &commitment);
  }
  if (record.kind == kStart) {
    Start start;
    if (!absl::SimpleAtoi(record.key, &start.plan)) return absl::InvalidArgumentError("not a readable StartRecord");
    absl::Status read = ReadRecord<proto::StartRecord>(record, &start);
    starts_[start.plan] = std::move(start);
    return read;
  }
  if (record.kind == kPlans) {
    proto::PlansRecord plans;
    absl::Status read = ParseRecord(record, &plans);
    next_plan_ = std::max(next_plan_, plans.next());
    return read;
  }
  if (record.kind == kEffects) {
    proto::EffectsRecord effects;
    absl::Status read = ParseRecord(record, &effects);
    effects_reserved_ = std::max(effects_reserved_, effects.reserved());
    return read;
  }
  if (record.kind == kQueues) return ReadQueues(record);
  return ReadFact(record);
}

absl::Status RestoredRecords::ReadQueues(const Record& record) {
  proto::QueuesRecord message;
  if (absl::Status read = ParseRecord(record, &message); !read.ok()) return read;
  QueueRules rules;
  Read(message.queues(), &rules.queues);
  for (QueueSpec& queue : rules.queues) {
    if (queue.sort != QueueSort::kFair) queue.sort = QueueSort::kFifo;
  }
  if (!ValidateQueues(rules).empty()) return absl::InvalidArgumentError("not a readable QueuesRecord");
  queues_ = std::move(rules.queues);
  return absl::OkStatus();
}

absl::Status RestoredRecords::ReadFact(const Record& record) {
  if (record.kind == kNode) {
    NodeDescription& node = facts_.nodes.emplace_back();
    node.name = record.key;
    return ReadRecord<proto::NodeRecord>(record, &node);
  }
  if (record.kind == kPod) {
    DurablePod& pod = facts_.pods.emplace_back();
    pod.facts.uid = record.key;
    return ReadRecord<proto::PodRecord>(record, &pod);
  }
  if (record.kind == kPodGroup || record.kind == kCreated) {
    return ReadRecord<proto::PodGroupRecord>(
        record, &(record.kind == kCreated ? facts_.created : facts_.objects).emplace_back());
  }
  if (record.kind == kAnnouncer) return ReadRecord<proto::AnnouncerRecord>(record, &facts_.announcer);
  if (record.kind == kSubmission) {
    DurableSubmission& submission = facts_.submissions.emplace_back();
    submission.id = record.key;
    absl::Status read = ReadRecord<proto::SubmissionRecord>(record, &submission);
    submission.reply.gang = submission.gang;
    submission.reply.fingerprint = submission.fingerprint;
    return read;
  }
  return absl::InvalidArgumentError(
      "unknown kind; expected gang, start, commit, plans, effects, queues, node, pod, podgroup, created, announcer or "
      "submission");
}

absl::Status RestoredRecords::CheckSource(bool persist_facts) const {
  const bool over_grpc = !facts_.nodes.empty() || !facts_.pods.empty() || !facts_.objects.empty() ||
                         !facts_.submissions.empty() || !facts_.announcer.source.empty();
  if (over_grpc && !persist_facts) {
    return absl::FailedPreconditionError(
        "it was written without Kubernetes: nodes and pods in it were announced over gRPC, and their promises with "
        "them; set kubernetes.enabled: false, or set another store.path");
  }
  // Promises without facts are about objects that another system stores.
  const bool promises = !gangs_.empty() || !commitments_.empty() || !starts_.empty();
  if (persist_facts && (!facts_.created.empty() || (!over_grpc && promises))) {
    return absl::FailedPreconditionError(
        "it was written with Kubernetes: its promises are about pods that only the API server knows; set "
        "kubernetes.enabled: true, or set another store.path");
  }
  return absl::OkStatus();
}

std::optional<DurableGangState> RestoredRecords::ClaimGang(const std::string& key) {
  const auto found = gangs_.find(key);
  if (found == gangs_.end()) return std::nullopt;
  const DurableGangState kept = found->second;
  gangs_.erase(found);
  return kept;
}

void RestoredRecords::DiscardUnclaimed(const std::vector<std::string>& taken, ApplyContext* ctx) {
  for (const Commitment& commitment : std::exchange(commitments_, {})) {
    if (absl::c_linear_search(taken, commitment.uid)) {
      starts_.erase(commitment.start);
    } else {
      DeleteCommitRecord(commitment.uid, ctx);
    }
  }
  for (const auto& [plan, start] : std::exchange(starts_, {})) DeleteStartRecord(plan, ctx);
  for (const auto& [key, kept] : std::exchange(gangs_, {})) DeleteGangRecord(key, ctx);
}

// --- answers by request id ---

constexpr char kAnswer[] = "answer";
constexpr int32_t kAnswerFormat = 1;

Record AnswerRecord(const DurableAnswer& answer) {
  return {.kind = kAnswer,
          .key = answer.key,
          .format = kAnswerFormat,
          .value = MessageOf<proto::AnswerRecord>(answer).SerializeAsString()};
}

Record AnswerDeletion(std::string key) { return {.kind = kAnswer, .key = std::move(key), .format = kAnswerFormat}; }

absl::StatusOr<std::vector<DurableAnswer>> TakeAnswers(std::vector<Record>* records) {
  const auto first = std::stable_partition(records->begin(), records->end(),
                                           [](const Record& record) { return record.kind != kAnswer; });
  std::vector<DurableAnswer> answers;
  for (auto record = first; record != records->end(); ++record) {
    DurableAnswer& answer = answers.emplace_back();
    answer.key = record->key;
    if (record->format != kAnswerFormat || !ReadRecord<proto::AnswerRecord>(*record, &answer).ok()) {
      return absl::InvalidArgumentError(absl::StrCat("record \"", RecordName(*record), "\", format ", record->format,
                                                     ": not a readable AnswerRecord; run the version of Muster that "
                                                     "wrote it, or a newer one"));
    }
  }
  records->erase(first, records->end());
  return answers;
}

}  // namespace muster
