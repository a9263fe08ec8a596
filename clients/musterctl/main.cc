// musterctl: shows gangs, nodes and events; applies manifests; submits whole gangs; explains why a gang waits.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cpp/muster_client.h"
#include "clients/musterctl/command_output.h"
#include "clients/musterctl/completion.h"
#include "clients/musterctl/config_commands.h"
#include "clients/musterctl/contexts.h"
#include "clients/musterctl/manifest_commands.h"
#include "clients/musterctl/output.h"
#include "clients/musterctl/replay.h"
#include "clients/musterctl/simulate.h"
#include "clients/musterctl/store_commands.h"

namespace {

using muster::ContextSettings;
using muster::EachLine;
using muster::Fail;
using muster::Options;
using muster::Show;

constexpr char kAbout[] =
    "Talks to a running musterd: gangs, nodes, events, and why a gang waits.\n\n"
    "  musterctl get gangs -A              every gang with its phase and reason\n"
    "  musterctl explain gang train        why it waits, what holds the capacity, what would start it\n"
    "  musterctl explain pod train-3       the same for one pod\n"
    "  musterctl explain queue team        its quota and usage, and which gang is at the head of the queue\n"
    "  musterctl describe gang train       its rules and every member\n"
    "  musterctl trace gang train          every decision with its time and duration\n"
    "  musterctl watch gangs -A            a line for every change, as it happens\n"
    "  musterctl events -A --follow        what Muster decided about pods\n"
    "  musterctl apply -f cluster.yaml     nodes, pods and PodGroups in Kubernetes YAML\n"
    "  musterctl submit -f job.yaml --wait place a gang as a whole, then: musterctl confirm ID\n"
    "  musterctl plan -f job.yaml          the nodes it would get, or why it waits; --without NODE, --add 2=NODE,\n"
    "                                      --more team:nvidia.com/gpu=8\n"
    "  musterctl config set-context lab --server muster.lab:9091 --ca ca.pem --token-file token\n"
    "  musterctl store verify muster.db    the SQLite file with the durable records of musterd\n"
    "  musterctl replay muster.rec         replay the decisions in a recording of musterd --record\n"
    "  musterctl simulate jobs.csv         the results of each policy for a workload\n"
    "  source <(musterctl completion bash)";

// "name" or "namespace/name".
void SplitName(std::string* name, std::string* name_space) {
  const size_t slash = name->find('/');
  if (slash == std::string::npos) return;
  *name_space = name->substr(0, slash);
  *name = name->substr(slash + 1);
}

// Flags over environment over the context.
absl::StatusOr<ContextSettings> Effective(const Options& options) {
  const absl::StatusOr<muster::ContextFile> file = muster::LoadContexts(muster::ContextPath());
  if (!file.ok()) return file.status();
  const std::string context = options.context.empty() ? file->current : options.context;
  ContextSettings out;
  if (!context.empty()) {
    const auto found = file->contexts.find(context);
    if (found == file->contexts.end()) {
      return absl::NotFoundError(absl::StrCat("there is no context ", context, "; see musterctl config get-contexts"));
    }
    out = found->second;
  }
  muster::Override(options.environment, &out);
  muster::Override(options.settings, &out);
  return out;
}

absl::StatusOr<std::unique_ptr<muster::MusterClient>> Connect(ContextSettings settings, const Options& options) {
  muster::ClientOptions client;
  if (!settings["server"].empty()) client.server = settings["server"];
  client.ca_file = settings["ca"];
  client.cert_file = settings["cert"];
  client.key_file = settings["key"];
  client.server_name = settings["server-name"];
  client.token = settings["token"];
  if (client.token.empty() && !settings["token-file"].empty()) {
    std::ifstream in(settings["token-file"]);
    if (!in) return absl::NotFoundError(absl::StrCat("token-file: cannot read ", settings["token-file"]));
    std::getline(in, client.token);
    client.token = std::string(absl::StripAsciiWhitespace(client.token));
  }
  client.wait_for_server = false;
  client.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.timeout_s * 1000));
  return muster::MusterClient::Connect(client);
}

int Events(muster::MusterClient* client, const Options& options, const std::string& name_space) {
  if (options.follow) {
    muster::v1::WatchEventsRequest request;
    request.set_namespace_(name_space);
    request.set_after_sequence(options.after);
    const absl::Status ended = client->WatchEvents(request, EachLine<muster::v1::Event>(options, &muster::PrintEvent));
    return ended.ok() ? 0 : Fail(ended);
  }
  muster::v1::ListEventsRequest request;
  request.set_namespace_(name_space);
  request.set_after_sequence(options.after);
  return Show(client->ListEvents(request), options, [](const muster::v1::ListEventsResponse& list) {
    if (list.dropped_events() > 0) std::cout << muster::MissedEventsText(list.dropped_events()) << "\n";
    for (const auto& event : list.events()) muster::PrintEvent(event);
    if (list.events().empty()) std::cout << "no events\n";
  });
}

// The subcommands that call musterd.
struct Commands {
  CLI::App *get_gangs, *get_gang;
  CLI::App *get_nodes, *get_node;
  CLI::App *get_queues, *get_queue, *describe_queue, *explain_queue;
  CLI::App *get_submission, *get_submissions;
  CLI::App* describe_gang;
  CLI::App* explain_gang;
  CLI::App* explain_pod;
  CLI::App *watch_gangs, *watch_nodes, *watch_queues, *watch_submissions;
  CLI::App* apply;
  CLI::App* remove;
  CLI::App* submit;
  CLI::App* plan;
  CLI::App *confirm, *abandon;
  CLI::App* events;
  CLI::App *trace_gang, *trace_pod;
  CLI::App* version;
};

CLI::App* WithOutput(CLI::App* command, Options* options) {
  command->add_option("-o,--output", options->output, "table, json or yaml")
      ->check(CLI::IsMember({"table", "json", "yaml"}))
      ->capture_default_str();
  return command;
}

CLI::App* WithName(CLI::App* command, const char* what, Options* options) {
  command->add_option("name", options->name, what)->required();
  return WithOutput(command, options);
}

// The commands that change something, and `plan`, which asks what would change.
void DefineChanges(CLI::App* cli, Options* options, Commands* commands) {
  commands->apply = cli->add_subcommand("apply", "announce nodes, pods and PodGroups (Kubernetes YAML)");
  commands->remove = cli->add_subcommand("delete", "announce that these objects were deleted");
  commands->submit =
      WithOutput(cli->add_subcommand("submit", "place a gang as a whole: Pods of one gang, and its PodGroup"), options);
  commands->plan =
      WithOutput(cli->add_subcommand("plan",
                                     "the nodes that a gang would get, or why it would wait, for the current "
                                     "or a hypothetical cluster; changes nothing"),
                 options);
  commands->plan->add_option("name", options->name, "a known gang: name or namespace/name");
  commands->plan->add_option(
      "-f,--filename", options->files,
      "instead of a name: Pods of one gang and its PodGroup, or a Job; Nodes in the file count as added");
  commands->plan->add_option("--without", options->without, "plan without this node; may be repeated");
  commands->plan->add_option(
      "--more", options->more,
      "raise quota and limit of a queue: QUEUE:RESOURCE=AMOUNT, as team:nvidia.com/gpu=8; may be "
      "repeated");
  commands->plan->add_option("--add", options->add, "add nodes that are copies of a known one: NODE or NUMBER=NODE");
  for (CLI::App* command : {commands->apply, commands->remove, commands->submit}) {
    command->add_option("-f,--filename", options->files, "file; - is standard input; may be repeated")->required();
  }
  commands->submit
      ->add_option("--ttl", options->ttl_s, "seconds for which the plan stays reserved (default: musterd's 60)")
      ->check(CLI::Range(0.001, 86400.0));
  commands->submit->add_option("--id", options->request_id, "the submission's id; a repeated id shows the state");
  commands->submit->add_flag("--wait", options->wait, "wait until there is a plan");
  commands->submit->add_flag("--confirm", options->confirm, "wait for a plan and confirm it");
  commands->confirm =
      WithName(cli->add_subcommand("confirm", "confirm a submitted gang's plan"), "the submission's id", options);
  commands->confirm->add_option("--plan", options->plan, "the plan number (default: the current plan)");
  commands->abandon =
      WithName(cli->add_subcommand("abandon", "release a submitted gang's plan"), "the submission's id", options);
}

Commands Define(CLI::App* cli, Options* options) {
  Commands commands{};
  const auto output = [&](CLI::App* command) { return WithOutput(command, options); };
  const auto scoped = [&](CLI::App* command) {
    command->add_flag("-A,--all-namespaces", options->all, "in every namespace");
    return output(command);
  };
  const auto named = [&](CLI::App* command, const char* what) { return WithName(command, what, options); };
  const auto group = [&](const char* name, const char* about) {
    CLI::App* parent = cli->add_subcommand(name, about);
    parent->require_subcommand(1);
    return parent;
  };
  CLI::App* get = group("get", "list gangs, nodes, queues or submissions, or show one of them");
  commands.get_gangs = scoped(get->add_subcommand("gangs", "list gangs"));
  commands.get_gang = named(get->add_subcommand("gang", "one gang"), "name or namespace/name");
  commands.get_nodes = output(get->add_subcommand("nodes", "capacity of nodes: allocatable, used and reserved"));
  commands.get_node = named(get->add_subcommand("node", "one node"), "its name");
  commands.get_queues = output(get->add_subcommand("queues", "quota, limit and usage of queues, and pending requests"));
  commands.get_queue = named(get->add_subcommand("queue", "one queue"), "its name");
  commands.get_submission = named(get->add_subcommand("submission", "state of a submitted gang"), "its id");
  commands.get_submissions =
      scoped(get->add_subcommand("submissions", "submitted gangs that have not ended, and the last ones that have"));
  CLI::App* describe = group("describe", "a gang with its rules and members, or a queue with its gangs");
  commands.describe_gang = named(describe->add_subcommand("gang", "one gang"), "name or namespace/name");
  commands.describe_queue = named(describe->add_subcommand("queue", "one queue"), "its name");
  CLI::App* explain = group("explain", "why a gang or a pod waits, or the state and the head of a queue");
  commands.explain_gang = named(explain->add_subcommand("gang", "one gang"), "name or namespace/name");
  commands.explain_pod = named(explain->add_subcommand("pod", "one pod"), "name or namespace/name");
  commands.explain_queue = named(explain->add_subcommand("queue", "one queue"), "its name");
  CLI::App* trace = group("trace", "every decision with its time and duration");
  commands.trace_gang = named(trace->add_subcommand("gang", "the start of a gang"), "name or namespace/name");
  commands.trace_pod = named(trace->add_subcommand("pod", "one pod"), "name or namespace/name");
  CLI::App* watch = group("watch", "changes as they happen, until interrupted");
  commands.watch_gangs = scoped(watch->add_subcommand("gangs", "gangs: the current list, then every change"));
  commands.watch_nodes = output(watch->add_subcommand("nodes", "nodes: the current list, then every change"));
  commands.watch_queues = output(watch->add_subcommand("queues", "queues: the current list, then every change"));
  commands.watch_submissions =
      scoped(watch->add_subcommand("submissions", "submitted gangs: those that have not ended, then every change"));
  commands.events = scoped(cli->add_subcommand("events", "what Muster decided about pods"));
  commands.events->add_flag("-f,--follow", options->follow, "and new decisions until interrupted");
  const auto sequence = [](const std::string& text) -> std::string {
    int64_t number = 0;
    return absl::SimpleAtoi(text, &number) && number >= 0 ? "" : text + "; expected a whole number, 0 or more";
  };
  commands.events->add_option("--after", options->after, "only events after this sequence number")->check(sequence);
  commands.version = output(cli->add_subcommand("version", "the versions of musterctl and musterd"));
  DefineChanges(cli, options, &commands);
  return commands;
}

// One of the watch commands; none: another command.
std::optional<int> Watch(const Commands& commands, muster::MusterClient* client, const Options& options,
                         const std::string& everywhere) {
  if (commands.watch_gangs->parsed()) {
    const absl::Status ended =
        client->WatchGangs(everywhere, EachLine<muster::v1::GangEvent>(options, &muster::PrintGangEvent));
    return ended.ok() ? 0 : Fail(ended);
  }
  if (commands.watch_nodes->parsed()) {
    const absl::Status ended = client->WatchNodes(EachLine<muster::v1::NodeEvent>(options, &muster::PrintNodeEvent));
    return ended.ok() ? 0 : Fail(ended);
  }
  if (commands.watch_queues->parsed()) {
    const absl::Status ended = client->WatchQueues(EachLine<muster::v1::QueueEvent>(options, &muster::PrintQueueEvent));
    return ended.ok() ? 0 : Fail(ended);
  }
  if (commands.watch_submissions->parsed()) {
    const absl::Status ended = client->WatchSubmissions(
        everywhere, EachLine<muster::v1::SubmissionEvent>(options, &muster::PrintSubmissionEvent));
    return ended.ok() ? 0 : Fail(ended);
  }
  return std::nullopt;
}

int Change(const Commands& commands, muster::MusterClient* client, const Options& options,
           const std::string& name_space) {
  if (commands.apply->parsed()) return muster::Apply(client, options, /*remove=*/false);
  if (commands.remove->parsed()) return muster::Apply(client, options, /*remove=*/true);
  if (commands.submit->parsed()) return muster::Submit(client, options);
  if (commands.plan->parsed()) return muster::Plan(client, options, name_space);
  if (commands.confirm->parsed()) return muster::Confirm(client, options);
  return Show(client->AbandonGang(options.name), options, &muster::PrintSubmission);
}

int Run(const Commands& commands, muster::MusterClient* client, Options* options, std::string name_space) {
  if (commands.get_queues->parsed()) return Show(client->ListQueues(), *options, &muster::PrintQueues);
  if (commands.get_queue->parsed()) return Show(client->GetQueue(options->name), *options, &muster::PrintQueue);
  if (commands.describe_queue->parsed()) {
    return Show(client->GetQueue(options->name), *options, [&](const muster::v1::Queue& queue) {
      muster::DescribeQueue(queue);
      const absl::StatusOr<muster::v1::ListGangsResponse> gangs = client->ListGangs("");
      if (gangs.ok()) muster::PrintGangsOf(queue, *gangs);
    });
  }
  const auto print_text = [](const auto& why) {
    for (const absl::string_view line : absl::StrSplit(why.text(), '\n')) {
      std::cout << muster::Printable(std::string(line)) << "\n";
    }
  };
  if (commands.explain_queue->parsed()) return Show(client->ExplainQueue(options->name), *options, print_text);
  const std::string everywhere = options->all ? "" : name_space;
  SplitName(&options->name, &name_space);
  if (commands.get_gangs->parsed()) return Show(client->ListGangs(everywhere), *options, &muster::PrintGangs);
  if (commands.get_nodes->parsed()) {
    absl::StatusOr<muster::v1::ListNodesResponse> list = client->ListNodes();
    if (list.ok() && options->output != "table") muster::AddZeroAmounts(&*list);
    return Show(list, *options, &muster::PrintNodes);
  }
  if (commands.get_node->parsed()) {
    return Show(client->GetNode(options->name), *options, [](const muster::v1::Node& node) {
      muster::v1::ListNodesResponse one;
      *one.add_nodes() = node;
      muster::PrintNodes(one);
    });
  }
  if (commands.get_submissions->parsed()) {
    return Show(client->ListSubmissions(everywhere), *options, &muster::PrintSubmissions);
  }
  if (commands.get_submission->parsed()) {
    return Show(client->GetSubmission(options->name), *options, &muster::PrintSubmission);
  }
  if (commands.explain_gang->parsed()) {
    return Show(client->ExplainGang(name_space, options->name), *options, print_text);
  }
  if (commands.explain_pod->parsed()) {
    return Show(client->ExplainPod(name_space, options->name), *options, print_text);
  }
  if (commands.describe_gang->parsed()) {
    return Show(client->GetGang(name_space, options->name), *options, &muster::DescribeGang);
  }
  if (commands.get_gang->parsed()) {
    return Show(client->GetGang(name_space, options->name), *options, &muster::PrintGang);
  }
  if (commands.trace_gang->parsed() || commands.trace_pod->parsed()) {
    muster::v1::GetTraceRequest request;
    request.set_namespace_(name_space);
    commands.trace_gang->parsed() ? request.set_gang(options->name) : request.set_pod(options->name);
    return Show(client->GetTrace(request), *options, &muster::PrintTrace);
  }
  if (const std::optional<int> ended = Watch(commands, client, *options, everywhere); ended.has_value()) return *ended;
  if (commands.events->parsed()) return Events(client, *options, everywhere);
  if (commands.version->parsed()) {
    return Show(client->GetVersion(), *options, [](const muster::v1::Version& version) {
      std::cout << "musterctl " << MUSTER_VERSION << "\nmusterd " << muster::Printable(version.server_version()) << ", "
                << muster::Printable(version.api_version()) << "\n";
    });
  }
  return Change(commands, client, *options, name_space);
}

// The first word that is neither a flag nor the value of one; empty: none.
std::string FirstWord(const CLI::App& cli, std::vector<std::string>::const_iterator word,
                      std::vector<std::string>::const_iterator end) {
  for (; word != end; ++word) {
    if (word->empty() || word->front() != '-') return *word;
    const CLI::Option* option = cli.get_option_no_throw(*word);  // nullptr for "--flag=value"
    if (option != nullptr && option->get_items_expected_max() > 0 && word + 1 != end) ++word;
  }
  return "";
}

// Answers a command line that cannot be parsed; also --help and --version.
int Refused(const CLI::App& cli, const CLI::ParseError& error, const std::vector<std::string>& words) {
  if (error.get_exit_code() == 0) return cli.exit(error);
  const CLI::App* command = &cli;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<std::string> choices;
  for (const CLI::App* each : command->get_subcommands(nullptr)) choices.push_back(each->get_name());
  if (choices.empty() || dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) {
    std::cerr << "musterctl: " << error.what() << "\n";
  } else {
    const auto known = std::find(words.begin(), words.end(), command->get_name());
    const auto after = command == &cli || known == words.end() ? words.begin() : known + 1;
    const std::string word = FirstWord(cli, after, words.end());
    std::cerr << "musterctl: " << (word.empty() ? "no command given" : "no such command: " + word) << "; expected "
              << (command == &cli ? "" : command->get_name() + " and ") << "one of " << absl::StrJoin(choices, ", ")
              << "\n";
  }
  std::cerr << "Run with --help for more.\n";
  return 2;
}

int Main(int argc, char** argv) {
  CLI::App cli(kAbout, "musterctl");
  cli.set_version_flag("--version", "musterctl " MUSTER_VERSION);
  cli.require_subcommand(1);
  cli.fallthrough();  // connection flags may follow the command
  Options options;
  const auto setting = [&](const char* key, const char* environment, const char* about) {
    const std::string text = environment == nullptr ? about : absl::StrCat(about, " [", environment, "]");
    cli.add_option(absl::StrCat("--", key), options.settings[key], text)->group("Connection");
    const char* said = environment == nullptr ? nullptr : std::getenv(environment);
    if (said != nullptr) options.environment[key] = said;
  };
  setting("server", "MUSTER_SERVER", "musterd's gRPC address (127.0.0.1:9091)");
  setting("ca", "MUSTER_CA", "PEM file: use TLS; the server's certificate is signed by this CA");
  setting("cert", "MUSTER_CERT", "PEM file: this client's certificate");
  setting("key", "MUSTER_KEY", "PEM file: its key");
  setting("server-name", nullptr, "the name in the server's certificate, if it is not the host");
  setting("token", "MUSTER_TOKEN", "bearer token (prefer --token-file: other users can see command lines)");
  setting("token-file", "MUSTER_TOKEN_FILE", "file with the bearer token");
  cli.add_option("-n,--namespace", options.settings["namespace"], "namespace (default)")->group("Connection");
  cli.add_option("--context", options.context, "context of the configuration file")->group("Connection");
  cli.add_option("--timeout", options.timeout_s, "seconds for one call")
      ->check(CLI::Range(0.001, 86400.0))
      ->group("Connection")
      ->capture_default_str();
  const Commands commands = Define(&cli, &options);
  const muster::ConfigCommands config(&cli, &options.settings);
  const muster::StoreCommands store(&cli);
  const muster::ReplayCommand replay(&cli);
  muster::SimulateCommand simulate(&cli);
  CLI::App* completion = cli.add_subcommand("completion", "print a shell completion script");
  completion->add_option("shell", options.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Refused(cli, error, {argv + 1, argv + argc});
  }

  if (completion->parsed()) {
    std::cout << muster::CompletionScript(cli, options.shell);
    return 0;
  }
  if (config.parsed()) return config.Run();
  if (store.parsed()) return store.Run();
  if (replay.parsed()) return replay.Run();
  if (simulate.parsed()) return simulate.Run();
  absl::StatusOr<ContextSettings> settings = Effective(options);
  if (!settings.ok()) return Fail(settings.status());
  options.name_space = (*settings)["namespace"];
  const std::string name_space = options.name_space.empty() ? "default" : options.name_space;
  const absl::StatusOr<std::unique_ptr<muster::MusterClient>> client = Connect(*std::move(settings), options);
  if (!client.ok()) return Fail(client.status());
  return Run(commands, client->get(), &options, name_space);
}

}  // namespace

int main(int argc, char** argv) {
  const int code = Main(argc, argv);
  std::cout.flush();
  if (std::cout.good()) return code;
  std::cerr << "musterctl: cannot write to standard output: the output is incomplete\n";
  return code == 0 ? 1 : code;
}
