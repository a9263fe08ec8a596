#include "clients/musterctl/command_output.h"

#include <iostream>

#include "absl/strings/str_split.h"

namespace muster {

int Fail(const absl::Status& status) {
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    std::cerr << "musterctl: " << Printable(std::string(line)) << "\n";
  }
  return 1;
}

}  // namespace muster
