// A model of kube-scheduler as far as an extender interacts with it: its cache and assumed pods, its queues and
// back-offs, the events that bring an unschedulable pod back, its own filters for room and cordons, samples, nominated
// nodes and preemption. kube_scheduler_cases.txt checks it against kube-scheduler 1.37 and 1.35.
//
// It takes part in a simulation: each call of Step() does one thing. It makes its calls through Surroundings, and the
// simulation decides when they are answered. Single-threaded.
#ifndef MUSTER_TESTS_SIMULATION_SCHEDULER_MODEL_H_
#define MUSTER_TESTS_SIMULATION_SCHEDULER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "state/model/facts.h"

namespace muster {

class SchedulerModel {
 public:
  // The reply of an extender's filter.
  struct FilterAnswer {
    bool error = false;
    std::vector<std::string> nodes;     // the nodes that passed
    std::vector<std::string> hopeless;  // refused nodes where preemption does not help
    std::string words;                  // the reason, as in the pod's condition
  };
  using Victims = std::map<std::string, std::vector<std::string>>;  // by node: UIDs of victims

  // The extender that it calls, and the API server that it writes to.
  class Surroundings {
   public:
    virtual ~Surroundings() = default;
    // Answered by Filtered() and Preempted(), before anything else is scheduled.
    virtual void AskFilter(const std::string& uid, const std::vector<std::string>& nodes) = 0;
    virtual void AskPreempt(const std::string& uid, const Victims& victims) = 0;
    // Answered by Bound().
    virtual void AskBind(const std::string& uid, const std::string& node, int64_t attempt) = 0;
    virtual void SayUnschedulable(const std::string& uid, const std::string& reason, const std::string& message) = 0;
    virtual void Nominate(const std::string& uid, const std::string& node) = 0;
    virtual void Delete(const std::string& uid) = 0;
    virtual int Roll(int sides) = 0;
  };

  explicit SchedulerModel(Surroundings* around) : around_(around) {}

  // --- watches ---
  void NodeIs(const NodeDescription& node, int64_t now_ms);
  void NodeGone(const std::string& name, int64_t now_ms);
  // The pod was added or changed. `patient`: it never preempts (preemptionPolicy Never).
  void PodIs(const PodDescription& pod, int64_t now_ms, bool patient = false);
  void PodGone(const std::string& uid, int64_t now_ms);

  // --- replies ---
  void Filtered(const std::string& uid, const FilterAnswer& answer, int64_t now_ms);
  void Preempted(const std::string& uid, const std::vector<std::string>& nodes, int64_t now_ms);
  // Ignored if it is about an earlier attempt.
  void Bound(const std::string& uid, int64_t attempt, bool ok, int64_t now_ms);

  // Begins to schedule one pod. False: there is none to schedule, or a reply is pending.
  bool Step(int64_t now_ms);
  // The search stops after this number of feasible nodes, or after a fraction of all nodes if that is more: 100 in
  // kube-scheduler.
  void SampleAtLeast(size_t nodes) { sample_at_least_ = nodes; }
  // Whether the nodes of the current call are only a sample of all nodes.
  [[nodiscard]] bool sampled() const { return cycle_.has_value() && cycle_->sampled; }

  // For the analysis of a failure.
  [[nodiscard]] std::string Describe(const std::string& uid) const;

 private:
  enum class Queue { kGated, kActive, kBackoff, kErrorBackoff, kUnschedulable, kInCycle, kBinding, kAssigned };
  // Events that may bring pods back.
  enum class Change {
    kPodGoes,        // one that was assigned a node, or is no longer assumed
    kPodIsAssigned,  // and counts there
    kPodChanges,     // an assigned one
    kNodeAdd,
    kNodeGrows,
    kNodeUncordoned,
    kNodeLabels,
    kNodeGoes,
    kOwnUpdate,
  };
  struct Event {
    Change change = Change::kPodGoes;
    std::string node;  // kNodeAdd, kNodeGrows, kNodeUncordoned
  };
  // The plugins and extenders that refused a pod on some node.
  struct Rejectors {
    bool room = false;
    bool cordon = false;
    bool extender = false;
  };
  enum class Fit { kFits, kNoRoom, kHopeless };
  struct Entry {
    PodDescription facts;
    bool patient = false;
    Queue queue = Queue::kActive;
    int64_t since_ms = 0;   // in its queue
    int64_t until_ms = 0;   // its back-off
    int unschedulable = 0;  // attempts in a row
    int errors = 0;
    Rejectors rejectors;
    std::vector<Event> meanwhile;  // while it was being scheduled
    std::string assumed;
    int64_t attempt = 0;
  };
  // One pod's scheduling cycle.
  struct Cycle {
    std::string uid;
    bool nominated_only = false;
    bool sampled = false;
    std::vector<std::string> offered;
    Rejectors rejectors;
    std::map<std::string, int> words;  // reasons why nodes are refused, with counts
    std::set<std::string> hopeless;    // nodes where preemption does not help
    Victims victims;                   // of its preemption
  };

  void Move(Entry* entry, Queue queue, int64_t now_ms);
  void Happens(const Event& event, int64_t now_ms, const std::string& not_to = "");
  [[nodiscard]] bool Wakes(const Event& event, const Entry& entry) const;
  void Requeue(Entry* entry, int64_t now_ms);
  // Its attempt ends with an error, or without a node.
  void Fail(Entry* entry, const std::string& message, int64_t now_ms);
  void Park(Entry* entry, int64_t now_ms);
  void FlushBackoffs(int64_t now_ms);
  [[nodiscard]] Entry* Next();
  void AskAll(Entry* entry, int64_t now_ms);
  void NoNode(Entry* entry, int64_t now_ms);
  void Assume(Entry* entry, const std::string& node, int64_t now_ms);
  void SetNominated(Entry* entry, const std::string& node);
  [[nodiscard]] Victims FindVictims(const Entry& entry) const;
  [[nodiscard]] std::string BestToPreempt(const std::vector<std::string>& nodes) const;
  // Computed without the pods in `without`.
  [[nodiscard]] Fit FitsOn(const Entry& entry, const NodeDescription& node, const std::set<std::string>& without) const;

  Surroundings* const around_;
  std::map<std::string, NodeDescription> nodes_;
  std::map<std::string, Entry> pods_;
  std::optional<Cycle> cycle_;
  size_t sample_at_least_ = 100;
  size_t first_node_ = 0;
  int64_t attempts_ = 0;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_SCHEDULER_MODEL_H_
