#include "clients/musterctl/output.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/musterctl/manifests.h"

namespace muster {

// Names and messages come from anything that may create pods: a terminal must not interpret them.
std::string Printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppend(&out, "\\x", absl::Hex(byte, absl::kZeroPad2));
    } else {
      out += c;
    }
  }
  return out;
}

void PrintTable(Rows rows) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = Printable(cell);
  }
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 3, ' ');
    }
    std::cout << line << "\n";
  }
}

namespace {

absl::Time TimeOf(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

std::string Text(const google::protobuf::Duration& duration) {
  return absl::FormatDuration(absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos()));
}

std::string Age(const google::protobuf::Timestamp& time) {
  if (time.seconds() <= 0) return "-";
  const absl::Duration age = absl::Now() - TimeOf(time);
  if (age >= absl::Hours(48)) return absl::StrCat(age / absl::Hours(24), "d");
  return absl::FormatDuration(std::max(absl::Trunc(age, absl::Seconds(1)), absl::Seconds(1)));
}

std::string Members(const v1::Gang& gang) {
  return absl::StrCat(gang.counts().bound(), "/",
                      gang.rules().min_member() < 0 ? "?" : absl::StrCat(gang.rules().min_member()));
}

std::string Clock() { return absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()); }

}  // namespace

// Prints the message as JSON, or converts that JSON into YAML.
void PrintMessage(const google::protobuf::Message& message, const std::string& output) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = output == "json";
  options.always_print_primitive_fields = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return;
  if (output == "json") {
    std::cout << json;
    return;
  }
  std::cout << YamlOf(json) << "\n";
}

void PrintGangs(const v1::ListGangsResponse& list) {
  Rows rows = {{"NAMESPACE", "NAME", "PHASE", "BOUND/MIN", "PODS", "PRIORITY", "AGE", "REASON"}};
  for (const auto& gang : list.gangs()) {
    rows.push_back({gang.namespace_(), gang.name(), EnumText(gang.phase()), Members(gang),
                    absl::StrCat(gang.counts().members()), absl::StrCat(gang.priority()), Age(gang.create_time()),
                    gang.reason().code() == v1::REASON_CODE_UNSPECIFIED
                        ? ""
                        : absl::StrCat(EnumText(gang.reason().code()), ": ", gang.reason().text())});
  }
  if (rows.size() == 1) {
    std::cout << "no gangs\n";
  } else {
    PrintTable(rows);
  }
}

void PrintGang(const v1::Gang& gang) {
  v1::ListGangsResponse one;
  *one.add_gangs() = gang;
  PrintGangs(one);
}

namespace {

// "required rack, preferred host"; empty: no rule.
std::string Where(const v1::Topology& topology) {
  std::vector<std::string> parts;
  for (const auto& [word, key] : {std::pair{"required", topology.required()},
                                  {"preferred", topology.preferred()},
                                  {"spread over", topology.spread()}}) {
    if (!key.empty()) parts.push_back(absl::StrCat(word, " ", key));
  }
  return absl::StrJoin(parts, ", ");
}

std::string Subgroup(const v1::Subgroup& subgroup) {
  std::string out =
      absl::StrCat(subgroup.name(), subgroup.parent().empty() ? "" : absl::StrCat(" of ", subgroup.parent()),
                   ": minimum ", subgroup.minimum(), subgroup.leaf() ? "" : " of its subgroups");
  if (subgroup.leaf()) {
    absl::StrAppend(&out, ", ", subgroup.placed(), " placed, ", subgroup.waiting(), " waiting, ", subgroup.pending(),
                    " pending");
    if (subgroup.future_members() > 0)
      absl::StrAppend(&out, ", slots reserved for ", subgroup.future_members(),
                      subgroup.future_members() == 1 ? " future member" : " future members");
  }
  if (const std::string where = Where(subgroup.topology()); !where.empty()) absl::StrAppend(&out, ", ", where);
  return out;
}

}  // namespace

namespace {

std::string Sources(const v1::Gang& gang) {
  return absl::StrJoin(gang.sources(), ", ", [](std::string* out, int source) {
    switch (source) {
      case v1::Gang::SOURCE_KOORDINATOR_ANNOTATIONS:
        return absl::StrAppend(out, "gang.scheduling.koordinator.sh annotations");
      case v1::Gang::SOURCE_POD_GROUP_ANNOTATIONS:
        return absl::StrAppend(out, "pod-group.scheduling.sigs.k8s.io labels or annotations");
      case v1::Gang::SOURCE_POD_GROUP_SIGS:
        return absl::StrAppend(out, "PodGroup scheduling.sigs.k8s.io/v1alpha1");
      case v1::Gang::SOURCE_POD_GROUP_X:
        return absl::StrAppend(out, "PodGroup scheduling.x-k8s.io/v1alpha1");
      case v1::Gang::SOURCE_POD_GROUP_NATIVE:
        return absl::StrAppend(out, "PodGroup scheduling.k8s.io");
      case v1::Gang::SOURCE_POD_GROUP_KAI:
        return absl::StrAppend(out, "PodGroup scheduling.run.ai/v2alpha2");
      case v1::Gang::SOURCE_POD_GROUP_VOLCANO:
        return absl::StrAppend(out, "PodGroup scheduling.volcano.sh/v1beta1");
      case v1::Gang::SOURCE_API:
        return absl::StrAppend(out, "gRPC API");
      case v1::Gang::SOURCE_OWNER:
        return absl::StrAppend(out, "its owner");
      default:
        return absl::StrAppend(out, "?");  // of a newer server
    }
  });
}

// "Failed (3), next in 12s"
std::string Attempts(const v1::Member& member) {
  if (!member.has_binding()) return "-";
  const v1::Binding& binding = member.binding();
  std::string out = absl::StrCat(EnumText(binding.phase()), " (", binding.attempts(), ")");
  if (!binding.has_next_try_time()) return out;
  const absl::Duration left = std::max(TimeOf(binding.next_try_time()) - absl::Now(), absl::ZeroDuration());
  return absl::StrCat(out, ", next in ", absl::FormatDuration(absl::Trunc(left, absl::Seconds(1))));
}

}  // namespace

void DescribeGang(const v1::Gang& gang) {
  const auto& rules = gang.rules();
  std::vector<std::vector<std::string>> head = {
      {"Gang:", absl::StrCat(gang.namespace_(), "/", gang.name())},
      {"Declared by:", Sources(gang)},
      {"Phase:", EnumText(gang.phase())},
      {"Reason:", absl::StrCat(gang.reason().text(), " [", EnumText(gang.reason().code()), "], since ",
                               Age(gang.reason().since_time()))},
      {"Minimum:", rules.min_member() < 0 ? "not declared, or not readable"
                                          : absl::StrCat(rules.min_member(), ", of a total of ", rules.total_number())},
      {"Rules:", absl::StrCat(EnumText(rules.mode()), ", ", PolicyText(rules.match_policy()), ", wait ",
                              Text(rules.wait_timeout()), ", then ", PolicyText(rules.on_timeout()),
                              "; on member failure ", PolicyText(rules.on_member_failure()))},
      {"Queue:", absl::StrCat(rules.queue(), rules.preemptible() ? "" : ", within its quota", ", priority ",
                              gang.priority(), ", requeued ", gang.requeues(), " times")},
  };
  if (rules.has_expected_duration()) {
    head.push_back({"Duration:", absl::StrCat("declared as ", Text(rules.expected_duration()))});
  }
  for (const auto& subgroup : rules.subgroups()) {
    head.push_back({"Subgroup:", Subgroup(subgroup)});
  }
  if (const std::string where = Where(rules.topology()); !where.empty()) head.push_back({"Domain:", where});
  if (rules.group_size() > 0) head.push_back({"Starts with:", absl::StrJoin(rules.group(), ", ")});
  if (!gang.reason().suggestion().empty()) head.push_back({"Suggestion:", gang.reason().suggestion()});
  PrintTable(head);
  for (const std::string& warning : gang.warnings()) std::cout << "Warning: " << Printable(warning) << "\n";
  Rows rows = {{"MEMBER", "STATE", "NODE", "PRIORITY", "BINDING", "REASON"}};
  for (const auto& member : gang.members()) {
    const auto& binding = member.binding();
    rows.push_back({member.name(), EnumText(member.state()), member.node().empty() ? "-" : member.node(),
                    absl::StrCat(member.priority()), Attempts(member),
                    binding.message().empty() ? member.reason().text() : binding.message()});
  }
  std::cout << "\n";
  PrintTable(rows);
}

void AddZeroAmounts(v1::ListNodesResponse* list) {
  for (v1::Node& node : *list->mutable_nodes()) {
    for (auto* amounts : {node.mutable_used(), node.mutable_reserved(), node.mutable_free()}) {
      for (const auto& [resource, amount] : node.allocatable()) amounts->insert({resource, "0"});
    }
  }
}

namespace {

std::string Schedulable(const v1::Node& node) {
  if (node.unschedulable() || node.stale_too_long()) return node.stale_too_long() ? "no (stale)" : "no";
  return node.has_stale_since_time() ? "yes (stale)" : "yes";
}

}  // namespace

void PrintNodes(const v1::ListNodesResponse& list) {
  Rows rows = {{"NAME", "SCHEDULABLE", "RESOURCE", "ALLOCATABLE", "USED", "RESERVED", "FREE"}};
  for (const auto& node : list.nodes()) {
    bool first = true;
    std::vector<std::string> names;
    for (const auto& [name, amount] : node.allocatable()) names.push_back(name);
    std::sort(names.begin(), names.end());
    const auto amount = [](const auto& map, const std::string& name) {
      const auto found = map.find(name);
      return found == map.end() ? std::string("0") : found->second;
    };
    if (names.empty() && !node.refusal().empty()) {
      rows.push_back({node.name(), "no", "(refused)"});
    } else if (names.empty()) {
      rows.push_back({node.name(), Schedulable(node), "(offers nothing)"});
    }
    for (const std::string& name : names) {
      rows.push_back({first ? node.name() : "", first ? Schedulable(node) : "", name, amount(node.allocatable(), name),
                      amount(node.used(), name), amount(node.reserved(), name), amount(node.free(), name)});
      first = false;
    }
  }
  PrintTable(rows);
  const auto stale = std::find_if(list.nodes().begin(), list.nodes().end(),
                                  [](const v1::Node& node) { return node.has_stale_since_time(); });
  if (stale != list.nodes().end()) {
    std::cout << "Warning: stale nodes are known from before a restart of musterd (" << Age(stale->stale_since_time())
              << " ago), and their source has sent nothing since\n";
  }
  for (const auto& node : list.nodes()) {
    if (node.refusal().empty()) continue;
    std::cout << "Warning: the last announcement of node " << Printable(node.name())
              << " was refused: " << Printable(node.refusal()) << "\n";
  }
}

void PrintLine(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  std::string json;
  if (google::protobuf::util::MessageToJsonString(message, &json, options).ok())
    std::cout << json << "\n" << std::flush;
}

void PrintSubmission(const v1::Submission& submission) {
  Rows head = {{"Submission:", submission.id()}, {"State:", EnumText(submission.state())}};
  if (!submission.reason().text().empty()) {
    head.push_back(
        {"Reason:", absl::StrCat(submission.reason().text(), " [", EnumText(submission.reason().code()), "]")});
  }
  if (submission.state() == v1::Submission::STATE_PLANNED) {
    const absl::Duration left = TimeOf(submission.expire_time()) - absl::Now();
    head.push_back({"Plan:", absl::StrCat(submission.plan(), ", expires in ",
                                          absl::FormatDuration(absl::Trunc(left, absl::Seconds(1))))});
  }
  PrintTable(head);
  if (submission.placements().empty()) return;
  Rows rows = {{"POD", "NODE", "UID"}};
  for (const auto& placement : submission.placements()) {
    rows.push_back({placement.pod_name(), placement.node(), placement.pod_uid()});
  }
  std::cout << "\n";
  PrintTable(rows);
}

void PrintSubmissions(const v1::ListSubmissionsResponse& list) {
  if (list.submissions().empty()) {
    std::cout << "no submissions\n";
    return;
  }
  Rows rows = {{"ID", "GANG", "STATE", "PODS", "REASON"}};
  for (const v1::Submission& submission : list.submissions()) {
    rows.push_back({submission.id(), submission.gang(), EnumText(submission.state()),
                    absl::StrCat(submission.placements_size()), submission.reason().text()});
  }
  PrintTable(rows);
}

void PrintPlan(const std::string& gang, const v1::PlanGangResponse& plan) {
  std::cout << Printable(gang) << (plan.starts() ? " would start" : " would wait") << ": "
            << Printable(plan.reason().text()) << " [" << EnumText(plan.reason().code()) << "]\n";
  if (!plan.reason().suggestion().empty() && !plan.starts()) {
    std::cout << "Suggestion: " << Printable(plan.reason().suggestion()) << "\n";
  }
  const auto list = [](const char* what, const auto& gangs) {
    if (!gangs.empty()) std::cout << what << Printable(absl::StrJoin(gangs, ", ")) << "\n";
  };
  list("Gangs that would be planned first: ", plan.planned_before());
  list("Gangs with members on the removed nodes: ", plan.affected_gangs());
  if (plan.placements().empty()) return;
  std::map<std::string, std::vector<std::string>> pods;  // by node
  for (const auto& placement : plan.placements()) {
    pods[placement.node()].push_back(placement.pod_name().empty() ? "(any)" : placement.pod_name());
  }
  Rows rows = {{"NODE", "PODS", "NAMES"}};
  constexpr size_t kNames = 8;
  for (auto& [node, names] : pods) {
    const size_t count = names.size();
    if (count > kNames) names.resize(kNames);
    rows.push_back({node, absl::StrCat(count), absl::StrCat(absl::StrJoin(names, " "), count > kNames ? " ..." : "")});
  }
  std::cout << "\n";
  PrintTable(rows);
}

std::string MissedEventsText(int64_t events) {
  return absl::StrCat("at most ", events, events == 1 ? " earlier event is" : " earlier events are", " missing here");
}

void PrintEvent(const v1::Event& event) {
  if (event.dropped_events() > 0) std::cout << MissedEventsText(event.dropped_events()) << "\n";
  const std::string at = absl::FormatTime("%H:%M:%S", TimeOf(event.event_time()), absl::LocalTimeZone());
  std::cout << at << "  " << EnumText(event.type()) << "  " << event.namespace_() << "/" << event.pod_name()
            << (event.node().empty() ? "" : " on " + event.node()) << "  " << EnumText(event.reason().code()) << ": "
            << Printable(event.reason().text()) << "\n"
            << std::flush;
}

void PrintGangEvent(const v1::GangEvent& event) {
  if (event.has_upserted()) {
    const v1::Gang& gang = event.upserted();
    std::cout << Clock() << "  " << Printable(gang.namespace_() + "/" + gang.name()) << "  " << EnumText(gang.phase())
              << "  " << Members(gang) << "  " << Printable(gang.reason().text()) << "\n";
  } else if (event.event_case() == v1::GangEvent::kRemoved) {
    std::cout << Clock() << "  " << Printable(event.removed()) << "  removed\n";
  } else if (event.resync()) {
    std::cout << Clock() << "  resync: the client was too slow; the full list follows\n";
  }
  std::cout << std::flush;
}

void PrintNodeEvent(const v1::NodeEvent& event) {
  if (event.has_upserted()) {
    std::cout << Clock() << "  " << event.upserted().name() << (event.upserted().unschedulable() ? "  cordoned" : "");
    const v1::Node& node = event.upserted();
    const std::map<std::string, std::string> all(node.allocatable().begin(), node.allocatable().end());
    for (const auto& [name, amount] : all) {
      const auto free = node.free().find(name);
      std::cout << "  " << name << " " << (free == node.free().end() ? "0" : free->second) << " of " << amount
                << " free";
    }
    std::cout << "\n";
  } else if (event.event_case() == v1::NodeEvent::kRemoved) {
    std::cout << Clock() << "  " << Printable(event.removed()) << "  removed\n";
  } else if (event.resync()) {
    std::cout << Clock() << "  resync: the client was too slow; the full list follows\n";
  }
  std::cout << std::flush;
}

void PrintQueueEvent(const v1::QueueEvent& event) {
  if (event.has_upserted()) {
    const v1::Queue& queue = event.upserted();
    std::cout << Clock() << "  " << Printable(queue.name()) << "  " << queue.running_gangs() << " running  "
              << queue.waiting_gangs() << " waiting";
    const std::map<std::string, std::string> used(queue.used().begin(), queue.used().end());
    for (const auto& [resource, amount] : used) std::cout << "  " << Printable(resource) << " " << amount << " used";
    std::cout << "\n";
  } else if (event.event_case() == v1::QueueEvent::kRemoved) {
    std::cout << Clock() << "  " << Printable(event.removed()) << "  removed\n";
  }
  std::cout << std::flush;
}

void PrintSubmissionEvent(const v1::SubmissionEvent& event) {
  if (event.has_upserted()) {
    const v1::Submission& submission = event.upserted();
    std::cout << Clock() << "  " << Printable(submission.id()) << "  " << Printable(submission.gang()) << "  "
              << EnumText(submission.state()) << "  " << Printable(submission.reason().text()) << "\n";
  } else if (event.resync()) {
    std::cout << Clock() << "  resync: the client was too slow; the full list follows\n";
  }
  std::cout << std::flush;
}

}  // namespace muster
