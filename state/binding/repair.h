// What becomes of a start that did not wholly succeed, and of a gang that loses a member (SPEC G-13): its missing
// members are tried again for a while; then its policy decides - keep what runs, or evict it all and start anew. Not
// thread-safe.
#ifndef MUSTER_STATE_BINDING_REPAIR_H_
#define MUSTER_STATE_BINDING_REPAIR_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/base/by_id.h"
#include "state/binding/plan_lifecycle.h"

namespace muster {

class Repair {
 public:
  // `repair_ms`: how long failed members are tried again.
  Repair(Gangs* gangs, const Plans* plans, Claims* claims, int64_t repair_ms)
      : gangs_(gangs), plans_(plans), claims_(claims), repair_ms_(repair_ms) {}

  // A member could not be bound: its place is kept for a while, counted from the first failure of this start.
  void Begin(const Gang& gang, int64_t now_ms);
  // A member that had started is gone.
  void NoteActiveLoss(const Gang& gang, const Pod& pod, Step* step);
  // Every member of the start is bound, or nothing of the gang runs any more: there is nothing to repair.
  void Cancel(const Gang& gang) {
    states_[gang.id].repair_until_ms = kNever;
    states_[gang.id].mates.clear();
  }
  // While it is repaired: keys of the gangs that were started with it (D-10).
  [[nodiscard]] const std::vector<std::string>& Mates(const Gang& gang) const { return states_.Of(gang.id).mates; }
  // A half-bound gang waits to be finished before all others, from now on for its wait time (K-13); harmless while it
  // does.
  void Finish(const Gang& gang, int64_t now_ms);
  void EndFinish(const Gang& gang) { states_[gang.id].finish_by_ms = kNever; }
  // Until when; kNever: it does not.
  [[nodiscard]] int64_t FinishBy(const Gang& gang) const { return states_.Of(gang.id).finish_by_ms; }
  // It could not be finished: undone by its policy, or left as it is.
  void LeaveHalf(const Gang& gang, Step* step);
  // Everything was read after a restart: what an earlier process began goes on, and who failed meanwhile is a loss.
  void GoOn(const Gang& gang, Step* step);
  // Everybody who was to be evicted is gone.
  void EndEviction(const Gang& gang);
  // Evicts the pod if its gang is being evicted.
  void EvictLate(const Pod& pod, Step* step) const;
  // The start is mended no more: what is missing of it is given up, and the gang's policy decides what becomes of the
  // rest.
  void End(const Gang& gang, Step* step);
  // What is due is done.
  void OnTime(const Gang& gang, Step* step);
  // kNever: nothing is due.
  [[nodiscard]] int64_t Deadline(const Gang& gang) const {
    const State& state = states_.Of(gang.id);
    return std::min({state.repair_until_ms, state.evict_again_ms, state.finish_by_ms});
  }
  [[nodiscard]] int64_t RepairUntil(const Gang& gang) const { return states_.Of(gang.id).repair_until_ms; }
  void Forget(const Gang& gang) { states_.Reset(gang.id); }

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Repair::states_); }

 private:
  bool HalveGroup(const Gang& gang, const std::vector<std::string>& mates, absl::string_view why, Step* step);
  struct State {
    int64_t repair_until_ms = kNever;
    std::vector<std::string> mates;  // keys of the gangs that are started with it
    int64_t finish_by_ms = kNever;
    int64_t evict_again_ms = kNever;  // when members that are still there are evicted once more
  };
  void Evict(const Gang& gang, absl::string_view why, Step* step);
  void EvictMembers(const Gang& gang, absl::string_view why, Step* step);

  Gangs* gangs_;
  const Plans* plans_;
  Claims* claims_;
  const int64_t repair_ms_;
  ById<State> states_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_REPAIR_H_
