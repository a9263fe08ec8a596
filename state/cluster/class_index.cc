#include "state/cluster/class_index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "state/base/check.h"

namespace muster {

void ClassIndex::Fitting::Iterator::Seek() {
  const Cluster& cluster = *of_->cluster_;
  const Family& family = *of_->family_;
  const PodClass& cls = cluster.pod_class(of_->cls_);
  for (; chunk_ < family.chunks.size(); ++chunk_, at_ = 0, found_ = false) {
    Chunk& chunk = *family.chunks[chunk_];
    const auto lacks = [&] {
      for (size_t i = 0; i < chunk.most.size(); ++i) {
        if (cls.request.Get(family.resources[i]) > chunk.most[i]) return true;
      }
      return false;
    };
    if (at_ == 0 && lacks()) continue;  // short cut
    for (; at_ < chunk.entries.size(); ++at_) {
      const NodeId node = chunk.entries[at_].node;
      if (!cluster.HasRoom(node, of_->cls_) || (!cls.excluded.empty() && cls.excluded.contains(node))) continue;
      found_ = true;
      return;
    }
    if (found_ || !chunk.loose) continue;  // short cut
    // No node of the chunk fits. With exact maxima, the chunk is skipped the next time.
    chunk.loose = false;  // short cut
    std::fill(chunk.most.begin(), chunk.most.end(), 0);
    for (const Entry& entry : chunk.entries) Raise(cluster.node(entry.node), family, &chunk);
  }
}

ClassIndex::Fitting ClassIndex::Best(ClassId cls) {
  const std::string& key = cluster_->pod_class(cls).family;
  std::unique_ptr<Family>& known = families_[key];
  if (known == nullptr) {
    known = std::make_unique<Family>();
    keys_.push_back(key);
    const auto nodes = std::max<size_t>(1, static_cast<size_t>(cluster_->node_limit()));
    if (families_.size() > std::max(kMinFamilies, kMaxBytes / (nodes * kBytesPerNode))) EvictOneFamily();
  }
  Family* const family = known.get();
  family->last_used = ++uses_;
  CatchUp(cls, family);
  return {cluster_, cls, family};
}

// Drops the family unused for longest among a few that are drawn at random. If somewhat more families than fit are used
// in turn, the one unused for longest of all is always the one needed next. The newest is the last of `keys_`; it is
// not drawn.
void ClassIndex::EvictOneFamily() {
  constexpr int kDrawn = 4;
  const size_t others = keys_.size() - 1;
  size_t oldest = others;
  for (int i = 0; i < kDrawn; ++i) {
    draw_ = draw_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
    const size_t drawn = static_cast<size_t>(draw_ >> 33) % others;
    if (oldest == others || families_.at(keys_[drawn])->last_used < families_.at(keys_[oldest])->last_used) {
      oldest = drawn;
    }
  }
  families_.erase(keys_[oldest]);
  keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(oldest));
}

void ClassIndex::CatchUp(ClassId cls, Family* family) {
  const int64_t behind = cluster_->log_end() - family->position;
  // A resource name that was released may have another id now.
  if (family->position < cluster_->log_start() || family->rank_epoch != cluster_->order().epoch() ||
      behind > 2 * int64_t{cluster_->node_limit()} + 64 ||  // short cut
      RequestedBy(cls) != family->resources) {
    Rebuild(cls, family);
    return;
  }
  // A node that changed many times is updated once.
  changed_.clear();
  for (; family->position < cluster_->log_end(); ++family->position) {
    const ClusterChange& change = cluster_->log_at(family->position);
    if (static_cast<size_t>(change.node) >= pending_.size()) pending_.resize(static_cast<size_t>(change.node) + 1, 0);
    uint8_t& pending = pending_[static_cast<size_t>(change.node)];
    if (pending == 0) changed_.push_back(change.node);
    pending = static_cast<uint8_t>(pending | (change.constraints ? 3 : 1));
  }
  for (const NodeId node : changed_) {
    Update(cls, node, (pending_[static_cast<size_t>(node)] & 2) != 0, family);
    pending_[static_cast<size_t>(node)] = 0;
  }
}

ClassIndex::Resources ClassIndex::RequestedBy(ClassId cls) const {
  Resources out;
  for (const ResourceVector::Entry& entry : cluster_->pod_class(cls).request.entries()) {
    if (entry.amount > 0) out.push_back(entry.id);
  }
  return out;
}

void ClassIndex::Refresh(ClassId cls, NodeId node, bool constraints, const Family& family, Listing* listing) const {
  if (constraints) {
    // A learned refusal applies to its class only, not to the family.
    const Obstacle obstacle = cluster_->FindObstacle(node, cls);
    const bool allowed = obstacle == Obstacle::kNone || obstacle == Obstacle::kLearned;
    listing->taint_penalty = allowed ? cluster_->TaintPenalty(node, cls) : kNone;
  }
  const ResourceVector& free = cluster_->node(node).free;
  const auto has_free = [&](ResourceId resource) { return free.Get(resource) > 0; };
  listing->score = kNone;
  if (listing->taint_penalty == kNone || !absl::c_all_of(family.resources, has_free)) return;
  listing->score = cluster_->UtilizationScore(node, cls) - listing->taint_penalty;
  listing->rank = cluster_->order().rank(node);
}

void ClassIndex::Rebuild(ClassId cls, Family* family) {
  family->resources = RequestedBy(cls);
  family->position = cluster_->log_end();
  family->rank_epoch = cluster_->order().epoch();
  family->listings.assign(static_cast<size_t>(cluster_->node_limit()), Listing());
  family->chunks.clear();
  family->bounds.clear();
  for (NodeId node = 0; node < cluster_->node_limit(); ++node) {
    Refresh(cls, node, /*constraints=*/true, *family, &family->listings[static_cast<size_t>(node)]);
  }
  const std::vector<Entry> entries = Sorted(*family);
  constexpr size_t kFull = kChunk * 3 / 4;  // leaves room for insertions
  for (size_t begin = 0; begin < entries.size(); begin += kFull) {
    auto chunk = std::make_unique<Chunk>();
    chunk->entries.reserve(kChunk + 1);
    const size_t end = std::min(entries.size(), begin + kFull);
    chunk->entries.assign(entries.begin() + static_cast<std::ptrdiff_t>(begin),
                          entries.begin() + static_cast<std::ptrdiff_t>(end));
    chunk->most.assign(family->resources.size(), 0);
    for (const Entry& entry : chunk->entries) Raise(cluster_->node(entry.node), *family, chunk.get());
    family->bounds.push_back(chunk->entries.front());
    family->chunks.push_back(std::move(chunk));
  }
}

// Names are in order already and there are few scores, so entries are counted instead of compared where that is
// cheaper.
std::vector<ClassIndex::Entry> ClassIndex::Sorted(const Family& family) const {
  constexpr int32_t kMaxScores = 8'192;
  std::vector<Entry> entries;
  int32_t least = std::numeric_limits<int32_t>::max();
  int32_t most = std::numeric_limits<int32_t>::min();
  for (const auto& [name, node] : cluster_->order().ids()) {
    const Listing& listing = family.listings[static_cast<size_t>(node)];
    if (!listing.listed()) continue;
    entries.push_back(listing.EntryOf(node));
    least = std::min(least, listing.score);
    most = std::max(most, listing.score);
  }
  if (entries.empty() || least == most) return entries;
  const auto before = [](const Entry& a, const Entry& b) { return a.negative_score < b.negative_score; };
  if (int64_t{most} - least >= kMaxScores) {  // short cut
    std::stable_sort(entries.begin(), entries.end(), before);
    return entries;
  }
  std::vector<size_t> next(static_cast<size_t>(int64_t{most} - least) + 2,
                           0);  // the next position for each score
  for (const Entry& entry : entries) ++next[static_cast<size_t>(int64_t{most} + entry.negative_score) + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<Entry> out(entries.size());
  for (const Entry& entry : entries) out[next[static_cast<size_t>(int64_t{most} + entry.negative_score)]++] = entry;
  return out;
}

void ClassIndex::Raise(const Node& node, const Family& family, Chunk* chunk) {
  for (size_t i = 0; i < chunk->most.size(); ++i) {
    chunk->most[i] = std::max(chunk->most[i], node.free.Get(family.resources[i]));
  }
}

size_t ClassIndex::Find(const Entry& entry, const Family& family) {
  const auto behind = std::upper_bound(family.bounds.begin(), family.bounds.end(), entry);
  return behind == family.bounds.begin() ? 0 : static_cast<size_t>(behind - family.bounds.begin()) - 1;
}

void ClassIndex::Insert(const Entry& entry, Family* family) const {
  if (family->chunks.empty()) {
    family->chunks.push_back(std::make_unique<Chunk>());
    family->chunks.front()->most.assign(family->resources.size(), 0);
    family->bounds.push_back(entry);
  }
  const size_t at = Find(entry, *family);
  Chunk& chunk = *family->chunks[at];
  if (entry < family->bounds[at]) family->bounds[at] = entry;
  chunk.entries.insert(std::upper_bound(chunk.entries.begin(), chunk.entries.end(), entry), entry);
  Raise(cluster_->node(entry.node), *family, &chunk);
  if (chunk.entries.size() <= kChunk) return;
  auto half = std::make_unique<Chunk>();
  half->entries.reserve(kChunk + 1);
  half->entries.assign(chunk.entries.begin() + kChunk / 2, chunk.entries.end());
  half->most = chunk.most;
  half->loose = chunk.loose = true;  // short cut
  chunk.entries.resize(kChunk / 2);
  const auto behind = static_cast<std::ptrdiff_t>(at + 1);
  family->bounds.insert(family->bounds.begin() + behind, half->entries.front());
  family->chunks.insert(family->chunks.begin() + behind, std::move(half));
}

void ClassIndex::Erase(const Entry& entry, Family* family) {
  const size_t at = Find(entry, *family);
  Chunk& chunk = *family->chunks[at];
  const auto found = std::lower_bound(chunk.entries.begin(), chunk.entries.end(), entry);
  MUSTER_CHECK(found != chunk.entries.end() && found->node == entry.node);
  chunk.entries.erase(found);
  chunk.loose = true;  // short cut
  if (!chunk.entries.empty()) return;
  family->bounds.erase(family->bounds.begin() + static_cast<std::ptrdiff_t>(at));
  family->chunks.erase(family->chunks.begin() + static_cast<std::ptrdiff_t>(at));
}

void ClassIndex::Update(ClassId cls, NodeId node, bool constraints, Family* family) {
  const auto at = static_cast<size_t>(node);
  if (at >= family->listings.size()) {
    family->listings.resize(at + 1);
    constraints = true;
  }
  Listing& now = family->listings[at];
  const Listing before = now;
  Refresh(cls, node, constraints, *family, &now);
  // A reused id has the rank of its new name.
  if (before.listed() && before.score == now.score && before.rank == now.rank) {
    Chunk& chunk = *family->chunks[Find(now.EntryOf(node), *family)];
    Raise(cluster_->node(node), *family, &chunk);
    chunk.loose = true;  // short cut
    return;
  }
  if (before.listed()) Erase(before.EntryOf(node), family);
  if (now.listed()) Insert(now.EntryOf(node), family);
}

}  // namespace muster
