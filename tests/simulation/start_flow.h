// Simulates how a burst of gangs starts through a kube-scheduler that is one server with a queue (SPEC K-5, K-7, P-6):
// each attempt takes its time, a refused pod returns to the queue when anything is bound, and a called member stands
// behind all that came before it. The core is the shipped one; time is simulated. docs/explanation/flow-of-starts.md
// has the model of this queue.
#ifndef MUSTER_TESTS_SIMULATION_START_FLOW_H_
#define MUSTER_TESTS_SIMULATION_START_FLOW_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "state/machine/machine.h"

namespace muster {

struct StartFlowSettings {
  int32_t nodes = 1'000;  // each has room for `pods_per_node` members
  int32_t pods_per_node = 4;
  std::vector<int32_t> gangs;  // the sizes of the gangs
  bool gated = false;
  int32_t created_at_once = 8;       // gangs whose pods are created alternately
  int64_t create_us = 5'000;         // from one pod to the next
  int64_t attempt_us = 8'000;        // kube-scheduler's time for one attempt
  int64_t slow_from_us = INT64_MAX;  // from then on an attempt takes `slow_attempt_us`
  int64_t slow_attempt_us = 0;
  int64_t write_us = 2'000;    // the API server's time for one of musterd's writes
  int64_t notify_us = 20'000;  // from a write to its watchers
  MachineSettings machine;
};

struct StartFlowResult {
  int64_t pods = 0;
  int64_t bound = 0;
  int64_t last_bound_ms = 0;  // since the first pod was created
  int64_t filters = 0;
  int64_t ended_holds = 0;  // without being bound
  int64_t activations = 0;
  std::vector<int64_t> bound_each_minute;
};

// Runs until every pod is bound, or for `limit_ms`.
[[nodiscard]] StartFlowResult RunStartFlow(const StartFlowSettings& settings, int64_t limit_ms);

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_START_FLOW_H_
