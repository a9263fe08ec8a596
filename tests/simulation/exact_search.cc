#include "tests/simulation/exact_search.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

struct NodeState {
  ResourceList free;
  std::vector<HostPort> ports;
};

bool Allowed(const NodeDescription& node, const PodTemplate& shape) {
  if (node.unschedulable) return false;
  if (FirstUntolerated(node.taints, shape.tolerations) != nullptr) return false;
  for (const auto& [key, value] : shape.node_selector) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return false;
  }
  return !shape.has_affinity || std::any_of(shape.affinity.begin(), shape.affinity.end(),
                                            [&](const auto& term) { return Matches(term, node.name, node.labels); });
}

// One choice of pods, placed in order.
class Placing {
 public:
  Placing(const Instance& instance, std::vector<const PodTemplate*> pods)
      : nodes_(instance.nodes), pods_(std::move(pods)) {
    // Large pods first, equal pods next to each other.
    std::stable_sort(pods_.begin(), pods_.end(), [](const PodTemplate* a, const PodTemplate* b) {
      return std::make_pair(Cpu(*b), b->Key()) < std::make_pair(Cpu(*a), a->Key());
    });
    for (const NodeDescription& node : nodes_) states_.push_back({node.allocatable, {}});
    for (const PodTemplate* pod : pods_) {
      std::vector<bool>& row = allowed_.emplace_back();
      for (const NodeDescription& node : nodes_) row.push_back(Allowed(node, *pod));
      keys_.push_back(pod->Key());
    }
  }

  bool Fits(size_t pod = 0, size_t first_node = 0) {
    if (pod == pods_.size()) return true;
    if (failed_.contains(State(pod, first_node))) return false;
    for (size_t n = first_node; n < nodes_.size(); ++n) {
      if (!allowed_[pod][n] || !HasRoom(states_[n], *pods_[pod])) continue;
      const NodeState before = states_[n];
      Take(*pods_[pod], &states_[n]);
      // An equal pod need not be tried on earlier nodes.
      const bool equal_next = pod + 1 < pods_.size() && keys_[pod + 1] == keys_[pod];
      if (Fits(pod + 1, equal_next ? n : 0)) return true;
      states_[n] = before;
    }
    failed_.insert(State(pod, first_node));
    return false;
  }

 private:
  static int64_t Cpu(const PodTemplate& pod) {
    const auto cpu = pod.requests.find("cpu");
    return cpu == pod.requests.end() ? 0 : cpu->second;
  }
  static int64_t Amount(const ResourceList& list, const std::string& name) {
    const auto found = list.find(name);
    return found == list.end() ? 0 : found->second;
  }
  static bool HasRoom(const NodeState& node, const PodTemplate& pod) {
    if (Amount(node.free, "pods") < 1) return false;
    for (const auto& [name, amount] : pod.requests) {
      if (amount > Amount(node.free, name)) return false;
    }
    for (const HostPort& port : pod.host_ports) {
      for (const HostPort& held : node.ports) {
        if (Conflicts(port, held)) return false;
      }
    }
    return true;
  }
  static void Take(const PodTemplate& pod, NodeState* node) {
    node->free["pods"] -= 1;
    for (const auto& [name, amount] : pod.requests) {
      if (amount > 0) node->free[name] -= amount;
    }
    node->ports.insert(node->ports.end(), pod.host_ports.begin(), pod.host_ports.end());
  }
  [[nodiscard]] std::string State(size_t pod, size_t first_node) const {
    std::string out = absl::StrCat(pod, "/", first_node);
    for (const NodeState& node : states_) {
      for (const auto& [name, amount] : node.free) absl::StrAppend(&out, ",", amount);
      std::vector<int32_t> ports;
      for (const HostPort& port : node.ports) ports.push_back(port.port * 4 + static_cast<int32_t>(port.protocol));
      std::sort(ports.begin(), ports.end());
      for (const int32_t port : ports) absl::StrAppend(&out, ":", port);
      out += ';';
    }
    return out;
  }

  const std::vector<NodeDescription>& nodes_;
  std::vector<const PodTemplate*> pods_;
  std::vector<std::string> keys_;
  std::vector<NodeState> states_;
  std::vector<std::vector<bool>> allowed_;
  std::set<std::string> failed_;
};

// Every set of members with which `gang` may start; of sets with equal templates only one.
std::vector<std::vector<const PodTemplate*>> Choices(const Instance::Gang& gang) {
  std::map<std::string, std::vector<const PodTemplate*>> out;
  const size_t pods = gang.pods.size();
  for (uint64_t mask = 0; mask < uint64_t{1} << pods; ++mask) {
    std::vector<const PodTemplate*> chosen;
    int32_t lowest_in = INT32_MAX;
    int32_t highest_out = INT32_MIN;
    for (size_t i = 0; i < pods; ++i) {
      if ((mask >> i & 1) != 0) {
        chosen.push_back(&gang.pods[i].shape);
        lowest_in = std::min(lowest_in, gang.pods[i].priority);
      } else {
        highest_out = std::max(highest_out, gang.pods[i].priority);
      }
    }
    if (chosen.size() != static_cast<size_t>(gang.minimum)) continue;
    if (!chosen.empty() && highest_out > lowest_in) continue;
    std::vector<std::string> keys;
    for (const PodTemplate* pod : chosen) keys.push_back(pod->Key());
    std::sort(keys.begin(), keys.end());
    std::string key;
    for (const std::string& each : keys) absl::StrAppend(&key, each.size(), ":", each);
    out.emplace(key, std::move(chosen));
  }
  std::vector<std::vector<const PodTemplate*>> sets;
  for (auto& [key, chosen] : out) sets.push_back(std::move(chosen));
  return sets;
}

bool AnyFits(const Instance& instance, size_t gang, const std::vector<const PodTemplate*>& before) {
  if (gang == instance.gangs.size()) return Placing(instance, before).Fits();
  for (const std::vector<const PodTemplate*>& chosen : Choices(instance.gangs[gang])) {
    std::vector<const PodTemplate*> pods = before;
    pods.insert(pods.end(), chosen.begin(), chosen.end());
    if (AnyFits(instance, gang + 1, pods)) return true;
  }
  return false;
}

}  // namespace

bool FitsIdleCluster(const Instance& instance) { return AnyFits(instance, 0, {}); }

std::string Describe(const Instance& instance) {
  std::string out;
  for (const NodeDescription& node : instance.nodes) {
    absl::StrAppend(&out, "node ", node.name, " ", FormatResources(node.allocatable));
    for (const auto& [key, value] : node.labels) absl::StrAppend(&out, " ", key, "=", value);
    for (const Taint& taint : node.taints) absl::StrAppend(&out, " taint ", taint.key);
    out += '\n';
  }
  for (const Instance::Gang& gang : instance.gangs) {
    absl::StrAppend(&out, "gang of ", gang.minimum, " out of");
    for (const Instance::Pod& pod : gang.pods) {
      absl::StrAppend(&out, " [", FormatResources(pod.shape.requests), " priority ", pod.priority);
      for (const auto& [key, value] : pod.shape.node_selector) absl::StrAppend(&out, " ", key, "=", value);
      for (const Toleration& toleration : pod.shape.tolerations) absl::StrAppend(&out, " tolerates ", toleration.key);
      for (const HostPort& port : pod.shape.host_ports) absl::StrAppend(&out, " port ", port.port);
      out += ']';
    }
    out += '\n';
  }
  return out;
}

}  // namespace muster
