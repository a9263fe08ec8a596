// Which pods may be near which, said again as simply as possible: a list of pods, looked through for every question.
// After k8s.io/kubernetes/pkg/scheduler/framework/plugins/{interpodaffinity,podtopologyspread} (SPEC P-3).
#ifndef MUSTER_TESTS_STATE_CLUSTER_POD_AFFINITY_TWIN_H_
#define MUSTER_TESTS_STATE_CLUSTER_POD_AFFINITY_TWIN_H_

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "state/cluster/cluster.h"
#include "state/model/node.h"
#include "state/model/pod.h"

namespace muster {

struct TwinPod {
  std::string name_space;
  Labels labels;
  PodTemplate shape;
  std::string node;
};

class NeighboursTwin {
 public:
  std::map<std::string, NodeDescription> nodes;
  std::map<std::string, Labels> namespaces;  // those that are known
  std::vector<TwinPod> pods;

  // One more pod like this may go to the node, as far as its neighbours go.
  [[nodiscard]] bool Fits(const TwinPod& pod, const std::string& node) const {
    for (const NeighbourTerm& term : pod.shape.neighbours.anti_affinity) {
      if (CountNear(node, term.topology_key, {term.selector}) > 0) return false;
    }
    for (const TwinPod& other : pods) {
      for (const NeighbourTerm& term : other.shape.neighbours.anti_affinity) {
        const std::string domain = Domain(node, term.topology_key);
        const bool near = !domain.empty() && Domain(other.node, term.topology_key) == domain;
        if (near && Means(term.selector, pod)) return false;
      }
    }
    if (!AffinityHolds(pod, node)) return false;
    for (const SpreadConstraint& each : pod.shape.neighbours.spread) {
      const int64_t self = Means(each.selector, pod) ? 1 : 0;
      const int64_t there = CountEven(pod, each, Domain(node, each.topology_key));
      if (!Included(pod, each, node) || there + self - Least(pod, each) > each.max_skew) return false;
    }
    return true;
  }

  // How much such a pod would like to be there.
  [[nodiscard]] int64_t Liked(const TwinPod& pod, const std::string& node) const {
    int64_t sum = 0;
    const NodeDescription& at = nodes.at(node);
    for (const PreferredNode& each : pod.shape.preferences.nodes) {
      if (Matches(each.term, at.name, at.labels)) sum += each.weight;
    }
    for (const PreferredNeighbour& each : pod.shape.preferences.neighbours) {
      sum += each.weight * CountNear(node, each.term.topology_key, {each.term.selector});
    }
    return sum;
  }

  // Nobody there is in anybody's way: what every one of the pods asks for holds, now that all are there.
  [[nodiscard]] bool AllHold(const std::string& on = "") const {
    return std::all_of(pods.begin(), pods.end(),
                       [&](const TwinPod& pod) { return !on.empty() && pod.node != on ? true : Holds(pod); });
  }
  [[nodiscard]] bool Holds(const TwinPod& pod) const {
    NeighboursTwin others = *this;
    for (auto each = others.pods.begin(); each != others.pods.end(); ++each) {
      const bool same = each->node == pod.node && each->name_space == pod.name_space && each->labels == pod.labels &&
                        each->shape.Key() == pod.shape.Key();
      if (!same) continue;
      others.pods.erase(each);
      break;
    }
    TwinPod plain = pod;
    plain.shape.neighbours.spread.clear();
    if (!others.Fits(plain, pod.node)) return false;
    for (const SpreadConstraint& each : pod.shape.neighbours.spread) {
      if (!Included(pod, each, pod.node)) return false;
      const int64_t there = CountEven(pod, each, Domain(pod.node, each.topology_key));
      if (there - Least(pod, each) > each.max_skew) return false;
    }
    return true;
  }

 private:
  // Empty: none.
  [[nodiscard]] std::string Domain(const std::string& node, const std::string& key) const {
    const auto known = nodes.find(node);
    if (known == nodes.end()) return "";
    const auto label = known->second.labels.find(key);
    if (label != known->second.labels.end()) return "=" + label->second;
    return key == "kubernetes.io/hostname" ? "=" + node : "";
  }
  // AffinityTerm.Matches: a namespace that is named, or one of which the labels are meant.
  [[nodiscard]] bool Means(const PodSelector& selector, const TwinPod& pod) const {
    const auto meets = [](const SelectorRequirement& each, const std::string& key, const Labels& labels) {
      const auto label = labels.find(key);
      return Meets(each, label == labels.end() ? nullptr : &label->second);
    };
    bool there = selector.all_namespaces;
    for (const std::string& name : selector.namespaces) there = there || name == pod.name_space;
    const auto known = namespaces.find(pod.name_space);
    if (!there && selector.by_labels && known != namespaces.end()) {
      there = true;
      for (const SelectorRequirement& each : selector.namespace_labels) {
        there = there && meets(each, each.key.substr(1), known->second);
      }
    }
    for (const SelectorRequirement& each : selector.requirements) there = there && meets(each, each.key, pod.labels);
    return there;
  }
  [[nodiscard]] bool MeansAll(const std::vector<PodSelector>& selectors, const TwinPod& pod) const {
    return std::all_of(selectors.begin(), selectors.end(), [&](const PodSelector& each) { return Means(each, pod); });
  }
  // Pods that are meant in the node's domain.
  [[nodiscard]] int64_t CountNear(const std::string& node, const std::string& key,
                                  const std::vector<PodSelector>& selectors) const {
    const std::string domain = Domain(node, key);
    return domain.empty() ? 0 : std::count_if(pods.begin(), pods.end(), [&](const TwinPod& pod) {
      return Domain(pod.node, key) == domain && MeansAll(selectors, pod);
    });
  }
  [[nodiscard]] bool AffinityHolds(const TwinPod& pod, const std::string& node) const {
    const std::vector<NeighbourTerm>& terms = pod.shape.neighbours.affinity;
    std::vector<PodSelector> all;
    for (const NeighbourTerm& term : terms) all.push_back(term.selector);
    bool there = true;
    bool anybody = false;
    // A pod counts if all of the terms mean it; where no namespace is known, those that go by labels are not judged.
    const bool by_labels = std::any_of(all.begin(), all.end(), [](const PodSelector& each) { return each.by_labels; });
    if (by_labels && namespaces.empty()) return true;
    for (const NeighbourTerm& term : terms) {
      if (Domain(node, term.topology_key).empty()) return false;
      there = there && CountNear(node, term.topology_key, all) > 0;
      for (const TwinPod& other : pods) {
        anybody = anybody || (MeansAll(all, other) && !Domain(other.node, term.topology_key).empty());
      }
    }
    return there || (!anybody && MeansAll(all, pod));
  }
  // calPreFilterState: a node counts if it has every label of the pod's constraints, and by this one's policies. What
  // is left out is no place for the pod either: another of kube-scheduler's filters refuses it.
  [[nodiscard]] bool Included(const TwinPod& pod, const SpreadConstraint& of, const std::string& node) const {
    const auto known = nodes.find(node);
    if (known == nodes.end()) return false;
    for (const SpreadConstraint& each : pod.shape.neighbours.spread) {
      if (Domain(node, each.topology_key).empty()) return false;
    }
    if (of.honor_affinity && OwnObstacle(known->second, pod.shape) != Obstacle::kNone) return false;
    return !of.honor_taints || FirstUntolerated(known->second.taints, pod.shape.tolerations) == nullptr;
  }
  // Pods that are meant on the domain's nodes that count.
  [[nodiscard]] int64_t CountEven(const TwinPod& pod, const SpreadConstraint& of, const std::string& domain) const {
    return std::count_if(pods.begin(), pods.end(), [&](const TwinPod& there) {
      return Domain(there.node, of.topology_key) == domain && Included(pod, of, there.node) &&
             MeansAll({of.selector}, there);
    });
  }
  [[nodiscard]] int64_t Least(const TwinPod& pod, const SpreadConstraint& of) const {
    std::map<std::string, int64_t> domains;
    for (const auto& [name, node] : nodes) {
      const std::string domain = Domain(name, of.topology_key);
      if (Included(pod, of, name)) domains[domain] = CountEven(pod, of, domain);
    }
    if (domains.empty() || static_cast<int64_t>(domains.size()) < of.min_domains) return 0;
    return std::min_element(domains.begin(), domains.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->second;
  }
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_CLUSTER_POD_AFFINITY_TWIN_H_
