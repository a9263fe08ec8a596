// `musterctl config ...`: the file of contexts.
#ifndef MUSTER_CLIENTS_MUSTERCTL_CONFIG_COMMANDS_H_
#define MUSTER_CLIENTS_MUSTERCTL_CONFIG_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "clients/musterctl/contexts.h"

namespace muster {

class ConfigCommands {
 public:
  // `flags`: the connection flags that were given. It must outlive this object.
  ConfigCommands(CLI::App* cli, const ContextSettings* flags);
  [[nodiscard]] bool parsed() const { return config_->parsed(); }
  // Returns the exit code: 0, or 1 with the error on standard error.
  [[nodiscard]] int Run() const;

 private:
  const ContextSettings* const flags_;
  std::string name_;
  CLI::App* config_;
  CLI::App* list_;
  CLI::App* use_;
  CLI::App* set_;
  CLI::App* delete_;
};

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_CONFIG_COMMANDS_H_
