// Orchestrators over the port that gRPC uses, without Kubernetes, on simulated time: they announce nodes and pods in
// numbered steps, submit whole gangs, confirm them, ask again after a crash, and let them go. The engine and its
// committer are those that ship; the store keeps what was committed, and the process dies at any moment (S-1, S-2).
#ifndef MUSTER_TESTS_SIMULATION_CALLER_WORLD_H_
#define MUSTER_TESTS_SIMULATION_CALLER_WORLD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "service/engine/engine.h"
#include "tests/simulation/path_store.h"

namespace muster {

class CallerWorld : private EffectSink, private CommandRecorder {
 public:
  explicit CallerWorld(uint64_t seed);
  ~CallerWorld() override;

  // So many turns with everything that goes wrong, then without: every gang is confirmed and over in the end.
  void Run(int turns);

  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] const std::deque<std::string>& events() const { return events_; }
  [[nodiscard]] const std::map<std::string, int64_t>& figures() const { return figures_; }

 private:
  struct Life {
    bool alive = true;
  };
  using Places = std::map<std::string, std::string>;  // UID to node
  struct Job {
    SubmitGang submit;
    int64_t plan = 0;
    bool asked = false;       // a call is under way
    bool confirming = false;  // it may be confirmed: what became of the call is not known
    Places places;            // as it was told that it is confirmed; empty: it was not
    bool leaving = false;     // it is announced that its pods are gone
    int64_t ends_ms = 0;      // when it is confirmed
    int64_t next_ms = 0;      // when its caller comes again
  };

  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
  bool Chance(int in) { return faults_ && Roll(in) == 0; }
  void Log(std::string text);
  void Violate(std::string text);
  void Turn();
  void Start();
  void Crash(const char* when);
  // Asks, and is heard only if the process that answers is still there.
  void Call(Command command, std::function<void(const absl::StatusOr<Reply>&)> answered);
  void MakeJob();
  void CallerTurn();
  void Come(const std::string& id);
  void Told(const std::string& id, const absl::StatusOr<Reply>& reply);
  void Confirmed(Job* job, const SubmissionReply& reply);
  void AnnouncerTurn();
  // False: there is nothing to announce now.
  bool MakeStep();
  void Announced(const absl::StatusOr<Reply>& reply);
  // What callers were told holds, whoever died meanwhile.
  void CheckKept();

  void Carry(std::vector<Effect> /*effects*/) override {}
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

  std::map<std::string, NodeDescription> nodes_;
  std::map<std::string, Job> jobs_;  // by submission id
  int next_id_ = 1;
  bool announcing_ = false;
  std::optional<Command> step_;    // that is not acknowledged yet,
  std::vector<std::string> gone_;  // and the pods that it says are gone
  bool snapshot_ = true;           // the next announcement is one
  int64_t version_ = 0;            // that was acknowledged
  std::set<std::string> running_;  // UIDs that were confirmed, and of which nobody said that they are gone
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_CALLER_WORLD_H_
