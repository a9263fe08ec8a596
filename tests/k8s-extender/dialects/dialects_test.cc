#include "k8s-extender/dialects/dialects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_ok.h"

namespace muster {
namespace dialects_test {

Json Parse(const char* text) { return *ParseJson(text, "test"); }

PodDescription Pod(const char* text) { return ExpectOk(ParsePod(Parse(text))); }

TEST(Dialects, KoordinatorAnnotations_AreRead) {
  const PodDescription pod = Pod(R"({"metadata":{"name":"p","uid":"u","namespace":"ns","annotations":{
      "gang.scheduling.koordinator.sh/name":"g","gang.scheduling.koordinator.sh/min-available":"4",
      "gang.scheduling.koordinator.sh/waiting-time":"1h30m","gang.scheduling.koordinator.sh/total-number":"6",
      "gang.scheduling.koordinator.sh/mode":"NonStrict","gang.scheduling.koordinator.sh/match-policy":"only-waiting",
      "muster.dev/on-timeout":"requeue","muster.dev/on-member-failure":"all","muster.dev/queue":"research"}}})");
  EXPECT_EQ(pod.gang.name, "g");
  const GangDeclaration& declaration = pod.gang.declaration;
  EXPECT_EQ(declaration.min_member, 4);
  EXPECT_EQ(declaration.wait_time_ms, 5'400'000);
  EXPECT_EQ(declaration.total_number, 6);
  EXPECT_EQ(declaration.mode, GangMode::kNonStrict);
  EXPECT_EQ(declaration.match_policy, MatchPolicy::kOnlyWaiting);
  EXPECT_EQ(declaration.on_timeout, OnTimeout::kRequeue);
  EXPECT_EQ(declaration.on_member_failure, OnMemberFailure::kAll);
  EXPECT_EQ(declaration.queue, "research");
  EXPECT_TRUE(declaration.warnings.empty());
}

// Q-1: the queue is read from Muster's own key, KAI's or YuniKorn's, as a label or an annotation.
TEST(Dialects, Queue_ReadFromEveryDialect) {
  const auto queue = [](const Labels& annotations, const Labels& labels) {
    Labels all = {{"pod-group.scheduling.sigs.k8s.io/name", "g"}};
    all.insert(labels.begin(), labels.end());
    return ParseMembership(annotations, all, "").declaration->queue.value_or("-");
  };
  EXPECT_EQ(queue({}, {}), "-");
  for (const char* key : {"muster.dev/queue", "kai.scheduler/queue", "yunikorn.apache.org/queue"}) {
    EXPECT_EQ(queue({}, {{key, "team"}}), "team") << key;
    EXPECT_EQ(queue({{key, "team"}}, {}), "team") << key;
  }
  EXPECT_EQ(queue({}, {{"yunikorn.apache.org/queue", "root.org.team"}}), "team");
  EXPECT_EQ(queue({}, {{"yunikorn.apache.org/queue", "roots.team"}}), "roots.team") << "no path from the root";
  EXPECT_EQ(queue({}, {{"kai.scheduler/queue", "root.team"}}), "root.team") << "KAI's has no paths";
  EXPECT_EQ(queue({}, {{"yunikorn.apache.org/queue", "root."}}), "-");
  EXPECT_EQ(queue({{"yunikorn.apache.org/queue", "y"}}, {{"kai.scheduler/queue", "k"}}), "k");
  EXPECT_EQ(queue({{"muster.dev/queue", "ours"}}, {{"kai.scheduler/queue", "k"}}), "ours");
  EXPECT_EQ(queue({}, {{"queue", "orders"}}), "-") << "anybody may have such a label";
  // Messages repeat the name.
  EXPECT_EQ(queue({{"muster.dev/queue", "a\x1b[31m\nb"}}, {}), "a?[31m b");
  EXPECT_EQ(queue({{"muster.dev/queue", std::string(250'000, 'q')}}, {}), std::string(64, 'q'));
}

TEST(Dialects, DeclaringDialect_FollowsKeys) {
  const auto declared_in = [](const Labels& annotations, const Labels& labels) {
    return ParseMembership(annotations, labels, "").declared_in();
  };
  const Labels koord = {{"gang.scheduling.koordinator.sh/name", "g"},
                        {"gang.scheduling.koordinator.sh/min-available", "1"}};
  const Labels sigs = {{"pod-group.scheduling.sigs.k8s.io/name", "g"}};
  EXPECT_EQ(declared_in(koord, {}), GangDialect::kKoordinator);
  EXPECT_EQ(declared_in(koord, sigs), GangDialect::kKoordinator);
  EXPECT_EQ(ParseMembership(koord, sigs, "").dialect, GangDialect::kPodGroupSigs) << "it names that PodGroup besides";
  EXPECT_EQ(declared_in({}, sigs), GangDialect::kPodGroupSigs);
}

// D-4, D-5, D-8, D-15: keys that should put the pod into a gang and do not.
TEST(Dialects, UnusedGangKeys_AreReported) {
  const auto ignored = [](const Labels& annotations, const Labels& labels) {
    return ParseMembership(annotations, labels, "").ignored;
  };
  EXPECT_TRUE(ignored({}, {{"app", "x"}}).empty());
  for (const char* key :
       {"kai.scheduler/subgroup-name", "yunikorn.apache.org/task-group-name", "yunikorn.apache.org/task-groups",
        "gang.scheduling.koordinator.sh/min-available", "pod-group.scheduling.sigs.k8s.io/min-available"}) {
    ASSERT_EQ(ignored({{key, "3"}}, {}).size(), 1U) << key;
    EXPECT_EQ(ignored({{key, "3"}}, {})[0].rfind(key, 0), 0U) << key;
    EXPECT_EQ(ignored({}, {{key, "3"}}).size(), 1U) << key;
  }
  EXPECT_TRUE(ignored({{"gang.scheduling.koordinator.sh/name", "g"}, {"pod-group-name", "g"}}, {}).empty());
  EXPECT_EQ(ignored({}, {{"scheduling.k8s.io/group-name", "g"}}).size(), 1U) << "it is an annotation";
}

TEST(Dialects, InvalidTime_ReadAsZero) {
  for (const char* text : {"infinite-future", "infinite-past", "soon"}) {
    const Json object = {{"metadata", {{"name", "g"}, {"namespace", "d"}, {"uid", "u"}, {"creationTimestamp", text}}}};
    EXPECT_EQ(ExpectOk(ParsePodGroup(object, GangDialect::kVolcano)).created_ms, 0) << text;
  }
}

// D-15: Volcano's PodGroup and its pods.
TEST(Dialects, Volcano_PodGroupAndPodsAreRead) {
  const GangMembership pod = ParseMembership({{"scheduling.k8s.io/group-name", "g"}}, {}, "");
  EXPECT_EQ(pod.name, "g");
  EXPECT_EQ(pod.dialect, GangDialect::kVolcano);
  EXPECT_FALSE(pod.declares_gang());
  EXPECT_EQ(ParseMembership({{"scheduling.k8s.io/group-name", "g"}, {"volcano.sh/task-spec", "ps"}}, {}, "").subgroup,
            "ps");
  EXPECT_EQ(ParseMembership({{"pod-group-name", "g"}, {"volcano.sh/task-spec", "ps"}}, {}, "").subgroup, "")
      << "another dialect's gang knows no tasks";
  const auto read = [](const std::string& tasks, const std::string& annotations = "{}") {
    const GangObject group = ExpectOk(
        ParsePodGroup(*ParseJson(absl::StrCat(R"({"metadata":{"name":"g","namespace":"d","uid":"u","annotations":)",
                                              annotations, R"(},"spec":{"minMember":3,"queue":"team",
                                   "minResources":{"cpu":"3"},"minTaskMember":)",
                                              tasks, "}}"),
                                 "PodGroup"),
                      GangDialect::kVolcano));
    return group.declaration;
  };
  const GangDeclaration plain = read("null");
  EXPECT_EQ(plain.min_member, 3);
  EXPECT_EQ(plain.queue, "team");
  EXPECT_EQ(plain.min_resources, (ResourceList{{"cpu", 3000}}));
  EXPECT_TRUE(plain.subgroups.empty());
  // Tasks become subgroups if their minimums add up to the job's.
  const GangDeclaration tasks = read(R"({"ps":1,"worker":2})");
  ASSERT_EQ(tasks.subgroups.size(), 2U);
  EXPECT_EQ(tasks.subgroups[0].name, "ps");
  EXPECT_EQ(tasks.subgroups[0].minimum, 1);
  EXPECT_EQ(tasks.subgroups[1].minimum, 2);
  EXPECT_EQ(tasks.min_member, std::nullopt) << "all of them";
  EXPECT_TRUE(tasks.warnings.empty());
  // Otherwise the job's minimum counts, as in Volcano, with a warning.
  for (const char* other : {R"({"ps":1})", R"({"ps":1,"worker":3})", R"({"ps":"x"})", R"({"p s":3})", R"({"ps":-3})"}) {
    const GangDeclaration declaration = read(other);
    EXPECT_EQ(declaration.min_member, 3) << other;
    EXPECT_TRUE(declaration.subgroups.empty()) << other;
    ASSERT_EQ(declaration.warnings.size(), 1U) << other;
    EXPECT_EQ(declaration.warnings[0].rfind("spec.minTaskMember is ignored: ", 0), 0U) << declaration.warnings[0];
  }
  const GangDeclaration own = read(R"({"ps":1,"worker":2})", R"({"muster.dev/subgroups":"[{\"name\":\"a\"}]"})");
  ASSERT_EQ(own.subgroups.size(), 1U) << "our own key goes before";
  EXPECT_EQ(own.min_member, 3);
}

// D-4: KAI's PodGroup and its pods.
TEST(Dialects, Kai_PodGroupAndPodsAreRead) {
  const GangMembership pod =
      ParseMembership({{"pod-group-name", "g"}}, {{"kai.scheduler/subgroup-name", "decode"}}, "");
  EXPECT_EQ(pod.name, "g");
  EXPECT_EQ(pod.dialect, GangDialect::kKai);
  EXPECT_EQ(pod.subgroup, "decode");
  EXPECT_FALSE(pod.declares_gang());
  EXPECT_EQ(
      ParseMembership({{"gang.scheduling.koordinator.sh/name", "g"}, {"pod-group-name", "h"}}, {}, "").problem.code,
      ReasonCode::kConflict);
  const auto group = ExpectOk(ParsePodGroup(Parse(R"({"metadata":{"name":"g","namespace":"ns"},"spec":{"minMember":1,
      "queue":"team","topologyConstraint":{"topology":"t","requiredTopologyLevel":"example.com/block"},
      "subGroups":[{"name":"decode","minSubGroup":1},
                   {"name":"d0","parent":"decode","minMember":2,"topologyConstraint":{"preferredTopologyLevel":"rack"}},
                   {"name":"prefill"}]}})"),
                                            GangDialect::kKai));
  const GangDeclaration& declaration = group.declaration;
  EXPECT_EQ(declaration.min_member, 1);
  EXPECT_EQ(declaration.queue, "team");
  EXPECT_TRUE(declaration.warnings.empty());
  EXPECT_EQ(declaration.topology, (TopologyRule{"example.com/block", "", ""}));
  ASSERT_EQ(declaration.subgroups.size(), 3U);
  EXPECT_EQ(declaration.subgroups[0], (SubgroupDeclaration{"decode", "", std::nullopt, 1, {}}));
  EXPECT_EQ(declaration.subgroups[1], (SubgroupDeclaration{"d0", "decode", 2, std::nullopt, {"", "rack", ""}}));
  EXPECT_EQ(declaration.subgroups[2], (SubgroupDeclaration{"prefill", "", std::nullopt, std::nullopt, {}}));
  EXPECT_FALSE(declaration.subgroups[1].members.has_value());
  const GangRules rules = ResolveRules(nullptr, &declaration, GangDialect::kKai, {});
  EXPECT_EQ(rules.min_member, 1) << "one of the two at the top: prefill, of one member";
  EXPECT_EQ(rules.tree.leaves, 2);
  EXPECT_TRUE(rules.domains);
  EXPECT_EQ(rules.on_timeout, OnTimeout::kRequeue);
}

// P-7: a future member requests what a pod with the same fields requests.
TEST(Dialects, FutureMembers_RequestAsPods) {
  const auto read = [](const std::string& exec) {
    return ParseMembership({{"gang.scheduling.koordinator.sh/name", "g"},
                            {"gang.scheduling.koordinator.sh/min-available", "2"},
                            {"muster.dev/subgroup", "driver"},
                            {"muster.dev/subgroups", "[{\"name\":\"driver\"}," + exec + "]"}},
                           {}, "");
  };
  const GangMembership membership = read(R"({"name":"exec","minMember":3,"minResource":{"cpu":"500m","memory":"1Gi"},
      "nodeSelector":{"pool":"spark"},"tolerations":[{"key":"a","operator":"Exists","effect":"NoSchedule"}],
      "affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
        {"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}},
       "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone"}]}}})");
  ASSERT_EQ(membership.declaration->subgroups.size(), 2U) << membership.declaration->unreadable_minimum;
  ASSERT_TRUE(membership.declaration->subgroups[1].members.has_value());
  const auto pod = ExpectOk(ParsePod(Parse(R"({"metadata":{"name":"p","uid":"u"},"spec":{
      "containers":[{"name":"c","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}],
      "nodeSelector":{"pool":"spark"},"tolerations":[{"key":"a","operator":"Exists","effect":"NoSchedule"}],
      "affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
        {"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}}}}})")));
  EXPECT_EQ((*membership.declaration->subgroups[1].members)->Key(), pod.shape->Key());
  const GangRules rules = ResolveRules(&*membership.declaration, nullptr, GangDialect::kKoordinator, {});
  EXPECT_TRUE(rules.tree.ahead);
  EXPECT_EQ(rules.min_member, 4);
  EXPECT_THAT(read(R"({"name":"exec","minResource":{"cpu":"-1"}})").declaration->unreadable_minimum,
              testing::HasSubstr("muster.dev/subgroups[1].minResource.cpu"));
  EXPECT_THAT(read(R"({"name":"exec","minResource":{"cpu":"1"},"affinity":"x"})").declaration->unreadable_minimum,
              testing::HasSubstr("muster.dev/subgroups[1].affinity: is a string; expected a map"));
  EXPECT_THAT(read(R"({"name":"exec","minResource":{"cpu":"1"},"tolerations":{}})").declaration->unreadable_minimum,
              testing::HasSubstr("tolerations: is a object; expected a list"));
  EXPECT_THAT(read(R"({"name":"exec","minResource":{"cpu":"1"},"affinity":{"nodeAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[
      {"key":"zone","operator":"Near"}]}]}}}})")
                  .declaration->unreadable_minimum,
              testing::HasSubstr("nodeAffinity"));
}

// P-4: the topology rule from the keys of any dialect, Muster's own keys first.
TEST(Dialects, TopologyKeys_OwnKeysFirst) {
  const auto rule = [](const Labels& annotations) {
    Labels all = annotations;
    all.emplace("gang.scheduling.koordinator.sh/name", "g");
    return ParseMembership(all, {}, "").declaration->topology.value_or(TopologyRule());
  };
  EXPECT_EQ(rule({{"muster.dev/required-topology", "rack"}}), (TopologyRule{"rack", "", ""}));
  EXPECT_EQ(rule({{"muster.dev/spread-topology", "zone"}}), (TopologyRule{"", "", "zone"}));
  EXPECT_EQ(rule({{"kueue.x-k8s.io/podset-required-topology", "example.com/block"},
                  {"kueue.x-k8s.io/podset-preferred-topology", "rack"}}),
            (TopologyRule{"example.com/block", "rack", ""}));
  EXPECT_EQ(
      rule({{"kai.scheduler/topology-required-placement", "a"}, {"kai.scheduler/topology-preferred-placement", "b"}}),
      (TopologyRule{"a", "b", ""}));
  EXPECT_EQ(rule({{"muster.dev/required-topology", "rack"}, {"kueue.x-k8s.io/podset-required-topology", "block"}}),
            (TopologyRule{"rack", "", ""}));
  EXPECT_TRUE(rule({{"muster.dev/required-topology", "no label/at all"}}).none());
  EXPECT_FALSE(IsLabelKey(""));
  EXPECT_FALSE(IsLabelKey("a/b/c"));
  EXPECT_FALSE(IsLabelKey("/rack"));
  EXPECT_TRUE(IsLabelKey("topology.kubernetes.io/zone"));
}

// SPEC D-12: integers and lists where strings are due.
TEST(Dialects, NonStringValues_AreAccepted) {
  const PodDescription pod = Pod(R"({"metadata":{"name":"p","uid":"u","annotations":{
      "gang.scheduling.koordinator.sh/name":"g","gang.scheduling.koordinator.sh/min-available":5,
      "gang.scheduling.koordinator.sh/groups":["default/g"]}}})");
  EXPECT_EQ(pod.gang.declaration->min_member, 5);
  EXPECT_EQ(pod.gang.declaration->groups, std::vector<std::string>{"default/g"});
  EXPECT_TRUE(pod.gang.declaration->warnings.empty()) << pod.gang.declaration->warnings[0];
}

// SPEC D-2: name and minimum by labels or annotations, the alias, groups and match policy in both forms, priorities
// (D-11).
TEST(Dialects, SigsLabels_AreRead) {
  const GangMembership labels = Pod(R"({"metadata":{"name":"p","uid":"u","labels":{
      "pod-group.scheduling.sigs.k8s.io/name":"tf","pod-group.scheduling.sigs.k8s.io/min-available":"3",
      "pod-group.scheduling.sigs.k8s.io/match-policy":"waiting-and-running"},"annotations":{
      "pod-group.scheduling.sigs.k8s.io/groups":"[\"default/tf\",\"default/ps\"]"}}})")
                                    .gang;
  EXPECT_EQ(labels.name, "tf");
  EXPECT_EQ(labels.dialect, GangDialect::kSigsPods);
  EXPECT_TRUE(labels.declares_gang());
  EXPECT_EQ(labels.declaration->min_member, 3);
  EXPECT_EQ(labels.declaration->match_policy, MatchPolicy::kWaitingAndRunning);
  EXPECT_EQ(labels.declaration->groups, (std::vector<std::string>{"default/tf", "default/ps"}));
  EXPECT_FALSE(labels.declaration->on_timeout.has_value()) << "a default is no declaration (D-9)";

  const GangMembership alias = Pod(R"({"metadata":{"name":"p","uid":"u","annotations":{
      "pod-group.scheduling.sigs.k8s.io":"tf","pod-group.scheduling.sigs.k8s.io/min-available":2}}})")
                                   .gang;
  EXPECT_EQ(alias.name, "tf");
  EXPECT_EQ(alias.dialect, GangDialect::kSigsPods);
  EXPECT_EQ(alias.declaration->min_member, 2);

  const GangMembership refers = Pod(R"({"metadata":{"name":"p","uid":"u","labels":{
      "pod-group.scheduling.sigs.k8s.io/name":"tf"}}})")
                                    .gang;
  EXPECT_EQ(refers.dialect, GangDialect::kPodGroupSigs) << "without a minimum it names a PodGroup";
  EXPECT_FALSE(refers.declares);

  const GangMembership bad = Pod(R"({"metadata":{"name":"p","uid":"u","labels":{
      "pod-group.scheduling.sigs.k8s.io/name":"tf","pod-group.scheduling.sigs.k8s.io/min-available":"many"}}})")
                                 .gang;
  EXPECT_TRUE(bad.declares);
  EXPECT_NE(bad.declaration->unreadable_minimum.find("\"many\""), std::string::npos);
}

// SPEC D-6: the native PodGroup, and a pod that names it in its spec; its basic policy is no constraint.
TEST(Dialects, NativePodGroup_IsRead) {
  const GangMembership pod = Pod(R"({"metadata":{"name":"p","uid":"u"},
      "spec":{"schedulingGroup":{"podGroupName":"train"}}})")
                                 .gang;
  EXPECT_EQ(pod.name, "train");
  EXPECT_EQ(pod.dialect, GangDialect::kNative);
  const auto group = ExpectOk(ParsePodGroup(Parse(R"({"metadata":{"name":"train","namespace":"ns"},
      "spec":{"schedulingPolicy":{"gang":{"minCount":4}}}})"),
                                            GangDialect::kNative));
  EXPECT_EQ(group.declaration->min_member, 4);
  EXPECT_FALSE(group.declaration->on_timeout.has_value());
  const auto basic = ParsePodGroup(Parse(R"({"metadata":{"name":"b"},"spec":{"schedulingPolicy":{"basic":{}}}})"),
                                   GangDialect::kNative);
  EXPECT_EQ(basic->declaration->min_member, 0);
  const auto none = ParsePodGroup(Parse(R"({"metadata":{"name":"b"},"spec":{"minMember":3}})"), GangDialect::kNative);
  EXPECT_FALSE(none->declaration->min_member.has_value()) << "minMember is another dialect's key";
  EXPECT_EQ(Pod(R"({"metadata":{"name":"p","uid":"u","labels":{"scheduling.x-k8s.io/pod-group":"other"}},
      "spec":{"schedulingGroup":{"podGroupName":"train"}}})")
                .gang.problem.code,
            ReasonCode::kConflict);
}

// Fields that Kubernetes, KAI, Volcano or Kueue read are read here too, or a warning names them.
TEST(Dialects, UnsupportedFields_AreReported) {
  const auto read = [](const char* spec, GangDialect dialect) {
    return *ParsePodGroup(Parse(absl::StrCat(R"({"metadata":{"name":"g"},"spec":)", spec, "}").c_str()), dialect)
                ->declaration;
  };
  const GangDeclaration native =
      read(R"({"schedulingConstraints":{"topology":[{"key":"rack"}]}})", GangDialect::kNative);
  ASSERT_TRUE(native.topology.has_value());
  EXPECT_EQ(native.topology->required, "rack");
  EXPECT_EQ(read(R"({"schedulingConstraints":{"topology":[{"key":"a"},{"key":"b"}]}})", GangDialect::kNative).warnings,
            std::vector<std::string>{"spec.schedulingConstraints.topology is ignored: more than one of them"});
  EXPECT_EQ(read(R"({"minResources":"x"})", GangDialect::kPodGroupSigs).warnings,
            std::vector<std::string>{"spec.minResources: is a string; expected a map of quantities; minResources is "
                                     "ignored"});
  EXPECT_EQ(read(R"({"minMember":1,"subGroups":{}})", GangDialect::kKai).unreadable_minimum,
            "spec.subGroups: is a object; expected a list");
  EXPECT_EQ(read(R"({"preemptibility":"non-preemptible"})", GangDialect::kKai).preemptible, false);
  EXPECT_EQ(read(R"({"preemptibility":"preemptible"})", GangDialect::kKai).preemptible, true);
  EXPECT_EQ(read(R"({"preemptibility":"x"})", GangDialect::kKai).warnings.size(), 1U);
  EXPECT_EQ(read(R"({"networkTopology":{"mode":"hard"},"subGroupPolicy":[]})", GangDialect::kVolcano).warnings,
            (std::vector<std::string>{"spec.networkTopology is ignored", "spec.subGroupPolicy is ignored"}));
  EXPECT_EQ(Pod(R"({"metadata":{"name":"p","uid":"u","annotations":{"kueue.x-k8s.io/podset-slice-size":"2",
      "kueue.x-k8s.io/podset-required-topology":"block"},"labels":{"scheduling.x-k8s.io/pod-group":"g"}}})")
                .gang.declaration->warnings,
            std::vector<std::string>{"kueue.x-k8s.io/podset-slice-size is ignored"});
}

// SPEC S-6: numbers beyond every type are refused, in an annotation as in a request.
TEST(Dialects, HugeNumber_IsRefused) {
  const GangMembership gang = Pod(R"({"metadata":{"name":"p","uid":"u","annotations":{
      "gang.scheduling.koordinator.sh/name":"g","gang.scheduling.koordinator.sh/min-available":"1",
      "gang.scheduling.koordinator.sh/groups":"[1e999]"}}})")
                                  .gang;
  ASSERT_EQ(gang.declaration->warnings.size(), 1U);
  EXPECT_NE(gang.declaration->warnings[0].find("the gang starts without a group"), std::string::npos);
}

// The entry that cannot be used is named, not the list.
TEST(Dialects, UnusableGroupEntry_IsNamed) {
  const Labels annotations = {{"gang.scheduling.koordinator.sh/name", "g"},
                              {"gang.scheduling.koordinator.sh/min-available", "1"},
                              {"gang.scheduling.koordinator.sh/groups", R"(["default/g", "namespaceA/gang-a"])"}};
  const GangDeclaration declaration = ParseMembership(annotations, {}, "").declaration;
  EXPECT_TRUE(declaration.groups.empty());
  EXPECT_EQ(
      declaration.warnings,
      std::vector<std::string>{
          "gang.scheduling.koordinator.sh/groups: \"namespaceA/gang-a\" is not a gang's "
          "\"namespace/name\", both of lower case letters, digits, '-' and '.'; the gang starts without a group"});
}

// SPEC D-8: an unreadable value is repaired or leaves the gang uninitialised, and is always reported.
TEST(Dialects, UnreadableValues_AreReported) {
  const PodDescription pod = Pod(R"({"metadata":{"name":"p","uid":"u","annotations":{
      "gang.scheduling.koordinator.sh/name":"g","gang.scheduling.koordinator.sh/min-available":"-1",
      "gang.scheduling.koordinator.sh/waiting-time":"-5s","gang.scheduling.koordinator.sh/mode":"strict"}}})");
  EXPECT_NE(pod.gang.declaration->unreadable_minimum.find("\"-1\""), std::string::npos);
  EXPECT_EQ(pod.gang.declaration->warnings.size(), 2u);
  EXPECT_FALSE(pod.gang.declaration->wait_time_ms.has_value());
  EXPECT_FALSE(pod.gang.declaration->mode.has_value());
}

TEST(Dialects, InvalidName_IsProblem) {
  const PodDescription pod = Pod(R"({"metadata":{"name":"p","uid":"u","annotations":{
      "gang.scheduling.koordinator.sh/name":"a/b","gang.scheduling.koordinator.sh/min-available":"1"}}})");
  EXPECT_EQ(pod.gang.problem.code, ReasonCode::kUninitialised);
  EXPECT_TRUE(IsSubdomain("a-b.c0"));
  for (const char* bad : {"", "A", "a_b", "-a", "a-", "a..b", ".a"}) EXPECT_FALSE(IsSubdomain(bad)) << bad;
}

// SPEC D-14.
TEST(Dialects, TwoGangs_AreConflict) {
  const PodDescription pod = Pod(R"({"metadata":{"name":"p","uid":"u",
      "annotations":{"gang.scheduling.koordinator.sh/name":"one","gang.scheduling.koordinator.sh/min-available":"1"},
      "labels":{"pod-group.scheduling.sigs.k8s.io":"two"}}})");
  EXPECT_EQ(pod.gang.problem.code, ReasonCode::kConflict);
  EXPECT_NE(pod.gang.problem.text.find("one"), std::string::npos);
  EXPECT_NE(pod.gang.problem.text.find("two"), std::string::npos);
}

// SPEC D-3, D-13.
TEST(Dialects, PodGroup_SpecAndDefaultsAreRead) {
  const Json object = Parse(R"({"metadata":{"name":"g","namespace":"ns","creationTimestamp":"2026-01-02T03:04:05Z",
      "annotations":{"gang.scheduling.koordinator.sh/mode":"NonStrict"}},
      "spec":{"minMember":3,"scheduleTimeoutSeconds":90,"minResources":{"cpu":"1500m","memory":"1Gi"}}})");
  const GangObject sigs = ExpectOk(ParsePodGroup(object, GangDialect::kPodGroupSigs));
  EXPECT_EQ(sigs.declaration->min_member, 3);
  EXPECT_EQ(sigs.declaration->wait_time_ms, 90'000);
  EXPECT_EQ(sigs.declaration->mode, GangMode::kNonStrict);
  EXPECT_EQ(FormatResources(*sigs.declaration->min_resources), "cpu: 1500m, memory: 1Gi");
  EXPECT_EQ(sigs.created_ms, 1767323045000);
  const GangDeclaration x = ParsePodGroup(object, GangDialect::kPodGroupX)->declaration;
  EXPECT_EQ(ResolveRules(nullptr, &*sigs.declaration, GangDialect::kPodGroupSigs, {}).on_timeout, OnTimeout::kFail);
  EXPECT_EQ(ResolveRules(nullptr, &x, GangDialect::kPodGroupX, {}).on_timeout, OnTimeout::kRequeue);
}

}  // namespace dialects_test
}  // namespace muster
