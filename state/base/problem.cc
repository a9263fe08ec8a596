#include "state/base/problem.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "state/base/archive.h"
#include "state/base/check.h"

namespace muster {
namespace {

constexpr char kPayload[] = "muster.dev/problems";

}  // namespace

absl::Status InvalidArgument(const std::vector<Problem>& problems) {
  MUSTER_CHECK(!problems.empty());
  std::string message;
  for (const Problem& problem : problems) {
    if (&problem != &problems.front()) message += "\n";
    if (problem.subject == Subject::kField) absl::StrAppend(&message, problem.name, ": ");
    message += problem.text;
  }
  absl::Status out = absl::InvalidArgumentError(message);
  out.SetPayload(kPayload, absl::Cord(archive::BytesOf(problems)));
  return out;
}

std::vector<Problem> ProblemsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return {};
  std::vector<Problem> out;
  if (!archive::ReadBytes(std::string(*payload), &out)) out.clear();
  return out;
}

}  // namespace muster
