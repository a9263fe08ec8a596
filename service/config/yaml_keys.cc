#include "service/config/yaml_keys.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

std::string Inside(const std::string& path, const YAML::Node& key) {
  const std::string name = key.IsScalar() ? key.Scalar() : "";
  return path.empty() ? name : absl::StrCat(path, ".", name);
}

}  // namespace

void FindLeaves(const YAML::Node& node, const std::string& path, std::map<std::string, YAML::Node>* leaves) {
  if (!node.IsMap()) {
    (*leaves)[path] = node;
    return;
  }
  for (const auto& entry : node) FindLeaves(entry.second, Inside(path, entry.first), leaves);
}

void FindKeysGivenTwice(const YAML::Node& node, const std::string& path, std::vector<std::string>* problems) {
  if (node.IsSequence()) {
    for (size_t i = 0; i < node.size(); ++i) FindKeysGivenTwice(node[i], absl::StrCat(path, "[", i, "]"), problems);
  }
  if (!node.IsMap()) return;
  std::set<std::string> keys;
  for (const auto& entry : node) {
    const std::string child = Inside(path, entry.first);
    if (!keys.insert(child).second) problems->push_back(absl::StrCat(child, ": is given twice"));
    FindKeysGivenTwice(entry.second, child, problems);
  }
}

}  // namespace muster
