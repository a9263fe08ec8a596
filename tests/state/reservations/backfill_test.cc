// SPEC Q-6: which heads a start bypasses, when a head is looked at again, and which head blocks others.
#include "state/reservations/backfill.h"

#include <string>
#include <vector>

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class BackfillTest : public RoomsTest {
 protected:
  static constexpr int64_t kLimitMs = 60'000;
  static constexpr int64_t kRetryMs = 10'000;
  void SetPolicy(HeadPolicy head, int64_t limit_ms, int64_t queue_cpu = 0) {
    QueueRules rules;
    rules.head = head;
    rules.starvation_limit_ms = limit_ms;
    if (queue_cpu > 0) {
      rules.queues.emplace_back().name = kDefaultQueue;
      rules.queues.back().limit = {{"cpu", queue_cpu}};
    }
    queues_.Set(rules);
  }
  // Blocks the gang again, in its lane.
  void Block(const std::string& name, const WakeCondition& wait, ReasonCode code = ReasonCode::kNoRoom) {
    const Gang& gang = GangAt(name);
    backlog_.Remove(gang.id);
    backlog_.Block(gang.id, eligibility_.KeyOf(gang), name, wait, {code, "x"}, queues_.Of(gang) + 1);
  }
  [[nodiscard]] WakeCondition RoomFor(const std::string& name) const {
    return waker_.WaitsFor(GangAt(name), {ReasonCode::kNoRoom, ""});
  }
  void Bypass(const std::string& name, int64_t since_ms) { gangs_.SetBypassedSince(GangAt(name), since_ms); }
  std::string NamesOf(const std::vector<ClaimId>& ids) {
    std::string out;
    for (const ClaimId id : ids) absl::StrAppend(&out, gangs_.gang(id).name, " ");
    return out;
  }
};

TEST_F(BackfillTest, Deadline_FollowsWhatTheHeadWaitsFor) {
  AddNode("n", 4);
  const Gang& g = PutGang("g", 2);
  SetPolicy(HeadPolicy::kBackfill, kLimitMs);
  const auto due = [&] { return backfill_.Deadline(g); };
  Bypass("g", kT0 - 1);
  EXPECT_EQ(due(), kNever) << "it is not blocked";
  Block("g", {{}, /*holds=*/true});
  EXPECT_EQ(due(), kNever);
  Block("g", RoomFor("g"));
  EXPECT_EQ(due(), kT0 - 1 + kLimitMs) << "when it is starved";
  Bypass("g", 0);
  EXPECT_EQ(due(), kNever) << "nothing has bypassed it";
  Bypass("g", 1);
  EXPECT_EQ(due(), 1 + kLimitMs);
  backfill_.ScheduleRetry(g, kT0);
  EXPECT_EQ(due(), kT0 + kRetryMs);
  backfill_.MarkSearched(g, kT0 + 5);
  EXPECT_EQ(due(), kT0 + 5 + kRetryMs) << "not before the next search is allowed";
  backfill_.SetRunnable(g, /*runnable=*/false, /*blocking=*/false, kT0);
  EXPECT_EQ(due(), kNever) << "it cannot run at all";
  backfill_.SetRunnable(g, /*runnable=*/true, /*blocking=*/false, kT0 + 9);
  EXPECT_EQ(due(), kT0 + 9 + kRetryMs);
  future_reservations_.Reserve(g, {{cluster_.FindNode("n"), PodAt("g-1").cls, 2}},
                               FutureReservations::WaitsFor::kRunning, kNever, kT0);
  EXPECT_EQ(due(), kNever) << "its room is reserved";
  backfill_.SetRunnable(g, /*runnable=*/true, /*blocking=*/true, kT0 + 20);
  EXPECT_EQ(due(), kT0 + 20 + kRetryMs) << "whatever else";
  future_reservations_.Release(g);
  backfill_.ClearHead(g);
  SetPolicy(HeadPolicy::kBackfill, 0);
  EXPECT_EQ(due(), kNever) << "no head starves";
  SetPolicy(HeadPolicy::kHold, 1);
  EXPECT_EQ(due(), kNever);
  SetPolicy(HeadPolicy::kBackfill, 1);
  EXPECT_EQ(due(), 2) << "1 ms after it was bypassed";
}

// A head that waits for its queue is looked at again when it is no longer known whether it could run.
TEST_F(BackfillTest, Deadline_HeadOfQueue_IsSearchedAgain) {
  AddNode("n", 4);
  SetPolicy(HeadPolicy::kBackfill, kLimitMs, 2);
  const Gang& g = PutGang("g", 2);
  Bypass("g", kT0);
  Block("g", {{}, /*holds=*/false, /*queue=*/true}, ReasonCode::kQueueLimit);
  const auto due = [&] { return backfill_.Deadline(g); };
  EXPECT_EQ(due(), kT0 + kLimitMs);
  queues_.ReserveDemand(g);
  EXPECT_EQ(due(), kNever) << "its demand is reserved";
  backfill_.SetRunnable(g, /*runnable=*/true, /*blocking=*/false, 0);
  EXPECT_EQ(due(), kNever);
  backfill_.InvalidateRunnable(g);
  EXPECT_EQ(backfill_.Of(g).runnable, Backfill::State::Runnable::kYes) << "only a head that could not run";
  Touched(g);
  backfill_.InvalidateReservingRunnable();
  EXPECT_EQ(backfill_.Of(g).runnable, Backfill::State::Runnable::kUnknown);
  EXPECT_TRUE(Touched(g));
  EXPECT_EQ(due(), kRetryMs) << "it was searched at 0";
  backfill_.InvalidateReservingRunnable();
  EXPECT_FALSE(Touched(g)) << "that is known already";
  queues_.ReleaseDemand(g);
  EXPECT_EQ(due(), kT0 + kLimitMs);
  SetPolicy(HeadPolicy::kHold, 0, 2);
  Block("g", {{}, false, /*queue=*/true}, ReasonCode::kQueueLimit);
  EXPECT_EQ(due(), kRetryMs);
  Block("g", RoomFor("g"));
  EXPECT_EQ(due(), kNever) << "it waits for nodes";
  // Neither a head that waits for nodes nor one that is not queued is searched again.
  SetPolicy(HeadPolicy::kBackfill, kLimitMs, 2);
  queues_.ReserveDemand(g);
  backfill_.SetRunnable(g, /*runnable=*/true, /*blocking=*/false, kT0);
  Block("g", RoomFor("g"));
  backfill_.InvalidateReservingRunnable();
  EXPECT_EQ(backfill_.Of(g).runnable, Backfill::State::Runnable::kYes);
  backlog_.Remove(g.id);
  backfill_.InvalidateReservingRunnable();
  EXPECT_EQ(backfill_.Of(g).runnable, Backfill::State::Runnable::kYes);
}

TEST_F(BackfillTest, RefreshRunning_TimesClaimsThatDeclareADuration) {
  PodDescription facts = Facts("g-1", 1, "g", 1);
  facts.gang.declaration.Mutable().duration_ms = 1;
  Put(facts);
  PutGang("untimed", 1);
  SetPolicy(HeadPolicy::kBackfill, kLimitMs);
  const Gang& g = GangAt("g");
  const auto refresh = [&](const Gang& gang, bool satisfied, int64_t now_ms) {
    gangs_.SetSatisfied(gang, satisfied);
    backfill_.RefreshRunning(gang, now_ms);
  };
  Bypass("g", 1);
  refresh(g, false, kT0);
  EXPECT_EQ(g.durable.bypassed_since_ms, 1) << "it waits still";
  EXPECT_FALSE(backfill_.HasTimedGangs());
  EXPECT_EQ(g.durable.started_ms, 0);
  refresh(g, true, kT0);
  EXPECT_EQ(g.durable.bypassed_since_ms, 0);
  EXPECT_TRUE(backfill_.HasTimedGangs());
  EXPECT_EQ(g.durable.started_ms, kT0);
  refresh(g, true, kT0 + 7);
  EXPECT_EQ(g.durable.started_ms, kT0);
  refresh(g, false, kT0 + 9);
  EXPECT_FALSE(backfill_.HasTimedGangs());
  EXPECT_EQ(g.durable.started_ms, 0) << "the gang has ended; the next run has a start of its own";
  gangs_.SetStarted(GangAt("untimed"), 1);
  refresh(GangAt("untimed"), true, kT0);
  EXPECT_FALSE(backfill_.HasTimedGangs());
  EXPECT_EQ(GangAt("untimed").durable.started_ms, 1);
  refresh(GangAt("untimed"), false, kT0);
  EXPECT_EQ(GangAt("untimed").durable.started_ms, 0);
  refresh(g, true, kT0);
  backfill_.Remove(g);
  EXPECT_FALSE(backfill_.HasTimedGangs());
}

// A start bypasses the heads before it that could run and have not been bypassed yet.
TEST_F(BackfillTest, BypassedHeads_AreHeadsBeforeThatCouldRun) {
  AddNode("n", 4);
  for (const char* name : {"a", "b", "z"}) PutGang(name, 1);
  SetPolicy(HeadPolicy::kBackfill, kLimitMs);
  const auto by = [&](const char* name) { return NamesOf(backfill_.BypassedHeads(GangAt(name))); };
  EXPECT_EQ(by("z"), "");
  for (const char* name : {"a", "b"}) Block(name, RoomFor(name));
  EXPECT_EQ(by("z"), "a ") << "b is not the first of its lane";
  EXPECT_EQ(by("a"), "");
  EXPECT_EQ(by("b"), "a ");
  Block("a", {{}, /*holds=*/true});
  EXPECT_EQ(by("z"), "b ") << "a waits for no capacity";
  Block("a", RoomFor("a"), ReasonCode::kQueueRejected);
  EXPECT_EQ(by("z"), "b ") << "a never starts";
  Block("a", RoomFor("a"));
  backfill_.SetRunnable(GangAt("a"), /*runnable=*/false, /*blocking=*/false, kT0);
  EXPECT_EQ(by("z"), "b ");
  backfill_.InvalidateRunnable(GangAt("a"));
  Bypass("a", 1);
  EXPECT_EQ(by("z"), "") << "a is bypassed already, and it is the head";
  Bypass("a", 0);
  Touched(GangAt("a"));
  backfill_.MarkBypassed(backfill_.BypassedHeads(GangAt("z")), kT0);
  EXPECT_EQ(GangAt("a").durable.bypassed_since_ms, kT0);
  EXPECT_TRUE(Touched(GangAt("a")));
  EXPECT_FALSE(backfill_.IsStarved(GangAt("a"), kT0 + kLimitMs - 1));
  EXPECT_TRUE(backfill_.IsStarved(GangAt("a"), kT0 + kLimitMs));
  Bypass("a", 0);
  SetPolicy(HeadPolicy::kBackfill, 1);
  EXPECT_EQ(by("z"), "a ");
  for (const auto& [head, limit_ms] : {std::pair(HeadPolicy::kHold, kLimitMs), {HeadPolicy::kBackfill, int64_t{0}}}) {
    SetPolicy(head, limit_ms);
    EXPECT_EQ(by("z"), "") << "no head is bypassed";
  }
}

// A pod without a plan bypasses the heads whose members could use what it takes on its node.
TEST_F(BackfillTest, BypassedHeads_LonePod_TakesWhatMembersNeed) {
  PutNode(NodeWith("n", {{"cpu", 4}, {"gpu", 2}, {"pods", 10}}));
  PutNode(NodeWith("cordoned", {{"cpu", 4}, {"pods", 10}}));
  ChangeNode("cordoned", [](NodeDescription* node) { node->unschedulable = true; });
  PutMember("a-1", 2, "a", 1);
  SetPolicy(HeadPolicy::kBackfill, kLimitMs);
  Block("a", RoomFor("a"));
  int made = 0;
  const auto by = [&](ResourceList requests, const std::string& node, int32_t priority = 0) {
    PodDescription facts = Facts(absl::StrCat("lone-", made++), 1);
    facts.name = "z";
    facts.shape.Mutable().requests = std::move(requests);
    facts.priority = priority;
    facts.node_name = node;
    const Pod& pod = Put(facts, /*submitted=*/false, MemberState::kBound);
    const NodeId id = cluster_.FindNode(node);
    ledger_.ChargePod(pod.id, id, pod.cls, ChargeKind::kUsed);
    std::string out = NamesOf(backfill_.BypassedHeads(pod, id));
    ledger_.DischargePod(pod.id, /*gained=*/true);
    return out;
  };
  EXPECT_EQ(by({{"cpu", 1}}, "n"), "a ") << "one member fits instead of two";
  EXPECT_EQ(by({{"gpu", 1}}, "n"), "") << "members need no gpu";
  EXPECT_EQ(by({{"cpu", 0}}, "n"), "");
  EXPECT_EQ(by({{"cpu", 1}}, "n", 1), "") << "it comes before";
  EXPECT_EQ(by({{"cpu", 1}}, "cordoned"), "");
  const Pod& odd = PutLone("odd", 1);
  ledger_.ChargePod(odd.id, cluster_.FindNode("n"), odd.cls, ChargeKind::kUsed);
  EXPECT_EQ(by({{"cpu", 1}}, "n"), "") << "3 cpus are left for one member, with it 2";
  EXPECT_EQ(by({{"cpu", 2}}, "n"), "a ");
  EXPECT_EQ(by({{"cpu", 3}}, "n"), "a ");
  // A member that needs gpus too: what is scarce for it decides.
  PodDescription facts = Facts("b-1", 1, "b", 1);
  facts.shape.Mutable().requests["gpu"] = 2;
  facts.priority = 1;
  Put(facts);
  backlog_.Remove(GangAt("a").id);
  Block("b", RoomFor("b"));
  EXPECT_EQ(by({{"cpu", 1}}, "n"), "") << "gpus are scarce";
  EXPECT_EQ(by({{"gpu", 1}}, "n"), "b ");
  Block("b", {});
  EXPECT_EQ(by({{"cpu", 0}}, "n"), "b ") << "it is not known what it needs";
}

TEST_F(BackfillTest, BlockingHead_BlocksWhatComesBehind) {
  AddNode("n", 4);
  for (const char* name : {"a", "b", "c"}) PutGang(name, 1);
  SetPolicy(HeadPolicy::kBackfill, kLimitMs);
  const auto blocks = [&](const char* name) {
    const Claim* head = backfill_.FindBlockingHead(GangAt(name));
    return head == nullptr ? "" : head->key;
  };
  Block("b", RoomFor("b"));
  EXPECT_FALSE(backfill_.HasBlockingHead());
  EXPECT_EQ(blocks("c"), "");
  backfill_.SetRunnable(GangAt("b"), /*runnable=*/true, /*blocking=*/true, kT0);
  EXPECT_TRUE(backfill_.HasBlockingHead());
  EXPECT_EQ(backfill_.FindFirstBlockingHead(), &GangAt("b"));
  EXPECT_EQ(blocks("c"), "d/b");
  EXPECT_EQ(blocks("b"), "");
  EXPECT_EQ(blocks("a"), "") << "it comes before";
  QueueKey partial = eligibility_.KeyOf(GangAt("c"));
  partial.partially_bound = true;
  backlog_.Add(GangAt("c").id, partial);
  EXPECT_EQ(blocks("c"), "") << "it is completed before anything else";
  backfill_.SetRunnable(GangAt("b"), /*runnable=*/true, /*blocking=*/false, kT0);
  EXPECT_FALSE(backfill_.HasBlockingHead());
  EXPECT_EQ(backfill_.FindFirstBlockingHead(), nullptr);
  SetPolicy(HeadPolicy::kHold, 0);
  EXPECT_EQ(backfill_.FindFirstBlockingHead(), &GangAt("b"));
  Block("b", {{}, false, /*queue=*/true}, ReasonCode::kQueueLimit);
  EXPECT_EQ(backfill_.FindFirstBlockingHead(), nullptr) << "it waits for its queue only";
  // IsFirstHead: of those that wait for nodes.
  EXPECT_TRUE(backfill_.IsFirstHead(GangAt("a")));
  EXPECT_TRUE(backfill_.IsFirstHead(GangAt("c")));
  Block("b", RoomFor("b"));
  EXPECT_FALSE(backfill_.IsFirstHead(GangAt("c")));
  EXPECT_TRUE(backfill_.IsFirstHead(GangAt("b")));
  EXPECT_TRUE(backfill_.IsFirstHead(GangAt("a")));
}

}  // namespace
}  // namespace muster
