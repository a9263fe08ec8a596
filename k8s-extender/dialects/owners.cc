#include "k8s-extender/dialects/owners.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/metadata.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr int64_t kMaxMembers = 1'000'000;
constexpr std::array<OwnerKind, 6> kOwnerKinds = {{{"Job", "batch", "v1", "jobs"},
                                                   {"JobSet", "jobset.x-k8s.io", nullptr, "jobsets"},
                                                   {"PyTorchJob", "kubeflow.org", "v1", "pytorchjobs"},
                                                   {"TFJob", "kubeflow.org", "v1", "tfjobs"},
                                                   {"MPIJob", "kubeflow.org", nullptr, "mpijobs"},
                                                   {"RayCluster", "ray.io", "v1", "rayclusters"}}};
// Labels of a pod that name the owner of its Job.
constexpr char kJobSetName[] = "jobset.sigs.k8s.io/jobset-name";
constexpr char kJobSetUid[] = "jobset.sigs.k8s.io/jobset-uid";
constexpr char kKubeflowName[] = "training.kubeflow.org/job-name";

std::string GangOf(absl::string_view kind, absl::string_view name) {
  return absl::StrCat(absl::AsciiStrToLower(kind), "-", name);
}

// Numbers of an owner's pods that run at the same time.
struct Count {
  int64_t all = 0;
  int64_t first = 0;  // without the pods that are created after others, or not needed any more
  std::string warning;
};

// Counts pods of an owner; remembers values that cannot be counts.
class Counter {
 public:
  // The whole number at holder[field]; `otherwise` if it is absent.
  int64_t Number(const Json& holder, const char* field, const std::string& path, int64_t otherwise) {
    const Json& value = Child(holder, field);
    if (value.is_null()) return otherwise;
    if (value.is_number_integer() && value >= 0 && value <= kMaxMembers) return value.get<int64_t>();
    problem_ = absl::StrCat(path, ".", field, ": ", value.dump(), "; expected a whole number from 0 to ", kMaxMembers);
    return 0;
  }
  Count Of(absl::string_view kind, const Json& object) {
    const Json& spec = Child(object, "spec");
    if (kind == "Job") return OfOneJob(spec, Child(object, "status"));
    if (kind == "JobSet") return OfJobSet(spec, Child(object, "status"));
    if (kind == "MPIJob") return OfMpiJob(spec);
    const int64_t all = kind == "RayCluster" ? OfRayCluster(spec) : OfReplicaSpecs(spec);
    return {all, all, ""};
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  // Pods of a Job's spec that run at the same time.
  int64_t OfJob(const Json& spec, const std::string& path) {
    const int64_t parallelism = Number(spec, "parallelism", path, 1);
    return std::min(parallelism, Number(spec, "completions", path, parallelism));
  }
  // The number of indexes in a list such as "1,3-5".
  static int64_t Indexes(absl::string_view text) {
    int64_t sum = 0;
    for (const absl::string_view range : absl::StrSplit(text, ',', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
      int64_t first = 0;
      int64_t last = 0;
      if (!absl::SimpleAtoi(ends.first, &first)) continue;
      if (ends.second.empty() || !absl::SimpleAtoi(ends.second, &last)) last = first;
      sum += std::clamp<int64_t>(last - first + 1, 0, kMaxMembers);
    }
    return sum;
  }
  // Pods that succeeded or failed for good are not created again: near its end a Job has fewer pods.
  Count OfOneJob(const Json& spec, const Json& status) {
    Count count;
    count.all = count.first = OfJob(spec, "spec");
    if (Child(spec, "completions").is_null()) return count;
    const int64_t left = Number(spec, "completions", "spec", 0) - Number(status, "succeeded", "status", 0) -
                         Indexes(StringOrEmpty(status, "failedIndexes"));
    count.first = std::min(count.all, std::max<int64_t>(1, left));
    return count;
  }
  // If the jobs are created one after the other, `first` counts those that wait for no other job. Once these have
  // succeeded, it counts the jobs that waited for them.
  Count OfJobSet(const Json& spec, const Json& status) {
    Count count;
    const bool in_order = StringOrEmpty(Child(spec, "startupPolicy"), "startupPolicyOrder") == "InOrder";
    const Json& jobs = Child(spec, "replicatedJobs");
    if (!jobs.is_array()) return count;
    const std::set<std::string> done_jobs = Over(jobs, Child(status, "replicatedJobsStatus"));
    bool some_wait = false;  // some job waits for another
    bool follows_job = false;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const std::string path = absl::StrCat("spec.replicatedJobs[", i, "]");
      const int64_t pods = Number(jobs[i], "replicas", path, 1) *
                           OfJob(Child(Child(jobs[i], "template"), "spec"), path + ".template.spec");
      count.all += pods;
      if (done_jobs.contains(StringOrEmpty(jobs[i], "name"))) continue;
      const bool waits = (in_order && follows_job) || WaitsFor(Child(jobs[i], "dependsOn"), done_jobs);
      if (!waits) count.first += pods;
      some_wait = some_wait || waits;
      follows_job = true;
    }
    count.first = std::max(count.first, std::min<int64_t>(1, count.all));
    if (some_wait) {
      count.warning = absl::StrCat(
          in_order ? "spec.startupPolicy" : "spec.replicatedJobs.dependsOn", ": the minimum is the ", count.first,
          " of ", count.all,
          " pods that wait for no others; the others start one by one when they arrive, or as a gang if the "
          "first ones have ended");
    }
    return count;
  }
  // Names of the jobs of which all replicas have succeeded.
  std::set<std::string> Over(const Json& jobs, const Json& statuses) {
    std::set<std::string> done_jobs;
    if (!statuses.is_array()) return done_jobs;
    for (const Json& each : statuses) {
      const std::string name = StringOrEmpty(each, "name");
      for (const Json& job : jobs) {
        if (name.empty() || StringOrEmpty(job, "name") != name) continue;
        const int64_t replicas = IntAt(job, "replicas").value_or(1);
        if (replicas > 0 && IntAt(each, "succeeded").value_or(0) >= replicas) done_jobs.insert(name);
      }
    }
    return done_jobs;
  }
  static bool WaitsFor(const Json& depends_on, const std::set<std::string>& done_jobs) {
    return depends_on.is_array() && absl::c_any_of(depends_on, [&](const Json& each) {
             return !done_jobs.contains(StringOrEmpty(each, "name"));
           });
  }
  Count OfMpiJob(const Json& spec) {
    const int64_t all = OfReplicaSpecs(spec);
    if (StringOrEmpty(spec, "launcherCreationPolicy") != "WaitForWorkersReady") return {all, all, ""};
    const Json& launcher = Child(Child(spec, "mpiReplicaSpecs"), "Launcher");
    const int64_t later = launcher.is_null() ? 0 : Number(launcher, "replicas", "spec.mpiReplicaSpecs.Launcher", 1);
    return {all, all - later, ""};
  }
  // Sums spec.pytorchReplicaSpecs.Worker.replicas and the like.
  int64_t OfReplicaSpecs(const Json& spec) {
    int64_t sum = 0;
    if (!spec.is_object()) return 0;
    for (const auto& [field, roles] : spec.items()) {
      if (!absl::EndsWith(field, "ReplicaSpecs") || !roles.is_object()) continue;
      for (const auto& [role, each] : roles.items()) {
        sum += Number(each, "replicas", absl::StrCat("spec.", field, ".", role), 1);
      }
    }
    return sum;
  }
  // The head, and the workers that exist from the start.
  int64_t OfRayCluster(const Json& spec) {
    int64_t sum = 1;
    const Json& groups = Child(spec, "workerGroupSpecs");
    if (!groups.is_array()) return sum;
    for (size_t i = 0; i < groups.size(); ++i) {
      const std::string path = absl::StrCat("spec.workerGroupSpecs[", i, "]");
      const int64_t least = Number(groups[i], "minReplicas", path, 0);
      sum += Number(groups[i], "replicas", path, least) * Number(groups[i], "numOfHosts", path, 1);
    }
    return sum;
  }

  std::string problem_;
};

struct Owner {
  std::string kind;
  std::string name;
  std::string uid;  // empty: unknown
};

// The owner of one of `kinds`; nullopt: none.
std::optional<Owner> OwnerOf(const Json& metadata, const std::vector<std::string>& kinds) {
  const Labels labels = StringMapAt(metadata, "labels");
  const auto groups_by = [&](const char* kind) { return absl::c_linear_search(kinds, kind); };
  if (const auto set = labels.find(kJobSetName); set != labels.end() && groups_by("JobSet")) {
    const auto uid = labels.find(kJobSetUid);
    return Owner{"JobSet", set->second, uid == labels.end() ? "" : uid->second};
  }
  const Json& owners = Child(metadata, "ownerReferences");
  if (!owners.is_array()) return std::nullopt;
  for (const Json& owner : owners) {
    if (!BoolOrFalse(owner, "controller")) continue;
    const std::string kind = StringOrEmpty(owner, "kind");
    // An MPIJob's launcher is owned by a Job of the MPIJob.
    const auto job = labels.find(kKubeflowName);
    if (kind == "Job" && job != labels.end() && groups_by("MPIJob")) return Owner{"MPIJob", job->second, ""};
    const OwnerKind* known = FindOwnerKind(kind);
    const std::string version = StringOrEmpty(owner, "apiVersion");
    const bool same = known != nullptr && version.substr(0, version.find('/')) == known->group;
    if (same && groups_by(known->kind)) return Owner{kind, StringOrEmpty(owner, "name"), StringOrEmpty(owner, "uid")};
  }
  return std::nullopt;
}

}  // namespace

absl::Span<const OwnerKind> OwnerKinds() { return kOwnerKinds; }

const OwnerKind* FindOwnerKind(absl::string_view kind) {
  const auto found = absl::c_find_if(kOwnerKinds, [&](const OwnerKind& each) { return kind == each.kind; });
  return found == kOwnerKinds.end() ? nullptr : &*found;
}

GangOwner FindGangOwner(absl::string_view gang) {
  for (const OwnerKind& kind : kOwnerKinds) {
    if (absl::ConsumePrefix(&gang, GangOf(kind.kind, ""))) return {&kind, std::string(gang)};
  }
  return {};
}

const OwnerKind* GroupByOwner(const Json& pod, const std::vector<std::string>& kinds, PodDescription* out) {
  if (kinds.empty() || out->gang.in_gang() || !out->gang.problem.none()) return nullptr;
  const Json& metadata = Child(pod, "metadata");
  const std::optional<Owner> owner = OwnerOf(metadata, kinds);
  if (!owner.has_value() || !IsSubdomain(GangOf(owner->kind, owner->name))) return nullptr;
  out->gang.name = GangOf(owner->kind, owner->name);
  out->gang.dialect = GangDialect::kOwner;
  out->gang.owner_uid = owner->uid;
  ReadOwnKeys(StringMapAt(metadata, "annotations"), StringMapAt(metadata, "labels"), &out->gang);
  return FindOwnerKind(owner->kind);
}

absl::StatusOr<GangObject> ParseOwner(const Json& object, const OwnerKind& kind) {
  if (!object.is_object()) return absl::InvalidArgumentError(absl::StrCat(kind.kind, ": expected an object"));
  GangObject out;
  out.dialect = GangDialect::kOwner;
  const Json& metadata = Child(object, "metadata");
  const std::string name = StringOrEmpty(metadata, "name");
  out.name = GangOf(kind.kind, name);
  out.name_space = StringOrEmpty(metadata, "namespace");
  out.uid = StringOrEmpty(metadata, "uid");
  if (name.empty() || !IsSubdomain(out.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kind.kind, ".metadata.name: ", Quoted(name), "; expected one of at most 240 characters"));
  }
  out.created_ms = TimeAt(metadata, "creationTimestamp");
  GangMembership membership;
  ReadOwnKeys(StringMapAt(metadata, "annotations"), StringMapAt(metadata, "labels"), &membership);
  out.declaration = std::move(membership.declaration);
  Counter counter;
  const Count count = counter.Of(kind.kind, object);
  const Json& policy = Child(Child(Child(object, "spec"), "runPolicy"), "schedulingPolicy");
  const int64_t least = counter.Number(policy, "minAvailable", "spec.runPolicy.schedulingPolicy", count.first);
  if (!counter.problem().empty() || count.all > kMaxMembers) {
    out.declaration.Mutable().unreadable_minimum =
        counter.problem().empty()
            ? absl::StrCat(kind.kind, " ", name, " has ", count.all, " pods; expected at most ", kMaxMembers)
            : counter.problem();
    return out;
  }
  out.declaration.Mutable().min_member = static_cast<int32_t>(std::min(least, count.first));
  out.declaration.Mutable().total_number = static_cast<int32_t>(count.all);
  if (!count.warning.empty()) out.declaration.Mutable().warnings.push_back(count.warning);
  return out;
}

}  // namespace muster
