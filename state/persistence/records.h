// What is kept over a restart, as the store sees it (SPEC S-2): kinds, formats, and what was read back and not yet
// claimed.
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

// A pod that was promised a node, of which the outcome is not known.
struct Commitment {
  std::string uid;
  std::string node;
  std::string gang;            // "namespace/name"; empty: the pod is in no gang
  int64_t start = 0;           // the plan whose start it is part of; 0: of none
  bool permitted = false;      // its caller binds it
  int64_t bind_within_ms = 0;  // permitted: within this time
};

// What was decided at once: gangs that start together, or one.
struct Start {
  struct Place {
    std::string uid;
    std::string node;
    int32_t gang = 0;  // which of `gangs`
  };
  int64_t plan = 0;
  std::vector<std::string> gangs;  // keys
  std::vector<Place> places;
  int64_t deadline_ms = 0;  // nothing of it is sent later; 0: the pods' callers bind
};

// --- writing ---
// Returns whether the store holds a record from now on: a gang of which everything is at its default needs none.
bool WriteGangRecord(const Gang& gang, Step* step);
void DeleteGangRecord(absl::string_view gang, Step* step);
void WriteStartRecord(Start start, Step* step);
void DeleteStartRecord(int64_t plan, Step* step);
void WriteCommitRecord(Commitment commitment, Step* step);
void DeleteCommitRecord(absl::string_view uid, Step* step);
// Plans are numbered below `next` until the next such record.
void WritePlansRecord(int64_t next, Step* step);
// Effects are numbered up to `reserved` until the next such record.
[[nodiscard]] Record EffectsRecord(int64_t reserved);

// None: nothing is kept of any.
void WriteQueuesRecord(absl::Span<const QueueSpec> queues, Step* step);

// What an earlier process wrote, until its things appear. Not thread-safe.
class Restored {
 public:
  // InvalidArgument names a record that cannot be read: of a kind or a format that is not known, or broken.
  [[nodiscard]] absl::Status Load(absl::Span<const Record> records);
  // Nothing was written before.
  [[nodiscard]] bool empty() const { return nothing_; }
  // Of the process that wrote it: it kept what it was told itself (gRPC-only use), or something that only makes sense
  // together with what others know (Kubernetes). Neither: nothing tells.
  [[nodiscard]] bool has_facts() const { return facts_.any(); }
  [[nodiscard]] bool has_created() const { return !facts_.created.empty(); }
  [[nodiscard]] bool has_promises() const { return !gangs_.empty() || !commitments_.empty() || !starts_.empty(); }
  // What was kept of the gang, once.
  [[nodiscard]] std::optional<Kept> ClaimGang(const std::string& key);
  [[nodiscard]] const std::vector<Commitment>& commitments() const { return commitments_; }
  // By plan.
  [[nodiscard]] const absl::btree_map<int64_t, Start>& starts() const { return starts_; }
  // What the earlier process was told, where that was kept; once.
  [[nodiscard]] KeptFacts TakeFacts() { return std::exchange(facts_, {}); }
  // Numbers of plans that may have been given are below it.
  [[nodiscard]] int64_t next_plan() const { return next_plan_; }
  // Numbers of effects that may have been given are up to it.
  [[nodiscard]] int64_t effects_reserved() const { return effects_reserved_; }
  // The queues that were in force, where that was kept.
  [[nodiscard]] const std::vector<QueueSpec>& queues() const { return queues_; }
  // Everything was announced: what nobody claimed belongs to nobody. The commitments of the pods `taken` stand, and so
  // do the starts that they are part of.
  void ForgetRest(const std::vector<std::string>& taken, Step* step);

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Restored::nothing_, &Restored::gangs_, &Restored::commitments_, &Restored::starts_,
                      &Restored::next_plan_, &Restored::effects_reserved_, &Restored::facts_, &Restored::queues_);
  }

 private:
  [[nodiscard]] absl::Status LoadOne(const Record& record);

  bool nothing_ = true;
  absl::btree_map<std::string, Kept> gangs_;
  std::vector<Commitment> commitments_;
  absl::btree_map<int64_t, Start> starts_;
  int64_t next_plan_ = 1;
  int64_t effects_reserved_ = 0;
  KeptFacts facts_;
  std::vector<QueueSpec> queues_;
};

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_RECORDS_H_
