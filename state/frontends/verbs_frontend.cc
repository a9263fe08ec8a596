#include "state/frontends/verbs_frontend.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/problem.h"
#include "state/binding/bindings.h"
#include "state/binding/plan_lifecycle.h"
#include "state/binding/pod_lifecycle.h"
#include "state/cluster/class_index.h"
#include "state/cluster/topology.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"
#include "state/reservations/domains.h"
#include "state/reservations/plans.h"

namespace muster {
namespace {

// The turn of a member that passed PreFilter ends after this time: its caller is gone.
constexpr int64_t kTurnMs = 30'000;

// Why the pod has no turn in its gang's schedule cycle; none: it has one.
Reason TurnReason(const Pod& pod, int64_t now_ms) {
  const Gang& gang = *pod.gang;
  const bool valid = gang.durable.cycle_valid;
  const bool under_way = pod.passed_ms != kNever;
  const bool has_turn = pod.last_cycle < gang.durable.cycle || (under_way && now_ms - pod.passed_ms >= kTurnMs);
  if (valid && has_turn) return {};
  std::string text = valid ? absl::StrCat("the pod had its turn in schedule cycle ", gang.durable.cycle)
                           : absl::StrCat("schedule cycle ", gang.durable.cycle, " is invalid");
  absl::StrAppend(&text, "; the next begins when every member had its turn");
  if (valid && under_way) {
    absl::StrAppend(&text, ", and a turn without Permit or PostFilter ends after ", kTurnMs / 1000, " s");
  }
  if (!gang.root_cause.empty()) absl::StrAppend(&text, "; ", gang.root_cause);
  return {ReasonCode::kScheduleCycle, std::move(text)};
}

// Why the pod cannot use the node now; none: it can.
Reason Refusal(const NodeSearchRooms& r, NodeId node, const Pod& pod) {
  if (node == kNoNode || !r.cluster->node(node).present) return {ReasonCode::kNoRoom, "there is no such node"};
  if (const Obstacle obstacle = r.cluster->FindObstacle(node, pod.cls); obstacle != Obstacle::kNone) {
    return {ReasonCode::kNoRoom, std::string(ObstaclePhrase(obstacle))};
  }
  if (pod.gang != nullptr && !r.domains->For(*pod.gang, pod.leaf).Has(node)) {
    return {ReasonCode::kNoRoom, "it is outside the domain that the gang requires"};
  }
  if (r.cluster->HasRoom(node, pod.cls)) return {};
  const Node& at = r.cluster->node(node);
  const ResourceVector& request = r.cluster->pod_class(pod.cls).request;
  const ResourceId lacking = request.FirstInsufficient(at.free);
  if (lacking < 0) {
    const HostPort* port = r.cluster->FindTakenPort(node, pod.cls);
    return {ReasonCode::kNoRoom, port == nullptr ? r.cluster->pod_affinity().Obstacle(node, pod.cls)
                                                 : absl::StrCat("host port taken (", ToString(*port), ")")};
  }
  const std::string& name = r.cluster->names().Name(lacking);
  if (request.Get(lacking) <= at.free.Get(lacking) + at.reserved.Get(lacking)) {
    return {ReasonCode::kGuarded, absl::StrCat("its free ", name, " is promised to a gang")};
  }
  return {ReasonCode::kNoRoom, absl::StrCat("insufficient ", name)};
}

// The feasible nodes while every waiting gang keeps its nodes.
NodesReply FindFreeNodes(const NodeSearchRooms& r, const Pod& pod, const std::vector<std::string>& offered) {
  NodesReply reply;
  reply.reason = r.queues->Check(pod);
  if (!reply.reason.none()) return reply;
  if (offered.empty()) {
    const Region region = pod.gang == nullptr ? Region() : r.domains->For(*pod.gang, pod.leaf);
    for (const ClassIndex::Entry& entry : r.index->Best(pod.cls)) {
      if (!region.Has(entry.node)) continue;
      reply.nodes.push_back({r.cluster->node(entry.node).facts.name, -entry.negative_score});
    }
  }
  for (const std::string& name : offered) {
    const NodeId node = r.cluster->FindNode(name);
    Reason refusal = Refusal(r, node, pod);
    if (refusal.none()) {
      reply.nodes.push_back({name, r.cluster->BinpackScore(node, pod.cls)});
    } else {
      reply.refused.push_back({name, std::move(refusal)});
    }
  }
  if (!offered.empty()) {
    std::sort(reply.nodes.begin(), reply.nodes.end(), [](const NodesReply::Scored& a, const NodesReply::Scored& b) {
      return a.score != b.score ? a.score > b.score : a.node < b.node;
    });
  }
  // Scores are reported as non-negative; nodes that would have a negative score keep their position in the order.
  for (NodesReply::Scored& node : reply.nodes) node.score = std::max(0, node.score);
  if (reply.nodes.empty()) reply.reason = {ReasonCode::kNoRoom, ExplainNoNode(pod, *r.cluster, *r.domains).text};
  return reply;
}

}  // namespace

// G-2, mode Strict only: begins the pod's turn in this cycle, or returns why it has none. A refused attempt uses up the
// turn as well.
Reason VerbsFrontend::TryBeginTurn(const Pod& pod, int64_t now_ms) {
  const Gang& gang = *pod.gang;
  const bool cycles =
      gang.rules.mode == GangMode::kStrict && gang.rules.min_member > 0 && !gang.once_satisfied();  // D-8
  if (!cycles || pod.state != MemberState::kPending) return {};
  Reason reason = TurnReason(pod, now_ms);
  r_.gangs->MarkCycleAttempt(pod);
  if (reason.none()) r_.gangs->MarkPreFilterPassed(pod, now_ms);
  r_.gangs->AdvanceCycle(gang);
  return reason;
}

// G-1.
PreFilterReply VerbsFrontend::OnPreFilter(const PreFilter& question, int64_t now_ms) {
  const Pod* pod = r_.gangs->FindPod(question.uid);
  if (pod == nullptr) return {false, {ReasonCode::kUnknownPod, absl::StrCat("no pod with uid ", question.uid)}};
  if (pod->gang == nullptr) return {true, {}};
  Reason reason = r_.eligibility->PodReason(*pod);
  Reason gate = r_.eligibility->GateReason(*pod->gang, now_ms);
  if (gate.none()) gate = r_.queues->PermanentRejection(*pod->gang);
  // A refused member uses up its turn too, because the other members wait for the cycle to end.
  Reason turn = gate.none() ? TryBeginTurn(*pod, now_ms) : Reason();
  if (reason.none()) reason = std::move(gate.none() ? turn : gate);
  if (reason.none()) return {true, {}};
  reason.text = absl::StrCat("gang ", pod->gang->key, ": ", reason.text);
  return {false, std::move(reason)};
}

// Filter and Score: the nodes that a caller may choose for a pod (P-3, P-4).
NodesReply FindFeasibleNodes(const NodeSearchRooms& r, const Pod& pod, const std::vector<std::string>& offered,
                             ApplyContext* ctx) {
  NodesReply reply = FindFreeNodes(r, pod, offered);
  if (!reply.nodes.empty()) return reply;
  const NodeOffer offer = offered.empty() ? NodeOffer::AllNodes() : NodeOffer(offered);
  return r.verbs->ResolveContention(pod, offer, ctx) ? FindFreeNodes(r, pod, offered) : reply;
}

bool VerbsFrontend::HasSlotOn(const Pod& pod, NodeId node, ApplyContext* ctx) {
  if (!r_.plan_lifecycle->HasSlotNow(pod, ctx)) return false;
  const Slot* own = r_.plans->SlotOf(pod);
  return own != nullptr ? own->node == node : Plans::FindFree(*r_.plans->Of(*pod.gang), pod, node) >= 0;
}

void VerbsFrontend::OnPostFilter(const Pod& pod, const std::string& message, ApplyContext* ctx) {
  const Gang* gang = pod.gang;
  if (gang == nullptr) return;
  r_.gangs->MarkPreFilterPassed(pod, kNever);
  if (gang->rules.min_member == 0 || gang->once_satisfied()) return;
  if (gang->rules.mode == GangMode::kNonStrict) {
    if (pod.state == MemberState::kPending && pod.cls != kNoClass) ResolveContention(pod, NodeOffer::AllNodes(), ctx);
    return;
  }
  const Group group = r_.eligibility->GroupOf(*gang);
  for (const Gang* each : group) {
    r_.gangs->SetRootCause(*each, absl::StrCat("no node was found for member ", pod.facts.name,
                                               each == gang ? "" : absl::StrCat(" of gang ", gang->key),
                                               message.empty() ? "" : ": ", message));
  }
  r_.plan_lifecycle->ReleaseGroup(
      *gang, {ReasonCode::kMemberUnschedulable, absl::StrCat("gang ", gang->key, ": ", gang->root_cause)}, ctx);
  for (const Gang* each : group) r_.gangs->InvalidateCycle(*each);
  if (pod.state == MemberState::kPending) r_.gangs->MarkCycleAttempt(pod);
  for (const Gang* each : group) r_.gangs->AdvanceCycle(*each);
}

void VerbsFrontend::OnUnreserve(const Pod& pod, UnreserveCause cause, ApplyContext* ctx) {
  const Gang* gang = pod.gang;
  if (pod.state == MemberState::kBound || pod.state == MemberState::kRunning) return;  // never undone by this call
  // Muster binds a committed pod even if its caller leaves (K-4).
  if (pod.state == MemberState::kCommitted && r_.pod_lifecycle->BindingOf(pod).phase == BindingPhase::kPending) return;
  // Each member reports the same timeout, often after its call has ended: it counts once.
  const auto holds = [&](const Gang* each) {
    return r_.plans->Of(*each) != nullptr || each->count(MemberState::kWaiting) > 0;
  };
  const bool holds_something = gang != nullptr && absl::c_any_of(r_.eligibility->GroupOf(*gang), holds);
  if (pod.state == MemberState::kCommitted) r_.bindings->ReturnNode(pod, ctx);
  r_.pod_lifecycle->EndWait(pod, {ReasonCode::kGone, absl::StrCat("pod ", pod.facts.name, " released its node")}, ctx);
  if (gang == nullptr) return;
  r_.gangs->MarkPreFilterPassed(pod, kNever);
  if (gang->rules.min_member == 0 || gang->durable.satisfied) return;
  if (cause == UnreserveCause::kPermitTimeout) {
    const bool reported_before = gang->durable.timed_out || gang->retry_at_ms > ctx->now_ms();
    if (holds_something || !reported_before) r_.plan_lifecycle->ExpireWait(*gang, ctx);
    r_.gangs->Touch(*gang);
    return;
  }
  if (gang->rules.mode == GangMode::kNonStrict) return;
  r_.gangs->SetRootCause(*gang,
                         absl::StrCat("member ", pod.facts.name,
                                      cause == UnreserveCause::kBindFailed ? " could not be bound" : " was rejected"));
  r_.plan_lifecycle->ReleaseGroup(
      *gang, {ReasonCode::kWithdrawn, absl::StrCat("gang ", gang->key, ": ", gang->root_cause)}, ctx);
}

absl::Status VerbsFrontend::OnPostBind(const Pod& pod, const std::string& node, ApplyContext* ctx) {
  if (node.empty()) {
    return InvalidArgument(
        {{Subject::kField, "node", "is empty; expected the name of the node that the pod is bound to"}});
  }
  if (!pod.facts.node_name.empty()) {
    if (pod.facts.node_name == node) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("pod ", pod.facts.name, " is bound to node ", pod.facts.node_name, " already"));
  }
  if (pod.state != MemberState::kCommitted || r_.pod_lifecycle->Of(pod).node != r_.cluster->FindNode(node)) {
    // The caller bound without a permit, to another node, or too late: two pods may now use capacity for one.
    return absl::FailedPreconditionError(absl::StrCat("pod ", pod.facts.name, " is ", ToString(pod.state),
                                                      " and not, or no longer, permitted on node ", node,
                                                      "; delete the pod, or announce its node as a fact"));
  }
  r_.gangs->SetNode(pod, node);
  r_.bindings->OnStateChanged(pod, MemberState::kBound, ctx);
  return absl::OkStatus();
}

}  // namespace muster
