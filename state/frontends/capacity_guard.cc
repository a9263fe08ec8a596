// CapacityGuard: gangs and promised capacity against pods that need no quorum, and preemption (SPEC P-8, K-3, K-9).
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/cluster/ledger.h"
#include "state/frontends/extender_frontend.h"
#include "state/gangs/gangs.h"
#include "state/reservations/plans.h"

namespace muster {
namespace {

// How long an allowed victim is remembered. kube-scheduler deletes victims at once or some seconds later in the
// background; then Muster reads the deletion.
constexpr int64_t kVictimMs = 5'000;

}  // namespace

// Whether the pod fits the node only in capacity that is promised to claims of at least its rank, or is used by pods in
// flight. kube-scheduler does not know of a pod in flight after it has given up the bind call. A gang below its minimum
// comes before future reservations.
bool CapacityGuard::Guarded(const Pod& pod, NodeId node, const ResourceSum& regained) const {
  const absl::Span<const Ledger::Promise> promises = r_.ledger->PromisedOn(node);
  const bool in_flight = r_.ledger->in_flight().contains(node) || r_.ledger->unobserved_binds().contains(node);
  if (promises.empty() && !in_flight) return false;
  const ResourceVector& request = r_.cluster->pod_class(pod.cls).request;
  if (request.FitsIn(r_.cluster->node(node).free)) return false;
  ResourceSum yielded = regained;
  if (r_.ledger->Reserves(pod.id) && r_.ledger->ChargeOf(pod.id).node == node) {
    yielded.AddTimes(request, 1);  // the pod is nominated for the node: the reservation there is its own
  }
  for (const Ledger::Promise& promise : promises) {
    const Gang& gang = r_.gangs->gang(promise.claim);
    const Plan* plan = r_.plans->Of(gang);  // nullptr: a future reservation (P-8, Q-6)
    const bool repairs = plan == nullptr && pod.gang != nullptr && pod.gang->below_minimum();
    const bool first = r_.eligibility->Priority(gang) < pod.facts.priority || repairs;
    if (!first || (plan != nullptr && plan->committed)) continue;
    yielded.AddTimes(r_.cluster->pod_class(promise.cls).request, promise.pods);
  }
  return yielded.entries().empty() || !r_.cluster->FitsAfterRelease(node, pod.cls, yielded);
}

// The offered nodes on which the pod is guarded, in order of names.
std::vector<std::string> CapacityGuard::PromisedNodes(const Pod& pod, const NodeOffer& offer) const {
  std::vector<std::string> out;
  if (pod.cls == kNoClass) return out;
  const auto& in_flight = r_.ledger->in_flight();
  const auto& unobserved = r_.ledger->unobserved_binds();
  const size_t may_be_guarded = r_.ledger->promised().size() + in_flight.size() + unobserved.size();
  const auto add = [&](absl::string_view name) {
    if (out.empty()) out.reserve(std::min(offer.size(), may_be_guarded));  // short cut: one is seldom alone
    out.emplace_back(name);
  };
  // Loop over the smaller set: the offered nodes, or those that may be guarded.
  if (offer.size() < may_be_guarded) {  // short cut
    for (size_t i = 0; i < offer.size(); ++i) {
      const NodeId node = r_.cluster->FindNode(offer.name(i));
      if (node != kNoNode && Guarded(pod, node, {})) add(offer.name(i));
    }
  } else {
    const auto add_if_guarded = [&](NodeId node) {
      const std::string& name = r_.cluster->node(node).facts.name;
      if (Guarded(pod, node, {}) && offer.Contains(name)) add(name);
    };
    for (const NodeId node : r_.ledger->promised()) add_if_guarded(node);
    for (const auto& [node, pods] : in_flight) {
      if (r_.ledger->PromisedOn(node).empty()) add_if_guarded(node);
    }
    for (const auto& [node, until_ms] : unobserved) {
      const bool removed = r_.cluster->node(node).facts.name.empty();
      if (!removed && r_.ledger->PromisedOn(node).empty() && !in_flight.contains(node)) add_if_guarded(node);
    }
  }
  if (!std::is_sorted(out.begin(), out.end())) std::sort(out.begin(), out.end());
  return out;
}

FilterReply CapacityGuard::FilterExtra(const Pod& pod, const NodeOffer& offer) const {
  FilterReply reply{FilterReply::Kind::kPass, "", PromisedNodes(pod, offer), {}};
  const bool has_domains = pod.gang != nullptr && pod.gang->rules.domains;
  if (has_domains) {
    const Region region = r_.domains->For(*pod.gang, pod.leaf);
    for (const absl::string_view name : offer.names()) {
      const NodeId node = r_.cluster->FindNode(name);
      if (node != kNoNode && !region.Has(node)) reply.guarded.emplace_back(name);
    }
    std::sort(reply.guarded.begin(), reply.guarded.end());
    reply.guarded.erase(std::unique(reply.guarded.begin(), reply.guarded.end()), reply.guarded.end());
  }
  if (reply.guarded.empty()) return reply;
  reply.reason = {ReasonCode::kGuarded,
                  has_domains
                      ? "the node is outside the domain of its gang, or its free capacity is promised to another"
                      : "the node's free capacity is promised to a gang"};
  return reply;
}

PreemptReply CapacityGuard::FilterCandidates(const Preempt& question, const Pod* pod, int64_t now_ms) {
  PreemptReply reply;
  const bool known = pod != nullptr && pod->gang != nullptr;
  const bool alone = known ? r_.eligibility->SchedulesIndividually(*pod->gang) : !question.names_gang;
  const bool placed = known && (pod->state == MemberState::kWaiting || pod->state == MemberState::kCommitted);
  if (!alone || placed) return reply;
  // Skip nodes outside the domains that its gang requires, and nodes whose regained capacity is promised to others: the
  // pod would be refused there after the eviction, which would be useless (P-4, K-3).
  const Region region = known ? r_.domains->For(*pod->gang, pod->leaf) : Region();
  const ByGang promised = VictimsOfOthers(question.uid);
  for (const PreemptCandidate& candidate : question.candidates) {
    const NodeId node = r_.cluster->FindNode(candidate.node);
    if (!region.everywhere() && (node == kNoNode || !region.Has(node))) continue;
    const bool readable = pod != nullptr && pod->cls != kNoClass && node != kNoNode;
    const std::optional<ResourceSum> regained = readable ? UsedBy(candidate.victim_uids, node) : std::nullopt;
    const bool guarded = regained.has_value() && Guarded(*pod, node, *regained);
    if (guarded || BreaksGang(promised, candidate.victim_uids)) continue;
    reply.nodes.push_back(candidate.node);
    // Until Muster reads that the victims are being deleted, they count as lost for their gangs.
    for (const std::string& uid : candidate.victim_uids) {
      const Pod* victim = r_.gangs->FindPod(uid);
      if (victim != nullptr && victim->gang != nullptr) victims_[{uid, question.uid}] = now_ms + kVictimMs;
    }
  }
  return reply;
}

std::optional<ResourceSum> CapacityGuard::UsedBy(const std::vector<std::string>& pods, NodeId node) const {
  ResourceSum sum;
  for (const std::string& uid : pods) {
    const Pod* pod = r_.gangs->FindPod(uid);
    if (pod == nullptr || pod->cls == kNoClass || r_.ledger->ChargeOf(pod->id).node != node) return std::nullopt;
    sum.AddTimes(r_.cluster->pod_class(pod->cls).request, 1);
  }
  return sum;
}

CapacityGuard::ByGang CapacityGuard::VictimsOfOthers(const std::string& preemptor) const {
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
bool CapacityGuard::BreaksGang(const ByGang& promised, const std::vector<std::string>& victims) const {
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
    for (const Pod* pod : others->second) {
      if (!absl::c_linear_search(of_gang, pod)) of_gang.push_back(pod);
    }
  }
  return absl::c_any_of(lost, [](const auto& entry) {
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
