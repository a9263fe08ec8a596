// Short builders of nodes and pods, and a fixture, for tests of muster_cluster and muster_planner. Not thread-safe.
#ifndef MUSTER_TESTS_SUPPORT_SMALL_CLUSTER_H_
#define MUSTER_TESTS_SUPPORT_SMALL_CLUSTER_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "state/cluster/cluster.h"
#include "tests/support/cluster_hash.h"
#include "tests/support/facts.h"

namespace muster {

inline PodTemplate Wants(ResourceList requests) {
  PodTemplate shape;
  shape.requests = std::move(requests);
  return shape;
}

class ClusterTest : public testing::Test {
 protected:
  NodeId Put(const NodeDescription& node) {
    EXPECT_TRUE(cluster_.UpsertNode(node).ok()) << node.name;
    return cluster_.FindNode(node.name);
  }
  NodeId Put(const std::string& name, int64_t cpu, int64_t pods = 100) {
    return Put(NodeWith(name, {{"cpu", cpu}, {"pods", pods}}));
  }
  ClassId Acquire(const PodTemplate& shape) {
    const absl::StatusOr<ClassId> cls = cluster_.AcquireClass(shape);
    EXPECT_TRUE(cls.ok()) << cls.status();
    return *cls;
  }
  ClassId Acquire(int64_t cpu) { return Acquire(Wants({{"cpu", cpu}})); }
  void Use(NodeId node, ClassId cls, int32_t times = 1) { cluster_.Charge(node, cls, ChargeKind::kUsed, times); }
  void Reserve(NodeId node, ClassId cls, int32_t times = 1) {
    cluster_.Charge(node, cls, ChargeKind::kReserved, times);
  }
  void Discharge(NodeId node, ClassId cls, int32_t times = 1) {
    cluster_.Discharge(node, cls, ChargeKind::kUsed, times, /*gained=*/true);
  }
  void DischargeReserved(NodeId node, ClassId cls, int32_t times = 1, bool gained = true) {
    cluster_.Discharge(node, cls, ChargeKind::kReserved, times, gained);
  }

  // The changes in the log since `from`: the name of the node, "+" if capacity was gained, "!" if constraints changed.
  std::vector<std::string> LogSince(int64_t from) {
    std::vector<std::string> out;
    for (int64_t at = from; at < cluster_.log_end(); ++at) {
      const ClusterChange& change = cluster_.log_at(at);
      out.push_back(cluster_.node(change.node).facts.name + (change.gained ? "+" : "") +
                    (change.constraints ? "!" : ""));
    }
    return out;
  }

  Cluster cluster_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_SMALL_CLUSTER_H_
