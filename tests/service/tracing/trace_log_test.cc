// The log of the most recent spans and its queries (SPEC S-4).
#include "service/tracing/trace_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/service/tracing/some_span.h"

namespace muster {
namespace {

TEST(TraceLogTest, TooManySpans_OldestAreDropped) {
  TraceLog log(5, nullptr);
  for (int i = 1; i <= 4; ++i) log.OnSpansEnded({SpanOf("d/a", i)});
  EXPECT_EQ(log.Of("d/a").spans.size(), 4U);
  EXPECT_EQ(log.Of("d/a").retained_since_us, 0) << "everything";
  log.OnSpansEnded({SpanOf("d/b", 5), SpanOf("d/b", 6), SpanOf("d/b", 7)});
  EXPECT_EQ(log.Of("d/a").spans.size(), 2U);
  EXPECT_EQ(log.Of("d/a").spans.front()->begun_us, 3);
  EXPECT_EQ(log.Of("d/a").retained_since_us, 2);
  for (int i = 0; i < 100; ++i) log.OnSpansEnded({SpanOf("", 10 + i)});
  EXPECT_EQ(log.Of("").spans.size(), 1U) << "pods of no gang push out their own kind only";
  EXPECT_EQ(log.Of("d/b").spans.size(), 3U);
  const auto gangs = log.Gangs(10);
  ASSERT_EQ(gangs.size(), 2U);
  EXPECT_EQ(gangs[0].gang, "d/b");
  EXPECT_EQ(gangs[0].spans, 3);
  EXPECT_EQ(log.Gangs(1).size(), 1U);
  EXPECT_EQ(log.Gangs(1)[0].spans, 3);
  EXPECT_EQ(log.ended(), 107);
  TraceLog none(0, nullptr);
  none.OnSpansEnded({SpanOf("d/a", 1)});
  EXPECT_TRUE(none.Of("d/a").spans.empty());
}

TEST(TraceLogTest, ManySpans_ReturnsMostRecent) {
  TraceLog log(10'000, nullptr);
  for (int i = 1; i <= 3'000; ++i) log.OnSpansEnded({SpanOf("d/a", i)});
  const TraceLog::Page page = log.Of("d/a");
  ASSERT_EQ(page.spans.size(), TraceLog::kMaxPageSpans);
  EXPECT_EQ(page.spans.front()->begun_us, 1'001);
  EXPECT_EQ(page.spans.back()->begun_us, 3'000);
  EXPECT_EQ(page.retained_since_us, 1'000);
}

TEST(TraceLogTest, Query_ReturnsSpansInOrderAndByPod) {
  TraceLog log(100, nullptr);
  log.OnSpansEnded({SpanOf("", 5, "d/x"), SpanOf("", 3, "d/y"), SpanOf("", 4, "d/x")});
  const TraceLog::Page page = log.Of("", "d/x");
  ASSERT_EQ(page.spans.size(), 2U);
  EXPECT_EQ(page.spans[0]->begun_us, 4);
  log.OnSpansEnded({SpanOf("d/g", 6, "d/x"), SpanOf("d/g", 7, "d/z")});
  EXPECT_EQ(log.Of("d/g", "d/x").spans.size(), 1U);
  EXPECT_EQ(log.Of("", "d/x").spans.size(), 3U) << "whether it was in a gang or not";
  EXPECT_EQ(log.Of("").spans.size(), 3U);
  EXPECT_EQ(log.Gangs(10).size(), 1U);
  TraceLog pods(100, nullptr);
  pods.OnSpansEnded({SpanOf("", 1)});
  EXPECT_TRUE(pods.Gangs(10).empty()) << "pods of no gang are none";
  const auto json = nlohmann::json::parse(TraceJson("", page));
  EXPECT_EQ(json["spans"][1]["beginUnixUs"], 5);
  EXPECT_EQ(json["spans"][1]["pod"], "d/x");
}

}  // namespace
}  // namespace muster
