// The decision core: a deterministic state machine.
//
// Every change is a command passed to Apply with its time. Apply returns an immediate reply, the records to make
// durable, the held calls that ended, and the effects to carry out. The caller makes the records durable *before*
// replies and effects leave. The same commands at the same times give the same state hash on any machine: the core has
// no clock, no randomness, no threads and no I/O.
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
#include "state/binding/activations.h"
#include "state/binding/bindings.h"
#include "state/binding/broken_plans.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/repair.h"
#include "state/binding/wait_clock.h"
#include "state/cluster/class_index.h"
#include "state/cluster/cluster.h"
#include "state/cluster/ledger.h"
#include "state/frontends/extender_frontend.h"
#include "state/frontends/submissions_frontend.h"
#include "state/frontends/verbs_frontend.h"
#include "state/gangs/gangs.h"
#include "state/gangs/refused_facts.h"
#include "state/gangs/sources.h"
#include "state/machine/fact_recorder.h"
#include "state/machine/ingest.h"
#include "state/machine/pod_facts.h"
#include "state/machine/reconciler.h"
#include "state/machine/settings.h"
#include "state/persistence/records.h"
#include "state/queueing/backlog.h"
#include "state/queueing/queues.h"
#include "state/reservations/backfill.h"
#include "state/reservations/deadlines.h"
#include "state/reservations/domains.h"
#include "state/reservations/future_reservations.h"
#include "state/reservations/nominations.h"
#include "state/reservations/plans.h"
#include "state/reservations/submissions.h"
#include "state/scheduling/future_placer.h"
#include "state/scheduling/placer.h"
#include "state/scheduling/plan_maker.h"
#include "state/scheduling/planning.h"
#include "state/scheduling/waker.h"
#include "state/views/reader.h"
#include "state/views/wait_reasons.h"

namespace muster {

// The components of a machine, in the order of docs/project/architecture.md.
struct MachineRooms {
  explicit MachineRooms(const MachineSettings& settings);
  MachineRooms(const MachineRooms&) = delete;
  MachineRooms& operator=(const MachineRooms&) = delete;

  // Rebuilds the state that is not recorded, after RestoreState has read the recorded members.
  void AfterRestore();
  static constexpr auto Recorded() {
    return std::tuple(
        &MachineRooms::cluster, &MachineRooms::ledger, &MachineRooms::gangs, &MachineRooms::queue_tree,
        &MachineRooms::queues, &MachineRooms::sources, &MachineRooms::refused_facts, &MachineRooms::backlog,
        &MachineRooms::restored, &MachineRooms::plans, &MachineRooms::gang_deadlines, &MachineRooms::pod_deadlines,
        &MachineRooms::activations, &MachineRooms::pod_lifecycle, &MachineRooms::nominations,
        &MachineRooms::future_reservations, &MachineRooms::backfill, &MachineRooms::clock, &MachineRooms::submissions,
        &MachineRooms::repair, &MachineRooms::bindings, &MachineRooms::waker, &MachineRooms::plan_maker,
        &MachineRooms::slot_filter, &MachineRooms::capacity_guard, &MachineRooms::explanations, &MachineRooms::now_ms);
  }

  Cluster cluster;
  ClassIndex index;
  Topology topology;
  Ledger ledger;
  Gangs gangs;
  QueueTree queue_tree;
  Eligibility eligibility;
  Sources sources;
  RefusedFacts refused_facts;
  Backlog backlog;
  RestoredRecords restored;
  Deadlines gang_deadlines;
  Deadlines pod_deadlines;
  Plans plans;
  Domains domains;
  Queues queues;
  Activations activations;
  Nominations nominations;
  PodLifecycle pod_lifecycle;
  FutureReservations future_reservations;
  Backfill backfill;
  WaitClock clock;
  Submissions submissions;
  FactRecorder recorder;
  WaitReasons reasons;
  PlanLifecycle plan_lifecycle;
  BrokenPlans broken_plans;
  Repair repair;
  Bindings bindings;
  Placer placer;
  Waker waker;
  FuturePlacer future_placer;
  PlanMaker plan_maker;
  Planning planning;
  CapacityGuard capacity_guard;
  SlotFilter slot_filter;
  MemberFilter member_filter;
  ExtenderFrontend extender_frontend;
  VerbsFrontend verbs_frontend;
  const NodeSearchRooms node_search;
  const PermitRooms permit;
  Reader reader;
  SubmissionsFrontend submissions_frontend;
  GangFacts gang_facts;
  PodFacts pod_facts;
  Ingest ingest;
  QueueStep queue_step;
  Explanations explanations;
  Reconciler reconciler;
  int64_t now_ms = 0;  // the time of the last command
};

class Machine {
 public:
  explicit Machine(const MachineSettings& settings) : r_(settings), persist_queues_(settings.persist_queues) {}

  // Restores records written before a restart. InvalidArgument names a record that cannot be read. FailedPrecondition:
  // the process that wrote the records got its facts from another kind of source. REQUIRES: no command was applied.
  [[nodiscard]] absl::Status Load(const std::vector<Record>& records);

  // Applies one command. A `now_ms` smaller than the last one is replaced by the last one.
  void Apply(const Command& command, int64_t now_ms, Outcome* outcome);

  // Whether a PlanRound would have a gang to try.
  [[nodiscard]] bool PlanningDue() const { return r_.planning.IsRoundDue(); }
  // When the next Tick is due; kNever: not at all.
  [[nodiscard]] int64_t NextDeadline() const;

  // The reader is valid as long as the machine; its results are valid until the next Apply.
  [[nodiscard]] const Reader& reader() const { return r_.reader; }
  // For tests only.
  [[nodiscard]] const MachineRooms& rooms() const { return r_; }
  // Keys of gangs and names of nodes that changed since the last call.
  void TakeChanged(std::vector<std::string>* gangs, std::vector<std::string>* nodes);
  // The largest effect number that an earlier process may have used.
  [[nodiscard]] int64_t effects_reserved() const { return r_.restored.effects_reserved(); }

  static constexpr auto Recorded() { return std::tuple(&Machine::r_); }

 private:
  // Facts.
  void On(const UpsertNode& command, ApplyContext* ctx) { ctx->Refuse(r_.ingest.PutNode(command.node, ctx)); }
  void On(const RemoveNode& command, ApplyContext* ctx) { r_.ingest.RemoveNode(command.name, ctx); }
  void On(const UpsertPod& command, ApplyContext* ctx) {
    ctx->Refuse(r_.ingest.PutPod(command.pod, /*submitted=*/false, ctx));
  }
  void On(const RemovePod& command, ApplyContext* ctx) { r_.pod_facts.Remove(command.uid, ctx); }
  void On(const UpsertNamespace& command, ApplyContext* ctx) { PutNamespace(command.name, &command.labels, ctx); }
  void On(const RemoveNamespace& command, ApplyContext* ctx) { PutNamespace(command.name, nullptr, ctx); }
  void On(const UpsertGangObject& command, ApplyContext* ctx) { ctx->Refuse(r_.ingest.PutObject(command, ctx)); }
  void On(const RemoveGangObject& command, ApplyContext* ctx) { ctx->Refuse(r_.ingest.RemoveObject(command, ctx)); }
  void On(const UnreadableFact& command, ApplyContext* ctx) { ctx->Refuse(r_.ingest.OnUnreadableFact(command)); }
  void On(const FactsRead& command, ApplyContext* ctx) { CompleteSource(command.source, ctx); }
  void On(const ExpectFacts& command, ApplyContext* ctx);
  void On(const RestoreFacts& command, ApplyContext* ctx);
  void On(const ReplaceFacts& command, ApplyContext* ctx);
  void On(const UpdateFacts& command, ApplyContext* ctx);
  // `labels` nullptr: the namespace was deleted.
  void PutNamespace(const std::string& name, const Labels* labels, ApplyContext* ctx);
  // `source` has announced everything that it knows (see Sources). After the last source, restores unfinished starts
  // and lets planning begin.
  void CompleteSource(const std::string& source, ApplyContext* ctx);
  void TouchWhileReading();
  // Calls of schedulers.
  [[nodiscard]] absl::Status FactsUnread() const;
  void On(const Filter& command, ApplyContext* ctx);
  void On(const Bind& command, ApplyContext* ctx) { r_.extender_frontend.OnBind(command, ctx); }
  void On(const Preempt& command, ApplyContext* ctx);
  void On(const PreFilter& command, ApplyContext* ctx) {
    ctx->ReplyNow(r_.verbs_frontend.OnPreFilter(command, ctx->now_ms()));
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
  void On(const PlanRound& command, ApplyContext* ctx) { r_.planning.Round(command.max_gangs, ctx); }
  void On(const SetQueues& command, ApplyContext* ctx);
  void On(const ApplyQueues& command, ApplyContext* ctx);
  void ReplaceQueueRules(QueueRules rules, ApplyContext* ctx);
  void On(const Tick& command, ApplyContext* ctx);
  void On(const Shutdown& command, ApplyContext* ctx);

  // Ends the submission in `state`: removes its members and releases its slots.
  void DropSubmission(const Gang& gang, SubmissionReply::State state, Reason reason, ApplyContext* ctx);
  // Recomputes the deadlines of gangs and pods whose deadline is marked dirty.
  void RefreshDeadlines();

  MachineRooms r_;
  const bool persist_queues_;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_MACHINE_H_
