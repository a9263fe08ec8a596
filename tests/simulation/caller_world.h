// Simulates orchestrators over the port that gRPC uses, without Kubernetes, on simulated time. They announce nodes and
// pods in numbered steps, submit whole gangs, confirm them, query them again after a crash, and end them. The engine
// and its committer are the shipped ones. The store retains what was committed, and the process can die at any moment
// (S-1, S-2). Single-threaded.
#ifndef MUSTER_TESTS_SIMULATION_CALLER_WORLD_H_
#define MUSTER_TESTS_SIMULATION_CALLER_WORLD_H_

#include <cstdint>
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

  // Runs the turns with faults, then without faults until every gang is confirmed and over.
  void Run(const Turns& turns);

 private:
  using Places = std::map<std::string, std::string>;  // UID to node
  struct Job {
    SubmitGang submit;
    int64_t plan = 0;
    bool asked = false;       // a call is in flight
    bool submitting = false;  // the last call was its submission
    bool confirming = false;  // it may be confirmed: the result of the call is unknown
    Places places;            // as the reply to the confirmation listed them; empty: no such reply
    bool leaving = false;     // its pods are announced as gone
    int64_t ends_ms = 0;      // when it is confirmed
    int64_t next_ms = 0;      // when its caller calls again
  };

  void Turn();
  // A turn of anything but the engine.
  void OutsideTurn(int roll);
  void Start();
  void Crash(const char* when);
  // Makes one job, or two whose gangs form a group.
  void MakeJobs();
  // Of at most `most` pods.
  void MakeJob(const std::vector<std::string>& group, int most);
  void CheckPeers(const Job& job);
  void CheckQueues(const Job& job);
  void CallerTurn();
  void Come(const std::string& id);
  void OnCallReply(const std::string& id, const absl::StatusOr<Reply>& reply);
  void Confirmed(Job* job, const SubmissionReply& reply);
  void AnnouncerTurn();
  // False: there is nothing to announce now.
  bool MakeStep();
  void Announced(const absl::StatusOr<Reply>& reply);
  // Promises to callers hold across every crash.
  void CheckPromises();

  void Carry(std::vector<Effect> /*effects*/) override {}

  std::map<std::string, NodeDescription> nodes_;
  std::map<std::string, Job> jobs_;  // by submission id
  int next_id_ = 1;
  bool announcing_ = false;
  std::optional<Command> step_;    // not acknowledged yet
  std::vector<std::string> gone_;  // pods that `step_` reports as gone
  bool snapshot_ = true;           // the next announcement is a snapshot
  int64_t version_ = 0;            // the last acknowledged version
  std::set<std::string> running_;  // UIDs that were confirmed and not announced as gone
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_CALLER_WORLD_H_
