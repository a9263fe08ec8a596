// For callers that drive pods one by one: schedule cycles, a pod that found no node, a place given back, a pod bound
// (SPEC G-2, G-3, G-7). On the Kubernetes path the whole-gang plan takes the place of cycles.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/machine/machine.h"

namespace muster {

// G-2, Strict only: whether the pod may try in this cycle. Whoever asks has had its turn, refused or not.
Reason Machine::TakeTurn(Pod* pod) {
  Gang* gang = pod->gang;
  const bool passes = gang->satisfied && gang->rules.match_policy == MatchPolicy::kOnceSatisfied;
  if (gang->rules.mode != GangMode::kStrict || passes || pod->state != MemberState::kPending) return {};
  const bool had_turn = pod->round >= gang->cycle;
  Reason reason;
  if (!gang->cycle_valid || had_turn) {
    std::string text = gang->cycle_valid ? absl::StrCat("the pod had its turn in schedule cycle ", gang->cycle)
                                         : absl::StrCat("schedule cycle ", gang->cycle, " is invalid");
    absl::StrAppend(&text, "; the next begins when every member had its turn");
    if (!gang->root_cause.empty()) absl::StrAppend(&text, "; ", gang->root_cause);
    reason = {ReasonCode::kScheduleCycle, std::move(text)};
  }
  HadTurn(pod);
  AdvanceCycle(gang);
  return reason;
}

void Machine::HadTurn(Pod* pod) {
  Gang* gang = pod->gang;
  gang->cycles_used = true;
  if (pod->round >= gang->cycle) return;
  LeaveSet(pod);
  pod->round = gang->cycle;
  EnterSet(pod);
  Touch(gang);
}

// The cycle ends when every member that can have a turn had it: as many as the total says, or as there are.
void Machine::AdvanceCycle(Gang* gang) {
  const int32_t able = gang->count(MemberState::kPending) - gang->gated + gang->count(MemberState::kWaiting);
  const int32_t needed = std::min(std::max(gang->rules.total_number, gang->rules.min_member), able);
  if (needed <= 0 || gang->turned < needed) return;
  ++gang->cycle;
  gang->cycle_valid = true;
  gang->turned = 0;
  Touch(gang);
}

// Everybody who waits in the group goes back; nobody's reservation is left (G-3, G-7).
void Machine::ReleaseGroup(Gang* gang, const Reason& reason) {
  for (Gang* each : GroupOf(*gang)) {
    const MemberSet waiting = each->in(MemberState::kWaiting);
    for (Pod* pod : waiting) EndPodHold(pod, reason);
    if (each != gang && each->root_cause.empty()) each->root_cause = gang->root_cause;
    Touch(each);
  }
}

void Machine::On(const PostFilter& command) {
  Pod* pod = NamedPod(command.uid);
  if (pod == nullptr) return;
  Gang* gang = pod->gang;
  if (gang == nullptr || gang->rules.mode == GangMode::kNonStrict) return;
  if (gang->satisfied && gang->rules.match_policy == MatchPolicy::kOnceSatisfied) return;
  const Group group = GroupOf(*gang);
  for (Gang* each : group) {
    each->root_cause = absl::StrCat("no node was found for member ", pod->facts.name,
                                    each == gang ? "" : absl::StrCat(" of gang ", gang->key),
                                    command.message.empty() ? "" : ": ", command.message);
  }
  ReleaseGroup(gang,
               Reason{ReasonCode::kMemberUnschedulable, absl::StrCat("gang ", gang->key, ": ", gang->root_cause)});
  for (Gang* each : group) each->cycle_valid = false;
  if (pod->state == MemberState::kPending) HadTurn(pod);
  for (Gang* each : group) {
    each->cycles_used = true;
    AdvanceCycle(each);
  }
}

void Machine::On(const Unreserve& command) {
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) return;  // deleted: its place went with it
  Pod* pod = found->second.get();
  Gang* gang = pod->gang;
  if (pod->state == MemberState::kBound || pod->state == MemberState::kRunning) return;  // never undone by this call
  // A pod whose binding is ours is bound whatever its caller does (K-4).
  if (pod->state == MemberState::kCommitted && pod->binding.phase == BindingPhase::kPending) return;
  const Reason reason{ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " gave its place back")};
  // Members report one timeout one by one, often after their calls have ended: it counts once.
  bool holds_something = false;
  if (gang != nullptr) {
    for (const Gang* each : GroupOf(*gang)) {
      holds_something = holds_something || each->plan != nullptr || each->count(MemberState::kWaiting) > 0;
    }
  }
  if (pod->state == MemberState::kCommitted) EndPermit(pod);
  EndPodHold(pod, reason);
  if (gang == nullptr || gang->satisfied) return;
  if (command.cause == UnreserveCause::kPermitTimeout) {
    const bool told_before = gang->timed_out || gang->retry_at_ms > now_ms_;
    if (holds_something || !told_before) ExpireWait(gang);
    Touch(gang);
    return;
  }
  if (gang->rules.mode == GangMode::kNonStrict) return;
  gang->root_cause =
      absl::StrCat("member ", pod->facts.name,
                   command.cause == UnreserveCause::kBindFailed ? " could not be bound" : " was rejected");
  ReleaseGroup(gang, Reason{ReasonCode::kWithdrawn, absl::StrCat("gang ", gang->key, ": ", gang->root_cause)});
}

void Machine::On(const PostBind& command) {
  Pod* pod = NamedPod(command.uid);
  if (pod == nullptr) return;
  if (command.node.empty()) {
    out_->status = absl::InvalidArgumentError("node: is empty; expected the name of the node that the pod is bound to");
    return;
  }
  if (!pod->facts.node_name.empty()) {
    if (pod->facts.node_name == command.node) return;
    out_->status = absl::FailedPreconditionError(
        absl::StrCat("pod ", pod->facts.name, " is bound to node ", pod->facts.node_name, " already"));
    return;
  }
  const bool permitted = pod->state == MemberState::kCommitted && pod->hold_node == cluster_.FindNode(command.node);
  if (!permitted) {
    // Somebody who binds without asking, elsewhere, or too late, may have put two pods where one fits.
    out_->status = absl::FailedPreconditionError(
        absl::StrCat("pod ", pod->facts.name, " is ", ToString(pod->state), " and not permitted on node ", command.node,
                     " (any more); take it down, or tell where it is as a fact"));
    return;
  }
  pod->facts.node_name = command.node;
  FollowFacts(pod, MemberState::kBound);
}

}  // namespace muster
