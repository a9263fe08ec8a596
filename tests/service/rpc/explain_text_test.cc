// SPEC S-5: the text of an explanation, from the view of a gang or pod.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "service/rpc/mapping.h"

namespace muster {
namespace {

constexpr int64_t kNow = 1'000'000'000;

GangView Waiting(ReasonCode code, const std::string& text) {
  GangView view;
  view.key = "d/g";
  view.reason = {code, text};
  view.reason_since_ms = kNow - 5'000;
  return view;
}

TEST(ExplainTextTest, Backoff_SaysWhenItEnds) {
  GangView view = Waiting(ReasonCode::kBackoff, "requeued 1 time, waiting before the next try");
  view.backoff_until_ms = kNow + 1'500;
  const std::string text = ExplainText(view, kNow);
  EXPECT_TRUE(absl::EndsWith(text, "before the next try [Backoff]. Its back-off ends in 1.5 s.")) << text;
  EXPECT_FALSE(absl::StrContains(ExplainText(view, view.backoff_until_ms), "ends in"));
  PodView pod;
  pod.in_gang = true;
  pod.gang = view;
  EXPECT_TRUE(absl::StrContains(ExplainText(pod, kNow), "Its back-off ends in 1.5 s.")) << ExplainText(pod, kNow);
}

// From two days on, an age has days and hours.
TEST(ExplainTextTest, Age_UsesDaysFromTwoDays) {
  constexpr int64_t kHourMs = 3'600'000;
  const std::pair<int64_t, const char*> cases[] = {
      {0, "1s"},
      {61'000, "1m1s"},
      {48 * kHourMs - 1'000, "47h59m59s"},
      {48 * kHourMs, "2d"},
      {7'930 * kHourMs + 26 * 60'000 + 26'000, "330d10h"},
  };
  for (const auto& [age_ms, text] : cases) {
    GangView view = Waiting(ReasonCode::kNoRoom, "there are no nodes");
    constexpr int64_t kLater = int64_t{1} << 40;
    view.reason_since_ms = kLater - age_ms;
    EXPECT_EQ(ExplainText(view, kLater),
              absl::StrCat("Gang d/g (Pending): waits since ", text, ": there are no nodes [NoRoom]."));
  }
}

TEST(ExplainTextTest, Figures_OneIsSingular) {
  GangView view = Waiting(ReasonCode::kSatisfied, "the minimum is placed");
  view.rules.min_member = 1;
  view.bound = 1;
  view.waits = WaitingMembers{1, "g-1", {ReasonCode::kNoRoom, "there are no nodes"}};
  EXPECT_EQ(ExplainText(view, kNow),
            "Gang d/g (Pending): the minimum is placed: 1 member has a node, the minimum is 1; since 5s. Member g-1 "
            "waits: there are no nodes [NoRoom].");
  view.bound = 2;
  view.waits->count = 2;
  view.waits->reason = {};
  EXPECT_EQ(ExplainText(view, kNow),
            "Gang d/g (Pending): the minimum is placed: 2 members have a node, the minimum is 1; since 5s. 2 members "
            "wait, the first is g-1: some node can take it, its scheduler has not placed it yet.");
}

// A reason that has the figures is not followed by them again.
TEST(ExplainTextTest, PlacedOnce_FiguresAreNotRepeated) {
  GangView view = Waiting(ReasonCode::kSatisfied, "the minimum was placed once; 2 of 3 members have a node now");
  view.rules.min_member = 3;
  view.bound = 2;
  EXPECT_EQ(ExplainText(view, kNow),
            "Gang d/g (Pending): the minimum was placed once; 2 of 3 members have a node now; since 5s.");
}

TEST(ExplainTextTest, NodesThatAreGone_AreNamed) {
  GangView view = Waiting(ReasonCode::kSatisfied, "the minimum is placed");
  for (const char* node : {"n-1", "n-1", "n-2", "n-3", "n-4"}) {
    MemberView& member = view.members.emplace_back();
    member.node = node;
    member.node_gone = true;
  }
  EXPECT_TRUE(
      absl::EndsWith(ExplainText(view, kNow), " 5 members are on nodes that are gone: n-1, n-2, n-3 and 1 more."))
      << ExplainText(view, kNow);
  view.members.resize(1);
  EXPECT_TRUE(absl::EndsWith(ExplainText(view, kNow), " 1 member is on nodes that are gone: n-1."));
  PodView pod;
  pod.name_space = "d";
  pod.pod = view.members[0];
  EXPECT_TRUE(absl::EndsWith(ExplainText(pod, kNow), "is on node n-1, which is gone.")) << ExplainText(pod, kNow);
}

}  // namespace
}  // namespace muster
