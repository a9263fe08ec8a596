// Queues of the simulated worlds (SPEC ): two below one above them, with limits, quotas and weights.
#ifndef MUSTER_TESTS_SIMULATION_SIM_QUEUES_H_
#define MUSTER_TESTS_SIMULATION_SIM_QUEUES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "state/model/queue.h"

namespace muster {

class SimQueues {
 public:
  using Roll = std::function<int(int)>;
  // Two trees, of which either may be in force; or none at all. `cpu`: of the cluster.
  SimQueues(const Roll& roll, int64_t cpu);

  [[nodiscard]] bool any() const { return !trees_[0].queues.empty(); }
  [[nodiscard]] const QueueRules& rules() const { return trees_[now_]; }
  // The other tree is in force from here on.
  const QueueRules& Change() {
    now_ = 1 - now_;
    return rules();
  }
  [[nodiscard]] static std::string Name(const Roll& roll) {
    return std::vector<std::string>{"a", "b", "default"}[static_cast<size_t>(roll(3))];
  }

  // So many gangs of the queue that together ask for so much fit in an empty one, whichever tree is in force.
  [[nodiscard]] bool Fits(const std::string& queue, const ResourceList& amounts, bool preemptible, int gangs) const;

  // What runs, by who it is and where.
  struct Runs {
    std::string gang;
    std::string queue;
    ResourceList amounts;
  };
  // the queue, and each above it, has no more than either tree lets it have. Empty: it holds.
  [[nodiscard]] std::string TooMuch(const std::string& queue, const std::vector<Runs>& running) const;

 private:
  [[nodiscard]] static std::vector<const QueueSpec*> Chain(const QueueRules& rules, const std::string& queue);

  QueueRules trees_[2];
  size_t now_ = 0;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_SIM_QUEUES_H_
