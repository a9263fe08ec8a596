// For each class in use: the nodes that can take at least one more pod of it, best first.
//
// Classes that differ only in their requested amounts form one family. A family has one ordered list of nodes, and each
// class skips the nodes without room for it. The cost of the lists therefore depends on the number of distinct
// constraints, not of sizes. A family's list is updated from the cluster's change log at its next use, so that each
// affected family pays once for a change. If memory is short, a family that was not used for long is dropped. Not
// thread-safe.
#ifndef MUSTER_STATE_CLUSTER_CLASS_INDEX_H_
#define MUSTER_STATE_CLUSTER_CLASS_INDEX_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "state/cluster/cluster.h"

namespace muster {

class ClassIndex {
 public:
  // Higher score first, then node name: a total order (P-4).
  struct Entry {
    int32_t negative_score = 0;
    NodeId node = kNoNode;
    int64_t rank = 0;
    friend bool operator<(const Entry& a, const Entry& b) {
      if (a.negative_score != b.negative_score) return a.negative_score < b.negative_score;
      return a.rank != b.rank ? a.rank < b.rank : a.node < b.node;  // a removed node may have had the same rank
    }
  };

 private:
  // A part of a family's list.
  struct Chunk {
    std::vector<Entry> entries;
    absl::InlinedVector<int64_t, 4> most;  // by requested resource: no node of the chunk has more free
    bool loose = false;                    // `most` may be above the exact maximum
  };
  static constexpr int32_t kNone = std::numeric_limits<int32_t>::min();
  // Whether and where a family lists a node.
  struct Listing {
    int32_t taint_penalty = kNone;  // Cluster::TaintPenalty; kNone: there is an obstacle
    int32_t score = kNone;          // kNone: not listed, because of an obstacle or because a resource has nothing free
    int64_t rank = 0;               // of a listed node
    [[nodiscard]] bool listed() const { return score != kNone; }
    [[nodiscard]] Entry EntryOf(NodeId node) const { return {-score, node, rank}; }
  };
  using Resources = absl::InlinedVector<ResourceId, 6>;
  struct Family {
    int64_t position = -1;  // in the cluster's log
    int64_t rank_epoch = -1;
    int64_t last_used = 0;
    Resources resources;            // requested by its classes
    std::vector<Listing> listings;  // by NodeId
    std::vector<std::unique_ptr<Chunk>> chunks;
    std::vector<Entry> bounds;  // by chunk: not after its first entry, after all entries of the chunk before
  };

 public:
  // The nodes with room for one pod of a class, best first. The order is fixed when the object is made. Room is checked
  // during the iteration, so the cluster may be charged meanwhile.
  class Fitting {
   public:
    struct End {};
    class Iterator {
     public:
      explicit Iterator(const Fitting* of) : of_(of) { Seek(); }
      const Entry& operator*() const { return of_->family_->chunks[chunk_]->entries[at_]; }
      Iterator& operator++() {
        ++at_;
        Seek();
        return *this;
      }
      bool operator==(End) const { return chunk_ == of_->family_->chunks.size(); }

     private:
      // Advances to the next entry that fits, beginning with the current one.
      void Seek();

      const Fitting* of_;
      size_t chunk_ = 0;
      size_t at_ = 0;
      bool found_ = false;  // some entry of this chunk fits
    };

    Fitting(const Cluster* cluster, ClassId cls, const Family* family)
        : cluster_(cluster), cls_(cls), family_(family) {}
    [[nodiscard]] Iterator begin() const& { return Iterator(this); }
    Iterator begin() const&& = delete;  // iterators point into this object
    [[nodiscard]] static End end() { return {}; }

   private:
    const Cluster* cluster_;
    ClassId cls_;
    const Family* family_;
  };

  // The memory limit of the lists, and the number of lists that are retained in any case.
  static constexpr size_t kMaxBytes = size_t{128} << 20;
  static constexpr size_t kMinFamilies = 64;

  explicit ClassIndex(Cluster* cluster) : cluster_(cluster) {}

  // The feasible nodes of `cls` with room for one pod now, best first. Valid until the next call.
  Fitting Best(ClassId cls);

 private:
  static constexpr size_t kChunk = 64;
  static constexpr size_t kBytesPerNode = 44;  // of a list

  void Rebuild(ClassId cls, Family* family);
  // The listed nodes, in order.
  [[nodiscard]] std::vector<Entry> Sorted(const Family& family) const;
  void CatchUp(ClassId cls, Family* family);
  void Update(ClassId cls, NodeId node, bool constraints, Family* family);
  // Computes the listing as the node is now. `constraints` false: its taint penalty has not changed.
  void Refresh(ClassId cls, NodeId node, bool constraints, const Family& family, Listing* listing) const;
  void Insert(const Entry& entry, Family* family) const;
  static void Erase(const Entry& entry, Family* family);
  [[nodiscard]] Resources RequestedBy(ClassId cls) const;
  // The chunk that has the entry, or into which it must be inserted.
  static size_t Find(const Entry& entry, const Family& family);
  // Raises the chunk's maxima to what is free on the node.
  static void Raise(const Node& node, const Family& family, Chunk* chunk);
  void EvictOneFamily();

  Cluster* cluster_;
  // By PodClass::family, not by class id: a job that ends and is submitted again finds the list of its template.
  absl::flat_hash_map<std::string, std::unique_ptr<Family>> families_;
  std::vector<std::string> keys_;  // of all families
  uint64_t draw_ = 1;              // random state: selects the families to consider when one is dropped
  int64_t uses_ = 0;
  std::vector<NodeId> changed_;   // scratch of CatchUp: the changed nodes
  std::vector<uint8_t> pending_;  // scratch of CatchUp, by NodeId: 1: changed, 2: its constraints changed
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_CLASS_INDEX_H_
