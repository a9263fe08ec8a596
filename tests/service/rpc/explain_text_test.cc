// SPEC S-5: the text of an explanation, from the view of a gang or pod.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
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

}  // namespace
}  // namespace muster
