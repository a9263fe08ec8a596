// SPEC K-3: capacity reserved for pods that kube-scheduler nominated.
#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class NominationsTest : public RoomsTest {
 protected:
  const Pod& Nominate(const std::string& name, int64_t cpu, const std::string& node, int32_t priority = 0) {
    PodDescription facts = Facts(name, cpu);
    facts.nominated_node = node;
    facts.priority = priority;
    const Pod& pod = Put(std::move(facts));
    nominations_.Add(pod);
    return pod;
  }
};

TEST_F(NominationsTest, NominatedNode_WithRoom_IsReserved) {
  AddNode("n", 4);
  const Pod& fits = Nominate("a", 4, "n");
  EXPECT_EQ(ReservedOn("n"), 4);
  EXPECT_TRUE(ledger_.Reserves(fits.id));
  const Pod& late = Nominate("b", 1, "n");
  EXPECT_FALSE(ledger_.Reserves(late.id));
  const Pod& lost = Nominate("c", 1, "elsewhere");
  EXPECT_FALSE(ledger_.Reserves(lost.id));
  EXPECT_EQ(cluster_.FindNode("elsewhere"), kNoNode);
  nominations_.Charge();
  EXPECT_EQ(ReservedOn("n"), 4) << "no pod is charged twice";
  ledger_.DischargePod(fits.id, true);
  nominations_.Charge();  // in order of UIDs
  EXPECT_TRUE(ledger_.Reserves(fits.id));
  ledger_.DischargePod(fits.id, true);
  EXPECT_TRUE(nominations_.Remove(fits));
  EXPECT_FALSE(nominations_.Remove(fits));
  nominations_.Charge();
  EXPECT_FALSE(ledger_.Reserves(fits.id));
  EXPECT_TRUE(ledger_.Reserves(late.id));
  EXPECT_EQ(ReservedOn("n"), 1);
}

TEST_F(NominationsTest, Allocate_PodWithoutCharge_IsCountedOnce) {
  const NodeId node = AddNode("n", 4);
  const Pod& pod = Nominate("a", 2, "n");
  Statement statement(&cluster_);
  nominations_.Allocate(&statement);
  EXPECT_TRUE(statement.operations().empty()) << "it is charged already";
  ledger_.DischargePod(pod.id, /*gained=*/false);
  nominations_.Allocate(&statement);
  ASSERT_EQ(statement.operations().size(), 1U);
  EXPECT_EQ(statement.operations()[0].node, node);
  EXPECT_EQ(statement.operations()[0].pods, 1);
  statement.Rollback(0);
}

TEST_F(NominationsTest, InvalidOrChargedPod_ReservesNothing) {
  AddNode("m", 4);
  AddNode("n", 4);
  PodDescription facts = Facts("a", 1);
  facts.nominated_node = "n";
  const Pod& pod = Put(facts);
  ledger_.ChargePod(pod.id, cluster_.FindNode("m"), pod.cls, ChargeKind::kUsed);
  nominations_.Add(pod);
  EXPECT_EQ(UsedOn("m"), 1);
  facts.uid = facts.name = "b";
  facts.invalid = "cpu: not a quantity";
  nominations_.Add(Put(facts));
  EXPECT_EQ(NodeAt("n").reserved_pods, 0);
}

TEST_F(NominationsTest, ReleaseBelowPriority_ReleasesOnlyLowerPriorities) {
  AddNode("n", 4);
  const Pod& low = Nominate("a", 1, "n", 4);
  const Pod& equal = Nominate("b", 1, "n", 5);
  const Pod& high = Nominate("c", 1, "n", 6);
  const Pod& placed = Put(Facts("d", 1));
  ledger_.ChargePod(placed.id, cluster_.FindNode("n"), placed.cls, ChargeKind::kUsed);
  nominations_.Add(placed);
  const int64_t log = cluster_.log_end();
  nominations_.ReleaseBelowPriority(5);
  EXPECT_FALSE(ledger_.Reserves(low.id));
  EXPECT_TRUE(ledger_.Reserves(equal.id));
  EXPECT_TRUE(ledger_.Reserves(high.id));
  EXPECT_EQ(UsedOn("n"), 1) << "what a pod uses is not a nomination's room";
  for (int64_t at = log; at < cluster_.log_end(); ++at) {
    EXPECT_FALSE(cluster_.log_at(at).gained) << "it will be charged again at once: no gang is woken";
  }
}

TEST_F(NominationsTest, LastChargedOn_ReturnsLastReservationOfNode) {
  const NodeId m = AddNode("m", 4);
  const NodeId n = AddNode("n", 4);
  EXPECT_EQ(nominations_.LastChargedOn(n), nullptr);
  Nominate("a", 1, "n");
  const Pod& last = Nominate("b", 1, "n");
  const Pod& other = Nominate("c", 1, "m");
  Nominate("d", 9, "n");  // without room
  const Pod& placed = Put(Facts("e", 1));
  ledger_.ChargePod(placed.id, n, placed.cls, ChargeKind::kUsed);
  nominations_.Add(placed);
  EXPECT_EQ(nominations_.LastChargedOn(n), &last);
  EXPECT_EQ(nominations_.LastChargedOn(m), &other);
}

}  // namespace
}  // namespace muster
