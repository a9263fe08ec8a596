// SPEC P-11: the slots of a plan, the pods that have them, and the charges for them.
#include "state/reservations/plans.h"

#include <random>
#include <vector>

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class PlansTest : public RoomsTest {
 protected:
  PlansTest() : m_(AddNode("m", 9)), n_(AddNode("n", 9)) {}
  // A plan with `on_m` slots of the first member's class on m and `on_n` on n.
  const Plan& Make(const Gang& gang, int32_t on_m, int32_t on_n, bool uses_holds = true, int64_t id = 7) {
    Statement statement(&cluster_);
    const ClassId cls = (*gang.in(MemberState::kPending).begin())->cls;
    if (on_m > 0) statement.Allocate(m_, cls, on_m);
    if (on_n > 0) statement.Allocate(n_, cls, on_n);
    plans_.Make(gang, id, kT0, statement.Commit(), {{cls, std::numeric_limits<int32_t>::min(), 1000}}, 3, uses_holds);
    return *plans_.Of(gang);
  }
  // Commits the plan and charges its pods. REQUIRES: a pod in every slot.
  void CommitAll(const Gang& gang) {
    plans_.Commit(gang);
    for (const Slot& slot : std::vector<Slot>(plans_.Of(gang)->slots)) {
      plans_.CommitSlot(*slot.pod);
      ledger_.ChargePod(slot.pod->id, slot.node, slot.cls, ChargeKind::kUsed);
    }
  }
  NodeId m_;
  NodeId n_;
};

TEST_F(PlansTest, Make_FromStatement_TakesOverItsReservations) {
  const Gang& gang = PutGang("g", 3);
  EXPECT_EQ(plans_.Of(gang), nullptr);
  const Plan& plan = Make(gang, 1, 2);
  EXPECT_EQ(plan.id, 7);
  EXPECT_EQ(plan.created_ms, kT0);
  EXPECT_EQ(plan.last_arrival_ms, kT0);
  EXPECT_EQ(plan.activation_base_ms, kT0);
  EXPECT_EQ(plan.next_activation_ms, kT0 + 2'000);
  EXPECT_EQ(plan.lowest_priority, 3);
  EXPECT_EQ(plan.size(), 3);
  EXPECT_FALSE(plan.committed);
  EXPECT_EQ(plans_.promised_holds(), 3);
  EXPECT_EQ(ReservedOn("m"), 1);
  EXPECT_EQ(ReservedOn("n"), 2);
  const Pod& pod = PodAt("g-1");
  EXPECT_EQ(Plans::FindFree(plan, pod, m_), 0);
  EXPECT_EQ(Plans::FindFree(plan, pod, n_), 1);
  EXPECT_EQ(Plans::FindFree(plan, PutLone("larger", 2), m_), -1);
  Take("g-1", "n");
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), 1);
  EXPECT_EQ(plans_.SlotOf(PodAt("g-1"))->node, n_);
  EXPECT_EQ(plans_.SlotOf(PodAt("g-1"))->state, SlotState::kOffered);
  EXPECT_EQ(plans_.SlotOf(PodAt("g-2")), nullptr);
  EXPECT_EQ(Plans::FindFree(plan, pod, n_), 2);
  Take("g-2", "n");
  EXPECT_EQ(Plans::FindFree(plan, pod, n_), -1);
}

// P-11: of the slots that it may take, a pod takes the one with the highest priority. Pods of lower priority can take
// the others.
TEST_F(PlansTest, Offer_HighPriorityPod_LeavesSlotsForLowerPriority) {
  PutGang("g", 1);
  PodDescription cheap = Facts("cheap", 1, "g", 1);
  cheap.priority = 5;
  PodDescription dear = Facts("dear", 1, "g", 1);
  dear.priority = 20;
  Put(cheap);
  Put(dear);
  const Gang& gang = GangAt("g");
  Statement statement(&cluster_);
  const ClassId cls = PodAt("dear").cls;
  statement.Allocate(m_, cls, 2);
  plans_.Make(gang, 7, kT0, statement.Commit(), {{cls, 9, 1}, {cls, 5, 1}}, 3, true);
  plans_.Offer(PodAt("dear"), 1);
  EXPECT_TRUE(plans_.HasSlotFor(PodAt("cheap")));
}

// P-11, P-7: the same beside a search through all slots: of the class and subgroup, free, for a member that exists, and
// of no higher priority than the pod's, the highest, and of these the first.
TEST(FreeSlotsTest, RandomPlans_TakeBestSlotInReach) {
  std::mt19937 random;
  const auto draw = [&](uint32_t below) { return static_cast<int32_t>(random() % below); };
  for (int trial = 0; trial < 300; ++trial) {
    Plan plan;
    for (int32_t i = draw(12); i >= 0; --i) {
      Slot slot{.cls = draw(2), .priority = draw(4), .leaf = draw(2)};
      slot.state = draw(5) == 0 ? SlotState::kOffered : SlotState::kFree;
      slot.is_future = draw(6) == 0;
      plan.slots.push_back(slot);
    }
    std::vector<int32_t> left;
    for (int32_t i = 0; i < plan.size(); ++i) {
      const Slot& slot = plan.slots[static_cast<size_t>(i)];
      if (slot.state == SlotState::kFree && !slot.is_future) left.push_back(i);
    }
    FreeSlots free(plan);
    for (int taken = 0; taken < 20; ++taken) {
      ASSERT_EQ(free.Remaining(), left);
      ASSERT_EQ(free.empty(), left.empty());
      Pod pod;
      pod.cls = draw(3);
      pod.leaf = draw(2);
      pod.facts.priority = draw(5) - 1;
      int32_t best = -1;
      for (const int32_t i : left) {
        const Slot& slot = plan.slots[static_cast<size_t>(i)];
        if (slot.cls != pod.cls || slot.leaf != pod.leaf || slot.priority > pod.facts.priority) continue;
        if (best < 0 || slot.priority > plan.slots[static_cast<size_t>(best)].priority) best = i;
      }
      ASSERT_EQ(free.TakeFor(pod), best);
      std::erase(left, best);
    }
  }
}

TEST_F(PlansTest, HeldSlot_OfferedAgain_StaysHeld) {
  const Gang& gang = PutGang("g", 1);
  const Plan& plan = Make(gang, 1, 0);
  Take("g-1", "m");
  plans_.MarkHeld(PodAt("g-1"));
  EXPECT_EQ(plan.held, 1);
  plans_.Offer(PodAt("g-1"), 0);
  EXPECT_EQ(plan.slots[0].state, SlotState::kHeld);
  plans_.ClearHeld(PodAt("g-1"));
  EXPECT_EQ(plan.held, 0);
  EXPECT_EQ(plan.slots[0].state, SlotState::kOffered);
}

TEST_F(PlansTest, Move_Slot_MovesItsReservation) {
  const Gang& gang = PutGang("g", 1);
  Make(gang, 1, 0);
  const int64_t log = cluster_.log_end();
  plans_.Move(gang, 0, n_);
  EXPECT_EQ(plans_.Of(gang)->slots[0].node, n_);
  EXPECT_EQ(ReservedOn("m"), 0);
  EXPECT_EQ(ReservedOn("n"), 1);
  bool gained = false;
  for (int64_t at = log; at < cluster_.log_end(); ++at) {
    gained = gained || (cluster_.log_at(at).gained && cluster_.log_at(at).node == m_);
  }
  EXPECT_TRUE(gained) << "there is room on m now";
}

TEST_F(PlansTest, Release_UncommittedSlot_BecomesFree) {
  const Gang& gang = PutGang("g", 2);
  const Plan& plan = Make(gang, 2, 0);
  EXPECT_FALSE(plans_.Release(PodAt("g-1"))) << "it has none";
  Take("g-1", "m");
  EXPECT_FALSE(plans_.Release(PodAt("g-1"))) << "the slot is still there";
  EXPECT_EQ(plan.slots[0].state, SlotState::kFree);
  EXPECT_EQ(plan.slots[0].pod, nullptr);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), -1);
  EXPECT_EQ(plans_.promised_holds(), 2);
  EXPECT_EQ(ReservedOn("m"), 2);
}

TEST_F(PlansTest, Release_CommittedSlot_IsRemoved) {
  const Gang& gang = PutGang("g", 3);
  const Plan& plan = Make(gang, 2, 1);
  Take("g-1", "m");
  Take("g-2", "m");
  Take("g-3", "n");
  for (const char* uid : {"g-1", "g-2", "g-3"}) plans_.MarkHeld(PodAt(uid));
  CommitAll(gang);
  EXPECT_TRUE(plan.committed);
  EXPECT_EQ(plan.held, 0);
  EXPECT_EQ(plan.next_activation_ms, kNever);
  EXPECT_EQ(ReservedOn("m"), 0);
  EXPECT_EQ(UsedOn("m"), 2);
  EXPECT_TRUE(plans_.Release(PodAt("g-1")));
  EXPECT_EQ(plan.size(), 2);
  EXPECT_EQ(plans_.promised_holds(), 2);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), -1);
  // The last slot moved to its index.
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-3")), 0);
  EXPECT_EQ(plans_.SlotOf(PodAt("g-3"))->pod, &PodAt("g-3"));
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-2")), 1);
  EXPECT_TRUE(plans_.Release(PodAt("g-2"))) << "the last in the list";
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-3")), 0);
  EXPECT_FALSE(plans_.RemoveIfDone(gang));
  const int32_t holds = plans_.promised_holds();
  plans_.MarkBound(PodAt("g-3"));
  EXPECT_EQ(plans_.promised_holds(), holds - 1) << "no call waits for its binding any more";
  EXPECT_EQ(plan.bound, 1);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-3")), -1);
  EXPECT_TRUE(plans_.RemoveIfDone(gang));
  EXPECT_EQ(plans_.Of(gang), nullptr);
  EXPECT_FALSE(plans_.RemoveIfDone(gang)) << "there is none any more";
  ExpectNothingPromised();
}

TEST_F(PlansTest, Release_SlotBeforeBoundSlot_PlanIsDone) {
  const Gang& gang = PutGang("g", 2);
  const Plan& plan = Make(gang, 2, 0);
  Take("g-1", "m");
  Take("g-2", "m");
  CommitAll(gang);
  plans_.MarkBound(PodAt("g-2"));  // its slot names no pod any more
  EXPECT_TRUE(plans_.Release(PodAt("g-1")));
  EXPECT_EQ(plan.size(), 1);
  EXPECT_TRUE(plans_.RemoveIfDone(gang));
  ExpectNothingPromised();
}

TEST_F(PlansTest, UncommitSlot_BecomesFreeAndReserved) {
  const Gang& gang = PutGang("g", 1);
  const Plan& plan = Make(gang, 1, 0);
  Take("g-1", "m");
  CommitAll(gang);
  ledger_.DischargePod(PodAt("g-1").id, false);
  plans_.UncommitSlot(PodAt("g-1"));
  EXPECT_EQ(plan.slots[0].state, SlotState::kFree);
  EXPECT_EQ(plan.slots[0].pod, nullptr);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), -1);
  EXPECT_EQ(ReservedOn("m"), 1);
  EXPECT_EQ(UsedOn("m"), 0);
  EXPECT_EQ(plans_.promised_holds(), 1);
}

TEST_F(PlansTest, ReleaseUncommitted_KeepsCommittedSlots) {
  const Gang& gang = PutGang("g", 4);
  const Plan& plan = Make(gang, 2, 2);
  Take("g-1", "m");
  Take("g-2", "m");
  Take("g-3", "n");
  for (const char* uid : {"g-1", "g-2", "g-3"}) plans_.MarkHeld(PodAt(uid));
  // Two slots are committed, as during a repair: the first and the third.
  for (const char* uid : {"g-3", "g-1"}) {
    plans_.CommitSlot(PodAt(uid));
    ledger_.ChargePod(PodAt(uid).id, plans_.SlotOf(PodAt(uid))->node, PodAt(uid).cls, ChargeKind::kUsed);
  }
  const std::vector<Slot> open = plans_.ReleaseUncommitted(gang);
  ASSERT_EQ(open.size(), 2U);
  EXPECT_EQ(open[0].pod, &PodAt("g-2"));
  EXPECT_EQ(open[0].state, SlotState::kHeld) << "as it was";
  EXPECT_EQ(open[1].pod, nullptr);
  EXPECT_EQ(plan.held, 0);
  EXPECT_EQ(plan.size(), 2);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), 0);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-2")), -1);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-3")), 1);
  EXPECT_EQ(plans_.promised_holds(), 2);
  EXPECT_EQ(ReservedOn("m"), 0);
  EXPECT_EQ(ReservedOn("n"), 0);
  EXPECT_TRUE(ledger_.promised().empty());
}

TEST_F(PlansTest, ReleaseUncommitted_GainsCapacityThatCommitSlotDoesNot) {
  for (const bool uses_holds : {true, false}) {
    const std::string name = uses_holds ? "g" : "submitted";
    const Gang& gang = PutGang(name, 2);
    Make(gang, 2, 0, uses_holds);
    for (const char* member : {"-2", "-1"}) Take(name + member, "m");
    const int64_t log = cluster_.log_end();
    plans_.CommitSlot(PodAt(name + "-1"));
    for (int64_t at = log; at < cluster_.log_end(); ++at) EXPECT_FALSE(cluster_.log_at(at).gained);
    EXPECT_EQ(plans_.ReleaseUncommitted(gang).size(), 1U);
    EXPECT_TRUE(cluster_.log_at(cluster_.log_end() - 1).gained);
    EXPECT_EQ(plans_.SlotIndex(PodAt(name + "-1")), 0) << "the remaining slot moves up";
    EXPECT_EQ(plans_.promised_holds(), 1) << "one hold for the first gang, none for the submitted one";
  }
}

TEST_F(PlansTest, ReleaseAll_ReturnsSlotsAndRemovesPlan) {
  const Gang& gang = PutGang("g", 2);
  Make(gang, 1, 1, /*uses_holds=*/false);
  Take("g-1", "m");
  Take("g-2", "n");
  const std::vector<Slot> slots = plans_.ReleaseAll(gang);
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[1].pod, &PodAt("g-2"));
  EXPECT_EQ(plans_.Of(gang), nullptr);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-1")), -1);
  EXPECT_EQ(plans_.SlotIndex(PodAt("g-2")), -1);
}

TEST_F(PlansTest, PeersOf_ReturnsGangsWithSamePlanId) {
  const Gang& a = PutGang("a", 1);
  const Gang& b = PutGang("b", 1);
  const Gang& c = PutGang("c", 1);
  const Gang& e = PutGang("e", 1);
  Make(a, 1, 0, true, 7);
  Make(b, 1, 0, true, 7);
  Make(c, 1, 0, true, 8);
  EXPECT_EQ(plans_.PeersOf(a), Group{&a});
  plans_.SetPeers(a, {"d/b", "d/c", "d/e", "d/gone"});
  EXPECT_EQ(plans_.PeersOf(a), (Group{&a, &b})) << "neither another plan, nor none, nor a gang that is gone";
  EXPECT_EQ(plans_.Of(e), nullptr);
}

// K-7: activations are due 2, 4 and 8 s after the plan was made, then no more.
TEST_F(PlansTest, ScheduleActivation_IsDueAfter2And4And8Seconds) {
  const Gang& gang = PutGang("g", 1);
  const Plan& plan = Make(gang, 1, 0);
  const auto next = [&](int64_t after_ms) {
    plans_.ScheduleActivation(gang, kT0 + after_ms);
    return plan.next_activation_ms == kNever ? kNever : plan.next_activation_ms - kT0;
  };
  EXPECT_EQ(next(1'999), 2'000);
  EXPECT_EQ(next(2'000), 4'000);
  EXPECT_EQ(next(4'000), 8'000);
  EXPECT_EQ(next(7'999), 8'000);
  EXPECT_EQ(next(8'000), kNever);
  plans_.ScheduleReactivation(gang, kT0 + 9'000);
  EXPECT_EQ(plan.reactivate_ms, kT0 + 9'250);
  plans_.ScheduleReactivation(gang, kT0 + 9'100);
  EXPECT_EQ(plan.reactivate_ms, kT0 + 9'250) << "the first one counts";
  for (const int64_t delay_ms : {500, 1'000, 2'000, 4'000, 8'000, 8'000}) {
    plans_.OnReactivated(gang);
    EXPECT_EQ(plan.reactivate_ms, kNever);
    plans_.ScheduleReactivation(gang, kT0);
    EXPECT_EQ(plan.reactivate_ms, kT0 + delay_ms) << "later each time (K-6)";
  }
  plans_.RestartActivations(gang, kT0 + 10'000, kT0 + 10'100);
  EXPECT_EQ(plan.next_activation_ms, kT0 + 10'100);
  EXPECT_EQ(next(10'100), 12'000);
  plans_.OnArrival(gang, kT0 + 5);
  EXPECT_EQ(plan.last_arrival_ms, kT0 + 5);
  EXPECT_EQ(plans_.CountMissingOffer(gang), 1);
  EXPECT_EQ(plans_.CountMissingOffer(gang), 2);
}

}  // namespace
}  // namespace muster
