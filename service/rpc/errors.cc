#include "service/rpc/errors.h"

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr size_t kMaxViolations = 16;
// An error travels in a header. Clients read about 8 KiB of it, details and text together.
constexpr size_t kMaxText = 1'200;
constexpr size_t kMaxField = 120;
constexpr size_t kMaxDescription = 400;
constexpr size_t kMaxDetails = 2'000;

std::string Cut(absl::string_view text, size_t bytes) {
  return text.size() <= bytes ? std::string(text) : absl::StrCat(Beginning(text, bytes), " ...");
}

grpc::Status Build(grpc::StatusCode code, absl::string_view said,
                   const std::vector<const google::protobuf::Message*>& details) {
  const std::string text = Cut(said, kMaxText);
  google::rpc::Status status;
  status.set_code(static_cast<int>(code));
  status.set_message(text);
  for (const google::protobuf::Message* detail : details) status.add_details()->PackFrom(*detail);
  return {code, text, status.SerializeAsString()};
}

}  // namespace

std::string At(const std::string& path, absl::string_view field) {
  return path.empty() ? std::string(field) : absl::StrCat(path, ".", field);
}

void Violations::Add(absl::string_view field, absl::string_view text) {
  if (full()) return;
  found_.emplace_back(Cut(field, kMaxField), Cut(text, kMaxDescription));
  bytes_ += found_.back().first.size() + found_.back().second.size();
}

bool Violations::full() const { return found_.size() >= kMaxViolations || bytes_ > kMaxDetails; }

grpc::Status Violations::ToStatus() const {
  google::rpc::BadRequest bad;
  std::string all;
  for (const auto& [field, text] : found_) {
    google::rpc::BadRequest::FieldViolation* violation = bad.add_field_violations();
    violation->set_field(field);
    violation->set_description(text);
    absl::StrAppend(&all, all.empty() ? "" : "\n", field, field.empty() ? "" : ": ", text);
  }
  return Build(grpc::StatusCode::INVALID_ARGUMENT, all, {&bad});
}

grpc::Status ToGrpc(const absl::Status& status, absl::string_view reason, const FieldOfProblem& field_of) {
  if (status.ok()) return grpc::Status::OK;
  const std::string text(status.message());
  if (absl::IsInvalidArgument(status)) {
    std::vector<Problem> problems = ProblemsOf(status);
    if (problems.empty()) problems.push_back({Subject::kRequest, "", text});
    Violations violations;
    for (const Problem& problem : problems) {
      if (violations.full()) break;
      std::string field = field_of == nullptr ? "" : field_of(problem);
      if (field.empty() && problem.subject == Subject::kField) field = problem.name;
      violations.Add(field, problem.text);
    }
    return violations.ToStatus();
  }
  std::vector<const google::protobuf::Message*> details;
  google::rpc::ErrorInfo info;
  google::rpc::RetryInfo retry;
  if (!reason.empty()) {
    info.set_reason(std::string(reason));
    info.set_domain("muster.dev");
    details.push_back(&info);
  }
  if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) {
    retry.mutable_retry_delay()->set_seconds(1);
    details.push_back(&retry);
  }
  return Build(static_cast<grpc::StatusCode>(status.code()), text, details);
}

}  // namespace muster
