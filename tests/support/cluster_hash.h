// A hash of what a cluster knows, independent of the changes that led to it: nodes, charges, classes, learned refusals
// and learned labels. Everything is hashed by name, in order of names. Pure functions.
#ifndef MUSTER_TESTS_SUPPORT_CLUSTER_HASH_H_
#define MUSTER_TESTS_SUPPORT_CLUSTER_HASH_H_

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "state/base/hash.h"
#include "state/base/members.h"
#include "state/cluster/cluster.h"

namespace muster {

template <typename Numbers>
void AddNumbers(const Numbers& by_name, StateHasher* hasher) {
  hasher->Add(static_cast<int64_t>(by_name.size()));
  for (const auto& [name, number] : by_name) {
    hasher->Add(name);
    hasher->Add(number);
  }
}

inline void AddNode(const Node& node, const ResourceNames& names, StateHasher* hasher) {
  hasher->Add(node.facts.name);
  hasher->Add(node.present);
  AddNumbers(names.ToList(node.allocatable), hasher);
  for (const ResourceSum* sum : {&node.used, &node.reserved, &node.future_reserved})
    AddNumbers(names.ToList(*sum), hasher);
  for (const int32_t pods : {node.used_pods, node.reserved_pods, node.future_reserved_pods}) hasher->Add(pods);
  std::map<std::string, int64_t> ports;
  for (const PortCharges& held : node.ports) {
    const std::string port = absl::StrCat(static_cast<int>(held.port.protocol), "/", held.port.port, "/", held.port.ip);
    ports[port] += held.used + int64_t{1000} * held.reserved + int64_t{1'000'000} * held.future_reserved;
  }
  AddNumbers(ports, hasher);
}

// Adds the learned labels, and the charges by class and node.
inline void AddPodAffinity(const PodAffinity& affinity, const Cluster& cluster, StateHasher* hasher) {
  archive::ForEachMember(affinity, [&](const auto& member) {
    using Member = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<Member, bool>) {
      hasher->Add(member);
    } else if constexpr (std::is_same_v<Member, absl::btree_set<std::string>>) {
      for (const std::string& key : member) hasher->Add(key);
    } else {
      std::map<std::string, int64_t> charged;
      for (const auto& [cls, nodes] : member) {
        const std::string& key = cluster.pod_class(cls).key;
        for (const auto& [node, pods] : nodes) charged[absl::StrCat(key, "@", cluster.node(node).facts.name)] = pods;
      }
      AddNumbers(charged, hasher);
    }
  });
}

// Times are added relative to `now_ms`.
inline void AddCluster(const Cluster& cluster, StateHasher* hasher, int64_t now_ms = 0) {
  for (const auto& [name, id] : cluster.order().ids()) AddNode(cluster.node(id), cluster.names(), hasher);
  std::map<std::string, const PodClass*> classes;
  for (ClassId cls = 0; cls < cluster.class_limit(); ++cls) {
    if (cluster.has_class(cls)) classes.emplace(cluster.pod_class(cls).key, &cluster.pod_class(cls));
  }
  for (const auto& [key, cls] : classes) {
    hasher->Add(key);
    hasher->Add(cls->pods);
    std::map<std::string, int64_t> excluded;
    for (const auto& [id, until_ms] : cls->excluded) excluded.emplace(cluster.node(id).facts.name, until_ms);
    for (const auto& [name, until_ms] : excluded) {
      hasher->Add(name);
      hasher->Add(until_ms - now_ms);
    }
  }
  archive::ForEachMember(cluster, [&](const auto& member) {
    if constexpr (std::is_same_v<decltype(member), const PodAffinity&>) AddPodAffinity(member, cluster, hasher);
  });
  for (const auto& [name, labels] : cluster.namespaces()) {
    hasher->Add(name);
    hasher->Add(PackLabels(labels));
  }
}

[[nodiscard]] inline uint64_t HashOf(const Cluster& cluster) {
  StateHasher hasher;
  AddCluster(cluster, &hasher);
  return hasher.value();
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_CLUSTER_HASH_H_
