// The gRPC door: muster.v1, the standard health service and reflection (SPEC S-1, first slice).
#ifndef MUSTER_SERVICE_RPC_RPC_SERVER_H_
#define MUSTER_SERVICE_RPC_RPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace muster {

class Engine;

class RpcServer {
 public:
  explicit RpcServer(Engine* engine);
  ~RpcServer();
  // Unavailable names the address that is taken.
  [[nodiscard]] absl::Status Start(const std::string& host, int port);
  void Stop();
  [[nodiscard]] int port() const { return port_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int port_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_RPC_SERVER_H_
