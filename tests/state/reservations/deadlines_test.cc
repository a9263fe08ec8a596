// Deadlines: items ordered by due time; equal times are ordered by name.
#include "state/reservations/deadlines.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

const std::string kA = "a";
const std::string kB = "b";
const std::string kC = "c";

TEST(Deadlines, TakeDue_ReturnsItemOnceAtItsTime) {
  Deadlines deadlines;
  EXPECT_EQ(deadlines.Next(), kNever);
  EXPECT_EQ(deadlines.Of(3), kNever);
  EXPECT_EQ(deadlines.TakeDue(kNever - 1), std::nullopt);
  deadlines.Set(3, kA, 100);
  EXPECT_EQ(deadlines.Next(), 100);
  EXPECT_EQ(deadlines.Of(3), 100);
  EXPECT_EQ(deadlines.TakeDue(99), std::nullopt);
  EXPECT_EQ(deadlines.TakeDue(100), 3);
  EXPECT_EQ(deadlines.Of(3), kNever) << "what was taken has no deadline any more";
  EXPECT_EQ(deadlines.Next(), kNever);
  deadlines.Set(3, kA, 100);  // the same deadline may be set again
  EXPECT_EQ(deadlines.TakeDue(101), 3);
}

TEST(Deadlines, TakeDue_SeveralDue_OrdersByTimeThenName) {
  Deadlines deadlines;
  deadlines.Set(0, kC, 50);
  deadlines.Set(1, kB, 70);
  deadlines.Set(2, kA, 50);
  EXPECT_EQ(deadlines.TakeDue(100), 2);
  EXPECT_EQ(deadlines.TakeDue(100), 0);
  EXPECT_EQ(deadlines.TakeDue(100), 1);
  EXPECT_EQ(deadlines.TakeDue(100), std::nullopt);
}

TEST(Deadlines, Set_Repeated_LastValueCounts) {
  Deadlines deadlines;
  deadlines.Set(0, kA, 50);
  deadlines.Set(0, kA, 50);
  deadlines.Set(0, kA, 80);
  EXPECT_EQ(deadlines.TakeDue(79), std::nullopt);
  EXPECT_EQ(deadlines.Next(), 80);
  deadlines.Set(0, kA, kNever);
  EXPECT_EQ(deadlines.Next(), kNever);
  EXPECT_EQ(deadlines.TakeDue(1'000), std::nullopt);
}

TEST(Deadlines, DrainDirty_VisitsEachOnceAndSkipsRemoved) {
  Deadlines deadlines;
  deadlines.MarkDirty(1);
  deadlines.MarkDirty(2);
  deadlines.MarkDirty(1);
  deadlines.Set(1, kA, 10);
  deadlines.Remove(1, kA);
  EXPECT_EQ(deadlines.Next(), kNever);
  std::vector<int32_t> drained;
  const auto visit = [&](int32_t id) { drained.push_back(id); };
  deadlines.DrainDirty(visit);
  EXPECT_EQ(drained, std::vector<int32_t>{2});
  deadlines.DrainDirty(visit);
  EXPECT_EQ(drained, std::vector<int32_t>{2});
}

}  // namespace
}  // namespace muster
