#include "state/model/gang.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/enum_names.h"
#include "state/base/problem.h"

namespace muster {

namespace {

constexpr EnumNames<GangMode, 2> kModes{{"Strict", "NonStrict"}};
constexpr EnumNames<MatchPolicy, 4> kPolicies{
    {"once-satisfied", "only-waiting", "waiting-and-running", "waiting-running-succeed"}};
constexpr EnumNames<OnTimeout, 2> kOnTimeout{{"fail", "requeue"}};
constexpr EnumNames<OnMemberFailure, 2> kOnMemberFailure{{"keep", "all"}};
constexpr EnumNames<GangDialect, 9> kDialects{
    {"gang.scheduling.koordinator.sh annotations", "pod-group.scheduling.sigs.k8s.io labels or annotations",
     "PodGroup scheduling.sigs.k8s.io/v1alpha1", "PodGroup scheduling.x-k8s.io/v1alpha1", "PodGroup scheduling.k8s.io",
     "gRPC API", "PodGroup scheduling.run.ai/v2alpha2", "PodGroup scheduling.volcano.sh/v1beta1", "its owner"}};

}  // namespace

absl::string_view ToString(GangMode mode) { return kModes.Of(mode); }
absl::string_view ToString(MatchPolicy policy) { return kPolicies.Of(policy); }
std::optional<MatchPolicy> ParseMatchPolicy(absl::string_view text) { return kPolicies.Find(text); }
absl::string_view ToString(OnTimeout policy) { return kOnTimeout.Of(policy); }
absl::string_view ToString(OnMemberFailure policy) { return kOnMemberFailure.Of(policy); }
absl::string_view ToString(GangDialect dialect) { return kDialects.Of(dialect); }

namespace {

// The field of the first declaration that has it; nullptr if neither has.
template <typename Field>
const Field* Pick(const GangDeclaration* first, const GangDeclaration* second,
                  std::optional<Field> GangDeclaration::*field) {
  for (const GangDeclaration* declaration : {first, second}) {
    if (declaration != nullptr && (declaration->*field).has_value()) return &*(declaration->*field);
  }
  return nullptr;
}

template <typename Field>
void Assign(const Field* value, Field* out) {
  if (value != nullptr) *out = *value;
}

template <typename Value, typename Print>
void Compare(absl::string_view field, const std::optional<Value>& first, const std::optional<Value>& later, Print print,
             std::string* out) {
  if (!later.has_value() || first == later) return;
  absl::StrAppend(out, out->empty() ? "" : ", ", field, " ", print(*later), " against ",
                  first.has_value() ? absl::StrCat(print(*first)) : "nothing");
}

// G-6.
OnTimeout DefaultOnTimeout(GangDialect dialect) {
  const bool fails = dialect == GangDialect::kKoordinator || dialect == GangDialect::kPodGroupSigs;
  return fails ? OnTimeout::kFail : OnTimeout::kRequeue;
}

// D-13: off for D-1 to D-3.
int64_t DefaultStaleGraceMs(GangDialect dialect) {
  const bool off = dialect == GangDialect::kKoordinator || dialect == GangDialect::kSigsPods ||
                   dialect == GangDialect::kPodGroupSigs || dialect == GangDialect::kPodGroupX;
  return off ? -1 : 60'000;
}

template <auto field>
void Replace(const GangDeclaration& from, GangDeclaration* to) {
  to->*field = from.*field;
}

// In the order of GangField.
using D = GangDeclaration;
constexpr std::array kReplace = {&Replace<&D::min_member>,
                                 &Replace<&D::total_number>,
                                 &Replace<&D::wait_time_ms>,
                                 &Replace<&D::mode>,
                                 &Replace<&D::match_policy>,
                                 &Replace<&D::on_timeout>,
                                 &Replace<&D::on_member_failure>,
                                 &Replace<&D::min_resources>,
                                 &Replace<&D::priority>,
                                 &Replace<&D::groups>,
                                 &Replace<&D::subgroups>,
                                 &Replace<&D::topology>,
                                 &Replace<&D::queue>,
                                 &Replace<&D::preemptible>,
                                 &Replace<&D::duration_ms>};
static_assert(kReplace.size() == static_cast<size_t>(GangField::kDuration) + 1, "each field can be replaced");

}  // namespace

absl::StatusOr<GangDeclaration> ReplaceFields(const GangDeclaration& known, const GangDeclaration& update,
                                              const std::vector<GangField>& fields) {
  GangDeclaration out = known;
  for (const GangField field : fields) kReplace[static_cast<size_t>(field)](update, &out);
  // With subgroups, no minimum means all of them; without, it means no constraint.
  if (out.subgroups.empty()) {
    out.min_member = out.min_member.value_or(0);
  } else if (out.min_member == 0) {
    out.min_member.reset();
  }
  if (out.total_number.has_value() && *out.total_number < out.min_member.value_or(0)) {
    return InvalidArgument(
        {{Subject::kField, "gang.total_number",
          absl::StrCat(*out.total_number, "; expected at least min_member (", *out.min_member, ")")}});
  }
  const SubgroupParseResult parsed = ParseSubgroups(out.subgroups, out.min_member);
  if (!parsed.problem.empty()) return InvalidArgument({{Subject::kField, "gang.subgroups", parsed.problem}});
  return out;
}

GangRules ResolveRules(const GangDeclaration* annotations, const GangDeclaration* object, GangDialect dialect,
                       const GangDefaults& defaults) {
  GangRules rules;
  rules.on_timeout = DefaultOnTimeout(dialect);
  rules.stale_grace_ms = DefaultStaleGraceMs(dialect);
  rules.min_member = -1;
  Assign(Pick(annotations, object, &D::min_member), &rules.min_member);
  rules.total_number = rules.min_member;
  if (const int32_t* total = Pick(annotations, object, &D::total_number); total != nullptr) {
    rules.total_number = std::max(*total, rules.min_member);
    rules.declares_total = true;
  }
  rules.wait_time_ms = defaults.wait_time_ms;
  Assign(Pick(annotations, object, &D::wait_time_ms), &rules.wait_time_ms);
  Assign(Pick(annotations, object, &D::mode), &rules.mode);
  rules.match_policy = defaults.match_policy;
  Assign(Pick(annotations, object, &D::match_policy), &rules.match_policy);
  Assign(Pick(annotations, object, &D::min_resources), &rules.min_resources);
  rules.declares_total = rules.declares_total || !rules.min_resources.empty();
  if (const int32_t* priority = Pick(annotations, object, &D::priority); priority != nullptr) {
    rules.priority = *priority;
  }
  for (const D* declaration : {annotations, object}) {
    if (declaration == nullptr || declaration->groups.empty()) continue;
    rules.group = declaration->groups;
    std::sort(rules.group.begin(), rules.group.end());
    rules.group.erase(std::unique(rules.group.begin(), rules.group.end()), rules.group.end());
    break;
  }
  rules.queue = "default";
  Assign(Pick(annotations, object, &D::queue), &rules.queue);
  Assign(Pick(annotations, object, &D::on_timeout), &rules.on_timeout);
  Assign(Pick(annotations, object, &D::on_member_failure), &rules.on_member_failure);
  Assign(Pick(annotations, object, &D::stale_grace_ms), &rules.stale_grace_ms);
  Assign(Pick(annotations, object, &D::preemptible), &rules.preemptible);
  Assign(Pick(annotations, object, &D::duration_ms), &rules.duration_ms);
  Assign(Pick(annotations, object, &D::topology), &rules.topology);
  for (const D* declaration : {annotations, object}) {
    if (declaration == nullptr || declaration->subgroups.empty()) continue;
    const bool counted = rules.min_member >= 0;
    SubgroupParseResult reading =
        ParseSubgroups(declaration->subgroups, counted ? std::optional(rules.min_member) : std::nullopt);
    rules.tree = std::move(reading.tree);
    rules.tree_problem = std::move(reading.problem);
    rules.min_member = rules.tree_problem.empty() ? static_cast<int32_t>(rules.tree.Least()) : -1;
    rules.total_number = std::max(rules.total_number, rules.min_member);
    break;
  }
  rules.domains = !rules.topology.required.empty() ||
                  std::any_of(rules.tree.nodes.begin(), rules.tree.nodes.end(),
                              [](const Subgroup& each) { return !each.topology.required.empty(); });
  return rules;
}

std::string ShapeOf(const GangRules& rules) {
  if (!rules.shaped()) return "";
  std::string out = absl::StrCat(ToString(rules.topology), "/", rules.tree.minimum);
  for (const Subgroup& node : rules.tree.nodes) {
    absl::StrAppend(&out, "(", node.name, ",", node.parent, ",", node.minimum, ",", ToString(node.topology));
    if (node.future_template.has_value()) absl::StrAppend(&out, ",", (*node.future_template)->Key());
    absl::StrAppend(&out, ")");
  }
  return out;
}

std::string DescribeContradiction(const GangDeclaration& first, const GangDeclaration& later) {
  std::string out;
  const auto same = [](const auto& value) { return value; };
  const auto name = [](auto value) { return ToString(value); };
  Compare("minimum", first.min_member, later.min_member, same, &out);
  Compare("total", first.total_number, later.total_number, same, &out);
  Compare("waiting time (ms)", first.wait_time_ms, later.wait_time_ms, same, &out);
  Compare("mode", first.mode, later.mode, name, &out);
  Compare("match policy", first.match_policy, later.match_policy, name, &out);
  const auto amounts = [](const ResourceList& list) { return absl::StrCat("{", FormatResources(list), "}"); };
  Compare("minimum resources", first.min_resources, later.min_resources, amounts, &out);
  Compare("priority", first.priority, later.priority, same, &out);
  if (!later.groups.empty() && first.groups != later.groups) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", "groups ", absl::StrJoin(later.groups, " "), " against ",
                    first.groups.empty() ? "nothing" : absl::StrJoin(first.groups, " "));
  }
  Compare("queue", first.queue, later.queue, same, &out);
  Compare("on-timeout", first.on_timeout, later.on_timeout, name, &out);
  Compare("on-member-failure", first.on_member_failure, later.on_member_failure, name, &out);
  const auto yes_or_no = [](bool value) { return value ? "true" : "false"; };
  Compare("stale grace (ms)", first.stale_grace_ms, later.stale_grace_ms, same, &out);
  Compare("preemptible", first.preemptible, later.preemptible, yes_or_no, &out);
  Compare("duration (ms)", first.duration_ms, later.duration_ms, same, &out);
  Compare(
      "topology", first.topology, later.topology, [](const TopologyRule& rule) { return ToString(rule); }, &out);
  return out;
}

}  // namespace muster
