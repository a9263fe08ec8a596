// A trial placement: reservations directly on the cluster that can be rolled back to any checkpoint (SPEC P-1).
//
// A statement that is neither committed nor rolled back is rolled back when it goes out of scope. After a rollback the
// cluster hashes as it did at the checkpoint. Not thread-safe; one statement at a time.
#ifndef MUSTER_STATE_CLUSTER_STATEMENT_H_
#define MUSTER_STATE_CLUSTER_STATEMENT_H_

#include <vector>

#include "state/cluster/cluster.h"

namespace muster {

class Statement {
 public:
  struct Operation {
    NodeId node;
    ClassId cls;
    int32_t pods;
    int32_t part;  // the part of the placement, see BeginPart
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
  // Later allocations are for this part of the placement.
  void BeginPart(int32_t part) { part_ = part; }
  [[nodiscard]] Checkpoint Mark() const { return operations_.size(); }
  void Rollback(Checkpoint mark) {
    while (operations_.size() > mark) {
      const Operation& last = operations_.back();
      cluster_->Discharge(last.node, last.cls, ChargeKind::kReserved, last.pods, /*gained=*/false);
      operations_.pop_back();
    }
  }
  // Hands the reservations to the caller.
  [[nodiscard]] std::vector<Operation> Commit() {
    std::vector<Operation> out;
    out.swap(operations_);
    return out;
  }
  [[nodiscard]] const std::vector<Operation>& operations() const { return operations_; }

 private:
  Cluster* cluster_;
  std::vector<Operation> operations_;
  int32_t part_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_STATEMENT_H_
