// All settings of an operator: one YAML file plus flags, read into one struct and validated as a whole (SPEC S-7).
#ifndef MUSTER_SERVICE_CONFIG_CONFIG_H_
#define MUSTER_SERVICE_CONFIG_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "service/security/access.h"
#include "service/security/limits.h"
#include "service/security/tls_context.h"
#include "state/machine/settings.h"

namespace muster {

// store.path: nothing is stored across a restart.
inline constexpr char kInMemory[] = ":memory:";
// Relative to the working directory.
inline constexpr char kDefaultStore[] = "muster.db";

// tls.withoutClientCertificate: the risk of a gRPC listener that every client of the network reaches.
inline constexpr char kStrangersAccepted[] = "strangers may use up memory";

struct ListenAddress {
  std::string host = "127.0.0.1";
  int port = 0;
};

struct Config {
  Config() {
    machine.queues.starvation_limit_ms = kStarvationLimitMs;
    machine.queues.access = AccessPolicy::kListed;
  }
  static constexpr int64_t kStarvationLimitMs = 1'800'000;

  // log
  std::string log_level = "info";
  std::string log_format = "json";
  // Listeners. Without TLS and a required credential, the gRPC and extender servers listen on loopback only. The admin
  // server is read-only and may listen on any address.
  ListenAddress admin{"127.0.0.1", 9090};
  ListenAddress grpc{"127.0.0.1", 9091};
  ListenAddress extender{"127.0.0.1", 8888};
  ListenAddress bind{"127.0.0.1", 8889};
  // tls, auth and limits
  TlsFiles tls;
  bool tls_extender = false;
  bool strangers_accepted = false;  // gRPC clients need no certificate away from loopback; see kStrangersAccepted
  AccessOptions access;
  LimitOptions limits;
  int max_message_bytes = 4 << 20;
  // kubernetes
  bool kubernetes = true;
  std::string kubeconfig;  // empty: in-cluster
  std::string kube_context;
  int actuator_workers = 16;
  double calls_per_second = 1000;
  bool disruption_budgets = false;
  // webhook
  ListenAddress webhook{"", 0};     // no host: off
  std::string webhook_certificate;  // PEM
  std::string webhook_key;          // PEM
  std::vector<std::string> webhook_exempt = {"kube-system", "muster-system"};
  // store
  std::string store_path;  // empty: kDefaultStore if it can be made, otherwise nothing is stored
  bool standby = false;    // wait for the store while another musterd has it
  // Whether a store file is configured.
  [[nodiscard]] bool has_store_file() const { return !store_path.empty() && store_path != kInMemory; }
  // tracing
  int traces_kept = 50'000;  // number of spans; 0: no spans are made, unless they are exported
  std::string otlp_url;      // of a collector; empty: no export
  int trace_percent = 100;   // percentage of traces that are exported
  // recording
  std::string recording_file;  // empty: no recording
  int recording_mib = 256;     // total size of all files
  // gangs, queues and holds
  std::vector<std::string> owner_kinds;     // kinds of owners that declare gangs (D-7)
  std::string queue_source = "config";      // config, api or kubernetes
  std::vector<std::string> queue_problems;  // problems of queues.tree, as it is written
  MachineSettings machine;
  int mailbox_capacity = 16'384;
};

// Parses YAML text over the defaults. The error lists every problem, one per line: field, value, expected value.
[[nodiscard]] absl::StatusOr<Config> ParseConfig(const std::string& yaml);
[[nodiscard]] absl::StatusOr<Config> LoadConfig(const std::string& path);
// Whether only processes of this machine reach the address. A host name other than localhost may be anything.
[[nodiscard]] bool IsLoopback(const std::string& host);
// Whether gRPC clients must present a certificate.
[[nodiscard]] bool NeedsClientCertificate(const Config& config);
// Checks a configuration as a whole. Returns every problem; empty: none.
[[nodiscard]] std::vector<std::string> FindProblems(const Config& config);
// What the configuration declares in vain, one sentence each. Empty: nothing. REQUIRES: FindProblems(config) is empty.
[[nodiscard]] std::vector<std::string> FindWarnings(const Config& config);
// Checks the files that the configuration names: certificates, keys, tokens. Returns every problem; empty: none.
[[nodiscard]] std::vector<std::string> FileProblems(const Config& config);
// Parses "host:port". InvalidArgument: any other text.
[[nodiscard]] absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);
// Returns every key with its default and meaning, as YAML: the output of `musterd --print-config`.
[[nodiscard]] std::string DocumentedDefaults();

}  // namespace muster

#endif  // MUSTER_SERVICE_CONFIG_CONFIG_H_
