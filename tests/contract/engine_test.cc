// The engine's order and its threads: nothing leaves before its record is durable, a full mailbox says so, and whoever
// calls from wherever gets an answer (DESIGN.md "Order"; SPEC S-2, S-6). Built for ThreadSanitizer too.
#include "service/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/support/sync.h"

namespace muster {
namespace {

// A store whose commits wait for the test, and fail as often as it likes.
class GatedStore : public Store {
 public:
  absl::Status Commit(const std::vector<Record>& records) override {
    MutexLock lock(&mutex_);
    ++tries_;
    changed_.SignalAll();
    while (closed_) changed_.Wait(&mutex_);
    if (failures_ > 0) {
      --failures_;
      return absl::UnavailableError("disk full");
    }
    return inner_.Commit(records);
  }
  absl::StatusOr<std::vector<Record>> Load() override { return inner_.Load(); }

  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  void Open(int failures) {
    MutexLock lock(&mutex_);
    closed_ = false;
    failures_ = failures;
    changed_.SignalAll();
  }
  void WaitForTry() {
    MutexLock lock(&mutex_);
    while (tries_ == 0) changed_.Wait(&mutex_);
  }
  int tries() const {
    MutexLock lock(&mutex_);
    return tries_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  int tries_ ABSL_GUARDED_BY(mutex_) = 0;
  MemoryStore inner_;
};

// Counts the bindings it is told to make and reports none of them.
class CountingSink : public EffectSink {
 public:
  void Carry(std::vector<Effect> effects) override {
    for (const Effect& effect : effects) bindings += std::holds_alternative<BindPod>(effect) ? 1 : 0;
  }
  std::atomic<int> bindings{0};
};

NodeDescription SomeNode() {
  NodeDescription node;
  node.name = "n";
  node.allocatable = {{"cpu", 1'000'000}, {"pods", 5000}};
  return node;
}

PodDescription SomePod(const std::string& name, const std::string& gang, int min) {
  PodDescription pod;
  pod.uid = "u-" + name;
  pod.name_space = "d";
  pod.name = name;
  pod.scheduler_name = "default-scheduler";
  pod.shape.requests = {{"cpu", 1}};
  if (min > 0) {
    pod.gang.name = gang;
    pod.gang.declares = true;
    pod.gang.declaration.min_member = min;
  }
  return pod;
}

class OneNode : public NodeOffer {
 public:
  bool Contains(absl::string_view node) const override { return node == "n"; }
  size_t size() const override { return 1; }
};

TEST(Engine, NothingLeavesBeforeItsRecordIsDurable) {
  GatedStore store;
  CountingSink sink;
  Engine engine(MachineSettings(), EngineOptions(), &store, &sink);
  ASSERT_TRUE(engine.Start().ok());
  ASSERT_TRUE(engine.Announce(UpsertNode{SomeNode()}).ok());
  ASSERT_TRUE(engine.Announce(UpsertPod{SomePod("a", "", 0)}).ok());
  ASSERT_TRUE(engine.Announce(FactsRead{}).ok());
  ASSERT_TRUE(engine.Query([](const Machine&) {}).ok());
  ASSERT_EQ(store.tries(), 0);
  store.Close();
  // A pod of no gang is bound at once: its commit record must be durable before the binding is sent.
  ASSERT_TRUE(engine.Hold(Bind{"u-a", "n", 0}, [](const HoldAnswer&) {}).ok());
  store.WaitForTry();
  EXPECT_EQ(sink.bindings, 0);
  Notification asked;
  std::thread asker([&] {
    EXPECT_TRUE(engine.Query([](const Machine&) {}).ok());
    asked.Notify();
  });
  EXPECT_FALSE(asked.WaitForNotificationWithTimeout(absl::Milliseconds(50))) << "answered while the store was busy";
  EXPECT_EQ(sink.bindings, 0);
  store.Open(/*failures=*/2);
  asker.join();
  EXPECT_EQ(sink.bindings, 1);
  EXPECT_EQ(store.tries(), 3) << "two refused commits are tried again, nothing is lost";
  EXPECT_FALSE(engine.stats().store_failing);
  const absl::StatusOr<std::vector<Record>> kept = store.Load();
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(kept->size(), 1U);
  EXPECT_EQ(kept->front().key, "commit/u-a");
}

TEST(Engine, AnUnreadableStoreIsNamed) {
  MemoryStore store;
  ASSERT_TRUE(store.Commit({{"gang/d/g", "\xff\xff"}}).ok());
  CountingSink sink;
  Engine engine(MachineSettings(), EngineOptions(), &store, &sink);
  const absl::Status started = engine.Start();
  EXPECT_TRUE(absl::IsInvalidArgument(started));
  EXPECT_NE(started.message().find("gang/d/g"), absl::string_view::npos) << started;
}

TEST(Engine, AFullMailboxSaysOverloaded) {
  MemoryStore store;
  CountingSink sink;
  EngineOptions options;
  options.mailbox_capacity = 4;
  Engine engine(MachineSettings(), options, &store, &sink);
  ASSERT_TRUE(engine.Start().ok());
  Notification entered;
  Notification leave;
  std::thread blocker([&] {
    EXPECT_TRUE(engine
                    .Query([&](const Machine&) {
                      entered.Notify();
                      leave.WaitForNotification();
                    })
                    .ok());
  });
  entered.WaitForNotification();
  std::vector<std::thread> announcers;
  for (int i = 0; i < 4; ++i) announcers.emplace_back([&] { EXPECT_TRUE(engine.Announce(Tick{}).ok()); });
  while (engine.stats().mailbox_depth < 4) absl::SleepFor(absl::Milliseconds(1));
  const absl::StatusOr<Reply> refused = engine.Ask(PreFilter{"u"});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  leave.Notify();
  blocker.join();
  for (std::thread& thread : announcers) thread.join();
  engine.Stop();
  EXPECT_TRUE(absl::IsUnavailable(engine.Ask(PreFilter{"u"}).status()));
}

// Everybody at once: questions, facts, holds, readers and listeners, then a stop in the middle of it.
TEST(Engine, ManyThreadsAllGetAnswers) {
  MemoryStore store;
  CountingSink sink;
  Engine engine(MachineSettings(), EngineOptions(), &store, &sink);
  ASSERT_TRUE(engine.Start().ok());
  ASSERT_TRUE(engine.Announce(UpsertNode{SomeNode()}).ok());
  ASSERT_TRUE(engine.Announce(FactsRead{}).ok());
  std::atomic<int> held{0};
  std::atomic<int> answered{0};
  std::atomic<uint64_t> seen{0};
  const auto offer = std::make_shared<OneNode>();
  const int listener = engine.Listen([&](const ViewChange& change) {
    EXPECT_GT(change.version, seen.load()) << "versions only grow";
    seen = change.version;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string name = absl::StrCat("p", t, "-", i);
        if (!engine.Announce(UpsertPod{SomePod(name, absl::StrCat("g", t, "-", i / 2), 2)}).ok()) return;
        if (!engine.Ask(Filter{"u-" + name, offer}).ok()) return;
        const auto token = engine.Hold(Bind{"u-" + name, "n", 0}, [&](const HoldAnswer&) { ++answered; });
        if (!token.ok()) return;
        ++held;
        if (i % 3 == 0) engine.Announce(RemovePod{"u-" + name}).IgnoreError();
        if (i % 5 == 0) engine.Announce(EndHold{"u-" + name, *token}).IgnoreError();
      }
    });
  }
  threads.emplace_back([&] {
    uint64_t last = 0;
    for (int i = 0; i < 500; ++i) {
      const std::shared_ptr<const ReadView> view = engine.view();
      EXPECT_GE(view->version, last);
      last = view->version;
      for (const auto& gang : view->gangs.All()) EXPECT_FALSE(gang->key.empty());
      static_cast<void>(engine.stats());
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < 100; ++i) {
      const int id = engine.Listen([](const ViewChange&) {});
      engine.Unlisten(id);
    }
  });
  for (std::thread& thread : threads) thread.join();
  engine.Unlisten(listener);
  engine.Stop();
  EXPECT_GT(held, 100);
  EXPECT_EQ(answered, held) << "every held call is answered exactly once, by the stop at the latest";
}

}  // namespace
}  // namespace muster
