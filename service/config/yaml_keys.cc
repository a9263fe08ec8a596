#include "service/config/yaml_keys.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kDeepest = 100;
constexpr size_t kMaxNodes = 100'000;

std::string Inside(const std::string& path, const std::string& name) {
  return path.empty() ? name : absl::StrCat(path, ".", name);
}

std::string NameOf(const YAML::Node& key) { return key.IsScalar() ? key.Scalar() : ""; }

}  // namespace

std::string TooMuch(const YAML::Node& root) {
  // Aliases can make a small file arbitrarily large, or endless.
  struct Walk {
    size_t nodes = 0;
    bool deep = false;
    void Look(const YAML::Node& node, int depth) {
      deep = deep || depth > kDeepest;
      if (deep || ++nodes > kMaxNodes) return;
      for (const auto& entry : node) {
        if (node.IsMap()) {
          Look(entry.first, depth + 1);
          Look(entry.second, depth + 1);
        } else {
          Look(entry, depth + 1);
        }
        if (deep || nodes > kMaxNodes) return;
      }
    }
  };
  Walk walk;
  walk.Look(root, 0);
  if (walk.deep) return absl::StrCat("is nested deeper than ", kDeepest, ", or an alias contains itself");
  if (walk.nodes > kMaxNodes) return absl::StrCat("has more than ", kMaxNodes, " values, its aliases written out");
  return "";
}

void FindLeaves(const YAML::Node& node, const std::string& path, std::map<std::string, YAML::Node>* leaves) {
  if (!node.IsMap()) {
    (*leaves)[path] = node;
    return;
  }
  for (const auto& entry : node) {
    std::string name = NameOf(entry.first);
    // A key "store.path" is not the path of the key `path` in `store`.
    if (name.find('.') != std::string::npos) name = absl::StrCat("\"", name, "\"");
    FindLeaves(entry.second, Inside(path, name), leaves);
  }
}

void FindDuplicateKeys(const YAML::Node& node, const std::string& path, std::vector<std::string>* problems) {
  if (node.IsSequence()) {
    for (size_t i = 0; i < node.size(); ++i) FindDuplicateKeys(node[i], absl::StrCat(path, "[", i, "]"), problems);
  }
  if (!node.IsMap()) return;
  std::set<std::string> keys;
  for (const auto& entry : node) {
    const std::string child = Inside(path, NameOf(entry.first));
    if (!keys.insert(child).second) problems->push_back(absl::StrCat(child, ": is given twice"));
    FindDuplicateKeys(entry.second, child, problems);
  }
}

}  // namespace muster
