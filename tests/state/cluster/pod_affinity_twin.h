// The rules of pod affinity (SPEC P-3) in their simplest form, for comparison in tests: a list of pods, scanned for
// every question. After k8s.io/kubernetes/pkg/scheduler/framework/plugins/{interpodaffinity,podtopologyspread}. Not
// thread-safe.
#ifndef MUSTER_TESTS_STATE_CLUSTER_POD_AFFINITY_TWIN_H_
#define MUSTER_TESTS_STATE_CLUSTER_POD_AFFINITY_TWIN_H_

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "state/cluster/cluster.h"
#include "state/model/facts.h"

namespace muster {

struct TwinPod {
  std::string name_space;
  Labels labels;
  PodTemplate shape;
  std::string node;
  bool future = false;  // of a future reservation: it repels other pods and attracts none (P-8)
};

class PodAffinityTwin {
 public:
  std::map<std::string, NodeDescription> nodes;
  std::map<std::string, Labels> namespaces;  // only known ones
  std::vector<TwinPod> pods;

  // Whether the rules of pod affinity allow one more such pod on the node.
  [[nodiscard]] bool Fits(const TwinPod& pod, const std::string& node) const {
    for (const PodAffinityTerm& term : pod.shape.pod_affinity.anti_affinity) {
      if (CountNear(node, term.topology_key, {term.selector}) > 0) return false;
    }
    for (const TwinPod& other : pods) {
      for (const PodAffinityTerm& term : other.shape.pod_affinity.anti_affinity) {
        const std::string domain = Domain(node, term.topology_key);
        const bool near = !domain.empty() && Domain(other.node, term.topology_key) == domain;
        if (near && Selects(term.selector, pod)) return false;
      }
    }
    if (!AffinitySatisfied(pod, node)) return false;
    for (const SpreadConstraint& each : pod.shape.pod_affinity.spread) {
      const int64_t self = Selects(each.selector, pod) ? 1 : 0;
      const int64_t there = CountEven(pod, each, Domain(node, each.topology_key));
      if (!Included(pod, each, node) || there + self - Least(pod, each) > each.max_skew) return false;
    }
    return true;
  }

  // The preference of such a pod for the node: the sum of the weights that apply.
  [[nodiscard]] int64_t PreferenceScore(const TwinPod& pod, const std::string& node) const {
    int64_t sum = 0;
    const NodeDescription& at = nodes.at(node);
    for (const PreferredNode& each : pod.shape.preferences.nodes) {
      if (Matches(each.term, at.name, at.labels)) sum += each.weight;
    }
    for (const WeightedPodAffinityTerm& each : pod.shape.preferences.pod_affinity) {
      sum += each.weight * CountNear(node, each.term.topology_key, {each.term.selector});
    }
    return sum;
  }

  // Whether the rules of every pod are met now that all are placed; of the pods on node `on` only, unless it is empty.
  [[nodiscard]] bool AllHold(const std::string& on = "") const {
    return std::all_of(pods.begin(), pods.end(),
                       [&](const TwinPod& pod) { return !on.empty() && pod.node != on ? true : Holds(pod); });
  }
  [[nodiscard]] bool Holds(const TwinPod& pod) const {
    PodAffinityTwin others = *this;
    std::erase_if(others.pods, [](const TwinPod& each) { return each.future; });
    for (auto each = others.pods.begin(); each != others.pods.end(); ++each) {
      const bool same = each->node == pod.node && each->name_space == pod.name_space && each->labels == pod.labels &&
                        each->shape.Key() == pod.shape.Key();
      if (!same) continue;
      others.pods.erase(each);
      break;
    }
    TwinPod plain = pod;
    plain.shape.pod_affinity.spread.clear();
    if (!others.Fits(plain, pod.node)) return false;
    for (const SpreadConstraint& each : pod.shape.pod_affinity.spread) {
      if (!Included(pod, each, pod.node)) return false;
      const int64_t there = CountEven(pod, each, Domain(pod.node, each.topology_key));
      if (there - Least(pod, each) > each.max_skew) return false;
    }
    return true;
  }

 private:
  // The node's domain for the label `key`; empty if it has none.
  [[nodiscard]] std::string Domain(const std::string& node, const std::string& key) const {
    const auto known = nodes.find(node);
    if (known == nodes.end()) return "";
    const auto label = known->second.labels.find(key);
    if (label != known->second.labels.end()) return "=" + label->second;
    return key == "kubernetes.io/hostname" ? "=" + node : "";
  }
  // AffinityTerm.Matches: the namespace is named, or its labels match.
  [[nodiscard]] bool Selects(const PodSelector& selector, const TwinPod& pod) const {
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
  [[nodiscard]] bool AllSelect(const std::vector<PodSelector>& selectors, const TwinPod& pod) const {
    return std::all_of(selectors.begin(), selectors.end(), [&](const PodSelector& each) { return Selects(each, pod); });
  }
  // The number of selected pods in the node's domain. `future`: also those of future reservations.
  [[nodiscard]] int64_t CountNear(const std::string& node, const std::string& key,
                                  const std::vector<PodSelector>& selectors, bool future = true) const {
    const std::string domain = Domain(node, key);
    return domain.empty() ? 0 : std::count_if(pods.begin(), pods.end(), [&](const TwinPod& pod) {
      return (future || !pod.future) && Domain(pod.node, key) == domain && AllSelect(selectors, pod);
    });
  }
  [[nodiscard]] bool AffinitySatisfied(const TwinPod& pod, const std::string& node) const {
    const std::vector<PodAffinityTerm>& terms = pod.shape.pod_affinity.affinity;
    std::vector<PodSelector> all;
    for (const PodAffinityTerm& term : terms) all.push_back(term.selector);
    bool there = true;
    bool any_match = false;
    // A pod counts if all terms select it. While no namespace is known, terms with a namespace selector are not judged.
    const bool by_labels = std::any_of(all.begin(), all.end(), [](const PodSelector& each) { return each.by_labels; });
    if (by_labels && namespaces.empty()) return true;
    for (const PodAffinityTerm& term : terms) {
      if (Domain(node, term.topology_key).empty()) return false;
      there = there && CountNear(node, term.topology_key, all, /*future=*/false) > 0;
      for (const TwinPod& other : pods) {
        any_match =
            any_match || (!other.future && AllSelect(all, other) && !Domain(other.node, term.topology_key).empty());
      }
    }
    return there || (!any_match && AllSelect(all, pod));
  }
  // calPreFilterState: a node counts if it has every label of the pod's constraints and meets the policies of this one.
  // A node that does not count is not feasible either: another filter of kube-scheduler refuses it.
  [[nodiscard]] bool Included(const TwinPod& pod, const SpreadConstraint& of, const std::string& node) const {
    const auto known = nodes.find(node);
    if (known == nodes.end()) return false;
    for (const SpreadConstraint& each : pod.shape.pod_affinity.spread) {
      if (Domain(node, each.topology_key).empty()) return false;
    }
    if (of.honor_affinity && PodSideObstacle(known->second, pod.shape) != Obstacle::kNone) return false;
    return !of.honor_taints || FirstUntolerated(known->second.taints, pod.shape.tolerations) == nullptr;
  }
  // The number of selected pods on the counted nodes of the domain.
  [[nodiscard]] int64_t CountEven(const TwinPod& pod, const SpreadConstraint& of, const std::string& domain) const {
    return std::count_if(pods.begin(), pods.end(), [&](const TwinPod& there) {
      return !there.future && Domain(there.node, of.topology_key) == domain && Included(pod, of, there.node) &&
             AllSelect({of.selector}, there);
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
