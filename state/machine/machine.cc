#include "state/machine/machine.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/problem.h"

namespace muster {
namespace {

// The work of one Tick: gangs and pods that are due, and effects, of which a gang may have one for each member. Each
// takes 1 to 2 us. What comes due at one moment, after a restart or a burst, may be a hundred thousand gangs (K-2).
constexpr size_t kMaxTickWork = 1'000;

absl::Status UnknownPod(const std::string& uid) { return absl::NotFoundError(absl::StrCat("no pod with uid ", uid)); }

bool PartiallyBoundIsNext(const Backlog& backlog) {
  const std::optional<int32_t> next = backlog.Next();
  return next.has_value() && backlog.queued(*next)->partially_bound;
}

// At most so many gangs are planned while kube-scheduler's one scheduling cycle waits (K-2). Usually one is new.
constexpr int32_t kMaxPlannedWithinQuestion = 4;

// kube-scheduler often asks for a member as soon as its gang is whole. A gang that was never tried is planned then, in
// its order, and not in the next round: a refusal would cost the member kube-scheduler's back-off (K-7).
void PlanIfNew(MachineRooms* r, const Pod* pod, ApplyContext* ctx) {
  if (pod == nullptr || pod->gang == nullptr) return;
  const ClaimId claim = pod->gang->id;
  if (r->backlog.queued(claim) == nullptr || r->backlog.wake_condition(claim) != nullptr) return;
  r->planning.Round(kMaxPlannedWithinQuestion, ctx);
  r->reconciler.ReconcileTouched(ctx);
}

std::vector<Problem> QueueProblems(const QueueRules& rules) {
  std::vector<Problem> problems;
  for (const QueueProblem& problem : ValidateQueues(rules)) {
    problems.push_back({Subject::kQueue, problem.queue, ToString(problem)});
  }
  return problems;
}

absl::Status NoSuchQueue(const std::string& name, const QueueRules& rules) {
  if (name != kDefaultQueue || rules.queues.empty())
    return absl::NotFoundError(absl::StrCat("there is no queue ", name));
  return absl::NotFoundError(absl::StrCat("queue ", name,
                                          " is not declared: it takes the gangs that name no queue, and exists as long "
                                          "as other queues do"));
}

// The rules after `command`. A known queue keeps its position, which is its age; a new queue comes last.
absl::StatusOr<QueueRules> ChangeRules(QueueRules rules, const ApplyQueues& command) {
  const auto find = [&](const std::string& name) {
    return absl::c_find_if(rules.queues, [&](const QueueSpec& queue) { return queue.name == name; });
  };
  std::vector<Problem> problems;
  absl::flat_hash_set<std::string> declared;
  for (const QueueSpec& queue : command.put) {
    if (!declared.insert(queue.name).second) {
      problems.push_back({Subject::kQueue, queue.name, ToString(QueueProblem{queue.name, "is declared twice"})});
    } else if (const auto known = find(queue.name); known != rules.queues.end()) {
      *known = queue;
    } else {
      rules.queues.push_back(queue);
    }
  }
  for (const std::string& name : command.remove) {
    const auto known = find(name);
    if (known == rules.queues.end()) return NoSuchQueue(name, rules);
    rules.queues.erase(known);
  }
  if (command.only) {
    std::erase_if(rules.queues, [&](const QueueSpec& queue) { return !declared.contains(queue.name); });
  }
  for (const std::string& name : command.remove) {
    std::vector<std::string> children;
    for (const QueueSpec& queue : rules.queues) {
      if (queue.parent == name) children.push_back(queue.name);
    }
    if (children.empty()) continue;
    return InvalidArgument({{Subject::kQueue, name,
                             absl::StrCat("queue ", name, ": has child queues, ", absl::StrJoin(children, ", "),
                                          "; delete them first, or give them another parent")}});
  }
  absl::c_move(QueueProblems(rules), std::back_inserter(problems));
  if (!problems.empty()) return InvalidArgument(problems);
  return rules;
}

}  // namespace

MachineRooms::MachineRooms(const MachineSettings& s)
    : index(&cluster),
      topology(&cluster, s.topology_levels),
      ledger(&cluster),
      gangs(GangsSettings{s.gang, s.scheduler_names, s.one_priority, s.persist_facts}),
      eligibility(&gangs, &queue_tree, &cluster, s.cross_namespace_groups),
      sources(s.fact_sources, s.stale_after_ms),
      plans(&gangs, &ledger),
      domains(&topology, &ledger, &plans),
      queues(&queue_tree, &cluster, &ledger, &gangs, &eligibility),
      activations(&gangs, &cluster, s.nominate),
      nominations(&gangs, &cluster, &queues, &ledger),
      pod_lifecycle({&cluster, &ledger, &gangs, &backlog, &plans, &activations, &nominations, &future_reservations,
                     &pod_deadlines},
                    s.bind_within_ms),
      future_reservations(&gangs, &eligibility, &cluster, &ledger, &queues),
      backfill(&gangs, &cluster, &backlog, &queues, &future_reservations),
      clock(&gangs),
      submissions(&gangs, &gang_deadlines, s.persist_facts),
      recorder(&gangs, &submissions, s.persist_facts, s.persist_created),
      reasons({&eligibility, &backlog, &plans, &activations, &sources, &queues, &backfill, &cluster, &domains}),
      plan_lifecycle({&cluster, &gangs, &eligibility, &backlog, &plans, &activations, &pod_lifecycle, &clock,
                      &submissions, &queues},
                     s.plan_idle_ms, s.future_member_ms),
      broken_plans({&cluster, &ledger, &gangs, &eligibility, &backlog, &plans, &domains, &nominations,
                    &future_reservations, &plan_lifecycle}),
      repair(&gangs, &eligibility, &plans, &plan_lifecycle, s.repair_ms),
      bindings({&cluster, &ledger, &gangs, &eligibility, &plans, &pod_lifecycle, &plan_lifecycle, &broken_plans,
                &repair, &backfill},
               {s.hold_limit_ms, s.answer_limit_ms}),
      placer({&cluster, &ledger, &index, &topology, &gangs, &eligibility, &queues}),
      waker({&cluster, &ledger, &index, &gangs, &eligibility, &backlog, &queues, &nominations, &future_reservations,
             &backfill}),
      future_placer({&cluster, &ledger, &gangs, &eligibility, &plans, &queues, &nominations, &future_reservations,
                     &backfill, &placer},
                    {s.planner_tries, s.future_member_ms}),
      plan_maker({&cluster, &gangs, &eligibility, &plans, &queues, &nominations, &plan_lifecycle, &placer},
                 {s.max_holds, s.planner_tries}),
      planning({&gangs, &eligibility, &sources, &backlog, &queues, &future_reservations, &backfill, &waker,
                &future_placer, &plan_maker}),
      capacity_guard({&cluster, &ledger, &gangs, &eligibility, &plans, &domains}),
      slot_filter({&cluster, &index, &gangs, &plans, &domains, &pod_lifecycle, &plan_lifecycle},
                  {s.learned_refusal_ms, s.percentage_of_nodes}),
      member_filter({&gangs, &eligibility, &reasons, &plans, &activations, &pod_lifecycle, &plan_lifecycle, &queues,
                     &capacity_guard, &slot_filter}),
      extender_frontend({&cluster, &gangs, &sources, &plans, &activations, &pod_lifecycle, &bindings, &capacity_guard,
                         &member_filter}),
      verbs_frontend({&cluster, &ledger, &gangs, &eligibility, &plans, &queues, &nominations, &pod_lifecycle,
                      &plan_lifecycle, &bindings}),
      node_search{&cluster, &index, &domains, &queues, &verbs_frontend},
      permit{&cluster, &gangs,         &eligibility, &reasons,  &plans,
             &domains, &pod_lifecycle, &clock,       &bindings, &verbs_frontend},
      reader{.gangs = {{&cluster, &gangs, &eligibility, &plans, &pod_lifecycle, &clock, &queues, &backlog, &sources,
                        &reasons},
                       &now_ms},
             .facts = {&cluster, &sources, &refused_facts},
             .queues = QueuesReader({&gangs, &eligibility, &queues, &backlog, &reasons, &planning, &cluster, &ledger,
                                     &plans, &future_reservations}),
             .submissions = {{&cluster, &plans, &submissions, &reasons}, &now_ms}},
      submissions_frontend({&cluster, &ledger, &gangs, &reasons, &plans, &submissions, &pod_lifecycle, &plan_lifecycle,
                            &bindings, &reader.submissions},
                           {s.submission_ttl_ms, s.max_submissions}),
      gang_facts({&cluster, &gangs, &restored, &backlog, &queues, &activations, &plan_lifecycle, &planning}),
      pod_facts({&cluster, &ledger, &gangs, &sources, &pod_lifecycle, &plan_lifecycle, &broken_plans, &bindings,
                 &recorder, &gang_facts}),
      ingest({&cluster, &ledger, &gangs, &sources, &refused_facts, &plan_lifecycle, &broken_plans, &recorder,
              &gang_facts, &pod_facts}),
      queue_step({&cluster, &eligibility, &sources, &backlog, &plans, &queues, &future_reservations, &backfill,
                  &plan_lifecycle, &planning}),
      explanations({&gangs, &eligibility, &sources, &backlog, &plans, &activations, &backfill, &planning, &reasons,
                    &gang_deadlines}),
      reconciler(
          {&gangs, &eligibility, &sources, &plans, &plan_lifecycle, &repair, &bindings, &queue_step, &explanations}) {
  queues.Set(s.queues);
}

void MachineRooms::AfterRestore() {
  gang_deadlines.Restore([this](GangId id) -> const std::string& { return gangs.gang(id).key; });
  pod_deadlines.Restore([this](PodId id) -> const std::string& { return gangs.pod(id).facts.uid; });
}

absl::Status Machine::Load(const std::vector<Record>& records) {
  if (absl::Status loaded = r_.restored.Load(records); !loaded.ok()) return loaded;
  if (absl::Status same = r_.restored.CheckSource(r_.recorder.records_all()); !same.ok()) return same;
  if (persist_queues_) {
    QueueRules rules = r_.queue_tree.rules();
    rules.queues = r_.restored.queues();
    r_.queues.Set(std::move(rules));
  }
  r_.plans.RestoreNextId(r_.restored.next_plan());
  return absl::OkStatus();
}

void Machine::Apply(const Command& command, int64_t now_ms, Outcome* outcome) {
  r_.now_ms = std::max(r_.now_ms, now_ms);
  ApplyContext ctx(r_.now_ms, outcome);
  const bool reading = !r_.sources.complete();
  std::visit([&](const auto& specific) { On(specific, &ctx); }, command);
  r_.reconciler.ReconcileTouched(&ctx);
  // K-13: reserve what interrupted starts still need before any other gang can be planned.
  if (reading && r_.sources.complete()) {
    for (size_t turns = r_.backlog.New().size(); turns > 0 && PartiallyBoundIsNext(r_.backlog); --turns) {
      r_.planning.Round(1, &ctx);
      r_.reconciler.ReconcileTouched(&ctx);
    }
  }
  r_.activations.ActivateGuarded(&ctx);
  r_.reconciler.ReconcileTouched(&ctx);
  r_.recorder.RecordChanges(&ctx);
  RefreshDeadlines();
  r_.cluster.ReuseClasses();
}

void Machine::RefreshDeadlines() {
  r_.gang_deadlines.DrainDirty([this](GangId id) {
    const Gang& gang = r_.gangs.gang(id);
    const int64_t set_ms = r_.gang_deadlines.Of(id);
    const int64_t overdue_ms = set_ms <= r_.now_ms ? set_ms : kNever;  // the next Tick handles it
    r_.gang_deadlines.Set(id, gang.key, std::min(overdue_ms, r_.reconciler.Deadline(gang, r_.now_ms)));
  });
  r_.pod_deadlines.DrainDirty([this](PodId id) {
    const Pod& pod = r_.gangs.pod(id);
    r_.pod_deadlines.Set(id, pod.facts.uid, r_.pod_lifecycle.Deadline(pod));
  });
}

int64_t Machine::NextDeadline() const {
  return std::min(
      {r_.slot_filter.refusals_until_ms(), r_.gang_deadlines.Next(), r_.pod_deadlines.Next(), r_.sources.ExpiresAt()});
}

void Machine::TakeChanged(std::vector<std::string>* gangs, std::vector<std::string>* nodes) {
  *gangs = r_.gangs.TakeChanged();
  *nodes = r_.ledger.TakeChanged();
  const std::vector<std::string> refused = r_.refused_facts.TakeChanged();
  if (refused.empty()) return;
  nodes->insert(nodes->end(), refused.begin(), refused.end());
  std::sort(nodes->begin(), nodes->end());
  nodes->erase(std::unique(nodes->begin(), nodes->end()), nodes->end());
}

// --- facts ---

void Machine::On(const ExpectFacts& command, ApplyContext* /*ctx*/) {
  r_.sources.Expect(command.sources);
  TouchWhileReading();
}

void Machine::On(const RestoreFacts& /*command*/, ApplyContext* ctx) {
  if (!r_.restored.empty() && r_.ingest.RestoreFacts(r_.restored.TakeFacts(), ctx)) CompleteSource("", ctx);
}

// Touches every gang while facts are read: its reason names the sources that are not read yet.
void Machine::TouchWhileReading() {
  if (!r_.sources.complete()) r_.gangs.ForEachGang([this](const Gang& gang) { r_.gangs.Touch(gang); });
}

void Machine::PutNamespace(const std::string& name, const Labels* labels, ApplyContext* ctx) {
  const auto known = r_.cluster.namespaces().find(name);
  const bool changes_access =
      r_.queue_tree.Distinguishes(known == r_.cluster.namespaces().end() ? nullptr : &known->second, labels);
  r_.pod_facts.PutNamespace(name, labels, ctx);
  if (!changes_access) return;
  // queues may serve its gangs now, or no longer. The end of the reading touches every gang.
  r_.gangs.InvalidateEligibility();
  if (!r_.sources.complete()) return;
  r_.gangs.ForEachGang([&](const Gang& gang) {
    if (gang.name_space == name) r_.gangs.Touch(gang);
  });
}

void Machine::On(const ReplaceFacts& command, ApplyContext* ctx) {
  if (absl::Status possible = r_.ingest.Check(command.nodes, command.pods); !possible.ok()) {
    return ctx->Refuse(possible);
  }
  r_.ingest.Replace(command, ctx);
  if (command.facts_version.version != 0) r_.ingest.OnFactsStep(command.facts_version, ctx);
  CompleteSource("", ctx);
  ctx->ReplyWhenDurable(FactsReply{r_.sources.version()});
}

void Machine::On(const UpdateFacts& command, ApplyContext* ctx) {
  if (absl::Status next = r_.sources.CheckStep(command.facts_version.source, command.facts_version.version); !next.ok())
    return ctx->Refuse(next);
  const int64_t version = command.facts_version.version;
  if (version != 0 && version <= r_.sources.version()) {  // known
    r_.ingest.ConfirmRestoredFacts(ctx);
    return ctx->ReplyWhenDurable(FactsReply{r_.sources.version()});
  }
  if (absl::Status possible = r_.ingest.Check(command.nodes, command.pods); !possible.ok()) {
    return ctx->Refuse(possible);
  }
  r_.ingest.Update(command, ctx);
  if (version != 0) r_.ingest.OnFactsStep(command.facts_version, ctx);
  // A manual edit is a complete snapshot only if the store was empty.
  if (r_.restored.empty()) CompleteSource("", ctx);
  ctx->ReplyWhenDurable(FactsReply{r_.sources.version()});
}

// --- calls of schedulers ---

// Unavailable: promises made before a restart are not restored yet, so no answer would be correct (K-13).
absl::Status Machine::FactsUnread() const {
  return absl::UnavailableError(absl::StrCat(r_.sources.Reading().text, "; ask again"));
}

void Machine::On(const Filter& command, ApplyContext* ctx) {
  r_.ledger.ExpireUnobservedBinds(r_.now_ms);
  PlanIfNew(&r_, r_.gangs.FindPod(command.uid), ctx);
  ctx->ReplyNow(r_.extender_frontend.OnFilter(command, ctx));
}

void Machine::On(const Preempt& command, ApplyContext* ctx) {
  PreemptReply reply = r_.extender_frontend.OnPreempt(command, ctx);
  if (reply.nodes.empty()) return ctx->ReplyNow(std::move(reply));
  ctx->ReplyWhenDurable(std::move(reply));  // K-9: victims are evicted on this reply, so its basis is durable first
}

void Machine::On(const FindNodes& command, ApplyContext* ctx) {
  const Pod* pod = r_.gangs.FindPod(command.uid);
  if (pod == nullptr) return ctx->Refuse(r_.sources.complete() ? UnknownPod(command.uid) : FactsUnread());
  NodesReply reply;
  reply.reason = r_.sources.complete() ? r_.eligibility.PodReason(*pod) : r_.sources.Reading();
  if (reply.reason.none() && pod->state != MemberState::kPending) {
    reply.reason = {ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " is ", ToString(pod->state))};
  }
  if (!reply.reason.none()) return ctx->ReplyNow(std::move(reply));
  if (!r_.eligibility.IsPlacedAsGang(*pod) && !r_.plan_lifecycle.HasSlotNow(*pod, ctx))
    return ctx->ReplyNow(FindFeasibleNodes(r_.node_search, *pod, command.offered, ctx));
  PlanIfNew(&r_, pod, ctx);
  // The reply has the node of the pod's slot, or the reason why there is no slot.
  const NodeOffer offer = command.offered.empty() ? NodeOffer::AllNodes() : NodeOffer(command.offered);
  FilterReply slot = r_.member_filter.FilterMember(*pod, offer, ctx);
  if (slot.kind == FilterReply::Kind::kSingleNode) reply.nodes.push_back({slot.node, 1000});
  if (slot.kind == FilterReply::Kind::kRefuse) reply.reason = std::move(slot.reason);
  ctx->ReplyNow(std::move(reply));
}

void Machine::On(const Permit& command, ApplyContext* ctx) {
  if (!r_.sources.complete()) return ctx->Refuse(FactsUnread());
  ctx->ReplyWhenDurable(OnPermit(r_.permit, command, ctx));
}

void Machine::On(const PostFilter& command, ApplyContext* ctx) {
  const Pod* pod = r_.gangs.FindPod(command.uid);
  if (pod == nullptr) return ctx->Refuse(r_.sources.complete() ? UnknownPod(command.uid) : FactsUnread());
  r_.verbs_frontend.OnPostFilter(*pod, command.message, ctx);
}

void Machine::On(const Unreserve& command, ApplyContext* ctx) {
  if (!r_.sources.complete()) return ctx->Refuse(FactsUnread());
  const Pod* pod = r_.gangs.FindPod(command.uid);
  // The node of an unknown pod was released when the pod was removed.
  if (pod != nullptr) r_.verbs_frontend.OnUnreserve(*pod, command.cause, ctx);
}

void Machine::On(const PostBind& command, ApplyContext* ctx) {
  if (!r_.sources.complete()) return ctx->Refuse(FactsUnread());
  const Pod* pod = r_.gangs.FindPod(command.uid);
  if (pod == nullptr) return ctx->Refuse(UnknownPod(command.uid));
  ctx->Refuse(r_.verbs_frontend.OnPostBind(*pod, command.node, ctx));
}

void Machine::On(const CallerGone& command, ApplyContext* ctx) {
  const Pod* pod = r_.gangs.FindPod(command.uid);
  if (pod == nullptr) return;
  r_.bindings.MarkIfUnobserved(*pod, r_.now_ms);
  if (!r_.pod_lifecycle.RemoveHold(*pod, command.token)) return;
  const Reason gone{ReasonCode::kGone, "the caller is gone"};
  ctx->EndHold(command.token, false, gone);
  // Only a wait before the commit ends: a committed pod is bound even if no caller waits for it.
  if (r_.pod_lifecycle.Of(*pod).holds.empty()) r_.pod_lifecycle.EndWait(*pod, gone, ctx);
}

// --- whole gangs ---

void Machine::On(const SubmitGang& command, ApplyContext* ctx) {
  const absl::StatusOr<bool> known = r_.submissions_frontend.ReplyIfKnown(command, ctx);
  if (!known.ok()) return ctx->Refuse(known.status());
  if (*known) return;
  if (absl::Status possible = r_.submissions_frontend.Check(command); !possible.ok()) {
    return ctx->Refuse(possible);
  }
  const Gang& gang = r_.gang_facts.Intern(command.name_space, command.name, ctx->now_ms(), ctx->now_ms());
  r_.submissions_frontend.Open(gang, command, ctx->now_ms());
  for (const PodDescription& pod : SubmissionsFrontend::Pods(command, ctx->now_ms())) {
    r_.pod_facts.Put(pod, /*submitted=*/true, ctx).IgnoreError();  // Check has accepted it
  }
  // Plan now, in the order of the queue, so that the reply can contain the plan.
  r_.reconciler.ReconcileTouched(ctx);
  r_.planning.Round(PlanRound().max_gangs, ctx);
  r_.reconciler.ReconcileTouched(ctx);
  ctx->ReplyWhenDurable(r_.submissions_frontend.ConfirmIfAsked(gang, command, ctx));
}

void Machine::On(const ConfirmGang& command, ApplyContext* ctx) {
  absl::StatusOr<SubmissionReply> reply = r_.submissions_frontend.OnConfirm(command, ctx);
  reply.ok() ? ctx->ReplyWhenDurable(*std::move(reply)) : ctx->Refuse(reply.status());
}

void Machine::On(const RefreshExplanation& command, ApplyContext* ctx) {
  ctx->ReplyNow(Reply());
  if (const Gang* gang = r_.gangs.FindGang(command.gang); gang != nullptr) r_.planning.RefreshExplanation(*gang);
}

void Machine::On(const AbandonGang& command, ApplyContext* ctx) {
  const absl::StatusOr<const SubmissionReply*> ended = r_.submissions_frontend.CheckAbandon(command.id);
  if (!ended.ok()) return ctx->Refuse(ended.status());
  if (*ended == nullptr) {
    DropSubmission(*r_.submissions.Find(command.id), SubmissionReply::State::kAbandoned,
                   {ReasonCode::kGone, "its caller abandoned it"}, ctx);
  }
  ctx->ReplyWhenDurable(*r_.submissions.FindFinished(command.id));
}

void Machine::DropSubmission(const Gang& gang, SubmissionReply::State state, Reason reason, ApplyContext* ctx) {
  for (const std::string& uid : r_.submissions_frontend.EndUnconfirmed(gang, state, std::move(reason), ctx)) {
    r_.pod_facts.Remove(uid, ctx);
  }
  if (gang.children() > 0) r_.gang_facts.Redeclare(gang);  // foreign pods that name the gang stay
}

void Machine::On(const AskGang& command, ApplyContext* ctx) {
  absl::StatusOr<SubmissionReply> reply = r_.submissions_frontend.OnQuery(command.id, ctx->now_ms());
  reply.ok() ? ctx->ReplyWhenDurable(*std::move(reply)) : ctx->Refuse(reply.status());
}

// --- queues declared at run time (SPEC Q-1) ---

void Machine::On(const SetQueues& command, ApplyContext* ctx) {
  if (const auto problems = QueueProblems(command.rules); !problems.empty())
    return ctx->Refuse(InvalidArgument(problems));
  ReplaceQueueRules(command.rules, ctx);
}

void Machine::On(const ApplyQueues& command, ApplyContext* ctx) {
  absl::StatusOr<QueueRules> rules = ChangeRules(r_.queue_tree.rules(), command);
  if (!rules.ok()) return ctx->Refuse(rules.status());
  ReplaceQueueRules(*std::move(rules), ctx);
}

// The new rules apply to every gang that waits; running gangs stay.
void Machine::ReplaceQueueRules(QueueRules rules, ApplyContext* ctx) {
  if (rules == r_.queue_tree.rules()) return;
  if (persist_queues_) WriteQueuesRecord(rules.queues, ctx);
  r_.queues.Set(std::move(rules));
  r_.gangs.ForEachGang([this](const Gang& gang) { r_.queues.SetPayers(gang); });  // before any check against usage
  r_.planning.WakeAll();
  r_.gangs.InvalidateEligibility();
  r_.gangs.ForEachGang([this](const Gang& gang) { r_.gangs.Touch(gang); });
}

// --- outcomes, time, process ---

void Machine::On(const BindingOutcome& command, ApplyContext* ctx) {
  const Pod* pod = r_.gangs.FindPod(command.uid);
  if (pod != nullptr) r_.bindings.OnBindingOutcome(*pod, command, ctx);  // else its calls were answered at its deletion
}

void Machine::On(const Tick&, ApplyContext* ctx) {
  r_.slot_filter.ExpireRefusals(ctx->now_ms());
  if (r_.sources.ExpiresAt() <= ctx->now_ms()) r_.ingest.ExpireStaleNodes(ctx);
  // The rest stays due: other commands are applied before the next Tick.
  size_t due = 0;
  for (; due + ctx->effects() < kMaxTickWork; ++due) {
    const auto id = r_.gang_deadlines.TakeDue(ctx->now_ms());
    if (!id.has_value()) break;
    const Gang& gang = r_.gangs.gang(*id);
    r_.reconciler.OnTime(gang, ctx);
    if (r_.submissions.Expired(gang, ctx->now_ms())) {
      const absl::string_view what = r_.plans.Of(gang) == nullptr ? "was not queried" : "was not confirmed";
      DropSubmission(gang, SubmissionReply::State::kExpired,
                     {ReasonCode::kTimedOut, absl::StrCat("gang ", gang.key, " ", what, " within ",
                                                          r_.submissions.Of(gang)->ttl_ms, " ms and was dropped")},
                     ctx);
    }
    r_.gangs.Touch(gang);  // its reconciliation sets the next deadline
  }
  for (; due + ctx->effects() < kMaxTickWork; ++due) {
    const auto id = r_.pod_deadlines.TakeDue(ctx->now_ms());
    if (!id.has_value()) break;
    r_.bindings.OnTime(r_.gangs.pod(*id), ctx);
    r_.pod_deadlines.MarkDirty(*id);
  }
}

void Machine::On(const Shutdown&, ApplyContext* ctx) {
  r_.gangs.ForEachGang([&](const Gang& gang) {
    r_.pod_lifecycle.EndAllWaits(gang, {ReasonCode::kShuttingDown, "Muster is stopping; the pod will be tried again"},
                                 ctx);
  });
}

}  // namespace muster
