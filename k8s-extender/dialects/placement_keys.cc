#include "k8s-extender/dialects/placement_keys.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/keys.h"
#include "state/base/text.h"

namespace muster {
namespace {

void ReadLabelKey(absl::string_view from, absl::string_view value, std::string* out, GangDeclaration* declaration) {
  if (IsLabelKey(value)) {
    *out = std::string(value);
  } else {
    declaration->warnings.push_back(
        absl::StrCat(from, ": ", Quoted(value), " is not the key of a label of nodes; it is ignored"));
  }
}

const std::string* FindIn(const Labels& annotations, const Labels& labels, const char* key) {
  for (const Labels* map : {&annotations, &labels}) {
    if (const auto found = map->find(key); found != map->end()) return &found->second;
  }
  return nullptr;
}

// Returns false if the field is present and not a whole number of at least 0.
bool ReadCount(const Json& holder, const char* field, std::optional<int32_t>* out) {
  const Json& value = Child(holder, field);
  if (value.is_null()) return true;
  const std::optional<int64_t> number = IntAt(holder, field);
  if (!number.has_value() || *number < 0 || *number > std::numeric_limits<int32_t>::max()) return false;
  *out = static_cast<int32_t>(*number);
  return true;
}

// Reads the template of each member from {minResource, nodeSelector, tolerations, affinity}, named as in YuniKorn. Only
// node affinity is read: pod affinity applies when the pod exists.
absl::StatusOr<PodTemplate> ReadMemberTemplate(const Json& entry) {
  if (absl::StatusOr<ResourceList> requests = ParseResourceMap(Child(entry, "minResource"), "minResource");
      !requests.ok())
    return requests.status();
  const Json& affinity = Child(entry, "affinity");
  if (!affinity.is_null() && !affinity.is_object())
    return absl::InvalidArgumentError(absl::StrCat("affinity: is a ", TypeName(affinity), "; expected a map"));
  Json spec = {{"containers", {{{"name", "member"}, {"resources", {{"requests", Child(entry, "minResource")}}}}}},
               {"affinity", {{"nodeAffinity", Child(affinity, "nodeAffinity")}}}};
  for (const char* field : {"nodeSelector", "tolerations"}) spec[field] = Child(entry, field);
  absl::StatusOr<PodDescription> pod =
      ParsePod({{"metadata", {{"name", "member"}, {"uid", "member"}}}, {"spec", std::move(spec)}});
  if (!pod.ok()) return pod.status();
  if (!pod->invalid.empty()) return absl::InvalidArgumentError(pod->invalid);
  return std::move(pod->shape.Mutable());
}

}  // namespace

TopologyRule ReadTopologyConstraint(const Json& constraint, absl::string_view path, GangDeclaration* warned) {
  TopologyRule out;
  for (const auto& [field, key] : {std::pair{"requiredTopologyLevel", &out.required},
                                   {"preferredTopologyLevel", &out.preferred},
                                   {"spreadTopologyLevel", &out.spread}}) {
    const std::string value = StringOrEmpty(constraint, field);
    if (!value.empty()) ReadLabelKey(absl::StrCat(path, ".", field), value, key, warned);
  }
  return out;
}

void ReadSubgroupList(const Json& list, absl::string_view path, GangDeclaration* out) {
  const auto unreadable = [&](size_t i, absl::string_view what) {
    out->subgroups.clear();
    out->min_member.reset();
    out->unreadable_minimum = absl::StrCat(path, "[", i, "]", what);
  };
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& entry = list[i];
    SubgroupDeclaration subgroup;
    subgroup.name = StringOrEmpty(entry, "name");
    subgroup.parent = StringOrEmpty(entry, "parent");
    if (!IsSubdomain(subgroup.name)) {
      return unreadable(i, absl::StrCat(".name: ", Quoted(subgroup.name), " is not an RFC 1123 subdomain"));
    }
    for (const auto& [field, count] :
         {std::pair{"minMember", &subgroup.minimum}, {"minSubGroup", &subgroup.min_groups}}) {
      if (!ReadCount(entry, field, count)) {
        return unreadable(i, absl::StrCat(".", field, ": ",
                                          Quoted(Child(entry, field).is_string() ? StringOrEmpty(entry, field)
                                                                                 : Child(entry, field).dump()),
                                          " is not a minimum; expected a whole number >= 0"));
      }
    }
    if (!Child(entry, "minResource").is_null()) {
      absl::StatusOr<PodTemplate> members = ReadMemberTemplate(entry);
      if (!members.ok()) return unreadable(i, absl::StrCat(".", members.status().message()));
      subgroup.members = *std::move(members);
    } else {
      for (const char* field : {"nodeSelector", "tolerations", "affinity"}) {
        if (Child(entry, field).empty()) continue;
        out->warnings.push_back(
            absl::StrCat(path, "[", i, "].", field, ": describes no future members without minResource; ignored"));
      }
    }
    subgroup.topology = ReadTopologyConstraint(Child(entry, "topologyConstraint"),
                                               absl::StrCat(path, "[", i, "].topologyConstraint"), out);
    out->subgroups.push_back(std::move(subgroup));
  }
}

bool ReadPlacementKeys(const Labels& annotations, const Labels& labels, GangDeclaration* out) {
  TopologyRule rule;
  bool any = false;
  const auto read = [&](std::initializer_list<const char*> keys, std::string* to) {
    for (const char* key : keys) {
      const std::string* value = FindIn(annotations, labels, key);
      if (value == nullptr) continue;
      any = true;
      if (to->empty()) ReadLabelKey(key, absl::StripAsciiWhitespace(*value), to, out);
    }
  };
  read({keys::kRequiredTopology, keys::kKueueRequiredTopology, keys::kKaiRequiredTopology}, &rule.required);
  read({keys::kPreferredTopology, keys::kKueuePreferredTopology, keys::kKaiPreferredTopology}, &rule.preferred);
  read({keys::kSpreadTopology}, &rule.spread);
  if (!rule.none()) out->topology = rule;
  for (const auto& [key, value] : annotations) {
    if (absl::StartsWith(key, keys::kKueueSlices)) out->warnings.push_back(absl::StrCat(key, " is ignored"));
  }
  if (const std::string* value = FindIn(annotations, labels, keys::kSubgroups)) {
    any = true;
    const absl::StatusOr<Json> list = ParseJson(*value, keys::kSubgroups);
    if (list.ok() && list->is_array()) {
      ReadSubgroupList(*list, keys::kSubgroups, out);
    } else {
      out->min_member.reset();
      out->unreadable_minimum =
          absl::StrCat(keys::kSubgroups, ": ", Quoted(*value),
                       " is not a JSON list of {name, parent, minMember or minSubGroup, minResource}");
    }
  }
  return any;
}

std::string SubgroupOf(const Labels& annotations, const Labels& labels) {
  for (const char* key : {keys::kSubgroup, keys::kKaiSubgroup}) {
    const std::string* value = FindIn(annotations, labels, key);
    if (value != nullptr) return std::string(absl::StripAsciiWhitespace(*value));
  }
  return "";
}

}  // namespace muster
