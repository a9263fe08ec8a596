// Domains of nodes by label, the room of each domain for pods of a class, and regions made of domains (SPEC P-4).
//
// A topology is updated from the cluster's change log at the next use, as ClassIndex is: a charge changes the sum of
// one domain, without adding up its nodes again. Data that was dropped to save memory is computed again; results do not
// depend on it. Not thread-safe.
#ifndef MUSTER_STATE_CLUSTER_TOPOLOGY_H_
#define MUSTER_STATE_CLUSTER_TOPOLOGY_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "state/cluster/cluster.h"

namespace muster {

// A part of the cluster: the nodes in a given domain, or in any domain, of each of some labels. Without labels, it is
// the whole cluster. A value that refers to tables of Topology.
class Region {
 public:
  [[nodiscard]] bool everywhere() const { return bounds_.empty(); }
  // True if both have the same bounds.
  friend bool operator==(const Region& a, const Region& b) { return a.bounds_ == b.bounds_; }
  [[nodiscard]] bool Has(NodeId node) const {
    return std::all_of(bounds_.begin(), bounds_.end(), [node](const Bound& bound) {
      const DomainId domain = (*bound.domain_of)[static_cast<size_t>(node)];
      return bound.domain == kNoDomain ? domain != kNoDomain : domain == bound.domain;
    });
  }
  // The part of this region in the domain; kNoDomain: in any domain of the label. `domain_of`: by NodeId. REQUIRES: it
  // outlives the region.
  [[nodiscard]] Region Inside(const std::vector<DomainId>* domain_of, DomainId domain) const {
    Region out = *this;
    out.bounds_.push_back({domain_of, domain});
    return out;
  }

 private:
  struct Bound {
    const std::vector<DomainId>* domain_of;
    DomainId domain;  // kNoDomain: any
    friend bool operator==(const Bound& a, const Bound& b) {
      return a.domain_of == b.domain_of && a.domain == b.domain;
    }
  };
  absl::InlinedVector<Bound, 2> bounds_;
};

class Topology {
 public:
  // A label and its domains.
  struct Level {
    std::string key;
    std::vector<DomainId> domain_of;         // by NodeId; kNoDomain: the node has no such label, or is gone
    std::vector<std::string> names;          // by DomainId
    std::vector<std::vector<NodeId>> nodes;  // by DomainId, in no order; may be empty
    absl::flat_hash_map<std::string, DomainId> ids;
    int64_t position = -1;  // in the cluster's log
    int64_t epoch = 0;      // grows when a node changes its domain
  };

  // `levels`: label keys, widest first; the domains of each lie within those of the one before it. A domain of such a
  // label is named with the domains around it, so that racks "1" in two blocks are different. Other domains have the
  // label's value as name.
  Topology(const Cluster* cluster, std::vector<std::string> levels) : cluster_(cluster), levels_(std::move(levels)) {}

  [[nodiscard]] const std::vector<std::string>& levels() const { return levels_; }
  // The domains of a label now. Valid until the next change of the cluster; the address stays the same.
  const Level& At(absl::string_view key);
  // The number of pods of `cls` that each domain of the label has room for, by DomainId. Valid until the next call.
  [[nodiscard]] const std::vector<int64_t>& Rooms(absl::string_view key, ClassId cls);
  // The level before `key`, which is wider; empty if there is none.
  [[nodiscard]] std::string ParentLevel(absl::string_view key) const;
  // The node's domain; kNoDomain if it has no such label.
  [[nodiscard]] DomainId DomainOf(absl::string_view key, NodeId node);

 private:
  struct ClassRoom {
    int64_t position = -1;
    int64_t last_used = 0;
    std::vector<int32_t> room;  // by NodeId
    struct Sum {
      int64_t epoch = -1;
      std::vector<int64_t> rooms;  // by DomainId
    };
    absl::flat_hash_map<const Level*, Sum> sums;
  };
  static constexpr size_t kMaxClasses = 256;

  void CatchUp(Level* level);
  void Rebuild(Level* level);
  void Assign(NodeId node, Level* level);
  [[nodiscard]] std::string NameFor(NodeId node, const Level& level) const;
  void CatchUp(ClassId cls, ClassRoom* of);
  [[nodiscard]] int32_t RoomOn(NodeId node, ClassId cls) const;

  const Cluster* cluster_;
  const std::vector<std::string> levels_;
  absl::flat_hash_map<std::string, std::unique_ptr<Level>> known_;
  absl::flat_hash_map<std::string, std::unique_ptr<ClassRoom>> classes_;  // by PodClass::key, not by class id
  int64_t uses_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_TOPOLOGY_H_
