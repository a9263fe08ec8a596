// Shared by the musterctl commands that call musterd: the command line, and the output of an answer.
#ifndef MUSTER_CLIENTS_MUSTERCTL_COMMAND_OUTPUT_H_
#define MUSTER_CLIENTS_MUSTERCTL_COMMAND_OUTPUT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/musterctl/contexts.h"
#include "clients/musterctl/output.h"

namespace muster {

// All settings of the command line.
struct Options {
  ContextSettings settings;  // from flags
  ContextSettings environment;
  std::string context;
  std::string name_space;  // from --namespace; empty: not given
  std::string output = "table";
  std::string name;
  std::vector<std::string> files;
  std::vector<std::string> without;
  std::vector<std::string> add;
  std::vector<std::string> more;
  std::string request_id;
  std::string shell;
  int64_t plan = 0;
  int64_t after = 0;
  double ttl_s = 0;
  double timeout_s = 10;
  bool all = false;
  bool follow = false;
  bool wait = false;
  bool confirm = false;
};
// Prints the error on standard error and returns the exit status.
int Fail(const absl::Status& status);

template <typename Message, typename Table>
int Show(const absl::StatusOr<Message>& message, const Options& options, Table table) {
  if (!message.ok()) return Fail(message.status());
  if (options.output == "table") {
    table(*message);
  } else {
    PrintMessage(*message, options.output);
  }
  return 0;
}

template <typename Event, typename Print>
std::function<bool(const Event&)> EachLine(const Options& options, Print print) {
  return [&options, print](const Event& event) {
    if (options.output == "table") {
      print(event);
    } else {
      PrintLine(event);
    }
    return true;
  };
}
}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_COMMAND_OUTPUT_H_
