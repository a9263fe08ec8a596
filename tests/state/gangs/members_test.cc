// muster_gangs: members and their states, and which members can be planned (SPEC G-10, P-2, D-11).
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/state/gangs/gang_world.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

class MembersTest : public GangWorld {
 protected:
  using GangWorld::GangWorld;
  static Names Uids(const MemberSet& set) {
    Names uids;
    for (const Pod* pod : set) uids.push_back(pod->facts.uid);
    return uids;
  }
  // "class*pods@priority" of each run.
  Names Runs(const Gang& gang) {
    Names out;
    for (const Candidates& run : gangs_.CandidateRuns(gang)) {
      out.push_back(absl::StrCat(run.cls, "*", run.pods, "@", run.priority));
    }
    return out;
  }
};

// P-2: by priority, then creation, then name; UIDs last, so that no two are equal.
TEST_F(MembersTest, Members_OrderedByPriorityCreationName) {
  const auto add = [&](const char* uid, int32_t priority, int64_t created_ms, const char* name) {
    PodDescription facts = OfPriority(priority, CreatedAt(created_ms, Facts(uid, "g")));
    facts.name = name;
    Add(facts);
  };
  add("u3", 5, 20, "a");
  add("u6", 5, 30, "a");
  add("u1", 5, 20, "b");
  add("u2", 5, 20, "b");
  add("u0", 4, 1, "a");
  add("u9", 6, 99, "z");
  EXPECT_EQ(Uids(GangOf("g").in(MemberState::kPending)), (Names{"u9", "u3", "u1", "u2", "u6", "u0"}));
}

// K-5: an unplaceable member is planned last.
TEST_F(MembersTest, UnplaceableMember_PlannedLast) {
  const auto add = [&](const char* uid, int64_t cpu, int32_t priority) {
    PodDescription facts = OfPriority(priority, Facts(uid, "g"));
    facts.shape.Mutable().requests = {{"cpu", cpu}};
    Add(facts);
    return absl::StrCat(gangs_.FindPod(uid)->cls, "*1@", priority);
  };
  const std::string a = add("a", 1, 9);
  const std::string b = add("b", 2, 5);
  const std::string c = add("c", 3, 1);
  const Gang& gang = GangOf("g");
  EXPECT_EQ(Runs(gang), (Names{a, b, c}));
  gangs_.SetUnplaceable(*gangs_.FindPod("a"), true);
  EXPECT_EQ(Runs(gang), (Names{b, c, a}));
  EXPECT_EQ(gangs_.PlannableMembers(gang), 3);
  gangs_.SetUnplaceable(*gangs_.FindPod("b"), true);
  EXPECT_EQ(Runs(gang), (Names{c, a, b}));
  EXPECT_TRUE(gangs_.ClearUnplaceable(gang));
  EXPECT_FALSE(gangs_.ClearUnplaceable(gang));
  EXPECT_EQ(Runs(gang), (Names{a, b, c}));
}

TEST_F(MembersTest, Member_InSetOfItsState) {
  const Pod& pod = Add("a", "g");
  Add("b", "g");
  const Gang& gang = GangOf("g");
  EXPECT_EQ(pod.gang, &gang);
  EXPECT_EQ(gang.children(), 2);
  for (size_t at = 0; at < kMemberStates; ++at) {
    const auto state = static_cast<MemberState>((at + 1) % kMemberStates);
    ClearTouched();
    gangs_.SetState(pod, state);
    EXPECT_EQ(pod.state, state);
    EXPECT_TRUE(gang.in(state).contains(&pod));
    EXPECT_EQ(gang.children(), 2);
    EXPECT_TRUE(gang.touched);
    const bool active =
        state == MemberState::kCommitted || state == MemberState::kBound || state == MemberState::kRunning;
    EXPECT_EQ(pod.active(), active) << ToString(state);
    EXPECT_EQ(gang.active(), active ? 1 : 0) << ToString(state);
    const bool on_node = state == MemberState::kBound || state == MemberState::kRunning;
    EXPECT_EQ(pod.on_node(), on_node) << ToString(state);
    ClearTouched();
    gangs_.SetState(pod, state);
    EXPECT_FALSE(gang.touched) << "nothing changed";
  }
  EXPECT_EQ(gang.count(MemberState::kPending), 2);
}

TEST_F(MembersTest, TerminatingPod_HoldsItsNode) {
  const Pod& pod = Add("a", "g", MemberState::kTerminating);
  EXPECT_FALSE(pod.on_node());
  gangs_.SetNode(pod, "n1");
  EXPECT_EQ(pod.facts.node_name, "n1");
  EXPECT_TRUE(pod.on_node());
  EXPECT_FALSE(pod.active());
  EXPECT_FALSE(pod.facts.timed_out_mark);
  gangs_.SetTimedOutMark(pod);
  EXPECT_TRUE(pod.facts.timed_out_mark);
}

TEST_F(MembersTest, LonePod_HasState) {
  const Pod& pod = Add("a", "");
  gangs_.SetState(pod, MemberState::kRunning);
  EXPECT_EQ(pod.state, MemberState::kRunning);
  EXPECT_EQ(gangs_.TakeTouched(), nullptr);
  gangs_.Leave(pod);
  EXPECT_EQ(gangs_.TakeTouched(), nullptr);
  EXPECT_FALSE(gangs_.Plannable(pod));
  gangs_.SetState(pod, MemberState::kPending);
  EXPECT_TRUE(gangs_.Plannable(pod));
  gangs_.SetFacts(pod, OfPriority(9, Facts("a", "")), 4);
  EXPECT_EQ(pod.facts.priority, 9);
  EXPECT_EQ(pod.cls, 4);
  EXPECT_TRUE(gangs_.Plannable(pod));
  gangs_.SetFacts(pod, Unserved(Facts("a", "")), 4);
  EXPECT_FALSE(gangs_.Plannable(pod));
}

// The order of the members follows their facts.
TEST_F(MembersTest, ChangedFacts_MoveMemberUntilItLeaves) {
  const Pod& a = Add("a", "g");
  Add("b", "g");
  const Gang& gang = GangOf("g");
  EXPECT_EQ(Uids(gang.in(MemberState::kPending)), (Names{"a", "b"}));
  gangs_.SetFacts(a, Gated(OfPriority(-1, Facts("a", "g"))), 2);
  EXPECT_EQ(Uids(gang.in(MemberState::kPending)), (Names{"b", "a"}));
  EXPECT_EQ(a.cls, 2);
  EXPECT_EQ(gang.gated, 1);
  EXPECT_EQ(gang.plannable, 1);
  EXPECT_FALSE(gangs_.Plannable(a));
  gangs_.SetFacts(a, Facts("a", "g"), 2);
  EXPECT_EQ(gang.gated, 0);
  EXPECT_EQ(gang.plannable, 2);
  ClearTouched();
  gangs_.Leave(a);
  EXPECT_EQ(a.gang, nullptr);
  EXPECT_EQ(Uids(gang.in(MemberState::kPending)), Names{"b"});
  EXPECT_TRUE(gang.touched);
}

TEST_F(MembersTest, Plannable_DependsOnFactsAndState) {
  const Pod& fine = Add("fine", "g");
  const Pod& gated = Add(Gated(Facts("gated", "g")));
  PodDescription facts = Facts("ours", "g");
  facts.our_gate = true;
  const Pod& ours = Add(facts);
  const Pod& unserved = Add(Unserved(Facts("unserved", "g")));
  const Pod& submitted = Add(Unserved(Facts("whole", "g")), MemberState::kPending, 1, true);
  facts = Facts("second", "g");
  facts.scheduler_name = "other-scheduler";
  const Pod& second = Add(facts);
  facts = Facts("problem", "g");
  facts.gang.problem = {ReasonCode::kConflict, "two gangs"};
  const Pod& problem = Add(facts);
  const Pod& unreadable = Add(Facts("unreadable", "g"), MemberState::kPending, kNoClass);
  const Pod& bound = Add("bound", "g", MemberState::kBound);
  for (const Pod* pod : {&fine, &ours, &submitted, &second}) EXPECT_TRUE(gangs_.Plannable(*pod)) << pod->facts.uid;
  for (const Pod* pod : {&gated, &unserved, &problem, &unreadable, &bound}) {
    EXPECT_FALSE(gangs_.Plannable(*pod)) << pod->facts.uid;
  }
  EXPECT_TRUE(gangs_.Serves(fine));
  EXPECT_TRUE(gangs_.Serves(submitted)) << "placed by us whoever else schedules";
  EXPECT_FALSE(gangs_.Serves(unserved));
  const Gang& gang = GangOf("g");
  EXPECT_EQ(gang.plannable, 4);
  EXPECT_EQ(gangs_.PlannableMembers(gang), 4);
  EXPECT_EQ(gang.gated, 1);
  EXPECT_EQ(gang.quorum().Children(), 8) << "a gated one is no child yet";
}

TEST_F(MembersTest, Candidates_GroupedInRuns) {
  const auto add = [&](const char* name, int32_t priority, ClassId cls) {
    Add(OfPriority(priority, Facts(name, "g")), MemberState::kPending, cls);
  };
  add("a", 5, 1);
  add("b", 5, 1);
  add("c", 5, 2);
  add("d", 4, 2);
  add("e", 4, 2);
  add("f", 4, 1);
  const Gang& gang = GangOf("g");
  EXPECT_EQ(Runs(gang), (Names{"1*2@5", "2*1@5", "2*2@4", "1*1@4"}));
  EXPECT_EQ(Runs(gang), (Names{"1*2@5", "2*1@5", "2*2@4", "1*1@4"})) << "asked again";
  gangs_.SetState(*gangs_.FindPod("c"), MemberState::kWaiting);
  EXPECT_EQ(Runs(gang), (Names{"1*2@5", "2*2@4", "1*1@4"}));
  gangs_.Leave(*gangs_.FindPod("a"));
  EXPECT_EQ(Runs(gang), (Names{"1*1@5", "2*2@4", "1*1@4"}));
  add("x", 4, 1);
  EXPECT_EQ(Runs(gang), (Names{"1*1@5", "2*2@4", "1*2@4"}));
}

// Extreme creation times and priorities.
TEST_F(MembersTest, ExtremeTimes_FirstMemberByUid) {
  const auto latest = [](const char* name) { return CreatedAt(std::numeric_limits<int64_t>::max(), Facts(name, "g")); };
  Add(OfPriority(std::numeric_limits<int32_t>::min(), latest("b")));
  const Gang& gang = GangOf("g");
  EXPECT_EQ(Gangs::FirstMember(gang).facts.uid, "b");
  Add(OfPriority(7, latest("a")));
  Add(OfPriority(7, latest("c")));
  EXPECT_EQ(Gangs::FirstMember(gang).facts.uid, "a");
}

TEST_F(MembersTest, FirstMember_IsEarliestCreated) {
  const Pod& m = Add(OfPriority(3, Facts("m", "g")));
  const Gang& gang = GangOf("g");
  EXPECT_EQ(&Gangs::FirstMember(gang), &m);
  const Pod& z = Add(CreatedAt(900, Facts("z", "g")), MemberState::kRunning);
  EXPECT_EQ(&Gangs::FirstMember(gang), &z) << "whatever its state";
  const Pod& a = Add(CreatedAt(900, Facts("a", "g")));
  EXPECT_EQ(&Gangs::FirstMember(gang), &a) << "of two at one time the first UID";
  gangs_.SetState(a, MemberState::kBound);
  EXPECT_EQ(&Gangs::FirstMember(gang), &a);
  gangs_.Leave(z);
  EXPECT_EQ(&Gangs::FirstMember(gang), &a);
  gangs_.Leave(a);
  EXPECT_EQ(&Gangs::FirstMember(gang), &m);
}

class OnePriority : public MembersTest {
 protected:
  OnePriority() : MembersTest(/*one_priority=*/true) {}
};

// D-11: a member is not planned if its priority differs from that of the first member.
TEST_F(OnePriority, Setting_PlansOnlyPriorityOfFirst) {
  const Pod& first = Add(OfPriority(4, CreatedAt(1, Facts("first", "g"))));
  const Pod& other = Add("other", "g");
  const Gang& gang = GangOf("g");
  EXPECT_TRUE(gangs_.OnePriority(gang));
  EXPECT_TRUE(gangs_.Plannable(first));
  EXPECT_FALSE(gangs_.Plannable(other));
  EXPECT_EQ(gangs_.PlannableMembers(gang), 1);
  EXPECT_EQ(Runs(gang), Names{"1*1@4"});
  gangs_.SetState(first, MemberState::kBound);
  EXPECT_EQ(gangs_.PlannableMembers(gang), 0);
  gangs_.Leave(first);
  EXPECT_EQ(gangs_.PlannableMembers(gang), 1) << "the other is the first now";
}

TEST_F(MembersTest, SigsDialect_RequiresOnePriority) {
  Add("a", "g");
  EXPECT_FALSE(gangs_.OnePriority(GangOf("g")));
  const auto by = [](GangDialect dialect) { return OfPriority(9, OfDialect(dialect, Facts("b", "g"))); };
  const Pod& b = Add(by(GangDialect::kSigsPods));
  EXPECT_TRUE(gangs_.OnePriority(GangOf("g"))) << "D-2";
  EXPECT_FALSE(gangs_.Plannable(b));
  EXPECT_EQ(gangs_.PlannableMembers(GangOf("g")), 1);
  gangs_.SetFacts(b, by(GangDialect::kKoordinator), 1);
  EXPECT_FALSE(gangs_.OnePriority(GangOf("g"))) << "it says so no more";
  gangs_.SetFacts(b, by(GangDialect::kSigsPods), 1);
  EXPECT_TRUE(gangs_.OnePriority(GangOf("g")));
  gangs_.Leave(b);
  EXPECT_FALSE(gangs_.OnePriority(GangOf("g"))) << "no remaining pod declares it";
  EXPECT_EQ(gangs_.PlannableMembers(GangOf("g")), 1);
}

TEST_F(MembersTest, Join_UpdatesCreationAndReference) {
  Add(CreatedAt(900, Declaring("a", "g", 2)));
  const Gang& gang = GangOf("g");
  EXPECT_FALSE(gang.refers_to_object());
  EXPECT_EQ(gang.created_ms, 900);
  Add(CreatedAt(800, Facts("b", "g")));
  EXPECT_TRUE(gang.refers_to_object());
  EXPECT_EQ(gang.created_ms, 800) << "as old as its oldest pod";
  Add(CreatedAt(850, Facts("c", "g")));
  EXPECT_EQ(gang.created_ms, 800);
  gangs_.PutObject(gang, Object("g", {}));
  Add(CreatedAt(100, Facts("e", "g")));
  EXPECT_EQ(gang.created_ms, 500) << "a PodGroup's creation is the gang's";
  EXPECT_TRUE(gangs_.DropObject(gang, Object("g", {}).dialect));
  EXPECT_EQ(gang.created_ms, 100) << "without it, that of the oldest pod";
  for (const char* uid : {"b", "c", "e"}) gangs_.Leave(*gangs_.FindPod(uid));
  EXPECT_FALSE(gang.refers_to_object()) << "the pods that named a PodGroup are gone";
}

TEST_F(MembersTest, RemovedPodGroup_CreationFromRemaining) {
  const Gang& gang = *gangs_.Intern("d", "g", 500, 0).gang;
  GangObject sigs = Object("g", {});
  GangObject x = Object("g", {});
  x.dialect = GangDialect::kPodGroupX;
  x.created_ms = 700;
  gangs_.PutObject(gang, sigs);
  gangs_.PutObject(gang, x);
  EXPECT_FALSE(gangs_.DropObject(gang, GangDialect::kNative));
  EXPECT_EQ(gang.created_ms, 700);
  EXPECT_TRUE(gangs_.DropObject(gang, GangDialect::kPodGroupX));
  EXPECT_EQ(gang.created_ms, 500) << "the other PodGroup's";
  EXPECT_TRUE(gangs_.DropObject(gang, sigs.dialect));
  Add(CreatedAt(900, Facts("a", "g")));
  EXPECT_EQ(gang.created_ms, 900) << "no older pod is left";
}

// S-1: a pod that only names a submitted gang is foreign until the submission is confirmed or over.
TEST_F(MembersTest, SubmittedGang_OtherPodsAreForeign) {
  const Gang& gang = *gangs_.Intern("d", "g", 0, 0).gang;
  const Pod& before = Add("before", "g");
  const Pod& changed = Add("changed", "g", MemberState::kFailed);
  gangs_.SetSubmitted(gang);
  PodDescription facts = Facts("mine", "g");
  facts.scheduler_name = "nobody";
  const Pod& mine = Add(facts, MemberState::kPending, 1, /*submitted=*/true);
  const Pod& foreign_pod = Add("stranger", "g");
  EXPECT_FALSE(mine.foreign);
  EXPECT_TRUE(foreign_pod.foreign);
  EXPECT_TRUE(gangs_.Plannable(mine));
  EXPECT_FALSE(gangs_.Plannable(foreign_pod));
  EXPECT_FALSE(changed.foreign);
  gangs_.SetFacts(changed, Facts("changed", "g"), 1);
  EXPECT_TRUE(changed.foreign) << "looked at again when its facts are";
  gangs_.Leave(changed);
  EXPECT_FALSE(changed.foreign);
  gangs_.SetState(changed, MemberState::kPending);
  EXPECT_TRUE(gangs_.Plannable(changed));
  gangs_.UpdateForeignMember(changed);
  EXPECT_FALSE(changed.foreign) << "it is in no gang";
  EXPECT_FALSE(before.foreign);
  gangs_.UpdateForeignMember(before);
  EXPECT_TRUE(before.foreign);
  EXPECT_FALSE(gangs_.Plannable(before));
  gangs_.SetFacts(foreign_pod, Facts("stranger", "g"), 1);
  EXPECT_TRUE(foreign_pod.foreign);
  EXPECT_EQ(gang.plannable, 2) << "mine, and the one that was counted before the gang was submitted";
  gangs_.SetState(foreign_pod, MemberState::kBound);
  gangs_.ClearSubmitted(gang);
  EXPECT_FALSE(gang.submitted);
  for (const Pod* pod : {&before, &mine, &foreign_pod}) {
    EXPECT_FALSE(pod->foreign) << pod->facts.uid;
    EXPECT_FALSE(pod->submitted) << pod->facts.uid;
  }
  EXPECT_FALSE(gangs_.Plannable(mine)) << "no extender serves its scheduler";
  EXPECT_TRUE(gangs_.Plannable(before));
  EXPECT_EQ(gang.plannable, 1);
  EXPECT_EQ(gang.children(), 3);
  gangs_.SetState(foreign_pod, MemberState::kPending);
  EXPECT_EQ(gang.plannable, 2);
}

// G-10: after any changes in any order, the counts equal those of the sets.
TEST_F(MembersTest, RandomChanges_CountsMatchSets) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto roll = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
    const std::string name = absl::StrCat("g", seed);
    GangDeclaration declaration;
    declaration.min_member = 1 + roll(3);
    const Gang& gang = Declare(name, declaration);
    const auto facts = [&](int i) {
      PodDescription f = Facts(absl::StrCat(name, "-", i), name);
      f.priority = roll(2);
      f.created_ms = roll(4);
      f.other_gates = roll(4) == 0;
      if (roll(4) == 0) f.scheduler_name = "nobody";
      if (roll(6) == 0) f.gang.problem = {ReasonCode::kConflict, "two gangs"};
      return f;
    };
    for (int step = 0; step < 300; ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      const int i = roll(8);
      const Pod* pod = gangs_.FindPod(absl::StrCat(name, "-", i));
      const auto state = static_cast<MemberState>(roll(kMemberStates));
      const ClassId cls = roll(4) - 1;
      switch (roll(6)) {
        case 0:
          if (pod == nullptr) Add(facts(i), state, cls, roll(4) == 0);
          break;
        case 1:
          if (pod == nullptr || roll(3) > 0) break;
          gangs_.Leave(*pod);
          gangs_.RemovePod(*pod);
          break;
        case 2:
          if (pod != nullptr) gangs_.SetState(*pod, roll(2) == 0 ? MemberState::kPending : state);
          break;
        case 3:
          if (pod != nullptr) gangs_.SetFacts(*pod, facts(i), cls);
          break;
        case 4:
          if (pod != nullptr) gangs_.MarkCycleAttempt(*pod);
          break;
        default:
          gangs_.AdvanceCycle(gang);
      }
      int32_t gated = 0;
      int32_t attempted = 0;
      int32_t plannable = 0;
      const Pod* first = nullptr;
      std::vector<const Pod*> able;
      for (size_t at = 0; at < kMemberStates; ++at) {
        for (const Pod* member : gang.members[at]) {
          ASSERT_EQ(static_cast<size_t>(member->state), at);
          const bool is_gated = at == 0 && member->facts.other_gates;
          gated += is_gated ? 1 : 0;
          attempted += ((at == 0 && !is_gated) || at == 1) && member->last_cycle == gang.durable.cycle ? 1 : 0;
          if (gangs_.Plannable(*member)) able.push_back(member);
          if (first == nullptr || CreatedBefore(*member, *first)) first = member;
        }
      }
      plannable = static_cast<int32_t>(able.size());
      ASSERT_EQ(gang.gated, gated);
      ASSERT_EQ(gang.attempted, attempted);
      ASSERT_EQ(gang.plannable, plannable);
      ASSERT_EQ(gangs_.PlannableMembers(gang), plannable);
      if (first != nullptr) {
        ASSERT_EQ(&Gangs::FirstMember(gang), first);
      }
      if (roll(3) > 0) continue;
      size_t at = 0;
      for (const Candidates& run : gangs_.CandidateRuns(gang)) {
        for (int32_t pods = 0; pods < run.pods; ++pods, ++at) {
          ASSERT_LT(at, able.size());
          ASSERT_EQ(able[at]->cls, run.cls);
          ASSERT_EQ(able[at]->facts.priority, run.priority);
        }
      }
      ASSERT_EQ(at, able.size());
    }
  }
}

}  // namespace
}  // namespace muster
