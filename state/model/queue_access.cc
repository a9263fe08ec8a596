#include "state/model/queue_access.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "state/base/enum_names.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr EnumNames<AccessPolicy, 2> kAccessPolicies{{"open", "listed"}};

// The largest number of entries of one list, of values of one requirement, and of requirements.
constexpr size_t kMaxAccessEntries = 1'000;

bool IsIdentity(const std::string& name) {
  for (const absl::string_view kind : {"token:", "user:", "cert:"}) {
    if (absl::StartsWith(name, kind)) return name.size() > kind.size();
  }
  return false;
}

void CheckNames(absl::string_view field, const std::vector<std::string>& names, bool (*is_valid)(const std::string&),
                absl::string_view expected, std::vector<std::string>* problems) {
  if (names.size() > kMaxAccessEntries) {
    problems->push_back(absl::StrCat(field, ": ", names.size(), " entries; expected at most ", kMaxAccessEntries));
    return;
  }
  for (const std::string& name : names) {
    if (name == kAnyName || is_valid(name)) continue;
    problems->push_back(absl::StrCat(field, ": ", Quoted(name), "; expected ", expected, ", or * for all"));
  }
}

// As Kubernetes does: values that cannot match, or that have no effect, are refused.
void CheckRequirement(const SelectorRequirement& requirement, std::vector<std::string>* problems) {
  const auto report = [&](const auto&... why) {
    problems->push_back(absl::StrCat("namespaceSelector: ", Quoted(requirement.key), why...));
  };
  if (!IsLabelKey(requirement.key)) report("; expected the key of a label");
  const size_t count = requirement.values.size();
  if (count > kMaxAccessEntries) report(" has ", count, " values; expected at most ", kMaxAccessEntries);
  switch (requirement.op) {
    case SelectorOperator::kIn:
    case SelectorOperator::kNotIn:
      if (count == 0) report(" has no values; with In and NotIn, expected at least one");
      return;
    case SelectorOperator::kExists:
    case SelectorOperator::kDoesNotExist:
      if (count > 0) report(" has values; with Exists and DoesNotExist, expected none");
      return;
    case SelectorOperator::kGt:
    case SelectorOperator::kLt:
      report(" is compared as a number; expected operator In, NotIn, Exists or DoesNotExist");
  }
}

bool Selects(const NamespaceSelector& selector, const Labels* labels) {
  if (selector.requirements.empty()) return true;
  return labels != nullptr && absl::c_all_of(selector.requirements, [&](const SelectorRequirement& each) {
           const auto label = labels->find(each.key);
           return Meets(each, label == labels->end() ? nullptr : &label->second);
         });
}

// "a, b, c and 7 more".
std::string ListNames(const std::vector<std::string>& names) {
  constexpr size_t kMostNamed = 3;
  const size_t named = std::min(names.size(), kMostNamed);
  const std::string first = absl::StrJoin(absl::MakeConstSpan(names).first(named), ", ");
  return named == names.size() ? first : absl::StrCat(first, " and ", names.size() - named, " more");
}

// In the notation of kubectl: "team in (a, b)".
std::string RequirementText(const SelectorRequirement& requirement) {
  switch (requirement.op) {
    case SelectorOperator::kExists:
      return requirement.key;
    case SelectorOperator::kDoesNotExist:
      return absl::StrCat("!", requirement.key);
    default:
      break;
  }
  const bool excludes = requirement.op == SelectorOperator::kNotIn;
  if (!excludes && requirement.values.size() == 1) return absl::StrCat(requirement.key, "=", requirement.values[0]);
  return absl::StrCat(requirement.key, excludes ? " notin (" : " in (", ListNames(requirement.values), ")");
}

}  // namespace

absl::string_view ToString(AccessPolicy policy) { return kAccessPolicies.Of(policy); }
std::optional<AccessPolicy> ParseAccessPolicy(absl::string_view text) { return kAccessPolicies.Find(text); }

std::vector<std::string> ValidateAccess(const AccessList& list) {
  std::vector<std::string> problems;
  CheckNames(
      "namespaces", list.namespaces, [](const std::string& name) { return IsSubdomain(name); },
      "the name of a namespace", &problems);
  CheckNames("identities", list.identities, &IsIdentity, "token:NAME, user:NAME or cert:NAME", &problems);
  if (!list.namespace_selector.has_value()) return problems;
  const std::vector<SelectorRequirement>& requirements = list.namespace_selector->requirements;
  if (requirements.size() > kMaxAccessEntries) {
    problems.push_back(absl::StrCat("namespaceSelector: ", requirements.size(), " requirements; expected at most ",
                                    kMaxAccessEntries));
    return problems;
  }
  for (const SelectorRequirement& each : requirements) CheckRequirement(each, &problems);
  return problems;
}

void SortNames(AccessList* list) {
  absl::c_sort(list->namespaces);
  absl::c_sort(list->identities);
}

bool Serves(const AccessList& list, const Applicant& gang) {
  const auto names = [](const std::vector<std::string>& sorted, absl::string_view name) {
    return std::binary_search(sorted.begin(), sorted.end(), name);
  };
  if (names(list.namespaces, kAnyName)) return true;
  if (!gang.caller.empty()) return names(list.identities, kAnyName) || names(list.identities, gang.caller);
  if (names(list.namespaces, gang.name_space)) return true;
  if (!list.namespace_selector.has_value()) return false;
  const auto known = gang.known->find(gang.name_space);
  return Selects(*list.namespace_selector, known == gang.known->end() ? nullptr : &known->second);
}

bool Distinguishes(const NamespaceSelector& selector, const Labels* a, const Labels* b) {
  return Selects(selector, a) != Selects(selector, b);
}

std::string Describe(const AccessList& list) {
  if (absl::c_linear_search(list.namespaces, kAnyName)) return "every gang";
  std::vector<std::string> parts;
  if (!list.namespaces.empty()) {
    parts.push_back(
        absl::StrCat(list.namespaces.size() == 1 ? "namespace " : "namespaces ", ListNames(list.namespaces)));
  }
  if (list.namespace_selector.has_value()) {
    std::vector<std::string> texts;
    for (const SelectorRequirement& each : list.namespace_selector->requirements) {
      texts.push_back(RequirementText(each));
    }
    parts.push_back(texts.empty() ? "every namespace" : absl::StrCat("namespaces with labels ", ListNames(texts)));
  }
  if (absl::c_linear_search(list.identities, kAnyName)) {
    parts.emplace_back("every authenticated caller");
  } else if (!list.identities.empty()) {
    parts.push_back(absl::StrCat(list.identities.size() == 1 ? "caller " : "callers ", ListNames(list.identities)));
  }
  return absl::StrJoin(parts, " and ");
}

}  // namespace muster
