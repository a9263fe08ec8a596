// Durable records of committed bindings, until their outcome is known (SPEC S-2, K-13).
#include <utility>

#include "state/base/check.h"
#include "state/binding/pod_lifecycle.h"

namespace muster {

void PodLifecycle::RecordStart(const Group& gangs, int64_t plan, int64_t deadline_ms, ApplyContext* ctx) {
  Start start;
  start.plan = plan;
  start.deadline_ms = deadline_ms;
  for (const Gang* gang : gangs) {
    const auto index = static_cast<int32_t>(start.gangs.size());
    start.gangs.push_back(gang->key);
    for (const Pod* pod : gang->in(MemberState::kWaiting)) {
      start.places.push_back({pod->facts.uid, r_.cluster->node(Of(*pod).node).facts.name, index});
    }
  }
  ctx->ReserveRecords(start.places.size() + 1);
  WriteStartRecord(start, ctx);
}

void PodLifecycle::RecordCommit(const Pod& pod, int64_t start, bool permitted, ApplyContext* ctx) {
  Commitment commitment;
  commitment.uid = pod.facts.uid;
  commitment.node = r_.cluster->node(Of(pod).node).facts.name;
  if (pod.gang != nullptr) commitment.gang = pod.gang->key;
  commitment.start = start;
  commitment.permitted = permitted;
  if (permitted) commitment.bind_within_ms = PermissionOf(pod).bind_within_ms;
  if (Of(pod).recorded && Of(pod).start != start) EraseCommitRecord(pod, ctx);
  OnCommitRecorded(pod, start);
  WriteCommitRecord(commitment, ctx);
}

void PodLifecycle::OnCommitRecorded(const Pod& pod, int64_t start) {
  State& state = states_[pod.id];
  if (!state.recorded && start > 0) ++started_[start];
  state.recorded = true;
  state.start = start;
}

void PodLifecycle::EraseCommitRecord(const Pod& pod, ApplyContext* ctx) {
  if (!Of(pod).recorded) return;
  State& state = states_[pod.id];
  state.recorded = false;
  DeleteCommitRecord(pod.facts.uid, ctx);
  const int64_t start = std::exchange(state.start, 0);
  if (start == 0) return;
  const auto commits = started_.find(start);
  MUSTER_CHECK(commits != started_.end());
  if (--commits->second > 0) return;
  started_.erase(commits);
  DeleteStartRecord(start, ctx);
}

}  // namespace muster
