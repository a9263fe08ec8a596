#include "state/machine/fact_recorder.h"

#include "state/persistence/facts.h"

namespace muster {

void FactRecorder::RecordNode(const NodeDescription& node, ApplyContext* ctx) const {
  if (writes()) WriteNodeRecord(node, ctx);
}

void FactRecorder::EraseNode(const std::string& name, ApplyContext* ctx) const {
  if (writes()) DeleteNodeRecord(name, ctx);
}

void FactRecorder::ErasePod(const std::string& uid, ApplyContext* ctx) const {
  if (writes()) DeletePodRecord(uid, ctx);
}

void FactRecorder::RecordGangObject(const GangObject& object, ApplyContext* ctx) const {
  if (writes()) WriteObjectRecord(object, ctx);
  if (writes_created(object.dialect)) WriteCreatedRecord(object, ctx);
}

void FactRecorder::EraseGangObject(GangDialect dialect, const std::string& name_space, const std::string& name,
                                   ApplyContext* ctx) const {
  if (writes()) DeleteObjectRecord(dialect, name_space, name, ctx);
  if (writes_created(dialect)) DeleteCreatedRecord(name_space, name, ctx);
}

void FactRecorder::RecordStep(const std::string& source, int64_t version, int64_t stale_since_ms,
                              ApplyContext* ctx) const {
  if (writes()) WriteAnnouncerRecord(source, version, stale_since_ms, ctx);
}

void FactRecorder::RecordChanges(ApplyContext* ctx) {
  if (!records_all_) return;
  for (const PodId id : gangs_->TakeChangedFacts()) {
    const Pod& pod = gangs_->pod(id);
    WritePodRecord(pod.facts, pod.submitted, ctx);
  }
  for (const std::string& id : submissions_->TakeChanged()) RecordSubmission(id, ctx);
}

void FactRecorder::RecordSubmission(const std::string& id, ApplyContext* ctx) const {
  if (const Gang* gang = submissions_->Find(id); gang != nullptr) {
    const Submission& open = *submissions_->Of(*gang);
    WriteSubmissionRecord({id, gang->key, open.fingerprint, open.ttl_ms, false, {}, 0}, ctx);
  } else if (const Submissions::Ended* ended = submissions_->FindEnded(id); ended != nullptr) {
    WriteSubmissionRecord({id, ended->reply.gang, ended->reply.fingerprint, 0, true, ended->reply, ended->sequence},
                          ctx);
  } else {
    DeleteSubmissionRecord(id, ctx);
  }
}

void FactRecorder::EndReplay() {
  static_cast<void>(gangs_->TakeChangedFacts());
  static_cast<void>(submissions_->TakeChanged());
  replaying_ = false;
}

}  // namespace muster
