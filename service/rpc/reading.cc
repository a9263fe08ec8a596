#include "service/rpc/reading.h"

#include <google/protobuf/util/field_mask_util.h>

#include <iterator>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "service/rpc/enums.h"
#include "service/rpc/times.h"
#include "state/base/quantity.h"
#include "state/base/text.h"
#include "state/model/queue.h"

namespace muster {
namespace {

constexpr size_t kMaxText = 253;
constexpr int32_t kMaxMembers = 100'000;
// Limit for the members of one submission together: each carries its shape and the gang's declaration.
constexpr size_t kMaxMemberBytes = 64 << 20;
constexpr int64_t kMaxWaitMs = int64_t{366} * 24 * 3600 * 1000;

void ReadName(const std::string& name, const std::string& field, Violations* violations) {
  if (IsSubdomain(name)) return;
  violations->Add(
      field, name.empty()
                 ? "is empty; expected a name"
                 : absl::StrCat(Quoted(name), " is not an RFC 1123 subdomain: a-z, 0-9, '-' and '.', at most 253"));
}

void ReadNamespace(const std::string& from, const std::string& field, Violations* violations, std::string* out,
                   absl::string_view fallback = "default") {
  *out = from.empty() ? std::string(fallback) : from;
  ReadName(*out, field, violations);
}

// True for text without control characters that is not empty.
bool IsIdentity(const std::string& text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  return !text.empty() && text.size() <= kMaxText && absl::c_none_of(text, is_control);
}

std::string ReadLabels(const google::protobuf::Map<std::string, std::string>& labels, const std::string& path,
                       Violations* violations) {
  return PackLabels(ReadLabelMap(labels, path, violations));
}

}  // namespace

void CheckLabelValue(const std::string& value, const std::string& field, Violations* violations) {
  if (IsLabelValue(value)) return;
  violations->Add(field, absl::StrCat(Quoted(value),
                                      "; expected the value of a label: at most 63 letters, digits, '-', "
                                      "'_' and '.', with a letter or digit at both ends"));
}

Labels ReadLabelMap(const google::protobuf::Map<std::string, std::string>& labels, const std::string& path,
                    Violations* violations) {
  for (const auto& [key, value] : labels) {
    if (IsLabelKey(key)) {
      CheckLabelValue(value, At(path, key), violations);
    } else {
      violations->Add(path, absl::StrCat(Quoted(key), "; expected the key of a label"));
    }
  }
  return Labels(labels.begin(), labels.end());
}

ResourceList ReadAmounts(const google::protobuf::Map<std::string, std::string>& amounts, const std::string& path,
                         Violations* violations, Rounding rounding) {
  ResourceList out;
  for (const auto& [name, text] : amounts) {
    if (!IsLabelKey(name)) {
      violations->Add(path,
                      absl::StrCat(Quoted(name), "; expected the name of a resource, like cpu or nvidia.com/gpu"));
      continue;
    }
    const absl::StatusOr<int64_t> amount =
        ParseQuantity(text, name == "cpu" ? QuantityUnit::kMilli : QuantityUnit::kWhole, rounding);
    if (!amount.ok()) {
      violations->Add(At(path, name), std::string(amount.status().message()));
    } else if (*amount > kMaxAmount) {
      violations->Add(At(path, name), absl::StrCat(Quoted(text), " is more than Muster can count (2^53)"));
    } else {
      out[name] = *amount;
    }
  }
  return out;
}

void ReadGangName(const v1::GangSpec& gang, const std::string& path, Violations* violations, std::string* name_space,
                  std::string* name) {
  ReadNamespace(gang.namespace_(), At(path, "namespace"), violations, name_space);
  ReadName(gang.name(), At(path, "name"), violations);
  *name = gang.name();
}

namespace {

TopologyRule ReadTopology(const v1::Topology& topology, const std::string& path, Violations* violations) {
  const auto key = [&](const std::string& value, const char* field) {
    if (!value.empty() && !IsLabelKey(value)) {
      violations->Add(At(path, field), absl::StrCat(Quoted(value), "; expected the key of a label of nodes"));
    }
    return value;
  };
  return {key(topology.required(), "required"), key(topology.preferred(), "preferred"),
          key(topology.spread(), "spread")};
}

PodTemplate ReadTemplate(const v1::MemberTemplate& members, const std::string& path, Violations* violations) {
  v1::PodShape shape;
  *shape.mutable_requests() = members.requests();
  *shape.mutable_node_selector() = members.node_selector();
  *shape.mutable_tolerations() = members.tolerations();
  PodTemplate out;
  ReadShape(shape, path, /*name_space=*/"", violations, &out);
  return out;
}

void ParseSubgroups(const v1::GangSpec& gang, const std::string& path, Violations* violations, GangDeclaration* out) {
  for (int i = 0; i < gang.subgroups_size() && static_cast<size_t>(i) <= kMaxSubgroups; ++i) {
    const v1::SubgroupSpec& subgroup = gang.subgroups(i);
    const std::string at = absl::StrCat(At(path, "subgroups"), "[", i, "]");
    ReadName(subgroup.name(), At(at, "name"), violations);
    SubgroupDeclaration& subgroup_spec = out->subgroups.emplace_back();
    subgroup_spec.name = subgroup.name();
    subgroup_spec.parent = subgroup.parent();
    if (subgroup.has_min_member()) subgroup_spec.minimum = subgroup.min_member();
    subgroup_spec.topology = ReadTopology(subgroup.topology(), At(at, "topology"), violations);
    if (subgroup.has_members()) subgroup_spec.members = ReadTemplate(subgroup.members(), At(at, "members"), violations);
  }
  const SubgroupParseResult reading = muster::ParseSubgroups(out->subgroups, out->min_member);
  if (!reading.problem.empty()) violations->Add(At(path, "subgroups"), reading.problem);
}

}  // namespace

void ReadDeclaration(const v1::GangSpec& gang, const std::string& path, Violations* violations, GangDeclaration* out) {
  if (gang.min_member() < 0) {
    violations->Add(At(path, "min_member"), absl::StrCat(gang.min_member(), "; expected 0 or more"));
  }
  // With subgroups, no minimum means all of them.
  if (gang.subgroups_size() == 0 || gang.min_member() > 0) out->min_member = gang.min_member();
  ParseSubgroups(gang, path, violations, out);
  if (const TopologyRule rule = ReadTopology(gang.topology(), At(path, "topology"), violations); !rule.none()) {
    out->topology = rule;
  }
  if (gang.has_total_number()) {
    if (gang.total_number() < gang.min_member()) {
      violations->Add(At(path, "total_number"),
                      absl::StrCat(gang.total_number(), "; expected at least min_member (", gang.min_member(), ")"));
    }
    out->total_number = gang.total_number();
  }
  const int64_t wait_ms =
      ReadDuration(gang.wait_timeout(), kMaxWaitMs, At(path, "wait_timeout"), "the default", violations);
  if (wait_ms > 0) out->wait_time_ms = wait_ms;
  out->mode = Read(gang.mode(), At(path, "mode"), violations);
  out->match_policy = Read(gang.match_policy(), At(path, "match_policy"), violations);
  out->on_timeout = Read(gang.on_timeout(), At(path, "on_timeout"), violations);
  out->on_member_failure = Read(gang.on_member_failure(), At(path, "on_member_failure"), violations);
  if (!gang.min_resources().empty()) {
    out->min_resources = ReadAmounts(gang.min_resources(), At(path, "min_resources"), violations);
  }
  if (gang.has_priority()) out->priority = gang.priority();
  if (!gang.queue().empty()) {
    if (!IsQueueName(gang.queue())) {
      violations->Add(At(path, "queue"), absl::StrCat(Quoted(gang.queue()), "; expected ", kQueueNames));
    }
    out->queue = gang.queue();
  }
  if (gang.has_preemptible()) out->preemptible = gang.preemptible();
  const int64_t duration_ms =
      ReadDuration(gang.expected_duration(), kMaxWaitMs, At(path, "expected_duration"), "not known", violations);
  if (duration_ms > 0) out->duration_ms = duration_ms;
  if (static_cast<size_t>(gang.group_size()) > kMaxGroupGangs) {
    violations->Add(At(path, "group"), absl::StrCat(gang.group_size(), " gangs; expected at most ", kMaxGroupGangs));
    return;
  }
  for (int i = 0; i < gang.group_size(); ++i) {
    const std::string& id = gang.group(i);
    const size_t slash = id.find('/');
    if (slash == std::string::npos || !IsSubdomain(id.substr(0, slash)) || !IsSubdomain(id.substr(slash + 1))) {
      violations->Add(absl::StrCat(At(path, "group"), "[", i, "]"),
                      absl::StrCat(Quoted(id), "; expected namespace/name"));
    }
    out->groups.push_back(id);
  }
}

namespace {

bool IsWholeMask(const google::protobuf::FieldMask& mask) {
  return mask.paths().empty() || (mask.paths_size() == 1 && mask.paths(0) == "*");
}

}  // namespace

std::vector<GangField> ReadGangMask(const google::protobuf::FieldMask& mask, const std::string& field,
                                    Violations* violations) {
  static constexpr std::pair<absl::string_view, GangField> kFields[] = {
      {"min_member", GangField::kMinMember},
      {"total_number", GangField::kTotalNumber},
      {"wait_timeout", GangField::kWaitTime},
      {"mode", GangField::kMode},
      {"match_policy", GangField::kMatchPolicy},
      {"on_timeout", GangField::kOnTimeout},
      {"on_member_failure", GangField::kOnMemberFailure},
      {"min_resources", GangField::kMinResources},
      {"priority", GangField::kPriority},
      {"group", GangField::kGroups},
      {"subgroups", GangField::kSubgroups},
      {"topology", GangField::kTopology},
      {"queue", GangField::kQueue},
      {"preemptible", GangField::kPreemptible},
      {"expected_duration", GangField::kDuration}};
  std::vector<GangField> out;
  if (IsWholeMask(mask)) return out;
  for (int i = 0; i < mask.paths_size() && !violations->full(); ++i) {
    const std::string& path = mask.paths(i);
    if (path == "namespace" || path == "name") continue;  // identify the gang
    const auto found = absl::c_find_if(kFields, [&](const auto& each) { return each.first == path; });
    if (found != std::end(kFields)) {
      out.push_back(found->second);
    } else {
      violations->Add(absl::StrCat(field, ".paths[", i, "]"),
                      absl::StrCat(Quoted(path), "; expected a field of GangSpec, like min_member, or *"));
    }
  }
  if (out.empty() && violations->none()) {
    violations->Add(field, "names no field to replace; expected a field of GangSpec besides namespace and name, or *");
  }
  return out;
}

v1::GangSpec MaskGang(const v1::GangSpec& gang, const google::protobuf::FieldMask& mask) {
  if (IsWholeMask(mask)) return gang;
  v1::GangSpec out;
  google::protobuf::util::FieldMaskUtil::MergeMessageTo(gang, mask, {}, &out);
  out.set_namespace_(gang.namespace_());
  out.set_name(gang.name());
  return out;
}

void CheckGroup(const GangDeclaration& gang, const std::string& id, const std::string& path, Violations* violations) {
  if (gang.groups.empty() || absl::c_linear_search(gang.groups, id) || !violations->none()) return;
  violations->Add(At(path, "group"), absl::StrCat("does not name ", id,
                                                  "; expected all gangs of the group, itself "
                                                  "included"));
}

void ReadPod(const v1::PodFacts& pod, const std::string& path, int64_t now_ms, Violations* violations,
             PodDescription* out, absl::string_view name_space) {
  if (!IsIdentity(pod.uid())) {
    violations->Add(At(path, "uid"),
                    absl::StrCat(Quoted(pod.uid()), "; expected an identity that is never used again, of 1 to ",
                                 kMaxText, " bytes without control characters"));
  }
  out->uid = pod.uid();
  ReadNamespace(pod.namespace_(), At(path, "namespace"), violations, &out->name_space, name_space);
  ReadName(pod.name(), At(path, "name"), violations);
  out->name = pod.name();
  const int64_t created_ms = ReadTime(pod.create_time(), At(path, "create_time"), violations);
  out->created_ms = created_ms > 0 ? created_ms : now_ms;
  out->priority = pod.priority();
  out->scheduler_name = pod.scheduler_name();
  if (pod.node_name().empty()) {
    ReadShape(pod.shape(), At(path, "shape"), out->name_space, violations, &out->shape.Mutable());
  } else {
    // The pod has its node: its usage matters, its constraints are no longer checked.
    Violations ignored;
    ReadShape(pod.shape(), At(path, "shape"), out->name_space, &ignored, &out->shape.Mutable());
    if (!ignored.none()) {
      PodTemplate has;
      has.host_ports = out->shape->host_ports;
      out->shape.Mutable() = has;
    }
    out->shape.Mutable().requests = ReadAmounts(pod.shape().requests(), At(path, "shape.requests"), violations);
  }
  out->labels = ReadLabels(pod.labels(), At(path, "labels"), violations);
  if (!pod.gang().empty()) ReadName(pod.gang(), At(path, "gang"), violations);
  out->gang.name = pod.gang();
  out->gang.subgroup = pod.subgroup();
  out->gang.dialect = GangDialect::kApi;
  if (pod.has_declaration()) {
    if (pod.gang().empty())
      violations->Add(At(path, "gang"), "is empty; expected the gang that `declaration` declares");
    out->gang.declares = true;
    ReadDeclaration(pod.declaration(), At(path, "declaration"), violations, &out->gang.declaration.Mutable());
    CheckGroup(*out->gang.declaration, absl::StrCat(out->name_space, "/", out->gang.name), At(path, "declaration"),
               violations);
    if (out->gang.declaration->subgroups.empty() && !pod.subgroup().empty()) {
      violations->Add(At(path, "subgroup"), absl::StrCat(Quoted(pod.subgroup()), "; its gang declares no subgroups"));
    }
  }
  if (!pod.node_name().empty()) ReadName(pod.node_name(), At(path, "node_name"), violations);
  out->node_name = pod.node_name();
  out->deleting = pod.deleting();
  out->phase = Read(pod.phase(), At(path, "phase"), violations).value_or(PodPhase::kPending);
}

void ReadNode(const v1::NodeFacts& node, const std::string& path, Violations* violations, NodeDescription* out) {
  ReadName(node.name(), At(path, "name"), violations);
  out->name = node.name();
  out->labels = ReadLabelMap(node.labels(), At(path, "labels"), violations);
  for (int i = 0; i < node.taints_size(); ++i) {
    const std::string at = absl::StrCat(At(path, "taints"), "[", i, "]");
    const std::optional<TaintEffect> effect = Read(node.taints(i).effect(), At(at, "effect"), violations);
    if (node.taints(i).effect() == v1::TAINT_EFFECT_UNSPECIFIED) {
      violations->Add(At(at, "effect"), "is missing; expected TAINT_EFFECT_NO_SCHEDULE or another effect");
    }
    if (!effect.has_value()) continue;
    if (!IsLabelKey(node.taints(i).key())) {
      violations->Add(At(at, "key"),
                      absl::StrCat(Quoted(node.taints(i).key()), "; expected a name, like the key of a label"));
    }
    CheckLabelValue(node.taints(i).value(), At(at, "value"), violations);
    out->taints.push_back({node.taints(i).key(), node.taints(i).value(), *effect});
  }
  out->unschedulable = node.unschedulable();
  out->allocatable = ReadAmounts(node.allocatable(), At(path, "allocatable"), violations, Rounding::kDown);
  if (out->allocatable.find("pods") == out->allocatable.end()) out->allocatable["pods"] = 110;
}

namespace {

// Checks that the subgroup of a member is one that its gang declares.
void CheckSubgroup(const SubgroupParseResult& declared, const std::string& named, const std::string& path,
                   Violations* violations) {
  if (!declared.problem.empty()) return;  // reported with the gang
  if (declared.tree.empty()) {
    if (!named.empty()) violations->Add(path, absl::StrCat(Quoted(named), "; its gang declares no subgroups"));
  } else if (declared.tree.FindLeaf(named) < 0) {
    violations->Add(path, absl::StrCat("subgroup ", Quoted(named), " is not in the gang, or has children"));
  }
}

// The pods of a submission are in the order of the fields that name them. The first `of_manifests` come from manifests.
void CompareMembers(const v1::SubmitGangRequest& request, const std::string& before, size_t of_manifests,
                    const SubmitGang& submission, Violations* violations) {
  const size_t listed = submission.pods.size() - static_cast<size_t>(request.pods_size());
  const auto field_of = [&](size_t pod, const char* field) -> std::string {
    if (pod >= listed) return absl::StrCat(before, "pods[", pod - listed, "].", field);
    return before + (pod < of_manifests ? "manifests" : "members");
  };
  absl::flat_hash_set<absl::string_view> names;
  absl::flat_hash_set<absl::string_view> uids;
  for (size_t i = 0; i < submission.pods.size() && !violations->full(); ++i) {
    const PodDescription& pod = submission.pods[i];
    if (!names.insert(pod.name).second) {
      violations->Add(field_of(i, "name"),
                      absl::StrCat("pod ", pod.name, " is given twice; expected a different name for each"));
    } else if (!uids.insert(pod.uid).second) {
      violations->Add(field_of(i, "uid"), absl::StrCat("pod ", pod.name, ": uid ", pod.uid, " is given twice"));
    }
  }
}

}  // namespace

void ReadMembers(const v1::SubmitGangRequest& request, const std::string& before, const std::string& id, int64_t now_ms,
                 Violations* violations, SubmitGang* out) {
  const size_t of_manifests = out->pods.size();
  const SubgroupParseResult declared =
      muster::ParseSubgroups(out->declaration->subgroups, out->declaration->min_member);
  size_t bytes = 0;
  for (int i = 0; i < request.members_size(); ++i) {
    const v1::MemberSet& set = request.members(i);
    const std::string path = absl::StrCat(before, "members[", i, "]");
    const int32_t left = kMaxMembers - static_cast<int32_t>(out->pods.size());
    if (set.count() < 1 || set.count() > left) {
      violations->Add(absl::StrCat(path, ".count"), absl::StrCat(set.count(), "; expected 1 to ", left));
      continue;
    }
    const std::string fallback = set.subgroup().empty() ? out->name : absl::StrCat(out->name, "-", set.subgroup());
    const std::string name = set.name().empty() ? fallback : set.name();
    size_t pod_labels = 0;
    for (const auto& [key, value] : set.labels()) pod_labels += key.size() + value.size();
    bytes += static_cast<size_t>(set.count()) *
             (set.shape().ByteSizeLong() + pod_labels + request.gang().ByteSizeLong() + 2 * name.size() + id.size());
    if (bytes > kMaxMemberBytes) {
      violations->Add(
          absl::StrCat(path, ".count"),
          absl::StrCat(set.count(), " members of this shape and gang are too large together; expected at most ",
                       kMaxMemberBytes >> 20, " MiB"));
      return;
    }
    PodDescription pod;
    ReadName(name, absl::StrCat(path, ".name"), violations);
    CheckSubgroup(declared, set.subgroup(), absl::StrCat(path, ".subgroup"), violations);
    pod.priority = set.priority();
    pod.gang.subgroup = set.subgroup();
    ReadShape(set.shape(), absl::StrCat(path, ".shape"), out->name_space, violations, &pod.shape.Mutable());
    pod.labels = ReadLabels(set.labels(), absl::StrCat(path, ".labels"), violations);
    if (!violations->none()) return;  // no member is made
    for (int32_t member = 0; member < set.count(); ++member) {
      pod.name = absl::StrCat(name, "-", member);
      pod.uid = absl::StrCat(id, "/", pod.name);
      out->pods.push_back(pod);
    }
  }
  for (int i = 0; i < request.pods_size(); ++i) {
    const v1::PodFacts& pod = request.pods(i);
    const std::string path = absl::StrCat(before, "pods[", i, "]");
    ReadPod(pod, path, now_ms, violations, &out->pods.emplace_back(), out->name_space);
    CheckSubgroup(declared, pod.subgroup(), path + ".subgroup", violations);
    if (!pod.gang().empty() && pod.gang() != out->name) {
      violations->Add(path + ".gang", absl::StrCat(Quoted(pod.gang()), "; expected ", out->name, ", or nothing"));
    }
    if (!pod.namespace_().empty() && pod.namespace_() != out->name_space) {
      violations->Add(path + ".namespace",
                      absl::StrCat(Quoted(pod.namespace_()), "; expected ", out->name_space, ", or nothing"));
    }
    if (violations->full()) return;
  }
  for (const PodDescription& pod : out->pods) {
    if (pod.node_name.empty() && pod.phase == PodPhase::kPending && !pod.deleting) continue;
    violations->Add(before + "pods",
                    absl::StrCat("pod ", pod.name, " has a node or has ended; expected pending pods without a node"));
    return;
  }
  if (out->pods.size() * request.gang().ByteSizeLong() > kMaxMemberBytes) {
    violations->Add(before + "gang", "is too large for this number of pods");
  }
  if (out->pods.empty() && violations->none()) {
    violations->Add(before + "members", "is empty; expected members, pods or manifests");
  }
  if (violations->none()) CompareMembers(request, before, of_manifests, *out, violations);
}

QueueSpec ReadQueue(const v1::QueueSpec& queue, const std::string& path, Violations* violations) {
  constexpr int64_t kMaxWeight = 1'000'000;
  QueueSpec out;
  out.name = queue.name();
  out.parent = queue.parent();
  for (const auto& [field, amounts] : {std::pair{"quota", &queue.quota()}, {"limit", &queue.limit()}}) {
    for (const auto& [resource, text] : *amounts) {
      const absl::StatusOr<int64_t> exact = ParseExactAmount(resource, text);
      const bool rounded = !exact.ok() && ParseQuantity(text, QuantityUnit::kWhole).ok();
      if (rounded) violations->Add(At(At(path, field), resource), std::string(exact.status().message()));
    }
  }
  if (!IsQueueName(out.name)) {
    violations->Add(At(path, "name"), absl::StrCat(Quoted(out.name), "; expected ", kQueueNames));
  }
  out.quota = ReadAmounts(queue.quota(), At(path, "quota"), violations);
  out.limit = ReadAmounts(queue.limit(), At(path, "limit"), violations);
  for (const auto& [resource, weight] : queue.over_quota_weight()) {
    if (weight < 0 || weight > kMaxWeight) {
      violations->Add(At(At(path, "over_quota_weight"), resource),
                      absl::StrCat(weight, "; expected a whole number from 0 to ", kMaxWeight));
    }
    out.over_quota_weight[resource] = weight;
  }
  out.priority = queue.priority();
  out.max_applications = queue.max_applications();
  if (out.max_applications < 0) {
    violations->Add(At(path, "max_applications"), absl::StrCat(out.max_applications, "; expected 0 or more"));
  }
  out.sort = Read(queue.sort(), At(path, "sort"), violations).value_or(QueueSort::kFifo);
  out.access.namespaces.assign(queue.namespaces().begin(), queue.namespaces().end());
  out.access.identities.assign(queue.identities().begin(), queue.identities().end());
  if (queue.has_namespace_selector()) {
    out.access.namespace_selector.emplace().requirements = ReadLabelSelector(
        queue.namespace_selector().requirements(), At(path, "namespace_selector.requirements"), violations);
  }
  return out;
}

}  // namespace muster
