// The decision core: a deterministic state machine.
//
// Every change is a command passed to Apply with its time. Apply returns an immediate reply, the records to make
// durable, the held calls that ended, and the effects to carry out. The caller makes the records durable *before*
// replies and effects leave (DESIGN.md, "Order"). The same commands at the same times give the same state hash on any
// machine: the core has no clock, no randomness, no threads and no I/O.
//
// The machine only passes a command to the components, which own the state (docs/project/architecture.md), and then
// reconciles the gangs that changed. Not thread-safe: one writer.
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

  // Restores records written before a restart. InvalidArgument names a record that cannot be read. FailedPrecondition:
  // the process that wrote the records got its facts from another kind of source. REQUIRES: no command was applied.
  [[nodiscard]] absl::Status Load(const std::vector<Record>& records);

  // Applies one command. A `now_ms` smaller than the last one is replaced by the last one.
  void Apply(const Command& command, int64_t now_ms, Outcome* outcome);

  // Whether a PlanRound would have a gang to try.
  [[nodiscard]] bool PlanningDue() const { return planning_.IsRoundDue(); }
  // When the next Tick is due; kNever: not at all.
  [[nodiscard]] int64_t NextDeadline() const;

  // Equal for equal states, independent of the commands that led to them.
  [[nodiscard]] uint64_t Hash() const;
  // Hash in canonical form: times are relative to the last command, plans and tokens are numbered in order.
  [[nodiscard]] uint64_t CanonicalHash() const;
  // Hash of the durable state only: what the records describe.
  [[nodiscard]] uint64_t DurableHash() const;
  // Recomputes all derived state and compares it. Returns Internal with the first difference, or OK.
  [[nodiscard]] absl::Status CheckInvariants() const;

  // --- reading; valid until the next Apply ---
  [[nodiscard]] const Pod* FindPod(absl::string_view uid) const { return gangs_.FindPod(uid); }
  [[nodiscard]] const Gang* FindGang(absl::string_view key) const { return gangs_.FindGang(key); }
  // The views below are described in state/views/reader.h.
  [[nodiscard]] GangView ViewGang(const Gang& gang, bool with_members) const {
    return reader_.ViewGang(gang, with_members, now_ms_);
  }
  [[nodiscard]] int64_t WaitsSince(const Gang& gang) const { return reader_.WaitsSince(gang); }
  bool ViewMembers(const Gang& gang, size_t limit, MembersCursor* read, std::vector<MemberView>* out) const {
    return reader_.ViewMembers(gang, limit, read, out);
  }
  bool ViewHolders(const Gang& gang, int32_t limit, HoldersCursor* read, HoldersView* out) const {
    return reader_.ViewHolders(gang, limit, read, out);
  }
  bool ViewQueuePosition(const Gang* gang, QueueId queue, int32_t limit, QueuePositionCursor* read,
                         QueuePositionView* out) const {
    return reader_.ViewQueuePosition(gang, queue, limit, read, out);
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
  [[nodiscard]] const FutureReservations& future_reservations() const { return future_reservations_; }
  [[nodiscard]] const Backfill& backfill() const { return backfill_; }
  [[nodiscard]] const Queues& queues() const { return queues_; }
  [[nodiscard]] const PlanningStats& planning_stats() const { return planning_.stats(); }
  // The largest effect number that an earlier process may have used.
  [[nodiscard]] int64_t effects_reserved() const { return restored_.effects_reserved(); }
  [[nodiscard]] const Sources& sources() const { return sources_; }
  [[nodiscard]] const RefusedFacts& refused_facts() const { return refused_facts_; }
  // Keys of gangs and names of nodes that changed since the last call.
  void TakeChanged(std::vector<std::string>* gangs, std::vector<std::string>* nodes);
  [[nodiscard]] int32_t held_binds() const { return barrier_.held_binds(); }
  [[nodiscard]] int32_t promised_holds() const { return plans_.promised_holds(); }
  [[nodiscard]] size_t pod_count() const { return gangs_.pod_count(); }

  // Rebuilds the state that is not recorded, after RestoreState has read the recorded members.
  void AfterRestore();
  // The recorded members (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Machine::cluster_, &Machine::ledger_, &Machine::gangs_, &Machine::queue_tree_, &Machine::queues_,
                      &Machine::sources_, &Machine::refused_facts_, &Machine::backlog_, &Machine::restored_,
                      &Machine::plans_, &Machine::gang_deadlines_, &Machine::pod_deadlines_, &Machine::activations_,
                      &Machine::barrier_, &Machine::nominations_, &Machine::future_reservations_, &Machine::backfill_,
                      &Machine::clock_, &Machine::submissions_, &Machine::repair_, &Machine::bindings_,
                      &Machine::planning_, &Machine::extender_frontend_, &Machine::reconciler_, &Machine::now_ms_);
  }

 private:
  // Facts.
  void On(const UpsertNode& command, ApplyContext* ctx);
  void On(const RemoveNode& command, ApplyContext* ctx);
  void On(const UpsertPod& command, ApplyContext* ctx);
  void On(const RemovePod& command, ApplyContext* ctx);
  void On(const UpsertNamespace& command, ApplyContext* ctx);
  void On(const RemoveNamespace& command, ApplyContext* ctx);
  void On(const UpsertGangObject& command, ApplyContext* ctx);
  void On(const RemoveGangObject& command, ApplyContext* ctx);
  void On(const UnreadableFact& command, ApplyContext* ctx);
  void On(const FactsRead& command, ApplyContext* ctx);
  void On(const ExpectFacts& command, ApplyContext* ctx);
  void On(const RestoreFacts& command, ApplyContext* ctx);
  void On(const ReplaceFacts& command, ApplyContext* ctx);
  void On(const UpdateFacts& command, ApplyContext* ctx);
  // Calls of schedulers.
  [[nodiscard]] absl::Status CheckFactsRead() const;
  void On(const Filter& command, ApplyContext* ctx);
  void On(const Bind& command, ApplyContext* ctx);
  void On(const Preempt& command, ApplyContext* ctx);
  void On(const PreFilter& command, ApplyContext* ctx);
  void On(const FindNodes& command, ApplyContext* ctx);
  void On(const Permit& command, ApplyContext* ctx);
  void On(const PostFilter& command, ApplyContext* ctx);
  void On(const Unreserve& command, ApplyContext* ctx);
  void On(const PostBind& command, ApplyContext* ctx);
  void On(const EndHold& command, ApplyContext* ctx);
  // Whole gangs.
  void On(const SubmitGang& command, ApplyContext* ctx);
  void On(const ConfirmGang& command, ApplyContext* ctx);
  void On(const AbandonGang& command, ApplyContext* ctx);
  void On(const RefreshExplanation& command, ApplyContext* ctx);
  void On(const AskGang& command, ApplyContext* ctx);
  // Outcomes, time, process.
  void On(const BindingOutcome& command, ApplyContext* ctx);
  void On(const PlanRound& command, ApplyContext* ctx);
  void On(const SetQueues& command, ApplyContext* ctx);
  void On(const ApplyQueues& command, ApplyContext* ctx);
  void ReplaceQueueRules(QueueRules rules, ApplyContext* ctx);
  void On(const Tick& command, ApplyContext* ctx);
  void On(const Shutdown& command, ApplyContext* ctx);

  [[nodiscard]] uint64_t Hash(StateHasher hasher) const;
  // Ends the submission in `state`: removes its members and releases what it held.
  void DropSubmission(const Gang& gang, SubmissionReply::State state, Reason reason, ApplyContext* ctx);

  // The components; each may use only those before it.
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
  RestoredRecords restored_;
  Deadlines gang_deadlines_;
  Deadlines pod_deadlines_;
  Plans plans_;
  Domains domains_;
  Queues queues_;
  Activations activations_;
  Barrier barrier_;
  Nominations nominations_;
  FutureReservations future_reservations_;
  Backfill backfill_;
  WaitClock clock_;
  Submissions submissions_;
  FactRecorder facts_;
  WaitReasons reasons_;
  PlanLifecycle lifecycle_;
  Repair repair_;
  Bindings bindings_;
  Planning planning_;
  ExtenderFrontend extender_frontend_;
  VerbsFrontend verbs_frontend_;
  SubmissionsFrontend submissions_frontend_;
  Ingest ingest_;
  Reconciler reconciler_;
  Reader reader_;
  const bool persist_queues_;
  int64_t now_ms_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_MACHINE_H_
