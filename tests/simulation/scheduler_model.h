// A model of kube-scheduler as far as an extender meets it: its cache and what it assumes, its queues and back-offs,
// what brings a parked pod back, its own filters for room and cordons, samples, nominated nodes and preemption. It is
// held to what kube-scheduler 1.37 and 1.35 do by kube_scheduler_cases.txt.
//
// It takes part in a simulation: it does one thing when it is told to, asks through Surroundings, and its questions are
// answered when the simulation says so.
#ifndef MUSTER_TESTS_SIMULATION_SCHEDULER_MODEL_H_
#define MUSTER_TESTS_SIMULATION_SCHEDULER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "state/model/node.h"
#include "state/model/pod.h"

namespace muster {

class SchedulerModel {
 public:
  // What an extender's filter answered.
  struct FilterAnswer {
    bool error = false;
    std::vector<std::string> nodes;     // that are left
    std::vector<std::string> hopeless;  // of the others: where preempting is of no use
    std::string words;                  // why, as the pod's condition has it
  };
  using Victims = std::map<std::string, std::vector<std::string>>;  // by node: UIDs

  // Whom it asks, and the API server it writes to.
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

  // --- what its watches tell ---
  void NodeIs(const NodeDescription& node, int64_t now_ms);
  void NodeGone(const std::string& name, int64_t now_ms);
  // Something of the pod changed. `patient`: it preempts nobody (preemptionPolicy Never).
  void PodIs(const PodDescription& pod, int64_t now_ms, bool patient = false);
  void PodGone(const std::string& uid, int64_t now_ms);

  // --- answers ---
  void Filtered(const std::string& uid, const FilterAnswer& answer, int64_t now_ms);
  void Preempted(const std::string& uid, const std::vector<std::string>& nodes, int64_t now_ms);
  // Ignored when it is about an earlier attempt.
  void Bound(const std::string& uid, int64_t attempt, bool ok, int64_t now_ms);

  // Begins to schedule one pod. False: there is none to schedule, or it waits for an answer.
  bool Step(int64_t now_ms);
  // It stops looking once it has found so many nodes that fit, or a part of all that there are if that is more: 100 in
  // kube-scheduler.
  void SampleAtLeast(size_t nodes) { sample_at_least_ = nodes; }
  // Whether the nodes it asks about now are a sample of all that there are.
  [[nodiscard]] bool sampled() const { return cycle_.has_value() && cycle_->sampled; }

  // For a look at what went wrong.
  [[nodiscard]] std::string Describe(const std::string& uid) const;

 private:
  enum class Queue { kGated, kActive, kBackoff, kErrorBackoff, kUnschedulable, kInCycle, kBinding, kAssigned };
  // What may bring pods back.
  enum class Change {
    kPodGoes,        // one that has a place, or is assumed no more
    kPodIsAssigned,  // and counts
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
  // Who refused a pod on some node.
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
    std::map<std::string, int> words;  // why nodes do not take it, and how many
    std::set<std::string> hopeless;    // nodes where preempting is of no use
    Victims victims;                   // when it preempts
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
  // Without the pods `without`.
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
