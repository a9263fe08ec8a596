// Whole gangs that were submitted (SPEC S-1): their ids, how long they are kept, and what became of those that ended.
// Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_SUBMISSIONS_H_
#define MUSTER_STATE_RESERVATIONS_SUBMISSIONS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "state/api/effects.h"
#include "state/base/by_id.h"
#include "state/gangs/gangs.h"
#include "state/reservations/deadlines.h"

namespace muster {

// Not confirmed yet.
struct Submission {
  std::string id;
  int64_t ttl_ms = 0;
  int64_t expires_ms = kNever;
  uint64_t fingerprint = 0;
  bool asked = true;       // somebody asked since its last plan
  bool confirmed = false;  // waits for the confirmation of the other gangs of its group (D-10)
};

class Submissions {
 public:
  // `deadlines`: of gangs. `notes`: for TakeChanged.
  Submissions(Gangs* gangs, Deadlines* deadlines, bool notes = false)
      : gangs_(gangs), deadlines_(deadlines), notes_(notes) {}

  // nullptr: the gang was not submitted, or is confirmed or over.
  [[nodiscard]] const Submission* Of(const Gang& gang) const { return submissions_.Of(gang.id).get(); }
  // The gang of a submission that is not over; nullptr: none.
  [[nodiscard]] const Gang* Find(const std::string& id) const;
  struct Ended {
    SubmissionReply reply;
    int64_t sequence = 0;  // rises by one with each that ends
  };
  // What became of a submission that ended; nullptr: unknown, or too long ago.
  [[nodiscard]] const Ended* FindEnded(const std::string& id) const;
  [[nodiscard]] const SubmissionReply* FindFinished(const std::string& id) const;
  // Ids of those that ended and are remembered, the oldest first.
  [[nodiscard]] const std::deque<std::string>& finished() const { return finished_order_; }
  [[nodiscard]] bool Expired(const Gang& gang, int64_t now_ms) const {
    return Of(gang) != nullptr && Of(gang)->expires_ms <= now_ms;
  }
  [[nodiscard]] size_t size() const { return open_.size(); }

  void Open(const Gang& gang, const std::string& id, int64_t ttl_ms, uint64_t fingerprint);
  // Somebody asks: while it has no plan its time starts anew, and it will once more with the next plan.
  void NoteAsked(const Gang& gang, bool planned, int64_t now_ms);
  // It has a plan: its time starts anew, unless nobody asked since the last one.
  void NotePlanned(const Gang& gang, int64_t now_ms);
  // Its plan is gone: so is the confirmation.
  void NoteWithdrawn(const Gang& gang);
  void SetConfirmed(const Gang& gang) { submissions_[gang.id]->confirmed = true; }
  // The submission is over; `reply` says how, and is remembered at least until another ends.
  void Finish(const Gang& gang, SubmissionReply reply);
  // One that ended before a restart, in order of sequences.
  void Remember(const std::string& id, Ended ended);
  // Ids, each once, of submissions that were opened, ended or forgotten since the last call.
  [[nodiscard]] std::vector<std::string> TakeChanged();

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Submissions::submissions_, &Submissions::open_, &Submissions::finished_,
                      &Submissions::finished_order_, &Submissions::finished_bytes_, &Submissions::next_sequence_,
                      &Submissions::changed_);
  }

 private:
  void Note(const std::string& id) {
    if (notes_) changed_.push_back(id);
  }
  void Extend(const Gang& gang, int64_t now_ms);

  Gangs* gangs_;
  Deadlines* deadlines_;
  ById<std::unique_ptr<Submission>> submissions_;
  absl::btree_map<std::string, GangId> open_;
  // For callers that ask again; the oldest are forgotten first.
  absl::flat_hash_map<std::string, Ended> finished_;
  std::deque<std::string> finished_order_;
  size_t finished_bytes_ = 0;
  int64_t next_sequence_ = 1;
  const bool notes_;
  std::vector<std::string> changed_;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_SUBMISSIONS_H_
