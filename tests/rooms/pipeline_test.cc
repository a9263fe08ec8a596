// SPEC P-8: room that ending pods give back is kept for a gang, and what it costs when thousands of pods end at once.
#include "state/starts/pipeline.h"

#include "tests/rooms/fixture.h"

namespace muster {
namespace {

class PipelineTest : public RoomsTest {
 protected:
  // Pods of one cpu each that are being deleted, on one node of as many cpus.
  void PutEnding(int32_t pods) {
    NodeDescription node;
    node.name = "n";
    node.allocatable = {{"cpu", pods}, {"pods", 2 * pods + 10}};
    const NodeId id = PutNode(node);
    for (int32_t i = 0; i < pods; ++i) {
      PodDescription facts = Facts(absl::StrCat("old-", i), 1);
      facts.node_name = "n";
      facts.deleting = true;
      const Pod& pod = Put(facts, /*submitted=*/false, MemberState::kLeaving);
      ledger_.ChargePod(pod.id, id, pod.cls, ChargeKind::kUsed);
      EXPECT_FALSE(pipeline_.Follow(pod, kT0));
    }
  }
  void Gone(const std::string& uid) {
    ledger_.DischargePod(PodAt(uid).id, /*gained=*/true);
    pipeline_.Forget(PodAt(uid));
  }
};

TEST_F(PipelineTest, IsKeptAndPlannedWhenItIsFree) {
  PutEnding(2);
  const Gang& gang = PutGang("g", 2);
  PlanNow(gang);
  ASSERT_TRUE(pipeline_.KeepsFor(gang));
  EXPECT_EQ(NodeAt("n").kept.Get(kCpu), 2);
  EXPECT_EQ(NodeAt("n").free.Get(kCpu), -2);
  EXPECT_FALSE(cluster_.ReservationsExceed(cluster_.FindNode("n"))) << "nothing is reserved";
  EXPECT_EQ(pipeline_.Awaited(gang), std::vector<std::string>{"n"});
  EXPECT_EQ(pipeline_.Deadline(gang), kT0 + Pipeline::kPatienceMs);
  Gone("old-0");
  planning_.Round(64, &*step_);
  EXPECT_EQ(plans_.Of(gang), nullptr) << "a half of it is free";
  EXPECT_TRUE(pipeline_.KeepsFor(gang));
  Gone("old-1");
  planning_.Round(64, &*step_);
  EXPECT_NE(plans_.Of(gang), nullptr);
  EXPECT_FALSE(pipeline_.KeepsFor(gang));
  EXPECT_EQ(NodeAt("n").kept_pods, 0);
  EXPECT_EQ(ReservedOn("n"), 2);
}

TEST_F(PipelineTest, WhoEndsForTooLongIsNotWaitedFor) {
  PutEnding(2);
  const Gang& gang = PutGang("g", 2);
  At(kT0 + Pipeline::kPatienceMs);
  PlanNow(gang);
  EXPECT_FALSE(pipeline_.KeepsFor(gang));
  EXPECT_EQ(UsedOn("n"), 2) << "what was lent is back";
}

// A round is as long as before when a namespace of thousands of pods goes: what it would take to look ahead is not
// spent.
TEST_F(PipelineTest, ThousandsThatEndAtOnceAreNotLookedAheadAt) {
  PutEnding(8'193);
  const Gang& gang = PutGang("g", 2);
  const int64_t before = cluster_.log_end();
  PlanNow(gang);
  EXPECT_FALSE(pipeline_.KeepsFor(gang));
  EXPECT_LT(cluster_.log_end() - before, 100);
}

// One round lends so often as its budget allows, whoever is tried.
TEST_F(PipelineTest, ARoundLendsOnlySoMuch) {
  PutEnding(2'000);
  for (int32_t i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat("g", i);
    PutMember(name + "-1", 2'001 + i, name, 1);  // larger than all of it
    backlog_.Add(GangAt(name).id, eligibility_.KeyOf(GangAt(name)));
  }
  const int64_t before = cluster_.log_end();
  planning_.Round(64, &*step_);
  EXPECT_GT(cluster_.log_end() - before, 3'000) << "somebody looked ahead";
  EXPECT_LT(cluster_.log_end() - before, 20'000);
}

}  // namespace
}  // namespace muster
