// muster_cluster: nodes, classes, and the log of changes.
#include "state/cluster/cluster.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "state/cluster/node_order.h"
#include "tests/support/small_cluster.h"

namespace muster {
namespace {

using Lines = std::vector<std::string>;

class Nodes : public ClusterTest {};

TEST_F(Nodes, UpsertAndRemove_TrackNode) {
  EXPECT_EQ(cluster_.FindNode("a"), kNoNode);
  EXPECT_EQ(cluster_.node_limit(), 0);
  EXPECT_TRUE(*cluster_.UpsertNode(NodeWith("a", {{"cpu", 8}})));
  const NodeId a = cluster_.FindNode("a");
  ASSERT_NE(a, kNoNode);
  EXPECT_EQ(cluster_.node_limit(), 1);
  EXPECT_EQ(cluster_.present_nodes(), 1);
  EXPECT_TRUE(cluster_.node(a).present);
  EXPECT_TRUE(cluster_.node(a).known);
  EXPECT_EQ(cluster_.node(a).facts.name, "a");
  EXPECT_EQ(cluster_.node(a).free.Get(kCpu), 8);

  EXPECT_TRUE(*cluster_.UpsertNode(NodeWith("a", {{"cpu", 9}})));
  EXPECT_EQ(cluster_.FindNode("a"), a);
  EXPECT_EQ(cluster_.present_nodes(), 1);
  EXPECT_EQ(cluster_.node(a).free.Get(kCpu), 9);
  EXPECT_EQ(cluster_.node(a).allocatable.Get(kCpu), 9);

  const NodeId b = Put("b", 1);
  EXPECT_NE(a, b);
  EXPECT_EQ(cluster_.present_nodes(), 2);
  cluster_.RemoveNode("a");
  EXPECT_EQ(cluster_.FindNode("a"), kNoNode) << "nothing is charged there: it is forgotten";
  EXPECT_FALSE(cluster_.node(a).known);
  EXPECT_FALSE(cluster_.node(a).present);
  EXPECT_EQ(cluster_.present_nodes(), 1);
  cluster_.RemoveNode("a");
  cluster_.RemoveNode("nobody");
  EXPECT_EQ(cluster_.present_nodes(), 1);
  EXPECT_EQ(cluster_.FindNode("b"), b);
}

// Only facts that placement reads count as a change (P-9: an update without a change wakes no gang).
TEST_F(Nodes, PlacementFact_CountsAsChange) {
  NodeDescription node = NodeWith("a", {{"cpu", 8}});
  node.labels = {{"zone", "x"}};
  const NodeId a = Put(node);
  const int64_t end = cluster_.log_end();
  EXPECT_FALSE(*cluster_.UpsertNode(node));
  EXPECT_EQ(cluster_.log_end(), end);
  const std::vector<std::function<void(NodeDescription*)>> changes = {
      [](NodeDescription* n) { n->labels["zone"] = "y"; },
      [](NodeDescription* n) { n->labels["rack"] = "r"; },
      [](NodeDescription* n) {
        n->taints.push_back({"gpu", "", TaintEffect::kNoSchedule});
      },
      [](NodeDescription* n) { n->taints[0].value = "yes"; },
      [](NodeDescription* n) { n->taints[0].effect = TaintEffect::kNoExecute; },
      [](NodeDescription* n) { n->unschedulable = true; },
      [](NodeDescription* n) { n->allocatable["cpu"] = 7; },
      [](NodeDescription* n) { n->allocatable["pods"] = 7; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("change ", i));
    changes[i](&node);
    const int64_t from = cluster_.log_end();
    EXPECT_TRUE(*cluster_.UpsertNode(node));
    EXPECT_EQ(LogSince(from), (Lines{"a+!"})) << "anything may fit now that did not";
    EXPECT_FALSE(*cluster_.UpsertNode(node));
    EXPECT_EQ(cluster_.FindNode("a"), a);
  }
  EXPECT_EQ(cluster_.node(a).facts.labels, node.labels);
  EXPECT_EQ(cluster_.node(a).facts.taints, node.taints);
  EXPECT_TRUE(cluster_.node(a).facts.unschedulable);
}

// SPEC S-6: an amount out of range changes nothing.
TEST_F(Nodes, OutOfRangeAmount_RefusesWholeUpdate) {
  Put("a", 8);
  const uint64_t before = HashOf(cluster_);
  const int64_t end = cluster_.log_end();
  const absl::Status refused = cluster_.UpsertNode(NodeWith("a", {{"cpu", kMaxAmount + 1}})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_TRUE(absl::IsInvalidArgument(cluster_.UpsertNode(NodeWith("b", {{"cpu", -1}})).status()));
  EXPECT_EQ(HashOf(cluster_), before);
  EXPECT_EQ(cluster_.log_end(), end);
  EXPECT_EQ(cluster_.FindNode("b"), kNoNode);
}

// A pod may be bound to a node before the node is announced, and outlive it.
TEST_F(Nodes, ChargedPod_OutlivesNode) {
  const ClassId cls = Acquire(3);
  const NodeId a = cluster_.InternNode("a");
  EXPECT_EQ(cluster_.InternNode("a"), a);
  EXPECT_TRUE(cluster_.node(a).known);
  EXPECT_FALSE(cluster_.node(a).present);
  EXPECT_EQ(cluster_.present_nodes(), 0);
  Use(a, cls);
  EXPECT_EQ(cluster_.node(a).free.Get(kCpu), -3);
  EXPECT_EQ(Put("a", 8), a);
  EXPECT_EQ(cluster_.node(a).free.Get(kCpu), 5) << "the pod was there before the node";
  Reserve(a, cls);

  const int64_t from = cluster_.log_end();
  cluster_.RemoveNode("a");
  EXPECT_EQ(LogSince(from), (Lines{"a!"})) << "nothing fits because a node went";
  EXPECT_EQ(cluster_.FindNode("a"), a);
  EXPECT_FALSE(cluster_.node(a).present);
  EXPECT_EQ(cluster_.present_nodes(), 0);
  EXPECT_EQ(cluster_.node(a).free.Get(kCpu), -6);
  EXPECT_TRUE(cluster_.node(a).facts.labels.empty());
  cluster_.RemoveNode("a");
  EXPECT_EQ(cluster_.present_nodes(), 0) << "it can go only once";
  Discharge(a, cls);
  EXPECT_EQ(cluster_.FindNode("a"), a) << "a reservation still stands";
  DischargeReserved(a, cls);
  EXPECT_EQ(cluster_.FindNode("a"), kNoNode);
}

TEST_F(Nodes, AbsentNode_LosesFacts) {
  NodeDescription node = NodeWith("a", {{"cpu", 8}});
  node.labels = {{"zone", "x"}};
  node.taints = {{"gpu", "", TaintEffect::kNoSchedule}};
  node.unschedulable = true;
  const NodeId a = Put(node);
  Use(a, Acquire(1));
  cluster_.RemoveNode("a");
  EXPECT_EQ(cluster_.node(a).facts.name, "a");
  EXPECT_TRUE(cluster_.node(a).facts.labels.empty());
  EXPECT_TRUE(cluster_.node(a).facts.taints.empty());
  EXPECT_FALSE(cluster_.node(a).facts.unschedulable);
  EXPECT_TRUE(cluster_.node(a).facts.allocatable.empty());
  EXPECT_TRUE(*cluster_.UpsertNode(node)) << "the same facts again are news";
  EXPECT_EQ(cluster_.node(a).free.Get(kCpu), 7);
}

// Ids are dense. The next node reuses the id of a removed node without any trace of the old one.
TEST_F(Nodes, RemovedNode_IdIsReused) {
  PodTemplate port = Wants({{"cpu", 1}});
  port.host_ports = {{Protocol::kTcp, 80, "0.0.0.0"}};
  const ClassId cls = Acquire(port);
  const NodeId a = Put("a", 8);
  Put("b", 8);
  Use(a, cls);
  cluster_.Exclude(cls, a, 500);
  cluster_.RemoveNode("a");
  EXPECT_EQ(cluster_.FindObstacle(a, cls), Obstacle::kAbsent);
  Discharge(a, cls);
  const NodeId c = cluster_.InternNode("c");
  EXPECT_EQ(c, a);
  EXPECT_EQ(cluster_.node_limit(), 2);
  EXPECT_EQ(cluster_.FindNode("a"), kNoNode);
  EXPECT_EQ(cluster_.FindNode("c"), c);
  EXPECT_EQ(cluster_.node(c).facts.name, "c");
  EXPECT_EQ(Put("c", 8), c);
  EXPECT_EQ(cluster_.FindObstacle(c, cls), Obstacle::kNone) << "what was learned of a says nothing about c";
  EXPECT_EQ(cluster_.Room(c, cls, 9), 1);
  EXPECT_EQ(cluster_.InternNode("d"), 2);
}

// SPEC section 1: after charges far beyond the reported range are discharged, the free amount is exact again.
TEST_F(Nodes, FreeAmount_ExactAfterOverflow) {
  const NodeId node = Put("n", 8, 1'000);
  const ClassId vast = Acquire(kMaxAmount);
  for (int i = 0; i < 600; ++i) Use(node, vast);
  EXPECT_EQ(cluster_.node(node).free.Get(kCpu), -(int64_t{1} << 62)) << "2^53 each, 600 times";
  for (int i = 0; i < 100; ++i) Discharge(node, vast);
  EXPECT_EQ(cluster_.node(node).free.Get(kCpu), 8 - 500 * kMaxAmount);
  Discharge(node, vast, 500);
  EXPECT_EQ(cluster_.node(node).free.Get(kCpu), 8);
  EXPECT_EQ(cluster_.TotalFree().Get(kCpu), 8);
}

TEST_F(Nodes, TotalFree_ExcludesUnusableCapacity) {
  EXPECT_EQ(cluster_.TotalFree(), ResourceSum());
  const NodeId a = Put(NodeWith("a", {{"cpu", 8}, {"memory", 4}}));
  const NodeId b = Put(NodeWith("b", {{"cpu", 2}, {"nvidia.com/gpu", 1}}));
  NodeDescription cordoned = NodeWith("c", {{"cpu", 100}});
  cordoned.unschedulable = true;
  Put(cordoned);
  const auto total = [&] { return cluster_.names().ToList(cluster_.TotalFree()); };
  EXPECT_EQ(total(), (ResourceList{{"cpu", 10}, {"memory", 4}, {"nvidia.com/gpu", 1}}));
  Use(b, Acquire(5));
  EXPECT_EQ(total(), (ResourceList{{"cpu", 8}, {"memory", 4}, {"nvidia.com/gpu", 1}}))
      << "a node that is over-committed takes nothing from the others";
  Reserve(a, Acquire(3));
  EXPECT_EQ(total().at("cpu"), 5);
  cluster_.RemoveNode("b");
  EXPECT_EQ(total(), (ResourceList{{"cpu", 5}, {"memory", 4}}));
}

// The counts and sums that the cluster keeps are those of its nodes and classes, whatever came before; and the log says
// what may fit again.
TEST_F(Nodes, RandomChanges_CountsAgreeWithScan) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto wants = [](int i) { return Wants({{i == 2 ? "gpu" : "cpu", i + 1}}); };
  std::vector<ClassId> classes = {Acquire(wants(0)), Acquire(wants(1)), Acquire(wants(2))};
  std::vector<std::tuple<NodeId, ClassId, ChargeKind>> used;
  const std::array kinds = {ChargeKind::kUsed, ChargeKind::kReserved, ChargeKind::kFutureReserved};
  const auto discharge = [&] {
    const auto& [node, cls, kind] = used.back();
    cluster_.Discharge(node, cls, kind, 1, /*gained=*/true);
    used.pop_back();
  };
  for (int64_t step = 0; step < 3'000; ++step) {
    const std::string name = absl::StrCat("n", pick(4));
    const size_t at = static_cast<size_t>(pick(3));
    const NodeId known = cluster_.FindNode(name);
    const bool present = known != kNoNode && cluster_.node(known).present;
    switch (pick(7)) {
      case 0:
        Put(NodeWith(name, {{"cpu", pick(9)}, {pick(2) == 0 ? "gpu" : "pods", pick(4)}}));
        break;
      case 1:
        cluster_.RemoveNode(name);
        break;
      case 2:
        if (!present) break;
        for (const Freshness next : {Freshness::kRestored, static_cast<Freshness>(pick(3))}) {
          const bool was = cluster_.node(known).freshness == Freshness::kExpired;
          const bool is = next == Freshness::kExpired;
          const int64_t before = cluster_.log_end();
          cluster_.SetFreshness(known, next);
          EXPECT_EQ(LogSince(before), was == is ? Lines{} : Lines{name + (was ? "+!" : "!")});
        }
        break;
      case 3:
        used.emplace_back(cluster_.InternNode(name), classes[at], kinds.at(static_cast<size_t>(pick(3))));
        cluster_.Charge(cluster_.FindNode(name), classes[at], std::get<ChargeKind>(used.back()), 1);
        break;
      case 4:
        if (!used.empty()) discharge();
        break;
      case 5:
        if (known != kNoNode) cluster_.Exclude(classes[at], known, step + pick(200));
        break;
      default:
        cluster_.ExpireExclusions(step);
        if (absl::c_any_of(used, [&](const auto& use) { return std::get<1>(use) == classes[at]; })) break;
        cluster_.ReleaseClass(classes[at]);
        classes[at] = Acquire(wants(static_cast<int>(at)));
    }
    ResourceSum free, allocatable;
    int32_t nodes = 0, stale = 0;
    for (NodeId id = 0; id < cluster_.node_limit(); ++id) {
      const Node& node = cluster_.node(id);
      for (ResourceId r = 0; r < 8; ++r) ASSERT_EQ(node.free.Get(r), node.Left(r)) << step;
      nodes += node.present ? 1 : 0;
      stale += node.freshness != Freshness::kCurrent ? 1 : 0;
      if (!node.counts()) continue;
      allocatable.AddTimes(node.allocatable, 1);
      for (const auto& [resource, amount] : node.free.entries()) free.Add(resource, std::max<int64_t>(0, amount));
    }
    size_t excluded = 0;
    for (const ClassId cls : classes) excluded += cluster_.pod_class(cls).excluded.size();
    ASSERT_EQ(cluster_.TotalFree(), free) << step;
    ASSERT_EQ(cluster_.TotalAllocatable(), allocatable) << step;
    ASSERT_EQ(std::tuple(cluster_.present_nodes(), cluster_.stale_nodes(), cluster_.exclusions()),
              std::tuple(nodes, stale, static_cast<int64_t>(excluded)))
        << step;
  }
  while (!used.empty()) discharge();
  for (const ClassId cls : classes) cluster_.ReleaseClass(cls);
  for (const char* name : {"n0", "n1", "n2", "n3"}) cluster_.RemoveNode(name);
  EXPECT_LT(cluster_.names().Find("gpu"), 0) << "nothing names it any more";
}

class Classes : public ClusterTest {};

TEST_F(Classes, EqualTemplates_ShareClass) {
  const ClassId one = Acquire(1);
  EXPECT_EQ(Acquire(1), one);
  const ClassId two = Acquire(2);
  EXPECT_NE(one, two);
  EXPECT_EQ(cluster_.class_limit(), 2);
  EXPECT_EQ(cluster_.pod_class(one).pods, 2);
  EXPECT_EQ(cluster_.pod_class(two).pods, 1);
  EXPECT_EQ(cluster_.pod_class(one).request.Get(kCpu), 1);
  EXPECT_EQ(cluster_.pod_class(one).request.Get(kPods), 1) << "a pod is one of the node's pods";
  EXPECT_EQ(cluster_.pod_class(two).shape->requests, (ResourceList{{"cpu", 2}}));
}

TEST_F(Classes, LastRelease_FreesClassId) {
  const ClassId one = Acquire(1);
  const ClassId two = Acquire(2);
  Acquire(1);
  cluster_.RetainClass(one, 2);
  EXPECT_EQ(cluster_.pod_class(one).pods, 4);
  for (int i = 0; i < 3; ++i) cluster_.ReleaseClass(one);
  EXPECT_EQ(cluster_.pod_class(one).pods, 1);
  EXPECT_EQ(Acquire(1), one) << "it is known as long as somebody is left";
  cluster_.ReleaseClass(one);
  cluster_.ReleaseClass(one);
  const ClassId next = Acquire(4);
  EXPECT_NE(next, one) << "somebody may know it by its id yet";
  cluster_.ReleaseClass(next);
  cluster_.ReuseClasses();
  cluster_.ReleaseClass(Acquire(5));
  const ClassId three = Acquire(3);
  EXPECT_EQ(three, one) << "the id is given again";
  EXPECT_EQ(cluster_.pod_class(three).request.Get(kCpu), 3);
  EXPECT_EQ(cluster_.pod_class(two).request.Get(kCpu), 2);
  EXPECT_NE(Acquire(1), one) << "the old template is a new class";
  cluster_.ReuseClasses();
  EXPECT_LE(Acquire(6), 3);
  EXPECT_EQ(cluster_.class_limit(), 4);
}

TEST_F(Classes, OutOfRangeRequest_Refused) {
  EXPECT_TRUE(absl::IsInvalidArgument(cluster_.AcquireClass(Wants({{"cpu", kMaxAmount + 1}})).status()));
  EXPECT_EQ(cluster_.class_limit(), 0);
}

class Log : public ClusterTest {};

TEST_F(Log, FullLog_KeepsLatestChanges) {
  EXPECT_EQ(cluster_.log_start(), 0);
  EXPECT_EQ(cluster_.log_end(), 0);
  const NodeId a = Put("a", 8);
  const ClassId cls = Acquire(1);
  const int64_t most = Cluster::kMaxLog;
  while (cluster_.log_end() < most) cluster_.Exclude(cls, a, 1);
  EXPECT_EQ(cluster_.log_start(), 0);
  EXPECT_TRUE(cluster_.log_at(0).gained) << "the first: a came";
  cluster_.Exclude(cls, a, 1);
  EXPECT_EQ(cluster_.log_end(), most + 1);
  EXPECT_EQ(cluster_.log_start(), 1);
  EXPECT_FALSE(cluster_.log_at(1).gained);
  Put("a", 9);
  EXPECT_EQ(cluster_.log_start(), 2);
  EXPECT_TRUE(cluster_.log_at(most + 1).gained) << "the last";
}

// P-4: equal scores are ordered by name; a new node does not change the rank of other nodes.
TEST_F(Log, Ranks_FollowNames) {
  const NodeId m = Put("m", 1);
  const NodeId z = Put("z", 1);
  const NodeId a = Put("a", 1);
  const NodeOrder& order = cluster_.order();
  const int64_t rank = order.rank(z);
  EXPECT_LT(order.rank(a), order.rank(m));
  EXPECT_LT(order.rank(m), order.rank(z));
  cluster_.RemoveNode("m");
  const NodeId b = Put("b", 1);
  EXPECT_EQ(b, m) << "an id serves another name";
  EXPECT_LT(order.rank(a), order.rank(b));
  EXPECT_LT(order.rank(b), order.rank(z));
  EXPECT_EQ(order.rank(z), rank);
  EXPECT_EQ(order.epoch(), 0);
}

// Ranks order names whatever the order of arrival; a new epoch begins only when a gap is used up.
TEST(NodeOrder, RandomNames_RanksStayOrdered) {
  std::mt19937 random(7);
  for (int world = 0; world < 50; ++world) {
    NodeOrder order;
    absl::btree_map<std::string, int32_t> names;
    int32_t next = 0;
    std::string low = "m";
    for (int step = 0; step < 200; ++step) {
      // Half of the worlds fill one gap, so that it is used up.
      std::string name = absl::StrCat("n", random() % 1000);
      if (world % 2 == 0) name = low += 'a';
      if (names.contains(name)) {
        order.Remove(name);
        names.erase(name);
        continue;
      }
      order.Add(name, next);
      names[name] = next++;
      if (world % 2 == 0 && step == 0) {
        order.Add("z", next);
        names["z"] = next++;
      }
      int64_t before = std::numeric_limits<int64_t>::min();
      for (const auto& [each, id] : names) {
        ASSERT_LT(before, order.rank(id)) << each << " in world " << world << " at step " << step;
        before = order.rank(id);
      }
    }
    EXPECT_EQ(order.epoch() > 0, world % 2 == 0) << "world " << world;
  }
}

class Hashes : public ClusterTest {};

// SPEC P-1: different states hash differently, and equal states hash alike whatever path led to them.
TEST_F(Hashes, DifferentStates_HashDifferently) {
  std::set<uint64_t> seen;
  const auto is_new = [&](const char* what) { EXPECT_TRUE(seen.insert(HashOf(cluster_)).second) << what; };
  is_new("nothing");
  const NodeId a = Put("a", 8);
  is_new("a node");
  Put("a", 9);
  is_new("more of it");
  const NodeId b = Put("b", 9);
  is_new("another node");
  const ClassId one = Acquire(1);
  is_new("a class");
  const uint64_t idle = HashOf(cluster_);
  Acquire(1);
  is_new("one more of it");
  cluster_.ReleaseClass(one);
  EXPECT_EQ(HashOf(cluster_), idle);
  Use(a, one);
  is_new("a pod on a");
  Discharge(a, one);
  Use(b, one);
  is_new("a pod on b");
  Discharge(b, one);
  Reserve(a, one);
  is_new("a reservation");
  Reserve(a, one);
  is_new("two reservations");
  DischargeReserved(a, one, 2);
  EXPECT_EQ(HashOf(cluster_), idle);
  cluster_.Exclude(one, a, 100);
  is_new("a refusal");
  cluster_.Exclude(one, a, 200);
  is_new("a longer one");
  static_cast<void>(cluster_.ExpireExclusions(200));
  cluster_.Exclude(one, b, 100);
  is_new("on another node");
  static_cast<void>(cluster_.ExpireExclusions(200));
  EXPECT_EQ(HashOf(cluster_), idle);
  cluster_.ReleaseClass(one);
  Use(a, Acquire(2));
  is_new("a pod of another class");
  cluster_.RemoveNode("a");
  is_new("the node is gone, its pod is not");
  Put(NodeWith("a", {}));
  is_new("a node that offers nothing");
  Put(NodeWith("a", {{"cpu", 5}}));
  is_new("a node that offers one resource");
  Put(NodeWith("a", {{"memory", 5}}));
  is_new("a node that offers another resource");
}

// The same pods on swapped nodes: equal sums must not hide the difference.
TEST_F(Hashes, SwappedPods_HashDifferently) {
  PodTemplate http = Wants({});
  http.host_ports = {{Protocol::kTcp, 80, "0.0.0.0"}};
  PodTemplate https = Wants({});
  https.host_ports = {{Protocol::kTcp, 443, "0.0.0.0"}};
  const NodeId a = Put("a", 8);
  const NodeId b = Put("b", 8);
  const std::vector<std::pair<ClassId, ClassId>> pairs = {{Acquire(1), Acquire(2)}, {Acquire(http), Acquire(https)}};
  for (const auto& [one, two] : pairs) {
    for (const ChargeKind kind : {ChargeKind::kUsed, ChargeKind::kReserved}) {
      cluster_.Charge(a, one, kind, 1);
      cluster_.Charge(b, two, kind, 1);
      const uint64_t this_way = HashOf(cluster_);
      cluster_.Discharge(a, one, kind, 1, true);
      cluster_.Discharge(b, two, kind, 1, true);
      cluster_.Charge(a, two, kind, 1);
      cluster_.Charge(b, one, kind, 1);
      EXPECT_NE(HashOf(cluster_), this_way) << one;
      cluster_.Discharge(a, two, kind, 1, true);
      cluster_.Discharge(b, one, kind, 1, true);
    }
  }
}

TEST_F(Hashes, EqualStates_HashAlike) {
  Put("a", 8);
  Put("b", 9);
  const ClassId one = Acquire(1);
  const ClassId two = Acquire(2);
  Use(cluster_.FindNode("a"), one);
  cluster_.Exclude(two, cluster_.FindNode("b"), 100);
  Cluster other;
  ASSERT_TRUE(other.AcquireClass(Wants({{"cpu", 2}})).ok());
  ASSERT_TRUE(other.UpsertNode(NodeWith("gone", {{"cpu", 1}})).ok());
  ASSERT_TRUE(other.UpsertNode(NodeWith("b", {{"cpu", 9}, {"pods", 100}})).ok());
  const ClassId of_other = *other.AcquireClass(Wants({{"cpu", 1}}));
  ASSERT_TRUE(other.UpsertNode(NodeWith("a", {{"cpu", 8}, {"pods", 100}})).ok());
  other.RemoveNode("gone");
  other.Exclude(*other.AcquireClass(Wants({{"cpu", 2}})), other.FindNode("b"), 100);
  other.ReleaseClass(*other.AcquireClass(Wants({{"cpu", 2}})));
  other.ReleaseClass(0);
  other.Charge(other.FindNode("a"), of_other, ChargeKind::kUsed, 1);
  EXPECT_EQ(HashOf(other), HashOf(cluster_));
}

}  // namespace
}  // namespace muster
