#include "state/starts/queues.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/quantity.h"
#include "state/queueing/fair_share.h"

namespace muster {
namespace {

std::string Shown(const std::string& resource, WideSum amount) {
  return FormatResources({{resource, Nearest(amount)}});
}

}  // namespace

void Queues::Set(QueueRules rules) {
  tree_->Set(std::move(rules));
  ledger_->OpenAccounts(tree_->Parents());
  waiting_.Reset(tree_->Parents());
  for (int32_t gang = 0; gang < gangs_in_.limit(); ++gang) {
    if (gangs_in_.Of(gang) != 0) gangs_in_.Reset(gang);
  }
  for (int32_t gang = 0; gang < demands_.limit(); ++gang) {
    if (demands_.Of(gang).queue != kNoQueue) demands_.Reset(gang);
  }
  running_.assign(static_cast<size_t>(tree_->size()), 0);
  waiting_gangs_.assign(static_cast<size_t>(tree_->size()), 0);
  held_.clear();
  shares_known_ = false;
}

QueueId Queues::Of(const Gang& gang) const { return tree_->any() ? tree_->HomeOf(gang.rules.queue).queue : kNoQueue; }

void Queues::Follow(const Gang& gang, bool runs, bool waits, bool never) {
  const QueueId home = Of(gang);
  const Ledger::Payer payer{home, home != kNoQueue && !gang.rules.preemptible};
  if (!(ledger_->ClaimPayerOf(gang.id) == payer)) {
    ledger_->SetClaimPayer(gang.id, payer);
    for (const MemberSet& set : gang.members) {
      for (const Pod* pod : set) ledger_->SetPayer(pod->id, payer);
    }
  }
  SetRunning(gang, runs ? home : kNoQueue);
  ResourceSum amounts;
  if (waits && !never && home != kNoQueue) {
    for (const Gang* each : eligibility_->Unplaced(gang)) {
      const ResourceSum request = Request(*each);
      for (const auto& [resource, amount] : request.entries()) amounts.Add(resource, amount);
    }
  }
  SetDemand(gang, waits ? home : kNoQueue, amounts);
  if (!waits) EndHold(gang);
}

void Queues::Hold(const Gang& gang) {
  if (tree_->any()) held_[gang.id] = AskedBy(eligibility_->Unplaced(gang));
}

void Queues::EndHold(const Gang& gang) {
  if (!held_.empty() && held_.erase(gang.id) > 0) ledger_->NoteFreed();
}

bool Queues::Share(const Gang& a, const Gang& b) const {
  for (QueueId of_a = Of(a); of_a != kNoQueue; of_a = tree_->at(of_a).parent) {
    for (QueueId of_b = Of(b); of_b != kNoQueue; of_b = tree_->at(of_b).parent) {
      if (of_a == of_b) return true;
    }
  }
  return false;
}

void Queues::LetIn(const Gang& gang) { SetRunning(gang, Of(gang)); }

void Queues::Forget(const Gang& gang) {
  SetRunning(gang, kNoQueue);
  SetDemand(gang, kNoQueue, {});
  ledger_->SetClaimPayer(gang.id, {});
  refused_.erase(gang.id);
  EndHold(gang);
}

void Queues::TouchRefused() {
  for (const GangId id : std::exchange(refused_, {})) gangs_->Touch(gangs_->gang(id));
}

void Queues::Count(QueueId queue, int32_t change, std::vector<int32_t>* counts) const {
  for (; queue != kNoQueue; queue = tree_->at(queue).parent) (*counts)[static_cast<size_t>(queue)] += change;
}

void Queues::SetRunning(const Gang& gang, QueueId queue) {
  if (gangs_in_.Of(gang.id) == queue + 1) return;
  Count(gangs_in_.Of(gang.id) - 1, -1, &running_);
  Count(queue, 1, &running_);
  if (queue == kNoQueue) {
    ledger_->NoteFreed();
    return gangs_in_.Reset(gang.id);
  }
  gangs_in_[gang.id] = queue + 1;
}

void Queues::SetDemand(const Gang& gang, QueueId queue, const ResourceSum& amounts) {
  const Demand& known = demands_.Of(gang.id);
  if (known.queue == queue && (queue == kNoQueue || known.amounts == amounts)) return;
  waiting_.Book(known.queue, known.amounts, -1);
  waiting_.Book(queue, amounts, 1);
  Count(known.queue, -1, &waiting_gangs_);
  Count(queue, 1, &waiting_gangs_);
  if (queue == kNoQueue) return demands_.Reset(gang.id);
  demands_[gang.id] = {queue, amounts};
}

// A gang of which a part is bound is finished whatever its queue was told meanwhile (K-13).
bool Queues::Bypasses(const Gang& gang) const { return gang.half_bound(); }

ResourceSum Queues::Request(const Gang& gang) const {
  ResourceSum sum;
  const std::vector<Candidates>& runs = gangs_->CandidateRuns(gang);
  const bool whole = gang.active() == 0 && gang.count(MemberState::kSucceeded) == 0;
  int32_t left = eligibility_->Missing(gang);
  if (whole) left = std::max(left, gang.rules.total_number);
  for (const Candidates& run : runs) {
    const int32_t taken = std::min(left, run.pods);
    sum.AddTimes(cluster_->pod_class(run.cls).request, taken);
    left -= taken;
  }
  if (whole && left > 0 && !runs.empty()) sum.AddTimes(cluster_->pod_class(runs.front().cls).request, left);
  if (!whole) return sum;
  for (const auto& [name, amount] : gang.rules.min_resources) {
    const ResourceId id = cluster_->names().Find(name);
    if (id >= 0 && sum.Get(id) < amount) sum.Set(id, amount);
  }
  return sum;
}

void Queues::Ask(QueueId queue, const ResourceSum& amounts, bool fixed, bool fresh, AskedOf* asked) const {
  for (; queue != kNoQueue; queue = tree_->at(queue).parent) {
    Asked& of = (*asked)[queue];
    for (const auto& [resource, amount] : amounts.entries()) {
      of.all.Add(resource, amount);
      if (fixed) of.fixed.Add(resource, amount);
    }
    of.fresh += fresh ? 1 : 0;
  }
}

Queues::AskedOf Queues::AskedBy(const Group& gangs) const {
  AskedOf asked;
  for (const Gang* gang : gangs) {
    Ask(Of(*gang), Request(*gang), !gang->rules.preemptible, gangs_in_.Of(gang->id) == 0, &asked);
  }
  return asked;
}

Reason Queues::Check(const Group& gangs) const {
  if (!tree_->any()) return {};
  for (const Gang* gang : gangs) {
    if (Bypasses(*gang)) return {};
  }
  return Judge(gangs, AskedBy(gangs));
}

Reason Queues::Check(const Group& gangs, const Places& places) const {
  if (!tree_->any()) return {};
  AskedOf asked;
  for (size_t i = 0; i < gangs.size(); ++i) {
    if (Bypasses(*gangs[i])) return {};
    ResourceSum sum;
    for (const Statement::Operation& place : places[i]) {
      sum.AddTimes(cluster_->pod_class(place.cls).request, place.pods);
    }
    Ask(Of(*gangs[i]), sum, !gangs[i]->rules.preemptible, gangs_in_.Of(gangs[i]->id) == 0, &asked);
  }
  return Judge(gangs, asked);
}

Reason Queues::Check(const Pod& pod) const {
  if (!tree_->any() || pod.gang == nullptr || pod.cls == kNoClass) return {};
  if (ledger_->ChargeOf(pod.id).node != kNoNode || Bypasses(*pod.gang)) return {};
  AskedOf asked;
  ResourceSum sum;
  sum.AddTimes(cluster_->pod_class(pod.cls).request, 1);
  Ask(Of(*pod.gang), sum, !pod.gang->rules.preemptible, gangs_in_.Of(pod.gang->id) == 0, &asked);
  return Judge({pod.gang}, asked);
}

// Nearest to the gang first; what can never be before what cannot be now.
Reason Queues::Judge(const Group& gangs, const AskedOf& asked) const {
  Reason first;
  for (auto each = asked.rbegin(); each != asked.rend(); ++each) {
    Reason reason = TooMuch(gangs, each->first, each->second);
    if (reason.code == ReasonCode::kQueueRejected) return reason;
    if (first.none()) first = std::move(reason);
  }
  return first;
}

// The figures of what is used, and what is kept, are the last words of what TooMuch says.
bool Queues::SameBound(const Reason& a, const Reason& b) {
  const auto bound = [](const Reason& reason) {
    return absl::string_view(reason.text).substr(0, reason.text.rfind(", ", reason.text.find(" is used")));
  };
  return a.code == b.code && bound(a) == bound(b);
}

// Of those for whom something is held, who comes first has it.
Queues::Asked Queues::HeldFrom(const Group& gangs, QueueId queue, const Gang** holder) const {
  Asked sum;
  // Policy hold: a gang that is tried has no head before it. Members beyond a minimum wait behind the head as ever.
  const bool starts = !gangs.front()->kept.satisfied;
  if (gangs.front()->depleted() || (starts && tree_->rules().head == HeadPolicy::kHold)) return sum;
  const QueueKey key = eligibility_->KeyOf(*gangs.front());
  const bool holds = absl::c_any_of(gangs, [this](const Gang* gang) { return Holds(*gang); });
  for (const auto& [id, asked] : held_) {
    const Gang& other = gangs_->gang(id);
    const auto of = asked.find(queue);
    if (of == asked.end() || absl::c_linear_search(gangs, &other)) continue;
    const QueueKey theirs = eligibility_->KeyOf(other);
    if (holds ? !(theirs < key) : theirs.priority < key.priority) continue;
    if (*holder == nullptr) *holder = &other;
    for (const auto& [resource, amount] : of->second.all.entries()) sum.all.Add(resource, amount);
    for (const auto& [resource, amount] : of->second.fixed.entries()) sum.fixed.Add(resource, amount);
    sum.fresh += of->second.fresh;
  }
  return sum;
}

Reason Queues::TooMuch(const Group& gangs, QueueId queue, const Asked& asked) const {
  const QueueSpec& spec = tree_->at(queue).spec;
  const Gang* holder = nullptr;
  const Asked held = held_.empty() ? Asked() : HeldFrom(gangs, queue, &holder);
  Reason now;
  const auto judge = [&](const ResourceList& bounds, const ResourceSum& wanted, const ResourceSum& kept,
                         const Accounts& used, bool quota) {
    for (const auto& [resource, most] : bounds) {
      const ResourceId id = cluster_->names().Find(resource);
      const WideSum wants = id < 0 ? 0 : wanted.Get(id);
      if (wants == 0) continue;
      const std::string bound = absl::StrCat(quota ? "quota" : "limit", " of queue ", spec.name, ", ",
                                             Shown(resource, most), quota ? " for what is not preemptible" : "");
      if (wants > most) {
        return Reason{ReasonCode::kQueueRejected,
                      absl::StrCat("asks for ", Shown(resource, wants), ", more than the ", bound)};
      }
      const WideSum has = used.Of(queue).Get(id);
      if (has + wants + kept.Get(id) <= most || !now.none()) continue;
      now = {ReasonCode::kQueueLimit, absl::StrCat("asks for ", Shown(resource, wants), ", of the ", bound, ", ",
                                                   FormatQuantity(resource, Nearest(has)), " is used")};
      if (kept.Get(id) == 0) continue;
      absl::StrAppend(&now.text, ", ", FormatQuantity(resource, Nearest(kept.Get(id))), " is kept for gang ",
                      holder->key, ", which was passed over for long");
    }
    return Reason();
  };
  if (Reason never = judge(spec.limit, asked.all, held.all, ledger_->used(), /*quota=*/false); !never.none())
    return never;
  if (Reason never = judge(spec.quota, asked.fixed, held.fixed, ledger_->fixed(), /*quota=*/true); !never.none())
    return never;
  if (spec.max_applications > 0 && asked.fresh > spec.max_applications) {
    return {ReasonCode::kQueueRejected,
            absl::StrCat("starts ", asked.fresh, " gangs together, more than queue ", spec.name, " lets run at once (",
                         spec.max_applications, ", maxApplications)")};
  }
  const int32_t runs = running_[static_cast<size_t>(queue)];
  const int32_t may_run = spec.max_applications - held.fresh;
  if (now.none() && spec.max_applications > 0 && asked.fresh > 0 && runs + asked.fresh > may_run) {
    now = {ReasonCode::kQueueLimit, absl::StrCat("queue ", spec.name, " lets ", spec.max_applications,
                                                 spec.max_applications == 1 ? " gang" : " gangs",
                                                 " run at once (maxApplications), and ", runs, " run")};
    if (held.fresh > 0) absl::StrAppend(&now.text, "; gang ", holder->key, " comes first, it was passed over for long");
  }
  return now;
}

// --- whose turn ---

void Queues::ReadShares() const {
  if (!std::exchange(shares_known_, true)) shares_ = SharesNow();
}

Queues::Shares Queues::SharesNow() const {
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
      if (at.leaf && id >= 0) claim.requested = Nearest(ledger_->used().Of(queue).Get(id) + waiting_.Of(queue).Get(id));
    }
    shares.push_back(FairShares(id < 0 ? 0 : Nearest(cluster_->TotalAllocatable().Get(id)), claims));
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

// The largest part of a share that is used with `more`, of any resource.
double Queues::UsedOfShare(QueueId queue, const ResourceSum& more) const {
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
  if (key_a.half_bound != key_b.half_bound || at_a == at_b || at_a == kNoQueue || at_b == kNoQueue) {
    return key_a < key_b;
  }
  ReadShares();
  const auto exceeds = [this](const Gang& gang) {
    const ResourceSum& more = demands_.Of(gang.id).amounts;
    for (QueueId at = Of(gang); at != kNoQueue; at = tree_->at(at).parent) {
      if (ExceedsShare(at, more)) return true;
    }
    return false;
  };
  if (const bool over_a = exceeds(a), over_b = exceeds(b); over_a != over_b) return over_b;
  // Below the same queue, or both at the top.
  while (tree_->at(at_a).parent != tree_->at(at_b).parent) {
    QueueId& deeper = tree_->at(at_a).depth >= tree_->at(at_b).depth ? at_a : at_b;
    deeper = tree_->at(deeper).parent;
  }
  const QueueTree::Queue& of_a = tree_->at(at_a);
  const QueueTree::Queue& of_b = tree_->at(at_b);
  if (of_a.spec.priority != of_b.spec.priority) return of_a.spec.priority > of_b.spec.priority;
  const double used_a = UsedOfShare(at_a, {});
  const double used_b = UsedOfShare(at_b, {});
  if (used_a != used_b) return used_a < used_b;
  const double next_a = UsedOfShare(at_a, demands_.Of(a.id).amounts);
  const double next_b = UsedOfShare(at_b, demands_.Of(b.id).amounts);
  return next_a != next_b ? next_a < next_b : key_a < key_b;
}

// --- for readers ---

std::vector<Queues::Standing> Queues::Standings() const {
  const Shares shares = SharesNow();
  std::vector<Standing> all(static_cast<size_t>(tree_->size()));
  for (QueueId id = 0; id < tree_->size(); ++id) {
    const auto at = static_cast<size_t>(id);
    Standing& out = all[at];
    out.used = cluster_->names().ToList(ledger_->used().Of(id));
    out.waiting = cluster_->names().ToList(waiting_.Of(id));
    for (size_t i = 0; i < tree_->resources().size(); ++i) out.share[tree_->resources()[i]] = shares[i][at];
    out.running_gangs = running_[at];
    out.waiting_gangs = waiting_gangs_[at];
  }
  return all;
}

}  // namespace muster
