// The committer between engine and store waits for callers that call again at once
// (docs/project/decisions/0017-store.md).
#include "service/engine/committer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

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

// A store whose next commits fail with scripted errors; keeps what it was asked to commit.
class ScriptedStore : public Store {
 public:
  absl::StatusOr<Contents> TakeOver() override { return Contents{.epoch = 7}; }
  absl::Status Commit(int64_t epoch, const std::vector<Record>& records) override {
    EXPECT_EQ(epoch, 7);
    std::string keys;
    for (const Record& record : records) keys += record.key;
    commits.push_back(keys);
    if (errors.empty()) return absl::OkStatus();
    const absl::Status error = errors.front();
    errors.erase(errors.begin());
    return error;
  }
  bool waits_for_disk() const override { return waits; }

  std::vector<absl::Status> errors;
  std::vector<std::string> commits;  // the keys of each
  bool waits = true;
};

// Without a thread: each commit is one step of the owner.
class SteppedCommitter : public testing::Test {
 protected:
  explicit SteppedCommitter(bool stepped = true) : committer_(&store_, absl::Milliseconds(300), 3, stepped) {
    EXPECT_TRUE(committer_.Start().ok());
  }
  ~SteppedCommitter() override { committer_.Stop(); }
  // One record for each character of `keys`.
  void Add(const std::string& keys, size_t callers = 1) {
    std::vector<Record> records;
    for (const char key : keys) records.push_back({.kind = "kind", .key = std::string(1, key), .value = "value"});
    committer_.Add(std::move(records), callers, [this, keys](Stored stored) {
      delivered_.push_back(keys + (stored == Stored::kDurable  ? " durable"
                                   : stored == Stored::kFenced ? " fenced"
                                                               : " stopping"));
    });
  }
  using Lines = std::vector<std::string>;
  Lines TakeDelivered() { return std::exchange(delivered_, {}); }

  ScriptedStore store_;
  Lines delivered_;
  Committer committer_;
};

TEST_F(SteppedCommitter, TryOnce_CommitsWhatIsQueuedTogether) {
  EXPECT_FALSE(committer_.TryOnce()) << "nothing to commit";
  Add("a");
  Add("");
  EXPECT_FALSE(committer_.full());
  Add("bc");
  EXPECT_TRUE(committer_.full()) << "three records wait";
  EXPECT_EQ(TakeDelivered(), Lines{});
  EXPECT_TRUE(committer_.TryOnce());
  EXPECT_EQ(store_.commits, Lines{"abc"});
  EXPECT_EQ(TakeDelivered(), (Lines{"a durable", " durable", "bc durable"}));
  EXPECT_FALSE(committer_.full());
  EXPECT_FALSE(committer_.TryOnce());
  EXPECT_EQ(committer_.commits(), 1);
  EXPECT_EQ(committer_.added(), 3);
  EXPECT_EQ(committer_.delivered(), 3);
}

// What writes nothing waits for no disk.
TEST_F(SteppedCommitter, QuietCommitter_DeliversAtOnce) {
  Add("");
  EXPECT_EQ(TakeDelivered(), Lines{" durable"});
  store_.waits = false;
  Add("a");
  EXPECT_EQ(TakeDelivered(), Lines{"a durable"});
  EXPECT_EQ(store_.commits, Lines{"a"});
  EXPECT_EQ(committer_.delivered(), 2);
  store_.waits = true;
  Add("b");
  store_.waits = false;
  Add("c");
  Add("");
  EXPECT_EQ(TakeDelivered(), Lines{}) << "in order";
  EXPECT_TRUE(committer_.TryOnce());
  EXPECT_EQ(TakeDelivered(), (Lines{"b durable", "c durable", " durable"}));
}

TEST_F(SteppedCommitter, FailedCommit_IsRepeatedBeforeLaterRecords) {
  store_.errors = {absl::UnavailableError("busy"), absl::ResourceExhaustedError("the disk is full")};
  Add("a");
  EXPECT_TRUE(committer_.TryOnce());
  EXPECT_EQ(committer_.last_error(), "busy");
  Add("b");
  EXPECT_TRUE(committer_.TryOnce());
  EXPECT_EQ(committer_.last_error(), "the disk is full");
  EXPECT_EQ(TakeDelivered(), Lines{});
  EXPECT_TRUE(committer_.TryOnce());
  EXPECT_EQ(committer_.last_error(), "");
  EXPECT_EQ(TakeDelivered(), Lines{"a durable"});
  EXPECT_TRUE(committer_.TryOnce());
  EXPECT_EQ(store_.commits, (Lines{"a", "a", "a", "b"}));
  EXPECT_EQ(TakeDelivered(), Lines{"b durable"});
  EXPECT_EQ(committer_.commits(), 2);
}

TEST_F(SteppedCommitter, StoreTakenOver_NothingIsStoredAnyMore) {
  store_.errors = {FencedError()};
  Add("a");
  EXPECT_FALSE(committer_.fenced());
  EXPECT_TRUE(committer_.TryOnce());
  EXPECT_TRUE(committer_.fenced());
  EXPECT_EQ(TakeDelivered(), Lines{"a fenced"});
  Add("b");
  EXPECT_TRUE(committer_.TryOnce());
  EXPECT_EQ(TakeDelivered(), Lines{"b fenced"});
  EXPECT_EQ(store_.commits, Lines{"a"});
  EXPECT_EQ(committer_.commits(), 0);
}

TEST_F(SteppedCommitter, WaitingCallers_AreCounted) {
  Add("a", Committer::kMaxWaitingCallers - 1);
  EXPECT_FALSE(committer_.too_many_callers());
  Add("", 1);
  EXPECT_TRUE(committer_.too_many_callers());
  EXPECT_TRUE(committer_.TryOnce());
  EXPECT_FALSE(committer_.too_many_callers());
}

class CommitterThread : public SteppedCommitter {
 protected:
  CommitterThread() : SteppedCommitter(/*stepped=*/false) {}
};

// The store refuses everything while the process stops: every caller learns so within the grace period.
TEST_F(CommitterThread, Stop_StoreRefuses_AnswersWithinGracePeriod) {
  store_.errors.assign(1'000, absl::UnavailableError("busy"));
  Add("a");
  Add("b");
  const absl::Time begun = absl::Now();
  committer_.Stop();
  const absl::Duration took = absl::Now() - begun;
  EXPECT_GE(took, absl::Milliseconds(290));
  EXPECT_LT(took, absl::Seconds(2));
  EXPECT_EQ(TakeDelivered(), (Lines{"a stopping", "b stopping"}));
  EXPECT_LT(store_.commits.size(), 12U) << "with pauses";
  EXPECT_GE(store_.commits.size(), 2U);
  EXPECT_EQ(committer_.last_error(), "busy");
}

TEST_F(CommitterThread, FailedCommit_IsRepeatedAfterPauses) {
  store_.errors.assign(3, absl::UnavailableError("busy"));
  const absl::Time begun = absl::Now();
  Add("a");
  while (committer_.delivered() < 1) absl::SleepFor(absl::Milliseconds(1));
  const absl::Duration took = absl::Now() - begun;
  EXPECT_GE(took, absl::Milliseconds(345)) << "50, 100 and 200 ms";
  EXPECT_LT(took, absl::Seconds(2));
  EXPECT_EQ(store_.commits.size(), 4U);
  EXPECT_EQ(committer_.last_error(), "");
}

}  // namespace
}  // namespace muster
