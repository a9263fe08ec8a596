// One connection of an HTTP door: bytes in and out within bounds of time, in the clear or over TLS.
//
// A request must have arrived `request_limit` after its first byte, however slowly it dribbles; a client that does not
// read its answer is given up as well. cpp-httplib's own stream bounds each read only, and looks at an idle connection
// a hundred times a second.
#ifndef MUSTER_SERVICE_HTTP_DOOR_STREAM_H_
#define MUSTER_SERVICE_HTTP_DOOR_STREAM_H_

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

class DoorStream : public httplib::Stream {
 public:
  // Does not own `fd`, which must be non-blocking. `tls`: nullptr in the clear.
  DoorStream(int fd, std::shared_ptr<SSL_CTX> tls, absl::Duration request_limit);
  ~DoorStream() override;

  // The TLS handshake, within the limit. True at once without TLS.
  [[nodiscard]] bool Accept();
  // Waits for the first byte of a request and starts its clock. False: none came, or the client left.
  [[nodiscard]] bool WaitForRequest(absl::Duration idle_limit);
  // `arrived` is called when `bytes` more were read: the request is complete.
  void ExpectBody(size_t bytes, std::function<void()> arrived);
  // `stalled(true)` is called when the client has read nothing of what is written for a second, and false when it does.
  void OnStall(std::function<void(bool)> stalled) { stalled_ = std::move(stalled); }
  // Says good-bye (TLS).
  void Close();
  // Common name and alternative names of the client's verified certificate; empty: it showed none.
  [[nodiscard]] std::vector<std::string> CertificateNames() const;

  [[nodiscard]] bool is_readable() const override;
  // Also whether the client is still there.
  [[nodiscard]] bool is_writable() const override;
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return fd_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  [[nodiscard]] bool Poll(short events, Time until) const;
  // Bytes read; 0: the other side closed; -1: nothing came in time, or it failed.
  [[nodiscard]] ssize_t Receive(char* data, size_t size, Time until);

  // Whether these bytes of a head end the name of a Range header.
  [[nodiscard]] bool HasRange(const char* data, size_t size);

  const int fd_;
  const std::shared_ptr<SSL_CTX> context_;
  SSL* ssl_ = nullptr;
  const absl::Duration request_limit_;
  Time deadline_;
  std::array<char, 8192> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t head_left_ = 0;  // bytes that the request's head may still have
  bool in_head_ = false;
  bool refused_ = false;     // a head that is too long, or asks for ranges: nothing more is read
  size_t line_matches_ = 0;  // characters of "range:" that this line began with; more: it is another line
  size_t body_left_ = 0;
  std::function<void()> arrived_;
  std::function<void(bool)> stalled_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_HTTP_DOOR_STREAM_H_
