// The decision core: a deterministic state machine.
//
// Every change is a command handed to Apply with its time; Apply returns an immediate reply, the records to make
// durable, the held calls that ended, and the effects to carry out. Whoever drives the machine makes the records
// durable *before* answers and effects leave (DESIGN.md, "Order"). The same commands at the same times give the same
// state hash on any machine: there is no clock, no randomness, no thread and no I/O in here.
//
// The machine itself only leads a command through the rooms, which own the state (docs/project/architecture.md), and
// settles what they touched. Not thread-safe: one writer.
#ifndef MUSTER_STATE_MACHINE_MACHINE_H_
#define MUSTER_STATE_MACHINE_MACHINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/api/commands.h"
#include "state/api/effects.h"
#include "state/cluster/class_index.h"
#include "state/cluster/cluster.h"
#include "state/cluster/ledger.h"
#include "state/frontends/extender_frontend.h"
#include "state/frontends/submissions_frontend.h"
#include "state/frontends/verbs_frontend.h"
#include "state/machine/ingest.h"
#include "state/machine/reconciler.h"
#include "state/machine/settings.h"
#include "state/persistence/records.h"
#include "state/queueing/backlog.h"
#include "state/scheduling/planning.h"
#include "state/views/reader.h"
#include "state/views/view.h"

namespace muster {

class Machine {
 public:
  explicit Machine(const MachineSettings& settings);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Takes over records written before a restart. REQUIRES: nothing was applied yet. InvalidArgument names a record that
  // cannot be read; FailedPrecondition: they are of a process that was told of the world in another way.
  [[nodiscard]] absl::Status Load(const std::vector<Record>& records);

  // Applies one command. `now_ms` must not go back (a smaller value is taken as the last one).
  void Apply(const Command& command, int64_t now_ms, Outcome* outcome);

  // Whether PlanRound has something to look at.
  [[nodiscard]] bool PlanningDue() const { return planning_.Due(); }
  // When Tick is due next; kNever: not at all.
  [[nodiscard]] int64_t NextDeadline() const;

  // Equal for equal states, whatever path led there.
  [[nodiscard]] uint64_t Hash() const;
  // As Hash, in canonical form: times count from the last command's, and plans and tokens by their order.
  [[nodiscard]] uint64_t CanonicalHash() const;
  // As Hash, of what the records describe only.
  [[nodiscard]] uint64_t DurableHash() const;
  // Recomputes everything derived and compares; the first difference, or OK.
  [[nodiscard]] absl::Status CheckInvariants() const;

  // --- reading; valid until the next Apply ---
  [[nodiscard]] const Pod* FindPod(absl::string_view uid) const { return gangs_.FindPod(uid); }
  [[nodiscard]] const Gang* FindGang(absl::string_view key) const { return gangs_.FindGang(key); }
  // As Reader has it (state/views/reader.h).
  [[nodiscard]] GangView ViewGang(const Gang& gang, bool with_members) const {
    return reader_.ViewGang(gang, with_members, now_ms_);
  }
  [[nodiscard]] int64_t WaitsSince(const Gang& gang) const { return reader_.WaitsSince(gang); }
  bool ViewMembers(const Gang& gang, size_t limit, MembersRead* read, std::vector<MemberView>* out) const {
    return reader_.ViewMembers(gang, limit, read, out);
  }
  bool ViewHolders(const Gang& gang, int32_t limit, HoldersRead* read, HoldersView* out) const {
    return reader_.ViewHolders(gang, limit, read, out);
  }
  bool ViewLine(const Gang* gang, QueueId queue, int32_t limit, LineRead* read, LineView* out) const {
    return reader_.ViewLine(gang, queue, limit, read, out);
  }
  [[nodiscard]] PodView ViewPod(const Pod& pod) const { return reader_.ViewPod(pod, now_ms_); }
  [[nodiscard]] const Pod* FindPodNamed(absl::string_view name_space, absl::string_view name, int32_t limit,
                                        PodId* from) const {
    return reader_.FindPodNamed(name_space, name, limit, from);
  }
  [[nodiscard]] NodeView ViewNode(NodeId id) const { return reader_.ViewNode(id); }
  [[nodiscard]] std::optional<NodeView> ViewNode(const std::string& name) const { return reader_.ViewNode(name); }
  [[nodiscard]] PodId pod_limit() const { return gangs_.pod_limit(); }
  [[nodiscard]] const Pod* PodAt(PodId id) const { return gangs_.PodAt(id); }
  void ForEachGang(const std::function<void(const Gang&)>& visit) const { gangs_.ForEachGang(visit); }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const Plans& plans() const { return plans_; }
  [[nodiscard]] const Bindings& bindings() const { return bindings_; }
  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }
  [[nodiscard]] const Heads& heads() const { return heads_; }
  [[nodiscard]] const Queues& queues() const { return queues_; }
  [[nodiscard]] const PlanningStats& planning_stats() const { return planning_.stats(); }
  // Numbers of effects up to here may have been given by processes before this one.
  [[nodiscard]] int64_t effects_reserved() const { return restored_.effects_reserved(); }
  [[nodiscard]] const Sources& sources() const { return sources_; }
  [[nodiscard]] const RefusedFacts& refused_facts() const { return refused_facts_; }
  // Keys of gangs and names of nodes that changed since the last call.
  void TakeChanged(std::vector<std::string>* gangs, std::vector<std::string>* nodes);
  [[nodiscard]] int32_t held_binds() const { return barrier_.held_binds(); }
  [[nodiscard]] int32_t promised_holds() const { return plans_.promised_holds(); }
  [[nodiscard]] size_t pod_count() const { return gangs_.pod_count(); }

  // After everything that is recorded of it was read: finds again what is not.
  void AfterRestore();
  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Machine::cluster_, &Machine::ledger_, &Machine::gangs_, &Machine::queue_tree_, &Machine::queues_,
                      &Machine::sources_, &Machine::refused_facts_, &Machine::backlog_, &Machine::restored_,
                      &Machine::plans_, &Machine::gang_deadlines_, &Machine::pod_deadlines_, &Machine::calls_,
                      &Machine::barrier_, &Machine::nominations_, &Machine::pipeline_, &Machine::heads_,
                      &Machine::clock_, &Machine::submissions_, &Machine::repair_, &Machine::bindings_,
                      &Machine::planning_, &Machine::kube_scheduler_, &Machine::settling_, &Machine::now_ms_);
  }

 private:
  // What is announced.
  void On(const UpsertNode& command, Step* step);
  void On(const RemoveNode& command, Step* step);
  void On(const UpsertPod& command, Step* step);
  void On(const RemovePod& command, Step* step);
  void On(const UpsertNamespace& command, Step* step);
  void On(const RemoveNamespace& command, Step* step);
  void On(const UpsertGangObject& command, Step* step);
  void On(const RemoveGangObject& command, Step* step);
  void On(const UnreadableFact& command, Step* step);
  void On(const FactsRead& command, Step* step);
  void On(const ExpectFacts& command, Step* step);
  void On(const TakeUpFacts& command, Step* step);
  void On(const ReplaceFacts& command, Step* step);
  void On(const UpdateFacts& command, Step* step);
  // Questions of a scheduler.
  [[nodiscard]] absl::Status StillReading() const;
  void On(const Filter& command, Step* step);
  void On(const Bind& command, Step* step);
  void On(const Preempt& command, Step* step);
  void On(const PreFilter& command, Step* step);
  void On(const FindNodes& command, Step* step);
  void On(const Permit& command, Step* step);
  void On(const PostFilter& command, Step* step);
  void On(const Unreserve& command, Step* step);
  void On(const PostBind& command, Step* step);
  void On(const EndHold& command, Step* step);
  // Whole gangs.
  void On(const SubmitGang& command, Step* step);
  void On(const ConfirmGang& command, Step* step);
  void On(const AbandonGang& command, Step* step);
  void On(const LookAgain& command, Step* step);
  void On(const AskGang& command, Step* step);
  // Outcomes, time, process.
  void On(const BindingOutcome& command, Step* step);
  void On(const PlanRound& command, Step* step);
  void On(const SetQueues& command, Step* step);
  void On(const ApplyQueues& command, Step* step);
  void TakeQueues(QueueRules rules, Step* step);
  void On(const Tick& command, Step* step);
  void On(const Shutdown& command, Step* step);

  [[nodiscard]] uint64_t Hash(StateHasher hasher) const;
  // The submission ends that way: its members go, and what it held.
  void DropSubmission(const Gang& gang, SubmissionReply::State state, Reason reason, Step* step);

  // The rooms, in the order in which they may know each other.
  Cluster cluster_;
  ClassIndex index_;
  Topology topology_;
  Ledger ledger_;
  Gangs gangs_;
  QueueTree queue_tree_;
  Eligibility eligibility_;
  Sources sources_;
  RefusedFacts refused_facts_;
  Backlog backlog_;
  Restored restored_;
  Deadlines gang_deadlines_;
  Deadlines pod_deadlines_;
  Plans plans_;
  Domains domains_;
  Queues queues_;
  Calls calls_;
  Barrier barrier_;
  Nominations nominations_;
  Pipeline pipeline_;
  Heads heads_;
  WaitClock clock_;
  Submissions submissions_;
  FactKeeper facts_;
  WaitReasons reasons_;
  Claims claims_;
  Repair repair_;
  Bindings bindings_;
  Planning planning_;
  KubeScheduler kube_scheduler_;
  Verbs verbs_;
  SubmissionDriver submission_driver_;
  Announcements announcements_;
  Settling settling_;
  Reader reader_;
  const bool keeps_queues_;
  int64_t now_ms_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_MACHINE_H_
