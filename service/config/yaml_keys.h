// What keys a YAML document has.
#ifndef MUSTER_SERVICE_CONFIG_YAML_KEYS_H_
#define MUSTER_SERVICE_CONFIG_YAML_KEYS_H_

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <vector>

namespace muster {

// Why the document is not looked at any closer; empty: it is of a size that somebody wrote. To be asked first.
[[nodiscard]] std::string TooMuch(const YAML::Node& root);
// What is no map, by its path: "queues.unknown". `path`: the node's own, "" for the document.
void FindLeaves(const YAML::Node& node, const std::string& path, std::map<std::string, YAML::Node>* leaves);
// Names each key that a map has twice, anywhere, "queues.tree[1].name: is given twice": the parser takes one of the two
// and says nothing.
void FindKeysGivenTwice(const YAML::Node& node, const std::string& path, std::vector<std::string>* problems);

}  // namespace muster

#endif  // MUSTER_SERVICE_CONFIG_YAML_KEYS_H_
