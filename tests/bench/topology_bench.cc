// The cost of placing gangs by domains: from the demand to the reservations, at the first use of a class and later, in
// a cluster that changes in between (SPEC P-4, P-5). Prints one JSON object per figure, as core_bench does.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/cluster/class_index.h"
#include "state/cluster/cluster.h"
#include "state/cluster/pod_affinity.h"
#include "state/cluster/statement.h"
#include "state/cluster/topology.h"
#include "state/model/facts.h"
#include "state/model/pod_template.h"
#include "state/model/subgroups.h"
#include "state/planner/tree_demand.h"
#include "state/planner/tree_planner.h"

namespace muster {
namespace {

constexpr int kRuns = 21;
using Steady = std::chrono::steady_clock;

// Nodes of 8 GPUs in racks in blocks, with some of the GPUs used.
class World {
 public:
  World(int nodes, int racks, int blocks) {
    for (int i = 0; i < nodes; ++i) {
      const int rack = i % racks;
      NodeDescription node;
      node.name = absl::StrCat("node-", i);
      node.labels = {{"block", absl::StrCat("b", rack % blocks)},
                     {"rack", absl::StrCat("r", rack)},
                     {"kubernetes.io/hostname", node.name}};
      node.allocatable = {{"cpu", 64'000}, {"memory", int64_t{256} << 30}, {"pods", 110}, {"nvidia.com/gpu", 8}};
      if (!cluster_.UpsertNode(node).ok()) std::abort();
      if (i % 3 == 0) cluster_.Charge(cluster_.FindNode(node.name), Class(1), ChargeKind::kUsed, 1 + i % 5);
    }
  }
  ClassId Class(int64_t gpus) {
    PodTemplate shape;
    shape.requests = {{"cpu", 1000}, {"memory", int64_t{1} << 30}, {"nvidia.com/gpu", gpus}};
    return *cluster_.AcquireClass(shape);
  }
  // `first`: all derived data is built again each time.
  void Measure(const std::string& what, const TreeDemand& demand, bool placed, bool first = false) {
    std::vector<double> ms;
    int domains = 0;
    for (int run = 0; run <= kRuns; ++run) {
      ClassIndex fresh_index(&cluster_);
      Topology fresh(&cluster_, Levels());
      // The cluster changes between two plans, as in operation.
      cluster_.Charge(run * 7 % cluster_.node_limit(), filler_, ChargeKind::kUsed, 1);
      const Steady::time_point start = Steady::now();
      Statement statement(&cluster_);
      const TreePlacement result =
          PlaceTree(demand, 64, first ? &fresh : &topology_, {first ? &fresh_index : &index_, cluster_, &statement});
      const double took = std::chrono::duration<double, std::milli>(Steady::now() - start).count();
      if (result.placed != placed) std::abort();
      std::vector<DomainId> racks;
      for (const Statement::Operation& operation : statement.operations()) {
        racks.push_back(topology_.DomainOf("rack", operation.node));
      }
      std::sort(racks.begin(), racks.end());
      domains = static_cast<int>(std::unique(racks.begin(), racks.end()) - racks.begin());
      if (run > 0) ms.push_back(took);
    }
    std::sort(ms.begin(), ms.end());
    std::printf(
        "{\"figure\": \"%s\", \"median\": %.4g, \"worst\": %.4g, \"runs\": %d, \"unit\": \"ms\", \"racks\": %d}\n",
        what.c_str(), ms[ms.size() / 2], ms.back(), kRuns, domains);
    std::fflush(stdout);
  }

 private:
  static std::vector<std::string> Levels() { return {"block", "rack", "kubernetes.io/hostname"}; }
  Cluster cluster_;
  ClassIndex index_{&cluster_};
  Topology topology_{&cluster_, Levels()};
  ClassId filler_ = [this] {
    PodTemplate shape;
    shape.requests = {{"cpu", 1}};
    return *cluster_.AcquireClass(shape);
  }();
};

TreeDemand Leaf(ClassId cls, int32_t pods, TopologyRule topology) {
  TreeDemand out;
  out.topology = std::move(topology);
  out.candidates = {{cls, 0, pods}};
  out.needed = pods;
  return out;
}

void Figures() {
  {
    World world(10'000, 64, 8);
    const ClassId gpu = world.Class(1);
    const TreeDemand gang = Leaf(gpu, 512, {"rack", "", ""});
    world.Measure("a gang of 512 in one of 64 racks, 10,000 nodes", gang, true);
    world.Measure("a gang of 512 in one of 64 racks, 10,000 nodes, first sight", gang, true, /*first=*/true);
    world.Measure("a gang of 2,000 that no rack of 64 holds, 10,000 nodes", Leaf(gpu, 2000, {"rack", "", ""}), false);
    TreeDemand tree;
    tree.topology.required = "block";
    for (int i = 0; i < 8; ++i) {
      tree.children.push_back(Leaf(gpu, 64, {"rack", "", ""}));
      tree.children.back().part = i;
    }
    tree.needed = 8;
    world.Measure("8 subgroups of 64, each in one rack, all in one of 8 blocks, 10,000 nodes", tree, true);
    world.Measure("a gang of 4,000 spread over 64 racks, 10,000 nodes", Leaf(gpu, 4000, {"", "", "rack"}), true);
  }
  {
    // Kueue's setup: 10 blocks of 10 racks of 25 hosts.
    World world(2'500, 100, 10);
    const ClassId whole = world.Class(1);
    world.Measure("a gang of 2,304 over block, rack and host, 2,500 nodes",
                  Leaf(whole, 2304, {"", "kubernetes.io/hostname", ""}), true);
    world.Measure("a gang of 2,304 over block and rack, 2,500 nodes", Leaf(whole, 2304, {"", "rack", ""}), true);
  }
  {
    // Volcano's setup: 1,000 nodes, 1,000 pods in one of its domains.
    World world(1'000, 10, 2);
    world.Measure("a gang of 1,000 in one of 2 blocks, 1,000 nodes", Leaf(world.Class(1), 1000, {"block", "", ""}),
                  true);
  }
}

}  // namespace
}  // namespace muster

int main() {
  muster::Figures();
  return 0;
}
