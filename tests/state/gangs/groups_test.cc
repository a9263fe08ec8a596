// muster_gangs: gang groups (SPEC D-10, G-1, G-4, G-9).
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/state/gangs/gang_world.h"

namespace muster {
namespace {

using enum ReasonCode;

using Ids = std::vector<std::string>;

class GroupsTest : public GangWorld {
 protected:
  using GangWorld::GangWorld;
  // Gangs d/a and e/a list each other.
  std::pair<const Gang&, const Gang&> AcrossNamespaces() {
    const Gang& here = Declare("a", 1, {"d/a", "e/a"});
    const Gang& there = *gangs_.Intern("e", "a", 0, 0).gang;
    GangObject object = Object("a", here.objects.begin()->second.declaration);
    object.name_space = "e";
    gangs_.PutObject(there, object);
    gangs_.ReadRules(there);
    return {here, there};
  }
  const Ids both_ = {"d/a", "d/b"};
};

TEST_F(GroupsTest, GangWithoutGroup_IsItsOwnGroup) {
  const Gang& gang = With("a", 1, 0, MemberState::kPending);
  EXPECT_TRUE(eligibility_.GroupReason(gang).none());
  EXPECT_EQ(Keys(eligibility_.GroupOf(gang)), Ids{"d/a"});
  EXPECT_EQ(Keys(eligibility_.Unplaced(gang)), Ids{"d/a"});
  EXPECT_EQ(&eligibility_.LeaderOf(gang), &gang);
  gangs_.SetSatisfied(gang, true);
  EXPECT_EQ(Keys(eligibility_.Unplaced(gang)), Ids{});
  EXPECT_EQ(&eligibility_.LeaderOf(gang), &gang);
}

// The id of a list that no gang uses any more is reused, so ids stay bounded.
TEST(GroupRegisterTest, UnusedList_IdIsReused) {
  GroupRegister groups;
  groups.Set(0, "d/a", {"d/a", "d/b"});
  const GroupId id = groups.Of(0);
  groups.Set(0, "d/a", {});
  EXPECT_EQ(groups.Of(0), kNoGroup);
  groups.Set(1, "d/c", {"d/c", "d/d"});
  EXPECT_EQ(groups.Of(1), id);
  groups.Set(0, "d/a", {"d/a", "d/b"});
  EXPECT_NE(groups.Of(0), id) << "the list came back";
  groups.Set(2, "d/0", {"d/0", "d/b"});
  EXPECT_EQ(groups.Naming("d/b"), (Ids{"d/0", "d/a"})) << "in order of keys";
}

// D-10: a list agrees when all gangs that it names have it, whichever other gangs have it too.
TEST(GroupRegisterTest, List_AgreesWhileItsGangsHaveIt) {
  GroupRegister groups;
  const Ids both = {"d/a", "d/b"};
  const std::tuple<int32_t, const char*, Ids, bool> steps[] = {{0, "d/a", both, false},    {2, "d/c", both, false},
                                                               {1, "d/b", both, true},     {2, "d/c", {}, true},
                                                               {1, "d/b", {"d/b"}, false}, {1, "d/b", both, true}};
  for (const auto& [gang, key, list, agrees] : steps) {
    groups.Set(gang, key, list);
    EXPECT_EQ(groups.list(groups.Of(0)).Agreed(), agrees) << key;
  }
  EXPECT_TRUE(groups.list(groups.Of(1)).one_namespace);
}

// D-10: a group exists only while every gang in it lists the same set, itself included.
TEST_F(GroupsTest, DifferentLists_GroupDisagrees) {
  const Gang& a = Declare("a", 1, {"d/b", "d/c"});
  EXPECT_TRUE(IsReason(eligibility_.GroupReason(a), kGroupDisagrees, "does not name the gang itself"));
  EXPECT_EQ(Keys(eligibility_.GroupOf(a)), Ids{"d/a"});
  Declare("a", 1, {"d/b", "d/a"});
  EXPECT_TRUE(IsReason(eligibility_.GroupReason(a), kUnknownGang, "d/b of its group does not exist yet"));
  gangs_.RemoveGang(*gangs_.Intern("d", "b", 0, 0).gang);
  EXPECT_TRUE(IsReason(eligibility_.GroupReason(a), kUnknownGang, "d/b of its group does not exist yet"));
  static_cast<void>(gangs_.Intern("d", "b", 0, 0));
  EXPECT_TRUE(IsReason(eligibility_.GroupReason(a), kGroupDisagrees, "d/b of its group lists no group"));
  const Gang& b = Declare("b", 1);
  EXPECT_TRUE(eligibility_.GroupReason(b).none()) << "no gang joins a group without listing it";
  Declare("b", 1, {"d/b", "d/a", "d/c"});
  EXPECT_TRUE(IsReason(eligibility_.GroupReason(a), kGroupDisagrees, "d/b of its group lists d/a, d/b, d/c"));
  EXPECT_TRUE(IsReason(eligibility_.GroupReason(b), kGroupDisagrees, "d/a of its group lists d/a, d/b"));
  EXPECT_EQ(Keys(eligibility_.GroupOf(b)), Ids{"d/b"});
  Declare("b", 1, {"d/b", "d/a", "d/a"});
  EXPECT_TRUE(eligibility_.GroupReason(a).none());
  EXPECT_TRUE(eligibility_.GroupReason(b).none());
  EXPECT_EQ(Keys(eligibility_.GroupOf(b)), both_) << "in order of keys";
}

TEST_F(GroupsTest, Group_MayCrossNamespaces) {
  const auto [here, there] = AcrossNamespaces();
  EXPECT_TRUE(eligibility_.GroupReason(here).none());
  EXPECT_EQ(Keys(eligibility_.GroupOf(there)), (Ids{"d/a", "e/a"}));
}

class OneNamespace : public GroupsTest {
 protected:
  OneNamespace() : GroupsTest(false, /*cross_namespace_groups=*/false) {}
};

// D-10: groups across namespaces can be switched off.
TEST_F(OneNamespace, OtherNamespace_GroupDisagrees) {
  const auto [a, there] = AcrossNamespaces();
  EXPECT_EQ(Keys(eligibility_.GroupOf(there)), Ids{"e/a"});
  EXPECT_TRUE(IsReason(eligibility_.GroupReason(there), kGroupDisagrees, "gang d/a"));
  EXPECT_TRUE(IsReason(eligibility_.GroupReason(a), kGroupDisagrees, "gang e/a"));
  EXPECT_TRUE(IsReason(eligibility_.GroupReason(a), kGroupDisagrees, "another namespace"));
  EXPECT_EQ(eligibility_.GroupHint(a), "list gangs of one namespace only, or set gangs.crossNamespaceGroups");
  for (const Ids& list : {Ids{"d/b", "dd/b"}, both_}) {
    Declare("a", 1, list);
    EXPECT_EQ(eligibility_.GroupHint(a), "list the same gangs, itself included, on every gang of the group");
  }
  Declare("b", 1, both_);
  EXPECT_TRUE(eligibility_.GroupReason(a).none());
}

// One gang of the group is queued for all of them: the first by key that still needs slots.
TEST_F(GroupsTest, Leader_FirstGangThatNeedsSlots) {
  const Ids three = {"d/a", "d/b", "d/c"};
  const Gang& a = With("a", 1, 0, MemberState::kPending, three);
  const Gang& b = With("b", 1, 0, MemberState::kPending, three);
  const Gang& c = With("c", 1, 0, MemberState::kPending, three);
  EXPECT_EQ(&eligibility_.LeaderOf(c), &a);
  gangs_.SetSatisfied(a, true);
  EXPECT_EQ(&eligibility_.LeaderOf(a), &b);
  EXPECT_EQ(&eligibility_.LeaderOf(c), &b);
  EXPECT_EQ(Keys(eligibility_.Unplaced(a)), (Ids{"d/b", "d/c"}));
  gangs_.SetSatisfied(b, true);
  gangs_.SetSatisfied(c, true);
  EXPECT_EQ(&eligibility_.LeaderOf(b), &b) << "no gang needs one";
  Declare("c", 1);
  EXPECT_FALSE(eligibility_.SchedulesIndividually(a) && !eligibility_.GroupReason(a).none() && !a.once_satisfied());
  EXPECT_TRUE(eligibility_.SchedulesIndividually(a)) << "once satisfied, whatever became of the group";
}

// A running minimum is not enough while the group does not exist.
TEST_F(GroupsTest, MissingGroup_BlocksIndividualScheduling) {
  const Gang& a = With("a", 1, 1, MemberState::kRunning, both_);
  EXPECT_FALSE(eligibility_.SchedulesIndividually(a));
  With("b", 1, 0, MemberState::kPending, both_);
  EXPECT_TRUE(eligibility_.SchedulesIndividually(a));
}

// G-9: the group is one item with its highest priority, its most requeues and its earliest creation.
TEST_F(GroupsTest, GroupKey_CombinesGangs) {
  const auto declare = [&](const std::string& name, int32_t priority, int64_t created_ms) -> const Gang& {
    GangDeclaration declaration;
    declaration.min_member = 1;
    declaration.priority = priority;
    declaration.groups = both_;
    GangObject object = Object(name, declaration);
    object.created_ms = created_ms;
    const Gang& gang = *gangs_.Intern("d", name, created_ms, 0).gang;
    gangs_.PutObject(gang, object);
    gangs_.ReadRules(gang);
    return gang;
  };
  const Gang& a = declare("a", 1, 100);
  const Gang& b = declare("b", 9, 50);
  gangs_.SetRequeues(b, 2);
  EXPECT_EQ(eligibility_.KeyOf(a), (QueueKey{false, 9, 2, 50, "d/a"}));
  EXPECT_EQ(eligibility_.KeyOf(b), (QueueKey{false, 9, 2, 50, "d/b"}));
  declare("a", 10, 10);
  gangs_.SetRequeues(a, 3);
  EXPECT_EQ(eligibility_.KeyOf(b), (QueueKey{false, 10, 3, 10, "d/b"}));
  declare("b", 9, 50);
  Declare("b", 2, both_);
  Add("b-0", "b", MemberState::kBound);
  EXPECT_TRUE(eligibility_.KeyOf(a).partially_bound) << "its mate is half bound";
  EXPECT_TRUE(eligibility_.KeyOf(b).partially_bound);
  gangs_.SetSatisfied(b, true);
  EXPECT_FALSE(eligibility_.KeyOf(a).partially_bound);
  EXPECT_EQ(eligibility_.KeyOf(a).created_ms, 10) << "a gang that needs no slots does not count";
}

// G-1: every gang of the group exists, is initialised and has its children; the reason names the gang that does not.
TEST_F(GroupsTest, OtherGangNotReady_IsNamed) {
  const Gang& a = With("a", 1, 1, MemberState::kPending, both_);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(a, 0), kUnknownGang, "d/b"));
  const Gang& b = With("b", 2, 1, MemberState::kPending, both_);
  EXPECT_EQ(eligibility_.GateReason(a, 0), (Reason{kNotEnoughPods, "gang d/b of its group: 1 of 2 pods exist"}));
  EXPECT_TRUE(IsReason(eligibility_.GateReason(b, 0), kNotEnoughPods, "1 of 2")) << "its own reason first";
  Add("b-1", "b");
  EXPECT_TRUE(eligibility_.GateReason(a, 0).none());
  gangs_.SetTimedOut(b, true);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(a, 0), kTimedOut, "gang d/b of its group: "));
  gangs_.SetTimedOut(b, false);
  gangs_.SetEvicting(b, true);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(a, 0), kEvicted, "gang d/b of its group: "));
  gangs_.SetEvicting(b, false);
  gangs_.Leave(*gangs_.FindPod("b-1"));
  gangs_.SetSatisfied(b, true);
  EXPECT_TRUE(eligibility_.GateReason(a, 0).none()) << "it needs no places any more";
}

TEST_F(GroupsTest, GateReason_ChecksEveryGangOfGroup) {
  const Ids three = {"d/a", "d/b", "d/c"};
  With("a", 1, 1, MemberState::kPending, three);
  const Gang& b = With("b", 1, 1, MemberState::kPending, three);
  With("c", 2, 1, MemberState::kPending, three);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(b, 0), kNotEnoughPods, "gang d/c of its group: 1 of 2"));
  gangs_.SetSubmitted(GangOf("a"));
  EXPECT_TRUE(IsReason(eligibility_.GateReason(b, 0), kGroupDisagrees, "d/a of its group was submitted"))
      << "the first gang that blocks the group";
}

// S-1: all gangs of a group are submitted as a whole, or none.
TEST_F(GroupsTest, PartlySubmittedGroup_Disagrees) {
  const Gang& a = With("a", 1, 1, MemberState::kPending, both_);
  const Gang& b = With("b", 1, 1, MemberState::kPending, both_);
  gangs_.SetSubmitted(b);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(a, 0), kGroupDisagrees, "d/b of its group was submitted"));
  EXPECT_TRUE(IsReason(eligibility_.GateReason(b, 0), kGroupDisagrees, "d/a of its group was not submitted"));
  EXPECT_EQ(eligibility_.GroupHint(b), "submit gang d/a as a whole too (SubmitGang), or none of the group");
  gangs_.SetTimedOut(b, true);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(a, 0), kGroupDisagrees)) << "whatever else b lacks";
  gangs_.SetTimedOut(b, false);
  gangs_.SetSatisfied(a, true);
  EXPECT_TRUE(eligibility_.GateReason(b, 0).none()) << "a gang that needs no slots may be either";
  gangs_.SetSatisfied(a, false);
  gangs_.SetSubmitted(a);
  EXPECT_TRUE(IsReason(eligibility_.GateReason(a, 0), kNone));
}

TEST_F(GroupsTest, PlanReason_ChecksEveryGangOfGroup) {
  const Gang& a = With("a", 1, 1, MemberState::kPending, both_);
  const Gang& b = With("b", 1, 1, MemberState::kPending, both_);
  EXPECT_TRUE(eligibility_.PlanReason(a, 0).none());
  gangs_.SetFacts(*gangs_.FindPod("b-0"), Unserved(Facts("b-0", "b")), 1);
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(a, 0), kGroupDisagrees, "gang d/b of its group is placed pod by pod"));
  EXPECT_EQ(eligibility_.GroupHint(a),
            "let Muster place all gangs of the group, or let their own schedulers place all of them");
  EXPECT_EQ(eligibility_.PlanReason(b, 0).text.find("0 of 1"), 0U) << eligibility_.PlanReason(b, 0).text;
  Add(Unserved(Facts("a-own", "a")));
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(a, 0), kNotServed, "gang d/b of its group: 0 of 1"))
      << "a has members of both kinds";
  gangs_.Leave(*gangs_.FindPod("a-own"));
  gangs_.SetFacts(*gangs_.FindPod("b-0"), Facts("b-0", "b"), 1);
  gangs_.SetRetry(a, 99);
  gangs_.SetRetry(b, 100);
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(a, 99), kBackoff, "gang d/b of its group: "));
  EXPECT_TRUE(eligibility_.PlanReason(a, 100).none());
  EXPECT_TRUE(eligibility_.GateReason(a, 99).none()) << "only a plan waits for its mate's next try";
  gangs_.SetSatisfied(b, true);
  EXPECT_TRUE(eligibility_.PlanReason(a, 99).none()) << "b has its places";
}

// A gang without members left to plan is placed neither as a whole nor pod by pod.
TEST_F(GroupsTest, AllMembersAtBarrier_NoPlacementKind) {
  const Ids three = {"d/a", "d/b", "d/c"};
  const Gang& a = With("a", 1, 1, MemberState::kWaiting, three);
  for (const char* name : {"b", "c"}) {
    Declare(name, 1, three);
    Add(Unserved(Facts(absl::StrCat(name, "-0"), name)));
  }
  EXPECT_TRUE(IsReason(eligibility_.PlanReason(a, 0), kNotServed, "gang d/b of its group: 0 of 1"));
}

// G-4, G-5: every gang of the group has its quorum, or had it.
TEST_F(GroupsTest, GroupQuorum_NeedsEveryGang) {
  const Gang& a = With("a", 1, 1, MemberState::kWaiting, both_);
  EXPECT_TRUE(a.quorum().Met());
  EXPECT_FALSE(eligibility_.GroupQuorum(a)) << "the group does not stand";
  Declare("a", 2, both_);
  const Gang& b = With("b", 1, 1, MemberState::kWaiting, both_);
  EXPECT_FALSE(eligibility_.GroupQuorum(a));
  EXPECT_FALSE(eligibility_.GroupQuorum(b)) << "its mate is one short";
  Add("a-1", "a", MemberState::kWaiting);
  EXPECT_TRUE(eligibility_.GroupQuorum(a));
  EXPECT_TRUE(eligibility_.GroupQuorum(b));
  gangs_.Leave(*gangs_.FindPod("b-0"));
  EXPECT_FALSE(eligibility_.GroupQuorum(a));
  gangs_.SetSatisfied(b, true);
  EXPECT_TRUE(eligibility_.GroupQuorum(a));
  const Gang& alone = With("alone", 1, 0, MemberState::kPending);
  EXPECT_FALSE(eligibility_.GroupQuorum(alone));
  Add("x", "alone", MemberState::kWaiting);
  EXPECT_TRUE(eligibility_.GroupQuorum(alone));
}

TEST_F(GroupsTest, BarrierReason_HasFigures) {
  const Gang& a = With("a", 3, 2, MemberState::kWaiting, both_);
  const Gang& b = With("b", 2, 1, MemberState::kWaiting, both_);
  EXPECT_EQ(eligibility_.BarrierReason(a), (Reason{kBarrier, "2 of 3 members wait"})) << "its own figures say enough";
  Add("a-2", "a", MemberState::kWaiting);
  EXPECT_EQ(eligibility_.BarrierReason(a), (Reason{kBarrier, "3 of 3 members wait; gang d/b of its group: 1 of 2"}));
  Add("b-1", "b", MemberState::kWaiting);
  EXPECT_EQ(eligibility_.BarrierReason(a).text, "3 of 3 members wait");
  EXPECT_EQ(eligibility_.BarrierReason(b).text, "2 of 2 members wait");
  const Gang& alone = With("alone", 1, 1, MemberState::kWaiting);
  EXPECT_EQ(eligibility_.BarrierReason(alone).text, "1 of 1 members wait");
}

TEST_F(GroupsTest, BarrierReason_NamesFirstGangBehind) {
  const Ids four = {"d/a", "d/b", "d/c", "d/e"};
  With("a", 1, 1, MemberState::kWaiting, four);
  const Gang& b = With("b", 1, 1, MemberState::kWaiting, four);
  With("c", 2, 1, MemberState::kWaiting, four);
  With("e", 2, 0, MemberState::kWaiting, four);
  EXPECT_EQ(eligibility_.BarrierReason(b).text, "1 of 1 members wait; gang d/c of its group: 1 of 2");
}

// D-10: a gang that lists a group without itself is in no group, even if that group exists.
TEST_F(GroupsTest, ListWithoutItself_GangIsAlone) {
  for (const char* name : {"a", "b"}) With(name, 1, 1, MemberState::kPending, both_);
  const Gang& c = With("c", 1, 1, MemberState::kPending, both_);
  EXPECT_EQ(Keys(eligibility_.GroupOf(c)), Ids{"d/c"});
  EXPECT_EQ(Keys(eligibility_.Unplaced(c)), Ids{"d/c"});
  EXPECT_EQ(&eligibility_.LeaderOf(c), &c);
  EXPECT_FALSE(eligibility_.GroupQuorum(c));
}

// The gangs that name a gang, so that a new or changed gang reaches the gangs that wait for it.
TEST_F(GroupsTest, Naming_ListsReferringGangs) {
  Declare("a", 1);
  EXPECT_EQ(gangs_.groups().Naming("d/a"), Ids{});
  Declare("a", 1, both_);
  EXPECT_EQ(gangs_.groups().Naming("d/b"), Ids{"d/a"}) << "before it exists";
  EXPECT_TRUE(gangs_.groups().IsNamed("d/b"));
  EXPECT_FALSE(gangs_.groups().IsNamed("d/z"));
  EXPECT_EQ(gangs_.groups().Naming("d/a"), Ids{}) << "itself aside";
  Declare("b", 1, {"d/b", "d/z"});
  EXPECT_EQ(gangs_.groups().Naming("d/z"), Ids{"d/b"});
  Declare("a", 1, {"d/a", "d/z"});
  EXPECT_EQ(gangs_.groups().Naming("d/b"), Ids{});
  EXPECT_EQ(gangs_.groups().Naming("d/z"), both_) << "by two lists";
  Declare("a", 1);
  const Gang& b = Declare("b", 1, {"d/b", "d/z"});
  gangs_.DropObject(b, b.objects.begin()->first);
  gangs_.RemoveGang(b);
  EXPECT_FALSE(gangs_.groups().IsNamed("d/z")) << "a removed gang lists no gang";
}

}  // namespace
}  // namespace muster
