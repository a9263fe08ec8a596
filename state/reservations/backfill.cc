#include "state/reservations/backfill.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/gangs/gangs.h"
#include "state/queueing/backlog.h"
#include "state/reservations/future_reservations.h"

namespace muster {

const Claim* Backfill::FindHead(int32_t lane) const {
  for (const auto& [key, item] : backlog_->Blocked(lane)) {
    if (backlog_->wake_condition(item)->holds || states_.Of(item).runnable == State::Runnable::kNo) continue;
    if (backlog_->why(item).code == ReasonCode::kQueueRejected) continue;
    return &gangs_->claim(item);
  }
  return nullptr;
}

std::vector<ClaimId> Backfill::BypassedBy(const Claim* claim, const Pod* pod, NodeId node) const {
  std::vector<ClaimId> bypassed;
  if (StarvationLimit() == 0 || !backlog_->AnyBlocked()) return bypassed;
  QueueKey lone;  // the position of a lone pod
  if (claim == nullptr) {
    lone = {false, pod->facts.priority, 0, pod->facts.created_ms,
            absl::StrCat(pod->facts.name_space, "/", pod->facts.name)};
  }
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Claim* head = FindHead(lane);
    if (head == nullptr || head == claim || head->durable.bypassed_since_ms > 0) continue;
    // A head that waits only for its queues is bypassed only by claims that share a queue with it.
    if (backlog_->wake_condition(head->id)->queue && (claim == nullptr || !queues_->ShareQueue(*head, *claim)))
      continue;
    const bool before = claim == nullptr ? *backlog_->queued(head->id) < lone : queues_->Before(*head, *claim);
    if (before && (pod == nullptr || CouldUse(*head, *pod, node))) bypassed.push_back(head->id);
  }
  return bypassed;
}

bool Backfill::CouldUse(const Claim& head, const Pod& pod, NodeId node) const {
  const WakeCondition& wait = *backlog_->wake_condition(head.id);
  if (wait.queue || wait.classes.empty()) return true;
  const Node& at = cluster_->node(node);
  const ResourceVector& has = cluster_->pod_class(pod.cls).request;
  constexpr int32_t kMost = 1'000'000;
  // The pod uses the scarcest resource on the node for a member's class, and fewer members fit because of it.
  return absl::c_any_of(wait.classes, [&](ClassId cls) {
    if (!cluster_->has_class(cls) || cluster_->FindObstacle(node, cls) != Obstacle::kNone) return false;
    const int32_t room = cluster_->RoomAfterRelease(node, cls, {}, kMost);
    return absl::c_any_of(cluster_->pod_class(cls).request.entries(), [&](const auto& entry) {
      const auto& [resource, asks] = entry;
      const int64_t used = has.Get(resource);
      if (asks <= 0 || used <= 0) return false;
      const WideSum left = at.Left(resource);
      return std::max<WideSum>(left / asks, 0) == room && (left < asks || left / asks < (left + used) / asks);
    });
  });
}

void Backfill::MarkBypassed(const std::vector<ClaimId>& heads, int64_t now_ms) {
  for (const ClaimId id : heads) {
    const Claim& head = gangs_->claim(id);
    gangs_->SetBypassedSince(head, now_ms);
    gangs_->Touch(head);
  }
}

int64_t Backfill::Deadline(const Claim& claim) const {
  if (backlog_->wake_condition(claim.id) == nullptr) return kNever;
  return std::min(HeadDeadline(claim), RetryDeadline(claim));
}

int64_t Backfill::RetryDeadline(const Claim& claim) const {
  const WakeCondition* wait = backlog_->wake_condition(claim.id);
  if (wait->holds) return kNever;
  const State& state = states_.Of(claim.id);
  const int64_t retry_ms = std::max(state.searched_ms + kRetryIntervalMs, state.retry_ms);
  // A head without a reservation is tried again at intervals: no event reports that it no longer blocks.
  if (blocking_.contains(claim.id)) return retry_ms;
  // It is not known any more whether the claim could run: search again.
  const bool outdated = state.runnable == State::Runnable::kUnknown && state.searched_ms >= 0;
  const bool reserves = Rules().head == HeadPolicy::kHold || queues_->HasReservedDemand(claim);
  if (outdated && reserves && wait->queue) return retry_ms;
  if (StarvationLimit() == 0 || claim.durable.bypassed_since_ms == 0) return kNever;
  const bool has_reservation =
      future_reservations_->HasReservationOnRunning(claim) || (wait->queue && queues_->HasReservedDemand(claim));
  if (has_reservation || state.runnable == State::Runnable::kNo) return kNever;
  return std::max(claim.durable.bypassed_since_ms + StarvationLimit(), retry_ms);
}

void Backfill::LimitHead(const Claim& claim, int64_t until_ms) {
  if (until_ms == kNever && states_.Of(claim.id).head_until_ms == kNever) return;
  State& state = states_[claim.id];
  state.head_until_ms = until_ms == kNever ? kNever : std::min(state.head_until_ms, until_ms);
  state.head_ended = state.head_ended && until_ms != kNever;
}

void Backfill::EndHead(const Claim& claim) {
  State& state = states_[claim.id];
  state.head_ended = true;
  state.runnable = State::Runnable::kNo;
  blocking_.erase(claim.id);
}

void Backfill::SetRunnable(const Claim& claim, bool runnable, bool blocking, int64_t now_ms) {
  State& state = states_[claim.id];
  runnable = runnable && !state.head_ended;
  state.runnable = runnable ? State::Runnable::kYes : State::Runnable::kNo;
  state.searched_ms = now_ms;
  if (blocking && runnable) {
    blocking_.insert(claim.id);
  } else {
    blocking_.erase(claim.id);
  }
}

void Backfill::InvalidateReservingRunnable() {
  for (const ClaimId id : queues_->ReservingGangs()) {
    const WakeCondition* wait = backlog_->wake_condition(id);
    if (wait == nullptr || !wait->queue || states_.Of(id).runnable != State::Runnable::kYes) continue;
    states_[id].runnable = State::Runnable::kUnknown;
    gangs_->Touch(gangs_->claim(id));
  }
}

bool Backfill::IsFirstHead(const Claim& claim) const {
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Claim* head = FindHead(lane);
    if (head == nullptr || head == &claim || backlog_->wake_condition(head->id)->queue) continue;
    if (queues_->Before(*head, claim)) return false;
  }
  return true;
}

bool Backfill::BlocksOthers(const Claim& head) const {
  if (backlog_->wake_condition(head.id)->queue || states_.Of(head.id).runnable != State::Runnable::kYes) return false;
  return Rules().head == HeadPolicy::kHold || blocking_.contains(head.id);
}

const Claim* Backfill::FindBlockingHead(const Claim& claim) const {
  // A partially bound claim is completed before anything else and is never blocked (K-13).
  const QueueKey* key = backlog_->queued(claim.id);
  if (!HasBlockingHead() || (key != nullptr && key->partially_bound)) return nullptr;
  const Claim* first = FindFirstBlockingHead();
  return first != nullptr && first != &claim && queues_->Before(*first, claim) ? first : nullptr;
}

const Claim* Backfill::FindFirstBlockingHead() const {
  if (!HasBlockingHead() || !backlog_->AnyBlocked()) return nullptr;  // short cut
  const Claim* first = nullptr;
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Claim* head = FindHead(lane);
    if (head == nullptr || !BlocksOthers(*head)) continue;
    if (first == nullptr || queues_->Before(*head, *first)) first = head;
  }
  return first;
}

void Backfill::RefreshRunning(const Claim& claim, int64_t now_ms) {
  if (claim.durable.satisfied && claim.durable.bypassed_since_ms != 0) gangs_->SetBypassedSince(claim, 0);
  if (claim.durable.satisfied && claim.rules.duration_ms > 0) {
    timed_.insert(claim.id);
    if (claim.durable.started_ms == 0) gangs_->SetStarted(claim, now_ms);
  } else {
    timed_.erase(claim.id);
    if (claim.durable.started_ms != 0 && !claim.durable.satisfied) gangs_->SetStarted(claim, 0);
  }
}

void Backfill::ClearHead(const Claim& claim) {
  // A claim with future members that was a head must be bypassed again before others wait for it again.
  const bool limited = states_.Of(claim.id).head_until_ms != kNever;
  if (limited && claim.durable.bypassed_since_ms != 0) gangs_->SetBypassedSince(claim, 0);
  states_.Reset(claim.id);
  blocking_.erase(claim.id);
}

}  // namespace muster
