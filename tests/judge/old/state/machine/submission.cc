// Whole gangs for callers without a scheduler of their own: submit, then confirm or abandon, within a time (SPEC S-1).
//
// The gang is planned like any other, in the order of the queue; its slots are given to its pods at once. Nothing is
// bound before the caller confirms the plan that it was shown.
#include <algorithm>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

// How much is remembered of submissions that ended.
constexpr size_t kMaxFinished = 4'096;

}  // namespace

absl::string_view ToString(SubmissionReply::State state) {
  switch (state) {
    case SubmissionReply::State::kWaiting:
      return "Waiting";
    case SubmissionReply::State::kPlanned:
      return "Planned";
    case SubmissionReply::State::kConfirmed:
      return "Confirmed";
    case SubmissionReply::State::kAbandoned:
      return "Abandoned";
    case SubmissionReply::State::kExpired:
      return "Expired";
  }
  return "";
}

Gang* Machine::FindSubmission(const std::string& id) const {
  const auto found = submissions_.find(id);
  return found == submissions_.end() ? nullptr : gangs_.find(found->second)->second.get();
}

bool Machine::AnswerFinished(const std::string& id) {
  const auto found = finished_.find(id);
  if (found == finished_.end()) return false;
  out_->reply = found->second;
  return true;
}

void Machine::AnswerSubmission(const Gang& gang) {
  SubmissionReply reply;
  reply.gang = gang.key;
  reply.expires_ms = gang.submission->expires_ms;
  if (gang.plan == nullptr) {
    reply.reason = WaitReason(gang);
    out_->reply = std::move(reply);
    return;
  }
  reply.state = SubmissionReply::State::kPlanned;
  reply.plan = gang.plan->id;
  for (const Slot& slot : gang.plan->slots) {
    reply.places.push_back({slot.pod->facts.uid, slot.pod->facts.name, cluster_.node(slot.node).facts.name});
  }
  reply.reason = {ReasonCode::kPlanned, "room is reserved; confirm the plan"};
  size_t more = 0;
  for (const Pod* pod : gang.members[static_cast<size_t>(MemberState::kPending)]) {
    more += pod->submitted && pod->slot < 0 ? 1 : 0;
  }
  if (more > 0) absl::StrAppend(&reply.reason.text, "; ", more, " more, beyond the minimum, left to Filter and Permit");
  if (gang.submission->confirmed) {
    for (const Gang* mate : MatesOf(gang)) {
      if (mate->submission != nullptr && mate->submission->confirmed) continue;
      reply.reason.text = absl::StrCat("confirmed; gang ", mate->key, " of its group is not confirmed yet");
      break;
    }
  }
  out_->reply = std::move(reply);
}

absl::Status Machine::CheckSubmission(const SubmitGang& command) {
  if (submissions_.size() >= static_cast<size_t>(settings_.max_submissions)) {
    return absl::ResourceExhaustedError(absl::StrCat(submissions_.size(),
                                                     " submitted gangs wait or are planned, the limit is ",
                                                     settings_.max_submissions, "; confirm or abandon some"));
  }
  const std::string key = absl::StrCat(command.name_space, "/", command.name);
  const Gang* gang = FindGang(key);
  if (gang != nullptr && (gang->children() > 0 || !gang->objects.empty())) {
    return absl::AlreadyExistsError(absl::StrCat("gang ", key, " exists already; choose another name"));
  }
  const int32_t minimum = command.declaration.min_member.value_or(0);
  if (minimum < 1 || static_cast<size_t>(minimum) > command.pods.size()) {
    return absl::InvalidArgumentError(absl::StrCat("min_member: ", minimum, " of ", command.pods.size(),
                                                   " pods; expected 1 to ", command.pods.size()));
  }
  absl::flat_hash_set<absl::string_view> uids;
  for (const PodDescription& pod : command.pods) {
    if (pod.uid.empty() || pod.name.empty()) return absl::InvalidArgumentError("pods: uid and name must not be empty");
    if (!pod.invalid.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("pod ", pod.name, ": ", pod.invalid));
    }
    if (const auto amounts = cluster_.names().ToVector(pod.shape.requests); !amounts.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("pod ", pod.name, ": ", amounts.status().message()));
    }
    if (!uids.insert(pod.uid).second) {
      return absl::InvalidArgumentError(absl::StrCat("pod ", pod.name, ": uid ", pod.uid, " is given twice"));
    }
    if (pods_.contains(pod.uid)) {
      return absl::AlreadyExistsError(absl::StrCat("pod ", pod.name, ": uid ", pod.uid, " is known already"));
    }
  }
  return absl::OkStatus();
}

void Machine::On(const SubmitGang& command) {
  Gang* known = FindSubmission(command.id);
  const auto ended = finished_.find(command.id);
  if (known != nullptr || ended != finished_.end()) {
    const uint64_t before = known != nullptr ? known->submission->fingerprint : ended->second.fingerprint;
    if (before != command.fingerprint) {
      out_->status = absl::InvalidArgumentError(
          "request_id: was used for another submission; expected an id of its own for each gang");
      return;
    }
  }
  if (AnswerFinished(command.id)) return;
  if (known != nullptr) {
    if (known->plan == nullptr) ExtendSubmission(known);
    return AnswerSubmission(*known);
  }
  out_->status = CheckSubmission(command);
  if (!out_->status.ok()) return;
  Gang* gang = InternGang(command.name_space, command.name, now_ms_);
  gang->submission = std::make_unique<Submission>();
  gang->submission->id = command.id;
  gang->submission->ttl_ms = command.ttl_ms > 0 ? command.ttl_ms : settings_.submission_ttl_ms;
  gang->submission->fingerprint = command.fingerprint;
  submissions_[command.id] = gang->key;
  ExtendSubmission(gang);
  for (PodDescription pod : command.pods) {
    pod.name_space = command.name_space;
    pod.node_name.clear();
    pod.phase = PodPhase::kPending;
    pod.our_gate = pod.other_gates = pod.deleting = false;
    pod.created_ms = now_ms_;
    pod.gang = GangMembership();
    pod.gang.name = command.name;
    pod.gang.dialect = GangDialect::kApi;
    pod.gang.declares = true;
    pod.gang.declaration = command.declaration;
    submitting_ = true;
    On(UpsertPod{std::move(pod)});
    submitting_ = false;
  }
  // The answer should tell whether there is room: plan now, whoever is first in the queue first.
  SettleTouched();
  On(PlanRound{});
  SettleTouched();
  AnswerSubmission(*gang);
}

// Every slot gets its pod at once: nobody has to come and ask.
void Machine::AssignSlots(Gang* gang) {
  Plan* plan = gang->plan.get();
  plan->next_wake_ms = kNever;
  absl::btree_map<ClassId, std::vector<size_t>> open;
  for (size_t i = plan->slots.size(); i-- > 0;) open[plan->slots[i].cls].push_back(i);
  for (Pod* pod : gang->in(MemberState::kPending)) {
    const auto slots = open.find(pod->cls);
    if (slots == open.end() || slots->second.empty() || !Plannable(*pod)) continue;
    const size_t at = slots->second.back();
    slots->second.pop_back();
    plan->slots[at].state = SlotState::kOffered;
    plan->slots[at].pod = pod;
    pod->slot = static_cast<int32_t>(at);
  }
  ExtendSubmission(gang);
}

void Machine::ExtendSubmission(Gang* gang) {
  if (gang->submission == nullptr) return;
  gang->submission->confirmed = false;
  gang->submission->expires_ms = now_ms_ + gang->submission->ttl_ms;
  SettleTimer(gang);  // nothing that readers see has changed
}

void Machine::On(const AskGang& command) {
  if (AnswerFinished(command.id)) return;
  Gang* gang = FindSubmission(command.id);
  if (gang == nullptr) {
    out_->status = absl::NotFoundError(absl::StrCat("no submission ", command.id, " is known, or it was long ago"));
    return;
  }
  if (gang->plan == nullptr) ExtendSubmission(gang);
  AnswerSubmission(*gang);
}

void Machine::On(const ConfirmGang& command) {
  if (const auto ended = finished_.find(command.id); ended != finished_.end()) {
    if (ended->second.state == SubmissionReply::State::kConfirmed) {
      out_->reply = ended->second;
    } else {
      out_->status = absl::FailedPreconditionError(
          absl::StrCat("the submission is ", ToString(ended->second.state), ": ", ended->second.reason.text));
    }
    return;
  }
  Gang* gang = FindSubmission(command.id);
  if (gang == nullptr) {
    out_->status = absl::NotFoundError(absl::StrCat("no submission ", command.id, " is known, or it was long ago"));
    return;
  }
  if (gang->plan == nullptr) {
    out_->status = absl::FailedPreconditionError(
        absl::StrCat("gang ", gang->key, " has no plan to confirm: ", WaitReason(*gang).text));
    return;
  }
  if (gang->plan->id != command.plan) {
    out_->status = absl::FailedPreconditionError(absl::StrCat(
        "plan ", command.plan, " does not stand any more; the gang's plan is ", gang->plan->id, ": look at that one"));
    return;
  }
  const Group together = MatesOf(*gang);
  for (Gang* each : together) {
    Reason broken = VerifyPlan(*each);
    if (broken.none()) continue;
    WithdrawPlan(each, broken.code, broken.text);
    out_->status = absl::FailedPreconditionError(absl::StrCat("the plan was withdrawn: ", broken.text));
    return;
  }
  gang->submission->confirmed = true;
  // D-10: a group starts when the plan of each of its gangs is confirmed.
  for (const Gang* each : together) {
    if (each->submission == nullptr || !each->submission->confirmed) return AnswerSubmission(*gang);
  }
  for (Gang* each : together) BindPlan(each);
  out_->reply = finished_.find(command.id)->second;
}

// The caller starts the pods: they have their nodes from now on.
void Machine::BindPlan(Gang* gang) {
  SubmissionReply reply;
  reply.state = SubmissionReply::State::kConfirmed;
  reply.plan = gang->plan->id;
  std::vector<std::pair<Pod*, NodeId>> placed;
  for (const Slot& slot : gang->plan->slots) {
    ReleaseSlotCharge(gang, slot, /*gained=*/false);
    SetCharge(slot.pod, slot.node, ChargeKind::kUsed);
    slot.pod->slot = -1;
    placed.emplace_back(slot.pod, slot.node);
    reply.places.push_back({slot.pod->facts.uid, slot.pod->facts.name, cluster_.node(slot.node).facts.name});
  }
  gang->plan.reset();
  gang->satisfied = true;
  gang->requeues = 0;
  gang->root_cause.clear();
  FinishSubmission(gang, std::move(reply));
  for (const auto& [pod, node] : placed) {
    pod->facts.node_name = cluster_.node(node).facts.name;
    pod->permitted = true;
    FollowFacts(pod, MemberState::kBound);
  }
}

void Machine::On(const AbandonGang& command) {
  if (const auto ended = finished_.find(command.id); ended != finished_.end()) {
    if (ended->second.state != SubmissionReply::State::kConfirmed) {
      out_->reply = ended->second;
    } else {
      out_->status = absl::FailedPreconditionError(
          "the gang is confirmed and its pods are bound; remove the pods to give their places back");
    }
    return;
  }
  Gang* gang = FindSubmission(command.id);
  if (gang == nullptr) {
    out_->status = absl::NotFoundError(absl::StrCat("no submission ", command.id, " is known, or it was long ago"));
    return;
  }
  DropSubmission(gang, SubmissionReply::State::kAbandoned, {ReasonCode::kGone, "its caller abandoned it"});
  out_->reply = finished_.find(command.id)->second;
}

void Machine::DropSubmission(Gang* gang, SubmissionReply::State state, Reason reason) {
  if (gang->plan != nullptr) WithdrawPlan(gang, reason.code, reason.text);
  std::vector<std::string> uids;
  for (const MemberSet& set : gang->members) {
    for (const Pod* pod : set) {
      if (!pod->submitted) continue;
      if (uids.empty() && state == SubmissionReply::State::kExpired) {
        out_->effects.emplace_back(TellPod{RefOf(*pod), /*warning=*/true, reason});
      }
      uids.push_back(pod->facts.uid);
    }
  }
  SubmissionReply reply;
  reply.state = state;
  reply.reason = std::move(reason);
  FinishSubmission(gang, std::move(reply));
  for (const std::string& uid : uids) On(RemovePod{uid});
  if (gang->children() > 0) Redeclare(gang);  // pods that named it on their own stay
}

// What is left of the gang is driven by the verbs from now on.
void Machine::FinishSubmission(Gang* gang, SubmissionReply reply) {
  const std::string id = gang->submission->id;
  reply.fingerprint = gang->submission->fingerprint;
  gang->submission.reset();
  submissions_.erase(id);
  for (const MemberSet& set : std::vector<MemberSet>(gang->members.begin(), gang->members.end())) {
    for (Pod* pod : set) {
      LeaveSet(pod);
      pod->submitted = pod->stranger = false;
      JudgePod(pod);
      EnterSet(pod);
    }
  }
  reply.gang = gang->key;
  finished_[id] = std::move(reply);
  finished_order_.push_back(id);
  if (finished_order_.size() > kMaxFinished) {
    finished_.erase(finished_order_.front());
    finished_order_.pop_front();
  }
  Touch(gang);
}

}  // namespace muster
