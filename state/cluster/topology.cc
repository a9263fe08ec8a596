#include "state/cluster/topology.h"

#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace muster {

const Topology::Level& Topology::At(absl::string_view key) {
  std::unique_ptr<Level>& known = known_[key];
  if (known == nullptr) {
    known = std::make_unique<Level>();
    known->key = std::string(key);
  }
  CatchUp(known.get());
  return *known;
}

DomainId Topology::DomainOf(absl::string_view key, NodeId node) {
  const std::vector<DomainId>& of = At(key).domain_of;
  return static_cast<size_t>(node) < of.size() ? of[static_cast<size_t>(node)] : kNoDomain;
}

std::string Topology::ParentLevel(absl::string_view key) const {
  const auto found = absl::c_find(levels_, key);
  return found == levels_.end() || found == levels_.begin() ? "" : *(found - 1);
}

// The name of the node's domain; empty if it is in none.
std::string Topology::NameFor(NodeId node, const Level& level) const {
  const Node& of = cluster_->node(node);
  if (!of.present) return "";
  const std::string* own = LabelOf(of.facts, level.key);
  if (own == nullptr) return "";
  if (own == &of.facts.name || !absl::c_linear_search(levels_, level.key)) return *own;
  std::string name;
  for (const std::string& key : levels_) {
    const auto value = of.facts.labels.find(key);
    if (value != of.facts.labels.end()) absl::StrAppend(&name, name.empty() ? "" : "/", value->second);
    if (key == level.key) break;
  }
  return name;
}

void Topology::Assign(NodeId node, Level* level) {
  const std::string name = NameFor(node, *level);
  DomainId& domain = level->domain_of[static_cast<size_t>(node)];
  if (domain != kNoDomain && level->names[static_cast<size_t>(domain)] == name) return;
  if (domain == kNoDomain && name.empty()) return;
  ++level->epoch;
  if (domain != kNoDomain) {
    std::vector<NodeId>& left = level->nodes[static_cast<size_t>(domain)];
    left.erase(absl::c_find(left, node));
    domain = kNoDomain;
  }
  if (name.empty()) return;
  const auto [id, fresh] = level->ids.try_emplace(name, static_cast<DomainId>(level->names.size()));
  if (fresh) {
    level->names.push_back(name);
    level->nodes.emplace_back();
  }
  domain = id->second;
  level->nodes[static_cast<size_t>(domain)].push_back(node);
}

void Topology::Rebuild(Level* level) {
  level->names.clear();
  level->nodes.clear();
  level->ids.clear();
  ++level->epoch;
  level->domain_of.assign(static_cast<size_t>(cluster_->node_limit()), kNoDomain);
  for (NodeId node = 0; node < cluster_->node_limit(); ++node) Assign(node, level);
}

void Topology::CatchUp(Level* level) {
  const int64_t end = cluster_->log_end();
  const int64_t position = std::exchange(level->position, end);
  if (position < cluster_->log_start() || position < 0) return Rebuild(level);
  level->domain_of.resize(static_cast<size_t>(cluster_->node_limit()), kNoDomain);
  for (int64_t at = position; at < end; ++at) {
    const ClusterChange& change = cluster_->log_at(at);
    if (change.constraints) Assign(change.node, level);
  }
  // Without this, values of a label that never repeat would accumulate after their nodes are gone.
  if (level->names.size() > 2 * level->domain_of.size() + 64) Rebuild(level);
}

int32_t Topology::RoomOn(NodeId node, ClassId cls) const {
  if (cluster_->FindObstacle(node, cls) != Obstacle::kNone) return 0;
  return cluster_->RoomIgnoringOtherNodes(node, cls, std::numeric_limits<int32_t>::max());
}

void Topology::CatchUp(ClassId cls, ClassRoom* of) {
  const int64_t end = cluster_->log_end();
  const int64_t position = std::exchange(of->position, end);
  const auto nodes = static_cast<size_t>(cluster_->node_limit());
  if (position < 0 || position < cluster_->log_start() ||
      end - position > 2 * static_cast<int64_t>(nodes) + 64) {  // short cut
    of->room.resize(nodes);
    for (NodeId node = 0; node < cluster_->node_limit(); ++node) {
      of->room[static_cast<size_t>(node)] = RoomOn(node, cls);
    }
    of->sums.clear();
    return;
  }
  of->room.resize(nodes, 0);
  for (int64_t at = position; at < end; ++at) {
    const NodeId node = cluster_->log_at(at).node;
    int32_t& room = of->room[static_cast<size_t>(node)];
    const int64_t more = int64_t{RoomOn(node, cls)} - room;
    if (more == 0) continue;
    room = static_cast<int32_t>(room + more);
    for (auto& [level, sum] : of->sums) {
      if (sum.epoch != level->epoch) continue;
      const DomainId domain = level->domain_of[static_cast<size_t>(node)];
      if (domain != kNoDomain) sum.rooms[static_cast<size_t>(domain)] += more;
    }
  }
}

const std::vector<int64_t>& Topology::Rooms(absl::string_view key, ClassId cls) {
  const Level* const level = &At(key);
  // A valid sum is based on the current domain of every node. So all levels are updated before any sum changes.
  std::unique_ptr<ClassRoom>& known = classes_[cluster_->pod_class(cls).key];
  if (known == nullptr) {
    known = std::make_unique<ClassRoom>();
  } else {
    for (const auto& [other, sum] : known->sums) At(other->key);
  }
  ClassRoom* const of = known.get();
  of->last_used = ++uses_;
  CatchUp(cls, of);
  ClassRoom::Sum& sum = of->sums[level];
  if (sum.epoch != level->epoch) {
    sum.epoch = level->epoch;
    sum.rooms.assign(level->names.size(), 0);
    for (size_t node = 0; node < of->room.size(); ++node) {
      const DomainId domain = level->domain_of[node];
      if (domain != kNoDomain) sum.rooms[static_cast<size_t>(domain)] += of->room[node];
    }
  }
  if (classes_.size() > kMaxClasses) {
    const auto used_earlier = [](const auto& a, const auto& b) { return a.second->last_used < b.second->last_used; };
    classes_.erase(absl::c_min_element(classes_, used_earlier));
  }
  return sum.rooms;
}

}  // namespace muster
