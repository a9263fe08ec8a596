// Accepts the connections of the gRPC listener and hands them to gRPC (SPEC S-6, S-11).
//
// gRPC 1.51 does not limit connections, and stops listening for good when accept fails, as it does without a free file
// descriptor.
#ifndef MUSTER_SERVICE_RPC_CONNECTION_ACCEPTOR_H_
#define MUSTER_SERVICE_RPC_CONNECTION_ACCEPTOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace muster {

class ConnectionAcceptor {
 public:
  // Called on the acceptor's thread with a new connection, which the callee owns.
  using HandOver = std::function<void(int listener, int connection)>;

  // `limit`: connections that are open at the same time. One address has at most half of them. Further ones are closed.
  explicit ConnectionAcceptor(size_t limit) : limit_(limit) {}
  ~ConnectionAcceptor() { Stop(); }
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  // Returns the port; `port` 0: any free one. Unavailable names the address that cannot be used.
  [[nodiscard]] absl::StatusOr<int> Listen(const std::string& host, int port);
  // Accepts in the background. REQUIRES: Listen succeeded.
  void Start(HandOver hand_over);
  // No connection is handed over afterwards. Those that were stay open.
  void Stop();

 private:
  struct Open {
    int fd = -1;
    uint64_t cookie = 0;  // of the socket; the descriptor may be another one's after it was closed
    std::string address;
  };
  void Run();
  void Accept(int listener);
  // Forgets connections that were closed.
  void RemoveClosed();
  [[nodiscard]] bool MayOpen(const std::string& address);

  const size_t limit_;
  std::vector<int> listeners_;
  int wake_[2] = {-1, -1};  // a pipe: Stop writes, the thread reads
  HandOver hand_over_;
  std::vector<Open> open_;                               // used by the thread only, as are the next two
  absl::flat_hash_map<std::string, size_t> by_address_;  // number of connections in open_
  std::chrono::steady_clock::time_point swept_at_;       // when closed connections were last removed
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_CONNECTION_ACCEPTOR_H_
