#include "state/machine/machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

absl::Status UnknownPod(const std::string& uid) { return absl::NotFoundError(absl::StrCat("no pod with uid ", uid)); }

bool HalfBoundIsNext(const Backlog& backlog) {
  const std::optional<int32_t> next = backlog.Next();
  return next.has_value() && backlog.queued(*next)->half_bound;
}

// Whether what an earlier process kept is for one that keeps facts itself, or not, as this one.
absl::Status CheckKept(const Restored& restored, bool keeps_facts) {
  if (restored.has_facts() && !keeps_facts) {
    return absl::FailedPreconditionError(
        "it was written without Kubernetes: nodes and pods in it were announced over gRPC, and their promises with "
        "them; set kubernetes.enabled: false, or give another store.path");
  }
  const bool of_kubernetes = restored.has_created() || (!restored.has_facts() && restored.has_promises());
  if (of_kubernetes && keeps_facts) {
    return absl::FailedPreconditionError(
        "it was written with Kubernetes: its promises are about pods that only the API server knows; set "
        "kubernetes.enabled: true, or give another store.path");
  }
  return absl::OkStatus();
}

}  // namespace

Machine::Machine(const MachineSettings& s)
    : index_(&cluster_),
      topology_(&cluster_, s.topology_levels),
      ledger_(&cluster_),
      gangs_(GangsSettings{s.gang, s.scheduler_names, s.one_priority, s.keeps_facts}),
      eligibility_(&gangs_, &queue_tree_, s.cross_namespace_groups),
      sources_(s.fact_sources, s.stale_after_ms),
      plans_(&gangs_, &ledger_),
      domains_(&topology_, &ledger_, &plans_),
      queues_(&queue_tree_, &cluster_, &ledger_, &gangs_, &eligibility_),
      calls_(&gangs_, &cluster_, s.nominate),
      barrier_(&gangs_, &ledger_, &plans_, &calls_, &pod_deadlines_),
      nominations_(&gangs_, &cluster_, &queues_, &ledger_),
      pipeline_(&gangs_, &eligibility_, &cluster_, &ledger_, &queues_),
      heads_(&gangs_, &cluster_, &backlog_, &queues_, &pipeline_),
      clock_(&gangs_),
      submissions_(&gangs_, &gang_deadlines_, s.keeps_facts),
      facts_(&gangs_, &submissions_, s.keeps_facts, s.keeps_created),
      reasons_(&eligibility_, &backlog_, &plans_, &calls_, &sources_, &queues_, &heads_),
      claims_({&cluster_, &ledger_, &gangs_, &eligibility_, &backlog_, &plans_, &calls_, &barrier_, &nominations_,
               &clock_, &submissions_, &domains_, &pipeline_, &heads_, &sources_, &queues_}),
      repair_(&gangs_, &plans_, &claims_, s.repair_ms),
      bindings_({&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &calls_, &barrier_, &nominations_, &clock_,
                 &claims_, &repair_, &pod_deadlines_, &domains_},
                {s.hold_limit_ms, s.answer_limit_ms, s.bind_within_ms}),
      planning_({&cluster_, &ledger_, &index_, &topology_, &gangs_, &eligibility_, &sources_, &backlog_, &plans_,
                 &queues_, &nominations_, &pipeline_, &heads_, &claims_},
                {s.max_holds, s.planner_tries}),
      kube_scheduler_({&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &sources_, &reasons_, &plans_, &calls_,
                       &barrier_, &claims_, &bindings_, &domains_, &queues_},
                      {s.learned_refusal_ms, s.percentage_of_nodes}),
      verbs_({&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &reasons_, &plans_, &barrier_, &nominations_,
              &clock_, &claims_, &bindings_, &domains_, &queues_}),
      submission_driver_({&cluster_, &ledger_, &gangs_, &reasons_, &plans_, &submissions_, &claims_, &bindings_},
                         {s.submission_ttl_ms, s.max_submissions}),
      announcements_({&cluster_,  &ledger_,   &gangs_,    &eligibility_,   &sources_,     &refused_facts_,
                      &backlog_,  &plans_,    &calls_,    &barrier_,       &nominations_, &claims_,
                      &repair_,   &bindings_, &restored_, &pod_deadlines_, &submissions_, &facts_,
                      &pipeline_, &queues_,   &planning_}),
      settling_({&gangs_, &eligibility_, &sources_,     &backlog_, &plans_,    &calls_,          &barrier_,
                 &clock_, &submissions_, &claims_,      &repair_,  &bindings_, &planning_,       &pipeline_,
                 &heads_, &queues_,      &nominations_, &ledger_,  &reasons_,  &gang_deadlines_, &cluster_},
                s.plan_idle_ms),
      reader_({&cluster_, &ledger_, &gangs_, &eligibility_, &sources_, &refused_facts_, &plans_, &barrier_, &clock_,
               &bindings_, &queues_, &reasons_, &backlog_, &pipeline_}),
      keeps_queues_(s.keeps_queues) {
  queues_.Set(s.queues);
}

absl::Status Machine::Load(const std::vector<Record>& records) {
  if (absl::Status loaded = restored_.Load(records); !loaded.ok()) return loaded;
  if (absl::Status ours = CheckKept(restored_, facts_.keeps()); !ours.ok()) return ours;
  if (keeps_queues_) {
    QueueRules rules = queue_tree_.rules();
    rules.queues = restored_.queues();
    queues_.Set(std::move(rules));
  }
  plans_.ContinueAt(restored_.next_plan());
  return absl::OkStatus();
}

void Machine::AfterRestore() {
  gang_deadlines_.Restore([this](GangId id) -> const std::string& { return gangs_.gang(id).key; });
  pod_deadlines_.Restore([this](PodId id) -> const std::string& { return gangs_.pod(id).facts.uid; });
}

void Machine::Apply(const Command& command, int64_t now_ms, Outcome* outcome) {
  now_ms_ = std::max(now_ms_, now_ms);
  Step step(now_ms_, outcome);
  const bool reading = !sources_.complete();
  std::visit([&](const auto& specific) { On(specific, &step); }, command);
  settling_.SettleTouched(&step);
  // K-13: what a start that was interrupted still needs is reserved before anybody may ask for it.
  if (reading && sources_.complete()) {
    for (size_t turns = backlog_.New().size(); turns > 0 && HalfBoundIsNext(backlog_); --turns) {
      planning_.Round(1, &step);
      settling_.SettleTouched(&step);
    }
  }
  calls_.CallGuarded(&step);
  settling_.SettleTouched(&step);
  facts_.EndCommand(&step);
  settling_.SettleDeadlines(now_ms_);
  pod_deadlines_.TakeLooks([this](PodId id) {
    const Pod& pod = gangs_.pod(id);
    pod_deadlines_.Set(id, pod.facts.uid, bindings_.Deadline(pod));
  });
  cluster_.ReuseClasses();
}

int64_t Machine::NextDeadline() const {
  return std::min(
      {kube_scheduler_.refusals_until_ms(), gang_deadlines_.Next(), pod_deadlines_.Next(), sources_.ShutAt()});
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

// --- what is announced ---

void Machine::On(const UpsertNode& command, Step* step) { step->Refuse(announcements_.PutNode(command.node, step)); }

void Machine::On(const RemoveNode& command, Step* step) { announcements_.RemoveNode(command.name, step); }

void Machine::On(const UpsertNamespace& command, Step* step) {
  announcements_.PutNamespace(command.name, &command.labels, step);
}

void Machine::On(const RemoveNamespace& command, Step* step) {
  announcements_.PutNamespace(command.name, nullptr, step);
}

void Machine::On(const UpsertPod& command, Step* step) {
  step->Refuse(announcements_.PutPod(command.pod, /*submitted=*/false, step));
}

void Machine::On(const RemovePod& command, Step* step) { announcements_.RemovePod(command.uid, step); }

void Machine::On(const UpsertGangObject& command, Step* step) { step->Refuse(announcements_.PutObject(command, step)); }

void Machine::On(const RemoveGangObject& command, Step* step) {
  step->Refuse(announcements_.RemoveObject(command, step));
}

void Machine::On(const UnreadableFact& command, Step* step) { step->Refuse(announcements_.NoteUnreadable(command)); }

void Machine::On(const FactsRead& command, Step* step) { announcements_.Complete(command.source, step); }

void Machine::On(const ExpectFacts& command, Step* /*step*/) { announcements_.Expect(command.sources); }

void Machine::On(const TakeUpFacts& /*command*/, Step* step) { announcements_.TakeUpFacts(step); }

void Machine::On(const ReplaceFacts& command, Step* step) {
  if (absl::Status possible = announcements_.Check(command.nodes, command.pods); !possible.ok()) {
    return step->Refuse(possible);
  }
  announcements_.RemoveUnnamed(command, step);
  announcements_.PutAll(command.nodes, command.pods, step);
  if (command.step.version != 0) announcements_.TakeStep(command.step, step);
  announcements_.Complete("", step);
  step->Answer(FactsReply{sources_.version()});
}

void Machine::On(const UpdateFacts& command, Step* step) {
  if (absl::Status next = sources_.CheckStep(command.step.source, command.step.version); !next.ok())
    return step->Refuse(next);
  const int64_t version = command.step.version;
  if (version != 0 && version <= sources_.version()) {  // known
    announcements_.NoteSpoke(step);
    return step->Answer(FactsReply{sources_.version()});
  }
  if (absl::Status possible = announcements_.Check(command.nodes, command.pods); !possible.ok()) {
    return step->Refuse(possible);
  }
  announcements_.TakeUpdate(command, step);
  if (version != 0) announcements_.TakeStep(command.step, step);
  // An edit by hand says nothing of what else there is, unless there was nothing.
  if (restored_.empty()) announcements_.Complete("", step);
  step->Answer(FactsReply{sources_.version()});
}

// --- questions of a scheduler ---

// What was promised before a restart is not taken up yet: neither yes nor no would be true (K-13).
absl::Status Machine::StillReading() const {
  return absl::UnavailableError(absl::StrCat(sources_.Reading().text, "; ask again"));
}

void Machine::On(const Filter& command, Step* step) {
  ledger_.ForgetUnheard(now_ms_);
  step->Tell(kube_scheduler_.OnFilter(command, step));
}

void Machine::On(const Bind& command, Step* step) { kube_scheduler_.OnBind(command, step); }

void Machine::On(const Preempt& command, Step* step) {
  PreemptReply reply = kube_scheduler_.OnPreempt(command, step);
  if (reply.nodes.empty()) return step->Tell(std::move(reply));
  step->Answer(std::move(reply));  // K-9: somebody is evicted for it: what it rests on is durable first
}

void Machine::On(const PreFilter& command, Step* step) { step->Tell(verbs_.OnPreFilter(command, step->now_ms())); }

void Machine::On(const FindNodes& command, Step* step) {
  const Pod* pod = FindPod(command.uid);
  if (pod == nullptr) return step->Refuse(sources_.complete() ? UnknownPod(command.uid) : StillReading());
  NodesReply reply;
  reply.reason = sources_.complete() ? eligibility_.PodReason(*pod) : sources_.Reading();
  if (reply.reason.none() && pod->state != MemberState::kPending) {
    reply.reason = {ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " is ", ToString(pod->state))};
  }
  if (!reply.reason.none()) return step->Tell(std::move(reply));
  if (!verbs_.PlacedAsWhole(*pod)) return step->Tell(verbs_.FindNodes(*pod, command.offered, step));
  // The pod's slot, or why there is none.
  const NodeOffer offer = command.offered.empty() ? NodeOffer::Every() : NodeOffer(command.offered);
  FilterReply slot = kube_scheduler_.FilterMember(*pod, offer, step);
  if (slot.kind == FilterReply::Kind::kOneNode) reply.nodes.push_back({slot.node, 1000});
  if (slot.kind == FilterReply::Kind::kRefuse) reply.reason = std::move(slot.reason);
  step->Tell(std::move(reply));
}

void Machine::On(const Permit& command, Step* step) {
  if (!sources_.complete()) return step->Refuse(StillReading());
  step->Answer(verbs_.OnPermit(command, step));
}

void Machine::On(const PostFilter& command, Step* step) {
  const Pod* pod = FindPod(command.uid);
  if (pod == nullptr) return step->Refuse(sources_.complete() ? UnknownPod(command.uid) : StillReading());
  verbs_.OnPostFilter(*pod, command.message, step);
}

void Machine::On(const Unreserve& command, Step* step) {
  if (!sources_.complete()) return step->Refuse(StillReading());
  const Pod* pod = FindPod(command.uid);
  if (pod != nullptr) verbs_.OnUnreserve(*pod, command.cause, step);  // deleted: its place went with it
}

void Machine::On(const PostBind& command, Step* step) {
  if (!sources_.complete()) return step->Refuse(StillReading());
  const Pod* pod = FindPod(command.uid);
  if (pod == nullptr) return step->Refuse(UnknownPod(command.uid));
  step->Refuse(verbs_.OnPostBind(*pod, command.node, step));
}

void Machine::On(const EndHold& command, Step* step) {
  const Pod* pod = FindPod(command.uid);
  if (pod == nullptr) return;
  bindings_.NoteCallerGone(*pod, now_ms_);
  if (!barrier_.DropHold(*pod, command.token)) return;
  const Reason gone{ReasonCode::kGone, "the caller is gone"};
  step->EndHold(command.token, false, gone);
  // A committed pod is bound even if nobody listens any more.
  if (barrier_.Of(*pod).holds.empty()) barrier_.End(*pod, gone, step);
}

// --- whole gangs ---

void Machine::On(const SubmitGang& command, Step* step) {
  const absl::StatusOr<bool> known = submission_driver_.AnswerKnown(command, step);
  if (!known.ok()) return step->Refuse(known.status());
  if (*known) return;
  if (absl::Status possible = submission_driver_.Check(command); !possible.ok()) {
    return step->Refuse(possible);
  }
  const Gang& gang = announcements_.InternGang(command.name_space, command.name, step->now_ms(), step->now_ms());
  submission_driver_.Open(gang, command, step->now_ms());
  for (const PodDescription& pod : SubmissionDriver::Pods(command, step->now_ms())) {
    announcements_.PutPod(pod, /*submitted=*/true, step).IgnoreError();  // it was checked
  }
  // The answer should tell whether there is room: plan now, whoever is first in the queue first.
  settling_.SettleTouched(step);
  planning_.Round(PlanRound().max_gangs, step);
  settling_.SettleTouched(step);
  step->Answer(submission_driver_.Stands(gang, step->now_ms()));
}

void Machine::On(const ConfirmGang& command, Step* step) {
  absl::StatusOr<SubmissionReply> reply = submission_driver_.OnConfirm(command, step);
  reply.ok() ? step->Answer(*std::move(reply)) : step->Refuse(reply.status());
}

void Machine::On(const LookAgain& command, Step* step) {
  step->Tell(Reply());
  if (const Gang* gang = gangs_.FindGang(command.gang); gang != nullptr) planning_.LookAgain(*gang);
}

void Machine::On(const AbandonGang& command, Step* step) {
  const absl::StatusOr<const SubmissionReply*> ended = submission_driver_.CheckAbandon(command.id);
  if (!ended.ok()) return step->Refuse(ended.status());
  if (*ended == nullptr) {
    DropSubmission(*submissions_.Find(command.id), SubmissionReply::State::kAbandoned,
                   {ReasonCode::kGone, "its caller abandoned it"}, step);
  }
  step->Answer(*submissions_.FindFinished(command.id));
}

void Machine::DropSubmission(const Gang& gang, SubmissionReply::State state, Reason reason, Step* step) {
  for (const std::string& uid : submission_driver_.Drop(gang, state, std::move(reason), step)) {
    announcements_.RemovePod(uid, step);
  }
  if (gang.children() > 0) announcements_.Redeclare(gang);  // pods that named it on their own stay
}

void Machine::On(const AskGang& command, Step* step) {
  absl::StatusOr<SubmissionReply> reply = submission_driver_.OnAsk(command.id, step->now_ms());
  reply.ok() ? step->Answer(*std::move(reply)) : step->Refuse(reply.status());
}

// --- outcomes, time, process ---

void Machine::On(const BindingOutcome& command, Step* step) {
  const Pod* pod = FindPod(command.uid);
  if (pod != nullptr) bindings_.NoteOutcome(*pod, command, step);  // deleted: its calls were answered then
}

void Machine::On(const PlanRound& command, Step* step) { planning_.Round(command.max_gangs, step); }

void Machine::On(const Tick&, Step* step) {
  kube_scheduler_.ExpireRefusals(step->now_ms());
  if (sources_.ShutAt() <= step->now_ms()) announcements_.ShutStale(step);
  for (auto id = gang_deadlines_.TakeDue(step->now_ms()); id.has_value();
       id = gang_deadlines_.TakeDue(step->now_ms())) {
    const Gang& gang = gangs_.gang(*id);
    settling_.OnTime(gang, step);
    if (submissions_.Expired(gang, step->now_ms())) {
      const absl::string_view what = plans_.Of(gang) == nullptr ? "was not asked about" : "was not confirmed";
      DropSubmission(gang, SubmissionReply::State::kExpired,
                     {ReasonCode::kTimedOut, absl::StrCat("gang ", gang.key, " ", what, " within ",
                                                          submissions_.Of(gang)->ttl_ms, " ms and was dropped")},
                     step);
    }
    gangs_.Touch(gang);  // settling sets the next deadline
  }
  for (auto id = pod_deadlines_.TakeDue(step->now_ms()); id.has_value(); id = pod_deadlines_.TakeDue(step->now_ms())) {
    bindings_.OnTime(gangs_.pod(*id), step);
    pod_deadlines_.Look(*id);
  }
}

void Machine::On(const Shutdown&, Step* step) {
  gangs_.ForEachGang([&](const Gang& gang) {
    barrier_.EndAll(gang, {ReasonCode::kShuttingDown, "Muster is stopping; the pod will be tried again"}, step);
  });
}

}  // namespace muster
