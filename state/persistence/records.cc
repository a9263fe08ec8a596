#include "state/persistence/records.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/store/v1/records.pb.h"

namespace muster {
namespace {

constexpr char kGang[] = "gang";
constexpr char kStart[] = "start";
constexpr char kCommit[] = "commit";
constexpr char kPlans[] = "plans";
constexpr char kEffects[] = "effects";
constexpr char kQueues[] = "queues";
constexpr int32_t kRecordFormat = 1;

void Write(absl::string_view kind, std::string key, std::string value, ApplyContext* ctx) {
  ctx->PutRecord(
      {.kind = std::string(kind), .key = std::move(key), .format = kRecordFormat, .value = std::move(value)});
}

absl::Status Unreadable(const Record& record, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("record \"", RecordName(record), "\": ", why));
}

// nullopt: the value cannot be parsed, or the queues form no valid tree.
std::optional<std::vector<QueueSpec>> ReadQueuesRecord(const std::string& value) {
  store::v1::QueuesRecord parsed;
  if (!parsed.ParseFromString(value)) return std::nullopt;
  QueueRules rules;
  for (const auto& queue : parsed.queues()) {
    QueueSpec& out = rules.queues.emplace_back();
    out.name = queue.name();
    out.parent = queue.parent();
    out.quota = {queue.quota().begin(), queue.quota().end()};
    out.limit = {queue.limit().begin(), queue.limit().end()};
    out.over_quota_weight = {queue.over_quota_weight().begin(), queue.over_quota_weight().end()};
    out.priority = queue.priority();
    out.max_applications = queue.max_applications();
    out.sort = queue.sort() == static_cast<int>(QueueSort::kFair) ? QueueSort::kFair : QueueSort::kFifo;
  }
  if (!ValidateQueues(rules).empty()) return std::nullopt;
  return std::move(rules.queues);
}

}  // namespace

bool WriteGangRecord(const Gang& gang, ApplyContext* ctx) {
  store::v1::GangRecord record;
  record.set_satisfied(gang.durable.satisfied);
  record.set_timed_out(gang.durable.timed_out);
  record.set_held_ms(gang.durable.held_ms);
  record.set_requeues(gang.durable.requeues);
  record.set_cycles_passed(gang.durable.cycle - 1);
  record.set_cycle_invalid(!gang.durable.cycle_valid);
  record.set_evicting(gang.durable.evicting);
  record.set_passed_since_ms(gang.durable.bypassed_since_ms);
  record.set_started_ms(gang.durable.started_ms);
  record.set_room_until_ms(gang.durable.future_slots_until_ms);
  for (const std::string& uid : gang.durable.failed) record.add_failed(uid);
  std::string value = record.SerializeAsString();
  const bool recorded = !value.empty();
  if (!recorded && !gang.recorded) return false;
  ctx->PutRecord({kGang, gang.key, gang.durable.incarnation, kRecordFormat, std::move(value)});
  return recorded;
}

void DeleteGangRecord(absl::string_view gang, ApplyContext* ctx) { Write(kGang, std::string(gang), "", ctx); }

void WriteStartRecord(Start start, ApplyContext* ctx) {
  store::v1::StartRecord record;
  for (std::string& gang : start.gangs) record.add_gangs(std::move(gang));
  for (Start::Place& place : start.places) {
    store::v1::StartRecord::Place& out = *record.add_places();
    out.set_uid(std::move(place.uid));
    out.set_node(std::move(place.node));
    out.set_gang(place.gang);
  }
  record.set_deadline_ms(start.deadline_ms);
  Write(kStart, absl::StrCat(start.plan), record.SerializeAsString(), ctx);
}

void DeleteStartRecord(int64_t plan, ApplyContext* ctx) { Write(kStart, absl::StrCat(plan), "", ctx); }

void WriteCommitRecord(Commitment commitment, ApplyContext* ctx) {
  store::v1::CommitRecord record;
  record.set_node(std::move(commitment.node));
  record.set_gang(std::move(commitment.gang));
  record.set_start(commitment.start);
  record.set_permitted(commitment.permitted);
  record.set_bind_within_ms(commitment.bind_within_ms);
  Write(kCommit, std::move(commitment.uid), record.SerializeAsString(), ctx);
}

void DeleteCommitRecord(absl::string_view uid, ApplyContext* ctx) { Write(kCommit, std::string(uid), "", ctx); }

void WritePlansRecord(int64_t next, ApplyContext* ctx) {
  store::v1::PlansRecord record;
  record.set_next(next);
  Write(kPlans, "", record.SerializeAsString(), ctx);
}

Record EffectsRecord(int64_t reserved) {
  store::v1::EffectsRecord record;
  record.set_reserved(reserved);
  return {.kind = kEffects, .key = "", .format = kRecordFormat, .value = record.SerializeAsString()};
}

void WriteQueuesRecord(absl::Span<const QueueSpec> queues, ApplyContext* ctx) {
  store::v1::QueuesRecord record;
  for (const QueueSpec& queue : queues) {
    store::v1::QueuesRecord::Queue& out = *record.add_queues();
    out.set_name(queue.name);
    out.set_parent(queue.parent);
    out.mutable_quota()->insert(queue.quota.begin(), queue.quota.end());
    out.mutable_limit()->insert(queue.limit.begin(), queue.limit.end());
    out.mutable_over_quota_weight()->insert(queue.over_quota_weight.begin(), queue.over_quota_weight.end());
    out.set_priority(queue.priority);
    out.set_max_applications(queue.max_applications);
    out.set_sort(static_cast<int>(queue.sort));
  }
  Write(kQueues, "", record.SerializeAsString(), ctx);
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
  if (record.kind == kGang) {
    store::v1::GangRecord parsed;
    if (!parsed.ParseFromString(record.value)) return Unreadable(record, "not a readable GangRecord");
    gangs_[record.key] = DurableGangState{.satisfied = parsed.satisfied(),
                                          .timed_out = parsed.timed_out(),
                                          .evicting = parsed.evicting(),
                                          .held_ms = parsed.held_ms(),
                                          .requeues = parsed.requeues(),
                                          .cycle = parsed.cycles_passed() + 1,
                                          .cycle_valid = !parsed.cycle_invalid(),
                                          .incarnation = record.incarnation,
                                          .bypassed_since_ms = parsed.passed_since_ms(),
                                          .started_ms = parsed.started_ms(),
                                          .future_slots_until_ms = parsed.room_until_ms(),
                                          .failed = {parsed.failed().begin(), parsed.failed().end()}};
    return absl::OkStatus();
  }
  if (record.kind == kCommit) {
    store::v1::CommitRecord parsed;
    if (!parsed.ParseFromString(record.value)) return Unreadable(record, "not a readable CommitRecord");
    commitments_.push_back(
        {record.key, parsed.node(), parsed.gang(), parsed.start(), parsed.permitted(), parsed.bind_within_ms()});
    return absl::OkStatus();
  }
  if (record.kind == kStart) {
    store::v1::StartRecord parsed;
    Start start;
    if (!parsed.ParseFromString(record.value) || !absl::SimpleAtoi(record.key, &start.plan)) {
      return Unreadable(record, "not a readable StartRecord");
    }
    start.gangs.assign(parsed.gangs().begin(), parsed.gangs().end());
    for (const auto& place : parsed.places()) start.places.push_back({place.uid(), place.node(), place.gang()});
    start.deadline_ms = parsed.deadline_ms();
    starts_[start.plan] = std::move(start);
    return absl::OkStatus();
  }
  if (record.kind == kPlans) {
    store::v1::PlansRecord parsed;
    if (!parsed.ParseFromString(record.value)) return Unreadable(record, "not a readable PlansRecord");
    next_plan_ = std::max(next_plan_, parsed.next());
    return absl::OkStatus();
  }
  if (record.kind == kEffects) {
    store::v1::EffectsRecord parsed;
    if (!parsed.ParseFromString(record.value)) return Unreadable(record, "not a readable EffectsRecord");
    effects_reserved_ = std::max(effects_reserved_, parsed.reserved());
    return absl::OkStatus();
  }
  if (record.kind == kQueues) {
    std::optional<std::vector<QueueSpec>> queues = ReadQueuesRecord(record.value);
    if (!queues.has_value()) return Unreadable(record, "not a readable QueuesRecord");
    queues_ = *std::move(queues);
    return absl::OkStatus();
  }
  bool known = false;
  if (const absl::Status read = facts_.Read(record, &known); !read.ok()) return Unreadable(record, read.message());
  if (known) return absl::OkStatus();
  return Unreadable(record,
                    "unknown kind; expected gang, start, commit, plans, effects, queues, node, pod, podgroup, "
                    "created, announcer or submission");
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
