// musterctl simulate: the result of each policy for a workload on a cluster, decided by the same core as in musterd.
#ifndef MUSTER_CLIENTS_MUSTERCTL_SIMULATE_H_
#define MUSTER_CLIENTS_MUSTERCTL_SIMULATE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/musterctl/trace_file.h"
#include "state/simulate/trace_run.h"

namespace muster {

class SimulateCommand {
 public:
  explicit SimulateCommand(CLI::App* cli);
  [[nodiscard]] bool parsed() const { return simulate_->parsed(); }
  // Returns the exit code: 0; 1 with the error on standard error; 2 if an invariant of the core was violated.
  [[nodiscard]] int Run();

 private:
  struct Simulated {
    std::string policy;
    simulate::Result result;
    simulate::Figures figures;
  };
  [[nodiscard]] absl::Status ReadNodes();
  [[nodiscard]] absl::StatusOr<std::vector<simulate::Job>> Jobs() const;
  // Assigns jobs without a queue to one of the teams; used by policy fair only.
  [[nodiscard]] std::vector<simulate::Job> InTeams(std::vector<simulate::Job> jobs) const;
  [[nodiscard]] absl::StatusOr<simulate::Conditions> ConditionsFor(const std::string& policy,
                                                                   const std::vector<simulate::Job>& jobs) const;
  void PrintTable(const std::vector<Simulated>& runs, const std::vector<simulate::Job>& jobs) const;
  void PrintJson(const std::vector<Simulated>& runs, const std::vector<simulate::Job>& jobs) const;

  std::string file_;
  SyntheticWorkload synthetic_;
  std::string nodes_ = "32";
  int32_t gpus_ = 8;
  int32_t pod_gpus_ = 0;
  std::vector<int32_t> node_gpus_;  // the nodes that the three options describe
  int64_t all_gpus_ = 0;
  std::vector<std::string> policies_;
  std::string limit_ = "30m";
  bool durations_ = false;
  int32_t teams_ = 4;
  std::string output_ = "table";
  std::string svg_;
  std::string save_;
  CLI::App* simulate_;
};

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_SIMULATE_H_
