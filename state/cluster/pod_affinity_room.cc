// PodAffinity: which pods fit where.
#include <algorithm>
#include <limits>

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
      if (domain != kNoTermDomain) spread.eligible.push_back(domain);
    }
    std::sort(spread.eligible.begin(), spread.eligible.end());
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
  const bool first = std::all_of(known.affinity.begin(), known.affinity.end(), [&](TermId id) {
    return !IsResolvable(TermAt(id)) || (known.selected_by.contains(id) && TermAt(id).pods.all <= own);
  });
  return std::all_of(known.affinity.begin(), known.affinity.end(), [&](TermId id) {
    if (!IsResolvable(TermAt(id))) return true;
    const DomainId domain = DomainOf(node, TermAt(id));
    const int64_t self = known.selected_by.contains(id) ? own : 0;
    return domain != kNoTermDomain && (first || TermAt(id).pods.In(domain) > self);
  });
}

int32_t PodAffinity::SpreadRoom(NodeId node, ClassId cls, int32_t limit) const {
  const Known& known = Of(cls);
  for (const Spread& each : known.spread) {
    const Term& term = TermAt(each.term);
    const DomainId domain = DomainOf(node, term);
    if (domain == kNoTermDomain) return 0;
    const int64_t more = each.max_skew + Least(each) - term.pods.In(domain);
    if (known.selected_by.contains(each.term)) {
      limit = static_cast<int32_t>(std::clamp<int64_t>(more, 0, limit));
    } else if (more < 0) {
      return 0;
    }
  }
  return limit;
}

// Whether pods in the node's domain reject pods that the term selects.
bool PodAffinity::Rejects(const Term& term, NodeId node) const {
  if (term.holders.all + term.future_holders.all == 0) return false;
  const DomainId domain = DomainOf(node, term);
  return term.holders.In(domain) + term.future_holders.In(domain) > 0;
}

int32_t PodAffinity::Room(NodeId node, ClassId cls, int32_t limit) const {
  const Known& known = Of(cls);
  for (const TermId id : known.anti) {
    const Term& term = TermAt(id);
    const DomainId domain = DomainOf(node, term);
    if (domain == kNoTermDomain) continue;
    if (term.pods.In(domain) + term.future_pods.In(domain) > 0) return 0;
    if (known.selected_by.contains(id)) limit = std::min(limit, 1);
  }
  for (const TermId id : known.selected_by) {
    const Term& term = TermAt(id);
    if (Rejects(term, node)) return 0;
  }
  if (!known.affinity.empty() && !AffinitySatisfied(node, known, 0)) return 0;
  return known.spread.empty() ? limit : SpreadRoom(node, cls, limit);
}

bool PodAffinity::Satisfied(NodeId node, ClassId cls) const {
  const Known& known = Of(cls);
  for (const TermId id : known.anti) {
    const Term& term = TermAt(id);
    if (term.pods.In(DomainOf(node, term)) > (known.selected_by.contains(id) ? 1 : 0)) return false;
  }
  for (const TermId id : known.selected_by) {
    const Term& term = TermAt(id);
    const int64_t own = std::count(known.anti.begin(), known.anti.end(), id);
    if (term.holders.In(DomainOf(node, term)) > own) return false;
  }
  if (!known.affinity.empty() && !AffinitySatisfied(node, known, 1)) return false;
  return std::all_of(known.spread.begin(), known.spread.end(), [&](const Spread& each) {
    const Term& term = TermAt(each.term);
    const DomainId domain = DomainOf(node, term);
    return domain != kNoTermDomain && term.pods.In(domain) - Least(each) <= each.max_skew;
  });
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
    return std::all_of(known.affinity.begin(), known.affinity.end(), [&](TermId id) {
      const Term& term = TermAt(id);
      if (!IsResolvable(term)) return true;
      const DomainId domain = DomainOf(each.node, term);
      if (domain == kNoTermDomain) return false;
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
    const auto first = std::find_if(added.begin(), added.end(),
                                    [&](const AddedPods& each) { return can_place(each, /*as_first=*/true); });
    if (first == added.end()) return false;
    count(*first, -1);
    added.erase(first);
  }
  return true;
}

std::string PodAffinity::Obstacle(NodeId node, ClassId cls) const {
  const Known& known = Of(cls);
  const auto named = [](absl::string_view what, const Term& term) { return absl::StrCat(what, " (", term.label, ")"); };
  for (const TermId id : known.anti) {
    const Term& term = TermAt(id);
    const DomainId domain = DomainOf(node, term);
    if (term.pods.In(domain) + term.future_pods.In(domain) > 0) return named("pod anti-affinity", term);
  }
  const Term* refuses = nullptr;  // the first by its label, as ids may differ after a restart
  for (const TermId id : known.selected_by) {
    const Term& term = TermAt(id);
    if (!Rejects(term, node)) continue;
    if (refuses == nullptr || term.label < refuses->label) refuses = &term;
  }
  if (refuses != nullptr) return named("anti-affinity of other pods", *refuses);
  if (!known.affinity.empty() && !AffinitySatisfied(node, known, 0)) {
    return named("pod affinity", TermAt(known.affinity.front()));
  }
  for (const Spread& each : known.spread) {
    const Term& term = TermAt(each.term);
    const DomainId domain = DomainOf(node, term);
    const int64_t more = each.max_skew + Least(each) - term.pods.In(domain);
    if (domain == kNoTermDomain || more < (known.selected_by.contains(each.term) ? 1 : 0)) {
      return named("topology spread", term);
    }
  }
  return "";
}

bool PodAffinity::Local(ClassId cls) const {
  const Known& known = Of(cls);
  const auto local = [&](TermId id) { return TermAt(id).label == kHostnameLabel; };
  return known.affinity.empty() && known.spread.empty() && std::all_of(known.anti.begin(), known.anti.end(), local) &&
         std::all_of(known.selected_by.begin(), known.selected_by.end(), local);
}

bool PodAffinity::AtMostOneOn(NodeId node, ClassId cls) const {
  const Known& known = Of(cls);
  return std::any_of(known.anti.begin(), known.anti.end(), [&](TermId id) {
    return known.selected_by.contains(id) && DomainOf(node, TermAt(id)) != kNoTermDomain;
  });
}

bool PodAffinity::SelfEnabling(ClassId cls) const { return MayEnable(cls, cls); }

bool PodAffinity::MayEnable(ClassId placed, ClassId cls) const {
  const absl::btree_set<TermId>& selected_by = Of(placed).selected_by;
  const auto means = [&](TermId id) { return selected_by.contains(id); };
  return std::any_of(Of(cls).affinity.begin(), Of(cls).affinity.end(), means) ||
         std::any_of(Of(cls).spread.begin(), Of(cls).spread.end(),
                     [&](const Spread& each) { return means(each.term); });
}

bool PodAffinity::OverlappingTopology(ClassId cls) const {
  const Known& known = Of(cls);
  absl::btree_set<absl::string_view> labels;
  for (const TermId id : known.anti) {
    if (known.selected_by.contains(id)) labels.insert(TermAt(id).label);
  }
  for (const Spread& each : known.spread) {
    if (known.selected_by.contains(each.term)) labels.insert(TermAt(each.term).label);
  }
  return labels.size() > 1;
}

std::string PodAffinity::CoLocationKey(ClassId cls) const {
  const Known& known = Of(cls);
  for (const TermId id : known.affinity) {
    if (!known.selected_by.contains(id) || TermAt(id).pods.all > 0 || !IsResolvable(TermAt(id))) return "";
  }
  return known.affinity.empty() ? "" : TermAt(known.affinity.front()).label;
}

}  // namespace muster
