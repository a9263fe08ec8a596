// muster_model: the declaration of a gang and the rules that follow from it (SPEC D-8, D-9, D-13).
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/model/gang.h"

namespace muster {
namespace {

using Declaration = GangDeclaration;

TEST(DeclarationTest, EnumNames_MatchUserSyntax) {
  EXPECT_EQ(ToString(GangMode::kStrict), "Strict");
  EXPECT_EQ(ToString(GangMode::kNonStrict), "NonStrict");
  constexpr std::array kPolicies = {"once-satisfied", "only-waiting", "waiting-and-running", "waiting-running-succeed"};
  for (size_t i = 0; i < kPolicies.size(); ++i) {
    EXPECT_EQ(ToString(static_cast<MatchPolicy>(i)), kPolicies[i]);
    EXPECT_EQ(ParseMatchPolicy(kPolicies[i]), static_cast<MatchPolicy>(i));
    EXPECT_TRUE(absl::StrContains(kMatchPolicies, kPolicies[i]));
  }
  for (const char* text : {"", "Once-Satisfied", "once-satisfied ", "never"})
    EXPECT_EQ(ParseMatchPolicy(text), std::nullopt);
  EXPECT_EQ(ToString(OnTimeout::kFail), "fail");
  EXPECT_EQ(ToString(OnTimeout::kRequeue), "requeue");
  EXPECT_EQ(ToString(OnMemberFailure::kKeep), "keep");
  EXPECT_EQ(ToString(OnMemberFailure::kAll), "all");
  std::set<absl::string_view> dialects;
  for (int dialect = 0; dialect <= static_cast<int>(GangDialect::kApi); ++dialect) {
    const absl::string_view name = ToString(static_cast<GangDialect>(dialect));
    EXPECT_FALSE(name.empty()) << dialect;
    EXPECT_TRUE(dialects.insert(name).second) << name;
  }
}

TEST(DeclarationTest, Membership_DeclaresGangByDialect) {
  const auto declares = [](GangDialect dialect, bool pod_declares) {
    return GangMembership{.name = "g", .dialect = dialect, .declares = pod_declares}.declares_gang();
  };
  EXPECT_TRUE(declares(GangDialect::kKoordinator, false));
  EXPECT_TRUE(declares(GangDialect::kSigsPods, false));
  EXPECT_FALSE(declares(GangDialect::kPodGroupSigs, true));
  EXPECT_FALSE(declares(GangDialect::kPodGroupX, true));
  EXPECT_FALSE(declares(GangDialect::kNative, true));
  EXPECT_TRUE(declares(GangDialect::kApi, true));
  EXPECT_FALSE(declares(GangDialect::kApi, false));
  EXPECT_TRUE((GangMembership{.name = "g"}.in_gang()));
  EXPECT_FALSE(GangMembership().in_gang());
}

// Two declarations that differ in every field.
Declaration One() {
  return {.min_member = 3,
          .total_number = 5,
          .wait_time_ms = 7'000,
          .mode = GangMode::kNonStrict,
          .match_policy = MatchPolicy::kOnlyWaiting,
          .min_resources = ResourceList{{"cpu", 1}},
          .priority = 11,
          .queue = "blue",
          .on_timeout = OnTimeout::kRequeue,
          .on_member_failure = OnMemberFailure::kAll,
          .stale_grace_ms = 13,
          .preemptible = false,
          .duration_ms = 15,
          .groups = {"d/a", "d/z"},
          .topology = TopologyRule{"rack", "host", ""}};
}
Declaration Two() {
  return {.min_member = 4,
          .total_number = 9,
          .wait_time_ms = 8'000,
          .mode = GangMode::kStrict,
          .match_policy = MatchPolicy::kWaitingAndRunning,
          .min_resources = ResourceList{{"cpu", 2}},
          .priority = 12,
          .queue = "red",
          .on_timeout = OnTimeout::kFail,
          .on_member_failure = OnMemberFailure::kKeep,
          .stale_grace_ms = 14,
          .preemptible = true,
          .duration_ms = 16,
          .groups = {"d/b"},
          .topology = TopologyRule{"", "", "zone"}};
}

// A field, with its value in One() and in Two().
struct Field {
  const char* name;
  std::function<void(Declaration* to, const Declaration& from)> copy;
  std::function<std::string(const GangRules&)> print;
  std::string one;
  std::string two;
  std::string by_default;
};

std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(const ResourceList& amounts) { return absl::StrCat("{", FormatResources(amounts), "}"); }
std::string Text(const std::vector<std::string>& ids) { return absl::StrJoin(ids, " "); }
std::string Text(const std::optional<int32_t>& number) { return number.has_value() ? absl::StrCat(*number) : "none"; }
template <typename T>
std::string Text(const T& value) {
  constexpr bool kIsNamed = std::is_enum_v<T> || std::is_same_v<T, TopologyRule>;
  if constexpr (kIsNamed) return std::string(ToString(value));
  if constexpr (!kIsNamed) return absl::StrCat(value);
}

template <typename Declared, typename Resolved>
Field Of(const char* name, Declared Declaration::*declared, Resolved GangRules::*resolved, const char* one,
         const char* two, const char* by_default) {
  return {name,
          [=](Declaration* to, const Declaration& from) { to->*declared = from.*declared; },
          [=](const GangRules& rules) { return Text(rules.*resolved); },
          one,
          two,
          by_default};
}

std::vector<Field> Fields() {
  using D = Declaration;
  using R = GangRules;
  return {
      Of("minimum", &D::min_member, &R::min_member, "3", "4", "-1"),
      Of("total", &D::total_number, &R::total_number, "5", "9", "3"),  // by default the minimum
      Of("waiting time (ms)", &D::wait_time_ms, &R::wait_time_ms, "7000", "8000", "1234"),
      Of("mode", &D::mode, &R::mode, "NonStrict", "Strict", "Strict"),
      Of("match policy", &D::match_policy, &R::match_policy, "only-waiting", "waiting-and-running",
         "waiting-running-succeed"),
      Of("minimum resources", &D::min_resources, &R::min_resources, "{cpu: 1m}", "{cpu: 2m}", "{}"),
      Of("priority", &D::priority, &R::priority, "11", "12", "none"),
      Of("groups", &D::groups, &R::group, "d/a d/z", "d/b", ""),
      Of("queue", &D::queue, &R::queue, "blue", "red", "default"),
      Of("on-timeout", &D::on_timeout, &R::on_timeout, "requeue", "fail", "fail"),
      Of("on-member-failure", &D::on_member_failure, &R::on_member_failure, "all", "keep", "keep"),
      Of("stale grace (ms)", &D::stale_grace_ms, &R::stale_grace_ms, "13", "14", "-1"),
      Of("preemptible", &D::preemptible, &R::preemptible, "false", "true", "true"),
      Of("duration (ms)", &D::duration_ms, &R::duration_ms, "15", "16", "0"),
      Of("topology", &D::topology, &R::topology, "required rack, preferred host", "spread zone", "none"),
  };
}

// SPEC D-9: for each field, annotations take precedence over the PodGroup, and the PodGroup over the defaults.
TEST(ResolveRulesTest, Annotations_OverridePodGroupPerField) {
  const GangDefaults defaults{1'234, MatchPolicy::kWaitingRunningSucceed};
  for (const Field& field : Fields()) {
    SCOPED_TRACE(field.name);
    const auto resolve = [&](const Declaration* annotations, const Declaration* object) {
      return field.print(ResolveRules(annotations, object, GangDialect::kKoordinator, defaults));
    };
    Declaration one = One();
    one.groups = {"d/z", "d/a", "d/z"};  // D-10: in order, each once
    const Declaration two = Two();
    EXPECT_EQ(resolve(&one, &two), field.one);
    EXPECT_EQ(resolve(&two, &one), field.two);
    EXPECT_EQ(resolve(&one, nullptr), field.one);
    EXPECT_EQ(resolve(nullptr, &two), field.two);
    Declaration without = one;
    field.copy(&without, Declaration());
    EXPECT_EQ(resolve(&without, &two), field.two);
    EXPECT_EQ(resolve(&two, &without), field.two);
    EXPECT_EQ(resolve(&without, nullptr), field.by_default);
    EXPECT_EQ(resolve(nullptr, &without), field.by_default);
  }
}

// SPEC D-8: a total that is missing or below the minimum becomes the minimum.
TEST(ResolveRulesTest, TotalBelowMinimum_IsRaised) {
  const auto total = [](std::optional<int32_t> minimum, std::optional<int32_t> total) {
    const Declaration d = {.min_member = minimum, .total_number = total};
    return ResolveRules(&d, nullptr, GangDialect::kKoordinator, {}).total_number;
  };
  EXPECT_EQ(total(4, {}), 4);
  EXPECT_EQ(total(4, 3), 4);
  EXPECT_EQ(total(4, 4), 4);
  EXPECT_EQ(total(4, 5), 5);
  EXPECT_EQ(total({}, 5), 5);
  const Declaration annotations = {.min_member = 8};
  Declaration object = {.total_number = 6};
  EXPECT_EQ(ResolveRules(&annotations, &object, GangDialect::kKoordinator, {}).total_number, 8)
      << "whoever declared which of the two";
  object.total_number = 9;
  EXPECT_EQ(ResolveRules(&annotations, &object, GangDialect::kKoordinator, {}).total_number, 9);
}

// SPEC Q-4: a gang that declares a total or minResources, by its pods or by its PodGroup, is counted by them.
TEST(ResolveRulesTest, TotalOrMinResources_DeclareTotal) {
  const auto declares = [](const Declaration& annotations, const Declaration& object) {
    return ResolveRules(&annotations, &object, GangDialect::kKoordinator, {}).declares_total;
  };
  const Declaration total = {.total_number = 3};
  const Declaration resources = {.min_resources = ResourceList{{"cpu", 1'000}}};
  const Declaration minimum = {.min_member = 2};
  EXPECT_TRUE(declares(total, minimum));
  EXPECT_TRUE(declares(minimum, total));
  EXPECT_TRUE(declares(resources, minimum));
  EXPECT_TRUE(declares(minimum, resources));
  EXPECT_FALSE(declares(minimum, {}));
}

// the caller of the declaration that names the queue counts, or the only caller if none names it.
TEST(ResolveRulesTest, Caller_IsThatOfTheQueue) {
  const auto caller = [](const Declaration& annotations, const Declaration& object) {
    return ResolveRules(&annotations, &object, GangDialect::kApi, GangDefaults()).caller;
  };
  const Declaration named = {.queue = "q", .caller = "token:a"};
  const Declaration named_elsewhere = {.queue = "q"};
  const Declaration unnamed = {.caller = "token:b"};
  EXPECT_EQ(caller(named, unnamed), "token:a");
  EXPECT_EQ(caller(unnamed, named), "token:a");
  EXPECT_EQ(caller(named_elsewhere, named), "") << "the annotation takes precedence";
  EXPECT_EQ(caller(unnamed, named_elsewhere), "");
  EXPECT_EQ(caller(named_elsewhere, unnamed), "");
  EXPECT_EQ(caller({}, unnamed), "token:b");
  EXPECT_EQ(caller(unnamed, {}), "token:b");
  EXPECT_EQ(ResolveRules(nullptr, nullptr, GangDialect::kApi, GangDefaults()).caller, "");
}

// An update of a gang (D-8): only the named fields change, and the result is checked as a whole.
TEST(ReplaceFieldsTest, NamedFields_AreReplaced) {
  const Declaration known = {.min_member = 2, .total_number = 4, .queue = "a"};
  Declaration update = {.min_member = 3, .queue = "b"};
  EXPECT_EQ(ReplaceFields(known, update, {GangField::kMinMember})->min_member, 3);
  EXPECT_EQ(ReplaceFields(known, update, {GangField::kMinMember})->queue, "a");
  EXPECT_EQ(ReplaceFields(known, update, {GangField::kQueue})->queue, "b");
  EXPECT_EQ(ReplaceFields(known, update, {GangField::kTotalNumber})->total_number, std::nullopt);
  update.caller = "token:b";  // the caller of an update counts if it names the queue
  EXPECT_EQ(ReplaceFields(known, update, {GangField::kMinMember})->caller, "");
  EXPECT_EQ(ReplaceFields(known, update, {GangField::kMinMember, GangField::kQueue})->caller, "token:b");
  EXPECT_EQ(ReplaceFields(known, Declaration(), {GangField::kMinMember})->min_member, 0) << "no constraint";
  update.min_member = 4;
  EXPECT_TRUE(ReplaceFields(known, update, {GangField::kMinMember}).ok());
  update.min_member = 5;
  EXPECT_EQ(ReplaceFields(known, update, {GangField::kMinMember}).status().message(),
            "gang.total_number: 4; expected at least min_member (5)");
}

TEST(ReplaceFieldsTest, MinimumWithSubgroups_CountsSubgroups) {
  Declaration known = {.min_member = 2};
  Declaration update = {.min_member = 0};
  update.subgroups = {{.name = "a", .minimum = 1}, {.name = "b", .minimum = 1}, {.name = "c", .minimum = 1}};
  const auto minimum = [&](const std::vector<GangField>& fields) {
    return ReplaceFields(known, update, fields)->min_member;
  };
  EXPECT_EQ(minimum({GangField::kSubgroups}), 2);
  EXPECT_EQ(minimum({GangField::kSubgroups, GangField::kMinMember}), std::nullopt) << "all of them";
  known.min_member = 1;
  EXPECT_EQ(minimum({GangField::kSubgroups}), 1);
  known.min_member = 4;
  EXPECT_TRUE(absl::IsInvalidArgument(ReplaceFields(known, update, {GangField::kSubgroups}).status()));
}

// G-6, D-13: the defaults of a dialect apply to fields that are not declared.
TEST(ResolveRulesTest, Dialect_DecidesDefaults) {
  struct Case {
    GangDialect dialect;
    OnTimeout on_timeout;
    int64_t stale_grace_ms;
  };
  const std::vector<Case> cases = {
      {GangDialect::kKoordinator, OnTimeout::kFail, -1},   {GangDialect::kSigsPods, OnTimeout::kRequeue, -1},
      {GangDialect::kPodGroupSigs, OnTimeout::kFail, -1},  {GangDialect::kPodGroupX, OnTimeout::kRequeue, -1},
      {GangDialect::kNative, OnTimeout::kRequeue, 60'000}, {GangDialect::kApi, OnTimeout::kRequeue, 60'000},
  };
  for (const auto& [dialect, on_timeout, stale_grace_ms] : cases) {
    SCOPED_TRACE(ToString(dialect));
    const GangRules rules = ResolveRules(nullptr, nullptr, dialect, {});
    EXPECT_EQ(rules.on_timeout, on_timeout);
    EXPECT_EQ(rules.stale_grace_ms, stale_grace_ms);
    EXPECT_EQ(rules.wait_time_ms, 600'000);
    EXPECT_EQ(rules.match_policy, MatchPolicy::kOnceSatisfied);
    const Declaration two = Two();
    EXPECT_EQ(ResolveRules(nullptr, &two, dialect, {}).on_timeout, OnTimeout::kFail) << "the declared value counts";
    EXPECT_EQ(ResolveRules(nullptr, &two, dialect, {}).stale_grace_ms, 14);
  }
}

// SPEC P-5, P-7: an error names the subgroup; at the limits there is none.
TEST(SubgroupsTest, Problems_AreNamed) {
  const auto problem = [](const std::vector<SubgroupDeclaration>& declared, std::optional<int32_t> minimum = {}) {
    const SubgroupParseResult result = ParseSubgroups(declared, minimum);
    EXPECT_NE(result.problem.empty(), result.tree.empty());
    return result.problem;
  };
  const auto asks = [&](int64_t cpu) {
    PodTemplate shape;
    shape.requests = {{"cpu", cpu}};
    return problem({{.name = "a", .members = shape}});
  };
  std::vector<SubgroupDeclaration> many(1024);
  for (size_t i = 0; i < many.size(); ++i) many[i].name = absl::StrCat(i);
  for (size_t i = 1; i < 16; ++i) many[i].parent = many[i - 1].name;
  EXPECT_EQ(problem(many), "") << "as many and as deep as possible";
  many[16].parent = "15";
  EXPECT_EQ(problem(many), "subgroup 16 is its own ancestor, or more than 16 levels deep");
  many.push_back({.name = "more"});
  EXPECT_EQ(problem(many), "1025 subgroups; at most 1024 are expected");
  EXPECT_EQ(problem({{.name = ""}}), "a subgroup has no name");
  EXPECT_EQ(problem({{.name = "a", .minimum = -1}}), "subgroup a has minimum -1; expected 0 or more");
  EXPECT_EQ(problem({{.name = "a", .minimum = 2}, {.name = "b", .parent = "a"}}),
            "subgroup a needs 2 of its 1 children");
  EXPECT_EQ(problem({{.name = "a", .minimum = INT32_MAX}}), "");
  EXPECT_EQ(problem({{.name = "a", .minimum = INT32_MAX}, {.name = "b"}}),
            "its minimums add up to more than can be counted");
  EXPECT_EQ(problem({{.name = "a", .minimum = INT32_MAX}, {.name = "b"}}, 1), "");
  EXPECT_EQ(asks(0) + asks(kMaxAmount), "");
  EXPECT_EQ(asks(-1), absl::StrCat("subgroup a: a member's cpu is -1; expected 0 to ", kMaxAmount));
  EXPECT_NE(asks(kMaxAmount + 1), "");
}

// SPEC P-5, P-7: parents come before children; members of a subgroup are planned ahead if the gang needs it, and so
// each subgroup above it. Gangs with different trees are different for the planner.
TEST(SubgroupsTest, Tree_KeepsOrderAndFindsNeededLeaves) {
  const Shared<PodTemplate> members = PodTemplate();
  std::vector<SubgroupDeclaration> declared = {{.name = "c", .parent = "b", .minimum = 2, .members = members},
                                               {.name = "b", .parent = "a"},
                                               {.name = "d", .parent = "a", .members = members},
                                               {.name = "a", .topology = {"rack", "", ""}},
                                               {.name = "e", .minimum = 3}};
  std::set<std::string> shapes = {""};
  EXPECT_EQ(ShapeOf({}), "");
  const auto text = [&](std::optional<int32_t> minimum) {
    const Declaration gang = {.min_member = minimum, .subgroups = declared};
    const GangRules rules = ResolveRules(&gang, nullptr, GangDialect::kKoordinator, {});
    EXPECT_TRUE(shapes.insert(ShapeOf(rules)).second) << "the shape of another tree";
    std::string out = absl::StrCat(rules.min_member, rules.domains ? " domains:" : ":");
    for (const Subgroup& node : rules.tree.nodes) {
      absl::StrAppend(&out, " ", node.name, node.parent, "/", node.minimum, node.future_template ? "+" : "");
      EXPECT_EQ(rules.tree.FindLeaf(node.name), node.leaf);
    }
    return out;
  };
  EXPECT_EQ(text({}), "6 domains: a-1/2 b0/1 c1/2+ d0/1+ e-1/3");
  EXPECT_EQ(text(1), "3 domains: a-1/2 b0/1 c1/2 d0/1 e-1/3");
  EXPECT_EQ(text(0), "0 domains: a-1/2 b0/1 c1/2 d0/1 e-1/3");
  declared[3].min_groups = 1;
  EXPECT_EQ(text({}), "4 domains: a-1/1 b0/1 c1/2 d0/1 e-1/3");
  declared[3] = {.name = "a", .min_groups = 2};
  EXPECT_EQ(text({}), "6: a-1/2 b0/1 c1/2+ d0/1+ e-1/3");
  declared[0].members.reset();
  EXPECT_EQ(text({}), "6: a-1/2 b0/1 c1/2 d0/1+ e-1/3");
}

TEST(ContradictionTest, Contradiction_NamesFieldAndBothValues) {
  EXPECT_EQ(DescribeContradiction(One(), One()), "");
  EXPECT_EQ(DescribeContradiction(One(), Declaration()), "") << "an empty declaration contradicts none";
  Declaration all = One();
  std::vector<std::string> together;
  for (const Field& field : Fields()) {
    Declaration later = One();
    field.copy(&later, Two());
    together.push_back(absl::StrCat(field.name, " ", field.two, " against ", field.one));
    EXPECT_EQ(DescribeContradiction(One(), later), together.back());
    Declaration alone;
    field.copy(&alone, Two());
    EXPECT_EQ(DescribeContradiction(One(), alone), together.back()) << "what else it leaves out does not matter";
    EXPECT_EQ(DescribeContradiction(Declaration(), alone),
              absl::StrCat(field.name, " ", field.two, " against nothing"));
    field.copy(&all, Two());
  }
  EXPECT_EQ(DescribeContradiction(One(), all), absl::StrJoin(together, ", "));
}

}  // namespace
}  // namespace muster
