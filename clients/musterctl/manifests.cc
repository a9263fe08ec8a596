#include "clients/musterctl/manifests.h"

#include <yaml-cpp/yaml.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 100;

// A plain scalar is what YAML 1.2 takes it for; a quoted one is text.
Json FromScalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") return text;
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  if (text.empty() || text == "~" || text == "null") return nullptr;
  int64_t whole = 0;
  if (absl::SimpleAtoi(text, &whole)) return whole;
  double number = 0;
  const bool looks_like_one = text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (looks_like_one && absl::SimpleAtod(text, &number)) return number;
  return text;
}

absl::StatusOr<Json> FromYaml(const YAML::Node& node, int depth) {
  if (depth > kDeepest) return absl::InvalidArgumentError("is nested deeper than 100");
  if (node.IsNull() || !node.IsDefined()) return nullptr;
  if (node.IsScalar()) return FromScalar(node);
  if (node.IsSequence()) {
    Json out = Json::array();
    for (const YAML::Node& entry : node) {
      absl::StatusOr<Json> value = FromYaml(entry, depth + 1);
      if (!value.ok()) return value;
      out.push_back(*std::move(value));
    }
    return out;
  }
  Json out = Json::object();
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    absl::StatusOr<Json> value = FromYaml(entry.second, depth + 1);
    if (!value.ok()) return value;
    if (out.contains(key)) return absl::InvalidArgumentError(absl::StrCat("key \"", key, "\" is given twice"));
    out[key] = *std::move(value);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ManifestsOf(const std::string& yaml) {
  std::vector<std::string> out;
  try {
    for (const YAML::Node& document : YAML::LoadAll(yaml)) {
      if (document.IsNull()) continue;
      absl::StatusOr<Json> json = FromYaml(document, 0);
      const std::string where = absl::StrCat("document ", out.size() + 1, ": ");
      if (!json.ok()) return absl::InvalidArgumentError(absl::StrCat(where, json.status().message()));
      if (!json->is_object())
        return absl::InvalidArgumentError(absl::StrCat(where, "expected a map with apiVersion and kind"));
      out.push_back(json->dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not YAML: ", error.what()));
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> ReadManifests(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
  } else {
    std::ifstream in(path);
    if (!in) return absl::NotFoundError(absl::StrCat("cannot read ", path));
    text << in.rdbuf();
  }
  absl::StatusOr<std::vector<std::string>> manifests = ManifestsOf(text.str());
  if (!manifests.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", manifests.status().message()));
  if (manifests->empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": has no objects"));
  return manifests;
}

std::string DescribeManifest(const std::string& json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto text = [](const Json& holder, const char* key) {
    const auto found = holder.is_object() ? holder.find(key) : holder.end();
    return holder.is_object() && found != holder.end() && found->is_string() ? found->get<std::string>()
                                                                             : std::string();
  };
  const Json metadata = object.is_object() ? object.value("metadata", Json::object()) : Json::object();
  const std::string kind = text(object, "kind");
  const std::string name_space = text(metadata, "namespace");
  if (kind == "Node" || kind.empty()) return absl::StrCat(kind, " ", text(metadata, "name"));
  if (!text(metadata, "name").empty()) {
    return absl::StrCat(kind, " ", name_space.empty() ? "default" : name_space, "/", text(metadata, "name"));
  }
  return kind;
}

}  // namespace muster
