// Durable records of the core (SPEC S-2): their kinds and formats, and the restored records that no gang or pod has
// claimed yet. Not thread-safe.
#ifndef MUSTER_STATE_PERSISTENCE_RECORDS_H_
#define MUSTER_STATE_PERSISTENCE_RECORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/api/apply_context.h"
#include "state/gangs/types.h"
#include "state/persistence/facts.h"

namespace muster {

// A pod that is committed to a node, with a binding whose outcome is not known.
struct Commitment {
  std::string uid;
  std::string node;
  std::string gang;            // "namespace/name"; empty: the pod is in no gang
  int64_t start = 0;           // the plan whose start it is part of; 0: none
  bool permitted = false;      // its caller binds it
  int64_t bind_within_ms = 0;  // permitted: within this time
};

// One decision: a gang, or the gangs of a group, that start together.
struct Start {
  struct Place {
    std::string uid;
    std::string node;
    int32_t gang = 0;  // index into `gangs`
  };
  int64_t plan = 0;
  std::vector<std::string> gangs;  // keys
  std::vector<Place> places;
  int64_t deadline_ms = 0;  // no binding is sent later; 0: the pods' callers bind
};

// --- writing ---
// Returns whether the store has a record afterwards: a gang with only default values needs none.
bool WriteGangRecord(const Gang& gang, ApplyContext* ctx);
void DeleteGangRecord(absl::string_view gang, ApplyContext* ctx);
void WriteStartRecord(const Start& start, ApplyContext* ctx);
void DeleteStartRecord(int64_t plan, ApplyContext* ctx);
void WriteCommitRecord(const Commitment& commitment, ApplyContext* ctx);
void DeleteCommitRecord(absl::string_view uid, ApplyContext* ctx);
// New plans have numbers below `next` until the next such record.
void WritePlansRecord(int64_t next, ApplyContext* ctx);
// New effects have numbers up to `reserved` until the next such record.
[[nodiscard]] Record EffectsRecord(int64_t reserved);

// The queues in force; empty: deletes the record.
void WriteQueuesRecord(absl::Span<const QueueSpec> queues, ApplyContext* ctx);

// Records of an earlier process, until the gangs and pods that they are about are announced. Not thread-safe.
class RestoredRecords {
 public:
  // InvalidArgument: names a record that cannot be read, because its kind or format is unknown or it is corrupt.
  [[nodiscard]] absl::Status Load(absl::Span<const Record> records);
  // The store had no records.
  [[nodiscard]] bool empty() const { return nothing_; }
  // How the writing process was used: has_facts: gRPC only. has_created, has_commitments: some records refer to objects
  // that another system stores (Kubernetes). None of them: not known.
  [[nodiscard]] bool has_facts() const { return facts_.any(); }
  [[nodiscard]] bool has_created() const { return !facts_.created.empty(); }
  [[nodiscard]] bool has_commitments() const { return !gangs_.empty() || !commitments_.empty() || !starts_.empty(); }
  // The record of the gang, on the first call only.
  [[nodiscard]] std::optional<DurableGangState> ClaimGang(const std::string& key);
  [[nodiscard]] const std::vector<Commitment>& commitments() const { return commitments_; }
  // By plan.
  [[nodiscard]] const absl::btree_map<int64_t, Start>& starts() const { return starts_; }
  // The facts that the earlier process received, if stored; on the first call only.
  [[nodiscard]] DurableFacts TakeFacts() { return std::exchange(facts_, {}); }
  // Earlier plans have numbers below this one.
  [[nodiscard]] int64_t next_plan() const { return next_plan_; }
  // Earlier effects have numbers up to this one.
  [[nodiscard]] int64_t effects_reserved() const { return effects_reserved_; }
  // The queues that were in force, if stored.
  [[nodiscard]] const std::vector<QueueSpec>& queues() const { return queues_; }
  // All facts were announced: deletes the records that were not claimed. The commitments of the pods `taken` (UIDs)
  // stay in force, and so do the starts that they are part of.
  void DiscardUnclaimed(const std::vector<std::string>& taken, ApplyContext* ctx);

  // The members that a recording contains (state/base/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&RestoredRecords::nothing_, &RestoredRecords::gangs_, &RestoredRecords::commitments_,
                      &RestoredRecords::starts_, &RestoredRecords::next_plan_, &RestoredRecords::effects_reserved_,
                      &RestoredRecords::facts_, &RestoredRecords::queues_);
  }

 private:
  [[nodiscard]] absl::Status LoadOne(const Record& record);
  // Reads a record of another kind than facts (`*known`). InvalidArgument, without the record's name: it cannot be
  // read.
  [[nodiscard]] absl::Status ReadPromise(const Record& record, bool* known);

  bool nothing_ = true;
  absl::btree_map<std::string, DurableGangState> gangs_;
  std::vector<Commitment> commitments_;
  absl::btree_map<int64_t, Start> starts_;
  int64_t next_plan_ = 1;
  int64_t effects_reserved_ = 0;
  DurableFacts facts_;
  std::vector<QueueSpec> queues_;
};

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_RECORDS_H_
