#include "state/persistence/records.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/store/v1/records.pb.h"
#include "state/persistence/fields.h"

namespace muster {

namespace proto = store::v1;

namespace {

constexpr char kGang[] = "gang";
constexpr char kStart[] = "start";
constexpr char kCommit[] = "commit";
constexpr char kPlans[] = "plans";
constexpr char kEffects[] = "effects";
constexpr char kQueues[] = "queues";
constexpr int32_t kRecordFormat = 1;

void Put(absl::string_view kind, std::string key, std::string value, ApplyContext* ctx) {
  ctx->PutRecord(
      {.kind = std::string(kind), .key = std::move(key), .format = kRecordFormat, .value = std::move(value)});
}

absl::Status Unreadable(const Record& record, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("record \"", RecordName(record), "\": ", why));
}

}  // namespace

void Convert(Pair<DurableGangState, proto::GangRecord> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(satisfied, timed_out, evicting, held_ms, requeues, started_ms, failed);
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

void Convert(Pair<QueueSpec, proto::QueuesRecord::Queue> /*types*/, auto& value, auto& message) {
  MUSTER_FIELDS(name, parent, quota, limit, over_quota_weight, priority, max_applications, sort);
}

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
  bool known = false;
  absl::Status read = ReadPromise(record, &known);
  if (!known) read = facts_.Read(record, &known);
  if (!known) {
    return Unreadable(record,
                      "unknown kind; expected gang, start, commit, plans, effects, queues, node, pod, podgroup, "
                      "created, announcer or submission");
  }
  return read.ok() ? read : Unreadable(record, read.message());
}

absl::Status RestoredRecords::ReadPromise(const Record& record, bool* known) {
  *known = true;
  if (record.kind == kGang) {
    DurableGangState& gang = gangs_[record.key];
    gang.incarnation = record.incarnation;
    return ReadMessage<proto::GangRecord>(record, [&](const auto& message) { Read(message, &gang); });
  }
  if (record.kind == kCommit) {
    Commitment& commitment = commitments_.emplace_back();
    commitment.uid = record.key;
    return ReadMessage<proto::CommitRecord>(record, [&](const auto& message) { Read(message, &commitment); });
  }
  if (record.kind == kStart) {
    Start start;
    if (!absl::SimpleAtoi(record.key, &start.plan)) return absl::InvalidArgumentError("not a readable StartRecord");
    return ReadMessage<proto::StartRecord>(record, [&](const auto& message) {
      Read(message, &start);
      starts_[start.plan] = std::move(start);
    });
  }
  if (record.kind == kPlans) {
    return ReadMessage<proto::PlansRecord>(
        record, [&](const auto& message) { next_plan_ = std::max(next_plan_, message.next()); });
  }
  if (record.kind == kEffects) {
    return ReadMessage<proto::EffectsRecord>(
        record, [&](const auto& message) { effects_reserved_ = std::max(effects_reserved_, message.reserved()); });
  }
  if (record.kind == kQueues) {
    QueueRules rules;
    absl::Status read =
        ReadMessage<proto::QueuesRecord>(record, [&](const auto& message) { Read(message.queues(), &rules.queues); });
    for (QueueSpec& queue : rules.queues) {
      if (queue.sort != QueueSort::kFair) queue.sort = QueueSort::kFifo;
    }
    if (read.ok() && !ValidateQueues(rules).empty()) return absl::InvalidArgumentError("not a readable QueuesRecord");
    if (read.ok()) queues_ = std::move(rules.queues);
    return read;
  }
  *known = false;
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

}  // namespace muster
