// The engine's order: nothing leaves before its record is durable, and everything leaves in order (SPEC S-2, S-6). Also
// built for ThreadSanitizer.
#include "service/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "service/engine/durability.h"
#include "service/engine/step_watch.h"
#include "support/sync.h"
#include "tests/service/engine/engine_fixture.h"

namespace muster {
namespace {

// S-2: which commands may need a record, and which refusals wait for the records of earlier commands: facts and
// submissions may be refused because of what another caller said.
TEST(Durability, RefusalThatRevealsOtherCommands_DependsOnRecords) {
  for (const Command& reads :
       std::vector<Command>{Filter{}, Preempt{}, FindNodes{}, CallerGone{}, RefreshExplanation{}}) {
    EXPECT_FALSE(MayWriteRecords(reads)) << reads.index();
  }
  for (const Command& writes : std::vector<Command>{Bind{}, Permit{}, SubmitGang{}, UpsertPod{}, Tick{}}) {
    EXPECT_TRUE(MayWriteRecords(writes)) << writes.index();
  }
  for (const Command& said : std::vector<Command>{SubmitGang{}, UpsertPod{}, ReplaceFacts{}, UpdateFacts{}}) {
    EXPECT_TRUE(DependsOnRecords(said, absl::InvalidArgumentError(""))) << said.index();
    EXPECT_FALSE(DependsOnRecords(said, absl::ResourceExhaustedError(""))) << said.index();
  }
  EXPECT_FALSE(DependsOnRecords(Bind{}, absl::InvalidArgumentError("")));
  EXPECT_TRUE(DependsOnRecords(Bind{}, absl::NotFoundError("")));
}

// A store whose commits wait for the test, and fail as often as the test sets.
class GatedStore : public Store {
 public:
  absl::Status Commit(int64_t epoch, const std::vector<Record>& records) override {
    MutexLock lock(&mutex_);
    ++tries_;
    changed_.SignalAll();
    while (closed_) changed_.Wait(&mutex_);
    if (failures_ > 0) {
      --failures_;
      return absl::UnavailableError("disk full");
    }
    return inner_.Commit(epoch, records);
  }
  absl::StatusOr<Contents> TakeOver() override { return inner_.TakeOver(); }

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

// An engine over a GatedStore. Its binding of a lone pod needs a durable commit record first.
class GatedEngine : public testing::Test {
 protected:
  // Starts the engine with a node and the lone pods u-p-0, u-p-1, ..., which fit the node.
  void Start(int pods = 1, const EngineOptions& options = EngineOptions()) {
    engine_ = std::make_unique<Engine>(MachineSettings(), options, &store_, &sink_);
    ASSERT_TRUE(engine_->Start().ok());
    ASSERT_TRUE(engine_->Announce(UpsertNode{SomeNode()}).ok());
    for (int i = 0; i < pods; ++i) {
      ASSERT_TRUE(engine_->Announce(UpsertPod{SomePod(absl::StrCat("p-", i), "", 0)}).ok());
    }
    ASSERT_TRUE(engine_->Announce(FactsRead{}).ok());
    Flush();
  }
  // Waits until the replies of all earlier commands are delivered.
  void Flush() {
    ASSERT_TRUE(engine_->ReadDurableSync([](const Machine&) {}).ok());
  }
  absl::Status AskBind(int pod) {
    return engine_->Hold(Bind{absl::StrCat("u-p-", pod), "n", 0}, [](const HoldAnswer&) {}).status();
  }
  // Closes the store, and binds the first pod: its commit record waits for the store.
  void BlockStore() {
    store_.Close();
    ASSERT_TRUE(AskBind(0).ok());
    store_.WaitForTry();
  }

  GatedStore store_;
  CountingSink sink_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(GatedEngine, Effect_LeavesAfterDurableRecord) {
  Start();
  ASSERT_EQ(store_.tries(), 0);
  BlockStore();
  EXPECT_EQ(sink_.bindings, 0);
  Notification asked;
  std::thread asker([&] {
    Flush();
    asked.Notify();
  });
  EXPECT_FALSE(asked.WaitForNotificationWithTimeout(absl::Milliseconds(50))) << "answered while the store was busy";
  EXPECT_TRUE(engine_->ReadLatestSync([](const Machine&) {}).ok()) << "this read does not wait for the store";
  EXPECT_EQ(sink_.bindings, 0);
  store_.Open(/*failures=*/2);
  asker.join();
  EXPECT_EQ(sink_.bindings, 1);
  EXPECT_EQ(store_.tries(), 3) << "two refused commits are tried again, nothing is lost";
  EXPECT_EQ(engine_->stats().store_error, "");
  const absl::StatusOr<Store::Contents> stored = store_.TakeOver();
  ASSERT_TRUE(stored.ok());
  ASSERT_EQ(stored->records.size(), 2U);
  EXPECT_EQ(RecordName(stored->records.front()), "commit/u-p-0");
  EXPECT_EQ(RecordName(stored->records.back()), "effects/");
}

// Effect numbers are unique for one store, across processes.
TEST(Engine, EffectNumbers_AreUniqueAcrossLives) {
  class NumberingSink : public EffectSink {
   public:
    void Carry(std::vector<Effect> effects) override { next += static_cast<int64_t>(effects.size()); }
    int64_t next = 0;
  };
  MemoryStore store;
  int64_t last = 0;
  for (int life = 0; life < 3; ++life) {
    NumberingSink sink;
    EngineOptions options;
    options.first_effect = [&](int64_t number) { sink.next = number; };
    Engine engine(MachineSettings(), options, &store, &sink);
    ASSERT_TRUE(engine.Start().ok());
    EXPECT_EQ(sink.next, life == 0 ? 1 : sink.next);
    EXPECT_GT(sink.next, last);
    const int64_t first = sink.next;
    ASSERT_TRUE(engine.Announce(UpsertNode{SomeNode()}).ok());
    ASSERT_TRUE(engine.Announce(FactsRead{}).ok());
    const int pods = 3'000 * life;  // one life uses more numbers than are reserved at once
    for (int i = 0; i <= pods; ++i) {
      const std::string name = absl::StrCat("p", life, "-", i);
      ASSERT_TRUE(engine.Announce(UpsertPod{SomePod(name, "", 0)}).ok());
      ASSERT_TRUE(engine.Hold(Bind{"u-" + name, "n", 0}, [](const HoldAnswer&) {}).ok());
      ASSERT_TRUE(engine.Announce(RemovePod{"u-" + name}).ok());
      if (i % 500 != 0) continue;
      ASSERT_TRUE(engine.ReadDurableSync([](const Machine&) {}).ok());  // its mailbox is bounded
    }
    ASSERT_TRUE(engine.ReadDurableSync([](const Machine&) {}).ok());
    EXPECT_GT(sink.next, first);
    last = sink.next - 1;
  }
}

// The expiry of a query's deadline is reported while the store is blocked.
TEST_F(GatedEngine, ExpiredDeadline_DoesNotWaitForStore) {
  Start();
  BlockStore();
  Notification late;
  engine_->AskAsync(Tick{}, std::chrono::steady_clock::now() - std::chrono::seconds(1), [&](const auto& reply) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(reply.status()));
    late.Notify();
  });
  EXPECT_TRUE(late.WaitForNotificationWithTimeout(absl::Seconds(10)));
  Notification refused;
  engine_->AskAsync(PostBind{"u-p-0", ""}, std::chrono::steady_clock::time_point::max(), [&](const auto& reply) {
    EXPECT_TRUE(absl::IsInvalidArgument(reply.status())) << reply.status();
    refused.Notify();
  });
  EXPECT_TRUE(refused.WaitForNotificationWithTimeout(absl::Seconds(10)));
  // The result of another caller's command is reported when it is durable.
  Notification unsure;
  engine_->AskAsync(AskGang{"s"}, std::chrono::steady_clock::time_point::max(), [&](const auto& reply) {
    EXPECT_TRUE(absl::IsNotFound(reply.status()));
    unsure.Notify();
  });
  EXPECT_FALSE(unsure.WaitForNotificationWithTimeout(absl::Milliseconds(50)));
  store_.Open(/*failures=*/0);
  EXPECT_TRUE(unsure.WaitForNotificationWithTimeout(absl::Seconds(10)));
}

TEST(Engine, UnreadableStore_NamesRecord) {
  MemoryStore store;
  ASSERT_TRUE(store.Commit(store.TakeOver()->epoch, {{.kind = "gang", .key = "d/g", .value = "\xff\xff"}}).ok());
  CountingSink sink;
  Engine engine(MachineSettings(), EngineOptions(), &store, &sink);
  const absl::Status started = engine.Start();
  EXPECT_TRUE(absl::IsInvalidArgument(started));
  EXPECT_NE(started.message().find("gang/d/g"), absl::string_view::npos) << started;
}

// The order is: records, then the view, then effects and replies.
TEST_F(RunningEngine, Batch_StoresPublishesActsThenReplies) {
  Put(SomePod("a", "", 0));
  Flush();
  witness_.Take();
  const int listener = engine_.AddListener([&](const ViewChange&) { witness_.Note("published"); });
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
  EXPECT_EQ(witness_.Take(), (std::vector<std::string>{"stored 3", "published", "carried 1", "replied", "answered"}));
  engine_.RemoveListener(listener);
  Put(SomePod("b", "", 0));
  Flush();
  EXPECT_EQ(witness_.Take(), std::vector<std::string>{}) << "no call waits, so there is nothing to store or do";
}

// Gangs that are planned in one batch: each pod is activated once.
TEST_F(RunningEngine, Effects_LeaveOnce) {
  NodeDescription node = SomeNode();
  node.allocatable = {{"cpu", 9}, {"pods", 9}};
  ASSERT_TRUE(engine_.Announce(UpsertNode{node}).ok());
  Flush();
  witness_.Take();
  {
    Busy busy(&engine_);
    for (int i = 0; i < 3; ++i) {
      PodDescription pod = SomePod(absl::StrCat("p-", i), absl::StrCat("g-", i), 1);
      pod.our_gate = true;
      Put(pod);
    }
  }
  int planned = 0;
  for (int tries = 0; tries < 100 && planned < 3; ++tries) {
    Flush();
    planned = 0;
    for (int i = 0; i < 3; ++i) {
      const auto gang = engine_.view()->gangs.Find(absl::StrCat("d/g-", i));
      if (gang != nullptr && gang->reason.code == ReasonCode::kPlanned) ++planned;
    }
  }
  EXPECT_EQ(planned, 3);
  int carried = 0;
  for (const std::string& note : witness_.Take()) {
    int effects = 0;
    if (absl::SimpleAtoi(absl::StripPrefix(note, "carried "), &effects)) carried += effects;
  }
  EXPECT_EQ(carried, 3);
}

TEST_F(RunningEngine, Change_PublishesView) {
  std::vector<ViewChange> changes;
  engine_.AddListener([&](const ViewChange& change) { changes.push_back(change); });
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
  const auto scheduling = static_cast<size_t>(GangPhase::kScheduling);
  EXPECT_EQ(engine_.view()->phases[scheduling], 1);
  EXPECT_EQ(engine_.view()->present_nodes, 1);
  ASSERT_NE(engine_.view()->gangs.Find("d/g"), nullptr);
  EXPECT_TRUE(engine_.Ask(Filter{"u-a", OfferOfNode()}).ok());
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
  EXPECT_EQ(view->phases, (std::array<int64_t, kGangPhases>{}));
  EXPECT_EQ(view->present_nodes, 0);
  EXPECT_EQ(view->held_binds, 0);
  EXPECT_EQ(view->promised_holds, 0);
  engine_.Stop();
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.back().version, view->version);
  ASSERT_FALSE(changes.back().nodes->empty());
  EXPECT_EQ(changes.back().nodes->back().first, "n");
  EXPECT_EQ(changes.back().nodes->back().second, nullptr) << "gone";
}

// A failing store is retried with growing pauses: 50, 100, 200 ms ... 2 s.
TEST_F(GatedEngine, FailingStore_IsRetriedWithPauses) {
  Start();
  store_.Open(/*failures=*/1'000'000);
  const absl::Time before = SteadyNow();
  ASSERT_TRUE(AskBind(0).ok());
  while (store_.tries() < 3) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_GE(SteadyNow() - before, absl::Milliseconds(145)) << "50 + 100 ms";
  EXPECT_EQ(engine_->stats().store_error, "disk full");
  EXPECT_EQ(sink_.bindings, 0);
  store_.Open(/*failures=*/0);
  Flush();
  EXPECT_GE(SteadyNow() - before, absl::Milliseconds(345)) << "and 200 more";
  EXPECT_EQ(engine_->stats().store_error, "");
  EXPECT_EQ(sink_.bindings, 1);
}

// The largest number of gangs planned between two batches of commands, of twelve that are announced at once.
int MostPlannedAtOnce(const EngineOptions& options) {
  MemoryStore store;
  CountingSink sink;
  Engine engine(MachineSettings(), options, &store, &sink);
  EXPECT_TRUE(engine.Start().ok());
  std::set<std::string> planned;
  int most = 0;
  const int listener = engine.AddListener([&](const ViewChange& change) {
    int now = 0;
    for (const auto& [key, gang] : *change.gangs) {
      if (gang != nullptr && gang->planned > 0 && planned.insert(key).second) ++now;
    }
    most = std::max(most, now);
  });
  UpdateFacts facts;
  facts.nodes = {SomeNode()};
  for (int i = 0; i < 12; ++i) facts.pods.push_back(SomePod(absl::StrCat("p", i), absl::StrCat("g", i), 1));
  EXPECT_TRUE(engine.Ask(std::move(facts)).ok());
  EXPECT_TRUE(engine.Ask(FactsRead{}).ok());
  while (engine.view()->promised_holds < 12) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(engine.ReadDurableSync([](const Machine&) {}).ok());
  engine.RemoveListener(listener);
  EXPECT_EQ(planned.size(), 12U) << "and none is forgotten";
  return most;
}

TEST(Engine, Planning_YieldsToCommands) {
  EXPECT_EQ(MostPlannedAtOnce({.planning_slice = absl::ZeroDuration()}), 1) << "the time is up after each";
  EXPECT_EQ(MostPlannedAtOnce({.gangs_per_round = 5, .planning_slice = absl::Hours(1)}), 5);
}

// K-2: a filter reply promises nothing; it leaves although the batch's records wait for the store.
TEST_F(GatedEngine, FilterReply_DoesNotWaitForStore) {
  Start(/*pods=*/2);
  store_.Close();
  Notification filtered;
  Notification permitted;
  {
    Busy busy(engine_.get());  // so that they are one batch
    const auto never = std::chrono::steady_clock::time_point::max();
    engine_->AskPermit(
        Permit{"u-p-0", "n"}, never, [&](const absl::StatusOr<Reply>&) { permitted.Notify(); },
        [](const HoldAnswer&) {});
    engine_->AskAsync(Filter{"u-p-1", std::make_shared<NodeOffer>(NodeOffer::AllNodes())}, never,
                      [&](const absl::StatusOr<Reply>& reply) {
                        EXPECT_EQ(std::get<FilterReply>(*reply).kind, FilterReply::Kind::kPass);
                        filtered.Notify();
                      });
  }
  EXPECT_TRUE(filtered.WaitForNotificationWithTimeout(absl::Seconds(10)));
  EXPECT_FALSE(permitted.WaitForNotificationWithTimeout(absl::Milliseconds(50))) << "that it may bind is a promise";
  store_.Open(/*failures=*/0);
  EXPECT_TRUE(permitted.WaitForNotificationWithTimeout(absl::Seconds(10)));
}

// A stop ends the process although its store is blocked; its pending commands have no effect.
TEST_F(GatedEngine, FailingStore_DoesNotPreventStop) {
  Start(/*pods=*/2, {.store_grace = absl::Milliseconds(100)});
  store_.Open(/*failures=*/1'000'000);
  std::atomic<int> refused = 0;
  ASSERT_TRUE(engine_->Hold(Bind{"u-p-0", "n", 0}, [&](const HoldAnswer& a) { refused += a.permitted ? 0 : 1; }).ok());
  store_.WaitForTry();
  absl::Status permit;
  engine_->AskPermit(
      Permit{"u-p-1", "n"}, std::chrono::steady_clock::time_point::max(),
      [&](const absl::StatusOr<Reply>& reply) { permit = reply.status(); }, [](const HoldAnswer&) {});
  engine_->Stop();
  EXPECT_EQ(refused, 1);
  EXPECT_TRUE(absl::IsUnavailable(permit)) << permit;
  EXPECT_EQ(sink_.bindings, 0) << "what is not recorded is not done";
}

// Restored state is present after the start, and an unreadable store prevents the start.
TEST(Engine, Start_RestoresStoredState) {
  MemoryStore store;
  CountingSink sink;
  {
    Engine engine(MachineSettings(), EngineOptions(), &store, &sink);
    EXPECT_TRUE(absl::IsUnavailable(engine.Ask(Tick{}).status())) << "not started yet";
    engine.Stop();  // no effect
    ASSERT_TRUE(engine.Start().ok());
  }
  class Unreadable : public MemoryStore {
   public:
    absl::StatusOr<Contents> TakeOver() override { return absl::DataLossError("torn"); }
  };
  Unreadable torn;
  Engine engine(MachineSettings(), EngineOptions(), &torn, &sink);
  EXPECT_TRUE(absl::IsDataLoss(engine.Start()));
}

// While one batch waits for the disk, later batches are applied; they leave together in their turn.
TEST_F(GatedEngine, BusyStore_CommandsAreStillApplied) {
  Start(/*pods=*/20);
  BlockStore();
  for (int i = 1; i < 20; ++i) ASSERT_TRUE(AskBind(i).ok());
  // A query that promises nothing is answered while the disk is busy, and sees what was applied meanwhile.
  EXPECT_TRUE(engine_->Ask(Filter{"u-p-19", OfferOfNode()}).ok());
  EXPECT_EQ(engine_->stats().mailbox_depth, 0U);
  EXPECT_GT(engine_->stats().store_waiting, 0);
  EXPECT_EQ(sink_.bindings, 0);
  store_.Open(/*failures=*/0);
  Flush();
  EXPECT_EQ(sink_.bindings, 20);
  EXPECT_LE(store_.tries(), 3) << "what gathered was one commit";
  EXPECT_LE(engine_->stats().store_waiting, 1) << "the one that answered just now";
}

// Callers that only read durable state are bounded too: each costs memory, whether it still waits or has left.
TEST_F(GatedEngine, DurableReaders_AreBounded) {
  Start(/*pods=*/1, {.mailbox_capacity = 2 * Committer::kMaxWaitingCallers});
  BlockStore();
  std::atomic<int> refused{0};
  std::atomic<size_t> answered{0};
  const auto step = [](const Machine&) { return true; };
  const auto done = [&](const absl::Status& status) {
    refused += absl::IsResourceExhausted(status) ? 1 : 0;
    ++answered;
  };
  size_t asked = 0;
  for (; asked < 2 * Committer::kMaxWaitingCallers && refused == 0; ++asked) {
    engine_->ReadDurable(step, done);
    if (asked % 1'000 != 0) continue;
    ASSERT_TRUE(engine_->ReadLatestSync([](const Machine&) {}).ok());  // they have been processed
  }
  EXPECT_GE(asked, Committer::kMaxWaitingCallers);
  EXPECT_EQ(refused, 1);
  store_.Open(/*failures=*/0);
  while (absl::IsResourceExhausted(engine_->ReadDurableSync([](const Machine&) {}))) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  engine_->Stop();
  EXPECT_EQ(answered, asked);
}

// A store that is blocked for long: commands that may need a record are refused, queries that promise nothing are still
// answered.
TEST_F(GatedEngine, PendingCommands_AreBounded) {
  Start(/*pods=*/20, {.store_backlog = 5});
  store_.Close();
  absl::Status refused;
  int held = 0;
  for (; held < 20 && refused.ok(); ++held) {
    refused = AskBind(held);
    ASSERT_TRUE(engine_->Ask(Filter{"u-p-19", OfferOfNode()}).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(refused.message().find("the store is too slow"), absl::string_view::npos) << refused;
  EXPECT_LT(held, 10);
  // Facts are not lost: their announcers wait.
  std::atomic<bool> announced{false};
  std::thread announcer([&] {
    EXPECT_TRUE(engine_->Announce(UpsertPod{SomePod("late", "", 0)}).ok());
    announced = true;
  });
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_FALSE(announced);
  store_.Open(/*failures=*/0);
  announcer.join();
  const auto is_known = [](const Machine& machine) { EXPECT_NE(machine.reader().FindPod("u-late"), nullptr); };
  ASSERT_TRUE(engine_->ReadDurableSync(is_known).ok());
  EXPECT_EQ(sink_.bindings, held - 1);
}

// Another process has taken the store over: this one acts and promises no more, and callers get an error.
TEST_F(GatedEngine, FencedEngine_StopsActing) {
  std::atomic<int> fenced{0};
  Start(/*pods=*/1, {.on_fenced = [&] { ++fenced; }});
  ASSERT_TRUE(store_.TakeOver().ok());
  ASSERT_TRUE(AskBind(0).ok());
  const absl::Time end = SteadyNow() + absl::Seconds(10);
  while (fenced == 0 && SteadyNow() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(fenced, 1);
  EXPECT_EQ(sink_.bindings, 0);
  const absl::Status asked = engine_->Ask(Tick{}).status();
  EXPECT_TRUE(absl::IsUnavailable(asked));
  EXPECT_NE(asked.message().find("another musterd"), absl::string_view::npos) << asked;
  EXPECT_TRUE(absl::IsUnavailable(engine_->Ask(Filter{"u-p-0", OfferOfNode()}).status()))
      << "no call is answered either";
  engine_->Stop();
  EXPECT_EQ(fenced, 1) << "reported once";
  EXPECT_TRUE(store_.TakeOver()->records.empty());
}

// SPEC S-11: what occupies the only writer for long is counted, by the command's name.
TEST(StepWatch, LongStep_IsCounted) {
  StepWatch watch;
  watch.Record(Tick{}, std::chrono::milliseconds(4));
  EXPECT_EQ(watch.long_steps(), 0);
  watch.Record(Tick{}, std::chrono::microseconds(4'001));
  EXPECT_EQ(watch.long_steps(), 1);
  EXPECT_EQ(TypeNameOf(Tick{}), "Tick");
  EXPECT_EQ(TypeNameOf(UpsertNode{}), "UpsertNode");
  EXPECT_EQ(TypeNameOf(RefreshExplanation{}), "RefreshExplanation");
  EXPECT_EQ(TypeNameOf(BindingOutcome{}), "BindingOutcome");
  EXPECT_EQ(TypeNameOf(SubmitGang{}), "SubmitGang");
}

}  // namespace
}  // namespace muster
