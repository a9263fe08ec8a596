// Nodes, classes of identical pods, and what is charged where: the one place from which usage is derived (SPEC Q-7).
//
// Every amount on a node is *used* (a pod is bound there, or its binding is under way), *reserved* (promised to a
// gang's slot) or *kept* for a gang that waits for ending pods to give back the rest (P-8). free = allocatable - used -
// reserved - kept; reservations never make it negative, facts from outside and what is kept may.
//
// Every change is appended to a log, so that whoever keeps something derived per class (ClassIndex, the planner's list
// of blocked gangs) catches up by reading what is new instead of scanning all nodes.
// Not thread-safe.
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
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/base/hash.h"
#include "state/base/resources.h"
#include "state/cluster/node_order.h"
#include "state/cluster/pod_affinity.h"
#include "state/model/node.h"
#include "state/model/pod.h"

namespace muster {

enum class ChargeKind : uint8_t { kUsed, kReserved, kKept };

// Why a class cannot use a node at all, whatever is free there.
enum class Obstacle : uint8_t { kNone, kAbsent, kStale, kUnschedulable, kTaint, kSelector, kAffinity, kLearned };
inline constexpr size_t kObstacles = 8;

// The obstacle as a phrase: "a taint the pod does not tolerate".
[[nodiscard]] absl::string_view ObstaclePhrase(Obstacle obstacle);

// What of the pod's own choosing keeps it off a node with these facts: kSelector, kAffinity or kNone.
[[nodiscard]] Obstacle OwnObstacle(const NodeDescription& node, const PodTemplate& shape);

// Whether what is known of a node was said to this process, or only to one before it (S-2).
enum class Heard : uint8_t { kNow, kBefore, kTooLongAgo };

// A host port on a node, and how many charges hold it.
struct PortCharges {
  HostPort port;
  int32_t used = 0;
  int32_t reserved = 0;
};

// What the planner reads stands together, and first.
struct Node {
  bool known = false;    // false: this id is unused
  bool present = false;  // false: only known because pods are bound to it
  Heard heard = Heard::kNow;
  int32_t used_pods = 0;
  int32_t reserved_pods = 0;
  int32_t kept_pods = 0;
  ResourceVector free;  // what is left, as near as it can be told: at least -2^62; negative where facts say more than
                        // there is
  ResourceVector allocatable;
  ResourceSum reserved;
  ResourceSum used;
  ResourceSum kept;
  std::vector<PortCharges> ports;  // held by some charge
  NodeDescription facts;

  // What is free here counts as free altogether.
  [[nodiscard]] bool counts() const { return present && !facts.unschedulable && heard != Heard::kTooLongAgo; }
  [[nodiscard]] WideSum Left(ResourceId id) const {
    return WideSum{allocatable.Get(id)} - used.Get(id) - reserved.Get(id) - kept.Get(id);
  }
};

// What may tell a pod apart from others of its template: Neighbours::KinOf, of what is required and of what is
// preferred.
struct Kin {
  std::string required;
  std::string preferred;
  friend bool operator==(const Kin&, const Kin&) = default;
};

struct PodClass {
  std::string key;
  std::string family;  // PodTemplate::Family
  Shared<PodTemplate> shape;
  Kin kin;
  bool has_neighbours = false;                // it is known to what is required of neighbours
  bool has_preferred = false;                 // it is known to what is counted for preferences
  ResourceVector named;                       // what is asked by name, as names() has it
  ResourceVector request;                     // with one "pods"
  int32_t pods = 0;                           // pods and slots of this class; at 0 it is forgotten
  absl::btree_map<NodeId, int64_t> excluded;  // K-6: learned refusals, until (ms)
};

struct ClusterChange {
  NodeId node = kNoNode;
  bool constraints = false;  // labels, taints, presence or learned refusals changed
  bool gained = false;       // something that did not fit before may fit now
};

class Cluster {
 public:
  Cluster() : neighbours_(this), preferred_(this, /*preferred=*/true) {}
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // --- nodes ---
  // Creates or updates; returns whether anything that matters for placement changed. InvalidArgument (unchanged state)
  // when an amount is out of range.
  absl::StatusOr<bool> UpsertNode(const NodeDescription& facts);
  // The node is gone; what is charged to it stays until those pods go.
  void RemoveNode(absl::string_view name);
  // Says how the node was heard of; kTooLongAgo: nothing new goes there (Obstacle::kStale). REQUIRES: present.
  void SetHeard(NodeId id, Heard heard);
  [[nodiscard]] NodeId FindNode(absl::string_view name) const;
  // The node of that name, created absent when unknown.
  NodeId InternNode(absl::string_view name);
  [[nodiscard]] const Node& node(NodeId id) const { return *nodes_[static_cast<size_t>(id)]; }
  // Ids run from 0 to node_limit()-1; some may be unused (node(id) absent and without charges).
  [[nodiscard]] NodeId node_limit() const { return static_cast<NodeId>(nodes_.size()); }
  [[nodiscard]] int32_t present_nodes() const { return present_nodes_; }
  // Present ones that nobody has announced to this process.
  [[nodiscard]] int32_t stale_nodes() const { return stale_nodes_; }
  // Sum of free over present, schedulable nodes, negative parts left out (P-10).
  [[nodiscard]] const ResourceSum& TotalFree() const { return total_free_; }
  // What the same nodes have, free or not.
  [[nodiscard]] const ResourceSum& TotalAllocatable() const { return total_allocatable_; }

  // --- classes ---
  // The class of `shape` and `kin`, with one pod counted; ReleaseClass takes it back. InvalidArgument when a request is
  // out of range. REQUIRES: what the shape says of its neighbours is learned.
  absl::StatusOr<ClassId> AcquireClass(const Shared<PodTemplate>& shape, const Kin& kin = {});
  void ReleaseClass(ClassId id);
  // Ids of classes that are no more may be given again: nobody knows them by now. Call between commands.
  void ReuseClasses();
  // Keeps the class known for `times` more users (a reserved slot outlives its pods).
  void HoldClass(ClassId id, int32_t times) { classes_[static_cast<size_t>(id)]->pods += times; }
  [[nodiscard]] const PodClass& pod_class(ClassId id) const { return *classes_[static_cast<size_t>(id)]; }
  [[nodiscard]] bool has_class(ClassId id) const { return classes_[static_cast<size_t>(id)] != nullptr; }
  [[nodiscard]] ClassId class_limit() const { return static_cast<ClassId>(classes_.size()); }
  // K-6: `cls` is refused on `node` until `until_ms`, or until the node's facts change or a pod leaves it.
  void Exclude(ClassId cls, NodeId node, int64_t until_ms);
  // How many learned refusals there are.
  [[nodiscard]] int64_t exclusions() const { return exclusions_; }
  // Drops learned refusals that ended; returns the earliest that remains, or INT64_MAX.
  int64_t ExpireExclusions(int64_t now_ms);

  // --- charges ---
  // kKept: REQUIRES a class without host ports and neighbours. `again`: it was discharged to see what would fit without
  // it, so that nobody finds a neighbour who was not there before.
  void Charge(NodeId node, ClassId cls, ChargeKind kind, int32_t times, bool again = false);
  // `gained` false: the charge was only tried (a rollback), nothing became free that was not free before.
  void Discharge(NodeId node, ClassId cls, ChargeKind kind, int32_t times, bool gained);

  // --- feasibility (P-3) ---
  [[nodiscard]] Obstacle FindObstacle(NodeId node, ClassId cls) const;
  // How many pods of `cls` fit into what is free on `node` now, and are let there by their neighbours, at most `limit`,
  // obstacles aside. Neighbours in other nodes count too: one more pod may close, or open, many nodes.
  [[nodiscard]] int32_t Room(NodeId node, ClassId cls, int32_t limit) const;
  // The same without pods in other nodes, and without what the class asks of its neighbours but not to be two of a kind
  // on a node: never less than Room, and changed by what is charged on the node only.
  [[nodiscard]] int32_t RoomAlone(NodeId node, ClassId cls, int32_t limit) const;
  // Whether one pod of `cls` would fit the node's amounts if `regained` were free too.
  [[nodiscard]] bool FitsWith(NodeId node, ClassId cls, const ResourceSum& regained) const {
    return RoomWith(node, cls, regained, 1) > 0;
  }
  // How many would, at most `limit`.
  [[nodiscard]] int32_t RoomWith(NodeId node, ClassId cls, const ResourceSum& regained, int32_t limit) const;
  // Whether the node would take a pod of `cls` if one of `gone`, which asks nothing of its neighbours, were not there.
  [[nodiscard]] bool TakesInstead(NodeId node, ClassId cls, ClassId gone) const;
  // Taints with effect PreferNoSchedule that the class does not tolerate (P-3).
  [[nodiscard]] int32_t SoftTaints(NodeId node, ClassId cls) const;
  // P-4: the mean share, 0 to 1000, of each requested resource that is taken, less 1000 where GPUs would be stranded,
  // less 2000 for each soft taint.
  [[nodiscard]] int32_t BinpackScore(NodeId node, ClassId cls) const { return Taken(node, cls) - Malus(node, cls); }
  // Its parts: Taken changes with every charge, Malus, which is for the taints, only with the node's facts.
  [[nodiscard]] int32_t Taken(NodeId node, ClassId cls) const;
  [[nodiscard]] int32_t Malus(NodeId node, ClassId cls) const;
  // The node may help somebody soon who waits for room.
  void NoteHope(NodeId node) { Log(node, /*constraints=*/false, /*gained=*/true); }
  // Some resource of which a part is reserved here is over-committed, whatever is kept.
  [[nodiscard]] bool ReservationsExceed(NodeId node) const;
  // A host port that `cls` reserves on `node` is held there by somebody else too.
  [[nodiscard]] bool PortsCollide(NodeId node, ClassId cls) const;
  // Whether the node still carries what is reserved there for `cls`: constraints, amounts, host ports, neighbours.
  [[nodiscard]] bool Carries(NodeId node, ClassId cls) const;

  // --- order and change log ---
  // By name (P-4).
  [[nodiscard]] const NodeOrder& order() const { return order_; }
  [[nodiscard]] int64_t log_end() const { return log_start_ + static_cast<int64_t>(log_.size()); }
  [[nodiscard]] int64_t log_start() const { return log_start_; }
  [[nodiscard]] const ClusterChange& log_at(int64_t position) const {
    return log_[static_cast<size_t>(position - log_start_)];
  }

  [[nodiscard]] const ResourceNames& names() const { return names_; }
  [[nodiscard]] const Neighbours& neighbours() const { return neighbours_; }
  // As Neighbours::Learn.
  bool Learn(const PodTemplate& shape) {
    const bool required = neighbours_.Learn(shape.neighbours);
    return preferred_.Learn(Counted(shape.preferences)) || required;
  }
  // `labels`: as PackLabels has them.
  [[nodiscard]] Kin KinOf(absl::string_view name_space, absl::string_view labels) const;
  // Somebody goes by the labels of namespaces.
  [[nodiscard]] bool by_namespaces() const { return neighbours_.by_namespaces() || preferred_.by_namespaces(); }
  // The namespace's labels; nullptr: it is not known any more. True: pods there may have another kin now.
  bool SetNamespace(absl::string_view name, const Labels* labels);
  [[nodiscard]] const absl::btree_map<std::string, Labels>& namespaces() const { return namespaces_; }

  // --- preferences ---
  // How much pods of the class would like to be on the node: for the pods that are near it now, and for its labels.
  [[nodiscard]] int64_t Liked(NodeId node, ClassId cls) const;
  [[nodiscard]] int64_t LikedAlways(NodeId node, ClassId cls) const;
  // Whether a pod of it makes a place be liked more by others of it (`sign` 1), or less (-1).
  [[nodiscard]] bool LikesItsOwn(ClassId cls, int32_t sign) const;

  // Adds nodes, charges and learned refusals, by name, in order of names.
  void Hash(StateHasher* hasher) const;

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Cluster::names_, &Cluster::nodes_, &Cluster::unused_nodes_, &Cluster::node_ids_,
                      &Cluster::order_, &Cluster::present_nodes_, &Cluster::stale_nodes_, &Cluster::total_free_,
                      &Cluster::total_allocatable_, &Cluster::classes_, &Cluster::unused_classes_, &Cluster::class_ids_,
                      &Cluster::log_, &Cluster::log_start_, &Cluster::exclusions_, &Cluster::neighbours_,
                      &Cluster::preferred_, &Cluster::namespaces_);
  }
  void AfterRestore() {
    neighbours_.Rebuild();
    preferred_.Rebuild();
  }

 private:
  void Log(NodeId node, bool constraints, bool gained);
  void Refresh(Node* node);
  // Adds so many times what is free on the node to what is free altogether.
  void CountFree(const Node& node, int64_t times);
  // Charges so many times the request of `cls`.
  void Add(Node* node, const PodClass& cls, ChargeKind kind, int32_t times);
  Node& mutable_node(NodeId id) { return *nodes_[static_cast<size_t>(id)]; }
  void ForgetIfUnused(NodeId id);
  // Returns whether there were any.
  bool ForgetRefusals(NodeId node);

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
  Neighbours neighbours_;
  Neighbours preferred_;
  absl::btree_map<std::string, Labels> namespaces_;  // those that are known
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_CLUSTER_H_
