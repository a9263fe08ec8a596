// The client configuration for a test's own API server on this machine.
#ifndef MUSTER_TESTS_SUPPORT_LOCAL_SERVER_H_
#define MUSTER_TESTS_SUPPORT_LOCAL_SERVER_H_

#include "k8s-extender/apiserver/kube_config.h"

namespace muster {

inline KubeConfig ServerAt(int port) {
  KubeConfig config;
  config.tls = false;
  config.host = "127.0.0.1";
  config.port = port;
  return config;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_LOCAL_SERVER_H_
