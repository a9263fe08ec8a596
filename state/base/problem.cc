#include "state/base/problem.h"

#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "state/base/check.h"

namespace muster {
namespace {

constexpr char kPayload[] = "muster.dev/problems";

// What precedes the name and the text of a problem in the payload, which does not leave the process.
struct Header {
  uint64_t subject;
  uint64_t name_bytes;
  uint64_t text_bytes;
};

}  // namespace

absl::Status InvalidArgument(const std::vector<Problem>& problems) {
  MUSTER_CHECK(!problems.empty());
  std::string message;
  std::string payload;
  for (const Problem& problem : problems) {
    if (&problem != &problems.front()) message += "\n";
    if (problem.subject == Subject::kField) absl::StrAppend(&message, problem.name, ": ");
    message += problem.text;
    const Header header{static_cast<uint64_t>(problem.subject), problem.name.size(), problem.text.size()};
    payload.append(reinterpret_cast<const char*>(&header), sizeof(header));
    absl::StrAppend(&payload, problem.name, problem.text);
  }
  absl::Status out = absl::InvalidArgumentError(message);
  out.SetPayload(kPayload, absl::Cord(payload));
  return out;
}

std::vector<Problem> ProblemsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return {};
  const std::string bytes(*payload);
  std::vector<Problem> out;
  for (size_t at = 0; at < bytes.size();) {
    Header header;
    std::memcpy(&header, bytes.data() + at, sizeof(header));
    at += sizeof(header);
    Problem& problem = out.emplace_back();
    problem.subject = static_cast<Subject>(header.subject);
    problem.name = bytes.substr(at, header.name_bytes);
    problem.text = bytes.substr(at + header.name_bytes, header.text_bytes);
    at += header.name_bytes + header.text_bytes;
  }
  return out;
}

}  // namespace muster
