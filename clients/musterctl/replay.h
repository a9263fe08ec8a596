// `musterctl replay ...`: runs a recording of the flight recorder (SPEC S-3) through the core again, on any machine.
#ifndef MUSTER_CLIENTS_MUSTERCTL_REPLAY_H_
#define MUSTER_CLIENTS_MUSTERCTL_REPLAY_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace muster {

class ReplayCommand {
 public:
  explicit ReplayCommand(CLI::App* cli);
  [[nodiscard]] bool parsed() const { return replay_->parsed(); }
  // Returns the exit code: 0, or 1 with the error on standard error.
  [[nodiscard]] int Run() const;

 private:
  std::vector<std::string> files_;
  std::string until_;
  std::string gang_;
  bool check_ = false;
  bool commands_ = false;
  CLI::App* replay_;
};

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_REPLAY_H_
