#include "k8s-extender/webhook/extender_json.h"

#include <algorithm>
#include <initializer_list>
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
constexpr int kMaxDepth = 200;

// Follows the path through the document and extracts the needed values.
class ArgsReader : public nlohmann::json_sax<Json> {
 public:
  explicit ArgsReader(ExtenderArgs* out) : out_(out) {}

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool string(string_t& text) override {
    // Copied: the parser reuses its buffer.
    if (At({Key::kNodeNames, Key::kElement}) ||
        At({Key::kNodes, Key::kItems, Key::kElement, Key::kMetadata, Key::kName})) {
      if (out_->node_names.size() >= kMaxNames) return Fail(absl::StrCat("more than ", kMaxNames, " node names"));
      out_->node_names.push_back(text);
    } else if (At({Key::kPod, Key::kMetadata, Key::kUid})) {
      out_->pod_uid = text;
    } else if (At({Key::kPod, Key::kMetadata, Key::kName})) {
      out_->pod_name = text;
    } else if (At({Key::kPod, Key::kMetadata, Key::kNamespace})) {
      out_->pod_namespace = text;
    }
    return Value();
  }
  bool start_object(std::size_t) override { return Open(false); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override {
    if (At({Key::kNodes, Key::kItems})) out_->whole_nodes = true;
    return Open(true);
  }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    // Only the first levels matter; deeper names are not examined.
    path_.back() = path_.size() <= 5 ? KeyOf(name) : Key::kOther;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("not JSON at byte ", position));
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  enum class Key : uint8_t {
    kOther,
    kElement,  // of an array
    kPod,
    kMetadata,
    kUid,
    kName,
    kNamespace,
    kNodeNames,
    kNodes,
    kItems,
  };
  static Key KeyOf(absl::string_view name) {
    static constexpr std::pair<absl::string_view, Key> kKeys[] = {
        {"pod", Key::kPod},     {"metadata", Key::kMetadata},   {"uid", Key::kUid},
        {"name", Key::kName},   {"namespace", Key::kNamespace}, {"nodenames", Key::kNodeNames},
        {"nodes", Key::kNodes}, {"items", Key::kItems}};
    for (const auto& [text, key] : kKeys) {
      if (absl::EqualsIgnoreCase(name, text)) return key;
    }
    return Key::kOther;
  }
  bool Value() { return path_.empty() ? Fail("expected an object") : true; }
  bool Open(bool array) {
    if (path_.empty() && array) return Fail("is an array; expected an object");
    if (path_.size() >= kMaxDepth) return Fail(absl::StrCat("nested deeper than ", kMaxDepth));
    path_.push_back(array ? Key::kElement : Key::kOther);
    return true;
  }
  bool Close() {
    path_.pop_back();
    return true;
  }
  bool At(std::initializer_list<Key> path) const {
    return path_.size() == path.size() && std::equal(path.begin(), path.end(), path_.begin());
  }
  bool Fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }

  ExtenderArgs* out_;
  std::vector<Key> path_;  // from the root
  std::string error_;
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

// Writes {"name":"text",...} for every name; the text is escaped once.
void AppendReasons(const std::vector<std::string>& names, absl::string_view text, std::string* out) {
  std::string quoted;
  AppendQuoted(text, &quoted);
  out->push_back('{');
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendQuoted(names[i], out);
    out->push_back(':');
    out->append(quoted);
  }
  out->push_back('}');
}

// The Nodes of the request that are in `kept`.
std::string SelectedNodes(absl::string_view body, const absl::flat_hash_set<std::string>& kept) {
  absl::StatusOr<Json> parsed = ParseJson(body, "ExtenderArgs");
  if (!parsed.ok()) return "null";
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
  ArgsReader reader(&args);
  if (!Json::sax_parse(body.begin(), body.end(), &reader)) {
    return absl::InvalidArgumentError(absl::StrCat("ExtenderArgs: ", reader.error()));
  }
  if (args.pod_uid.empty()) {
    return absl::InvalidArgumentError(
        "ExtenderArgs.Pod.metadata.uid: is missing; expected the UID of the pod to place");
  }
  return args;
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

std::string FilterResultJson(const FilterReply& reply, const NodeOffer& offer, bool whole_nodes,
                             absl::string_view body) {
  static const std::vector<std::string> kNone;
  std::vector<std::string> some_kept;
  std::vector<std::string> some_refused;
  const std::vector<std::string>* kept = &kNone;
  const std::vector<std::string>* refused = &kNone;
  switch (reply.kind) {
    case FilterReply::Kind::kSingleNode:
      some_kept.push_back(reply.node);
      kept = &some_kept;
      break;
    case FilterReply::Kind::kRefuse:
      refused = &offer.names();
      break;
    case FilterReply::Kind::kPass:
      kept = &offer.names();
      if (reply.guarded.empty()) break;
      for (const std::string& name : offer.names()) {
        const bool guarded = std::binary_search(reply.guarded.begin(), reply.guarded.end(), name);
        (guarded ? some_refused : some_kept).push_back(name);
      }
      kept = &some_kept;
      refused = &some_refused;
  }
  std::string out;
  out.reserve(128 + refused->size() * (reply.reason.text.size() + 48) + kept->size() * 24);
  if (whole_nodes) {
    absl::StrAppend(&out, "{\"Nodes\":", SelectedNodes(body, {kept->begin(), kept->end()}), ",\"NodeNames\":null");
  } else {
    out.append("{\"Nodes\":null,\"NodeNames\":[");
    for (size_t i = 0; i < kept->size(); ++i) {
      if (i > 0) out.push_back(',');
      AppendQuoted((*kept)[i], &out);
    }
    out.push_back(']');
  }
  out.append(",\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":");
  AppendReasons(*refused, absl::StrCat(kRefusalPrefix, reply.reason.text), &out);
  out.append(",\"Error\":\"\"}");
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
  for (size_t i = 0; i < args.node_names.size(); ++i) {
    if (i > 0) out.push_back(',');
    out.append("{\"Host\":");
    AppendQuoted(args.node_names[i], &out);
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
