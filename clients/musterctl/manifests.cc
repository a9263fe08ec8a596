#include "clients/musterctl/manifests.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;

using Json = nlohmann::json;

constexpr int kDeepest = 100;

// A plain scalar has its YAML 1.2 type; a quoted one is text.
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

// Words that some YAML 1.1 parsers read as a truth value or null.
bool IsYamlWord(std::string text) {
  absl::AsciiStrToLower(&text);
  for (const char* word : {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}) {
    if (text == word) return true;
  }
  return false;
}

// `left`: how many more values are allowed. Aliases can expand a few bytes into many values.
absl::StatusOr<Json> FromYaml(const YAML::Node& node, int depth, int* left) {
  if (--*left < 0) return absl::InvalidArgumentError("has more than a million values");
  if (depth > kDeepest) return absl::InvalidArgumentError("is nested deeper than 100");
  if (node.IsNull() || !node.IsDefined()) return nullptr;
  if (node.IsScalar()) return FromScalar(node);
  if (node.IsSequence()) {
    Json out = Json::array();
    for (const YAML::Node& entry : node) {
      absl::StatusOr<Json> value = FromYaml(entry, depth + 1, left);
      if (!value.ok()) return value;
      out.push_back(*std::move(value));
    }
    return out;
  }
  Json out = Json::object();
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    absl::StatusOr<Json> value = FromYaml(entry.second, depth + 1, left);
    if (!value.ok()) return value;
    if (out.contains(key)) return absl::InvalidArgumentError(absl::StrCat("key \"", key, "\" is given twice"));
    out[key] = *std::move(value);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ManifestsOf(const std::string& yaml) {
  std::vector<std::string> out;
  int left = 1'000'000;
  int document_number = 0;
  const auto add = [&](const Json& object) {
    out.push_back(object.dump(-1, ' ', false, Json::error_handler_t::replace));
  };
  try {
    for (const YAML::Node& document : YAML::LoadAll(yaml)) {
      if (document.IsNull()) continue;
      absl::StatusOr<Json> json = FromYaml(document, 0, &left);
      const std::string where = absl::StrCat("document ", ++document_number, ": ");
      if (!json.ok()) return absl::InvalidArgumentError(absl::StrCat(where, json.status().message()));
      if (!json->is_object())
        return absl::InvalidArgumentError(absl::StrCat(where, "expected a map with apiVersion and kind"));
      const auto items = json->find("items");
      if (items != json->end() && items->is_array()) {
        for (const Json& item : *items) add(item);
      } else {
        add(*json);
      }
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not YAML: ", error.what()));
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> ReadManifests(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a directory; name its files"));
  }
  std::ifstream file;
  if (path != "-") file.open(path);
  std::istream& in = path == "-" ? std::cin : file;
  if (!in) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::string text;
  for (std::vector<char> part(size_t{1} << 16); in.read(part.data(), std::ssize(part)) || in.gcount() > 0;) {
    text.append(part.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, " has more than ", kMaxBytes >> 20, " MiB"));
    }
  }
  absl::StatusOr<std::vector<std::string>> manifests = ManifestsOf(text);
  if (!manifests.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", manifests.status().message()));
  if (manifests->empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": has no objects"));
  return manifests;
}

absl::Status SetNamespace(const std::string& name_space, bool strict, std::string* manifest) {
  Json object = Json::parse(*manifest, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || object.value("kind", Json()) == "Node" || IsQueue(*manifest)) {
    return absl::OkStatus();
  }
  Json& metadata = object["metadata"];
  if (!metadata.is_object()) return absl::OkStatus();  // musterd reports the problem
  Json& current = metadata["namespace"];
  if (current.is_null()) {
    current = name_space;
  } else if (strict && current != name_space) {
    return absl::InvalidArgumentError(
        absl::StrCat(DescribeManifest(*manifest), " is of another namespace than -n ", name_space));
  }
  *manifest = object.dump(-1, ' ', false, Json::error_handler_t::replace);
  return absl::OkStatus();
}

namespace {

// The map at `key`; an empty map if it is absent or of another type.
Json MapAt(const Json& holder, const char* key) {
  return holder.is_object() && holder.contains(key) && holder[key].is_object() ? holder[key] : Json::object();
}

// Whether the pod names a gang, in any dialect.
bool NamesGang(const Json& pod) {
  if (MapAt(pod, "spec").contains("schedulingGroup")) return true;
  const Json metadata = MapAt(pod, "metadata");
  static constexpr const char* kKeys[] = {"gang.scheduling.koordinator.sh/name",
                                          "pod-group.scheduling.sigs.k8s.io",
                                          "pod-group.scheduling.sigs.k8s.io/name",
                                          "scheduling.x-k8s.io/pod-group",
                                          "pod-group-name",
                                          "scheduling.k8s.io/group-name"};
  for (const char* map : {"annotations", "labels"}) {
    const Json keys = MapAt(metadata, map);
    for (const char* key : kKeys) {
      if (keys.contains(key)) return true;
    }
  }
  return false;
}

// As in grouping by owner (gangs.byOwner): all pods of the Job are one gang, and Muster's own keys on the Job apply.
void GroupByJob(const Json& job, const std::string& name, int64_t pods, Json* pod) {
  for (const char* map : {"annotations", "labels"}) {
    Json own = MapAt(*pod, map);
    const Json keys = MapAt(job, map);
    for (const auto& [key, value] : keys.items()) {
      if (key.rfind("muster.dev/", 0) == 0 && !own.contains(key)) own[key] = value;
    }
    (*pod)[map] = std::move(own);
  }
  (*pod)["annotations"]["gang.scheduling.koordinator.sh/name"] = absl::StrCat("job-", name);
  (*pod)["annotations"]["gang.scheduling.koordinator.sh/min-available"] = absl::StrCat(pods);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PodsOf(const std::string& manifest) {
  constexpr int64_t kMaxPods = 100'000;
  const Json object = Json::parse(manifest, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || object.value("kind", Json()) != "Job") return std::vector<std::string>{manifest};
  const Json::json_pointer at_template("/spec/template");
  if (!object.contains(at_template) || !object.at(at_template).is_object()) {
    return absl::InvalidArgumentError("spec.template is missing; expected that of the Job's pods");
  }
  int64_t pods = 1;
  for (const char* field : {"/spec/parallelism", "/spec/completions"}) {
    const Json::json_pointer at(field);
    if (!object.contains(at)) continue;
    if (!object.at(at).is_number_integer() || object.at(at) < 1 || object.at(at) > kMaxPods) {
      return absl::InvalidArgumentError(
          absl::StrCat(field + 1, " is ", object.at(at).dump(), "; expected 1 to ", kMaxPods));
    }
    const int64_t number = object.at(at).get<int64_t>();
    pods = at == Json::json_pointer("/spec/parallelism") ? number : std::min(pods, number);
  }
  const Json metadata = MapAt(object, "metadata");
  Json pod = object.at(at_template);
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  if (!pod["metadata"].is_object()) pod["metadata"] = Json::object();
  if (metadata.contains("namespace")) pod["metadata"]["namespace"] = metadata["namespace"];
  const Json name_value = metadata.value("name", Json("job"));
  const std::string name = name_value.is_string() ? name_value.get<std::string>() : name_value.dump();
  if (!NamesGang(pod)) GroupByJob(metadata, name, pods, &pod["metadata"]);
  std::vector<std::string> out;
  for (int64_t i = 0; i < pods; ++i) {
    pod["metadata"]["name"] = absl::StrCat(name, "-", i);
    out.push_back(pod.dump());
  }
  return out;
}

bool IsNode(const std::string& manifest) {
  const Json object = Json::parse(manifest, nullptr, /*allow_exceptions=*/false);
  return object.is_object() && object.value("kind", Json()) == "Node";
}

bool IsQueue(const std::string& manifest) {
  const Json object = Json::parse(manifest, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || object.value("kind", Json()) != "Queue") return false;
  const Json version = object.value("apiVersion", Json());
  return version.is_string() && version.get<std::string>().rfind("muster.dev/", 0) == 0;
}

namespace {

// Whether the value is a whole number in the range of the type.
template <typename Number>
bool IsWhole(const Json& value) {
  using Limits = std::numeric_limits<Number>;
  // The library compares a number above 2^63 as if it were negative.
  if (value.is_number_unsigned()) return value.get<uint64_t>() <= static_cast<uint64_t>(Limits::max());
  return value.is_number_integer() && value.get<int64_t>() >= Limits::min() && value.get<int64_t>() <= Limits::max();
}

absl::Status Wrong(const std::string& field, const Json& value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value.dump(), "; expected ", expected));
}

// A list of texts, which may not be empty: to the API an empty list is none.
absl::Status ReadNames(const std::string& field, const Json& value,
                       google::protobuf::RepeatedPtrField<std::string>* to) {
  const auto is_text = [](const Json& entry) { return entry.is_string(); };
  if (!value.is_array() || value.empty() || !std::all_of(value.begin(), value.end(), is_text)) {
    return Wrong(field, value, R"(a list of at least one name; ["*"] for all)");
  }
  for (const Json& entry : value) *to->Add() = entry.get<std::string>();
  return absl::OkStatus();
}

// An entry of matchExpressions.
absl::Status ReadExpression(const std::string& field, const Json& value, v1::SelectorRequirement* to) {
  static const std::map<std::string, v1::SelectorRequirement::Operator> kOperators = {
      {"In", v1::SelectorRequirement::OPERATOR_IN},
      {"NotIn", v1::SelectorRequirement::OPERATOR_NOT_IN},
      {"Exists", v1::SelectorRequirement::OPERATOR_EXISTS},
      {"DoesNotExist", v1::SelectorRequirement::OPERATOR_DOES_NOT_EXIST}};
  if (!value.is_object()) return Wrong(field, value, "a map with key, operator and values");
  for (const auto& [part, entry] : value.items()) {
    if (part == "values") {
      if (absl::Status read = ReadNames(field + ".values", entry, to->mutable_values()); !read.ok()) return read;
    } else if (part != "key" && part != "operator") {
      return Wrong(absl::StrCat(field, ".", part), entry, "key, operator or values");
    }
  }
  const Json key = value.value("key", Json());
  const Json op = value.value("operator", Json());
  if (!key.is_string()) return Wrong(field + ".key", key, "the key of a label");
  const auto known = op.is_string() ? kOperators.find(op.get<std::string>()) : kOperators.end();
  if (known == kOperators.end()) return Wrong(field + ".operator", op, "In, NotIn, Exists or DoesNotExist");
  to->set_key(key.get<std::string>());
  to->set_operator_(known->second);
  return absl::OkStatus();
}

// A selector of labels in Kubernetes' notation.
absl::Status ReadSelector(const std::string& field, const Json& value, v1::NamespaceSelector* to) {
  if (!value.is_object()) return Wrong(field, value, "a map with matchLabels, matchExpressions, or both");
  for (const auto& [part, entry] : value.items()) {
    const std::string path = absl::StrCat(field, ".", part);
    if (part == "matchLabels" && entry.is_object()) {
      for (const auto& [key, label] : entry.items()) {
        if (!label.is_string()) return Wrong(absl::StrCat(path, ".", key), label, "the value of a label, a text");
        v1::SelectorRequirement* requirement = to->add_requirements();
        requirement->set_key(key);
        requirement->set_operator_(v1::SelectorRequirement::OPERATOR_IN);
        requirement->add_values(label.get<std::string>());
      }
    } else if (part == "matchExpressions" && entry.is_array()) {
      for (size_t i = 0; i < entry.size(); ++i) {
        absl::Status read = ReadExpression(absl::StrCat(path, "[", i, "]"), entry[i], to->add_requirements());
        if (!read.ok()) return read;
      }
    } else {
      return Wrong(path, entry, "matchLabels, a map, or matchExpressions, a list");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::QueueSpec> QueueOf(const std::string& manifest) {
  const Json object = Json::parse(manifest, nullptr, /*allow_exceptions=*/false);
  v1::QueueSpec out;
  const Json name = MapAt(object, "metadata").value("name", Json());
  if (!name.is_string()) return Wrong("metadata.name", name, "the name of the queue");
  out.set_name(name.get<std::string>());
  const Json spec = object.value("spec", Json::object());
  if (!spec.is_object()) return Wrong("spec", spec, "a map");
  for (const auto& [key, value] : spec.items()) {
    const std::string field = absl::StrCat("spec.", key);
    if (key == "parent" || key == "sort") {
      if (!value.is_string()) return Wrong(field, value, "a text");
      const auto text = value.get<std::string>();
      if (key == "parent") {
        out.set_parent(text);
      } else if (text == "fifo" || text == "stateaware" || text == "fair") {
        out.set_sort(text == "fair" ? v1::QUEUE_SORT_FAIR : v1::QUEUE_SORT_FIFO);
      } else if (!text.empty()) {
        return Wrong(field, value, "fifo (or stateaware) or fair");
      }
    } else if (key == "quota" || key == "limit") {
      if (!value.is_object()) return Wrong(field, value, "amounts by resource");
      for (const auto& [resource, amount] : value.items()) {
        (*(key == "quota" ? out.mutable_quota() : out.mutable_limit()))[resource] =
            amount.is_string() ? amount.get<std::string>() : amount.dump();
      }
    } else if (key == "overQuotaWeight") {
      if (!value.is_object()) return Wrong(field, value, "weights by resource");
      for (const auto& [resource, weight] : value.items()) {
        if (!IsWhole<int64_t>(weight)) {
          return Wrong(absl::StrCat(field, ".", resource), weight, "a whole number");
        }
        (*out.mutable_over_quota_weight())[resource] = weight.get<int64_t>();
      }
    } else if (key == "priority" || key == "maxApplications") {
      if (!IsWhole<int32_t>(value)) return Wrong(field, value, "a whole number of 32 bits");
      key == "priority" ? out.set_priority(value.get<int32_t>()) : out.set_max_applications(value.get<int32_t>());
    } else if (key == "namespaces" || key == "identities") {
      absl::Status read =
          ReadNames(field, value, key == "namespaces" ? out.mutable_namespaces() : out.mutable_identities());
      if (!read.ok()) return read;
    } else if (key == "namespaceSelector") {
      if (absl::Status read = ReadSelector(field, value, out.mutable_namespace_selector()); !read.ok()) return read;
    } else {
      return Wrong(field, value,
                   "parent, quota, limit, overQuotaWeight, priority, maxApplications, sort, namespaces, "
                   "namespaceSelector or identities");
    }
  }
  return out;
}

std::string YamlOf(const std::string& json) {
  YAML::Emitter out;
  const std::function<void(const Json&)> emit = [&](const Json& value) {
    if (value.is_object()) {
      out << (value.empty() ? YAML::Flow : YAML::Block) << YAML::BeginMap;
      for (const auto& [key, entry] : value.items()) {
        out << YAML::Key << key << YAML::Value;
        emit(entry);
      }
      out << YAML::EndMap;
    } else if (value.is_array()) {
      out << (value.empty() ? YAML::Flow : YAML::Block) << YAML::BeginSeq;
      for (const Json& entry : value) emit(entry);
      out << YAML::EndSeq;
    } else if (const auto* text = value.get_ptr<const std::string*>(); text != nullptr) {
      // Quoted where a parser would not read it as text.
      const bool plain = std::isalpha(static_cast<unsigned char>(text->empty() ? '0' : text->front())) != 0 &&
                         FromScalar(YAML::Node(*text)).is_string() && !IsYamlWord(*text);
      if (!plain) out << YAML::DoubleQuoted;
      out << *text;
    } else {
      out << value.dump();
    }
  };
  emit(Json::parse(json, nullptr, /*allow_exceptions=*/false));
  return out.c_str();
}

std::string DescribeManifest(const std::string& json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto text = [](const Json& holder, const char* key) {
    const auto found = holder.is_object() ? holder.find(key) : holder.end();
    return holder.is_object() && found != holder.end() && found->is_string() ? found->get<std::string>()
                                                                             : std::string();
  };
  const Json metadata = object.is_object() ? object.value("metadata", Json::object()) : Json::object();
  std::string kind = text(object, "kind");
  const std::string name_space = text(metadata, "namespace");
  if (kind == "Node" || kind.empty() || IsQueue(json)) return absl::StrCat(kind, " ", text(metadata, "name"));
  if (!text(metadata, "name").empty()) {
    return absl::StrCat(kind, " ", name_space.empty() ? "default" : name_space, "/", text(metadata, "name"));
  }
  return kind;
}

}  // namespace muster
