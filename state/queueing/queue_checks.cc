// May gangs be placed, as far as their queues go (SPEC ).
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "state/base/quantity.h"
#include "state/queueing/queues.h"

namespace muster {
namespace {

std::string Shown(const std::string& resource, WideSum amount) {
  return FormatResources({{resource, Nearest(amount)}});
}

// What so many of the pods ask for at least, resource by resource: which of them will be placed is not known yet.
// REQUIRES: there are as many.
void AddLeast(absl::Span<const Candidates> runs, int32_t needed, const Cluster& cluster, ResourceSum* sum) {
  int64_t pods = 0;
  for (const Candidates& run : runs) pods += run.pods;
  if (pods == needed || runs.size() == 1) {
    for (const Candidates& run : runs) sum->AddTimes(cluster.pod_class(run.cls).request, std::min(needed, run.pods));
    return;
  }
  absl::btree_set<ResourceId> resources;
  for (const Candidates& run : runs) {
    for (const auto& [resource, amount] : cluster.pod_class(run.cls).request.entries()) resources.insert(resource);
  }
  std::vector<std::pair<int64_t, int32_t>> asks;  // what each asks for, and how many ask for that
  for (const ResourceId resource : resources) {
    asks.clear();
    for (const Candidates& run : runs) {
      asks.emplace_back(cluster.pod_class(run.cls).request.Get(resource), run.pods);
    }
    absl::c_sort(asks);
    int32_t left = needed;
    for (const auto& [amount, of] : asks) {
      sum->Add(resource, static_cast<WideSum>(amount) * std::min(left, of));
      left -= std::min(left, of);
    }
  }
}

}  // namespace

// A gang of which a part is bound is finished whatever its queue was told meanwhile (K-13).
bool Queues::Bypasses(const Gang& gang) const { return gang.half_bound(); }

ResourceSum Queues::Request(const Gang& gang) const {
  const std::vector<Candidates>& runs = gangs_->CandidateRuns(gang);
  const bool whole = gang.active() == 0 && gang.count(MemberState::kSucceeded) == 0;
  return LeastOf(gang, runs, eligibility_->Missing(gang), whole);
}

ResourceSum Queues::LeastOf(const Gang& gang, const std::vector<Candidates>& runs, int32_t needed, bool whole) const {
  ResourceSum sum;
  int32_t left = whole ? std::max(needed, gang.rules.total_number) : needed;
  // Whoever has the higher priority is placed first (D-11); in a tree its parts decide who is.
  for (size_t begin = 0; begin < runs.size() && left > 0;) {
    size_t end = begin;
    int32_t pods = 0;
    while (end < runs.size() && (!gang.rules.tree.empty() || runs[end].priority == runs[begin].priority)) {
      pods += runs[end++].pods;
    }
    AddLeast(absl::MakeConstSpan(runs).subspan(begin, end - begin), std::min(left, pods), *cluster_, &sum);
    left -= std::min(left, pods);
    begin = end;
  }
  if (!whole) return sum;
  // Of those who do not exist yet nobody knows more than what was declared, or what the smallest of the others asks
  // for.
  if (left > 0 && !runs.empty() && gang.rules.min_resources.empty()) {
    std::vector<Candidates> alike = runs;
    for (Candidates& run : alike) run.pods = left;
    AddLeast(alike, left, *cluster_, &sum);
  }
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

Reason Queues::CheckInstead(const Pod& pod, ClassId kept) const {
  if (!tree_->any() || pod.gang == nullptr || pod.cls == kept) return {};
  const ResourceVector& has = cluster_->pod_class(kept).request;
  ResourceSum more;
  for (const auto& [resource, amount] : cluster_->pod_class(pod.cls).request.entries()) {
    if (amount > has.Get(resource)) more.Add(resource, amount - has.Get(resource));
  }
  AskedOf asked;
  Ask(Of(*pod.gang), more, !pod.gang->rules.preemptible, /*fresh=*/false, &asked);
  return Judge({pod.gang}, asked);
}

Reason Queues::Never(const Gang& gang) const {
  if (!tree_->any() || gang.active() > 0) return {};
  absl::btree_map<ClassId, int32_t> pods;
  for (const MemberState state : {MemberState::kPending, MemberState::kWaiting}) {
    for (const Pod* pod : gang.in(state)) {
      if (pod->cls != kNoClass) ++pods[pod->cls];
    }
  }
  std::vector<Candidates> runs;
  for (const auto& [cls, count] : pods) runs.push_back({cls, 0, count});
  AskedOf asked;
  Ask(Of(gang), LeastOf(gang, runs, std::max(0, gang.rules.min_member), /*whole=*/true), !gang.rules.preemptible,
      /*fresh=*/false, &asked);
  Reason reason = Judge({&gang}, asked);
  return reason.code == ReasonCode::kQueueRejected ? reason : Reason();
}

Reason Queues::Overdrawn(const Gang& gang, absl::FunctionRef<bool(ResourceId)> uses) const {
  if (!tree_->any() || eligibility_->KeyOf(gang).half_bound) return {};  // as Check of its whole group
  for (QueueId at = Of(gang); at != kNoQueue; at = tree_->at(at).parent) {
    const QueueSpec& spec = tree_->at(at).spec;
    const auto beyond = [&](const ResourceList& bounds, const Accounts& used, absl::string_view what) {
      for (const auto& [resource, most] : bounds) {
        const ResourceId id = cluster_->names().Find(resource);
        const WideSum has = id < 0 ? 0 : used.Of(at).Get(id);
        if (has <= most || !uses(id)) continue;
        return Reason{ReasonCode::kQueueLimit,
                      absl::StrCat("with it queue ", spec.name, " would use ", Shown(resource, has), ", more than its ",
                                   what, ", ", FormatQuantity(resource, most))};
      }
      return Reason();
    };
    if (Reason over = beyond(spec.limit, ledger_->used(), "limit"); !over.none()) return over;
    if (gang.rules.preemptible) continue;
    if (Reason over = beyond(spec.quota, ledger_->fixed(), "quota for what is not preemptible"); !over.none()) {
      return over;
    }
  }
  return {};
}

double Queues::CostOf(ClassId cls) const {
  double most = 0;
  for (const std::string& resource : tree_->resources()) {
    const ResourceId id = cluster_->names().Find(resource);
    const WideSum there = id < 0 ? 0 : cluster_->TotalAllocatable().Get(id);
    if (there <= 0) continue;
    most = std::max(most, static_cast<double>(cluster_->pod_class(cls).request.Get(id)) / static_cast<double>(there));
  }
  return most;
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

absl::string_view Queues::WhyKept() const {
  return tree_->rules().head == HeadPolicy::kHold ? "comes first (queues.policy: hold)" : "was passed over for long";
}

std::string Queues::HeldWords() const { return absl::StrCat("; it ", WhyKept(), ": what comes free is kept for it"); }

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
  // Policy hold: of those that start, who comes before has it. Members beyond a minimum wait behind the head as ever.
  const bool in_order = !gangs.front()->kept.satisfied && tree_->rules().head == HeadPolicy::kHold;
  if (gangs.front()->depleted()) return sum;
  const QueueKey key = eligibility_->KeyOf(*gangs.front());
  const bool holds = absl::c_any_of(gangs, [this](const Gang* gang) { return Holds(*gang); });
  for (const auto& [id, asked] : held_) {
    const Gang& other = gangs_->gang(id);
    const auto of = asked.find(queue);
    if (of == asked.end() || absl::c_linear_search(gangs, &other)) continue;
    const QueueKey theirs = eligibility_->KeyOf(other);
    if (in_order ? !Before(other, *gangs.front()) : holds ? !(theirs < key) : theirs.priority < key.priority) continue;
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
                      holder->key, ", which ", WhyKept());
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
    if (held.fresh > 0) absl::StrAppend(&now.text, "; gang ", holder->key, " comes first, it ", WhyKept());
  }
  return now;
}

}  // namespace muster
