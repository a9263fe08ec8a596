// musterctl: look at gangs and nodes, and ask why a gang waits.
#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cpp/muster_client.h"

namespace {

using Rows = std::vector<std::vector<std::string>>;

// Columns as wide as their widest cell.
void PrintTable(const Rows& rows) {
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

std::string Age(int64_t unix_ms) {
  if (unix_ms <= 0) return "-";
  const absl::Duration age = absl::Now() - absl::FromUnixMillis(unix_ms);
  return absl::FormatDuration(std::max(absl::Trunc(age, absl::Seconds(1)), absl::Seconds(1)));
}

// The message as JSON, or as YAML by way of it.
void PrintMessage(const google::protobuf::Message& message, const std::string& output) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = output == "json";
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return;
  if (output == "json") {
    std::cout << json;
    return;
  }
  YAML::Emitter yaml;
  YAML::Node node = YAML::Load(json);
  const std::function<void(YAML::Node)> block = [&](YAML::Node n) {
    n.SetStyle(YAML::EmitterStyle::Block);
    for (auto child : n) block(n.IsMap() ? child.second : child);
  };
  block(node);
  yaml << node;
  std::cout << yaml.c_str() << "\n";
}

std::string Members(const muster::v1::Gang& gang) {
  return absl::StrCat(gang.counts().bound() + gang.counts().binding(), "/",
                      gang.rules().min_member() < 0 ? "?" : absl::StrCat(gang.rules().min_member()));
}

void PrintGangs(const muster::v1::ListGangsResponse& list) {
  Rows rows = {{"NAMESPACE", "NAME", "PHASE", "BOUND/MIN", "PODS", "PRIORITY", "AGE", "REASON"}};
  for (const auto& gang : list.gangs()) {
    rows.push_back(
        {gang.namespace_(), gang.name(), gang.phase(), Members(gang), absl::StrCat(gang.counts().children()),
         absl::StrCat(gang.priority()), Age(gang.created_unix_ms()),
         gang.reason().code() == "None" ? "" : absl::StrCat(gang.reason().code(), ": ", gang.reason().text())});
  }
  if (rows.size() == 1) {
    std::cout << "no gangs\n";
  } else {
    PrintTable(rows);
  }
}

void DescribeGang(const muster::v1::Gang& gang) {
  const auto& rules = gang.rules();
  std::vector<std::vector<std::string>> head = {
      {"Gang:", absl::StrCat(gang.namespace_(), "/", gang.name())},
      {"Declared by:", gang.source()},
      {"Phase:", gang.phase()},
      {"Reason:",
       absl::StrCat(gang.reason().text(), " [", gang.reason().code(), "], since ", Age(gang.reason().since_unix_ms()))},
      {"Minimum:", absl::StrCat(rules.min_member(), " of ", rules.total_number())},
      {"Rules:", absl::StrCat(rules.mode(), ", ", rules.match_policy(), ", wait ", rules.wait_time_ms() / 1000,
                              " s, then ", rules.on_timeout(), "; on member failure ", rules.on_member_failure())},
      {"Queue:", absl::StrCat(rules.queue(), ", priority ", gang.priority(), ", put back ", gang.requeues(), " times")},
  };
  if (!gang.reason().would_help().empty()) head.push_back({"To let it go:", gang.reason().would_help()});
  PrintTable(head);
  for (const std::string& warning : gang.warnings()) std::cout << "Warning: " << warning << "\n";
  Rows rows = {{"MEMBER", "STATE", "NODE", "PRIORITY", "BINDING", "REASON"}};
  for (const auto& member : gang.members()) {
    const auto& binding = member.binding();
    rows.push_back({member.name(), member.state(), member.node().empty() ? "-" : member.node(),
                    absl::StrCat(member.priority()),
                    binding.phase().empty() ? "-" : absl::StrCat(binding.phase(), " (", binding.attempts(), ")"),
                    binding.reason().empty() ? member.reason().text() : binding.reason()});
  }
  std::cout << "\n";
  PrintTable(rows);
}

void PrintNodes(const muster::v1::ListNodesResponse& list) {
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
    for (const std::string& name : names) {
      rows.push_back({first ? node.name() : "", first ? (node.unschedulable() ? "no" : "yes") : "", name,
                      amount(node.allocatable(), name), amount(node.used(), name), amount(node.reserved(), name),
                      amount(node.free(), name)});
      first = false;
    }
  }
  PrintTable(rows);
}

// One line for each gang that changed, until the reader is interrupted or the server goes.
absl::Status WatchGangs(muster::MusterClient* client, const std::string& name_space, const std::string& output) {
  return client->WatchGangs(name_space, [&](const muster::v1::GangEvent& event) {
    if (output != "table") {
      google::protobuf::util::JsonPrintOptions options;
      options.preserve_proto_field_names = true;
      std::string json;
      if (google::protobuf::util::MessageToJsonString(event, &json, options).ok())
        std::cout << json << "\n" << std::flush;
      return true;
    }
    const std::string now = absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone());
    if (event.has_upserted()) {
      const auto& gang = event.upserted();
      std::cout << now << "  " << gang.namespace_() << "/" << gang.name() << "  " << gang.phase() << "  "
                << Members(gang) << "  " << gang.reason().text() << "\n";
    } else if (event.event_case() == muster::v1::GangEvent::kRemoved) {
      std::cout << now << "  " << event.removed() << "  removed\n";
    } else if (event.resync()) {
      std::cout << now << "  too slow: what follows is everything again\n";
    }
    std::cout << std::flush;
    return true;
  });
}

int Fail(const absl::Status& status) {
  std::cerr << "musterctl: " << status.message() << "\n";
  return 1;
}

// "name" or "namespace/name".
void SplitName(std::string* name, std::string* name_space) {
  const size_t slash = name->find('/');
  if (slash == std::string::npos) return;
  *name_space = name->substr(0, slash);
  *name = name->substr(slash + 1);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App cli(
      "Looks at a running musterd: gangs, nodes, and why a gang waits.\n\n"
      "  musterctl get gangs -A            every gang with its phase and reason\n"
      "  musterctl explain gang train      why it waits, since when, what would let it go\n"
      "  musterctl describe gang train     its rules and every member\n"
      "  musterctl watch gangs -A          a line for every change, as it happens\n"
      "  musterctl get nodes               what nodes offer, what is used and what is reserved",
      "musterctl");
  std::string server = "127.0.0.1:9091";
  std::string name_space = "default";
  std::string output = "table";
  std::string name;
  bool all = false;
  cli.add_option("--server", server, "musterd's gRPC address")->envname("MUSTER_SERVER")->capture_default_str();
  cli.require_subcommand(1);
  const auto common = [&](CLI::App* command) {
    command->add_option("-o,--output", output, "table, json or yaml")
        ->check(CLI::IsMember({"table", "json", "yaml"}))
        ->capture_default_str();
    command->add_option("-n,--namespace", name_space, "namespace")->capture_default_str();
    return command;
  };
  CLI::App* get = cli.add_subcommand("get", "list gangs or nodes, or show one gang");
  get->require_subcommand(1);
  CLI::App* get_gangs = common(get->add_subcommand("gangs", "list gangs"));
  get_gangs->add_flag("-A,--all-namespaces", all, "in every namespace");
  CLI::App* get_gang = common(get->add_subcommand("gang", "one gang"));
  get_gang->add_option("name", name, "name or namespace/name")->required();
  CLI::App* get_nodes = common(get->add_subcommand("nodes", "list nodes"));
  CLI::App* watch = cli.add_subcommand("watch", "changes as they happen, until interrupted");
  watch->require_subcommand(1);
  CLI::App* watch_gangs = common(watch->add_subcommand("gangs", "gangs: what there is, then every change"));
  watch_gangs->add_flag("-A,--all-namespaces", all, "in every namespace");
  CLI::App* describe = cli.add_subcommand("describe", "a gang with its rules and members");
  describe->require_subcommand(1);
  CLI::App* describe_gang = common(describe->add_subcommand("gang", "one gang"));
  describe_gang->add_option("name", name, "name or namespace/name")->required();
  CLI::App* explain = cli.add_subcommand("explain", "why a gang waits");
  explain->require_subcommand(1);
  CLI::App* explain_gang = common(explain->add_subcommand("gang", "one gang"));
  explain_gang->add_option("name", name, "name or namespace/name")->required();
  CLI11_PARSE(cli, argc, argv);

  muster::MusterClient client(server);
  SplitName(&name, &name_space);
  const bool table = output == "table";
  if (get_gangs->parsed()) {
    const auto list = client.ListGangs(all ? "" : name_space);
    if (!list.ok()) return Fail(list.status());
    if (table) {
      PrintGangs(*list);
    } else {
      PrintMessage(*list, output);
    }
  } else if (watch_gangs->parsed()) {
    const absl::Status ended = WatchGangs(&client, all ? "" : name_space, output == "table" ? output : "json");
    if (!ended.ok()) return Fail(ended);
  } else if (get_nodes->parsed()) {
    const auto list = client.ListNodes();
    if (!list.ok()) return Fail(list.status());
    if (table) {
      PrintNodes(*list);
    } else {
      PrintMessage(*list, output);
    }
  } else if (explain_gang->parsed()) {
    const auto explained = client.ExplainGang(name_space, name);
    if (!explained.ok()) return Fail(explained.status());
    if (table) {
      std::cout << explained->text() << "\n";
    } else {
      PrintMessage(*explained, output);
    }
  } else {
    const auto gang = client.GetGang(name_space, name);
    if (!gang.ok()) return Fail(gang.status());
    if (!table) {
      PrintMessage(*gang, output);
    } else if (describe_gang->parsed()) {
      DescribeGang(*gang);
    } else {
      muster::v1::ListGangsResponse one;
      *one.add_gangs() = *gang;
      PrintGangs(one);
    }
  }
  return 0;
}
