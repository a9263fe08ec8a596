// muster_cluster: the pod or claim that each charge belongs to (SPEC Q-7).
#include "state/cluster/ledger.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

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

TEST_F(LedgerTest, ReleaseUnknownSlot_Dies) {
  EXPECT_DEATH(ledger_.ReleaseSlot(7, a_, one_, true), "invariant");
  ledger_.ReserveSlot(7, a_, one_);
  EXPECT_DEATH(ledger_.ReleaseSlot(8, a_, one_, true), "invariant");
  EXPECT_DEATH(ledger_.ReleaseSlot(7, a_, two_, true), "invariant");
}

}  // namespace
}  // namespace muster
