#include "tests/scenario/core_target.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "k8s-extender/dialects/dialects.h"
#include "tests/verify/invariants.h"

namespace muster {
namespace {

std::string Why(const Reason& reason) { return reason.none() ? "" : WriteWhy(ReasonName(reason.code), reason.text); }

std::string Error(const absl::Status& status) { return absl::StrCat("error: ", status.message(), "\n"); }

std::string Text(const Json& object, const char* key) { return StringOrEmpty(Child(object, "metadata"), key); }

std::string KeyOf(const Json& manifest) {
  const std::string kind = StringOrEmpty(manifest, "kind");
  if (kind == "Pod") return absl::StrCat(kind, "/", Text(manifest, "uid"));
  return absl::StrCat(kind, "/", StringOrEmpty(manifest, "apiVersion"), "/", Text(manifest, "namespace"), "/",
                      Text(manifest, "name"));
}

GangDialect DialectOf(const Json& manifest) {
  if (StringOrEmpty(manifest, "apiVersion") == "scheduling.run.ai/v2alpha2") return GangDialect::kKai;
  return StringOrEmpty(manifest, "apiVersion") == "scheduling.x-k8s.io/v1alpha1" ? GangDialect::kPodGroupX
                                                                                 : GangDialect::kPodGroupSigs;
}

}  // namespace

CoreTarget::CoreTarget() {
  Start();
  Apply(FactsRead{});
}

void CoreTarget::Start() {
  MachineSettings settings;
  settings.queues = queues_;
  machine_ = std::make_unique<Machine>(settings);
  std::vector<Record> records;
  for (const auto& [name, record] : records_) records.push_back(record);
  if (!machine_->Load(records).ok()) std::abort();
}

std::string CoreTarget::Announce(const Json& manifest) {
  const std::string kind = StringOrEmpty(manifest, "kind");
  facts_[KeyOf(manifest)] = manifest;
  if (machine_ == nullptr) return "";
  if (kind == "Node") {
    const auto node = ParseNode(manifest);
    return node.ok() ? Apply(UpsertNode{*node}) : Error(node.status());
  }
  if (kind == "PodGroup") {
    const auto group = ParsePodGroup(manifest, DialectOf(manifest));
    return group.ok() ? Apply(UpsertGangObject{*group}) : Error(group.status());
  }
  const auto pod = ParsePod(manifest);
  return pod.ok() ? Apply(UpsertPod{*pod}) : Error(pod.status());
}

std::string CoreTarget::Remove(const Json& manifest) {
  const std::string kind = StringOrEmpty(manifest, "kind");
  facts_.erase(KeyOf(manifest));
  if (machine_ == nullptr) return "";
  if (kind == "Node") return Apply(RemoveNode{Text(manifest, "name")});
  if (kind == "Pod") return Apply(RemovePod{Text(manifest, "uid")});
  return Apply(RemoveGangObject{DialectOf(manifest), Text(manifest, "namespace"), Text(manifest, "name")});
}

std::string CoreTarget::PreFilter(const std::string& uid) { return Apply(muster::PreFilter{uid}); }

std::string CoreTarget::Filter(const std::string& uid, const std::vector<std::string>& nodes) {
  std::vector<std::string> names = nodes;
  if (names.empty()) {
    for (NodeId id = 0; id < machine_->rooms().cluster.node_limit(); ++id) {
      names.push_back(machine_->rooms().cluster.node(id).facts.name);
    }
  }
  return Apply(muster::Filter{uid, std::make_shared<NodeOffer>(names)});
}

HoldToken CoreTarget::NewToken(const std::string& uid) {
  const HoldToken token = next_token_++;
  tokens_[token] = NameOf(uid);
  last_token_[uid] = token;
  return token;
}

std::string CoreTarget::Permit(const std::string& uid, const std::string& node) {
  return Apply(muster::Permit{uid, node, NewToken(uid)});
}

std::string CoreTarget::PostFilter(const std::string& uid, const std::string& text) {
  return Apply(muster::PostFilter{uid, text});
}

std::string CoreTarget::Unreserve(const std::string& uid, const std::string& cause) {
  return Apply(muster::Unreserve{uid, cause == "timeout"     ? UnreserveCause::kPermitTimeout
                                      : cause == "bind-fail" ? UnreserveCause::kBindFailed
                                                             : UnreserveCause::kRejected});
}

std::string CoreTarget::PostBind(const std::string& uid, const std::string& node) {
  return Apply(muster::PostBind{uid, node});
}

std::string CoreTarget::HangUp(const std::string& uid) { return Apply(CallerGone{uid, last_token_[uid]}); }

std::string CoreTarget::Other(const Words& words) {
  const std::string& verb = words[0];
  const std::string uid = words.size() > 1 ? UidOf(words[1]) : "";
  const std::string rest = words.size() > 2 ? absl::StrJoin(words.begin() + 2, words.end(), " ") : "";
  if (verb == "bind") return Apply(Bind{uid, rest, NewToken(uid)});
  if (verb == "bound" || verb == "bind-fails" || verb == "bind-retry") {
    const BindingResult result = verb == "bound"        ? BindingResult::kBound
                                 : verb == "bind-fails" ? BindingResult::kRefused
                                                        : BindingResult::kRetry;
    return Apply(BindingOutcome{uid, machine_->rooms().pod_lifecycle.BindingOf(*machine_->reader().FindPod(uid)).node,
                                result, rest});
  }
  if (verb == "preempt") {
    Preempt preempt{uid, {}};
    for (size_t i = 2; i < words.size(); ++i) {
      const std::pair<std::string, std::string> parts = absl::StrSplit(words[i], absl::MaxSplits('=', 1));
      PreemptCandidate& candidate = preempt.candidates.emplace_back();
      candidate.node = parts.first;
      for (const absl::string_view victim : absl::StrSplit(parts.second, ',', absl::SkipEmpty())) {
        candidate.victim_uids.push_back(UidOf(std::string(victim)));
      }
    }
    return Apply(preempt);
  }
  if (verb == "queue" || verb == "remove-queue" || verb == "unknown-queues" || verb == "head" || verb == "access")
    return DeclareQueues(words);
  if (verb == "queues") return ShowQueues();
  if (verb == "members") return ShowMembers("default/" + words.at(1));
  if (verb == "why") return ShowWhy(words.at(1));
  if (verb == "records") {
    std::vector<std::string> names;
    for (const auto& [name, record] : records_) {
      if (record.kind != "plans") names.push_back(name);  // cases do not depend on when plan numbers are written
    }
    return WriteLines(names);
  }
  if (verb == "stop" || verb == "restart") machine_ = nullptr;
  if (verb == "stop") return "";
  if (verb == "start" || verb == "restart") {
    Start();
    std::string out;
    for (const auto& [key, manifest] : std::map<std::string, Json>(facts_)) out += Announce(manifest);
    return verb == "start" ? out : out + Apply(FactsRead{});
  }
  if (verb == "read") return Apply(FactsRead{});
  if (verb == "due") {
    const int64_t next = machine_->NextDeadline();
    return absl::StrCat("due: ", next == kNever ? "never" : absl::FormatDuration(absl::Milliseconds(next - now_ms_)),
                        "\n");
  }
  if (verb == "namespace") {
    UpsertNamespace announced{words.at(1), {}};
    for (size_t i = 2; i < words.size(); ++i)
      announced.labels.insert(absl::StrSplit(words[i], absl::MaxSplits('=', 1)));
    return Apply(announced);
  }
  if (verb == "remove-namespace") return Apply(RemoveNamespace{words.at(1)});
  if (verb == "find") return Apply(FindNodes{uid, Words(words.begin() + 2, words.end())});
  asked_ = words.at(1);
  if (verb == "submit") return Submit(words);
  if (verb == "ask") return Apply(AskGang{asked_});
  if (verb == "look") return Apply(RefreshExplanation{absl::StrCat("default/", words[1])});
  if (verb == "abandon") return Apply(AbandonGang{asked_});
  if (verb == "confirm") {
    int64_t plan = last_plan_[asked_];
    if (!rest.empty() && !absl::SimpleAtoi(rest, &plan)) return "error: not a plan\n";
    return Apply(ConfirmGang{asked_, plan});
  }
  return absl::StrCat("unknown command: ", verb, "\n");
}

std::string CoreTarget::DeclareQueues(const Words& words) {
  QueueRules rules = queues_;
  const auto is_named = [&](const QueueSpec& queue) { return queue.name == words.at(1); };
  const auto known = std::find_if(rules.queues.begin(), rules.queues.end(), is_named);
  QueueSpec queue;
  queue.name = words[1];
  for (size_t i = 2; i < words.size(); ++i) {
    const std::pair<std::string, std::string> word = absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    const std::pair<std::string, std::string> what = absl::StrSplit(word.first, absl::MaxSplits(':', 1));
    const std::string resource = what.second == "gpu" ? "nvidia.com/gpu" : what.second;
    const Json one = {{resource, word.second}};
    if (what.first == "quota") queue.quota.merge(*ParseResourceMap(one, "quota"));
    if (what.first == "limit") queue.limit.merge(*ParseResourceMap(one, "limit"));
    if (what.first == "weight") queue.over_quota_weight[resource] = std::stoi(word.second);
    if (what.first == "parent") queue.parent = word.second;
    if (what.first == "priority") queue.priority = std::stoi(word.second);
    if (what.first == "max") queue.max_applications = std::stoi(word.second);
    if (what.first == "sort") queue.sort = *ParseQueueSort(word.second);
    if (what.first == "namespaces") queue.access.namespaces = absl::StrSplit(word.second, ',');
    if (what.first == "identities") queue.access.identities = absl::StrSplit(word.second, ',');
    if (what.first == "labels") {
      const std::pair<std::string, std::string> label = absl::StrSplit(word.second, absl::MaxSplits('=', 1));
      queue.access.namespace_selector.emplace().requirements = {{label.first, SelectorOperator::kIn, {label.second}}};
    }
  }
  if (words[0] == "head") {
    rules.head = *ParseHeadPolicy(words[1]);
    absl::Duration limit;
    rules.starvation_limit_ms =
        words.size() > 2 && absl::ParseDuration(words[2], &limit) ? absl::ToInt64Milliseconds(limit) : 0;
  } else if (words[0] == "access") {
    rules.access = *ParseAccessPolicy(words[1]);
  } else if (words[0] == "unknown-queues") {
    rules.unknown = *ParseUnknownQueue(words[1]);
  } else if (words[0] == "remove-queue") {
    rules.queues.erase(known);
  } else if (known != rules.queues.end()) {
    *known = std::move(queue);
  } else {
    rules.queues.push_back(std::move(queue));
  }
  std::string out = Apply(SetQueues{rules});
  if (machine_->reader().queues.tree().rules() == rules) queues_ = std::move(rules);
  return out;
}

std::string CoreTarget::ShowQueues() {
  std::string out;
  const QueueTree& tree = machine_->reader().queues.tree();
  const std::vector<Queues::Figures> standings = machine_->reader().queues.ComputeFigures();
  for (QueueId id = 0; id < tree.size(); ++id) {
    const Queues::Figures& standing = standings[static_cast<size_t>(id)];
    const auto only = [&](ResourceList list) {
      absl::erase_if(list, [&](const auto& each) { return !absl::c_linear_search(tree.resources(), each.first); });
      return list.empty() ? "-" : FormatResources(list);
    };
    absl::StrAppend(&out, "queue ", tree.at(id).spec.name, ": uses ", only(standing.used), ", waits for ",
                    only(standing.waiting), ", share ", only(standing.share), ", gangs ", standing.running_gangs, "\n");
  }
  return out;
}

std::string CoreTarget::Submit(const Words& words) {
  SubmitGang submit{asked_, "default", words.at(2), {}, {}, 0};
  submit.declaration.Mutable().on_timeout = OnTimeout::kRequeue;
  int pods = 0;
  Json requests = Json::object();
  for (size_t i = 3; i < words.size(); ++i) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    absl::Duration ttl;
    if (parts.first == "min") {
      submit.declaration.Mutable().min_member = std::stoi(parts.second);
    } else if (parts.first == "pods") {
      pods = std::stoi(parts.second);
    } else if (parts.first == "ttl" && absl::ParseDuration(parts.second, &ttl)) {
      submit.ttl_ms = absl::ToInt64Milliseconds(ttl);
    } else if (parts.first == "ns") {
      submit.name_space = parts.second;
    } else if (parts.first == "queue") {
      submit.declaration.Mutable().queue = parts.second;
    } else if (parts.first == "caller") {
      submit.declaration.Mutable().caller = parts.second;
    } else if (parts.first == "confirm") {
      submit.confirm = true;
    } else if (parts.first == "group") {
      submit.declaration.Mutable().groups = absl::StrSplit(parts.second, ',');
    } else {
      requests[parts.first] = parts.second;
    }
  }
  for (int i = 0; i < pods; ++i) {
    PodDescription& pod = submit.pods.emplace_back();
    pod.name = absl::StrCat(submit.name, "-", i);
    pod.uid = UidOf(pod.name);
    pod.shape.Mutable().requests = *ParseResourceMap(requests, "requests");
  }
  return Apply(submit);
}

std::string CoreTarget::Apply(const Command& command) {
  Outcome outcome;
  machine_->Apply(command, now_ms_, &outcome);
  std::string out = Print(outcome);
  out += Settle();
  return out;
}

std::string CoreTarget::Settle() {
  std::string out;
  constexpr int kMaxRounds = 1'000;
  int rounds = 0;
  for (; rounds < kMaxRounds && machine_->PlanningDue(); ++rounds) {
    Outcome outcome;
    machine_->Apply(PlanRound{}, now_ms_, &outcome);
    out += Print(outcome);
  }
  if (rounds == kMaxRounds) absl::StrAppend(&out, "INVARIANT: planning does not come to an end\n");
  if (const absl::Status ok = CheckInvariants(*machine_); !ok.ok())
    absl::StrAppend(&out, "INVARIANT: ", ok.message(), "\n");
  return out;
}

std::string CoreTarget::ShowMembers(const std::string& gang) {
  std::vector<std::string> lines;
  for (const MemberView& member : machine_->reader().gangs.View(*machine_->reader().FindGang(gang), true).members) {
    lines.push_back(absl::StrCat("  ", member.name, ": ", ToString(member.state), member.node.empty() ? "" : " on ",
                                 member.node, Why(member.reason)));
  }
  return WriteLines(lines);
}

std::string CoreTarget::ShowWhy(const std::string& name) {
  const GangReader& reader = machine_->reader().gangs;
  if (const Pod* pod = reader.FindPod(UidOf(name)); pod != nullptr) {
    return absl::StrCat(name, ": ", ToString(pod->state), Why(reader.ViewPod(*pod).pod.reason), "\n");
  }
  const Gang* gang = reader.FindGang("default/" + name);
  if (gang == nullptr) return absl::StrCat("no pod or gang ", name, "\n");
  const std::optional<WaitingMembers> waits = reader.ViewWaitingMembers(*gang);
  const std::string help = reader.View(*gang, /*with_members=*/false).would_help;
  if (!help.empty()) return absl::StrCat(name, ": suggestion: ", help, "\n");
  if (!waits.has_value()) return absl::StrCat(name, ": no member waits\n");
  return absl::StrCat(name, ": members that wait: ", waits->count, ", first ", waits->first, Why(waits->reason), "\n");
}

std::string CoreTarget::Print(const Outcome& outcome) {
  std::vector<std::string> lines;
  for (const Record& record : outcome.records) {
    records_.erase(RecordName(record));
    if (!record.value.empty()) records_.emplace(RecordName(record), record);
  }
  if (!outcome.status.ok()) lines.push_back(absl::StrCat("error: ", outcome.status.message()));
  if (const auto* reply = std::get_if<FilterReply>(&outcome.reply)) {
    switch (reply->kind) {
      case FilterReply::Kind::kSingleNode:
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
        lines.push_back(WriteWait(reply->wait_ms, ReasonName(reply->reason.code), reply->reason.text, reply->activate));
        break;
      case PermitReply::Kind::kReject:
        lines.push_back(absl::StrCat("REJECT", Why(reply->reason)));
        break;
    }
  }
  if (const auto* reply = std::get_if<NodesReply>(&outcome.reply)) {
    std::string found = reply->nodes.empty() ? absl::StrCat("find: none", Why(reply->reason)) : "find:";
    for (const NodesReply::Scored& node : reply->nodes) absl::StrAppend(&found, " ", node.node, "=", node.score);
    lines.push_back(std::move(found));
    for (const NodesReply::Refused& node : reply->refused)
      lines.push_back(absl::StrCat("  not ", node.node, Why(node.reason)));
  }
  if (const auto* reply = std::get_if<SubmissionReply>(&outcome.reply)) {
    if (reply->plan > 0) last_plan_[asked_] = reply->plan;
    std::string text = absl::StrCat(asked_, ": ", ToString(reply->state));
    for (const SubmissionReply::Place& place : reply->places) absl::StrAppend(&text, " ", place.name, "@", place.node);
    lines.push_back(text + Why(reply->reason));
  }
  for (const HoldAnswer& answer : outcome.answers) {
    lines.push_back(absl::StrCat("answer ", tokens_[answer.token], ": ", answer.permitted ? "permitted" : "refused",
                                 Why(answer.reason)));
  }
  for (const Effect& effect : outcome.effects) {
    if (const auto* bind = std::get_if<BindPod>(&effect))
      lines.push_back(absl::StrCat("effect: bind ", bind->pod.name, " to ", bind->node));
    if (const auto* call = std::get_if<ActivatePod>(&effect)) {
      // K-7: an activation is for the plan of the pod's gang, for one that this command withdrew again, or for none.
      const Gang* gang = machine_->reader().FindPod(call->pod.uid)->gang;
      const Plan* plan = gang == nullptr ? nullptr : machine_->reader().FindPlan(*gang);
      if ((gang == nullptr && call->plan != 0) || (plan != nullptr && plan->id < call->plan))
        lines.push_back(
            absl::StrCat("INVARIANT: activated for plan ", call->plan, ", has ", plan == nullptr ? 0 : plan->id));
      lines.push_back(absl::StrCat("effect: activate ", call->pod.name,
                                   call->remove_gate ? " by removing its gate" : "",
                                   call->note.empty() ? "" : " with a new condition"));
    }
    if (const auto* mark = std::get_if<MarkTimedOut>(&effect))
      lines.push_back(absl::StrCat("effect: mark ", mark->pod.name, " timed out"));
    if (const auto* evict = std::get_if<EvictPod>(&effect))
      lines.push_back(absl::StrCat("effect: evict ", evict->pod.name, ": ", evict->note));
    if (const auto* tell = std::get_if<EmitPodEvent>(&effect))
      lines.push_back(absl::StrCat("effect: ", tell->urgent ? "" : "later, ", tell->warning ? "warning" : "event",
                                   " on ", tell->pod.name, Why(tell->reason)));
  }
  return WriteLines(lines);
}

std::string CoreTarget::Wait(absl::Duration duration) {
  const int64_t end = now_ms_ + absl::ToInt64Milliseconds(duration);
  std::string out;
  while (machine_ != nullptr && machine_->NextDeadline() <= end) {
    if (machine_->NextDeadline() < now_ms_) absl::StrAppend(&out, "INVARIANT: something was due in the past\n");
    now_ms_ = std::max(now_ms_, machine_->NextDeadline());
    out += Apply(Tick{});
    if (machine_->NextDeadline() <= now_ms_) return out + "INVARIANT: a tick leaves something that is due\n";
  }
  now_ms_ = end;
  return machine_ == nullptr ? out : out + Apply(Tick{});
}

std::string CoreTarget::ShowGang(const std::string& key, const std::string& shown_as, bool explain) {
  const Gang* gang = machine_->reader().FindGang(key);
  if (gang == nullptr) return absl::StrCat("no gang ", shown_as, "\n");
  const GangView view = machine_->reader().gangs.View(*gang, true);
  ShownGang shown;
  shown.name = shown_as;
  shown.phase = std::string(ToString(view.phase));
  shown.children = view.children;
  shown.waiting = view.waiting;
  shown.bound = view.bound + view.committed;
  shown.code = std::string(ReasonName(view.reason.code));
  shown.text = view.reason.text;
  shown.min_member = view.rules.min_member;
  shown.total_number = view.rules.total_number;
  shown.wait_time_ms = view.rules.wait_time_ms;
  shown.mode = std::string(ToString(view.rules.mode));
  shown.match_policy = std::string(ToString(view.rules.match_policy));
  shown.on_timeout = std::string(ToString(view.rules.on_timeout));
  shown.warnings = view.warnings;
  return WriteGang(shown, explain);
}

std::string CoreTarget::Usage() {
  std::vector<std::string> lines;
  for (NodeId id = 0; id < machine_->rooms().cluster.node_limit(); ++id) {
    if (!machine_->rooms().cluster.node(id).known) continue;
    const NodeView view = machine_->reader().facts.ViewNode(id);
    ResourceList reserved(view.reserved.begin(), view.reserved.end());
    for (const auto& [name, amount] : view.awaited) reserved[name] += amount;
    lines.push_back(absl::StrCat(view.name, ": used {", FormatResources({view.used.begin(), view.used.end()}),
                                 "} reserved {", FormatResources(reserved), "}"));
  }
  std::sort(lines.begin(), lines.end());
  return WriteLines(lines);
}

}  // namespace muster
