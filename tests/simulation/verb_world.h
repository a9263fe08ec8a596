// Orchestrators that place pods one by one over the port that gRPC uses - PreFilter, FindNodes, Permit, PostBind and
// what undoes them - without Kubernetes, on simulated time. The engine and its committer are those that ship; the store
// keeps what was committed, and the process dies at any moment (G-1 to G-8, S-1, S-2).
#ifndef MUSTER_TESTS_SIMULATION_VERB_WORLD_H_
#define MUSTER_TESTS_SIMULATION_VERB_WORLD_H_

#include <cstdint>
#include <functional>
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

  // So many turns with everything that goes wrong, then without: every gang starts and is over in the end.
  void Run(const Turns& turns);

 private:
  enum class At : uint8_t {
    kIdle,
    kAsked,      // a call is under way
    kWaiting,    // Permit said WAIT
    kPermitted,  // it is on its node, and Muster is to be told
    kBound,      // and was
  };
  struct Member {
    PodDescription facts;
    bool known = false;  // its announcement was acknowledged
    At at = At::kIdle;
    std::string node;  // that was asked for last, and may have been permitted: what became of it is not known
    HoldToken token = 0;
    int asks = 0;         // Permit calls so far: who answers an earlier one is not heard
    int64_t next_ms = 0;  // when its caller comes again
  };
  struct Job {
    std::string name;
    int min = 0;
    std::map<std::string, Member> members;  // by UID
    bool started = false;                   // somebody was told that he may start
    int64_t ends_ms = 0;                    // set when its minimum is bound
    bool leaving = false;
  };
  using Answered = std::function<void(const absl::StatusOr<Reply>&)>;

  void Turn();
  // The turn of somebody who is not the engine.
  void OutsideTurn(int roll);
  void Crash(const char* when);
  // Asks, and is heard only if the process that answers is still there.
  void Call(Command command, Answered answered);
  [[nodiscard]] Answered Heard(Answered answered);
  void MakeJob();
  // nullptr: it is over.
  [[nodiscard]] Member* Find(const std::string& uid);
  [[nodiscard]] Job* JobOf(const std::string& uid);
  void Later(Member* member);
  void CallerTurn();
  void AskNodes(const std::string& uid);
  void AskPermit(const std::string& uid);
  void Permitted(const std::string& uid);
  void TellBound(const std::string& uid);
  void GiveUp(const std::string& uid);
  // Nobody starts without his gang: when the first are permitted, its minimum is.
  void CheckWhole();
  void CheckRoom(const std::string& node);
  void AnnouncerTurn();
  [[nodiscard]] bool MakeStep();
  void Announced(const absl::StatusOr<Reply>& reply);
  // What callers were told holds, whoever died meanwhile.
  void CheckKept();

  void Carry(std::vector<Effect> /*effects*/) override {}
  void Applied(const Command& command, int64_t now_ms, const Outcome& outcome) override;

  std::map<std::string, NodeDescription> nodes_;
  std::map<std::string, Job> jobs_;  // by name
  std::set<std::string> whole_;      // gangs that had their minimum when the first of them were permitted
  int next_id_ = 1;
  bool announcing_ = false;
  std::optional<Command> step_;    // that is not acknowledged yet,
  std::vector<std::string> said_;  // the pods that it says are there,
  std::vector<std::string> gone_;  // and the jobs that it says are gone
  bool snapshot_ = true;           // the next announcement is one
  int64_t version_ = 0;            // that was acknowledged
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_VERB_WORLD_H_
