// The room muster_records: what is kept over a restart, as the store sees it (SPEC S-2, S-3).
#include "state/records/records.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace muster {
namespace {

class RecordsTest : public testing::Test {
 protected:
  // The record that `write` writes.
  template <typename Write>
  Record Written(Write write) {
    Outcome outcome;
    Step step(0, &outcome);
    write(&step);
    EXPECT_EQ(outcome.records.size(), 1U);
    return outcome.records.at(0);
  }
  static std::vector<std::string> Forgotten(Restored* restored) {
    Outcome outcome;
    Step step(0, &outcome);
    restored->ForgetRest(&step);
    std::vector<std::string> keys;
    for (const Record& record : outcome.records) {
      EXPECT_EQ(record.value, "") << record.key;
      keys.push_back(record.key);
    }
    return keys;
  }
  Record OfGang(const Kept& kept, bool* recorded) {
    Gang gang;
    gang.key = "d/g";
    gang.kept = kept;
    return Written([&](Step* step) { *recorded = WriteGangRecord(gang, step); });
  }
};

TEST_F(RecordsTest, EveryFieldOfAGangComesBack) {
  const std::vector<Kept> all = {
      {.satisfied = true}, {.timed_out = true},    {.held_ms = 123'456'789'012}, {.requeues = 7},
      {.cycle = 2},        {.cycle_valid = false}, {true, true, 5, 6, 7, false},
  };
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    bool recorded = false;
    const Record record = OfGang(all[i], &recorded);
    EXPECT_TRUE(recorded);
    EXPECT_EQ(record.key, "gang/d/g");
    EXPECT_NE(record.value, "");
    Restored restored;
    ASSERT_TRUE(restored.Load({record}).ok());
    EXPECT_EQ(restored.ClaimGang("d/g"), all[i]);
  }
}

TEST_F(RecordsTest, AGangAtItsDefaultsNeedsNone) {
  bool recorded = true;
  const Record record = OfGang(Kept(), &recorded);
  EXPECT_FALSE(recorded);
  EXPECT_EQ(record.key, "gang/d/g");
  EXPECT_EQ(record.value, "") << "what was there is deleted";
}

Pod Bare(const std::string& uid) {
  Pod pod;
  pod.facts.uid = uid;
  return pod;
}

TEST_F(RecordsTest, KeysSayWhatTheyAreOf) {
  EXPECT_EQ(Written([](Step* step) { DeleteGangRecord("d/g", step); }).key, "gang/d/g");
  EXPECT_EQ(Written([](Step* step) { DeleteGangRecord("d/g", step); }).value, "");
  EXPECT_EQ(Written([](Step* step) { WriteCommitRecord(Bare("uid"), "n1", step); }).key, "commit/uid");
  EXPECT_NE(Written([](Step* step) { WriteCommitRecord(Bare("uid"), "n1", step); }).value.find("n1"),
            std::string::npos);
  EXPECT_EQ(Written([](Step* step) { DeleteCommitRecord("uid", step); }).key, "commit/uid");
  EXPECT_EQ(Written([](Step* step) { DeleteCommitRecord("uid", step); }).value, "");
}

// What an earlier process wrote is claimed once; what nobody claimed belongs to nobody.
TEST_F(RecordsTest, ClaimedOnceOrForgotten) {
  bool recorded = false;
  const Record gang = OfGang({.requeues = 3}, &recorded);
  Record other = gang;
  other.key = "gang/d/h";
  Restored restored;
  ASSERT_TRUE(restored
                  .Load({gang, Written([](Step* step) { WriteCommitRecord(Bare("u2"), "n1", step); }), other,
                         Written([](Step* step) { WriteCommitRecord(Bare("u1"), "n1", step); })})
                  .ok());
  EXPECT_EQ(restored.ClaimGang("d/nobody"), std::nullopt);
  EXPECT_EQ(restored.ClaimGang("g"), std::nullopt);
  EXPECT_EQ(restored.ClaimGang("d/g"), (Kept{.requeues = 3}));
  EXPECT_EQ(restored.ClaimGang("d/g"), std::nullopt);
  EXPECT_EQ(Forgotten(&restored), (std::vector<std::string>{"commit/u2", "commit/u1", "gang/d/h"}));
  EXPECT_EQ(Forgotten(&restored), std::vector<std::string>{}) << "once";
  EXPECT_EQ(restored.ClaimGang("d/h"), std::nullopt);
}

TEST_F(RecordsTest, NothingWasKept) {
  Restored restored;
  EXPECT_TRUE(restored.Load({}).ok());
  EXPECT_EQ(restored.ClaimGang("d/g"), std::nullopt);
  EXPECT_EQ(Forgotten(&restored), std::vector<std::string>{});
}

// S-3: what cannot be read is refused and named.
TEST_F(RecordsTest, WhatCannotBeReadIsNamed) {
  const std::vector<Record> bad = {{"queue/x", "1"}, {"gang/d/g", "\xff"}, {"commit/uid", "\xff"},
                                   {"", ""},         {"gangs/d/g", ""},    {"agang/d/g", ""}};
  for (const Record& record : bad) {
    Restored restored;
    const absl::Status refused = restored.Load({record});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << record.key;
    EXPECT_NE(refused.message().find("\"" + record.key + "\""), absl::string_view::npos) << refused;
  }
}

}  // namespace
}  // namespace muster
