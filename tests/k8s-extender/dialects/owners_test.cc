// Gangs by owner (SPEC D-7).
#include "k8s-extender/dialects/owners.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "k8s-extender/dialects/dialects.h"
#include "tests/support/expect_ok.h"

namespace muster {
namespace {

const std::vector<std::string> kAll = {"Job", "JobSet", "PyTorchJob", "TFJob", "MPIJob", "RayCluster"};

// The gang of a pod with this metadata besides its name, if owners of `kinds` declare gangs.
GangMembership GangOf(const Json& metadata, const std::vector<std::string>& kinds = kAll) {
  Json pod = {{"metadata", {{"name", "p"}, {"namespace", "d"}, {"uid", "u"}}}, {"spec", Json::object()}};
  pod["metadata"].update(metadata);
  PodDescription read = ExpectOk(ParsePod(pod));
  GroupByOwner(pod, kinds, &read);
  return read.gang;
}
Json OwnedBy(const char* version, const char* kind, const char* name, bool controller = true) {
  return {{"ownerReferences", {{{"apiVersion", version}, {"kind", kind}, {"name", name}, {"controller", controller}}}}};
}

TEST(Owners, OwnedPod_IsInGangOfController) {
  const GangMembership gang = GangOf(OwnedBy("batch/v1", "Job", "train"));
  EXPECT_EQ(gang.name, "job-train");
  EXPECT_EQ(gang.dialect, GangDialect::kOwner);
  EXPECT_FALSE(gang.declares_gang()) << "its owner says how large it is";
  EXPECT_EQ(GangOf(OwnedBy("kubeflow.org/v1", "PyTorchJob", "x")).name, "pytorchjob-x");
  EXPECT_EQ(GangOf(OwnedBy("ray.io/v1", "RayCluster", "x")).name, "raycluster-x");
}

TEST(Owners, OtherPods_NotGrouped) {
  EXPECT_FALSE(GangOf(OwnedBy("batch/v1", "Job", "train"), {}).in_gang()) << "it is off unless asked for";
  EXPECT_FALSE(GangOf(OwnedBy("batch/v1", "Job", "train"), {"PyTorchJob"}).in_gang());
  EXPECT_FALSE(GangOf(OwnedBy("apps/v1", "ReplicaSet", "web")).in_gang());
  EXPECT_FALSE(GangOf(OwnedBy("example.com/v1", "Job", "train")).in_gang()) << "another's Job";
  EXPECT_FALSE(GangOf(OwnedBy("batch/v1", "Job", "train", /*controller=*/false)).in_gang());
  EXPECT_FALSE(GangOf(Json::object()).in_gang());
  Json named = OwnedBy("batch/v1", "Job", "train");
  named["annotations"] = {{"gang.scheduling.koordinator.sh/name", "own"}};
  EXPECT_EQ(GangOf(named).name, "own") << "what the pod says itself goes first";
}

TEST(Owners, JobOfLargerOwner_JoinsItsGang) {
  Json of_set = OwnedBy("batch/v1", "Job", "set-workers-0");
  of_set["labels"] = {{"jobset.sigs.k8s.io/jobset-name", "set"}};
  EXPECT_EQ(GangOf(of_set).name, "jobset-set");
  EXPECT_EQ(GangOf(of_set, {"Job"}).name, "job-set-workers-0");
  Json launcher = OwnedBy("batch/v1", "Job", "mpi-launcher");
  launcher["labels"] = {{"training.kubeflow.org/job-name", "mpi"}};
  EXPECT_EQ(GangOf(launcher).name, "mpijob-mpi");
}

// The UID identifies the owner among all owners of one name, if the pod has it.
TEST(Owners, OwnerUid_TakenFromPod) {
  Json metadata = OwnedBy("batch/v1", "Job", "train");
  metadata["ownerReferences"][0]["uid"] = "u-job";
  EXPECT_EQ(GangOf(metadata).owner_uid, "u-job");
  EXPECT_EQ(GangOf(OwnedBy("batch/v1", "Job", "train")).owner_uid, "");
  Json of_set = metadata;
  of_set["labels"] = {{"jobset.sigs.k8s.io/jobset-name", "set"}};
  EXPECT_EQ(GangOf(of_set).owner_uid, "") << "that of the Job is not the set's";
  of_set["labels"]["jobset.sigs.k8s.io/jobset-uid"] = "u-set";
  EXPECT_EQ(GangOf(of_set).owner_uid, "u-set");
  Json launcher = metadata;
  launcher["labels"] = {{"training.kubeflow.org/job-name", "mpi"}};
  EXPECT_EQ(GangOf(launcher).owner_uid, "");
}

TEST(Owners, FindGangOwner_InverseOfGangName) {
  const auto owner = [](const char* gang) {
    const GangOwner found = FindGangOwner(gang);
    return found.kind == nullptr ? "" : absl::StrCat(found.kind->kind, " ", found.name);
  };
  EXPECT_EQ(owner("job-train"), "Job train");
  EXPECT_EQ(owner("jobset-job-a"), "JobSet job-a");
  EXPECT_EQ(owner("rayset-a"), "");
  EXPECT_EQ(owner(""), "");
}

TEST(Owners, MusterKeys_AreRead) {
  Json pod = OwnedBy("batch/v1", "Job", "train");
  pod["annotations"] = {{"muster.dev/queue", "team"}, {"muster.dev/duration", "1h"}};
  const GangMembership gang = GangOf(pod);
  EXPECT_EQ(gang.declaration->queue, "team");
  EXPECT_EQ(gang.declaration->duration_ms, 3'600'000);
}

absl::StatusOr<GangObject> Read(const char* kind, const char* spec, const char* status = "{}") {
  const Json object = {{"metadata", {{"name", "x"}, {"namespace", "d"}, {"uid", "u"}}},
                       {"spec", *ParseJson(spec, "spec")},
                       {"status", *ParseJson(status, "status")}};
  return ParseOwner(object, *FindOwnerKind(kind));
}

TEST(Owners, FailedIndexes_ReduceMinimum) {
  const auto least = [](const char* failed) {
    const std::string status = absl::StrCat(R"({"succeeded":1,"failedIndexes":")", failed, "\"}");
    return *Read("Job", R"({"parallelism":9,"completions":9})", status.c_str())->declaration->min_member;
  };
  EXPECT_EQ(least(""), 8);
  EXPECT_EQ(least("0"), 7);
  EXPECT_EQ(least("0,3-5"), 4);
  EXPECT_EQ(least("0-8"), 1);
}

TEST(Owners, OwnerSpec_DecidesMinimumAndTotal) {
  const struct {
    const char* kind;
    const char* spec;
    int32_t least;
    int32_t all;
  } cases[] = {
      {"Job", "{}", 1, 1},
      {"Job", R"({"parallelism":8})", 8, 8},
      {"Job", R"({"parallelism":8,"completions":3})", 3, 3},
      {"JobSet",
       R"({"replicatedJobs":[{"replicas":2,"template":{"spec":{"parallelism":3}}},{"template":{"spec":{}}}]})", 7, 7},
      {"PyTorchJob", R"({"pytorchReplicaSpecs":{"Master":{},"Worker":{"replicas":3}}})", 4, 4},
      {"PyTorchJob", R"({"pytorchReplicaSpecs":{"Worker":{"replicas":6}},
                         "runPolicy":{"schedulingPolicy":{"minAvailable":4}}})",
       4, 6},
      {"TFJob", R"({"tfReplicaSpecs":{"PS":{"replicas":2},"Worker":{"replicas":5}}})", 7, 7},
      {"MPIJob", R"({"mpiReplicaSpecs":{"Launcher":{"replicas":1},"Worker":{"replicas":16}}})", 17, 17},
      {"RayCluster", R"({"workerGroupSpecs":[{"replicas":2,"numOfHosts":4},{"minReplicas":3}]})", 12, 12},
  };
  for (const auto& [kind, spec, least, all] : cases) {
    const GangObject gang = ExpectOk(Read(kind, spec));
    EXPECT_EQ(gang.declaration->min_member, least) << kind << " " << spec;
    EXPECT_EQ(gang.declaration->total_number, all) << kind << " " << spec;
    EXPECT_EQ(gang.dialect, GangDialect::kOwner);
  }
  EXPECT_EQ(Read("Job", "{}")->name, "job-x");
}

// Succeeded pods do not return: the last wave is smaller than the others.
TEST(Owners, JobMinimum_IsRemainingCompletions) {
  const struct {
    const char* spec;
    const char* status;
    int32_t least;
  } cases[] = {
      {R"({"parallelism":4,"completions":4})", R"({"succeeded":3})", 1},
      {R"({"parallelism":4,"completions":4})", R"({"succeeded":null})", 4},
      {R"({"parallelism":4,"completions":4})", R"({"succeeded":4})", 1},
      {R"({"parallelism":4,"completions":10,"completionMode":"Indexed"})", R"({"succeeded":3})", 4},
      {R"({"parallelism":4,"completions":10,"completionMode":"Indexed"})", R"({"succeeded":8})", 2},
      {R"({"parallelism":4})", R"({"succeeded":3})", 4},
      {R"({"parallelism":0,"completions":4})", R"({"succeeded":3})", 0},
  };
  for (const auto& [spec, status, least] : cases) {
    EXPECT_EQ(ExpectOk(Read("Job", spec, status)).declaration->min_member, least) << spec << " " << status;
  }
  EXPECT_EQ(Read("Job", cases[0].spec, cases[0].status)->declaration->total_number, 4);
  EXPECT_EQ(Read("Job", cases[0].spec, R"({"succeeded":"3"})")->declaration->unreadable_minimum,
            "status.succeeded: \"3\"; expected a whole number from 0 to 1000000");
}

// Pods that are created only after others run are not part of the minimum; otherwise the gang would wait forever.
TEST(Owners, LaterPods_NotInMinimum) {
  const std::string jobs = R"("replicatedJobs":[{"replicas":2,"template":{"spec":{"parallelism":3}}},
                                                {"template":{"spec":{"parallelism":5}}}]})";
  const auto read = [](const std::string& spec) { return *Read("JobSet", spec.c_str())->declaration; };
  const GangDeclaration in_order = read(R"({"startupPolicy":{"startupPolicyOrder":"InOrder"},)" + jobs);
  EXPECT_EQ(in_order.min_member, 6);
  EXPECT_EQ(in_order.total_number, 11);
  EXPECT_EQ(
      in_order.warnings,
      std::vector<std::string>{"spec.startupPolicy: the minimum is the 6 of 11 pods that wait for no others; the "
                               "others start one by one when they arrive, or as a gang if the first ones have ended"});
  const GangDeclaration any_order = read(R"({"startupPolicy":{"startupPolicyOrder":"AnyOrder"},)" + jobs);
  EXPECT_EQ(any_order.min_member, 11);
  EXPECT_TRUE(any_order.warnings.empty());
  const GangDeclaration depends = read(R"({"replicatedJobs":[
      {"name":"a","template":{"spec":{"parallelism":2}}},{"name":"b","template":{"spec":{"parallelism":3}}},
      {"name":"c","dependsOn":[{"name":"a","status":"Ready"}],"template":{"spec":{"parallelism":4}}},
      {"name":"d","dependsOn":[],"template":{"spec":{"parallelism":1}}}]})");
  EXPECT_EQ(depends.min_member, 6);
  EXPECT_EQ(depends.total_number, 10);
  ASSERT_EQ(depends.warnings.size(), 1U);
  EXPECT_TRUE(absl::StrContains(depends.warnings[0], "spec.replicatedJobs.dependsOn")) << depends.warnings[0];
  // After the awaited pods have succeeded, the pods that waited are a gang of their own.
  const char* of_two = R"({"replicatedJobs":[{"name":"init","replicas":2,"template":{"spec":{"parallelism":2}}},
      {"name":"train","dependsOn":[{"name":"init","status":"Complete"}],"template":{"spec":{"parallelism":3}}}]})";
  const auto with = [&](const char* succeeded) {
    const std::string status =
        absl::StrCat(R"({"replicatedJobsStatus":[{"name":"init","succeeded":)", succeeded, "}]}");
    return *Read("JobSet", of_two, status.c_str())->declaration->min_member;
  };
  EXPECT_EQ(with("0"), 4);
  EXPECT_EQ(with("1"), 4);
  EXPECT_EQ(with("2"), 3);

  const auto mpi = [](const std::string& rest) {
    return *Read("MPIJob", (R"({"mpiReplicaSpecs":{"Launcher":{},"Worker":{"replicas":16}})" + rest + "}").c_str())
                ->declaration;
  };
  EXPECT_EQ(mpi("").min_member, 17);
  EXPECT_EQ(mpi(R"(,"launcherCreationPolicy":"AtStartup")").min_member, 17);
  EXPECT_EQ(mpi(R"(,"launcherCreationPolicy":"WaitForWorkersReady")").min_member, 16);
  EXPECT_EQ(mpi(R"(,"launcherCreationPolicy":"WaitForWorkersReady")").total_number, 17);
  EXPECT_EQ(mpi(R"(,"launcherCreationPolicy":"WaitForWorkersReady",
                   "runPolicy":{"schedulingPolicy":{"minAvailable":17}})")
                .min_member,
            16);
}

TEST(Owners, InvalidCount_LeavesGangUninitialised) {
  const GangObject gang = ExpectOk(Read("Job", R"({"parallelism":-1})"));
  EXPECT_FALSE(gang.declaration->min_member.has_value());
  EXPECT_EQ(gang.declaration->unreadable_minimum, "spec.parallelism: -1; expected a whole number from 0 to 1000000");
}

}  // namespace
}  // namespace muster
