// SPEC Q-6: where and when a claim will fit, beside a second account of running work, in whole cpus. Which future
// reservations a claim may use, and which claims the planner must distinguish because of them.
#include "state/scheduling/future_placer.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

using Rank = FutureReservations::Claimant::Rank;
using Runnable = Backfill::State::Runnable;

enum class Mode : uint8_t { kHold, kStarved, kTimed };

// Some nodes with running work, and a head without a place.
class FuturePlacerWorld : public RoomsTest {
 public:
  void TestBody() override {}

  // Work that ends as a whole; "d/..." a gang, otherwise a lone pod.
  struct Work {
    int64_t ends_ms;
    int64_t created_ms;
    std::string name;
    std::map<std::string, int64_t> cpus;  // by node
  };

  void SetPolicy(HeadPolicy head, int64_t starvation_limit_ms) {
    QueueRules rules;
    rules.head = head;
    rules.starvation_limit_ms = starvation_limit_ms;
    queues_.Set(rules);
  }
  const Gang& PutHead(int32_t pods, int64_t cpu) {
    for (int32_t i = 0; i < pods; ++i) PutMember(absl::StrCat("head-", i), cpu, "head", pods);
    return GangAt("head");
  }
  // REQUIRES: not queued.
  void Block(const Gang& gang) {
    const Reason why{ReasonCode::kNoRoom, "full"};
    backlog_.Block(gang.id, eligibility_.KeyOf(gang), gang.key, waker_.WaitsFor(gang, why), why);
  }
  void Starve(const Gang& gang) {
    SetPolicy(HeadPolicy::kBackfill, 1'000);
    gangs_.SetBypassedSince(gang, kT0 - 1'000);
  }
  const Pod& Run(PodDescription facts, const std::string& node) {
    facts.node_name = node;
    const Pod& pod = Put(facts, /*submitted=*/false, MemberState::kBound);
    ledger_.ChargePod(pod.id, cluster_.FindNode(node), pod.cls, ChargeKind::kUsed);
    return pod;
  }
  bool Reserve(const Gang& gang, Reason* reason, int64_t budget = 0, int64_t now_ms = kT0) {
    FutureReservations::Suspended suspended(future_reservations_);
    future_reservations_.Suspend(gang, {kNever, future_placer_.RankOf(gang, now_ms)}, &suspended);
    const bool made = future_placer_.Reserve(gang, {&gang}, suspended, &budget, now_ms, reason);
    future_reservations_.Resume(gang, /*placed=*/false, /*keeps_own=*/made, &suspended);
    return made;
  }
  [[nodiscard]] std::string Key(const std::string& gang) const {
    return future_placer_.GroupDemandKey(GangAt(gang), kT0);
  }
};

// One head of equal pods among random work.
class RandomWork : public FuturePlacerWorld {
 public:
  explicit RandomWork(uint32_t seed) : random_(seed) {
    const bool large = Draw(4) == 0;
    const int64_t nodes = large ? 30 : 1 + Draw(5);
    for (int64_t i = 0; i < nodes; ++i) {
      const std::string node = absl::StrCat("n", i);
      cpus_[node] = 2 + Draw(5);
      AddNode(node, cpus_[node]);
    }
    const int64_t works = large ? 80 : 2 + Draw(8);
    for (uint32_t i = 0; i < works; ++i) Draw(3) == 0 ? AddLone(i) : AddGang(i);
    std::sort(work_.begin(), work_.end(), [](const Work& a, const Work& b) {
      return std::tie(a.ends_ms, a.created_ms, a.name) < std::tie(b.ends_ms, b.created_ms, b.name);
    });
    cpu_ = 1 + Draw(3);
    pods_ = 1 + static_cast<int32_t>(Draw(large ? 60 : 6));
  }
  // Whether the head fits once the first `ended` pieces of work have ended.
  [[nodiscard]] bool Fits(size_t ended) const {
    int64_t room = 0;
    for (const auto& [node, cpu] : cpus_) room += FreeOn(node, ended) / cpu_;
    return room >= pods_;
  }
  // Whether the work was full before, or the head of this mode got what it should have got.
  bool Check(Mode mode) {
    const Gang& head = PutHead(pods_, cpu_);
    SetPolicy(mode == Mode::kHold ? HeadPolicy::kHold : HeadPolicy::kBackfill, 0);
    if (mode == Mode::kStarved) Starve(head);
    Block(head);
    if (Fits(0)) return false;
    const auto timed = static_cast<size_t>(
        std::count_if(work_.begin(), work_.end(), [](const Work& each) { return each.ends_ms != kNever; }));
    const size_t limit = mode == Mode::kTimed ? timed : work_.size();
    Reason reason{ReasonCode::kNoRoom, "full"};
    const bool made = Reserve(head, &reason);
    EXPECT_EQ(made, Fits(limit));
    EXPECT_EQ(future_reservations_.HasReservation(head), made);
    const bool known = mode != Mode::kTimed;
    EXPECT_EQ(backfill_.Of(head).runnable, !known ? Runnable::kUnknown : made ? Runnable::kYes : Runnable::kNo);
    EXPECT_FALSE(backfill_.blocking().contains(head.id));
    EXPECT_EQ(backfill_.Of(head).searched_ms, mode == Mode::kTimed && timed == 0 ? -kRetryMs : kT0);
    if (!made) {
      EXPECT_EQ(reason.text, "full");
      return true;
    }
    size_t ended = 1;
    while (!Fits(ended)) ++ended;
    const int64_t starts_ms = work_[ended - 1].ends_ms;
    EXPECT_EQ(future_reservations_.ExpectedStartAt(head), starts_ms);
    EXPECT_TRUE(future_reservations_.HasReservationOnRunning(head));
    CheckPlaces(head, ended);
    const std::string by =
        starts_ms == kNever
            ? ""
            : absl::StrCat(", by ", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(starts_ms),
                                                     absl::UTCTimeZone()));
    const std::vector<std::string> nodes = future_reservations_.Nodes(head);
    std::string on = nodes[0];
    for (size_t i = 1; i < std::min<size_t>(3, nodes.size()); ++i) absl::StrAppend(&on, ", ", nodes[i]);
    if (nodes.size() > 3) absl::StrAppend(&on, " and ", nodes.size() - 3, " more");
    const std::string text = absl::StrCat("full; capacity is reserved for it until other pods end, on ", on, by);
    EXPECT_EQ(reason.text, text);
    // Asked again, it keeps what it has.
    reason.text = "full";
    EXPECT_FALSE(Reserve(head, &reason));
    EXPECT_EQ(reason.text, text);
    EXPECT_TRUE(future_reservations_.HasReservation(head));
    return true;
  }

 private:
  static constexpr int64_t kRetryMs = 10'000;
  int64_t Draw(uint32_t below) { return static_cast<int64_t>(random_() % below); }
  [[nodiscard]] int64_t FreeOn(const std::string& node, size_t ended) const {
    int64_t free = cpus_.at(node);
    if (permanent_.contains(node)) free -= permanent_.at(node);
    for (size_t i = ended; i < work_.size(); ++i) {
      if (work_[i].cpus.contains(node)) free -= work_[i].cpus.at(node);
    }
    return std::max<int64_t>(0, free);
  }
  // A node with room for one more pod of the cpus; "": none.
  std::string NodeFor(int64_t cpu) {
    const std::string node = absl::StrCat("n", Draw(static_cast<uint32_t>(cpus_.size())));
    return FreeOn(node, 0) >= cpu ? node : "";
  }
  void AddLone(uint32_t number) {
    const int64_t cpu = 1 + Draw(2);
    const std::string node = NodeFor(cpu);
    if (node.empty()) return;
    PodDescription facts = Facts(absl::StrCat("lone-", number), cpu);
    facts.created_ms = Draw(3);
    facts.permanent = Draw(3) == 0;
    Run(facts, node);
    if (facts.permanent) {
      permanent_[node] += cpu;
    } else {
      work_.push_back({kNever, facts.created_ms, facts.uid, {{node, cpu}}});
    }
  }
  void AddGang(uint32_t number) {
    const std::string name = absl::StrCat("g", number);
    const int64_t created_ms = 1 + Draw(3);
    const int64_t duration_ms = Draw(3) == 0 ? 0 : 60'000 * (1 + Draw(4));
    work_.push_back({kNever, created_ms, "d/" + name, {}});
    for (int64_t i = 0; i < 1 + Draw(3); ++i) {
      const int64_t cpu = 1 + Draw(2);
      const std::string node = NodeFor(cpu);
      if (node.empty()) continue;
      PodDescription facts = Facts(absl::StrCat(name, "-", i), cpu, name, 1);
      facts.created_ms = created_ms;
      if (duration_ms > 0) facts.gang.declaration.Mutable().duration_ms = duration_ms;
      // A member of another scheduler uses its node while it waits at the barrier.
      constexpr MemberState kOnNodes[] = {MemberState::kBound, MemberState::kRunning, MemberState::kWaiting,
                                          MemberState::kTerminating};
      gangs_.SetState(Run(facts, node), kOnNodes[Draw(4)]);
      work_.back().cpus[node] += cpu;
    }
    if (work_.back().cpus.empty()) return work_.pop_back();
    const Gang& gang = GangAt(name);
    gangs_.SetSatisfied(gang, true);
    const int64_t started_ms = Draw(3) == 0 ? 0 : kT0 - 30'000 * Draw(6);
    backfill_.RefreshRunning(gang, started_ms == 0 ? kT0 : started_ms);
    if (duration_ms > 0) {
      work_.back().ends_ms = std::max(kT0, (started_ms == 0 ? kT0 : started_ms) + duration_ms);
    }
  }
  // The places hold all pods, and each node has the room that they need.
  void CheckPlaces(const Gang& head, size_t ended) const {
    std::map<std::string, int64_t> placed;
    int32_t pods = 0;
    for (const Statement::Operation& place : future_reservations_.ReservedPlaces(head)) {
      placed[cluster_.node(place.node).facts.name] += place.pods * cpu_;
      pods += place.pods;
    }
    EXPECT_EQ(pods, pods_);
    for (const auto& [node, cpu] : placed) EXPECT_LE(cpu, FreeOn(node, ended)) << node;
  }

  std::mt19937 random_;
  std::map<std::string, int64_t> cpus_;
  std::map<std::string, int64_t> permanent_;
  std::vector<Work> work_;
  int64_t cpu_ = 0;
  int32_t pods_ = 0;
};

TEST(FuturePlacerTest, RandomWork_HeadWaitsForFirstThatSuffices) {
  int checked = 0;
  for (uint32_t seed = 1; seed <= 900 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const auto mode = static_cast<Mode>(seed % 3);
    checked += RandomWork(seed).Check(mode) ? 1 : 0;
  }
  EXPECT_GT(checked, 300);
}

class FuturePlacerCase : public FuturePlacerWorld {};

TEST_F(FuturePlacerCase, ProjectedEnd_IsLastOfKnownEnds) {
  const auto put = [this](const std::string& name, int64_t duration_ms) -> const Gang& {
    PodDescription facts = Facts(name + "-1", 1, name, 1);
    if (duration_ms > 0) facts.gang.declaration.Mutable().duration_ms = duration_ms;
    Put(facts);
    return GangAt(name);
  };
  const Gang& brief = put("brief", 5'000);
  const Gang& longer = put("longer", 60'000);
  const Gang& unknown = put("unknown", 0);
  EXPECT_EQ(FuturePlacer::ProjectedEnd({&brief}, kT0), kT0 + 5'000);
  EXPECT_EQ(FuturePlacer::ProjectedEnd({&brief, &longer}, kT0), kT0 + 60'000);
  EXPECT_EQ(FuturePlacer::ProjectedEnd({&longer, &brief}, kT0), kT0 + 60'000);
  EXPECT_EQ(FuturePlacer::ProjectedEnd({&brief, &unknown}, kT0), kNever);
}

TEST_F(FuturePlacerCase, RankOf_PolicyAndStarvationDecide) {
  const Gang& head = PutHead(1, 1);
  SetPolicy(HeadPolicy::kBackfill, 1'000);
  EXPECT_EQ(future_placer_.RankOf(head, kT0), Rank::kAny);
  Starve(head);
  EXPECT_EQ(future_placer_.RankOf(head, kT0), Rank::kStarved);
  EXPECT_EQ(future_placer_.RankOf(head, kT0 - 1), Rank::kAny);
  PodDescription near = Facts("near-1", 1, "near", 1);
  PodAffinityTerm term;
  term.topology_key = "zone";
  near.shape.Mutable().pod_affinity.affinity = {term};
  Put(near);
  gangs_.SetBypassedSince(GangAt("near"), kT0 - 1'000);
  EXPECT_EQ(future_placer_.RankOf(GangAt("near"), kT0), Rank::kBlocksQueue);
  near = Facts("apart-1", 1, "apart", 1);
  near.shape.Mutable().pod_affinity.anti_affinity = {term};
  Put(near);
  gangs_.SetBypassedSince(GangAt("apart"), kT0 - 1'000);
  EXPECT_EQ(future_placer_.RankOf(GangAt("apart"), kT0), Rank::kStarved) << "its pods only repel others";
  SetPolicy(HeadPolicy::kHold, 1'000);
  EXPECT_EQ(future_placer_.RankOf(GangAt("near"), kT0), Rank::kBlocksQueueFirst);
}

// Claims with equal keys get the same answer: they need the same and may use the same reservations.
TEST_F(FuturePlacerCase, GroupDemandKey_EqualOnlyIfAnswersAre) {
  AddNode("n", 4);
  const auto put = [this](const std::string& name, int64_t duration_ms = 0, int32_t priority = 0,
                          std::vector<std::string> groups = {}) {
    PodDescription facts = Facts(name + "-1", 1, name, 1);
    facts.priority = priority;
    facts.gang.declaration.Mutable().groups = groups;
    if (duration_ms > 0) facts.gang.declaration.Mutable().duration_ms = duration_ms;
    Put(facts);
  };
  for (const char* name : {"a", "b", "owner"}) put(name);
  put("timed", 5'000);
  put("longer", 6'000);
  for (const char* pair : {"x", "y"}) {
    const std::vector<std::string> names = {absl::StrCat("d/", pair, "1"), absl::StrCat("d/", pair, "2")};
    put(absl::StrCat(pair, "1"), 0, 0, names);
    put(absl::StrCat(pair, "2"), 0, 0, names);
  }
  SetPolicy(HeadPolicy::kBackfill, 1'000);
  EXPECT_EQ(Key("a"), future_placer_.DemandKey(GangAt("a")));
  EXPECT_EQ(Key("a"), Key("timed"));
  EXPECT_EQ(Key("x1"), Key("x2"));
  EXPECT_NE(Key("x1"), Key("y1"));
  EXPECT_NE(Key("x1"), Key("a"));
  const std::string before = Key("a");
  const std::string group_before = Key("x1");
  const std::vector<Statement::Operation> place = {{cluster_.FindNode("n"), PodAt("owner-1").cls, 1}};
  future_reservations_.Reserve(GangAt("owner"), place, FutureReservations::WaitsFor::kRunning, kNever, kT0);
  EXPECT_NE(Key("a"), before);
  EXPECT_NE(Key("x1"), group_before);
  EXPECT_EQ(Key("a"), Key("b"));
  EXPECT_EQ(Key("a"), Key("timed")) << "when it ends decides nothing while no reservation has a known start";
  EXPECT_NE(Key("a"), Key("owner")) << "only the owner may use its reservation";
  gangs_.SetBypassedSince(GangAt("a"), kT0 - 1'000);
  EXPECT_NE(Key("a"), Key("b")) << "starved";
  gangs_.SetBypassedSince(GangAt("a"), 0);
  future_reservations_.Release(GangAt("owner"));
  future_reservations_.Reserve(GangAt("owner"), place, FutureReservations::WaitsFor::kRunning, kT0 + 5'500, kT0);
  EXPECT_EQ(Key("a"), Key("b"));
  EXPECT_NE(Key("a"), Key("timed"));
  EXPECT_NE(Key("longer"), Key("timed"));
  EXPECT_EQ(Key("timed"), future_placer_.GroupDemandKey(GangAt("timed"), kT0 + 7))
      << "how long it runs, not until when";
}

// P-8: a search that releases terminating pods is charged against the round's budget, whether or not it succeeds.
TEST_F(FuturePlacerCase, TerminatingPods_ReservedWithinBudget) {
  AddNode("n", 2);
  AddNode("m", 1);
  for (const char* name : {"old-1", "old-2"}) {
    PodDescription facts = Facts(name, 1);
    facts.deleting = true;
    const Pod& pod = Run(facts, "n");
    gangs_.SetState(pod, MemberState::kTerminating);
    EXPECT_FALSE(future_reservations_.TrackTerminating(pod, kT0));
  }
  SetPolicy(HeadPolicy::kBackfill, 0);
  const Gang& head = PutHead(3, 1);
  const auto reserve = [&](ReasonCode code, int64_t budget, int64_t now_ms) {
    FutureReservations::Suspended none(future_reservations_);
    Reason reason{code, "full"};
    const bool made = future_placer_.Reserve(head, {&head}, none, &budget, now_ms, &reason);
    return absl::StrCat(made ? "made, " : "", budget, " left: ", reason.text);
  };
  EXPECT_EQ(reserve(ReasonCode::kNoRoom, 3, kT0), "3 left: full") << "two pods are evicted and put back: 4";
  EXPECT_EQ(reserve(ReasonCode::kTooManyHolds, 9, kT0), "9 left: full");
  EXPECT_EQ(reserve(ReasonCode::kQueueLimit, 9, kT0), "9 left: full");
  EXPECT_EQ(reserve(ReasonCode::kNoRoom, 9, kT0 + FutureReservations::kTerminationPatienceMs), "9 left: full");
  EXPECT_EQ(reserve(ReasonCode::kNoRoom, 4, kT0),
            "made, 0 left: full; capacity is reserved for it, part of which terminating pods still use, on n");
  EXPECT_FALSE(future_reservations_.HasReservationOnRunning(head));
  EXPECT_EQ(backfill_.Of(head).runnable, Runnable::kUnknown);
  future_reservations_.Release(head);
  SetPolicy(HeadPolicy::kHold, 0);
  EXPECT_TRUE(absl::StartsWith(reserve(ReasonCode::kNoRoom, 9, kT0), "made, 5 left"));
  EXPECT_EQ(backfill_.Of(head).runnable, Runnable::kYes) << "no claim behind it starts meanwhile";
  EXPECT_FALSE(backfill_.blocking().contains(head.id));
  future_reservations_.Release(head);
  PutMember("head-3", 1, "more", 4);
  const Gang& more = [&]() -> const Gang& {
    for (int i = 4; i < 7; ++i) PutMember(absl::StrCat("head-", i), 1, "more", 4);
    return GangAt("more");
  }();
  int64_t budget = 9;
  Reason reason{ReasonCode::kNoRoom, "full"};
  SetPolicy(HeadPolicy::kBackfill, 0);
  FutureReservations::Suspended none(future_reservations_);
  EXPECT_FALSE(future_placer_.Reserve(more, {&more}, none, &budget, kT0, &reason));
  EXPECT_EQ(budget, 5) << "four pods do not fit, but that had to be searched";
}

// P-3: where pods must be near others is not known before these have ended.
TEST_F(FuturePlacerCase, NearOthers_NothingReserved) {
  AddNode("n", 1);
  PodDescription facts = Facts("old", 1);
  facts.deleting = true;
  gangs_.SetState(Run(facts, "n"), MemberState::kTerminating);
  EXPECT_FALSE(future_reservations_.TrackTerminating(PodAt("old"), kT0));
  PodDescription near = Facts("near-1", 1, "near", 1);
  near.shape.Mutable().pod_affinity.affinity = {{"zone", {}}};
  Put(near);
  const Gang& gang = GangAt("near");
  Starve(gang);
  Block(gang);
  Reason reason{ReasonCode::kNoRoom, "full"};
  EXPECT_FALSE(Reserve(gang, &reason, /*budget=*/9));
  EXPECT_EQ(reason.text, "full");
  EXPECT_FALSE(future_reservations_.HasReservation(gang));
}

// A starved head that its queue refuses reserves its demand there if it could run; the reason says so.
TEST_F(FuturePlacerCase, QueueRefuses_DemandIsReservedIfHeadCouldRun) {
  AddNode("n", 2);
  Run(Facts("lone", 2), "n");
  QueueSpec queue;
  queue.name = kDefaultQueue;
  queue.limit = {{"cpu", 2}};
  QueueRules rules;
  rules.queues = {queue};
  rules.starvation_limit_ms = 1'000;
  queues_.Set(rules);
  const Gang& head = PutHead(2, 1);
  PutMember("huge-1", 9, "huge", 1);
  const Gang& huge = GangAt("huge");
  const auto reserve = [&](const Gang& gang, ReasonCode code, int64_t now_ms = kT0) {
    Reason reason{code, "refused"};
    const bool made = Reserve(gang, &reason, 0, now_ms);
    return absl::StrCat(made ? "room " : "", reason.text, queues_.HasReservedDemand(gang) ? "; reserved" : "");
  };
  EXPECT_EQ(reserve(head, ReasonCode::kQueueLimit), "refused") << "not starved";
  EXPECT_EQ(backfill_.Of(head).runnable, Runnable::kUnknown);
  for (const Gang* gang : {&head, &huge}) gangs_.SetBypassedSince(*gang, kT0 - 1'000);
  EXPECT_EQ(reserve(head, ReasonCode::kQueueRejected), "refused") << "it never starts";
  EXPECT_EQ(backfill_.Of(head).runnable, Runnable::kUnknown);
  EXPECT_EQ(reserve(head, ReasonCode::kTooManyHolds), "refused");
  EXPECT_EQ(backfill_.Of(head).runnable, Runnable::kUnknown);
  const std::string reserved = absl::StrCat("refused", queues_.ReservationText(), "; reserved");
  EXPECT_EQ(reserve(head, ReasonCode::kQueueLimit), reserved);
  EXPECT_EQ(backfill_.Of(head).runnable, Runnable::kYes);
  EXPECT_EQ(reserve(head, ReasonCode::kQueueLimit, kT0 + 20'000), reserved);
  EXPECT_EQ(backfill_.Of(head).searched_ms, kT0) << "known, so not searched again";
  EXPECT_TRUE(backfill_.blocking().empty());
  EXPECT_EQ(reserve(huge, ReasonCode::kQueueLimit), "refused") << "the nodes never hold it";
  EXPECT_EQ(backfill_.Of(huge).runnable, Runnable::kNo);
  backfill_.InvalidateRunnable(huge);
  queues_.ReserveDemand(huge);
  EXPECT_EQ(reserve(huge, ReasonCode::kQueueLimit, kT0 + 9'999), "refused; reserved") << "not known yet";
  EXPECT_EQ(reserve(huge, ReasonCode::kQueueLimit, kT0 + 10'000), "refused");
  queues_.ReserveDemand(head);
  EXPECT_EQ(reserve(head, ReasonCode::kNoRoom, kT0 + 30'000),
            "room refused; capacity is reserved for it until other pods end, on n; reserved");
}

// Reservations that do not yield to the head end last; those that do are its own to use.
TEST_F(FuturePlacerCase, ReservationOfOther_WaitsForItOrUsesIt) {
  AddNode("n", 2);
  PodDescription timed = Facts("timed-1", 2, "timed", 1);
  timed.gang.declaration.Mutable().duration_ms = 60'000;
  Run(timed, "n");
  gangs_.SetSatisfied(GangAt("timed"), true);
  backfill_.RefreshRunning(GangAt("timed"), kT0);
  const Gang& head = PutHead(2, 1);
  for (const char* name : {"before", "later"}) {  // in order before the head, and after it
    PutMember(absl::StrCat(name, "-1"), 2, name, 1);
  }
  Starve(head);
  Block(head);
  Reason reason{ReasonCode::kNoRoom, "full"};
  for (const auto& [name, starts_ms] : {std::pair("before", kNever), {"later", kT0 + 60'000}}) {
    const ClassId cls = PodAt(absl::StrCat(name, "-1")).cls;
    future_reservations_.Reserve(GangAt(name), {{cluster_.FindNode("n"), cls, 1}},
                                 FutureReservations::WaitsFor::kRunning, kNever, kT0);
    backfill_.ClearHead(head);
    EXPECT_TRUE(Reserve(head, &reason)) << name;
    EXPECT_EQ(future_reservations_.ExpectedStartAt(head), starts_ms) << name;
    future_reservations_.Release(head);
    future_reservations_.Release(GangAt(name));
  }
}

// K-9: capacity that is being freed for a nominated pod is not the head's.
TEST_F(FuturePlacerCase, NominatedPods_KeepTheirShare) {
  AddNode("n", 1);
  AddNode("m", 1);
  Run(Facts("lone", 1), "n");
  PodDescription nominated = Facts("nominated", 1);
  nominated.nominated_node = "m";
  nominations_.Add(Put(nominated));
  const Gang& head = PutHead(2, 1);
  Starve(head);
  Block(head);
  Reason reason{ReasonCode::kNoRoom, "full"};
  EXPECT_FALSE(Reserve(head, &reason));
}

// A head that lacks room searches again only after a pause; under `hold` always, as everything waits for it.
TEST_F(FuturePlacerCase, StarvedHead_SearchesAgainAfterPause) {
  AddNode("n", 1);
  Run(Facts("lone", 1), "n");
  const Gang& head = PutHead(2, 1);
  Starve(head);
  Block(head);
  Reason reason{ReasonCode::kNoRoom, "full"};
  EXPECT_FALSE(Reserve(head, &reason));
  EXPECT_EQ(backfill_.Of(head).runnable, Runnable::kNo);
  AddNode("m", 1);
  EXPECT_FALSE(Reserve(head, &reason, 0, kT0 + 9'999));
  EXPECT_EQ(backfill_.Of(head).runnable, Runnable::kUnknown) << "facts may have changed since";
  EXPECT_FALSE(future_reservations_.HasReservation(head));
  EXPECT_TRUE(Reserve(head, &reason, 0, kT0 + 10'000));
  EXPECT_TRUE(future_reservations_.HasReservation(head));
}

}  // namespace
}  // namespace muster
