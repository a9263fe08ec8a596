// Explains why there is no room, and what a person can change about it (SPEC S-5). Pure functions.
#ifndef MUSTER_STATE_PLANNER_EXPLAIN_NO_ROOM_H_
#define MUSTER_STATE_PLANNER_EXPLAIN_NO_ROOM_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "state/base/components.h"
#include "state/model/ids.h"

namespace muster {

class Region;

// What mainly keeps pods from their nodes. It decides the suggestion, and whether released capacity can help.
struct MainObstacle {
  enum class Kind : uint8_t {
    // On nodes that the pods may use:
    kCapacity,         // the resource `subject` is not free; empty: not determined
    kDomains,          // capacity is not free in a topology domain; `subject`: which domains, "a domain of rack"
    kNotOffered,       // no node offers the resource `subject`
    kTooLarge,         // no node has as much of the resource `subject` as one pod requests
    kHostPort,         // other pods use the host port `subject`
    kPodAffinity,      // the rule `subject` about other pods; empty: the pods exclude each other
    kTooSmall,         // the pods do not fit together even on empty nodes
    kDomainsTooSmall,  // nor into an empty domain of the label `subject`
    // On all nodes:
    kStaleNodes,     // facts of some nodes are stale
    kUnschedulable,  // the pods could use nodes that are marked unschedulable, which `subject` lists; empty: none
    kTaint,          // a taint with the key `subject`
    kNodeSelector,   // the label `subject`, which the pods' node selector requires
    kNodeAffinity,
    kLearned,          // a filter of kube-scheduler that Muster does not model (K-6)
    kNoLabel,          // no node has the label `subject`, which the topology rule requires
    kMemberLacksLabel  // the node of a member lacks the label `subject`
  };
  Kind kind = Kind::kCapacity;
  std::string subject;

  // Whether the wait may end when running pods release their capacity.
  [[nodiscard]] bool EndsWithCapacity() const { return kind == Kind::kCapacity || kind == Kind::kDomains; }
  friend bool operator==(const MainObstacle&, const MainObstacle&) = default;
};

// What a user can do about the obstacle. `below_minimum`: a lower minimum would help too.
[[nodiscard]] std::string HintFor(const MainObstacle& obstacle, bool below_minimum = true);

// Why there is no room.
struct Explanation {
  std::string text;
  bool counts_members = false;  // the text begins with the number of members that have room
  MainObstacle obstacle = {};
  [[nodiscard]] bool empty() const { return text.empty(); }
};

// Why nodes cannot take a pod of `cls`, most common reason first: "4 nodes: insufficient nvidia.com/gpu; 2 nodes: node
// selector (zone)". With `together`, also whether that many pods could never run at once. `region`: the nodes in
// question; nullptr: all. Checks every node: for explanations, not for decisions.
[[nodiscard]] Explanation ExplainNoRoom(const Cluster& cluster, ClassId cls, int32_t together = 0,
                                        const Region* region = nullptr);

// How many pods of the class, at most `limit`, the node could hold without other pods; 0 if a lasting constraint
// excludes it. REQUIRES: the node is present.
[[nodiscard]] int64_t RoomWhenEmpty(const Cluster& cluster, NodeId node, ClassId cls, int64_t limit);

// The label of some node whose name is probably meant by `key`, within a small edit distance; empty: there is none.
[[nodiscard]] std::string SimilarLabel(const Cluster& cluster, absl::string_view key);

}  // namespace muster

#endif  // MUSTER_STATE_PLANNER_EXPLAIN_NO_ROOM_H_
