// Connection settings: flags override environment variables, which override a context of the configuration file.
//
//   current-context: lab
//   contexts:
//   - name: lab
//     server: muster.lab.example:9091
//     ca: /etc/muster/ca.pem            cert, key, token, token-file, server-name, namespace likewise
#ifndef MUSTER_CLIENTS_MUSTERCTL_CONTEXTS_H_
#define MUSTER_CLIENTS_MUSTERCTL_CONTEXTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// Settings of one context by key; only those that are set.
using ContextSettings = std::map<std::string, std::string>;

// The keys a context may have.
[[nodiscard]] const std::vector<std::string>& ContextKeys();

// Applies `over` to `under`. A token and a token file are one setting.
void Override(const ContextSettings& over, ContextSettings* under);

struct ContextFile {
  std::string current;
  std::map<std::string, ContextSettings> contexts;
};

// $MUSTER_CONFIG, else $XDG_CONFIG_HOME/muster/config.yaml, else ~/.config/muster/config.yaml.
[[nodiscard]] std::string ContextPath();
// A missing file is an empty one. InvalidArgument names what cannot be read.
[[nodiscard]] absl::StatusOr<ContextFile> LoadContexts(const std::string& path);
// Writes the file, readable by its owner only: it may contain tokens.
[[nodiscard]] absl::Status SaveContexts(const std::string& path, const ContextFile& file);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_CONTEXTS_H_
