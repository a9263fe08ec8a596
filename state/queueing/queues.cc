#include "state/queueing/queues.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/queueing/fair_share.h"

namespace muster {

void Queues::Set(QueueRules rules) {
  tree_->Set(std::move(rules));
  ledger_->OpenAccounts(tree_->Parents());
  waiting_.Reset(tree_->Parents());
  for (int32_t claim = 0; claim < running_queue_.limit(); ++claim) running_queue_.Reset(claim);
  for (int32_t claim = 0; claim < demands_.limit(); ++claim) demands_.Reset(claim);
  running_.assign(static_cast<size_t>(tree_->size()), 0);
  waiting_gangs_.assign(static_cast<size_t>(tree_->size()), 0);
  reserved_demand_.clear();
  shares_known_ = false;
}

namespace {

// Whether the claim's members use capacity, terminating ones included.
bool Occupies(const Claim& claim) { return claim.active() > 0 || claim.count(MemberState::kTerminating) > 0; }

}  // namespace

QueueId Queues::Of(const Claim& claim) const {
  if (!tree_->any()) return kNoQueue;
  QueueId named = tree_->ResolveQueue(claim.rules.queue).queue;
  if (!Occupies(claim)) return named;
  // A queue that got child queues accepts no claims any more; claims that run in it still count there until they end.
  if (named == kNoQueue) named = tree_->Find(claim.rules.queue);
  // a claim that runs stays in its queue if that serves it no longer, or if it names a queue that does not.
  const QueueId runs_in = tree_->Find(claim.durable.queue);
  const bool served = named != kNoQueue && (named == runs_in || eligibility_->IsServed(claim, named));
  return served ? named : runs_in;
}

std::string Queues::RunsIn(const Claim& claim) const {
  const QueueId at = Occupies(claim) ? Of(claim) : kNoQueue;
  return at == kNoQueue ? "" : tree_->at(at).spec.name;
}

std::string Queues::WarningOf(const Claim& claim) const {
  const std::string& name = claim.rules.queue;
  const QueueId at = Of(claim);
  QueueId named = tree_->ResolveQueue(name).queue;
  if (named == kNoQueue) named = tree_->Find(name);
  const bool as_named = at == named && (named == kNoQueue || eligibility_->IsServed(claim, named));
  if (!Occupies(claim) || as_named) return tree_->WarningOf(name);
  return absl::StrCat(
      named == kNoQueue ? absl::StrCat("there is no queue ", name) : absl::StrCat("queue ", name, " does not serve it"),
      at == kNoQueue ? "; its members are charged to no queue"
                     : absl::StrCat("; it runs in queue ", tree_->at(at).spec.name, " until it ends"));
}

void Queues::SetPayers(const Claim& claim) {
  const QueueId home = Of(claim);
  const Ledger::Payer payer{home, home != kNoQueue && !claim.rules.preemptible};
  if (!(ledger_->ClaimPayerOf(claim.id) == payer)) {
    ledger_->SetClaimPayer(claim.id, payer);
    for (const Pod* pod : claim.AllMembers()) ledger_->SetPayer(pod->id, payer);
  }
}

void Queues::Refresh(const Claim& claim, bool runs, bool waits, bool never) {
  SetPayers(claim);
  const QueueId home = Of(claim);
  SetRunning(claim, runs ? home : kNoQueue);
  Demand demand{waits ? home : kNoQueue, {}};
  if (waits && !never && home != kNoQueue) {
    for (const Claim* each : eligibility_->PlacedTogether(claim)) AddDemand(Of(*each), Request(*each), &demand);
  }
  SetDemand(claim, std::move(demand));
  if (!waits) ReleaseDemand(claim);
}

void Queues::AddDemand(QueueId queue, const ResourceSum& amounts, Demand* demand) {
  auto part = absl::c_find_if(demand->parts, [&](const Demand::Part& each) { return each.queue == queue; });
  if (part == demand->parts.end()) part = demand->parts.insert(part, {queue, {}});
  part->amounts.AddTimes(amounts, 1);
}

ResourceSum Queues::DemandOn(const Claim& claim, QueueId queue) const {
  ResourceSum sum;
  for (const Demand::Part& part : demands_.Of(claim.id).parts) {
    QueueId at = part.queue;
    while (at != kNoQueue && at != queue) at = tree_->at(at).parent;
    if (at != kNoQueue) sum.AddTimes(part.amounts, 1);
  }
  return sum;
}

void Queues::ReserveDemand(const Claim& claim) {
  if (!tree_->any()) return;
  DemandByQueue asked = ComputeDemand(eligibility_->PlacedTogether(claim));
  const auto [at, fresh] = reserved_demand_.try_emplace(claim.id);
  if (!fresh && at->second == asked) return;
  at->second = std::move(asked);
  ledger_->OnUsageGrown();
  if (!fresh) ledger_->OnCapacityFreed();  // the demand may have become smaller
}

void Queues::ReleaseDemand(const Claim& claim) {
  if (!reserved_demand_.empty() && reserved_demand_.erase(claim.id) > 0) ledger_->OnCapacityFreed();
}

std::vector<ClaimId> Queues::ReservingGangs() const {
  std::vector<ClaimId> out;
  for (const auto& [id, asked] : reserved_demand_) out.push_back(id);
  return out;
}

bool Queues::IsReservedForOthers(const Claim& claim) const {
  return absl::c_any_of(reserved_demand_, [&](const auto& reserved) {
    const Claim& other = gangs_->claim(reserved.first);
    return &other != &claim && ShareQueue(other, claim) && Before(other, claim);
  });
}

bool Queues::ShareQueue(const Claim& a, const Claim& b) const {
  for (QueueId of_a = Of(a); of_a != kNoQueue; of_a = tree_->at(of_a).parent) {
    for (QueueId of_b = Of(b); of_b != kNoQueue; of_b = tree_->at(of_b).parent) {
      if (of_a == of_b) return true;
    }
  }
  return false;
}

void Queues::MarkAdmitted(const Claim& claim) { SetRunning(claim, Of(claim)); }

void Queues::Remove(const Claim& claim) {
  SetRunning(claim, kNoQueue);
  SetDemand(claim, {});
  ledger_->SetClaimPayer(claim.id, {});
  refused_.erase(claim.id);
  ReleaseDemand(claim);
}

void Queues::TouchRefused() {
  for (const ClaimId id : std::exchange(refused_, {})) gangs_->Touch(gangs_->claim(id));
}

void Queues::Count(QueueId queue, int32_t change, std::vector<int32_t>* counts) const {
  for (; queue != kNoQueue; queue = tree_->at(queue).parent) (*counts)[static_cast<size_t>(queue)] += change;
}

void Queues::SetRunning(const Claim& claim, QueueId queue) {
  if (running_queue_.Of(claim.id) == queue + 1) return;
  ledger_->OnUsageGrown();
  Count(running_queue_.Of(claim.id) - 1, -1, &running_);
  Count(queue, 1, &running_);
  if (queue == kNoQueue) {
    ledger_->OnCapacityFreed();
    return running_queue_.Reset(claim.id);
  }
  running_queue_[claim.id] = queue + 1;
}

void Queues::SetDemand(const Claim& claim, Demand demand) {
  const Demand& known = demands_.Of(claim.id);
  if (known == demand) return;
  ledger_->OnUsageGrown();
  for (const Demand::Part& part : known.parts) waiting_.AddAmounts(part.queue, part.amounts, -1);
  for (const Demand::Part& part : demand.parts) waiting_.AddAmounts(part.queue, part.amounts, 1);
  Count(known.queue, -1, &waiting_gangs_);
  Count(demand.queue, 1, &waiting_gangs_);
  if (demand.queue == kNoQueue) return demands_.Reset(claim.id);
  demands_[claim.id] = std::move(demand);
}

// --- order ---

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
    shares.push_back(FairShares(ClampToInt64(cluster_->TotalAllocatable().Get(id)), claims));
  }
  return shares;
}

bool Queues::ExceedsShare(QueueId queue, const ResourceSum& more) const {
  for (size_t i = 0; i < tree_->resources().size(); ++i) {
    const ResourceId id = cluster_->names().Find(tree_->resources()[i]);
    if (id < 0 || more.Get(id) == 0) continue;
    if (ledger_->used().Of(queue).Get(id) + more.Get(id) > shares_[i][static_cast<size_t>(queue)]) return true;
  }
  return false;
}

// The used fraction of the share, with `more` in addition: the maximum over all resources.
double Queues::ShareUtilization(QueueId queue, const ResourceSum& more) const {
  double most = 0;
  for (size_t i = 0; i < tree_->resources().size(); ++i) {
    const ResourceId id = cluster_->names().Find(tree_->resources()[i]);
    const WideSum used = ledger_->used().Of(queue).Get(id) + more.Get(id);
    if (used == 0) continue;
    const int64_t share = shares_[i][static_cast<size_t>(queue)];
    most = std::max(most, share == 0 ? std::numeric_limits<double>::infinity()
                                     : static_cast<double>(used) / static_cast<double>(share));
  }
  return most;
}

bool Queues::Before(const Claim& a, const Claim& b) const {
  const QueueKey key_a = eligibility_->KeyOf(a);
  const QueueKey key_b = eligibility_->KeyOf(b);
  QueueId at_a = Of(a);
  QueueId at_b = Of(b);
  if (key_a.partially_bound != key_b.partially_bound || at_a == at_b || at_a == kNoQueue || at_b == kNoQueue) {
    return key_a < key_b;
  }
  if (!std::exchange(shares_known_, true)) shares_ = ComputeShares();
  const auto exceeds = [this](const Claim& claim) {
    for (const Demand::Part& part : demands_.Of(claim.id).parts) {
      for (QueueId at = part.queue; at != kNoQueue; at = tree_->at(at).parent) {
        if (ExceedsShare(at, DemandOn(claim, at))) return true;
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
