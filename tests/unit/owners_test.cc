// Gangs by owner (SPEC D-7).
#include "k8s-extender/dialects/owners.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "k8s-extender/dialects/dialects.h"

namespace muster {
namespace {

const std::vector<std::string> kAll = {"Job", "JobSet", "PyTorchJob", "TFJob", "MPIJob", "RayCluster"};

// The gang of a pod with those metadata besides its name, among owners of `kinds`.
GangMembership GangOf(const Json& metadata, const std::vector<std::string>& kinds = kAll) {
  Json pod = {{"metadata", {{"name", "p"}, {"namespace", "d"}, {"uid", "u"}}}, {"spec", Json::object()}};
  pod["metadata"].update(metadata);
  absl::StatusOr<PodDescription> read = ParsePod(pod);
  EXPECT_TRUE(read.ok()) << read.status();
  GroupByOwner(pod, kinds, &*read);
  return read->gang;
}
Json OwnedBy(const char* version, const char* kind, const char* name, bool controller = true) {
  return {{"ownerReferences", {{{"apiVersion", version}, {"kind", kind}, {"name", name}, {"controller", controller}}}}};
}

TEST(Owners, APodIsInItsControllersGang) {
  const GangMembership gang = GangOf(OwnedBy("batch/v1", "Job", "train"));
  EXPECT_EQ(gang.name, "job-train");
  EXPECT_EQ(gang.dialect, GangDialect::kOwner);
  EXPECT_FALSE(gang.declares_gang()) << "its owner says how large it is";
  EXPECT_EQ(GangOf(OwnedBy("kubeflow.org/v1", "PyTorchJob", "x")).name, "pytorchjob-x");
  EXPECT_EQ(GangOf(OwnedBy("ray.io/v1", "RayCluster", "x")).name, "raycluster-x");
}

TEST(Owners, NobodyElseIsGrouped) {
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

TEST(Owners, JobsOfJobsAreOne) {
  Json of_set = OwnedBy("batch/v1", "Job", "set-workers-0");
  of_set["labels"] = {{"jobset.sigs.k8s.io/jobset-name", "set"}};
  EXPECT_EQ(GangOf(of_set).name, "jobset-set");
  EXPECT_EQ(GangOf(of_set, {"Job"}).name, "job-set-workers-0");
  Json launcher = OwnedBy("batch/v1", "Job", "mpi-launcher");
  launcher["labels"] = {{"training.kubeflow.org/job-name", "mpi"}};
  EXPECT_EQ(GangOf(launcher).name, "mpijob-mpi");
}

TEST(Owners, OurOwnKeysCount) {
  Json pod = OwnedBy("batch/v1", "Job", "train");
  pod["annotations"] = {{"muster.dev/queue", "team"}, {"muster.dev/duration", "1h"}};
  const GangMembership gang = GangOf(pod);
  EXPECT_EQ(gang.declaration->queue, "team");
  EXPECT_EQ(gang.declaration->duration_ms, 3'600'000);
}

absl::StatusOr<GangObject> Read(const char* kind, const char* spec) {
  const Json object = {{"metadata", {{"name", "x"}, {"namespace", "d"}, {"uid", "u"}}},
                       {"spec", *ParseJson(spec, "spec")}};
  return ParseOwner(object, *FindOwnerKind(kind));
}

TEST(Owners, TheOwnerSaysHowManyAreOne) {
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
    const absl::StatusOr<GangObject> gang = Read(kind, spec);
    ASSERT_TRUE(gang.ok()) << gang.status();
    EXPECT_EQ(gang->declaration->min_member, least) << kind << " " << spec;
    EXPECT_EQ(gang->declaration->total_number, all) << kind << " " << spec;
    EXPECT_EQ(gang->dialect, GangDialect::kOwner);
  }
  EXPECT_EQ(Read("Job", "{}")->name, "job-x");
}

TEST(Owners, ACountThatIsNoneLeavesTheGangUninitialised) {
  const absl::StatusOr<GangObject> gang = Read("Job", R"({"parallelism":-1})");
  ASSERT_TRUE(gang.ok());
  EXPECT_FALSE(gang->declaration->min_member.has_value());
  EXPECT_EQ(gang->declaration->unreadable_minimum, "spec.parallelism: -1; expected a whole number from 0 to 1000000");
}

}  // namespace
}  // namespace muster
