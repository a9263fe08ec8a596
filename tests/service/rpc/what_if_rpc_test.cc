// PlanGang over gRPC: its questions, its replies, and that it stores nothing (SPEC S-5, S-6).
#include <set>
#include <string>

#include "clients/musterctl/manifests.h"
#include "state/recording/recording.h"
#include "tests/service/rpc/rpc_fixture.h"

namespace muster {
namespace {

class WhatIfRpc : public Rpc {
 protected:
  // The fixture's node has two CPUs; "e/solo" in the queue behind "d/train" requests one of them.
  static v1::PlanGangRequest Job(int members, const std::string& cpu) {
    v1::PlanGangRequest request;
    *request.mutable_job() = SubmitOf("job", members, cpu);
    return request;
  }
  [[nodiscard]] uint64_t HashNow() {
    uint64_t hash = 0;
    EXPECT_TRUE(engine_.ReadDurableSync([&](const Machine& machine) { hash = recording::StateHash(machine); }).ok());
    return hash;
  }
};

TEST_F(WhatIfRpc, FittingJob_ReturnsNodesStoresNothing) {
  const uint64_t before = HashNow();
  for (int i = 0; i < 3; ++i) {
    const auto plan = ExpectOk(client_->PlanGang(Job(2, "1")));
    EXPECT_TRUE(plan.starts()) << plan.ShortDebugString();
    ASSERT_EQ(plan.placements_size(), 2);
    EXPECT_EQ(plan.placements(0).pod_name(), "job-0");
    EXPECT_EQ(plan.placements(0).node(), "n");
  }
  EXPECT_TRUE(absl::IsNotFound(client_->GetGang("default", "job").status()));
  EXPECT_EQ(HashNow(), before);
}

// P-7: for a driver, whether there is room for its workers too, which it creates only when it runs.
TEST_F(WhatIfRpc, FutureMembers_AreIncluded) {
  v1::PlanGangRequest request = Job(1, "1");
  v1::GangSpec* gang = request.mutable_job()->mutable_gang();
  gang->clear_min_member();
  gang->add_subgroups()->set_name("driver");
  v1::SubgroupSpec* workers = gang->add_subgroups();
  workers->set_name("worker");
  workers->set_min_member(1);
  (*workers->mutable_members()->mutable_requests())["cpu"] = "1";
  request.mutable_job()->mutable_members(0)->set_subgroup("driver");
  auto plan = ExpectOk(client_->PlanGang(request));
  EXPECT_TRUE(plan.starts()) << plan.reason().text();
  ASSERT_EQ(plan.placements_size(), 2);
  EXPECT_EQ(plan.placements(1).pod_name(), "job-worker-0");
  workers->set_min_member(2);
  plan = ExpectOk(client_->PlanGang(request));
  EXPECT_FALSE(plan.starts());
  EXPECT_EQ(plan.reason().code(), v1::REASON_CODE_NO_ROOM) << plan.reason().text();
  // A submission must have all its pods.
  ExpectInvalid(client_->SubmitGang(request.job()).status(), {"gang.subgroups[1].members"});
  // An impossible template is reported with the name of its field.
  (*workers->mutable_members()->mutable_requests())["cpu"] = "many";
  ExpectInvalid(client_->PlanGang(request).status(), {"subgroups[1].members.requests"});
}

TEST_F(WhatIfRpc, JobWithoutRoom_ReturnsReasonAndSuggestion) {
  v1::PlanGangRequest request = Job(3, "1");
  auto plan = ExpectOk(client_->PlanGang(request));
  EXPECT_FALSE(plan.starts());
  EXPECT_EQ(plan.reason().code(), v1::REASON_CODE_NO_ROOM) << plan.reason().text();
  EXPECT_FALSE(plan.reason().text().empty());

  v1::AddedNodes* added = request.add_added_nodes();
  added->set_like("n");
  added->set_count(1);
  plan = ExpectOk(client_->PlanGang(request));
  EXPECT_TRUE(plan.starts()) << plan.reason().text();
  std::set<std::string> nodes;
  for (const auto& placement : plan.placements()) nodes.insert(placement.node());
  EXPECT_EQ(nodes, (std::set<std::string>{"n", "n-added-1"}));

  request.add_removed_nodes("n");
  plan = ExpectOk(client_->PlanGang(request));
  EXPECT_FALSE(plan.starts());

  // Nodes as Kubernetes manifests.
  request.add_added_manifests(
      R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"big"},"status":{"allocatable":{"cpu":"64","memory":"1Gi","pods":"110"}}})");
  plan = ExpectOk(client_->PlanGang(request));
  EXPECT_TRUE(plan.starts()) << plan.reason().text();
}

TEST_F(WhatIfRpc, KnownGang_IsQueriedByName) {
  v1::PlanGangRequest request;
  request.set_namespace_("d");
  request.set_name("train");
  const auto plan = ExpectOk(client_->PlanGang(request));
  EXPECT_FALSE(plan.starts());
  EXPECT_EQ(plan.reason().code(), v1::REASON_CODE_NOT_ENOUGH_PODS);
  request.set_name("unknown");
  const absl::Status unknown = client_->PlanGang(request).status();
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
}

TEST_F(WhatIfRpc, InvalidQuestion_NamesField) {
  const auto refused = [this](const v1::PlanGangRequest& request, const std::string& field) {
    ExpectInvalid(client_->PlanGang(request).status(), {field});
  };
  refused(v1::PlanGangRequest(), "job");
  v1::PlanGangRequest request = Job(2, "1");
  request.set_name("train");
  refused(request, "job");
  request = Job(2, "a lot");
  refused(request, "job.members[0].shape");
  request = Job(2, "1");
  request.add_added_nodes();
  refused(request, "added_nodes[0]");
  request = Job(2, "1");
  request.add_added_nodes()->set_like("n");
  request.mutable_added_nodes(0)->set_count(1'000'000);
  refused(request, "added_nodes[0].count");
  request = Job(2, "1");
  request.add_added_manifests(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})");
  refused(request, "added_manifests");
}

// How musterctl converts a Job: as many pods as run at once, in its namespace, with the keys of its template.
TEST(PlanManifests, Job_BecomesItsPods) {
  const auto job = ExpectOk(ManifestsOf(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml}
spec:
  parallelism: 3
  completions: 2
  template:
    metadata:
      annotations: {muster.dev/gang: train}
    spec:
      containers: [{name: main, resources: {requests: {cpu: "1"}}}]
)"));
  ASSERT_EQ(job.size(), 1U);
  const auto pods = ExpectOk(PodsOf(job.front()));
  ASSERT_EQ(pods.size(), 2U) << "no more run at once than are to complete";
  EXPECT_EQ(DescribeManifest(pods.back()), "Pod ml/train-1");
  EXPECT_TRUE(absl::StrContains(pods.back(), "muster.dev/gang"));
  EXPECT_TRUE(absl::StrContains(pods.back(), R"("gang.scheduling.koordinator.sh/name":"job-train")")) << pods.back();
  EXPECT_TRUE(absl::StrContains(pods.back(), R"("gang.scheduling.koordinator.sh/min-available":"2")"));
  // A manifest that names a gang, in any dialect, is a member of it; musterd rejects a value that is no map.
  for (const char* names :
       {R"("metadata":{"labels":{"scheduling.x-k8s.io/pod-group":"g"}})",
        R"("metadata":{"annotations":{"pod-group-name":"g"}})", R"("spec":{"schedulingGroup":{"podGroupName":"g"}})"}) {
    const auto own =
        ExpectOk(PodsOf(absl::StrCat(R"({"kind":"Job","metadata":{"name":"j"},"spec":{"template":{)", names, "}}}")));
    EXPECT_FALSE(absl::StrContains(own.front(), "koordinator")) << own.front();
  }
  for (const char* odd :
       {R"({"kind":"Job","metadata":7,"spec":{"template":{"metadata":[],"spec":"x"}}})",
        R"({"kind":"Job","metadata":{"annotations":"x"},"spec":{"template":{"metadata":{"annotations":1}}}})"}) {
    EXPECT_TRUE(PodsOf(odd).ok()) << odd;
    EXPECT_FALSE(QueueOf(odd).ok()) << odd;
  }
  EXPECT_EQ(ExpectOk(PodsOf(R"({"kind":"Pod"})")).front(), R"({"kind":"Pod"})");
  EXPECT_FALSE(PodsOf(R"({"kind":"Job","spec":{}})").ok());
  const auto much = PodsOf(R"({"kind":"Job","spec":{"parallelism":"x","template":{}}})");
  EXPECT_TRUE(absl::StrContains(much.status().message(), "spec/parallelism is \"x\"")) << much.status();
}

}  // namespace
}  // namespace muster
