#include "state/queueing/queues.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "state/queueing/fair_share.h"

namespace muster {

void Queues::Set(QueueRules rules) {
  tree_->Set(std::move(rules));
  ledger_->OpenAccounts(tree_->Parents());
  waiting_.Reset(tree_->Parents());
  for (int32_t gang = 0; gang < running_queue_.limit(); ++gang) {
    if (running_queue_.Of(gang) != 0) running_queue_.Reset(gang);
  }
  for (int32_t gang = 0; gang < demands_.limit(); ++gang) {
    if (demands_.Of(gang).queue != kNoQueue) demands_.Reset(gang);
  }
  running_.assign(static_cast<size_t>(tree_->size()), 0);
  waiting_gangs_.assign(static_cast<size_t>(tree_->size()), 0);
  reserved_demand_.clear();
  shares_known_ = false;
}

QueueId Queues::Of(const Gang& gang) const {
  if (!tree_->any()) return kNoQueue;
  const QueueId home = tree_->ResolveQueue(gang.rules.queue).queue;
  // A queue that got child queues accepts no gangs any more; gangs that run in it still count there until they end.
  if (home == kNoQueue && gang.active() > 0) return tree_->Find(gang.rules.queue);
  return home;
}

void Queues::SetPayers(const Gang& gang) {
  const QueueId home = Of(gang);
  const Ledger::Payer payer{home, home != kNoQueue && !gang.rules.preemptible};
  if (!(ledger_->ClaimPayerOf(gang.id) == payer)) {
    ledger_->SetClaimPayer(gang.id, payer);
    for (const MemberSet& set : gang.members) {
      for (const Pod* pod : set) ledger_->SetPayer(pod->id, payer);
    }
  }
}

void Queues::Refresh(const Gang& gang, bool runs, bool waits, bool never) {
  SetPayers(gang);
  const QueueId home = Of(gang);
  SetRunning(gang, runs ? home : kNoQueue);
  Demand demand{waits ? home : kNoQueue, {}};
  if (waits && !never && home != kNoQueue) {
    for (const Gang* each : eligibility_->Unplaced(gang)) AddDemand(Of(*each), Request(*each), &demand);
  }
  SetDemand(gang, std::move(demand));
  if (!waits) ReleaseDemand(gang);
}

void Queues::AddDemand(QueueId queue, const ResourceSum& amounts, Demand* demand) {
  auto part = absl::c_find_if(demand->parts, [&](const Demand::Part& each) { return each.queue == queue; });
  if (part == demand->parts.end()) part = demand->parts.insert(part, {queue, {}});
  for (const auto& [resource, amount] : amounts.entries()) part->amounts.Add(resource, amount);
}

ResourceSum Queues::DemandOn(const Gang& gang, QueueId queue) const {
  ResourceSum sum;
  for (const Demand::Part& part : demands_.Of(gang.id).parts) {
    QueueId at = part.queue;
    while (at != kNoQueue && at != queue) at = tree_->at(at).parent;
    if (at == kNoQueue) continue;
    for (const auto& [resource, amount] : part.amounts.entries()) sum.Add(resource, amount);
  }
  return sum;
}

void Queues::ReserveDemand(const Gang& gang) {
  if (!tree_->any()) return;
  DemandByQueue asked = ComputeDemand(eligibility_->Unplaced(gang));
  const auto [at, fresh] = reserved_demand_.try_emplace(gang.id);
  if (!fresh && at->second == asked) return;
  at->second = std::move(asked);
  if (!fresh) ledger_->OnCapacityFreed();  // the demand may have become smaller
}

void Queues::ReleaseDemand(const Gang& gang) {
  if (!reserved_demand_.empty() && reserved_demand_.erase(gang.id) > 0) ledger_->OnCapacityFreed();
}

std::vector<GangId> Queues::ReservingGangs() const {
  std::vector<GangId> out;
  for (const auto& [id, asked] : reserved_demand_) out.push_back(id);
  return out;
}

bool Queues::IsReservedForOthers(const Gang& gang) const {
  return absl::c_any_of(reserved_demand_, [&](const auto& reserved) {
    const Gang& other = gangs_->gang(reserved.first);
    return &other != &gang && ShareQueue(other, gang) && Before(other, gang);
  });
}

bool Queues::ShareQueue(const Gang& a, const Gang& b) const {
  for (QueueId of_a = Of(a); of_a != kNoQueue; of_a = tree_->at(of_a).parent) {
    for (QueueId of_b = Of(b); of_b != kNoQueue; of_b = tree_->at(of_b).parent) {
      if (of_a == of_b) return true;
    }
  }
  return false;
}

void Queues::MarkAdmitted(const Gang& gang) { SetRunning(gang, Of(gang)); }

void Queues::Remove(const Gang& gang) {
  SetRunning(gang, kNoQueue);
  SetDemand(gang, {});
  ledger_->SetClaimPayer(gang.id, {});
  refused_.erase(gang.id);
  ReleaseDemand(gang);
}

void Queues::TouchRefused() {
  for (const GangId id : std::exchange(refused_, {})) gangs_->Touch(gangs_->gang(id));
}

void Queues::Count(QueueId queue, int32_t change, std::vector<int32_t>* counts) const {
  for (; queue != kNoQueue; queue = tree_->at(queue).parent) (*counts)[static_cast<size_t>(queue)] += change;
}

void Queues::SetRunning(const Gang& gang, QueueId queue) {
  if (running_queue_.Of(gang.id) == queue + 1) return;
  Count(running_queue_.Of(gang.id) - 1, -1, &running_);
  Count(queue, 1, &running_);
  if (queue == kNoQueue) {
    ledger_->OnCapacityFreed();
    return running_queue_.Reset(gang.id);
  }
  running_queue_[gang.id] = queue + 1;
}

void Queues::SetDemand(const Gang& gang, Demand demand) {
  const Demand& known = demands_.Of(gang.id);
  if (known == demand) return;
  for (const Demand::Part& part : known.parts) waiting_.AddAmounts(part.queue, part.amounts, -1);
  for (const Demand::Part& part : demand.parts) waiting_.AddAmounts(part.queue, part.amounts, 1);
  Count(known.queue, -1, &waiting_gangs_);
  Count(demand.queue, 1, &waiting_gangs_);
  if (demand.queue == kNoQueue) return demands_.Reset(gang.id);
  demands_[gang.id] = std::move(demand);
}

// --- order ---

void Queues::RefreshShares() const {
  if (!std::exchange(shares_known_, true)) shares_ = ComputeShares();
}

Queues::Shares Queues::ComputeShares() const {
  Shares shares;
  std::vector<ShareClaim> claims(static_cast<size_t>(tree_->size()));
  for (const std::string& resource : tree_->resources()) {
    const ResourceId id = cluster_->names().Find(resource);
    for (QueueId queue = 0; queue < tree_->size(); ++queue) {
      const QueueTree::Queue& at = tree_->at(queue);
      const auto of = [&](const ResourceList& list, int64_t otherwise) {
        const auto found = list.find(resource);
        return found == list.end() ? otherwise : found->second;
      };
      ShareClaim& claim = claims[static_cast<size_t>(queue)];
      claim = {at.parent,
               of(at.spec.quota, 0),
               of(at.spec.limit, -1),
               of(at.spec.over_quota_weight, 1),
               at.spec.priority,
               at.age,
               0};
      if (at.leaf && id >= 0)
        claim.requested = ClampToInt64(ledger_->used().Of(queue).Get(id) + waiting_.Of(queue).Get(id));
    }
    shares.push_back(FairShares(id < 0 ? 0 : ClampToInt64(cluster_->TotalAllocatable().Get(id)), claims));
  }
  return shares;
}

int64_t Queues::ShareOf(QueueId queue, size_t resource) const { return shares_[resource][static_cast<size_t>(queue)]; }

bool Queues::ExceedsShare(QueueId queue, const ResourceSum& more) const {
  for (size_t i = 0; i < tree_->resources().size(); ++i) {
    const ResourceId id = cluster_->names().Find(tree_->resources()[i]);
    if (id < 0 || more.Get(id) == 0) continue;
    if (ledger_->used().Of(queue).Get(id) + more.Get(id) > ShareOf(queue, i)) return true;
  }
  return false;
}

// The used fraction of the share, with `more` in addition: the maximum over all resources.
double Queues::ShareUtilization(QueueId queue, const ResourceSum& more) const {
  double most = 0;
  for (size_t i = 0; i < tree_->resources().size(); ++i) {
    const ResourceId id = cluster_->names().Find(tree_->resources()[i]);
    const WideSum used = id < 0 ? 0 : ledger_->used().Of(queue).Get(id) + more.Get(id);
    if (used == 0) continue;
    const int64_t share = ShareOf(queue, i);
    most = std::max(most, share == 0 ? std::numeric_limits<double>::infinity()
                                     : static_cast<double>(used) / static_cast<double>(share));
  }
  return most;
}

bool Queues::Before(const Gang& a, const Gang& b) const {
  const QueueKey key_a = eligibility_->KeyOf(a);
  const QueueKey key_b = eligibility_->KeyOf(b);
  QueueId at_a = Of(a);
  QueueId at_b = Of(b);
  if (key_a.partially_bound != key_b.partially_bound || at_a == at_b || at_a == kNoQueue || at_b == kNoQueue) {
    return key_a < key_b;
  }
  RefreshShares();
  const auto exceeds = [this](const Gang& gang) {
    for (const Demand::Part& part : demands_.Of(gang.id).parts) {
      for (QueueId at = part.queue; at != kNoQueue; at = tree_->at(at).parent) {
        if (ExceedsShare(at, DemandOn(gang, at))) return true;
      }
    }
    return false;
  };
  if (const bool over_a = exceeds(a), over_b = exceeds(b); over_a != over_b) return over_b;
  // Compares the two queues that have the same parent, or are both at the top.
  while (tree_->at(at_a).parent != tree_->at(at_b).parent) {
    QueueId& deeper = tree_->at(at_a).depth >= tree_->at(at_b).depth ? at_a : at_b;
    deeper = tree_->at(deeper).parent;
  }
  const QueueTree::Queue& of_a = tree_->at(at_a);
  const QueueTree::Queue& of_b = tree_->at(at_b);
  if (of_a.spec.priority != of_b.spec.priority) return of_a.spec.priority > of_b.spec.priority;
  const double used_a = ShareUtilization(at_a, {});
  const double used_b = ShareUtilization(at_b, {});
  if (used_a != used_b) return used_a < used_b;
  const double next_a = ShareUtilization(at_a, DemandOn(a, at_a));
  const double next_b = ShareUtilization(at_b, DemandOn(b, at_b));
  return next_a != next_b ? next_a < next_b : key_a < key_b;
}

// --- for views ---

std::vector<Queues::Figures> Queues::ComputeFigures() const {
  const Shares shares = ComputeShares();
  std::vector<Figures> all(static_cast<size_t>(tree_->size()));
  for (QueueId id = 0; id < tree_->size(); ++id) {
    const auto at = static_cast<size_t>(id);
    Figures& out = all[at];
    out.used = cluster_->names().ToList(ledger_->used().Of(id));
    out.waiting = cluster_->names().ToList(waiting_.Of(id));
    for (size_t i = 0; i < tree_->resources().size(); ++i) out.share[tree_->resources()[i]] = shares[i][at];
    out.running_gangs = running_[at];
    out.waiting_gangs = waiting_gangs_[at];
  }
  return all;
}

}  // namespace muster
