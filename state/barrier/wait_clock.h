// How long a gang may hold capacity without reaching its quorum (SPEC G-6).
//
// What it holds by plans adds up over plans (and is kept); what it holds by Permit calls starts anew. Not thread-safe.
#ifndef MUSTER_STATE_BARRIER_WAIT_CLOCK_H_
#define MUSTER_STATE_BARRIER_WAIT_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "state/base/by_id.h"
#include "state/gangs/gangs.h"

namespace muster {

class WaitClock {
 public:
  explicit WaitClock(Gangs* gangs) : gangs_(gangs) {}

  // The gang holds something from now on; harmless while it does.
  void Start(const Gang& gang, bool by_plan, int64_t now_ms) {
    State& state = states_[gang.id];
    state.by_plan = by_plan;
    if (state.since_ms == kNever) state.since_ms = now_ms;
  }
  // The gang holds nothing any more; harmless when it did not.
  void Stop(const Gang& gang, int64_t now_ms) {
    const State state = states_.Of(gang.id);
    if (state.since_ms == kNever) return;
    if (state.by_plan) gangs_->SetHeld(gang, gang.kept.held_ms + now_ms - state.since_ms);
    states_[gang.id].since_ms = kNever;
  }
  // The quorum was reached: what was held is forgotten.
  void Reset(const Gang& gang) {
    states_[gang.id].since_ms = kNever;
    gangs_->SetHeld(gang, 0);
  }
  void Forget(const Gang& gang) { states_.Reset(gang.id); }

  [[nodiscard]] bool running(const Gang& gang) const { return states_.Of(gang.id).since_ms != kNever; }
  [[nodiscard]] bool by_plan(const Gang& gang) const { return states_.Of(gang.id).by_plan; }
  // Held so far, this time included.
  [[nodiscard]] int64_t HeldMs(const Gang& gang, int64_t now_ms) const {
    return gang.kept.held_ms + (running(gang) ? now_ms - states_.Of(gang.id).since_ms : 0);
  }
  [[nodiscard]] int64_t LeftMs(const Gang& gang, int64_t now_ms) const {
    return std::max<int64_t>(0, gang.rules.wait_time_ms - HeldMs(gang, now_ms));
  }
  // When the wait time runs out; kNever: the gang holds nothing.
  [[nodiscard]] int64_t Deadline(const Gang& gang) const {
    if (!running(gang)) return kNever;
    return states_.Of(gang.id).since_ms + std::max<int64_t>(0, gang.rules.wait_time_ms - gang.kept.held_ms);
  }

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&WaitClock::states_); }

 private:
  struct State {
    int64_t since_ms = kNever;  // since when it holds reservations or waiting pods
    bool by_plan = false;
  };
  Gangs* gangs_;
  ById<State> states_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BARRIER_WAIT_CLOCK_H_
