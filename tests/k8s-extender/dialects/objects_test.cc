// Pods and nodes as Kubernetes writes them: requests, allocatable amounts and unreadable fields (SPEC S-6).
#include <gtest/gtest.h>

#include "k8s-extender/dialects/dialects.h"
#include "tests/support/expect_ok.h"

namespace muster {
namespace objects_test {

Json Parse(absl::string_view text) { return *ParseJson(text, "test"); }

PodDescription Pod(absl::string_view text) { return ExpectOk(ParsePod(Parse(text))); }

PodDescription PodWith(absl::string_view spec) {
  return Pod(absl::StrCat(R"({"metadata":{"name":"p","uid":"u"},"spec":)", spec, "}"));
}

TEST(Requests, EffectiveRequests_MatchKubeScheduler) {
  const auto requests = [](const char* spec) { return FormatResources(*EffectiveRequests(Parse(spec))); };
  EXPECT_EQ(
      requests(R"({"containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"500m"}}}]})"),
      "cpu: 1500m");
  EXPECT_EQ(requests(R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
      "initContainers":[{"resources":{"requests":{"cpu":"3"}}}]})"),
            "cpu: 3");
  EXPECT_EQ(requests(R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
      "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"2"}}}]})"),
            "cpu: 3");
  EXPECT_EQ(requests(R"({"containers":[{"resources":{"limits":{"nvidia.com/gpu":"2"}}}],"overhead":{"cpu":"250m"}})"),
            "cpu: 250m, nvidia.com/gpu: 2");
  EXPECT_EQ(requests(R"({"resources":{"requests":{"cpu":"4"}},"containers":[{"resources":{"requests":{"cpu":"1"}}}]})"),
            "cpu: 4");
}

TEST(Requests, Overflow_IsRefused) {
  const absl::StatusOr<ResourceList> sum = EffectiveRequests(Parse(R"({"containers":[
      {"name":"a","resources":{"requests":{"memory":"8Pi"}}},{"name":"b","resources":{"requests":{"memory":"8Pi"}}}]})"));
  ASSERT_FALSE(sum.ok());
  EXPECT_NE(sum.status().message().find("container b"), std::string::npos);
  const PodDescription pod = PodWith(R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"-1"}}}]})");
  EXPECT_NE(pod.invalid.find("container a.requests.cpu"), std::string::npos) << pod.invalid;
}

// A limit counts only without a request; beside a request, an unusable limit is ignored.
TEST(Requests, LimitBesideRequest_IsIgnored) {
  const auto requests = [](const char* resources) {
    return EffectiveRequests(Parse(absl::StrCat(R"({"containers":[{"name":"a","resources":)", resources, "}]}")));
  };
  const auto both =
      ExpectOk(requests(R"({"requests":{"memory":"1Gi"},"limits":{"memory":"9223372036854775807","cpu":"2"}})"));
  EXPECT_EQ(FormatResources(both), "cpu: 2, memory: 1Gi");
  EXPECT_EQ(requests(R"({"limits":{"memory":"9223372036854775807"}})").status().message(),
            "container a.limits.memory: 9223372036854775807 is more than Muster can count (2^53)");
}

// KEP-1287: the amount that a node reserves for a container during a resize.
TEST(Requests, ResizedPod_RequestsFollowStatus) {
  const auto requests = [](const std::string& status) {
    const auto read = RequestsOnNode(Parse(absl::StrCat(R"({"spec":{
        "containers":[{"name":"a","resources":{"requests":{"cpu":"2","memory":"4Gi"}}},
                      {"name":"b","resources":{"requests":{"cpu":"1"}}}],
        "initContainers":[{"name":"side","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                          {"name":"init","resources":{"requests":{"cpu":"1"}}}]},"status":)",
                                                        status, "}")));
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? FormatResources(*read) : "";
  };
  EXPECT_EQ(requests("null"), "cpu: 4, memory: 4Gi");
  EXPECT_EQ(requests(R"({"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"3","memory":"1Gi"}}}]})"),
            "cpu: 5, memory: 4Gi");
  EXPECT_EQ(requests(R"({"containerStatuses":[{"name":"b","allocatedResources":{"cpu":"6"}}]})"),
            "cpu: 9, memory: 4Gi");
  EXPECT_EQ(requests(R"({"initContainerStatuses":[{"name":"side","allocatedResources":{"cpu":"2"}},
                                                  {"name":"init","allocatedResources":{"cpu":"64"}}]})"),
            "cpu: 5, memory: 4Gi")
      << "init containers that end are not resized";
  const std::string smaller = R"("containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]})";
  const auto pending = [](const std::string& reason) {
    return R"({"conditions":[{"type":"PodResizePending","status":"True","reason":")" + reason + R"("}],)";
  };
  EXPECT_EQ(requests(pending("Infeasible") + smaller), "cpu: 3, memory: 4Gi");
  EXPECT_EQ(requests(pending("Deferred") + smaller), "cpu: 4, memory: 4Gi");
  EXPECT_EQ(requests(R"({"resize":"Infeasible",)" + smaller), "cpu: 3, memory: 4Gi");
}

// SPEC S-6: a field of a wrong type is never read as an absent one.
TEST(Pods, WrongType_IsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("x")", "Pod.spec: is a string; expected a map"},
      {R"({"containers":{}})", "spec.containers: is a object; expected a list"},
      {R"({"containers":["a"]})", "spec.containers: has a string; expected a list of maps"},
      {R"({"initContainers":{}})", "spec.initContainers: is a object; expected a list"},
      {R"({"initContainers":[{"name":"i","restartPolicy":true}]})",
       "init container i.restartPolicy: is a boolean; expected a string"},
      {R"({"containers":[{"name":"a","resources":"x"}]})", "container a.resources: is a string; expected a map"},
      {R"({"containers":[{"name":"a","resources":{"requests":[]}}]})",
       "container a.requests: is a array; expected a map of quantities"},
      {R"({"containers":[{"name":"a","resources":{"limits":[]}}]})", "container a.limits: is a array; expected a map"},
      {R"({"containers":[{"name":"a","resources":{"requests":{"cpu":[]}}}]})",
       "container a.requests.cpu: is a array; expected a quantity"},
      {R"({"resources":"x"})", "spec.resources: is a string; expected a map"},
      {R"({"overhead":[]})", "spec.overhead: is a array; expected a map of quantities"},
      {R"({"affinity":"x"})", "spec.affinity: is a string; expected a map"},
      {R"({"affinity":{"nodeAffinity":"x"}})", "spec.affinity.nodeAffinity: is a string; expected a map"},
      {R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[]}}})",
       "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: is a array; expected a map"},
      {R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":{}}}}})",
       "spec.affinity.nodeAffinity.nodeSelectorTerms: is a object; expected a list"},
      {R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":
          [{"matchExpressions":[{"key":"a","operator":"In","values":[5]}]}]}}}})",
       "spec.affinity.nodeAffinity.values: has a number; expected a list of strings"},
      {R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}}})",
       "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution: is a object; expected a list"},
      {R"({"nodeSelector":["a=b"]})", "spec.nodeSelector: is a array; expected a map"},
      {R"({"tolerations":{}})", "spec.tolerations: is a object; expected a list"},
      {R"({"tolerations":[{"operator":"Exists","key":5}]})", "spec.tolerations.key: is a number; expected a string"},
      {R"({"tolerations":[{"operator":"Exists","effect":"NoShedule"}]})",
       "spec.tolerations.effect: \"NoShedule\"; expected NoSchedule, PreferNoSchedule, NoExecute, or none for all of "
       "them"},
      {R"({"topologySpreadConstraints":{}})", "spec.topologySpreadConstraints: is a object; expected a list"},
      {R"({"containers":[{"ports":{}}]})", "spec.containers.ports: is a object; expected a list"},
      {R"({"containers":[{"ports":[{"hostPort":"80"}]}]})",
       "spec.containers.ports.hostPort: is a string; expected a whole number"},
      {R"({"containers":[{"ports":[{"hostPort":70000}]}]})",
       "spec.containers.ports.hostPort: 70000; expected a port from 1 to 65535"},
      {R"({"priority":"high"})", "spec.priority: is a string; expected a whole number"},
      {R"({"schedulingGates":"x"})", "spec.schedulingGates: is a string; expected a list"},
      {R"({"nodeName":5})", "spec.nodeName: is a number; expected a string"},
      {R"({"schedulingGroup":"g"})", "spec.schedulingGroup: is a string; expected a map"},
      {R"({"containers":[{"name":"a","resources":"x"}],"affinity":"x"})",
       "container a.resources: is a string; expected a map"},
  };
  for (const auto& [spec, problem] : cases) {
    EXPECT_EQ(PodWith(spec).invalid, problem);
  }
  EXPECT_EQ(Pod(R"({"metadata":{"name":"p","uid":"u","labels":[]}})").invalid,
            "Pod.metadata.labels: is a array; expected a map");
}

TEST(Pods, AbsentOrNullField_RequestsNothing) {
  for (const char* spec :
       {"null", "{}",
        R"({"containers":null,"initContainers":null,"affinity":null,"nodeSelector":null,"tolerations":null,
        "topologySpreadConstraints":null,"priority":null,"schedulingGates":null,"overhead":null,"resources":null})",
        R"({"containers":[null,{"resources":null,"ports":null},{"resources":{"requests":null,"limits":null}}],
        "affinity":{"nodeAffinity":null,"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":null}}})"}) {
    const PodDescription pod =
        Pod(absl::StrCat(R"({"metadata":{"name":"p","uid":"u","labels":null},"spec":)", spec, "}").c_str());
    EXPECT_EQ(pod.invalid, "") << spec;
    EXPECT_EQ(pod.shape->Key(), PodTemplate().Key()) << spec;
  }
}

// kube-scheduler has placed the pod: it uses its requests, whatever its other fields are.
TEST(Pods, PodWithNode_IsCharged) {
  const auto bound = [](const std::string& rest) { return PodWith(R"({"nodeName":"n",)" + rest + "}"); };
  for (const char* rest : {R"("affinity":"x")", R"("tolerations":{})", R"("topologySpreadConstraints":{})",
                           R"("schedulingGates":{})", R"("priority":"high")"}) {
    const PodDescription pod =
        bound(absl::StrCat(R"("containers":[{"resources":{"requests":{"cpu":"1"}},"ports":{}}],)", rest));
    EXPECT_EQ(pod.invalid, "") << rest;
    EXPECT_EQ(FormatResources(pod.shape->requests), "cpu: 1") << rest;
  }
  const PodDescription half = bound(R"("containers":[{"resources":{"requests":{"cpu":"1","muster.dev/gang":"1"}}}])");
  EXPECT_EQ(half.invalid, "") << "one of the markers";
  EXPECT_EQ(FormatResources(half.shape->requests), "cpu: 1");
  for (const char* amount : {"9223372036854775807", "9007199254740993", "10E"}) {
    const PodDescription pod = bound(absl::StrCat(R"("containers":[{"resources":{"requests":{"memory":")", amount,
                                                  R"("}}},{"resources":{"requests":{"memory":"1Gi","cpu":"1"}}}])"));
    EXPECT_EQ(pod.invalid, "") << amount;
    EXPECT_EQ(pod.shape->requests, (ResourceList{{"cpu", 1'000}, {"memory", kMaxAmount}})) << amount;
  }
  EXPECT_NE(bound(R"("containers":[{"resources":{"requests":{"cpu":"lots"}}}])").invalid, "");
}

TEST(Pods, HostPorts_OfContainersAndSidecars) {
  const PodDescription pod = PodWith(R"({
      "containers":[{"ports":[{"containerPort":1,"hostPort":80},{"containerPort":2}]}],
      "initContainers":[{"restartPolicy":"Always","ports":[{"hostPort":81,"protocol":"UDP","hostIP":"10.0.0.1"}]},
                        {"ports":[{"hostPort":82}]}]})");
  EXPECT_EQ(pod.shape->host_ports,
            (std::vector<HostPort>{{Protocol::kTcp, 80, "0.0.0.0"}, {Protocol::kUdp, 81, "10.0.0.1"}}));
}

// A fraction of a unit is not offered.
TEST(Nodes, Allocatable_IsRoundedDown) {
  const NodeDescription node = ExpectOk(ParseNode(Parse(R"({"metadata":{"name":"n"},"status":{"allocatable":{
      "nvidia.com/gpu":"1500m","memory":"1999999999999n","cpu":"2500500u","pods":110}}})")));
  EXPECT_EQ(node.allocatable, (ResourceList{{"nvidia.com/gpu", 1}, {"memory", 1'999}, {"cpu", 2'500}, {"pods", 110}}));
  EXPECT_EQ(ParseNode(Parse(R"({"metadata":{"name":"n","labels":null},"spec":null,"status":null})")).status(),
            absl::OkStatus());
}

TEST(Nodes, WrongType_IsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"metadata":{"name":"n","labels":["a"]}})", "Node.metadata.labels: is a array; expected a map"},
      {R"({"metadata":{"name":"n"},"spec":"x"})", "Node.spec: is a string; expected a map"},
      {R"({"metadata":{"name":"n"},"spec":{"unschedulable":"true"}})",
       "Node.spec.unschedulable: is a string; expected true or false"},
      {R"({"metadata":{"name":"n"},"spec":{"taints":{}}})", "Node.spec.taints: is a object; expected a list"},
      {R"({"metadata":{"name":"n"},"spec":{"taints":[{"key":"a","effect":5}]}})",
       "Node.spec.taints.effect: is a number; expected a string"},
      {R"({"metadata":{"name":"n"},"status":[]})", "Node.status: is a array; expected a map"},
  };
  for (const auto& [node, problem] : cases) {
    const absl::StatusOr<NodeDescription> read = ParseNode(Parse(node));
    EXPECT_EQ(read.status(), absl::InvalidArgumentError(problem));
  }
}

TEST(Pods, BadInput_IsNamed) {
  EXPECT_FALSE(ParsePod(Parse("[]")).ok());
  EXPECT_EQ(ParsePod(Parse(R"({"metadata":{"name":5,"uid":"u"}})")).status().message(),
            "Pod.metadata.name: is a number; expected a string");
  EXPECT_FALSE(ParsePod(Parse(R"({"metadata":{"name":"a/b","uid":"u"}})")).ok());
  EXPECT_FALSE(ParsePod(Parse(R"({"metadata":{"name":"p"}})")).ok());
  EXPECT_FALSE(ParseNode(Parse(R"({"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"lots"}}})")).ok());
}

TEST(Pods, OptIn_NeedsBothMarkers) {
  const auto invalid = [](const std::string& limits) {
    return PodWith(R"({"containers":[{"name":"a","resources":{"limits":)" + limits + "}}]}").invalid;
  };
  EXPECT_EQ(invalid(R"({"muster.dev/gang":"1","muster.dev/bind":"1"})"), "");
  EXPECT_NE(invalid(R"({"muster.dev/gang":"1"})"), "");
}

TEST(Pods, GatesAndConditions_AreRead) {
  const PodDescription pod = Pod(R"({"metadata":{"name":"p","uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z"},
      "spec":{"schedulingGates":[{"name":"muster.dev/gang"},{"name":"other"}],"priority":7,"nodeName":"n"},
      "status":{"phase":"Running","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3"}]}})");
  EXPECT_TRUE(pod.our_gate && pod.other_gates && pod.deleting);
  EXPECT_EQ(pod.priority, 7);
  EXPECT_EQ(pod.node_name, "n");
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_EQ(pod.unschedulable, "0/3");
}

// K-5: an attempt that ended with an error says nothing about nodes: kube-scheduler repeats it. Muster's own timeout is
// one.
TEST(Pods, FailedAttempt_IsNotUnschedulable) {
  for (const char* reason : {"SchedulerError", "SchedulingGated", ""}) {
    const PodDescription pod = Pod(absl::StrCat(
        R"({"metadata":{"name":"p","uid":"u"},"spec":{},"status":{"conditions":[{"type":"PodScheduled","status":"False",)"
        R"("message":"Post \"http://127.0.0.1:8888/filter\": context deadline exceeded","reason":")",
        reason, R"("}]}})"));
    EXPECT_EQ(pod.unschedulable, "") << reason;
  }
}

}  // namespace objects_test
}  // namespace muster
