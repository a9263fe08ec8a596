// Common parts of the simulated worlds: random draws, the clock, the store, the current process, and the figures and
// events of the run. Single-threaded.
#ifndef MUSTER_TESTS_SIMULATION_SIM_WORLD_H_
#define MUSTER_TESTS_SIMULATION_SIM_WORLD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "service/engine/engine.h"
#include "tests/simulation/path_store.h"
#include "tests/simulation/sim_queues.h"

namespace muster {

class SimWorld : protected EffectSink, protected CommandRecorder {
 public:
  // Empty, or the first rule that was broken.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  // The last events, one line each.
  [[nodiscard]] const std::deque<std::string>& events() const { return events_; }
  // Turns that were taken before the violation, or before faults stopped.
  [[nodiscard]] int turns() const { return turns_; }
  // Number of occurrences: kinds of commands, effects, records, reasons, replies and faults by name.
  [[nodiscard]] const std::map<std::string, int64_t>& figures() const { return figures_; }

 protected:
  // The life of one process: callbacks of an ended life are ignored.
  struct Life {
    bool alive = true;
  };

  explicit SimWorld(uint64_t seed);
  ~SimWorld() override;

  int Roll(int sides) { return static_cast<int>(Draw() % static_cast<unsigned>(sides)); }
  // From here on draws depend only on the seed and the turn's number: leaving out a turn does not change the draws of
  // others.
  void BeginTurn(int turn) {
    turns_ = turn + 1;
    drawn_ = seed_ ^ (static_cast<uint64_t>(turn + 1) << 32);
  }
  void StopFaults() {
    faults_ = false;
    drawn_ = ~seed_;
    Log("faults stop");
  }
  bool Chance(int in) { return faults_ && Roll(in) == 0; }
  using Answered = std::function<void(const absl::StatusOr<Reply>&)>;
  // Sends a call of a client; its answer may be the last thing that the process does, and no answer of a dead process
  // arrives.
  void Call(Command command, Answered answered) {
    engine_->AskAsync(std::move(command), std::chrono::steady_clock::time_point::max(), Heard(std::move(answered)));
  }
  [[nodiscard]] Answered Heard(Answered answered) {
    return [this, life = life_, answered = std::move(answered)](const absl::StatusOr<Reply>& reply) {
      if (!life->alive) return;
      if (Chance(100)) life->alive = false;
      answered(reply);
    };
  }
  // The next action of the engine or its committer, for seven of the sides of a draw. False: the roll selects another
  // actor.
  bool EngineTurn(int roll);
  void Log(const std::string& text);
  void Violate(std::string text);
  // `cpu`: of all nodes.
  void MakeQueues(int64_t cpu) {
    queues_ = std::make_unique<SimQueues>([this](int sides) { return Roll(sides); }, cpu);
    settings_.queues = queues_->rules();
  }
  // The operator declares other queues.
  void ChangeQueues();
  // Starts another process with the contents of the store.
  void StartProcess();
  void EndProcess(const char* when);

  void BeforeApply(const Machine& machine, int64_t /*now_ms*/) override { machine_ = &machine; }
  void AfterApply(const Command& command, int64_t now_ms, const Outcome& outcome) override;
  void OnStopped(const Machine& /*machine*/) override {}

  bool faults_ = true;
  std::string violation_;
  std::deque<std::string> events_;
  std::map<std::string, int64_t> figures_;
  SimClock clock_;
  PathStore store_;
  MachineSettings settings_;
  std::unique_ptr<SimQueues> queues_;
  std::shared_ptr<Life> life_;
  std::unique_ptr<Engine> engine_;
  const Machine* machine_ = nullptr;

 private:
  // SplitMix64 (Steele, Lea, Flood, 2014): seeding it again in each turn is free.
  uint64_t Draw() {
    uint64_t z = drawn_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  const uint64_t seed_;
  uint64_t drawn_;
  int turns_ = 0;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_SIM_WORLD_H_
