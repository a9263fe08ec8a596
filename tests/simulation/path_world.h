// The whole path of a decision on simulated time, in one thread: the engine and its committer as they ship, a store
// that keeps what was committed and nothing else, and models of kube-scheduler, of the API server and of those who make
// jobs.
//
// Whose turn it is, is drawn: the engine applies, the store commits, an effect arrives, a watch tells, kube-scheduler
// asks, time passes, or something goes wrong. The process may die between any two of them - behind the apply, the
// commit, half of the effects, or before the replies. The same seed gives the same run.
#ifndef MUSTER_TESTS_SIMULATION_PATH_WORLD_H_
#define MUSTER_TESTS_SIMULATION_PATH_WORLD_H_

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/simulation/sim_world.h"

namespace muster {

class PathWorld : public SimWorld {
 public:
  explicit PathWorld(uint64_t seed);

  // So many turns with everything that goes wrong, then without: what waits must start.
  void Run(int turns);

 private:
  enum class Queue { kGated, kActive, kAsked, kHeld, kParked, kParkedByGuard, kParkedByKube };
  struct ApiPod {
    PodDescription facts;
    size_t job = 0;
    int32_t member = 0;
    // As kube-scheduler has it.
    Queue queue = Queue::kActive;
    int64_t not_before_ms = 0;
    int32_t tries = 0;
    std::string assumed;
    HoldToken token = 0;
  };
  struct Job {
    std::string gang;  // empty: a pod of its own
    int32_t size = 1;
    int32_t minimum = 1;
    int32_t priority = 0;
    bool gated = false;
    ResourceList requests;
    GangDeclaration declaration;
    bool decided = false;  // its minimum was let go at once
    bool whole = false;    // and is bound
    int64_t ends_ms = 0;   // when it is whole
  };

  // --- the world (path_world.cc) ---
  void Turn();
  void MakeJobs();
  void MakePod(size_t job, int32_t member);
  void RemovePod(const std::string& uid, const char* why);
  void PodChanged(const ApiPod& pod);
  void EndJobs();
  void Start();
  void Crash(const char* when);
  void List();
  void LoseWatch();
  // One is cordoned or not any more, leaves with its pods, or is back.
  void NodeFault();
  void NodeBack(std::string name);
  void PassTime();
  void Tell();
  [[nodiscard]] bool AllRest() const;
  void CheckHalves();

  // --- what the engine does (path_world.cc) ---
  void Carry(std::vector<Effect> effects) override;
  void CheckCarried(const std::vector<Effect>& effects);

  // --- the API server (path_parts.cc) ---
  void ApiTurn();
  void Do(const Effect& effect);
  void DoBind(const BindPod& bind);
  // The binding, as the API server takes it. False: it does not.
  bool Bind(const std::string& uid, const std::string& node);

  // --- kube-scheduler (path_parts.cc) ---
  void SchedulerTurn();
  void Ask(ApiPod* pod);
  void Answered(const std::string& uid, const std::vector<std::string>& offered, const absl::StatusOr<Reply>& reply);
  void HoldEnded(const std::string& uid, const HoldAnswer& answer);
  void SendBack(ApiPod* pod, Queue queue);
  void Park(ApiPod* pod, Queue queue, absl::string_view message);
  void Unpark(bool guarded);
  [[nodiscard]] bool Fits(const ApiPod& pod, const NodeDescription& node) const;
  [[nodiscard]] ResourceList FreeOn(const NodeDescription& node, bool assumed) const;

  std::map<std::string, NodeDescription> nodes_;
  std::map<std::string, NodeDescription> absent_;
  std::map<std::string, ApiPod> pods_;  // by UID
  std::vector<Job> jobs_;
  std::map<size_t, int64_t> half_since_ms_;  // once faults stopped: since when a job is started in part
  std::set<size_t> open_;                    // jobs that are not over
  int next_uid_ = 1;
  int calls_ = 0;

  std::deque<Command> watch_;  // what musterd has not been told yet
  std::set<std::string> told_nodes_;
  std::set<std::string> told_;  // UIDs that it was told of
  std::deque<Effect> api_;      // on the way to the API server
  std::deque<BindPod> ghosts_;  // sent by a process that is gone
  bool asking_ = false;         // kube-scheduler waits for a filter's answer
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_PATH_WORLD_H_
