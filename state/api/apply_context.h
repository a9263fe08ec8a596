// One command on its way through the rooms: its time, and what comes out of it.
//
// Handed from room to room as an argument; lives for one Machine::Apply.
#ifndef MUSTER_STATE_API_APPLY_CONTEXT_H_
#define MUSTER_STATE_API_APPLY_CONTEXT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "state/api/effects.h"

namespace muster {

class Step {
 public:
  // REQUIRES: `out` outlives the step.
  Step(int64_t now_ms, Outcome* out) : now_ms_(now_ms), out_(out) {}

  [[nodiscard]] int64_t now_ms() const { return now_ms_; }
  // The command is refused: nothing of what it asked is done. OK: it is not.
  void Refuse(const absl::Status& status) {
    if (!status.ok()) out_->status = status;
  }
  void Answer(Reply reply) { out_->reply = std::move(reply); }
  // An answer that promises nothing: it need not wait for the records of what came before.
  void Tell(Reply reply) {
    out_->reply = std::move(reply);
    out_->reply_promises = false;
  }
  void Do(Effect effect) { out_->effects.push_back(std::move(effect)); }
  // A record to keep, or to delete.
  // So many records are about to come.
  void KeepSoon(size_t records) { out_->records.reserve(out_->records.size() + records); }
  void Keep(Record record) { out_->records.push_back(std::move(record)); }
  // A held call ends.
  void EndHold(HoldToken token, bool permitted, Reason reason) {
    out_->answers.push_back({token, permitted, std::move(reason)});
  }
  // The call ends with this command's reply: it is not told a second time.
  void EndsWithReply(HoldToken token) {
    auto& answers = out_->answers;
    answers.erase(std::remove_if(answers.begin(), answers.end(), [&](const HoldAnswer& a) { return a.token == token; }),
                  answers.end());
  }

 private:
  int64_t now_ms_;
  Outcome* out_;
};

}  // namespace muster

#endif  // MUSTER_STATE_API_APPLY_CONTEXT_H_
