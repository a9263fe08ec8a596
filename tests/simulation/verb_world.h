// Simulates orchestrators that place pods one by one over the port that gRPC uses (PreFilter, FindNodes, Permit,
// PostBind and their reversals), without Kubernetes, on simulated time. The engine and its committer are the shipped
// ones. The store retains what was committed, and the process can die at any moment (G-1 to G-8, S-1, S-2).
// Single-threaded.
#ifndef MUSTER_TESTS_SIMULATION_VERB_WORLD_H_
#define MUSTER_TESTS_SIMULATION_VERB_WORLD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/shorten.h"
#include "tests/simulation/sim_world.h"

namespace muster {

class VerbWorld : public SimWorld {
 public:
  explicit VerbWorld(uint64_t seed);

  // Runs the turns with faults, then without faults until every gang has started and is over.
  void Run(const Turns& turns);

 private:
  enum class At : uint8_t {
    kIdle,
    kAsked,      // a call is in flight
    kWaiting,    // Permit returned WAIT
    kPermitted,  // on its node, not reported to Muster yet
    kBound,      // and reported
  };
  struct Member {
    PodDescription facts;
    bool known = false;  // its announcement was acknowledged
    At at = At::kIdle;
    std::string node;  // last requested node, perhaps permitted: the result of the call is unknown
    HoldToken token = 0;
    int asks = 0;         // Permit calls so far: replies to earlier ones are ignored
    int64_t next_ms = 0;  // when its caller calls again
  };
  struct Job {
    std::string name;
    int min = 0;
    std::map<std::string, Member> members;  // by UID
    bool started = false;                   // the caller of some member was permitted
    int64_t ends_ms = 0;                    // set when its minimum is bound
    bool leaving = false;
  };

  void Turn();
  // A turn of anything but the engine.
  void OutsideTurn(int roll);
  void Crash(const char* when);
  void MakeJob();
  // nullptr: the job is over.
  [[nodiscard]] Member* Find(const std::string& uid);
  [[nodiscard]] Job* JobOf(const std::string& uid);
  void Later(Member* member);
  void CallerTurn();
  void AskNodes(const std::string& uid);
  void AskPermit(const std::string& uid);
  void Permitted(const std::string& uid);
  void TellBound(const std::string& uid);
  void GiveUp(const std::string& uid);
  // No pod starts without its gang: when the first members are permitted, the minimum is.
  void CheckWhole();
  void CheckRoom(const std::string& node);
  void AnnouncerTurn();
  [[nodiscard]] bool MakeStep();
  void Announced(const absl::StatusOr<Reply>& reply);
  // Promises to callers hold across every crash.
  void CheckPromises();

  void Carry(std::vector<Effect> /*effects*/) override {}
  void AfterApply(const Command& command, int64_t now_ms, const Outcome& outcome) override;

  std::map<std::string, NodeDescription> nodes_;
  std::map<std::string, Job> jobs_;  // by name
  std::set<std::string> whole_;      // gangs that had their minimum when the first members were permitted
  int next_id_ = 1;
  bool announcing_ = false;
  std::optional<Command> step_;    // not acknowledged yet
  std::vector<std::string> said_;  // pods that `step_` reports as present
  std::vector<std::string> gone_;  // jobs that `step_` reports as gone
  bool snapshot_ = true;           // the next announcement is a snapshot
  int64_t version_ = 0;            // the last acknowledged version
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_VERB_WORLD_H_
