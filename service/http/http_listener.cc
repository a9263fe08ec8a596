#include "service/http/http_listener.h"

#include <httplib.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "service/sync/sync.h"

namespace muster {
namespace {

constexpr size_t kStackBytes = 256 << 10;  // reserved, not touched: a held call uses a few pages of it
constexpr int kBacklog = 4096;

// Kept-alive connections that are silent are not waited for longer than this when the server stops.
constexpr absl::Duration kStopPatience = absl::Seconds(2);

}  // namespace

// Connections that are being served, at most `limit` at once.
class ConnectionCount {
 public:
  explicit ConnectionCount(size_t limit) : limit_(limit) {}
  void Enter() {
    MutexLock lock(&mutex_);
    while (running_ >= limit_) changed_.Wait(&mutex_);
    ++running_;
  }
  void Leave() {
    MutexLock lock(&mutex_);
    --running_;
    changed_.SignalAll();
  }
  [[nodiscard]] bool WaitIdle(absl::Duration patience) {
    MutexLock lock(&mutex_);
    const std::chrono::steady_clock::time_point end =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
    while (running_ > 0) {
      const absl::Duration left = absl::FromChrono(end - std::chrono::steady_clock::now());
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitWithTimeout(&mutex_, left);
    }
    return true;
  }

 private:
  const size_t limit_;
  Mutex mutex_;
  CondVar changed_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
};

namespace {

// A detached thread per connection; enqueue waits for a free place.
class ThreadPerConnection : public httplib::TaskQueue {
 public:
  explicit ThreadPerConnection(std::shared_ptr<ConnectionCount> count) : count_(std::move(count)) {}

  void enqueue(std::function<void()> task) override {
    count_->Enter();
    auto* work = new Work{count_, std::move(task)};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const bool started = pthread_create(&thread, &attributes, &ThreadPerConnection::Main, work) == 0;
    pthread_attr_destroy(&attributes);
    if (!started) Main(work);  // no thread to be had: serve it here rather than lose the connection
  }
  void shutdown() override {}  // HttpListener waits

 private:
  struct Work {
    std::shared_ptr<ConnectionCount> count;
    std::function<void()> task;
  };
  static void* Main(void* argument) {
    std::unique_ptr<Work> work(static_cast<Work*>(argument));
    work->task();
    work->task = nullptr;
    work->count->Leave();
    return nullptr;
  }

  std::shared_ptr<ConnectionCount> count_;
};

}  // namespace

HttpListener::HttpListener(std::string name, HttpListenerOptions options)
    : name_(std::move(name)),
      options_(std::move(options)),
      connections_(std::make_shared<ConnectionCount>(options_.max_connections)),
      server_(std::make_unique<httplib::Server>()) {
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
  server_->set_keep_alive_timeout(options_.idle_timeout_s);
  server_->set_read_timeout(30);
  server_->set_write_timeout(30);
}

HttpListener::~HttpListener() { Stop(); }

absl::Status HttpListener::Start() {
  if (options_.port == 0) {
    port_ = server_->bind_to_any_port(options_.host);
    if (port_ < 0) port_ = 0;
  } else if (server_->bind_to_port(options_.host, options_.port)) {
    port_ = options_.port;
  }
  if (port_ == 0) {
    return absl::UnavailableError(absl::StrCat(name_, ": cannot listen on ", options_.host, ":", options_.port,
                                               "; is the address taken, or not one of this machine's?"));
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
  // A thread that waits on a silent connection still refers to the server: leave it to the end of the process.
  if (!connections_->WaitIdle(kStopPatience)) static_cast<void>(server_.release());
}

}  // namespace muster
