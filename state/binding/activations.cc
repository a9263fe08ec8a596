#include "state/binding/activations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "state/api/apply_context.h"
#include "state/base/hash.h"
#include "state/base/text.h"
#include "state/cluster/cluster.h"
#include "state/gangs/gangs.h"
#include "state/reservations/plans.h"

namespace muster {
namespace {

constexpr size_t kMaxUnknownQueries = 10'000;
constexpr absl::string_view kNote =
    "muster: room is reserved for the pod's gang; its scheduler was asked to try it again. Its last message: ";
constexpr size_t kMaxMessageBytes = 600;
constexpr absl::string_view kNodesPhrase = "nodes are available: ";
// kube-scheduler's longest back-off after a failed attempt, and the rounding of its end.
constexpr int64_t kLongestBackoffMs = 11'000;
constexpr int64_t kDelayHalvesMs = 30'000;
constexpr int64_t kLongestDelayMs = 300'000;

}  // namespace

PodRef RefOf(const Pod& pod) { return PodRef{pod.facts.name_space, pod.facts.name, pod.facts.uid}; }

bool IsForeignMessage(const Pod& pod) {
  return !pod.facts.unschedulable.empty() && pod.facts.unschedulable.find("muster:") == std::string::npos;
}

bool IsFitMessage(const Pod& pod) { return absl::StrContains(pod.facts.unschedulable, kNodesPhrase); }

absl::string_view SchedulerMessage(const Pod& pod) {
  const absl::string_view message = pod.facts.unschedulable;
  if (absl::StartsWith(message, kNote)) return message.substr(kNote.size());
  return IsForeignMessage(pod) ? message : absl::string_view();
}

bool HasUnmodelledReason(absl::string_view message) {
  if (message.empty()) return false;
  // "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) were unschedulable. preemption: ..."
  const size_t at = message.find(kNodesPhrase);
  if (at == absl::string_view::npos) return true;
  message.remove_prefix(at + kNodesPhrase.size());
  message = message.substr(0, message.find(". "));
  constexpr absl::string_view kModelled[] = {
      "Insufficient ",      "Too many pods",          "untolerated taint",
      "were unschedulable", "node affinity/selector", "free ports",
  };
  return absl::c_any_of(absl::StrSplit(message, ", "), [&](absl::string_view reason) {
    return absl::c_none_of(kModelled, [&](absl::string_view known) { return absl::StrContains(reason, known); });
  });
}

void Activations::NotifyOwner(const Pod& pod, bool warning, const Reason& reason, bool urgent, ApplyContext* ctx) {
  EmitPodEvent event{RefOf(pod), warning, reason, urgent, "", ""};
  const GangMembership& membership = pod.facts.gang;
  if (urgent && membership.dialect == GangDialect::kOwner && !membership.owner_uid.empty()) {
    event.owner_gang = membership.name;
    event.owner_uid = membership.owner_uid;
  }
  ctx->EmitEffect(std::move(event));
  states_[pod.id].last_event = ReportedReasonOf(reason);
  states_[pod.id].last_event_ms = ctx->now_ms();
}

Activations::ReportedReason Activations::ReportedReasonOf(const Reason& reason) {
  StateHasher hasher;
  hasher.Add(reason.text);
  return {reason.code, hasher.value()};
}

int64_t Activations::NotifyFirstAt(const Pod& pod, const ReportedReason& reason, int64_t now_ms) const {
  const State& state = Of(pod);
  if (state.last_event == reason) return kNever;
  if (state.last_event.code != reason.code) return now_ms;
  return std::max(now_ms, state.last_event_ms + kRewordedNotifyMs);
}

bool Activations::Shows(const Pod& pod, ReasonCode code) const {
  const State& state = Of(pod);
  const bool in_condition = state.last_refusal == code && !pod.facts.our_gate && !IsForeignMessage(pod);
  return in_condition || state.last_event.code == code;
}

void Activations::SetUnschedulable(const Pod& pod, bool refused) {
  State& state = states_[pod.id];
  state.unschedulable = refused;
  state.activated = false;
  state.queued_ms = kNever;
}

bool Activations::HasObservedActivation(const Pod& pod, int64_t plan) const {
  const State& state = Of(pod);
  return state.plan == plan && !pod.facts.our_gate &&
         (state.by_gate_removal || pod.facts.activation_mark != state.annotation_before);
}

void Activations::OnTried(const Pod& pod, int64_t now_ms) {
  const int64_t queued_ms = std::exchange(states_[pod.id].queued_ms, kNever);
  // A pod that kube-scheduler had refused by itself was tried when something changed for it.
  if (queued_ms == kNever || IsForeignMessage(pod)) return;
  const int64_t backed_off_ms = Of(pod).backs_off ? kLongestBackoffMs : 0;
  const int64_t waited_ms = std::min(now_ms - queued_ms - backed_off_ms, kLongestDelayMs);
  if (waited_ms > QueueDelayMs(now_ms)) longest_delay_ = {waited_ms, now_ms};
}

int64_t Activations::QueueDelayMs(int64_t now_ms) const {
  return longest_delay_.ms >> std::min<int64_t>((now_ms - longest_delay_.seen_ms) / kDelayHalvesMs, 62);
}

bool Activations::IsQueued(const Pod& pod, int64_t now_ms) const {
  const State& state = Of(pod);
  return state.activated && state.queued_ms != kNever && now_ms - state.queued_ms < 2 * QueueDelayMs(now_ms);
}

bool Activations::AnyQueued(const Gang& gang, int64_t now_ms) const {
  return absl::c_any_of(gang.in(MemberState::kPending), [&](const Pod* pod) { return IsQueued(*pod, now_ms); });
}

void Activations::Remove(const Pod& pod) {
  RemoveGuarded(pod);
  states_.Reset(pod.id);
}

void Activations::AddUnknownQuery(const std::string& uid) {
  if (!unknown_query_turns_.emplace(uid, next_turn_).second) return;
  unknown_queries_.emplace(next_turn_++, uid);
  if (unknown_queries_.size() <= kMaxUnknownQueries) return;
  // The oldest query is most likely for a deleted pod: a scheduler asks about existing pods again and again.
  unknown_query_turns_.erase(unknown_queries_.begin()->second);
  unknown_queries_.erase(unknown_queries_.begin());
}

bool Activations::TakeUnknownQuery(const std::string& uid) {
  const auto turn = unknown_query_turns_.find(uid);
  if (turn == unknown_query_turns_.end()) return false;
  unknown_queries_.erase(turn->second);
  unknown_query_turns_.erase(turn);
  return true;
}

void Activations::Activate(const Pod& pod, NodeId hint, int64_t plan, ApplyContext* ctx) {
  ActivatePod call;
  call.pod = RefOf(pod);
  call.remove_gate = pod.facts.our_gate;
  if (call.remove_gate && nominate_ && hint != kNoNode) call.nominated_node = cluster_->node(hint).facts.name;
  call.plan = plan;
  const absl::string_view message = SchedulerMessage(pod);
  if (plan != 0 && !call.remove_gate && !message.empty()) {
    call.note = absl::StrCat(kNote, Beginning(message, kMaxMessageBytes));
  }
  State& state = states_[pod.id];
  state.suspected_plan = !call.note.empty() && HasUnmodelledReason(message) ? plan : 0;
  if (call.remove_gate || state.queued_ms == kNever) {  // else it is in the queue already, and keeps its place
    state.queued_ms = ctx->now_ms();
    state.backs_off = !call.remove_gate;
  }
  state.activated = true;
  state.plan = plan;
  state.by_gate_removal = call.remove_gate;
  state.annotation_before = pod.facts.activation_mark;
  ctx->EmitEffect(std::move(call));
}

void Activations::ActivateMembers(const Gang& gang, const Plans& plans, bool again, ApplyContext* ctx) {
  const Plan& plan = *plans.Of(gang);
  const auto needs_activation = [&](const Pod* pod, bool has_slot) {
    return pod->facts.our_gate || Of(*pod).unschedulable || (again && has_slot);
  };
  const MemberSet& pending = gang.in(MemberState::kPending);
  if (!again && absl::c_none_of(pending, [&](const Pod* pod) { return needs_activation(pod, false); })) return;
  FreeSlots places(plan);
  for (const Pod* pod : pending) {
    if (!gangs_->Plannable(*pod) || pod->unplaceable || !pod->facts.node_name.empty()) continue;
    const bool has_slot = plans.SlotIndex(*pod) >= 0;
    NodeId hint = kNoNode;
    if (!has_slot) {
      const int32_t place = places.TakeFor(*pod);
      if (place < 0) continue;
      hint = plan.slots[static_cast<size_t>(place)].node;
    }
    const bool may_activate = !Of(*pod).activated || (again && !IsQueued(*pod, ctx->now_ms()));
    if (needs_activation(pod, has_slot) && may_activate) Activate(*pod, hint, plan.id, ctx);
  }
}

std::string Activations::StillGated(const Gang& gang, int64_t plan) const {
  const auto gated = absl::c_count_if(gang.in(MemberState::kPending), [&](const Pod* pod) {
    return pod->facts.our_gate && Of(*pod).by_gate_removal && Of(*pod).plan == plan;
  });
  if (gated == 0) return "";
  return absl::StrCat(
      gated, gated == 1 ? " member still has" : " members still have",
      " Muster's scheduling gate, which the API server was asked to remove: see musterd's log for its answer");
}

void Activations::ActivateExtras(const Gang& gang, absl::FunctionRef<bool(const Pod&)> may, ApplyContext* ctx) {
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    const State& state = Of(*pod);
    if (state.activated || !gangs_->Plannable(*pod)) continue;
    const bool refused = state.unschedulable && state.guarded == kNoClass && may(*pod);
    if (pod->facts.our_gate || refused) Activate(*pod, kNoNode, 0, ctx);
  }
}

void Activations::AddGuarded(const Pod& pod) {
  RemoveGuarded(pod);
  guarded_[pod.cls].insert(pod.id);
  states_[pod.id].guarded = pod.cls;
}

void Activations::RemoveGuarded(const Pod& pod) {
  if (Of(pod).guarded == kNoClass) return;
  const auto entry = guarded_.find(std::exchange(states_[pod.id].guarded, kNoClass));
  entry->second.erase(pod.id);
  if (entry->second.empty()) guarded_.erase(entry);
}

void Activations::ActivateGuarded(ApplyContext* ctx) {
  const int64_t end = cluster_->log_end();
  const int64_t position = std::exchange(gain_position_, end);
  if (guarded_.empty()) return;  // short cut
  if (position < cluster_->log_start()) return ActivateGuardedIf([](ClassId) { return true; }, ctx);
  for (int64_t at = position; at < end && !guarded_.empty(); ++at) {
    const ClusterChange& change = cluster_->log_at(at);
    if (!change.gained) continue;
    ActivateGuardedIf(
        [&](ClassId cls) {
          return cluster_->FindObstacle(change.node, cls) == Obstacle::kNone && cluster_->HasRoom(change.node, cls);
        },
        ctx);
  }
}

void Activations::ActivateGuardedIf(absl::FunctionRef<bool(ClassId)> fits, ApplyContext* ctx) {
  std::vector<const Pod*> activated;
  absl::erase_if(guarded_, [&](const auto& of_class) {
    if (!fits(of_class.first)) return false;
    for (const PodId id : of_class.second) activated.push_back(&gangs_->pod(id));
    return true;
  });
  absl::c_sort(activated, [](const Pod* a, const Pod* b) { return a->facts.uid < b->facts.uid; });
  for (const Pod* pod : activated) {
    states_[pod->id].guarded = kNoClass;
    if (pod->state != MemberState::kPending) continue;
    Activate(*pod, kNoNode, 0, ctx);
    if (pod->gang != nullptr) gangs_->Touch(*pod->gang);  // its explanation depends on the gates of its members
  }
}

}  // namespace muster
