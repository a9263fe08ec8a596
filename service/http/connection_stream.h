// One connection of an HTTP server: input and output within time limits, plain or over TLS.
//
// A request must arrive completely within `request_limit` after its first byte, however slowly it is sent. A client
// that does not read its answer is given up as well. cpp-httplib's own stream limits each read only, and polls an idle
// connection a hundred times a second.
#ifndef MUSTER_SERVICE_HTTP_CONNECTION_STREAM_H_
#define MUSTER_SERVICE_HTTP_CONNECTION_STREAM_H_

#include <httplib.h>
#include <openssl/ssl.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace muster {

class ConnectionStream : public httplib::Stream {
 public:
  // Does not own `fd`, which must be non-blocking. `tls`: nullptr for plain text.
  ConnectionStream(int fd, std::shared_ptr<SSL_CTX> tls, absl::Duration request_limit);
  ~ConnectionStream() override;

  // Performs the TLS handshake within the limit. Returns true at once without TLS.
  [[nodiscard]] bool Accept();
  // Waits for the first byte of a request and starts its clock. Returns false if none arrived or the client left.
  [[nodiscard]] bool WaitForRequest(absl::Duration idle_limit);
  // `arrived` is called when `bytes` more were read: the request is complete.
  void ExpectBody(size_t bytes, std::function<void()> arrived);
  // `stalled(true)` is called when the client has read nothing for a second, and `stalled(false)` when it reads again.
  void OnStall(std::function<void(bool)> stalled) { stalled_ = std::move(stalled); }
  // Sends the TLS close notification.
  void Close();
  // Common name and alternative names of the client's verified certificate; empty: no certificate.
  [[nodiscard]] std::vector<std::string> CertificateNames() const;

  [[nodiscard]] bool is_readable() const override;
  // Also checks whether the client is still connected.
  [[nodiscard]] bool is_writable() const override;
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return fd_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  [[nodiscard]] bool Poll(short events, Time until) const;
  // Returns bytes read; 0: the other side closed; -1: timeout or error.
  [[nodiscard]] ssize_t Receive(char* data, size_t size, Time until);

  // Whether these bytes of a head complete the name of a Range header.
  [[nodiscard]] bool HasRange(const char* data, size_t size);

  const int fd_;
  const std::shared_ptr<SSL_CTX> context_;
  SSL* ssl_ = nullptr;
  const absl::Duration request_limit_;
  Time deadline_;
  std::array<char, 8192> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t head_left_ = 0;  // bytes that the rest of the request's head may have
  bool in_head_ = false;
  bool refused_ = false;     // the head is too long or has a Range header: nothing more is read
  size_t line_matches_ = 0;  // characters of "range:" matched at the start of this line; more: no match
  size_t body_left_ = 0;
  std::function<void()> arrived_;
  std::function<void(bool)> stalled_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_HTTP_CONNECTION_STREAM_H_
