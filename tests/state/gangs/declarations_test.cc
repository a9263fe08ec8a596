// muster_gangs: the declarations of a gang by pods and PodGroups, and which of them count (SPEC D-8, D-9).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/state/gangs/gang_world.h"

namespace muster {
namespace {

class DeclarationsTest : public GangWorld {
 protected:
  static bool Warns(const Gang& gang, absl::string_view part) {
    for (const std::string& warning : gang.warnings) {
      if (absl::StrContains(warning, part)) return true;
    }
    return false;
  }
  static GangDeclaration Minimum(int32_t minimum) {
    GangDeclaration declaration;
    declaration.min_member = minimum;
    return declaration;
  }
  // A pod whose declaration has an unreadable minimum.
  static PodDescription Unreadable(const std::string& name, const std::string& why) {
    PodDescription facts = Declaring(name, "g", 0);
    facts.gang.declaration.Mutable().min_member.reset();
    facts.gang.declaration.Mutable().unreadable_minimum = why;
    return facts;
  }
  static PodDescription Warning(const std::string& name, std::vector<std::string> warnings) {
    PodDescription facts = Declaring(name, "g", 2);
    facts.gang.declaration.Mutable().warnings = std::move(warnings);
    return facts;
  }
};

TEST_F(DeclarationsTest, SameDeclaration_ChangesNothing) {
  const Gang& gang = *gangs_.Intern("d", "g", 900, 0).gang;
  GangObject object = Object("g", Minimum(3));
  EXPECT_TRUE(gangs_.PutObject(gang, object));
  EXPECT_EQ(gang.created_ms, 500) << "the object's creation is the gang's";
  object.uid = "another";
  EXPECT_FALSE(gangs_.PutObject(gang, object)) << "its status changed";
  EXPECT_EQ(gang.objects.at(GangDialect::kPodGroupSigs).uid, "another");
  object.declaration.Mutable().min_member = 4;
  EXPECT_TRUE(gangs_.PutObject(gang, object));
  object.created_ms = 600;
  EXPECT_TRUE(gangs_.PutObject(gang, object));
  EXPECT_EQ(gang.created_ms, 600);
  object.dialect = GangDialect::kPodGroupX;
  EXPECT_TRUE(gangs_.PutObject(gang, object)) << "another API group's";
  EXPECT_EQ(gang.objects.size(), 2U);
  EXPECT_TRUE(gangs_.DropObject(gang, GangDialect::kPodGroupSigs));
  EXPECT_FALSE(gangs_.DropObject(gang, GangDialect::kPodGroupSigs));
  EXPECT_EQ(gang.objects.size(), 1U);
}

// D-9: the first readable declaration wins; a later contradiction is reported.
TEST_F(DeclarationsTest, FirstDeclaration_Wins) {
  const Pod& silent = Add("silent", "g");
  EXPECT_FALSE(gangs_.Adopt(silent)) << "it says nothing";
  const Gang& gang = GangOf("g");
  EXPECT_FALSE(gang.annotations.has_value());
  const Pod& first = gangs_.AddPod(Declaring("first", "g", 3), 1, MemberState::kPending, false);
  gangs_.Join(first, gang);
  EXPECT_TRUE(gangs_.Adopt(first));
  EXPECT_EQ(gang.rules.min_member, 3);
  EXPECT_EQ(gang.declared_by, "first");
  EXPECT_EQ(gang.declared_as, GangDialect::kKoordinator);
  const Pod& same = Add(Declaring("same", "g", 3));
  EXPECT_FALSE(gangs_.Adopt(same));
  EXPECT_TRUE(gang.warnings.empty()) << gang.warnings[0];
  const Pod& other = gangs_.AddPod(Declaring("other", "g", 4), 1, MemberState::kPending, false);
  gangs_.Join(other, gang);
  EXPECT_FALSE(gangs_.Adopt(other));
  EXPECT_EQ(gang.rules.min_member, 3);
  EXPECT_EQ(gang.declared_by, "first");
  EXPECT_EQ(gang.warnings.size(), 1U);
  EXPECT_TRUE(Warns(gang, "other contradicts")) << gang.warnings[0];
  EXPECT_TRUE(Warns(gang, "minimum 4 against 3")) << gang.warnings[0];
}

// D-8: a declaration without a minimum yields to one with a minimum.
TEST_F(DeclarationsTest, DeclarationWithoutMinimum_Yields) {
  PodDescription facts = Declaring("vague", "g", 0);
  facts.gang.declaration.Mutable().min_member.reset();
  facts.gang.declaration.Mutable().queue = "blue";
  Add(facts);
  const Gang& gang = GangOf("g");
  EXPECT_EQ(gang.declared_by, "vague");
  facts.uid = facts.name = "vaguer";
  Add(facts);
  EXPECT_EQ(gang.declared_by, "vague");
  const Pod& clear = gangs_.AddPod(Declaring("clear", "g", 3), 1, MemberState::kPending, false);
  gangs_.Join(clear, gang);
  EXPECT_TRUE(gangs_.Adopt(clear));
  EXPECT_EQ(gang.declared_by, "clear");
  EXPECT_EQ(gang.rules.min_member, 3);
  EXPECT_EQ(gang.rules.queue, "default");
  Add(Declaring("late", "g", 4));
  EXPECT_EQ(gang.declared_by, "clear");
}

// G-6, D-13: the defaults are those of the dialect that declares the effective minimum.
TEST_F(DeclarationsTest, Defaults_FollowDialectOfMinimum) {
  const Gang& x = Declare("x", Minimum(2), GangDialect::kPodGroupX);
  EXPECT_EQ(x.rules.on_timeout, OnTimeout::kRequeue);
  PodDescription facts = Declaring("a", "x", 0);
  facts.gang.declaration.Mutable().min_member.reset();
  facts.gang.declaration.Mutable().queue = "blue";
  Add(facts);
  EXPECT_EQ(x.rules.queue, "blue");
  EXPECT_EQ(x.rules.on_timeout, OnTimeout::kRequeue) << "the pod declares a queue, the PodGroup the minimum";
  Add(Declaring("b", "x", 3));
  EXPECT_EQ(x.rules.on_timeout, OnTimeout::kFail) << "by annotations of D-1";
  Add(OfDialect(GangDialect::kSigsPods, Declaring("c", "pods", 2)));
  EXPECT_EQ(GangOf("pods").rules.on_timeout, OnTimeout::kRequeue);
  EXPECT_EQ(GangOf("pods").declared_as, GangDialect::kSigsPods);
}

// D-8: an unreadable minimum leaves the gang uninitialised and is quoted; a later readable minimum still counts.
TEST_F(DeclarationsTest, UnreadableMinimum_IsReported) {
  const Pod& a = Add(Unreadable("a", "min-available \"many\""));
  const Gang& gang = GangOf("g");
  EXPECT_FALSE(gang.annotations.has_value());
  EXPECT_EQ(gang.unreadable, "pod a: min-available \"many\"");
  EXPECT_TRUE(Warns(gang, "pod a: min-available"));
  EXPECT_FALSE(gangs_.Adopt(a));
  Add(Unreadable("b", "min-available \"few\""));
  EXPECT_EQ(gang.unreadable, "pod a: min-available \"many\"") << "the first is the one that is shown";
  EXPECT_TRUE(Warns(gang, "pod b: min-available \"few\""));
  Add(Declaring("c", "g", 2));
  EXPECT_EQ(gang.rules.min_member, 2);
  EXPECT_EQ(gang.declared_by, "c");
}

TEST_F(DeclarationsTest, Warnings_UniqueAndBounded) {
  Add(Warning("a", {"bad mode", "bad mode", "bad wait"}));
  const Gang& gang = GangOf("g");
  EXPECT_EQ(gang.warnings, (std::vector<std::string>{"pod a: bad mode", "pod a: bad wait"}));
  for (int i = 0; i < 13; ++i) Add(Warning(absl::StrCat("p", i), {"bad mode"}));
  EXPECT_EQ(gang.warnings.size(), 15U);
  for (const char* name : {"x", "y", "z"}) Add(Warning(name, {"bad mode"}));
  EXPECT_EQ(gang.warnings.size(), 16U);
  EXPECT_TRUE(Warns(gang, "pod x"));
  EXPECT_FALSE(Warns(gang, "pod y"));
  EXPECT_EQ(gang.rules.min_member, 2);
}

// Warnings about a PodGroup are shown to users as well.
TEST_F(DeclarationsTest, PodGroupWarnings_AreReported) {
  GangDeclaration declaration = Minimum(2);
  declaration.warnings = {"bad mode"};
  const Gang& gang = Declare("g", declaration);
  gangs_.Redeclare(gang);
  EXPECT_EQ(gang.warnings, std::vector<std::string>{"PodGroup: bad mode"});
}

// When all pods are read again, the declaring pod goes first; after it is gone, the pod created first.
TEST_F(DeclarationsTest, Redeclare_KeepsDeclaringPod) {
  Add(CreatedAt(300, Declaring("late", "g", 3)));
  const Pod& early = Add(CreatedAt(100, Declaring("early", "g", 4)));
  Add(CreatedAt(200, Declaring("middle", "g", 5)), MemberState::kRunning);
  Add(CreatedAt(200, Declaring("twin", "g", 6)));
  const Gang& gang = GangOf("g");
  EXPECT_EQ(gang.rules.min_member, 3);
  gangs_.Redeclare(gang);
  EXPECT_EQ(gang.declared_by, "late");
  EXPECT_EQ(gang.rules.min_member, 3);
  EXPECT_TRUE(Warns(gang, "early contradicts"));
  gangs_.Leave(*gangs_.FindPod("late"));
  gangs_.Redeclare(gang);
  EXPECT_EQ(gang.declared_by, "early");
  EXPECT_EQ(gang.rules.min_member, 4);
  EXPECT_FALSE(Warns(gang, "early contradicts"));
  EXPECT_TRUE(Warns(gang, "middle contradicts"));
  gangs_.Leave(early);
  gangs_.Redeclare(gang);
  EXPECT_EQ(gang.declared_by, "middle") << "of two at one time the first UID, in whatever state";
  gangs_.Leave(*gangs_.FindPod("middle"));
  gangs_.Leave(*gangs_.FindPod("twin"));
  gangs_.Redeclare(gang);
  EXPECT_EQ(gang.declared_by, "");
  EXPECT_FALSE(gang.annotations.has_value());
  EXPECT_EQ(gang.rules.min_member, -1);
  EXPECT_TRUE(gang.warnings.empty());
}

TEST_F(DeclarationsTest, RemovedPod_ClearsUnreadableMinimum) {
  const Pod& a = Add(Unreadable("a", "bad"));
  const Gang& gang = GangOf("g");
  gangs_.Redeclare(gang);
  EXPECT_EQ(gang.unreadable, "pod a: bad");
  gangs_.Leave(a);
  gangs_.Redeclare(gang);
  EXPECT_EQ(gang.unreadable, "");
}

// D-9: annotations take precedence over the PodGroup, field by field, and a warning says so.
TEST_F(DeclarationsTest, Annotations_OverridePodGroup) {
  GangDeclaration object = Minimum(2);
  object.queue = "blue";
  const Gang& gang = Declare("g", object);
  EXPECT_EQ(gang.rules.min_member, 2);
  EXPECT_TRUE(gang.warnings.empty());
  Add(Declaring("a", "g", 3));
  EXPECT_EQ(gang.rules.min_member, 3);
  EXPECT_EQ(gang.rules.queue, "blue");
  EXPECT_TRUE(Warns(gang, "override the PodGroup: minimum 3 against 2"));
  gangs_.PutObject(gang, Object("g", Minimum(3)));
  gangs_.Redeclare(gang);
  EXPECT_TRUE(gang.warnings.empty()) << "they agree now";
  gangs_.DropObject(gang, GangDialect::kPodGroupSigs);
  gangs_.Redeclare(gang);
  EXPECT_EQ(gang.rules.min_member, 3);
  EXPECT_EQ(gang.rules.queue, "default");
}

TEST_F(DeclarationsTest, Defaults_ComeFromSettings) {
  Gangs gangs(GangsSettings{{.wait_time_ms = 77, .match_policy = MatchPolicy::kOnlyWaiting}, {}, false});
  const Gang& gang = *gangs.Intern("d", "g", 0, 0).gang;
  gangs.PutObject(gang, Object("g", Minimum(2)));
  gangs.ReadRules(gang);
  EXPECT_EQ(gang.rules.wait_time_ms, 77);
  EXPECT_EQ(gang.rules.match_policy, MatchPolicy::kOnlyWaiting);
}

// D-10: a group that lists only the gang itself is no group.
TEST_F(DeclarationsTest, GroupOfOne_IsNoGroup) {
  EXPECT_TRUE(Declare("g", 1, {"d/g"}).rules.group.empty());
  EXPECT_TRUE(Declare("g", 1, {"d/g", "d/g"}).rules.group.empty());
  EXPECT_EQ(Declare("g", 1, {"d/h"}).rules.group, std::vector<std::string>{"d/h"});
  EXPECT_EQ(Declare("g", 1, {"d/h", "d/g"}).rules.group, (std::vector<std::string>{"d/g", "d/h"}));
}

}  // namespace
}  // namespace muster
