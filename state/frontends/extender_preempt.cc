// The preempt call: which victims kube-scheduler may evict for a pod (SPEC K-9).
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

// How long an allowed victim is remembered. kube-scheduler deletes victims at once or some seconds later in the
// background; then Muster reads the deletion.
constexpr int64_t kVictimMs = 5'000;

}  // namespace

PreemptReply ExtenderFrontend::OnPreempt(const Preempt& question, ApplyContext* ctx) {
  for (auto at = victims_.begin(); at != victims_.end();) {
    at = at->second <= ctx->now_ms() ? victims_.erase(at) : std::next(at);
  }
  PreemptReply reply;
  // Until every fact is read, it is not known which gangs an eviction would break, or whether the pod has a node.
  if (!r_.sources->complete()) return reply;
  const Pod* pod = r_.gangs->FindPod(question.uid);
  if (pod != nullptr && r_.pod_lifecycle->IsRestored(*pod))
    r_.bindings->ReleaseRestored(*pod, ctx);  // it finds no node
  const bool known = pod != nullptr && pod->gang != nullptr;
  const bool alone = known ? r_.eligibility->SchedulesIndividually(*pod->gang) : !question.names_gang;
  const bool placed = known && (pod->state == MemberState::kWaiting || pod->state == MemberState::kCommitted);
  if (!alone || placed) return reply;
  // Skip nodes outside the domains that its gang requires, and nodes whose regained capacity is promised to others: the
  // pod would be refused there after the eviction, which would be useless (P-4, K-3).
  const Region region = known ? r_.domains->For(*pod->gang, pod->leaf) : Region();
  const ByGang promised = VictimsOfOthers(question.uid);
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
  for (const PreemptCandidate* each : taken) AddVictims(question.uid, each->victim_uids, ctx->now_ms());
  return reply;
}

std::optional<ResourceSum> ExtenderFrontend::UsedBy(const std::vector<std::string>& pods, NodeId node) const {
  ResourceSum sum;
  for (const std::string& uid : pods) {
    const Pod* pod = r_.gangs->FindPod(uid);
    if (pod == nullptr || pod->cls == kNoClass || r_.ledger->ChargeOf(pod->id).node != node) return std::nullopt;
    sum.AddTimes(r_.cluster->pod_class(pod->cls).request, 1);
  }
  return sum;
}

// Until Muster reads that the victims are being deleted, they count as lost for their gangs.
void ExtenderFrontend::AddVictims(const std::string& preemptor, const std::vector<std::string>& victims,
                                  int64_t now_ms) {
  for (const std::string& uid : victims) {
    const Pod* pod = r_.gangs->FindPod(uid);
    if (pod != nullptr && pod->gang != nullptr) victims_[{uid, preemptor}] = now_ms + kVictimMs;
  }
}

ExtenderFrontend::ByGang ExtenderFrontend::VictimsOfOthers(const std::string& preemptor) const {
  ByGang out;
  absl::string_view last;  // one victim can have several preemptors
  for (const auto& [promised, until_ms] : victims_) {
    const auto& [uid, other_preemptor] = promised;
    if (other_preemptor == preemptor || uid == last) continue;
    last = uid;
    const Pod* pod = r_.gangs->FindPod(uid);
    if (pod == nullptr || pod->gang == nullptr) continue;
    if (pod->state == MemberState::kBound || pod->state == MemberState::kRunning) out[pod->gang].push_back(pod);
  }
  return out;
}

// Whether the eviction of these pods would leave a gang with less than its minimum, or hit a gang that is not
// preemptible.
bool ExtenderFrontend::BreaksGang(const ByGang& promised, const std::vector<std::string>& victims) const {
  ByGang lost;
  for (const std::string& uid : victims) {
    const Pod* pod = r_.gangs->FindPod(uid);
    if (pod == nullptr || pod->gang == nullptr) continue;
    if (!pod->gang->rules.preemptible) return true;  // D-13
    // A gang with a minimum of one is treated as a lone pod, unless it is in a group, which starts together (D-10).
    if (pod->gang->rules.min_member <= 1 && pod->gang->rules.group.empty()) continue;
    if (pod->state == MemberState::kWaiting || pod->state == MemberState::kCommitted) return true;
    // This includes a gang whose pod has no node yet: kube-scheduler assumes it, and its bind call is in flight.
    std::vector<const Pod*>& of_gang = lost[pod->gang];
    if (pod->state == MemberState::kBound || pod->state == MemberState::kRunning) of_gang.push_back(pod);
  }
  // Add the members that recent replies allow other preemptors to evict.
  for (auto& [gang, of_gang] : lost) {
    const auto others = promised.find(gang);
    if (others == promised.end()) continue;
    const size_t own = of_gang.size();
    for (const Pod* pod : others->second) {
      if (!absl::c_linear_search(absl::MakeSpan(of_gang).first(own), pod)) of_gang.push_back(pod);
    }
  }
  return std::any_of(lost.begin(), lost.end(), [](const auto& entry) {
    // A member that is being bound does not count: its binding may fail.
    const Gang& gang = *entry.first;
    if (gang.rules.tree.empty()) {
      const int32_t bound = gang.count(MemberState::kBound) + gang.count(MemberState::kRunning);
      return bound - static_cast<int32_t>(entry.second.size()) < gang.rules.min_member;
    }
    std::vector<int32_t> bound(static_cast<size_t>(gang.rules.tree.leaves), 0);
    const auto count = [&bound](const Pod& pod, int32_t times) {
      if (pod.leaf >= 0) bound[static_cast<size_t>(pod.leaf)] += times;
    };
    for (const MemberState state : {MemberState::kBound, MemberState::kRunning}) {
      for (const Pod* pod : gang.in(state)) count(*pod, 1);
    }
    for (const Pod* pod : entry.second) count(*pod, -1);
    return !gang.quorum().SatisfiedBy(bound);
  });
}

}  // namespace muster
