#include "state/model/gang.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
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

using D = GangDeclaration;

template <typename T>
std::string Print(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, ResourceList>) {
    return absl::StrCat("{", FormatResources(value), "}");
  } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, TopologyRule>) {
    return std::string(ToString(value));
  } else {
    return absl::StrCat(value);
  }
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

using Replacement = void (*)(const D& from, D* to);
template <auto... fields>
constexpr std::array<Replacement, sizeof...(fields)> ReplacementsOf() {
  return {[](const D& from, D* to) { to->*fields = from.*fields; }...};
}
// In the order of GangField.
constexpr std::array kReplace =
    ReplacementsOf<&D::min_member, &D::total_number, &D::wait_time_ms, &D::mode, &D::match_policy, &D::on_timeout,
                   &D::on_member_failure, &D::min_resources, &D::priority, &D::groups, &D::subgroups, &D::topology,
                   &D::queue, &D::preemptible, &D::duration_ms>();
static_assert(kReplace.size() == static_cast<size_t>(GangField::kDuration) + 1, "each field can be replaced");

}  // namespace

absl::StatusOr<GangDeclaration> ReplaceFields(const GangDeclaration& known, const GangDeclaration& update,
                                              const std::vector<GangField>& fields) {
  GangDeclaration out = known;
  for (const GangField field : fields) kReplace[static_cast<size_t>(field)](update, &out);
  if (absl::c_linear_search(fields, GangField::kQueue)) out.caller = update.caller;
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
  static const D kNone;
  const std::array<const D*, 2> declarations = {annotations == nullptr ? &kNone : annotations,
                                                object == nullptr ? &kNone : object};
  // Sets `out` to the field of the first declaration that has it. Returns whether there is one.
  const auto take = [&](auto field, auto* out) {
    for (const D* declaration : declarations) {
      if (!(declaration->*field).has_value()) continue;
      *out = *(declaration->*field);
      return true;
    }
    return false;
  };
  // The list of the first declaration with one that is not empty.
  const auto list = [&](auto field) -> const auto& {
    return (declarations[0]->*field).empty() ? declarations[1]->*field : declarations[0]->*field;
  };
  GangRules rules;
  rules.on_timeout = DefaultOnTimeout(dialect);
  rules.stale_grace_ms = DefaultStaleGraceMs(dialect);
  rules.wait_time_ms = defaults.wait_time_ms;
  rules.match_policy = defaults.match_policy;
  rules.queue = "default";
  rules.min_member = -1;
  take(&D::min_member, &rules.min_member);
  rules.total_number = rules.min_member;
  rules.declares_total = take(&D::total_number, &rules.total_number);
  rules.total_number = std::max(rules.total_number, rules.min_member);
  take(&D::wait_time_ms, &rules.wait_time_ms);
  take(&D::mode, &rules.mode);
  take(&D::match_policy, &rules.match_policy);
  take(&D::min_resources, &rules.min_resources);
  rules.declares_total = rules.declares_total || !rules.min_resources.empty();
  take(&D::priority, &rules.priority);
  take(&D::queue, &rules.queue);
  const auto names_queue = absl::c_find_if(declarations, [](const D* each) { return each->queue.has_value(); });
  rules.caller = names_queue == declarations.end() ? list(&D::caller) : (*names_queue)->caller;
  take(&D::on_timeout, &rules.on_timeout);
  take(&D::on_member_failure, &rules.on_member_failure);
  take(&D::stale_grace_ms, &rules.stale_grace_ms);
  take(&D::preemptible, &rules.preemptible);
  take(&D::duration_ms, &rules.duration_ms);
  take(&D::topology, &rules.topology);
  rules.group = list(&D::groups);
  absl::c_sort(rules.group);
  rules.group.erase(std::unique(rules.group.begin(), rules.group.end()), rules.group.end());
  if (const std::vector<SubgroupDeclaration>& subgroups = list(&D::subgroups); !subgroups.empty()) {
    const bool counted = rules.min_member >= 0;
    SubgroupParseResult reading = ParseSubgroups(subgroups, counted ? std::optional(rules.min_member) : std::nullopt);
    rules.tree = std::move(reading.tree);
    rules.tree_problem = std::move(reading.problem);
    rules.min_member = rules.tree_problem.empty() ? static_cast<int32_t>(rules.tree.Least()) : -1;
    rules.total_number = std::max(rules.total_number, rules.min_member);
  }
  rules.domains = !rules.topology.required.empty() || absl::c_any_of(rules.tree.nodes, [](const Subgroup& each) {
    return !each.topology.required.empty();
  });
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
  const auto differs = [&](absl::string_view field, absl::string_view was, absl::string_view is) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", field, " ", is, " against ", was);
  };
  const auto compare = [&](absl::string_view field, auto member) {
    const auto& was = first.*member;
    const auto& is = later.*member;
    if (is.has_value() && was != is) differs(field, was.has_value() ? Print(*was) : "nothing", Print(*is));
  };
  compare("minimum", &D::min_member);
  compare("total", &D::total_number);
  compare("waiting time (ms)", &D::wait_time_ms);
  compare("mode", &D::mode);
  compare("match policy", &D::match_policy);
  compare("minimum resources", &D::min_resources);
  compare("priority", &D::priority);
  if (!later.groups.empty() && first.groups != later.groups) {
    differs("groups", first.groups.empty() ? "nothing" : absl::StrJoin(first.groups, " "),
            absl::StrJoin(later.groups, " "));
  }
  compare("queue", &D::queue);
  compare("on-timeout", &D::on_timeout);
  compare("on-member-failure", &D::on_member_failure);
  compare("stale grace (ms)", &D::stale_grace_ms);
  compare("preemptible", &D::preemptible);
  compare("duration (ms)", &D::duration_ms);
  compare("topology", &D::topology);
  return out;
}

}  // namespace muster
