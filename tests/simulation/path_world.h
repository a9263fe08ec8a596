// Simulates the whole path of a decision on simulated time, in one thread: the shipped engine and committer, a store
// that retains only what was committed, and models of kube-scheduler, the API server and the users.
//
// Each turn is drawn at random: the engine applies, the store commits, an effect arrives, a watch delivers an event,
// kube-scheduler calls, time passes, or a fault happens. The process may die between any two turns: after the apply,
// after the commit, after half of the effects, or before the replies. The same seed gives the same run.
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

#include "tests/simulation/scheduler_model.h"
#include "tests/simulation/shorten.h"
#include "tests/simulation/sim_world.h"

namespace muster {

class PathWorld : public SimWorld, private SchedulerModel::Surroundings {
 public:
  explicit PathWorld(uint64_t seed);

  // Runs the turns with faults, then without faults until every waiting job starts.
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
    std::vector<int32_t> leaves;  // P-5: minimum of each subgroup; members are assigned to them in turn
    std::vector<size_t> peers;    // D-10: the other gangs of its group
    bool decided = false;         // its minimum was released at once
    bool whole = false;           // and is bound
    int64_t ends_ms = 0;          // when it is whole
  };

  // --- users (path_jobs.cc) ---
  void MakeJobs();
  [[nodiscard]] Job DrawJob(size_t number);
  [[nodiscard]] Job DrawPeer(size_t number, size_t first_number, Job* first);
  void MakePod(size_t job, int32_t member);
  void RemovePod(const std::string& uid, const char* why);
  void PodChanged(const ApiPod& pod);
  void NodeChanged(const NodeDescription& node);
  // Pods that are being deleted end when their time is over.
  void EndPods();
  void EndJobs();

  // --- the world (path_world.cc) ---
  void Turn();
  // A turn of anything but the engine.
  void OutsideTurn(int roll);
  void Start();
  void Crash(const char* when);
  void LoseStore();
  void List();
  void LoseWatch();
  [[nodiscard]] bool Listing() const;
  void ListAgain();
  // A node is cordoned or uncordoned, leaves with its pods, or comes back.
  void NodeFault();
  void NodeBack(std::string name);
  void PassTime();
  void Tell();
  [[nodiscard]] bool AllRest() const;
  // Number of members of a job by subgroup; without subgroups all members count in one.
  using Parts = std::map<size_t, int32_t>;
  static void CountMember(const ApiPod& pod, const Job& job, Parts* parts) {
    ++(*parts)[job.leaves.empty() ? 0 : static_cast<size_t>(pod.member) % job.leaves.size()];
  }
  [[nodiscard]] static bool Enough(const Job& job, const Parts& parts);
  void Shape(Job* job);
  // The size of the largest job of this kind that an empty cluster, or its largest rack, holds.
  [[nodiscard]] int64_t Places(const Job& job) const;
  void CheckRack(const ApiPod& pod);
  void CheckPartialStarts();
  // P-6: when nothing has changed for longer than every back-off, no gang waits that fits (tests/simulation/judge.h).
  void CheckAtRest();
  void CheckQueues(const Job& job, const std::vector<Effect>& effects);
  void CheckPeers(const Job& job, const std::map<size_t, Parts>& released);

  // --- the engine (path_world.cc) ---
  void Carry(std::vector<Effect> effects) override;
  void CheckCarried(const std::vector<Effect>& effects);

  // --- the API server (path_parts.cc) ---
  void ApiTurn();
  void Do(const Effect& effect);
  void DoBind(const BindPod& bind);
  // The binding, as the API server accepts it. False: refused.
  bool Bind(const std::string& uid, const std::string& node);

  // --- kube-scheduler (path_parts.cc) ---
  void SchedulerTurn();
  void HearNews(size_t count);
  // kube-scheduler restarts, and reads everything again.
  void StartScheduler();
  void RestartScheduler();
  // musterd is gone: pending calls fail.
  void FailCalls();
  void AskFilter(const std::string& uid, const std::vector<std::string>& nodes) override;
  void AskPreempt(const std::string& uid, const SchedulerModel::Victims& victims) override;
  void AskBind(const std::string& uid, const std::string& node, int64_t attempt) override;
  void SayUnschedulable(const std::string& uid, const std::string& reason, const std::string& message) override;
  void Nominate(const std::string& uid, const std::string& node) override;
  void Delete(const std::string& uid) override;
  int Roll(int sides) override { return SimWorld::Roll(sides); }
  void Filtered(const std::string& uid, const std::vector<std::string>& offered, const absl::StatusOr<Reply>& reply);
  void AfterApply(const Command& command, int64_t now_ms, const Outcome& outcome) override;
  void CheckPreemptor(const std::string& uid, const std::vector<std::string>& nodes);
  void CheckPreemptorsRack(const std::string& uid, const std::string& node);
  void CheckVictims(const Preempt& question, const std::vector<std::string>& nodes);
  void OnHoldEnded(const std::string& uid, const HoldAnswer& answer);
  // The caller of a held bind call goes away, for a while or forever.
  void CallerGoes(const std::string& uid);
  [[nodiscard]] ResourceList FreeOn(const NodeDescription& node) const;

  std::map<std::string, NodeDescription> nodes_;
  std::map<std::string, NodeDescription> absent_;
  std::map<std::string, ApiPod> pods_;  // by UID
  std::vector<Job> jobs_;
  std::map<size_t, int64_t> partial_since_ms_;  // after faults stopped: the time since which a job is partially bound
  std::set<size_t> open_;                       // jobs that are not over
  bool frozen_ = false;                         // no job ends
  int next_uid_ = 1;
  int calls_ = 0;

  std::deque<Command> watch_;  // events that musterd has not received yet
  std::set<std::string> known_nodes_;
  std::set<std::string> known_pods_;  // UIDs that musterd knows
  std::deque<Effect> api_;            // in flight to the API server
  std::deque<BindPod> ghosts_;        // sent by a process that is gone

  std::unique_ptr<SchedulerModel> scheduler_;
  std::deque<std::function<void()>> news_;  // events that kube-scheduler has not received yet
  // The pending call of kube-scheduler, filter or preempt.
  std::optional<std::string> asked_filter_;
  std::optional<std::string> asked_preempt_;
  std::map<std::string, HeldCall> held_;  // by UID
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_PATH_WORLD_H_
