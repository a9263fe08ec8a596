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
#include "k8s-extender/actuator/actuator.h"
#include "k8s-extender/actuator/disruption_budgets.h"
#include "k8s-extender/apiserver/client.h"
#include "k8s-extender/apiserver/cluster_feed.h"
#include "k8s-extender/apiserver/token_review.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/webhook/admission.h"
#include "k8s-extender/webhook/extender.h"
#include "service/engine/engine.h"
#include "service/engine/event_log.h"
#include "service/http/admin.h"
#include "service/http/http_listener.h"
#include "service/recorder/recorder.h"
#include "service/rpc/rpc_server.h"
#include "service/security/access.h"
#include "service/security/file_limit.h"
#include "service/security/tls_context.h"
#include "service/store/sqlite_store.h"
#include "service/telemetry/free_memory.h"
#include "service/tracing/otlp_exporter.h"
#include "service/tracing/trace_log.h"
#include "state/persistence/records.h"

namespace muster {
namespace {

// At a stop, the time in which committed bindings may still be sent. Together with the rest of a stop (a connection
// that is being made, a failing store, the servers) it stays below the 30 s after which Kubernetes kills the process.
constexpr std::chrono::seconds kDrain{5};

constexpr absl::Duration kHealthPollInterval = absl::Milliseconds(500);

constexpr size_t kTracesListed = 1'000;  // gangs

// The largest bodies: a binding's few names, and a pod in its review (the API server accepts requests of 3 MiB).
constexpr size_t kMaxBinding = 64 << 10;
constexpr size_t kMaxReview = 4 << 20;

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

Engine& App::engine() { return *engine_; }
int App::extender_port() const { return extender_listener_->port(); }
int App::bind_port() const { return bind_listener_->port(); }
int App::admin_port() const { return admin_listener_->port(); }
int App::grpc_port() const { return rpc_->port(); }

absl::Status App::StartStore() {
  if (config_.store_path == kInMemory) {
    store_ = std::make_unique<MemoryStore>();
    return absl::OkStatus();
  }
  const bool named = !config_.store_path.empty();
  const std::string path = named ? config_.store_path : kDefaultStore;
  absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({path, "", SnapshotKinds()});
  // No file was configured. If the default file cannot be made, Muster runs without a file.
  if (!named && SqliteStore::IsFileUnavailable(store.status(), path)) {
    spdlog::warn("records are lost at a restart: {}; set store.path", std::string(store.status().message()));
    store_ = std::make_unique<MemoryStore>();
    return absl::OkStatus();
  }
  if (!store.ok()) return store.status();
  if ((*store)->format() < SqliteStore::kFormat) {
    spdlog::warn(
        "store {}: format {}, which the previous version can read; what format {} adds - answers by "
        "request id, gangs created over gRPC beside Kubernetes - is not stored until `musterctl store upgrade {}`, "
        "with "
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
      spdlog::info("on standby: {}", std::string(had.message()));
      admin.emplace("listen.admin", ListenerOptions(config_.admin, 64));
      RegisterAdmin(
          &admin->server(),
          {[path = config_.store_path] {
             return absl::StrCat("on standby: another musterd has the store ", path, " and decides");
           },
           [this] { return metrics_.Scrape([](const Metrics::SetGauge& set) { set("muster_standby", "", "", 1); }); },
           [](const std::string&, const std::string&) { return TracesJson({}); }});
      if (absl::Status started = admin->Start(); !started.ok()) return started;
      config_.admin.port = admin->port();
      spdlog::info("musterd is on standby: admin {}", admin->port());
    }
    if (pause()) return absl::CancelledError("stopped during standby");
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
  options.calls_per_second = config_.calls_per_second;
  actuator_ = std::make_unique<Actuator>(write_client_.get(), options);
  effects_ = actuator_.get();
  if (config_.disruption_budgets) {
    budgets_ = std::make_unique<DisruptionBudgets>(write_client_.get(), DisruptionBudgetOptions());
  }
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
  files.client_required = NeedsClientCertificate(config_);
  tls_ = std::make_shared<TlsContext>(files);
  return tls_->Load();
}

absl::Status App::StartHttp() {
  extender_ = std::make_unique<Extender>(
      engine_.get(), [this](absl::string_view verb, absl::string_view outcome, absl::Duration took) {
        metrics_.RecordDecision(verb, outcome, took);
      });
  extender_->SetOwnerKinds(config_.owner_kinds);
  if (feed_ != nullptr) extender_->AnnounceUnknownPods([this](const Json& pod) { return feed_->OfferPod(pod); });
  HttpListenerOptions decisions = ListenerOptions(config_.extender, connections_.extender);
  HttpListenerOptions bind = ListenerOptions(config_.bind, connections_.bind);
  bind.one_request_per_connection = true;
  bind.max_body_bytes = kMaxBinding;
  bind.body_memory += connections_.bind << 10;  // a held call keeps its body
  if (config_.tls_extender) {
    decisions.tls = bind.tls = tls_;
    decisions.access = bind.access = access_.get();
  }
  extender_listener_ = std::make_unique<HttpListener>("listen.extender", decisions);
  bind_listener_ = std::make_unique<HttpListener>("listen.bind", bind);
  HttpListenerOptions admin = ListenerOptions(config_.admin, connections_.admin);
  admin.max_body_bytes = 0;  // the admin server is read-only
  admin_listener_ = std::make_unique<HttpListener>("listen.admin", admin);
  extender_->RegisterDecisions(&extender_listener_->server());
  extender_->RegisterBind(&bind_listener_->server());
  RegisterAdmin(&admin_listener_->server(),
                {[this] { return NotReadyReason(); },
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
  HttpListenerOptions options = ListenerOptions(config_.webhook, connections_.webhook);
  options.tls = tls;
  options.max_body_bytes = kMaxReview;
  options.body_memory = 4 * kMaxReview;
  admission_ =
      std::make_unique<Admission>(AdmissionOptions{config_.machine.scheduler_names, config_.owner_kinds,
                                                   config_.webhook_exempt, config_.disruption_budgets},
                                  [this](absl::string_view verb, absl::string_view outcome, absl::Duration took) {
                                    metrics_.RecordDecision(verb, outcome, took);
                                  });
  webhook_listener_ = std::make_unique<HttpListener>("webhook.listen", options);
  admission_->Register(&webhook_listener_->server());
  return absl::OkStatus();
}

// Runs before the take-over of the store: a process that cannot serve must not end the one that serves.
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
  options.tls.client_required = NeedsClientCertificate(config_);
  options.max_connections = connections_.grpc;
  options.access = access_.get();
  options.limits = config_.limits;
  options.max_message_bytes = config_.max_message_bytes;
  options.facts_from_kubernetes = config_.kubernetes;
  options.version = MUSTER_VERSION;
  if (config_.queue_source == "config") options.queue_source_text = "the configuration (queues.source: config)";
  if (config_.queue_source == "kubernetes") options.queue_source_text = "Kubernetes (queues.source: kubernetes)";
  options.manifests = &ReadManifest;
  options.events = events_.get();
  options.traces = traces_.get();
  options.observer = [this](absl::string_view method, absl::string_view outcome, absl::Duration took) {
    metrics_.RecordDecision(method, outcome, took);
  };
  rpc_ = std::make_unique<RpcServer>(engine_.get(), options);
  return rpc_->Start();
}

void App::DivideConnections() {
  const size_t files = RaiseFileLimit();
  connections_ = DivideFiles(files, config_.machine.max_holds);
  if (connections_.max_holds < config_.machine.max_holds) {
    spdlog::warn(
        "the limit of open files is {}: {} binds can be held at once instead of {} (holds.max), and {} gRPC "
        "connections "
        "be open; raise the limit (ulimit -n, or LimitNOFILE of systemd)",
        files, connections_.max_holds, config_.machine.max_holds, connections_.grpc);
  }
  config_.machine.max_holds = connections_.max_holds;
}

absl::Status App::Start() {
  DivideConnections();
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
  if (config_.kubernetes) machine.fact_sources = {"Kubernetes"};            // until the feed has found the sources
  machine.persist_facts = !config_.kubernetes && store_->waits_for_disk();  // a store in memory ends with the process
  machine.persist_created = config_.kubernetes && store_->format() >= Store::kFormatOfCreated;
  if (absl::Status enabled = EnableQueueRecords(&machine); !enabled.ok()) return enabled;
  if (absl::Status started = StartRecording(machine); !started.ok()) return started;
  engine_options.recorder = recorder_.get();
  engine_ = std::make_unique<Engine>(machine, engine_options, store_.get(), events_.get());
  if (absl::Status started = engine_->Start(); !started.ok()) return started;
  // Before any server: no server may report ready while the cluster has not been read.
  if (config_.kubernetes) {
    feed_ = std::make_unique<ClusterFeed>(watch_client_.get(), engine_.get());
    feed_->SetOwnerKinds(config_.owner_kinds);
    if (config_.queue_source == "kubernetes") {
      queue_objects_ = std::make_unique<QueueObjects>(write_client_.get(), engine_.get(), config_.machine.queues);
      feed_->WithQueues(queue_objects_.get());
    }
  }
  if (absl::Status started = StartHttp(); !started.ok()) return started;
  if (absl::Status started = StartRpc(); !started.ok()) return started;
  health_ = std::thread([this] { RunHealthUpdates(); });
  if (actuator_ == nullptr) return absl::OkStatus();
  actuator_->Start(engine_.get());
  engine_->AddListener([this](const ViewChange& change) {
    for (const auto& [key, gang] : *change.gangs) {
      if (gang != nullptr) {
        actuator_->UpdateStatus(*gang);
        if (budgets_ != nullptr) budgets_->Update(*gang);
      } else {
        actuator_->RemoveStatus(key);
        if (budgets_ != nullptr) budgets_->Remove(key);
      }
    }
  });
  feed_starter_ = std::thread([this] { StartFeed(); });
  return absl::OkStatus();
}

absl::Status App::EnableQueueRecords(MachineSettings* machine) const {
  if (config_.queue_source == "config") return absl::OkStatus();
  machine->persist_queues = store_->format() >= Store::kFormatOfQueues;
  if (machine->persist_queues || !store_->waits_for_disk()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "queues.source: ", config_.queue_source, " needs the store to save queues, and ", config_.store_path,
      " is of format ", store_->format(), ": run `musterctl store upgrade ", config_.store_path, "` first"));
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

// gRPC's health service follows /readyz. It also reports a stop before anything is drained. The allocator's free memory
// is looked after here as well.
void App::RunHealthUpdates() {
  bool was_ready = true;  // gRPC's initial state
  bool budgets_begun = budgets_ == nullptr;
  do {
    const bool ready = NotReadyReason().empty();
    if (ready != was_ready) rpc_->SetServing(ready);
    was_ready = ready;
    if (ready && !budgets_begun) budgets_->Start();
    budgets_begun = budgets_begun || ready;
    ReleaseFreeMemory();
  } while (!stopping_.WaitForNotificationWithTimeout(kHealthPollInterval));
  rpc_->SetServing(false);
}

// The API server may start later than musterd: retry, and report not ready meanwhile.
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
  // Committed pods are bound and their callers are answered (K-4). A binding that the API server does not take in time
  // is no longer sent: its record is durable, and the next musterd completes it (K-13).
  if (engine_ != nullptr && !fenced_) engine_->Drain(std::chrono::steady_clock::now() + kDrain);
  if (actuator_ != nullptr) actuator_->Halt();
  if (write_client_ != nullptr) write_client_->Stop();
  if (queue_objects_ != nullptr) queue_objects_->Stop();  // its last write has ended
  if (budgets_ != nullptr) budgets_->Stop();
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

std::string App::NotReadyReason() const {
  if (stopping_.HasBeenNotified()) return "stopping";
  if (!CanOpenFile()) return "no connection can be accepted: as many files are open as the process may open";
  if (const std::string trouble = engine_->stats().store_error; !trouble.empty()) {
    return absl::StrCat("the store refuses commits: ", trouble);
  }
  return feed_ != nullptr ? feed_->NotReadyReason() : "";
}

}  // namespace muster
