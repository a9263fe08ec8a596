#include "state/persistence/records.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/store/v1/records.pb.h"
#include "state/persistence/record_fields.h"

namespace muster {
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
  proto::StartRecord record;
  Write(start, &record);
  Put(kStart, absl::StrCat(start.plan), record.SerializeAsString(), ctx);
}

void DeleteStartRecord(int64_t plan, ApplyContext* ctx) { Put(kStart, absl::StrCat(plan), "", ctx); }

void WriteCommitRecord(const Commitment& commitment, ApplyContext* ctx) {
  proto::CommitRecord record;
  Write(commitment, &record);
  Put(kCommit, commitment.uid, record.SerializeAsString(), ctx);
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
  proto::NodeRecord record;
  Write(node, &record);
  PutFact(kNode, node.name, record, ctx);
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
  proto::PodGroupRecord record;
  Write(object, &record);
  PutFact(created ? kCreated : kPodGroup, ObjectKey(object.dialect, object.name_space, object.name), record, ctx);
}

void DeleteObjectRecord(GangDialect dialect, absl::string_view name_space, absl::string_view name, bool created,
                        ApplyContext* ctx) {
  Put(created ? kCreated : kPodGroup, ObjectKey(dialect, name_space, name), "", ctx);
}

void WriteAnnouncerRecord(const Announcer& announcer, ApplyContext* ctx) {
  proto::AnnouncerRecord record;
  Write(announcer, &record);
  PutFact(kAnnouncer, "", record, ctx);
}

void WriteSubmissionRecord(const DurableSubmission& submission, ApplyContext* ctx) {
  proto::SubmissionRecord record;
  Write(submission, &record);
  PutFact(kSubmission, submission.id, record, ctx);
}

void DeleteSubmissionRecord(absl::string_view id, ApplyContext* ctx) { Put(kSubmission, std::string(id), "", ctx); }

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

}  // namespace muster
