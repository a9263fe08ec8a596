#include "state/placement/class_index.h"

#include <algorithm>

namespace muster {

const ClassIndex::Ordered& ClassIndex::Best(ClassId cls) {
  std::unique_ptr<PerClass>& index = classes_[cluster_->pod_class(cls).key];
  if (index == nullptr) {
    index = std::make_unique<PerClass>();
    index->position = -1;
    PerClass* const created = index.get();
    created->last_used = ++uses_;
    if (classes_.size() > MaxClasses()) EvictOldest();
    CatchUp(cls, created);
    return created->ordered;
  }
  index->last_used = ++uses_;
  CatchUp(cls, index.get());
  return index->ordered;
}

size_t ClassIndex::MaxClasses() const {
  const size_t nodes = std::max<size_t>(1, static_cast<size_t>(cluster_->node_limit()));
  return std::max(kMinClasses, kMaxBytes / (nodes * kBytesPerNode));
}

void ClassIndex::EvictOldest() {
  auto oldest = classes_.begin();
  for (auto it = classes_.begin(); it != classes_.end(); ++it) {
    if (it->second->last_used < oldest->second->last_used) oldest = it;
  }
  classes_.erase(oldest);
}

void ClassIndex::CatchUp(ClassId cls, PerClass* index) {
  const int64_t behind = cluster_->log_end() - index->position;
  if (index->position < cluster_->log_start() || index->rank_epoch != cluster_->order().epoch() ||
      behind > 2 * int64_t{cluster_->node_limit()} + 64) {
    Rebuild(cls, index);
    return;
  }
  // A node that changed many times is looked at once.
  changed_.clear();
  for (; index->position < cluster_->log_end(); ++index->position) {
    const ClusterChange& change = cluster_->log_at(index->position);
    if (static_cast<size_t>(change.node) >= pending_.size()) pending_.resize(static_cast<size_t>(change.node) + 1, 0);
    uint8_t& pending = pending_[static_cast<size_t>(change.node)];
    if (pending == 0) changed_.push_back(change.node);
    pending = static_cast<uint8_t>(pending | (change.constraints ? 3 : 1));
  }
  for (const NodeId node : changed_) {
    Update(cls, node, (pending_[static_cast<size_t>(node)] & 2) != 0, index);
    pending_[static_cast<size_t>(node)] = 0;
  }
}

void ClassIndex::Rebuild(ClassId cls, PerClass* index) {
  index->position = cluster_->log_end();
  index->rank_epoch = cluster_->order().epoch();
  const auto nodes = static_cast<size_t>(cluster_->node_limit());
  index->allowed.assign(nodes, 0);
  index->score.assign(nodes, -1);
  index->rank.assign(nodes, 0);
  index->ordered.clear();
  std::vector<Entry> entries;
  for (NodeId node = 0; node < cluster_->node_limit(); ++node) {
    const bool allowed = cluster_->FindObstacle(node, cls) == Obstacle::kNone;
    index->allowed[static_cast<size_t>(node)] = allowed ? 1 : 0;
    if (!allowed || cluster_->Room(node, cls, 1) == 0) continue;
    const int32_t score = cluster_->BinpackScore(node, cls);
    const int64_t rank = cluster_->order().rank(node);
    index->score[static_cast<size_t>(node)] = score;
    index->rank[static_cast<size_t>(node)] = rank;
    entries.push_back(Entry{-score, rank, node});
  }
  std::sort(entries.begin(), entries.end());
  for (const Entry& entry : entries) index->ordered.insert(index->ordered.end(), entry);
}

void ClassIndex::Update(ClassId cls, NodeId node, bool constraints, PerClass* index) {
  const auto at = static_cast<size_t>(node);
  if (at >= index->score.size()) {
    index->score.resize(at + 1, -1);
    index->rank.resize(at + 1, 0);
    index->allowed.resize(at + 1, 0);
    constraints = true;
  }
  if (constraints) index->allowed[at] = cluster_->FindObstacle(node, cls) == Obstacle::kNone ? 1 : 0;
  const bool listed = index->allowed[at] != 0 && cluster_->Room(node, cls, 1) > 0;
  const int32_t score = listed ? cluster_->BinpackScore(node, cls) : -1;
  const int32_t before = index->score[at];
  // An id that serves another name now has another rank.
  const int64_t rank = cluster_->order().rank(node);
  if (score == before && rank == index->rank[at]) return;
  if (before >= 0) index->ordered.erase(Entry{-before, index->rank[at], node});
  if (score >= 0) index->ordered.insert(Entry{-score, rank, node});
  index->score[at] = score;
  index->rank[at] = rank;
}

}  // namespace muster
