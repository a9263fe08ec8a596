// muster_base: amounts of resources and their names.
#include "state/base/resources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Amounts by id: 0, 1, 2, ... are cpu, memory, ephemeral-storage, pods and the ids after them.
ResourceVector Amounts(const std::vector<int64_t>& amounts) {
  ResourceVector out;
  for (size_t i = 0; i < amounts.size(); ++i) out.Set(static_cast<ResourceId>(i), amounts[i]);
  return out;
}

// Compared with the definition, for all small amounts of two resources: exactly enough fits, an amount of zero or below
// requests nothing, and an amount that is not set is zero.
TEST(ResourceVectorTest, FitCountShortageAndEquality_FollowDefinition) {
  std::vector<ResourceVector> all;
  for (const int64_t first : {-9, -1, 0, 1, 2, 3, 11}) {
    for (const int64_t second : {-9, -1, 0, 1, 2, 3, 11}) {
      ResourceVector& amounts = all.emplace_back();
      if (first != -9) amounts.Set(kMemory, first);
      if (second != -9) amounts.Set(kPods + 1, second);
    }
  }
  for (const ResourceVector& want : all) {
    for (const ResourceVector& free : all) {
      bool equal = true;
      int64_t times = 10;
      ResourceId lacking = -1;
      for (const ResourceId id : {kPods + 1, kMemory}) {
        equal = equal && want.Get(id) == free.Get(id);
        if (want.Get(id) <= 0) continue;
        times = std::clamp<int64_t>(free.Get(id) / want.Get(id), 0, times);
        if (free.Get(id) < want.Get(id)) lacking = id;
      }
      EXPECT_EQ(want == free, equal);
      EXPECT_EQ(want.FirstInsufficient(free), lacking);
      EXPECT_EQ(want.FitsIn(free), lacking < 0);
      EXPECT_EQ(want.CountFitting(free, 10), times);
    }
  }
  EXPECT_EQ(Amounts({1}).CountFitting(Amounts({5}), 0), 0);
  EXPECT_EQ(Amounts({kMaxAmount}).CountFitting(Amounts({kMaxAmount}), 2), 1);
}

TEST(ResourceVectorTest, UnsetAmount_IsZero) {
  ResourceVector vector;
  EXPECT_EQ(vector.Get(0), 0);
  vector.Set(7, 3);
  EXPECT_EQ(vector.Get(7), 3);
  EXPECT_EQ(vector.Get(6), 0);
  EXPECT_EQ(vector.Get(8), 0);
  vector.Set(2, 4);
  vector.Add(0, 5);
  for (ResourceId id = 0; id < 10; ++id) EXPECT_EQ(vector.Get(id), id == 0 ? 5 : id == 2 ? 4 : id == 7 ? 3 : 0) << id;
  vector.Clear();
  EXPECT_EQ(vector, ResourceVector());
}

TEST(ResourceVectorTest, AddTimes_AddsMultiples) {
  ResourceVector sum = Amounts({1, 2});
  sum.AddTimes(Amounts({10}), 3);
  EXPECT_EQ(sum, Amounts({31, 2})) << "a shorter one leaves the rest";
  sum.AddTimes(Amounts({0, 0, 5}), 2);
  EXPECT_EQ(sum, Amounts({31, 2, 10})) << "a longer one makes it grow";
  sum.AddTimes(Amounts({1, 2, 3}), -2);
  EXPECT_EQ(sum, Amounts({29, -2, 4}));
  sum.AddTimes(Amounts({1}), 0);
  EXPECT_EQ(sum, Amounts({29, -2, 4}));
}

// SPEC section 1: sums never wrap.
TEST(ResourceSumTest, LargeSum_NeverWraps) {
  const ResourceVector largest = Amounts({kMaxAmount});
  ResourceSum used;
  for (int i = 0; i < 5000; ++i) used.AddTimes(largest, 1'000'000);
  EXPECT_GT(used.Get(kCpu), 0);
  EXPECT_EQ(ClampToInt64(used.Get(kCpu)), std::numeric_limits<int64_t>::max());
  ResourceSum free;
  free.AddTimes(largest, 1);
  free.AddTimes(used, -1);
  EXPECT_LT(free.Get(kCpu), 0);
  EXPECT_FALSE(largest.FitsIn(free));
}

TEST(ResourceNamesTest, BuiltInNames_AlwaysKnown) {
  ResourceNames names;
  EXPECT_EQ(names.Find("cpu"), kCpu);
  EXPECT_EQ(names.Find("memory"), kMemory);
  EXPECT_EQ(names.Find("ephemeral-storage"), kEphemeralStorage);
  EXPECT_EQ(names.Find("pods"), kPods);
  EXPECT_EQ(names.Name(kPods), "pods");
  EXPECT_EQ(names.Find("nvidia.com/gpu"), -1);
}

// SPEC S-6: a name is known until its last user releases it; its id is reused afterwards.
TEST(ResourceNamesTest, LastRelease_RemovesName) {
  ResourceNames names;
  const size_t built_in = names.size();
  const ResourceVector first = *names.ToVector({{"nvidia.com/gpu", 1}, {"cpu", 2}});
  const ResourceVector second = *names.ToVector({{"nvidia.com/gpu", 3}, {"amd.com/gpu", 0}});
  const ResourceId gpu = names.Find("nvidia.com/gpu");
  EXPECT_GT(gpu, kPods);
  EXPECT_EQ(first.Get(gpu), 1);
  EXPECT_EQ(names.Find("amd.com/gpu"), -1) << "nothing of it is wanted";
  names.Release(first);
  EXPECT_EQ(names.Find("nvidia.com/gpu"), gpu) << "the second still uses it";
  names.Release(second);
  EXPECT_EQ(names.Find("nvidia.com/gpu"), -1);
  EXPECT_EQ(names.Find("cpu"), kCpu);
  EXPECT_EQ(names.size(), built_in);
  const ResourceVector third = *names.ToVector({{"example.com/nic", 1}});
  EXPECT_EQ(names.Find("example.com/nic"), gpu);
  EXPECT_EQ(names.Name(gpu), "example.com/nic");
  EXPECT_EQ(third.Get(gpu), 1);
}

TEST(ResourceNamesTest, OutOfRangeAmount_Refused) {
  ResourceNames names;
  const absl::StatusOr<ResourceVector> largest = names.ToVector({{"cpu", kMaxAmount}, {"memory", 0}});
  ASSERT_TRUE(largest.ok());
  EXPECT_EQ(largest->Get(kCpu), kMaxAmount);
  EXPECT_EQ(kMaxAmount, int64_t{9'007'199'254'740'992});
  for (const int64_t amount : {kMaxAmount + 1, int64_t{-1}}) {
    const absl::Status refused = names.ToVector({{"memory", 1}, {"nvidia.com/gpu", amount}}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << amount;
    EXPECT_NE(refused.message().find("nvidia.com/gpu"), absl::string_view::npos) << refused;
    EXPECT_NE(refused.message().find(absl::StrCat(amount)), absl::string_view::npos) << refused;
  }
}

TEST(ResourceNamesTest, ListAndVector_ConvertBothWays) {
  ResourceNames names;
  const ResourceList list = {{"cpu", 1'500}, {"memory", 7}, {"nvidia.com/gpu", 8}};
  ResourceVector vector = *names.ToVector(list);
  EXPECT_EQ(names.ToList(vector), list);
  vector.Set(kMemory, 0);
  vector.Set(kPods, -2);
  EXPECT_EQ(names.ToList(vector), (ResourceList{{"cpu", 1'500}, {"nvidia.com/gpu", 8}, {"pods", -2}}))
      << "what is zero is left out, what is over-committed is not";
}

TEST(FormatResourcesTest, SeveralResources_SortedByName) {
  EXPECT_EQ(FormatResources({}), "");
  EXPECT_EQ(FormatResources({{"cpu", 2'000}}), "cpu: 2");
  EXPECT_EQ(FormatResources({{"nvidia.com/gpu", 8}, {"cpu", 500}, {"memory", 1'024}}),
            "cpu: 500m, memory: 1Ki, nvidia.com/gpu: 8");
}

}  // namespace
}  // namespace muster
