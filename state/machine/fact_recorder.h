// Keeps what was told over gRPC, where nobody else does, and tells it again after a restart (SPEC S-2). In Kubernetes
// that is gangs that were created; where nothing is kept over a restart, nothing. Not thread-safe.
#ifndef MUSTER_STATE_MACHINE_FACT_RECORDER_H_
#define MUSTER_STATE_MACHINE_FACT_RECORDER_H_

#include <cstdint>
#include <string>

#include "state/api/apply_context.h"
#include "state/gangs/gangs.h"
#include "state/reservations/submissions.h"

namespace muster {

class FactKeeper {
 public:
  // `keeps`: everything; `keeps_created`: gangs that were created over gRPC.
  FactKeeper(Gangs* gangs, Submissions* submissions, bool keeps, bool keeps_created)
      : gangs_(gangs), submissions_(submissions), keeps_(keeps), keeps_created_(keeps_created) {}

  [[nodiscard]] bool keeps() const { return keeps_; }

  void NodeIs(const NodeDescription& node, Step* step) const;
  void NodeGoes(const std::string& name, Step* step) const;
  // What a pod is, is written by EndCommand.
  void PodGoes(const std::string& uid, Step* step) const;
  void ObjectIs(const GangObject& object, Step* step) const;
  void ObjectGoes(GangDialect dialect, const std::string& name_space, const std::string& name, Step* step) const;
  // `source` announced `version`; silent since `stale_since_ms`, 0: it spoke to this process.
  void StepTaken(const std::string& source, int64_t version, int64_t stale_since_ms, Step* step) const;
  // Pods and submissions that the command changed.
  void EndCommand(Step* step);

  // What is told from here on was kept before, until it Ends.
  void BeginTellingAgain() { telling_again_ = true; }
  void EndTellingAgain();

 private:
  [[nodiscard]] bool writes() const { return keeps_ && !telling_again_; }
  [[nodiscard]] bool writes_created(GangDialect dialect) const {
    return keeps_created_ && !keeps_ && !telling_again_ && dialect == GangDialect::kApi;
  }
  void KeepSubmission(const std::string& id, Step* step) const;

  Gangs* gangs_;
  Submissions* submissions_;
  const bool keeps_;
  const bool keeps_created_;
  bool telling_again_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_FACT_RECORDER_H_
