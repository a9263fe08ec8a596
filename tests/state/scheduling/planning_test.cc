// SPEC P-2, P-9, P-10, K-4: which gang is tried, and when it is not tried again.
#include "state/scheduling/planning.h"

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/cluster_hash.h"
#include "tests/support/rooms_fixture.h"

namespace muster {
namespace {

class PlanningTest : public RoomsTest {
 protected:
  explicit PlanningTest(int32_t max_holds = 100) : RoomsTest(max_holds) {}
  void Queue(const std::string& gang) { backlog_.Add(GangAt(gang).id, eligibility_.KeyOf(GangAt(gang))); }
  void Round(int32_t max_gangs = 64) { planning_.Round(max_gangs, &*ctx_); }
  [[nodiscard]] bool Planned(const std::string& gang) const { return plans_.Of(GangAt(gang)) != nullptr; }
  [[nodiscard]] const Reason& Why(const std::string& gang) const { return backlog_.why(GangAt(gang).id); }
  // All gangs are in a queue with these limits, on a node of 10 cpus.
  void SetQueue(QueueSpec queue) {
    queue.name = kDefaultQueue;
    QueueRules rules;
    rules.queues = {queue};
    queues_.Set(rules);
    AddNode("n", 10);
  }
  // A group of two gangs of one pod each.
  void PutGroup(const std::string& one, const std::string& other, const ResourceList& min_resources = {}) {
    for (const std::string& name : {one, other}) {
      PodDescription facts = Facts(name + "-1", 1, name, 1);
      facts.gang.declaration.Mutable().groups = {"d/" + one, "d/" + other};
      if (!min_resources.empty()) facts.gang.declaration.Mutable().min_resources = min_resources;
      Put(facts);
    }
  }
};

class HoldLimitTest : public PlanningTest {
 protected:
  HoldLimitTest() : PlanningTest(/*max_holds=*/3) {}
};

TEST_F(PlanningTest, Round_FactsNotRead_PlansNothing) {
  AddNode("n", 4);
  PutGang("g", 1);
  Queue("g");
  Sources unread;
  Planning early({&gangs_, &eligibility_, &unread, &backlog_, &queues_, &future_reservations_, &backfill_, &waker_,
                  &future_placer_, &plan_maker_});
  EXPECT_FALSE(early.IsRoundDue());
  early.Round(64, &*ctx_);
  EXPECT_FALSE(Planned("g"));
  EXPECT_TRUE(planning_.IsRoundDue());
  Round();
  EXPECT_TRUE(Planned("g"));
  EXPECT_EQ(backlog_.queued(GangAt("g").id), nullptr);
  EXPECT_FALSE(planning_.IsRoundDue());
}

// K-13: an interrupted start gets the nodes that it had, for exactly the members that it needs, or nothing.
TEST_F(PlanningTest, Restore_TakesAllFormerNodesOrNone) {
  for (const char* node : {"n", "m", "cordoned"}) AddNode(node, 2);
  ChangeNode("cordoned", [](NodeDescription* node) { node->unschedulable = true; });
  for (const auto& [name, cpu, priority] :
       {std::tuple("g-1", 2, 5), std::tuple("g-2", 1, 3), std::tuple("g-3", 1, 1)}) {
    PodDescription facts = Facts(name, cpu, "g", 2);
    facts.priority = priority;
    Put(facts);
  }
  PutMember("other-1", 1, "other", 1);
  const Gang& g = GangAt("g");
  const auto restore = [&](const std::vector<std::pair<std::string, std::string>>& places) {
    std::vector<PlanMaker::Destination> to;
    for (const auto& [pod, node] : places) to.push_back({&PodAt(pod), cluster_.FindNode(node)});
    return plan_maker_.Restore({&g}, to, &*ctx_);
  };
  EXPECT_FALSE(restore({{"g-1", "n"}})) << "one is missing";
  EXPECT_FALSE(restore({{"g-1", "n"}, {"g-2", "m"}, {"g-3", "m"}})) << "one too many";
  EXPECT_FALSE(restore({{"g-1", "n"}, {"g-2", "gone"}}));
  EXPECT_FALSE(restore({{"g-1", "n"}, {"g-2", "n"}})) << "no room for both";
  EXPECT_FALSE(restore({{"g-1", "n"}, {"g-2", "cordoned"}}));
  EXPECT_FALSE(restore({{"g-1", "n"}, {"other-1", "m"}})) << "of another gang";
  QueueSpec queue;
  queue.limit = {{"cpu", 2}};
  SetQueue(queue);
  EXPECT_FALSE(restore({{"g-1", "n"}, {"g-2", "m"}})) << "more than its queue admits";
  queues_.Set(QueueRules());
  EXPECT_EQ(plan_maker_.stats().placed, 0);
  EXPECT_EQ(std::pair(ReservedOn("n"), ReservedOn("m")), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_TRUE(restore({{"g-1", "n"}, {"other-1", "n"}, {"g-2", "m"}}));
  EXPECT_EQ(plan_maker_.stats().placed, 1);
  EXPECT_EQ(plans_.Of(g)->lowest_priority, 3);
  EXPECT_EQ(plans_.Of(g)->slots[static_cast<size_t>(plans_.SlotIndex(PodAt("g-1")))].node, cluster_.FindNode("n"));
  EXPECT_EQ(plans_.Of(g)->slots[static_cast<size_t>(plans_.SlotIndex(PodAt("g-2")))].node, cluster_.FindNode("m"));
  EXPECT_EQ(std::pair(ReservedOn("n"), ReservedOn("m")), std::pair(int64_t{2}, int64_t{1}));
}

// P-10: gangs with equal keys get one answer, so whatever decides where a gang fits, or whether its queue admits it, is
// in the key; and what does not, is not.
TEST_F(PlanningTest, DemandKey_DistinguishesWhatDecides) {
  QueueRules rules;
  for (const char* name : {"team", "other"}) rules.queues.emplace_back().name = name;
  int made = 0;
  const auto key = [&](const std::function<void(GangDeclaration*)>& change, const std::string& home = "") {
    const std::string name = absl::StrCat("g", made++);
    for (const char* member : {"-1", "-2"}) {
      PodDescription facts = Facts(name + member, 1, name, 1);
      GangDeclaration& declared = facts.gang.declaration.Mutable();
      declared.subgroups = {{"top", "", 2}, {"a", "top", 1}, {"b", "top", 1}};
      declared.min_resources = {{"cpu", 1}};
      declared.queue = "team";
      change(&declared);
      facts.gang.subgroup = declared.subgroups.empty() ? "" : member[1] == '1' ? "a" : "b";
      Put(facts);
    }
    if (!home.empty()) {
      PodDescription facts = Facts(name + "-home", 1, name, 1);
      facts.gang.declaration = PodAt(name + "-1").facts.gang.declaration;
      facts.gang.subgroup = "a";
      facts.node_name = home;
      const Pod& pod = Put(facts, false, MemberState::kRunning);
      ledger_.ChargePod(pod.id, AddNode(home, 9), pod.cls, ChargeKind::kUsed);
    }
    return placer_.DemandKey(GangAt(name));
  };
  const auto nothing = [](GangDeclaration*) {};
  const auto in_rack = [](GangDeclaration* d) { d->topology = {.required = "rack"}; };
  const std::vector<std::function<void(GangDeclaration*)>> changes = {
      nothing,
      [](GangDeclaration* d) { d->subgroups.clear(); },
      [](GangDeclaration* d) { d->subgroups[0].minimum = 1; },
      [](GangDeclaration* d) { d->subgroups[1].minimum = 2; },
      [](GangDeclaration* d) { d->subgroups[2].minimum = 2; },
      [](GangDeclaration* d) { d->subgroups[2].minimum = 0; },
      [](GangDeclaration* d) { d->subgroups[0].minimum = 1, d->subgroups[2].parent = ""; },
      [](GangDeclaration* d) { d->subgroups[0].minimum = 1, d->subgroups[2].parent = "", d->min_member = 2; },
      [](GangDeclaration* d) { d->subgroups[1].topology.required = "rack"; },
      [](GangDeclaration* d) { d->subgroups[2].topology.required = "rack"; },
      in_rack,
      [](GangDeclaration* d) { d->topology = {.preferred = "rack"}; },
      [](GangDeclaration* d) {
        d->min_resources = {{"memory", 1}};
      },
      [](GangDeclaration* d) {
        d->min_resources = {{"cpu", 2}};
      },
      [](GangDeclaration* d) {
        d->min_resources = {{"cpu", 1}, {"memory", 1}};
      },
      [](GangDeclaration* d) { d->priority = 7; },
      [](GangDeclaration* d) { d->total_number = 9; },
      [](GangDeclaration* d) { d->queue = "other"; },
      [](GangDeclaration* d) { d->preemptible = false; },
  };
  for (const bool queues : {false, true}) {
    if (queues) queues_.Set(rules);
    std::map<std::string, size_t> keys = {{key(in_rack, "n"), 100}, {key(in_rack, "m"), 200}};
    EXPECT_EQ(keys.size(), 2U);
    for (size_t i = 0; i < changes.size() - (queues ? 0 : 3); ++i) {
      const auto [known, is_new] = keys.emplace(key(changes[i]), i);
      EXPECT_TRUE(is_new) << i << " like " << known->second;
    }
    EXPECT_TRUE(keys.contains(key(nothing))) << "of another name";
    EXPECT_TRUE(keys.contains(key([](GangDeclaration* d) { d->wait_time_ms = 1'000; })));
  }
}

// P-9: whether a queue refuses a gang for another bound than before is decided by the bound, not by the sentence.
TEST_F(PlanningTest, QueueRefusal_IsKeptWithItsBound) {
  QueueSpec queue;
  queue.limit = {{"cpu", 4}};
  SetQueue(queue);
  for (const auto& [name, members] : {std::pair("a", 3), std::pair("b", 2), std::pair("c", 5)}) {
    queues_.SetPayers(PutGang(name, members));
    Queue(name);
  }
  Round();
  EXPECT_TRUE(Planned("a"));
  EXPECT_EQ(backlog_.details(GangAt("b").id).queue_bound,
            (QueueBound{kDefaultQueue, QueueBound::Kind::kLimit, /*permanent=*/false, "cpu", 2, 4}))
      << Why("b").text;
  EXPECT_EQ(backlog_.details(GangAt("c").id).queue_bound,
            (QueueBound{kDefaultQueue, QueueBound::Kind::kLimit, /*permanent=*/true, "cpu", 5, 0}))
      << Why("c").text;
}

TEST_F(PlanningTest, QueueRefusal_OfRunningGangs_IsKeptWithItsBound) {
  QueueSpec queue;
  queue.max_applications = 1;
  SetQueue(queue);
  for (const char* name : {"a", "b"}) {
    queues_.SetPayers(PutGang(name, 1));
    Queue(name);
  }
  Round();
  EXPECT_TRUE(Planned("a"));
  EXPECT_EQ(backlog_.details(GangAt("b").id).queue_bound,
            (QueueBound{kDefaultQueue, QueueBound::Kind::kRunningGangs, /*permanent=*/false, "", 0, 1}))
      << Why("b").text;
}

TEST_F(PlanningTest, Round_WithLimit_TriesThatManyInOrder) {
  AddNode("n", 9);
  for (const char* name : {"a", "b", "c"}) {
    PutGang(name, 1);
    Queue(name);
  }
  Touched(GangAt("a"));
  Round(2);
  EXPECT_TRUE(Planned("a"));
  EXPECT_TRUE(Planned("b"));
  EXPECT_FALSE(Planned("c"));
  EXPECT_TRUE(planning_.IsRoundDue());
  EXPECT_EQ(gangs_.TakeTouched(), &GangAt("a"));
  EXPECT_NE(plans_.Of(GangAt("a"))->id, plans_.Of(GangAt("b"))->id);
  Round(0);
  EXPECT_FALSE(Planned("c"));
  Round(2);
  EXPECT_TRUE(Planned("c"));
}

// P-9: a blocked gang is not tried again until something that it can use was gained.
TEST_F(PlanningTest, BlockedGang_WaitsForRoomThatItCanUse) {
  AddNode("n", 1);
  PodDescription ssd = Facts("big-1", 4, "big", 1);
  ssd.shape.Mutable().node_selector = {{"disk", "ssd"}};
  Put(ssd);
  Queue("big");
  Round();
  EXPECT_FALSE(Planned("big"));
  EXPECT_EQ(Why("big").code, ReasonCode::kNoRoom);
  EXPECT_NE(Why("big").text.find("room for 0 of 1 members; "), std::string::npos) << Why("big").text;
  EXPECT_EQ(Why("big").text.find("of gang"), std::string::npos);
  EXPECT_FALSE(planning_.IsRoundDue());
  AddNode("m", 9);  // no ssd
  EXPECT_TRUE(planning_.IsRoundDue()) << "somebody has to look whether it helps";
  Round();
  EXPECT_FALSE(planning_.IsRoundDue());
  EXPECT_FALSE(Planned("big"));
  NodeDescription full;
  full.name = "o";
  full.labels = {{"disk", "ssd"}};
  full.allocatable = {{"cpu", 3}, {"pods", 10}};
  PutNode(full);
  Round();
  EXPECT_FALSE(Planned("big"));
  full.allocatable["cpu"] = 4;
  PutNode(full);
  Round();
  EXPECT_TRUE(Planned("big"));
}

// Largest first, each on the fullest node, gives 5+4 and 4+3+2. Two orders are too few to find 5+3+2 and 4+4+2.
TEST_F(PlanningTest, SearchWithoutResult_IsCounted) {
  AddNode("n1", 10'010);
  AddNode("n2", 10'010);
  int64_t at = 0;
  for (const int64_t cpu : {5000, 4001, 4000, 3000, 2001, 2000}) {
    Put(Facts(absl::StrCat("g-", ++at), cpu, "g", 6));
  }
  Queue("g");
  PlanMaker maker({&cluster_, &gangs_, &eligibility_, &plans_, &queues_, &nominations_, &plan_lifecycle_, &placer_},
                  {100, 1});
  Planning hasty({&gangs_, &eligibility_, &sources_, &backlog_, &queues_, &future_reservations_, &backfill_, &waker_,
                  &future_placer_, &maker});
  for (const int32_t times : {1, 2}) {
    hasty.Round(64, &*ctx_);
    EXPECT_EQ(Why("g").code, ReasonCode::kNoPlaceFound) << Why("g").text;
    EXPECT_EQ(hasty.stats(), (PlanningStats{.tries = 2 * times - 1, .given_up = times}));
    EXPECT_EQ(hasty.TimesGivenUp(GangAt("g")), times);
    EXPECT_EQ(hasty.RetryAt(GangAt("g")), kT0 + 1'000 * times);
    hasty.Retry(GangAt("g"));
  }
  AddNode("n3", 20'010);
  hasty.Round(64, &*ctx_);
  EXPECT_EQ(hasty.stats().placed, 1);
  EXPECT_EQ(hasty.TimesGivenUp(GangAt("g")), 0);
}

// S-5: the figures of a reason follow changes of capacity. A loss wakes no gang.
TEST_F(PlanningTest, RefreshExplanation_CapacityChanged_UpdatesReasonOrWakes) {
  const auto resize = [this](int64_t cpu) {
    ChangeNode("n", [cpu](NodeDescription* node) { node->allocatable["cpu"] = cpu; });
    planning_.RefreshExplanation(GangAt("g"));
  };
  AddNode("n", 2);
  PlanNow(PutGang("g", 3));
  resize(1);
  EXPECT_EQ(Why("g").text.substr(0, 23), "room for 1 of 3 members") << Why("g").text;
  EXPECT_FALSE(backlog_.is_forced_retry(GangAt("g").id));
  resize(9);
  EXPECT_TRUE(backlog_.is_forced_retry(GangAt("g").id)) << "there is room now";
}

// P-9: while a gang is blocked, an identical gang is not tried. Once the first is placed, the second is tried.
TEST_F(PlanningTest, IdenticalGang_IsBlockedAndWokenWithTheFirst) {
  AddNode("n", 1);
  for (const char* name : {"a", "b"}) {
    PutMember(absl::StrCat(name, "-1"), 2, name, 1);
    Queue(name);
  }
  Round();
  EXPECT_EQ(Why("a"), Why("b"));
  EXPECT_FALSE(planning_.IsRoundDue());
  EXPECT_EQ(planning_.DemandKey(GangAt("a")), planning_.DemandKey(GangAt("b")));
  AddNode("m", 4);
  Round();
  EXPECT_TRUE(Planned("a"));
  EXPECT_TRUE(Planned("b")) << "what let the first go let the second go";
}

TEST_F(PlanningTest, DemandKey_DifferentDemands_Differ) {
  PutMember("a-1", 1, "a", 1);
  const auto needs = [&](PodDescription facts) {
    static int count = 0;
    const std::string name = absl::StrCat("x", ++count);
    facts.uid = facts.name = name;
    facts.gang.name = name;
    Put(facts);
    return planning_.DemandKey(GangAt(name));
  };
  const std::string alike = needs(Facts("", 1, "", 1));
  EXPECT_EQ(alike, planning_.DemandKey(GangAt("a")));
  EXPECT_NE(needs(Facts("", 2, "", 1)), alike) << "another class";
  EXPECT_NE(needs(Facts("", 1, "", 2)), alike) << "another minimum";
  EXPECT_EQ(planning_.GroupDemandKey(GangAt("a"), /*now_ms=*/0), planning_.DemandKey(GangAt("a")));
  PutGroup("b", "c");
  EXPECT_NE(planning_.GroupDemandKey(GangAt("b"), /*now_ms=*/0), planning_.DemandKey(GangAt("b")));
  EXPECT_EQ(planning_.GroupDemandKey(GangAt("b"), /*now_ms=*/0), planning_.GroupDemandKey(GangAt("c"), /*now_ms=*/0));
}

TEST_F(PlanningTest, LaterIdenticalGang_FirstRemoved_IsStillWoken) {
  AddNode("n", 1);
  PutMember("a-1", 2, "a", 1);
  Queue("a");
  Round();
  PutMember("b-1", 2, "b", 1);  // arrives later, with the same demand
  Queue("b");
  Round();
  EXPECT_EQ(Why("b").code, ReasonCode::kNoRoom);
  RemoveMember("a-1");
  backlog_.Remove(GangAt("a").id);
  AddNode("m", 2);
  Round();
  EXPECT_TRUE(Planned("b"));
}

// K-4: the holds of a plan are counted before its first member arrives.
TEST_F(HoldLimitTest, GangNeedingMoreThanLimit_IsBlocked) {
  AddNode("n", 9);
  PutGang("g", 4);
  Queue("g");
  Round();
  EXPECT_EQ(Why("g").code, ReasonCode::kTooManyHolds);
  EXPECT_EQ(Why("g").text, "needs 4 held binds at once, the limit is 3 (holds.max)");
  planning_.RefreshExplanation(GangAt("g"));
  EXPECT_FALSE(planning_.IsRoundDue()) << "only a lack of room is explained again";
  PutGang("h", 3);
  Queue("h");
  Round();
  EXPECT_TRUE(Planned("h")) << "exactly as many as there are";
}

TEST_F(HoldLimitTest, HoldsInUse_NextGangWaitsForAll) {
  AddNode("n", 9);
  PutGang("a", 2);
  PutGang("b", 2);
  PutGang("c", 1);
  for (const char* name : {"a", "b", "c"}) Queue(name);
  Round();
  EXPECT_TRUE(Planned("a"));
  EXPECT_EQ(Why("b").text, "needs 2 held binds, other gangs use too many of the 3 allowed (holds.max)");
  EXPECT_TRUE(Planned("c")) << "it takes the last";
  AddNode("m", 9);
  Round();
  EXPECT_FALSE(Planned("b")) << "capacity does not help";
  plan_lifecycle_.Withdraw(GangAt("a"), ReasonCode::kWithdrawn, "x", &*ctx_);
  EXPECT_TRUE(planning_.IsRoundDue());
  Round();
  EXPECT_TRUE(Planned("b"));
}

TEST_F(HoldLimitTest, SubmittedGang_NeedsNoHolds) {
  AddNode("n", 9);
  for (int i = 1; i <= 4; ++i) Put(Facts(absl::StrCat("g-", i), 1, "g", 4), true);
  submissions_.Open(GangAt("g"), "s", 1'000, 0);
  Queue("g");
  Round();
  EXPECT_TRUE(Planned("g"));
}

// P-10: minResources must be free before the gang is planned.
TEST_F(PlanningTest, MinResources_OfNoNode_BlocksGang) {
  AddNode("n", 3);
  PodDescription facts = Facts("g-1", 1, "g", 1);
  facts.gang.declaration.Mutable().min_resources = ResourceList{{"example.com/odd", 1}};
  Put(facts);
  Queue("g");
  Round();
  EXPECT_EQ(Why("g").code, ReasonCode::kMinResources);
}

TEST_F(PlanningTest, MinResources_Group_AddsUpWithoutOverflow) {
  AddNode("n", 5);
  PutGroup("a", "b", {{"cpu", 3}});
  PutGroup("c", "e", {{"cpu", INT64_MAX - 1}});
  for (const char* leader : {"a", "c"}) Queue(leader);
  Round();
  EXPECT_EQ(Why("a").text, "minResources asks for cpu: 6m, cpu: 5m is free in the cluster");
  EXPECT_EQ(Why("c").code, ReasonCode::kMinResources);
}

// K-3: capacity reserved for nominated pods of lower priority does not block a gang. After a failed try it is reserved
// again.
TEST_F(PlanningTest, LowerPriorityNominations_YieldToGang) {
  AddNode("n", 2);
  PodDescription lone = Facts("lone", 2);
  lone.nominated_node = "n";
  const Pod& nominated = Put(lone);
  nominations_.Add(nominated);
  PutGang("g", 1);  // of the same priority
  Queue("g");
  Round();
  EXPECT_FALSE(Planned("g"));
  EXPECT_TRUE(ledger_.Reserves(nominated.id));
  PodDescription urgent = Facts("u-1", 3, "u", 1);
  urgent.priority = 1;
  Put(urgent);
  Queue("u");
  Round();
  EXPECT_FALSE(Planned("u"));
  EXPECT_TRUE(ledger_.Reserves(nominated.id)) << "it did not fit: the nomination stands again";
  PodDescription fits = Facts("v-1", 2, "v", 1);
  fits.priority = 1;
  Put(fits);
  Queue("v");
  Round();
  EXPECT_TRUE(Planned("v"));
  EXPECT_FALSE(ledger_.Reserves(nominated.id));
}

// P-9: gangs that were woken for room which another has taken sleep again in one step.
TEST_F(PlanningTest, WokenInVain_SleepTogether) {
  AddNode("n", 2);
  const Pod& user = PutLone("user", 2);
  ledger_.ChargePod(user.id, cluster_.FindNode("n"), user.cls, ChargeKind::kUsed);
  std::vector<std::string> names;
  for (int32_t i = 0; i < 10; ++i) {
    names.push_back(absl::StrCat("g", i));
    PodDescription facts = Facts(names.back() + "-1", 2, names.back(), 1);
    facts.priority = i;  // so that their needs differ
    Put(facts);
    Queue(names.back());
  }
  Round();
  ledger_.DischargePod(user.id, /*gained=*/true);
  const auto awake = [&] {
    return std::count_if(names.begin(), names.end(), [&](const std::string& name) {
      const std::string& needs = backlog_.needs_of(GangAt(name).id);
      return !needs.empty() && backlog_.SleepingCondition(needs) == nullptr;
    });
  };
  EXPECT_EQ(awake(), 0);
  Round(1);
  EXPECT_TRUE(Planned("g9"));
  EXPECT_EQ(awake(), 0) << "they wait for the same room, which is gone";
  Round(1);  // sees what the plan changed
  EXPECT_EQ(awake(), 0);
  EXPECT_FALSE(planning_.IsRoundDue());
  planning_.WakeAll();
  EXPECT_EQ(awake(), 9);
  EXPECT_TRUE(backlog_.is_forced_retry(GangAt("g0").id)) << "its reason may be another one now";
}

// P-6: gangs with the same needs have one timer for the next search. It passes on when its gang leaves.
TEST_F(PlanningTest, LeaveBucket_TimerPassesToNextGang) {
  for (const char* name : {"a", "b", "c"}) PutGang(name, 1);
  const auto block = [this](const std::string& name, const std::string& needs) {
    backlog_.Block(GangAt(name).id, eligibility_.KeyOf(GangAt(name)), needs, {}, {ReasonCode::kNoPlaceFound, "x"});
  };
  for (const char* name : {"a", "b"}) block(name, "same");
  block("c", "other");
  plan_maker_.SetRetryAt(GangAt("a").id, kT0 + 5);
  Touched(GangAt("b"));
  planning_.LeaveBucket(GangAt("a"));
  EXPECT_EQ(backlog_.queued(GangAt("a").id), nullptr);
  EXPECT_EQ(planning_.RetryAt(GangAt("b")), kT0 + 5);
  EXPECT_TRUE(Touched(GangAt("b"))) << "its deadline must be set";
  EXPECT_EQ(planning_.RetryAt(GangAt("c")), kNever);
  block("a", "same");
  for (const int64_t at_ms : {kNever, kT0 + 5, kT0 + 9}) {  // none, or not before that of the next gang
    plan_maker_.SetRetryAt(GangAt("a").id, at_ms);
    planning_.LeaveBucket(GangAt("a"));
    EXPECT_EQ(planning_.RetryAt(GangAt("b")), kT0 + 5);
    EXPECT_FALSE(Touched(GangAt("b")));
    block("a", "same");
  }
  planning_.LeaveBucket(GangAt("c"));
  EXPECT_EQ(backlog_.queued(GangAt("c").id), nullptr) << "the last of its bucket";
  planning_.Remove(GangAt("b"));
  EXPECT_EQ(planning_.RetryAt(GangAt("b")), kNever);
}

// S-5: an explanation counts what a plan could use: not what is reserved for nominated pods of its own priority, but
// what is reserved for lower ones. It changes nothing.
TEST_F(PlanningTest, ExplainNoRoom_NominationsStand) {
  AddNode("n", 3);
  PodDescription facts = Facts("nominated", 1);
  facts.nominated_node = "n";
  const Pod& nominated = Put(facts);
  nominations_.Add(nominated);
  nominations_.Charge();
  ASSERT_TRUE(ledger_.Reserves(nominated.id));
  const auto explain = [&](const std::string& name, int32_t priority) {
    for (int i = 0; i < 4; ++i) {
      PodDescription member = Facts(absl::StrCat(name, "-", i), 1, name, 4);
      member.priority = priority;
      Put(member);
    }
    const int64_t tries = plan_maker_.stats().tries;
    const std::optional<Explanation> why = plan_maker_.ExplainNoRoom({&GangAt(name)});
    EXPECT_GT(plan_maker_.stats().tries, tries);
    EXPECT_TRUE(ledger_.Reserves(nominated.id));
    EXPECT_EQ(NodeAt("n").free.Get(kCpu), 2);
    return why.has_value() ? why->text.substr(0, 23) : "";
  };
  EXPECT_EQ(explain("equal", 0), "room for 2 of 4 members");
  EXPECT_EQ(explain("higher", 1), "room for 3 of 4 members");
}

// a placement that its queue refuses leaves nothing behind: nominated pods have their room again.
TEST_F(PlanningTest, QueueRefusesPlacement_NominationStands) {
  AddNode("n", 9);
  QueueSpec queue;
  queue.limit = {{"cpu", 6}};
  SetQueue(queue);
  PodDescription facts = Facts("nominated", 3);
  facts.nominated_node = "n";
  const Pod& nominated = Put(facts);
  nominations_.Add(nominated);
  nominations_.Charge();
  ASSERT_TRUE(ledger_.Reserves(nominated.id));
  // The cheapest member fits the queue, but not its node; the other fits only the node.
  PodDescription small = Facts("g-1", 1, "g", 1);
  small.priority = 1;
  small.shape.Mutable().node_selector = {{"disk", "ssd"}};
  Put(small);
  PodDescription large = Facts("g-2", 9, "g", 1);
  large.priority = 1;
  Put(large);
  Queue("g");
  Round();
  EXPECT_FALSE(Planned("g"));
  EXPECT_EQ(Why("g").code, ReasonCode::kQueueLimit) << Why("g").text;
  EXPECT_TRUE(ledger_.Reserves(nominated.id));
}

// A reader that is too far behind the change log examines everything.
TEST_F(PlanningTest, ChangeLogOverrun_BlockedGangIsTriedAgain) {
  AddNode("n", 1);
  PutMember("g-1", 2, "g", 1);
  Queue("g");
  Round();
  EXPECT_FALSE(Planned("g"));
  AddNode("m", 2);
  for (size_t i = 0; i < Cluster::kMaxLog + 9; ++i) {
    ChangeNode("n", [i](NodeDescription* node) { node->labels["x"] = absl::StrCat(i); });
  }
  Round();
  EXPECT_TRUE(Planned("g"));
}

}  // namespace
}  // namespace muster
