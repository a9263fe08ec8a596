// Shell completion, generated from the command line's definition.
#ifndef MUSTER_CLIENTS_MUSTERCTL_COMPLETION_H_
#define MUSTER_CLIENTS_MUSTERCTL_COMPLETION_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace muster {

// Returns a script for "bash", "zsh" or "fish" that completes subcommands and flags.
[[nodiscard]] std::string CompletionScript(const CLI::App& cli, const std::string& shell);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_COMPLETION_H_
