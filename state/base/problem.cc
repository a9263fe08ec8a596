#include "state/base/problem.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/archive.h"
#include "state/base/check.h"

namespace muster {

constexpr char kPayload[] = "muster.dev/problems";

absl::Status InvalidArgument(const std::vector<Problem>& problems) {
  MUSTER_CHECK(!problems.empty());
  absl::Status out =
      absl::InvalidArgumentError(absl::StrJoin(problems, "\n", [](std::string* text, const Problem& problem) {
        absl::StrAppend(text, problem.subject == Subject::kField ? problem.name + ": " : "", problem.text);
      }));
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
