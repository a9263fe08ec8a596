#include "tests/simulation/judge.h"

#include <map>

#include "state/cluster/class_index.h"

namespace muster {
namespace {

// Each standing pod becomes a gang of one that fits only its own node.
bool FitsExactly(const std::vector<NodeDescription>& nodes, const std::vector<Standing>& standing,
                 const std::vector<Instance::Gang>& gangs) {
  std::map<std::string, ResourceList> taken;
  for (const Standing& pod : standing) {
    taken[pod.node]["pods"] += 1;
    for (const auto& [name, amount] : pod.shape.requests) taken[pod.node][name] += amount;
  }
  Instance instance;
  std::map<std::string, bool> usable;
  for (const NodeDescription& node : nodes) {
    bool over = false;  // nothing fits there, not even the standing pods
    for (const auto& [name, amount] : taken[node.name]) {
      const auto offered = node.allocatable.find(name);
      over = over || amount > (offered == node.allocatable.end() ? 0 : offered->second);
    }
    if (over || node.unschedulable) continue;
    usable[node.name] = true;
    instance.nodes.push_back(node);
    instance.nodes.back().labels[kHostLabel] = node.name;
  }
  for (const Standing& pod : standing) {
    if (!usable[pod.node]) continue;
    PodTemplate shape;
    shape.requests = pod.shape.requests;
    shape.host_ports = pod.shape.host_ports;
    shape.node_selector[kHostLabel] = pod.node;
    shape.tolerations.push_back({"", true, "", {}});
    instance.gangs.push_back({{{shape, 0}}, 1});
  }
  instance.gangs.insert(instance.gangs.end(), gangs.begin(), gangs.end());
  return FitsIdleCluster(instance);
}

}  // namespace

std::vector<Demand> DemandsOf(const std::vector<Instance::Gang>& gangs, Cluster* cluster) {
  std::vector<Demand> demands;
  for (const Instance::Gang& gang : gangs) {
    Demand& demand = demands.emplace_back();
    demand.needed = gang.minimum;
    for (const Instance::Pod& pod : gang.pods) {
      const ClassId cls = *cluster->AcquireClass(pod.shape);
      std::vector<Candidates>& runs = demand.candidates;
      if (runs.empty() || runs.back().cls != cls || runs.back().priority != pod.priority) {
        runs.push_back({cls, pod.priority, 0});
      }
      ++runs.back().pods;
    }
  }
  return demands;
}

Fit Judge(const std::vector<NodeDescription>& nodes, const std::vector<Standing>& standing,
          const std::vector<Instance::Gang>& gangs) {
  if (!FitsExactly(nodes, standing, gangs)) return Fit::kNo;
  Cluster cluster;
  for (NodeDescription node : nodes) {
    node.labels[kHostLabel] = node.name;
    cluster.UpsertNode(node).IgnoreError();
  }
  for (const Standing& pod : standing) {
    cluster.Charge(cluster.InternNode(pod.node), *cluster.AcquireClass(pod.shape), ChargeKind::kUsed, 1);
  }
  const std::vector<Demand> demands = DemandsOf(gangs, &cluster);
  ClassIndex index(&cluster);
  Statement statement(&cluster);
  const GroupPlacement result = PlaceTogether(demands, kDefaultTries, {&index, cluster, &statement});
  if (!result.placed) return result.out_of_tries ? Fit::kGaveUp : Fit::kDisproved;
  return result.tries == 1 ? Fit::kFirstTry : Fit::kLaterTry;
}

}  // namespace muster
