// The room muster_placement: to whom what is charged (SPEC Q-7).
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

  // (claim, class, places) on a node, in the order in which they are kept.
  std::vector<std::tuple<int32_t, ClassId, int32_t>> Promised(NodeId node) {
    std::vector<std::tuple<int32_t, ClassId, int32_t>> out;
    for (const Ledger::Promise& p : ledger_.PromisedOn(node)) out.emplace_back(p.claim, p.cls, p.pods);
    return out;
  }
  int64_t Used(NodeId node) { return cluster_.node(node).used.Get(kCpu); }
  int64_t Reserved(NodeId node) { return cluster_.node(node).reserved.Get(kCpu); }
  // The last change of the log: was something gained?
  bool LastGained() { return cluster_.log_at(cluster_.log_end() - 1).gained; }
};

TEST_F(LedgerTest, APodIsChargedInOnePlace) {
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

TEST_F(LedgerTest, TheSameAgainChangesNothing) {
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  static_cast<void>(ledger_.TakeChanged());
  const int64_t end = cluster_.log_end();
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  EXPECT_EQ(cluster_.log_end(), end);
  EXPECT_EQ(Used(a_), 1);
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
}

TEST_F(LedgerTest, WithoutAClassNothingIsCharged) {
  ledger_.ChargePod(5, a_, kNoClass, ChargeKind::kUsed);
  EXPECT_EQ(ledger_.ChargeOf(5).node, kNoNode);
  EXPECT_EQ(cluster_.node(a_).used_pods, 0);
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
}

TEST_F(LedgerTest, ReservesOnlyWhatIsReserved) {
  EXPECT_FALSE(ledger_.Reserves(5));
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  EXPECT_FALSE(ledger_.Reserves(5));
  ledger_.ChargePod(5, a_, one_, ChargeKind::kReserved);
  EXPECT_TRUE(ledger_.Reserves(5));
  ledger_.DischargePod(5, true);
  EXPECT_FALSE(ledger_.Reserves(5));
}

TEST_F(LedgerTest, DischargingGivesBackOnce) {
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

// What moves from one node to another frees the first.
TEST_F(LedgerTest, MovingFreesThePlaceItLeft) {
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  const int64_t from = cluster_.log_end();
  ledger_.ChargePod(5, b_, one_, ChargeKind::kUsed);
  EXPECT_EQ(LogSince(from), (Names{"b", "a+"}));
}

TEST_F(LedgerTest, ANodeThatIsGoneIsNotForgottenWhileThePodStays) {
  ledger_.ChargePod(5, a_, one_, ChargeKind::kReserved);
  cluster_.RemoveNode("a");
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  EXPECT_EQ(cluster_.FindNode("a"), a_);
  EXPECT_EQ(Used(a_), 1);
}

TEST_F(LedgerTest, AClaimIsPromisedPlacesByClassAndNode) {
  EXPECT_TRUE(ledger_.PromisedOn(a_).empty());
  EXPECT_TRUE(ledger_.promised().empty());
  Reserve(a_, one_, 2);
  ledger_.TakeOver(7, a_, one_, 2);
  EXPECT_EQ(Promised(a_), (decltype(Promised(a_)){{7, one_, 2}}));
  EXPECT_EQ(Reserved(a_), 2) << "the statement had reserved it already";
  EXPECT_EQ(cluster_.pod_class(one_).pods, 3) << "a slot outlives its pods";
  ledger_.AddPlace(7, a_, one_);
  ledger_.AddPlace(7, a_, two_);
  ledger_.AddPlace(8, a_, one_);
  ledger_.AddPlace(7, b_, one_);
  EXPECT_EQ(Promised(a_), (decltype(Promised(a_)){{7, one_, 3}, {7, two_, 1}, {8, one_, 1}}));
  EXPECT_EQ(Promised(b_), (decltype(Promised(b_)){{7, one_, 1}}));
  EXPECT_EQ(Reserved(a_), 6);
  EXPECT_EQ(Reserved(b_), 1);
  EXPECT_EQ(cluster_.pod_class(one_).pods, 6);
  EXPECT_EQ(cluster_.pod_class(two_).pods, 2);
  EXPECT_EQ(ledger_.promised().size(), 2U);
}

TEST_F(LedgerTest, PlacesAreGivenBackOneByOne) {
  for (int i = 0; i < 3; ++i) ledger_.AddPlace(7, a_, one_);
  ledger_.AddPlace(8, a_, one_);
  ledger_.GiveBackPlace(7, a_, one_, /*gained=*/true);
  EXPECT_TRUE(LastGained());
  EXPECT_EQ(Promised(a_), (decltype(Promised(a_)){{7, one_, 2}, {8, one_, 1}}));
  EXPECT_EQ(Reserved(a_), 3);
  EXPECT_EQ(cluster_.pod_class(one_).pods, 4);
  ledger_.GiveBackPlace(8, a_, one_, /*gained=*/false);
  EXPECT_FALSE(LastGained());
  EXPECT_EQ(Promised(a_), (decltype(Promised(a_)){{7, one_, 2}}));
  ledger_.GiveBackPlace(7, a_, one_, true);
  ledger_.GiveBackPlace(7, a_, one_, true);
  EXPECT_TRUE(ledger_.PromisedOn(a_).empty());
  EXPECT_TRUE(ledger_.promised().empty());
  EXPECT_EQ(Reserved(a_), 0);
  EXPECT_EQ(cluster_.pod_class(one_).pods, 1);
}

// Readers are told of every node whose charges changed, in order, and once.
TEST_F(LedgerTest, SaysWhichNodesChanged) {
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
  ledger_.ChargePod(5, b_, one_, ChargeKind::kUsed);
  ledger_.ChargePod(6, b_, one_, ChargeKind::kUsed);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"b"});
  ledger_.DischargePod(6, true);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"b"});
  ledger_.ChargePod(5, a_, one_, ChargeKind::kUsed);
  EXPECT_EQ(ledger_.TakeChanged(), (Names{"a", "b"})) << "both ends of a move";
  Reserve(a_, one_);
  ledger_.TakeOver(7, a_, one_, 1);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"a"});
  ledger_.AddPlace(7, b_, one_);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"b"});
  ledger_.GiveBackPlace(7, b_, one_, true);
  EXPECT_EQ(ledger_.TakeChanged(), Names{"b"});
  ledger_.MarkNode(b_);
  ledger_.MarkNode(a_);
  ledger_.MarkNode(b_);
  EXPECT_EQ(ledger_.TakeChanged(), (Names{"a", "b"}));
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
}

TEST_F(LedgerTest, SaysWhichNodesWent) {
  ledger_.MarkNode(a_);
  ledger_.NoteRemoved("a");
  cluster_.RemoveNode("a");
  EXPECT_EQ(ledger_.TakeChanged(), Names{"a"});
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
  // Its id serves another node before readers are told.
  ledger_.MarkNode(b_);
  ledger_.NoteRemoved("b");
  cluster_.RemoveNode("b");
  const NodeId c = Put("c", 1);
  EXPECT_EQ(c, b_);
  ledger_.MarkNode(c);
  EXPECT_EQ(ledger_.TakeChanged(), (Names{"b", "c"}));
  ledger_.NoteRemoved("c");
  ledger_.NoteRemoved("a");
  ledger_.MarkNode(c);
  EXPECT_EQ(ledger_.TakeChanged(), (Names{"a", "c"})) << "each name once";
  // Never announced, and forgotten with its only pod: there is nothing to show.
  const NodeId ghost = cluster_.InternNode("ghost");
  ledger_.ChargePod(5, ghost, one_, ChargeKind::kUsed);
  ledger_.DischargePod(5, true);
  EXPECT_EQ(cluster_.FindNode("ghost"), kNoNode);
  EXPECT_EQ(ledger_.TakeChanged(), Names{});
}

TEST_F(LedgerTest, DeathOfAPromiseThatIsNotThere) {
  EXPECT_DEATH(ledger_.GiveBackPlace(7, a_, one_, true), "invariant");
  ledger_.AddPlace(7, a_, one_);
  EXPECT_DEATH(ledger_.GiveBackPlace(8, a_, one_, true), "invariant");
  EXPECT_DEATH(ledger_.GiveBackPlace(7, a_, two_, true), "invariant");
}

}  // namespace
}  // namespace muster
