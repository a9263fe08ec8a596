// The engine's mailbox and threads (docs/project/architecture.md; SPEC S-2, S-6). A full mailbox returns an error,
// every call from any thread gets a reply, also during a stop, and timers fire by themselves. Also built for
// ThreadSanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/engine/engine.h"
#include "support/sync.h"
#include "tests/service/engine/engine_fixture.h"

namespace muster {
namespace {

// A long read is split into steps, and decisions are made between them.
TEST_F(RunningEngine, LongRead_DecisionsRunBetweenSteps) {
  std::vector<int> order;  // on the engine's thread
  Notification read;
  int steps = 0;
  const auto step = [&](const Machine& machine) {
    EXPECT_NE(machine.rooms().cluster.FindNode("n"), kNoNode);
    order.push_back(++steps);
    if (steps == 1) {
      engine_.AskAsync(PreFilter{"u"}, In(absl::Hours(1)), [&](const absl::StatusOr<Reply>&) { order.push_back(100); });
    }
    return steps == 5;
  };
  engine_.ReadDurable(step, [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    order.push_back(-1);
    read.Notify();
  });
  read.WaitForNotification();
  ASSERT_EQ(order.size(), 7U);
  EXPECT_EQ(order.front(), 1);
  EXPECT_EQ(order.back(), -1);
  EXPECT_LT(std::find(order.begin(), order.end(), 100) - order.begin(), 4)
      << "asked in the first step, answered before the last";
  // A read that does not end is ended with the engine.
  Notification ended;
  engine_.ReadDurable([](const Machine&) { return false; },
                      [&](const absl::Status& status) {
                        EXPECT_TRUE(absl::IsUnavailable(status));
                        ended.Notify();
                      });
  Flush();
  engine_.Stop();
  EXPECT_TRUE(ended.HasBeenNotified());
}

// All at once: queries, facts, holds, readers and listeners, then a stop in the middle.
TEST_F(RunningEngine, ManyThreads_AllReceiveReplies) {
  std::atomic<int> held{0};
  std::atomic<int> answered{0};
  std::atomic<uint64_t> seen{0};
  const auto offer = OfferOfNode();
  const int listener = engine_.AddListener([&](const ViewChange& change) {
    EXPECT_GT(change.version, seen.load()) << "versions only grow";
    seen = change.version;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string name = absl::StrCat("p", t, "-", i);
        if (!engine_.Announce(UpsertPod{SomePod(name, absl::StrCat("g", t, "-", i / 2), 2)}).ok()) return;
        if (!engine_.Ask(Filter{"u-" + name, offer}).ok()) return;
        const auto token = engine_.Hold(Bind{"u-" + name, "n", 0}, [&](const HoldAnswer&) { ++answered; });
        if (!token.ok()) return;
        ++held;
        if (i % 3 == 0) engine_.Announce(RemovePod{"u-" + name}).IgnoreError();
        if (i % 5 == 0) engine_.Announce(CallerGone{"u-" + name, *token}).IgnoreError();
      }
    });
  }
  threads.emplace_back([&] {
    uint64_t last = 0;
    for (int i = 0; i < 500; ++i) {
      const std::shared_ptr<const ReadView> view = engine_.view();
      EXPECT_GE(view->version, last);
      last = view->version;
      view->gangs.ForEach([](const auto& gang) { EXPECT_FALSE(gang->key.empty()); });
      static_cast<void>(engine_.stats());
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < 100; ++i) {
      const int id = engine_.AddListener([](const ViewChange&) {});
      engine_.RemoveListener(id);
    }
  });
  for (std::thread& thread : threads) thread.join();
  engine_.RemoveListener(listener);
  engine_.Stop();
  EXPECT_GT(held, 100);
  EXPECT_EQ(answered, held) << "every held call is answered exactly once, by the stop at the latest";
}

TEST_F(RunningEngine, CommandAfterDeadline_HasNoEffect) {
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

TEST_F(RunningEngine, Permit_IsAnsweredOnce) {
  for (const char* name : {"a", "b"}) {
    PodDescription pod = SomePod(name, "g", 2);
    pod.scheduler_name = "mine";  // so that the gang is not planned as a whole
    Put(pod);
  }
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
  engine_.OnPermitCallerGone("u-a", first);
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

TEST_F(RunningEngine, RefusedCommand_ReturnsError) {
  const absl::StatusOr<Reply> reply = engine_.Ask(PostFilter{"unknown", ""});
  EXPECT_TRUE(absl::IsNotFound(reply.status())) << reply.status();
}

TEST_F(RunningEngine, CallAfterStop_ReturnsUnavailable) {
  engine_.Stop();
  engine_.Stop();  // no effect
  EXPECT_TRUE(absl::IsUnavailable(engine_.Announce(Tick{})));
  EXPECT_TRUE(absl::IsUnavailable(engine_.Hold(Bind{"u", "n", 0}, [](const HoldAnswer&) { FAIL(); }).status()));
  EXPECT_TRUE(absl::IsUnavailable(engine_.ReadDurableSync([](const Machine&) { FAIL(); })));
  absl::Status asked;
  engine_.AskAsync(Tick{}, In(absl::Hours(1)), [&](absl::StatusOr<Reply> reply) { asked = reply.status(); });
  EXPECT_TRUE(absl::IsUnavailable(asked)) << "at once";
  asked = absl::OkStatus();
  engine_.AskPermit(
      Permit{"u", "n", 0, 0}, In(absl::Hours(1)), [&](absl::StatusOr<Reply> reply) { asked = reply.status(); },
      [](const HoldAnswer&) { FAIL(); });
  EXPECT_TRUE(absl::IsUnavailable(asked));
  engine_.OnPermitCallerGone("u", 1);
}

TEST_F(RunningEngine, Stop_FinishesCommandsAndAnswersHolds) {
  Put(SomePod("a", "", 0));
  Put(SomePod("b", "g", 2));
  Put(SomePod("c", "g", 2));
  while (engine_.view()->promised_holds == 0) Flush();
  EXPECT_TRUE(engine_.Ask(Filter{"u-b", OfferOfNode()}).ok());
  std::vector<ReasonCode> codes;
  const auto keep = [&](const HoldAnswer& answer) { codes.push_back(answer.reason.code); };
  bool applied = false;
  std::thread stopper;
  {
    Busy busy(&engine_);
    ASSERT_TRUE(engine_.Hold(Bind{"u-a", "n", 0}, keep).ok());  // committed: the API server's reply is pending
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
  ShortHolds() : RunningEngine(MachineSettings{.hold_limit_ms = 60}) {}
};

// Deadlines are met without a call.
TEST_F(ShortHolds, ExpiredDeadline_ActsWithoutCall) {
  Put(SomePod("a", "g", 2));
  Put(SomePod("b", "g", 2));
  while (engine_.view()->promised_holds == 0) Flush();
  EXPECT_TRUE(engine_.Ask(Filter{"u-a", OfferOfNode()}).ok());
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
  explicit SmallBatches(size_t batch = 2)
      : RunningEngine(MachineSettings(), EngineOptions{.mailbox_capacity = 3, .batch = batch}) {}
};

TEST_F(SmallBatches, ManyCommands_AreSplitIntoBatches) {
  const EngineStats before = engine_.stats();
  {
    Busy busy(&engine_);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine_.Announce(Tick{}).ok());
    EXPECT_EQ(engine_.stats().mailbox_depth, 3U);
    EXPECT_TRUE(absl::IsResourceExhausted(engine_.Ask(Tick{}).status()));
    EXPECT_TRUE(absl::IsResourceExhausted(engine_.ReadDurableSync([](const Machine&) { FAIL(); })));
    EXPECT_EQ(engine_.stats().rejected, before.rejected + 2);
    engine_.OnPermitCallerGone("u", 1);  // never refused
    EXPECT_EQ(engine_.stats().mailbox_depth, 4U);
  }
  // Until there is room again, a query is refused like any other call.
  while (absl::IsResourceExhausted(engine_.ReadDurableSync([](const Machine&) {}))) {
  }
  EXPECT_EQ(engine_.stats().mailbox_depth, 0U);
  EXPECT_EQ(engine_.stats().commands - before.commands, 6U) << "the query that blocked it, four, and the last";
  EXPECT_GE(engine_.stats().batches - before.batches, 3U) << "four commands are two batches at least";
  EXPECT_EQ(engine_.stats().store_error, "");
}

TEST_F(SmallBatches, FactWithFullMailbox_WaitsForRoom) {
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

TEST_F(SmallBatches, Stop_EndsWaitOfAnnouncer) {
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

class SingleCommandBatches : public SmallBatches {
 protected:
  SingleCommandBatches() : SmallBatches(1) {}
};

TEST_F(SingleCommandBatches, WaitingAnnouncers_AreWokenByEachCommand) {
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

}  // namespace
}  // namespace muster
