// Permit for callers of the framework verbs: a pod has a node; may it start? (SPEC G-4, G-5, G-7, G-8)
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

constexpr size_t kMaxActivated = 10'000;

PermitReply Permitted() { return PermitReply{PermitReply::Kind::kPermit, 0, {}, {}}; }

}  // namespace

void Machine::On(const Permit& command) {
  const auto reject = [&](ReasonCode code, std::string text) {
    out_->reply = PermitReply{PermitReply::Kind::kReject, 0, {code, std::move(text)}, {}};
  };
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) return reject(ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", command.uid));
  Pod* pod = found->second.get();
  Gang* gang = pod->gang;
  if (PermitAgain(*pod, command.node)) {
    out_->reply = Permitted();
    return;
  }
  if (!facts_read_) return reject(ReasonCode::kStarting, "Muster is still reading the cluster");
  if (Reason own = PodReason(*pod); !own.none()) return reject(own.code, own.text);
  if (gang != nullptr && gang->submission != nullptr) {
    return reject(ReasonCode::kPlanned, "the gang was submitted as a whole: confirm its plan instead");
  }
  if (gang != nullptr && gang->rules.min_member != 0) {
    Reason whole = StructureReason(*gang);
    if (whole.none()) whole = GroupReason(*gang);
    if (!whole.none()) return reject(whole.code, absl::StrCat("gang ", gang->key, ": ", whole.text));
  }
  if (pod->state != MemberState::kPending && pod->state != MemberState::kWaiting) {
    return reject(ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " is ", ToString(pod->state), " already"));
  }
  const NodeId node = cluster_.FindNode(command.node);
  if (node == kNoNode || !cluster_.node(node).present) {
    return reject(ReasonCode::kNoRoom, absl::StrCat("there is no node ", command.node));
  }
  if (pod->state == MemberState::kWaiting && pod->hold_node != node) {
    return reject(ReasonCode::kBarrier,
                  absl::StrCat("pod ", pod->facts.name, " waits with node ", cluster_.node(pod->hold_node).facts.name,
                               "; end that call before another node is asked for"));
  }
  pod->bind_within_ms = command.bind_within_ms > 0 ? command.bind_within_ms : settings_.bind_within_ms;
  const bool by_plan = pod->slot >= 0 || (gang != nullptr && gang->plan != nullptr && !PassesOneByOne(*gang));
  if (by_plan) return PermitSlot(pod, node, command);
  if (pod->state == MemberState::kPending) {
    if (pod->charge_kind == ChargeKind::kReserved) ClearCharge(pod, /*gained=*/true);  // what it was nominated for
    if (cluster_.Room(node, pod->cls, 1) == 0) {
      ChargeNominated();
      return reject(ReasonCode::kNoRoom, absl::StrCat("node ", command.node, " has no room for pod ", pod->facts.name));
    }
    SetCharge(pod, node, ChargeKind::kUsed);
    ReverifyNode(node);
    pod->hold_node = node;
    pod->hold_obstacle = cluster_.FindObstacle(node, pod->cls);
  }
  if (gang == nullptr || gang->rules.min_member == 0) {
    PermitPod(pod);
    out_->reply = Permitted();
    return;
  }
  const bool entered = pod->state == MemberState::kPending;
  if (entered) {
    SetState(pod, MemberState::kWaiting);
    gang->holding_by_plan = false;
    StartHolding(gang);
  }
  pod->holds.push_back(command.token);
  // Once satisfied, a once-satisfied gang holds nobody (G-8), and no gang holds a pod twice (G-7).
  const bool once = gang->rules.match_policy == MatchPolicy::kOnceSatisfied;
  const bool alone = gang->satisfied && (once || pod->permitted);
  if (alone) {
    PermitPod(pod);
  } else if (QuorumStands(gang)) {
    PermitGroup(gang);
  }
  if (pod->state == MemberState::kCommitted) {
    AnswerByReply(command.token);
    out_->reply = Permitted();
    return;
  }
  if (pod->state == MemberState::kPending) {
    AnswerByReply(command.token);
    return reject(ReasonCode::kWithdrawn,
                  absl::StrCat("node ", command.node, " can no longer take pod ", pod->facts.name));
  }
  const int64_t left = gang->holding_since_ms + gang->rules.wait_time_ms - gang->held_ms - now_ms_;
  PermitReply reply{PermitReply::Kind::kWait, std::max<int64_t>(0, left), BarrierReason(*gang), {}};
  if (entered) reply.activate = OthersToTry(*gang);
  out_->reply = std::move(reply);
}

// The call ends with its reply: it is not told a second time.
void Machine::AnswerByReply(HoldToken token) {
  std::vector<HoldAnswer>& answers = out_->answers;
  answers.erase(std::remove_if(answers.begin(), answers.end(), [&](const HoldAnswer& a) { return a.token == token; }),
                answers.end());
}

// A call that was answered with PERMIT and is made again gets the same answer.
bool Machine::PermitAgain(const Pod& pod, const std::string& node) {
  if (pod.state == MemberState::kCommitted && pod.bind_by_ms != kNever) {
    return pod.hold_node == cluster_.FindNode(node);
  }
  const bool bound = pod.state == MemberState::kBound || pod.state == MemberState::kRunning;
  return bound && pod.permitted && pod.facts.node_name == node;
}

// The gang is placed by Muster: the pod takes a place of the plan and meets the others at the barrier.
void Machine::PermitSlot(Pod* pod, NodeId node, const Permit& command) {
  Gang* gang = pod->gang;
  std::vector<Slot>& slots = gang->plan->slots;
  const auto reject = [&](ReasonCode code, std::string text) {
    out_->reply = PermitReply{PermitReply::Kind::kReject, 0, {code, std::move(text)}, {}};
  };
  if (pod->slot >= 0 && slots[static_cast<size_t>(pod->slot)].node != node) {
    return reject(ReasonCode::kWithdrawn,
                  absl::StrCat("the pod's place is on node ",
                               cluster_.node(slots[static_cast<size_t>(pod->slot)].node).facts.name, " now"));
  }
  if (pod->slot < 0) {
    const auto open = std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) {
      return slot.state == SlotState::kFree && slot.cls == pod->cls && slot.node == node;
    });
    if (open == slots.end()) {
      return reject(ReasonCode::kSlotsTaken,
                    absl::StrCat("the gang is placed as a whole and has no place for the pod on node ", command.node,
                                 "; ask Filter"));
    }
    open->state = SlotState::kOffered;
    open->pod = pod;
    pod->slot = static_cast<int32_t>(open - slots.begin());
  }
  if (pod->state == MemberState::kWaiting) {
    pod->holds.push_back(command.token);
  } else {
    pod->by_permit = true;
    HoldMember(pod, node, command.token);
  }
  if (pod->state != MemberState::kWaiting) AnswerByReply(command.token);
  if (pod->state == MemberState::kCommitted) {
    out_->reply = Permitted();
    return;
  }
  if (pod->state != MemberState::kWaiting) {  // the plan did not stand the last look before the commit
    return reject(ReasonCode::kWithdrawn, absl::StrCat("gang ", gang->key, ": the plan was withdrawn"));
  }
  const int64_t held_ms = gang->held_ms + now_ms_ - gang->holding_since_ms;
  PermitReply reply{
      PermitReply::Kind::kWait, std::max<int64_t>(0, gang->rules.wait_time_ms - held_ms), WaitReason(*gang), {}};
  if (gang->plan->held == 1) reply.activate = OthersToTry(*gang);
  out_->reply = std::move(reply);
}

// G-4: the first of a gang group at the barrier says who should come next; later ones say nothing.
std::vector<std::string> Machine::OthersToTry(const Gang& gang) const {
  const Group group = GroupOf(gang);
  int32_t waiting = 0;
  for (const Gang* each : group) waiting += each->count(MemberState::kWaiting);
  std::vector<std::string> out;
  if (waiting != 1) return out;
  for (Gang* each : group) {
    for (const Pod* pod : each->in(MemberState::kPending)) {
      if (out.size() >= kMaxActivated) return out;
      if (!pod->facts.other_gates) out.push_back(pod->facts.uid);
    }
  }
  return out;
}

// G-4: every waiting pod is permitted, and the gang is satisfied. REQUIRES: the quorum of its group.
void Machine::PermitWaiting(Gang* gang) {
  const MemberSet waiting = gang->in(MemberState::kWaiting);
  gang->satisfied = true;
  gang->holding_since_ms = kNever;
  gang->held_ms = 0;
  gang->requeues = 0;
  gang->root_cause.clear();
  for (Pod* pod : waiting) PermitPod(pod);
  Touch(gang);
}

// Whether the quorum is there, and every waiting member's node is still one that it may use (K-4); members of which
// that is not so go back.
bool Machine::QuorumStands(Gang* gang) {
  if (!GroupQuorum(*gang)) return false;
  for (Gang* each : GroupOf(*gang)) {
    if (each->plan != nullptr) continue;
    const MemberSet waiting = each->in(MemberState::kWaiting);
    for (Pod* pod : waiting) {
      const Obstacle now = cluster_.FindObstacle(pod->hold_node, pod->cls);
      if (now == Obstacle::kNone || now == pod->hold_obstacle) continue;
      const std::string node = cluster_.node(pod->hold_node).facts.name;
      EndPodHold(pod, {ReasonCode::kWithdrawn,
                       absl::StrCat("node ", node, " can no longer take the pod: ", ObstaclePhrase(now))});
    }
  }
  return GroupQuorum(*gang);
}

void Machine::PermitGroup(Gang* gang) {
  for (Gang* each : GroupOf(*gang)) {
    if (each->plan == nullptr) PermitWaiting(each);  // whoever holds a plan is committed with it
  }
}

// Its caller binds it, and says so with PostBind.
void Machine::PermitPod(Pod* pod) {
  pod->permitted = true;
  nominated_.erase(pod->facts.uid);
  guarded_.erase(pod->facts.uid);
  pod->binding = Binding();
  SetState(pod, MemberState::kCommitted);
  pod->bind_by_ms = now_ms_ + pod->bind_within_ms;
  SettlePodTimer(pod);
  AnswerHolds(pod, true, {});
}

// A permitted pod goes back: its caller gave it up, or was not heard of any more.
void Machine::EndPermit(Pod* pod) {
  AnswerHolds(pod, false, {ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " gave its node back")});
  FreeSlot(pod);
  ClearCharge(pod, /*gained=*/true);
  SetState(pod, MemberState::kPending);
  SettlePodTimer(pod);
}

}  // namespace muster
