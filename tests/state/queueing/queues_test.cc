// SPEC: which gangs their queues allow to start, and what views show of queues, beside a second account in
// whole cpus.
#include "state/queueing/queues.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

using Kind = QueueBound::Kind;

// A queue `org` with the queues `a` and `b`, and gangs that run or wait in these.
class QueuesWorld : public RoomsTest {
 public:
  explicit QueuesWorld(uint32_t seed) : random_(seed) {
    QueueRules rules;
    do rules = DrawRules();
    while (!ValidateQueues(rules).empty());
    queues_.Set(rules);
    AddNode("n", 1'000);
    for (int i = 0; i < 6; ++i) AddGang(absl::StrCat("g", i), Draw(2) == 0);
    for (const auto& [name, gang] : gangs_of_) queues_.Refresh(GangAt(name), gang.runs, !gang.runs, false);
    const std::string starved = absl::StrCat("g", Draw(6));
    if (Draw(2) == 0 || gangs_of_[starved].runs) return;
    queues_.ReserveDemand(GangAt(starved));
    gangs_of_[starved].reserves = true;
  }
  void TestBody() override {}

  void Check() {
    for (const auto& [name, gang] : gangs_of_) {
      if (gang.runs) continue;
      std::optional<QueueBound> bound;
      const Reason reason = queues_.Check({&GangAt(name)}, &bound);
      const std::optional<Bound> expected = BoundOf(name);
      ASSERT_EQ(reason.none(), !expected.has_value()) << name << ": " << reason.text;
      ASSERT_EQ(bound.has_value(), expected.has_value());
      if (!expected.has_value()) continue;
      ASSERT_EQ(reason.code, expected->permanent ? ReasonCode::kQueueRejected : ReasonCode::kQueueLimit) << reason.text;
      ASSERT_EQ(std::tuple(bound->queue, bound->kind, bound->permanent),
                std::tuple(expected->queue, expected->kind, expected->permanent))
          << name << ": " << reason.text;
      ASSERT_EQ(reason.text.find("is reserved for gang") != std::string::npos, expected->names_holder) << reason.text;
    }
    const std::vector<Queues::Figures> figures = queues_.ComputeFigures();
    for (const auto& [name, queue] : queues_of_) {
      const Queues::Figures& of = figures.at(static_cast<size_t>(queue_tree_.Find(name)));
      ASSERT_EQ(AmountOf(of.used), Used(name, false)) << name;
      ASSERT_EQ(AmountOf(of.waiting), Sum(name, [](const TwinGang& gang) { return gang.runs ? 0 : gang.request(); }));
      ASSERT_EQ(of.running_gangs, Sum(name, [](const TwinGang& gang) { return gang.runs ? 1 : 0; }));
      ASSERT_EQ(of.waiting_gangs, Sum(name, [](const TwinGang& gang) { return gang.runs ? 0 : 1; }));
    }
    const std::string gone = absl::StrCat("g", Draw(6));
    queues_.Remove(GangAt(gone));
    for (const Pod* pod : GangAt(gone).in(MemberState::kRunning)) ledger_.DischargePod(pod->id, /*gained=*/true);
    const bool reserves = gangs_of_[gone].reserves;
    gangs_of_.erase(gone);
    ASSERT_EQ(queues_.ReservingGangs().size(),
              std::any_of(gangs_of_.begin(), gangs_of_.end(), [](const auto& each) { return each.second.reserves; })
                  ? 1U
                  : 0U)
        << reserves;
    const std::vector<Queues::Figures> after = queues_.ComputeFigures();
    for (const auto& [name, queue] : queues_of_) {
      const Queues::Figures& of = after.at(static_cast<size_t>(queue_tree_.Find(name)));
      ASSERT_EQ(AmountOf(of.used), Used(name, false)) << name;
      ASSERT_EQ(of.running_gangs + of.waiting_gangs, Sum(name, [](const TwinGang&) { return 1; }));
    }
  }

 private:
  struct Twin {
    int64_t limit = -1;  // none
    int64_t quota = -1;
    int32_t gangs = 0;
  };
  struct TwinGang {
    std::string queue;
    bool runs = false;
    bool preemptible = true;
    bool reserves = false;
    int32_t priority = 0;
    int32_t needed = 0;
    std::vector<int64_t> cpus;
    [[nodiscard]] int64_t request() const {
      std::vector<int64_t> smallest = cpus;
      std::sort(smallest.begin(), smallest.end());
      return std::accumulate(smallest.begin(), smallest.begin() + needed, int64_t{0});
    }
  };
  struct Bound {
    std::string queue;
    Kind kind;
    bool permanent;
    bool names_holder = false;
  };

  int64_t Draw(uint32_t below) { return static_cast<int64_t>(random_() % below); }
  // Bounds of the three queues, which may contradict each other.
  QueueRules DrawRules() {
    QueueRules rules;
    rules.starvation_limit_ms = 1;
    for (const char* name : {"org", "a", "b"}) {
      Twin& queue = queues_of_[name];
      QueueSpec& spec = rules.queues.emplace_back();
      spec.name = name;
      spec.parent = spec.name == "org" ? "" : "org";
      queue.limit = Draw(3) == 0 ? -1 : 4 + Draw(12);
      queue.quota = Draw(3) == 0 ? -1 : 2 + Draw(8);
      queue.gangs = Draw(3) == 0 ? static_cast<int32_t>(1 + Draw(4)) : 0;
      if (queue.limit >= 0) spec.limit = {{"cpu", queue.limit}};
      if (queue.quota >= 0) spec.quota = {{"cpu", queue.quota}};
      spec.max_applications = queue.gangs;
    }
    return rules;
  }
  void AddGang(const std::string& name, bool runs) {
    TwinGang& gang = gangs_of_[name];
    gang.queue = Draw(2) == 0 ? "a" : "b";
    gang.runs = runs;
    gang.preemptible = Draw(2) == 0;
    gang.priority = static_cast<int32_t>(Draw(2));
    for (int64_t left = 1 + Draw(3); left > 0; --left) gang.cpus.push_back(1 + Draw(4));
    gang.needed = static_cast<int32_t>(1 + Draw(static_cast<uint32_t>(gang.cpus.size())));
    for (size_t i = 0; i < gang.cpus.size(); ++i) {
      PodDescription facts = Facts(absl::StrCat(name, "-", i), gang.cpus[i], name, gang.needed);
      facts.gang.declaration.Mutable().queue = gang.queue;
      facts.gang.declaration.Mutable().preemptible = gang.preemptible;
      facts.priority = gang.priority;
      Put(facts, /*submitted=*/false, runs ? MemberState::kRunning : MemberState::kPending);
    }
    queues_.SetPayers(GangAt(name));
    for (const Pod* pod : GangAt(name).in(MemberState::kRunning)) {
      ledger_.ChargePod(pod->id, cluster_.FindNode("n"), pod->cls, ChargeKind::kUsed);
    }
  }
  template <typename Value>
  int64_t Sum(const std::string& queue, const Value& value) const {
    int64_t sum = 0;
    for (const auto& [name, gang] : gangs_of_) sum += queue == "org" || gang.queue == queue ? value(gang) : 0;
    return sum;
  }
  [[nodiscard]] int64_t Used(const std::string& queue, bool fixed) const {
    return Sum(queue, [&](const TwinGang& gang) {
      return gang.runs && (!fixed || !gang.preemptible)
                 ? std::accumulate(gang.cpus.begin(), gang.cpus.end(), int64_t{0})
                 : 0;
    });
  }
  static int64_t AmountOf(const ResourceList& list) { return list.contains("cpu") ? list.at("cpu") : 0; }
  // The bound that refuses the gang: a permanent one, or else the one nearest to it.
  [[nodiscard]] std::optional<Bound> BoundOf(const std::string& name) const {
    const TwinGang& gang = gangs_of_.at(name);
    std::optional<Bound> first;
    for (const std::string& queue : {gang.queue, std::string("org")}) {
      const Twin& of = queues_of_.at(queue);
      // What a starved gang waits for is kept from others of its priority or below.
      int64_t held = 0;
      int64_t held_fixed = 0;
      int32_t held_gangs = 0;
      for (const auto& [other, twin] : gangs_of_) {
        const bool shares = queue == "org" || twin.queue == queue;
        if (!twin.reserves || other == name || !shares || twin.priority < gang.priority) continue;
        held += twin.request();
        held_fixed += twin.preemptible ? 0 : twin.request();
        ++held_gangs;
      }
      std::optional<Bound> refusal;
      const auto check = [&](Kind kind, int64_t most, int64_t wants, int64_t used, int64_t kept) {
        if (most < 0 || (refusal.has_value() && (refusal->permanent || wants <= most))) return;
        if (wants > most)
          refusal = Bound{queue, kind, true};
        else if (used + wants + kept > most)
          refusal = Bound{queue, kind, false, kept > 0};
      };
      check(Kind::kLimit, of.limit, gang.request(), Used(queue, false), held);
      if (!gang.preemptible) check(Kind::kQuota, of.quota, gang.request(), Used(queue, true), held_fixed);
      const int64_t runs = Sum(queue, [](const TwinGang& each) { return each.runs ? 1 : 0; });
      if (of.gangs > 0 && !refusal.has_value() && runs + 1 > of.gangs - held_gangs) {
        refusal = Bound{queue, Kind::kRunningGangs, false};
      }
      if (!refusal.has_value()) continue;
      if (refusal->permanent || !first.has_value()) first = refusal;
      if (refusal->permanent) break;
    }
    return first;
  }

  std::mt19937 random_;
  std::map<std::string, Twin> queues_of_;
  std::map<std::string, TwinGang> gangs_of_;
};

TEST(QueuesTest, RandomQueues_AllowWhatFitsEveryBound) {
  for (uint32_t seed = 1; seed <= 3'000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    QueuesWorld(seed).Check();
  }
}

class QueueChecks : public RoomsTest {};

// of a group with gangs in two queues, each queue counts its part.
TEST_F(QueueChecks, Before_GroupInTwoQueues_CountsPartOfEach) {
  QueueRules rules;
  for (const char* name : {"a", "b"}) {
    QueueSpec& spec = rules.queues.emplace_back();
    spec.name = name;
    spec.quota = {{"cpu", 4}};
  }
  queues_.Set(rules);
  AddNode("n", 8);
  const auto put = [&](const char* name, const char* queue, int64_t cpu, bool grouped) {
    PodDescription facts = Facts(absl::StrCat(name, "-1"), cpu, name, 1);
    facts.gang.declaration.Mutable().queue = queue;
    if (grouped) facts.gang.declaration.Mutable().groups = {"d/g", "d/h"};
    Put(facts);
  };
  put("x", "b", 2, false);
  put("g", "a", 1, true);
  put("h", "b", 3, true);
  put("rest", "a", 6, false);  // so that both queues want all of their quota
  for (const char* name : {"x", "g", "h", "rest"}) {
    queues_.SetPayers(GangAt(name));
    queues_.Refresh(GangAt(name), /*runs=*/false, /*waits=*/true, /*never=*/false);
  }
  queues_.BeginRound();
  EXPECT_TRUE(queues_.Before(GangAt("g"), GangAt("x"))) << "1 of 4 against 2 of 4";
  EXPECT_FALSE(queues_.Before(GangAt("x"), GangAt("g")));
}

// A resource that no node has is no part of the cluster.
TEST_F(QueueChecks, CostShareOf_ResourceWithoutNodes_IsLeftOut) {
  QueueRules rules;
  QueueSpec& spec = rules.queues.emplace_back();
  spec.name = "a";
  spec.limit = {{"cpu", 4}, {"gpu", 4}, {"memory", 100}};
  queues_.Set(rules);
  PutNode(NodeWith("n", {{"cpu", 4}, {"memory", 100}, {"pods", 10}}));
  PodDescription facts = Facts("p", 1);
  facts.shape.Mutable().requests = {{"cpu", 1}, {"gpu", 1}, {"memory", 50}};
  EXPECT_EQ(queues_.CostShareOf(Put(facts).cls), 0.5);
}

// a pod of which nothing is known, or that is charged already, asks for no amounts; its gang counts all the same.
TEST_F(QueueChecks, Check_PodThatAsksForNothing_CountsItsGang) {
  QueueRules rules;
  QueueSpec& spec = rules.queues.emplace_back();
  spec.name = "a";
  spec.max_applications = 1;
  queues_.Set(rules);
  AddNode("n", 4);
  for (const char* name : {"runs", "unknown", "nominated"}) {
    PodDescription facts = Facts(absl::StrCat(name, "-1"), 1, name, 0);
    facts.gang.declaration.Mutable().queue = "a";
    Put(facts);
    queues_.SetPayers(GangAt(name));
  }
  ledger_.ChargePod(PodAt("nominated-1").id, cluster_.FindNode("n"), PodAt("nominated-1").cls, ChargeKind::kReserved);
  gangs_.SetFacts(PodAt("unknown-1"), PodAt("unknown-1").facts, kNoClass);
  for (const char* pod : {"unknown-1", "nominated-1"}) EXPECT_TRUE(queues_.Check(PodAt(pod)).none()) << pod;
  queues_.Refresh(GangAt("runs"), /*runs=*/true, /*waits=*/false, /*never=*/false);
  for (const char* pod : {"unknown-1", "nominated-1"}) {
    EXPECT_EQ(queues_.Check(PodAt(pod)).code, ReasonCode::kQueueLimit) << pod;
  }
}

// G-4: what a queue can never hold is rejected for good; of a gang with a member on a node, the rest is judged when it
// asks.
TEST_F(QueueChecks, PermanentRejection_ActiveMember_IsNone) {
  QueueRules rules;
  QueueSpec& spec = rules.queues.emplace_back();
  spec.name = "a";
  spec.limit = {{"cpu", 2}};
  queues_.Set(rules);
  AddNode("n", 9);
  PodDescription facts = Facts("", 1, "g", 4);
  facts.gang.declaration.Mutable().queue = "a";
  for (const char* name : {"g-1", "g-2", "g-3", "g-4"}) {
    facts.uid = facts.name = name;
    Put(facts);
  }
  EXPECT_EQ(queues_.PermanentRejection(GangAt("g")).code, ReasonCode::kQueueRejected);
  gangs_.SetState(PodAt("g-1"), MemberState::kRunning);
  EXPECT_TRUE(queues_.PermanentRejection(GangAt("g")).none());
}

// a gang that runs stays in its queue; a queue that does not serve it is charged for none of its members.
TEST_F(QueueChecks, Of_RunningGang_StaysWhereItIsServed) {
  QueueRules rules;
  rules.access = AccessPolicy::kListed;
  rules.queues = {{.name = "own"}, {.name = "other"}, {.name = "closed"}};
  rules.queues[0].access.namespaces = rules.queues[1].access.namespaces = {"d"};
  rules.queues[2].access.namespaces = {"e"};
  queues_.Set(rules);
  const auto put = [&](const char* name, const char* queue) -> const Gang& {
    PodDescription facts = Facts(absl::StrCat(name, "-1"), 1, name, 1);
    facts.gang.declaration.Mutable().queue = queue;
    Put(facts);
    return GangAt(name);
  };
  const auto queue_of = [&](const Gang& gang) {
    return queues_.Of(gang) == kNoQueue ? "" : queue_tree_.at(queues_.Of(gang)).spec.name;
  };
  const auto run = [&](const char* pod) { gangs_.SetState(PodAt(pod), MemberState::kRunning); };
  const Gang& moves = put("moves", "other");
  run("moves-1");
  gangs_.SetQueue(moves, "own");
  EXPECT_EQ(queue_of(moves), "other") << "it names a queue that serves it";
  EXPECT_EQ(queues_.WarningOf(moves), "");
  for (const char* named : {"closed", "unknown"}) {
    const Gang& stays = put(named, named);
    EXPECT_EQ(queues_.RunsIn(stays), "") << "it waits";
    run(absl::StrCat(named, "-1").c_str());
    EXPECT_EQ(queue_of(stays), "") << "another scheduler placed it";
    gangs_.SetQueue(stays, "own");
    EXPECT_EQ(queue_of(stays), "own");
    EXPECT_EQ(queues_.RunsIn(stays), "own");
    EXPECT_NE(queues_.WarningOf(stays).find("it runs in queue own until it ends"), std::string::npos);
  }
  rules.queues[0].access.namespaces = {"e"};
  queues_.Set(rules);
  const Gang& refused = put("refused", "own");
  run("refused-1");
  gangs_.SetQueue(refused, "own");
  EXPECT_EQ(queue_of(refused), "own") << "it ran there before";
  EXPECT_EQ(queues_.WarningOf(refused), "queue own does not serve it; it runs in queue own until it ends");
}

}  // namespace
}  // namespace muster
