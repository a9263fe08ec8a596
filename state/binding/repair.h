// Repairs a start in which a binding failed, and a gang that lost a member (SPEC G-13). Missing members are tried again
// for `repair_ms`; then the gang's policy decides: keep the running members, or evict all of them and start again.
// Not thread-safe.
#ifndef MUSTER_STATE_BINDING_REPAIR_H_
#define MUSTER_STATE_BINDING_REPAIR_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/base/time.h"
#include "state/gangs/types.h"

namespace muster {

class Repair {
 public:
  // A time is kNever unless what it ends is under way.
  struct State {
    int64_t repair_until_ms = kNever;         // until when failed members are tried again
    std::vector<std::string> peers;           // during a repair: keys of the gangs that were started with it (D-10)
    int64_t completion_deadline_ms = kNever;  // until when the gang waits for its completion (K-13)
    int64_t evict_again_ms = kNever;          // when members that still exist are evicted once more
  };

  // `repair_ms`: how long failed members are tried again.
  Repair(Gangs* gangs, const Eligibility* eligibility, const Plans* plans, PlanLifecycle* plan_lifecycle,
         int64_t repair_ms)
      : gangs_(gangs),
        eligibility_(eligibility),
        plans_(plans),
        plan_lifecycle_(plan_lifecycle),
        repair_ms_(repair_ms) {}

  // A member could not be bound: its slot stays reserved for `repair_ms` after the first failure of this start.
  void Begin(const Gang& gang, int64_t now_ms);
  // An active member ended without success. No effect if the gang still has its declared total number of members.
  void OnActiveMemberLost(const Gang& gang, const Pod& pod, ApplyContext* ctx);
  // Nothing is left to repair: every member of the start is bound, or no member of the gang runs any more.
  void Cancel(const Gang& gang) {
    states_[gang.id].repair_until_ms = kNever;
    states_[gang.id].peers.clear();
  }
  // Begins or ends the time for which a partially bound gang waits for its completion, before all other gangs (K-13):
  // its wait time. `waits`: the gang waits to be planned.
  void RefreshCompletion(const Gang& gang, bool waits, int64_t now_ms);
  // All facts were read after a restart: continues an eviction, marks members of a gang that had timed out, and treats
  // a member that failed meanwhile as lost.
  void ResumeAfterRestart(const Gang& gang, ApplyContext* ctx);
  // All members to be evicted are gone.
  void EndEviction(const Gang& gang);
  // Evicts the pod if its gang is being evicted.
  void EvictIfEvicting(const Pod& pod, ApplyContext* ctx) const;
  // Ends the repair: withdraws the slots of missing members; the gang's policy decides about the others.
  void EndRepair(const Gang& gang, ApplyContext* ctx);
  // Handles the deadlines that have been reached.
  void OnTime(const Gang& gang, ApplyContext* ctx);
  // kNever: nothing is due.
  [[nodiscard]] int64_t Deadline(const Gang& gang) const {
    const State& state = Of(gang);
    return std::min({state.repair_until_ms, state.evict_again_ms, state.completion_deadline_ms});
  }
  [[nodiscard]] const State& Of(const Gang& gang) const { return states_.Of(gang.id); }
  void Remove(const Gang& gang) { states_.Reset(gang.id); }

  static constexpr auto Recorded() { return std::tuple(&Repair::states_); }

 private:
  bool MarkGroupPartial(const Gang& gang, const std::vector<std::string>& peers, absl::string_view why,
                        ApplyContext* ctx);
  void AbandonGroup(const Gang& gang, ApplyContext* ctx);
  void Evict(const Gang& gang, absl::string_view why, ApplyContext* ctx);
  void EvictMembers(const Gang& gang, absl::string_view why, ApplyContext* ctx);

  Gangs* gangs_;
  const Eligibility* eligibility_;
  const Plans* plans_;
  PlanLifecycle* plan_lifecycle_;
  const int64_t repair_ms_;
  ById<State> states_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_REPAIR_H_
