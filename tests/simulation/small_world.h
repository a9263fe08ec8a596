// A world so small that every order of its possible events is tried: a few pods and nodes, the callers that ask for
// them, the replies of kube-scheduler and the API server, timers, restarts.
//
// A state is reached by its path: the actions from the beginning. States are compared in canonical form. The rules are
// the same in every state: the machine's invariants, no partial gang (K-13), no capacity given twice, and, once nothing
// goes wrong any more, everything that fits starts (P-6). Single-threaded.
#ifndef MUSTER_TESTS_SIMULATION_SMALL_WORLD_H_
#define MUSTER_TESTS_SIMULATION_SMALL_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "state/base/hash.h"
#include "state/machine/machine.h"
#include "tests/verify/hash.h"

namespace muster {

// The parameters of a world.
struct Cast {
  enum class Driver : uint8_t { kKube, kVerbs, kSubmission };
  struct Job {
    std::string name;  // of its gang; min 0: of the lone pod
    int32_t min = 0;
    int32_t members = 1;
    int64_t cpu = 1;  // each
    Driver driver = Driver::kKube;
    int32_t priority = 0;
    int32_t port = 0;                // host port of each member
    std::vector<std::string> group;  // names of gangs that start together
    OnTimeout on_timeout = OnTimeout::kFail;
    bool one_rack = false;  // all of it in one rack, or nothing (P-4)
    int leaves = 0;     // P-5: subgroups, of each of which one member must start; members are assigned to them in turn
    std::string queue;  // empty: it names no queue
    bool preemptible = true;
    int turns = 0;  // the turns that it waits at most, if fewer than the cast's
  };
  std::string name;
  std::vector<std::pair<std::string, int64_t>> nodes;  // name and CPU
  std::vector<Job> jobs;
  bool restarts = true;
  bool node_leaves = false;  // the last node may go and come back
  bool pods_leave = true;
  int depth = 6;                          // up to which every order is tried
  std::vector<std::string> racks = {};    // by node; empty: nodes have no such label
  QueueRules queues = {};                 // empty: there are no queues
  std::optional<QueueRules> others = {};  // that an operator may exchange them with, and back
  // When nothing goes wrong any more, running jobs end in turn, one second apart, and are created again. No job that
  // could run waits for more than this number of turns. 0: not checked.
  int turns = 0;
};

struct Action {
  enum class Kind : uint8_t {
    kPlan,         // a round of planning
    kAsk,          // kube-scheduler, or a caller of the verbs, asks for a node
    kBind,         // kube-scheduler binds it there; or the caller asks for the permit
    kGiveUp,       // the held call ends
    kBound,        // the API server has bound the pod; musterd gets the reply before the watch event
    kSeenBound,    // the watch event comes before the reply
    kRetry,        // the API server could not bind it
    kRefused,      // the API server refuses the binding
    kPostBind,     // a caller of the verbs has bound the pod
    kLeave,        // the pod is deleted
    kFail,         // the running pod fails
    kSubmit,       // a whole gang is submitted; or its caller queries it
    kConfirm,      // its plan is confirmed
    kAbandon,      // its plan is abandoned
    kNode,         // the last node goes or comes back
    kTime,         // nothing happens until the next timer
    kQueues,       // the operator changes the queues
    kRestart,      // musterd dies; its pending requests to the API server were not executed
    kRestartDone,  // musterd dies; they were executed
  };
  Kind kind;
  uint8_t index = 0;  // pod or job
};
[[nodiscard]] std::string ToString(const Action& action, const Cast& cast);

class SmallWorld {
 public:
  explicit SmallWorld(const Cast& cast, int64_t start_ms = 1'000'000);

  [[nodiscard]] std::vector<Action> Enabled() const;
  // REQUIRES: enabled.
  void Do(const Action& action);
  // The same, if another world did it before and no rule was broken: nothing is checked again.
  void Repeat(const Action& action);
  // Equal for states that differ only in when they came about.
  [[nodiscard]] uint64_t Canonical() const;
  // From here on all callers act and nothing goes wrong: everything that fits must start. The world cannot be used
  // afterwards. `calmed`: states that are known to end well and are not followed again; the states on this path are
  // added.
  void CalmDown(absl::flat_hash_set<uint64_t>* calmed);
  // Empty, or the rule that was broken.
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  // What a pod without a node waits for: kube-scheduler's own filters, a guarded node, or an activation by musterd.
  enum class Parked : uint8_t { kNo, kByKube, kByGuard, kByMuster };
  struct Body {
    size_t job = 0;
    int member = 0;
    int lives = 0;        // number of the pod with this name
    bool exists = false;  // in the API server
    PodDescription facts;
    Parked parked = Parked::kNo;
    std::string chosen;      // the node that its scheduler chose
    HoldToken token = 0;     // of a held call
    bool permitted = false;  // its caller may bind it
    std::string sent_to;     // node of a binding in flight
    int64_t sent_until_ms = 0;
  };

  [[nodiscard]] const Cast::Job& JobOf(const Body& body) const { return cast_.jobs[body.job]; }
  [[nodiscard]] bool Pending(const Body& body) const;
  [[nodiscard]] NodeDescription NodeOf(size_t index) const;
  // Empty: the node has no such label.
  [[nodiscard]] std::string RackOf(const std::string& node) const;
  // Among its job's subgroups; 0 if there are none.
  [[nodiscard]] int LeafOf(const Body& body) const;
  void EnabledOf(size_t index, std::vector<Action>* out) const;
  void Create(Body* body);
  void Leave(Body* body);
  void Tell(const Body& body);
  void ToggleNode();
  void Restart(bool done);
  void ChangeQueues();
  void NotePlans();
  Outcome Apply(const Command& command);
  void Carry(const Effect& effect);
  void Answered(const HoldAnswer& answer);
  Body* Find(const std::string& uid);

  // --- callers (small_world_callers.cc) ---
  [[nodiscard]] std::vector<std::string> Offered(const Body& body) const;
  void AskKube(Body* body);
  void Park(Body* body, Parked by, const std::string& why);
  void Unpark(bool guarded);
  void AskVerbs(Body* body);
  void Permit(Body* body);
  void NoteBound(Body* body, const std::string& node);
  void Answer(Body* body, BindingResult result, bool seen_first);
  void Submit(size_t job);
  void Confirm(size_t job);

  // --- invariants (small_world_checks.cc) ---
  void Check();
  void CheckWhole(const std::string& uid);
  void CheckRacks();
  void CheckQueues();
  void CheckPassing();
  void Violate(const std::string& text);
  void AddRecords(CanonicalHasher* hasher) const;

  // --- liveness, when nothing goes wrong any more (small_world_calm.cc) ---
  using Calmed = absl::flat_hash_set<uint64_t>;
  // False: the rest of the path is known.
  [[nodiscard]] bool Calm(const Calmed& known, Calmed* on_the_way);
  // Hash of the state together with the local state of Calm.
  [[nodiscard]] uint64_t Station(int idle) const;
  void StepOfCalm();
  [[nodiscard]] std::string Seen() const;
  [[nodiscard]] int Bound(size_t job) const;
  // Bound pods of its subgroup; of the whole job if it has no subgroups.
  [[nodiscard]] int BoundBeside(const Body& body) const;
  // The minimum runs, in each subgroup.
  [[nodiscard]] bool Whole(size_t job) const;
  void CheckStarted();
  // Free capacity of nodes, and the racks of jobs that require one.
  struct Left {
    std::map<std::string, int64_t> free;
    std::multimap<std::string, int32_t> ports;
    std::map<size_t, std::string> racks;
  };
  [[nodiscard]] bool Fits(const std::vector<const Body*>& bodies, size_t from, Left* left) const;
  // The pods that the job and its group still need to be whole; nullopt: a gang of the group is no longer wanted.
  [[nodiscard]] std::optional<std::vector<const Body*>> Missing(size_t job) const;
  [[nodiscard]] Left LeftBeside(const std::vector<const Body*>& running) const;
  [[nodiscard]] std::vector<const Body*> Running() const;
  void TakeTurns();

  // --- queues, by the rules of the specification (small_world_queues.cc) ---
  [[nodiscard]] const QueueRules& Queues() const { return other_queues_ ? *cast_.others : cast_.queues; }
  // The job's queue and the queues above it.
  [[nodiscard]] std::vector<const QueueSpec*> QueuesOf(size_t job) const;
  // Its queues have room for `missing` beside `running`.
  [[nodiscard]] bool Allowed(const std::vector<const Body*>& missing, const std::vector<const Body*>& running) const;
  // It could start in an idle cluster.
  [[nodiscard]] bool CouldRun(size_t job) const;
  // All of it waits.
  [[nodiscard]] bool Waits(size_t job) const;
  // Both wait, and `a` is ordered first.
  [[nodiscard]] bool Before(size_t a, size_t b) const;
  // a head, or a reservation for another gang, may hold it up.
  [[nodiscard]] bool MayBeHeldUp(size_t job) const;

  const Cast& cast_;
  int64_t now_ms_;
  MachineSettings settings_;
  std::unique_ptr<Machine> machine_;
  std::map<std::string, Record> records_;
  std::vector<Body> bodies_;
  std::vector<Effect> effects_;
  std::vector<HoldAnswer> answers_;
  HoldToken next_token_ = 1;
  bool last_node_there_ = true;
  bool other_queues_ = false;
  bool queues_changed_ = false;           // at some time
  std::vector<std::string> submissions_;  // by job; empty: not submitted
  std::vector<int64_t> plans_;            // by job: the last plan that its caller saw
  std::vector<int> submitted_;            // by job: number of submissions
  std::vector<bool> ended_;               // by job: its owner no longer wants it
  std::vector<bool> disturbed_;           // by job: a member was deleted, failed, or may not be bound
  std::set<std::string> whole_;           // gangs that had their minimum bound once and still run
  // Q-6, of a waiting job: since when it is bypassed (0: not), and the jobs that were planned when that was too long.
  struct Passed {
    int64_t since_ms = 0;
    std::set<size_t> late;
  };
  std::vector<Passed> passed_;  // by job
  std::vector<bool> planned_;   // by job: it has a plan, or runs
  bool repeats_ = false;
  std::string violation_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_SMALL_WORLD_H_
