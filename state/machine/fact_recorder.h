// Writes durable records of facts that no other system stores, so that a restart can replay them (SPEC S-2). Without
// Kubernetes these are all facts announced over gRPC; with Kubernetes, the gangs created over gRPC. Not thread-safe.
#ifndef MUSTER_STATE_MACHINE_FACT_RECORDER_H_
#define MUSTER_STATE_MACHINE_FACT_RECORDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "state/base/components.h"
#include "state/persistence/records.h"

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
  void RecordGangObject(const GangObject& object, ApplyContext* ctx) const {
    if (writes_objects(object.dialect)) WriteObjectRecord(object, /*created=*/!records_all_, ctx);
  }
  void EraseGangObject(GangDialect dialect, const Gang& gang, ApplyContext* ctx) const {
    if (writes_objects(dialect))
      DeleteObjectRecord(dialect, gang.name_space, gang.name, /*created=*/!records_all_, ctx);
  }
  void RecordAnnouncer(const Announcer& announcer, ApplyContext* ctx) const {
    if (writes()) WriteAnnouncerRecord(announcer, ctx);
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
  [[nodiscard]] bool writes_objects(GangDialect dialect) const {
    return writes() || (records_created_ && !replaying_ && dialect == GangDialect::kApi);
  }

  Gangs* gangs_;
  Submissions* submissions_;
  const bool records_all_;
  const bool records_created_;
  bool replaying_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_FACT_RECORDER_H_
