#include "state/machine/fact_recorder.h"

#include "state/persistence/facts.h"

namespace muster {

void FactKeeper::NodeIs(const NodeDescription& node, Step* step) const {
  if (writes()) WriteNodeRecord(node, step);
}

void FactKeeper::NodeGoes(const std::string& name, Step* step) const {
  if (writes()) DeleteNodeRecord(name, step);
}

void FactKeeper::PodGoes(const std::string& uid, Step* step) const {
  if (writes()) DeletePodRecord(uid, step);
}

void FactKeeper::ObjectIs(const GangObject& object, Step* step) const {
  if (writes()) WriteObjectRecord(object, step);
  if (writes_created(object.dialect)) WriteCreatedRecord(object, step);
}

void FactKeeper::ObjectGoes(GangDialect dialect, const std::string& name_space, const std::string& name,
                            Step* step) const {
  if (writes()) DeleteObjectRecord(dialect, name_space, name, step);
  if (writes_created(dialect)) DeleteCreatedRecord(name_space, name, step);
}

void FactKeeper::StepTaken(const std::string& source, int64_t version, int64_t stale_since_ms, Step* step) const {
  if (writes()) WriteAnnouncerRecord(source, version, stale_since_ms, step);
}

void FactKeeper::EndCommand(Step* step) {
  if (!keeps_) return;
  for (const PodId id : gangs_->TakeChangedFacts()) {
    const Pod& pod = gangs_->pod(id);
    WritePodRecord(pod.facts, pod.submitted, step);
  }
  for (const std::string& id : submissions_->TakeChanged()) KeepSubmission(id, step);
}

void FactKeeper::KeepSubmission(const std::string& id, Step* step) const {
  if (const Gang* gang = submissions_->Find(id); gang != nullptr) {
    const Submission& open = *submissions_->Of(*gang);
    WriteSubmissionRecord({id, gang->key, open.fingerprint, open.ttl_ms, false, {}, 0}, step);
  } else if (const Submissions::Ended* ended = submissions_->FindEnded(id); ended != nullptr) {
    WriteSubmissionRecord({id, ended->reply.gang, ended->reply.fingerprint, 0, true, ended->reply, ended->sequence},
                          step);
  } else {
    DeleteSubmissionRecord(id, step);
  }
}

void FactKeeper::EndTellingAgain() {
  static_cast<void>(gangs_->TakeChangedFacts());
  static_cast<void>(submissions_->TakeChanged());
  telling_again_ = false;
}

}  // namespace muster
