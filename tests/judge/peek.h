// What the judge's world must know of a pod to go on, and what readers see, whichever core it runs on.
#ifndef MUSTER_TESTS_JUDGE_PEEK_H_
#define MUSTER_TESTS_JUDGE_PEEK_H_

#include <string>
#include <vector>

#include "state/machine/machine.h"

namespace muster {

struct PodPeek {
  bool known = false;
  bool submitted = false;
  bool permitted_by_verbs = false;  // committed, and its caller binds it
  MemberState state = MemberState::kPending;
  PodDescription facts;
  std::string charged_node;
};
[[nodiscard]] PodPeek Peek(const Machine& machine, const std::string& uid);
// UIDs of members of gangs that were submitted and are not confirmed.
[[nodiscard]] std::vector<std::string> SubmittedUids(const Machine& machine);
// Gangs and nodes that changed, as readers see them.
[[nodiscard]] std::string ChangedViews(Machine* machine);
[[nodiscard]] std::string AllViews(const Machine& machine);
[[nodiscard]] std::string WriteView(const GangView& view);
[[nodiscard]] std::string WriteView(const NodeView& view);
[[nodiscard]] std::string Print(const Outcome& outcome);

}  // namespace muster

#endif  // MUSTER_TESTS_JUDGE_PEEK_H_
