// Submissions of whole gangs (SPEC S-1): their ids, their time to live, and the results of those that ended. Not
// thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_SUBMISSIONS_H_
#define MUSTER_STATE_RESERVATIONS_SUBMISSIONS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "state/api/effects.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/base/time.h"
#include "state/gangs/types.h"

namespace muster {

// A submission that has not ended.
struct Submission {
  std::string id;
  int64_t ttl_ms = 0;
  int64_t expires_ms = kNever;
  uint64_t fingerprint = 0;
  bool queried = true;     // its caller asked for its state since its last plan
  bool confirmed = false;  // confirmed, and waits for the confirmation of the other gangs of its group (D-10)
};

class Submissions {
 public:
  // `deadlines`: of gangs. `tracks_changes`: collect changes for TakeChanged.
  Submissions(Gangs* gangs, Deadlines* deadlines, bool tracks_changes = false)
      : gangs_(gangs), deadlines_(deadlines), tracks_changes_(tracks_changes) {}

  // nullptr: the gang was not submitted, or its submission has ended.
  [[nodiscard]] const Submission* Of(const Gang& gang) const { return submissions_.Of(gang.id).get(); }
  // The gang of a submission that has not ended; nullptr: none.
  [[nodiscard]] const Gang* Find(const std::string& id) const;
  struct Ended {
    SubmissionReply reply;
    int64_t sequence = 0;  // increases by one with each submission that ends
  };
  // The result of a submission that ended; nullptr: unknown, or no longer stored.
  [[nodiscard]] const Ended* FindEnded(const std::string& id) const;
  [[nodiscard]] const SubmissionReply* FindFinished(const std::string& id) const;
  // Ids of ended submissions whose result is stored, the oldest first.
  [[nodiscard]] const std::deque<std::string>& finished() const { return finished_order_; }
  [[nodiscard]] bool Expired(const Gang& gang, int64_t now_ms) const {
    return Of(gang) != nullptr && Of(gang)->expires_ms <= now_ms;
  }
  [[nodiscard]] size_t size() const { return open_.size(); }
  // At most `limit` ids after `after`, in order: of submissions that have not ended, and with `ended`, also of those
  // that have and whose result is stored.
  [[nodiscard]] std::vector<std::string> IdsAfter(absl::string_view after, size_t limit, bool ended) const;
  // At most `limit` ids of submissions that ended after the one with this sequence, in order.
  [[nodiscard]] std::vector<std::string> EndedAfter(int64_t sequence, size_t limit) const;
  // The sequence of the last submission that ended; 0: none.
  [[nodiscard]] int64_t last_sequence() const { return next_sequence_ - 1; }

  void Open(const Gang& gang, const std::string& id, int64_t ttl_ms, uint64_t fingerprint);
  // The caller asked for its state: restarts its time to live while it has no plan, and again with its next plan.
  void OnQueried(const Gang& gang, bool planned, int64_t now_ms);
  // It has a plan: restarts its time to live, unless the caller has not asked since the last plan.
  void OnPlanned(const Gang& gang, int64_t now_ms);
  // Its plan was withdrawn: clears the confirmation.
  void OnPlanWithdrawn(const Gang& gang);
  void MarkConfirmed(const Gang& gang) { submissions_[gang.id]->confirmed = true; }
  // The submission ended with the result `reply`, which is stored at least until another submission ends.
  void Finish(const Gang& gang, SubmissionReply reply);
  // Restores a submission that ended before a restart. REQUIRES: calls are in order of sequences.
  void RestoreEnded(const std::string& id, Ended ended);
  // Ids, each once, of submissions that were opened, ended or removed from the stored results since the last call.
  [[nodiscard]] std::vector<std::string> TakeChanged();

  static constexpr auto Recorded() {
    return std::tuple(&Submissions::submissions_, &Submissions::open_, &Submissions::finished_,
                      &Submissions::finished_order_, &Submissions::finished_bytes_, &Submissions::next_sequence_,
                      &Submissions::changed_);
  }

 private:
  void Note(const std::string& id) {
    if (tracks_changes_) changed_.insert(id);
  }
  void Extend(const Gang& gang, int64_t now_ms);

  Gangs* gangs_;
  Deadlines* deadlines_;
  ById<std::unique_ptr<Submission>> submissions_;
  absl::btree_map<std::string, GangId> open_;
  // Results for callers that ask again; bounded, the oldest are removed first.
  absl::flat_hash_map<std::string, Ended> finished_;
  std::deque<std::string> finished_order_;
  size_t finished_bytes_ = 0;
  int64_t next_sequence_ = 1;
  const bool tracks_changes_;
  absl::btree_set<std::string> changed_;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_SUBMISSIONS_H_
