// Which gangs may use a queue: the access list of a queue, and whether it serves a gang (SPEC Q-12). Pure values and
// functions.
//
// The namespace of a gang counts, or the gRPC caller that declares it. A caller chooses the namespace of its gang
// itself: for an authenticated caller, its identity counts instead.
#ifndef MUSTER_STATE_MODEL_QUEUE_ACCESS_H_
#define MUSTER_STATE_MODEL_QUEUE_ACCESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "state/model/pod_template.h"

namespace muster {

// `open`: queues serve every gang. `listed`: queues serve the gangs that their access lists name.
enum class AccessPolicy : uint8_t { kOpen, kListed };
[[nodiscard]] absl::string_view ToString(AccessPolicy policy);
[[nodiscard]] std::optional<AccessPolicy> ParseAccessPolicy(absl::string_view text);

// The entry of a list for every value.
inline constexpr char kAnyName[] = "*";

// Namespaces with labels that meet every requirement (In, NotIn, Exists, DoesNotExist). Without requirements: every
// namespace.
struct NamespaceSelector {
  std::vector<SelectorRequirement> requirements;
  friend bool operator==(const NamespaceSelector&, const NamespaceSelector&) = default;
};

// The gangs that a queue serves: those that any of the lists names.
struct AccessList {
  std::vector<std::string> namespaces;  // names; "*": every gang, whatever its namespace and its caller
  std::optional<NamespaceSelector> namespace_selector;
  std::vector<std::string> identities;  // callers, as "token:NAME"; "*": every authenticated caller

  [[nodiscard]] bool empty() const {
    return namespaces.empty() && !namespace_selector.has_value() && identities.empty();
  }
  friend bool operator==(const AccessList&, const AccessList&) = default;
};

// The errors in the list, each with the field and what was expected.
[[nodiscard]] std::vector<std::string> ValidateAccess(const AccessList& list);
// Sorts the names, as Serves requires.
void SortNames(AccessList* list);

// The labels of the known namespaces, by name.
using NamespaceLabels = absl::btree_map<std::string, Labels>;

// A gang that asks for a queue.
struct Applicant {
  absl::string_view name_space;
  absl::string_view caller;  // the authenticated gRPC caller that declares the gang; empty: the namespace counts
  const NamespaceLabels* known = nullptr;
};
// REQUIRES: SortNames(list).
[[nodiscard]] bool Serves(const AccessList& list, const Applicant& gang);
// Whether the selector treats the labels `a` and `b` of a namespace differently. nullptr: the namespace is not known.
[[nodiscard]] bool Distinguishes(const NamespaceSelector& selector, const Labels* a, const Labels* b);

// The gangs that the list names, as an object of a sentence: "namespaces a, b and caller cert:ray". REQUIRES: the list
// is not empty.
[[nodiscard]] std::string Describe(const AccessList& list);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_QUEUE_ACCESS_H_
