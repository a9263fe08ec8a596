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
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/simulation/scheduler_model.h"
#include "tests/simulation/shorten.h"
#include "tests/simulation/sim_world.h"

namespace muster {

class PathWorld : public SimWorld, private SchedulerModel::Surroundings {
 public:
  explicit PathWorld(uint64_t seed);

  // So many turns with everything that goes wrong, then without: what waits must start.
  void Run(const Turns& turns);

 private:
  struct ApiPod {
    PodDescription facts;
    size_t job = 0;
    int32_t member = 0;
    int64_t gone_ms = 0;  // deleting: when it ends
  };
  // A bind call that kube-scheduler waits for.
  struct HeldCall {
    int64_t attempt = 0;
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
    std::vector<int32_t> leaves;  // P-5: how many each subgroup needs; members are theirs in turn
    std::vector<size_t> mates;    // D-10: the other gangs of its group
    bool decided = false;         // its minimum was let go at once
    bool whole = false;           // and is bound
    int64_t ends_ms = 0;          // when it is whole
  };

  // --- its users (path_jobs.cc) ---
  void MakeJobs();
  [[nodiscard]] Job DrawJob(size_t number);
  [[nodiscard]] Job DrawMate(size_t number, size_t first_number, Job* first);
  void MakePod(size_t job, int32_t member);
  void RemovePod(const std::string& uid, const char* why);
  void PodChanged(const ApiPod& pod);
  void NodeChanged(const NodeDescription& node);
  // Pods that were told to go end when they are through with it.
  void EndPods();
  void EndJobs();

  // --- the world (path_world.cc) ---
  void Turn();
  // The turn of somebody who is not the engine.
  void OutsideTurn(int roll);
  void Start();
  void Crash(const char* when);
  void LoseStore();
  void List();
  void LoseWatch();
  [[nodiscard]] bool Listing() const;
  void ListAgain();
  // One is cordoned or not any more, leaves with its pods, or is back.
  void NodeFault();
  void NodeBack(std::string name);
  void PassTime();
  void Tell();
  [[nodiscard]] bool AllRest() const;
  // Members of a job, by subgroup; of a job without them, all in one.
  using Parts = std::map<size_t, int32_t>;
  static void CountMember(const ApiPod& pod, const Job& job, Parts* parts) {
    ++(*parts)[job.leaves.empty() ? 0 : static_cast<size_t>(pod.member) % job.leaves.size()];
  }
  [[nodiscard]] static bool Enough(const Job& job, const Parts& parts);
  void Shape(Job* job);
  // The largest job of this kind that an empty cluster holds, or its largest rack.
  [[nodiscard]] int64_t Places(const Job& job) const;
  void CheckRack(const ApiPod& pod);
  void CheckHalves();
  void CheckQueues(const Job& job, const std::vector<Effect>& effects);
  void CheckMates(const Job& job, const std::map<size_t, Parts>& going);

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
  void HearNews(size_t count);
  // It begins anew, and reads everything again.
  void StartScheduler();
  void RestartScheduler();
  // musterd is gone: what was asked fails.
  void FailCalls();
  void AskFilter(const std::string& uid, const std::vector<std::string>& nodes) override;
  void AskPreempt(const std::string& uid, const SchedulerModel::Victims& victims) override;
  void AskBind(const std::string& uid, const std::string& node, int64_t attempt) override;
  void SayUnschedulable(const std::string& uid, const std::string& reason, const std::string& message) override;
  void Nominate(const std::string& uid, const std::string& node) override;
  void Delete(const std::string& uid) override;
  int Roll(int sides) override { return SimWorld::Roll(sides); }
  void Filtered(const std::string& uid, const std::vector<std::string>& offered, const absl::StatusOr<Reply>& reply);
  void Applied(const Command& command, int64_t now_ms, const Outcome& outcome) override;
  void CheckPreemptor(const std::string& uid, const std::vector<std::string>& nodes);
  void CheckPreemptorsRack(const std::string& uid, const std::string& node);
  void CheckVictims(const Preempt& question, const std::vector<std::string>& nodes);
  void HoldEnded(const std::string& uid, const HoldAnswer& answer);
  // Whoever waits for the answer of a bind call goes, for a while or for ever.
  void CallerGoes(const std::string& uid);
  [[nodiscard]] ResourceList FreeOn(const NodeDescription& node) const;

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

  std::unique_ptr<SchedulerModel> scheduler_;
  std::deque<std::function<void()>> news_;  // that kube-scheduler has not heard yet
  // What it has asked, filter or preempt, and waits for.
  std::optional<std::string> asked_filter_;
  std::optional<std::string> asked_preempt_;
  std::map<std::string, HeldCall> held_;  // by UID
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_PATH_WORLD_H_
