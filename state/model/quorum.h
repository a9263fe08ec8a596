// The state of a gang relative to its minimum, or to the minimums of its subgroups (SPEC G-1, G-5, G-11, P-5). A gang
// without subgroups is a tree with one minimum.
//
// A short-lived value, computed from counts of members; it does not depend on nodes.
#ifndef MUSTER_STATE_MODEL_QUORUM_H_
#define MUSTER_STATE_MODEL_QUORUM_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "state/model/gang.h"

namespace muster {

// Members by state. `active` members have a node for good: their binding is under way, or they are bound or running.
struct MemberCounts {
  int32_t pending = 0;
  int32_t gated = 0;  // of the pending members: those with a scheduling gate of another controller
  int32_t waiting = 0;
  int32_t active = 0;
  int32_t succeeded = 0;
  int32_t plannable = 0;  // of the pending members: those that Muster may place
};

class Quorum {
 public:
  // `minimum` -1: not declared.
  Quorum(int32_t minimum, MatchPolicy policy, const MemberCounts& counts)
      : minimum_(minimum), policy_(policy), counts_(counts) {}
  // With subgroups: `leaves` are the members by leaf, `counts` all members. `ahead`: members may be planned before they
  // exist, if the tree declares their template (P-7). REQUIRES: `tree` and `leaves` outlive this object.
  Quorum(const SubgroupTree* tree, const std::vector<MemberCounts>* leaves, int32_t minimum, MatchPolicy policy,
         const MemberCounts& counts, bool ahead)
      : minimum_(minimum),
        policy_(policy),
        counts_(counts),
        tree_(tree),
        leaves_(leaves),
        ahead_(ahead && tree->ahead) {}

  // G-1: the children that count towards the minimum number of children.
  [[nodiscard]] int32_t Children() const {
    return counts_.active + counts_.waiting + counts_.pending - counts_.gated + Succeeded();
  }
  // G-5: the members that count towards the minimum at the barrier. Under policy once-satisfied, active members count:
  // they belong to an incomplete start, which needs only the remaining members (G-11, K-13).
  [[nodiscard]] int32_t Present() const {
    if (policy_ == MatchPolicy::kOnlyWaiting) return counts_.waiting;
    return counts_.waiting + counts_.active + Succeeded();
  }
  // True if the members at the barrier meet the minimum.
  [[nodiscard]] bool Met() const {
    if (tree_ != nullptr) return Satisfied([this](const Subgroup& leaf) { return QuorumOf(leaf).Present(); });
    return minimum_ >= 0 && Present() >= minimum_;
  }
  // G-1: true if there are enough children for every minimum.
  [[nodiscard]] bool HasEnoughChildren() const {
    if (tree_ == nullptr) return Children() >= minimum_;
    const std::vector<int32_t> future = FutureMembersByLeaf();
    return Satisfied([&](const Subgroup& leaf) { return QuorumOf(leaf).Children() + future[Index(leaf)]; });
  }
  // P-7: the number of future members that may be planned, by leaf. Zero for a gang without any existing member.
  // REQUIRES: there are subgroups.
  [[nodiscard]] std::vector<int32_t> FutureMembersByLeaf() const;
  // The sum over all leaves; 0 without subgroups.
  [[nodiscard]] int32_t FutureMembers() const { return ahead_ ? absl::c_accumulate(FutureMembersByLeaf(), 0) : 0; }
  // True if the minimum would be met by the members that Missing counts and all members that wait or may be placed.
  // REQUIRES: there are subgroups.
  [[nodiscard]] bool Placeable(bool was_satisfied) const;
  // True if some member that waits or may be placed helps to meet the minimum: its subgroup lacks members, and so do
  // all subgroups above it. REQUIRES: there are subgroups.
  [[nodiscard]] bool HasUsefulMember(bool was_satisfied) const;
  // True if the minimum would be met by the members that Missing counts and `more` members, by leaf. REQUIRES: there
  // are subgroups.
  [[nodiscard]] bool MetWith(bool was_satisfied, const std::vector<int32_t>& more) const;
  // True if the minimum is met by these numbers of members that have a node or have ended, by leaf. REQUIRES: there are
  // subgroups.
  [[nodiscard]] bool SatisfiedBy(const std::vector<int32_t>& by_leaf) const {
    return Satisfied([&](const Subgroup& leaf) { return by_leaf[Index(leaf)]; });
  }
  // G-11: the number of slots that the minimum still needs. `was_satisfied`: the gang was satisfied before. Under
  // policy only-waiting, members that have started count only before that, so that an interrupted start is completed
  // (K-13).
  [[nodiscard]] int32_t Missing(bool was_satisfied) const {
    if (tree_ != nullptr) return MissingOfTree(was_satisfied);
    const bool only_new = policy_ == MatchPolicy::kOnlyWaiting && was_satisfied;
    return std::max(0, minimum_ - (only_new ? 0 : counts_.active + Succeeded()));
  }

  // The quorum of one leaf. REQUIRES: it is a leaf of the tree.
  [[nodiscard]] Quorum QuorumOf(const Subgroup& leaf) const { return {leaf.minimum, policy_, (*leaves_)[Index(leaf)]}; }
  // Names the subgroups with too few children: "1 of 2 subgroups ready; decode: 1 of 3 pods exist". REQUIRES: not
  // HasEnoughChildren.
  [[nodiscard]] std::string DescribeMissingChildren() const;
  // As DescribeMissingChildren, for the members that wait. REQUIRES: not Met.
  [[nodiscard]] std::string DescribeMissingPresent() const;

 private:
  using CountOf = absl::FunctionRef<int32_t(const Subgroup& leaf)>;
  [[nodiscard]] static size_t Index(const Subgroup& leaf) { return static_cast<size_t>(leaf.leaf); }
  // Whether the gang's minimum is met if `count_of(leaf)` members of each leaf count.
  [[nodiscard]] bool Satisfied(CountOf count_of) const;
  // By node of the tree, whether its minimum is met.
  [[nodiscard]] std::vector<uint8_t> SatisfiedNodes(CountOf count_of) const;
  [[nodiscard]] std::string Lacks(CountOf count_of, const char* what) const;
  [[nodiscard]] int32_t MissingOfTree(bool was_satisfied) const;
  // The members of the leaf that Missing counts towards its minimum, at most the minimum.
  [[nodiscard]] int32_t Counted(const Subgroup& leaf, bool was_satisfied) const {
    return leaf.minimum - QuorumOf(leaf).Missing(was_satisfied);
  }
  [[nodiscard]] int32_t Succeeded() const {
    return policy_ == MatchPolicy::kWaitingRunningSucceed ? counts_.succeeded : 0;
  }

  int32_t minimum_;
  MatchPolicy policy_;
  MemberCounts counts_;
  const SubgroupTree* tree_ = nullptr;
  const std::vector<MemberCounts>* leaves_ = nullptr;
  bool ahead_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_QUORUM_H_
