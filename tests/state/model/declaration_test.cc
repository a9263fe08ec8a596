// muster_model: the declaration of a gang and the rules that follow from it (SPEC D-8, D-9, D-13).
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/model/gang.h"

namespace muster {
namespace {

using Declaration = GangDeclaration;

TEST(DeclarationTest, EnumNames_MatchUserSyntax) {
  EXPECT_EQ(ToString(GangMode::kStrict), "Strict");
  EXPECT_EQ(ToString(GangMode::kNonStrict), "NonStrict");
  EXPECT_EQ(ToString(MatchPolicy::kOnceSatisfied), "once-satisfied");
  EXPECT_EQ(ToString(MatchPolicy::kOnlyWaiting), "only-waiting");
  EXPECT_EQ(ToString(MatchPolicy::kWaitingAndRunning), "waiting-and-running");
  EXPECT_EQ(ToString(MatchPolicy::kWaitingRunningSucceed), "waiting-running-succeed");
  for (const MatchPolicy policy : {MatchPolicy::kOnceSatisfied, MatchPolicy::kOnlyWaiting,
                                   MatchPolicy::kWaitingAndRunning, MatchPolicy::kWaitingRunningSucceed}) {
    EXPECT_EQ(ParseMatchPolicy(ToString(policy)), policy);
    EXPECT_NE(std::string(kMatchPolicies).find(std::string(ToString(policy))), std::string::npos);
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
  struct Case {
    GangDialect dialect;
    bool pod_declares;
    bool declares_gang;
  };
  const std::vector<Case> cases = {
      {GangDialect::kKoordinator, false, true},  {GangDialect::kSigsPods, false, true},
      {GangDialect::kPodGroupSigs, true, false}, {GangDialect::kPodGroupX, true, false},
      {GangDialect::kNative, true, false},       {GangDialect::kApi, true, true},
      {GangDialect::kApi, false, false},
  };
  for (const auto& [dialect, pod_declares, declares_gang] : cases) {
    EXPECT_EQ((GangMembership{"g", dialect, std::nullopt, pod_declares, {}, {}}.declares_gang()), declares_gang)
        << ToString(dialect);
  }
  EXPECT_TRUE((GangMembership{.name = "g"}.in_gang()));
  EXPECT_FALSE(GangMembership().in_gang());
}

// Two declarations that differ in every field.
Declaration One() {
  Declaration d;
  d.min_member = 3;
  d.total_number = 5;
  d.wait_time_ms = 7'000;
  d.mode = GangMode::kNonStrict;
  d.match_policy = MatchPolicy::kOnlyWaiting;
  d.min_resources = ResourceList{{"cpu", 1}};
  d.priority = 11;
  d.queue = "blue";
  d.on_timeout = OnTimeout::kRequeue;
  d.on_member_failure = OnMemberFailure::kAll;
  d.stale_grace_ms = 13;
  d.preemptible = false;
  d.duration_ms = 15;
  d.groups = {"d/z", "d/a", "d/z"};
  return d;
}
Declaration Two() {
  Declaration d;
  d.min_member = 4;
  d.total_number = 9;
  d.wait_time_ms = 8'000;
  d.mode = GangMode::kStrict;
  d.match_policy = MatchPolicy::kWaitingAndRunning;
  d.min_resources = ResourceList{{"cpu", 2}};
  d.priority = 12;
  d.queue = "red";
  d.on_timeout = OnTimeout::kFail;
  d.on_member_failure = OnMemberFailure::kKeep;
  d.stale_grace_ms = 14;
  d.preemptible = true;
  d.duration_ms = 16;
  d.groups = {"d/b"};
  return d;
}

struct Field {
  const char* name;
  std::function<void(Declaration*)> clear;
  std::function<std::string(const GangRules&)> print;
  const char* one;
  const char* two;
  const char* by_default;
};

std::string Print(const std::vector<std::string>& ids) {
  std::string out;
  for (const std::string& id : ids) absl::StrAppend(&out, id, " ");
  return out;
}

const std::vector<Field>& Fields() {
  static const auto* const kFields = new std::vector<Field>{
      {"minimum", [](Declaration* d) { d->min_member.reset(); },
       [](const GangRules& r) { return absl::StrCat(r.min_member); }, "3", "4", "-1"},
      {"waiting time", [](Declaration* d) { d->wait_time_ms.reset(); },
       [](const GangRules& r) { return absl::StrCat(r.wait_time_ms); }, "7000", "8000", "1234"},
      {"mode", [](Declaration* d) { d->mode.reset(); },
       [](const GangRules& r) { return std::string(ToString(r.mode)); }, "NonStrict", "Strict", "Strict"},
      {"match policy", [](Declaration* d) { d->match_policy.reset(); },
       [](const GangRules& r) { return std::string(ToString(r.match_policy)); }, "only-waiting", "waiting-and-running",
       "waiting-running-succeed"},
      {"resources", [](Declaration* d) { d->min_resources.reset(); },
       [](const GangRules& r) { return FormatResources(r.min_resources); }, "cpu: 1m", "cpu: 2m", ""},
      {"priority", [](Declaration* d) { d->priority.reset(); },
       [](const GangRules& r) { return r.priority.has_value() ? absl::StrCat(*r.priority) : "none"; }, "11", "12",
       "none"},
      {"queue", [](Declaration* d) { d->queue.reset(); }, [](const GangRules& r) { return r.queue; }, "blue", "red",
       "default"},
      {"on-timeout", [](Declaration* d) { d->on_timeout.reset(); },
       [](const GangRules& r) { return std::string(ToString(r.on_timeout)); }, "requeue", "fail", "fail"},
      {"on-member-failure", [](Declaration* d) { d->on_member_failure.reset(); },
       [](const GangRules& r) { return std::string(ToString(r.on_member_failure)); }, "all", "keep", "keep"},
      {"stale grace", [](Declaration* d) { d->stale_grace_ms.reset(); },
       [](const GangRules& r) { return absl::StrCat(r.stale_grace_ms); }, "13", "14", "-1"},
      {"preemptible", [](Declaration* d) { d->preemptible.reset(); },
       [](const GangRules& r) { return absl::StrCat(r.preemptible); }, "0", "1", "1"},
      {"duration", [](Declaration* d) { d->duration_ms.reset(); },
       [](const GangRules& r) { return absl::StrCat(r.duration_ms); }, "15", "16", "0"},
      {"group", [](Declaration* d) { d->groups.clear(); }, [](const GangRules& r) { return Print(r.group); },
       "d/a d/z ", "d/b ", ""},
  };
  return *kFields;
}

// SPEC D-9: for each field, annotations take precedence over the PodGroup, and the PodGroup over the defaults.
TEST(ResolveRulesTest, Annotations_OverridePodGroupPerField) {
  const GangDefaults defaults{1'234, MatchPolicy::kWaitingRunningSucceed};
  for (const Field& field : Fields()) {
    SCOPED_TRACE(field.name);
    const Declaration one = One();
    const Declaration two = Two();
    EXPECT_EQ(field.print(ResolveRules(&one, &two, GangDialect::kKoordinator, defaults)), field.one);
    EXPECT_EQ(field.print(ResolveRules(&two, &one, GangDialect::kKoordinator, defaults)), field.two);
    EXPECT_EQ(field.print(ResolveRules(&one, nullptr, GangDialect::kKoordinator, defaults)), field.one);
    EXPECT_EQ(field.print(ResolveRules(nullptr, &two, GangDialect::kKoordinator, defaults)), field.two);
    Declaration without = one;
    field.clear(&without);
    EXPECT_EQ(field.print(ResolveRules(&without, &two, GangDialect::kKoordinator, defaults)), field.two);
    EXPECT_EQ(field.print(ResolveRules(&two, &without, GangDialect::kKoordinator, defaults)), field.two);
    EXPECT_EQ(field.print(ResolveRules(&without, nullptr, GangDialect::kKoordinator, defaults)), field.by_default);
    EXPECT_EQ(field.print(ResolveRules(nullptr, &without, GangDialect::kKoordinator, defaults)), field.by_default);
  }
}

// SPEC D-8: a total that is missing or below the minimum becomes the minimum.
TEST(ResolveRulesTest, TotalBelowMinimum_IsRaised) {
  const auto total = [](std::optional<int32_t> minimum, std::optional<int32_t> total) {
    Declaration d;
    d.min_member = minimum;
    d.total_number = total;
    return ResolveRules(&d, nullptr, GangDialect::kKoordinator, {}).total_number;
  };
  EXPECT_EQ(total(4, {}), 4);
  EXPECT_EQ(total(4, 3), 4);
  EXPECT_EQ(total(4, 4), 4);
  EXPECT_EQ(total(4, 5), 5);
  EXPECT_EQ(total({}, 5), 5);
  Declaration annotations;
  annotations.min_member = 8;
  Declaration object;
  object.total_number = 6;
  EXPECT_EQ(ResolveRules(&annotations, &object, GangDialect::kKoordinator, {}).total_number, 8)
      << "whoever declared which of the two";
  object.total_number = 9;
  EXPECT_EQ(ResolveRules(&annotations, &object, GangDialect::kKoordinator, {}).total_number, 9);
}

TEST(ResolveRulesTest, EmptyDeclaration_UsesSpecifiedDefaults) {
  const Declaration nothing;
  const GangRules rules = ResolveRules(&nothing, nullptr, GangDialect::kKoordinator, {});
  EXPECT_EQ(rules.wait_time_ms, 600'000);
  EXPECT_EQ(rules.match_policy, MatchPolicy::kOnceSatisfied);
  EXPECT_EQ(rules.min_member, -1) << "no readable minimum";
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
    const Declaration two = Two();
    EXPECT_EQ(ResolveRules(nullptr, &two, dialect, {}).on_timeout, OnTimeout::kFail) << "the declared value counts";
    EXPECT_EQ(ResolveRules(nullptr, &two, dialect, {}).stale_grace_ms, 14);
  }
}

struct Clash {
  const char* names;
  std::function<void(Declaration*)> set;
  const char* values[2];  // of the later and of the first declaration
};

TEST(ContradictionTest, Contradiction_NamesFieldAndBothValues) {
  EXPECT_EQ(DescribeContradiction(One(), One()), "");
  EXPECT_EQ(DescribeContradiction(One(), Declaration()), "") << "an empty declaration contradicts none";
  const std::vector<Clash> clashes = {
      {"minimum", [](Declaration* d) { d->min_member = 4; }, {"4", "3"}},
      {"total", [](Declaration* d) { d->total_number = 9; }, {"9", "5"}},
      {"waiting time (ms)", [](Declaration* d) { d->wait_time_ms = 8'000; }, {"8000", "7000"}},
      {"mode", [](Declaration* d) { d->mode = GangMode::kStrict; }, {"Strict", "NonStrict"}},
      {"match policy",
       [](Declaration* d) { d->match_policy = MatchPolicy::kOnceSatisfied; },
       {"once-satisfied", "only-waiting"}},
      {"minimum resources",
       [](Declaration* d) {
         d->min_resources = ResourceList{{"cpu", 2}, {"nvidia.com/gpu", 8}};
       },
       {"{cpu: 2m, nvidia.com/gpu: 8}", "{cpu: 1m}"}},
      {"priority", [](Declaration* d) { d->priority = 12; }, {"12", "11"}},
      {"groups",
       [](Declaration* d) {
         d->groups = {"d/b", "d/c"};
       },
       {"d/b d/c", "d/z d/a d/z"}},
      {"queue", [](Declaration* d) { d->queue = "red"; }, {"red", "blue"}},
      {"on-timeout", [](Declaration* d) { d->on_timeout = OnTimeout::kFail; }, {"fail", "requeue"}},
      {"on-member-failure", [](Declaration* d) { d->on_member_failure = OnMemberFailure::kKeep; }, {"keep", "all"}},
      {"stale grace (ms)", [](Declaration* d) { d->stale_grace_ms = -1; }, {"-1", "13"}},
      {"preemptible", [](Declaration* d) { d->preemptible = true; }, {"true", "false"}},
      {"duration (ms)", [](Declaration* d) { d->duration_ms = 17; }, {"17", "15"}},
  };
  Declaration all = One();
  std::string together;
  for (const auto& [names, set, values] : clashes) {
    Declaration later = One();
    set(&later);
    const std::string expected = absl::StrCat(names, " ", values[0], " against ", values[1]);
    EXPECT_EQ(DescribeContradiction(One(), later), expected);
    Declaration alone;
    set(&alone);
    EXPECT_EQ(DescribeContradiction(One(), alone), expected) << "what else it leaves out does not matter";
    EXPECT_EQ(DescribeContradiction(Declaration(), alone), absl::StrCat(names, " ", values[0], " against nothing"));
    set(&all);
    absl::StrAppend(&together, together.empty() ? "" : ", ", expected);
  }
  EXPECT_EQ(DescribeContradiction(One(), all), together);
}

}  // namespace
}  // namespace muster
