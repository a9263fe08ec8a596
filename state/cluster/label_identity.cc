// Cluster: label identities of pods, by their own labels and their namespace's, and preferences for nodes.
#include <cstdint>
#include <vector>

#include "state/cluster/cluster.h"

namespace muster {

LabelIdentity Cluster::LabelIdentityOf(absl::string_view name_space, absl::string_view labels) const {
  if (!pod_affinity_.any_learned() && !preferred_.any_learned()) return {};
  const auto known = namespaces_.find(name_space);
  const Labels* of_namespace = known == namespaces_.end() ? nullptr : &known->second;
  return {pod_affinity_.LabelIdentityOf(name_space, labels, of_namespace),
          preferred_.LabelIdentityOf(name_space, labels, of_namespace)};
}

bool Cluster::SetNamespace(absl::string_view name, const Labels* labels) {
  const auto known = namespaces_.find(name);
  const Labels* before = known == namespaces_.end() ? nullptr : &known->second;
  const bool distinguishes = pod_affinity_.Distinguishes(before, labels) || preferred_.Distinguishes(before, labels);
  if (labels == nullptr) {
    if (before != nullptr) namespaces_.erase(known);
  } else if (before == nullptr) {
    namespaces_.emplace(name, *labels);
  } else {
    known->second = *labels;
  }
  return distinguishes;
}

// --- preferences ---

int64_t Cluster::PreferenceScore(NodeId id, ClassId cls) const {
  int64_t sum = 0;
  const std::vector<WeightedPodAffinityTerm>& terms = pod_class(cls).shape->preferences.pod_affinity;
  for (size_t i = 0; i < terms.size(); ++i) sum += terms[i].weight * preferred_.Near(id, cls, i);
  return sum;
}

int64_t Cluster::NodePreferenceScore(NodeId id, ClassId cls) const {
  // Relative to the largest weight of a term, 100, in the ratio of kube-scheduler's default weights: 3 for taints, 2
  // for affinity.
  constexpr int64_t kTaintScore = -150;
  int64_t sum = kTaintScore * SoftTaints(id, cls);
  const NodeDescription& facts = node(id).facts;
  for (const PreferredNode& each : pod_class(cls).shape->preferences.nodes) {
    if (Matches(each.term, facts.name, facts.labels)) sum += each.weight;
  }
  return sum;
}

bool Cluster::HasSelfPreference(ClassId cls, int32_t sign) const {
  const std::vector<WeightedPodAffinityTerm>& terms = pod_class(cls).shape->preferences.pod_affinity;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].weight * sign > 0 && preferred_.SelectsItself(cls, i)) return true;
  }
  return false;
}

}  // namespace muster
