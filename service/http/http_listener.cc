#include "service/http/http_listener.h"

#include <fcntl.h>
#include <httplib.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "service/http/connection_stream.h"
#include "service/http/connection_table.h"
#include "service/security/access.h"
#include "service/security/tls_context.h"
#include "support/sync.h"

namespace muster {
namespace {

constexpr size_t kStackBytes = 256 << 10;  // reserved address space; a held call uses a few pages of it
constexpr int kBacklog = 4096;
constexpr std::chrono::milliseconds kThreadPause(10);  // after a thread could not be started
constexpr int kThreadTries = 500;

// At a stop, the longest wait for answers in progress.
constexpr absl::Duration kStopPatience = absl::Seconds(2);

absl::Status CannotListen(const std::string& name, const std::string& host, int port) {
  return absl::UnavailableError(
      absl::StrCat(name, ": cannot listen on ", host, ":", port, "; is the address in use, or not of this machine?"));
}

// Runs a detached thread per connection; enqueue waits for a free place.
class ThreadPerConnection : public httplib::TaskQueue {
 public:
  explicit ThreadPerConnection(std::shared_ptr<ConnectionTable> count) : count_(std::move(count)) {}

  void enqueue(std::function<void()> task) override {
    count_->Acquire();
    auto* work = new Work{count_, std::move(task)};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    // Without a free thread, the idle connections end first. The client of this one waits meanwhile.
    bool started = false;
    for (int tries = 0; !started && tries < kThreadTries; ++tries) {
      started = pthread_create(&thread, &attributes, &ThreadPerConnection::Main, work) == 0;
      if (started) break;
      count_->ShutLongestWaiting();
      std::this_thread::sleep_for(kThreadPause);
    }
    pthread_attr_destroy(&attributes);
    if (!started) Main(work);  // serve it here rather than lose the connection
  }
  void shutdown() override {}  // HttpListener waits

 private:
  struct Work {
    std::shared_ptr<ConnectionTable> count;
    std::function<void()> task;
  };
  static void* Main(void* argument) {
    std::unique_ptr<Work> work(static_cast<Work*>(argument));
    work->task();
    work->task = nullptr;
    work->count->Release();
    return nullptr;
  }

  std::shared_ptr<ConnectionTable> count_;
};

// The decision about a request after its head was read. 0: it is served.
struct Verdict {
  int status = 500;
  std::string text = "the request was not handled";
};

// Of the request on this thread: httplib passes nothing else about the connection to handlers.
thread_local const Verdict* verdict = nullptr;

// Serves connections on ConnectionStream.
class ListenerServer : public httplib::Server {
 public:
  ListenerServer(const HttpListenerOptions& options, std::shared_ptr<ConnectionTable> connections)
      : options_(options), connections_(std::move(connections)) {
    set_pre_routing_handler([](const httplib::Request&, httplib::Response& response) {
      const Verdict unknown;
      const Verdict& decision = verdict == nullptr ? unknown : *verdict;
      if (decision.status == 0) return HandlerResponse::Unhandled;
      response.status = decision.status;
      response.set_header("Connection", "close");  // the request's body was not read
      response.set_content(decision.text + "\n", "text/plain");
      return HandlerResponse::Handled;
    });
  }

 private:
  bool process_and_close_socket(socket_t fd) override {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    const int64_t id = connections_->Add(fd);
    bool ok = false;
    {
      ConnectionStream stream(fd, options_.tls == nullptr ? nullptr : options_.tls->Current(), options_.request_limit);
      stream.OnStall([this, id](bool stalled) { connections_->SetAnswering(id, !stalled); });
      if (stream.Accept()) {
        ok = Serve(&stream, id);
        stream.Close();
      }
    }
    connections_->Remove(id);
    ::shutdown(fd, SHUT_RDWR);
    ::close(fd);
    return ok;
  }

  bool Serve(ConnectionStream* stream, int64_t id) {
    bool ok = true;
    bool closed = false;
    for (size_t left = keep_alive_max_count_; ok && !closed && left > 0 && svr_sock_ != INVALID_SOCKET; --left) {
      if (!stream->WaitForRequest(options_.idle_limit)) break;
      Verdict decision;
      verdict = &decision;
      ok = process_request(*stream, /*close_connection=*/left == 1, closed, [&](httplib::Request& request) {
        decision = BodyVerdict(request);
        if (decision.status == 0) decision = AccessVerdict(*stream, request);
        const auto length = request.get_header_value<size_t>("Content-Length");
        if (decision.status == 0 && length > 0) connections_->AcquireBody(id, length);
        stream->ExpectBody(length, [this, id] { connections_->SetAnswering(id, true); });
      });
      verdict = nullptr;
      connections_->ReleaseBody(id);
      connections_->SetAnswering(id, false);
      closed = closed || decision.status != 0;
    }
    return ok;
  }

  // Bodies must have a length and no encoding; otherwise the amount to read is unknown beforehand.
  [[nodiscard]] Verdict BodyVerdict(const httplib::Request& request) const {
    const bool brings = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
    // With some other methods the library reads the body to its end.
    if (!brings && request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS" &&
        request.method != "DELETE") {
      return {405, absl::StrCat("method ", absl::CEscape(request.method.substr(0, 16)), " is not served here")};
    }
    const auto length = request.get_header_value<uint64_t>("Content-Length");
    if (request.has_header("Transfer-Encoding") || (brings && !request.has_header("Content-Length"))) {
      return {411, "send the body with Content-Length, not in chunks"};
    }
    if (request.has_header("Content-Encoding")) return {415, "send the body without Content-Encoding"};
    if (absl::StartsWithIgnoreCase(request.get_header_value("Content-Type"), "multipart/")) {
      return {415, "multipart bodies are not read here; expected application/json"};
    }
    if (length > (brings ? options_.max_body_bytes : 0)) {
      return {413, absl::StrCat("the body has ", length, " bytes; at most ", brings ? options_.max_body_bytes : 0,
                                " are read here")};
    }
    return {0, ""};
  }

  // Whether the caller may call.
  [[nodiscard]] Verdict AccessVerdict(const ConnectionStream& stream, const httplib::Request& request) const {
    if (options_.access == nullptr || !options_.access->required()) return {0, ""};
    const std::string authorization = request.get_header_value("Authorization");
    absl::string_view token = authorization;
    const std::string bearer(absl::ConsumePrefix(&token, "Bearer ") ? token : absl::string_view());
    Notification identified;
    absl::StatusOr<Identity> identity = absl::UnavailableError("");
    options_.access->Identify(bearer, stream.CertificateNames(), request.remote_addr,
                              [&](absl::StatusOr<Identity> answer) {
                                identity = std::move(answer);
                                identified.Notify();
                              });
    identified.WaitForNotification();
    if (!identity.ok()) {
      const int status = absl::IsUnauthenticated(identity.status())    ? 401
                         : absl::IsPermissionDenied(identity.status()) ? 403
                                                                       : 503;
      return {status, std::string(identity.status().message())};
    }
    if (identity->role == Role::kReadWrite) return {0, ""};
    return {403, absl::StrCat(identity->name, " is read-only; this listener needs read-write")};
  }

  const HttpListenerOptions& options_;
  const std::shared_ptr<ConnectionTable> connections_;
};

}  // namespace

HttpListener::HttpListener(std::string name, HttpListenerOptions options)
    : name_(std::move(name)),
      options_(std::move(options)),
      connections_(std::make_shared<ConnectionTable>(options_.max_connections, options_.body_memory)),
      server_(std::make_unique<ListenerServer>(options_, connections_)) {
  server_->new_task_queue = [count = connections_] { return new ThreadPerConnection(count); };
  server_->set_socket_options([this](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    socket_ = socket;
  });
  server_->set_tcp_nodelay(true);
  server_->set_payload_max_length(options_.max_body_bytes);
  server_->set_keep_alive_max_count(options_.one_request_per_connection ? 1 : static_cast<size_t>(INT_MAX));
}

HttpListener::~HttpListener() { Stop(); }

absl::Status CanListen(const std::string& name, const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  absl::string_view bare = host;
  if (absl::ConsumePrefix(&bare, "[")) absl::ConsumeSuffix(&bare, "]");
  if (getaddrinfo(std::string(bare).c_str(), absl::StrCat(port).c_str(), &hints, &found) != 0)
    return CannotListen(name, host, port);
  bool can = false;
  for (const addrinfo* each = found; each != nullptr && !can; each = each->ai_next) {
    const int fd = socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    if (fd < 0) continue;
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    can = bind(fd, each->ai_addr, each->ai_addrlen) == 0 && listen(fd, 1) == 0;
    close(fd);
  }
  freeaddrinfo(found);
  return can ? absl::OkStatus() : CannotListen(name, host, port);
}

absl::Status HttpListener::Start() {
  if (options_.port == 0) {
    port_ = server_->bind_to_any_port(options_.host);
    if (port_ < 0) port_ = 0;
  } else if (server_->bind_to_port(options_.host, options_.port)) {
    port_ = options_.port;
  }
  if (port_ == 0) {
    return CannotListen(name_, options_.host, options_.port);
  }
  ::listen(socket_, kBacklog);
  thread_ = std::thread([this] { server_->listen_after_bind(); });
  while (!server_->is_running()) std::this_thread::yield();
  return absl::OkStatus();
}

void HttpListener::Stop() {
  if (!thread_.joinable()) return;
  server_->stop();
  thread_.join();
  // A thread that still answers refers to the server: leave it alive until the process ends.
  connections_->CloseWaiting();
  if (!connections_->WaitEmpty(kStopPatience)) static_cast<void>(server_.release());
}

}  // namespace muster
