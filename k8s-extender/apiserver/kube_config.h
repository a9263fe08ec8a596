// The address of the API server and our credentials: from a kubeconfig file, or from the files in a pod.
#ifndef MUSTER_K8S_EXTENDER_APISERVER_KUBE_CONFIG_H_
#define MUSTER_K8S_EXTENDER_APISERVER_KUBE_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"

namespace muster {

struct KubeConfig {
  bool tls = true;
  std::string host;
  int port = 443;
  std::string ca_pem;        // empty: the system's certificate authorities
  bool skip_verify = false;  // insecure-skip-tls-verify
  std::string token;         // a fixed bearer token
  std::string token_file;    // read again once a minute: service account tokens are rotated
  std::string client_cert_pem;
  std::string client_key_pem;
};

// Reads the current context of a kubeconfig file (or `context`, when not empty). InvalidArgument names the file and the
// field.
[[nodiscard]] absl::StatusOr<KubeConfig> LoadKubeConfig(const std::string& path, const std::string& context);

// Reads KUBERNETES_SERVICE_HOST and the service account's files. NotFound outside a pod.
[[nodiscard]] absl::StatusOr<KubeConfig> InClusterConfig();

// Parses "https://host:port" without a path. InvalidArgument: any other text.
[[nodiscard]] absl::Status ParseServerUrl(const std::string& url, KubeConfig* config);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_KUBE_CONFIG_H_
