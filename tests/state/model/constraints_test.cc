// muster_model: node affinity, taints and host ports (SPEC P-3).
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/model/pod_template.h"

namespace muster {
namespace {

using Op = SelectorOperator;

TEST(ConstraintsTest, ParseOperatorAndEffect_AcceptsExactNames) {
  EXPECT_EQ(ParseSelectorOperator("In"), Op::kIn);
  EXPECT_EQ(ParseSelectorOperator("NotIn"), Op::kNotIn);
  EXPECT_EQ(ParseSelectorOperator("Exists"), Op::kExists);
  EXPECT_EQ(ParseSelectorOperator("DoesNotExist"), Op::kDoesNotExist);
  EXPECT_EQ(ParseSelectorOperator("Gt"), Op::kGt);
  EXPECT_EQ(ParseSelectorOperator("Lt"), Op::kLt);
  EXPECT_EQ(ParseTaintEffect("NoSchedule"), TaintEffect::kNoSchedule);
  EXPECT_EQ(ParseTaintEffect("PreferNoSchedule"), TaintEffect::kPreferNoSchedule);
  EXPECT_EQ(ParseTaintEffect("NoExecute"), TaintEffect::kNoExecute);
  for (const char* text : {"", "in", "IN", "Equal", "NoSchedul"}) {
    EXPECT_EQ(ParseSelectorOperator(text), std::nullopt) << text;
    EXPECT_EQ(ParseTaintEffect(text), std::nullopt) << text;
  }
}

struct AffinityCase {
  const char* key;
  Op op;
  std::vector<std::string> values;
  bool matches;
};

TEST(ConstraintsTest, NodeAffinityOperators_MatchAsDefined) {
  const Labels labels = {{"zone", "a"}, {"gen", "7"}, {"cold", "-3"}, {"empty", ""}};
  const std::vector<AffinityCase> cases = {
      {"zone", Op::kIn, {"a"}, true},
      {"zone", Op::kIn, {"b", "a"}, true},
      {"zone", Op::kIn, {"b"}, false},
      {"zone", Op::kIn, {}, false},
      {"none", Op::kIn, {"a"}, false},
      {"empty", Op::kIn, {""}, true},
      {"none", Op::kIn, {""}, false},
      {"zone", Op::kNotIn, {"b"}, true},
      {"zone", Op::kNotIn, {"b", "a"}, false},
      {"zone", Op::kNotIn, {}, true},
      {"none", Op::kNotIn, {"a"}, true},
      {"zone", Op::kExists, {}, true},
      {"empty", Op::kExists, {}, true},
      {"none", Op::kExists, {}, false},
      {"none", Op::kDoesNotExist, {}, true},
      {"zone", Op::kDoesNotExist, {}, false},
      {"empty", Op::kDoesNotExist, {}, false},
      {"gen", Op::kGt, {"6"}, true},
      {"gen", Op::kGt, {"7"}, false},
      {"gen", Op::kGt, {"8"}, false},
      {"gen", Op::kLt, {"8"}, true},
      {"gen", Op::kLt, {"7"}, false},
      {"gen", Op::kLt, {"6"}, false},
      {"cold", Op::kLt, {"0"}, true},
      {"cold", Op::kGt, {"-4"}, true},
      {"zone", Op::kLt, {"8"}, false},
      {"zone", Op::kGt, {"-8"}, false},
      {"empty", Op::kLt, {"8"}, false},
      {"none", Op::kLt, {"8"}, false},
      {"none", Op::kGt, {"-8"}, false},
      {"gen", Op::kGt, {}, false},
      {"gen", Op::kGt, {"1", "2"}, false},
      {"gen", Op::kLt, {"8", "9"}, false},
      {"gen", Op::kGt, {"six"}, false},
      {"gen", Op::kGt, {"6.5"}, false},
      {"gen", Op::kLt, {"nine"}, false},
      {"gen", static_cast<Op>(99), {"7"}, false},  // an undefined operator
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& [key, op, values, matches] = cases[i];
    EXPECT_EQ(Matches(NodeSelectorTerm{{{key, op, values}}, {}}, "n1", labels), matches) << "case " << i << " " << key;
  }
}

TEST(ConstraintsTest, SelectorTerm_RequiresAllRequirements) {
  const Labels labels = {{"zone", "a"}, {"metadata.name", "other"}};
  const SelectorRequirement yes{"zone", Op::kIn, {"a"}};
  const SelectorRequirement no{"zone", Op::kIn, {"b"}};
  const SelectorRequirement here{"metadata.name", Op::kIn, {"n1"}};
  const SelectorRequirement there{"metadata.name", Op::kIn, {"n2"}};
  const auto matches = [&](std::vector<SelectorRequirement> expressions, std::vector<SelectorRequirement> fields) {
    return Matches(NodeSelectorTerm{std::move(expressions), std::move(fields)}, "n1", labels);
  };
  EXPECT_FALSE(matches({}, {})) << "an empty term matches nothing";
  EXPECT_TRUE(matches({yes, yes}, {}));
  EXPECT_FALSE(matches({yes, no}, {}));
  EXPECT_FALSE(matches({no, yes}, {}));
  EXPECT_TRUE(matches({}, {here})) << "a field is the node's name, not a label";
  EXPECT_FALSE(matches({}, {there}));
  EXPECT_FALSE(matches({}, {here, there}));
  EXPECT_FALSE(matches({}, {there, here}));
  EXPECT_TRUE(matches({yes}, {here}));
  EXPECT_FALSE(matches({yes}, {there}));
  EXPECT_FALSE(matches({no}, {here}));
  EXPECT_FALSE(matches({}, {{"metadata.uid", Op::kExists, {}}})) << "no node has another field";
  EXPECT_FALSE(matches({here}, {})) << "a label of that name is a label";
}

TEST(ConstraintsTest, Toleration_MatchesKeyValueAndEffect) {
  struct Case {
    Toleration toleration;
    bool tolerates;
  };
  const Taint taint{"gpu", "yes", TaintEffect::kNoSchedule};
  const std::vector<Case> cases = {
      {{"gpu", false, "yes", {}}, true},
      {{"gpu", false, "yes", TaintEffect::kNoSchedule}, true},
      {{"gpu", false, "yes", TaintEffect::kNoExecute}, false},
      {{"gpu", false, "no", {}}, false},
      {{"gpu", false, "", {}}, false},
      {{"gpu", true, "", {}}, true},
      {{"gpu", true, "no", {}}, true},
      {{"gpu", true, "", TaintEffect::kNoExecute}, false},
      {{"cpu", true, "", {}}, false},
      {{"cpu", false, "yes", {}}, false},
      {{"", true, "", {}}, true},
      {{"", true, "", TaintEffect::kNoSchedule}, true},
      {{"", true, "", TaintEffect::kPreferNoSchedule}, false},
      {{"", false, "yes", {}}, false},
      {{"", false, "", {}}, false},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(Tolerates(cases[i].toleration, taint), cases[i].tolerates) << "case " << i;
  }
  EXPECT_TRUE(Tolerates({"gpu", false, "", {}}, {"gpu", "", TaintEffect::kNoExecute}));
}

TEST(ConstraintsTest, FirstUntolerated_SkipsSoftTaints) {
  const std::vector<Taint> taints = {{"soft", "", TaintEffect::kPreferNoSchedule},
                                     {"hard", "", TaintEffect::kNoSchedule},
                                     {"out", "", TaintEffect::kNoExecute}};
  const Toleration hard{"hard", true, "", {}};
  const Toleration out{"out", true, "", {}};
  EXPECT_EQ(FirstUntolerated(taints, {}), &taints[1]) << "a soft taint excludes no pod";
  EXPECT_EQ(FirstUntolerated(taints, {hard}), &taints[2]);
  EXPECT_EQ(FirstUntolerated(taints, {out}), &taints[1]);
  EXPECT_EQ(FirstUntolerated(taints, {out, hard}), nullptr);
  EXPECT_EQ(FirstUntolerated({}, {}), nullptr);
}

TEST(ConstraintsTest, HostPorts_ConflictByProtocolPortAndAddress) {
  struct Case {
    HostPort other;
    bool conflicts;
  };
  const HostPort at_one{Protocol::kTcp, 80, "10.0.0.1"};
  const HostPort at_any{Protocol::kTcp, 80, "0.0.0.0"};
  const std::vector<Case> cases = {
      {{Protocol::kTcp, 80, "10.0.0.1"}, true},  {{Protocol::kTcp, 80, "0.0.0.0"}, true},
      {{Protocol::kUdp, 80, "10.0.0.1"}, false}, {{Protocol::kSctp, 80, "0.0.0.0"}, false},
      {{Protocol::kTcp, 81, "10.0.0.1"}, false}, {{Protocol::kTcp, 79, "0.0.0.0"}, false},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    for (const HostPort& port : {at_one, at_any}) {
      EXPECT_EQ(Conflicts(port, cases[i].other), cases[i].conflicts) << "case " << i << " " << port.ip;
      EXPECT_EQ(Conflicts(cases[i].other, port), cases[i].conflicts) << "case " << i << " " << port.ip;
    }
  }
  EXPECT_FALSE(Conflicts(at_one, {Protocol::kTcp, 80, "10.0.0.2"}));
  EXPECT_TRUE(Conflicts(at_any, {Protocol::kTcp, 80, "10.0.0.2"}));
}

}  // namespace
}  // namespace muster
