// The gRPC server: muster.v1, the standard health service and reflection (SPEC S-1, S-6).
#ifndef MUSTER_SERVICE_RPC_RPC_SERVER_H_
#define MUSTER_SERVICE_RPC_RPC_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "service/security/limits.h"
#include "service/security/tls_context.h"
#include "state/model/facts.h"

namespace muster {

class Access;
class Engine;
class EventLog;
class TraceLog;
class RpcGate;

// Parses an object in one of Kubernetes' formats into `facts`; InvalidArgument names the field.
using ManifestReader = std::function<absl::Status(absl::string_view json, int64_t now_ms, Facts* facts)>;

struct RpcOptions {
  std::string host = "127.0.0.1";
  int port = 0;         // 0: any free port
  std::string version;  // of the server
  TlsFiles tls;
  Access* access = nullptr;  // callers that are allowed; nullptr: all
  LimitOptions limits;
  int max_message_bytes = 4 << 20;
  size_t max_connections = 4'096;                            // at the same time; see ConnectionAcceptor
  absl::Duration stream_rights_checked = absl::Seconds(10);  // a PlaceGangs checks its caller again after this time
  absl::Duration snapshot_stall = absl::Seconds(10);         // a snapshot without a part for this long loses its permit
  bool facts_from_kubernetes = false;  // Kubernetes announces the facts: nodes, pods and submissions are refused here
  std::string queue_source_text;       // where queues are declared, as a phrase; empty: over this API
  ManifestReader manifests;            // nullptr: manifests are refused
  EventLog* events = nullptr;          // nullptr: no events
  TraceLog* traces = nullptr;          // nullptr: no traces
  // Called for every unary call, and for each call of a PlaceGangs: method, outcome, duration.
  std::function<void(absl::string_view method, absl::string_view outcome, absl::Duration took)> observer;
};

class RpcServer {
 public:
  RpcServer(Engine* engine, const RpcOptions& options);
  ~RpcServer();
  // Unavailable names the address that is in use, InvalidArgument the certificate that cannot be used.
  [[nodiscard]] absl::Status Start();
  // Sets the state of the standard health service; initially SERVING. No effect when the server does not run.
  void SetServing(bool serving);
  void Stop();
  [[nodiscard]] int port() const { return port_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int port_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_RPC_SERVER_H_
