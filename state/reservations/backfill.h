// Gangs that come first and wait: who is started before them, and what follows from it (SPEC Q-6).
//
// A queue's head is the first in order of those that were tried and did not start - for want of room, or of what its
// queues allow - and could run on this cluster. Under policy `hold` nobody behind the first head is started. Under
// `backfill` whoever fits goes ahead; the head that was passed over notes since when, and after the starvation limit
// room is kept for it, on nodes (Pipeline::Hold) and in its queues (Queues::Hold). Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_BACKFILL_H_
#define MUSTER_STATE_RESERVATIONS_BACKFILL_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/btree_set.h"
#include "state/base/by_id.h"
#include "state/gangs/gangs.h"
#include "state/queueing/backlog.h"
#include "state/queueing/queues.h"
#include "state/reservations/future_reservations.h"

namespace muster {

class Heads {
 public:
  // So long after a try to keep room for a gang the next one is made, in milliseconds.
  static constexpr int64_t kTryAgainMs = 10'000;

  Heads(Gangs* gangs, const Cluster* cluster, const Backlog* backlog, const Queues* queues, const Pipeline* pipeline)
      : gangs_(gangs), cluster_(cluster), backlog_(backlog), queues_(queues), pipeline_(pipeline) {}

  // --- who passes whom ---
  // Heads before the gang in order that nobody passed yet.
  [[nodiscard]] std::vector<GangId> PassedBy(const Gang& gang) const;
  // The same of a pod that nobody planned - of no gang, beyond a minimum, driven pod by pod - and that is on the node
  // now: those whose members could use what it took.
  [[nodiscard]] std::vector<GangId> PassedBy(const Pod& pod, NodeId node) const;
  void NotePassed(const std::vector<GangId>& heads, int64_t now_ms);
  // It was passed over for as long as may be.
  [[nodiscard]] bool Starved(const Gang& gang, int64_t now_ms) const {
    return Limit() > 0 && gang.kept.passed_since_ms > 0 && now_ms >= gang.kept.passed_since_ms + Limit();
  }
  // When something is due for it: it is starved, or should be tried again; kNever: nothing.
  [[nodiscard]] int64_t Deadline(const Gang& gang) const;
  // That time has come.
  void NoteDue(const Gang& gang, int64_t now_ms) { states_[gang.id].try_again_ms = now_ms + kTryAgainMs; }
  // Some gang runs of which it is known when it is over.
  [[nodiscard]] bool AnyTimed() const { return !timed_.empty(); }
  // The gang was looked at: whether it runs, and since when.
  void Follow(const Gang& gang, int64_t now_ms);
  // Room may be looked for that others use.
  [[nodiscard]] bool MayTry(const Gang& gang, int64_t now_ms) const {
    return now_ms >= states_.Of(gang.id).tried_ms + kTryAgainMs;
  }

  // --- who could run ---
  // Whether there would be room for the gang, which waits for some, once nothing runs. `strict`: none can be kept for
  // it (P-8), so that nobody behind it is started instead.
  void NoteCouldRun(const Gang& gang, bool could, bool strict, int64_t now_ms);
  void NoteTried(const Gang& gang, int64_t now_ms) { states_[gang.id].tried_ms = now_ms; }
  // What was found of it may be otherwise now: that it could not run, or, of those that hold what their queues have,
  // that they could.
  void Doubt(const Gang& gang) {
    if (states_.Of(gang.id).could == State::Could::kNo) states_[gang.id].could = State::Could::kUnknown;
  }
  void DoubtHolders();
  // The gang is the first of all heads.
  [[nodiscard]] bool First(const Gang& gang) const;

  // --- policy hold ---
  // Some head may hold up others.
  [[nodiscard]] bool Strict() const { return Rules().head == HeadPolicy::kHold || !strict_.empty(); }
  // The head that comes before the gang, and nobody behind it is started; nullptr: there is none.
  [[nodiscard]] const Gang* HoldsUp(const Gang& gang) const;
  // That there is one was told to those who wait behind it, or is no more.
  void SetTold(bool told) { told_ = told; }
  [[nodiscard]] bool told() const { return told_; }
  // Why that is so, as a phrase.
  [[nodiscard]] absl::string_view Policy() const {
    return Rules().head == HeadPolicy::kHold ? "queues.policy: hold" : "it was passed over for long";
  }
  // The first of such heads; nullptr: none.
  [[nodiscard]] const Gang* FirstStrict() const;

  // The gang waits no more.
  void Leave(const Gang& gang);
  void Forget(const Gang& gang) {
    Leave(gang);
    timed_.erase(gang.id);
  }

  // For the hash: whether it could run, as far as that is known, and when it was looked at.
  struct State {
    enum class Could : uint8_t { kUnknown, kYes, kNo };
    Could could = Could::kUnknown;
    int64_t tried_ms = -kTryAgainMs;
    int64_t try_again_ms = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  [[nodiscard]] const State& Of(const Gang& gang) const { return states_.Of(gang.id); }
  [[nodiscard]] const absl::btree_set<GangId>& strict() const { return strict_; }

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Heads::states_, &Heads::strict_, &Heads::timed_, &Heads::told_);
  }

 private:
  [[nodiscard]] const QueueRules& Rules() const { return queues_->tree().rules(); }
  [[nodiscard]] int64_t Limit() const { return Rules().head == HeadPolicy::kHold ? 0 : Rules().starvation_limit_ms; }
  // The head of a lane; nullptr: it has none.
  [[nodiscard]] const Gang* HeadOf(int32_t lane) const;
  [[nodiscard]] bool HoldsUpOthers(const Gang& head) const;

  // Its members could use what the pod has on the node.
  [[nodiscard]] bool Lacks(const Gang& head, const Pod& pod, NodeId node) const;

  Gangs* gangs_;
  const Cluster* cluster_;
  const Backlog* backlog_;
  const Queues* queues_;
  const Pipeline* pipeline_;
  ById<State> states_;
  absl::btree_set<GangId> strict_;
  absl::btree_set<GangId> timed_;  // that run and said how long
  bool told_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_BACKFILL_H_
