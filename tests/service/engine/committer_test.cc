// The committer between engine and store waits for callers that call again at once
// (docs/project/decisions/0017-store.md).
#include "service/engine/committer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "absl/time/clock.h"
#include "support/sync.h"

namespace muster {
namespace {

constexpr absl::Duration kSync = absl::Milliseconds(20);

class SlowStore : public Store {
 public:
  absl::StatusOr<Contents> TakeOver() override { return Contents{}; }
  absl::Status Commit(int64_t /*epoch*/, const std::vector<Record>& /*records*/) override {
    absl::SleepFor(kSync);
    if (failures_ == 0) return absl::OkStatus();
    --failures_;
    return absl::UnavailableError("the disk is full");
  }
  // The next `times` commits fail.
  void Fail(int times) { failures_ = times; }
  bool waits_for_disk() const override { return true; }

 private:
  std::atomic<int> failures_{0};
};

class Callers : public testing::Test {
 protected:
  Callers() { EXPECT_TRUE(committer_.Start().ok()); }
  ~Callers() override { committer_.Stop(); }

  // One call that writes a record.
  void Call() {
    committer_.Add({Record{.kind = "kind", .key = "key", .value = "value"}}, 1, [this](Stored stored) {
      EXPECT_EQ(stored, Stored::kDurable);
      MutexLock lock(&mutex_);
      ++answered_;
      came_.Signal();
    });
  }
  // Takes the available replies, at least one.
  int TakeAnswers() {
    MutexLock lock(&mutex_);
    while (answered_ == 0) came_.Wait(&mutex_);
    return std::exchange(answered_, 0);
  }
  // Eight calls are answered together; returns the duration of a later call that comes alone.
  absl::Duration OneAfterEight() {
    for (int i = 0; i < 8; ++i) Call();
    for (int answers = 0; answers < 8;) answers += TakeAnswers();
    const absl::Time begun = absl::Now();
    Call();
    TakeAnswers();
    return absl::Now() - begun;
  }

  SlowStore store_;
  Committer committer_{&store_, absl::Seconds(1), 1'000, /*stepped=*/false};
  Mutex mutex_;
  CondVar came_;
  int answered_ = 0;
};

// One caller came before the other seven. Without waiting, the two parts would alternate forever, and each call would
// wait for two commits.
TEST_F(Callers, RepeatedCallers_ShareCommits) {
  constexpr int kCalls = 160;
  Call();
  absl::SleepFor(kSync / 4);
  for (int i = 0; i < 7; ++i) Call();
  for (int calls = 8, answers = 0; answers < kCalls;) {
    const int taken = TakeAnswers();
    answers += taken;
    absl::SleepFor(absl::Microseconds(200));
    for (int i = 0; i < taken && calls < kCalls; ++i, ++calls) Call();
  }
  EXPECT_LE(committer_.commits(), kCalls / 8 * 3 / 2) << "two for eight calls if no call waits";
}

// Replies leave in order, one at a time, however long their delivery takes and on any thread. Replies without records
// leave after earlier ones with records.
TEST_F(Callers, Replies_LeaveInOrder) {
  constexpr int kCalls = 120;
  std::atomic<int> delivering{0};
  std::atomic<int> next{0};
  for (int i = 0; i < kCalls; ++i) {
    std::vector<Record> records;
    if (i % 3 != 2) records.push_back({.kind = "kind", .key = "key", .value = "value"});
    committer_.Add(std::move(records), 1, [&, i](Stored) {
      EXPECT_EQ(delivering++, 0);
      EXPECT_EQ(next++, i);
      absl::SleepFor(kSync / 4);
      --delivering;
    });
    absl::SleepFor(i % 12 == 1 ? kSync * 2 : kSync / 8);  // the next call has no records, and no commit is in progress
  }
  committer_.Stop();
  EXPECT_EQ(next, kCalls);
  EXPECT_EQ(committer_.delivered(), kCalls);
}

// The committer does not wait for a caller that does not come.
TEST_F(Callers, LoneCaller_IsAnsweredSoon) { EXPECT_LT(OneAfterEight(), 2 * kSync) << "a commit, and a moment"; }

TEST_F(Callers, CallerAfterStoreFailure_IsAnsweredSoon) {
  store_.Fail(5);
  EXPECT_LT(OneAfterEight(), 4 * kSync) << "however long the store had failed";
}

}  // namespace
}  // namespace muster
