// Checks of a configuration as a whole, and of the files that it names.
#include <arpa/inet.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "k8s-extender/dialects/owners.h"
#include "service/config/config.h"
#include "service/config/queues.h"
#include "service/tracing/otlp_exporter.h"

namespace muster {
namespace {

bool HasTokens(const Config& config) { return !config.access.tokens_file.empty() || config.access.token_review; }

void FindQueueProblems(const Config& config, std::vector<std::string>* out) {
  if (out->empty()) {
    for (const QueueProblem& problem : ValidateQueues(config.machine.queues)) {
      out->push_back(absl::StrCat("queues.tree: ", ToString(problem)));
    }
  }
  if (config.queue_source != "config" && !config.machine.queues.queues.empty()) {
    out->push_back(absl::StrCat("queues.tree: queues come from one place; with queues.source: ", config.queue_source,
                                " expected none here"));
  }
  for (const std::string& kind : config.owner_kinds) {
    if (FindOwnerKind(kind) != nullptr) continue;
    const auto name = [](std::string* text, const OwnerKind& each) { absl::StrAppend(text, each.kind); };
    out->push_back(
        absl::StrCat("gangs.byOwner: \"", kind, "\"; expected one of ", absl::StrJoin(OwnerKinds(), ", ", name)));
  }
  if (config.queue_source == "kubernetes" && !config.kubernetes) {
    out->emplace_back("queues.source: kubernetes needs kubernetes.enabled: true; expected config or api");
  }
}

void FindListenerProblems(const Config& config, std::vector<std::string>* out) {
  if (!config.webhook.host.empty() && (config.webhook_certificate.empty() || config.webhook_key.empty())) {
    out->emplace_back("webhook.listen: the API server calls it over TLS; set webhook.certFile and webhook.keyFile");
  }
  // The gRPC library takes memory from what strangers send before the caller can be refused
  // (docs/project/decisions/0036).
  const bool tls = config.tls.enabled();
  const bool identified = !config.tls.client_ca.empty() || HasTokens(config);
  if (!IsLoopback(config.grpc.host) &&
      !(tls && identified && (config.strangers_accepted || NeedsClientCertificate(config)))) {
    out->push_back(absl::StrCat("listen.grpc: \"", config.grpc.host,
                                "\" is not a loopback address; expected 127.0.0.1, or tls.certFile and "
                                "tls.clientCaFile, or tls.certFile, one of auth.tokensFile and auth.tokenReview, and "
                                "tls.withoutClientCertificate: ",
                                kStrangersAccepted));
  }
  for (const auto& [name, address] : {std::pair{"listen.extender", config.extender}, {"listen.bind", config.bind}}) {
    if (IsLoopback(address.host) || (tls && config.tls_extender && identified)) continue;
    out->push_back(absl::StrCat(name, ": \"", address.host,
                                "\" is not a loopback address; expected 127.0.0.1, or tls.certFile, tls.extender, and "
                                "one of tls.clientCaFile, auth.tokensFile, auth.tokenReview"));
  }
  const std::pair<const char*, const ListenAddress*> listeners[] = {{"listen.admin", &config.admin},
                                                                    {"listen.grpc", &config.grpc},
                                                                    {"listen.extender", &config.extender},
                                                                    {"listen.bind", &config.bind}};
  for (const auto& [name, address] : listeners) {
    for (const auto& [other, taken] : listeners) {
      if (other == name) break;
      if (address->port == 0 || address->port != taken->port || address->host != taken->host) continue;
      out->push_back(absl::StrCat(name, ": ", address->host, ":", address->port, " is the address of ", other, " too"));
    }
  }
}

void FindAccessProblems(const Config& config, std::vector<std::string>* out) {
  if (config.tls.certificate.empty() != config.tls.key.empty()) {
    out->push_back("tls.keyFile: expected together with tls.certFile, both or neither");
  }
  if (!config.tls.enabled() && (!config.tls.client_ca.empty() || config.tls_extender)) {
    out->push_back("tls.certFile: is empty; tls.clientCaFile and tls.extender need it");
  }
  if (config.access.token_review && !config.kubernetes) {
    out->push_back("auth.tokenReview: needs kubernetes.enabled, whose API server reviews the tokens");
  }
  if (config.access.token_review && config.access.writers.empty() && config.access.readers.empty()) {
    out->push_back("auth.writers: is empty, as is auth.readers; with auth.tokenReview every call would be refused");
  }
  const std::pair<const char*, const std::vector<std::string>*> roles[] = {{"auth.writers", &config.access.writers},
                                                                           {"auth.readers", &config.access.readers}};
  for (const auto& [name, entries] : roles) {
    for (const std::string& entry : *entries) {
      const bool certificate = absl::StartsWith(entry, "cert:");
      if (!certificate && !absl::StartsWith(entry, "user:") && !absl::StartsWith(entry, "group:")) {
        out->push_back(absl::StrCat(name, ": \"", entry, "\"; expected user:NAME, group:NAME or cert:NAME"));
      } else if (certificate && config.tls.client_ca.empty()) {
        out->push_back(
            absl::StrCat(name, ": ", entry, " needs tls.clientCaFile, which signs the clients' certificates"));
      } else if (!certificate && !config.access.token_review) {
        out->push_back(absl::StrCat(name, ": ", entry, " needs auth.tokenReview, which returns users and groups"));
      }
    }
  }
}

}  // namespace

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return host == "localhost" || host == "::1" || host == "[::1]";
}

bool NeedsClientCertificate(const Config& config) {
  if (config.tls.client_ca.empty()) return false;
  return !HasTokens(config) || (!IsLoopback(config.grpc.host) && !config.strangers_accepted);
}

std::vector<std::string> FindProblems(const Config& config) {
  std::vector<std::string> out = config.queue_problems;
  if (config.store_path.find('\0') != std::string::npos) out.emplace_back("store.path: has a zero byte");
  FindQueueProblems(config, &out);
  FindListenerProblems(config, &out);
  if (const absl::Status url = config.otlp_url.empty() ? absl::OkStatus() : ParseOtlpUrl(config.otlp_url).status();
      !url.ok()) {
    out.push_back(absl::StrCat("tracing.otlp: \"", config.otlp_url, "\"; expected ", url.message()));
  }
  FindAccessProblems(config, &out);
  for (const char* level : {"trace", "debug", "info", "warn", "error"}) {
    if (config.log_level == level) break;
    if (absl::string_view(level) == "error")
      out.push_back(absl::StrCat("log.level: \"", config.log_level, "\" is not trace, debug, info, warn or error"));
  }
  if (config.log_format != "json" && config.log_format != "text") {
    out.push_back(absl::StrCat("log.format: \"", config.log_format, "\" is not json or text"));
  }
  if (config.machine.answer_limit_ms < config.machine.hold_limit_ms + 15'000) {
    out.push_back(absl::StrCat("holds.answerTimeout: ", config.machine.answer_limit_ms / 1000,
                               " s is too short; expected at least holds.timeout + 15 s (",
                               config.machine.hold_limit_ms / 1000 + 15,
                               " s), so that every binding of a gang can be sent"));
  }
  return out;
}

std::vector<std::string> FindWarnings(const Config& config) {
  QueueTree tree;
  tree.Set(config.machine.queues);
  std::vector<std::string> idle;
  for (QueueId id = 0; id < tree.size(); ++id) {
    if (tree.at(id).leaf && tree.ServesNone(id)) idle.push_back(tree.at(id).spec.name);
  }
  if (idle.empty()) return {};
  return {absl::StrCat("queues.tree: no gang can use ", absl::StrJoin(idle, ", "),
                       ": neither the queue nor one above it lists namespaces or identities; list them, or set "
                       "queues.access: open")};
}

std::vector<std::string> FileProblems(const Config& config) {
  std::vector<std::string> out;
  if (config.tls.enabled() && !config.tls.key.empty()) {
    const absl::Status loaded = TlsContext(config.tls).Load();
    if (!loaded.ok()) out.emplace_back(loaded.message());
  }
  if (!config.access.tokens_file.empty()) {
    AccessOptions tokens;
    tokens.tokens_file = config.access.tokens_file;
    const absl::Status read = Access(tokens, nullptr).Start();
    if (!read.ok()) out.emplace_back(read.message());
  }
  return out;
}

}  // namespace muster
