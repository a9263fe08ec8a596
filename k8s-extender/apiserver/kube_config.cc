#include "k8s-extender/apiserver/kube_config.h"

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "support/file.h"

namespace muster {
namespace {

constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount/";

// The entry named `name` in the list `section`.
YAML::Node Named(const YAML::Node& root, const char* section, const std::string& name) {
  for (const YAML::Node& entry : root[section]) {
    if (entry["name"] && entry["name"].as<std::string>() == name) return entry;
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

std::string InFolder(const std::string& path, const std::string& folder) {
  return absl::StartsWith(path, "/") ? path : folder + path;
}

// "<field>-data" (base64), or the contents of the file that "<field>" names, relative to the kubeconfig.
absl::StatusOr<std::string> DataOrFile(const YAML::Node& node, const std::string& field, const std::string& folder) {
  if (const YAML::Node data = node[field + "-data"]; data) {
    std::string out;
    if (!absl::Base64Unescape(data.as<std::string>(), &out)) {
      return absl::InvalidArgumentError(absl::StrCat(field, "-data: not base64"));
    }
    return out;
  }
  if (const YAML::Node file = node[field]; file) {
    return ReadFile(InFolder(file.as<std::string>(), folder));
  }
  return std::string();
}

absl::StatusOr<KubeConfig> Read(const YAML::Node& root, std::string context, const std::string& folder) {
  if (context.empty() && root["current-context"]) context = root["current-context"].as<std::string>();
  const YAML::Node entry = Named(root, "contexts", context);
  if (!entry) return absl::InvalidArgumentError(absl::StrCat("contexts: there is none named \"", context, "\""));
  const std::string cluster_name = entry["context"]["cluster"].as<std::string>();
  const std::string user_name = entry["context"]["user"].as<std::string>();
  const YAML::Node named_cluster = Named(root, "clusters", cluster_name);
  const YAML::Node named_user = Named(root, "users", user_name);
  if (!named_cluster)
    return absl::InvalidArgumentError(absl::StrCat("clusters: there is none named \"", cluster_name, "\""));
  if (!named_user) return absl::InvalidArgumentError(absl::StrCat("users: there is none named \"", user_name, "\""));
  const YAML::Node cluster = named_cluster["cluster"];
  // Without client credentials the server's certificate is still verified.
  const YAML::Node user = named_user["user"] ? named_user["user"] : YAML::Node(YAML::NodeType::Map);

  KubeConfig config;
  if (absl::Status url = ParseServerUrl(cluster["server"].as<std::string>(), &config); !url.ok()) return url;
  config.skip_verify = cluster["insecure-skip-tls-verify"] && cluster["insecure-skip-tls-verify"].as<bool>();
  if (user["token"]) config.token = user["token"].as<std::string>();
  if (const YAML::Node file = user["tokenFile"]; file && !file.as<std::string>().empty()) {
    config.token_file = InFolder(file.as<std::string>(), folder);
    const absl::StatusOr<std::string> token = ReadFile(config.token_file);
    if (!token.ok() && config.token.empty())
      return absl::InvalidArgumentError(absl::StrCat("users.", user_name, ".tokenFile: ", token.status().message()));
  }
  if (user["exec"] || user["auth-provider"]) {
    return absl::InvalidArgumentError(
        absl::StrCat("users.", user_name,
                     ": exec and auth-provider are not supported; use a token, tokenFile or client certificate"));
  }
  for (const auto& [node, field, out] : {std::tuple{cluster, "certificate-authority", &config.ca_pem},
                                         std::tuple{user, "client-certificate", &config.client_cert_pem},
                                         std::tuple{user, "client-key", &config.client_key_pem}}) {
    absl::StatusOr<std::string> text = DataOrFile(node, field, folder);
    if (!text.ok()) return text.status();
    *out = *std::move(text);
  }
  return config;
}

}  // namespace

absl::Status ParseServerUrl(const std::string& url, KubeConfig* config) {
  absl::string_view rest = url;
  if (absl::ConsumePrefix(&rest, "https://")) {
    config->tls = true;
    config->port = 443;
  } else if (absl::ConsumePrefix(&rest, "http://")) {
    config->tls = false;
    config->port = 80;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("server: \"", url, "\" is not a URL; expected https://host:port"));
  }
  absl::ConsumeSuffix(&rest, "/");
  const size_t colon = rest.rfind(':');
  const bool has_port = colon != absl::string_view::npos && rest.find(']', colon) == absl::string_view::npos;
  if (has_port &&
      (!absl::SimpleAtoi(rest.substr(colon + 1), &config->port) || config->port <= 0 || config->port > 65535)) {
    return absl::InvalidArgumentError(
        absl::StrCat("server: \"", url, "\" has no usable port; expected https://host:port"));
  }
  absl::string_view host = has_port ? rest.substr(0, colon) : rest;
  absl::ConsumePrefix(&host, "[");
  absl::ConsumeSuffix(&host, "]");
  if (host.empty() || absl::StrContains(host, "/")) {
    return absl::InvalidArgumentError(absl::StrCat("server: \"", url, "\": expected https://host:port and no path"));
  }
  config->host = std::string(host);
  return absl::OkStatus();
}

absl::StatusOr<KubeConfig> LoadKubeConfig(const std::string& path, const std::string& context) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  try {
    absl::StatusOr<KubeConfig> config = Read(YAML::Load(*text), context, folder);
    if (!config.ok())
      return absl::InvalidArgumentError(absl::StrCat("kubeconfig ", path, ": ", config.status().message()));
    return config;
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("kubeconfig ", path, ": ", error.what()));
  }
}

absl::StatusOr<KubeConfig> InClusterConfig() {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr) {
    return absl::NotFoundError("KUBERNETES_SERVICE_HOST is not set: not in a pod; give kubernetes.kubeconfig instead");
  }
  KubeConfig config;
  config.host = host;
  if (!absl::SimpleAtoi(port, &config.port))
    return absl::InvalidArgumentError(absl::StrCat("KUBERNETES_SERVICE_PORT: \"", port, "\""));
  absl::StatusOr<std::string> ca = ReadFile(absl::StrCat(kServiceAccount, "ca.crt"));
  if (!ca.ok()) return ca.status();
  config.ca_pem = *std::move(ca);
  config.token_file = absl::StrCat(kServiceAccount, "token");
  const absl::StatusOr<std::string> token = ReadFile(config.token_file);
  if (!token.ok()) return token.status();
  return config;
}

}  // namespace muster
