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
  EXPECT_EQ(RecordName(kept->front()), "commit/u-a");
}

TEST(Engine, AnUnreadableStoreIsNamed) {
  MemoryStore store;
  ASSERT_TRUE(store.Commit({{.kind = "gang", .key = "d/g", .value = "\xff\xff"}}).ok());
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
  const auto offer = std::make_shared<NodeOffer>(std::vector<std::string>{"n"});
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

// Records what happened around the engine, in order.
class Witness : public Store, public EffectSink {
 public:
  absl::Status Commit(const std::vector<Record>& records) override {
    Note(absl::StrCat("stored ", records.size()));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Record>> Load() override { return std::vector<Record>(); }
  void Carry(std::vector<Effect> effects) override { Note(absl::StrCat("carried ", effects.size())); }
  void Note(const std::string& what) {
    MutexLock lock(&mutex_);
    notes_.push_back(what);
  }
  std::vector<std::string> Take() {
    MutexLock lock(&mutex_);
    return std::exchange(notes_, {});
  }

 private:
  Mutex mutex_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
};

// Keeps the engine's thread busy until it is let go, so that commands pile up and are applied as one batch.
class Busy {
 public:
  explicit Busy(Engine* engine)
      : thread_([this, engine] {
          EXPECT_TRUE(engine
                          ->Query([this](const Machine&) {
                            entered_.Notify();
                            leave_.WaitForNotification();
                          })
                          .ok());
        }) {
    entered_.WaitForNotification();
  }
  ~Busy() {
    if (thread_.joinable()) LetGo();
  }
  void LetGo() {
    leave_.Notify();
    thread_.join();
  }

 private:
  Notification entered_;
  Notification leave_;
  std::thread thread_;
};

std::chrono::steady_clock::time_point In(absl::Duration duration) {
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(duration);
}

class RunningEngine : public testing::Test {
 protected:
  explicit RunningEngine(const MachineSettings& settings = MachineSettings(), EngineOptions options = EngineOptions())
      : engine_(settings, options, &witness_, &witness_) {
    EXPECT_TRUE(engine_.Start().ok());
    EXPECT_TRUE(engine_.Announce(UpsertNode{SomeNode()}).ok());
    EXPECT_TRUE(engine_.Announce(FactsRead{}).ok());
    Flush();
  }
  // Everything that was asked before has been delivered.
  void Flush() {
    EXPECT_TRUE(engine_.Query([](const Machine&) {}).ok());
  }
  // Replies of a batch leave before its held calls are answered: with the next batch both are through.
  void FlushAnswers() {
    Flush();
    Flush();
  }
  void Put(const PodDescription& pod) { EXPECT_TRUE(engine_.Announce(UpsertPod{pod}).ok()); }

  Witness witness_;
  Engine engine_;
};

// DESIGN.md "Order": records, then the view, then effects and replies.
TEST_F(RunningEngine, StoresPublishesActsAndReplies) {
  Put(SomePod("a", "", 0));
  Flush();
  witness_.Take();
  const int listener = engine_.Listen([&](const ViewChange&) { witness_.Note("published"); });
  Notification answered;
  {
    Busy busy(&engine_);
    ASSERT_TRUE(engine_.Hold(Bind{"u-a", "n", 0}, [](const HoldAnswer&) {}).ok());
    engine_.AskAsync(BindingOutcome{"u-a", "n", BindingResult::kBound, ""}, In(absl::Hours(1)),
                     [&](absl::StatusOr<Reply> reply) {
                       EXPECT_TRUE(reply.ok());
                       witness_.Note("replied");
                     });
    ASSERT_TRUE(engine_
                    .Hold(Bind{"u-a", "n", 0},
                          [&](const HoldAnswer& answer) {
                            EXPECT_TRUE(answer.permitted);
                            witness_.Note("answered");
                            answered.Notify();
                          })
                    .ok());
  }
  answered.WaitForNotification();
  EXPECT_EQ(witness_.Take(), (std::vector<std::string>{"stored 2", "published", "carried 1", "replied", "answered"}));
  engine_.Unlisten(listener);
  Put(SomePod("b", "", 0));
  Flush();
  EXPECT_EQ(witness_.Take(), std::vector<std::string>{}) << "nobody listens, nothing is to be kept or done";
}

TEST_F(RunningEngine, AViewIsPublishedWhenSomethingChanged) {
  std::vector<ViewChange> changes;
  engine_.Listen([&](const ViewChange& change) { changes.push_back(change); });
  const uint64_t version = engine_.view()->version;
  EXPECT_NE(engine_.view()->nodes.Find("n"), nullptr);
  ASSERT_TRUE(engine_.Announce(Tick{}).ok());
  Flush();
  EXPECT_EQ(engine_.view()->version, version) << "nothing changed";
  Put(SomePod("lone", "", 0));
  Flush();
  EXPECT_EQ(engine_.view()->version, version + 1);
  EXPECT_EQ(engine_.view()->pods, 1);
  Put(SomePod("a", "g", 2));
  Put(SomePod("b", "g", 2));
  Flush();
  while (engine_.view()->promised_holds == 0) Flush();
  EXPECT_EQ(engine_.view()->promised_holds, 2);
  ASSERT_NE(engine_.view()->gangs.Find("d/g"), nullptr);
  const auto offer = std::make_shared<NodeOffer>(std::vector<std::string>{"n"});
  EXPECT_TRUE(engine_.Ask(Filter{"u-a", offer}).ok());
  const auto token = engine_.Hold(Bind{"u-a", "n", 0}, [](const HoldAnswer&) {});
  ASSERT_TRUE(token.ok());
  Flush();
  EXPECT_EQ(engine_.view()->held_binds, 1);
  EXPECT_EQ(engine_.view()->gangs.Find("d/g")->held, 1);
  for (const char* uid : {"u-a", "u-b", "u-lone"}) ASSERT_TRUE(engine_.Announce(RemovePod{uid}).ok());
  ASSERT_TRUE(engine_.Announce(RemoveNode{"n"}).ok());
  Flush();
  const std::shared_ptr<const ReadView> view = engine_.view();
  EXPECT_EQ(view->gangs.Find("d/g"), nullptr);
  EXPECT_EQ(view->nodes.Find("n"), nullptr);
  EXPECT_EQ(view->pods, 0);
  EXPECT_EQ(view->held_binds, 0);
  EXPECT_EQ(view->promised_holds, 0);
  engine_.Stop();
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.back().version, view->version);
  ASSERT_FALSE(changes.back().nodes.empty());
  EXPECT_EQ(changes.back().nodes.back().first, "n");
  EXPECT_EQ(changes.back().nodes.back().second, nullptr) << "gone";
}

TEST_F(RunningEngine, ACommandAfterItsDeadlineDoesNothing) {
  Put(SomePod("a", "", 0));
  Flush();
  absl::Status late;
  absl::Status in_time = absl::UnknownError("");
  {
    Busy busy(&engine_);
    const auto soon = In(absl::Milliseconds(1));
    engine_.AskAsync(RemovePod{"u-a"}, soon, [&](absl::StatusOr<Reply> reply) { late = reply.status(); });
    engine_.AskAsync(PreFilter{"u-a"}, In(absl::Hours(1)),
                     [&](absl::StatusOr<Reply> reply) { in_time = reply.status(); });
    absl::SleepFor(absl::Milliseconds(3));
  }
  Flush();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_TRUE(in_time.ok());
  EXPECT_EQ(engine_.view()->pods, 1);
}

TEST_F(RunningEngine, APermitIsAnsweredOnceWhateverItsEnd) {
  Put(SomePod("a", "g", 2));
  PodDescription other = SomePod("b", "g", 2);
  other.scheduler_name = "mine";  // so that the gang is not planned as a whole
  Put(other);
  Put(SomePod("lone", "", 0));
  Flush();
  std::atomic<int> answers{0};
  const auto answered = [&](const HoldAnswer&) { ++answers; };
  const auto ask = [&](const std::string& uid, HoldToken* token) {
    PermitReply::Kind kind = PermitReply::Kind::kReject;
    Notification done;
    *token = engine_.AskPermit(
        Permit{uid, "n", 0, 0}, In(absl::Hours(1)),
        [&](absl::StatusOr<Reply> reply) {
          kind = std::get<PermitReply>(*reply).kind;
          done.Notify();
        },
        answered);
    done.WaitForNotification();
    return kind;
  };
  HoldToken first = 0;
  HoldToken second = 0;
  EXPECT_EQ(ask("u-lone", &first), PermitReply::Kind::kPermit);
  EXPECT_EQ(ask("u-a", &first), PermitReply::Kind::kWait);
  EXPECT_EQ(answers, 0);
  engine_.EndPermit("u-a", first);
  FlushAnswers();
  EXPECT_EQ(answers, 1) << "the caller of u-a is gone";
  EXPECT_EQ(ask("u-a", &second), PermitReply::Kind::kWait);
  EXPECT_NE(first, second);
  EXPECT_EQ(ask("u-b", &first), PermitReply::Kind::kPermit);
  FlushAnswers();
  EXPECT_EQ(answers, 2) << "u-b was answered by its reply";
  engine_.Stop();
  EXPECT_EQ(answers, 2);
}

TEST_F(RunningEngine, ARefusedCommandIsSaid) {
  const absl::StatusOr<Reply> reply = engine_.Ask(PostFilter{"nobody", ""});
  EXPECT_TRUE(absl::IsNotFound(reply.status())) << reply.status();
}

TEST_F(RunningEngine, AfterAStopNothingIsTaken) {
  engine_.Stop();
  engine_.Stop();  // harmless
  EXPECT_TRUE(absl::IsUnavailable(engine_.Announce(Tick{})));
  EXPECT_TRUE(absl::IsUnavailable(engine_.Hold(Bind{"u", "n", 0}, [](const HoldAnswer&) { FAIL(); }).status()));
  EXPECT_TRUE(absl::IsUnavailable(engine_.Query([](const Machine&) { FAIL(); })));
  absl::Status asked;
  engine_.AskAsync(Tick{}, In(absl::Hours(1)), [&](absl::StatusOr<Reply> reply) { asked = reply.status(); });
  EXPECT_TRUE(absl::IsUnavailable(asked)) << "at once";
  asked = absl::OkStatus();
  engine_.AskPermit(
      Permit{"u", "n", 0, 0}, In(absl::Hours(1)), [&](absl::StatusOr<Reply> reply) { asked = reply.status(); },
      [](const HoldAnswer&) { FAIL(); });
  EXPECT_TRUE(absl::IsUnavailable(asked));
  engine_.EndPermit("u", 1);
}

TEST_F(RunningEngine, AStopFinishesWhatWasSubmittedAndAnswersEveryHold) {
  Put(SomePod("a", "", 0));
  Put(SomePod("b", "g", 2));
  Put(SomePod("c", "g", 2));
  const auto offer = std::make_shared<NodeOffer>(std::vector<std::string>{"n"});
  while (engine_.view()->promised_holds == 0) Flush();
  EXPECT_TRUE(engine_.Ask(Filter{"u-b", offer}).ok());
  std::vector<ReasonCode> codes;
  const auto keep = [&](const HoldAnswer& answer) { codes.push_back(answer.reason.code); };
  bool applied = false;
  std::thread stopper;
  {
    Busy busy(&engine_);
    ASSERT_TRUE(engine_.Hold(Bind{"u-a", "n", 0}, keep).ok());  // committed: the API server is still to answer
    ASSERT_TRUE(engine_.Hold(Bind{"u-b", "n", 0}, keep).ok());  // at the barrier
    engine_.AskAsync(PreFilter{"u-a"}, In(absl::Hours(1)), [&](absl::StatusOr<Reply> r) { applied = r.ok(); });
    stopper = std::thread([this] { engine_.Stop(); });
    while (!absl::IsUnavailable(engine_.Announce(Tick{}))) absl::SleepFor(absl::Milliseconds(1));
  }
  stopper.join();
  EXPECT_TRUE(applied);
  EXPECT_EQ(codes, (std::vector<ReasonCode>{ReasonCode::kShuttingDown, ReasonCode::kShuttingDown}));
}

class ShortHolds : public RunningEngine {
 protected:
  static MachineSettings Settings() {
    MachineSettings settings;
    settings.hold_limit_ms = 60;
    return settings;
  }
  ShortHolds() : RunningEngine(Settings()) {}
};

// Deadlines are kept without anybody asking.
TEST_F(ShortHolds, WhatIsDueHappensByItself) {
  Put(SomePod("a", "g", 2));
  Put(SomePod("b", "g", 2));
  while (engine_.view()->promised_holds == 0) Flush();
  EXPECT_TRUE(engine_.Ask(Filter{"u-a", std::make_shared<NodeOffer>(std::vector<std::string>{"n"})}).ok());
  Notification ended;
  ReasonCode code = ReasonCode::kNone;
  const absl::Time before = SteadyNow();
  ASSERT_TRUE(engine_
                  .Hold(Bind{"u-a", "n", 0},
                        [&](const HoldAnswer& answer) {
                          code = answer.reason.code;
                          ended.Notify();
                        })
                  .ok());
  ended.WaitForNotification();
  EXPECT_EQ(code, ReasonCode::kHoldExpired);
  EXPECT_GE(SteadyNow() - before, absl::Milliseconds(58));
  EXPECT_LT(SteadyNow() - before, absl::Seconds(10)) << "not at the next of somebody's commands";
}

class SmallBatches : public RunningEngine {
 protected:
  static EngineOptions Options() {
    EngineOptions options;
    options.batch = 2;
    options.mailbox_capacity = 3;
    return options;
  }
  SmallBatches() : RunningEngine(MachineSettings(), Options()) {}
};

TEST_F(SmallBatches, SoManyCommandsACommit) {
  const EngineStats before = engine_.stats();
  {
    Busy busy(&engine_);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine_.Announce(Tick{}).ok());
    EXPECT_EQ(engine_.stats().mailbox_depth, 3U);
    EXPECT_TRUE(absl::IsResourceExhausted(engine_.Ask(Tick{}).status()));
    EXPECT_TRUE(absl::IsResourceExhausted(engine_.Query([](const Machine&) { FAIL(); })));
    EXPECT_EQ(engine_.stats().rejected, before.rejected + 2);
    engine_.EndPermit("u", 1);  // never refused
    EXPECT_EQ(engine_.stats().mailbox_depth, 4U);
  }
  Flush();
  EXPECT_EQ(engine_.stats().mailbox_depth, 0U);
  EXPECT_EQ(engine_.stats().commands - before.commands, 6U) << "the query that kept it busy, four, and the last";
  EXPECT_GE(engine_.stats().batches - before.batches, 3U) << "four commands are two batches at least";
  EXPECT_FALSE(engine_.stats().store_failing);
}

TEST_F(SmallBatches, AFactWaitsForRoom) {
  std::thread announcer;
  std::atomic<bool> taken{false};
  {
    Busy busy(&engine_);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine_.Announce(Tick{}).ok());
    announcer = std::thread([&] {
      EXPECT_TRUE(engine_.Announce(UpsertPod{SomePod("late", "", 0)}).ok());
      taken = true;
    });
    absl::SleepFor(absl::Milliseconds(20));
    EXPECT_FALSE(taken);
  }
  announcer.join();
  Flush();
  EXPECT_EQ(engine_.view()->pods, 1) << "facts are never lost";
}

TEST_F(SmallBatches, AStopEndsTheWaitOfAnAnnouncer) {
  std::thread announcer;
  std::thread stopper;
  {
    Busy busy(&engine_);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine_.Announce(Tick{}).ok());
    announcer = std::thread([&] { EXPECT_TRUE(absl::IsUnavailable(engine_.Announce(Tick{}))); });
    absl::SleepFor(absl::Milliseconds(20));
    stopper = std::thread([this] { engine_.Stop(); });
    announcer.join();
  }
  stopper.join();
}

class OneByOne : public RunningEngine {
 protected:
  static EngineOptions Options() {
    EngineOptions options;
    options.batch = 1;
    options.mailbox_capacity = 3;
    return options;
  }
  OneByOne() : RunningEngine(MachineSettings(), Options()) {}
};

TEST_F(OneByOne, WhoWaitsForRoomIsWokenByEveryCommandThatIsTaken) {
  std::vector<std::thread> announcers;
  {
    Busy busy(&engine_);
    for (int i = 0; i < 6; ++i) {
      announcers.emplace_back(
          [this, i] { EXPECT_TRUE(engine_.Announce(UpsertPod{SomePod(absl::StrCat(i), "", 0)}).ok()); });
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  for (std::thread& announcer : announcers) announcer.join();
  while (engine_.view()->pods < 6) absl::SleepFor(absl::Milliseconds(1));
}

// A store that fails is tried again with pauses that grow: 50, 100, 200 ms ... 2 s.
TEST(Engine, AFailingStoreIsTriedAgainWithPauses) {
  GatedStore store;
  CountingSink sink;
  Engine engine(MachineSettings(), EngineOptions(), &store, &sink);
  ASSERT_TRUE(engine.Start().ok());
  ASSERT_TRUE(engine.Announce(UpsertNode{SomeNode()}).ok());
  ASSERT_TRUE(engine.Announce(UpsertPod{SomePod("a", "", 0)}).ok());
  ASSERT_TRUE(engine.Announce(FactsRead{}).ok());
  ASSERT_TRUE(engine.Query([](const Machine&) {}).ok());
  store.Open(/*failures=*/1'000'000);
  const absl::Time before = SteadyNow();
  ASSERT_TRUE(engine.Hold(Bind{"u-a", "n", 0}, [](const HoldAnswer&) {}).ok());
  while (store.tries() < 3) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_GE(SteadyNow() - before, absl::Milliseconds(145)) << "50 + 100 ms";
  EXPECT_TRUE(engine.stats().store_failing);
  EXPECT_EQ(sink.bindings, 0);
  store.Open(/*failures=*/0);
  ASSERT_TRUE(engine.Query([](const Machine&) {}).ok());
  EXPECT_GE(SteadyNow() - before, absl::Milliseconds(345)) << "and 200 more";
  EXPECT_FALSE(engine.stats().store_failing);
  EXPECT_EQ(sink.bindings, 1);
}

// K-2: a filter's answer promises nothing; it leaves although the batch's records wait for the store.
TEST(Engine, WhatPromisesNothingDoesNotWaitForTheStore) {
  GatedStore store;
  CountingSink sink;
  Engine engine(MachineSettings(), EngineOptions(), &store, &sink);
  ASSERT_TRUE(engine.Start().ok());
  ASSERT_TRUE(engine.Announce(UpsertNode{SomeNode()}).ok());
  ASSERT_TRUE(engine.Announce(UpsertPod{SomePod("a", "", 0)}).ok());
  ASSERT_TRUE(engine.Announce(UpsertPod{SomePod("b", "", 0)}).ok());
  ASSERT_TRUE(engine.Announce(FactsRead{}).ok());
  ASSERT_TRUE(engine.Query([](const Machine&) {}).ok());
  store.Close();
  Notification filtered;
  Notification permitted;
  {
    Busy busy(&engine);  // so that they are one batch
    const auto never = std::chrono::steady_clock::time_point::max();
    engine.AskPermit(
        Permit{"u-a", "n"}, never, [&](const absl::StatusOr<Reply>&) { permitted.Notify(); }, [](const HoldAnswer&) {});
    engine.AskAsync(Filter{"u-b", std::make_shared<NodeOffer>(NodeOffer::Every())}, never,
                    [&](const absl::StatusOr<Reply>& reply) {
                      EXPECT_EQ(std::get<FilterReply>(*reply).kind, FilterReply::Kind::kPass);
                      filtered.Notify();
                    });
  }
  EXPECT_TRUE(filtered.WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_FALSE(permitted.WaitForNotificationWithTimeout(absl::Milliseconds(50))) << "that it may bind is a promise";
  store.Open(/*failures=*/0);
  EXPECT_TRUE(permitted.WaitForNotificationWithTimeout(absl::Seconds(10)));
}

// A process that is told to stop ends although its store takes nothing, and then nothing happened.
TEST(Engine, AStoreThatFailsDoesNotKeepItFromStopping) {
  GatedStore store;
  CountingSink sink;
  EngineOptions options;
  options.store_grace = absl::Milliseconds(100);
  Engine engine(MachineSettings(), options, &store, &sink);
  ASSERT_TRUE(engine.Start().ok());
  ASSERT_TRUE(engine.Announce(UpsertNode{SomeNode()}).ok());
  ASSERT_TRUE(engine.Announce(UpsertPod{SomePod("a", "", 0)}).ok());
  ASSERT_TRUE(engine.Announce(UpsertPod{SomePod("b", "", 0)}).ok());
  ASSERT_TRUE(engine.Announce(FactsRead{}).ok());
  ASSERT_TRUE(engine.Query([](const Machine&) {}).ok());
  store.Open(/*failures=*/1'000'000);
  std::atomic<int> refused = 0;
  ASSERT_TRUE(engine.Hold(Bind{"u-a", "n", 0}, [&](const HoldAnswer& a) { refused += a.permitted ? 0 : 1; }).ok());
  store.WaitForTry();
  absl::Status permit;
  engine.AskPermit(
      Permit{"u-b", "n"}, std::chrono::steady_clock::time_point::max(),
      [&](const absl::StatusOr<Reply>& reply) { permit = reply.status(); }, [](const HoldAnswer&) {});
  engine.Stop();
  EXPECT_EQ(refused, 1);
  EXPECT_TRUE(absl::IsUnavailable(permit)) << permit;
  EXPECT_EQ(sink.bindings, 0) << "what is not recorded is not done";
}

// What was restored is there, and a store that cannot be read stops the start.
TEST(Engine, StartsFromItsStore) {
  MemoryStore store;
  CountingSink sink;
  {
    Engine engine(MachineSettings(), EngineOptions(), &store, &sink);
    EXPECT_TRUE(absl::IsUnavailable(engine.Ask(Tick{}).status())) << "not started yet";
    engine.Stop();  // harmless
    ASSERT_TRUE(engine.Start().ok());
  }
  class Unreadable : public MemoryStore {
   public:
    absl::StatusOr<std::vector<Record>> Load() override { return absl::DataLossError("torn"); }
  };
  Unreadable torn;
  Engine engine(MachineSettings(), EngineOptions(), &torn, &sink);
  EXPECT_TRUE(absl::IsDataLoss(engine.Start()));
}

}  // namespace
}  // namespace muster
