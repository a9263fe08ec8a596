// The nodes, pods and declared gangs of one announcement, and the kinds of facts. Pure values.
#ifndef MUSTER_STATE_MODEL_FACTS_H_
#define MUSTER_STATE_MODEL_FACTS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "state/model/gang.h"
#include "state/model/node.h"
#include "state/model/pod.h"

namespace muster {

struct Facts {
  std::vector<NodeDescription> nodes;
  std::vector<PodDescription> pods;
  std::vector<GangObject> gangs;
};

enum class FactKind : uint8_t { kNode, kPod, kGang };
inline constexpr size_t kFactKinds = 3;
// "node", "pod", "gang".
[[nodiscard]] inline absl::string_view ToString(FactKind kind) {
  return kind == FactKind::kNode ? "node" : kind == FactKind::kPod ? "pod" : "gang";
}
using FactCounts = std::array<int64_t, kFactKinds>;  // by FactKind

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_FACTS_H_
