// One HTTP listener: a cpp-httplib server with one thread per connection.
//
// Debian's build of cpp-httplib listens with a backlog of 5 and without TCP_NODELAY. It runs whole connections on a
// small pool, where held calls would starve the others. Here every connection has a small-stack thread and a
// ConnectionStream, and the socket is set up for bursts.
//
// The number of connections is bounded: when all places are taken, the connection that has been silent or slow for
// longest is closed. Further ones wait in the kernel's backlog. Where thousands of calls end together, as held binds
// do, each connection is closed after its answer.
#ifndef MUSTER_SERVICE_HTTP_HTTP_LISTENER_H_
#define MUSTER_SERVICE_HTTP_HTTP_LISTENER_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace httplib {
class Server;
}  // namespace httplib

namespace muster {

class Access;
class ConnectionTable;
class TlsContext;

struct HttpListenerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free port
  size_t max_connections = 512;
  size_t max_body_bytes = 32 << 20;                  // longer bodies are answered 413; see docs/reference/security.md
  size_t body_memory = 32 << 20;                     // bytes of all bodies at the same time; see ConnectionTable
  bool one_request_per_connection = false;           // close after the answer: see HttpListener
  absl::Duration idle_limit = absl::Seconds(120);    // longer than Go's clients keep idle connections (90 s)
  absl::Duration request_limit = absl::Seconds(15);  // from the first byte of a request, or a handshake, to the last
  std::shared_ptr<TlsContext> tls;                   // nullptr: plain text
  Access* access = nullptr;                          // callers that are allowed, with the read-write role; nullptr: all
};

// Checks that the address is free. Unavailable: it is not, with the same text as HttpListener::Start.
[[nodiscard]] absl::Status CanListen(const std::string& name, const std::string& host, int port);

class HttpListener {
 public:
  HttpListener(std::string name, HttpListenerOptions options);
  ~HttpListener();

  // REQUIRES: routes are added before Start.
  [[nodiscard]] httplib::Server& server() { return *server_; }

  // Binds and serves in the background. Unavailable names the address that is in use.
  [[nodiscard]] absl::Status Start();
  // Stops accepting and waits a moment for running handlers. REQUIRES: held calls have been answered.
  void Stop();
  [[nodiscard]] int port() const { return port_; }

 private:
  const std::string name_;
  const HttpListenerOptions options_;
  const std::shared_ptr<ConnectionTable> connections_;
  std::unique_ptr<httplib::Server> server_;
  int socket_ = -1;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_HTTP_HTTP_LISTENER_H_
