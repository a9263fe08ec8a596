// Converts users' declarations of a gang (annotations, labels and PodGroups) into GangDeclaration.
#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/keys.h"
#include "k8s-extender/dialects/metadata.h"
#include "k8s-extender/dialects/placement_keys.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr char kNativeField[] = "spec.schedulingGroup.podGroupName";

void WarnUnusable(GangDeclaration* out, absl::string_view key, absl::string_view value, absl::string_view expected,
                  absl::string_view taken) {
  out->warnings.push_back(absl::StrCat(key, ": ", Quoted(value), " is not ", expected, "; ", taken));
}

// The name of a queue as messages may repeat it. No queue has a name that is longer or has control characters.
std::string QueueName(absl::string_view name) {
  constexpr size_t kLongest = 64;
  return Plain(Beginning(name, kLongest));
}

// Looks up a key in annotations first, then in labels.
class Keys {
 public:
  Keys(const Labels& annotations, const Labels& labels) : annotations_(annotations), labels_(labels) {}
  // Returns the trimmed value of the first of `keys` that is present, and sets `*key` to that key; nullptr: none is.
  // The value is valid until the next call.
  const std::string* Find(std::initializer_list<const char*> keys, const char** key) & {
    for (const char* candidate : keys) {
      for (const Labels* map : {&annotations_, &labels_}) {
        const auto found = map->find(candidate);
        if (found == map->end()) continue;
        *key = candidate;
        value_ = std::string(absl::StripAsciiWhitespace(found->second));
        return &value_;
      }
    }
    return nullptr;
  }

 private:
  const Labels& annotations_;
  const Labels& labels_;
  std::string value_;
};

void ReadMinimum(absl::string_view key, absl::string_view value, GangDeclaration* out) {
  int32_t minimum = 0;
  if (absl::SimpleAtoi(value, &minimum) && minimum >= 0) {
    out->min_member = minimum;
    return;
  }
  out->unreadable_minimum = absl::StrCat(key, ": ", Quoted(value), " is not a minimum; expected a whole number >= 0");
}

void ReadTotal(absl::string_view key, absl::string_view value, GangDeclaration* out) {
  int32_t total = 0;
  if (!absl::SimpleAtoi(value, &total) || total < 0) {
    WarnUnusable(out, key, value, "a whole number", "the minimum is used");
  } else if (out->min_member.has_value() && total < *out->min_member) {
    WarnUnusable(out, key, value, "at least the minimum", "the minimum is used");
  } else {
    out->total_number = total;
  }
}

// D-10: ids are "namespace/name". An unreadable list leaves the gang alone. A list without the gang itself is kept, and
// the core reports it: no gang may force another one into a group.
void ReadGroups(absl::string_view key, absl::string_view value, GangDeclaration* out) {
  if (value.empty()) return;
  const absl::StatusOr<Json> list = ParseJson(value, "groups");
  if (!list.ok() || !list->is_array()) {
    WarnUnusable(out, key, value, "a JSON list of \"namespace/name\"", "the gang starts without a group");
    return;
  }
  for (const Json& entry : *list) {
    const auto* text = entry.get_ptr<const std::string*>();
    const std::vector<std::string> parts = text == nullptr ? std::vector<std::string>() : absl::StrSplit(*text, '/');
    if (parts.size() != 2 || !IsSubdomain(parts[0]) || !IsSubdomain(parts[1])) {
      out->groups.clear();
      WarnUnusable(out, key, text == nullptr ? absl::StrCat("a ", TypeName(entry)) : *text,
                   "a gang's \"namespace/name\", both of lower case letters, digits, '-' and '.'",
                   "the gang starts without a group");
      return;
    }
    out->groups.push_back(*text);
  }
  if (out->groups.size() > kMaxGroupGangs) {
    out->groups.clear();
    WarnUnusable(out, key, value, absl::StrCat("a list of at most ", kMaxGroupGangs, " gangs"),
                 "the gang starts without a group");
  }
}

// Reads total-number, mode, groups and match-policy: the same keys on pods and PodGroups.
void ReadShared(Keys* from, GangDeclaration* out) {
  const char* key = nullptr;
  if (const std::string* value = from->Find({keys::kKoordTotalNumber}, &key)) ReadTotal(key, *value, out);
  if (const std::string* value = from->Find({keys::kKoordMode}, &key)) {
    if (*value == "Strict" || *value == "NonStrict") {
      out->mode = *value == "Strict" ? GangMode::kStrict : GangMode::kNonStrict;
    } else {
      WarnUnusable(out, key, *value, "Strict or NonStrict", "Strict is used");
    }
  }
  if (const std::string* value = from->Find({keys::kKoordMatchPolicy, keys::kSigsMatchPolicy}, &key)) {
    out->match_policy = ParseMatchPolicy(*value);
    if (!out->match_policy.has_value())
      WarnUnusable(out, key, *value, kMatchPolicies, "the configured default is used");
  }
  if (const std::string* value = from->Find({keys::kKoordGroups, keys::kKoordGangGroups, keys::kSigsGroups}, &key)) {
    ReadGroups(key, *value, out);
  }
}

// D-13. Returns whether any of our keys is present.
bool ReadOwn(Keys* from, GangDeclaration* out) {
  const char* key = nullptr;
  bool any = false;
  if (const std::string* value = from->Find({keys::kQueue, keys::kKaiQueue, keys::kYunikornQueue}, &key)) {
    any = true;
    // YuniKorn writes a queue with its ancestors, "root.org.team"; here the queue's own name is sufficient.
    const bool path = absl::string_view(key) == keys::kYunikornQueue && absl::StartsWith(*value, "root.");
    const std::string name = path ? value->substr(value->rfind('.') + 1) : *value;
    if (name.empty()) {
      WarnUnusable(out, key, *value, "a queue name", "queue default is used");
    } else {
      out->queue = QueueName(name);
    }
  }
  if (const std::string* value = from->Find({keys::kOnTimeout}, &key)) {
    any = true;
    if (*value == "fail" || *value == "requeue") {
      out->on_timeout = *value == "fail" ? OnTimeout::kFail : OnTimeout::kRequeue;
    } else {
      WarnUnusable(out, key, *value, "fail or requeue", "the dialect's default is used");
    }
  }
  if (const std::string* value = from->Find({keys::kOnMemberFailure}, &key)) {
    any = true;
    if (*value == "keep" || *value == "all") {
      out->on_member_failure = *value == "keep" ? OnMemberFailure::kKeep : OnMemberFailure::kAll;
    } else {
      WarnUnusable(out, key, *value, "keep or all", "keep is used");
    }
  }
  if (const std::string* value = from->Find({keys::kStaleGrace}, &key)) {
    any = true;
    const absl::StatusOr<int64_t> grace = ParseGoDuration(*value);
    if (grace.ok()) {
      out->stale_grace_ms = *grace;
    } else {
      WarnUnusable(out, key, *value, "a duration like 60s", "the dialect's default is used");
    }
  }
  if (const std::string* value = from->Find({keys::kPreemptible}, &key)) {
    any = true;
    if (*value == "true" || *value == "false") {
      out->preemptible = *value == "true";
    } else {
      WarnUnusable(out, key, *value, "true or false", "true is used");
    }
  }
  if (const std::string* value = from->Find({keys::kDuration}, &key)) {
    any = true;
    const absl::StatusOr<int64_t> duration = ParseGoDuration(*value);
    if (duration.ok() && *duration > 0) {
      out->duration_ms = *duration;
    } else {
      WarnUnusable(out, key, *value, "a duration above zero like 2h30m", "its duration is treated as unknown");
    }
  }
  return any;
}

// The dialect of a key that names the pod's gang.
GangDialect DialectOf(absl::string_view key) {
  if (key == keys::kKoordName) return GangDialect::kKoordinator;
  if (key == keys::kXPodGroup) return GangDialect::kPodGroupX;
  if (key == keys::kKaiPodGroup) return GangDialect::kKai;
  if (key == keys::kVolcanoGroup) return GangDialect::kVolcano;
  return key == kNativeField ? GangDialect::kNative : GangDialect::kPodGroupSigs;
}

}  // namespace

absl::StatusOr<int64_t> ParseGoDuration(absl::string_view text) {
  absl::Duration duration;
  if (text.size() > 64 || !absl::ParseDuration(std::string(text), &duration) || duration == absl::InfiniteDuration() ||
      duration == -absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(text), " is not a duration; expected one like 3600s or 1h30m"));
  }
  return absl::ToInt64Milliseconds(duration);
}

namespace {

// D-5: keys of dialects that are not supported.
struct ForeignKey {
  const char* key;
  const char* system;
};
constexpr ForeignKey kForeignKeys[] = {
    {"yunikorn.apache.org/task-group-name", "YuniKorn"},
    {"yunikorn.apache.org/task-groups", "YuniKorn"},
};

// Keys without effect on a pod that names no gang.
std::vector<std::string> IgnoredKeys(const Labels& annotations, const Labels& labels) {
  std::vector<std::string> out;
  const auto has = [&](const char* key) { return annotations.contains(key) || labels.contains(key); };
  for (const auto& [minimum, name] : {std::pair{keys::kKoordMinAvailable, keys::kKoordName},
                                      std::pair{keys::kSigsMinAvailable, keys::kSigsPodGroupName},
                                      std::pair{keys::kKaiSubgroup, keys::kKaiPodGroup}}) {
    if (!has(minimum)) continue;
    out.push_back(absl::StrCat(minimum, " is set and ", name, " is not: the pod is in no gang"));
  }
  if (labels.contains(keys::kVolcanoGroup)) {
    out.push_back(
        absl::StrCat(keys::kVolcanoGroup, " is a label; Volcano's pods join by an annotation: the pod is in no gang"));
  }
  for (const ForeignKey& foreign : kForeignKeys) {
    if (!has(foreign.key)) continue;
    out.push_back(absl::StrCat(foreign.key, " is ", foreign.system,
                               "'s; Muster does not support it yet: the pod is placed individually"));
  }
  return out;
}

// Every gang that the pod names, with the key; Koordinator's annotation first. `sigs`: a key of the sigs dialect is
// among them.
std::vector<std::pair<std::string, std::string>> NamedGangs(const Labels& annotations, const Labels& labels,
                                                            const std::string& native, bool* sigs) {
  std::vector<std::pair<std::string, std::string>> named;
  const auto add = [&](const Labels& map, const char* key) {
    const auto found = map.find(key);
    if (found != map.end()) named.emplace_back(std::string(absl::StripAsciiWhitespace(found->second)), key);
  };
  const Labels none;
  Keys on_pod(annotations, none);
  const char* key = nullptr;
  if (const std::string* name = on_pod.Find({keys::kKoordName}, &key)) named.emplace_back(*name, key);
  for (const char* candidate : {keys::kSigsPodGroup, keys::kSigsPodGroupName}) {
    for (const Labels* map : {&annotations, &labels}) add(*map, candidate);
  }
  *sigs = !named.empty() && (named.size() > 1 || named[0].second != keys::kKoordName);
  add(labels, keys::kXPodGroup);
  if (!native.empty()) named.emplace_back(native, kNativeField);
  add(annotations, keys::kKaiPodGroup);
  add(annotations, keys::kVolcanoGroup);
  return named;
}

void ReadWaitingTime(Keys* on_pod, GangDeclaration* declaration) {
  const char* key = nullptr;
  const std::string* value = on_pod->Find({keys::kKoordWaitingTime}, &key);
  if (value == nullptr) return;
  const absl::StatusOr<int64_t> wait = ParseGoDuration(*value);
  if (wait.ok() && *wait > 0) {
    declaration->wait_time_ms = *wait;
    return;
  }
  WarnUnusable(declaration, key, *value, "a duration above zero like 3600s or 1h30m", "the configured default is used");
}

}  // namespace

GangMembership ParseMembership(const Labels& annotations, const Labels& labels, const std::string& native) {
  GangMembership out;
  const Labels none;
  Keys on_pod(annotations, none);
  Keys anywhere(annotations, labels);
  const char* key = nullptr;
  bool sigs = false;
  const std::vector<std::pair<std::string, std::string>> named = NamedGangs(annotations, labels, native, &sigs);
  if (named.empty()) {
    out.ignored = IgnoredKeys(annotations, labels);
    return out;
  }
  out.name = named[0].first;
  for (const auto& [name, from] : named) {
    if (name == out.name) continue;
    out.problem = {ReasonCode::kConflict, absl::StrCat("the pod names two gangs: ", named[0].second, " has ",
                                                       Quoted(out.name), ", ", from, " has ", Quoted(name))};
    break;
  }
  // The source of the declaration: Koordinator's annotations (D-1), otherwise the sigs keys if they give a minimum
  // (D-2). If another key names an object, the pod refers to that object as well (D-3, D-6).
  const bool koord = named[0].second == keys::kKoordName;
  const std::string* sigs_minimum = sigs ? anywhere.Find({keys::kSigsMinAvailable}, &key) : nullptr;
  if (koord) {
    out.dialect = DialectOf(named[named.size() > 1 ? 1 : 0].second);
    out.key_dialect = GangDialect::kKoordinator;
  } else if (sigs) {
    out.dialect = sigs_minimum != nullptr ? GangDialect::kSigsPods : GangDialect::kPodGroupSigs;
  } else {
    out.dialect = DialectOf(named[0].second);
  }
  if (!IsSubdomain(out.name)) {
    out.problem = {ReasonCode::kUninitialised, absl::StrCat(named[0].second, ": ", Quoted(out.name),
                                                            " is not a gang name; expected an RFC 1123 subdomain")};
    if (out.name.empty()) out.name = "(unnamed)";
    out.name.resize(std::min<size_t>(out.name.size(), 253));
    return out;
  }

  GangDeclaration& declaration = out.declaration.Mutable();
  if (koord || sigs_minimum != nullptr) {
    out.declares = true;
    Keys* from = koord ? &on_pod : &anywhere;
    if (const std::string* value = from->Find({keys::kKoordMinAvailable}, &key); koord && value != nullptr) {
      ReadMinimum(key, *value, &declaration);
    } else if (sigs) {
      if (const std::string* minimum = anywhere.Find({keys::kSigsMinAvailable}, &key))
        ReadMinimum(key, *minimum, &declaration);
    }
    ReadWaitingTime(&on_pod, &declaration);
    ReadShared(from, &declaration);
  }
  ReadOwnKeys(annotations, labels, &out);
  if (out.dialect == GangDialect::kVolcano && out.subgroup.empty()) {
    if (const std::string* task = anywhere.Find({keys::kVolcanoTask}, &key)) out.subgroup = *task;
  }
  return out;
}

void ReadOwnKeys(const Labels& annotations, const Labels& labels, GangMembership* out) {
  Keys anywhere(annotations, labels);
  out->declares = ReadOwn(&anywhere, &out->declaration.Mutable()) || out->declares;
  out->declares = ReadPlacementKeys(annotations, labels, &out->declaration.Mutable()) || out->declares;
  out->subgroup = SubgroupOf(annotations, labels);
}

namespace {

constexpr int32_t kMaxOfATask = 1'000'000;

// Warns about fields that Muster does not read but from which users may expect an effect.
void WarnOfUnread(const Json& spec, std::initializer_list<const char*> fields, GangDeclaration* out) {
  for (const char* field : fields) {
    if (spec.is_object() && spec.contains(field)) {
      out->warnings.push_back(absl::StrCat("spec.", field, " is ignored"));
    }
  }
}

// D-6: fields that only Kubernetes' own PodGroups have.
void ReadNative(const Json& spec, GangDeclaration* out) {
  const Json& constraints = Child(Child(spec, "schedulingConstraints"), "topology");
  if (constraints.is_array() && constraints.size() == 1) {
    const std::string label = StringOrEmpty(constraints.front(), "key");
    if (!label.empty() && !out->topology.has_value()) out->topology = TopologyRule{.required = label};
  } else if (constraints.is_array() && !constraints.empty()) {
    out->warnings.push_back("spec.schedulingConstraints.topology is ignored: more than one of them");
  }
}

// D-15: fields that only Volcano's PodGroups have.
void ReadVolcano(const Json& spec, GangDeclaration* out) {
  WarnOfUnread(spec, {"networkTopology", "subGroupPolicy"}, out);
  if (const std::string queue = StringOrEmpty(spec, "queue"); !queue.empty() && !out->queue.has_value()) {
    out->queue = QueueName(queue);
  }
  const Json& tasks = Child(spec, "minTaskMember");
  if (!tasks.is_object() || tasks.empty() || !out->subgroups.empty()) return;
  // If the minimums of the tasks add up to the job's minimum, each must be met: the tasks are subgroups.
  std::vector<SubgroupDeclaration> leaves;
  int64_t sum = 0;
  std::string ignored;
  for (const auto& [name, minimum] : tasks.items()) {
    if (!IsSubdomain(name) || !minimum.is_number_integer() || minimum < 0 || minimum > kMaxOfATask) {
      ignored = absl::StrCat(Quoted(name), ": ", minimum.dump(), " is not a task and its minimum");
      break;
    }
    SubgroupDeclaration& leaf = leaves.emplace_back();
    leaf.name = name;
    leaf.minimum = minimum.get<int32_t>();
    sum += *leaf.minimum;
  }
  if (ignored.empty() && (!out->min_member.has_value() || sum != *out->min_member)) {
    ignored = absl::StrCat("their sum, ", sum, ", is not minMember");
  }
  if (!ignored.empty()) {
    out->warnings.push_back(absl::StrCat("spec.minTaskMember is ignored: ", ignored));
    return;
  }
  out->subgroups = std::move(leaves);
  out->min_member.reset();  // all of them
}

// D-4: fields that only KAI's PodGroups have.
void ReadKai(const Json& spec, GangDeclaration* out) {
  const TopologyRule rule = ReadTopologyConstraint(Child(spec, "topologyConstraint"), "spec.topologyConstraint", out);
  if (!rule.none()) out->topology = rule;
  if (const Json& list = Child(spec, "subGroups"); list.is_array()) {
    ReadSubgroupList(list, "spec.subGroups", out);
  } else if (!list.is_null()) {
    out->min_member.reset();
    out->unreadable_minimum = absl::StrCat("spec.subGroups: is a ", TypeName(list), "; expected a list");
  }
  if (const std::string queue = StringOrEmpty(spec, "queue"); !queue.empty() && !out->queue.has_value()) {
    out->queue = QueueName(queue);
  }
  const std::string preemptibility = StringOrEmpty(spec, "preemptibility");
  if (preemptibility.empty() || out->preemptible.has_value()) return;
  if (preemptibility == "preemptible" || preemptibility == "non-preemptible") {
    out->preemptible = preemptibility == "preemptible";
  } else {
    WarnUnusable(out, "spec.preemptibility", preemptibility, "preemptible or non-preemptible", "it is ignored");
  }
}

}  // namespace

absl::StatusOr<GangObject> ParsePodGroup(const Json& object, GangDialect dialect) {
  if (!object.is_object()) return absl::InvalidArgumentError("PodGroup: expected an object");
  GangObject out;
  out.dialect = dialect;
  const Json& metadata = Child(object, "metadata");
  for (const auto& [key, field] : {std::pair{"name", &out.name}, {"namespace", &out.name_space}, {"uid", &out.uid}}) {
    absl::StatusOr<std::string> text = StringAt(metadata, key, "PodGroup.metadata");
    if (!text.ok()) return text.status();
    *field = *std::move(text);
  }
  if (!IsSubdomain(out.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("PodGroup.metadata.name: ", Quoted(out.name), " is not an RFC 1123 subdomain"));
  }
  if (out.name_space.empty()) out.name_space = "default";
  out.created_ms = TimeAt(metadata, "creationTimestamp");

  GangDeclaration& declaration = out.declaration.Mutable();
  const Json& spec = Child(object, "spec");
  const auto read_minimum = [&declaration](const Json& holder, const char* field, const char* path) {
    const Json& minimum = Child(holder, field);
    if (minimum.is_null()) return;
    ReadMinimum(path, minimum.is_string() ? StringOrEmpty(holder, field) : minimum.dump(), &declaration);
  };
  if (dialect == GangDialect::kNative) {
    const Json& policy = Child(spec, "schedulingPolicy");
    if (Child(policy, "basic").is_object()) declaration.min_member = 0;  // pods start one by one
    read_minimum(Child(policy, "gang"), "minCount", "spec.schedulingPolicy.gang.minCount");
  } else {
    read_minimum(spec, "minMember", "spec.minMember");
  }
  if (const Json& timeout = Child(spec, "scheduleTimeoutSeconds"); !timeout.is_null()) {
    const std::optional<int64_t> seconds = IntAt(spec, "scheduleTimeoutSeconds");
    if (seconds.has_value() && *seconds > 0 && *seconds <= std::numeric_limits<int32_t>::max()) {
      declaration.wait_time_ms = *seconds * 1000;
    } else {
      WarnUnusable(&declaration, "spec.scheduleTimeoutSeconds", timeout.dump(), "a number of seconds above zero",
                   "the configured default is used");
    }
  }
  if (const Json& resources = Child(spec, "minResources"); !resources.is_null()) {
    absl::StatusOr<ResourceList> amounts = ParseResourceMap(resources, "spec.minResources");
    if (amounts.ok()) {
      declaration.min_resources = *std::move(amounts);
    } else {
      declaration.warnings.push_back(absl::StrCat(amounts.status().message(), "; minResources is ignored"));
    }
  }
  const Labels annotations = StringMapAt(metadata, "annotations");
  const Labels labels = StringMapAt(metadata, "labels");
  Keys from(annotations, labels);
  ReadShared(&from, &declaration);
  ReadOwn(&from, &declaration);
  ReadPlacementKeys(annotations, labels, &declaration);
  if (dialect == GangDialect::kNative) ReadNative(spec, &declaration);
  if (dialect == GangDialect::kKai) ReadKai(spec, &declaration);
  if (dialect == GangDialect::kVolcano) ReadVolcano(spec, &declaration);
  return out;
}

}  // namespace muster
