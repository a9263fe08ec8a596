// TLS for the gRPC server, with certificates that are checked before they are used.
#ifndef MUSTER_SERVICE_RPC_TLS_CREDENTIALS_H_
#define MUSTER_SERVICE_RPC_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "service/security/tls_context.h"

namespace muster {

// gRPC's own file watcher uses any contents, even a certificate without its key, and then refuses all connections until
// the files are corrected. These credentials query `context` at every handshake instead. They must outlive the server.
[[nodiscard]] std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(std::unique_ptr<TlsContext> context);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_TLS_CREDENTIALS_H_
