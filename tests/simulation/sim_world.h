// What the simulated worlds share: the draw, the clock, the store, one process after the other, and what is told of it
// all.
#ifndef MUSTER_TESTS_SIMULATION_SIM_WORLD_H_
#define MUSTER_TESTS_SIMULATION_SIM_WORLD_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/engine/engine.h"
#include "tests/simulation/path_store.h"

namespace muster {

class SimWorld : protected EffectSink, protected CommandRecorder {
 public:
  // Empty, or the first rule that was broken.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  // What happened last, one line for each event.
  [[nodiscard]] const std::deque<std::string>& events() const { return events_; }
  // How often what came to pass: kinds of commands, effects, records, reasons, answers and faults by name.
  [[nodiscard]] const std::map<std::string, int64_t>& figures() const { return figures_; }

 protected:
  // The life of one process: whoever calls back for one that is over is not heard.
  struct Life {
    bool alive = true;
  };

  explicit SimWorld(uint64_t seed);
  ~SimWorld() override;

  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
  bool Chance(int in) { return faults_ && Roll(in) == 0; }
  void Log(const std::string& text);
  void Violate(std::string text);
  // Another process begins, with what the store has.
  void StartProcess();
  void EndProcess(const char* when);

  void Before(const Machine& machine, int64_t /*now_ms*/) override { machine_ = &machine; }
  void Applied(const Command& command, int64_t now_ms, const Outcome& outcome) override;
  void Ended(const Machine& /*machine*/) override {}

  std::mt19937_64 random_;
  bool faults_ = true;
  std::string violation_;
  std::deque<std::string> events_;
  std::map<std::string, int64_t> figures_;
  SimClock clock_;
  PathStore store_;
  MachineSettings settings_;
  std::shared_ptr<Life> life_;
  std::unique_ptr<Engine> engine_;
  const Machine* machine_ = nullptr;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_SIM_WORLD_H_
