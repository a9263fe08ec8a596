// muster_gangs: the tables of pods and gangs, and the gangs that must be reconciled.
#include "state/gangs/gangs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/state/gangs/gang_world.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

class GangsTest : public GangWorld {};

TEST_F(GangsTest, Pods_FoundByUidAndId) {
  EXPECT_EQ(gangs_.FindPod("a"), nullptr);
  EXPECT_EQ(gangs_.pod_count(), 0U);
  PodDescription facts = Facts("b", "");
  const Pod& b = gangs_.AddPod(facts, 7, MemberState::kBound, false);
  const Pod& a = gangs_.AddPod(Facts("a", ""), kNoClass, MemberState::kPending, true);
  EXPECT_EQ(gangs_.FindPod("b"), &b);
  EXPECT_EQ(&gangs_.pod(b.id), &b);
  EXPECT_EQ(&gangs_.pod(a.id), &a);
  EXPECT_NE(a.id, b.id);
  EXPECT_EQ(b.cls, 7);
  EXPECT_EQ(b.state, MemberState::kBound);
  EXPECT_FALSE(b.submitted);
  EXPECT_TRUE(a.submitted);
  EXPECT_EQ(a.gang, nullptr);
  EXPECT_EQ(gangs_.Uids(), (Names{"a", "b"})) << "in order";
  EXPECT_EQ(gangs_.pod_count(), 2U);
  const PodId id = b.id;
  gangs_.RemovePod(b);
  EXPECT_EQ(gangs_.FindPod("b"), nullptr);
  EXPECT_EQ(gangs_.pod_count(), 1U);
  EXPECT_EQ(gangs_.AddPod(Facts("c", ""), 1, MemberState::kPending, false).id, id) << "an id is given again";
  EXPECT_EQ(gangs_.AddPod(Facts("d", ""), 1, MemberState::kPending, false).id, 2);
  EXPECT_EQ(gangs_.pod(a.id).facts.uid, "a");
}

TEST_F(GangsTest, Gang_InternedOnce) {
  EXPECT_EQ(gangs_.FindGang("d/g"), nullptr);
  const auto [gang, fresh] = gangs_.Intern("d", "g", 70, 90);
  EXPECT_TRUE(fresh);
  EXPECT_EQ(gang->key, "d/g");
  EXPECT_EQ(gang->name_space, "d");
  EXPECT_EQ(gang->name, "g");
  EXPECT_EQ(gang->created_ms, 70);
  EXPECT_EQ(gang->reason_since_ms, 90);
  EXPECT_EQ(gang->rules.min_member, -1) << "uninitialised";
  EXPECT_EQ(gang->notify_at_ms, kNever);
  EXPECT_EQ(gangs_.FindGang("d/g"), gang);
  EXPECT_EQ(&gangs_.gang(gang->id), gang);
  const auto [again, fresh_again] = gangs_.Intern("d", "g", 1, 2);
  EXPECT_EQ(again, gang);
  EXPECT_FALSE(fresh_again);
  EXPECT_EQ(gang->created_ms, 70);
  EXPECT_NE(gangs_.Intern("e", "g", 1, 2).gang, gang) << "names are namespaced";
}

TEST_F(GangsTest, ForEachGang_VisitsInKeyOrder) {
  for (const char* name : {"m", "a", "z"}) static_cast<void>(gangs_.Intern("d", name, 0, 0));
  Names visited;
  gangs_.ForEachGang([&](const Gang& gang) { visited.push_back(gang.key); });
  EXPECT_EQ(visited, (Names{"d/a", "d/m", "d/z"}));
}

TEST_F(GangsTest, RemovedGang_IsGone) {
  const Gang& a = *gangs_.Intern("d", "a", 0, 0).gang;
  const Gang& b = *gangs_.Intern("d", "b", 0, 0).gang;
  const GangId id = a.id;
  gangs_.Touch(a);
  gangs_.Touch(b);
  gangs_.RemoveGang(a);
  EXPECT_EQ(gangs_.FindGang("d/a"), nullptr);
  EXPECT_EQ(gangs_.TakeChanged(), Names{"d/a"}) << "the removal is published";
  EXPECT_EQ(gangs_.TakeTouched(), &b);
  EXPECT_EQ(gangs_.TakeTouched(), nullptr) << "a removed gang is not reconciled";
  EXPECT_EQ(gangs_.Intern("d", "c", 0, 0).gang->id, id) << "its id is given again";
  EXPECT_EQ(gangs_.Intern("d", "e", 0, 0).gang->id, 2);
  gangs_.RemoveGang(b);
  EXPECT_EQ(gangs_.FindGang("d/b"), nullptr) << "one that was not touched";
}

// The facts of these pods are stored again: each once, in order of ids.
TEST_F(GangsTest, TakeChangedFacts_ListsEveryChange) {
  const Pod& b = Add("b", "g", MemberState::kBound);
  const Pod& a = Add("a", "g");
  EXPECT_EQ(gangs_.TakeChangedFacts(), (std::vector<PodId>{b.id, a.id}));
  const std::function<void()> changes[] = {[&] { gangs_.SetFacts(a, Facts("a", "g"), 2); },
                                           [&] { gangs_.SetNode(a, "n"); }, [&] { gangs_.SetTimedOutMark(a); }};
  for (const std::function<void()>& change : changes) {
    change();
    EXPECT_EQ(gangs_.TakeChangedFacts(), std::vector<PodId>{a.id});
  }
  gangs_.ClearSubmitted(GangOf("g"));
  gangs_.SetNode(b, "n");
  EXPECT_EQ(gangs_.TakeChangedFacts(), (std::vector<PodId>{b.id, a.id}));
}

// G-13: under policy `all`, the failed members that the policy was applied to are kept, sorted.
TEST_F(GangsTest, FailedMembers_RecordedUnderPolicyAll) {
  for (const char* name : {"b", "a", "c"}) Add(name, "g", MemberState::kFailed);
  GangDeclaration declaration;
  declaration.min_member = 1;
  const Gang& gang = Declare("g", declaration);
  gangs_.RecordFailedMembers(gang);
  EXPECT_EQ(gang.durable.failed, Names{});
  declaration.on_member_failure = OnMemberFailure::kAll;
  Declare("g", declaration);
  gangs_.SetFacts(*gangs_.FindPod("c"), OfPriority(1, Facts("c", "g")), 1);
  gangs_.RecordFailedMembers(gang);
  EXPECT_EQ(gang.durable.failed, (Names{"a", "b", "c"}));
  for (const char* name : {"b", "a", "c"}) gangs_.Leave(*gangs_.FindPod(name));
  gangs_.RecordFailedMembers(gang);
  EXPECT_EQ(gang.durable.failed, Names{});
}

TEST_F(GangsTest, TakeTouched_InKeyOrderAndOnce) {
  std::vector<const Gang*> gangs;
  for (const char* name : {"m", "c", "z", "a", "k"}) gangs.push_back(gangs_.Intern("d", name, 0, 0).gang);
  for (const Gang* gang : gangs) {
    gangs_.Touch(*gang);
    gangs_.Touch(*gang);
    EXPECT_TRUE(gang->touched);
  }
  gangs_.Untouch(*gangs[0]);
  EXPECT_FALSE(gangs[0]->touched);
  gangs_.Untouch(*gangs[4]);
  gangs_.Touch(*gangs[4]);
  Names taken;
  while (const Gang* gang = gangs_.TakeTouched()) {
    EXPECT_FALSE(gang->touched);
    taken.push_back(gang->key);
    // Reconciling one gang may touch another, even one with a smaller key.
    if (gang->key == "d/k") gangs_.Touch(*gangs[3]);
  }
  EXPECT_EQ(taken, (Names{"d/a", "d/c", "d/k", "d/a", "d/z"}));
}

TEST_F(GangsTest, Untouch_PreservesOrder) {
  std::vector<const Gang*> gangs;
  Names expected;
  for (int i = 0; i < 60; ++i) gangs.push_back(gangs_.Intern("d", absl::StrCat(10 + i * 37 % 60), 0, 0).gang);
  for (const Gang* gang : gangs) gangs_.Touch(*gang);
  for (size_t i = 0; i < gangs.size(); ++i) {
    if (i % 3 == 1) {
      gangs_.Untouch(*gangs[i]);
    } else {
      expected.push_back(gangs[i]->key);
    }
  }
  std::sort(expected.begin(), expected.end());
  Names taken;
  while (const Gang* gang = gangs_.TakeTouched()) taken.push_back(gang->key);
  EXPECT_EQ(taken, expected);
  Names uids;
  for (int i = 10; i < 40; ++i) {
    uids.push_back(absl::StrCat("u", i));
    Add(uids.back(), "");
  }
  EXPECT_EQ(gangs_.Uids(), uids);
}

TEST_F(GangsTest, TakeChanged_InKeyOrderAndOnce) {
  const Gang& b = *gangs_.Intern("d", "b", 0, 0).gang;
  const Gang& a = *gangs_.Intern("d", "a", 0, 0).gang;
  EXPECT_EQ(gangs_.TakeChanged(), Names{});
  gangs_.MarkChanged(b);
  gangs_.MarkChanged(a);
  gangs_.MarkChanged(b);
  EXPECT_EQ(gangs_.TakeChanged(), (Names{"d/a", "d/b"}));
  EXPECT_EQ(gangs_.TakeChanged(), Names{});
  gangs_.MarkChanged(b);
  EXPECT_EQ(gangs_.TakeChanged(), Names{"d/b"}) << "it changed again";
  // Removed and added again: its key is listed once.
  gangs_.RemoveGang(b);
  const Gang& again = *gangs_.Intern("d", "b", 0, 0).gang;
  gangs_.MarkChanged(again);
  EXPECT_EQ(gangs_.TakeChanged(), Names{"d/b"});
  gangs_.MarkChanged(again);
  EXPECT_EQ(gangs_.TakeChanged(), Names{"d/b"});
}

TEST_F(GangsTest, Restore_SetsRecordedState) {
  const Gang& gang = *gangs_.Intern("d", "g", 0, 0).gang;
  EXPECT_FALSE(gang.recorded);
  gangs_.Restore(gang, DurableGangState{.satisfied = true, .timed_out = false, .held_ms = 5, .requeues = 2});
  EXPECT_EQ(gang.durable, (DurableGangState{.satisfied = true, .timed_out = false, .held_ms = 5, .requeues = 2}));
  EXPECT_EQ(gang.written, gang.durable);
  EXPECT_TRUE(gang.recorded);
  EXPECT_FALSE(gang.has_cycle_attempts);
  gangs_.Restore(gang, DurableGangState{.cycle = 2});
  EXPECT_TRUE(gang.has_cycle_attempts);
  gangs_.Restore(gang, DurableGangState{.cycle = 1});
  EXPECT_FALSE(gang.has_cycle_attempts);
  gangs_.Restore(gang, DurableGangState{.cycle = 1, .cycle_valid = false});
  EXPECT_TRUE(gang.has_cycle_attempts);
}

// S-5: the gang waits for a reason since its code appeared. A changed figure is not another reason, and its
// notification may come later.
TEST_F(GangsTest, SameReasonCode_KeepsStartTime) {
  const Gang& gang = *gangs_.Intern("d", "g", 0, 10).gang;
  EXPECT_TRUE(gangs_.SetReason(gang, {ReasonCode::kNotEnoughPods, "1 of 3"}, 100, 150, 900));
  EXPECT_FALSE(gangs_.SetReason(gang, {ReasonCode::kNotEnoughPods, "1 of 3"}, 101, 102, 103));
  EXPECT_EQ(gang.reason, (Reason{ReasonCode::kNotEnoughPods, "1 of 3"}));
  EXPECT_EQ(gang.reason_since_ms, 100);
  EXPECT_EQ(gang.notify_at_ms, 150);
  gangs_.SetReason(gang, {ReasonCode::kNotEnoughPods, "2 of 3"}, 110, 120, 910);
  EXPECT_EQ(gang.reason.text, "2 of 3");
  EXPECT_EQ(gang.reason_since_ms, 100);
  EXPECT_EQ(gang.notify_at_ms, 150);
  gangs_.SetReason(gang, {ReasonCode::kQueued, ""}, 120, 170, 920);
  EXPECT_EQ(gang.reason_since_ms, 120);
  EXPECT_EQ(gang.notify_at_ms, 150) << "the notification is in time";
  gangs_.SetReason(gang, {ReasonCode::kNoRoom, ""}, 130, 140, 930);
  EXPECT_EQ(gang.notify_at_ms, 140);
  gangs_.SetNotify(gang, kNever);
  gangs_.SetReason(gang, {ReasonCode::kNoRoom, ""}, 150, 160, 950);
  EXPECT_EQ(gang.notify_at_ms, kNever) << "the same words";
  gangs_.SetReason(gang, {ReasonCode::kNoRoom, "less"}, 150, 160, 950);
  EXPECT_EQ(gang.notify_at_ms, 950) << "a changed text is reported later";
}

TEST_F(GangsTest, MemberStates_HaveUniqueNames) {
  std::set<absl::string_view> names;
  for (size_t state = 0; state < kMemberStates; ++state) {
    const absl::string_view name = ToString(static_cast<MemberState>(state));
    EXPECT_FALSE(name.empty()) << state;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(ToString(MemberState::kCommitted), "Binding") << "as users see it";
}

class GangsDeath : public GangsTest {};

TEST_F(GangsDeath, RemovalOfMemberOrFirstOfNone_Dies) {
  const Pod& pod = Add("a", "g");
  EXPECT_DEATH(gangs_.RemovePod(pod), "invariant");
  EXPECT_DEATH(gangs_.RemoveGang(GangOf("g")), "invariant");
  EXPECT_DEATH(static_cast<void>(Gangs::FirstMember(*gangs_.Intern("d", "empty", 0, 0).gang)), "invariant");
}

}  // namespace
}  // namespace muster
