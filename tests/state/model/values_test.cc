#include <gtest/gtest.h>

#include <limits>

#include "state/base/quantity.h"
#include "state/base/resources.h"
#include "state/base/text.h"
#include "state/model/ids.h"
#include "state/model/pod_template.h"

namespace muster {
namespace {

struct QuantityCase {
  const char* text;
  QuantityUnit unit;
  int64_t value;  // -1: refused
};

class QuantityTest : public testing::TestWithParam<QuantityCase> {};

// SPEC section 1: parses the Kubernetes quantity grammar into exact integers, rounded up; overflow is refused, never
// wrapped.
TEST_P(QuantityTest, Parse_MatchesKubernetes) {
  const auto& [text, unit, value] = GetParam();
  const absl::StatusOr<int64_t> parsed = ParseQuantity(text, unit);
  if (value < 0) {
    EXPECT_FALSE(parsed.ok()) << text << " gave " << *parsed;
    return;
  }
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, value) << text;
}

// Offered amounts are rounded down. ParseQuantityCapped returns the largest int64 for an amount that does not fit.
TEST(Quantity, Parse_RoundsDownAndCaps) {
  const auto down = [](const char* text, QuantityUnit unit) { return *ParseQuantity(text, unit, Rounding::kDown); };
  EXPECT_EQ(down("1500m", QuantityUnit::kWhole), 1);
  EXPECT_EQ(down("1999999999n", QuantityUnit::kWhole), 1);
  EXPECT_EQ(down("1e-900", QuantityUnit::kWhole), 0);
  EXPECT_EQ(down("0.7Ki", QuantityUnit::kWhole), 716);
  EXPECT_EQ(down("1500m", QuantityUnit::kMilli), 1'500);
  const auto capped = [](const char* text) { return ParseQuantityCapped(text, QuantityUnit::kMilli); };
  EXPECT_EQ(*capped("1.5"), 1'500);
  EXPECT_EQ(*capped("0.1m"), 1);
  EXPECT_EQ(*capped("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*capped("1e900"), std::numeric_limits<int64_t>::max());
  EXPECT_FALSE(capped("lots").ok());
  EXPECT_FALSE(capped("-1").ok());
}

constexpr QuantityUnit kM = QuantityUnit::kMilli;
constexpr QuantityUnit kW = QuantityUnit::kWhole;
INSTANTIATE_TEST_SUITE_P(Table, QuantityTest,
                         testing::ValuesIn(std::vector<QuantityCase>{
                             {"2", kM, 2000},
                             {"1500m", kM, 1500},
                             {"0.1", kM, 100},
                             {"1.5", kM, 1500},
                             {"100u", kM, 1},
                             {"1n", kM, 1},
                             {"0", kM, 0},
                             {"-0", kM, 0},
                             {"+3", kM, 3000},
                             {"1Ki", kW, 1024},
                             {"1.5Gi", kW, 1610612736},
                             {"1k", kW, 1000},
                             {"2e3", kW, 2000},
                             {"2E3", kW, 2000},
                             {"1E", kW, 1000000000000000000},
                             {"5.", kW, 5},
                             {".5", kM, 500},
                             {"1m", kW, 1},
                             {"1e-3", kM, 1},
                             {"7Ei", kW, 8070450532247928832},
                             {"8Ei", kW, -1},
                             {"10E", kW, -1},
                             {"9223372036854775808", kW, -1},
                             {"", kW, -1},
                             {"-1", kW, -1},
                             {"1x", kW, -1},
                             {"1 Gi", kW, -1},
                             {"Gi", kW, -1},
                             {"1e99", kW, -1},
                             {"0x10", kW, -1},
                             {"1..2", kW, -1},
                             {"99999999999999999999999999999999999999999999", kW, -1},
                         }));

TEST(Quantity, Format_UsesReadableUnit) {
  EXPECT_EQ(FormatQuantity("cpu", 1500), "1500m");
  EXPECT_EQ(FormatQuantity("cpu", 2000), "2");
  EXPECT_EQ(FormatQuantity("memory", int64_t{4} << 30), "4Gi");
  EXPECT_EQ(FormatQuantity("nvidia.com/gpu", 8), "8");
}

TEST(ResourceVector, PodOnNode_FitsAndCounts) {
  ResourceNames names;
  const ResourceVector pod = *names.ToVector({{"cpu", 500}, {"nvidia.com/gpu", 1}});
  const ResourceVector node = *names.ToVector({{"cpu", 1600}, {"nvidia.com/gpu", 8}, {"memory", 100}});
  EXPECT_TRUE(pod.FitsIn(node));
  EXPECT_EQ(pod.CountFitting(node, 100), 3);
  EXPECT_EQ(pod.CountFitting(node, 2), 2);
  EXPECT_FALSE(node.FitsIn(pod));
  EXPECT_EQ(names.Name(node.FirstInsufficient(pod)), "cpu");
  EXPECT_FALSE(names.ToVector({{"cpu", kMaxAmount + 1}}).ok());
}

TEST(ResourceNames, Release_FreesNames) {
  ResourceNames names;
  const size_t before = names.size();
  for (int round = 0; round < 3; ++round) {
    std::vector<ResourceVector> used;
    for (int i = 0; i < 1000; ++i) used.push_back(*names.ToVector({{"r" + std::to_string(i), 1}, {"cpu", 1}}));
    EXPECT_EQ(names.size(), before + 1000);
    EXPECT_LT(names.Find("r999"), 1004) << "ids are used again";
    for (const ResourceVector& vector : used) names.Release(vector);
    EXPECT_EQ(names.size(), before);
    EXPECT_EQ(names.Find("r7"), -1);
    EXPECT_EQ(names.Find("cpu"), kCpu) << "predefined names are never released";
  }
}

// SPEC section 1: sums never wrap.
TEST(ResourceSum, LargeSum_NeverWraps) {
  ResourceVector largest;
  largest.Set(kMemory, kMaxAmount);
  ResourceSum used;
  for (int i = 0; i < 5000; ++i) used.AddTimes(largest, 1'000'000);
  EXPECT_GT(used.Get(kMemory), 0);
  EXPECT_EQ(ClampToInt64(used.Get(kMemory)), std::numeric_limits<int64_t>::max());
  ResourceSum free;
  free.AddTimes(largest, 1);
  free.AddTimes(used, -1);
  EXPECT_LT(free.Get(kMemory), 0);
  EXPECT_FALSE(largest.FitsIn(free));
}

// SPEC P-3: every operator of required node affinity.
TEST(NodeAffinity, EachOperator_MatchesAsDefined) {
  const Labels labels = {{"zone", "a"}, {"gen", "7"}};
  const auto matches = [&](const char* key, SelectorOperator op, std::vector<std::string> values) {
    return Matches(NodeSelectorTerm{{{key, op, std::move(values)}}, {}}, "n1", labels);
  };
  EXPECT_TRUE(matches("zone", SelectorOperator::kIn, {"b", "a"}));
  EXPECT_FALSE(matches("zone", SelectorOperator::kIn, {"b"}));
  EXPECT_TRUE(matches("zone", SelectorOperator::kNotIn, {"b"}));
  EXPECT_TRUE(matches("absent", SelectorOperator::kNotIn, {"b"}));
  EXPECT_FALSE(matches("zone", SelectorOperator::kNotIn, {"a"}));
  EXPECT_TRUE(matches("zone", SelectorOperator::kExists, {}));
  EXPECT_FALSE(matches("absent", SelectorOperator::kExists, {}));
  EXPECT_TRUE(matches("absent", SelectorOperator::kDoesNotExist, {}));
  EXPECT_TRUE(matches("gen", SelectorOperator::kGt, {"6"}));
  EXPECT_FALSE(matches("gen", SelectorOperator::kGt, {"7"}));
  EXPECT_TRUE(matches("gen", SelectorOperator::kLt, {"8"}));
  EXPECT_FALSE(matches("zone", SelectorOperator::kLt, {"8"}));
  EXPECT_FALSE(Matches(NodeSelectorTerm{}, "n1", labels)) << "an empty term matches nothing";
  EXPECT_TRUE(Matches(NodeSelectorTerm{{}, {{"metadata.name", SelectorOperator::kIn, {"n1"}}}}, "n1", labels));
}

TEST(Taints, FirstUntolerated_AppliesTolerations) {
  const std::vector<Taint> taints = {{"soft", "", TaintEffect::kPreferNoSchedule},
                                     {"gpu", "yes", TaintEffect::kNoSchedule}};
  EXPECT_EQ(FirstUntolerated(taints, {})->key, "gpu");
  EXPECT_EQ(FirstUntolerated(taints, {{"gpu", false, "yes", {}}}), nullptr);
  EXPECT_NE(FirstUntolerated(taints, {{"gpu", false, "no", {}}}), nullptr);
  EXPECT_EQ(FirstUntolerated(taints, {{"gpu", true, "", TaintEffect::kNoSchedule}}), nullptr);
  EXPECT_NE(FirstUntolerated(taints, {{"gpu", true, "", TaintEffect::kNoExecute}}), nullptr);
  EXPECT_EQ(FirstUntolerated(taints, {{"", true, "", {}}}), nullptr);
}

TEST(HostPorts, SamePort_ConflictsByProtocolAndAddress) {
  const HostPort any{Protocol::kTcp, 80, "0.0.0.0"};
  EXPECT_TRUE(Conflicts(any, {Protocol::kTcp, 80, "10.0.0.1"}));
  EXPECT_FALSE(Conflicts(any, {Protocol::kUdp, 80, "10.0.0.1"}));
  EXPECT_FALSE(Conflicts({Protocol::kTcp, 80, "10.0.0.2"}, {Protocol::kTcp, 80, "10.0.0.1"}));
}

// SPEC G-9: priority, requeues, creation, name; K-13: partially bound gangs before all others. A total order.
TEST(QueueOrder, Order_MatchesG9) {
  const QueueKey partial{true, 0, 5, 99, "z/z"};
  const QueueKey high{false, 9, 3, 99, "z/z"};
  const QueueKey fresh{false, 1, 0, 50, "a/b"};
  const QueueKey older{false, 1, 0, 40, "z/a"};
  const QueueKey requeued{false, 1, 1, 1, "a/a"};
  const QueueKey later_name{false, 1, 0, 50, "a/c"};
  const std::vector<QueueKey> order = {partial, high, older, fresh, later_name, requeued};
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < order.size(); ++j) EXPECT_EQ(order[i] < order[j], i < j) << i << " " << j;
  }
}

// S-6: a message cuts foreign text between characters.
TEST(Text, Beginning_NeverCutsCharacter) {
  EXPECT_EQ(Beginning("abc", 3), "abc");
  EXPECT_EQ(Beginning("abc", 2), "ab");
  EXPECT_EQ(Beginning("a\u00e4", 2), "a");
  EXPECT_EQ(Beginning("a\u00e4b", 3), "a\u00e4");
  EXPECT_EQ(Beginning("\U0001F600", 3), "");
}

}  // namespace
}  // namespace muster
