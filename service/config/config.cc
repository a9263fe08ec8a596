#include "service/config/config.h"

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "service/config/queues.h"
#include "service/config/yaml_keys.h"
#include "support/file.h"

namespace muster {
namespace {

// One setting: how it is parsed from text, and its form in the documented defaults.
struct Field {
  const char* path;
  const char* example;
  const char* meaning;
  std::function<std::string(const YAML::Node&, Config*)> read;  // returns what was expected; empty on success
};

std::string Text(const YAML::Node& node) { return node.IsScalar() ? node.Scalar() : ""; }

template <typename Set>
auto ReadText(Set set) {
  return [set](const YAML::Node& node, Config* config) -> std::string {
    if (!node.IsScalar()) return "a string";
    set(config) = node.Scalar();
    return "";
  };
}

template <typename Set>
auto ReadInt(int64_t least, int64_t most, Set set) {
  return [=](const YAML::Node& node, Config* config) -> std::string {
    int64_t value = 0;
    if (!absl::SimpleAtoi(Text(node), &value) || value < least || value > most) {
      return absl::StrCat("a whole number from ", least, " to ", most);
    }
    set(config, value);
    return "";
  };
}

template <typename Set>
auto ReadDuration(Set set) {
  return [set](const YAML::Node& node, Config* config) -> std::string {
    absl::Duration duration;
    if (!absl::ParseDuration(Text(node), &duration) || duration < absl::Milliseconds(1) ||
        duration > absl::Hours(24 * 365)) {
      return "a duration above zero like 30s or 10m, of at most a year";
    }
    set(config) = absl::ToInt64Milliseconds(duration);
    return "";
  };
}

template <typename Set>
auto ReadBool(Set set) {
  return [set](const YAML::Node& node, Config* config) -> std::string {
    if (Text(node) != "true" && Text(node) != "false") return "true or false";
    set(config) = Text(node) == "true";
    return "";
  };
}

template <typename Set>
auto ReadAddress(Set set) {
  return [set](const YAML::Node& node, Config* config) -> std::string {
    const absl::StatusOr<ListenAddress> address = ParseListenAddress(Text(node));
    if (!address.ok()) return "host:port";
    set(config) = *address;
    return "";
  };
}

// A list of at least `least` texts.
template <typename Set>
auto ReadList(size_t least, const char* expected, Set set) {
  return [=](const YAML::Node& node, Config* config) -> std::string {
    if (!node.IsSequence() || node.size() < least) return expected;
    std::vector<std::string> read;
    for (const YAML::Node& entry : node) {
      if (Text(entry).empty()) return expected;
      read.push_back(Text(entry));
    }
    set(config) = std::move(read);
    return "";
  };
}

std::string ReadPolicy(const YAML::Node& node, Config* config) {
  const std::optional<MatchPolicy> policy = ParseMatchPolicy(Text(node));
  if (!policy.has_value()) return kMatchPolicies;
  config->machine.gang.match_policy = *policy;
  return "";
}

std::string ReadQueues(const YAML::Node& node, Config* config) {
  ReadQueueTree(node, &config->machine.queues.queues, &config->queue_problems);
  return "";  // FindProblems reports them
}

std::string ReadHeadPolicy(const YAML::Node& node, Config* config) {
  const std::optional<HeadPolicy> policy = ParseHeadPolicy(Text(node));
  if (!policy.has_value()) return "backfill or hold";
  config->machine.queues.head = *policy;
  return "";
}

std::string ReadUnknownQueue(const YAML::Node& node, Config* config) {
  const std::optional<UnknownQueue> unknown = ParseUnknownQueue(Text(node));
  if (!unknown.has_value()) return "wait, default or reject";
  config->machine.queues.unknown = *unknown;
  return "";
}

std::string ReadAccessPolicy(const YAML::Node& node, Config* config) {
  const std::optional<AccessPolicy> policy = ParseAccessPolicy(Text(node));
  if (!policy.has_value()) return "listed or open";
  config->machine.queues.access = *policy;
  return "";
}

// log, listen, tls, auth, limits.
std::vector<Field> ListenerFields() {
  return {
      {"log.level", "info", "trace, debug, info, warn or error",
       ReadText([](Config* c) -> std::string& { return c->log_level; })},
      {"log.format", "json", "json or text", ReadText([](Config* c) -> std::string& { return c->log_format; })},
      {"listen.admin", "127.0.0.1:9090", "/healthz, /readyz, /metrics (read-only)",
       ReadAddress([](Config* c) -> ListenAddress& { return c->admin; })},
      {"listen.grpc", "127.0.0.1:9091", "the gRPC API; loopback only unless tls.certFile and tls.clientCaFile are set",
       ReadAddress([](Config* c) -> ListenAddress& { return c->grpc; })},
      {"listen.extender", "127.0.0.1:8888", "filter, prioritize, preempt; loopback only unless tls.extender",
       ReadAddress([](Config* c) -> ListenAddress& { return c->extender; })},
      {"listen.bind", "127.0.0.1:8889", "bind, whose calls may be held; loopback only unless tls.extender",
       ReadAddress([](Config* c) -> ListenAddress& { return c->bind; })},
      {"tls.certFile", "\"\"", "PEM certificate of the listeners; read again when it changes. Empty: no TLS",
       ReadText([](Config* c) -> std::string& { return c->tls.certificate; })},
      {"tls.keyFile", "\"\"", "PEM key of the certificate",
       ReadText([](Config* c) -> std::string& { return c->tls.key; })},
      {"tls.clientCaFile", "\"\"", "PEM: clients show a certificate of this CA (or, where auth allows it, a token)",
       ReadText([](Config* c) -> std::string& { return c->tls.client_ca; })},
      {"tls.withoutClientCertificate", "\"\"",
       "\"strangers may use up memory\": accept that risk, and gRPC clients away from loopback that present a token "
       "only",
       [](const YAML::Node& node, Config* c) -> std::string {
         const std::string text = Text(node);
         c->strangers_accepted = text == kStrangersAccepted;
         return text.empty() || c->strangers_accepted ? "" : absl::StrCat("empty or \"", kStrangersAccepted, "\"");
       }},
      {"tls.extender", "false",
       "TLS on filter, prioritize, preempt and bind too (enableHTTPS in the scheduler's configuration)",
       ReadBool([](Config* c) -> bool& { return c->tls_extender; })},
      {"auth.tokensFile", "\"\"", "lines NAME read-only|read-write TOKEN; read again when it changes",
       ReadText([](Config* c) -> std::string& { return c->access.tokens_file; })},
      {"auth.tokenReview", "false", "Kubernetes reviews bearer tokens; auth.writers and auth.readers assign the roles",
       ReadBool([](Config* c) -> bool& { return c->access.token_review; })},
      {"auth.writers", "[]",
       "identities with read-write access: user:NAME and group:NAME of Kubernetes, cert:NAME of certificates",
       ReadList(0, "a list like [\"user:system:serviceaccount:ml:runner\", \"cert:kube-scheduler\"]",
                [](Config* c) -> std::vector<std::string>& { return c->access.writers; })},
      {"auth.readers", "[]", "identities with read-only access",
       ReadList(0, "a list like [\"group:developers\"]",
                [](Config* c) -> std::vector<std::string>& { return c->access.readers; })},
      {"limits.callsPerSecond", "20000", "gRPC calls of one client (an identity, else an address)",
       ReadInt(1, 10'000'000, [](Config* c, int64_t v) { c->limits.calls_per_second = static_cast<double>(v); })},
      {"limits.streamsPerClient", "1000", "gRPC streams of one client open at once, waiting Permits among them",
       ReadInt(1, 1'000'000, [](Config* c, int64_t v) { c->limits.streams = static_cast<int32_t>(v); })},
      {"limits.messageBytes", "4194304", "the largest gRPC message",
       ReadInt(1024, 1 << 30, [](Config* c, int64_t v) { c->max_message_bytes = static_cast<int>(v); })},
  };
}

// kubernetes, webhook, store, facts.
std::vector<Field> KubernetesFields() {
  return {
      {"kubernetes.enabled", "true", "serve a kube-scheduler",
       ReadBool([](Config* c) -> bool& { return c->kubernetes; })},
      {"kubernetes.kubeconfig", "\"\"", "path; empty: the service account of the pod",
       ReadText([](Config* c) -> std::string& { return c->kubeconfig; })},
      {"kubernetes.context", "\"\"", "context of the kubeconfig; empty: the current one",
       ReadText([](Config* c) -> std::string& { return c->kube_context; })},
      {"kubernetes.schedulerNames", "[default-scheduler]", "pods of other schedulers are never planned",
       ReadList(1, "a list of scheduler names",
                [](Config* c) -> std::vector<std::string>& { return c->machine.scheduler_names; })},
      {"kubernetes.percentageOfNodesToScore", "0", "as in the scheduler's configuration; 0: its adaptive default",
       ReadInt(0, 100, [](Config* c, int64_t v) { c->machine.percentage_of_nodes = static_cast<int32_t>(v); })},
      {"kubernetes.nominate", "false",
       "set nominatedNodeName as a hint when gates are removed: one more write for each pod",
       ReadBool([](Config* c) -> bool& { return c->machine.nominate; })},
      {"kubernetes.workers", "16", "connections that bind and activate pods",
       ReadInt(1, 256, [](Config* c, int64_t v) { c->actuator_workers = static_cast<int>(v); })},
      {"kubernetes.activationsPerSecond", "1000", "maximum activations per second",
       ReadInt(1, 100'000, [](Config* c, int64_t v) { c->calls_per_second = static_cast<double>(v); })},
      {"kubernetes.disruptionBudgets", "false",
       "keep a PodDisruptionBudget for each running gang; its pods have label muster.dev/gang-name, which the webhook "
       "sets",
       ReadBool([](Config* c) -> bool& { return c->disruption_budgets; })},
      {"webhook.listen", "\"\"",
       "the admission webhook, over TLS, as 0.0.0.0:9443: pods of gangs get the gate and the scheduler's name. Empty: "
       "off",
       [](const YAML::Node& node, Config* c) -> std::string {
         c->webhook = {"", 0};
         if (node.IsScalar() && Text(node).empty()) return "";
         return ReadAddress([](Config* at) -> ListenAddress& { return at->webhook; })(node, c);
       }},
      {"webhook.certFile", "\"\"", "PEM certificate that the API server trusts; read again when it changes",
       ReadText([](Config* c) -> std::string& { return c->webhook_certificate; })},
      {"webhook.keyFile", "\"\"", "PEM key of the certificate",
       ReadText([](Config* c) -> std::string& { return c->webhook_key; })},
      {"webhook.exemptNamespaces", "[kube-system, muster-system]", "namespaces that the webhook ignores",
       ReadList(0, "a list like [kube-system]",
                [](Config* c) -> std::vector<std::string>& { return c->webhook_exempt; })},
      {"store.path", "\"\"",
       "SQLite file of durable records, on a local disk; :memory: loses all records at a restart. Empty: muster.db in "
       "the "
       "working directory, or memory with a warning where that cannot be written",
       ReadText([](Config* c) -> std::string& { return c->store_path; })},
      {"store.standby", "false",
       "while another musterd of this machine has the store, wait until it ends, then take over; needs "
       "store.path",
       ReadBool([](Config* c) -> bool& { return c->standby; })},
      {"facts.staleAfter", "600s",
       "without Kubernetes, after a restart: no pod is placed on a node that has not been announced again within this "
       "time",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.stale_after_ms; })},
  };
}

// gangs, topology, queues.
std::vector<Field> GangFields() {
  return {
      {"gangs.waitTimeout", "600s", "how long a gang may hold capacity without its quorum",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.gang.wait_time_ms; })},
      {"gangs.matchPolicy", "once-satisfied", "which members count towards the minimum", ReadPolicy},
      {"gangs.byOwner", "[]",
       "pods without a gang form one with the pods of the same owner, for these kinds: Job, JobSet, PyTorchJob, TFJob, "
       "MPIJob, RayCluster",
       ReadList(0, "a list like [Job, PyTorchJob]",
                [](Config* c) -> std::vector<std::string>& { return c->owner_kinds; })},
      {"gangs.planTries", "64",
       "orders of pods to try before a search is abandoned for a while; more tries find more plans and take longer",
       ReadInt(1, 100'000, [](Config* c, int64_t v) { c->machine.planner_tries = static_cast<int32_t>(v); })},
      {"gangs.planIdleTimeout", "30s", "a plan without a new arrival is withdrawn after this time",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.plan_idle_ms; })},
      {"gangs.futureMemberTimeout", "600s",
       "the longest time for which capacity is reserved for members that do not exist yet",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.future_member_ms; })},
      {"gangs.repairTimeout", "30s", "how long the slot of a failed binding stays reserved",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.repair_ms; })},
      {"gangs.refusedNodeBackoff", "60s", "how long a node that kube-scheduler refused is avoided",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.learned_refusal_ms; })},
      {"gangs.bindTimeout", "300s", "a pod permitted over gRPC is bound within this time, else its slot is released",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.bind_within_ms; })},
      {"gangs.submissionTtl", "60s", "how long a submitted gang's plan waits for its confirmation",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.submission_ttl_ms; })},
      {"gangs.maxSubmissions", "10000", "submitted gangs that wait or are planned",
       ReadInt(1, 1'000'000, [](Config* c, int64_t v) { c->machine.max_submissions = static_cast<int32_t>(v); })},
      {"gangs.crossNamespaceGroups", "true", "gang groups may name gangs of other namespaces",
       ReadBool([](Config* c) -> bool& { return c->machine.cross_namespace_groups; })},
      {"gangs.onePriority", "false", "refuse a pod if its priority differs from the gang's",
       ReadBool([](Config* c) -> bool& { return c->machine.one_priority; })},
      {"topology.levels", "[]",
       "node labels of nested domains, the widest first, like [block, rack]: a gang that fits in no rack gets a block",
       ReadList(0, "a list of keys of labels",
                [](Config* c) -> std::vector<std::string>& { return c->machine.topology_levels; })},
      {"queues.tree", "[]",
       "queues of gangs, the oldest first: {name, parent, quota, limit, overQuotaWeight, priority, maxApplications, "
       "sort, namespaces, namespaceSelector, identities}; see docs/reference/queues.md. Empty: no queues",
       ReadQueues},
      {"queues.source", "config",
       "where queues come from: config (queues.tree), api (gRPC, saved in the store) or kubernetes (Queue objects of "
       "muster.dev)",
       [](const YAML::Node& node, Config* c) -> std::string {
         const std::string source = Text(node);
         if (source != "config" && source != "api" && source != "kubernetes") return "config, api or kubernetes";
         c->queue_source = source;
         return "";
       }},
      {"queues.access", "listed",
       "the gangs that a queue serves: listed (by its namespaces, namespaceSelector and identities) or open (all)",
       ReadAccessPolicy},
      {"queues.unknown", "wait", "a gang whose queue does not exist: wait, default (it joins queue default) or reject",
       ReadUnknownQueue},
      {"queues.policy", "backfill",
       "while the head of the queue waits for capacity: backfill (gangs that fit start first) or hold (no gang does)",
       ReadHeadPolicy},
      {"queues.starvationLimit", "30m",
       "backfill: reserve capacity for a gang that was bypassed for this time; never: no reservation",
       [](const YAML::Node& node, Config* c) -> std::string {
         if (Text(node) == "never") {
           c->machine.queues.starvation_limit_ms = 0;
           return "";
         }
         const auto limit = [](Config* at) -> int64_t& { return at->machine.queues.starvation_limit_ms; };
         const std::string expected = ReadDuration(limit)(node, c);
         return expected.empty() ? "" : absl::StrCat(expected, ", or never");
       }},
  };
}

// holds, tracing, recording, engine.
std::vector<Field> ProcessFields() {
  return {
      {"holds.max", "5000", "bind calls held at once; each is a connection and a file of kube-scheduler",
       ReadInt(1, 100'000, [](Config* c, int64_t v) { c->machine.max_holds = static_cast<int32_t>(v); })},
      {"holds.timeout", "20s",
       "a held bind call ends when no member of its gang has arrived for this long, and longer while kube-scheduler is "
       "behind",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.hold_limit_ms; })},
      {"holds.answerTimeout", "5m",
       "nothing is bound later than this after its call; below the bind extender's httpTimeout",
       ReadDuration([](Config* c) -> int64_t& { return c->machine.answer_limit_ms; })},
      {"tracing.maxSpans", "50000",
       "spans of decisions about gangs for /traces and `musterctl trace`, and a tenth as many about other pods; 0: "
       "none",
       ReadInt(0, 10'000'000, [](Config* c, int64_t v) { c->traces_kept = static_cast<int>(v); })},
      {"tracing.otlp", "\"\"",
       "collector that receives the spans, OTLP over HTTP, like http://collector:4318; empty: none is sent",
       ReadText([](Config* c) -> std::string& { return c->otlp_url; })},
      {"tracing.samplePercent", "100", "percentage of the traces that are sent",
       ReadInt(1, 100, [](Config* c, int64_t v) { c->trace_percent = static_cast<int>(v); })},
      {"recording.file", "\"\"",
       "flight recorder: every command with its time, for `musterctl replay`; older files get .1, .2 ...; "
       "empty: none",
       ReadText([](Config* c) -> std::string& { return c->recording_file; })},
      {"recording.maxSizeMiB", "256", "size of all files of the recording together; the oldest are deleted first",
       ReadInt(1, 1'000'000, [](Config* c, int64_t v) { c->recording_mib = static_cast<int>(v); })},
      {"engine.mailboxCapacity", "16384", "commands that may wait before callers get \"overloaded\"",
       ReadInt(64, 1'000'000, [](Config* c, int64_t v) { c->mailbox_capacity = static_cast<int>(v); })},
  };
}

const std::vector<Field>& Fields() {
  static const auto* const kFields = [] {
    auto* fields = new std::vector<Field>();
    for (auto* part : {ListenerFields, KubernetesFields, GangFields, ProcessFields}) {
      for (Field& field : part()) fields->push_back(std::move(field));
    }
    return fields;
  }();
  return *kFields;
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text) {
  ListenAddress address;
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &address.port) ||
      address.port < 0 || address.port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not an address; expected host:port"));
  }
  address.host = text.substr(0, colon);
  return address;
}

absl::StatusOr<Config> ParseConfig(const std::string& yaml) {
  Config config;
  std::vector<std::string> problems;
  std::map<std::string, YAML::Node> leaves;
  try {
    std::vector<YAML::Node> documents = YAML::LoadAll(yaml);
    while (documents.size() > 1 && documents.back().IsNull()) documents.pop_back();
    if (documents.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat("the file has ", documents.size(), " documents; expected one"));
    }
    const YAML::Node root = documents.empty() ? YAML::Node() : documents.front();
    if (const std::string why = TooMuch(root); !why.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("the file ", why));
    }
    if (!root.IsNull() && !root.IsMap()) return absl::InvalidArgumentError("the file must be a map of settings");
    FindDuplicateKeys(root, "", &problems);
    if (root.IsMap()) FindLeaves(root, "", &leaves);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not YAML: ", error.what()));
  }
  for (const auto& [path, node] : leaves) {
    const Field* field = nullptr;
    for (const Field& candidate : Fields()) {
      if (path == candidate.path) field = &candidate;
    }
    if (field == nullptr) {
      problems.push_back(absl::StrCat(path, ": there is no such setting; see musterd --print-config"));
      continue;
    }
    const std::string expected = field->read(node, &config);
    if (!expected.empty()) {
      problems.push_back(absl::StrCat(path, ": ", node.IsScalar() ? absl::StrCat("\"", node.Scalar(), "\"") : "this",
                                      " is not ", expected));
    }
  }
  const std::vector<std::string> as_a_whole = FindProblems(config);
  problems.insert(problems.end(), as_a_whole.begin(), as_a_whole.end());
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  return config;
}

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  return ParseConfig(*text);
}

std::string DocumentedDefaults() {
  std::string out;
  std::string section;
  for (const Field& field : Fields()) {
    const std::string path = field.path;
    const size_t dot = path.find('.');
    if (path.substr(0, dot) != section) {
      section = path.substr(0, dot);
      absl::StrAppend(&out, section, ":\n");
    }
    absl::StrAppend(&out, "  ", path.substr(dot + 1), ": ", field.example, "  # ", field.meaning, "\n");
  }
  return out;
}

}  // namespace muster
