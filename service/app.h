// Assembles musterd: the engine, its servers and, where configured, the Kubernetes connection. Not
// thread-safe.
#ifndef MUSTER_SERVICE_APP_H_
#define MUSTER_SERVICE_APP_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "service/config/config.h"
#include "service/security/file_limit.h"
#include "service/telemetry/metrics.h"
#include "support/sync.h"

namespace muster {

class Access;
class Actuator;
class Admission;
class ClusterFeed;
class DisruptionBudgets;
class EffectSink;
class Engine;
class EventLog;
class Extender;
class HttpListener;
class KubeClient;
class OtlpExporter;
class QueueObjects;
class Recorder;
class RpcServer;
class Store;
class TlsContext;
class TraceLog;

class App {
 public:
  // `effects` receives effects when Kubernetes is not configured (the built-in cluster); nullptr otherwise. `end` is
  // called when this process must end because another process took over its store. It must not block.
  App(Config config, EffectSink* effects, std::function<void()> end);
  ~App();

  // If standby is configured, waits while another process has the store. `pause` waits a moment and returns true to
  // give up; then the result is Cancelled. Until the store is free only the admin server listens, and it reports
  // standby.
  [[nodiscard]] absl::Status StandBy(const std::function<bool()>& pause);
  // Starts all parts. On an error the started parts are stopped again; the status names the part that failed and why.
  [[nodiscard]] absl::Status Start();
  // Graceful: answers held bind calls, closes the servers, and lets the engine finish the commands that it accepted.
  void Stop();

  [[nodiscard]] Engine& engine();
  [[nodiscard]] int extender_port() const;
  [[nodiscard]] int bind_port() const;
  [[nodiscard]] int admin_port() const;
  [[nodiscard]] int grpc_port() const;

 private:
  [[nodiscard]] absl::Status StartStore();
  [[nodiscard]] absl::Status StartKubernetes();
  // Raises the limit of open files and divides it among the listeners.
  void DivideConnections();
  [[nodiscard]] absl::Status StartAccess();
  [[nodiscard]] absl::Status CanServe() const;
  [[nodiscard]] absl::Status StartHttp();
  [[nodiscard]] absl::Status StartRpc();
  void StartTracing();
  [[nodiscard]] absl::Status MakeWebhook();
  // Queues that are declared at run time are stored.
  [[nodiscard]] absl::Status EnableQueueRecords(MachineSettings* machine) const;
  [[nodiscard]] absl::Status StartRecording(const MachineSettings& machine);
  void RunHealthUpdates();
  void StartFeed();
  [[nodiscard]] std::string NotReadyReason() const;
  void ReadGauges(const Metrics::SetGauge& set) const;

  Config config_;
  ConnectionLimits connections_;
  Metrics metrics_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<KubeClient> watch_client_;
  std::unique_ptr<KubeClient> write_client_;
  std::unique_ptr<Actuator> actuator_;
  std::unique_ptr<DisruptionBudgets> budgets_;  // nullptr: off
  EffectSink* effects_;
  const std::function<void()> end_;
  std::atomic<bool> fenced_{false};  // another process has the store: nothing may be sent
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<OtlpExporter> exporter_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<TraceLog> traces_;
  std::unique_ptr<Access> access_;
  std::shared_ptr<TlsContext> tls_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Extender> extender_;
  std::unique_ptr<QueueObjects> queue_objects_;
  std::unique_ptr<ClusterFeed> feed_;
  std::unique_ptr<HttpListener> extender_listener_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<HttpListener> webhook_listener_;
  std::unique_ptr<HttpListener> bind_listener_;
  std::unique_ptr<HttpListener> admin_listener_;
  std::unique_ptr<RpcServer> rpc_;
  std::thread health_;
  std::thread feed_starter_;
  Notification stopping_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_APP_H_
