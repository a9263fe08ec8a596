#include "state/frontends/submissions_frontend.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "state/base/problem.h"
#include "state/binding/activations.h"
#include "state/binding/bindings.h"
#include "state/binding/plan_lifecycle.h"
#include "state/reservations/submissions.h"
#include "state/views/reader.h"
#include "state/views/wait_reasons.h"

namespace muster {
namespace {

absl::Status NotKnown(const std::string& id) {
  return absl::NotFoundError(absl::StrCat("no submission ", id, " is known, or it ended too long ago"));
}

// InvalidArgument: more is requested in total than can be counted.
absl::Status CheckSum(const std::vector<PodDescription>& pods) {
  if (pods.size() <= static_cast<size_t>(std::numeric_limits<int64_t>::max() / kMaxAmount)) return absl::OkStatus();
  ResourceList sum;
  for (const PodDescription& pod : pods) {
    for (const auto& [name, amount] : pod.shape->requests) {
      const std::optional<int64_t> more = CheckedAdd(sum[name], amount);
      if (!more.has_value()) {
        return InvalidArgument({{Subject::kField, "pods",
                                 absl::StrCat("together they ask for more ", name,
                                              " than can be counted; expected less than 2^63 base units")}});
      }
      sum[name] = *more;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> SubmissionsFrontend::ReplyIfKnown(const SubmitGang& command, ApplyContext* ctx) {
  const SubmissionReply* ended = r_.submissions->FindFinished(command.id);
  const Gang* open = r_.submissions->Find(command.id);
  if (ended == nullptr && open == nullptr) return false;
  if ((ended != nullptr ? ended->fingerprint : r_.submissions->Of(*open)->fingerprint) != command.fingerprint) {
    return InvalidArgument(
        {{Subject::kField, "request_id", "was used for another submission; expected a different id for each gang"}});
  }
  if (ended != nullptr) {
    ctx->ReplyWhenDurable(*ended);
    return true;
  }
  r_.submissions->OnQueried(*open, r_.plans->Of(*open) != nullptr, ctx->now_ms());
  ctx->ReplyWhenDurable(ConfirmIfAsked(*open, command, ctx));
  return true;
}

SubmissionReply SubmissionsFrontend::ConfirmIfAsked(const Gang& gang, const SubmitGang& command, ApplyContext* ctx) {
  if (command.confirm && r_.plans->Of(gang) != nullptr) {
    if (absl::StatusOr<SubmissionReply> confirmed = Confirm(gang, ctx); confirmed.ok()) return *std::move(confirmed);
  }
  return r_.reader->View(gang);
}

absl::Status SubmissionsFrontend::Check(const SubmitGang& command) const {
  if (r_.submissions->size() >= static_cast<size_t>(settings_.max_submissions)) {
    return absl::ResourceExhaustedError(absl::StrCat(r_.submissions->size(),
                                                     " submitted gangs wait or are planned, the limit is ",
                                                     settings_.max_submissions, "; confirm or abandon some"));
  }
  const std::string key = absl::StrCat(command.name_space, "/", command.name);
  const Gang* gang = r_.gangs->FindGang(key);
  if (gang != nullptr && (gang->children() > 0 || !gang->objects.empty())) {
    return absl::AlreadyExistsError(absl::StrCat("gang ", key, " exists already; choose another name"));
  }
  const std::vector<SubgroupDeclaration>& subgroups = command.declaration->subgroups;
  const SubgroupParseResult tree = ParseSubgroups(subgroups, command.declaration->min_member);
  if (!tree.problem.empty()) return InvalidArgument({{Subject::kField, "subgroups", tree.problem}});
  const int64_t minimum = subgroups.empty() ? command.declaration->min_member.value_or(0) : tree.tree.Least();
  if (minimum < 1 || static_cast<size_t>(minimum) > command.pods.size()) {
    return InvalidArgument(
        {{Subject::kField, "min_member",
          absl::StrCat(minimum, " of ", command.pods.size(), " pods; expected 1 to ", command.pods.size())}});
  }
  absl::flat_hash_set<absl::string_view> uids;
  for (const PodDescription& pod : command.pods) {
    if (pod.uid.empty() || pod.name.empty()) {
      return InvalidArgument({{Subject::kField, "pods", "uid and name must not be empty"}});
    }
    const auto invalid = [&pod](const auto&... why) {
      return InvalidArgument({{Subject::kPod, pod.uid, absl::StrCat("pod ", pod.name, ": ", why...)}});
    };
    if (!pod.invalid.empty()) return invalid(pod.invalid);
    if (const absl::Status amounts = CheckAmounts(pod.shape->requests); !amounts.ok()) {
      return invalid(amounts.message());
    }
    if (!uids.insert(pod.uid).second) return invalid("uid ", pod.uid, " is given twice");
    if (!subgroups.empty() && tree.tree.FindLeaf(pod.gang.subgroup) < 0) {
      return invalid("subgroup \"", pod.gang.subgroup, "\" is not in the gang, or has children");
    }
    if (r_.gangs->FindPod(pod.uid) != nullptr) {
      return absl::AlreadyExistsError(absl::StrCat("pod ", pod.name, ": uid ", pod.uid, " is known already"));
    }
  }
  return CheckSum(command.pods);
}

void SubmissionsFrontend::Open(const Gang& gang, const SubmitGang& command, int64_t now_ms) {
  r_.submissions->Open(gang, command.id, command.ttl_ms > 0 ? command.ttl_ms : settings_.ttl_ms, command.fingerprint);
  r_.submissions->OnQueried(gang, /*planned=*/false, now_ms);
}

std::vector<PodDescription> SubmissionsFrontend::Pods(const SubmitGang& command, int64_t now_ms) {
  std::vector<PodDescription> pods = command.pods;
  for (PodDescription& pod : pods) {
    pod.name_space = command.name_space;
    pod.node_name.clear();
    pod.phase = PodPhase::kPending;
    pod.our_gate = pod.other_gates = pod.deleting = false;
    pod.created_ms = now_ms;
    pod.gang = {.name = command.name,
                .dialect = GangDialect::kApi,
                .declares = true,
                .subgroup = pod.gang.subgroup,
                .declaration = command.declaration};
  }
  return pods;
}

absl::StatusOr<SubmissionReply> SubmissionsFrontend::OnQuery(const std::string& id, int64_t now_ms) {
  if (const SubmissionReply* ended = r_.submissions->FindFinished(id); ended != nullptr) return *ended;
  const Gang* gang = r_.submissions->Find(id);
  if (gang == nullptr) return NotKnown(id);
  r_.submissions->OnQueried(*gang, r_.plans->Of(*gang) != nullptr, now_ms);
  return r_.reader->View(*gang);
}

absl::StatusOr<SubmissionReply> SubmissionsFrontend::OnConfirm(const ConfirmGang& command, ApplyContext* ctx) {
  if (const SubmissionReply* ended = r_.submissions->FindFinished(command.id); ended != nullptr) {
    if (ended->state == SubmissionReply::State::kConfirmed) return *ended;
    return absl::FailedPreconditionError(
        absl::StrCat("the submission is ", ToString(ended->state), ": ", ended->reason.text));
  }
  const Gang* gang = r_.submissions->Find(command.id);
  if (gang == nullptr) return NotKnown(command.id);
  const Plan* plan = r_.plans->Of(*gang);
  if (plan == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("gang ", gang->key, " has no plan to confirm: ", r_.reasons->Of(*gang, ctx->now_ms()).text));
  }
  if (plan->id != command.plan) {
    return absl::FailedPreconditionError(absl::StrCat(
        "plan ", command.plan, " is no longer current; the gang's plan is ", plan->id, ": check that plan"));
  }
  return Confirm(*gang, ctx);
}

absl::StatusOr<SubmissionReply> SubmissionsFrontend::Confirm(const Gang& gang, ApplyContext* ctx) {
  const std::string id = r_.submissions->Of(gang)->id;
  const Group together = r_.plans->PeersOf(gang);
  for (const Gang* each : together) {
    const Reason broken = r_.bindings->VerifyPlan(*each, ctx->now_ms());
    if (broken.none()) continue;
    r_.plan_lifecycle->Withdraw(*each, broken.code, broken.text, ctx);
    return absl::FailedPreconditionError(absl::StrCat("the plan was withdrawn: ", broken.text));
  }
  r_.submissions->MarkConfirmed(gang);
  // D-10: a group starts when the plan of each of its gangs is confirmed.
  for (const Gang* each : together) {
    const Submission* its = r_.submissions->Of(*each);
    if (its == nullptr || !its->confirmed) return r_.reader->View(gang);
  }
  SubmissionReply answer;
  for (const Gang* each : together) {
    BindPlan(*each, ctx);
    if (each == &gang)
      answer = *r_.submissions->FindFinished(id);  // the next Finish may evict it from the finished ones
  }
  return answer;
}

// Assigns the pods to the nodes of the plan; the caller starts them.
void SubmissionsFrontend::BindPlan(const Gang& gang, ApplyContext* ctx) {
  SubmissionReply reply;
  reply.state = SubmissionReply::State::kConfirmed;
  reply.plan = r_.plans->Of(gang)->id;
  const std::vector<Slot> slots = r_.plans->ReleaseAll(gang);
  for (const Slot& slot : slots) {
    r_.ledger->ReleaseSlot(gang.id, slot.node, slot.cls, /*gained=*/false);
    r_.ledger->ChargePod(slot.pod->id, slot.node, slot.cls, ChargeKind::kUsed);
    reply.places.push_back({slot.pod->facts.uid, slot.pod->facts.name, r_.cluster->node(slot.node).facts.name});
  }
  r_.plan_lifecycle->OnQuorumStarted(gang);
  r_.bindings->OnFullyBound(gang);
  r_.submissions->Finish(gang, std::move(reply));
  for (const Slot& slot : slots) {
    r_.gangs->SetNode(*slot.pod, r_.cluster->node(slot.node).facts.name);
    r_.pod_lifecycle->MarkPermitted(*slot.pod);
    r_.bindings->OnStateChanged(*slot.pod, MemberState::kBound, ctx);
  }
}

absl::StatusOr<const SubmissionReply*> SubmissionsFrontend::CheckAbandon(const std::string& id) const {
  const SubmissionReply* ended = r_.submissions->FindFinished(id);
  if (ended == nullptr && r_.submissions->Find(id) == nullptr) return NotKnown(id);
  if (ended == nullptr || ended->state != SubmissionReply::State::kConfirmed) return ended;
  return absl::FailedPreconditionError(
      "the gang is confirmed and its pods are bound; delete the pods to release their nodes");
}

std::vector<std::string> SubmissionsFrontend::EndUnconfirmed(const Gang& gang, SubmissionReply::State state,
                                                             Reason reason, ApplyContext* ctx) {
  if (r_.plans->Of(gang) != nullptr) r_.plan_lifecycle->Withdraw(gang, reason.code, reason.text, ctx);
  std::vector<std::string> uids;
  for (const Pod* pod : gang.AllMembers()) {
    // A pod that has a node was started independently of the plan: it stays.
    if (!pod->submitted || !pod->facts.node_name.empty()) continue;
    if (uids.empty() && state == SubmissionReply::State::kExpired) {
      ctx->EmitEffect(EmitPodEvent{RefOf(*pod), /*warning=*/true, reason});
    }
    uids.push_back(pod->facts.uid);
  }
  SubmissionReply reply;
  reply.state = state;
  reply.reason = std::move(reason);
  r_.submissions->Finish(gang, std::move(reply));
  return uids;
}

}  // namespace muster
