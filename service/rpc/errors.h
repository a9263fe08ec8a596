// Errors of the gRPC server: google.rpc details give programs the field, the reason and the time of a retry.
#ifndef MUSTER_SERVICE_RPC_ERRORS_H_
#define MUSTER_SERVICE_RPC_ERRORS_H_

#include <grpcpp/support/status.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/base/problem.h"

namespace muster {

// The problems of a request, field by field. Limited to what an answer can carry, at most 16.
class Violations {
 public:
  // `text` gives the value and what was expected.
  void Add(absl::string_view field, absl::string_view text);
  [[nodiscard]] bool none() const { return found_.empty(); }
  // The limit is reached; further checks are useless.
  [[nodiscard]] bool full() const;
  // INVALID_ARGUMENT with BadRequest. REQUIRES: !none().
  [[nodiscard]] grpc::Status ToStatus() const;

 private:
  std::vector<std::pair<std::string, std::string>> found_;
  size_t bytes_ = 0;
};

// The name of a field within `path`; "" for the request itself.
[[nodiscard]] std::string At(const std::string& path, absl::string_view field);

// Returns the request field that a problem which the core found is about; empty: unknown.
using FieldOfProblem = std::function<std::string(const Problem& problem)>;

// Converts a status. Adds ErrorInfo if `reason` (UPPER_SNAKE_CASE) is given, and RetryInfo if the call may be repeated
// soon. For InvalidArgument it adds BadRequest with each attached problem. The field is the result of `field_of`,
// otherwise the problem's own one.
[[nodiscard]] grpc::Status ToGrpc(const absl::Status& status, absl::string_view reason = "",
                                  const FieldOfProblem& field_of = nullptr);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_ERRORS_H_
