#include "tests/simulation/instances.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kMaxPods = 9;

class Maker {
 public:
  Maker(uint64_t seed, int size) : random_(seed), size_(size) {
    const int templates = 2 + Roll(3);
    for (int i = 0; i < templates; ++i) {
      PodTemplate& shape = templates_.emplace_back();
      shape.requests = {{"cpu", 500 * (1 + Roll(10))}, {"memory", 1 + Roll(4)}};
    }
  }

  RandomInstance Make() {
    const int nodes = size_ * (2 + Roll(4));
    for (int i = 0; i < nodes; ++i) MakeNode(i, (kMaxPods * size_ - static_cast<int>(pods_.size())) / (nodes - i));
    SpreadSlack();
    // Not std::shuffle: the same seed gives the same instance with every library.
    for (size_t i = pods_.size(); i > 1; --i)
      std::swap(pods_[i - 1], pods_[static_cast<size_t>(Roll(static_cast<int>(i)))]);
    DealPods();
    out_.changed = Roll(3) == 0;
    if (out_.changed) ChangeSomePod();
    for (Instance::Gang& gang : out_.instance.gangs) {
      std::stable_sort(gang.pods.begin(), gang.pods.end(), [](const Instance::Pod& a, const Instance::Pod& b) {
        return a.priority > b.priority;  // the order in which candidates are placed
      });
    }
    return std::move(out_);
  }

 private:
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
  bool Chance(int percent) { return Roll(100) < percent; }

  void MakeNode(int number, int most_pods) {
    NodeDescription node;
    node.name = absl::StrCat("n", number);
    node.labels = {{"zone", std::string(1, static_cast<char>('a' + Roll(2)))}};
    if (Chance(20)) node.labels["disk"] = "ssd";
    if (Chance(10)) node.taints.push_back({"gpu", "", TaintEffect::kNoSchedule});
    // Often a node of the same size as the previous one, with other labels.
    if (number == 0 || Chance(65)) {
      const int count = std::max(1, std::min(most_pods, 1 + Roll(4)));
      made_of_.clear();
      for (int i = 0; i < count; ++i) made_of_.push_back(Roll(static_cast<int>(templates_.size())));
      more_memory_ = Roll(3) == 0 ? 1 : 8;
      more_pods_ = Roll(3);
    }
    bool port_taken = false;
    for (const int made_of : made_of_) {
      PodTemplate shape = templates_[static_cast<size_t>(made_of)];
      if (Chance(20)) shape.node_selector["zone"] = node.labels["zone"];
      if (node.labels.contains("disk") && Chance(30)) shape.node_selector["disk"] = "ssd";
      if (!node.taints.empty() || Chance(10)) shape.tolerations.push_back({"gpu", true, "", {}});
      if (!port_taken && Chance(15)) {
        shape.host_ports.push_back({Protocol::kTcp, 80, "0.0.0.0"});
        port_taken = true;
      }
      node.allocatable["cpu"] += shape.requests["cpu"];
      node.allocatable["memory"] += shape.requests["memory"];
      pods_.push_back({shape, 0});
    }
    node.allocatable["memory"] += more_memory_;
    node.allocatable["pods"] = static_cast<int>(made_of_.size()) + more_pods_;
    out_.asked_cpu += node.allocatable["cpu"];
    out_.instance.nodes.push_back(node);
  }

  // At most a tenth of the request, in small parts, on any nodes.
  void SpreadSlack() {
    int64_t slack = out_.asked_cpu * Roll(11) / 100;
    out_.offered_cpu = out_.asked_cpu + slack;
    std::vector<NodeDescription>& nodes = out_.instance.nodes;
    while (slack > 0) {
      const int64_t part = std::min<int64_t>(slack, 250);
      nodes[static_cast<size_t>(Roll(static_cast<int>(nodes.size())))].allocatable["cpu"] += part;
      slack -= part;
    }
  }

  void DealPods() {
    const size_t gangs = std::min<size_t>(pods_.size(), static_cast<size_t>(1 + Roll(3)));
    out_.instance.gangs.resize(gangs);
    const bool mixed = Chance(40);  // priorities inside the gangs
    for (size_t i = 0; i < pods_.size(); ++i) {
      Instance::Gang& gang = out_.instance.gangs[i < gangs ? i : static_cast<size_t>(Roll(static_cast<int>(gangs)))];
      if (mixed) pods_[i].priority = 1 + Roll(2);
      gang.pods.push_back(pods_[i]);
      ++gang.minimum;
    }
    for (Instance::Gang& gang : out_.instance.gangs) {
      if (!Chance(40)) continue;
      int32_t lowest = gang.pods[0].priority;
      for (const Instance::Pod& pod : gang.pods) lowest = std::min(lowest, pod.priority);
      for (int extra = 1 + Roll(2); extra > 0; --extra) {
        Instance::Pod pod;
        pod.shape = templates_[static_cast<size_t>(Roll(static_cast<int>(templates_.size())))];
        pod.priority = lowest - (Chance(20) ? 1 : 0);
        gang.pods.insert(gang.pods.begin() + Roll(static_cast<int>(gang.pods.size()) + 1), pod);
      }
    }
  }

  void ChangeSomePod() {
    Instance::Gang& gang = out_.instance.gangs[static_cast<size_t>(Roll(static_cast<int>(out_.instance.gangs.size())))];
    PodTemplate& shape = gang.pods[static_cast<size_t>(Roll(static_cast<int>(gang.pods.size())))].shape;
    if (Chance(60)) {
      shape.requests["cpu"] += 250 * (1 + Roll(4));
    } else {
      shape.node_selector["zone"] = std::string(1, static_cast<char>('a' + Roll(2)));
    }
  }

  std::mt19937_64 random_;
  const int size_;
  std::vector<PodTemplate> templates_;
  std::vector<int> made_of_;  // the last node: templates of its pods
  int more_memory_ = 0;
  int more_pods_ = 0;
  std::vector<Instance::Pod> pods_;
  RandomInstance out_;
};

}  // namespace

RandomInstance MakeInstance(uint64_t seed, int size) { return Maker(seed, size).Make(); }

}  // namespace muster
