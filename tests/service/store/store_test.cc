// SPEC S-2, S-3: the contract of every kind of store, also across power losses.
#include "service/store/store.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/service/store/faulty_disk.h"
#include "tests/service/store/store_fixture.h"

namespace muster {
namespace {

// --- the contract ---

class StoreContract : public testing::TestWithParam<const char*> {
 protected:
  StoreContract() { Reopen(); }
  // As a process that starts again. A store in memory has no other process.
  void Reopen() {
    if (std::string(GetParam()) == "memory") {
      if (store_ == nullptr) store_ = std::make_unique<MemoryStore>();
    } else {
      store_.reset();
      store_ = OpenSqlite(folder_ / "store.db");
    }
  }

  TestFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreContract, SameKey_LastValueIsStored) {
  const int64_t epoch = store_->TakeOver()->epoch;
  ASSERT_TRUE(store_->Commit(epoch, {{"gang", "d/b", "u-1", 1, "one"}, {"gang", "d/a", "", 2, "two"}}).ok());
  ASSERT_TRUE(store_->Commit(epoch, {{"gang", "d/b", "u-2", 3, "three"}, {"commit", "d/b", "", 1, "four"}}).ok());
  ASSERT_TRUE(store_->Commit(epoch, {{"gang", "d/a", "", 1, ""}, {"gang", "nobody", "", 1, ""}}).ok());
  ASSERT_TRUE(store_->Commit(epoch, {}).ok());
  Reopen();
  const Store::Contents contents = ExpectOk(store_->TakeOver());
  EXPECT_EQ(Lines(contents.records), (std::vector<std::string>{"commit/d/b=four", "gang/d/b=three"}));
  EXPECT_EQ(contents.records[1].incarnation, "u-2");
  EXPECT_EQ(contents.records[1].format, 3);
}

TEST_P(StoreContract, SameKeyInOneCommit_LastValueIsStored) {
  const int64_t epoch = store_->TakeOver()->epoch;
  ASSERT_TRUE(store_->Commit(epoch, {{"a", "x", "", 1, "1"}, {"a", "x", "", 1, ""}, {"a", "x", "", 1, "2"}}).ok());
  ASSERT_TRUE(store_->Commit(epoch, {{"a", "y", "", 1, "1"}, {"a", "y", "", 1, ""}}).ok());
  Reopen();
  EXPECT_EQ(Lines(store_->TakeOver()->records), std::vector<std::string>{"a/x=2"});
}

TEST_P(StoreContract, AnyBytes_AreStored) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const std::string large(3 << 20, 'x');
  const int64_t epoch = store_->TakeOver()->epoch;
  ASSERT_TRUE(store_->Commit(epoch, {{"k", "a/'\"; DROP TABLE record", "ü", 1, all}, {"k", "", "", 1, large}}).ok());
  Reopen();
  const std::vector<Record> records = store_->TakeOver()->records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].value, large);
  EXPECT_EQ(records[1].key, "a/'\"; DROP TABLE record");
  EXPECT_EQ(records[1].incarnation, "ü");
  EXPECT_EQ(records[1].value, all);
}

TEST_P(StoreContract, LastTakeOver_OwnsStore) {
  const int64_t first = store_->TakeOver()->epoch;
  ASSERT_TRUE(store_->Commit(first, {{"a", "x", "", 1, "1"}}).ok());
  const int64_t second = store_->TakeOver()->epoch;
  EXPECT_GT(second, first);
  const absl::Status fenced = store_->Commit(first, {{"a", "x", "", 1, "2"}});
  EXPECT_EQ(ClassifyStoreError(fenced), StoreErrorKind::kFenced) << fenced;
  ASSERT_TRUE(store_->Commit(second, {{"a", "y", "", 1, "3"}}).ok());
  Reopen();
  const absl::StatusOr<Store::Contents> contents = store_->TakeOver();
  EXPECT_EQ(Lines(contents->records), (std::vector<std::string>{"a/x=1", "a/y=3"}));
  EXPECT_GT(contents->epoch, second);
  EXPECT_EQ(ClassifyStoreError(store_->Commit(second, {{"a", "y", "", 1, "4"}})), StoreErrorKind::kFenced);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, testing::Values("memory", "sqlite"),
                         [](const auto& info) { return std::string(info.param); });

// --- power loss ---

using Model = std::map<std::string, std::string>;  // value by key

std::vector<Record> RandomCommit(int number, std::mt19937_64* random) {
  std::vector<Record> records;
  const size_t count = 1 + (*random)() % 6;
  for (size_t i = 0; i < count; ++i) {
    const std::string key = absl::StrCat("key-", (*random)() % 12);
    // Some are larger than a page.
    const size_t size = (*random)() % 8 == 0 ? 6'000 : (*random)() % 90;
    std::string value = (*random)() % 4 == 0 ? "" : absl::StrCat(number, ":", std::string(size, 'v'));
    records.push_back({"gang", key, absl::StrCat("u-", number), 1, std::move(value)});
  }
  return records;
}

void Keep(const std::vector<Record>& records, Model* model) {
  for (const Record& record : records) {
    if (record.value.empty()) {
      model->erase(record.key);
    } else {
      (*model)[record.key] = record.value;
    }
  }
}

// The contents that a store reports.
Model Held(const Store::Contents& contents) {
  Model model;
  for (const Record& record : contents.records) model[record.key] = record.value;
  return model;
}

struct Lives {
  int64_t lost = 0;        // acknowledged, but missing after the power loss
  int64_t unreadable = 0;  // starts that failed
  int64_t commits = 0;
  int64_t failures = 0;       // power losses
  int64_t in_doubt_kept = 0;  // commits without a reply that were present
};

// Runs a store through `failures` power losses at random moments, one after the other on one disk.
Lives Live(uint64_t seed, int failures, FaultyDisk* disk, const std::string& path) {
  Lives out;
  std::mt19937_64 random(seed);
  Model acknowledged;
  int number = 0;
  while (out.failures < failures) {
    // Early failures hit the start, late ones the checkpoints of the log.
    disk->PowerFailsAfter(static_cast<int64_t>(random() % (random() % 8 == 0 ? 4'000 : 120)) + 1);
    Model doubtful = acknowledged;
    {
      const absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({path, disk->name()});
      absl::StatusOr<Store::Contents> contents = store.ok() ? (*store)->TakeOver() : store.status();
      if (contents.ok() && Held(*contents) != acknowledged) ++out.lost;
      if (!contents.ok() && disk->power()) {
        ADD_FAILURE() << contents.status();
        ++out.unreadable;
        return out;
      }
      while (contents.ok()) {
        const std::vector<Record> records = RandomCommit(++number, &random);
        doubtful = acknowledged;
        Keep(records, &doubtful);
        if (!(*store)->Commit(contents->epoch, records).ok()) break;
        acknowledged = doubtful;
        ++out.commits;
      }
    }
    ++out.failures;
    disk->PowerBack(&random);
    const absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({path, disk->name()});
    const absl::StatusOr<Store::Contents> contents = store.ok() ? (*store)->TakeOver() : store.status();
    if (!contents.ok()) {
      ADD_FAILURE() << contents.status();
      ++out.unreadable;
      return out;
    }
    // The commit in progress is there completely, or not at all.
    const Model held = Held(*contents);
    if (held == doubtful) {
      out.in_doubt_kept += held == acknowledged ? 0 : 1;
      acknowledged = doubtful;
    } else if (held != acknowledged) {
      ++out.lost;
      acknowledged = held;
    }
  }
  return out;
}

TEST(PowerLoss, AcknowledgedCommits_Survive) {
  TestFolder folder;
  Lives all;
  // Fewer under sanitizers, where MUSTER_STEPS is set.
  const int seeds = std::getenv("MUSTER_STEPS") == nullptr ? 100 : 10;
  for (int seed = 1; seed <= seeds; ++seed) {
    FaultyDisk disk("faulty");
    const Lives lives = Live(static_cast<uint64_t>(seed), /*failures=*/100, &disk, folder / absl::StrCat("s-", seed));
    ASSERT_EQ(lives.lost + lives.unreadable, 0) << "seed " << seed;
    all.commits += lives.commits;
    all.failures += lives.failures;
    all.in_doubt_kept += lives.in_doubt_kept;
  }
  std::cout << "FIGURE power losses " << all.failures << ", commits " << all.commits << ", kept without an answer "
            << all.in_doubt_kept << "\n";
  EXPECT_EQ(all.failures, seeds * 100);
  EXPECT_GT(all.commits, seeds * 500);
  EXPECT_GT(all.in_doubt_kept, seeds) << "the moments between the disk and the answer are met";
}

// Checks the test itself: with a disk that lies about its syncs, it must find losses.
TEST(PowerLoss, LyingDisk_IsDetected) {
  TestFolder folder;
  Lives all;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    FaultyDisk disk("liar");
    disk.LieAboutSyncs(true);
    std::mt19937_64 random(seed);
    {
      const auto store = OpenSqlite(folder / "liar.db", "liar");
      const int64_t epoch = store->TakeOver()->epoch;
      for (int i = 0; i < 20; ++i) ASSERT_TRUE(store->Commit(epoch, RandomCommit(i, &random)).ok());
      disk.PowerFailsAfter(0);
    }
    disk.PowerBack(&random);
    const absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({folder / "liar.db", "liar"});
    const absl::StatusOr<Store::Contents> contents = store.ok() ? (*store)->TakeOver() : store.status();
    all.lost += !contents.ok() || contents->records.size() < 9 ? 1 : 0;
  }
  EXPECT_GT(all.lost, 0);
}

}  // namespace
}  // namespace muster
