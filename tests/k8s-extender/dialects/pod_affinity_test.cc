// The pod affinity of v1.Pod as the API defines it (SPEC P-3).
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/dialects.h"
#include "tests/support/expect_ok.h"

namespace muster {
namespace pod_affinity_test {

PodDescription PodOf(const std::string& spec, const std::string& labels = R"({"job":"a","app":"web"})") {
  return ExpectOk(ParsePod(Json::parse(absl::StrCat(R"({"metadata":{"name":"p","uid":"u","namespace":"ns","labels":)",
                                                    labels, R"(},"spec":)", spec, "}"))));
}

// Parses one required term of anti-affinity.
PodAffinityTerm Apart(const std::string& term) {
  const PodDescription pod = PodOf(absl::StrCat(
      R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)", term, "]}}}"));
  EXPECT_EQ(pod.invalid, "");
  EXPECT_EQ(pod.shape->pod_affinity.anti_affinity.size(), 1U);
  return pod.shape->pod_affinity.anti_affinity.empty() ? PodAffinityTerm() : pod.shape->pod_affinity.anti_affinity[0];
}

bool Selects(const PodAffinityTerm& term, const std::string& name_space, const Labels& labels) {
  return Matches(term.selector, name_space, labels);
}

TEST(PodAffinityDialect, LabelSelector_CombinesLabelsAndExpressions) {
  const PodAffinityTerm term = Apart(R"({"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"},
      "matchExpressions":[{"key":"tier","operator":"NotIn","values":["x"]},{"key":"job","operator":"Exists"}]}})");
  EXPECT_EQ(term.topology_key, "zone");
  EXPECT_TRUE(Selects(term, "ns", {{"app", "web"}, {"job", "b"}}));
  EXPECT_FALSE(Selects(term, "other", {{"app", "web"}, {"job", "b"}})) << "without namespaces: its own";
  EXPECT_FALSE(Selects(term, "ns", {{"app", "web"}, {"job", "b"}, {"tier", "x"}}));
  EXPECT_FALSE(Selects(term, "ns", {{"app", "web"}}));
}

TEST(PodAffinityDialect, MissingSelector_SelectsNoPod) {
  EXPECT_FALSE(Selects(Apart(R"({"topologyKey":"zone"})"), "ns", {{"app", "web"}}));
  EXPECT_TRUE(Selects(Apart(R"({"topologyKey":"zone","labelSelector":{}})"), "ns", {}));
}

TEST(PodAffinityDialect, NamespaceSelector_ByNameOrLabel) {
  const PodAffinityTerm named = Apart(R"({"topologyKey":"zone","labelSelector":{},"namespaces":["b","a"]})");
  EXPECT_TRUE(Selects(named, "a", {}));
  EXPECT_FALSE(Selects(named, "ns", {}));
  EXPECT_TRUE(Selects(Apart(R"({"topologyKey":"zone","labelSelector":{},"namespaceSelector":{}})"), "any", {}));
  const PodAffinityTerm by_name = Apart(R"({"topologyKey":"zone","labelSelector":{},
      "namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"c"}}})");
  EXPECT_TRUE(Selects(by_name, "c", {}));
  EXPECT_FALSE(Selects(by_name, "ns", {}));
  const PodAffinityTerm by_label = Apart(R"({"topologyKey":"zone","labelSelector":{},"namespaces":["b"],
      "namespaceSelector":{"matchLabels":{"team":"x"},"matchExpressions":[{"key":"old","operator":"DoesNotExist"}]}})");
  const Labels known = {{NamespaceKey(""), ""}, {NamespaceKey("team"), "x"}};
  EXPECT_TRUE(Selects(by_label, "any", known));
  EXPECT_TRUE(Selects(by_label, "b", {})) << "it is named besides";
  EXPECT_FALSE(Selects(by_label, "any", {{"team", "x"}})) << "the pod's own label is not its namespace's";
  EXPECT_FALSE(Selects(by_label, "ns", {{NamespaceKey(""), ""}, {NamespaceKey("team"), "y"}}));
  EXPECT_FALSE(
      Selects(by_label, "any", {{NamespaceKey(""), ""}, {NamespaceKey("team"), "x"}, {NamespaceKey("old"), ""}}));
  const PodAffinityTerm without = Apart(R"({"topologyKey":"zone","labelSelector":{},
      "namespaceSelector":{"matchExpressions":[{"key":"old","operator":"DoesNotExist"}]}})");
  EXPECT_TRUE(Selects(without, "any", {{NamespaceKey(""), ""}}));
  EXPECT_FALSE(Selects(without, "any", {})) << "nothing is known of that namespace";
}

// P-3: preferences exclude no node, and unreadable preferences are ignored.
TEST(PodAffinityDialect, Preferences_UnreadableOnesIgnored) {
  const PodDescription pod = PodOf(R"({"affinity":{
      "nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
          {"weight":30,"preference":{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}},
          {"weight":900,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}},
          {"weight":1,"preference":{"matchExpressions":[{"key":"gpu","operator":"Near"}]}}]},
      "podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
          {"weight":5,"podAffinityTerm":{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"db"}}}},
          {"weight":5,"podAffinityTerm":{"topologyKey":"zone","labelSelector":{},
              "namespaceSelector":{"matchExpressions":[{"key":"team","operator":"Gt","values":["1"]}]}}}]},
      "podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
          {"weight":7,"podAffinityTerm":{"topologyKey":"rack","matchLabelKeys":["job"],"labelSelector":{}}}]}},
      "topologySpreadConstraints":[
          {"topologyKey":"row","maxSkew":1,"whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"web"}}},
          {"topologyKey":"hall","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}}]})");
  EXPECT_EQ(pod.invalid, "");
  const Preferences& read = pod.shape->preferences;
  ASSERT_EQ(read.nodes.size(), 2U);
  EXPECT_EQ(read.nodes[0].weight, 30);
  EXPECT_TRUE(Matches(read.nodes[0].term, "m", {{"gpu", ""}}));
  EXPECT_FALSE(Matches(read.nodes[0].term, "m", {}));
  EXPECT_EQ(read.nodes[1].weight, 100) << "the API has 1 to 100";
  EXPECT_TRUE(Matches(read.nodes[1].term, "n", {}));
  ASSERT_EQ(read.pod_affinity.size(), 3U);
  EXPECT_EQ(read.pod_affinity[0].weight, 5);
  EXPECT_TRUE(Selects(read.pod_affinity[0].term, "ns", {{"app", "db"}}));
  EXPECT_EQ(read.pod_affinity[1].weight, -7);
  EXPECT_EQ(read.pod_affinity[1].term.topology_key, "rack");
  EXPECT_TRUE(Selects(read.pod_affinity[1].term, "ns", {{"job", "a"}}));
  EXPECT_FALSE(Selects(read.pod_affinity[1].term, "ns", {{"job", "b"}}));
  EXPECT_EQ(read.pod_affinity[2].weight, -100) << "soft spread: fewer of them in its domain";
  EXPECT_EQ(read.pod_affinity[2].term.topology_key, "row");
  ASSERT_EQ(pod.shape->pod_affinity.spread.size(), 1U);
  EXPECT_EQ(pod.shape->pod_affinity.spread[0].topology_key, "hall");
  EXPECT_TRUE(pod.shape->pod_affinity.affinity.empty());
}

// JobSet's exclusive placement: together with pods of the same job, apart from all others.
TEST(PodAffinityDialect, MatchLabelKeys_UsePodsOwnLabels) {
  const PodAffinityTerm same = Apart(R"({"topologyKey":"pool","labelSelector":{},"matchLabelKeys":["job","missing"]})");
  EXPECT_TRUE(Selects(same, "ns", {{"job", "a"}}));
  EXPECT_FALSE(Selects(same, "ns", {{"job", "b"}}));
  const PodAffinityTerm others = Apart(R"({"topologyKey":"pool","mismatchLabelKeys":["job"],
      "labelSelector":{"matchExpressions":[{"key":"job","operator":"Exists"}]}})");
  EXPECT_FALSE(Selects(others, "ns", {{"job", "a"}}));
  EXPECT_TRUE(Selects(others, "ns", {{"job", "b"}}));
}

TEST(PodAffinityDialect, SpreadConstraints_OnlyHardOnesRequired) {
  const PodDescription pod = PodOf(R"({"topologySpreadConstraints":[
      {"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","minDomains":3,
       "labelSelector":{"matchLabels":{"app":"web"}},"matchLabelKeys":["job"]},
      {"maxSkew":1,"topologyKey":"rack","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{}}]})");
  ASSERT_EQ(pod.shape->pod_affinity.spread.size(), 1U);
  const SpreadConstraint& spread = pod.shape->pod_affinity.spread[0];
  EXPECT_EQ(spread.topology_key, "zone");
  EXPECT_EQ(spread.max_skew, 2);
  EXPECT_EQ(spread.min_domains, 3);
  EXPECT_TRUE(Matches(spread.selector, "ns", {{"app", "web"}, {"job", "a"}}));
  EXPECT_FALSE(Matches(spread.selector, "ns", {{"app", "web"}, {"job", "b"}}));
  EXPECT_FALSE(Matches(spread.selector, "other", {{"app", "web"}, {"job", "a"}}));
}

// Node inclusion policies and their defaults; an empty selector counts no pod (countPodsMatchSelector).
TEST(PodAffinityDialect, NodeInclusionPolicies_AreRead) {
  const PodDescription pod = PodOf(R"({"topologySpreadConstraints":[
      {"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}},
      {"topologyKey":"b","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}},
       "nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Honor"},
      {"topologyKey":"c","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}},
       "nodeAffinityPolicy":"Honor","nodeTaintsPolicy":"Ignore"},
      {"topologyKey":"d","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]})");
  ASSERT_EQ(pod.shape->pod_affinity.spread.size(), 4U);
  std::vector<std::pair<bool, bool>> honoured;
  for (const SpreadConstraint& each : pod.shape->pod_affinity.spread) {
    honoured.emplace_back(each.honor_affinity, each.honor_taints);
  }
  const std::pair<bool, bool> by_default(true, false);
  EXPECT_EQ(honoured, (std::vector<std::pair<bool, bool>>{by_default, {false, true}, by_default, by_default}));
  EXPECT_FALSE(Matches(pod.shape->pod_affinity.spread[3].selector, "ns", {{"app", "web"}}));
}

TEST(PodAffinityDialect, PreferredTerms_NotRequired) {
  const PodDescription pod = PodOf(R"({"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":
      [{"weight":1,"podAffinityTerm":{"topologyKey":"zone","labelSelector":{}}}]}}})");
  EXPECT_TRUE(pod.shape->pod_affinity.empty());
  EXPECT_EQ(UnpackLabels(pod.labels), (Labels{{"app", "web"}, {"job", "a"}}));
}

// A pod with unreadable rules is not planned by guess.
TEST(PodAffinityDialect, UnsupportedOperator_IsNamed) {
  const PodDescription pod = PodOf(R"({"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
      [{"topologyKey":"zone","labelSelector":{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}}]}}})");
  EXPECT_EQ(pod.invalid,
            "spec.affinity.podAffinity.labelSelector: an operator is not one of In, NotIn, Exists, DoesNotExist");
}

// S-6: nor is a pod with a rule of a wrong type.
TEST(PodAffinityDialect, WrongType_IsNamed) {
  const auto apart = [](const std::string& term) {
    return PodOf(absl::StrCat(R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)",
                              term, "]}}}"))
        .invalid;
  };
  const auto spread = [](const std::string& constraint) {
    return PodOf(absl::StrCat(R"({"topologySpreadConstraints":[)", constraint, "]}")).invalid;
  };
  const std::string path = "spec.affinity.podAntiAffinity";
  EXPECT_EQ(PodOf(R"({"affinity":{"podAffinity":[]}})").invalid,
            "spec.affinity.podAffinity: is a array; expected a map");
  EXPECT_EQ(apart(R"({"topologyKey":["zone"]})"), path + ".topologyKey: is a array; expected a string");
  EXPECT_EQ(apart(R"({"labelSelector":"app=web"})"), path + ".labelSelector: is a string; expected a map");
  EXPECT_EQ(apart(R"({"labelSelector":{"matchLabels":["app"]}})"),
            path + ".labelSelector.matchLabels: is a array; expected a map");
  EXPECT_EQ(apart(R"({"labelSelector":{"matchExpressions":{}}})"),
            path + ".labelSelector.matchExpressions: is a object; expected a list");
  EXPECT_EQ(apart(R"({"namespaces":"a"})"), path + ".namespaces: is a string; expected a list");
  EXPECT_EQ(apart(R"({"namespaceSelector":"a"})"), path + ".namespaceSelector: is a string; expected a map");
  EXPECT_EQ(apart(R"({"matchLabelKeys":"a"})"), path + ".matchLabelKeys: is a string; expected a list");
  EXPECT_EQ(spread("5"), "spec.topologySpreadConstraints: has a number; expected a list of maps");
  EXPECT_EQ(spread(R"({"maxSkew":"1"})"),
            "spec.topologySpreadConstraints.maxSkew: is a string; expected a whole number");
  EXPECT_EQ(spread(R"({"whenUnsatisfiable":"ScheduleAnyway","maxSkew":"1"})"), "") << "it excludes no node";
}

}  // namespace pod_affinity_test
}  // namespace muster
