#include "tests/scenario/runner.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/keys.h"

namespace muster {
namespace {

class NamedOffer : public NodeOffer {
 public:
  explicit NamedOffer(std::vector<std::string> names) : names_(names.begin(), names.end()) {}
  bool Contains(absl::string_view node) const override { return names_.count(std::string(node)) > 0; }
  size_t size() const override { return names_.size(); }

 private:
  std::set<std::string> names_;
};

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

std::string Why(const Reason& reason) {
  return reason.none() ? "" : absl::StrCat(" (", ReasonName(reason.code), ": ", reason.text, ")");
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) absl::StrAppend(&out, line, "\n");
  return out;
}

}  // namespace

ScenarioRunner::ScenarioRunner() : machine_(MachineSettings()) {
  Outcome outcome;
  machine_.Apply(FactsRead{}, now_ms_, &outcome);
}

std::string ScenarioRunner::Run(const std::string& line) {
  Words words;
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) words.emplace_back(word);
  const std::string& verb = words[0];
  const std::string arg = words.size() > 1 ? words[1] : "";
  if (verb == "node") return Node(words);
  if (verb == "remove-node") return Apply(RemoveNode{arg});
  if (verb == "podgroup") return PodGroup(words);
  if (verb == "remove-podgroup") return Apply(RemoveGangObject{GangDialect::kPodGroupSigs, "default", arg});
  if (verb == "pod") return Pod(words);
  if (verb == "remove-pod") return Apply(RemovePod{UidOf(arg)});
  if (verb == "prefilter") return Apply(PreFilter{UidOf(arg)});
  if (verb == "filter") {
    std::vector<std::string> names(words.begin() + 2, words.end());
    if (names.empty()) {
      for (NodeId id = 0; id < machine_.cluster().node_limit(); ++id)
        names.push_back(machine_.cluster().node(id).facts.name);
    }
    return Apply(Filter{UidOf(arg), std::make_shared<NamedOffer>(names)});
  }
  if (verb == "permit" || verb == "bind") {
    const HoldToken token = next_token_++;
    tokens_[token] = arg;
    last_token_[arg] = token;
    if (verb == "bind") return Apply(Bind{UidOf(arg), words.at(2), token});
    return Apply(Permit{UidOf(arg), words.at(2), token});
  }
  if (verb == "bound") {
    const struct Pod* pod = machine_.FindPod(UidOf(arg));
    return Apply(BindingOutcome{UidOf(arg), pod->binding.node, BindingResult::kBound, ""});
  }
  if (verb == "bind-fails") {
    const struct Pod* pod = machine_.FindPod(UidOf(arg));
    return Apply(BindingOutcome{UidOf(arg), pod->binding.node, BindingResult::kRefused,
                                absl::StrJoin(words.begin() + 2, words.end(), " ")});
  }
  if (verb == "preempt") {
    Preempt preempt{UidOf(arg), {}};
    for (size_t i = 2; i < words.size(); ++i) {
      const auto [node, victims] = Split(words[i]);
      PreemptCandidate& candidate = preempt.candidates.emplace_back();
      candidate.node = node;
      for (const absl::string_view victim : absl::StrSplit(victims, ',', absl::SkipEmpty())) {
        candidate.victim_uids.push_back(UidOf(std::string(victim)));
      }
    }
    return Apply(preempt);
  }
  if (verb == "postfilter") return Apply(PostFilter{UidOf(arg), absl::StrJoin(words.begin() + 2, words.end(), " ")});
  if (verb == "unreserve") {
    const UnreserveCause cause = words.at(2) == "timeout"     ? UnreserveCause::kPermitTimeout
                                 : words.at(2) == "bind-fail" ? UnreserveCause::kBindFailed
                                                              : UnreserveCause::kRejected;
    return Apply(Unreserve{UidOf(arg), cause});
  }
  if (verb == "postbind") return Apply(PostBind{UidOf(arg), words.at(2)});
  if (verb == "hang-up") return Apply(EndHold{UidOf(arg), last_token_[arg]});
  if (verb == "wait") return Wait(words);
  if (verb == "gang") return ShowGang(arg, false);
  if (verb == "explain") return ShowGang(arg, true);
  if (verb == "usage") return Usage();
  return absl::StrCat("unknown command: ", verb, "\n");
}

std::string ScenarioRunner::Apply(const Command& command) {
  Outcome outcome;
  machine_.Apply(command, now_ms_, &outcome);
  return Print(outcome) + Settle();
}

std::string ScenarioRunner::Settle() {
  std::string out;
  while (machine_.PlanningDue()) {
    Outcome outcome;
    machine_.Apply(PlanRound{}, now_ms_, &outcome);
    out += Print(outcome);
  }
  if (const absl::Status ok = machine_.CheckInvariants(); !ok.ok())
    absl::StrAppend(&out, "INVARIANT: ", ok.message(), "\n");
  return out;
}

std::string ScenarioRunner::Print(const Outcome& outcome) {
  std::vector<std::string> lines;
  if (!outcome.status.ok()) lines.push_back(absl::StrCat("error: ", outcome.status.message()));
  if (const auto* reply = std::get_if<FilterReply>(&outcome.reply)) {
    switch (reply->kind) {
      case FilterReply::Kind::kOneNode:
        lines.push_back(absl::StrCat("filter: ", reply->node));
        break;
      case FilterReply::Kind::kRefuse:
        lines.push_back(absl::StrCat("filter: none", Why(reply->reason)));
        break;
      case FilterReply::Kind::kPass:
        lines.push_back(
            absl::StrCat("filter: all", reply->guarded.empty() ? "" : " but ", absl::StrJoin(reply->guarded, ",")));
    }
  }
  if (const auto* reply = std::get_if<PreFilterReply>(&outcome.reply)) {
    lines.push_back(reply->passes ? "prefilter: passes" : absl::StrCat("prefilter: rejected", Why(reply->reason)));
  }
  if (const auto* reply = std::get_if<PreemptReply>(&outcome.reply)) {
    lines.push_back(
        absl::StrCat("preempt: ", reply->nodes.empty() ? "no candidate" : absl::StrJoin(reply->nodes, ",")));
  }
  if (const auto* reply = std::get_if<PermitReply>(&outcome.reply)) {
    switch (reply->kind) {
      case PermitReply::Kind::kPermit:
        lines.push_back("PERMIT");
        break;
      case PermitReply::Kind::kWait:
        lines.push_back(absl::StrCat("WAIT ", reply->wait_ms / 1000, "s", Why(reply->reason)));
        break;
      case PermitReply::Kind::kReject:
        lines.push_back(absl::StrCat("REJECT", Why(reply->reason)));
        break;
    }
  }
  for (const HoldAnswer& answer : outcome.answers) {
    lines.push_back(absl::StrCat("answer ", tokens_[answer.token], ": ", answer.permitted ? "permitted" : "refused",
                                 Why(answer.reason)));
  }
  for (const Effect& effect : outcome.effects) {
    if (const auto* bind = std::get_if<BindPod>(&effect))
      lines.push_back(absl::StrCat("effect: bind ", bind->pod.name, " to ", bind->node));
    if (const auto* call = std::get_if<CallPod>(&effect)) {
      lines.push_back(absl::StrCat("effect: call ", call->pod.name, call->remove_gate ? " by removing its gate" : ""));
    }
    if (const auto* mark = std::get_if<MarkTimedOut>(&effect))
      lines.push_back(absl::StrCat("effect: mark ", mark->pod.name, " timed out"));
    if (const auto* evict = std::get_if<EvictPod>(&effect))
      lines.push_back(absl::StrCat("effect: evict ", evict->pod.name, ": ", evict->note));
    if (const auto* tell = std::get_if<TellPod>(&effect))
      lines.push_back(absl::StrCat("effect: event on ", tell->pod.name, Why(tell->reason)));
  }
  return Lines(lines);
}

std::string ScenarioRunner::Node(const Words& words) {
  NodeDescription node;
  Json allocatable = {{"pods", "110"}, {"cpu", "1000"}, {"memory", "1000Gi"}};
  Json object = {{"metadata", {{"name", words[1]}}}, {"spec", {{"taints", Json::array()}}}};
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
  absl::StatusOr<NodeDescription> parsed = ParseNode(object);
  if (!parsed.ok()) return absl::StrCat("error: ", parsed.status().message(), "\n");
  return Apply(UpsertNode{*parsed});
}

std::string ScenarioRunner::PodGroup(const Words& words) {
  Json object = {{"metadata", {{"name", words[1]}, {"namespace", "default"}, {"creationTimestamp", TimeText(now_ms_)}}},
                 {"spec", Json::object()}};
  GangDialect dialect = GangDialect::kPodGroupSigs;
  for (size_t i = 2; i < words.size(); ++i) {
    const auto [key, value] = Split(words[i]);
    if (key == "ns") object["metadata"]["namespace"] = value;
    if (words[i] == "x") dialect = GangDialect::kPodGroupX;
    if (key == "min") object["spec"]["minMember"] = std::stoi(value);
    if (key == "timeout") object["spec"]["scheduleTimeoutSeconds"] = std::stoi(value);
    if (absl::StartsWith(key, "res:")) object["spec"]["minResources"][Prefixed("res:", key)] = value;
    if (absl::StartsWith(key, "@")) {
      object["metadata"]["annotations"]["gang.scheduling.koordinator.sh/" + Prefixed("@", key)] = value;
    }
    if (absl::StartsWith(key, "ann:")) object["metadata"]["annotations"][Prefixed("ann:", key)] = value;
  }
  absl::StatusOr<GangObject> parsed = ParsePodGroup(object, dialect);
  if (!parsed.ok()) return absl::StrCat("error: ", parsed.status().message(), "\n");
  return Apply(UpsertGangObject{*parsed});
}

std::string ScenarioRunner::Pod(const Words& words) {
  const std::string& name = words[1];
  Json requests = Json::object();
  Json object = pods_.count(name) > 0 ? pods_[name]
                                      : Json{{"metadata",
                                              {{"name", name},
                                               {"namespace", "default"},
                                               {"uid", UidOf(name)},
                                               {"creationTimestamp", TimeText(now_ms_)}}},
                                             {"spec", Json::object()}};
  Json& meta = object["metadata"];
  Json& spec = object["spec"];
  for (size_t i = 2; i < words.size(); ++i) {
    const auto [key, value] = Split(words[i]);
    if (IsResource(key)) requests[ResourceName(key)] = value;
    if (key == "ns") meta["namespace"] = value;
    if (key == "gang") meta["labels"]["pod-group.scheduling.sigs.k8s.io"] = value;
    if (key == "priority") spec["priority"] = std::stoi(value);
    if (key == "node") spec["nodeName"] = value;
    if (key == "nominated") object["status"]["nominatedNodeName"] = value;
    if (key == "phase") object["status"]["phase"] = value;
    if (key == "scheduler") spec["schedulerName"] = value;
    if (words[i] == "gate") spec["schedulingGates"].push_back({{"name", keys::kGate}});
    if (words[i] == "other-gate") spec["schedulingGates"].push_back({{"name", "example.com/quota"}});
    if (words[i] == "no-gates") spec.erase("schedulingGates");
    if (words[i] == "deleting") meta["deletionTimestamp"] = TimeText(now_ms_);
    if (key == "created") meta["creationTimestamp"] = TimeText(now_ms_ + 1000 * std::stoi(value));
    if (absl::StartsWith(key, "@")) meta["annotations"]["gang.scheduling.koordinator.sh/" + Prefixed("@", key)] = value;
    if (absl::StartsWith(key, "ann:")) meta["annotations"][Prefixed("ann:", key)] = value;
    if (absl::StartsWith(key, "label:")) meta["labels"][Prefixed("label:", key)] = value;
    if (absl::StartsWith(key, "sel:")) spec["nodeSelector"][Prefixed("sel:", key)] = value;
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
      object["status"]["conditions"] = {
          {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}, {"message", value}}};
    }
  }
  if (!requests.empty()) spec["containers"] = {{{"name", "main"}, {"resources", {{"requests", requests}}}}};
  pods_[name] = object;
  absl::StatusOr<PodDescription> parsed = ParsePod(object);
  if (!parsed.ok()) return absl::StrCat("error: ", parsed.status().message(), "\n");
  return Apply(UpsertPod{*parsed});
}

std::string ScenarioRunner::Wait(const Words& words) {
  absl::Duration duration;
  if (!absl::ParseDuration(words.at(1), &duration)) return "error: not a duration\n";
  const int64_t end = now_ms_ + absl::ToInt64Milliseconds(duration);
  std::string out;
  while (machine_.NextDeadline() <= end) {
    now_ms_ = std::max(now_ms_, machine_.NextDeadline());
    out += Apply(Tick{});
  }
  now_ms_ = end;
  return out + Apply(Tick{});
}

std::string ScenarioRunner::ShowGang(const std::string& name, bool explain) {
  const Gang* gang = machine_.FindGang(absl::StrContains(name, '/') ? name : "default/" + name);
  if (gang == nullptr) return absl::StrCat("no gang ", name, "\n");
  const GangView view = machine_.ViewGang(*gang, true);
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat(name, ": ", ToString(view.phase), ", children ", view.children, ", waiting ",
                               view.waiting, ", bound ", view.bound + view.committed, Why(view.reason)));
  if (explain) {
    lines.push_back(absl::StrCat("  rules: min ", view.rules.min_member, ", total ", view.rules.total_number, ", wait ",
                                 view.rules.wait_time_ms / 1000, "s, ", ToString(view.rules.mode), ", ",
                                 ToString(view.rules.match_policy), ", on timeout ", ToString(view.rules.on_timeout)));
    for (const std::string& warning : view.warnings) lines.push_back("  warning: " + warning);
  }
  return Lines(lines);
}

std::string ScenarioRunner::Usage() {
  std::vector<std::string> lines;
  for (NodeId id = 0; id < machine_.cluster().node_limit(); ++id) {
    const NodeView view = machine_.ViewNode(id);
    lines.push_back(absl::StrCat(view.name, ": used {", FormatResources(view.used), "} reserved {",
                                 FormatResources(view.reserved), "}"));
  }
  std::sort(lines.begin(), lines.end());
  return Lines(lines);
}

}  // namespace muster
