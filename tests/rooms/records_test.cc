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
  static std::vector<std::string> Forgotten(Restored* restored, const std::vector<std::string>& taken = {}) {
    Outcome outcome;
    Step step(0, &outcome);
    restored->ForgetRest(taken, &step);
    std::vector<std::string> names;
    for (const Record& record : outcome.records) {
      EXPECT_EQ(record.value, "") << RecordName(record);
      names.push_back(RecordName(record));
    }
    return names;
  }
  Record OfGang(const Kept& kept, bool recorded = true) {
    Gang gang;
    gang.key = "d/g";
    gang.kept = kept;
    gang.recorded = recorded;
    return Written([&](Step* step) { EXPECT_EQ(WriteGangRecord(gang, step), !(kept == Kept())); });
  }
  Record OfPod(const Commitment& commitment) {
    return Written([&](Step* step) { WriteCommitRecord(commitment, step); });
  }
};

TEST_F(RecordsTest, EveryFieldOfAGangComesBack) {
  const std::vector<Kept> all = {
      {.satisfied = true},
      {.timed_out = true},
      {.held_ms = 123'456'789'012},
      {.requeues = 7},
      {.cycle = 2},
      {.cycle_valid = false},
      {true, true, 5, 6, 7, false, "uid-of-it"},
  };
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    const Record record = OfGang(all[i]);
    EXPECT_EQ(RecordName(record), "gang/d/g");
    EXPECT_EQ(record.incarnation, all[i].incarnation);
    EXPECT_NE(record.value, "");
    Restored restored;
    ASSERT_TRUE(restored.Load({record}).ok());
    EXPECT_FALSE(restored.empty());
    EXPECT_EQ(restored.ClaimGang("d/g"), all[i]);
  }
}

TEST_F(RecordsTest, AGangAtItsDefaultsNeedsNone) {
  EXPECT_EQ(RecordName(OfGang(Kept())), "gang/d/g");
  EXPECT_EQ(OfGang(Kept()).value, "") << "what was there is deleted";
  Gang gang;
  gang.kept.incarnation = "uid";
  Outcome outcome;
  Step step(0, &outcome);
  EXPECT_FALSE(WriteGangRecord(gang, &step));
  EXPECT_TRUE(outcome.records.empty()) << "nothing was there";
}

TEST_F(RecordsTest, EveryFieldOfACommitmentComesBack) {
  const Record record = OfPod({"uid", "n1", "d/g", 7, true, 300'000});
  EXPECT_EQ(RecordName(record), "commit/uid");
  Restored restored;
  ASSERT_TRUE(restored.Load({record}).ok());
  ASSERT_EQ(restored.commitments().size(), 1U);
  const Commitment& back = restored.commitments().front();
  EXPECT_EQ(back.uid, "uid");
  EXPECT_EQ(back.node, "n1");
  EXPECT_EQ(back.gang, "d/g");
  EXPECT_EQ(back.start, 7);
  EXPECT_TRUE(back.permitted);
  EXPECT_EQ(back.bind_within_ms, 300'000);
}

// The head of a start names its gangs, pods, nodes and the deadline (K-13).
TEST_F(RecordsTest, EveryFieldOfAStartComesBack) {
  const Start start{41, {"d/a", "d/b"}, {{"u1", "n1", 0}, {"u2", "n2", 1}}, 12'345};
  const Record record = Written([&](Step* step) { WriteStartRecord(start, step); });
  EXPECT_EQ(RecordName(record), "start/41");
  Restored restored;
  ASSERT_TRUE(restored.Load({record}).ok());
  ASSERT_TRUE(restored.starts().contains(41));
  const Start& back = restored.starts().at(41);
  EXPECT_EQ(back.plan, 41);
  EXPECT_EQ(back.gangs, start.gangs);
  ASSERT_EQ(back.places.size(), 2U);
  EXPECT_EQ(back.places[1].uid, "u2");
  EXPECT_EQ(back.places[1].node, "n2");
  EXPECT_EQ(back.places[1].gang, 1);
  EXPECT_EQ(back.deadline_ms, 12'345);
}

TEST_F(RecordsTest, WhatIsDeletedIsNamed) {
  EXPECT_EQ(RecordName(Written([](Step* step) { DeleteGangRecord("d/g", step); })), "gang/d/g");
  EXPECT_EQ(RecordName(Written([](Step* step) { DeleteCommitRecord("uid", step); })), "commit/uid");
  EXPECT_EQ(RecordName(Written([](Step* step) { DeleteStartRecord(9, step); })), "start/9");
  EXPECT_EQ(Written([](Step* step) { DeleteStartRecord(9, step); }).value, "");
}

// A number that was given is not given again.
TEST_F(RecordsTest, NumbersOfPlansGoOn) {
  const Record record = Written([](Step* step) { WritePlansRecord(1'001, step); });
  EXPECT_EQ(RecordName(record), "plans/");
  Restored restored;
  EXPECT_EQ(restored.next_plan(), 1);
  ASSERT_TRUE(restored.Load({record}).ok());
  EXPECT_EQ(restored.next_plan(), 1'001);
  EXPECT_EQ(Forgotten(&restored), std::vector<std::string>{}) << "it is nobody's to claim";
}

// What an earlier process wrote is claimed once; what nobody claimed belongs to nobody.
TEST_F(RecordsTest, ClaimedOnceOrForgotten) {
  const Record gang = OfGang({.requeues = 3});
  Record other = gang;
  other.key = "d/h";
  const Record head = Written([](Step* step) { WriteStartRecord({5, {"d/g"}, {}, 0}, step); });
  const Record kept = Written([](Step* step) { WriteStartRecord({6, {"d/g"}, {}, 0}, step); });
  Restored restored;
  ASSERT_TRUE(
      restored.Load({gang, OfPod({.uid = "u2", .start = 5}), other, OfPod({.uid = "u1", .start = 6}), head, kept})
          .ok());
  EXPECT_EQ(restored.ClaimGang("d/nobody"), std::nullopt);
  EXPECT_EQ(restored.ClaimGang("g"), std::nullopt);
  EXPECT_EQ(restored.ClaimGang("d/g"), (Kept{.requeues = 3}));
  EXPECT_EQ(restored.ClaimGang("d/g"), std::nullopt);
  EXPECT_EQ(Forgotten(&restored, {"u1"}), (std::vector<std::string>{"commit/u2", "start/5", "gang/d/h"}))
      << "a part that was taken up keeps its head";
  EXPECT_EQ(Forgotten(&restored), std::vector<std::string>{}) << "once";
  EXPECT_EQ(restored.ClaimGang("d/h"), std::nullopt);
}

TEST_F(RecordsTest, NothingWasKept) {
  Restored restored;
  EXPECT_TRUE(restored.Load({}).ok());
  EXPECT_TRUE(restored.empty());
  EXPECT_EQ(restored.ClaimGang("d/g"), std::nullopt);
  EXPECT_EQ(Forgotten(&restored), std::vector<std::string>{});
}

// S-3: what cannot be read is refused and named.
TEST_F(RecordsTest, WhatCannotBeReadIsNamed) {
  const std::vector<Record> bad = {{.kind = "queue", .key = "x", .value = "1"},
                                   {.kind = "gang", .key = "d/g", .value = "\xff"},
                                   {.kind = "commit", .key = "uid", .value = "\xff"},
                                   {.kind = "start", .key = "7", .value = "\xff"},
                                   {.kind = "start", .key = "seven"},
                                   {.kind = "plans", .value = "\xff"},
                                   {.kind = "", .key = ""},
                                   {.kind = "gang", .key = "d/g", .format = 2}};
  for (const Record& record : bad) {
    Restored restored;
    const absl::Status refused = restored.Load({record});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << RecordName(record);
    EXPECT_NE(refused.message().find("\"" + RecordName(record) + "\""), absl::string_view::npos) << refused;
  }
}

}  // namespace
}  // namespace muster
