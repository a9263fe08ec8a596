// For each class in use: the nodes that can take at least one more pod of it, best first.
//
// Classes that differ only in how much they ask for are one family: the same nodes in the same order, of which each
// class passes over those without room for it. So what the list costs goes with the number of distinct constraints, not
// of sizes. A family's list is kept up to date by reading the cluster's change log when it is next asked for: the cost
// of a change is paid once by each family that cares. Where memory is short, a family not used for long is dropped. Not
// thread-safe.
#ifndef MUSTER_STATE_CLUSTER_CLASS_INDEX_H_
#define MUSTER_STATE_CLUSTER_CLASS_INDEX_H_

#include <cstdint>
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
      return a.rank != b.rank ? a.rank < b.rank : a.node < b.node;  // a rank may be another node's, which is gone
    }
  };

 private:
  // A stretch of a family's list.
  struct Chunk {
    std::vector<Entry> entries;
    absl::InlinedVector<int64_t, 4> most;  // of each resource asked for: no node of it has more free
    bool loose = false;                    // perhaps none has as much
  };
  struct Family {
    int64_t position = 0;
    int64_t rank_epoch = -1;
    int64_t last_used = 0;
    std::vector<ResourceId> resources;  // what its classes ask for
    std::vector<uint8_t> allowed;       // by NodeId: no obstacle
    std::vector<int32_t> malus;         // by NodeId, where it is allowed: Cluster::Malus
    std::vector<uint8_t> listed;        // by NodeId: and something of every resource is free
    std::vector<int32_t> score;         // by NodeId: the score it is listed with
    std::vector<int64_t> rank;          // by NodeId: the rank it is listed with
    std::vector<std::unique_ptr<Chunk>> chunks;
    std::vector<Entry> bounds;  // of each chunk: none of its entries comes before it, all of the chunk before do
  };

 public:
  // Who has room for one pod of a class, best first. The order is that of the call which made it; room is looked at as
  // it goes on, so the cluster may be charged meanwhile.
  class Fitting {
   public:
    struct End {};
    class Iterator {
     public:
      Iterator(const Cluster* cluster, ClassId cls, const Family* family)
          : cluster_(cluster), cls_(cls), family_(family) {
        Seek();
      }
      const Entry& operator*() const { return family_->chunks[chunk_]->entries[at_]; }
      Iterator& operator++() {
        ++at_;
        Seek();
        return *this;
      }
      friend bool operator==(const Iterator& it, End) { return it.chunk_ == it.family_->chunks.size(); }

     private:
      // Goes on to the next that fits, itself included.
      void Seek();

      const Cluster* cluster_;
      ClassId cls_;
      const Family* family_;
      size_t chunk_ = 0;
      size_t at_ = 0;
      bool found_ = false;  // in this chunk
    };

    Fitting(const Cluster* cluster, ClassId cls, const Family* family)
        : cluster_(cluster), cls_(cls), family_(family) {}
    [[nodiscard]] Iterator begin() const { return {cluster_, cls_, family_}; }
    [[nodiscard]] static End end() { return {}; }

   private:
    const Cluster* cluster_;
    ClassId cls_;
    const Family* family_;
  };

  // Lists are kept up to this much memory, and always so many of them: what one costs goes with the number of nodes.
  static constexpr size_t kMaxBytes = size_t{128} << 20;
  static constexpr size_t kMinFamilies = 64;
  static constexpr size_t kBytesPerNode = 44;

  explicit ClassIndex(Cluster* cluster) : cluster_(cluster) {}

  // The feasible nodes of `cls` that have room for one pod, best first, as of now. Valid until the next call.
  Fitting Best(ClassId cls);

 private:
  static constexpr size_t kChunk = 64;

  void Rebuild(ClassId cls, Family* family);
  // Those that are listed, in their order.
  [[nodiscard]] std::vector<Entry> Sorted(const Family& family);
  void CatchUp(ClassId cls, Family* family);
  void Update(ClassId cls, NodeId node, bool constraints, Family* family);
  void Insert(const Entry& entry, Family* family) const;
  static void Erase(const Entry& entry, Family* family);
  [[nodiscard]] bool AsksForAlike(ClassId cls, const Family& family) const;
  // The chunk that has the entry, or is to have it.
  static size_t Find(const Entry& entry, const Family& family);
  void Raise(NodeId node, const Family& family, Chunk* chunk) const;
  [[nodiscard]] bool Allows(ClassId cls, NodeId node) const;
  [[nodiscard]] bool HasSome(NodeId node, const Family& family) const;
  [[nodiscard]] size_t MaxFamilies() const;
  void EvictOne();

  Cluster* cluster_;
  // By what a family is, not by a class's id: a job that ends and comes again finds the list of its template.
  absl::flat_hash_map<std::string, std::unique_ptr<Family>> families_;
  std::vector<std::string> keys_;  // of all of them
  uint64_t draw_ = 1;              // who is looked at when one must go
  int64_t uses_ = 0;
  std::vector<NodeId> changed_;   // scratch of CatchUp: nodes that changed since,
  std::vector<uint8_t> pending_;  // and by NodeId whether (1) and whether its constraints did (2)
  std::vector<NodeId> by_name_;   // all nodes, in order of names,
  int64_t named_ = -1;            // as of this version of the order
};

}  // namespace muster

#endif  // MUSTER_STATE_CLUSTER_CLASS_INDEX_H_
