// A trial on the cluster that can be rolled back to any checkpoint (SPEC P-1). It allocates places for pods, and takes
// charges off the cluster: it evicts pods, and releases slots and future reservations.
//
// A statement that is neither committed nor rolled back is rolled back when it goes out of scope. After a rollback the
// cluster hashes as it did at the checkpoint. Nothing that a statement takes off the cluster counts as gained capacity.
// Statements may be nested: the inner one ends first. Not thread-safe.
#ifndef MUSTER_STATE_CLUSTER_STATEMENT_H_
#define MUSTER_STATE_CLUSTER_STATEMENT_H_

#include <utility>
#include <vector>

#include "state/cluster/cluster.h"

namespace muster {

class Statement {
 public:
  struct Operation {
    NodeId node;
    ClassId cls;
    int32_t pods;
    int32_t part = 0;                         // the part of the placement, see BeginPart
    ChargeKind kind = ChargeKind::kReserved;  // what was charged or taken off
    bool taken = false;                       // taken off the cluster, not allocated
  };
  using Checkpoint = size_t;

  explicit Statement(Cluster* cluster) : cluster_(cluster) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { Rollback(0); }

  // Reserves room for `pods` pods of `cls` on `node`. REQUIRES: they fit.
  void Allocate(NodeId node, ClassId cls, int32_t pods) {
    cluster_->Charge(node, cls, ChargeKind::kReserved, pods);
    operations_.push_back({node, cls, pods, part_});
  }
  // Takes `pods` charges of that kind off the node. REQUIRES: they are there.
  void Release(NodeId node, ClassId cls, ChargeKind kind, int32_t pods) {
    cluster_->Discharge(node, cls, kind, pods, /*gained=*/false);
    operations_.push_back({node, cls, pods, part_, kind, /*taken=*/true});
  }
  // Takes `pods` pods off the node that run there or are bound to it. REQUIRES: they are there.
  void Evict(NodeId node, ClassId cls, int32_t pods) { Release(node, cls, ChargeKind::kUsed, pods); }
  // Later allocations are for this part of the placement.
  void BeginPart(int32_t part) { part_ = part; }
  [[nodiscard]] Checkpoint Mark() const { return operations_.size(); }
  void Rollback(Checkpoint mark) {
    while (operations_.size() > mark) {
      const Operation& last = operations_.back();
      if (last.taken) {
        cluster_->Charge(last.node, last.cls, last.kind, last.pods, /*again=*/true);
      } else {
        cluster_->Discharge(last.node, last.cls, last.kind, last.pods, /*gained=*/false);
      }
      operations_.pop_back();
    }
  }
  // Hands the allocations to the caller. REQUIRES: nothing is taken off the cluster.
  [[nodiscard]] std::vector<Operation> Commit() { return std::exchange(operations_, {}); }
  [[nodiscard]] const std::vector<Operation>& operations() const { return operations_; }

 private:
  Cluster* cluster_;
  std::vector<Operation> operations_;
  int32_t part_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_STATEMENT_H_
