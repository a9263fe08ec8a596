// A world so small that every order of what can happen in it is tried: a few pods and nodes, the callers that ask for
// them, kube-scheduler's and the API server's answers, timers, restarts.
//
// A state is reached by its path, the actions from the beginning; it is told apart from others in canonical form. The
// rules are the same in every state: the machine's invariants, no partial gang (K-13), no node given twice, and, once
// everybody does his work again, everything that fits starts (P-6).
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
#include "state/machine/machine.h"

namespace muster {

// Who plays.
struct Cast {
  enum class Driver : uint8_t { kKube, kVerbs, kSubmission };
  struct Job {
    std::string name;  // of its gang; min 0: of the plain pod
    int32_t min = 0;
    int32_t members = 1;
    int64_t cpu = 1;  // each
    Driver driver = Driver::kKube;
    int32_t priority = 0;
    int32_t port = 0;                // that each member wants on its node
    std::vector<std::string> group;  // names of gangs that start together
    OnTimeout on_timeout = OnTimeout::kFail;
    bool one_rack = false;  // all of it, or nothing (P-4)
    int leaves = 0;         // P-5: subgroups, of each of which one member must start; members are theirs in turn
    std::string queue;      // empty: it names none
    bool preemptible = true;
    int turns = 0;  // that it waits at most, where that is less than the cast's
  };
  std::string name;
  std::vector<std::pair<std::string, int64_t>> nodes;  // and how much CPU
  std::vector<Job> jobs;
  bool restarts = true;
  bool node_leaves = false;  // the last node may go and come back
  bool pods_leave = true;
  int depth = 6;                          // to which every order is tried
  std::vector<std::string> racks = {};    // by node; empty: nodes have no such label
  QueueRules queues = {};                 // without queues: there are none
  std::optional<QueueRules> others = {};  // that an operator may put in their place, and back
  // When nothing goes wrong any more, those that run end in turn, each a second after the other, and come anew: nobody
  // who could run waits for longer than that many turns. 0: that is not looked at.
  int turns = 0;
};

struct Action {
  enum class Kind : uint8_t {
    kPlan,         // a round of planning
    kAsk,          // kube-scheduler asks where a pod may go; or a caller of the verbs does
    kBind,         // kube-scheduler binds it there; or the caller asks for the permit
    kGiveUp,       // the call that is held ends
    kBound,        // the API server has bound the pod, and musterd is told so before it sees the pod
    kSeenBound,    // the other way round
    kRetry,        // the API server could not
    kRefused,      // the API server will not
    kPostBind,     // a caller of the verbs has bound the pod
    kLeave,        // the pod is deleted
    kFail,         // the pod, which runs, fails
    kSubmit,       // a whole gang is submitted; or its caller asks how it stands
    kConfirm,      // its plan is taken
    kAbandon,      // or given back
    kNode,         // the last node goes or comes back
    kTime,         // nothing happens until the next timer
    kQueues,       // the operator changes the queues
    kRestart,      // musterd dies; what it sent to the API server was not done
    kRestartDone,  // the same, but it was
  };
  Kind kind;
  uint8_t who = 0;  // pod or job
};
[[nodiscard]] std::string ToString(const Action& action, const Cast& cast);

class SmallWorld {
 public:
  explicit SmallWorld(const Cast& cast, int64_t start_ms = 1'000'000);

  [[nodiscard]] std::vector<Action> Enabled() const;
  // REQUIRES: enabled.
  void Do(const Action& action);
  // The same, where it was done before in another world and no rule was broken: nothing is checked again.
  void Repeat(const Action& action);
  // Equal for states alike but for when they came about.
  [[nodiscard]] uint64_t Canonical() const;
  // From here on everybody does his work and nothing goes wrong: all that fits must start. The world is used up.
  // `calmed`: states from which that is known to end well, which are not followed again; those on the way are added.
  void CalmDown(absl::flat_hash_set<uint64_t>* calmed);
  // Empty, or the rule that was broken.
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  // Whom a pod that found no node waits for: kube-scheduler's own filters, a guarded node, or a call of musterd's.
  enum class Parked : uint8_t { kNo, kByKube, kByGuard, kByMuster };
  struct Body {
    size_t job = 0;
    int member = 0;
    int lives = 0;        // which pod of this name
    bool exists = false;  // in the API server
    PodDescription facts;
    Parked parked = Parked::kNo;
    std::string chosen;      // the node that its scheduler chose
    HoldToken token = 0;     // of a call that is held
    bool permitted = false;  // its caller may bind it
    std::string sent_to;     // a binding is under way
    int64_t sent_until_ms = 0;
  };

  [[nodiscard]] const Cast::Job& JobOf(const Body& body) const { return cast_.jobs[body.job]; }
  [[nodiscard]] bool Pending(const Body& body) const;
  [[nodiscard]] NodeDescription NodeOf(size_t index) const;
  // Empty: the node has no such label.
  [[nodiscard]] std::string RackOf(const std::string& node) const;
  // Of its job's subgroups; 0 where there are none.
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

  // --- those who ask (small_world_callers.cc) ---
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

  // --- what must hold, always (small_world_checks.cc) ---
  void Check();
  void CheckWhole(const std::string& uid);
  void CheckRacks();
  void CheckQueues();
  void CheckPassing();
  void Violate(const std::string& text);
  void AddRecords(StateHasher* hasher) const;

  // --- and when nothing goes wrong any more (small_world_calm.cc) ---
  using Calmed = absl::flat_hash_set<uint64_t>;
  // False: the rest of the way is known.
  [[nodiscard]] bool Calm(const Calmed& known, Calmed* on_the_way);
  // The state, with what Calm knows beside it.
  [[nodiscard]] uint64_t Station(int idle) const;
  void StepOfCalm();
  [[nodiscard]] std::string Seen() const;
  [[nodiscard]] int Bound(size_t job) const;
  // Of its subgroup; of a job without subgroups: of all of it.
  [[nodiscard]] int BoundBeside(const Body& body) const;
  // As many as its minimum asks for run, of each subgroup.
  [[nodiscard]] bool Whole(size_t job) const;
  void CheckStarted();
  // What is left of nodes, and in which rack jobs are that must be in one.
  struct Left {
    std::map<std::string, int64_t> free;
    std::multimap<std::string, int32_t> ports;
    std::map<size_t, std::string> racks;
  };
  [[nodiscard]] bool Fits(const std::vector<const Body*>& bodies, size_t from, Left* left) const;
  // What is missing of the job, and of those that start with it, to be whole; nothing: some of it is not wanted any
  // more.
  [[nodiscard]] std::optional<std::vector<const Body*>> Missing(size_t job) const;
  [[nodiscard]] Left LeftBeside(const std::vector<const Body*>& running) const;
  [[nodiscard]] std::vector<const Body*> Running() const;
  void TakeTurns();

  // --- queues, as the rules have them (small_world_queues.cc) ---
  [[nodiscard]] const QueueRules& Queues() const { return other_queues_ ? *cast_.others : cast_.queues; }
  // The job's queue, and those above it.
  [[nodiscard]] std::vector<const QueueSpec*> QueuesOf(size_t job) const;
  // Its queues have room for the missing ones beside those that run.
  [[nodiscard]] bool Allowed(const std::vector<const Body*>& missing, const std::vector<const Body*>& running) const;
  // It could start if nobody else ran.
  [[nodiscard]] bool CouldRun(size_t job) const;
  // It waits, all of it.
  [[nodiscard]] bool Waits(size_t job) const;
  // Both wait: `a` comes first.
  [[nodiscard]] bool Before(size_t a, size_t b) const;
  // it may be held up by somebody who comes first, or for whom room is kept.
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
  bool queues_changed_ = false;           // some time
  std::vector<std::string> submissions_;  // by job; empty: not submitted
  std::vector<int64_t> plans_;            // by job: what its caller was told
  std::vector<int> submitted_;            // by job: how often
  std::vector<bool> ended_;               // by job: its owner wants it no more
  std::vector<bool> disturbed_;           // by job: a member was deleted, failed, or may not be bound
  std::set<std::string> whole_;           // gangs that had their minimum bound once and still run
  // Q-6, of a job that waits: since when it was passed over (0: not), and who was planned when that was too long.
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
