// A bare TCP connection to a server on this machine, for tests that speak below HTTP and gRPC.
#ifndef MUSTER_TESTS_SUPPORT_LOOPBACK_H_
#define MUSTER_TESTS_SUPPORT_LOOPBACK_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace muster {

// The connected socket, which the caller closes; -1 if nothing listens on `port`.
inline int ConnectLoopback(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_LOOPBACK_H_
