#include "state/model/quorum.h"

#include "absl/strings/str_cat.h"

namespace muster {

std::vector<uint8_t> Quorum::SatisfiedNodes(CountOf count_of) const {
  std::vector<int32_t> satisfied(tree_->nodes.size(), 0);  // satisfied children, by node
  std::vector<uint8_t> out(tree_->nodes.size(), 0);
  for (size_t i = tree_->nodes.size(); i-- > 0;) {
    const Subgroup& node = tree_->nodes[i];
    const int32_t count = node.leaf >= 0 ? count_of(node) : satisfied[i];
    out[i] = count >= node.minimum ? 1 : 0;
    if (node.parent >= 0) satisfied[static_cast<size_t>(node.parent)] += out[i];
  }
  return out;
}

bool Quorum::Satisfied(CountOf count_of) const {
  if (minimum_ < 0) return false;
  const std::vector<uint8_t> satisfied = SatisfiedNodes(count_of);
  int32_t top = 0;
  for (size_t i = 0; i < satisfied.size(); ++i) top += tree_->nodes[i].parent < 0 ? satisfied[i] : 0;
  return top >= tree_->minimum;
}

int32_t Quorum::MissingOfTree(bool was_satisfied) const {
  std::vector<int64_t> lacks(leaves_->size());
  for (const Subgroup& node : tree_->nodes) {
    if (node.leaf >= 0) lacks[Index(node)] = QuorumOf(node).Missing(was_satisfied);
  }
  return static_cast<int32_t>(tree_->Least(lacks));
}

bool Quorum::MetWith(bool was_satisfied, const std::vector<int32_t>& more) const {
  return Satisfied([&](const Subgroup& leaf) { return Counted(leaf, was_satisfied) + more[Index(leaf)]; });
}

bool Quorum::HasUsefulMember(bool was_satisfied) const {
  std::vector<uint8_t> serves = SatisfiedNodes([&](const Subgroup& leaf) { return Counted(leaf, was_satisfied); });
  for (size_t i = 0; i < serves.size(); ++i) {  // parents come first
    const Subgroup& node = tree_->nodes[i];
    serves[i] = serves[i] == 0 && (node.parent < 0 || serves[static_cast<size_t>(node.parent)] != 0) ? 1 : 0;
    if (serves[i] == 0 || node.leaf < 0) continue;
    const MemberCounts& counts = (*leaves_)[Index(node)];
    if (counts.waiting + counts.plannable > 0) return true;
  }
  return false;
}

std::vector<int32_t> Quorum::FutureMembersByLeaf() const {
  std::vector<int32_t> out(leaves_->size(), 0);
  const bool any_member = counts_.pending + counts_.waiting + counts_.active > 0;
  if (!ahead_ || !any_member) return out;
  for (const Subgroup& node : tree_->nodes) {
    if (!node.future_template.has_value()) continue;
    const MemberCounts& has = (*leaves_)[Index(node)];
    const int32_t exist = has.pending + has.waiting + has.active + QuorumOf(node).Succeeded();
    out[Index(node)] = std::max(0, node.minimum - exist);
  }
  return out;
}

bool Quorum::Placeable(bool was_satisfied) const {
  std::vector<int32_t> more = FutureMembersByLeaf();
  for (size_t leaf = 0; leaf < more.size(); ++leaf) more[leaf] += (*leaves_)[leaf].waiting + (*leaves_)[leaf].plannable;
  return MetWith(was_satisfied, more);
}

std::string Quorum::Lacks(CountOf count_of, const char* what) const {
  const std::vector<uint8_t> satisfied = SatisfiedNodes(count_of);
  std::string out;
  int32_t parent = -1;
  while (true) {
    int32_t ready = 0;
    int32_t children = 0;
    int32_t first = -1;  // the first child that is not satisfied
    for (size_t i = 0; i < satisfied.size(); ++i) {
      if (tree_->nodes[i].parent != parent) continue;
      ++children;
      ready += satisfied[i];
      if (satisfied[i] == 0 && first < 0) first = static_cast<int32_t>(i);
    }
    const int32_t minimum = parent < 0 ? tree_->minimum : tree_->nodes[static_cast<size_t>(parent)].minimum;
    absl::StrAppend(&out, ready, " of ", minimum, " subgroups ready");
    if (minimum < children) absl::StrAppend(&out, ", of ", children);
    if (first < 0) return out;
    const Subgroup& node = tree_->nodes[static_cast<size_t>(first)];
    absl::StrAppend(&out, "; ", node.name, ": ");
    if (node.leaf >= 0) {
      absl::StrAppend(&out, count_of(node), " of ", node.minimum, " ", what);
      return out;
    }
    parent = first;
  }
}

std::string Quorum::DescribeMissingChildren() const {
  const std::vector<int32_t> future = FutureMembersByLeaf();
  return Lacks([&](const Subgroup& leaf) { return QuorumOf(leaf).Children() + future[Index(leaf)]; }, "pods exist");
}

std::string Quorum::DescribeMissingPresent() const {
  return Lacks([this](const Subgroup& leaf) { return QuorumOf(leaf).Present(); }, "members wait");
}

}  // namespace muster
