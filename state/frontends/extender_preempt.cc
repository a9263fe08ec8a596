// Whom kube-scheduler may evict, and for whom (SPEC K-9).
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/frontends/extender_frontend.h"

namespace muster {
namespace {

// kube-scheduler deletes whom it takes at once, or some seconds later in the background; then it is read here.
constexpr int64_t kVictimMs = 5'000;

}  // namespace

PreemptReply KubeScheduler::OnPreempt(const Preempt& question, Step* step) {
  for (auto at = victims_.begin(); at != victims_.end();) {
    at = at->second <= step->now_ms() ? victims_.erase(at) : std::next(at);
  }
  PreemptReply reply;
  // Until everything is read nobody knows whom an eviction would break, nor who has a place already.
  if (!r_.sources->complete()) return reply;
  const Pod* pod = r_.gangs->FindPod(question.uid);
  if (pod != nullptr && r_.bindings->Resumable(*pod)) r_.bindings->EndResume(*pod, step);  // it finds no node
  const bool known = pod != nullptr && pod->gang != nullptr;
  const bool alone = known ? r_.eligibility->PassesOneByOne(*pod->gang) : !question.names_gang;
  const bool placed = known && (pod->state == MemberState::kWaiting || pod->state == MemberState::kCommitted);
  if (!alone || placed) return reply;
  // Outside the domains that its gang requires, and where what comes free is promised to others, it would be refused
  // afterwards, and the victims be gone for nothing (P-4, K-3).
  const Region region = known ? r_.domains->For(*pod->gang, pod->leaf) : Region();
  const ByGang promised = PromisedToOthers(question.uid);
  std::vector<const PreemptCandidate*> taken;
  for (const PreemptCandidate& candidate : question.candidates) {
    const NodeId node = r_.cluster->FindNode(candidate.node);
    if (!region.everywhere() && (node == kNoNode || !region.Has(node))) continue;
    const bool readable = pod != nullptr && pod->cls != kNoClass && node != kNoNode;
    const std::optional<ResourceSum> regained = readable ? UsedBy(candidate.victim_uids, node) : std::nullopt;
    const bool guarded = regained.has_value() && Guarded(*pod, node, *regained);
    if (guarded || BreaksGang(promised, candidate.victim_uids)) continue;
    reply.nodes.push_back(candidate.node);
    taken.push_back(&candidate);
  }
  for (const PreemptCandidate* each : taken) NoteVictims(question.uid, each->victim_uids, step->now_ms());
  return reply;
}

std::optional<ResourceSum> KubeScheduler::UsedBy(const std::vector<std::string>& pods, NodeId node) const {
  ResourceSum sum;
  for (const std::string& uid : pods) {
    const Pod* pod = r_.gangs->FindPod(uid);
    if (pod == nullptr || pod->cls == kNoClass || r_.ledger->ChargeOf(pod->id).node != node) return std::nullopt;
    sum.AddTimes(r_.cluster->pod_class(pod->cls).request, 1);
  }
  return sum;
}

// Until it is read that they are being deleted nobody else may count on them.
void KubeScheduler::NoteVictims(const std::string& preemptor, const std::vector<std::string>& victims, int64_t now_ms) {
  for (const std::string& uid : victims) {
    const Pod* pod = r_.gangs->FindPod(uid);
    if (pod != nullptr && pod->gang != nullptr) victims_[{uid, preemptor}] = now_ms + kVictimMs;
  }
}

KubeScheduler::ByGang KubeScheduler::PromisedToOthers(const std::string& preemptor) const {
  ByGang out;
  absl::string_view last;  // several may have been told of one
  for (const auto& [promised, until_ms] : victims_) {
    const auto& [uid, whose] = promised;
    if (whose == preemptor || uid == last) continue;
    last = uid;
    const Pod* pod = r_.gangs->FindPod(uid);
    if (pod == nullptr || pod->gang == nullptr) continue;
    if (pod->state == MemberState::kBound || pod->state == MemberState::kRunning) out[pod->gang].push_back(pod);
  }
  return out;
}

// True when taking these pods away would leave a gang with less than its minimum, or one that gives way to nobody.
bool KubeScheduler::BreaksGang(const ByGang& promised, const std::vector<std::string>& victims) const {
  ByGang lost;
  for (const std::string& uid : victims) {
    const Pod* pod = r_.gangs->FindPod(uid);
    if (pod == nullptr || pod->gang == nullptr) continue;
    if (!pod->gang->rules.preemptible) return true;  // D-13
    // A gang of one is as good as a pod of none, but for its group, which stands with it or falls (D-10).
    if (pod->gang->rules.min_member <= 1 && pod->gang->rules.group.empty()) continue;
    if (pod->state == MemberState::kWaiting || pod->state == MemberState::kCommitted) return true;
    // Also of one that is not there yet: kube-scheduler assumes it, its bind call is on the way.
    std::vector<const Pod*>& of_gang = lost[pod->gang];
    if (pod->state == MemberState::kBound || pod->state == MemberState::kRunning) of_gang.push_back(pod);
  }
  // And those that may be taken for somebody else, as was said a moment ago.
  for (auto& [gang, of_gang] : lost) {
    const auto others = promised.find(gang);
    if (others == promised.end()) continue;
    const size_t own = of_gang.size();
    for (const Pod* pod : others->second) {
      if (!absl::c_linear_search(absl::MakeSpan(of_gang).first(own), pod)) of_gang.push_back(pod);
    }
  }
  return std::any_of(lost.begin(), lost.end(), [](const auto& entry) {
    // A member that is being bound is not there yet, and may never be.
    const Gang& gang = *entry.first;
    if (gang.rules.tree.empty()) {
      const int32_t there = gang.count(MemberState::kBound) + gang.count(MemberState::kRunning);
      return there - static_cast<int32_t>(entry.second.size()) < gang.rules.min_member;
    }
    std::vector<int32_t> there(static_cast<size_t>(gang.rules.tree.leaves), 0);
    const auto count = [&there](const Pod& pod, int32_t times) {
      if (pod.leaf >= 0) there[static_cast<size_t>(pod.leaf)] += times;
    };
    for (const MemberState state : {MemberState::kBound, MemberState::kRunning}) {
      for (const Pod* pod : gang.in(state)) count(*pod, 1);
    }
    for (const Pod* pod : entry.second) count(*pod, -1);
    return !gang.quorum().Stands(there);
  });
}

}  // namespace muster
