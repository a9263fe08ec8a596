// Errors of the gRPC door: google.rpc details, so that programs learn the field, the reason and when to try again.
#ifndef MUSTER_SERVICE_RPC_ERRORS_H_
#define MUSTER_SERVICE_RPC_ERRORS_H_

#include <grpcpp/support/status.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// What is wrong with a request, field by field. At most 16 are kept.
class Violations {
 public:
  // `text` says what the value is and what was expected.
  void Add(std::string field, std::string text);
  [[nodiscard]] bool none() const { return found_.empty(); }
  // INVALID_ARGUMENT with BadRequest. REQUIRES: !none().
  [[nodiscard]] grpc::Status ToStatus() const;

 private:
  std::vector<std::pair<std::string, std::string>> found_;
};

// With ErrorInfo when `reason` (UPPER_SNAKE_CASE) is given, RetryInfo when the call may be tried again soon, and
// BadRequest when an InvalidArgument begins with a field ("gang.name: ...").
[[nodiscard]] grpc::Status ToGrpc(const absl::Status& status, absl::string_view reason = "");

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_ERRORS_H_
