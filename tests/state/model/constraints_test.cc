// muster_model: node affinity, taints and host ports (SPEC P-3).
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "state/model/pod_template.h"

namespace muster {
namespace {

using Op = SelectorOperator;

constexpr std::array kOperators = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};  // in the order of Op

TEST(ConstraintsTest, ParseOperatorAndEffect_AcceptsExactNames) {
  for (size_t i = 0; i < kOperators.size(); ++i) EXPECT_EQ(ParseSelectorOperator(kOperators[i]), static_cast<Op>(i));
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
  std::vector<std::string> values;
  const char* matching;  // the operators
};

TEST(ConstraintsTest, NodeAffinityOperators_MatchAsDefined) {
  const Labels labels = {{"zone", "a"}, {"gen", "7"}, {"cold", "-3"}, {"empty", ""}};
  const std::vector<AffinityCase> cases = {
      {"zone", {"a"}, "In Exists"},          {"zone", {"b", "a"}, "In Exists"},
      {"zone", {"b"}, "NotIn Exists"},       {"zone", {}, "NotIn Exists"},
      {"zone", {"8"}, "NotIn Exists"},       {"zone", {"-8"}, "NotIn Exists"},
      {"none", {"a"}, "NotIn DoesNotExist"}, {"none", {""}, "NotIn DoesNotExist"},
      {"none", {"8"}, "NotIn DoesNotExist"}, {"none", {"-8"}, "NotIn DoesNotExist"},
      {"empty", {""}, "In Exists"},          {"empty", {"8"}, "NotIn Exists"},
      {"gen", {"6"}, "NotIn Exists Gt"},     {"gen", {"7"}, "In Exists"},
      {"gen", {"8"}, "NotIn Exists Lt"},     {"cold", {"0"}, "NotIn Exists Lt"},
      {"cold", {"-4"}, "NotIn Exists Gt"},   {"gen", {"1", "2"}, "NotIn Exists"},
      {"gen", {"8", "9"}, "NotIn Exists"},   {"gen", {"six"}, "NotIn Exists"},
      {"gen", {"6.5"}, "NotIn Exists"},
  };
  for (const auto& [key, values, matching] : cases) {
    std::vector<std::string> out;
    for (size_t i = 0; i <= kOperators.size(); ++i) {  // one more: an undefined operator
      const NodeSelectorTerm term = {{{key, static_cast<Op>(i), values}}, {}};
      if (Matches(term, "n1", labels)) out.push_back(i < kOperators.size() ? kOperators[i] : "undefined");
    }
    EXPECT_EQ(absl::StrJoin(out, " "), matching) << key << " " << absl::StrJoin(values, " ");
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
  const Taint taint{"gpu", "yes", TaintEffect::kNoSchedule};
  const std::vector<std::pair<Toleration, bool>> cases = {
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
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(Tolerates(cases[i].first, taint), cases[i].second) << "case " << i;
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
  const HostPort at_one{Protocol::kTcp, 80, "10.0.0.1"};
  const HostPort at_any{Protocol::kTcp, 80, "0.0.0.0"};
  const std::vector<std::pair<HostPort, bool>> cases = {
      {{Protocol::kTcp, 80, "10.0.0.1"}, true},  {{Protocol::kTcp, 80, "0.0.0.0"}, true},
      {{Protocol::kUdp, 80, "10.0.0.1"}, false}, {{Protocol::kSctp, 80, "0.0.0.0"}, false},
      {{Protocol::kTcp, 81, "10.0.0.1"}, false}, {{Protocol::kTcp, 79, "0.0.0.0"}, false},
  };
  for (const auto& [other, conflicts] : cases) {
    for (const HostPort& port : {at_one, at_any}) {
      EXPECT_EQ(Conflicts(port, other), conflicts) << port.ip << " " << other.ip << ":" << other.port;
      EXPECT_EQ(Conflicts(other, port), conflicts) << port.ip << " " << other.ip << ":" << other.port;
    }
  }
  EXPECT_FALSE(Conflicts(at_one, {Protocol::kTcp, 80, "10.0.0.2"}));
  EXPECT_TRUE(Conflicts(at_any, {Protocol::kTcp, 80, "10.0.0.2"}));
}

TEST(ConstraintsTest, HostPort_TextNamesWhatIsNotTheDefault) {
  EXPECT_EQ(ToString(HostPort{Protocol::kTcp, 80, "0.0.0.0"}), "80");
  EXPECT_EQ(ToString(HostPort{Protocol::kUdp, 53, "0.0.0.0"}), "53/UDP");
  EXPECT_EQ(ToString(HostPort{Protocol::kSctp, 9, "10.0.0.1"}), "10.0.0.1:9/SCTP");
}

TEST(ConstraintsTest, PodSelector_MatchesNamespaceByItsLabelsOnlyIfItSaysSo) {
  PodSelector selector;
  const Labels labels = {{NamespaceKey(""), ""}, {NamespaceKey("team"), "a"}};
  EXPECT_FALSE(Matches(selector, "d", labels));
  selector.by_labels = true;
  EXPECT_TRUE(Matches(selector, "d", labels));
  EXPECT_FALSE(Matches(selector, "d", {})) << "the namespace is not known";
}

TEST(ConstraintsTest, PackedLabels_OmitLabelsWithSeparator) {
  const std::string nul(1, '\0');
  const Labels kept = {{"", "1"}, {"b", ""}};
  EXPECT_EQ(UnpackLabels(PackLabels({{"", "1"}, {"a" + nul, "2"}, {"b", ""}, {"c", nul}})), kept);
  for (const std::string& cut : {std::string("a"), "a" + nul + "b"}) EXPECT_TRUE(UnpackLabels(cut).empty());
}

}  // namespace
}  // namespace muster
