// SPEC P-8: capacity of terminating pods is reserved for a gang, and the cost is bounded when thousands of pods
// terminate at once.
#include "state/reservations/future_reservations.h"

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

constexpr auto kTerminating = FutureReservations::WaitsFor::kTerminating;
constexpr auto kRunning = FutureReservations::WaitsFor::kRunning;

class FutureReservationsTest : public RoomsTest {
 protected:
  // Pods of one cpu each that are being deleted, on one node with as many cpus as pods.
  void PutTerminating(int32_t pods, const std::string& node = "n", int64_t since_ms = kT0) {
    const NodeId id = PutNode(NodeWith(node, {{"cpu", pods}, {"pods", 2 * pods + 10}}));
    for (int32_t i = 0; i < pods; ++i) {
      PodDescription facts = Facts(absl::StrCat("old-", ended_++), 1);
      facts.node_name = node;
      facts.deleting = true;
      const Pod& pod = Put(facts, /*submitted=*/false, MemberState::kTerminating);
      ledger_.ChargePod(pod.id, id, pod.cls, ChargeKind::kUsed);
      EXPECT_FALSE(future_reservations_.TrackTerminating(pod, since_ms));
    }
  }
  void EndPod(const std::string& uid) {
    ledger_.DischargePod(PodAt(uid).id, /*gained=*/true);
    future_reservations_.Remove(PodAt(uid));
  }
  int32_t ended_ = 0;
};

TEST_F(FutureReservationsTest, Reservation_AllPodsGone_BecomesPlan) {
  PutTerminating(2);
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  ASSERT_TRUE(future_reservations_.HasReservation(gang));
  EXPECT_EQ(NodeAt("n").future_reserved.Get(kCpu), 2);
  EXPECT_EQ(NodeAt("n").free.Get(kCpu), -2);
  EXPECT_FALSE(cluster_.ReservationsExceed(cluster_.FindNode("n"))) << "nothing is reserved";
  EXPECT_EQ(future_reservations_.OccupiedNodes(gang), std::vector<std::string>{"n"});
  EXPECT_EQ(future_reservations_.Deadline(gang), kT0 + FutureReservations::kTerminationPatienceMs);
  EndPod("old-0");
  planning_.Round(64, &*ctx_);
  EXPECT_EQ(plans_.Of(gang), nullptr) << "a half of it is free";
  EXPECT_TRUE(future_reservations_.HasReservation(gang));
  EndPod("old-1");
  planning_.Round(64, &*ctx_);
  EXPECT_NE(plans_.Of(gang), nullptr);
  EXPECT_FALSE(future_reservations_.HasReservation(gang));
  EXPECT_EQ(NodeAt("n").future_reserved_pods, 0);
  EXPECT_EQ(ReservedOn("n"), 2);
  EXPECT_EQ(planning_.stats().reservations, 2) << "it was made again in the second round";
}

TEST_F(FutureReservationsTest, Deadline_IsEndOfPatienceForFirstPodOnItsNodes) {
  constexpr int64_t kPatience = FutureReservations::kTerminationPatienceMs;
  PutTerminating(1, "n", kT0 - kPatience);  // Muster no longer waits for it
  EXPECT_FALSE(future_reservations_.HasTerminatingPods(kT0));
  PutTerminating(1, "n", kT0 - 1'000);
  PutTerminating(1, "n", kT0 - 3'000);
  PutTerminating(1, "o", kT0 - 5'000);
  const Gang& gang = PutGang("g", 1);
  future_reservations_.Reserve(gang, {{cluster_.FindNode("n"), PodAt("g-1").cls, 1}}, kTerminating, kNever, kT0);
  EXPECT_EQ(future_reservations_.Deadline(gang), kT0 - 3'000 + kPatience);
}

// a reservation on running pods has no end. It yields by rank, by priority, and to gangs that end before it
// starts.
TEST_F(FutureReservationsTest, ReservationOnRunning_YieldsToClaimsThatMayOvertake) {
  using Rank = FutureReservations::Claimant::Rank;
  PutTerminating(4);
  for (const char* name : {"a", "owner", "z"}) PutGang(name, 1);
  PodDescription high = Facts("high-1", 1, "high", 1);
  high.priority = 1;
  Put(high);
  future_reservations_.Reserve(GangAt("owner"), {{0, PodAt("a-1").cls, 1}}, kRunning, kT0 + 5, kT0);
  EXPECT_EQ(future_reservations_.Deadline(GangAt("owner")), kNever);
  const auto yields = [&](const char* to, Rank rank, int64_t ends_by_ms = kNever) {
    FutureReservations::Suspended suspended(future_reservations_);
    future_reservations_.Suspend(GangAt(to), {ends_by_ms, rank}, &suspended);
    return !suspended.others.empty();
  };
  EXPECT_TRUE(yields("high", Rank::kAny));
  EXPECT_FALSE(yields("a", Rank::kAny));
  for (const Rank rank : {Rank::kStarved, Rank::kBlocksQueue}) EXPECT_TRUE(yields("a", rank) && !yields("z", rank));
  EXPECT_TRUE(yields("z", Rank::kBlocksQueueFirst));
  EXPECT_TRUE(yields("z", Rank::kAny, kT0 + 5));
  EXPECT_FALSE(yields("z", Rank::kAny, kT0 + 6));
}

TEST_F(FutureReservationsTest, PodsTerminatingTooLong_GetNoReservation) {
  PutTerminating(2);
  const Gang& gang = PutGang("g", 2);
  At(kT0 + FutureReservations::kTerminationPatienceMs);
  PlanNow(gang);
  EXPECT_FALSE(future_reservations_.HasReservation(gang));
  EXPECT_EQ(UsedOn("n"), 2) << "what was lent is back";
}

// When the pods of a large namespace terminate at once, a round does not look ahead, so that it stays short.
TEST_F(FutureReservationsTest, ThousandsTerminating_AreNotLookedAheadAt) {
  PutTerminating(8'193);
  const Gang& gang = PutGang("g", 2);
  const int64_t before = cluster_.log_end();
  PlanNow(gang);
  EXPECT_FALSE(future_reservations_.HasReservation(gang));
  EXPECT_LT(cluster_.log_end() - before, 100);
}

// One round suspends charges only within its budget, whichever gangs are tried.
TEST_F(FutureReservationsTest, Round_ManyGangs_SuspendsWithinBudget) {
  PutTerminating(2'000);
  for (int32_t i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat("g", i);
    PutMember(name + "-1", 2'001 + i, name, 1);  // more than the whole node
    backlog_.Add(GangAt(name).id, eligibility_.KeyOf(GangAt(name)));
  }
  const int64_t before = cluster_.log_end();
  planning_.Round(64, &*ctx_);
  EXPECT_GT(cluster_.log_end() - before, 3'000) << "somebody looked ahead";
  EXPECT_LT(cluster_.log_end() - before, 20'000);
}

// A reservation on terminating pods ends when a gang before its owner in order takes the capacity. A reservation on
// running pods stays, whatever the order.
TEST_F(FutureReservationsTest, CapacityTakenByEarlierGang_ReleasesTerminatingReservation) {
  PutTerminating(4);
  const NodeId node = cluster_.FindNode("n");
  const Gang& first = PutGang("a", 2);
  const Gang& on_terminating = PutGang("b", 3);
  const ClassId cls = PodAt("a-1").cls;
  for (const char* name : {"0", "c"}) {  // in order before `on_terminating`, and after it
    SCOPED_TRACE(name);
    const Gang& on_running = PutGang(name, 2);
    future_reservations_.Reserve(on_terminating, {{node, cls, 3}}, kTerminating, kNever, kT0);
    future_reservations_.Reserve(on_running, {{node, cls, 2}}, kRunning, kNever, kT0);
    FutureReservations::Suspended suspended(future_reservations_);
    future_reservations_.Suspend(first, {kNever, FutureReservations::Claimant::Rank::kBlocksQueueFirst}, &suspended);
    ASSERT_EQ(suspended.others.size(), 2);
    future_reservations_.Reserve(first, {{node, cls, 2}}, kTerminating, kNever, kT0);
    future_reservations_.Resume(first, /*placed=*/false, /*keeps_own=*/true, &suspended);
    EXPECT_TRUE(future_reservations_.HasReservation(first));
    EXPECT_FALSE(future_reservations_.HasReservation(on_terminating)) << "4 end, 2 of them are the first one's";
    EXPECT_TRUE(future_reservations_.HasReservationOnRunning(on_running));
    EXPECT_TRUE(future_reservations_.ReservationFits(first));
    EXPECT_TRUE(future_reservations_.ReservationFits(on_running));
    future_reservations_.Release(on_running);
    future_reservations_.Release(first);
  }
}

// The node becomes smaller: of two gangs that wait for terminating pods, the last in order loses its reservation.
TEST_F(FutureReservationsTest, NodeShrinks_LastInOrderLosesReservation) {
  PutTerminating(4);
  const NodeId node = cluster_.FindNode("n");
  const Gang& last = PutGang("b", 2);
  const Gang& first = PutGang("a", 2);
  const ClassId cls = PodAt("a-1").cls;
  future_reservations_.Reserve(last, {{node, cls, 2}}, kTerminating, kNever, kT0);
  future_reservations_.Reserve(first, {{node, cls, 2}}, kTerminating, kNever, kT0);
  NodeDescription smaller = NodeAt("n").facts;
  smaller.allocatable["cpu"] = 3;
  PutNode(smaller);
  future_reservations_.ReleaseBroken(node);
  EXPECT_TRUE(future_reservations_.HasReservation(first));
  EXPECT_FALSE(future_reservations_.HasReservation(last));
}

}  // namespace
}  // namespace muster
