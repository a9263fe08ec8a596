#include "service/http/connection_stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kWriteLimit(30);
// When all places are taken, a client that has read nothing for this time may lose its place.
constexpr std::chrono::seconds kStall(1);
// cpp-httplib checks the length of a line only after reading all of it, and never the number of headers.
constexpr size_t kMaxHeadBytes = 64 << 10;
constexpr absl::string_view kRange = "range:";

void Address(int fd, int (*name)(int, sockaddr*, socklen_t*), std::string* ip, int* port) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  char text[INET6_ADDRSTRLEN] = "";
  if (name(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    *port = ntohs(v4->sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    *port = ntohs(v6->sin6_port);
  }
  *ip = text;
}

}  // namespace

ConnectionStream::ConnectionStream(int fd, std::shared_ptr<SSL_CTX> tls, absl::Duration request_limit)
    : fd_(fd), context_(std::move(tls)), request_limit_(request_limit) {
  if (context_ == nullptr) return;
  ssl_ = SSL_new(context_.get());
  SSL_set_fd(ssl_, fd_);
}

ConnectionStream::~ConnectionStream() {
  if (ssl_ != nullptr) SSL_free(ssl_);
}

bool ConnectionStream::Poll(short events, Time until) const {
  pollfd waited{fd_, events, 0};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() < 0) return false;
    const int ready = poll(&waited, 1, static_cast<int>(std::min<int64_t>(left.count() + 1, INT_MAX)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool ConnectionStream::Accept() {
  if (ssl_ == nullptr) return true;
  const Time until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(request_limit_);
  while (true) {
    ERR_clear_error();
    const int done = SSL_accept(ssl_);
    if (done == 1) return true;
    const int error = SSL_get_error(ssl_, done);
    const bool reading = error == SSL_ERROR_WANT_READ;
    if (!reading && error != SSL_ERROR_WANT_WRITE) return false;
    if (!Poll(reading ? POLLIN : POLLOUT, until)) return false;
  }
}

ssize_t ConnectionStream::Receive(char* data, size_t size, Time until) {
  while (true) {
    short wanted = POLLIN;
    if (ssl_ == nullptr) {
      const ssize_t got = recv(fd_, data, size, MSG_DONTWAIT);
      if (got >= 0) return got;
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    } else {
      ERR_clear_error();
      const int got = SSL_read(ssl_, data, static_cast<int>(std::min<size_t>(size, INT_MAX)));
      if (got > 0) return got;
      const int error = SSL_get_error(ssl_, got);
      if (error == SSL_ERROR_ZERO_RETURN) return 0;
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return -1;
      if (error == SSL_ERROR_WANT_WRITE) wanted = POLLOUT;
    }
    if (!Poll(wanted, until)) return -1;
  }
}

bool ConnectionStream::WaitForRequest(absl::Duration idle_limit) {
  if (refused_) return false;
  const Time until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(idle_limit);
  body_left_ = 0;
  arrived_ = nullptr;
  head_left_ = kMaxHeadBytes;
  in_head_ = true;
  line_matches_ = kRange.size() + 1;  // Range cannot be in the first line
  if (begin_ == end_) {
    const ssize_t got = Receive(buffer_.data(), buffer_.size(), until);
    if (got <= 0) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(got);
  }
  deadline_ = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(request_limit_);
  return true;
}

void ConnectionStream::ExpectBody(size_t bytes, std::function<void()> arrived) {
  in_head_ = false;
  if (bytes == 0) return arrived();
  body_left_ = bytes;
  arrived_ = std::move(arrived);
}

// cpp-httplib parses Range with a recursive regular expression before any handler can refuse it. A long value overflows
// the stack. No resource here supports ranges.
bool ConnectionStream::HasRange(const char* data, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      line_matches_ = 0;
    } else if (line_matches_ < kRange.size()) {
      const bool matches = absl::ascii_tolower(static_cast<unsigned char>(data[i])) == kRange[line_matches_];
      line_matches_ = matches ? line_matches_ + 1 : kRange.size() + 1;
      if (line_matches_ == kRange.size()) return true;
    }
  }
  return false;
}

ssize_t ConnectionStream::read(char* data, size_t size) {
  if (in_head_ && head_left_ == 0) refused_ = true;
  if (refused_) return -1;
  size_t copied = 0;
  if (begin_ < end_) {
    copied = std::min(size, end_ - begin_);
    std::memcpy(data, buffer_.data() + begin_, copied);
    begin_ += copied;
  } else if (size >= buffer_.size()) {
    const ssize_t got = Receive(data, size, deadline_);
    if (got <= 0) return got;
    copied = static_cast<size_t>(got);
  } else {
    const ssize_t got = Receive(buffer_.data(), buffer_.size(), deadline_);
    if (got <= 0) return got;
    end_ = static_cast<size_t>(got);
    copied = begin_ = std::min(size, end_);
    std::memcpy(data, buffer_.data(), copied);
  }
  if (in_head_) {
    head_left_ -= std::min(head_left_, copied);
    if (HasRange(data, copied)) {
      refused_ = true;
      return -1;
    }
  }
  if (arrived_ != nullptr) {
    body_left_ -= std::min(body_left_, copied);
    if (body_left_ == 0) std::exchange(arrived_, nullptr)();
  }
  return static_cast<ssize_t>(copied);
}

ssize_t ConnectionStream::write(const char* data, size_t size) {
  const Time until = std::chrono::steady_clock::now() + kWriteLimit;
  while (true) {
    short wanted = POLLOUT;
    if (ssl_ == nullptr) {
      const ssize_t sent = send(fd_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent >= 0) return sent;
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    } else {
      ERR_clear_error();
      const int sent = SSL_write(ssl_, data, static_cast<int>(std::min<size_t>(size, INT_MAX)));
      if (sent > 0) return sent;
      const int error = SSL_get_error(ssl_, sent);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return -1;
      if (error == SSL_ERROR_WANT_READ) wanted = POLLIN;
    }
    const Time now = std::chrono::steady_clock::now();
    if (now >= until) return -1;
    if (Poll(wanted, std::min<Time>(until, now + kStall))) continue;
    if (stalled_) stalled_(true);
    const bool ready = Poll(wanted, until);
    if (stalled_) stalled_(false);
    if (!ready) return -1;
  }
}

bool ConnectionStream::is_readable() const { return begin_ < end_ || Poll(POLLIN, deadline_); }

bool ConnectionStream::is_writable() const {
  if (!Poll(POLLOUT, std::chrono::steady_clock::now() + kWriteLimit)) return false;
  char byte = 0;
  if (ssl_ == nullptr) {
    const ssize_t got = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
  }
  ERR_clear_error();
  const int got = SSL_peek(ssl_, &byte, 1);
  if (got > 0) return true;
  const int error = SSL_get_error(ssl_, got);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

void ConnectionStream::Close() {
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_) != 0) SSL_shutdown(ssl_);
}

std::vector<std::string> ConnectionStream::CertificateNames() const {
  std::vector<std::string> names;
  if (ssl_ == nullptr || SSL_get_verify_result(ssl_) != X509_V_OK) return names;
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl_), &X509_free);
  if (certificate == nullptr) return names;
  // A name with a control character or NUL is ignored: some consumer might cut it off there.
  const auto add = [&](const unsigned char* text, int length) {
    if (text == nullptr || length <= 0) return;
    std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(length));
    if (absl::c_none_of(name, [](unsigned char c) { return absl::ascii_iscntrl(c); })) names.push_back(std::move(name));
  };
  const X509_NAME* subject = X509_get_subject_name(certificate.get());
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) {
    unsigned char* text = nullptr;
    const int length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    add(text, length);
    if (length >= 0) OPENSSL_free(text);
  }
  auto* alternatives =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; alternatives != nullptr && i < sk_GENERAL_NAME_num(alternatives); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives, i);
    if (name->type != GEN_DNS && name->type != GEN_URI) continue;
    const ASN1_IA5STRING* text = name->type == GEN_DNS ? name->d.dNSName : name->d.uniformResourceIdentifier;
    add(ASN1_STRING_get0_data(text), ASN1_STRING_length(text));
  }
  GENERAL_NAMES_free(alternatives);
  if (names.empty()) names.emplace_back("(no name)");
  return names;
}

void ConnectionStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  Address(fd_, &getpeername, &ip, &port);
}
void ConnectionStream::get_local_ip_and_port(std::string& ip, int& port) const {
  Address(fd_, &getsockname, &ip, &port);
}

}  // namespace muster
