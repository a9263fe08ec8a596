// An immutable view of gangs and nodes for readers that need no linearised answer: lists, metrics, watches.
//
// Views share their common parts: publishing costs what changed, not what exists. A published view is never modified
// and may be shared between threads.
#ifndef MUSTER_SERVICE_ENGINE_READ_VIEW_H_
#define MUSTER_SERVICE_ENGINE_READ_VIEW_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "service/engine/shared_map.h"
#include "state/model/facts.h"
#include "state/scheduling/planning.h"
#include "state/views/view.h"

namespace muster {

struct KeyOfGang {
  absl::string_view operator()(const GangView& gang) const { return gang.key; }
};
struct KeyOfNode {
  absl::string_view operator()(const NodeView& node) const { return node.name; }
};

struct ReadView {
  uint64_t version = 0;
  SharedMap<GangView, KeyOfGang> gangs;
  SharedMap<NodeView, KeyOfNode> nodes;
  std::array<int64_t, kGangPhases> phases{};  // gangs by phase
  int64_t present_nodes = 0;
  int64_t stale_nodes = 0;  // of these, known only from before a restart
  int32_t held_binds = 0;
  int32_t promised_holds = 0;
  int64_t pods = 0;
  PlanningStats planning;  // since the start
  FactCounts refused{};    // announced and refused, since the start
};

// By name; a nullptr value: removed.
using GangChanges = std::vector<std::pair<std::string, std::shared_ptr<const GangView>>>;
using NodeChanges = std::vector<std::pair<std::string, std::shared_ptr<const NodeView>>>;

// The changes of one publication. Keeping the gang changes alive does not keep the node changes alive, nor the reverse.
struct ViewChange {
  uint64_t version = 0;  // version of the view with these changes
  std::shared_ptr<const GangChanges> gangs;
  std::shared_ptr<const NodeChanges> nodes;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_READ_VIEW_H_
