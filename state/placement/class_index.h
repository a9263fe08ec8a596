// For each class in use: the nodes that can take at least one more pod of it, best first.
//
// Kept up to date by reading the cluster's change log when the class is next asked for, so the cost of a change is paid
// once per class that cares. Where memory is short, the index unused for longest is dropped.
// Not thread-safe.
#ifndef MUSTER_STATE_PLACEMENT_CLASS_INDEX_H_
#define MUSTER_STATE_PLACEMENT_CLASS_INDEX_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "state/placement/cluster.h"

namespace muster {

class ClassIndex {
 public:
  // Higher score first, then node name: a total order (P-4).
  struct Entry {
    int32_t negative_score = 0;
    int64_t rank = 0;
    NodeId node = kNoNode;
    friend bool operator<(const Entry& a, const Entry& b) {
      if (a.negative_score != b.negative_score) return a.negative_score < b.negative_score;
      return a.rank != b.rank ? a.rank < b.rank : a.node < b.node;  // a rank may be another node's, which is gone
    }
  };
  using Ordered = absl::btree_set<Entry>;

  // Indexes are kept up to this much memory, and always so many of them: what one costs goes with the number of nodes.
  static constexpr size_t kMaxBytes = size_t{128} << 20;
  static constexpr size_t kMinClasses = 64;
  static constexpr size_t kBytesPerNode = 48;

  explicit ClassIndex(Cluster* cluster) : cluster_(cluster) {}

  // The feasible nodes of `cls` that have room for one pod, best first, as of now. The reference is valid until the
  // next call; the cluster may be charged meanwhile (the list does not follow until the next call).
  const Ordered& Best(ClassId cls);

 private:
  struct PerClass {
    int64_t position = 0;
    int64_t rank_epoch = -1;
    int64_t last_used = 0;
    std::vector<uint8_t> allowed;  // by NodeId: no obstacle
    std::vector<int32_t> score;    // by NodeId: the score it is listed with; -1: not listed
    std::vector<int64_t> rank;     // by NodeId: the rank it is listed with
    Ordered ordered;
  };

  void Rebuild(ClassId cls, PerClass* index);
  void CatchUp(ClassId cls, PerClass* index);
  void Update(ClassId cls, NodeId node, bool constraints, PerClass* index);
  [[nodiscard]] size_t MaxClasses() const;
  void EvictOldest();

  Cluster* cluster_;
  // By the class's key, not its id: a job that ends and comes again finds the index of its template.
  absl::flat_hash_map<std::string, std::unique_ptr<PerClass>> classes_;
  int64_t uses_ = 0;
  std::vector<NodeId> changed_;   // scratch of CatchUp: nodes that changed since,
  std::vector<uint8_t> pending_;  // and by NodeId whether (1) and whether its constraints did (2)
};

}  // namespace muster

#endif  // MUSTER_STATE_PLACEMENT_CLASS_INDEX_H_
