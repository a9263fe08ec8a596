#include "service/rpc/errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/google/rpc/error_details.pb.h"
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

namespace {

void AddLine(absl::string_view line, const FieldOfText& field_of, Violations* violations) {
  if (field_of != nullptr) {
    if (const std::string field = field_of(line); !field.empty()) return violations->Add(field, line);
  }
  const size_t colon = line.find(": ");
  const bool begins_with_field = colon != absl::string_view::npos && line.find(' ') > colon;
  if (begins_with_field) return violations->Add(line.substr(0, colon), line.substr(colon + 2));
  violations->Add("", line);
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status, absl::string_view reason, const FieldOfText& field_of) {
  if (status.ok()) return grpc::Status::OK;
  const std::string text(status.message());
  if (absl::IsInvalidArgument(status)) {
    Violations violations;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (violations.full()) break;
      AddLine(line, field_of, &violations);
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
