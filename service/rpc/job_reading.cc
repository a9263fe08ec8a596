#include "service/rpc/job_reading.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "service/rpc/reading.h"

namespace muster {
namespace {

// Reads the gang and its members from manifests: pods of one gang, and its PodGroup.
void TakeManifests(const Facts& facts, bool gang_is_given, const std::string& field, Violations* violations,
                   SubmitGang* out) {
  if (!facts.nodes.empty()) violations->Add(field, "has a Node; expected Pods and a PodGroup");
  if (facts.gangs.size() > 1) violations->Add(field, "has several PodGroups; expected those of one gang");
  const PodDescription* first = facts.pods.empty() ? nullptr : &facts.pods.front();
  if (!gang_is_given) {
    if (!facts.gangs.empty()) {
      out->name_space = facts.gangs.front().name_space;
      out->name = facts.gangs.front().name;
      out->declaration = facts.gangs.front().declaration;
    } else if (first != nullptr) {
      out->name_space = first->name_space;
      out->name = first->gang.name;
      out->declaration = first->gang.declaration;
    }
    if (out->name.empty()) violations->Add(field, "name no gang; expected a PodGroup, or Pods that belong to a gang");
    if (!out->declaration->min_member.has_value() && out->declaration->subgroups.empty()) {
      violations->Add(field, out->declaration->unreadable_minimum.empty()
                                 ? "declare no minimum; expected spec.minMember or a min-available annotation"
                                 : out->declaration->unreadable_minimum);
    }
  }
  for (const PodDescription& pod : facts.pods) {
    if (!pod.node_name.empty()) {
      violations->Add(field,
                      absl::StrCat("Pod ", pod.name, ": has spec.nodeName; expected a pod that has no node yet"));
    } else if (!pod.gang.problem.none()) {
      violations->Add(field, absl::StrCat("Pod ", pod.name, ": ", pod.gang.problem.text));
    } else if (pod.gang.in_gang() && (pod.gang.name != out->name || pod.name_space != out->name_space)) {
      violations->Add(field, absl::StrCat("Pod ", pod.name_space, "/", pod.name, " belongs to gang ", pod.gang.name,
                                          "; expected ", out->name_space, "/", out->name));
    }
    out->pods.push_back(pod);
  }
}

}  // namespace

void ReadJob(const v1::SubmitGangRequest& request, const std::string& path, const ManifestReader& manifests,
             int64_t now_ms, Violations* violations, SubmitGang* out) {
  const bool gang_is_given = request.has_gang();
  if (gang_is_given || request.manifests().empty()) {
    ReadGangName(request.gang(), path + "gang", violations, &out->name_space, &out->name);
    ReadDeclaration(request.gang(), path + "gang", violations, &out->declaration.Mutable());
    CheckGroup(*out->declaration, absl::StrCat(out->name_space, "/", out->name), path + "gang", violations);
  }
  if (!request.manifests().empty()) {
    const std::string field = path + "manifests";
    Facts facts;
    for (int i = 0; i < request.manifests_size() && manifests != nullptr; ++i) {
      const std::string of_it = absl::StrCat(field, "[", i, "]");
      const size_t before = facts.pods.size();
      const absl::Status read = manifests(request.manifests(i), now_ms, &facts);
      if (!read.ok()) violations->Add(of_it, std::string(read.message()));
      for (size_t pod = before; pod < facts.pods.size() && read.ok(); ++pod) {
        const std::string& invalid = facts.pods[pod].invalid;
        if (!invalid.empty()) violations->Add(of_it, absl::StrCat("pod ", facts.pods[pod].name, ": ", invalid));
      }
    }
    if (!violations->none()) return;
    TakeManifests(facts, gang_is_given, field, violations, out);
  }
  ReadMembers(request, path, out->id, now_ms, violations, out);
}

void CheckMinimum(const v1::SubmitGangRequest& request, const std::string& path, const SubmitGang& job,
                  Violations* violations) {
  if (!violations->none()) return;
  const SubgroupParseResult subgroups = ParseSubgroups(job.declaration->subgroups, job.declaration->min_member);
  const auto add = [&](absl::string_view field, absl::string_view text) {
    if (request.has_gang()) return violations->Add(absl::StrCat(path, "gang.", field), text);
    violations->Add(path + "manifests", absl::StrCat(field, ": ", text));
  };
  if (!subgroups.problem.empty()) return add("subgroups", subgroups.problem);
  for (const PodDescription& pod : job.pods) {
    if (subgroups.tree.empty() || subgroups.tree.FindLeaf(pod.gang.subgroup) >= 0) continue;
    return violations->Add(path + "manifests", absl::StrCat("pod ", pod.name, ": subgroup \"", pod.gang.subgroup,
                                                            "\" is not in the gang, or has children"));
  }
  const int64_t least = subgroups.tree.empty() ? job.declaration->min_member.value_or(0) : subgroups.tree.Least();
  if (least >= 1 && static_cast<size_t>(least) <= job.pods.size()) return;
  add("min_member", absl::StrCat(least, " of ", job.pods.size(), " pods; expected 1 to ", job.pods.size()));
}

void AddFutureMembers(SubmitGang* job) {
  const SubgroupParseResult subgroups = ParseSubgroups(job->declaration->subgroups, job->declaration->min_member);
  for (const Subgroup& each : subgroups.tree.nodes) {
    if (!each.future_template.has_value()) continue;
    const auto exist = static_cast<int32_t>(
        absl::c_count_if(job->pods, [&](const PodDescription& pod) { return pod.gang.subgroup == each.name; }));
    for (int32_t i = exist; i < each.minimum; ++i) {
      PodDescription pod;
      pod.name = absl::StrCat(job->name, "-", each.name, "-", i);
      pod.uid = absl::StrCat(job->id, "/to-come/", pod.name);
      pod.gang.subgroup = each.name;
      pod.shape = *each.future_template;
      job->pods.push_back(std::move(pod));
    }
  }
}

}  // namespace muster
