#include "k8s-extender/webhook/extender_json.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/owners.h"

namespace muster {
namespace {

constexpr size_t kMaxNames = 200'000;

namespace ondemand = simdjson::ondemand;

// Reads the document by one walk. What is not needed is skipped, not examined. Throws simdjson::simdjson_error.
class ArgsReader {
 public:
  ArgsReader(absl::string_view body, const char* padded, ExtenderArgs* out) : body_(body), padded_(padded), out_(out) {}

  void Read(ondemand::object args) {
    for (ondemand::field field : args) {
      const absl::string_view key = KeyOf(field);
      ondemand::value value = field.value();
      if (absl::EqualsIgnoreCase(key, "pod")) {
        ReadMetadata(value, "uid", [this](absl::string_view uid) { out_->pod_uid = std::string(uid); });
      } else if (absl::EqualsIgnoreCase(key, "nodenames") && IsArray(value)) {
        ReadNames(value.get_array());
      } else if (absl::EqualsIgnoreCase(key, "nodes") && IsObject(value)) {
        for (ondemand::field list : value.get_object()) {
          if (absl::EqualsIgnoreCase(KeyOf(list), "items") && IsArray(list.value()))
            ReadNodes(list.value().get_array());
        }
      }
    }
  }

 private:
  // simdjson's text as Abseil's type.
  template <typename Text>
  static absl::string_view View(simdjson::simdjson_result<Text> read) {
    const auto text = std::move(read).value();
    return {text.data(), text.size()};
  }
  static absl::string_view KeyOf(ondemand::field& field) { return View(field.unescaped_key()); }
  static absl::string_view TextOf(ondemand::value value) { return View(value.get_string()); }
  static bool IsArray(ondemand::value value) { return value.type() == ondemand::json_type::array; }
  static bool IsObject(ondemand::value value) { return value.type() == ondemand::json_type::object; }
  static bool IsString(ondemand::value value) { return value.type() == ondemand::json_type::string; }

  // Calls `read` with the text of the field of the object's metadata, if it has one.
  template <typename Read>
  static void ReadMetadata(ondemand::value object, absl::string_view name, const Read& read) {
    if (!IsObject(object)) return;
    for (ondemand::field field : object.get_object()) {
      if (!absl::EqualsIgnoreCase(KeyOf(field), "metadata") || !IsObject(field.value())) continue;
      for (ondemand::field each : field.value().get_object()) {
        if (absl::EqualsIgnoreCase(KeyOf(each), name) && IsString(each.value())) read(TextOf(each.value()));
      }
    }
  }
  void ReadNames(ondemand::array names) {
    const absl::string_view text = View(names.raw_json());
    out_->node_names = body_.substr(static_cast<size_t>(text.data() - padded_), text.size());
    if (SplitNames(text)) return;
    out_->offer = std::make_shared<NodeOffer>();
    names.reset();
    for (ondemand::value name : names) Add(TextOf(name));
  }
  // Adds the names of an array as Go writes it: strings without escapes, with only a comma between two. Returns false
  // if it is another array. Names are most of what filter reads, and this reads them several times as fast.
  bool SplitNames(absl::string_view array) {
    if (absl::StrContains(array, '\\')) return false;
    out_->offer->Reserve(array.size());
    for (size_t at = 1; array[at] == '"';) {
      const size_t end = array.find('"', at + 1);
      Add(array.substr(at + 1, end - at - 1));
      if (end + 2 == array.size()) return true;
      if (array[end + 1] != ',') return false;
      at = end + 2;
    }
    return false;
  }
  void ReadNodes(ondemand::array nodes) {
    out_->whole_nodes = true;
    for (ondemand::value node : nodes) ReadMetadata(node, "name", [this](absl::string_view name) { Add(name); });
  }
  void Add(absl::string_view name) {
    if (out_->offer->size() >= kMaxNames) throw simdjson::simdjson_error(simdjson::CAPACITY);
    out_->offer->Add(name);
  }

  const absl::string_view body_;
  const char* const padded_;  // the copy of the body that is read
  ExtenderArgs* const out_;
};

// object[key], ignoring the case of the key.
const Json& AnyCase(const Json& object, absl::string_view key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  for (const auto& [name, value] : object.items()) {
    if (absl::EqualsIgnoreCase(name, key)) return value;
  }
  return kNull;
}

absl::StatusOr<std::string> TextAt(const Json& object, const char* key, absl::string_view what) {
  const Json& value = AnyCase(object, key);
  if (value.is_null()) return std::string();
  if (const auto* text = value.get_ptr<const std::string*>(); text != nullptr) return *text;
  return absl::InvalidArgumentError(absl::StrCat(what, ".", key, ": is a ", TypeName(value), "; expected a string"));
}

void AppendQuoted(absl::string_view text, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out->push_back('"');
  size_t plain = 0;  // start of the current run of characters without escapes
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out->append(text.data() + plain, i - plain);
    plain = i + 1;
    out->push_back('\\');
    if (byte >= 0x20) {
      out->push_back(text[i]);
    } else {
      out->append("u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    }
  }
  out->append(text.data() + plain, text.size() - plain);
  out->push_back('"');
}

// Of a request with whole nodes, some 400 each.
constexpr size_t kMaxNodeValues = 4'000'000;

// The Nodes of the request that are in `kept`.
absl::StatusOr<std::string> SelectedNodes(absl::string_view body, const absl::flat_hash_set<absl::string_view>& kept) {
  absl::StatusOr<Json> parsed = ParseJson(body, "ExtenderArgs", kMaxNodeValues);
  if (!parsed.ok()) return parsed.status();
  Json nodes = AnyCase(*parsed, "nodes");
  Json items = Json::array();
  for (const Json& item : AnyCase(nodes, "items")) {
    if (kept.contains(StringOrEmpty(Child(item, "metadata"), "name"))) items.push_back(item);
  }
  nodes["items"] = std::move(items);
  return nodes.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<ExtenderArgs> ParseExtenderArgs(absl::string_view body) {
  ExtenderArgs args;
  try {
    const simdjson::padded_string padded(body.data(), body.size());
    ondemand::parser parser;
    ondemand::document document = parser.iterate(padded);
    ArgsReader(body, padded.data(), &args).Read(document.get_object());
    const bool at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
    if (!at_end) throw simdjson::simdjson_error(simdjson::TRAILING_CONTENT);
  } catch (const simdjson::simdjson_error& error) {
    return absl::InvalidArgumentError(error.error() == simdjson::CAPACITY
                                          ? absl::StrCat("ExtenderArgs: more than ", kMaxNames, " node names")
                                          : absl::StrCat("ExtenderArgs: not the expected JSON object: ", error.what()));
  }
  if (args.pod_uid.empty()) {
    return absl::InvalidArgumentError(
        "ExtenderArgs.Pod.metadata.uid: is missing; expected the UID of the pod to place");
  }
  return args;
}

Json PodOf(absl::string_view body) {
  const absl::StatusOr<Json> parsed = ParseJson(body, "ExtenderArgs", kMaxNodeValues);
  return parsed.ok() ? AnyCase(*parsed, "pod") : Json();
}

absl::StatusOr<BindingArgs> ParseBindingArgs(absl::string_view body) {
  const absl::StatusOr<Json> parsed = ParseJson(body, "ExtenderBindingArgs");
  if (!parsed.ok()) return parsed.status();
  BindingArgs args;
  for (const auto& [key, field] : {std::pair{"PodName", &args.pod_name},
                                   {"PodNamespace", &args.pod_namespace},
                                   {"PodUID", &args.pod_uid},
                                   {"Node", &args.node}}) {
    absl::StatusOr<std::string> text = TextAt(*parsed, key, "ExtenderBindingArgs");
    if (!text.ok()) return text.status();
    *field = *std::move(text);
  }
  if (args.pod_uid.empty())
    return absl::InvalidArgumentError("ExtenderBindingArgs.PodUID: is missing; expected the pod's UID");
  if (args.node.empty())
    return absl::InvalidArgumentError("ExtenderBindingArgs.Node: is missing; expected a node's name");
  return args;
}

absl::StatusOr<PreemptionArgs> ParsePreemptionArgs(absl::string_view body,
                                                   const std::vector<std::string>& owner_kinds) {
  const absl::StatusOr<Json> parsed = ParseJson(body, "ExtenderPreemptionArgs");
  if (!parsed.ok()) return parsed.status();
  PreemptionArgs args;
  const Json& pod = AnyCase(*parsed, "Pod");
  absl::StatusOr<std::string> uid = TextAt(Child(pod, "metadata"), "uid", "ExtenderPreemptionArgs.Pod.metadata");
  if (!uid.ok()) return uid.status();
  args.pod_uid = *std::move(uid);
  PodDescription grouped;
  grouped.gang = MembershipOf(pod);
  GroupByOwner(pod, owner_kinds, &grouped);
  args.names_gang = grouped.gang.in_gang();
  const Json* map = &AnyCase(*parsed, "NodeNameToMetaVictims");
  if (!map->is_object()) map = &AnyCase(*parsed, "NodeNameToVictims");
  if (!map->is_object()) return args;
  if (map->size() > kMaxNames) {
    return absl::InvalidArgumentError(absl::StrCat("ExtenderPreemptionArgs: more than ", kMaxNames, " nodes"));
  }
  for (const auto& [node, victims] : map->items()) {
    PreemptCandidate candidate;
    candidate.node = node;
    const Json& pods = AnyCase(victims, "Pods");
    if (pods.is_array()) {
      for (const Json& each : pods) {
        std::string victim = StringOrEmpty(each, "UID");
        if (victim.empty()) victim = StringOrEmpty(AnyCase(each, "metadata"), "uid");
        if (victim.empty()) {
          const auto* text = AnyCase(each, "uid").get_ptr<const std::string*>();
          if (text != nullptr) victim = *text;
        }
        candidate.victim_uids.push_back(std::move(victim));
      }
    }
    args.candidates.push_back(std::move(candidate));
    const Json& violations = AnyCase(victims, "NumPDBViolations");
    args.pdb_violations.push_back(violations.is_number_integer() ? violations.get<int64_t>() : 0);
  }
  return args;
}

std::string FilterResultJson(const FilterReply& reply, const ExtenderArgs& args, absl::string_view body) {
  const bool passes = reply.kind == FilterReply::Kind::kPass;
  const bool echo = passes && reply.guarded.empty() && !args.node_names.empty();
  std::vector<absl::string_view> kept;
  absl::string_view refused;  // the first node
  if (reply.kind == FilterReply::Kind::kSingleNode) {
    kept.push_back(reply.node);
  } else if (!echo) {
    for (const absl::string_view name : args.offer->names()) {
      if (passes && !std::binary_search(reply.guarded.begin(), reply.guarded.end(), name)) {
        kept.push_back(name);
      } else if (refused.empty()) {
        refused = name;
      }
    }
  }
  std::string out;
  if (args.whole_nodes) {
    const absl::StatusOr<std::string> nodes = SelectedNodes(body, {kept.begin(), kept.end()});
    if (!nodes.ok()) return FilterErrorJson(nodes.status().message());
    out = absl::StrCat("{\"Nodes\":", *nodes, ",\"NodeNames\":null");
  } else if (echo) {
    out = absl::StrCat("{\"Nodes\":null,\"NodeNames\":", args.node_names);
  } else {
    out = "{\"Nodes\":null,\"NodeNames\":[";
    for (size_t i = 0; i < kept.size(); ++i) {
      if (i > 0) out.push_back(',');
      AppendQuoted(kept[i], &out);
    }
    out.push_back(']');
  }
  out.append(",\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{");
  if (!refused.empty()) {
    AppendQuoted(refused, &out);
    out.push_back(':');
    AppendQuoted(absl::StrCat(kRefusalPrefix, reply.reason.text), &out);
  }
  out.append("},\"Error\":\"\"}");
  return out;
}

std::string FilterErrorJson(absl::string_view message) {
  std::string out =
      "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},\"Error\":";
  AppendQuoted(absl::StrCat(kRefusalPrefix, message), &out);
  out.push_back('}');
  return out;
}

std::string PrioritiesJson(const ExtenderArgs& args) {
  std::string out = "[";
  for (const absl::string_view name : args.offer->names()) {
    if (out.size() > 1) out.push_back(',');
    out.append("{\"Host\":");
    AppendQuoted(name, &out);
    out.append(",\"Score\":0}");
  }
  out.push_back(']');
  return out;
}

std::string BindingResultJson(absl::string_view error) {
  std::string out = "{\"Error\":";
  AppendQuoted(error.empty() ? std::string() : absl::StrCat(kRefusalPrefix, error), &out);
  out.push_back('}');
  return out;
}

// Candidates are removed or returned unchanged: kube-scheduler chooses among them, fewest violations first (K-9).
std::string PreemptionResultJson(const PreemptReply& reply, const PreemptionArgs& args) {
  Json map = Json::object();
  const absl::flat_hash_set<absl::string_view> remain(reply.nodes.begin(), reply.nodes.end());
  for (size_t i = 0; i < args.candidates.size(); ++i) {
    const PreemptCandidate& candidate = args.candidates[i];
    if (!remain.contains(candidate.node)) continue;
    Json pods = Json::array();
    for (const std::string& uid : candidate.victim_uids) pods.push_back({{"UID", uid}});
    map[candidate.node] = {{"Pods", pods}, {"NumPDBViolations", args.pdb_violations[i]}};
  }
  return Json{{"NodeNameToMetaVictims", map}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace muster
