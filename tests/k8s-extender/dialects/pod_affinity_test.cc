// What v1.Pod says of its neighbours, as the API has it (SPEC P-3).
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/dialects.h"

namespace muster {
namespace pod_affinity_test {

PodDescription PodOf(const std::string& spec, const std::string& labels = R"({"job":"a","app":"web"})") {
  const absl::StatusOr<PodDescription> pod = ParsePod(Json::parse(absl::StrCat(
      R"({"metadata":{"name":"p","uid":"u","namespace":"ns","labels":)", labels, R"(},"spec":)", spec, "}")));
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.ok() ? *pod : PodDescription();
}

// One required term of anti-affinity.
NeighbourTerm Apart(const std::string& term) {
  const PodDescription pod = PodOf(absl::StrCat(
      R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)", term, "]}}}"));
  EXPECT_EQ(pod.invalid, "");
  EXPECT_EQ(pod.shape->neighbours.anti_affinity.size(), 1U);
  return pod.shape->neighbours.anti_affinity.empty() ? NeighbourTerm() : pod.shape->neighbours.anti_affinity[0];
}

bool Means(const NeighbourTerm& term, const std::string& name_space, const Labels& labels) {
  return Matches(term.selector, name_space, labels);
}

TEST(NeighbourDialects, LabelsAndExpressions) {
  const NeighbourTerm term = Apart(R"({"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"},
      "matchExpressions":[{"key":"tier","operator":"NotIn","values":["x"]},{"key":"job","operator":"Exists"}]}})");
  EXPECT_EQ(term.topology_key, "zone");
  EXPECT_TRUE(Means(term, "ns", {{"app", "web"}, {"job", "b"}}));
  EXPECT_FALSE(Means(term, "other", {{"app", "web"}, {"job", "b"}})) << "without namespaces: its own";
  EXPECT_FALSE(Means(term, "ns", {{"app", "web"}, {"job", "b"}, {"tier", "x"}}));
  EXPECT_FALSE(Means(term, "ns", {{"app", "web"}}));
}

TEST(NeighbourDialects, NoSelectorMeansNobodyAnEmptyOneEverybody) {
  EXPECT_FALSE(Means(Apart(R"({"topologyKey":"zone"})"), "ns", {{"app", "web"}}));
  EXPECT_TRUE(Means(Apart(R"({"topologyKey":"zone","labelSelector":{}})"), "ns", {}));
}

TEST(NeighbourDialects, Namespaces) {
  const NeighbourTerm named = Apart(R"({"topologyKey":"zone","labelSelector":{},"namespaces":["b","a"]})");
  EXPECT_TRUE(Means(named, "a", {}));
  EXPECT_FALSE(Means(named, "ns", {}));
  EXPECT_TRUE(Means(Apart(R"({"topologyKey":"zone","labelSelector":{},"namespaceSelector":{}})"), "any", {}));
  const NeighbourTerm by_name = Apart(R"({"topologyKey":"zone","labelSelector":{},
      "namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"c"}}})");
  EXPECT_TRUE(Means(by_name, "c", {}));
  EXPECT_FALSE(Means(by_name, "ns", {}));
  const NeighbourTerm by_label = Apart(R"({"topologyKey":"zone","labelSelector":{},"namespaces":["b"],
      "namespaceSelector":{"matchLabels":{"team":"x"},"matchExpressions":[{"key":"old","operator":"DoesNotExist"}]}})");
  const Labels known = {{NamespaceKey(""), ""}, {NamespaceKey("team"), "x"}};
  EXPECT_TRUE(Means(by_label, "any", known));
  EXPECT_TRUE(Means(by_label, "b", {})) << "it is named besides";
  EXPECT_FALSE(Means(by_label, "any", {{"team", "x"}})) << "the pod's own label is not its namespace's";
  EXPECT_FALSE(Means(by_label, "ns", {{NamespaceKey(""), ""}, {NamespaceKey("team"), "y"}}));
  EXPECT_FALSE(
      Means(by_label, "any", {{NamespaceKey(""), ""}, {NamespaceKey("team"), "x"}, {NamespaceKey("old"), ""}}));
  const NeighbourTerm without = Apart(R"({"topologyKey":"zone","labelSelector":{},
      "namespaceSelector":{"matchExpressions":[{"key":"old","operator":"DoesNotExist"}]}})");
  EXPECT_TRUE(Means(without, "any", {{NamespaceKey(""), ""}}));
  EXPECT_FALSE(Means(without, "any", {})) << "nothing is known of that namespace";
}

// P-3: what is preferred keeps nobody off, and what of it cannot be read is left out.
TEST(NeighbourDialects, Preferences) {
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
  ASSERT_EQ(read.neighbours.size(), 3U);
  EXPECT_EQ(read.neighbours[0].weight, 5);
  EXPECT_TRUE(Means(read.neighbours[0].term, "ns", {{"app", "db"}}));
  EXPECT_EQ(read.neighbours[1].weight, -7);
  EXPECT_EQ(read.neighbours[1].term.topology_key, "rack");
  EXPECT_TRUE(Means(read.neighbours[1].term, "ns", {{"job", "a"}}));
  EXPECT_FALSE(Means(read.neighbours[1].term, "ns", {{"job", "b"}}));
  EXPECT_EQ(read.neighbours[2].weight, -100) << "soft spread: fewer of them in its domain";
  EXPECT_EQ(read.neighbours[2].term.topology_key, "row");
  ASSERT_EQ(pod.shape->neighbours.spread.size(), 1U);
  EXPECT_EQ(pod.shape->neighbours.spread[0].topology_key, "hall");
  EXPECT_TRUE(pod.shape->neighbours.affinity.empty());
}

// JobSet's exclusive placement: with the same job, apart from all others.
TEST(NeighbourDialects, KeysOfThePodsOwnLabels) {
  const NeighbourTerm same = Apart(R"({"topologyKey":"pool","labelSelector":{},"matchLabelKeys":["job","missing"]})");
  EXPECT_TRUE(Means(same, "ns", {{"job", "a"}}));
  EXPECT_FALSE(Means(same, "ns", {{"job", "b"}}));
  const NeighbourTerm others = Apart(R"({"topologyKey":"pool","mismatchLabelKeys":["job"],
      "labelSelector":{"matchExpressions":[{"key":"job","operator":"Exists"}]}})");
  EXPECT_FALSE(Means(others, "ns", {{"job", "a"}}));
  EXPECT_TRUE(Means(others, "ns", {{"job", "b"}}));
}

TEST(NeighbourDialects, HardSpreadOnly) {
  const PodDescription pod = PodOf(R"({"topologySpreadConstraints":[
      {"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","minDomains":3,
       "labelSelector":{"matchLabels":{"app":"web"}},"matchLabelKeys":["job"]},
      {"maxSkew":1,"topologyKey":"rack","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{}}]})");
  ASSERT_EQ(pod.shape->neighbours.spread.size(), 1U);
  const SpreadConstraint& spread = pod.shape->neighbours.spread[0];
  EXPECT_EQ(spread.topology_key, "zone");
  EXPECT_EQ(spread.max_skew, 2);
  EXPECT_EQ(spread.min_domains, 3);
  EXPECT_TRUE(Matches(spread.selector, "ns", {{"app", "web"}, {"job", "a"}}));
  EXPECT_FALSE(Matches(spread.selector, "ns", {{"app", "web"}, {"job", "b"}}));
  EXPECT_FALSE(Matches(spread.selector, "other", {{"app", "web"}, {"job", "a"}}));
}

// Node inclusion policies, and their defaults; a selector that asks for nothing counts nobody (countPodsMatchSelector).
TEST(NeighbourDialects, WhichNodesCountForASpread) {
  const PodDescription pod = PodOf(R"({"topologySpreadConstraints":[
      {"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}},
      {"topologyKey":"b","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}},
       "nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Honor"},
      {"topologyKey":"c","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}},
       "nodeAffinityPolicy":"Honor","nodeTaintsPolicy":"Ignore"},
      {"topologyKey":"d","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]})");
  ASSERT_EQ(pod.shape->neighbours.spread.size(), 4U);
  std::vector<std::pair<bool, bool>> honoured;
  for (const SpreadConstraint& each : pod.shape->neighbours.spread) {
    honoured.emplace_back(each.honor_affinity, each.honor_taints);
  }
  const std::pair<bool, bool> by_default(true, false);
  EXPECT_EQ(honoured, (std::vector<std::pair<bool, bool>>{by_default, {false, true}, by_default, by_default}));
  EXPECT_FALSE(Matches(pod.shape->neighbours.spread[3].selector, "ns", {{"app", "web"}}));
}

TEST(NeighbourDialects, PreferredOnesAreNotRequired) {
  const PodDescription pod = PodOf(R"({"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":
      [{"weight":1,"podAffinityTerm":{"topologyKey":"zone","labelSelector":{}}}]}}})");
  EXPECT_TRUE(pod.shape->neighbours.empty());
  EXPECT_EQ(UnpackLabels(pod.labels), (Labels{{"app", "web"}, {"job", "a"}}));
}

// A pod whose rules cannot be read is not planned by guess.
TEST(NeighbourDialects, OperatorsThatPodsDoNotHave) {
  const PodDescription pod = PodOf(R"({"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
      [{"topologyKey":"zone","labelSelector":{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}}]}}})");
  EXPECT_EQ(pod.invalid,
            "spec.affinity.podAffinity.labelSelector: an operator is not one of In, NotIn, Exists, DoesNotExist");
}

// S-6: nor is one of which a rule is of a wrong type.
TEST(NeighbourDialects, AWrongTypeIsNamed) {
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
  EXPECT_EQ(spread(R"({"whenUnsatisfiable":"ScheduleAnyway","maxSkew":"1"})"), "") << "it keeps nobody off";
}

}  // namespace pod_affinity_test
}  // namespace muster
