#include "state/reservations/backfill.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace muster {

const Gang* Heads::HeadOf(int32_t lane) const {
  for (const auto& [key, item] : backlog_->Blocked(lane)) {
    if (backlog_->waits_for(item)->holds || states_.Of(item).could == State::Could::kNo) continue;
    if (backlog_->why(item).code == ReasonCode::kQueueRejected) continue;
    return &gangs_->gang(item);
  }
  return nullptr;
}

std::vector<GangId> Heads::PassedBy(const Gang& gang) const {
  std::vector<GangId> passed;
  if (Limit() == 0 || !backlog_->AnyBlocked()) return passed;
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Gang* head = HeadOf(lane);
    if (head == nullptr || head == &gang || head->kept.passed_since_ms > 0) continue;
    // Whom only its queues hold back is passed by those who take what they allow.
    if (backlog_->waits_for(head->id)->queue && !queues_->Share(*head, gang)) continue;
    if (queues_->Before(*head, gang)) passed.push_back(head->id);
  }
  return passed;
}

std::vector<GangId> Heads::PassedBy(const Pod& pod, NodeId node) const {
  std::vector<GangId> passed;
  if (Limit() == 0 || !backlog_->AnyBlocked()) return passed;
  const QueueKey key{false, pod.facts.priority, 0, pod.facts.created_ms,
                     absl::StrCat(pod.facts.name_space, "/", pod.facts.name)};
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Gang* head = HeadOf(lane);
    if (head == nullptr || head == pod.gang || head->kept.passed_since_ms > 0) continue;
    if (backlog_->waits_for(head->id)->queue && (pod.gang == nullptr || !queues_->Share(*head, *pod.gang))) continue;
    const bool before = pod.gang == nullptr ? *backlog_->queued(head->id) < key : queues_->Before(*head, *pod.gang);
    if (before && Lacks(*head, pod, node)) passed.push_back(head->id);
  }
  return passed;
}

bool Heads::Lacks(const Gang& head, const Pod& pod, NodeId node) const {
  const WaitFor& wait = *backlog_->waits_for(head.id);
  if (wait.queue || wait.classes.empty()) return true;
  const Node& at = cluster_->node(node);
  const ResourceVector& has = cluster_->pod_class(pod.cls).request;
  constexpr int32_t kMost = 1'000'000;
  // Of what there is least of for members, there is too little for one, or for as many as without the pod.
  return absl::c_any_of(wait.classes, [&](ClassId cls) {
    if (!cluster_->has_class(cls) || cluster_->FindObstacle(node, cls) != Obstacle::kNone) return false;
    const int32_t room = cluster_->RoomWith(node, cls, {}, kMost);
    return absl::c_any_of(cluster_->pod_class(cls).request.entries(), [&](const auto& entry) {
      const auto& [resource, asks] = entry;
      const int64_t took = has.Get(resource);
      if (asks <= 0 || took <= 0) return false;
      const WideSum left = at.Left(resource);
      return std::max<WideSum>(left / asks, 0) == room && (left < asks || left / asks < (left + took) / asks);
    });
  });
}

void Heads::NotePassed(const std::vector<GangId>& heads, int64_t now_ms) {
  for (const GangId id : heads) {
    const Gang& head = gangs_->gang(id);
    gangs_->SetPassedSince(head, now_ms);
    gangs_->Touch(head);
  }
}

int64_t Heads::Deadline(const Gang& gang) const {
  const bool waits = backlog_->waits_for(gang.id) != nullptr && !backlog_->waits_for(gang.id)->holds;
  if (!waits) return kNever;
  const State& state = states_.Of(gang.id);
  const int64_t again_ms = std::max(state.tried_ms + kTryAgainMs, state.try_again_ms);
  // No room is kept for it, of which it would be known that it is no more.
  if (strict_.contains(gang.id)) return again_ms;
  // Whether it could run is to be looked at anew.
  const bool doubted = state.could == State::Could::kUnknown && state.tried_ms >= 0;
  const bool first = Rules().head == HeadPolicy::kHold || queues_->Holds(gang);
  if (doubted && first && backlog_->waits_for(gang.id)->queue) return again_ms;
  if (Limit() == 0 || gang.kept.passed_since_ms == 0) return kNever;
  const bool has = pipeline_->Holds(gang) || (backlog_->waits_for(gang.id)->queue && queues_->Holds(gang));
  if (has || state.could == State::Could::kNo) return kNever;
  return std::max(gang.kept.passed_since_ms + Limit(), again_ms);
}

void Heads::NoteCouldRun(const Gang& gang, bool could, bool strict, int64_t now_ms) {
  State& state = states_[gang.id];
  state.could = could ? State::Could::kYes : State::Could::kNo;
  state.tried_ms = now_ms;
  if (strict) {
    strict_.insert(gang.id);
  } else {
    strict_.erase(gang.id);
  }
}

void Heads::DoubtHolders() {
  for (const GangId id : queues_->Holders()) {
    const WaitFor* wait = backlog_->waits_for(id);
    if (wait == nullptr || !wait->queue || states_.Of(id).could != State::Could::kYes) continue;
    states_[id].could = State::Could::kUnknown;
    gangs_->Touch(gangs_->gang(id));
  }
}

bool Heads::First(const Gang& gang) const {
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Gang* head = HeadOf(lane);
    if (head == nullptr || head == &gang || backlog_->waits_for(head->id)->queue) continue;
    if (queues_->Before(*head, gang)) return false;
  }
  return true;
}

bool Heads::HoldsUpOthers(const Gang& head) const {
  if (backlog_->waits_for(head.id)->queue || states_.Of(head.id).could != State::Could::kYes) return false;
  return Rules().head == HeadPolicy::kHold || strict_.contains(head.id);
}

const Gang* Heads::HoldsUp(const Gang& gang) const {
  // What is half bound is finished before anything else, whoever waits (K-13).
  const QueueKey* key = backlog_->queued(gang.id);
  if (!Strict() || (key != nullptr && key->half_bound)) return nullptr;
  const Gang* first = FirstStrict();
  return first != nullptr && first != &gang && queues_->Before(*first, gang) ? first : nullptr;
}

const Gang* Heads::FirstStrict() const {
  if (!Strict() || !backlog_->AnyBlocked()) return nullptr;
  const Gang* first = nullptr;
  for (int32_t lane = 0; lane < backlog_->lanes(); ++lane) {
    const Gang* head = HeadOf(lane);
    if (head == nullptr || !HoldsUpOthers(*head)) continue;
    if (first == nullptr || queues_->Before(*head, *first)) first = head;
  }
  return first;
}

void Heads::Follow(const Gang& gang, int64_t now_ms) {
  if (gang.kept.satisfied && gang.kept.passed_since_ms != 0) gangs_->SetPassedSince(gang, 0);
  if (gang.kept.satisfied && gang.rules.duration_ms > 0) {
    timed_.insert(gang.id);
    if (gang.kept.started_ms == 0) gangs_->SetStarted(gang, now_ms);
  } else {
    if (!timed_.empty()) timed_.erase(gang.id);
    if (gang.kept.started_ms != 0 && !gang.kept.satisfied) gangs_->SetStarted(gang, 0);
  }
}

void Heads::Leave(const Gang& gang) {
  if (!(states_.Of(gang.id) == State())) states_.Reset(gang.id);
  if (!strict_.empty()) strict_.erase(gang.id);
}

}  // namespace muster
