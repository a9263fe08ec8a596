// SPEC Q-4, P-10: the placement of a gang with more members than it needs stays within its queue if any of them do, and
// minResources counts what is free in the cluster and what the members have already.
#include "state/scheduling/placer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class PlacerTest : public RoomsTest {
 protected:
  void SetLimit(int64_t cpu) {
    QueueSpec queue;
    queue.name = kDefaultQueue;
    queue.limit = {{"cpu", cpu}};
    QueueRules rules;
    rules.queues = {queue};
    queues_.Set(rules);
  }
};

// A gang of pods that all differ in what they request, of two priorities. Members of higher priority are placed first
// (D-11); among equals, its queue may need the cheapest.
TEST_F(PlacerTest, SurplusMembers_PlacedIfCheapestFitQueue) {
  std::mt19937 random;
  AddNode("n", 1'000);
  int started = 0;
  int refused = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const std::string name = absl::StrCat("g", trial);
    const auto pods = static_cast<int32_t>(2 + random() % 7);
    const auto needed = static_cast<int32_t>(1 + random() % static_cast<uint32_t>(pods));
    std::vector<std::pair<int32_t, int64_t>> members;  // the priority, negative; cpus
    for (int32_t i = 0; i < pods; ++i) {
      PodDescription facts =
          Facts(absl::StrCat(name, "-", i), 1 + i * 3 + static_cast<int64_t>(random() % 3), name, needed);
      facts.priority = trial % 2 == 0 ? 0 : static_cast<int32_t>(random() % 2);
      members.emplace_back(-facts.priority, facts.shape->requests.at("cpu"));
      Put(facts);
    }
    std::sort(members.begin(), members.end());
    int64_t cheapest = 0;
    for (int32_t i = 0; i < needed; ++i) cheapest += members[static_cast<size_t>(i)].second;
    const auto limit = std::max<int64_t>(1, cheapest - 2 + static_cast<int64_t>(random() % 9));
    SetLimit(limit);
    const Gang& gang = GangAt(name);
    Statement statement(&cluster_);
    Placer::Placed placed;
    std::optional<QueueBound> bound;
    const Reason reason = placer_.FindPlacement({&gang}, 64, &statement, &placed, &bound);
    SCOPED_TRACE(
        absl::StrCat(name, ": ", needed, " of ", pods, ", cheapest ", cheapest, ", limit ", limit, ": ", reason.text));
    ASSERT_EQ(reason.none(), cheapest <= limit);
    ASSERT_TRUE(placed.placed);
    if (!reason.none()) {
      ASSERT_EQ(reason.code, ReasonCode::kQueueLimit) << "no proof: other members may request less";
      ASSERT_TRUE(bound.has_value());
      ASSERT_EQ(bound->queue, kDefaultQueue);
      statement.Rollback(0);
      ++refused;
      continue;
    }
    int64_t cpu = 0;
    int32_t count = 0;
    for (const Statement::Operation& each : placed.parts[0].operations) {
      cpu += each.pods * cluster_.pod_class(each.cls).request.Get(kCpu);
      count += each.pods;
    }
    ASSERT_GE(count, needed);
    ASSERT_LE(cpu, limit);
    ASSERT_EQ(placed.parts[0].lowest_priority, -members[static_cast<size_t>(needed) - 1].first);
    ASSERT_GE(placed.tries, 1);
    ++started;
    statement.Rollback(0);
  }
  EXPECT_GT(started, 100);
  EXPECT_GT(refused, 100);
}

// Without its costliest pod the gang has no place on the nodes: both reasons are given.
TEST_F(PlacerTest, CheaperMembersDoNotFit_ReasonNamesBoth) {
  PutNode(NodeWith("large", {{"cpu", 8}, {"gpu", 0}, {"pods", 1}}));
  PutNode(NodeWith("small", {{"cpu", 1}, {"gpu", 0}, {"pods", 10}}));
  PutMember("g-0", 8, "g", 1);
  PutMember("g-1", 9, "g", 1);
  SetLimit(7);
  Statement statement(&cluster_);
  Placer::Placed placed;
  const Reason reason = placer_.FindPlacement({&GangAt("g")}, 64, &statement, &placed);
  EXPECT_EQ(reason.code, ReasonCode::kQueueLimit);
  EXPECT_EQ(reason.text.find("without the pods"), std::string::npos) << reason.text;
  PodDescription facts = Facts("h-0", 8, "h", 1);
  Put(facts);
  facts = Facts("h-1", 2, "h", 1);
  facts.shape.Mutable().node_selector = {{"disk", "ssd"}};
  Put(facts);
  statement.Rollback(0);
  const Reason both = placer_.FindPlacement({&GangAt("h")}, 64, &statement, &placed);
  EXPECT_EQ(both.code, ReasonCode::kQueueLimit);
  EXPECT_NE(both.text.find("; without the pods that request most: room for 0 of 1 members; "), std::string::npos)
      << both.text;
  EXPECT_FALSE(placed.placed);
  EXPECT_EQ(placed.tries, 2) << "the tries before it count too";
}

// Muster drops at most eight of the costliest members before it asks the queue again later.
TEST_F(PlacerTest, CostlyMembers_EightAreDropped) {
  AddNode("n", 1'000);
  SetLimit(4);
  for (const int extra : {8, 9}) {
    const std::string name = absl::StrCat("g", extra);
    for (int i = 0; i < 2 + extra; ++i) PutMember(absl::StrCat(name, "-", i), 3 + 2 * extra - 2 * i, name, 2);
    Statement statement(&cluster_);
    Placer::Placed placed;
    EXPECT_EQ(placer_.FindPlacement({&GangAt(name)}, 64, &statement, &placed).none(), extra == 8);
    EXPECT_EQ(placed.tries, 9);
    statement.Rollback(0);
  }
}

class PlacerDomains : public PlacerTest {
 protected:
  void PutIn(const std::string& name, const std::string& zone, const std::string& rack, int64_t cpu) {
    NodeDescription node = SmallNode(name, cpu);
    if (!zone.empty()) node.labels["zone"] = zone;
    if (!rack.empty()) node.labels["rack"] = rack;
    PutNode(node);
  }
  // One more member of one cpu, of a gang with this declaration; on `node` if it runs already.
  void PutOne(const std::string& gang, const GangDeclaration& declared, const std::string& subgroup,
              const std::string& node = "", bool near = false, const std::string& domain = "zone",
              int32_t priority = 0) {
    PodDescription facts = Facts(absl::StrCat(gang, "-", members_++), 1, gang, 1);
    facts.gang.declaration.Mutable() = declared;
    facts.gang.subgroup = subgroup;
    facts.node_name = node;
    facts.priority = priority;
    if (near) {
      PodAffinityTerm term;
      term.topology_key = domain;
      term.selector.all_namespaces = true;
      facts.shape.Mutable().pod_affinity.affinity = {term};
    }
    const Pod& pod = Put(facts, /*submitted=*/false, node.empty() ? MemberState::kPending : MemberState::kRunning);
    if (!node.empty()) ledger_.ChargePod(pod.id, cluster_.FindNode(node), pod.cls, ChargeKind::kUsed);
  }
  // The nodes of each claim's pods, by leaf: "0 on a 2, 1 on b 1"; or why they have none.
  std::string Place(const Claims& claims) {
    Statement statement(&cluster_);
    Placer::Placed placed;
    EXPECT_TRUE(placer_.FindPlacement(claims, 64, &statement, &placed).none());
    if (!placed.placed) return placed.why.text;
    std::vector<std::string> claims_text;
    for (const Placer::Placed::Part& part : placed.parts) {
      std::map<std::pair<int32_t, std::string>, int32_t> pods;
      for (const Statement::Operation& each : part.operations) {
        pods[{each.part, cluster_.node(each.node).facts.name}] += each.pods;
      }
      std::vector<std::string> texts;
      for (const auto& [at, count] : pods) texts.push_back(absl::StrCat(at.first, " on ", at.second, " ", count));
      claims_text.push_back(absl::StrCat(absl::StrJoin(texts, ", "), " >=", part.lowest_priority));
    }
    statement.Rollback(0);
    return absl::StrJoin(claims_text, "; ");
  }
  int members_ = 0;
};

// P-3, P-4: pods that must be near each other share a domain of that label, in addition to the gang's own rule.
TEST_F(PlacerDomains, MutualAffinity_SharesDomainBesideOwnRule) {
  PutIn("a1", "a", "x", 2);
  PutIn("b1", "b", "x", 2);
  PutIn("b2", "b", "y", 3);
  PutIn("c1", "", "x", 9);
  const auto gang = [&](const std::string& name, int32_t pods, const TopologyRule& rule,
                        const std::string& domain = "zone") {
    GangDeclaration declared;
    declared.min_member = pods;
    declared.topology = rule;
    for (int32_t i = 0; i < pods; ++i) PutOne(name, declared, "", "", true, domain);
    return Place({&GangAt(name)});
  };
  EXPECT_EQ(gang("five", 5, {}), "0 on b1 2, 0 on b2 3 >=0") << "only zone b has five";
  EXPECT_EQ(gang("same", 5, {.required = "zone"}), "0 on b1 2, 0 on b2 3 >=0");
  EXPECT_EQ(gang("rack", 3, {.required = "rack"}), "0 on b2 3 >=0") << "rack x has four, but in two zones";
  EXPECT_EQ(gang("more", 4, {.required = "rack"}),
            "no domain of zone has room for the gang: b: not all together, a: 2 of 4");
  EXPECT_NE(gang("six", 6, {}).find("zone"), std::string::npos) << "six fit only into two zones";
  EXPECT_EQ(gang("prefers", 3, {.preferred = "rack"}), "0 on b2 3 >=0");
  GangDeclaration two;
  two.min_member = 2;
  PutOne("both", two, "", "", true, "zone");
  PutOne("both", two, "", "", true, "rack");
  EXPECT_NE(Place({&GangAt("both")}).find(" on "), std::string::npos);
  // With a member that runs, the others go to its domain.
  GangDeclaration rest;
  rest.min_member = 3;
  PutOne("rest", rest, "", "a1", true);
  for (int i = 0; i < 2; ++i) PutOne("rest", rest, "", "", true);
  EXPECT_THAT(Place({&GangAt("rest")}), testing::StartsWith("room for 1 of 2 members; ")) << "zone a has one cpu left";
}

// S-5, P-4: a gang that no domain holds even when it is empty, one that waits for running pods, and one whose pods are
// kept off every node.
TEST_F(PlacerDomains, NoDomainFits_ObstacleIsWhatWouldHelp) {
  const auto why = [&](const std::string& gang, int32_t pods, const Labels& selector = {}) {
    GangDeclaration declared;
    declared.min_member = pods;
    declared.topology = TopologyRule{.required = "zone"};
    for (int32_t i = 0; i < pods; ++i) {
      PodDescription facts = Facts(absl::StrCat(gang, "-", i), 1, gang, pods);
      facts.gang.declaration.Mutable() = declared;
      facts.shape.Mutable().node_selector = selector;
      Put(facts);
    }
    Statement statement(&cluster_);
    Placer::Placed placed;
    EXPECT_TRUE(placer_.FindPlacement({&GangAt(gang)}, 64, &statement, &placed).none());
    EXPECT_FALSE(placed.placed);
    return placed.why;
  };
  PutIn("a1", "a", "", 2);
  PutIn("a2", "a", "", 2);
  PutIn("b1", "b", "", 3);
  EXPECT_EQ(why("large", 6).text,
            "no domain of zone has room for the gang: a: 4 of 6, b: 3 of 6; can never fit: no such domain holds more "
            "than 4 of 6 when empty");
  EXPECT_EQ(why("larger", 7).obstacle, (MainObstacle{MainObstacle::Kind::kDomainsTooSmall, "zone"}));
  PutOne("runs", GangDeclaration{.min_member = 1}, "", "a1");
  EXPECT_EQ(why("waits", 4).text, "no domain of zone has room for the gang: a: 3 of 4, b: 3 of 4");
  EXPECT_EQ(why("queued", 4).obstacle, (MainObstacle{MainObstacle::Kind::kDomains, "a domain of zone"}));
  const Explanation excluded = why("choosy", 2, {{"disk", "ssd"}});
  EXPECT_EQ(excluded.text,
            "no domain of zone has room for the gang: a: 0 of 2, b: 0 of 2; 3 nodes: node selector (disk)");
  EXPECT_EQ(excluded.obstacle, (MainObstacle{MainObstacle::Kind::kNodeSelector, "disk"}));
}

// S-5, P-5: a subgroup that can be left out says nothing about the gang.
TEST_F(PlacerDomains, OptionalSubgroupTooLarge_IsNoObstacleOfGang) {
  PutIn("a1", "a", "", 2);
  PutOne("runs", GangDeclaration{.min_member = 1}, "", "a1");
  GangDeclaration declared;
  declared.min_member = 1;
  declared.subgroups = {{"large", "", 4}, {"small", "", 2}};
  for (SubgroupDeclaration& each : declared.subgroups) each.topology.required = "zone";
  for (int i = 0; i < 4; ++i) PutOne("g", declared, "large");
  for (int i = 0; i < 2; ++i) PutOne("g", declared, "small");
  Statement statement(&cluster_);
  Placer::Placed placed;
  EXPECT_TRUE(placer_.FindPlacement({&GangAt("g")}, 64, &statement, &placed).none());
  EXPECT_FALSE(placed.placed);
  EXPECT_TRUE(placed.why.obstacle.EndsWithCapacity()) << placed.why.text;
}

// P-4, P-5: what is missing of a subgroup, and of a gang with domains, goes where their running members are.
TEST_F(PlacerDomains, RunningMembers_DecideDomain) {
  PutIn("a1", "a", "a1", 2);
  PutIn("a2", "a", "a2", 1);
  PutIn("b1", "b", "b1", 9);
  PutIn("b2", "b", "b2", 9);
  PutIn("lost", "", "", 3);
  GangDeclaration declared;
  declared.topology = TopologyRule{.required = "zone"};
  declared.subgroups = {{"left", "", 1}, {"right", "", 2}};
  declared.subgroups[1].topology.required = "rack";
  PutOne("g", declared, "left", "a1");
  for (int i = 0; i < 2; ++i) PutOne("g", declared, "right");
  EXPECT_EQ(Place({&GangAt("g")}), "no domain of rack has room for subgroup right: a1: 1 of 2, a2: 1 of 2");
  PutIn("a3", "a", "a3", 2);
  EXPECT_EQ(Place({&GangAt("g")}), "1 on a3 2 >=0") << "in zone a, as subgroup left runs there";
  // A subgroup that runs outside of every zone says nothing about the zone.
  PutOne("h", declared, "left", "lost");
  for (int i = 0; i < 2; ++i) PutOne("h", declared, "right");
  EXPECT_EQ(Place({&GangAt("h")}), "members of the gang are on a node without label zone, which it requires");
  PutOne("k", declared, "left", "lost");
  PutOne("k", declared, "right", "b1");
  PutOne("k", declared, "right");
  EXPECT_EQ(Place({&GangAt("k")}), "1 on b1 1 >=0");
  // Nested: the first of two subgroups runs whole, the second half.
  GangDeclaration nested = declared;
  nested.subgroups = {{"top", "", 2}, {"left", "top", 1}, {"right", "top", 2}};
  nested.subgroups[0].topology.required = "rack";
  PutOne("n", nested, "left", "b2");
  PutOne("n", nested, "right", "b2");
  PutOne("n", nested, "right");
  EXPECT_EQ(Place({&GangAt("n")}), "1 on b2 1 >=0");
}

// D-10, P-5: the gangs of a group are placed together or not at all; each part has the lowest priority of its pods.
TEST_F(PlacerDomains, Group_AllOrNone) {
  PutIn("a1", "a", "x", 2);
  PutIn("b1", "b", "y", 3);
  GangDeclaration declared;
  declared.topology = TopologyRule{.required = "zone"};
  declared.min_member = 2;
  GangDeclaration parts;
  parts.subgroups = {{"driver", "", 1}, {"worker", "", 2}};
  for (int i = 0; i < 2; ++i) PutOne("pair", declared, "");
  PutOne("tree", parts, "driver", "", false, "", 5);
  for (int i = 0; i < 2; ++i) PutOne("tree", parts, "worker", "", false, "", 3);
  const Claims both = {&GangAt("pair"), &GangAt("tree")};
  EXPECT_EQ(Place({&GangAt("tree")}), "0 on a1 1, 1 on a1 1, 1 on b1 1 >=3");
  EXPECT_EQ(Place(both), "0 on a1 2 >=0; 0 on b1 1, 1 on b1 2 >=3");
  PutIn("b1", "b", "y", 2);
  const std::string why = Place(both);
  EXPECT_EQ(why.find(" on "), std::string::npos) << why;
}

// P-10: each amount of minResources is free, less what members with a node have; declarations of a group add up.
TEST_F(PlacerTest, MinResources_CountFreeAndPlaced) {
  PutNode(NodeWith("n", {{"cpu", 10}, {"gpu", 4}, {"pods", 10}}));
  const auto put = [this](const std::string& gang, ResourceList min_resources) -> const Gang& {
    PodDescription facts = Facts(gang + "-0", 1, gang, 1);
    facts.gang.declaration.Mutable().min_resources = std::move(min_resources);
    Put(facts);
    return GangAt(gang);
  };
  const auto check = [this](const Claims& claims) { return placer_.CheckMinResources(claims); };
  EXPECT_TRUE(check({&put("free", {})}).none());
  EXPECT_TRUE(check({&put("fits", {{"cpu", 10}, {"gpu", 4}})}).none());
  EXPECT_EQ(check({&put("more", {{"cpu", 11}})}).text,
            "minResources asks for cpu: 11m, cpu: 10m is free in the cluster");
  EXPECT_EQ(check({&put("gpus", {{"cpu", 1}, {"gpu", 5}})}).text,
            "minResources asks for gpu: 5, gpu: 4 is free in the cluster");
  EXPECT_EQ(check({&put("other", {{"tpu", 1}})}).text, "minResources asks for tpu: 1, tpu: 0 is free in the cluster");
  EXPECT_EQ(check({&put("other", {{"tpu", 1}})}).code, ReasonCode::kMinResources);
  EXPECT_EQ(check({&put("half", {{"cpu", 6}}), &put("rest", {{"cpu", 5}})}).text,
            "minResources asks for cpu: 11m, cpu: 10m is free in the cluster");
  const Gang& partly = put("partly", {{"cpu", 12}});
  int number = 0;
  for (const MemberState state : {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning}) {
    EXPECT_FALSE(check({&partly}).none());
    const Pod& pod = Put(Facts(absl::StrCat("partly-placed-", number++), 2, "partly", 1), /*submitted=*/false, state);
    EXPECT_TRUE(check({&partly}).none());
    gangs_.Leave(pod);
    gangs_.RemovePod(pod);
  }
  Put(Facts("partly-waits", 2, "partly", 1), /*submitted=*/false, MemberState::kPending);
  EXPECT_FALSE(check({&partly}).none());
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(check({&put("huge", {{"cpu", kMost}}), &put("vast", {{"cpu", kMost}})}).code, ReasonCode::kMinResources);
}

}  // namespace
}  // namespace muster
