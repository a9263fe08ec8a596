// SPEC P-4, P-5: where members may go, given where others of their gang and subgroup are. Gangs are drawn with their
// domains; the nodes that they may use are recomputed from these.
#include "state/reservations/domains.h"

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class DomainsWorld : public RoomsTest {
 public:
  explicit DomainsWorld(uint32_t seed) : random_(seed) {
    for (const char* zone : {"a", "b"}) {
      for (const char* rack : {"x", "y"}) {
        for (int i = 0; i < 2; ++i) PutIn(absl::StrCat(zone, rack, i), zone, absl::StrCat(zone, rack));
      }
    }
    PutIn("bare", "", "");
  }
  void TestBody() override {}

  void Check() {
    DrawGang();
    const Gang& gang = GangAt("g");
    const Plan* plan = plans_.Of(gang);
    const int32_t excluded =
        plan == nullptr || Draw(2) == 0 ? -1 : static_cast<int32_t>(Draw(static_cast<uint32_t>(plan->size())));
    for (int32_t leaf = 0; leaf < (tree_ ? 2 : 1); ++leaf) {
      const Region region = domains_.For(gang, leaf, excluded);
      ASSERT_EQ(region.everywhere(), LabelsOf(leaf).empty());
      for (const auto& [name, labels] : labels_) {
        bool allowed = true;
        for (const auto& [label, subgroup] : LabelsOf(leaf)) {
          const std::vector<std::string> taken = DomainsOf(label, subgroup, excluded);
          allowed = allowed && !labels.at(label).empty() && (taken.empty() || taken.front() == labels.at(label));
        }
        ASSERT_EQ(region.Has(cluster_.FindNode(name)), allowed) << name << ", leaf " << leaf;
      }
    }
    bool satisfied = true;
    for (const auto& [label, subgroup] : LabelsOf(-1)) {
      const std::vector<std::string> taken = DomainsOf(label, subgroup, -1);
      satisfied = satisfied && std::set<std::string>(taken.begin(), taken.end()).size() <= 1;
      for (const auto& [leaf, node] : slots_) {
        const bool under = subgroup <= 0 || subgroup == leaf + 1;
        satisfied = satisfied && (!under || !labels_.at(node).at(label).empty());
      }
    }
    ASSERT_EQ(domains_.AreSatisfiedByPlan(gang), satisfied || plan == nullptr);
    const std::vector<NodeId> homes = MemberNodeByLeaf(gang, ledger_);
    ASSERT_EQ(homes.size(), tree_ ? 2U : 1U);
    for (size_t leaf = 0; leaf < homes.size(); ++leaf) {
      const auto at = homes_.find(static_cast<int32_t>(leaf));
      const bool any = at != homes_.end() && !LabelsOf(-1).empty();
      ASSERT_EQ(homes[leaf] != kNoNode, any) << leaf;
      if (!any) continue;
      const std::string& home = cluster_.node(homes[leaf]).facts.name;
      ASSERT_TRUE(at->second.contains(home));
      ASSERT_TRUE(home != "bare" || at->second.size() == 1) << "a node in the domains comes first";
    }
  }

 private:
  uint32_t Draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  void PutIn(const std::string& name, const std::string& zone, const std::string& rack) {
    NodeDescription node = SmallNode(name, 100);
    labels_[name] = {{"zone", zone}, {"rack", rack}};
    if (!zone.empty()) node.labels = {{"zone", zone}, {"rack", rack}};
    PutNode(node);
  }
  // The gang requires a zone or not. It has no subgroups, or `left` and `right` below `top`, each with a rack or not.
  void DrawGang() {
    GangDeclaration declared;
    declared.min_member = 9;
    gang_zone_ = Draw(2) == 0;
    if (gang_zone_) declared.topology = TopologyRule{.required = "zone"};
    tree_ = Draw(3) != 0;
    if (tree_) {
      declared.min_member.reset();
      declared.subgroups = {{"top", "", 2}, {"left", "top", 3}, {"right", "top", 3}};
      for (int i = 0; i < 3; ++i) {
        racks_.push_back(Draw(2) == 0);
        if (racks_.back()) declared.subgroups[static_cast<size_t>(i)].topology.required = i == 0 ? "zone" : "rack";
      }
    }
    const std::string zone = Draw(2) == 0 ? "a" : "b";
    for (int32_t leaf = 0; leaf < (tree_ ? 2 : 1); ++leaf) {
      const std::string rack = Draw(2) == 0 ? "x" : "y";
      const auto put = [&](const std::string& node, MemberState state) -> const Pod& {
        PodDescription facts = Facts(absl::StrCat("g-", pods_++), 1, "g", 1);
        facts.gang.declaration.Mutable() = declared;
        facts.gang.subgroup = !tree_ ? "" : leaf == 0 ? "left" : "right";
        facts.node_name = node;
        return Put(facts, /*submitted=*/false, state);
      };
      put("", MemberState::kPending);
      for (uint32_t left = Draw(3); left > 0; --left) {
        const std::string node = Draw(3) == 0 ? "bare" : absl::StrCat(zone, rack, Draw(2));
        const Pod& pod = put(node, Draw(2) == 0 ? MemberState::kRunning : MemberState::kBound);
        ledger_.ChargePod(pod.id, cluster_.FindNode(node), pod.cls, ChargeKind::kUsed);
        homes_[leaf].insert(node);
      }
    }
    if (Draw(3) == 0) return;
    // A plan whose slots are mostly where the members are.
    const Gang& gang = GangAt("g");
    const ClassId cls = (*gang.in(MemberState::kPending).begin())->cls;
    Statement statement(&cluster_);
    std::vector<Candidates> candidates;
    for (int32_t leaf = 0; leaf < (tree_ ? 2 : 1); ++leaf) {
      for (uint32_t left = 1 + Draw(2); left > 0; --left) {
        const std::string node = Draw(4) == 0 ? "bare" : absl::StrCat(zone, Draw(4) == 0 ? "y" : "x", Draw(2));
        statement.BeginPart(leaf);
        statement.Allocate(cluster_.FindNode(node), cls, 1);
        slots_.emplace_back(leaf, node);
        candidates.push_back({cls, 0, 1, leaf, false});
      }
    }
    plans_.Make(gang, 1, kT0, statement.Commit(), candidates, 0, /*uses_holds=*/true);
    slots_.clear();
    for (const Slot& slot : plans_.Of(gang)->slots) slots_.emplace_back(slot.leaf, cluster_.node(slot.node).facts.name);
  }
  // The labels that members of the leaf need, with the subgroup that needs each: -1 the gang, 0 `top`, 1 `left`, 2
  // `right`. Leaf -1: of all leaves.
  [[nodiscard]] std::vector<std::pair<std::string, int32_t>> LabelsOf(int32_t leaf) const {
    std::vector<std::pair<std::string, int32_t>> out;
    if (gang_zone_) out.emplace_back("zone", -1);
    for (int32_t i = 0; i < static_cast<int32_t>(racks_.size()); ++i) {
      if (racks_[static_cast<size_t>(i)] && (i == 0 || leaf < 0 || leaf + 1 == i)) {
        out.emplace_back(i == 0 ? "zone" : "rack", i);
      }
    }
    return out;
  }
  // The domains of the label in which the subgroup runs, or else has slots, in order of the slots.
  [[nodiscard]] std::vector<std::string> DomainsOf(const std::string& label, int32_t subgroup, int32_t excluded) const {
    const auto under = [&](int32_t leaf) { return subgroup <= 0 || subgroup == leaf + 1; };
    std::vector<std::string> out;
    for (const auto& [leaf, nodes] : homes_) {
      for (const std::string& node : nodes) {
        if (under(leaf) && !labels_.at(node).at(label).empty()) out.push_back(labels_.at(node).at(label));
      }
    }
    for (int32_t i = 0; i < static_cast<int32_t>(slots_.size()); ++i) {
      const auto& [leaf, node] = slots_[static_cast<size_t>(i)];
      const std::string& domain = labels_.at(node).at(label);
      if (i != excluded && under(leaf) && !domain.empty()) out.push_back(domain);
    }
    return out;
  }

  std::mt19937 random_;
  std::map<std::string, std::map<std::string, std::string>> labels_;  // of each node
  bool gang_zone_ = false;
  bool tree_ = false;
  std::vector<bool> racks_;                             // which subgroups require one domain
  std::map<int32_t, std::set<std::string>> homes_;      // nodes of running members, by leaf
  std::vector<std::pair<int32_t, std::string>> slots_;  // leaf and node
  int pods_ = 0;
};

TEST(DomainsTest, RandomGangs_MembersStayTogether) {
  for (uint32_t seed = 1; seed <= 2'000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    DomainsWorld(seed).Check();
  }
}

}  // namespace
}  // namespace muster
