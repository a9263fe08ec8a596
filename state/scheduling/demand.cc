#include "state/scheduling/demand.h"

#include "absl/strings/str_cat.h"
#include "state/reservations/domains.h"

namespace muster {
namespace {

class DemandBuilder {
 public:
  DemandBuilder(const Claim& claim, const std::vector<Candidates>& runs, const Cluster& cluster,
                std::vector<NodeId> homes)
      : gang_(claim), runs_(runs), cluster_(cluster), homes_(std::move(homes)) {}

  // Adds the remaining demand of the subgroups below `parent`; -1: the claim itself.
  void AddChildren(int32_t parent, int32_t minimum, TreeDemand* out) const {
    const std::vector<Subgroup>& nodes = gang_.rules.tree.nodes;
    out->needed = minimum;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].parent != parent) continue;
      TreeDemand child = BuildSubgroup(static_cast<int32_t>(i));
      if (child.home != kNoNode && (out->home == kNoNode || !MeetsRequiredDomains(out->home))) out->home = child.home;
      if (child.needed <= 0) {
        --out->needed;
      } else {
        out->children.push_back(std::move(child));
      }
    }
  }

 private:
  [[nodiscard]] bool MeetsRequiredDomains(NodeId node) const { return HasRequiredDomains(cluster_.node(node), gang_); }
  [[nodiscard]] TreeDemand BuildSubgroup(int32_t node) const {
    const Subgroup& of = gang_.rules.tree.nodes[static_cast<size_t>(node)];
    TreeDemand out;
    out.name = absl::StrCat("subgroup ", of.name);
    out.topology = of.topology;
    if (of.leaf < 0) {
      AddChildren(node, of.minimum, &out);
      return out;
    }
    out.home = homes_[static_cast<size_t>(of.leaf)];
    out.needed = gang_.quorum().QuorumOf(of).Missing(gang_.durable.satisfied);
    out.part = of.leaf;
    for (const Candidates& run : runs_) {
      if (run.leaf == of.leaf) out.candidates.push_back(run);
    }
    return out;
  }

  const Claim& gang_;
  const std::vector<Candidates>& runs_;
  const Cluster& cluster_;
  const std::vector<NodeId> homes_;
};

}  // namespace

TreeDemand DemandOf(const Claim& claim, const std::string& name, int32_t missing, const std::vector<Candidates>& runs,
                    const Ledger& ledger) {
  TreeDemand out;
  out.name = name;
  out.topology = claim.rules.topology;
  std::vector<NodeId> homes = MemberNodeByLeaf(claim, ledger);
  if (!claim.rules.tree.empty()) {
    DemandBuilder(claim, runs, ledger.cluster(), std::move(homes)).AddChildren(-1, claim.rules.tree.minimum, &out);
    return out;
  }
  out.home = homes.front();
  out.needed = missing;
  out.candidates = runs;
  return out;
}

void RequireSharedDomain(const std::string& label, TreeDemand* demand) {
  TopologyRule& topology = demand->topology;
  if (label.empty() || topology.required == label) return;
  if (topology.required.empty()) {
    topology.required = label;
    return;
  }
  TreeDemand inner = std::move(*demand);
  *demand = TreeDemand();
  demand->name = inner.name;
  demand->home = inner.home;
  demand->needed = 1;
  demand->topology.required = std::exchange(inner.topology.required, label);
  demand->topology.preferred = std::exchange(inner.topology.preferred, "");
  demand->children.push_back(std::move(inner));
}

void NumberParts(size_t claim, TreeDemand* demand, std::vector<std::pair<size_t, int32_t>>* parts) {
  for (TreeDemand& child : demand->children) NumberParts(claim, &child, parts);
  if (!demand->children.empty()) return;
  parts->emplace_back(claim, demand->part);
  demand->part = static_cast<int32_t>(parts->size()) - 1;
}

void AppendTopologyKey(const Claim& claim, const Cluster& cluster, const Ledger& ledger, std::string* out) {
  absl::StrAppend(out, "/", ToString(claim.rules.topology));
  if (!claim.rules.tree.empty()) absl::StrAppend(out, "/", claim.rules.tree.minimum);
  for (const Subgroup& node : claim.rules.tree.nodes) {
    absl::StrAppend(out, "(", node.parent, ",", node.minimum, ",", ToString(node.topology));
    if (node.leaf >= 0) absl::StrAppend(out, ",", claim.quorum().QuorumOf(node).Missing(claim.durable.satisfied));
    absl::StrAppend(out, ")");
  }
  for (const NodeId home : MemberNodeByLeaf(claim, ledger)) {
    if (home != kNoNode) absl::StrAppend(out, "@", cluster.node(home).facts.name);
  }
}

}  // namespace muster
