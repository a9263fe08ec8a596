#include "service/engine/refused_log.h"

#include <spdlog/spdlog.h>

#include <string>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr size_t kMaxWritten = 4'096;
constexpr size_t kMaxLine = 1'024;

// A name of the announced object for people; empty: the command announces no fact.
std::string NameOf(const Command& command) {
  if (const auto* node = std::get_if<UpsertNode>(&command)) return absl::StrCat("node ", node->node.name);
  if (const auto* pod = std::get_if<UpsertPod>(&command)) {
    return absl::StrCat("pod ", pod->pod.name_space, "/", pod->pod.name);
  }
  if (const auto* gang = std::get_if<UpsertGangObject>(&command)) {
    return absl::StrCat("gang ", gang->object.name_space, "/", gang->object.name);
  }
  if (const auto* fact = std::get_if<UnreadableFact>(&command))
    return absl::StrCat(ToString(fact->kind), " ", fact->name);
  return "";
}

}  // namespace

bool RefusedLog::Write(const Command& command, const absl::Status& status) {
  const std::string name = NameOf(command);
  if (name.empty()) return false;
  const std::string line = absl::StrCat(name, " is refused; the previous version stays in effect: ", status.message());
  if (written_.size() >= kMaxWritten) written_.clear();
  if (!written_.insert(absl::Hash<std::string>()(line)).second) return false;
  spdlog::warn("{}", std::string(Beginning(line, kMaxLine)));
  return true;
}

}  // namespace muster
