// `musterctl store ...`: shows, checks, copies and moves the file of musterd's durable store (SPEC S-3). Works on the
// file itself, whether musterd runs or not.
#ifndef MUSTER_CLIENTS_MUSTERCTL_STORE_COMMANDS_H_
#define MUSTER_CLIENTS_MUSTERCTL_STORE_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <string>

namespace muster {

class StoreCommands {
 public:
  explicit StoreCommands(CLI::App* cli);
  [[nodiscard]] bool parsed() const { return store_->parsed(); }
  // Returns the exit code: 0, or 1 with the error on standard error.
  int Run() const;

 private:
  [[nodiscard]] int Inspect() const;
  [[nodiscard]] int Verify() const;
  [[nodiscard]] int Export() const;
  [[nodiscard]] int Import() const;
  [[nodiscard]] int BackUp() const;
  [[nodiscard]] int Upgrade() const;

  std::string file_;
  std::string to_;
  std::string kind_;
  CLI::App* store_;
  CLI::App* inspect_;
  CLI::App* verify_;
  CLI::App* export_;
  CLI::App* import_;
  CLI::App* backup_;
  CLI::App* upgrade_;
};

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_STORE_COMMANDS_H_
