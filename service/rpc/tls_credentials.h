// TLS for the gRPC server, with certificates that were looked at before they are used.
#ifndef MUSTER_SERVICE_RPC_TLS_CREDENTIALS_H_
#define MUSTER_SERVICE_RPC_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "service/security/tls_context.h"

namespace muster {

// gRPC's own watcher of files takes what it finds, also a certificate without its key, and refuses everybody until that
// is mended. These credentials ask `context` at every handshake. They must outlive the server.
[[nodiscard]] std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(std::unique_ptr<TlsContext> context);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_TLS_CREDENTIALS_H_
