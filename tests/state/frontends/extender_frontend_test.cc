// SPEC K-6, K-9: answers to kube-scheduler that depend on settings or on what only an extender call says. Scenarios
// have the others.
#include "state/frontends/extender_frontend.h"

#include "tests/state/frontends/frontends_fixture.h"

namespace muster {
namespace {

// The sample size of kube-scheduler: all nodes of a cluster below 100 nodes, then a decreasing share, at least 100
// nodes.
struct Sample {
  int32_t nodes;
  int32_t percentage;
  int32_t size;
};
class SampleSize : public FrontendsTest, public testing::WithParamInterface<Sample> {};

TEST_P(SampleSize, OfferBelowSampleSize_ProvesRefusal) {
  SlotFilter slots({&cluster_, &index_, &gangs_, &plans_, &domains_, &pod_lifecycle_, &plan_lifecycle_},
                   {kLearnedMs, GetParam().percentage});
  AddNode("n", 1);
  for (int32_t i = 1; i < GetParam().nodes; ++i) AddNode(absl::StrCat("full-", i), 0);
  PutGang("g", 1);
  PlanNow(GangAt("g"));
  At(kT0 + 10'000);
  std::vector<std::string> offered;
  for (int32_t i = 0; i < GetParam().size; ++i) offered.push_back(absl::StrCat("other-", i));
  static_cast<void>(slots.FilterPlanned(PodAt("g-1"), NodeOffer(offered), &*ctx_));
  EXPECT_EQ(plans_.Of(GangAt("g"))->missing_offers, 0) << "it may have stopped looking";
  offered.pop_back();
  static_cast<void>(slots.FilterPlanned(PodAt("g-1"), NodeOffer(offered), &*ctx_));
  EXPECT_EQ(plans_.Of(GangAt("g"))->missing_offers, 1);
}

INSTANTIATE_TEST_SUITE_P(Clusters, SampleSize,
                         testing::Values(Sample{50, 0, 50}, Sample{50, 30, 50}, Sample{99, 0, 99}, Sample{100, 0, 100},
                                         Sample{300, 0, 144}, Sample{300, 50, 150}, Sample{300, 99, 297},
                                         Sample{300, 100, 300}, Sample{300, 200, 300}, Sample{300, 10, 100},
                                         Sample{1'000, 0, 420}, Sample{6'000, 0, 300}));

// K-7: a pod that got a node is not activated as one that was refused.
TEST_F(FrontendsTest, Filter_PlannedMember_IsNotUnschedulable) {
  AddNode("n", 1);
  PlanNow(PutGang("g", 1));
  activations_.MarkUnschedulable(PodAt("g-1"));
  const FilterReply reply =
      extender_frontend_.OnFilter({"g-1", std::make_shared<NodeOffer>(std::vector<std::string>{"n"})}, &*ctx_);
  EXPECT_EQ(reply.node, "n");
  EXPECT_FALSE(activations_.Of(PodAt("g-1")).unschedulable);
}

// K-9: if no node passes kube-scheduler's built-in filters, no filter call comes before.
TEST_F(FrontendsTest, Preempt_UnknownMemberOfGang_IsRefused) {
  PutLone("lone", 1);
  const auto ask = [&](const char* uid) {
    return extender_frontend_.OnPreempt({uid, {{"n", {"x"}}}, /*names_gang=*/true}, &*ctx_).nodes;
  };
  EXPECT_EQ(ask("absent"), Lines());
  EXPECT_EQ(ask("lone"), Lines());
  PutGang("g", 1);
  gangs_.SetSatisfied(GangAt("g"), true);
  EXPECT_EQ(ask("g-1"), Lines{"n"});
}

}  // namespace
}  // namespace muster
