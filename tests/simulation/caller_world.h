// Orchestrators over the port that gRPC uses, without Kubernetes, on simulated time: they announce nodes and pods in
// numbered steps, submit whole gangs, confirm them, ask again after a crash, and let them go. The engine and its
// committer are those that ship; the store keeps what was committed, and the process dies at any moment (S-1, S-2).
#ifndef MUSTER_TESTS_SIMULATION_CALLER_WORLD_H_
#define MUSTER_TESTS_SIMULATION_CALLER_WORLD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/shorten.h"
#include "tests/simulation/sim_world.h"

namespace muster {

class CallerWorld : public SimWorld {
 public:
  explicit CallerWorld(uint64_t seed);

  // So many turns with everything that goes wrong, then without: every gang is confirmed and over in the end.
  void Run(const Turns& turns);

 private:
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

  void Turn();
  // The turn of somebody who is not the engine.
  void OutsideTurn(int roll);
  void Start();
  void Crash(const char* when);
  // Asks, and is heard only if the process that answers is still there.
  void Call(Command command, std::function<void(const absl::StatusOr<Reply>&)> answered);
  // One, or two whose gangs are a group.
  void MakeJobs();
  // Of at most `most` pods.
  void MakeJob(const std::vector<std::string>& group, int most);
  void CheckMates(const Job& job);
  void CheckQueues(const Job& job);
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
