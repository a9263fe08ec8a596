// Errors of the gRPC door: google.rpc details, so that programs learn the field, the reason and when to try again.
#ifndef MUSTER_SERVICE_RPC_ERRORS_H_
#define MUSTER_SERVICE_RPC_ERRORS_H_

#include <grpcpp/support/status.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// What is wrong with a request, field by field. As many are kept as an answer can carry, at most 16.
class Violations {
 public:
  // `text` says what the value is and what was expected.
  void Add(absl::string_view field, absl::string_view text);
  [[nodiscard]] bool none() const { return found_.empty(); }
  // No more are kept: there is no use in looking further.
  [[nodiscard]] bool full() const;
  // INVALID_ARGUMENT with BadRequest. REQUIRES: !none().
  [[nodiscard]] grpc::Status ToStatus() const;

 private:
  std::vector<std::pair<std::string, std::string>> found_;
  size_t bytes_ = 0;
};

// The name of a field within `path`, "" for the request itself.
[[nodiscard]] std::string At(const std::string& path, absl::string_view field);

// The field of a request that a sentence of the core is about ("queue team: ..."); empty: that is not known.
using FieldOfText = std::function<std::string(absl::string_view text)>;

// With ErrorInfo when `reason` (UPPER_SNAKE_CASE) is given, RetryInfo when the call may be tried again soon, and, of an
// InvalidArgument, BadRequest with each line: its field is the one that `field_of` names, else what the line begins
// with ("gang.name: ...").
[[nodiscard]] grpc::Status ToGrpc(const absl::Status& status, absl::string_view reason = "",
                                  const FieldOfText& field_of = nullptr);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_ERRORS_H_
