#include "state/reservations/backfill.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace muster {

const Gang* Backfill::FindHead(int32_t lane) const {
  for (const auto& [key, item] : backlog_->Blocked(lane)) {
    if (backlog_->wake_condition(item)->holds || states_.Of(item).runnable == State::Runnable::kNo) continue;
    if (backlog_->why(item).code == ReasonCode::kQueueRejected) continue;
    return &gangs_->gang(item);
  }
  return nullptr;
}

std::vector<GangId> Backfill::BypassedHeads(const Gang& gang) const {
  std::vector<GangId> bypassed;
  if (StarvationLimit() == 0 || !backlog_->AnyBlocked()) return bypassed;
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Gang* head = FindHead(lane);
    if (head == nullptr || head == &gang || head->durable.bypassed_since_ms > 0) continue;
    // A head that waits only for its queues is bypassed only by gangs that share a queue with it.
    if (backlog_->wake_condition(head->id)->queue && !queues_->ShareQueue(*head, gang)) continue;
    if (queues_->Before(*head, gang)) bypassed.push_back(head->id);
  }
  return bypassed;
}

std::vector<GangId> Backfill::BypassedHeads(const Pod& pod, NodeId node) const {
  std::vector<GangId> bypassed;
  if (StarvationLimit() == 0 || !backlog_->AnyBlocked()) return bypassed;
  const QueueKey key{false, pod.facts.priority, 0, pod.facts.created_ms,
                     absl::StrCat(pod.facts.name_space, "/", pod.facts.name)};
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Gang* head = FindHead(lane);
    if (head == nullptr || head == pod.gang || head->durable.bypassed_since_ms > 0) continue;
    if (backlog_->wake_condition(head->id)->queue && (pod.gang == nullptr || !queues_->ShareQueue(*head, *pod.gang)))
      continue;
    const bool before = pod.gang == nullptr ? *backlog_->queued(head->id) < key : queues_->Before(*head, *pod.gang);
    if (before && CouldUse(*head, pod, node)) bypassed.push_back(head->id);
  }
  return bypassed;
}

bool Backfill::CouldUse(const Gang& head, const Pod& pod, NodeId node) const {
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

void Backfill::MarkBypassed(const std::vector<GangId>& heads, int64_t now_ms) {
  for (const GangId id : heads) {
    const Gang& head = gangs_->gang(id);
    gangs_->SetBypassedSince(head, now_ms);
    gangs_->Touch(head);
  }
}

int64_t Backfill::Deadline(const Gang& gang) const {
  const bool waits = backlog_->wake_condition(gang.id) != nullptr && !backlog_->wake_condition(gang.id)->holds;
  if (!waits) return kNever;
  const State& state = states_.Of(gang.id);
  const int64_t retry_ms = std::max(state.searched_ms + kRetryIntervalMs, state.retry_ms);
  // Without a reservation, no event reports that it no longer blocks: it is tried again at intervals.
  if (blocking_.contains(gang.id)) return retry_ms;
  // Whether it could run must be determined again.
  const bool outdated = state.runnable == State::Runnable::kUnknown && state.searched_ms >= 0;
  const bool first = Rules().head == HeadPolicy::kHold || queues_->HasReservedDemand(gang);
  if (outdated && first && backlog_->wake_condition(gang.id)->queue) return retry_ms;
  if (StarvationLimit() == 0 || gang.durable.bypassed_since_ms == 0) return kNever;
  const bool has_reservation = future_reservations_->HasReservationOnRunning(gang) ||
                               (backlog_->wake_condition(gang.id)->queue && queues_->HasReservedDemand(gang));
  if (has_reservation || state.runnable == State::Runnable::kNo) return kNever;
  return std::max(gang.durable.bypassed_since_ms + StarvationLimit(), retry_ms);
}

void Backfill::SetRunnable(const Gang& gang, bool runnable, bool blocking, int64_t now_ms) {
  State& state = states_[gang.id];
  state.runnable = runnable ? State::Runnable::kYes : State::Runnable::kNo;
  state.searched_ms = now_ms;
  if (blocking) {
    blocking_.insert(gang.id);
  } else {
    blocking_.erase(gang.id);
  }
}

void Backfill::InvalidateReservingRunnable() {
  for (const GangId id : queues_->ReservingGangs()) {
    const WakeCondition* wait = backlog_->wake_condition(id);
    if (wait == nullptr || !wait->queue || states_.Of(id).runnable != State::Runnable::kYes) continue;
    states_[id].runnable = State::Runnable::kUnknown;
    gangs_->Touch(gangs_->gang(id));
  }
}

bool Backfill::IsFirstHead(const Gang& gang) const {
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Gang* head = FindHead(lane);
    if (head == nullptr || head == &gang || backlog_->wake_condition(head->id)->queue) continue;
    if (queues_->Before(*head, gang)) return false;
  }
  return true;
}

bool Backfill::BlocksOthers(const Gang& head) const {
  if (backlog_->wake_condition(head.id)->queue || states_.Of(head.id).runnable != State::Runnable::kYes) return false;
  return Rules().head == HeadPolicy::kHold || blocking_.contains(head.id);
}

const Gang* Backfill::FindBlockingHead(const Gang& gang) const {
  // A partially bound gang is completed before anything else and is never blocked (K-13).
  const QueueKey* key = backlog_->queued(gang.id);
  if (!HasBlockingHead() || (key != nullptr && key->partially_bound)) return nullptr;
  const Gang* first = FindFirstBlockingHead();
  return first != nullptr && first != &gang && queues_->Before(*first, gang) ? first : nullptr;
}

const Gang* Backfill::FindFirstBlockingHead() const {
  if (!HasBlockingHead() || !backlog_->AnyBlocked()) return nullptr;
  const Gang* first = nullptr;
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Gang* head = FindHead(lane);
    if (head == nullptr || !BlocksOthers(*head)) continue;
    if (first == nullptr || queues_->Before(*head, *first)) first = head;
  }
  return first;
}

void Backfill::RefreshRunning(const Gang& gang, int64_t now_ms) {
  if (gang.durable.satisfied && gang.durable.bypassed_since_ms != 0) gangs_->SetBypassedSince(gang, 0);
  if (gang.durable.satisfied && gang.rules.duration_ms > 0) {
    timed_.insert(gang.id);
    if (gang.durable.started_ms == 0) gangs_->SetStarted(gang, now_ms);
  } else {
    if (!timed_.empty()) timed_.erase(gang.id);
    if (gang.durable.started_ms != 0 && !gang.durable.satisfied) gangs_->SetStarted(gang, 0);
  }
}

void Backfill::ClearHead(const Gang& gang) {
  if (!(states_.Of(gang.id) == State())) states_.Reset(gang.id);
  if (!blocking_.empty()) blocking_.erase(gang.id);
}

}  // namespace muster
