#include "service/rpc/connection_acceptor.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

constexpr int kBacklog = 4'096;
// The pause after a failed accept. The connection stays in the backlog.
constexpr std::chrono::milliseconds kAcceptPause(50);
// How often closed connections are looked for while all places are taken.
constexpr std::chrono::milliseconds kSweepInterval(100);

// 0: the descriptor is not open, or not a socket.
uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

std::string AddressOf(const sockaddr_storage& peer) {
  char host[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&peer), sizeof(peer), host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// Returns the listening socket; -1: it cannot listen there.
int ListenAt(const addrinfo& address, int port) {
  const int fd = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
  if (fd < 0) return -1;
  sockaddr_storage at{};
  std::memcpy(&at, address.ai_addr, address.ai_addrlen);
  (at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&at)->sin6_port
                            : reinterpret_cast<sockaddr_in*>(&at)->sin_port) = htons(static_cast<uint16_t>(port));
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), address.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

absl::StatusOr<int> ConnectionAcceptor::Listen(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  absl::string_view bare = host;
  if (absl::ConsumePrefix(&bare, "[")) absl::ConsumeSuffix(&bare, "]");
  const bool resolved = getaddrinfo(std::string(bare).c_str(), "0", &hints, &found) == 0;
  for (const addrinfo* each = resolved ? found : nullptr; each != nullptr; each = each->ai_next) {
    const int fd = ListenAt(*each, port);
    if (fd < 0) continue;
    listeners_.push_back(fd);
    if (port == 0) port = PortOf(fd);
  }
  if (resolved) freeaddrinfo(found);
  if (!listeners_.empty() && pipe2(wake_, O_CLOEXEC) == 0) return port;
  return absl::UnavailableError(
      absl::StrCat("listen.grpc: cannot listen on ", host, ":", port, "; is the address in use?"));
}

void ConnectionAcceptor::Start(HandOver hand_over) {
  hand_over_ = std::move(hand_over);
  thread_ = std::thread([this] { Run(); });
}

void ConnectionAcceptor::Stop() {
  if (wake_[1] >= 0) close(wake_[1]);
  if (thread_.joinable()) thread_.join();
  if (wake_[0] >= 0) close(wake_[0]);
  wake_[0] = wake_[1] = -1;
  for (const int fd : std::exchange(listeners_, {})) close(fd);
}

void ConnectionAcceptor::Run() {
  std::vector<pollfd> waited = {{wake_[0], POLLIN, 0}};
  for (const int fd : listeners_) waited.push_back({fd, POLLIN, 0});
  while (true) {
    if (poll(waited.data(), waited.size(), -1) < 0) continue;
    if (waited[0].revents != 0) return;
    for (size_t i = 1; i < waited.size(); ++i) {
      if (waited[i].revents != 0) Accept(waited[i].fd);
    }
  }
}

void ConnectionAcceptor::Accept(int listener) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      std::this_thread::sleep_for(kAcceptPause);
    }
    return;
  }
  const std::string address = AddressOf(peer);
  if (!MayOpen(address)) {
    close(fd);
    return;
  }
  open_.push_back({fd, CookieOf(fd), address});
  ++by_address_[address];
  hand_over_(listener, fd);
}

bool ConnectionAcceptor::MayOpen(const std::string& address) {
  const auto full = [&] {
    const auto found = by_address_.find(address);
    return open_.size() >= limit_ || (found != by_address_.end() && found->second >= (limit_ + 1) / 2);
  };
  const auto now = std::chrono::steady_clock::now();
  if (full() && now - swept_at_ > kSweepInterval) {
    RemoveClosed();
    swept_at_ = now;
  }
  return !full();
}

void ConnectionAcceptor::RemoveClosed() {
  const auto closed = [this](const Open& each) {
    if (CookieOf(each.fd) == each.cookie) return false;
    const auto found = by_address_.find(each.address);
    if (--found->second == 0) by_address_.erase(found);
    return true;
  };
  open_.erase(std::remove_if(open_.begin(), open_.end(), closed), open_.end());
}

}  // namespace muster
