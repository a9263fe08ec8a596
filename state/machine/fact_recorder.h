// Writes durable records of facts that no other system stores, so that a restart can replay them (SPEC S-2). Without
// Kubernetes these are all facts announced over gRPC; with Kubernetes, the gangs created over gRPC. Not thread-safe.
#ifndef MUSTER_STATE_MACHINE_FACT_RECORDER_H_
#define MUSTER_STATE_MACHINE_FACT_RECORDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "state/api/apply_context.h"
#include "state/gangs/gangs.h"
#include "state/persistence/facts.h"
#include "state/reservations/submissions.h"

namespace muster {

class FactRecorder {
 public:
  // `persist_facts`: record all facts. `persist_created`: record the gangs that were created over gRPC.
  FactRecorder(Gangs* gangs, Submissions* submissions, bool persist_facts, bool persist_created)
      : gangs_(gangs), submissions_(submissions), records_all_(persist_facts), records_created_(persist_created) {}

  [[nodiscard]] bool records_all() const { return records_all_; }

  void RecordNode(const NodeDescription& node, ApplyContext* ctx) const {
    if (writes()) WriteNodeRecord(node, ctx);
  }
  void EraseNode(const std::string& name, ApplyContext* ctx) const {
    if (writes()) DeleteNodeRecord(name, ctx);
  }
  // RecordChanges writes the records of pods.
  void ErasePod(const std::string& uid, ApplyContext* ctx) const {
    if (writes()) DeletePodRecord(uid, ctx);
  }
  void RecordGangObject(const GangObject& object, ApplyContext* ctx) const;
  void EraseGangObject(GangDialect dialect, const std::string& name_space, const std::string& name,
                       ApplyContext* ctx) const;
  // The announcer `source` is at `version`. `stale_since_ms`: since when it has sent nothing; 0: it has announced to
  // this process.
  void RecordStep(const std::string& source, int64_t version, int64_t stale_since_ms, ApplyContext* ctx) const {
    if (writes()) WriteAnnouncerRecord(source, version, stale_since_ms, ctx);
  }
  // Writes the records of the pods and submissions that the command changed.
  void RecordChanges(ApplyContext* ctx);

  // Between BeginReplay and EndReplay nothing is written: the facts are replayed from their records.
  void BeginReplay() { replaying_ = true; }
  void EndReplay();
  // Restores a submission of `gang`, which is nullptr if it has ended. InvalidArgument: the gang has another one.
  [[nodiscard]] absl::Status RestoreSubmission(DurableSubmission submission, const Gang* gang, int64_t now_ms);

 private:
  [[nodiscard]] bool writes() const { return records_all_ && !replaying_; }
  [[nodiscard]] bool writes_created(GangDialect dialect) const {
    return records_created_ && !records_all_ && !replaying_ && dialect == GangDialect::kApi;
  }
  void RecordSubmission(const std::string& id, ApplyContext* ctx) const;

  Gangs* gangs_;
  Submissions* submissions_;
  const bool records_all_;
  const bool records_created_;
  bool replaying_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_FACT_RECORDER_H_
