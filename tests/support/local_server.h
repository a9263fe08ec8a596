// An HTTP server of a test on this machine, and the client configuration of an API server there.
#ifndef MUSTER_TESTS_SUPPORT_LOCAL_SERVER_H_
#define MUSTER_TESTS_SUPPORT_LOCAL_SERVER_H_

#include <httplib.h>

#include <thread>

#include "k8s-extender/apiserver/kube_config.h"

namespace muster {

inline KubeConfig ServerAt(int port) {
  KubeConfig config;
  config.tls = false;
  config.host = "127.0.0.1";
  config.port = port;
  return config;
}

// Serves on a thread from Start until Stop or its destruction. `Server`: httplib::Server or SSLServer. Declare it
// behind what its handlers use.
template <typename Server = httplib::Server>
class LocalServer {
 public:
  template <typename... Arguments>
  explicit LocalServer(const Arguments&... arguments) : server_(arguments...) {}
  ~LocalServer() { Stop(); }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  // For its handlers and settings, before Start.
  Server* operator->() { return &server_; }
  // Returns its port.
  int Start() {
    const int port = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    return port;
  }
  void Stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  Server server_;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_LOCAL_SERVER_H_
