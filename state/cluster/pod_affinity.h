// Required inter-pod affinity, anti-affinity and topology spread (SPEC P-3), updated as the cluster is charged. A
// second instance counts the terms of preferences.
//
// It has only the classes with rules, or with labels that some selector could select. Only label keys that some
// selector has named count: a *label identity* is a pod's namespace and its labels with such keys. A *term* is a
// selection of pods and a node label. For each term and domain, it counts the selected pods, and the pods that reject
// selected pods by anti-affinity. A part of Cluster. Not thread-safe.
#ifndef MUSTER_STATE_CLUSTER_POD_AFFINITY_H_
#define MUSTER_STATE_CLUSTER_POD_AFFINITY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "state/base/components.h"
#include "state/model/facts.h"
#include "state/model/ids.h"
#include "state/model/pod_template.h"

namespace muster {

struct PodClass;

// A value of one label that some node has. Numbers are dense for each label.
using DomainId = int32_t;
inline constexpr DomainId kNoDomain = -1;

// The label with a different value on each node.
inline constexpr absl::string_view kHostnameLabel = "kubernetes.io/hostname";

// The node's label of this name; nullptr if it has none. The node's name replaces a missing host name label: Kubernetes
// sets it on every node, but other announcers may not.
[[nodiscard]] const std::string* LabelOf(const NodeDescription& node, const std::string& name);

// The nodes that count for a topology spread, as in kube-scheduler's node inclusion policies
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread).
struct NodeFilter {
  std::vector<std::string> labels;  // names of labels that the node has
  PodTemplate shape;                // only its node selector and affinity, which the node meets, and its tolerations
  bool taints = false;              // the node has no taint that the pod does not tolerate

  // Equal if and only if the filters are equal; empty: every node counts.
  [[nodiscard]] std::string Key() const;
  // Whether the node counts.
  [[nodiscard]] bool Has(const NodeDescription& node) const;
};

class PodAffinity {
 public:
  // For required rules or, if `preferred`, for the terms of preferences, in the form of PreferredTerms().
  explicit PodAffinity(const Cluster* cluster, bool preferred = false) : cluster_(cluster), preferred_(preferred) {}
  PodAffinity(const PodAffinity&) = delete;
  PodAffinity& operator=(const PodAffinity&) = delete;

  // --- labels ---
  // Adds the label keys that the rules name to label identities. True if known pods may have another label identity
  // now.
  bool Learn(const PodAffinityRules& rules);
  // True if some selector that was learned selects pods.
  [[nodiscard]] bool any_learned() const { return selects_unlabelled_ || !keys_.empty(); }
  // True if some selector selects namespaces by labels.
  [[nodiscard]] bool by_namespaces() const { return keys_.contains(NamespaceKey("")); }
  // Whether the two sets of labels of a namespace differ for some selector; nullptr: the namespace is not known.
  [[nodiscard]] bool Distinguishes(const Labels* a, const Labels* b) const;
  // The label identity of a pod; empty if no selector can select it. `labels`: in the form of PackLabels.
  // `of_namespace`: the labels of its namespace; nullptr if they are not known.
  [[nodiscard]] std::string LabelIdentityOf(absl::string_view name_space, absl::string_view labels,
                                            const Labels* of_namespace) const;

  // --- classes and nodes ---
  // No effect and false if the class has neither rules nor a label identity. REQUIRES: its rules are learned.
  bool AddClass(ClassId cls, const PodClass& added);
  void RemoveClass(ClassId cls);
  // The node's labels changed, or it was added or removed.
  void OnNodeChanged(NodeId node);

  // --- charges ---
  // Adds `times` pods of the class to the node, or removes them. True if pods may fit somewhere now that did not
  // before. `future`: pods of a future reservation (P-8): they repel other pods, but no pod may rely on them.
  // REQUIRES: AddClass.
  bool Charge(NodeId node, ClassId cls, int64_t times, bool future);

  // --- room ---
  // How many pods of the class, at most `limit`, pod affinity allows on the node. REQUIRES: AddClass; limit is
  // positive.
  [[nodiscard]] int32_t Room(NodeId node, ClassId cls, int32_t limit) const;
  // Whether the rules allow a pod of the class that is charged on the node already.
  [[nodiscard]] bool Satisfied(NodeId node, ClassId cls) const;
  // Pods of one class on one node.
  struct AddedPods {
    NodeId node;
    ClassId cls;
    int32_t pods;
  };
  // True if the added pods, which are charged already, could have been placed one after the other: each found a pod
  // that its affinity requires, or was the first of its kind. REQUIRES: Satisfied and RequiresAffinity for each.
  [[nodiscard]] bool HasFeasibleOrder(std::vector<AddedPods> added) const;
  // True if pods of the class require other pods, or each other.
  [[nodiscard]] bool RequiresAffinity(ClassId cls) const { return !Of(cls).affinity.empty(); }
  // True if pods of the class depend on no other pods: they have only rules of anti-affinity, or none.
  [[nodiscard]] bool OnlyRepels(ClassId cls) const { return Of(cls).affinity.empty() && Of(cls).spread.empty(); }
  // The rule that excludes one more pod of the class: "pod anti-affinity (kubernetes.io/hostname)"; empty: none.
  [[nodiscard]] std::string Obstacle(NodeId node, ClassId cls) const;
  // True if a pod of the class and other pods affect each other within one node only.
  [[nodiscard]] bool IsLocal(ClassId cls) const;
  // True if two pods of the class never share this node.
  [[nodiscard]] bool AtMostOneOn(NodeId node, ClassId cls) const;
  // True if a placed pod of `placed` may enable a pod of `cls`, which may be the same class.
  [[nodiscard]] bool MayEnable(ClassId placed, ClassId cls) const;
  // True if pods of the class exclude each other by several labels with domains that may overlap: the first feasible
  // node may then be a bad one.
  [[nodiscard]] bool DomainsOverlap(ClassId cls) const;
  // The label with one domain for all pods of the class, while no selected pod exists elsewhere; empty: none.
  [[nodiscard]] std::string CoLocationKey(ClassId cls) const;

  // The number of pods in the node's domain that the class's anti-affinity term `term` selects, future ones included.
  [[nodiscard]] int64_t CountSelected(NodeId node, ClassId cls, size_t term) const;
  // Whether the term selects pods of the class itself.
  [[nodiscard]] bool SelectsItself(ClassId cls, size_t term) const;

  // The members that a recording contains; the others are derived from them and from the cluster.
  static constexpr auto Recorded() {
    return std::tuple(&PodAffinity::keys_, &PodAffinity::selects_unlabelled_, &PodAffinity::charged_,
                      &PodAffinity::future_);
  }
  // Builds the derived members. REQUIRES: AddClass was not called.
  void Rebuild();

 private:
  using TermId = int32_t;

  // A node label that terms name, and the filter of the nodes that count.
  struct Label {
    std::string name;
    NodeFilter filter;
    bool filters = false;  // the filter excludes some nodes
    int32_t users = 0;
    std::vector<DomainId> domain_of;  // by NodeId
    absl::flat_hash_map<std::string, DomainId> ids;
  };
  struct DomainCounts {
    absl::flat_hash_map<DomainId, int64_t> by_domain;
    int64_t all = 0;

    [[nodiscard]] int64_t In(DomainId domain) const {
      const auto found = all == 0 ? by_domain.end() : by_domain.find(domain);
      return found == by_domain.end() ? 0 : found->second;
    }
    void Add(DomainId domain, int64_t times) {
      const auto count = by_domain.try_emplace(domain, 0).first;
      count->second += times;
      if (count->second == 0) by_domain.erase(count);
      all += times;
    }
  };
  struct Term {
    std::string id;                      // the term as text
    std::string at_id;                   // the key of `at` in labels_
    const Label* at = nullptr;           // in labels_
    std::vector<PodSelector> selectors;  // ANDed
    std::string indexed;                 // a key and value that every selected pod has; empty: none
    bool by_labels = false;              // it selects namespaces by labels
    int32_t users = 0;                   // classes that name it
    int32_t openers = 0;                 // classes that one more selected pod may enable
    absl::btree_set<ClassId> selected_classes;
    DomainCounts pods;         // selected pods
    DomainCounts holders;      // pods with this term of anti-affinity: they reject selected pods
    DomainCounts future_pods;  // as `pods`, for pods of future reservations
    DomainCounts future_holders;
    int64_t version = 0;  // changes with `pods`
  };
  struct Spread {
    TermId term;
    int32_t max_skew;
    int32_t min_domains;
    // Cached: the smallest count of an eligible domain, for a version of the term and an epoch of the nodes.
    mutable int64_t version = -1;
    mutable int64_t epoch = -1;
    mutable std::vector<DomainId> eligible;
    mutable int64_t least = 0;
  };
  struct Known {
    std::string name_space;
    Labels labels;
    std::vector<TermId> affinity;
    std::vector<TermId> anti;
    std::vector<Spread> spread;
    absl::btree_set<TermId> selected_by;
  };

  // The number of pods of the class, by node. `future`: of future reservations.
  [[nodiscard]] const absl::btree_map<NodeId, int64_t>& ChargedOf(ClassId cls, bool future) const;
  struct Violation {
    const char* rule = nullptr;  // nullptr: no rule is violated
    const Term* term = nullptr;
  };

  [[nodiscard]] const Known& Of(ClassId cls) const { return *known_[static_cast<size_t>(cls)]; }
  [[nodiscard]] const Term& TermAt(TermId id) const { return *terms_[static_cast<size_t>(id)]; }
  [[nodiscard]] DomainId DomainOf(NodeId node, const Term& term) const;
  TermId AcquireTerm(const std::string& label, NodeFilter nodes, std::vector<PodSelector> selectors, bool opens);
  void ReleaseTerm(TermId id, bool opens);
  [[nodiscard]] static bool Selects(const Term& term, const Known& known);
  void Connect(TermId id, ClassId cls);
  const Label* AddLabel(const std::string& id, const std::string& name, NodeFilter nodes);
  [[nodiscard]] DomainId DomainOfLabel(NodeId node, Label* label) const;
  // Adds `times` pods of the class to the counts of its terms in the node's domains. `only`: for terms of this label;
  // nullptr: for all.
  void Count(NodeId node, const Known& known, int64_t times, bool future, const Label* only);
  [[nodiscard]] int64_t Least(const Spread& spread) const;
  // False if the selected pods are not known, because no namespace is. Such a term is not enforced.
  [[nodiscard]] bool IsResolvable(const Term& term) const;
  [[nodiscard]] bool AffinitySatisfied(NodeId node, const Known& known, int64_t own) const;
  [[nodiscard]] int64_t SpreadRoom(NodeId node, const Spread& spread) const;
  // The first rule that excludes a pod of the class from the node. `own`: 1 if the pod is charged there already,
  // otherwise 0. A charged pod does not conflict with pods of future reservations.
  [[nodiscard]] Violation FindViolation(NodeId node, const Known& known, int64_t own) const;

  const Cluster* const cluster_;
  const bool preferred_;
  absl::btree_set<std::string> keys_;  // label keys that some selector named
  // Some selector selects pods without labels.
  bool selects_unlabelled_ = false;
  using Charges = absl::btree_map<ClassId, absl::btree_map<NodeId, int64_t>>;
  [[nodiscard]] const Charges& ChargesOf(bool future) const { return future ? future_ : charged_; }
  Charges charged_;  // by known class
  Charges future_;
  std::vector<std::unique_ptr<Known>> known_;  // by ClassId
  std::vector<std::unique_ptr<Term>> terms_;
  std::vector<TermId> unused_;
  absl::flat_hash_map<std::string, TermId> ids_;
  absl::flat_hash_map<std::string, absl::btree_set<TermId>> by_pair_;  // terms, by Term::indexed
  absl::btree_set<TermId> not_indexed_;
  absl::flat_hash_map<std::string, absl::btree_set<ClassId>> classes_by_pair_;
  absl::flat_hash_map<std::string, std::unique_ptr<Label>> labels_;  // by name and node filter
  int64_t epoch_ = 0;                                                // grows when a node changes
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_POD_AFFINITY_H_
