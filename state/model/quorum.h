// How far a gang is from its minimum, or from the minimums of its subgroups (SPEC G-1, G-5, G-11, P-5). A plain gang is
// a tree of one minimum.
//
// A value: made from counts, asked, thrown away. Knows nothing of nodes.
#ifndef MUSTER_STATE_MODEL_QUORUM_H_
#define MUSTER_STATE_MODEL_QUORUM_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "state/model/gang.h"

namespace muster {

// Members by where they stand. `active`: those that have a node for good - binding under way, bound or running.
struct MemberCounts {
  int32_t pending = 0;
  int32_t gated = 0;  // of the pending ones: behind somebody else's gate
  int32_t waiting = 0;
  int32_t active = 0;
  int32_t succeeded = 0;
  int32_t plannable = 0;  // of the pending ones: those that Muster may place

  MemberCounts& operator+=(const MemberCounts& more);
};

class Quorum {
 public:
  // `minimum` -1: not declared.
  Quorum(int32_t minimum, MatchPolicy policy, const MemberCounts& counts)
      : minimum_(minimum), policy_(policy), counts_(counts) {}
  // With subgroups: `leaves` are the members by leaf, `counts` all of them. Both outlive this. `ahead`: members may be
  // planned before they exist, where the tree says what they ask for (P-7).
  Quorum(const SubgroupTree* tree, const std::vector<MemberCounts>* leaves, int32_t minimum, MatchPolicy policy,
         const MemberCounts& counts, bool ahead)
      : minimum_(minimum),
        policy_(policy),
        counts_(counts),
        tree_(tree),
        leaves_(leaves),
        ahead_(ahead && tree->ahead) {}

  // G-1: the children that count towards having enough of them.
  [[nodiscard]] int32_t Children() const {
    return counts_.active + counts_.waiting + counts_.pending - counts_.gated + Succeeded();
  }
  // G-5: how many count towards the minimum at the barrier. A once-satisfied gang that is asked has not been satisfied:
  // those of its members that have a node are half of a start, which only its rest is missing (G-11, K-13).
  [[nodiscard]] int32_t Present() const {
    switch (policy_) {
      case MatchPolicy::kOnlyWaiting:
        return counts_.waiting;
      case MatchPolicy::kOnceSatisfied:
      case MatchPolicy::kWaitingAndRunning:
      case MatchPolicy::kWaitingRunningSucceed:
        return counts_.waiting + counts_.active + Succeeded();
    }
    return counts_.waiting;
  }
  // The quorum is there.
  [[nodiscard]] bool Met() const {
    if (tree_ != nullptr) return Satisfied([this](size_t leaf) { return LeafAt(leaf).Present(); });
    return minimum_ >= 0 && Present() >= minimum_;
  }
  // G-1: enough children for every minimum.
  [[nodiscard]] bool Enough() const {
    if (tree_ == nullptr) return Children() >= minimum_;
    const std::vector<int32_t> to_come = ToCome();
    return Satisfied([&](size_t leaf) { return LeafAt(leaf).Children() + to_come[leaf]; });
  }
  // P-7: by leaf, how many members do not exist yet and may be planned all the same; of a gang of which nobody exists,
  // none. REQUIRES: there are subgroups.
  [[nodiscard]] std::vector<int32_t> ToCome() const;
  // The sum of those; 0 without subgroups.
  [[nodiscard]] int32_t AllToCome() const;
  // It would be there if everybody were who waits, has a node or may be placed, as far as Missing counts them.
  [[nodiscard]] bool Placeable(bool finishing) const;
  // Somebody who waits or may be placed is missing: his subgroup is short of members, and so are all above it.
  // REQUIRES: there are subgroups.
  [[nodiscard]] bool SomebodyServes(bool finishing) const;
  // It would be there with so many members more, by leaf, than Missing counts.
  [[nodiscard]] bool ServedBy(bool finishing, const std::vector<int32_t>& more) const;
  // So many members have a node or are over, by leaf, and one leaf loses some: what is left still meets the minimum.
  [[nodiscard]] bool Stands(const std::vector<int32_t>& there) const {
    return tree_ != nullptr && Satisfied([&](size_t leaf) { return there[leaf]; });
  }
  // G-11: how many places the minimum still needs. `finishing`: the gang was satisfied before; only-waiting counts
  // nobody who has started, except to finish a start that was interrupted (K-13).
  [[nodiscard]] int32_t Missing(bool finishing) const {
    if (tree_ != nullptr) return MissingOfTree(finishing);
    const bool anew = policy_ == MatchPolicy::kOnlyWaiting && finishing;
    return std::max(0, minimum_ - (anew ? 0 : counts_.active + Succeeded()));
  }

  // Of one leaf. REQUIRES: there are subgroups.
  [[nodiscard]] Quorum LeafAt(size_t leaf) const { return {minimums()[leaf], policy_, (*leaves_)[leaf]}; }
  // Which subgroups are short of members to choose from: "1 of 2 subgroups ready; decode: 1 of 3 pods exist". REQUIRES:
  // not Enough.
  [[nodiscard]] std::string LacksChildren() const;
  // The same of those who wait. REQUIRES: not Met.
  [[nodiscard]] std::string LacksPresent() const;

 private:
  using CountOf = absl::FunctionRef<int32_t(size_t)>;
  // Whether the gang is, where so many members of each leaf count.
  [[nodiscard]] bool Satisfied(CountOf count_of) const;
  // By node, whether each is.
  [[nodiscard]] std::vector<uint8_t> SatisfiedNodes(CountOf count_of) const;
  [[nodiscard]] std::string Lacks(CountOf count_of, const char* what) const;
  [[nodiscard]] int32_t MissingOfTree(bool finishing) const;
  [[nodiscard]] std::vector<int32_t> minimums() const;
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
