// Deadlines: what is due first, ties by name.
#include "state/reservations/deadlines.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

const std::string kA = "a";
const std::string kB = "b";
const std::string kC = "c";

TEST(Deadlines, NothingIsDueBeforeItsTime) {
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
  deadlines.Set(3, kA, 100);  // and may be given the same again
  EXPECT_EQ(deadlines.TakeDue(101), 3);
}

TEST(Deadlines, ByTimeThenByName) {
  Deadlines deadlines;
  deadlines.Set(0, kC, 50);
  deadlines.Set(1, kB, 70);
  deadlines.Set(2, kA, 50);
  EXPECT_EQ(deadlines.TakeDue(100), 2);
  EXPECT_EQ(deadlines.TakeDue(100), 0);
  EXPECT_EQ(deadlines.TakeDue(100), 1);
  EXPECT_EQ(deadlines.TakeDue(100), std::nullopt);
}

TEST(Deadlines, TheLastOneSetCounts) {
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

TEST(Deadlines, LooksAreTakenOnceAndForgottenWithTheThing) {
  Deadlines deadlines;
  deadlines.Look(1);
  deadlines.Look(2);
  deadlines.Look(1);
  deadlines.Set(1, kA, 10);
  deadlines.Forget(1, kA);
  EXPECT_EQ(deadlines.Next(), kNever);
  std::vector<int32_t> looked;
  const auto look = [&](int32_t id) { looked.push_back(id); };
  deadlines.TakeLooks(look);
  EXPECT_EQ(looked, std::vector<int32_t>{2});
  deadlines.TakeLooks(look);
  EXPECT_EQ(looked, std::vector<int32_t>{2});
}

}  // namespace
}  // namespace muster
