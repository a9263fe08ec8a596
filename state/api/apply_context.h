// The context of one command: its time and its outcome.
//
// Passed from component to component as an argument; lives for one Machine::Apply. Not thread-safe.
#ifndef MUSTER_STATE_API_APPLY_CONTEXT_H_
#define MUSTER_STATE_API_APPLY_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "state/api/effects.h"

namespace muster {

class ApplyContext {
 public:
  // REQUIRES: `out` outlives this object.
  ApplyContext(int64_t now_ms, Outcome* out) : now_ms_(now_ms), out_(out) {}

  [[nodiscard]] int64_t now_ms() const { return now_ms_; }
  // Refuses the command: none of its changes is made. Does nothing for an OK status.
  void Refuse(const absl::Status& status) {
    if (!status.ok()) out_->status = status;
  }
  // Replies after the records of the command are durable.
  void ReplyWhenDurable(Reply reply) { out_->reply = std::move(reply); }
  // Replies at once. The reply promises nothing, so it need not wait for the records of earlier commands.
  void ReplyNow(Reply reply) {
    out_->reply = std::move(reply);
    out_->reply_after_commit = false;
  }
  void EmitEffect(Effect effect) { out_->effects.push_back(std::move(effect)); }
  // The number of effects so far.
  [[nodiscard]] size_t effects() const { return out_->effects.size(); }
  // Prepares for `records` more records.
  void ReserveRecords(size_t records) { out_->records.reserve(out_->records.size() + records); }
  // Adds a record to store or to delete.
  void PutRecord(Record record) { out_->records.push_back(std::move(record)); }
  // Ends a held call, permitted or with the reason of its refusal.
  void EndHold(HoldToken token, bool permitted, Reason reason) {
    out_->answers.push_back({token, permitted, std::move(reason)});
  }
  // Removes the answer to a held call that this command's reply answers.
  void DropAnswerOf(HoldToken token) {
    std::erase_if(out_->answers, [&](const HoldAnswer& answer) { return answer.token == token; });
  }

 private:
  int64_t now_ms_;
  Outcome* out_;
};

}  // namespace muster

#endif  // MUSTER_STATE_API_APPLY_CONTEXT_H_
