// What runs, and what is promised to plans, in the order in which it is expected to be over: taken off the cluster
// piece by piece to see when there would be room for somebody (SPEC Q-6), and put back.
//
// Pieces are gangs, lone pods, and what is kept for gangs that go first, which comes last. Those that said how long
// they run come first, by when they are over - one that should be over already, at once -, then those that did not, the
// oldest first. Pods that stay as long as their node does are no piece. Not thread-safe.
#ifndef MUSTER_STATE_RESERVATIONS_PROJECTED_RELEASE_H_
#define MUSTER_STATE_RESERVATIONS_PROJECTED_RELEASE_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "state/cluster/cluster.h"
#include "state/cluster/ledger.h"
#include "state/cluster/statement.h"
#include "state/gangs/gangs.h"
#include "state/reservations/plans.h"

namespace muster {

class RunningRoom {
 public:
  // What is kept for a gang that goes first.
  struct Kept {
    const Gang* gang;
    absl::Span<const Statement::Operation> places;
  };
  RunningRoom(const Gangs& gangs, const Plans& plans, const Ledger& ledger, absl::Span<const Kept> kept,
              Cluster* cluster, int64_t now_ms);
  RunningRoom(const RunningRoom&) = delete;
  RunningRoom& operator=(const RunningRoom&) = delete;
  ~RunningRoom() { Lend(0); }

  // How many pieces there are, and how many of them are over at a known time; these are the first.
  [[nodiscard]] size_t size() const { return pieces_.size(); }
  [[nodiscard]] size_t timed() const { return timed_; }
  // When the first `count` are over; kNever: nobody knows. REQUIRES: count <= size().
  [[nodiscard]] int64_t OverAt(size_t count) const { return count == 0 ? now_ms_ : pieces_[count - 1].over_ms; }
  // Exactly the first `count` are off the cluster from here on.
  void Lend(size_t count);

 private:
  struct Charge {
    NodeId node;
    ClassId cls;
    ChargeKind kind;
    int32_t pods;
  };
  struct Piece {
    int64_t over_ms = kNever;
    int64_t since_ms = 0;
    const std::string* name = nullptr;
    absl::InlinedVector<Charge, 1> charges;  // most pieces are lone pods
  };
  static void Add(NodeId node, ClassId cls, ChargeKind kind, int32_t pods, Piece* piece);

  Cluster* cluster_;
  int64_t now_ms_;
  std::vector<Piece> pieces_;
  size_t timed_ = 0;
  size_t lent_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_RESERVATIONS_PROJECTED_RELEASE_H_
