// Builders of the nodes and pods that tests announce. Pods are in namespace "d" and belong to default-scheduler; the
// UID of a pod is its name.
#ifndef MUSTER_TESTS_SUPPORT_FACTS_H_
#define MUSTER_TESTS_SUPPORT_FACTS_H_

#include <string>
#include <utility>

#include "state/model/facts.h"

namespace muster {

inline NodeDescription NodeWith(std::string name, ResourceList allocatable, Labels labels = {}) {
  NodeDescription node;
  node.name = std::move(name);
  node.labels = std::move(labels);
  node.allocatable = std::move(allocatable);
  return node;
}

// A node for ten pods.
inline NodeDescription SmallNode(std::string name, int64_t cpu) {
  return NodeWith(std::move(name), {{"cpu", cpu}, {"pods", 10}});
}

// A pod of no gang.
inline PodDescription Lone(const std::string& name, int64_t cpu) {
  PodDescription pod;
  pod.uid = pod.name = name;
  pod.name_space = "d";
  pod.scheduler_name = "default-scheduler";
  pod.shape.Mutable().requests = {{"cpu", cpu}};
  return pod;
}

// A pod that declares its gang, which needs `min` members.
inline PodDescription Member(const std::string& name, const std::string& gang, int32_t min, int64_t cpu = 1) {
  PodDescription pod = Lone(name, cpu);
  pod.gang.name = gang;
  pod.gang.declares = true;
  pod.gang.declaration.Mutable().min_member = min;
  return pod;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_FACTS_H_
