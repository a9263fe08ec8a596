// musterd: the gang-scheduling decision service.
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "absl/synchronization/mutex.h"
#include "k8s-extender/dialects/dialects.h"
#include "service/app.h"
#include "service/config/config.h"
#include "service/demo/demo.h"
#include "service/telemetry/logging.h"

namespace {

constexpr char kAbout[] =
    "musterd decides for kube-scheduler or any other orchestrator whether the pods of a gang may start: permit, wait "
    "or\n"
    "reject - and where, and why. No gang ever starts in part.\n\n"
    "  musterd --kubeconfig FILE        serve the cluster of a kubeconfig (or, without it, the one this pod runs in)\n"
    "  musterd --standalone             serve the gRPC API only: callers announce nodes, pods and gangs\n"
    "  musterd --demo                   a built-in cluster and a small scheduler: watch a gang wait, then start\n"
    "  musterd check-config FILE        print every problem of a configuration file\n"
    "  musterd --print-config           print every setting with its default and meaning";

// Waits for SIGINT or SIGTERM, which are blocked in every thread.
int WaitForSignal(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  return signal;
}

int Serve(const muster::Config& config, bool demo, bool demo_once) {
  // Debian's build of Abseil checks for deadlocks each time gRPC takes a lock, which costs 7% of a call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  muster::StartLogging(config.log_level, config.log_format);
  for (const std::string& warning : muster::FindWarnings(config)) spdlog::warn("{}", warning);

  muster::DemoCluster cluster(&muster::ReadManifest);
  std::atomic<bool> fenced{false};
  muster::App app(config, demo ? &cluster : nullptr, [&] {
    fenced = true;
    kill(getpid(), SIGTERM);
  });
  // During standby a signal ends the process, and nothing else does.
  absl::Status status = app.StandBy([&] {
    const timespec moment{0, 100'000'000};
    return sigtimedwait(&signals, nullptr, &moment) > 0;
  });
  if (absl::IsCancelled(status)) {
    spdlog::info("{}", std::string(status.message()));
    return 0;
  }
  if (status.ok()) status = app.Start();
  if (!status.ok()) {
    spdlog::error("musterd cannot start: {}", std::string(status.message()));
    app.Stop();
    return 1;
  }
  spdlog::info("musterd serves: extender {}, bind {}, gRPC {}, admin {}", app.extender_port(), app.bind_port(),
               app.grpc_port(), app.admin_port());
  if (demo) {
    muster::RunDemo(&app.engine(), {app.extender_port(), app.bind_port(), app.admin_port()}, &cluster);
    if (demo_once) {
      app.Stop();
      return 0;
    }
  }
  const int signal = WaitForSignal(signals);
  if (fenced) {
    spdlog::error("another musterd has taken over the store: stopping");
  } else {
    spdlog::info("signal {}: answering held calls and stopping", signal);
  }
  app.Stop();
  spdlog::info("stopped");
  return fenced ? 1 : 0;
}

// The command line.
struct Options {
  std::string config_path;
  std::string kubeconfig;
  std::string context;
  std::string check_path;
  std::string store;
  std::string record;
  bool standby = false;
  bool standalone = false;
  bool demo = false;
  bool demo_once = false;
  bool print_config = false;
};

// Returns the subcommand check-config.
CLI::App* Define(CLI::App* cli, Options* options) {
  cli->add_option("--config", options->config_path, "YAML configuration file");
  cli->add_option("--kubeconfig", options->kubeconfig, "kubeconfig file (overrides kubernetes.kubeconfig)");
  cli->add_option("--context", options->context, "context of the kubeconfig (overrides kubernetes.context)");
  cli->add_option("--store", options->store,
                  "file of durable records (overrides store.path); :memory: stores nothing on disk");
  cli->add_flag("--standby", options->standby,
                "while another musterd has the store, wait until it ends, then take over (sets store.standby)");
  cli->add_option("--record", options->record,
                  "flight recorder: write every command to this file, for musterctl replay (overrides "
                  "recording.file)");
  cli->add_flag("--standalone", options->standalone, "without Kubernetes (sets kubernetes.enabled: false)");
  cli->add_flag("--demo", options->demo, "serve a built-in cluster and play a gang through it");
  cli->add_flag("--demo-once", options->demo_once, "like --demo, but stop at the end");
  cli->add_flag("--print-config", options->print_config, "print every setting with its default and meaning");
  CLI::App* check = cli->add_subcommand("check-config", "validate a configuration file and print every problem");
  check->add_option("file", options->check_path, "the file")->required();
  return check;
}

// Prints the problems of the file. Returns the exit status.
int CheckConfig(const std::string& path) {
  const absl::StatusOr<muster::Config> config = muster::LoadConfig(path);
  if (!config.ok()) {
    std::cout << config.status().message() << "\n";
    return 1;
  }
  const std::vector<std::string> problems = muster::FileProblems(*config);
  for (const std::string& problem : problems) std::cout << problem << "\n";
  if (problems.empty()) std::cout << path << ": no problems\n";
  for (const std::string& warning : muster::FindWarnings(*config)) std::cout << "warning: " << warning << "\n";
  return problems.empty() ? 0 : 1;
}

// The configuration file with the options over it. False: a problem was printed.
bool Configure(const Options& options, muster::Config* config) {
  if (!options.config_path.empty()) {
    absl::StatusOr<muster::Config> loaded = muster::LoadConfig(options.config_path);
    if (!loaded.ok()) {
      std::cerr << "musterd: " << options.config_path << ":\n" << loaded.status().message() << "\n";
      return false;
    }
    *config = *std::move(loaded);
  }
  if (!options.kubeconfig.empty()) config->kubeconfig = options.kubeconfig;
  if (!options.context.empty()) config->kube_context = options.context;
  if (!options.store.empty()) config->store_path = options.store;
  if (options.standby) config->standby = true;
  if (config->standby && !config->has_store_file()) {
    std::cerr << "musterd: store.standby: needs a file to wait for; set store.path (or --store) to the file of the "
                 "other musterd\n";
    return false;
  }
  if (!options.record.empty()) config->recording_file = options.record;
  if (options.standalone) config->kubernetes = false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App cli(kAbout, "musterd");
  cli.set_version_flag("--version", "musterd " MUSTER_VERSION);
  Options options;
  const CLI::App* check = Define(&cli, &options);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? 0 : 2;
  }

  if (options.print_config) {
    std::cout << muster::DocumentedDefaults();
    return 0;
  }
  if (check->parsed()) return CheckConfig(options.check_path);
  muster::Config config;
  if (!Configure(options, &config)) return 2;
  const bool demo = options.demo || options.demo_once;
  std::string demo_folder;
  if (demo) {
    config.kubernetes = false;
    config.log_format = "text";
    config.log_level = "warn";
    // The built-in cluster has no memory across runs; promises made to it must not reach the next run.
    demo_folder = "/tmp/muster-demo-XXXXXX";
    if (!options.store.empty() || mkdtemp(demo_folder.data()) == nullptr) demo_folder.clear();
    if (!demo_folder.empty()) config.store_path = demo_folder + "/muster.db";
  }
  const int ended = Serve(config, demo, options.demo_once);
  std::error_code error;
  if (!demo_folder.empty()) std::filesystem::remove_all(demo_folder, error);
  return ended;
}
