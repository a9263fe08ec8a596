// Who is told apart by labels, his own and his namespace's, and what pods would rather have near them.
#include <cstdint>
#include <vector>

#include "state/cluster/cluster.h"

namespace muster {

Kin Cluster::KinOf(absl::string_view name_space, absl::string_view labels) const {
  if (!neighbours_.any_learned() && !preferred_.any_learned()) return {};
  const auto known = namespaces_.find(name_space);
  const Labels* of_namespace = known == namespaces_.end() ? nullptr : &known->second;
  return {neighbours_.KinOf(name_space, labels, of_namespace), preferred_.KinOf(name_space, labels, of_namespace)};
}

bool Cluster::SetNamespace(absl::string_view name, const Labels* labels) {
  const auto known = namespaces_.find(name);
  const Labels* before = known == namespaces_.end() ? nullptr : &known->second;
  const bool tells = neighbours_.TellsApart(before, labels) || preferred_.TellsApart(before, labels);
  if (labels == nullptr) {
    if (before != nullptr) namespaces_.erase(known);
  } else if (before == nullptr) {
    namespaces_.emplace(name, *labels);
  } else {
    known->second = *labels;
  }
  return tells;
}

// --- preferences ---

int64_t Cluster::Liked(NodeId id, ClassId cls) const {
  int64_t sum = 0;
  const std::vector<PreferredNeighbour>& terms = pod_class(cls).shape->preferences.neighbours;
  for (size_t i = 0; i < terms.size(); ++i) sum += terms[i].weight * preferred_.Near(id, cls, i);
  return sum;
}

int64_t Cluster::LikedAlways(NodeId id, ClassId cls) const {
  // Of 100 at most that a term counts, as kube-scheduler's default weights are: 3 for taints, 2 for affinity.
  constexpr int64_t kOfATaint = -150;
  int64_t sum = kOfATaint * SoftTaints(id, cls);
  const NodeDescription& facts = node(id).facts;
  for (const PreferredNode& each : pod_class(cls).shape->preferences.nodes) {
    if (Matches(each.term, facts.name, facts.labels)) sum += each.weight;
  }
  return sum;
}

bool Cluster::LikesItsOwn(ClassId cls, int32_t sign) const {
  const std::vector<PreferredNeighbour>& terms = pod_class(cls).shape->preferences.neighbours;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].weight * sign > 0 && preferred_.MeansItself(cls, i)) return true;
  }
  return false;
}

}  // namespace muster
