// Queues of the simulated worlds (SPEC ): two queues below a parent, with limits, quotas and weights.
#ifndef MUSTER_TESTS_SIMULATION_SIM_QUEUES_H_
#define MUSTER_TESTS_SIMULATION_SIM_QUEUES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "state/model/queue.h"

namespace muster {

class SimQueues {
 public:
  using Roll = std::function<int(int)>;
  // Two trees, of which either may be in force; or no queues. `cpu`: of the whole cluster.
  SimQueues(const Roll& roll, int64_t cpu);

  [[nodiscard]] bool any() const { return !trees_[0].queues.empty(); }
  [[nodiscard]] const QueueRules& rules() const { return trees_[now_]; }
  // Puts the other tree in force.
  const QueueRules& Change() {
    now_ = 1 - now_;
    return rules();
  }
  [[nodiscard]] static std::string Name(const Roll& roll) {
    return std::vector<std::string>{"a", "b", "default"}[static_cast<size_t>(roll(3))];
  }

  // Whether this number of gangs with these total amounts fits in the empty queue, under both trees.
  [[nodiscard]] bool Fits(const std::string& queue, const ResourceList& amounts, bool preemptible, int gangs) const;

  // What runs, by identity and place.
  struct Runs {
    std::string gang;
    std::string queue;
    ResourceList amounts;
  };
  // the queue and each queue above it have no more than either tree allows. Empty: it holds.
  [[nodiscard]] std::string TooMuch(const std::string& queue, const std::vector<Runs>& running) const;

 private:
  [[nodiscard]] static std::vector<const QueueSpec*> Chain(const QueueRules& rules, const std::string& queue);

  QueueRules trees_[2];
  size_t now_ = 0;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_SIM_QUEUES_H_
