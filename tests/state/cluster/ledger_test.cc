// muster_cluster: the pod or claim that each charge belongs to (SPEC Q-7).
#include "state/cluster/ledger.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tests/support/small_cluster.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

class LedgerTest : public ClusterTest {
 protected:
  const NodeId a_ = Put("a", 10);
  const NodeId b_ = Put("b", 10);
  const ClassId one_ = Acquire(1);
  const ClassId two_ = Acquire(2);
  Ledger ledger_{&cluster_};

  // (claim, class, slots) on a node, in the order of the ledger.
  std::vector<std::tuple<int32_t, ClassId, int32_t>> Promised(NodeId node) {
    std::vector<std::tuple<int32_t, ClassId, int32_t>> out;
    for (const Ledger::Promise& p : ledger_.PromisedOn(node)) out.emplace_back(p.claim, p.cls, p.pods);
    return out;
  }
  int64_t Used(NodeId node) { return cluster_.node(node).used.Get(kCpu); }
  int64_t Reserved(NodeId node) { return cluster_.node(node).reserved.Get(kCpu); }
  // Whether the last change of the log gained capacity.
  bool LastGained() { return cluster_.log_at(cluster_.log_end() - 1).gained; }
};

TEST_F(LedgerTest, Pod_IsChargedOnOneNode) {
  EXPECT_EQ(ledger_.ChargeOf(5).node, kNoNode);
  ledger_.ChargePod(5, a_, one_, ChargeKind::kReserved);
  EXPECT_EQ(ledger_.ChargeOf(5).node, a_);
  EXPECT_EQ(ledger_.ChargeOf(5).cls, one_);
  EXPECT_EQ(ledger_.ChargeOf(5).kind, ChargeKind::kReserved);
  EXPECT_EQ(Reserved(a_), 1);
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  EXPECT_EQ(Reserved(a_), 0);
  EXPECT_EQ(Used(a_), 1);
  EXPECT_EQ(ledger_.ChargeOf(5).kind, ChargeKind::kUsed);
  ledger_.ChargePod(5, b_, one_, ChargeKind::kUsed);
  EXPECT_EQ(Used(a_), 0);
  EXPECT_EQ(Used(b_), 1);
  EXPECT_EQ(ledger_.ChargeOf(5).node, b_);
  ledger_.ChargePod(5, b_, one_, ChargeKind::kReserved);
  EXPECT_EQ(Used(b_), 0);
  EXPECT_EQ(Reserved(b_), 1);
  EXPECT_EQ(ledger_.ChargeOf(4).node, kNoNode) << "another pod";
  EXPECT_EQ(ledger_.ChargeOf(6).node, kNoNode);
}

TEST_F(LedgerTest, RepeatedCharge_ChangesNothing) {
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  static_cast<void>(ledger_.TakeChanged());
  const int64_t end = cluster_.log_end();
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  EXPECT_EQ(cluster_.log_end(), end);
  EXPECT_EQ(Used(a_), 1);
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
}

TEST_F(LedgerTest, PodWithoutClass_NotCharged) {
  ledger_.ChargePod(5, a_, kNoClass, ChargeKind::kUsed);
  EXPECT_EQ(ledger_.ChargeOf(5).node, kNoNode);
  EXPECT_EQ(cluster_.node(a_).used_pods, 0);
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
}

TEST_F(LedgerTest, Reserves_OnlyReservedCharges) {
  EXPECT_FALSE(ledger_.Reserves(5));
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  EXPECT_FALSE(ledger_.Reserves(5));
  ledger_.ChargePod(5, a_, one_, ChargeKind::kReserved);
  EXPECT_TRUE(ledger_.Reserves(5));
  ledger_.DischargePod(5, true);
  EXPECT_FALSE(ledger_.Reserves(5));
}

TEST_F(LedgerTest, Discharge_ReturnsAmountOnce) {
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  ledger_.ChargePod(6, a_, two_, ChargeKind::kReserved);
  ledger_.DischargePod(5, /*gained=*/true);
  EXPECT_TRUE(LastGained());
  EXPECT_EQ(Used(a_), 0);
  EXPECT_EQ(ledger_.ChargeOf(5).node, kNoNode);
  const int64_t end = cluster_.log_end();
  ledger_.DischargePod(5, true);
  ledger_.DischargePod(77, true);
  EXPECT_EQ(cluster_.log_end(), end) << "harmless when nothing is charged";
  ledger_.DischargePod(6, /*gained=*/false);
  EXPECT_FALSE(LastGained()) << "it is about to be charged again";
  EXPECT_EQ(Reserved(a_), 0);
}

// A charge that moves to another node frees the first.
TEST_F(LedgerTest, MovedCharge_FreesFirstNode) {
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  const int64_t from = cluster_.log_end();
  ledger_.ChargePod(5, b_, one_, ChargeKind::kUsed);
  EXPECT_EQ(LogSince(from), (Names{"b", "a+"}));
}

TEST_F(LedgerTest, RemovedNode_KnownWhileCharged) {
  ledger_.ChargePod(5, a_, one_, ChargeKind::kReserved);
  cluster_.RemoveNode("a");
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  EXPECT_EQ(cluster_.FindNode("a"), a_);
  EXPECT_EQ(Used(a_), 1);
}

TEST_F(LedgerTest, Slots_CountedPerClaimClassAndNode) {
  EXPECT_TRUE(ledger_.PromisedOn(a_).empty());
  EXPECT_TRUE(ledger_.promised().empty());
  Reserve(a_, one_, 2);
  ledger_.AdoptSlots(7, a_, one_, 2);
  EXPECT_EQ(Promised(a_), (decltype(Promised(a_)){{7, one_, 2}}));
  EXPECT_EQ(Reserved(a_), 2) << "the statement had reserved it already";
  EXPECT_EQ(cluster_.pod_class(one_).pods, 3) << "a slot outlives its pods";
  ledger_.ReserveSlot(7, a_, one_);
  ledger_.ReserveSlot(7, a_, two_);
  ledger_.ReserveSlot(8, a_, one_);
  ledger_.ReserveSlot(7, b_, one_);
  EXPECT_EQ(Promised(a_), (decltype(Promised(a_)){{7, one_, 3}, {7, two_, 1}, {8, one_, 1}}));
  EXPECT_EQ(Promised(b_), (decltype(Promised(b_)){{7, one_, 1}}));
  EXPECT_EQ(Reserved(a_), 6);
  EXPECT_EQ(Reserved(b_), 1);
  EXPECT_EQ(cluster_.pod_class(one_).pods, 6);
  EXPECT_EQ(cluster_.pod_class(two_).pods, 2);
  EXPECT_EQ(ledger_.promised().size(), 2U);
}

TEST_F(LedgerTest, ReleaseSlot_ReleasesOneSlot) {
  for (int i = 0; i < 3; ++i) ledger_.ReserveSlot(7, a_, one_);
  ledger_.ReserveSlot(8, a_, one_);
  ledger_.ReleaseSlot(7, a_, one_, /*gained=*/true);
  EXPECT_TRUE(LastGained());
  EXPECT_EQ(Promised(a_), (decltype(Promised(a_)){{7, one_, 2}, {8, one_, 1}}));
  EXPECT_EQ(Reserved(a_), 3);
  EXPECT_EQ(cluster_.pod_class(one_).pods, 4);
  ledger_.ReleaseSlot(8, a_, one_, /*gained=*/false);
  EXPECT_FALSE(LastGained());
  EXPECT_EQ(Promised(a_), (decltype(Promised(a_)){{7, one_, 2}}));
  ledger_.ReleaseSlot(7, a_, one_, true);
  ledger_.ReleaseSlot(7, a_, one_, true);
  EXPECT_TRUE(ledger_.PromisedOn(a_).empty());
  EXPECT_TRUE(ledger_.promised().empty());
  EXPECT_EQ(Reserved(a_), 0);
  EXPECT_EQ(cluster_.pod_class(one_).pods, 1);
}

// Readers receive each node with changed charges once, in order of names.
TEST_F(LedgerTest, TakeChanged_ListsChangedNodesOnce) {
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
  ledger_.ChargePod(5, b_, one_, ChargeKind::kUsed);
  ledger_.ChargePod(6, b_, one_, ChargeKind::kUsed);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"b"});
  ledger_.DischargePod(6, true);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"b"});
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  EXPECT_EQ(ledger_.TakeChanged(), (Names{"a", "b"})) << "both ends of a move";
  Reserve(a_, one_);
  ledger_.AdoptSlots(7, a_, one_, 1);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"a"});
  ledger_.ReserveSlot(7, b_, one_);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"b"});
  ledger_.ReleaseSlot(7, b_, one_, true);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"b"});
  ledger_.MarkNode(b_);
  ledger_.MarkNode(a_);
  ledger_.MarkNode(b_);
  EXPECT_EQ(ledger_.TakeChanged(), (Names{"a", "b"}));
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
}

TEST_F(LedgerTest, TakeChanged_ListsRemovedNodes) {
  ledger_.MarkNode(a_);
  ledger_.MarkRemoved("a");
  cluster_.RemoveNode("a");
  EXPECT_EQ(ledger_.TakeChanged(), Names{"a"});
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
  // Another node reuses its id before the readers are notified.
  ledger_.MarkNode(b_);
  ledger_.MarkRemoved("b");
  cluster_.RemoveNode("b");
  const NodeId c = Put("c", 1);
  EXPECT_EQ(c, b_);
  ledger_.MarkNode(c);
  EXPECT_EQ(ledger_.TakeChanged(), (Names{"b", "c"}));
  ledger_.MarkRemoved("c");
  ledger_.MarkRemoved("a");
  ledger_.MarkNode(c);
  EXPECT_EQ(ledger_.TakeChanged(), (Names{"a", "c"})) << "each name once";
  // A node that was never announced and is removed with its only pod is not listed.
  const NodeId ghost = cluster_.InternNode("ghost");
  ledger_.ChargePod(5, ghost, one_, ChargeKind::kUsed);
  ledger_.DischargePod(5, true);
  EXPECT_EQ(cluster_.FindNode("ghost"), kNoNode);
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
}

// the usage of an account is the sum of what its payers are charged and promised, whatever came before; and
// times_freed() grows each time that some usage decreases.
TEST_F(LedgerTest, RandomCharges_AccountsAgreeWithSums) {
  struct OfPod {
    NodeId node = kNoNode;
    ClassId cls = kNoClass;
    Ledger::Payer payer;
    bool in_flight = false;
  };
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int32_t>(random() % static_cast<unsigned>(n)); };
  const auto payer = [&] { return Ledger::Payer{pick(4) - 1, pick(2) == 0}; };
  std::array<OfPod, 4> pods;
  std::array<Ledger::Payer, 3> payers;
  std::vector<std::tuple<int32_t, NodeId, ClassId>> slots;
  std::array<int64_t, 3> was = {};
  ledger_.OpenAccounts({-1, 0, 0});
  int64_t freed = ledger_.times_freed();
  for (int step = 0; step < 5'000; ++step) {
    const int32_t id = pick(4), claim = pick(3);
    OfPod& pod = pods.at(static_cast<size_t>(id));
    const NodeId node = pick(2) == 0 ? a_ : b_;
    const ClassId cls = pick(2) == 0 ? one_ : two_;
    switch (pick(8)) {
      case 0:
        ledger_.ChargePod(id, node, pod.node == node ? pod.cls : cls, ChargeKind::kUsed);
        if (pod.node != node) pod = {node, cls, pod.payer, false};
        break;
      case 1:
        ledger_.DischargePod(id, /*gained=*/true);
        pod = {.payer = pod.payer};
        break;
      case 2:
        ledger_.SetPayer(id, pod.payer = payer());
        break;
      case 3:
        ledger_.SetClaimPayer(claim, payers.at(static_cast<size_t>(claim)) = payer());
        break;
      case 4:
        ledger_.ReserveSlot(claim, node, cls);
        slots.emplace_back(claim, node, cls);
        break;
      case 5:
        if (slots.empty()) break;
        std::swap(slots[random() % slots.size()], slots.back());
        std::apply([&](auto... slot) { ledger_.ReleaseSlot(slot..., /*gained=*/true); }, slots.back());
        slots.pop_back();
        break;
      case 6:
        ledger_.MarkInFlight(id);
        pod.in_flight = pod.node != kNoNode;
        break;
      default:
        ledger_.ClearInFlight(id);
        pod.in_flight = false;
        if (pick(20) != 0) break;
        ledger_.OpenAccounts({-1, 0, 0});
        for (OfPod& each : pods) each.payer = {};
        payers = {};
    }
    std::array<int64_t, 3> used = {}, fixed = {};
    const auto pay = [&](const Ledger::Payer& by, ClassId of) {
      if (by.account < 0) return;
      for (const int32_t account : {by.account, 0}) {
        used.at(static_cast<size_t>(account)) += of == one_ ? 1 : 2;
        if (by.fixed) fixed.at(static_cast<size_t>(account)) += of == one_ ? 1 : 2;
        if (by.account == 0) break;
      }
    };
    absl::flat_hash_map<NodeId, int32_t> in_flight;
    std::set<NodeId> promised;
    for (const OfPod& each : pods) {
      if (each.node != kNoNode) pay(each.payer, each.cls);
      if (each.in_flight) ++in_flight[each.node];
    }
    for (const auto& [of, at, slot] : slots) {
      pay(payers.at(static_cast<size_t>(of)), slot);
      promised.insert(at);
    }
    for (size_t i = 0; i < used.size(); ++i) {
      ASSERT_EQ(ledger_.used().Of(static_cast<int32_t>(i)).Get(kCpu), used.at(i)) << step;
      ASSERT_EQ(ledger_.fixed().Of(static_cast<int32_t>(i)).Get(kCpu), fixed.at(i)) << step;
      ASSERT_TRUE(used.at(i) >= was.at(i) || ledger_.times_freed() > freed) << step;
    }
    ASSERT_EQ(ledger_.in_flight(), in_flight) << step;
    ASSERT_EQ(std::set<NodeId>(ledger_.promised().begin(), ledger_.promised().end()), promised) << step;
    ASSERT_EQ(ledger_.promised().size(), promised.size()) << step;
    was = used;
    freed = ledger_.times_freed();
  }
}

TEST_F(LedgerTest, ReleaseUnknownSlot_Dies) {
  EXPECT_DEATH(ledger_.ReleaseSlot(7, a_, one_, true), "invariant");
  ledger_.ReserveSlot(7, a_, one_);
  EXPECT_DEATH(ledger_.ReleaseSlot(8, a_, one_, true), "invariant");
  EXPECT_DEATH(ledger_.ReleaseSlot(7, a_, two_, true), "invariant");
}

}  // namespace
}  // namespace muster
