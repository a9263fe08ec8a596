// What a refused request is wrong about, attached to its status, so that an answer can name the field of the request.
// Errors are not recognised by their text. Pure functions.
#ifndef MUSTER_STATE_BASE_PROBLEM_H_
#define MUSTER_STATE_BASE_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster {

enum class Subject : uint8_t {
  kRequest,  // the request as a whole
  kField,    // a field of the request; name: the field
  kNode,     // name: the node's name
  kPod,      // name: the pod's UID
  kQueue,    // name: the queue's name; empty: several queues together
};

struct Problem {
  Subject subject = Subject::kRequest;
  std::string name;  // of the subject
  std::string text;  // a sentence; it names the subject, unless that is a field
  friend bool operator==(const Problem&, const Problem&) = default;
};

// InvalidArgument with the problems attached. The message has a line for each: "field: text", or the text.
// REQUIRES: `problems` is not empty.
[[nodiscard]] absl::Status InvalidArgument(const std::vector<Problem>& problems);

// The problems attached to `status`, in order; empty if there are none.
[[nodiscard]] std::vector<Problem> ProblemsOf(const absl::Status& status);

}  // namespace muster

#endif  // MUSTER_STATE_BASE_PROBLEM_H_
