#include "tests/scenario/language.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "k8s-extender/dialects/keys.h"

namespace muster {
namespace {

constexpr absl::string_view kJoin = " | ";  // between the lines of a short output

// "a=b" -> {a, b}; "a" -> {a, ""}.
std::pair<std::string, std::string> Split(const std::string& word) {
  const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
  return {parts[0], parts.size() > 1 ? parts[1] : ""};
}

std::string Prefixed(absl::string_view prefix, const std::string& word) { return word.substr(prefix.size()); }

std::string ResourceName(const std::string& word) { return word == "gpu" ? "nvidia.com/gpu" : word; }

bool IsResource(const std::string& word) {
  return word == "cpu" || word == "memory" || word == "gpu" || word == "pods" || absl::StrContains(word, ".com/");
}

std::string TimeText(int64_t ms) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(ms), absl::UTCTimeZone());
}

// "workers:min=2:parent=decode:required=rack" -> an entry of KAI's spec.subGroups.
Json SubgroupJson(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  Json out = {{"name", parts[0]}};
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto [key, value] = Split(parts[i]);
    if (key == "min") out["minMember"] = std::stoi(value);
    if (key == "groups") out["minSubGroup"] = std::stoi(value);
    if (key == "parent") out["parent"] = value;
    if (key == "required") out["topologyConstraint"]["requiredTopologyLevel"] = value;
    if (key == "preferred") out["topologyConstraint"]["preferredTopologyLevel"] = value;
    const std::pair<std::string, std::string> pair = absl::StrSplit(value, absl::MaxSplits('/', 1));
    if (key == "asks") out["minResource"][pair.first] = pair.second;
    if (key == "sel") out["nodeSelector"][pair.first] = pair.second;
  }
  return out;
}

// "app=web@zone" -> an entry of a pod's required affinity or anti-affinity. "app" alone matches the label key;
// "app=web@zone@team=x" also matches namespaces with that label.
Json TermJson(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '@');
  const auto [key, value] = Split(parts[0]);
  Json out = {{"topologyKey", parts.size() > 1 ? parts[1] : "kubernetes.io/hostname"}};
  if (value.empty()) {
    out["labelSelector"]["matchExpressions"] = {{{"key", key}, {"operator", "Exists"}}};
  } else {
    out["labelSelector"]["matchLabels"][key] = value;
  }
  if (parts.size() > 2) {
    const auto [label, wanted] = Split(parts[2]);
    out["namespaceSelector"]["matchLabels"][label] = wanted;
  }
  return out;
}

}  // namespace

std::string ScenarioLanguage::Run(const std::string& line) {
  Words words;
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) words.emplace_back(word);
  const std::string& verb = words[0];
  const std::string arg = words.size() > 1 ? words[1] : "";
  if (verb == "schedule" || verb == "run") {
    std::string out = Run("filter " + arg);
    out += Run(absl::StrCat("bind ", arg, " ", words.at(2)));
    if (verb == "run") out += Run("bound " + arg);
    return out;
  }
  if (const size_t dots = arg.find(".."); dots != std::string::npos) {  // "a-2..4"
    const size_t first = arg.find_last_not_of("0123456789", dots - 1) + 1;
    std::string out;
    for (int number = std::stoi(arg.substr(first)); number <= std::stoi(arg.substr(dots + 2)); ++number) {
      words[1] = absl::StrCat(arg.substr(0, first), number);
      out += Run(absl::StrJoin(words, " "));
    }
    return out;
  }
  const std::string rest = words.size() > 2 ? absl::StrJoin(words.begin() + 2, words.end(), " ") : "";
  if (verb == "node") return Node(words);
  if (verb == "remove-node") return target_->Remove({{"kind", "Node"}, {"metadata", {{"name", arg}}}});
  if (verb == "podgroup") {
    declared_[arg] = words;
    return PodGroup(words);
  }
  if (verb == "remove-podgroup") {
    declared_.erase(arg);
    return target_->Remove({{"kind", "PodGroup"},
                            {"apiVersion", "scheduling.sigs.k8s.io/v1alpha1"},
                            {"metadata", {{"name", arg}, {"namespace", "default"}}}});
  }
  if (verb == "pod") {
    const std::string declared = DeclareGang(words);
    return declared + Pod(words);
  }
  if (verb == "remove-pod") {
    return target_->Remove({{"kind", "Pod"}, {"metadata", {{"name", arg}, {"uid", UidOf(arg)}}}});
  }
  if (verb == "prefilter") return target_->PreFilter(UidOf(arg));
  if (verb == "filter") return target_->Filter(UidOf(arg), Words(words.begin() + 2, words.end()));
  if (verb == "permit") return target_->Permit(UidOf(arg), rest);
  if (verb == "postfilter") return target_->PostFilter(UidOf(arg), rest);
  if (verb == "unreserve") return target_->Unreserve(UidOf(arg), rest);
  if (verb == "postbind") return target_->PostBind(UidOf(arg), rest);
  if (verb == "hang-up") return target_->HangUp(UidOf(arg));
  if (verb == "wait") {
    absl::Duration duration;
    return absl::ParseDuration(arg, &duration) ? target_->Wait(duration) : "error: not a duration\n";
  }
  if (verb == "gang" || verb == "explain") {
    std::string out;
    for (auto name = words.begin() + 1; name != words.end(); ++name) {
      out += target_->ShowGang(absl::StrContains(*name, '/') ? *name : "default/" + *name, *name, verb == "explain");
    }
    return out;
  }
  if (verb == "usage") {
    std::string out;
    for (const absl::string_view node : absl::StrSplit(target_->Usage(), '\n', absl::SkipEmpty())) {
      if (arg.empty() || absl::StartsWith(node, arg + ":")) absl::StrAppend(&out, node, "\n");
    }
    return out;
  }
  return target_->Other(words);
}

std::string ScenarioLanguage::Node(const Words& words) {
  Json allocatable = {{"pods", "110"}, {"cpu", "1000"}, {"memory", "1000Gi"}};
  Json object = {{"kind", "Node"}, {"metadata", {{"name", words[1]}}}, {"spec", {{"taints", Json::array()}}}};
  for (size_t i = 2; i < words.size(); ++i) {
    const auto [key, value] = Split(words[i]);
    if (IsResource(key)) allocatable[ResourceName(key)] = value;
    if (words[i] == "cordoned") object["spec"]["unschedulable"] = true;
    if (absl::StartsWith(key, "label:")) object["metadata"]["labels"][Prefixed("label:", key)] = value;
    if (absl::StartsWith(key, "taint:")) {
      const std::vector<std::string> parts = absl::StrSplit(value, ':');
      object["spec"]["taints"].push_back(
          {{"key", Prefixed("taint:", key)}, {"value", parts[0]}, {"effect", parts.at(1)}});
    }
  }
  object["status"]["allocatable"] = allocatable;
  return target_->Announce(object);
}

std::string ScenarioLanguage::PodGroup(const Words& words) {
  Json object = {
      {"kind", "PodGroup"},
      {"apiVersion", "scheduling.sigs.k8s.io/v1alpha1"},
      {"metadata", {{"name", words[1]}, {"namespace", "default"}, {"creationTimestamp", TimeText(target_->NowMs())}}},
      {"spec", Json::object()}};
  for (size_t i = 2; i < words.size(); ++i) {
    const auto [key, value] = Split(words[i]);
    if (key == "ns") object["metadata"]["namespace"] = value;
    if (words[i] == "x") object["apiVersion"] = "scheduling.x-k8s.io/v1alpha1";
    if (words[i] == "kai") object["apiVersion"] = "scheduling.run.ai/v2alpha2";
    if (key == "subgroup") object["spec"]["subGroups"].push_back(SubgroupJson(value));
    if (key == "required") object["metadata"]["annotations"][keys::kRequiredTopology] = value;
    if (key == "preferred") object["metadata"]["annotations"][keys::kPreferredTopology] = value;
    if (key == "spread") object["metadata"]["annotations"][keys::kSpreadTopology] = value;
    if (key == "min") object["spec"]["minMember"] = std::stoi(value);
    if (key == "timeout") object["spec"]["scheduleTimeoutSeconds"] = std::stoi(value);
    if (absl::StartsWith(key, "res:")) object["spec"]["minResources"][Prefixed("res:", key)] = value;
    if (absl::StartsWith(key, "@")) {
      object["metadata"]["annotations"]["gang.scheduling.koordinator.sh/" + Prefixed("@", key)] = value;
    }
    if (absl::StartsWith(key, "ann:")) object["metadata"]["annotations"][Prefixed("ann:", key)] = value;
  }
  return target_->Announce(object);
}

std::string ScenarioLanguage::DeclareGang(const Words& pod) {
  Words group = {"podgroup", ""};
  for (const std::string& word : pod) {
    if (absl::StartsWith(word, "gang=")) group[1] = Prefixed("gang=", word);
    if (absl::StartsWith(word, "min=")) group.push_back(word);
    if (absl::StartsWith(word, "queue=")) group.push_back("ann:muster.dev/" + word);
  }
  if (group.size() == 2) return "";
  const auto [known, fresh] = declared_.emplace(group[1], group);
  if (fresh) return PodGroup(group);
  return known->second == group ? "" : "error: gang " + group[1] + " is declared with other words already";
}

std::string ScenarioLanguage::Pod(const Words& words) {
  const std::string& name = words[1];
  Json requests = Json::object();
  Json ports = Json::array();
  Json object = pods_.count(name) > 0 ? pods_[name]
                                      : Json{{"kind", "Pod"},
                                             {"metadata",
                                              {{"name", name},
                                               {"namespace", "default"},
                                               {"uid", UidOf(name)},
                                               {"creationTimestamp", TimeText(target_->NowMs())}}},
                                             {"spec", Json::object()}};
  Json& meta = object["metadata"];
  Json& spec = object["spec"];
  for (size_t i = 2; i < words.size(); ++i) {
    const auto [key, value] = Split(words[i]);
    if (IsResource(key)) requests[ResourceName(key)] = value;
    if (key == "ns") meta["namespace"] = value;
    if (key == "gang") meta["labels"]["pod-group.scheduling.sigs.k8s.io"] = value;
    if (key == "kai") meta["annotations"][keys::kKaiPodGroup] = value;
    if (key == "subgroup") meta["labels"][keys::kKaiSubgroup] = value;
    if (key == "priority") spec["priority"] = std::stoi(value);
    if (key == "node") spec["nodeName"] = value;
    if (key == "nominated") object["status"]["nominatedNodeName"] = value;
    if (key == "phase") object["status"]["phase"] = value;
    if (key == "scheduler") spec["schedulerName"] = value;
    if (words[i] == "gate") spec["schedulingGates"].push_back({{"name", keys::kGate}});
    if (words[i] == "other-gate") spec["schedulingGates"].push_back({{"name", "example.com/quota"}});
    if (words[i] == "no-gates") spec.erase("schedulingGates");
    if (words[i] == "deleting") meta["deletionTimestamp"] = TimeText(target_->NowMs());
    if (words[i] == "not-deleting") meta.erase("deletionTimestamp");
    if (key == "created") meta["creationTimestamp"] = TimeText(target_->NowMs() + 1000 * std::stoi(value));
    if (absl::StartsWith(key, "@")) meta["annotations"]["gang.scheduling.koordinator.sh/" + Prefixed("@", key)] = value;
    if (absl::StartsWith(key, "ann:")) meta["annotations"][Prefixed("ann:", key)] = value;
    if (absl::StartsWith(key, "label:")) meta["labels"][Prefixed("label:", key)] = value;
    if (absl::StartsWith(key, "sel:")) spec["nodeSelector"][Prefixed("sel:", key)] = value;
    if (key == "rather") {  // rather=K=V:WEIGHT, a preferred node label
      const std::vector<std::string> parts = absl::StrSplit(value, ':');
      const auto [label, wanted] = Split(parts[0]);
      spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"].push_back(
          {{"weight", std::stoi(parts.at(1))},
           {"preference", {{"matchExpressions", {{{"key", label}, {"operator", "In"}, {"values", {wanted}}}}}}}});
    }
    if (key == "rather-near" || key == "rather-apart") {  // rather-near=K=V@LABEL:WEIGHT
      const std::vector<std::string> parts = absl::StrSplit(value, ':');
      Json& terms = spec["affinity"][key == "rather-near" ? "podAffinity" : "podAntiAffinity"];
      terms["preferredDuringSchedulingIgnoredDuringExecution"].push_back(
          {{"weight", std::stoi(parts.at(1))}, {"podAffinityTerm", TermJson(parts[0])}});
    }
    if (key == "near" || key == "apart") {
      Json& terms = spec["affinity"][key == "near" ? "podAffinity" : "podAntiAffinity"];
      terms["requiredDuringSchedulingIgnoredDuringExecution"].push_back(TermJson(value));
    }
    if (key == "even") {  // even=app=web@zone:2:ignore-affinity:honor-taints, at most two more than anywhere
      const std::vector<std::string> parts = absl::StrSplit(value, ':');
      Json constraint = TermJson(parts[0]);
      constraint["whenUnsatisfiable"] = "DoNotSchedule";
      constraint["maxSkew"] = parts.size() > 1 ? std::stoi(parts[1]) : 1;
      if (absl::c_linear_search(parts, "ignore-affinity")) constraint["nodeAffinityPolicy"] = "Ignore";
      if (absl::c_linear_search(parts, "honor-taints")) constraint["nodeTaintsPolicy"] = "Honor";
      spec["topologySpreadConstraints"].push_back(constraint);
    }
    if (key == "port") ports.push_back({{"hostPort", std::stoi(value)}});
    if (absl::StartsWith(key, "tolerate:")) {
      const std::vector<std::string> parts = absl::StrSplit(value, ':');
      spec["tolerations"].push_back(
          {{"key", Prefixed("tolerate:", key)}, {"value", parts[0]}, {"effect", parts.at(1)}});
    }
    if (absl::StartsWith(key, "in:")) {
      spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = {
          {{"matchExpressions", {{{"key", Prefixed("in:", key)}, {"operator", "In"}, {"values", {value}}}}}}};
    }
    if (key == "stuck") {
      object["status"]["conditions"] = {{{"type", "PodScheduled"},
                                         {"status", "False"},
                                         {"reason", "Unschedulable"},
                                         {"message", absl::StrReplaceAll(value, {{"_", " "}})}}};
    }
  }
  if (!requests.empty()) spec["containers"] = {{{"name", "main"}, {"resources", {{"requests", requests}}}}};
  if (!ports.empty()) spec["containers"][0]["ports"] = ports;
  pods_[name] = object;
  return target_->Announce(object);
}

std::string FoldLines(const std::string& text) {
  static const std::regex kNumbered("(.*?[a-z]-)([0-9]+)(.*)");
  constexpr size_t kWidth = 120;
  if (text.empty()) return "";
  std::vector<std::string> out;
  std::smatch first;  // of the lines that are folded
  int next = 0;       // the number that continues them
  const auto end = [&] {
    if (first.empty()) return;
    const std::string more = next > std::stoi(first[2]) + 1 ? absl::StrCat("..", next - 1) : "";
    out.push_back(absl::StrCat(first[1].str(), first[2].str(), more, first[3].str()));
    first = {};
  };
  const std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  for (const std::string& line : lines) {
    std::smatch now;
    const bool numbered = std::regex_match(line, now, kNumbered);
    if (numbered && !first.empty() && now[1] == first[1] && now[3] == first[3] && std::stoi(now[2]) == next) {
      ++next;
      continue;
    }
    end();
    if (numbered) {
      first = now;
      next = std::stoi(now[2]) + 1;
    } else {
      out.push_back(line);
    }
  }
  end();
  const std::string joined = absl::StrJoin(out, kJoin);
  const bool has_details = absl::StrContains(joined, " |  ");
  return joined.size() <= kWidth && !has_details ? WriteLines({joined}) : WriteLines(out);
}

std::string UnfoldLine(const std::string& line) {
  static const std::regex kFolded("(.*?[a-z]-)([0-9]+)\\.\\.([0-9]+)(.*)");
  std::string out;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(line, kJoin))) {
    std::smatch found;
    if (!std::regex_match(part, found, kFolded)) {
      absl::StrAppend(&out, part, "\n");
      continue;
    }
    for (int number = std::stoi(found[2]); number <= std::stoi(found[3]); ++number) {
      absl::StrAppend(&out, found[1].str(), number, found[4].str(), "\n");
    }
  }
  return out;
}

std::vector<std::string> CommandsOf(const std::string& line) { return absl::StrSplit(line, "; "); }

std::vector<ScenarioBlock> ReadScenario(const std::string& path) {
  std::vector<ScenarioBlock> blocks(1);
  std::ifstream in(path);
  std::string line;
  bool in_output = false;
  while (std::getline(in, line)) {
    if (absl::StartsWith(line, "#")) continue;
    if (line.empty()) {
      if (in_output) blocks.emplace_back();
      in_output = false;
    } else if (line == "----") {
      in_output = true;
    } else if (in_output) {
      blocks.back().expected += UnfoldLine(line);
    } else {
      for (std::string& command : CommandsOf(line)) blocks.back().commands.push_back(std::move(command));
    }
  }
  return blocks;
}

std::vector<std::string> ScenarioFiles(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string NameOf(const std::string& uid) { return std::string(absl::StripPrefix(uid, "uid-")); }

std::string WriteWhy(absl::string_view code, absl::string_view text) {
  return code.empty() || code == "None" ? "" : absl::StrCat(" (", code, ": ", text, ")");
}

std::string WriteLines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) absl::StrAppend(&out, line, "\n");
  return out;
}

std::string WriteWait(int64_t left_ms, absl::string_view code, absl::string_view text,
                      const std::vector<std::string>& next_uids) {
  std::string out = absl::StrCat("WAIT ", left_ms / 1000, "s", WriteWhy(code, text));
  for (const std::string& uid : next_uids) absl::StrAppend(&out, &uid == &next_uids[0] ? ", next: " : " ", NameOf(uid));
  return out;
}

std::string WriteGang(const ShownGang& gang, bool explain) {
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat(gang.name, ": ", gang.phase, ", children ", gang.children, ", waiting ", gang.waiting,
                               ", bound ", gang.bound, WriteWhy(gang.code, gang.text)));
  if (explain) {
    lines.push_back(absl::StrCat("  rules: min ", gang.min_member, ", total ", gang.total_number, ", wait ",
                                 gang.wait_time_ms / 1000, "s, ", gang.mode, ", ", gang.match_policy, ", on timeout ",
                                 gang.on_timeout));
    for (const std::string& warning : gang.warnings) lines.push_back("  warning: " + warning);
  }
  return WriteLines(lines);
}

}  // namespace muster
