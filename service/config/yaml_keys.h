// Checks on the keys of a YAML document.
#ifndef MUSTER_SERVICE_CONFIG_YAML_KEYS_H_
#define MUSTER_SERVICE_CONFIG_YAML_KEYS_H_

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <vector>

namespace muster {

// Returns why the document is too large to process; empty: its size is reasonable. REQUIRES: called before the others.
[[nodiscard]] std::string TooMuch(const YAML::Node& root);
// Adds every value that is not a map, by its path: "queues.unknown". `path` is the path of `node`; "" for the document.
void FindLeaves(const YAML::Node& node, const std::string& path, std::map<std::string, YAML::Node>* leaves);
// Reports each key that a map contains twice, at any depth ("queues.tree[1].name: is given twice"). The parser itself
// silently uses one of the two.
void FindDuplicateKeys(const YAML::Node& node, const std::string& path, std::vector<std::string>* problems);

}  // namespace muster

#endif  // MUSTER_SERVICE_CONFIG_YAML_KEYS_H_
