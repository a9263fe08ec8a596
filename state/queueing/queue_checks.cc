// Whether the queues of claims allow placing them (SPEC ).
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "state/base/quantity.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/queueing/queues.h"

namespace muster {
namespace {

std::string Format(const std::string& resource, WideSum amount) {
  return FormatResources({{resource, ClampToInt64(amount)}});
}

// Adds the least amounts that any `needed` of the pods request, separately for each resource, because it is not known
// yet which of the pods will be placed. REQUIRES: there are at least `needed` pods.
void AddSmallestRequests(absl::Span<const Candidates> runs, int32_t needed, const Cluster& cluster, ResourceSum* sum) {
  int64_t pods = 0;
  for (const Candidates& run : runs) pods += run.pods;  // short cut
  if (pods == needed || runs.size() == 1) {             // short cut
    for (const Candidates& run : runs) sum->AddTimes(cluster.pod_class(run.cls).request, std::min(needed, run.pods));
    return;
  }
  absl::btree_set<ResourceId> resources;
  for (const Candidates& run : runs) {
    for (const auto& [resource, amount] : cluster.pod_class(run.cls).request.entries()) resources.insert(resource);
  }
  std::vector<std::pair<int64_t, int32_t>> asks;  // request of one pod, number of such pods
  for (const ResourceId resource : resources) {
    asks.clear();
    for (const Candidates& run : runs) {
      asks.emplace_back(cluster.pod_class(run.cls).request.Get(resource), run.pods);
    }
    absl::c_sort(asks);
    int32_t left = needed;
    for (const auto& [amount, pods_of] : asks) {
      sum->Add(resource, static_cast<WideSum>(amount) * std::min(left, pods_of));
      left -= std::min(left, pods_of);
    }
  }
}

// Whether the claims are exempt from the rules of queues: a partially bound claim is completed, with its group, even if
// its queue changed (K-13).
bool AreExempt(const Claims& claims) {
  return absl::c_any_of(claims, [](const Claim* claim) { return claim->partially_bound(); });
}

}  // namespace

ResourceSum Queues::Request(const Claim& claim) const {
  const std::vector<Candidates>& runs = gangs_->CandidateRuns(claim);
  const bool unstarted = claim.active() == 0 && claim.count(MemberState::kSucceeded) == 0;
  return MinimumDemand(claim, runs, eligibility_->Missing(claim), unstarted);
}

ResourceSum Queues::MinimumDemand(const Claim& claim, const std::vector<Candidates>& runs, int32_t needed,
                                  bool unstarted) const {
  ResourceSum sum;
  int32_t left = unstarted ? std::max(needed, claim.rules.total_number) : needed;
  // Members of higher priority are placed first (D-11); with subgroups, the subgroups decide the order.
  for (size_t begin = 0; begin < runs.size() && left > 0;) {
    size_t end = begin;
    int32_t pods = 0;
    while (end < runs.size() && (!claim.rules.tree.empty() || runs[end].priority == runs[begin].priority)) {
      pods += runs[end++].pods;
    }
    AddSmallestRequests(absl::MakeConstSpan(runs).subspan(begin, end - begin), std::min(left, pods), *cluster_, &sum);
    left -= std::min(left, pods);
    begin = end;
  }
  if (!unstarted) return sum;
  // Members that do not exist yet request the declared resources, otherwise those of the smallest existing member.
  if (left > 0 && !runs.empty() && claim.rules.min_resources.empty()) {
    std::vector<Candidates> assumed = runs;
    for (Candidates& run : assumed) run.pods = left;
    AddSmallestRequests(assumed, left, *cluster_, &sum);
  }
  for (const auto& [name, amount] : claim.rules.min_resources) {
    const ResourceId id = cluster_->names().Find(name);
    if (id >= 0 && sum.Get(id) < amount) sum.Set(id, amount);
  }
  return sum;
}

void Queues::AddRequest(const Claim& claim, const ResourceSum& amounts, bool fresh, DemandByQueue* asked) const {
  for (QueueId queue = Of(claim); queue != kNoQueue; queue = tree_->at(queue).parent) {
    QueueDemand& demand = (*asked)[queue];
    demand.all.AddTimes(amounts, 1);
    if (!claim.rules.preemptible) demand.fixed.AddTimes(amounts, 1);
    demand.fresh += fresh ? 1 : 0;
  }
}

Queues::DemandByQueue Queues::ComputeDemand(const Claims& claims, const Places* places) const {
  DemandByQueue asked;
  for (size_t i = 0; i < claims.size(); ++i) {
    ResourceSum amounts;
    if (places == nullptr) {
      amounts = Request(*claims[i]);
    } else {
      for (const Statement::Operation& place : (*places)[i]) {
        amounts.AddTimes(cluster_->pod_class(place.cls).request, place.pods);
      }
    }
    AddRequest(*claims[i], amounts, running_queue_.Of(claims[i]->id) == 0, &asked);
  }
  return asked;
}

Reason Queues::Check(const Claims& claims, std::optional<QueueBound>* bound, const Places* places) const {
  if (!tree_->any() || AreExempt(claims)) return {};
  return CheckDemand(claims, ComputeDemand(claims, places), bound);
}

Reason Queues::Check(const Pod& pod) const {
  if (!tree_->any() || pod.gang == nullptr) return {};
  // members that others bound are in no queue; no more are added to them.
  const bool in_no_queue = pod.gang->active() > 0 && Of(*pod.gang) == kNoQueue;
  if (Reason access = in_no_queue ? eligibility_->QueueReason(*pod.gang) : Reason(); !access.none()) return access;
  if (AreExempt({pod.gang})) return {};
  // A pod that is charged already, or of which nothing is known, asks for no amounts. Its gang may start to run with
  // it.
  const bool charged = ledger_->ChargeOf(pod.id).node != kNoNode;
  DemandByQueue asked;
  ResourceSum sum;
  if (!charged && pod.cls != kNoClass) sum.AddTimes(cluster_->pod_class(pod.cls).request, 1);
  AddRequest(*pod.gang, sum, running_queue_.Of(pod.gang->id) == 0, &asked);
  return CheckDemand({pod.gang}, asked);
}

Reason Queues::CheckReplacing(const Pod& pod, ClassId reserved) const {
  if (!tree_->any() || pod.gang == nullptr || pod.cls == reserved) return {};
  const ResourceVector& has = cluster_->pod_class(reserved).request;
  ResourceSum more;
  for (const auto& [resource, amount] : cluster_->pod_class(pod.cls).request.entries()) {
    if (amount > has.Get(resource)) more.Add(resource, amount - has.Get(resource));
  }
  DemandByQueue asked;
  AddRequest(*pod.gang, more, /*fresh=*/false, &asked);
  return CheckDemand({pod.gang}, asked);
}

ResourceSum Queues::DemandAtBarrier(const Claim& claim) const {
  absl::btree_map<ClassId, int32_t> pods;
  for (const MemberState state : {MemberState::kPending, MemberState::kWaiting}) {
    for (const Pod* pod : claim.in(state)) {
      if (pod->cls != kNoClass) ++pods[pod->cls];
    }
  }
  std::vector<Candidates> runs;
  for (const auto& [cls, count] : pods) runs.push_back({cls, 0, count});
  const bool unstarted = claim.active() == 0;
  const int32_t needed = unstarted ? std::max(0, claim.rules.min_member) : eligibility_->Missing(claim);
  return MinimumDemand(claim, runs, needed, unstarted);
}

ResourceSum Queues::WaitingUsage(const Claim& claim) const {
  ResourceSum sum;
  for (const Pod* pod : claim.in(MemberState::kWaiting)) {
    if (pod->cls != kNoClass) sum.AddTimes(cluster_->pod_class(pod->cls).request, 1);
  }
  return sum;
}

Reason Queues::CheckAtBarrier(const Pod& pod, const Claims& claims, const Claims& ahead, const Claims& behind) const {
  if (!tree_->any() || pod.cls == kNoClass || AreExempt(claims)) return {};
  DemandByQueue asked;
  const auto add = [&](const Claim& claim) {
    ResourceSum rest = DemandAtBarrier(claim);
    const ResourceSum waiting = WaitingUsage(claim);
    for (const ResourceSum::Entry& entry : waiting.entries()) {
      rest.Set(entry.id, std::max<WideSum>(0, rest.Get(entry.id) - entry.amount));
    }
    for (const auto& [resource, amount] : cluster_->pod_class(pod.cls).request.entries()) {
      if (&claim == pod.gang && rest.Get(resource) < amount) rest.Set(resource, amount);
    }
    AddRequest(claim, rest, running_queue_.Of(claim.id) == 0, &asked);
  };
  for (const Claim* claim : claims) add(*claim);
  for (const Claim* claim : behind) {
    ResourceSum returned;
    returned.AddTimes(WaitingUsage(*claim), -1);
    AddRequest(*claim, returned, /*fresh=*/false, &asked);
  }
  if (Reason alone = CheckDemand(claims, asked); !alone.none()) return alone;
  const Claim* holder = nullptr;
  for (const Claim* claim : ahead) {
    if (!ShareQueue(*claim, *pod.gang)) continue;
    add(*claim);
    if (holder == nullptr) holder = claim;
  }
  if (holder == nullptr || CheckDemand(claims, asked).none()) return {};
  return {ReasonCode::kQueueLimit, absl::StrCat("gang ", holder->key, " waits at the barrier, and queue ",
                                                tree_->at(Of(*holder)).spec.name, " has no room for both")};
}

Reason Queues::PermanentRejection(const Claim& claim) const {
  if (!tree_->any() || claim.active() > 0) return {};
  DemandByQueue asked;
  AddRequest(claim, DemandAtBarrier(claim), /*fresh=*/false, &asked);
  Reason reason = CheckDemand({&claim}, asked);
  return reason.code == ReasonCode::kQueueRejected ? reason : Reason();
}

Reason Queues::OverdraftReason(const Claim& claim, absl::FunctionRef<bool(ResourceId)> uses) const {
  if (!tree_->any() || eligibility_->KeyOf(claim).partially_bound) return {};  // exempt, as in Check of its whole group
  for (QueueId at = Of(claim); at != kNoQueue; at = tree_->at(at).parent) {
    const QueueSpec& spec = tree_->at(at).spec;
    for (const bool quota : {false, true}) {
      if (quota && claim.rules.preemptible) continue;
      const ResourceSum& used = (quota ? ledger_->fixed() : ledger_->used()).Of(at);
      for (const auto& [resource, most] : quota ? spec.quota : spec.limit) {
        const ResourceId id = cluster_->names().Find(resource);
        const WideSum has = used.Get(id);
        if (has <= most || !uses(id)) continue;
        return {
            ReasonCode::kQueueLimit,
            absl::StrCat("with it queue ", spec.name, " would use ", Format(resource, has), ", more than its ",
                         quota ? "quota for non-preemptible gangs" : "limit", ", ", FormatQuantity(resource, most))};
      }
    }
  }
  return {};
}

double Queues::CostShareOf(ClassId cls) const {
  double most = 0;
  for (const std::string& resource : tree_->resources()) {
    const ResourceId id = cluster_->names().Find(resource);
    const WideSum total = cluster_->TotalAllocatable().Get(id);
    if (total <= 0) continue;
    most = std::max(most, static_cast<double>(cluster_->pod_class(cls).request.Get(id)) / static_cast<double>(total));
  }
  return most;
}

// Returns a permanent rejection by any queue, otherwise the reason of the refusing queue nearest to the claim.
Reason Queues::CheckDemand(const Claims& claims, const DemandByQueue& asked, std::optional<QueueBound>* bound) const {
  Refusal first;
  for (auto each = asked.rbegin(); each != asked.rend(); ++each) {
    Refusal refusal = CheckQueue(claims, each->first, each->second);
    const bool rejected = refusal.reason.code == ReasonCode::kQueueRejected;
    if (rejected || first.reason.none()) first = std::move(refusal);
    if (rejected) break;
  }
  if (bound != nullptr && !first.reason.none()) *bound = std::move(first.bound);
  return std::move(first.reason);
}

absl::string_view Queues::ReservationRule() const {
  return tree_->rules().head == HeadPolicy::kHold ? "is the head of the queue (queues.policy: hold)"
                                                  : "was bypassed for too long";
}

std::string Queues::ReservationText() const {
  return absl::StrCat("; it ", ReservationRule(), ": capacity that becomes free is reserved for it");
}

// Of several claims with reserved demand, the first in order may use it.
Queues::QueueDemand Queues::ReservedByOthers(const Claims& claims, QueueId queue, const Claim** holder) const {
  QueueDemand sum;
  // Under policy `hold`, the order between queues (Before) decides for claims that start; for extra members, G-9
  // decides as under other policies.
  const bool in_order = !claims.front()->durable.satisfied && tree_->rules().head == HeadPolicy::kHold;
  if (claims.front()->below_minimum()) return sum;
  const QueueKey key = eligibility_->KeyOf(*claims.front());
  const bool reserve = absl::c_any_of(claims, [this](const Claim* claim) { return HasReservedDemand(*claim); });
  for (const auto& [id, asked] : reserved_demand_) {
    const Claim& other = gangs_->claim(id);
    const auto of = asked.find(queue);
    if (of == asked.end() || absl::c_linear_search(claims, &other)) continue;
    const QueueKey other_key = eligibility_->KeyOf(other);
    if (in_order ? !Before(other, *claims.front()) : reserve ? !(other_key < key) : other_key.priority < key.priority) {
      continue;
    }
    if (*holder == nullptr) *holder = &other;
    sum.all.AddTimes(of->second.all, 1);
    sum.fixed.AddTimes(of->second.fixed, 1);
    sum.fresh += of->second.fresh;
  }
  return sum;
}

Queues::Refusal Queues::CheckQueue(const Claims& claims, QueueId queue, const QueueDemand& asked) const {
  const QueueSpec& spec = tree_->at(queue).spec;
  const Claim* holder = nullptr;
  const QueueDemand reserved = reserved_demand_.empty() ? QueueDemand() : ReservedByOthers(claims, queue, &holder);
  using Kind = QueueBound::Kind;
  Refusal temporary;
  for (const bool quota : {false, true}) {
    const Kind kind = quota ? Kind::kQuota : Kind::kLimit;
    const ResourceSum& wanted = quota ? asked.fixed : asked.all;
    const ResourceSum& held = quota ? reserved.fixed : reserved.all;
    const ResourceSum& used = (quota ? ledger_->fixed() : ledger_->used()).Of(queue);
    for (const auto& [resource, most] : quota ? spec.quota : spec.limit) {
      const ResourceId id = cluster_->names().Find(resource);
      const WideSum wants = wanted.Get(id);
      if (wants == 0) continue;
      const WideSum has = used.Get(id);
      const bool permanent = wants > most;
      if (!permanent && (has + wants + held.Get(id) <= most || !temporary.reason.none())) continue;
      const std::string asks = absl::StrCat("asks for ", Format(resource, wants));
      const std::string bound = absl::StrCat(quota ? "quota" : "limit", " of queue ", spec.name, ", ",
                                             Format(resource, most), quota ? " for non-preemptible gangs" : "");
      if (permanent) {
        return {{ReasonCode::kQueueRejected, absl::StrCat(asks, ", more than the ", bound)},
                {spec.name, kind, /*permanent=*/true, resource, ClampToInt64(wants), 0}};
      }
      temporary = {{ReasonCode::kQueueLimit, absl::StrCat(asks, ", of the ", bound, ", ",
                                                          FormatQuantity(resource, ClampToInt64(has)), " is used")},
                   {spec.name, kind, /*permanent=*/false, resource, ClampToInt64(wants), most}};
      if (held.Get(id) == 0) continue;
      absl::StrAppend(&temporary.reason.text, ", ", FormatQuantity(resource, ClampToInt64(held.Get(id))),
                      " is reserved for gang ", holder->key, ", which ", ReservationRule());
    }
  }
  if (spec.max_applications > 0 && asked.fresh > spec.max_applications) {
    return {{ReasonCode::kQueueRejected,
             absl::StrCat("starts ", asked.fresh, " gangs together, more than queue ", spec.name, " lets run at once (",
                          spec.max_applications, ", maxApplications)")},
            {spec.name, Kind::kRunningGangs, /*permanent=*/true, "", asked.fresh, spec.max_applications}};
  }
  const int32_t runs = running_[static_cast<size_t>(queue)];
  const int32_t may_run = spec.max_applications - reserved.fresh;
  if (temporary.reason.none() && spec.max_applications > 0 && asked.fresh > 0 && runs + asked.fresh > may_run) {
    temporary = {{ReasonCode::kQueueLimit, absl::StrCat("queue ", spec.name, " lets ", spec.max_applications,
                                                        spec.max_applications == 1 ? " gang" : " gangs",
                                                        " run at once (maxApplications), and ", runs, " run")},
                 {spec.name, Kind::kRunningGangs, /*permanent=*/false, "", 0, spec.max_applications}};
    if (reserved.fresh > 0)
      absl::StrAppend(&temporary.reason.text, "; gang ", holder->key, " is ahead of it and ", ReservationRule());
  }
  return temporary;
}

}  // namespace muster
