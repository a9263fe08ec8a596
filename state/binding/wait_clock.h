// How long a gang may hold capacity without reaching its quorum (SPEC G-6).
//
// Times of successive plans add up and are durable. The time of Permit calls starts at zero each time. Not thread-safe.
#ifndef MUSTER_STATE_BINDING_WAIT_CLOCK_H_
#define MUSTER_STATE_BINDING_WAIT_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "state/base/by_id.h"
#include "state/base/components.h"
#include "state/base/time.h"
#include "state/gangs/gangs.h"
#include "state/gangs/types.h"

namespace muster {

class WaitClock {
 public:
  explicit WaitClock(Gangs* gangs) : gangs_(gangs) {}

  // The gang holds capacity from now on; no effect while the clock runs.
  void Start(const Gang& gang, bool by_plan, int64_t now_ms) {
    State& state = states_[gang.id];
    state.by_plan = by_plan;
    if (state.since_ms == kNever) state.since_ms = now_ms;
  }
  // The gang holds no capacity any more; no effect while the clock is stopped.
  void Stop(const Gang& gang, int64_t now_ms) {
    const State state = states_.Of(gang.id);
    if (state.since_ms == kNever) return;
    if (state.by_plan) gangs_->SetHeld(gang, gang.durable.held_ms + now_ms - state.since_ms);
    states_[gang.id].since_ms = kNever;
  }
  // The quorum was reached: stops the clock and sets the sum to zero.
  void Reset(const Gang& gang) {
    states_[gang.id].since_ms = kNever;
    gangs_->SetHeld(gang, 0);
  }
  void Remove(const Gang& gang) { states_.Reset(gang.id); }

  [[nodiscard]] bool running(const Gang& gang) const { return states_.Of(gang.id).since_ms != kNever; }
  [[nodiscard]] bool by_plan(const Gang& gang) const { return states_.Of(gang.id).by_plan; }
  // What is left of the wait time, in milliseconds.
  [[nodiscard]] int64_t RemainingMs(const Gang& gang, int64_t now_ms) const {
    const int64_t now_held_ms = running(gang) ? now_ms - states_.Of(gang.id).since_ms : 0;
    return std::max<int64_t>(0, gang.rules.wait_time_ms - gang.durable.held_ms - now_held_ms);
  }
  // When the wait time runs out; kNever: the clock is stopped.
  [[nodiscard]] int64_t Deadline(const Gang& gang) const {
    if (!running(gang)) return kNever;
    return states_.Of(gang.id).since_ms + std::max<int64_t>(0, gang.rules.wait_time_ms - gang.durable.held_ms);
  }

  static constexpr auto Recorded() { return std::tuple(&WaitClock::states_); }

 private:
  struct State {
    int64_t since_ms = kNever;  // since when it has reservations or waiting pods; kNever: stopped
    bool by_plan = false;
  };
  Gangs* gangs_;
  ById<State> states_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BINDING_WAIT_CLOCK_H_
