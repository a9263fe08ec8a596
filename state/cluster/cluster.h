// Nodes, classes of identical pods, and the amounts charged on nodes: the one source of usage (SPEC Q-7).
//
// Every amount on a node is *used* (a pod is bound there, or its binding is under way), *reserved* (promised to a slot
// of a gang), or *future-reserved* (P-8). free = allocatable - used - reserved - future_reserved.
// Reservations never make it negative; facts from outside and future reservations may.
//
// Every change is appended to a log. An object with derived data per class (ClassIndex, the planner's list of blocked
// gangs) catches up from the log instead of scanning all nodes. Not thread-safe.
#ifndef MUSTER_STATE_CLUSTER_CLUSTER_H_
#define MUSTER_STATE_CLUSTER_CLUSTER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/base/resources.h"
#include "state/cluster/node_order.h"
#include "state/cluster/pod_affinity.h"
#include "state/model/facts.h"

namespace muster {

enum class ChargeKind : uint8_t { kUsed, kReserved, kFutureReserved };

// Why a class cannot use a node at all, whatever is free there.
enum class Obstacle : uint8_t { kNone, kAbsent, kStale, kUnschedulable, kTaint, kSelector, kAffinity, kLearned };
inline constexpr size_t kObstacles = 8;

// The obstacle as a phrase: "a taint the pod does not tolerate".
[[nodiscard]] absl::string_view ObstaclePhrase(Obstacle obstacle);

// The pod's own constraint that excludes a node with these facts: kSelector, kAffinity or kNone.
[[nodiscard]] Obstacle PodSideObstacle(const NodeDescription& node, const PodTemplate& shape);

// Whether a node was announced to this process, or only to a previous one (S-2). kExpired: only to a previous one, and
// too long ago.
enum class Freshness : uint8_t { kCurrent, kRestored, kExpired };

// A host port on a node, and the number of charges that use it.
struct PortCharges {
  HostPort port;
  int32_t used = 0;
  int32_t reserved = 0;
  int32_t future_reserved = 0;
};

// The members that the planner reads are first, to be close together.
struct Node {
  bool known = false;    // false: this id is unused
  bool present = false;  // false: it exists only because of its charges
  Freshness freshness = Freshness::kCurrent;
  int32_t used_pods = 0;
  int32_t reserved_pods = 0;
  int32_t future_reserved_pods = 0;
  ResourceVector free;  // at least -2^62; negative if facts exceed the capacity
  ResourceVector allocatable;
  ResourceSum reserved;
  ResourceSum used;
  ResourceSum future_reserved;
  std::vector<PortCharges> ports;  // with at least one charge
  NodeDescription facts;

  // True if the node's amounts are part of TotalFree and TotalAllocatable.
  [[nodiscard]] bool counts() const { return present && !facts.unschedulable && freshness != Freshness::kExpired; }
  [[nodiscard]] WideSum Left(ResourceId id) const {
    return WideSum{allocatable.Get(id)} - used.Get(id) - reserved.Get(id) - future_reserved.Get(id);
  }
};

// The pod's label identities (PodAffinity::LabelIdentityOf) for required and for preferred rules. They distinguish pods
// with equal templates.
struct LabelIdentity {
  std::string required;
  std::string preferred;
  friend bool operator==(const LabelIdentity&, const LabelIdentity&) = default;
};

struct PodClass {
  std::string key;
  std::string family;  // PodTemplate::Family
  Shared<PodTemplate> shape;
  LabelIdentity label_identity;
  bool has_pod_affinity = false;              // the class is in the PodAffinity of required rules
  bool has_preferred = false;                 // the class is in the PodAffinity of preferences
  ResourceVector named;                       // the request as interned by names()
  ResourceVector request;                     // `named`, with one "pods"
  int32_t pods = 0;                           // pods and slots of this class; at 0 the class is removed
  absl::btree_map<NodeId, int64_t> excluded;  // K-6: learned refusals, with their end (ms)
};

struct ClusterChange {
  NodeId node = kNoNode;
  bool constraints = false;  // labels, taints, presence or learned refusals changed
  bool gained = false;       // something that did not fit before may fit now
};

class Cluster {
 public:
  Cluster() : pod_affinity_(this), preferred_(this, /*preferred=*/true) {}
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // --- nodes ---
  // Adds or updates the node. Returns whether anything relevant for placement changed. InvalidArgument, without a
  // change, if an amount is out of range.
  absl::StatusOr<bool> UpsertNode(const NodeDescription& facts);
  // The node is gone. Its charges stay until their pods are removed.
  void RemoveNode(absl::string_view name);
  // Sets the freshness of the node. Nothing new is placed on a kExpired node (Obstacle::kStale). REQUIRES: it is
  // present.
  void SetFreshness(NodeId id, Freshness freshness);
  [[nodiscard]] NodeId FindNode(absl::string_view name) const;
  // The node of that name, created absent when unknown.
  NodeId InternNode(absl::string_view name);
  [[nodiscard]] const Node& node(NodeId id) const { return *nodes_[static_cast<size_t>(id)]; }
  // Ids run from 0 to node_limit()-1; some may be unused (node(id) absent and without charges).
  [[nodiscard]] NodeId node_limit() const { return static_cast<NodeId>(nodes_.size()); }
  [[nodiscard]] int32_t present_nodes() const { return present_nodes_; }
  // Present nodes that were not announced to this process.
  [[nodiscard]] int32_t stale_nodes() const { return stale_nodes_; }
  // The sum of `free` over the nodes with counts(), without negative amounts (P-10).
  [[nodiscard]] const ResourceSum& TotalFree() const { return total_free_; }
  // The sum of `allocatable` over the same nodes.
  [[nodiscard]] const ResourceSum& TotalAllocatable() const { return total_allocatable_; }

  // --- classes ---
  // The class of `shape` and `label_identity`. Counts one more pod in it; ReleaseClass ends that. InvalidArgument if a
  // request is out of range. REQUIRES: Learn was called for `shape`.
  absl::StatusOr<ClassId> AcquireClass(const Shared<PodTemplate>& shape, const LabelIdentity& label_identity = {});
  void ReleaseClass(ClassId id);
  // Allows the reuse of ids of removed classes. REQUIRES: no reference to such an id is left; call between commands.
  void ReuseClasses();
  // Counts `times` more users of the class (a reserved slot outlives its pods).
  void RetainClass(ClassId id, int32_t times) { classes_[static_cast<size_t>(id)]->pods += times; }
  [[nodiscard]] const PodClass& pod_class(ClassId id) const { return *classes_[static_cast<size_t>(id)]; }
  [[nodiscard]] bool has_class(ClassId id) const { return classes_[static_cast<size_t>(id)] != nullptr; }
  [[nodiscard]] ClassId class_limit() const { return static_cast<ClassId>(classes_.size()); }
  // K-6: `cls` is refused on `node` until `until_ms`, or until the node's facts change or a pod leaves it.
  void Exclude(ClassId cls, NodeId node, int64_t until_ms);
  // The number of learned refusals.
  [[nodiscard]] int64_t exclusions() const { return exclusions_; }
  // Removes learned refusals that ended. Returns the earliest end (ms) of the others, or INT64_MAX.
  int64_t ExpireExclusions(int64_t now_ms);

  // --- charges ---
  // `again`: the charge was discharged only for a trial, so it does not count as a gain for pods with affinity to it.
  // REQUIRES: for kFutureReserved, a class that only repels other pods (PodAffinity::OnlyRepels).
  void Charge(NodeId node, ClassId cls, ChargeKind kind, int32_t times, bool again = false);
  // `gained` false: the charge was only a trial (a rollback), so nothing became free that was not free before.
  void Discharge(NodeId node, ClassId cls, ChargeKind kind, int32_t times, bool gained);

  // --- feasibility (P-3) ---
  [[nodiscard]] Obstacle FindObstacle(NodeId node, ClassId cls) const;
  // How many pods of `cls`, at most `limit`, fit into what is free on `node` now and are allowed there by pod affinity.
  // Obstacles are ignored. Pods on other nodes matter too: one more pod may exclude, or enable, many nodes.
  [[nodiscard]] int32_t Room(NodeId node, ClassId cls, int32_t limit) const;
  [[nodiscard]] bool HasRoom(NodeId node, ClassId cls) const { return Room(node, cls, 1) > 0; }
  // An upper bound of Room that changes only with the charges on the node. Of pod affinity, it considers only whether
  // two pods of the class exclude each other on one node.
  [[nodiscard]] int32_t RoomIgnoringOtherNodes(NodeId node, ClassId cls, int32_t limit) const;
  // The first host port of the class that a charge on the node uses; nullptr: none.
  [[nodiscard]] const HostPort* FindTakenPort(NodeId node, ClassId cls) const;
  // Whether one pod of `cls` would fit the node's amounts if `regained` were free too.
  [[nodiscard]] bool FitsAfterRelease(NodeId node, ClassId cls, const ResourceSum& regained) const {
    return RoomAfterRelease(node, cls, regained, 1) > 0;
  }
  // How many pods would fit then, at most `limit`.
  [[nodiscard]] int32_t RoomAfterRelease(NodeId node, ClassId cls, const ResourceSum& regained, int32_t limit) const;
  // Whether a pod of `cls` would fit on the node without one pod of `gone`. REQUIRES: `gone` has no pod affinity rules.
  [[nodiscard]] bool FitsReplacing(NodeId node, ClassId cls, ClassId gone) const;
  // The number of taints with effect PreferNoSchedule that the class does not tolerate (P-3).
  [[nodiscard]] int32_t SoftTaints(NodeId node, ClassId cls) const;
  // P-4: the mean utilization, 0 to 1000, of the requested resources, less 1000 if GPUs would be stranded, less 2000
  // for each soft taint.
  [[nodiscard]] int32_t BinpackScore(NodeId node, ClassId cls) const {
    return UtilizationScore(node, cls) - TaintPenalty(node, cls);
  }
  // The parts of BinpackScore. UtilizationScore changes with every charge, TaintPenalty only with the node's facts.
  [[nodiscard]] int32_t UtilizationScore(NodeId node, ClassId cls) const;
  [[nodiscard]] int32_t TaintPenalty(NodeId node, ClassId cls) const;
  // Logs that a change on the node may soon help a claim that waits for capacity.
  void LogPotentialGain(NodeId node) { Log(node, /*constraints=*/false, /*gained=*/true); }
  // True if a resource with reservations on the node is over-committed, even without the future reservations.
  [[nodiscard]] bool ReservationsExceed(NodeId node) const;
  // True if another charge on `node` uses a host port that `cls` reserves there.
  [[nodiscard]] bool HasPortConflict(NodeId node, ClassId cls) const;
  // Whether the node can still hold what is reserved there for `cls`: constraints, amounts, host ports, pod affinity.
  [[nodiscard]] bool ReservationFits(NodeId node, ClassId cls) const;

  // --- order and change log ---
  // The largest number of changes in the log; a reader that is further behind rebuilds its data. A search of the
  // planner makes up to 32,000.
  static constexpr size_t kMaxLog = 1 << 17;
  // By name (P-4).
  [[nodiscard]] const NodeOrder& order() const { return order_; }
  [[nodiscard]] int64_t log_end() const { return log_start_ + static_cast<int64_t>(log_.size()); }
  [[nodiscard]] int64_t log_start() const { return log_start_; }
  [[nodiscard]] const ClusterChange& log_at(int64_t position) const {
    return log_[static_cast<size_t>(position - log_start_)];
  }

  [[nodiscard]] const ResourceNames& names() const { return names_; }
  [[nodiscard]] const PodAffinity& pod_affinity() const { return pod_affinity_; }
  // PodAffinity::Learn for the required rules and the preferences.
  bool Learn(const PodTemplate& shape) {
    const bool required = pod_affinity_.Learn(shape.pod_affinity);
    return preferred_.Learn(PreferredTerms(shape.preferences)) || required;
  }
  // `labels`: in the form of PackLabels.
  [[nodiscard]] LabelIdentity LabelIdentityOf(absl::string_view name_space, absl::string_view labels) const;
  // True if some selector selects namespaces by labels.
  [[nodiscard]] bool by_namespaces() const { return pod_affinity_.by_namespaces() || preferred_.by_namespaces(); }
  // Sets the namespace's labels; nullptr: it is not known any more. True if pods there may have another label identity
  // now.
  bool SetNamespace(absl::string_view name, const Labels* labels);
  [[nodiscard]] const absl::btree_map<std::string, Labels>& namespaces() const { return namespaces_; }

  // --- preferences ---
  // How much pods of the class prefer the node because of the pods in its domains now; NodePreferenceScore: because of
  // its labels and soft taints.
  [[nodiscard]] int64_t PreferenceScore(NodeId node, ClassId cls) const;
  [[nodiscard]] int64_t NodePreferenceScore(NodeId node, ClassId cls) const;
  // Whether a pod of the class raises (`sign` 1) or lowers (-1) the preference of other pods of the class for its
  // place.
  [[nodiscard]] bool HasSelfPreference(ClassId cls, int32_t sign) const;

  static constexpr auto Recorded() {
    return std::tuple(&Cluster::names_, &Cluster::nodes_, &Cluster::unused_nodes_, &Cluster::node_ids_,
                      &Cluster::order_, &Cluster::present_nodes_, &Cluster::stale_nodes_, &Cluster::total_free_,
                      &Cluster::total_allocatable_, &Cluster::classes_, &Cluster::unused_classes_, &Cluster::class_ids_,
                      &Cluster::log_, &Cluster::log_start_, &Cluster::exclusions_, &Cluster::pod_affinity_,
                      &Cluster::preferred_, &Cluster::namespaces_);
  }
  void AfterRestore() {
    pod_affinity_.Rebuild();
    preferred_.Rebuild();
  }

 private:
  void Log(NodeId node, bool constraints, bool gained);
  // REQUIRES: the amounts of `facts` are in range.
  void SetFacts(NodeId id, bool present, const NodeDescription& facts);
  // Adds `times` times the node's amounts to the totals of free and allocatable amounts.
  void CountFree(const Node& node, int64_t times);
  // Adds `times` charges, or takes them off if it is negative. True if pods with affinity may fit somewhere now that
  // did not before.
  bool Add(NodeId node, ClassId cls, ChargeKind kind, int32_t times);
  Node& mutable_node(NodeId id) { return *nodes_[static_cast<size_t>(id)]; }
  void RemoveIfUnused(NodeId id);
  // Removes the learned refusals on the node; returns whether there were any.
  bool ClearExclusions(NodeId node);

  ResourceNames names_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<NodeId> unused_nodes_;
  absl::flat_hash_map<std::string, NodeId> node_ids_;
  NodeOrder order_;
  int32_t present_nodes_ = 0;
  int32_t stale_nodes_ = 0;
  ResourceSum total_free_;
  ResourceSum total_allocatable_;
  std::vector<std::unique_ptr<PodClass>> classes_;
  std::vector<ClassId> unused_classes_;
  std::vector<ClassId> released_classes_;  // since ReuseClasses; none between commands
  absl::flat_hash_map<std::string, ClassId> class_ids_;
  std::deque<ClusterChange> log_;
  int64_t log_start_ = 0;
  int64_t exclusions_ = 0;
  PodAffinity pod_affinity_;
  PodAffinity preferred_;
  absl::btree_map<std::string, Labels> namespaces_;  // known namespaces
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_CLUSTER_H_
