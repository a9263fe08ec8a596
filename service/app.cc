#include "service/app.h"

#include <httplib.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "k8s-extender/apiserver/token_review.h"
#include "k8s-extender/dialects/dialects.h"
#include "service/http/admin.h"
#include "service/rpc/rpc_server.h"
#include "service/store/sqlite_store.h"
#include "state/persistence/facts.h"

namespace muster {
namespace {

// How long what is committed may take to be bound when the process is told to stop. With what else takes time - a
// connection that is being made, a store that fails, the doors - it is below the 30 s after which Kubernetes kills.
constexpr std::chrono::seconds kDrain{5};

constexpr absl::Duration kHealthLook = absl::Milliseconds(500);

constexpr size_t kTracesListed = 1'000;  // gangs

HttpListenerOptions ListenerOptions(const ListenAddress& address, size_t connections) {
  HttpListenerOptions options;
  options.host = address.host;
  options.port = address.port;
  options.max_connections = connections;
  return options;
}

}  // namespace

App::App(Config config, EffectSink* effects, std::function<void()> end)
    : config_(std::move(config)), effects_(effects), end_(std::move(end)) {}
App::~App() { Stop(); }

int App::grpc_port() const { return rpc_->port(); }

absl::Status App::StartStore() {
  if (config_.store_path == kInMemory) {
    store_ = std::make_unique<MemoryStore>();
    return absl::OkStatus();
  }
  const bool named = !config_.store_path.empty();
  const std::string path = named ? config_.store_path : kDefaultStore;
  absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({path, "", AnnouncedKinds()});
  // Nobody asked for a file: where none can be had, Muster serves as it did before there were any.
  if (!named && SqliteStore::CannotBeHad(store.status(), path)) {
    spdlog::warn("nothing is kept over a restart: {}; set store.path", std::string(store.status().message()));
    store_ = std::make_unique<MemoryStore>();
    return absl::OkStatus();
  }
  if (!store.ok()) return store.status();
  if ((*store)->format() < SqliteStore::kFormat) {
    spdlog::warn(
        "store {}: of format {}, as the version before wrote it and can read it; what format {} adds - answers by "
        "request id, gangs created over gRPC beside Kubernetes - is not kept until `musterctl store upgrade {}`, with "
        "musterd stopped",
        path, (*store)->format(), SqliteStore::kFormat, path);
  }
  store_ = *std::move(store);
  return absl::OkStatus();
}

absl::Status App::StandBy(const std::function<bool()>& pause) {
  if (!config_.standby) return absl::OkStatus();
  std::optional<HttpListener> admin;
  absl::Status had = StartStore();
  while (absl::IsAlreadyExists(had)) {
    if (!admin.has_value()) {
      spdlog::info("standing by: {}", std::string(had.message()));
      admin.emplace("listen.admin", ListenerOptions(config_.admin, 64));
      RegisterAdmin(
          &admin->server(),
          {[path = config_.store_path] {
             return absl::StrCat("standing by: another musterd has the store ", path, " and decides");
           },
           [this] { return metrics_.Scrape([](const Metrics::SetGauge& set) { set("muster_standby", "", "", 1); }); },
           [](const std::string&, const std::string&) { return TracesJson({}); }});
      if (absl::Status started = admin->Start(); !started.ok()) return started;
      config_.admin.port = admin->port();
      spdlog::info("musterd stands by: admin {}", admin->port());
    }
    if (pause()) return absl::CancelledError("stopped while standing by");
    had = StartStore();
  }
  if (admin.has_value()) admin->Stop();
  return had;
}

absl::Status App::StartKubernetes() {
  absl::StatusOr<KubeConfig> kube =
      config_.kubeconfig.empty() ? InClusterConfig() : LoadKubeConfig(config_.kubeconfig, config_.kube_context);
  if (!kube.ok()) return kube.status();
  watch_client_ = std::make_unique<KubeClient>(*kube);
  write_client_ = std::make_unique<KubeClient>(*kube);
  ActuatorOptions options;
  options.workers = config_.actuator_workers;
  options.calls_per_s = config_.calls_per_s;
  actuator_ = std::make_unique<Actuator>(write_client_.get(), options);
  effects_ = actuator_.get();
  return absl::OkStatus();
}

absl::Status App::StartAccess() {
  AccessOptions options = config_.access;
  options.client_certificates = !config_.tls.client_ca.empty();
  access_ = std::make_unique<Access>(options, [this](const std::string& token) -> absl::StatusOr<ReviewedUser> {
    absl::StatusOr<TokenOwner> owner = ReviewToken(write_client_.get(), token);
    if (!owner.ok()) return owner.status();
    return ReviewedUser{owner->user, owner->groups};
  });
  if (absl::Status started = access_->Start(); !started.ok()) return started;
  if (!config_.tls.enabled()) return absl::OkStatus();
  TlsFiles files = config_.tls;
  files.client_required = config_.access.tokens_file.empty() && !config_.access.token_review;
  tls_ = std::make_shared<TlsContext>(files);
  return tls_->Load();
}

absl::Status App::StartHttp() {
  extender_ =
      std::make_unique<Extender>(engine_.get(), [this](absl::string_view verb, absl::string_view outcome,
                                                       absl::Duration took) { metrics_.Decided(verb, outcome, took); });
  extender_->GroupBy(config_.owner_kinds);
  HttpListenerOptions decisions = ListenerOptions(config_.extender, 256);
  HttpListenerOptions bind = ListenerOptions(config_.bind, static_cast<size_t>(config_.machine.max_holds) + 1024);
  bind.one_request_per_connection = true;
  if (config_.tls_extender) {
    decisions.tls = bind.tls = tls_;
    decisions.access = bind.access = access_.get();
  }
  extender_listener_ = std::make_unique<HttpListener>("listen.extender", decisions);
  bind_listener_ = std::make_unique<HttpListener>("listen.bind", bind);
  HttpListenerOptions admin = ListenerOptions(config_.admin, 64);
  admin.max_body_bytes = 0;  // it is only read
  admin_listener_ = std::make_unique<HttpListener>("listen.admin", admin);
  extender_->RegisterDecisions(&extender_listener_->server());
  extender_->RegisterBind(&bind_listener_->server());
  RegisterAdmin(&admin_listener_->server(),
                {[this] { return NotReady(); },
                 [this] { return metrics_.Scrape([this](const Metrics::SetGauge& set) { ReadGauges(set); }); },
                 [this](const std::string& gang, const std::string& pod) {
                   return gang.empty() && pod.empty() ? TracesJson(traces_->Gangs(kTracesListed))
                                                      : TraceJson(gang, traces_->Of(gang, pod));
                 }});
  if (absl::Status webhook = MakeWebhook(); !webhook.ok()) return webhook;
  for (HttpListener* listener :
       {admin_listener_.get(), extender_listener_.get(), bind_listener_.get(), webhook_listener_.get()}) {
    if (listener == nullptr) continue;
    if (absl::Status started = listener->Start(); !started.ok()) return started;
  }
  return absl::OkStatus();
}

absl::Status App::MakeWebhook() {
  if (config_.webhook.host.empty()) return absl::OkStatus();
  TlsFiles files;
  files.certificate = config_.webhook_certificate;
  files.key = config_.webhook_key;
  files.client_required = false;
  const auto tls = std::make_shared<TlsContext>(files);
  if (absl::Status loaded = tls->Load(); !loaded.ok()) return loaded;
  HttpListenerOptions options = ListenerOptions(config_.webhook, 256);
  options.tls = tls;
  admission_ = std::make_unique<Admission>(
      AdmissionOptions{config_.machine.scheduler_names, config_.owner_kinds, config_.webhook_exempt},
      [this](absl::string_view verb, absl::string_view outcome, absl::Duration took) {
        metrics_.Decided(verb, outcome, took);
      });
  webhook_listener_ = std::make_unique<HttpListener>("webhook.listen", options);
  admission_->Register(&webhook_listener_->server());
  return absl::OkStatus();
}

// Before the store is taken over: whoever cannot serve must not end the one that does.
absl::Status App::CanServe() const {
  for (const auto& [name, address] : {std::pair<const char*, const ListenAddress&>{"listen.admin", config_.admin},
                                      {"listen.extender", config_.extender},
                                      {"listen.bind", config_.bind},
                                      {"listen.grpc", config_.grpc},
                                      {"webhook.listen", config_.webhook}}) {
    if (address.host.empty()) continue;
    if (absl::Status can = CanListen(name, address.host, address.port); !can.ok()) return can;
  }
  return absl::OkStatus();
}

absl::Status App::StartRpc() {
  RpcOptions options;
  options.host = config_.grpc.host;
  options.port = config_.grpc.port;
  options.tls = config_.tls;
  options.tls.client_required = config_.access.tokens_file.empty() && !config_.access.token_review;
  options.access = access_.get();
  options.limits = config_.limits;
  options.max_message_bytes = config_.max_message_bytes;
  options.facts_elsewhere = config_.kubernetes;
  if (config_.queue_source == "config") options.queues_from = "the configuration (queues.source: config)";
  if (config_.queue_source == "kubernetes") options.queues_from = "Kubernetes (queues.source: kubernetes)";
  options.manifests = &ReadManifest;
  options.events = events_.get();
  options.traces = traces_.get();
  options.observer = [this](absl::string_view method, absl::string_view outcome, absl::Duration took) {
    metrics_.Decided(method, outcome, took);
  };
  rpc_ = std::make_unique<RpcServer>(engine_.get(), options);
  return rpc_->Start();
}

absl::Status App::Start() {
  if (store_ == nullptr) {
    if (absl::Status started = StartStore(); !started.ok()) return started;
  }
  if (config_.kubernetes) {
    if (absl::Status started = StartKubernetes(); !started.ok()) return started;
  }
  if (absl::Status started = StartAccess(); !started.ok()) return started;
  if (absl::Status free = CanServe(); !free.ok()) return free;
  events_ = std::make_unique<EventLog>(effects_);
  EngineOptions engine_options;
  engine_options.mailbox_capacity = static_cast<size_t>(config_.mailbox_capacity);
  StartTracing();
  engine_options.spans = config_.traces_kept > 0 || exporter_ != nullptr ? traces_.get() : nullptr;
  engine_options.first_effect = [this](int64_t number) { events_->ContinueAt(number); };
  engine_options.on_fenced = [this] {
    fenced_ = true;
    end_();
  };
  MachineSettings machine = config_.machine;
  if (config_.kubernetes) machine.fact_sources = {"Kubernetes"};  // until the feed knows what there is
  machine.keeps_facts = !config_.kubernetes && store_->slow();    // a store in memory is gone with the process
  machine.keeps_created = config_.kubernetes && store_->format() >= Store::kFormatOfCreated;
  if (absl::Status kept = KeepQueues(&machine); !kept.ok()) return kept;
  if (absl::Status started = StartRecording(machine); !started.ok()) return started;
  engine_options.recorder = recorder_.get();
  engine_ = std::make_unique<Engine>(machine, engine_options, store_.get(), events_.get());
  if (absl::Status started = engine_->Start(); !started.ok()) return started;
  // Before any door, so that none says "ready" of a cluster that nobody reads yet.
  if (config_.kubernetes) {
    feed_ = std::make_unique<ClusterFeed>(watch_client_.get(), engine_.get());
    feed_->GroupBy(config_.owner_kinds);
    if (config_.queue_source == "kubernetes") {
      queue_objects_ = std::make_unique<QueueObjects>(write_client_.get(), engine_.get(), config_.machine.queues);
      feed_->WithQueues(queue_objects_.get());
    }
  }
  if (absl::Status started = StartHttp(); !started.ok()) return started;
  if (absl::Status started = StartRpc(); !started.ok()) return started;
  health_ = std::thread([this] { TellHealth(); });
  if (actuator_ == nullptr) return absl::OkStatus();
  actuator_->Start(engine_.get());
  engine_->Listen([this](const ViewChange& change) {
    for (const auto& [key, gang] : *change.gangs) {
      if (gang != nullptr) {
        actuator_->UpdateStatus(*gang);
      } else {
        actuator_->ForgetStatus(key);
      }
    }
  });
  feed_starter_ = std::thread([this] { StartFeed(); });
  return absl::OkStatus();
}

absl::Status App::KeepQueues(MachineSettings* machine) const {
  if (config_.queue_source == "config") return absl::OkStatus();
  machine->keeps_queues = store_->format() >= Store::kFormatOfQueues;
  if (machine->keeps_queues || !store_->slow()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "queues.source: ", config_.queue_source, " keeps queues in the store, and ", config_.store_path, " is of format ",
      store_->format(), ": run `musterctl store upgrade ", config_.store_path, "` first"));
}

void App::StartTracing() {
  if (!config_.otlp_url.empty()) {
    OtlpOptions otlp;
    otlp.url = config_.otlp_url;
    otlp.sample_percent = config_.trace_percent;
    otlp.version = MUSTER_VERSION;
    std::array<char, 256> host{};
    if (gethostname(host.data(), host.size() - 1) == 0) otlp.instance = host.data();
    exporter_ = std::make_unique<OtlpExporter>(otlp);
  }
  traces_ = std::make_unique<TraceLog>(static_cast<size_t>(config_.traces_kept), exporter_.get());
}

absl::Status App::StartRecording(const MachineSettings& machine) {
  if (config_.recording_file.empty()) return absl::OkStatus();
  RecorderOptions options;
  options.path = config_.recording_file;
  options.max_bytes = int64_t{config_.recording_mib} << 20;
  options.version = MUSTER_VERSION;
  options.settings = machine;
  absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Open(std::move(options));
  if (!recorder.ok()) return recorder.status();
  recorder_ = *std::move(recorder);
  return absl::OkStatus();
}

// gRPC's health service says what /readyz says; so does a stop, before anything is drained.
void App::TellHealth() {
  bool told = true;  // as gRPC begins
  do {
    const bool ready = NotReady().empty();
    if (ready != told) rpc_->SetServing(ready);
    told = ready;
  } while (!stopping_.WaitForNotificationWithTimeout(kHealthLook));
  rpc_->SetServing(false);
}

// The API server may come up after us: keep asking, not ready meanwhile.
void App::StartFeed() {
  absl::Duration pause = absl::Milliseconds(200);
  for (int attempt = 1; !stopping_.HasBeenNotified(); ++attempt) {
    const absl::Status started = feed_->Start();
    if (started.ok()) return;
    spdlog::warn("API server not reachable (attempt {}): {}", attempt, std::string(started.message()));
    stopping_.WaitForNotificationWithTimeout(pause);
    pause = std::min(pause * 2, absl::Seconds(5));
  }
}

void App::Stop() {
  if (stopping_.HasBeenNotified()) return;
  stopping_.Notify();
  if (health_.joinable()) health_.join();
  if (watch_client_ != nullptr) watch_client_->Stop();
  if (feed_starter_.joinable()) feed_starter_.join();
  if (feed_ != nullptr) feed_->Stop();
  // What is committed is bound and its callers are told so (K-4). What the API server does not take in time is not sent
  // any more: its record is there, and the next musterd finishes it (K-13).
  if (engine_ != nullptr && !fenced_) engine_->Drain(std::chrono::steady_clock::now() + kDrain);
  if (actuator_ != nullptr) actuator_->Halt();
  if (write_client_ != nullptr) write_client_->Stop();
  if (queue_objects_ != nullptr) queue_objects_->Stop();  // what it was writing has ended
  if (actuator_ != nullptr) actuator_->Stop();
  if (engine_ != nullptr) engine_->Stop();
  if (access_ != nullptr) access_->Stop();
  if (rpc_ != nullptr) rpc_->Stop();
  for (HttpListener* listener :
       {webhook_listener_.get(), bind_listener_.get(), extender_listener_.get(), admin_listener_.get()}) {
    if (listener != nullptr) listener->Stop();
  }
  if (exporter_ != nullptr) exporter_->Stop();
  if (recorder_ != nullptr) recorder_->Stop();
}

std::string App::NotReady() const {
  if (stopping_.HasBeenNotified()) return "stopping";
  if (const std::string trouble = engine_->stats().store_trouble; !trouble.empty()) {
    return absl::StrCat("the store takes no commit: ", trouble);
  }
  if (feed_ != nullptr && !feed_->synced()) return "the cluster has not been read yet";
  return "";
}

namespace {

// Quantities as Prometheus has them: CPU in cores, all else as it is.
double Natural(const std::string& resource, int64_t amount) {
  return resource == "cpu" ? static_cast<double>(amount) / 1000 : static_cast<double>(amount);
}

void ReadQueueGauges(Engine* engine, const Metrics::SetGauge& set) {
  QueueTree tree;
  std::vector<Queues::Standing> standings;
  const absl::Status read = engine->Peek([&](const Machine& machine) {
    tree = machine.queues().tree();
    standings = machine.queues().Standings();
  });
  if (!read.ok()) return;  // it is busy, or stopping: no figures rather than old ones
  for (QueueId id = 0; id < tree.size(); ++id) {
    const QueueSpec& spec = tree.at(id).spec;
    const Queues::Standing& standing = standings[static_cast<size_t>(id)];
    const std::pair<const char*, const ResourceList*> lists[] = {{"muster_queue_quota", &spec.quota},
                                                                 {"muster_queue_limit", &spec.limit},
                                                                 {"muster_queue_share", &standing.share},
                                                                 {"muster_queue_used", &standing.used},
                                                                 {"muster_queue_waiting", &standing.waiting}};
    for (const auto& [name, list] : lists) {
      for (const auto& [resource, amount] : *list) {
        set(name, {{"queue", spec.name}, {"resource", resource}}, Natural(resource, amount));
      }
    }
    set("muster_queue_running_gangs", "queue", spec.name, standing.running_gangs);
    set("muster_queue_waiting_gangs", "queue", spec.name, standing.waiting_gangs);
  }
}

}  // namespace

void App::ReadGauges(const Metrics::SetGauge& set) const {
  const std::shared_ptr<const ReadView> view = engine_->view();
  for (size_t phase = 0; phase < kGangPhases; ++phase) {
    set("muster_gangs", "phase", ToString(static_cast<GangPhase>(phase)), static_cast<double>(view->phases[phase]));
  }
  set("muster_nodes", "", "", static_cast<double>(view->present_nodes));
  set("muster_stale_nodes", "", "", static_cast<double>(view->stale_nodes));
  for (size_t kind = 0; kind < kFactKinds; ++kind) {
    set("muster_refused_facts_total", "kind", ToString(static_cast<FactKind>(kind)),
        static_cast<double>(view->refused[kind]));
  }
  set("muster_pods", "", "", static_cast<double>(view->pods));
  ReadQueueGauges(engine_.get(), set);
  set("muster_held_binds", "", "", view->held_binds);
  set("muster_planner_placed", "", "", view->planning.placed);
  set("muster_planner_tries", "", "", view->planning.tries);
  set("muster_planner_given_up", "", "", view->planning.given_up);
  set("muster_planner_kept", "", "", view->planning.kept);
  set("muster_promised_holds", "", "", view->promised_holds);
  const EngineStats engine = engine_->stats();
  set("muster_mailbox_depth", "", "", static_cast<double>(engine.mailbox_depth));
  set("muster_commands_total", "", "", static_cast<double>(engine.commands));
  set("muster_overloaded_total", "", "", static_cast<double>(engine.rejected));
  set("muster_standby", "", "", 0);
  set("muster_store_failing", "", "", engine.store_trouble.empty() ? 0 : 1);
  set("muster_store_waiting", "", "", static_cast<double>(engine.store_waiting));
  set("muster_store_commits_total", "", "", static_cast<double>(engine.commits));
  set("muster_trace_spans_total", "", "", static_cast<double>(traces_->ended()));
  set("muster_trace_spans_skipped_total", "", "", static_cast<double>(engine.spans_skipped));
  if (exporter_ != nullptr) {
    const OtlpExporter::Stats stats = exporter_->stats();
    set("muster_trace_spans_exported_total", "", "", static_cast<double>(stats.exported));
    set("muster_trace_spans_dropped_total", "", "", static_cast<double>(stats.dropped));
  }
  if (recorder_ != nullptr) {
    const RecorderStats stats = recorder_->stats();
    set("muster_recording_failing", "", "", stats.trouble.empty() ? 0 : 1);
    set("muster_recording_bytes_total", "", "", static_cast<double>(stats.bytes));
    set("muster_recording_lost_commands_total", "", "", static_cast<double>(stats.lost));
  }
  if (actuator_ != nullptr) {
    const ActuatorStats stats = actuator_->stats();
    set("muster_bindings_total", "result", "bound", static_cast<double>(stats.bound));
    set("muster_bindings_total", "result", "retried", static_cast<double>(stats.bind_retries));
    set("muster_bindings_total", "result", "refused", static_cast<double>(stats.bind_refused));
    set("muster_calls_total", "", "", static_cast<double>(stats.calls));
    set("muster_effects_waiting", "", "", static_cast<double>(stats.waiting));
    set("muster_effects_failed_total", "", "", static_cast<double>(stats.failed));
    set("muster_effect_retries_total", "", "", static_cast<double>(stats.retries));
    set("muster_events_dropped_total", "", "", static_cast<double>(stats.dropped_events));
  }
  if (feed_ == nullptr) return;
  const auto now_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
  for (const auto& [path, stats] : feed_->stats()) {
    set("muster_informer_synced", "path", path, stats.synced ? 1 : 0);
    set("muster_informer_objects", "path", path, static_cast<double>(stats.objects));
    set("muster_informer_errors_total", "path", path, static_cast<double>(stats.errors));
    set("muster_informer_lag_seconds", "path", path,
        stats.synced ? static_cast<double>(now_ms - stats.last_contact_ms) / 1000 : 0);
  }
}

}  // namespace muster
