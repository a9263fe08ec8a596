// A small world that calms down: jobs of all kinds, faults for a while, then nothing but schedulers that do their work.
#ifndef MUSTER_TESTS_SIMULATION_LIVENESS_WORLD_H_
#define MUSTER_TESTS_SIMULATION_LIVENESS_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "state/machine/machine.h"
#include "tests/simulation/judge.h"

namespace muster {

struct LivenessOptions {
  bool later_tries = false;     // what the planner's later tries would find must start too
  bool many_callers = false;    // more than one gang may be driven by the verbs, pod by pod
  bool hidden_filters = false;  // kube-scheduler refuses some nodes for reasons that nobody tells the machine (K-6)
};

// What the test is about: SPEC P-6. While faults last, anything may happen. Then everything that fits must start, in
// the order of the queue, and nothing may wait that could go.
class LivenessWorld {
 public:
  LivenessWorld(uint64_t seed, const LivenessOptions& options);

  void Run();

  // Empty, or the first rule that was broken.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  // What happened, one line for each event.
  [[nodiscard]] const std::vector<std::string>& events() const { return events_; }
  [[nodiscard]] const std::map<std::string, int>& figures() const { return figures_; }

 private:
  enum class Driver { kNobody, kKube, kVerbs, kSubmission };
  struct Job {
    std::string name;  // of its gang; a lone pod's otherwise
    Driver driver = Driver::kKube;
    bool gang = true;
    bool gated = false;
    std::string hidden;  // a node that kube-scheduler never offers for its first pod
    GangDeclaration declaration;
    std::vector<Instance::Pod> members;
    int64_t arrives_ms = 0;
    std::string submission;
    bool started = false;
    bool over = false;
  };
  // Who refused the pod last, and so who lets it come again: kube-scheduler's own filters and guarded nodes, when a pod
  // that had a node goes (as measured with kube-scheduler 1.35); a refused member of a gang comes only when called.
  enum class Parked { kNo, kByKube, kByGuard, kByMuster };
  struct ApiPod {
    PodDescription facts;
    size_t job = 0;
    size_t member = 0;
    Parked parked = Parked::kNo;
    int64_t ask_at_ms = 0;
    HoldToken token = 0;   // of a call that is held
    std::string assumed;   // the node it was chosen for
    int64_t until_ms = 0;  // its caller's patience
    int tries = 0;
  };
  // Jobs that start together.
  using Item = std::vector<size_t>;

  // --- the world (liveness_world.cc) ---
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
  void Log(std::string text);
  void Violate(std::string text);
  void MakeNodes();
  void MakeJobs();
  void MakeGroup();
  Instance::Pod RandomMember();
  // Controllers make the pods that are missing.
  void MakePods();
  void MakePod(size_t job, size_t member);
  void Remove(const std::string& uid, const char* why);
  void EndJob(size_t job);
  // The machine's answers and effects arrive.
  void Deliver();
  void BindNow(const BindPod& bind);
  void Answered(const HoldAnswer& answer);
  void NoteBound(ApiPod* pod, const std::string& node);
  Outcome Apply(const Command& command);
  [[nodiscard]] std::vector<std::string> Uids() const;

  // --- what goes wrong (liveness_faults.cc) ---
  void Fault();
  void FaultOfNode();
  void FaultOfPod();
  void Restart();

  // --- those who ask (liveness_schedulers.cc) ---
  void Ask();
  void AskKube(const std::string& uid);
  void Park(ApiPod* pod, Parked by, const std::string& reason);
  void Unpark(bool guarded);
  void AskVerbs(const std::string& uid);
  void AskSubmission(size_t job);
  void TakePlaces(size_t job, const SubmissionReply& reply);
  [[nodiscard]] bool KubeFits(const ApiPod& pod, const NodeDescription& node) const;

  // --- what must hold (liveness_checks.cc) ---
  void Quiet();
  void Plan();
  [[nodiscard]] int64_t NextTime() const;
  void NoteStarted();
  void EndOneThatRuns();
  [[nodiscard]] std::vector<Item> Items() const;
  [[nodiscard]] int32_t Bound(size_t job) const;
  [[nodiscard]] std::vector<Standing> BoundPods() const;
  [[nodiscard]] std::vector<Standing> Charged() const;
  [[nodiscard]] Fit JudgeItem(const Item& item, const std::vector<Standing>& standing) const;
  [[nodiscard]] PodTemplate TrueShape(const ApiPod& pod) const;
  [[nodiscard]] bool Queued(const Item& item) const;
  [[nodiscard]] QueueKey KeyOf(const Item& item) const;
  [[nodiscard]] std::string Name(const Item& item) const;
  [[nodiscard]] bool MateIsOver(const Job& job) const;
  void LogState();
  // Nothing moved for long: whatever waits does not fit.
  void CheckAtRest(bool idle);
  void CheckExtras(const std::vector<Standing>& standing);
  // The first try is greedy: a gang that it did not place may be placed once there is less room, of which nobody would
  // tell the machine. Lets it look once more; whether the item has a plan or has started then.
  [[nodiscard]] bool GoesAfterAnotherLook(const Item& item);

  std::mt19937_64 random_;
  const LivenessOptions options_;
  MachineSettings settings_;
  std::unique_ptr<Machine> machine_;
  int64_t now_ms_ = 1'000'000;
  bool quiet_ = false;
  bool progress_ = false;
  int next_uid_ = 1;
  int calls_ = 0;
  HoldToken next_token_ = 1;
  std::map<std::string, NodeDescription> nodes_;   // that are there
  std::map<std::string, NodeDescription> absent_;  // that left
  std::vector<Job> jobs_;
  std::map<std::string, ApiPod> pods_;
  std::map<HoldToken, std::string> tokens_;
  std::vector<Effect> effects_;
  std::vector<HoldAnswer> answers_;
  std::map<std::string, Record> records_;  // by name
  std::vector<std::string> events_;
  std::map<std::string, int> figures_;
  std::string violation_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_LIVENESS_WORLD_H_
