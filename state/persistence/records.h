// Durable records of the core (SPEC S-2): their kinds and formats, and the restored records that no gang or pod has
// claimed yet. Promises are recorded always. Facts are recorded if no other system stores them: in Kubernetes, the API
// server does. Not thread-safe.
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
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/api/apply_context.h"
#include "state/gangs/types.h"

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

struct DurablePod {
  PodDescription facts;
  bool submitted = false;  // part of a submitted gang that is not confirmed yet (S-1)
};

struct DurableSubmission {
  std::string id;
  std::string gang;  // "namespace/name"
  uint64_t fingerprint = 0;
  int64_t ttl_ms = 0;
  bool ended = false;
  SubmissionReply reply;  // if ended: the result
  int64_t sequence = 0;   // if ended: the order in which submissions ended
};

// The caller that announces the facts, and how far it has come.
struct Announcer {
  std::string source;  // empty: there is none
  int64_t version = 0;
  int64_t stale_since_ms = 0;  // since when it is silent; 0: it is not
};

// The answer to a request, by its id (SPEC S-1). No rule of the core reads it.
struct DurableAnswer {
  std::string key;           // caller, method and request id
  uint64_t fingerprint = 0;  // of the request
  int32_t code = 0;          // gRPC status code
  std::string message;
  std::string details;
  std::string response;  // serialised
};

// The facts that an earlier process received.
struct DurableFacts {
  std::vector<NodeDescription> nodes;
  std::vector<DurablePod> pods;
  std::vector<GangObject> objects;
  std::vector<DurableSubmission> submissions;
  std::vector<GangObject> created;  // gangs created over gRPC, which Kubernetes does not store
  Announcer announcer;
};

// The kinds of records that an announcer's snapshot replaces: nodes and the announcer. Without these records, nothing
// is placed before a snapshot arrives.
[[nodiscard]] std::vector<std::string> SnapshotKinds();

// --- writing promises ---
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

// --- writing facts ---
void WriteNodeRecord(const NodeDescription& node, ApplyContext* ctx);
void DeleteNodeRecord(absl::string_view name, ApplyContext* ctx);
void WritePodRecord(const PodDescription& pod, bool submitted, ApplyContext* ctx);
void DeletePodRecord(absl::string_view uid, ApplyContext* ctx);
// `created`: the gang was created over gRPC while Kubernetes is the source of facts.
void WriteObjectRecord(const GangObject& object, bool created, ApplyContext* ctx);
void DeleteObjectRecord(GangDialect dialect, absl::string_view name_space, absl::string_view name, bool created,
                        ApplyContext* ctx);
void WriteAnnouncerRecord(const Announcer& announcer, ApplyContext* ctx);
void WriteSubmissionRecord(const DurableSubmission& submission, ApplyContext* ctx);
void DeleteSubmissionRecord(absl::string_view id, ApplyContext* ctx);

// --- answers by request id (thread-safe) ---
[[nodiscard]] Record AnswerRecord(const DurableAnswer& answer);
// The record that deletes the answer from the store.
[[nodiscard]] Record AnswerDeletion(std::string key);
// Moves the answers out of the store's records. InvalidArgument: names an answer that cannot be read.
[[nodiscard]] absl::StatusOr<std::vector<DurableAnswer>> TakeAnswers(std::vector<Record>* records);

// Records of an earlier process, until the gangs and pods that they are about are announced. Not thread-safe.
class RestoredRecords {
 public:
  // InvalidArgument: names a record that cannot be read, because its kind or format is unknown or it is corrupt.
  [[nodiscard]] absl::Status Load(absl::Span<const Record> records);
  // The store had no records.
  [[nodiscard]] bool empty() const { return nothing_; }
  // FailedPrecondition: the facts of the writing process came from another kind of source than those of this one.
  // `persist_facts`: they come over gRPC only.
  [[nodiscard]] absl::Status CheckSource(bool persist_facts) const;
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

  static constexpr auto Recorded() {
    return std::tuple(&RestoredRecords::nothing_, &RestoredRecords::gangs_, &RestoredRecords::commitments_,
                      &RestoredRecords::starts_, &RestoredRecords::next_plan_, &RestoredRecords::effects_reserved_,
                      &RestoredRecords::facts_, &RestoredRecords::queues_);
  }

 private:
  [[nodiscard]] absl::Status LoadOne(const Record& record);
  // InvalidArgument, without the record's name: it cannot be read.
  [[nodiscard]] absl::Status ReadByKind(const Record& record);
  [[nodiscard]] absl::Status ReadQueues(const Record& record);
  [[nodiscard]] absl::Status ReadFact(const Record& record);

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
