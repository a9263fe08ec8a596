// PodAffinity: which pods fit where.
#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/cluster/cluster.h"
#include "state/cluster/pod_affinity.h"

namespace muster {

int64_t PodAffinity::Least(const Spread& spread) const {
  const Term& term = TermAt(spread.term);
  if (spread.epoch == epoch_ && spread.version == term.version) return spread.least;
  if (spread.epoch != epoch_) {
    spread.eligible.clear();
    for (const DomainId domain : term.at->domain_of) {
      if (domain != kNoDomain) spread.eligible.push_back(domain);
    }
    absl::c_sort(spread.eligible);
    spread.eligible.erase(std::unique(spread.eligible.begin(), spread.eligible.end()), spread.eligible.end());
    spread.epoch = epoch_;
  }
  spread.version = term.version;
  spread.least = 0;
  if (spread.eligible.empty() || static_cast<int64_t>(spread.eligible.size()) < spread.min_domains) return 0;
  spread.least = std::numeric_limits<int64_t>::max();
  for (const DomainId domain : spread.eligible) {
    spread.least = std::min(spread.least, term.pods.In(domain));
    if (spread.least == 0) break;
  }
  return spread.least;
}

bool PodAffinity::IsResolvable(const Term& term) const { return !term.by_labels || !cluster_->namespaces().empty(); }

// Whether the affinity is satisfied on the node. `own`: how many of the counted pods are the pod itself.
bool PodAffinity::AffinitySatisfied(NodeId node, const Known& known, int64_t own) const {
  // The first of the pods that require each other may be on any node with the labels of all terms.
  const bool first = absl::c_all_of(known.affinity, [&](TermId id) {
    return !IsResolvable(TermAt(id)) || (known.selected_by.contains(id) && TermAt(id).pods.all <= own);
  });
  return absl::c_all_of(known.affinity, [&](TermId id) {
    if (!IsResolvable(TermAt(id))) return true;
    const DomainId domain = DomainOf(node, TermAt(id));
    const int64_t self = known.selected_by.contains(id) ? own : 0;
    return domain != kNoDomain && (first || TermAt(id).pods.In(domain) > self);
  });
}

// By how much the count of the node's domain may still grow; below 0: no pod with this constraint may be on the node.
int64_t PodAffinity::SpreadRoom(NodeId node, const Spread& spread) const {
  const Term& term = TermAt(spread.term);
  const DomainId domain = DomainOf(node, term);
  return domain == kNoDomain ? -1 : spread.max_skew + Least(spread) - term.pods.In(domain);
}

PodAffinity::Violation PodAffinity::FindViolation(NodeId node, const Known& known, int64_t own) const {
  for (const TermId id : known.anti) {
    const Term& term = TermAt(id);
    const DomainId domain = DomainOf(node, term);
    const int64_t self = own > 0 && known.selected_by.contains(id) ? own : 0;
    if (term.pods.In(domain) + (own == 0 ? term.future_pods.In(domain) : 0) > self) return {"pod anti-affinity", &term};
  }
  const Term* rejecting = nullptr;  // the first by its label, as ids may differ after a restart
  for (const TermId id : known.selected_by) {
    const Term& term = TermAt(id);
    if (term.holders.all + term.future_holders.all == 0) continue;
    const DomainId domain = DomainOf(node, term);
    const int64_t self = own > 0 ? absl::c_count(known.anti, id) : 0;
    if (term.holders.In(domain) + (own == 0 ? term.future_holders.In(domain) : 0) <= self) continue;
    if (rejecting == nullptr || term.at->name < rejecting->at->name) rejecting = &term;
  }
  if (rejecting != nullptr) return {"anti-affinity of other pods", rejecting};
  if (!known.affinity.empty() && !AffinitySatisfied(node, known, own)) {
    return {"pod affinity", &TermAt(known.affinity.front())};
  }
  for (const Spread& each : known.spread) {
    const bool grows = own == 0 && known.selected_by.contains(each.term);
    if (SpreadRoom(node, each) < (grows ? 1 : 0)) return {"topology spread", &TermAt(each.term)};
  }
  return {};
}

int32_t PodAffinity::Room(NodeId node, ClassId cls, int32_t limit) const {
  const Known& known = Of(cls);
  if (FindViolation(node, known, /*own=*/0).rule != nullptr) return 0;
  if (limit == 1 || AtMostOneOn(node, cls)) return 1;
  for (const Spread& each : known.spread) {
    if (known.selected_by.contains(each.term)) {
      limit = static_cast<int32_t>(std::min<int64_t>(limit, SpreadRoom(node, each)));
    }
  }
  return limit;
}

bool PodAffinity::Satisfied(NodeId node, ClassId cls) const {
  return FindViolation(node, Of(cls), /*own=*/1).rule == nullptr;
}

std::string PodAffinity::Obstacle(NodeId node, ClassId cls) const {
  const Violation found = FindViolation(node, Of(cls), /*own=*/0);
  return found.rule == nullptr ? "" : absl::StrCat(found.rule, " (", found.term->at->name, ")");
}

bool PodAffinity::HasFeasibleOrder(std::vector<AddedPods> added) const {
  // Added pods that are not placed yet, by term that selects them and domain.
  absl::flat_hash_map<TermId, absl::flat_hash_map<DomainId, int64_t>> absent;
  absl::flat_hash_map<TermId, int64_t> all_absent;
  const auto count = [&](const AddedPods& each, int64_t times) {
    for (const TermId id : Of(each.cls).selected_by) {
      absent[id][DomainOf(each.node, TermAt(id))] += times * each.pods;
      all_absent[id] += times * each.pods;
    }
  };
  for (const AddedPods& each : added) count(each, 1);
  const auto can_place = [&](const AddedPods& each, bool as_first) {
    const Known& known = Of(each.cls);
    return absl::c_all_of(known.affinity, [&](TermId id) {
      const Term& term = TermAt(id);
      if (!IsResolvable(term)) return true;
      const DomainId domain = DomainOf(each.node, term);
      if (domain == kNoDomain) return false;
      if (as_first) return known.selected_by.contains(id) && term.pods.all - all_absent[id] <= 0;
      return term.pods.In(domain) - absent[id][domain] > 0;
    });
  };
  while (!added.empty()) {
    const size_t before = added.size();
    std::erase_if(added, [&](const AddedPods& each) {
      const bool placeable = can_place(each, /*as_first=*/false);
      if (placeable) count(each, -1);
      return placeable;
    });
    if (added.size() < before) continue;
    const auto first =
        absl::c_find_if(added, [&](const AddedPods& each) { return can_place(each, /*as_first=*/true); });
    if (first == added.end()) return false;
    count(*first, -1);
    added.erase(first);
  }
  return true;
}

bool PodAffinity::IsLocal(ClassId cls) const {
  const Known& known = Of(cls);
  const auto local = [&](TermId id) { return TermAt(id).at->name == kHostnameLabel; };
  return known.affinity.empty() && known.spread.empty() && absl::c_all_of(known.anti, local) &&
         absl::c_all_of(known.selected_by, local);
}

bool PodAffinity::AtMostOneOn(NodeId node, ClassId cls) const {
  const Known& known = Of(cls);
  return absl::c_any_of(
      known.anti, [&](TermId id) { return known.selected_by.contains(id) && DomainOf(node, TermAt(id)) != kNoDomain; });
}

bool PodAffinity::MayEnable(ClassId placed, ClassId cls) const {
  const absl::btree_set<TermId>& selected_by = Of(placed).selected_by;
  const auto selects = [&](TermId id) { return selected_by.contains(id); };
  return absl::c_any_of(Of(cls).affinity, selects) ||
         absl::c_any_of(Of(cls).spread, [&](const Spread& each) { return selects(each.term); });
}

bool PodAffinity::DomainsOverlap(ClassId cls) const {
  const Known& known = Of(cls);
  absl::btree_set<absl::string_view> labels;
  for (const TermId id : known.anti) {
    if (known.selected_by.contains(id)) labels.insert(TermAt(id).at->name);
  }
  for (const Spread& each : known.spread) {
    if (known.selected_by.contains(each.term)) labels.insert(TermAt(each.term).at->name);
  }
  return labels.size() > 1;
}

std::string PodAffinity::CoLocationKey(ClassId cls) const {
  const Known& known = Of(cls);
  for (const TermId id : known.affinity) {
    if (!known.selected_by.contains(id) || TermAt(id).pods.all > 0 || !IsResolvable(TermAt(id))) return "";
  }
  return known.affinity.empty() ? "" : TermAt(known.affinity.front()).at->name;
}

}  // namespace muster
