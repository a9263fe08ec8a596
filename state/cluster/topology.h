// Domains of nodes by their labels, and how much room each has for pods of a class (SPEC P-4).
//
// Kept up to date by reading the cluster's change log when it is next asked for, as ClassIndex is: a charge moves the
// sum of one domain, and nobody adds up a domain's nodes again. What has been dropped for want of memory is added up
// anew; answers do not depend on it. Not thread-safe.
#ifndef MUSTER_STATE_CLUSTER_TOPOLOGY_H_
#define MUSTER_STATE_CLUSTER_TOPOLOGY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "state/cluster/region.h"

namespace muster {

class Topology {
 public:
  // A label and its domains.
  struct Level {
    std::string key;
    std::vector<DomainId> domain_of;         // by NodeId; kNoDomain: the node has no such label, or is gone
    std::vector<std::string> names;          // by DomainId
    std::vector<std::vector<NodeId>> nodes;  // by DomainId, in no order; empty: nobody is left in it
    absl::flat_hash_map<std::string, DomainId> ids;
    int64_t position = -1;  // in the cluster's log
    int64_t epoch = 0;      // grows when a node changes its domain
  };

  // `levels`: keys of labels of which each lies within the one before it, the widest first; a domain of such a label is
  // named by those around it too, so that two racks "1" in two blocks are two. Others stand for themselves.
  Topology(const Cluster* cluster, std::vector<std::string> levels) : cluster_(cluster), levels_(std::move(levels)) {}

  [[nodiscard]] const std::vector<std::string>& levels() const { return levels_; }
  // The domains of a label as they are now. Valid until the next change of the cluster; the address stays.
  [[nodiscard]] const Level& At(absl::string_view key);
  // How many pods of `cls` there is room for in each domain of the label, by DomainId, as of now. Valid until the next
  // call.
  [[nodiscard]] const std::vector<int64_t>& Rooms(absl::string_view key, ClassId cls);
  // The label before `key` among the levels, which is wider; empty: there is none.
  [[nodiscard]] std::string WiderThan(absl::string_view key) const;
  // The node's domain; kNoDomain: it has no such label.
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
    absl::flat_hash_map<Level*, Sum> sums;
  };
  static constexpr size_t kMaxClasses = 256;

  [[nodiscard]] Level* Find(absl::string_view key);
  void CatchUp(Level* level);
  void Rebuild(Level* level);
  void Assign(NodeId node, Level* level);
  [[nodiscard]] std::string NameFor(NodeId node, const Level& level) const;
  void CatchUp(ClassId cls, ClassRoom* of);
  [[nodiscard]] int32_t RoomOn(NodeId node, ClassId cls) const;
  void Forget();

  const Cluster* cluster_;
  const std::vector<std::string> levels_;
  absl::flat_hash_map<std::string, std::unique_ptr<Level>> known_;
  absl::flat_hash_map<std::string, std::unique_ptr<ClassRoom>> classes_;  // by what a class is, as in ClassIndex
  int64_t uses_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_TOPOLOGY_H_
