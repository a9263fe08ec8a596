#include "state/reservations/domains.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/cluster/ledger.h"
#include "state/gangs/types.h"
#include "state/reservations/plans.h"

namespace muster {
namespace {

constexpr int32_t kWholeGang = -1;  // used as the index of a subgroup

// The leaf is in the subgroup. REQUIRES: the claim has subgroups, or `subgroup` is kWholeGang.
bool IsUnder(const SubgroupTree& tree, int32_t leaf, int32_t subgroup) {
  if (subgroup == kWholeGang) return true;
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].leaf != leaf) continue;
    auto at = static_cast<int32_t>(i);
    while (at > subgroup) at = tree.nodes[static_cast<size_t>(at)].parent;  // parents come before their children
    return at == subgroup;
  }
  return false;
}

}  // namespace

bool HasRequiredDomains(const Node& node, const Claim& claim) {
  const auto has_label = [&](const std::string& key) { return key.empty() || node.facts.labels.contains(key); };
  return node.present && has_label(claim.rules.topology.required) &&
         absl::c_all_of(claim.rules.tree.nodes, [&](const auto& each) { return has_label(each.topology.required); });
}

std::vector<NodeId> MemberNodeByLeaf(const Claim& claim, const Ledger& ledger) {
  std::vector<NodeId> homes(static_cast<size_t>(std::max(1, claim.rules.tree.leaves)), kNoNode);
  if (!claim.rules.domains) return homes;
  for (const MemberState state :
       {MemberState::kWaiting, MemberState::kCommitted, MemberState::kBound, MemberState::kRunning}) {
    for (const Pod* pod : claim.in(state)) {
      const Ledger::PodCharge& charge = ledger.ChargeOf(pod->id);
      if (pod->leaf < 0 || charge.node == kNoNode || charge.kind != ChargeKind::kUsed) continue;
      NodeId& home = homes[static_cast<size_t>(pod->leaf)];
      const Cluster& cluster = ledger.cluster();
      if (home == kNoNode ||
          (!HasRequiredDomains(cluster.node(home), claim) && HasRequiredDomains(cluster.node(charge.node), claim))) {
        home = charge.node;
      }
    }
  }
  return homes;
}

std::vector<Domains::Place> Domains::OccupiedPlaces(const Claim& claim, int32_t excluded_slot) const {
  std::vector<Place> out;
  const std::vector<NodeId> homes = MemberNodeByLeaf(claim, *ledger_);
  for (size_t leaf = 0; leaf < homes.size(); ++leaf) {
    if (homes[leaf] != kNoNode) out.push_back({static_cast<int32_t>(leaf), homes[leaf]});
  }
  const Plan* plan = plans_->Of(claim);
  for (int32_t i = 0; plan != nullptr && i < plan->size(); ++i) {
    const Slot& slot = plan->slots[static_cast<size_t>(i)];
    if (i != excluded_slot && slot.state != SlotState::kCommitted) out.push_back({slot.leaf, slot.node});
  }
  return out;
}

void Domains::ForEachRequiredDomain(const Claim& claim, int32_t leaf, const std::vector<Place>& places,
                                    Visit visit) const {
  const SubgroupTree& tree = claim.rules.tree;
  const auto visit_label = [&](int32_t subgroup, const std::string& key) {
    if (key.empty() || (leaf >= 0 && !IsUnder(tree, leaf, subgroup))) return;
    const Topology::Level& level = topology_->At(key);
    const std::vector<DomainId>& domain_of = level.domain_of;
    // A removed node is in no domain: the next place determines the domain.
    const auto first = std::find_if(places.begin(), places.end(), [&](const Place& place) {
      return IsUnder(tree, place.leaf, subgroup) && domain_of[static_cast<size_t>(place.node)] != kNoDomain;
    });
    visit(subgroup, level, first == places.end() ? kNoDomain : domain_of[static_cast<size_t>(first->node)]);
  };
  visit_label(kWholeGang, claim.rules.topology.required);
  for (size_t i = 0; i < tree.nodes.size(); ++i) visit_label(static_cast<int32_t>(i), tree.nodes[i].topology.required);
}

Region Domains::For(const Claim& claim, int32_t leaf, int32_t excluded_slot) const {
  Region region;
  if (!claim.rules.domains) return region;
  ForEachRequiredDomain(claim, leaf, OccupiedPlaces(claim, excluded_slot),
                        [&](int32_t /*subgroup*/, const Topology::Level& level, DomainId domain) {
                          region = region.Inside(&level.domain_of, domain);
                        });
  return region;
}

std::string Domains::Describe(const Claim& claim, int32_t leaf) const {
  std::vector<std::string> names;
  if (!claim.rules.domains) return "";
  ForEachRequiredDomain(
      claim, leaf, OccupiedPlaces(claim, -1), [&](int32_t /*subgroup*/, const Topology::Level& level, DomainId domain) {
        names.push_back(domain == kNoDomain
                            ? absl::StrCat("a domain of ", level.key)
                            : absl::StrCat("domain ", level.names[static_cast<size_t>(domain)], " of ", level.key));
      });
  return absl::StrJoin(names, ", ");
}

bool Domains::AreSatisfiedByPlan(const Claim& claim) const {
  const Plan* plan = plans_->Of(claim);
  if (!claim.rules.domains || plan == nullptr) return true;
  bool satisfied = true;
  ForEachRequiredDomain(claim, -1, OccupiedPlaces(claim, -1),
                        [&](int32_t subgroup, const Topology::Level& level, DomainId domain) {
                          for (const Slot& slot : plan->slots) {
                            if (slot.state == SlotState::kCommitted || !IsUnder(claim.rules.tree, slot.leaf, subgroup))
                              continue;
                            const DomainId at = level.domain_of[static_cast<size_t>(slot.node)];
                            satisfied = satisfied && at != kNoDomain && (domain == kNoDomain || at == domain);
                          }
                        });
  return satisfied;
}

Explanation ExplainNoNode(const Pod& pod, const Cluster& cluster, const Domains& domains) {
  const std::string only = pod.gang == nullptr ? "" : domains.Describe(*pod.gang, pod.leaf);
  if (only.empty()) return ExplainNoRoom(cluster, pod.cls);
  const Region region = domains.For(*pod.gang, pod.leaf);
  Explanation why = ExplainNoRoom(cluster, pod.cls, /*together=*/0, &region);
  why.text = absl::StrCat("it may use only ", only, ": ", why.text);
  if (why.obstacle.kind == MainObstacle::Kind::kCapacity) why.obstacle = {MainObstacle::Kind::kDomains, only};
  return why;
}

}  // namespace muster
