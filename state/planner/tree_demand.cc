#include "state/planner/tree_demand.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/container/btree_set.h"
#include "absl/types/span.h"

namespace muster {
namespace {

// Adds the pods that must be placed in every choice, for leaves with candidates of one class.
void AddMandatory(const TreeDemand& demand, absl::flat_hash_map<ClassId, int64_t>* out) {
  if (IsLeaf(demand)) {
    const bool alike = absl::c_all_of(demand.candidates,
                                      [&](const Candidates& run) { return run.cls == demand.candidates.front().cls; });
    if (alike && !demand.candidates.empty()) (*out)[demand.candidates.front().cls] += demand.needed;
    return;
  }
  if (demand.needed < static_cast<int32_t>(demand.children.size())) return;
  for (const TreeDemand& child : demand.children) AddMandatory(child, out);
}

int64_t SumOfFirst(absl::Span<const int64_t> amounts, int32_t count) {
  return absl::c_accumulate(amounts.subspan(0, static_cast<size_t>(std::max(0, count))), int64_t{0});
}

}  // namespace

bool Flat(const TreeDemand& demand) {
  if (IsLeaf(demand)) return true;
  return demand.needed == static_cast<int32_t>(demand.children.size()) &&
         absl::c_all_of(demand.children, [](const TreeDemand& child) { return child.topology.none() && Flat(child); });
}

bool AllRequired(const TreeDemand& demand) {
  if (IsLeaf(demand)) return true;
  return demand.needed == static_cast<int32_t>(demand.children.size()) && absl::c_all_of(demand.children, AllRequired);
}

std::vector<const TreeDemand*> LeavesOf(const TreeDemand& demand) {
  if (IsLeaf(demand)) return {&demand};
  std::vector<const TreeDemand*> leaves;
  for (const TreeDemand& child : demand.children) absl::c_copy(LeavesOf(child), std::back_inserter(leaves));
  return leaves;
}

std::vector<const TreeDemand*> ChildrenInOrder(const TreeDemand& demand) {
  std::vector<const TreeDemand*> children;
  for (const TreeDemand& child : demand.children) children.push_back(&child);
  const bool all = demand.needed == static_cast<int32_t>(children.size());
  std::stable_sort(children.begin(), children.end(), [all](const TreeDemand* a, const TreeDemand* b) {
    const bool bound = RequiresDomain(*a);
    if (bound != RequiresDomain(*b)) return bound;
    return all && MinPods(*a) > MinPods(*b);
  });
  return children;
}

bool RequiresDomain(const TreeDemand& demand) {
  return !demand.topology.required.empty() || absl::c_any_of(demand.children, RequiresDomain);
}

bool IsDomainSearchComplete(const TreeDemand& demand) {
  ClassId only = kNoClass;
  for (const TreeDemand* leaf : LeavesOf(demand)) {
    for (const Candidates& run : leaf->candidates) {
      if (only != kNoClass && only != run.cls) return false;
      only = run.cls;
    }
  }
  std::string key;
  for (const TreeDemand& child : demand.children) {
    if (!IsLeaf(child)) return false;
    if (child.topology.required.empty()) continue;
    if (!key.empty() && key != child.topology.required) return false;
    key = child.topology.required;
  }
  return true;
}

bool LeavesMayEnableEachOther(const TreeDemand& demand, const Cluster& cluster) {
  constexpr size_t kMaxCompared = 256;
  absl::btree_set<std::pair<size_t, ClassId>> classes;  // by leaf
  const std::vector<const TreeDemand*> leaves = LeavesOf(demand);
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    for (const Candidates& run : leaves[leaf]->candidates) {
      if (cluster.pod_class(run.cls).has_pod_affinity) classes.emplace(leaf, run.cls);
    }
  }
  if (classes.size() > kMaxCompared) return true;
  return absl::c_any_of(classes, [&](const auto& one) {
    return absl::c_any_of(classes, [&](const auto& other) {
      return one.first != other.first && cluster.pod_affinity().MayEnable(one.second, other.second);
    });
  });
}

int64_t MinPods(const TreeDemand& demand) {
  if (IsLeaf(demand)) return demand.needed;
  std::vector<int64_t> pods;
  for (const TreeDemand& child : demand.children) pods.push_back(MinPods(child));
  absl::c_sort(pods);
  return SumOfFirst(pods, demand.needed);
}

DomainRooms::DomainRooms(const TreeDemand& demand, const std::string& key, Topology* topology) {
  for (const TreeDemand* leaf : LeavesOf(demand)) {
    for (const Candidates& run : leaf->candidates) {
      if (!rooms_.contains(run.cls)) rooms_[run.cls] = topology->Rooms(key, run.cls);
    }
  }
}

int64_t DomainRooms::Pods(const TreeDemand& demand, DomainId domain) const {
  if (IsLeaf(demand)) {
    absl::flat_hash_map<ClassId, int64_t> pods;
    for (const Candidates& run : demand.candidates) pods[run.cls] += run.pods;
    int64_t sum = 0;
    for (const auto& [cls, count] : pods) sum += std::min(count, Of(cls, domain));
    return std::min<int64_t>(sum, demand.needed);
  }
  std::vector<int64_t> of_children;
  for (const TreeDemand& child : demand.children) of_children.push_back(Pods(child, domain));
  absl::c_sort(of_children, std::greater<>());
  int64_t sum = SumOfFirst(of_children, demand.needed);
  if (rooms_.size() == 1) sum = std::min(sum, Total(domain));
  return std::min(sum, MinPods(demand));
}

bool DomainRooms::MayHold(const TreeDemand& demand, DomainId domain) const {
  if (!CanForm(demand, domain)) return false;
  absl::flat_hash_map<ClassId, int64_t> together;
  AddMandatory(demand, &together);
  return absl::c_all_of(together, [&](const auto& want) { return want.second <= Of(want.first, domain); });
}

int64_t DomainRooms::Total(DomainId domain) const {
  int64_t sum = 0;
  for (const auto& [cls, rooms] : rooms_) sum += rooms[static_cast<size_t>(domain)];
  return sum;
}

bool DomainRooms::CanForm(const TreeDemand& demand, DomainId domain) const {
  if (IsLeaf(demand)) return Pods(demand, domain) >= demand.needed;
  return absl::c_count_if(demand.children, [&](const TreeDemand& child) { return CanForm(child, domain); }) >=
         demand.needed;
}

}  // namespace muster
