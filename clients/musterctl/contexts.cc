#include "clients/musterctl/contexts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {

const std::vector<std::string>& ContextKeys() {
  static const auto* const kKeys =
      new std::vector<std::string>{"server", "ca", "cert", "key", "server-name", "token", "token-file", "namespace"};
  return *kKeys;
}

void Override(const ContextSettings& over, ContextSettings* under) {
  const auto says = [&](const char* key) { return over.count(key) > 0 && !over.at(key).empty(); };
  if (says("token") || says("token-file")) {
    under->erase("token");
    under->erase("token-file");
  }
  for (const auto& [key, value] : over) {
    if (!value.empty()) (*under)[key] = value;
  }
}

std::string ContextPath() {
  if (const char* path = std::getenv("MUSTER_CONFIG"); path != nullptr) return path;
  if (const char* base = std::getenv("XDG_CONFIG_HOME"); base != nullptr)
    return absl::StrCat(base, "/muster/config.yaml");
  const char* home = std::getenv("HOME");
  return absl::StrCat(home == nullptr ? "." : home, "/.config/muster/config.yaml");
}

absl::StatusOr<ContextFile> LoadContexts(const std::string& path) {
  ContextFile out;
  if (!std::filesystem::exists(path)) return out;
  const auto wrong = [&](const std::string& text) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", text));
  };
  try {
    const YAML::Node root = YAML::LoadFile(path);
    if (root.IsNull()) return out;
    if (!root.IsMap()) return wrong("expected a map with contexts");
    if (root["current-context"]) out.current = root["current-context"].as<std::string>();
    for (const YAML::Node& entry : root["contexts"]) {
      if (!entry.IsMap() || !entry["name"]) return wrong("contexts: each needs a name");
      ContextSettings& settings = out.contexts[entry["name"].as<std::string>()];
      for (const auto& setting : entry) {
        const std::string key = setting.first.as<std::string>();
        if (key == "name") continue;
        if (std::find(ContextKeys().begin(), ContextKeys().end(), key) == ContextKeys().end()) {
          return wrong(absl::StrCat("context ", entry["name"].as<std::string>(), ": no such setting: ", key,
                                    "; expected ", absl::StrJoin(ContextKeys(), ", ")));
        }
        settings[key] = setting.second.as<std::string>();
      }
    }
  } catch (const YAML::Exception& error) {
    return wrong(error.what());
  }
  if (!out.current.empty() && out.contexts.count(out.current) == 0) {
    return wrong(absl::StrCat("current-context: there is no context ", out.current));
  }
  return out;
}

absl::Status SaveContexts(const std::string& path, const ContextFile& file) {
  YAML::Emitter yaml;
  yaml << YAML::BeginMap << YAML::Key << "current-context" << YAML::Value << file.current;
  yaml << YAML::Key << "contexts" << YAML::Value << YAML::BeginSeq;
  for (const auto& [name, settings] : file.contexts) {
    yaml << YAML::BeginMap << YAML::Key << "name" << YAML::Value << name;
    for (const auto& [key, value] : settings) yaml << YAML::Key << key << YAML::Value << value;
    yaml << YAML::EndMap;
  }
  yaml << YAML::EndSeq << YAML::EndMap;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const std::string text = absl::StrCat(yaml.c_str(), "\n");
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  if (!written || rename(fresh.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace muster
