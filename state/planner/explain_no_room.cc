#include "state/planner/explain_no_room.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "state/base/resources.h"
#include "state/cluster/cluster.h"
#include "state/cluster/topology.h"
#include "state/model/facts.h"
#include "state/model/pod_template.h"

namespace muster {
namespace {

using Kind = MainObstacle::Kind;

// A name within this edit distance is treated as a typing error.
constexpr size_t kMaxTypoDistance = 2;

// The Levenshtein distance: how many letters must be inserted, deleted or changed.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

// The most similar of the names, the first of equals; empty: none is similar.
std::string MostSimilar(absl::string_view name, const absl::btree_set<std::string>& names) {
  std::pair<size_t, std::string> best(kMaxTypoDistance + 1, "");
  for (const std::string& each : names) best = std::min(best, {Distance(name, each), each});
  return best.second;
}

// The resource of some node with the most similar name; empty: there is none.
std::string SimilarResource(const Cluster& cluster, absl::string_view name) {
  absl::btree_set<std::string> offered;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (!node.present) continue;
    for (const auto& [resource, amount] : cluster.names().ToList(node.allocatable)) offered.insert(resource);
  }
  return MostSimilar(name, offered);
}

// Why no node could ever hold a pod of the class, as far as this resource goes: no node offers it (with the name that
// was probably intended), or no node has as much. Empty: some node could.
Explanation ExplainImpossible(const Cluster& cluster, ClassId cls, ResourceId resource) {
  const int64_t needed = cluster.pod_class(cls).request.Get(resource);
  int64_t most = 0;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    const Node& node = cluster.node(id);
    if (node.present) most = std::max(most, node.allocatable.Get(resource));
  }
  if (needed <= most) return {};
  const std::string& name = cluster.names().Name(resource);
  Explanation out;
  out.obstacle = {most > 0 ? Kind::kTooLarge : Kind::kNotOffered, name};
  if (most > 0) {
    out.text = absl::StrCat("a pod needs ", FormatResources({{name, needed}}), ", no node has more than ",
                            FormatResources({{name, most}}));
    return out;
  }
  const std::string similar = SimilarResource(cluster, name);
  out.text =
      absl::StrCat("no node offers ", name, similar.empty() ? "" : absl::StrCat("; did you mean ", similar, "?"));
  return out;
}

// The nodes that an obstacle excludes; of taints and labels, also how many nodes each of them excludes.
struct Excluded {
  int32_t nodes = 0;
  absl::btree_map<absl::string_view, int32_t> names;
};

// The names, the most frequent first: "dedicated on 3, gpu on 1". Of nodes, each is counted once.
std::string NamesOf(const Excluded& excluded, bool of_nodes) {
  constexpr size_t kMost = 3;
  std::vector<std::pair<int32_t, absl::string_view>> order;
  for (const auto& [name, count] : excluded.names) order.emplace_back(-count, name);
  std::sort(order.begin(), order.end());
  std::string out;
  for (size_t i = 0; i < std::min(order.size(), kMost); ++i) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", order[i].second);
    if (!of_nodes && -order[i].first < excluded.nodes) absl::StrAppend(&out, " on ", -order[i].first);
  }
  if (order.size() > kMost) absl::StrAppend(&out, ", ...");
  return out;
}

// The most frequent of the names; empty: there is none.
std::string MostFrequent(const Excluded& excluded) {
  const auto most = std::max_element(excluded.names.begin(), excluded.names.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == excluded.names.end() ? "" : std::string(most->first);
}

// The taint, or the label that the pod selects, because of which the obstacle excludes the node, or the marked node;
// empty: none.
absl::string_view NameOf(Obstacle obstacle, const NodeDescription& node, const PodTemplate& shape) {
  if (obstacle == Obstacle::kUnschedulable) return node.name;
  if (obstacle == Obstacle::kTaint) return FirstUntolerated(node.taints, shape.tolerations)->key;
  if (obstacle != Obstacle::kSelector) return "";
  for (const auto& [key, value] : shape.node_selector) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return key;
  }
  return "";
}

// Whether pods of the class may use the node once temporary obstacles have ended: learned refusals, a cordon, and the
// taints that Kubernetes sets on nodes that are in trouble or not ready yet.
bool MayEverTake(const Node& node, const PodClass& cls) {
  std::vector<Taint> lasting;
  for (const Taint& taint : node.facts.taints) {
    const bool temporary = absl::StartsWith(taint.key, "node.kubernetes.io/") ||
                           absl::StartsWith(taint.key, "node.cloudprovider.kubernetes.io/");
    if (!temporary) lasting.push_back(taint);
  }
  return FirstUntolerated(lasting, cls.shape->tolerations) == nullptr &&
         PodSideObstacle(node.facts, cls.shape) == Obstacle::kNone;
}

// RoomWhenEmpty for a node that no lasting constraint excludes.
int64_t EmptyRoom(const Cluster& cluster, NodeId node, ClassId cls, int64_t limit) {
  const PodClass& wanted = cluster.pod_class(cls);
  const bool one =
      !wanted.shape->host_ports.empty() || (wanted.has_pod_affinity && cluster.pod_affinity().AtMostOneOn(node, cls));
  return wanted.request.CountFitting(cluster.node(node).allocatable, one ? std::min<int64_t>(limit, 1) : limit);
}

// What keeps pods of one class off the nodes, collected node by node.
class Survey {
 public:
  Survey(const Cluster& cluster, ClassId cls, int32_t together)
      : cluster_(cluster), cls_(cls), wanted_(cluster.pod_class(cls)), together_(together) {}

  // REQUIRES: the node is present.
  void Add(NodeId id) {
    ++nodes_;
    const Node& node = cluster_.node(id);
    const Obstacle obstacle = cluster_.FindObstacle(id, cls_);
    if (when_empty_ < together_ && (obstacle == Obstacle::kNone || MayEverTake(node, wanted_))) {
      when_empty_ += EmptyRoom(cluster_, id, cls_, together_);
    }
    if (obstacle != Obstacle::kNone) return AddExcluded(node, obstacle);
    if (const ResourceId first = wanted_.request.FirstInsufficient(node.free); first >= 0) {
      Lacking& of = lacking_[first];
      ++of.nodes;
      of.possible = of.possible || wanted_.request.Get(first) <= node.allocatable.Get(first);  // short cut
    } else if (const HostPort* port = cluster_.FindTakenPort(id, cls_); port != nullptr) {
      const std::string name = ToString(*port);
      Count(absl::StrCat("host port taken (", name, ")"), 1, kOnUsableNodes, {Kind::kHostPort, name});
    } else if (wanted_.has_pod_affinity) {
      const std::string rule = cluster_.pod_affinity().Obstacle(id, cls_);
      if (!rule.empty()) Count(rule, 1, kOnUsableNodes, {Kind::kPodAffinity, rule});
    }
  }

  // REQUIRES: called once.
  [[nodiscard]] Explanation Explain() {
    for (size_t i = 0; i < kObstacles; ++i) CountExcluded(static_cast<Obstacle>(i));
    const std::string never = CountLacking();
    std::vector<std::pair<int32_t, std::string>> order;
    for (const auto& [text, cause] : causes_) order.emplace_back(-cause.nodes, text);
    std::sort(order.begin(), order.end());
    Explanation out;
    for (const auto& [count, text] : order) {
      absl::StrAppend(&out.text, out.text.empty() ? "" : "; ", -count, count == -1 ? " node: " : " nodes: ", text);
    }
    if (nodes_ == 0) out.text = "there are no nodes";
    absl::StrAppend(&out.text, never);
    if (TooSmall()) {
      absl::StrAppend(&out.text, "; can never fit: ", together_, " are missing, its nodes hold ", when_empty_,
                      " when empty");
    }
    out.obstacle = FindMain();
    return out;
  }

 private:
  // A resource that is insufficient on some nodes.
  struct Lacking {
    int32_t nodes = 0;
    bool possible = false;  // short cut: one of them has enough of it when it is empty
  };
  // Which cause decides the main obstacle, before their numbers of nodes are compared.
  enum Rank : uint8_t { kPermanent, kOnUsableNodes, kTemporary, kExcluding, kElsewhere, kUseless };
  struct Cause {
    int32_t nodes = 0;
    Rank rank = kUseless;
    MainObstacle obstacle;
  };

  void Count(const std::string& text, int32_t nodes, Rank rank, MainObstacle obstacle) {
    Cause& cause = causes_[text];
    cause.nodes += nodes;
    cause.rank = rank;
    cause.obstacle = std::move(obstacle);
  }
  void AddExcluded(const Node& node, Obstacle obstacle) {
    Excluded& of = excluded_[static_cast<size_t>(obstacle)];
    ++of.nodes;
    const absl::string_view name = NameOf(obstacle, node.facts, wanted_.shape);
    if (!name.empty()) ++of.names[name];
    if (obstacle != Obstacle::kUnschedulable || !MayEverTake(node, wanted_)) return;
    ++marked_.nodes;
    ++marked_.names[node.facts.name];
  }
  void CountExcluded(Obstacle obstacle) {
    const Excluded& of = excluded_[static_cast<size_t>(obstacle)];
    if (of.nodes == 0) return;
    const std::string names = NamesOf(of, /*of_nodes=*/obstacle == Obstacle::kUnschedulable);
    const std::string text =
        absl::StrCat(ObstaclePhrase(obstacle), names.empty() ? "" : absl::StrCat(" (", names, ")"));
    const auto count = [&](Rank rank, Kind kind, std::string subject) {
      Count(text, of.nodes, rank, {kind, std::move(subject)});
    };
    switch (obstacle) {
      case Obstacle::kUnschedulable:
        return count(marked_.nodes > 0 ? kTemporary : kUseless, Kind::kUnschedulable, NamesOf(marked_, true));
      case Obstacle::kStale:
        return count(kPermanent, Kind::kStaleNodes, "");
      case Obstacle::kTaint:
        return count(kExcluding, Kind::kTaint, MostFrequent(of));
      case Obstacle::kSelector:
        return count(kExcluding, Kind::kNodeSelector, MostFrequent(of));
      case Obstacle::kAffinity:
        return count(kExcluding, Kind::kNodeAffinity, "");
      case Obstacle::kLearned:
        return count(kExcluding, Kind::kLearned, "");
      case Obstacle::kNone:
      case Obstacle::kAbsent:
        return;
    }
  }
  // Returns what can never fit: "; no node offers example.com/fpga".
  std::string CountLacking() {
    std::string out;
    for (const auto& [id, of] : lacking_) {
      const std::string& name = cluster_.names().Name(id);
      const Explanation never = of.possible ? Explanation() : ExplainImpossible(cluster_, cls_, id);  // short cut
      const Rank rank = of.possible ? kOnUsableNodes : never.empty() ? kElsewhere : kPermanent;
      Count(absl::StrCat("insufficient ", name), of.nodes, rank,
            never.empty() ? MainObstacle{Kind::kCapacity, name} : never.obstacle);
      if (!never.empty()) absl::StrAppend(&out, "; ", never.text);
    }
    return out;
  }
  [[nodiscard]] bool TooSmall() const { return when_empty_ > 0 && when_empty_ < together_; }
  [[nodiscard]] MainObstacle FindMain() const {
    const Cause* first = nullptr;
    const auto key = [](const Cause& cause) { return std::tuple(cause.rank, -cause.nodes, cause.obstacle.kind); };
    for (const auto& [text, cause] : causes_) {
      if (first == nullptr || key(cause) < key(*first)) first = &cause;
    }
    const bool permanent = first != nullptr && first->rank == kPermanent;
    if (TooSmall() && !permanent) return {Kind::kTooSmall, ""};
    return first == nullptr ? MainObstacle() : first->obstacle;
  }

  const Cluster& cluster_;
  const ClassId cls_;
  const PodClass& wanted_;
  const int32_t together_;
  int32_t nodes_ = 0;
  int64_t when_empty_ = 0;                     // pods that fit on empty nodes, counted up to `together_`
  std::array<Excluded, kObstacles> excluded_;  // by obstacle
  Excluded marked_;                            // nodes that pods could use if they were not marked unschedulable
  absl::btree_map<ResourceId, Lacking> lacking_;
  absl::btree_map<std::string, Cause> causes_;  // by text
};

}  // namespace

std::string HintFor(const MainObstacle& obstacle, bool below_minimum) {
  const std::string& subject = obstacle.subject;
  const absl::string_view lower = below_minimum ? ", or lower the minimum" : "";
  switch (obstacle.kind) {
    case Kind::kCapacity:
      return absl::StrCat("free or add capacity that its pods can use", lower);
    case Kind::kDomains:
      return absl::StrCat("free or add capacity in ", subject, lower);
    case Kind::kNotOffered:
      return absl::StrCat("correct the name of resource ", subject, " in its pods, or add nodes that offer it");
    case Kind::kTooLarge:
      return absl::StrCat("lower the request of a pod for ", subject, ", or add larger nodes");
    case Kind::kHostPort:
      return absl::StrCat("free host port ", subject, ", let its pods use another one, or add nodes");
    case Kind::kPodAffinity:
      return subject.empty()
                 ? "change the rules of its pods about each other, or add nodes that satisfy them"
                 : absl::StrCat("change the rule about other pods, ", subject, ", or add nodes that satisfy it");
    case Kind::kTooSmall:
      return absl::StrCat("add nodes that its pods can use", lower, ": released capacity is not enough");
    case Kind::kDomainsTooSmall:
      return absl::StrCat("require a wider domain than ", subject, ", add nodes to one", lower,
                          ": released capacity is not enough");
    case Kind::kStaleNodes:
      return "announce the nodes again: their source has sent nothing since musterd started";
    case Kind::kUnschedulable:
      return subject.empty() ? "add nodes that its pods can use"
                             : absl::StrCat("make nodes schedulable again (kubectl uncordon): ", subject);
    case Kind::kTaint:
      return absl::StrCat("tolerate taint ", subject, " in its pods, or remove the taint from nodes");
    case Kind::kNodeSelector:
      return absl::StrCat("give nodes the value of label ", subject,
                          " that the node selector of its pods requires, or correct the node selector");
    case Kind::kNodeAffinity:
      return "give nodes the labels that the node affinity of its pods requires, or correct the node affinity";
    case Kind::kLearned:
      return "see in kube-scheduler's Events of its pods which other filter refuses the nodes";
    case Kind::kNoLabel:
      return absl::StrCat("give nodes label ", subject, ", or correct the label in the topology rule");
    case Kind::kMemberLacksLabel:
      return absl::StrCat("give the node of its members label ", subject, ", or drop the topology rule");
  }
  return "";
}

Explanation ExplainNoRoom(const Cluster& cluster, ClassId cls, int32_t together, const Region* region) {
  Survey survey(cluster, cls, together);
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    if (cluster.node(id).present && (region == nullptr || region->Has(id))) survey.Add(id);
  }
  return survey.Explain();
}

int64_t RoomWhenEmpty(const Cluster& cluster, NodeId node, ClassId cls, int64_t limit) {
  const bool allowed =
      cluster.FindObstacle(node, cls) == Obstacle::kNone || MayEverTake(cluster.node(node), cluster.pod_class(cls));
  return allowed ? EmptyRoom(cluster, node, cls, limit) : 0;
}

std::string SimilarLabel(const Cluster& cluster, absl::string_view key) {
  absl::btree_set<std::string> keys;
  for (NodeId id = 0; id < cluster.node_limit(); ++id) {
    if (!cluster.node(id).present) continue;
    for (const auto& [label, value] : cluster.node(id).facts.labels) keys.insert(label);
  }
  return MostSimilar(key, keys);
}

}  // namespace muster
