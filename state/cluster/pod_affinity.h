// Which pods are near which: required inter-pod (anti-)affinity and hard topology spread (SPEC P-3), kept up to date as
// the cluster is charged.
//
// Only classes that say something of their neighbours, or of which the labels could be meant by somebody, are known
// here; a pod's other labels cost nothing. Labels count by the keys that some selector ever named: a *kin* is a pod's
// namespace and those of its labels. For each *term* - pods that are meant, and a label of nodes - it is counted how
// many of them each domain has, and how many that want none of them. A part of Cluster. Not thread-safe.
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
#include "state/base/hash.h"
#include "state/cluster/node_filter.h"
#include "state/model/affinity_terms.h"
#include "state/model/ids.h"

namespace muster {

class Cluster;

class Neighbours {
 public:
  // What is required of neighbours, or, `preferred`, what is counted for preferences: Counted() of those.
  explicit Neighbours(const Cluster* cluster, bool preferred = false) : cluster_(cluster), preferred_(preferred) {}
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  // --- labels ---
  // From now on the labels that the rules name tell pods apart. True: pods known before may have another kin now.
  bool Learn(const NeighbourRules& rules);
  // Nothing that anybody names so far could mean the pod by its labels.
  [[nodiscard]] bool any_learned() const { return everyone_ || !keys_.empty(); }
  // Somebody goes by the labels of namespaces.
  [[nodiscard]] bool by_namespaces() const { return keys_.contains(NamespaceKey("")); }
  // Whether a namespace with the one labels is told from one with the others; nullptr: it is not known.
  [[nodiscard]] bool TellsApart(const Labels* a, const Labels* b) const;
  // Empty: nobody's selector can mean it. `labels`: as PackLabels has them. `of_namespace`: its namespace's; nullptr:
  // they are not known.
  [[nodiscard]] std::string KinOf(absl::string_view name_space, absl::string_view labels,
                                  const Labels* of_namespace) const;

  // --- classes and nodes ---
  // `shape`: the template of its pods. REQUIRES: the rules are learned; rules or kin are not empty.
  void AddClass(ClassId cls, const NeighbourRules& rules, const PodTemplate& shape, absl::string_view kin);
  void RemoveClass(ClassId cls);
  // The node's labels changed, or it came or went.
  void NoteNode(NodeId node);

  // --- charges ---
  // So many more of the class are on the node, or fewer. True: others may fit somewhere now that did not before.
  // REQUIRES: AddClass.
  bool Charge(NodeId node, ClassId cls, int32_t times);

  // How many of the class are where.
  [[nodiscard]] const absl::btree_map<NodeId, int64_t>& ChargedOf(ClassId cls) const;
  // Adds which labels tell pods apart.
  void HashLearned(StateHasher* hasher) const;

  // --- room ---
  // How many pods of the class the others let on the node, at most `limit`. REQUIRES: AddClass.
  [[nodiscard]] int32_t Room(NodeId node, ClassId cls, int32_t limit) const;
  // Whether one that is charged there may stay, as far as the others go.
  [[nodiscard]] bool Agree(NodeId node, ClassId cls) const;
  // Pods of one class on one node.
  struct Newcomer {
    NodeId node;
    ClassId cls;
    int32_t pods;
  };
  // The newcomers, who are charged already, could have come one after the other: each found those whom it wants to be
  // with, or was the first of its kind. REQUIRES: each agrees, and wants company.
  [[nodiscard]] bool InSomeOrder(std::vector<Newcomer> newcomers) const;
  // Pods of the class want to be with others, or with each other.
  [[nodiscard]] bool WantsCompany(ClassId cls) const { return !Of(cls).affinity.empty(); }
  // What keeps one more of it off the node: "pod anti-affinity (kubernetes.io/hostname)"; empty: nothing.
  [[nodiscard]] std::string Obstacle(NodeId node, ClassId cls) const;
  // What a pod of it may do to the room of others, or theirs to it, ends at the node.
  [[nodiscard]] bool Local(ClassId cls) const;
  // Two pods, of one class each, never share a node, whichever it is.
  [[nodiscard]] bool Repel(ClassId a, ClassId b) const;
  // Two pods of the class never share this node.
  [[nodiscard]] bool OneOn(NodeId node, ClassId cls) const;
  // One more pod of it may make room for another of it.
  [[nodiscard]] bool Grows(ClassId cls) const;
  // A pod of `placed` may make room for one of `cls`.
  [[nodiscard]] bool Opens(ClassId placed, ClassId cls) const;
  // Its pods keep apart by labels that do not lie within each other: the first place that will do may be a bad one.
  [[nodiscard]] bool Tangled(ClassId cls) const;
  // The label of which all pods of the class must be in one domain, while no pod elsewhere is meant; empty: none.
  [[nodiscard]] std::string TogetherIn(ClassId cls) const;

  // How many pods that the class's anti-affinity term `term` means are in the node's domain.
  [[nodiscard]] int64_t Near(NodeId node, ClassId cls, size_t term) const;
  // Whether it means pods of the class itself.
  [[nodiscard]] bool MeansItself(ClassId cls, size_t term) const;

  // What of this a recording keeps; the rest follows from it and from the cluster.
  static constexpr auto Recorded() {
    return std::tuple(&Neighbours::keys_, &Neighbours::everyone_, &Neighbours::charged_);
  }
  // Makes the rest.
  void Rebuild();

 private:
  using TermId = int32_t;
  using DomainId = int32_t;
  static constexpr DomainId kNowhere = -1;

  // A label of nodes that terms name, and which nodes count.
  struct Label {
    std::string name;
    NodeFilter filter;
    bool filters = false;  // not every node counts
    int32_t users = 0;
    std::vector<DomainId> domain_of;  // by NodeId
    absl::flat_hash_map<std::string, DomainId> ids;
  };
  struct Term {
    std::string id;  // what it is, as text
    std::string label;
    std::string at_id;                   // of `at`, in labels_
    const Label* at = nullptr;           // in labels_
    std::vector<PodSelector> selectors;  // ANDed
    std::string indexed;                 // the pair of key and value that what it means must have; empty: none
    bool by_labels = false;              // it goes by labels of namespaces
    int32_t users = 0;                   // classes that name it
    int32_t openers = 0;                 // and of them, those for which one more pod may make room
    absl::btree_set<ClassId> means;
    absl::flat_hash_map<DomainId, int64_t> pods;     // that are meant
    absl::flat_hash_map<DomainId, int64_t> holders;  // that want none of them in their domain
    int64_t all_pods = 0;
    int64_t all_holders = 0;
    int64_t version = 0;  // of `pods`
  };
  struct Spread {
    TermId term;
    int32_t max_skew;
    int32_t min_domains;
    // The least that an eligible domain has, as of a version of the term and of the nodes.
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
    absl::btree_set<TermId> meant_by;
  };

  [[nodiscard]] const Known& Of(ClassId cls) const { return *known_[static_cast<size_t>(cls)]; }
  [[nodiscard]] const Term& TermAt(TermId id) const { return *terms_[static_cast<size_t>(id)]; }
  [[nodiscard]] DomainId DomainOf(NodeId node, const Term& term) const;
  [[nodiscard]] static int64_t CountIn(const absl::flat_hash_map<DomainId, int64_t>& counts, DomainId domain);
  TermId AcquireTerm(const std::string& label, NodeFilter nodes, std::vector<PodSelector> selectors, bool opens);
  void ReleaseTerm(TermId id, bool opens);
  [[nodiscard]] static bool Means(const Term& term, const Known& known);
  void Connect(TermId id, ClassId cls);
  const Label* AddLabel(const std::string& id, const std::string& name, NodeFilter nodes);
  [[nodiscard]] DomainId Place(NodeId node, Label* label) const;
  // Adds so many pods of the class to what its terms count in the node's domains; `only`: of this label; nullptr: all.
  void Count(NodeId node, const Known& known, int64_t times, const Label* only);
  [[nodiscard]] int64_t Least(const Spread& spread) const;
  // False: whom it means is not known, as no namespace is; it is left to whoever knows.
  [[nodiscard]] bool Judged(const Term& term) const;
  [[nodiscard]] bool AffinityHolds(NodeId node, const Known& known, int64_t own) const;
  [[nodiscard]] int32_t SpreadRoom(NodeId node, ClassId cls, int32_t limit) const;

  const Cluster* const cluster_;
  const bool preferred_;
  absl::btree_set<std::string> keys_;                                   // that some selector named
  bool everyone_ = false;                                               // some selector means pods without any label
  absl::btree_map<ClassId, absl::btree_map<NodeId, int64_t>> charged_;  // by class that is known here
  std::vector<std::unique_ptr<Known>> known_;                           // by ClassId
  std::vector<std::unique_ptr<Term>> terms_;
  std::vector<TermId> unused_;
  absl::flat_hash_map<std::string, TermId> ids_;
  absl::flat_hash_map<std::string, absl::btree_set<TermId>> by_pair_;  // terms, by what they are indexed by
  absl::btree_set<TermId> not_indexed_;
  absl::flat_hash_map<std::string, absl::btree_set<ClassId>> classes_by_pair_;
  absl::flat_hash_map<std::string, std::unique_ptr<Label>> labels_;  // by name, and which nodes count
  int64_t epoch_ = 0;                                                // grows when a node changes
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_POD_AFFINITY_H_
