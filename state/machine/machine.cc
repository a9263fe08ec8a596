#include "state/machine/machine.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "state/base/problem.h"

namespace muster {
namespace {

absl::Status UnknownPod(const std::string& uid) { return absl::NotFoundError(absl::StrCat("no pod with uid ", uid)); }

bool PartiallyBoundIsNext(const Backlog& backlog) {
  const std::optional<int32_t> next = backlog.Next();
  return next.has_value() && backlog.queued(*next)->partially_bound;
}

// FailedPrecondition: the records are from a process with another setting of persist_facts.
absl::Status CheckRecordsMatchSettings(const RestoredRecords& restored, bool persist_facts) {
  if (restored.has_facts() && !persist_facts) {
    return absl::FailedPreconditionError(
        "it was written without Kubernetes: nodes and pods in it were announced over gRPC, and their promises with "
        "them; set kubernetes.enabled: false, or set another store.path");
  }
  const bool of_kubernetes = restored.has_created() || (!restored.has_facts() && restored.has_commitments());
  if (of_kubernetes && persist_facts) {
    return absl::FailedPreconditionError(
        "it was written with Kubernetes: its promises are about pods that only the API server knows; set "
        "kubernetes.enabled: true, or set another store.path");
  }
  return absl::OkStatus();
}

absl::Status CheckQueues(const QueueRules& rules) {
  std::vector<Problem> problems;
  for (const QueueProblem& problem : ValidateQueuesByName(rules)) {
    problems.push_back({Subject::kQueue, problem.queue, ToString(problem)});
  }
  return problems.empty() ? absl::OkStatus() : InvalidArgument(problems);
}

// The rules after `command`. A known queue keeps its position, which is its age; a new queue comes last.
absl::StatusOr<QueueRules> Applied(QueueRules rules, const ApplyQueues& command) {
  const auto find = [&](const std::string& name) {
    return absl::c_find_if(rules.queues, [&](const QueueSpec& queue) { return queue.name == name; });
  };
  absl::flat_hash_set<std::string> declared;
  for (const QueueSpec& queue : command.put) {
    if (!declared.insert(queue.name).second) {
      return InvalidArgument({{Subject::kQueue, queue.name, ToString(QueueProblem{queue.name, "is declared twice"})}});
    }
    if (const auto known = find(queue.name); known != rules.queues.end()) {
      *known = queue;
    } else {
      rules.queues.push_back(queue);
    }
  }
  for (const std::string& name : command.remove) {
    const auto known = find(name);
    if (known == rules.queues.end()) return absl::NotFoundError(absl::StrCat("there is no queue ", name));
    rules.queues.erase(known);
  }
  if (command.only) {
    std::erase_if(rules.queues, [&](const QueueSpec& queue) { return !declared.contains(queue.name); });
  }
  if (absl::Status right = CheckQueues(rules); !right.ok()) return right;
  return rules;
}

}  // namespace

Machine::Machine(const MachineSettings& s)
    : index_(&cluster_),
      topology_(&cluster_, s.topology_levels),
      ledger_(&cluster_),
      gangs_(GangsSettings{s.gang, s.scheduler_names, s.one_priority, s.persist_facts}),
      eligibility_(&gangs_, &queue_tree_, s.cross_namespace_groups),
      sources_(s.fact_sources, s.stale_after_ms),
      plans_(&gangs_, &ledger_),
      domains_(&topology_, &ledger_, &plans_),
      queues_(&queue_tree_, &cluster_, &ledger_, &gangs_, &eligibility_),
      activations_(&gangs_, &cluster_, s.nominate),
      nominations_(&gangs_, &cluster_, &queues_, &ledger_),
      pod_lifecycle_({&cluster_, &ledger_, &gangs_, &backlog_, &plans_, &activations_, &nominations_,
                      &future_reservations_, &pod_deadlines_},
                     s.bind_within_ms),
      future_reservations_(&gangs_, &eligibility_, &cluster_, &ledger_, &queues_),
      backfill_(&gangs_, &cluster_, &backlog_, &queues_, &future_reservations_),
      clock_(&gangs_),
      submissions_(&gangs_, &gang_deadlines_, s.persist_facts),
      recorder_(&gangs_, &submissions_, s.persist_facts, s.persist_created),
      reasons_(&eligibility_, &backlog_, &plans_, &activations_, &sources_, &queues_, &backfill_),
      plan_lifecycle_({&cluster_, &gangs_, &eligibility_, &backlog_, &plans_, &activations_, &pod_lifecycle_, &clock_,
                       &submissions_, &queues_},
                      s.plan_idle_ms),
      broken_plans_({&cluster_, &ledger_, &gangs_, &eligibility_, &backlog_, &plans_, &domains_, &nominations_,
                     &future_reservations_, &plan_lifecycle_}),
      repair_(&gangs_, &eligibility_, &plans_, &plan_lifecycle_, s.repair_ms),
      bindings_({&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &pod_lifecycle_, &plan_lifecycle_,
                 &broken_plans_, &repair_, &backfill_},
                {s.hold_limit_ms, s.answer_limit_ms}),
      placer_(&cluster_, &ledger_, &index_, &topology_, &gangs_, &eligibility_, &queues_),
      waker_(&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &backlog_, &queues_, &nominations_,
             &future_reservations_, &backfill_),
      future_placer_(&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &queues_, &nominations_,
                     &future_reservations_, &backfill_, &placer_, s.planner_tries),
      plan_maker_(&cluster_, &gangs_, &eligibility_, &plans_, &queues_, &nominations_, &plan_lifecycle_, &placer_,
                  {s.max_holds, s.planner_tries}),
      planning_(&gangs_, &eligibility_, &sources_, &backlog_, &queues_, &future_reservations_, &backfill_, &waker_,
                &future_placer_, &plan_maker_),
      capacity_guard_({&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &domains_}),
      slot_filter_({&cluster_, &index_, &gangs_, &plans_, &domains_, &pod_lifecycle_, &plan_lifecycle_},
                   {s.learned_refusal_ms, s.percentage_of_nodes}),
      member_filter_({&gangs_, &eligibility_, &reasons_, &plans_, &activations_, &pod_lifecycle_, &plan_lifecycle_,
                      &queues_, &capacity_guard_, &slot_filter_}),
      extender_frontend_({&cluster_, &gangs_, &sources_, &plans_, &activations_, &pod_lifecycle_, &bindings_,
                          &capacity_guard_, &member_filter_}),
      contention_({&cluster_, &ledger_, &gangs_, &eligibility_, &queues_, &nominations_, &pod_lifecycle_,
                   &plan_lifecycle_, &bindings_}),
      node_search_({&cluster_, &index_, &domains_, &queues_, &contention_}),
      permit_frontend_({&cluster_, &gangs_, &eligibility_, &reasons_, &plans_, &domains_, &pod_lifecycle_, &clock_,
                        &bindings_, &contention_}),
      verbs_frontend_({&cluster_, &gangs_, &eligibility_, &plans_, &queues_, &pod_lifecycle_, &plan_lifecycle_,
                       &bindings_, &contention_}),
      submissions_frontend_({&cluster_, &ledger_, &gangs_, &reasons_, &plans_, &submissions_, &pod_lifecycle_,
                             &plan_lifecycle_, &bindings_},
                            {s.submission_ttl_ms, s.max_submissions}),
      gang_facts_({&cluster_, &gangs_, &restored_, &backlog_, &queues_, &activations_, &plan_lifecycle_, &planning_}),
      pod_facts_({&cluster_, &ledger_, &gangs_, &sources_, &pod_lifecycle_, &plan_lifecycle_, &broken_plans_,
                  &bindings_, &recorder_, &gang_facts_}),
      ingest_({&cluster_, &ledger_, &gangs_, &sources_, &refused_facts_, &plan_lifecycle_, &broken_plans_, &recorder_,
               &gang_facts_, &pod_facts_}),
      queue_step_({&cluster_, &eligibility_, &sources_, &backlog_, &plans_, &queues_, &future_reservations_, &backfill_,
                   &plan_lifecycle_, &planning_}),
      explanations_({&gangs_, &eligibility_, &sources_, &backlog_, &plans_, &activations_, &backfill_, &planning_,
                     &reasons_, &gang_deadlines_}),
      reconciler_({&gangs_, &eligibility_, &sources_, &plans_, &plan_lifecycle_, &repair_, &bindings_, &queue_step_,
                   &explanations_}),
      gang_reader_(
          {&cluster_, &gangs_, &eligibility_, &plans_, &pod_lifecycle_, &clock_, &queues_, &backlog_, &reasons_},
          &now_ms_),
      reader_{.gangs = gang_reader_,
              .pods = PodReader({&cluster_, &gangs_, &eligibility_, &sources_, &pod_lifecycle_, &gang_reader_}),
              .facts = {&cluster_, &sources_, &refused_facts_},
              .queues = QueuesReader({&gangs_, &eligibility_, &queues_, &backlog_, &reasons_, &planning_}),
              .holders = HolderReader({&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &future_reservations_}),
              .submissions = {{&cluster_, &plans_, &submissions_, &reasons_}, &now_ms_}},
      persist_queues_(s.persist_queues) {
  queues_.Set(s.queues);
}

absl::Status Machine::Load(const std::vector<Record>& records) {
  if (absl::Status loaded = restored_.Load(records); !loaded.ok()) return loaded;
  if (absl::Status compatible = CheckRecordsMatchSettings(restored_, recorder_.records_all()); !compatible.ok())
    return compatible;
  if (persist_queues_) {
    QueueRules rules = queue_tree_.rules();
    rules.queues = restored_.queues();
    queues_.Set(std::move(rules));
  }
  plans_.RestoreNextId(restored_.next_plan());
  return absl::OkStatus();
}

void Machine::AfterRestore() {
  gang_deadlines_.Restore([this](GangId id) -> const std::string& { return gangs_.gang(id).key; });
  pod_deadlines_.Restore([this](PodId id) -> const std::string& { return gangs_.pod(id).facts.uid; });
}

void Machine::Apply(const Command& command, int64_t now_ms, Outcome* outcome) {
  now_ms_ = std::max(now_ms_, now_ms);
  ApplyContext ctx(now_ms_, outcome);
  const bool reading = !sources_.complete();
  std::visit([&](const auto& specific) { On(specific, &ctx); }, command);
  reconciler_.ReconcileTouched(&ctx);
  // K-13: reserve what interrupted starts still need before any other gang can be planned.
  if (reading && sources_.complete()) {
    for (size_t turns = backlog_.New().size(); turns > 0 && PartiallyBoundIsNext(backlog_); --turns) {
      planning_.Round(1, &ctx);
      reconciler_.ReconcileTouched(&ctx);
    }
  }
  activations_.ActivateGuarded(&ctx);
  reconciler_.ReconcileTouched(&ctx);
  recorder_.RecordChanges(&ctx);
  RefreshDeadlines();
  cluster_.ReuseClasses();
}

void Machine::RefreshDeadlines() {
  gang_deadlines_.DrainDirty([this](GangId id) {
    const Gang& gang = gangs_.gang(id);
    const int64_t set_ms = gang_deadlines_.Of(id);
    const int64_t overdue_ms = set_ms <= now_ms_ ? set_ms : kNever;  // the next Tick handles it
    gang_deadlines_.Set(id, gang.key, std::min(overdue_ms, reconciler_.Deadline(gang, now_ms_)));
  });
  pod_deadlines_.DrainDirty([this](PodId id) {
    const Pod& pod = gangs_.pod(id);
    pod_deadlines_.Set(id, pod.facts.uid, pod_lifecycle_.Deadline(pod));
  });
}

int64_t Machine::NextDeadline() const {
  return std::min(
      {slot_filter_.refusals_until_ms(), gang_deadlines_.Next(), pod_deadlines_.Next(), sources_.ExpiresAt()});
}

void Machine::TakeChanged(std::vector<std::string>* gangs, std::vector<std::string>* nodes) {
  *gangs = gangs_.TakeChanged();
  *nodes = ledger_.TakeChanged();
  const std::vector<std::string> refused = refused_facts_.TakeChanged();
  if (refused.empty()) return;
  nodes->insert(nodes->end(), refused.begin(), refused.end());
  std::sort(nodes->begin(), nodes->end());
  nodes->erase(std::unique(nodes->begin(), nodes->end()), nodes->end());
}

// --- facts ---

void Machine::On(const ExpectFacts& command, ApplyContext* /*ctx*/) {
  sources_.Expect(command.sources);
  TouchWhileReading();
}

void Machine::On(const RestoreFacts& /*command*/, ApplyContext* ctx) {
  if (!restored_.empty() && ingest_.RestoreFacts(restored_.TakeFacts(), ctx)) CompleteSource("", ctx);
}

// Reasons name the sources that are still being read: recomputes them.
void Machine::TouchWhileReading() {
  if (!sources_.complete()) gangs_.ForEachGang([this](const Gang& gang) { gangs_.Touch(gang); });
}

void Machine::On(const ReplaceFacts& command, ApplyContext* ctx) {
  if (absl::Status possible = ingest_.Check(command.nodes, command.pods); !possible.ok()) {
    return ctx->Refuse(possible);
  }
  ingest_.Replace(command, ctx);
  if (command.facts_version.version != 0) ingest_.OnFactsStep(command.facts_version, ctx);
  CompleteSource("", ctx);
  ctx->ReplyWhenDurable(FactsReply{sources_.version()});
}

void Machine::On(const UpdateFacts& command, ApplyContext* ctx) {
  if (absl::Status next = sources_.CheckStep(command.facts_version.source, command.facts_version.version); !next.ok())
    return ctx->Refuse(next);
  const int64_t version = command.facts_version.version;
  if (version != 0 && version <= sources_.version()) {  // known
    ingest_.ConfirmRestoredFacts(ctx);
    return ctx->ReplyWhenDurable(FactsReply{sources_.version()});
  }
  if (absl::Status possible = ingest_.Check(command.nodes, command.pods); !possible.ok()) {
    return ctx->Refuse(possible);
  }
  ingest_.Update(command, ctx);
  if (version != 0) ingest_.OnFactsStep(command.facts_version, ctx);
  // A manual edit is not a complete snapshot, except on an empty store.
  if (restored_.empty()) CompleteSource("", ctx);
  ctx->ReplyWhenDurable(FactsReply{sources_.version()});
}

// --- calls of schedulers ---

// Unavailable: promises made before a restart are not restored yet, so no answer would be correct (K-13).
absl::Status Machine::CheckFactsRead() const {
  return absl::UnavailableError(absl::StrCat(sources_.Reading().text, "; ask again"));
}

void Machine::On(const Filter& command, ApplyContext* ctx) {
  ledger_.ExpireUnobservedBinds(now_ms_);
  ctx->ReplyNow(extender_frontend_.OnFilter(command, ctx));
}

void Machine::On(const Preempt& command, ApplyContext* ctx) {
  PreemptReply reply = extender_frontend_.OnPreempt(command, ctx);
  if (reply.nodes.empty()) return ctx->ReplyNow(std::move(reply));
  ctx->ReplyWhenDurable(std::move(reply));  // K-9: victims are evicted on this reply, so its basis is durable first
}

void Machine::On(const FindNodes& command, ApplyContext* ctx) {
  const Pod* pod = gangs_.FindPod(command.uid);
  if (pod == nullptr) return ctx->Refuse(sources_.complete() ? UnknownPod(command.uid) : CheckFactsRead());
  NodesReply reply;
  reply.reason = sources_.complete() ? eligibility_.PodReason(*pod) : sources_.Reading();
  if (reply.reason.none() && pod->state != MemberState::kPending) {
    reply.reason = {ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " is ", ToString(pod->state))};
  }
  if (!reply.reason.none()) return ctx->ReplyNow(std::move(reply));
  if (!eligibility_.IsPlacedAsGang(*pod)) return ctx->ReplyNow(node_search_.FindNodes(*pod, command.offered, ctx));
  // The pod's slot, or why there is none.
  const NodeOffer offer = command.offered.empty() ? NodeOffer::AllNodes() : NodeOffer(command.offered);
  FilterReply slot = member_filter_.FilterMember(*pod, offer, ctx);
  if (slot.kind == FilterReply::Kind::kSingleNode) reply.nodes.push_back({slot.node, 1000});
  if (slot.kind == FilterReply::Kind::kRefuse) reply.reason = std::move(slot.reason);
  ctx->ReplyNow(std::move(reply));
}

void Machine::On(const Permit& command, ApplyContext* ctx) {
  if (!sources_.complete()) return ctx->Refuse(CheckFactsRead());
  ctx->ReplyWhenDurable(permit_frontend_.OnPermit(command, ctx));
}

void Machine::On(const PostFilter& command, ApplyContext* ctx) {
  const Pod* pod = gangs_.FindPod(command.uid);
  if (pod == nullptr) return ctx->Refuse(sources_.complete() ? UnknownPod(command.uid) : CheckFactsRead());
  verbs_frontend_.OnPostFilter(*pod, command.message, ctx);
}

void Machine::On(const Unreserve& command, ApplyContext* ctx) {
  if (!sources_.complete()) return ctx->Refuse(CheckFactsRead());
  const Pod* pod = gangs_.FindPod(command.uid);
  if (pod != nullptr) verbs_frontend_.OnUnreserve(*pod, command.cause, ctx);  // else its node was released with the pod
}

void Machine::On(const PostBind& command, ApplyContext* ctx) {
  if (!sources_.complete()) return ctx->Refuse(CheckFactsRead());
  const Pod* pod = gangs_.FindPod(command.uid);
  if (pod == nullptr) return ctx->Refuse(UnknownPod(command.uid));
  ctx->Refuse(verbs_frontend_.OnPostBind(*pod, command.node, ctx));
}

void Machine::On(const CallerGone& command, ApplyContext* ctx) {
  const Pod* pod = gangs_.FindPod(command.uid);
  if (pod == nullptr) return;
  bindings_.OnCallerGone(*pod, now_ms_);
  if (!pod_lifecycle_.RemoveHold(*pod, command.token)) return;
  const Reason gone{ReasonCode::kGone, "the caller is gone"};
  ctx->EndHold(command.token, false, gone);
  // A committed pod is bound even if no caller waits any more.
  if (pod_lifecycle_.Of(*pod).holds.empty()) pod_lifecycle_.EndWait(*pod, gone, ctx);
}

// --- whole gangs ---

void Machine::On(const SubmitGang& command, ApplyContext* ctx) {
  const absl::StatusOr<bool> known = submissions_frontend_.ReplyIfKnown(command, ctx);
  if (!known.ok()) return ctx->Refuse(known.status());
  if (*known) return;
  if (absl::Status possible = submissions_frontend_.Check(command); !possible.ok()) {
    return ctx->Refuse(possible);
  }
  const Gang& gang = gang_facts_.Intern(command.name_space, command.name, ctx->now_ms(), ctx->now_ms());
  submissions_frontend_.Open(gang, command, ctx->now_ms());
  for (const PodDescription& pod : SubmissionsFrontend::Pods(command, ctx->now_ms())) {
    pod_facts_.Put(pod, /*submitted=*/true, ctx).IgnoreError();  // Check has accepted it
  }
  // Plan now, in the order of the queue, so that the reply can contain the plan.
  reconciler_.ReconcileTouched(ctx);
  planning_.Round(PlanRound().max_gangs, ctx);
  reconciler_.ReconcileTouched(ctx);
  ctx->ReplyWhenDurable(submissions_frontend_.CurrentReply(gang, ctx->now_ms()));
}

void Machine::On(const ConfirmGang& command, ApplyContext* ctx) {
  absl::StatusOr<SubmissionReply> reply = submissions_frontend_.OnConfirm(command, ctx);
  reply.ok() ? ctx->ReplyWhenDurable(*std::move(reply)) : ctx->Refuse(reply.status());
}

void Machine::On(const RefreshExplanation& command, ApplyContext* ctx) {
  ctx->ReplyNow(Reply());
  if (const Gang* gang = gangs_.FindGang(command.gang); gang != nullptr) planning_.RefreshExplanation(*gang);
}

void Machine::On(const AbandonGang& command, ApplyContext* ctx) {
  const absl::StatusOr<const SubmissionReply*> ended = submissions_frontend_.CheckAbandon(command.id);
  if (!ended.ok()) return ctx->Refuse(ended.status());
  if (*ended == nullptr) {
    DropSubmission(*submissions_.Find(command.id), SubmissionReply::State::kAbandoned,
                   {ReasonCode::kGone, "its caller abandoned it"}, ctx);
  }
  ctx->ReplyWhenDurable(*submissions_.FindFinished(command.id));
}

void Machine::DropSubmission(const Gang& gang, SubmissionReply::State state, Reason reason, ApplyContext* ctx) {
  for (const std::string& uid : submissions_frontend_.EndUnconfirmed(gang, state, std::move(reason), ctx)) {
    pod_facts_.Remove(uid, ctx);
  }
  if (gang.children() > 0) gang_facts_.Redeclare(gang);  // foreign pods that name it stay
}

void Machine::On(const AskGang& command, ApplyContext* ctx) {
  absl::StatusOr<SubmissionReply> reply = submissions_frontend_.OnQuery(command.id, ctx->now_ms());
  reply.ok() ? ctx->ReplyWhenDurable(*std::move(reply)) : ctx->Refuse(reply.status());
}

// --- queues declared at run time (SPEC Q-1) ---

void Machine::On(const SetQueues& command, ApplyContext* ctx) {
  if (absl::Status right = CheckQueues(command.rules); !right.ok()) return ctx->Refuse(right);
  ReplaceQueueRules(command.rules, ctx);
}

void Machine::On(const ApplyQueues& command, ApplyContext* ctx) {
  absl::StatusOr<QueueRules> rules = Applied(queue_tree_.rules(), command);
  if (!rules.ok()) return ctx->Refuse(rules.status());
  ReplaceQueueRules(*std::move(rules), ctx);
}

// The new rules apply to every gang that waits; running gangs stay.
void Machine::ReplaceQueueRules(QueueRules rules, ApplyContext* ctx) {
  if (rules == queue_tree_.rules()) return;
  if (persist_queues_) WriteQueuesRecord(rules.queues, ctx);
  queues_.Set(std::move(rules));
  gangs_.ForEachGang([this](const Gang& gang) { queues_.SetPayers(gang); });  // before any check against usage
  planning_.WakeAll();
  gangs_.InvalidateEligibility();
  gangs_.ForEachGang([this](const Gang& gang) { gangs_.Touch(gang); });
}

// --- outcomes, time, process ---

void Machine::On(const BindingOutcome& command, ApplyContext* ctx) {
  const Pod* pod = gangs_.FindPod(command.uid);
  if (pod != nullptr) bindings_.OnBindingOutcome(*pod, command, ctx);  // else its calls were answered at its deletion
}

void Machine::On(const Tick&, ApplyContext* ctx) {
  slot_filter_.ExpireRefusals(ctx->now_ms());
  if (sources_.ExpiresAt() <= ctx->now_ms()) ingest_.ExpireStaleNodes(ctx);
  for (auto id = gang_deadlines_.TakeDue(ctx->now_ms()); id.has_value(); id = gang_deadlines_.TakeDue(ctx->now_ms())) {
    const Gang& gang = gangs_.gang(*id);
    reconciler_.OnTime(gang, ctx);
    if (submissions_.Expired(gang, ctx->now_ms())) {
      const absl::string_view what = plans_.Of(gang) == nullptr ? "was not queried" : "was not confirmed";
      DropSubmission(gang, SubmissionReply::State::kExpired,
                     {ReasonCode::kTimedOut, absl::StrCat("gang ", gang.key, " ", what, " within ",
                                                          submissions_.Of(gang)->ttl_ms, " ms and was dropped")},
                     ctx);
    }
    gangs_.Touch(gang);  // its reconciliation sets the next deadline
  }
  for (auto id = pod_deadlines_.TakeDue(ctx->now_ms()); id.has_value(); id = pod_deadlines_.TakeDue(ctx->now_ms())) {
    bindings_.OnTime(gangs_.pod(*id), ctx);
    pod_deadlines_.MarkDirty(*id);
  }
}

void Machine::On(const Shutdown&, ApplyContext* ctx) {
  gangs_.ForEachGang([&](const Gang& gang) {
    pod_lifecycle_.EndAllWaits(gang, {ReasonCode::kShuttingDown, "Muster is stopping; the pod will be tried again"},
                               ctx);
  });
}

}  // namespace muster
