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
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
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

namespace muster {

// The components of a machine that its tests read.
struct MachineRooms {
  const Cluster& cluster;
  const Topology& topology;
  const Ledger& ledger;
  const Gangs& gangs;
  const QueueTree& queue_tree;
  const Eligibility& eligibility;
  const Sources& sources;
  const RefusedFacts& refused_facts;
  const Backlog& backlog;
  const RestoredRecords& restored;
  const Deadlines& gang_deadlines;
  const Deadlines& pod_deadlines;
  const Plans& plans;
  const Queues& queues;
  const Activations& activations;
  const Nominations& nominations;
  const PodLifecycle& pod_lifecycle;
  const FutureReservations& future_reservations;
  const Backfill& backfill;
  const WaitClock& clock;
  const Submissions& submissions;
  const WaitReasons& reasons;
  const Repair& repair;
  const Bindings& bindings;
  const Waker& waker;
  const Planning& planning;
  const CapacityGuard& capacity_guard;
  const SlotFilter& slot_filter;
  const Reconciler& reconciler;
  int64_t now_ms;  // the time of the last command
};

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

  // Valid as long as the machine; what it returns is valid until the next Apply.
  [[nodiscard]] const Reader& reader() const { return reader_; }
  // For tests only.
  [[nodiscard]] MachineRooms rooms() const;
  // Keys of gangs and names of nodes that changed since the last call.
  void TakeChanged(std::vector<std::string>* gangs, std::vector<std::string>* nodes);
  // The largest effect number that an earlier process may have used.
  [[nodiscard]] int64_t effects_reserved() const { return restored_.effects_reserved(); }

  // Rebuilds the state that is not recorded, after RestoreState has read the recorded members.
  void AfterRestore();
  // The recorded members (state/base/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Machine::cluster_, &Machine::ledger_, &Machine::gangs_, &Machine::queue_tree_, &Machine::queues_,
                      &Machine::sources_, &Machine::refused_facts_, &Machine::backlog_, &Machine::restored_,
                      &Machine::plans_, &Machine::gang_deadlines_, &Machine::pod_deadlines_, &Machine::activations_,
                      &Machine::pod_lifecycle_, &Machine::nominations_, &Machine::future_reservations_,
                      &Machine::backfill_, &Machine::clock_, &Machine::submissions_, &Machine::repair_,
                      &Machine::bindings_, &Machine::waker_, &Machine::plan_maker_, &Machine::slot_filter_,
                      &Machine::capacity_guard_, &Machine::explanations_, &Machine::now_ms_);
  }

 private:
  // Facts.
  void On(const UpsertNode& command, ApplyContext* ctx) { ctx->Refuse(ingest_.PutNode(command.node, ctx)); }
  void On(const RemoveNode& command, ApplyContext* ctx) { ingest_.RemoveNode(command.name, ctx); }
  void On(const UpsertPod& command, ApplyContext* ctx) {
    ctx->Refuse(ingest_.PutPod(command.pod, /*submitted=*/false, ctx));
  }
  void On(const RemovePod& command, ApplyContext* ctx) { pod_facts_.Remove(command.uid, ctx); }
  void On(const UpsertNamespace& command, ApplyContext* ctx) {
    pod_facts_.PutNamespace(command.name, &command.labels, ctx);
  }
  void On(const RemoveNamespace& command, ApplyContext* ctx) { pod_facts_.PutNamespace(command.name, nullptr, ctx); }
  void On(const UpsertGangObject& command, ApplyContext* ctx) { ctx->Refuse(ingest_.PutObject(command, ctx)); }
  void On(const RemoveGangObject& command, ApplyContext* ctx) { ctx->Refuse(ingest_.RemoveObject(command, ctx)); }
  void On(const UnreadableFact& command, ApplyContext* ctx) { ctx->Refuse(ingest_.OnUnreadableFact(command)); }
  void On(const FactsRead& command, ApplyContext* ctx) { CompleteSource(command.source, ctx); }
  void On(const ExpectFacts& command, ApplyContext* ctx);
  void On(const RestoreFacts& command, ApplyContext* ctx);
  void On(const ReplaceFacts& command, ApplyContext* ctx);
  void On(const UpdateFacts& command, ApplyContext* ctx);
  // `source` has announced everything that it knows; see Sources. After the last source, unfinished starts are restored
  // and planning begins.
  void CompleteSource(const std::string& source, ApplyContext* ctx);
  void TouchWhileReading();
  // Calls of schedulers.
  [[nodiscard]] absl::Status CheckFactsRead() const;
  void On(const Filter& command, ApplyContext* ctx);
  void On(const Bind& command, ApplyContext* ctx) { extender_frontend_.OnBind(command, ctx); }
  void On(const Preempt& command, ApplyContext* ctx);
  void On(const PreFilter& command, ApplyContext* ctx) {
    ctx->ReplyNow(verbs_frontend_.OnPreFilter(command, ctx->now_ms()));
  }
  void On(const FindNodes& command, ApplyContext* ctx);
  void On(const Permit& command, ApplyContext* ctx);
  void On(const PostFilter& command, ApplyContext* ctx);
  void On(const Unreserve& command, ApplyContext* ctx);
  void On(const PostBind& command, ApplyContext* ctx);
  void On(const CallerGone& command, ApplyContext* ctx);
  // Whole gangs.
  void On(const SubmitGang& command, ApplyContext* ctx);
  void On(const ConfirmGang& command, ApplyContext* ctx);
  void On(const AbandonGang& command, ApplyContext* ctx);
  void On(const RefreshExplanation& command, ApplyContext* ctx);
  void On(const AskGang& command, ApplyContext* ctx);
  // Outcomes, time, process.
  void On(const BindingOutcome& command, ApplyContext* ctx);
  void On(const PlanRound& command, ApplyContext* ctx) { planning_.Round(command.max_gangs, ctx); }
  void On(const SetQueues& command, ApplyContext* ctx);
  void On(const ApplyQueues& command, ApplyContext* ctx);
  void ReplaceQueueRules(QueueRules rules, ApplyContext* ctx);
  void On(const Tick& command, ApplyContext* ctx);
  void On(const Shutdown& command, ApplyContext* ctx);

  // Ends the submission in `state`: removes its members and releases what it held.
  void DropSubmission(const Gang& gang, SubmissionReply::State state, Reason reason, ApplyContext* ctx);
  // Recomputes the deadlines of gangs and pods whose deadline is marked dirty.
  void RefreshDeadlines();

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
  Nominations nominations_;
  PodLifecycle pod_lifecycle_;
  FutureReservations future_reservations_;
  Backfill backfill_;
  WaitClock clock_;
  Submissions submissions_;
  FactRecorder recorder_;
  WaitReasons reasons_;
  PlanLifecycle plan_lifecycle_;
  BrokenPlans broken_plans_;
  Repair repair_;
  Bindings bindings_;
  Placer placer_;
  Waker waker_;
  FuturePlacer future_placer_;
  PlanMaker plan_maker_;
  Planning planning_;
  CapacityGuard capacity_guard_;
  SlotFilter slot_filter_;
  MemberFilter member_filter_;
  ExtenderFrontend extender_frontend_;
  Contention contention_;
  NodeSearch node_search_;
  PermitFrontend permit_frontend_;
  VerbsFrontend verbs_frontend_;
  SubmissionsFrontend submissions_frontend_;
  GangFacts gang_facts_;
  PodFacts pod_facts_;
  Ingest ingest_;
  QueueStep queue_step_;
  Explanations explanations_;
  Reconciler reconciler_;
  GangReader gang_reader_;
  Reader reader_;
  const bool persist_queues_;
  int64_t now_ms_ = 0;
};

inline MachineRooms Machine::rooms() const {
  return {cluster_,  topology_,      ledger_,         gangs_,       queue_tree_,     eligibility_,
          sources_,  refused_facts_, backlog_,        restored_,    gang_deadlines_, pod_deadlines_,
          plans_,    queues_,        activations_,    nominations_, pod_lifecycle_,  future_reservations_,
          backfill_, clock_,         submissions_,    reasons_,     repair_,         bindings_,
          waker_,    planning_,      capacity_guard_, slot_filter_, reconciler_,     now_ms_};
}

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_MACHINE_H_
