// Credentials of the gRPC listener: TLS with certificates that are checked before they are used, and callers that are
// identified before anything they send is received (SPEC S-6, S-11).
#ifndef MUSTER_SERVICE_RPC_SERVER_CREDENTIALS_H_
#define MUSTER_SERVICE_RPC_SERVER_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "service/security/access.h"
#include "service/security/tls_context.h"

namespace muster {

// gRPC's own file watcher uses any contents, even a certificate without its key, and then refuses all connections until
// the files are corrected. These credentials query `tls` at every handshake instead; nullptr: plain text.
//
// If `access` requires credentials, a call without valid ones ends when its headers have arrived: its message is
// neither received nor parsed. The health check is open to every caller.
//
// `access` must outlive the server, as must the result.
[[nodiscard]] std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(std::unique_ptr<TlsContext> tls,
                                                                             Access* access);

// What follows "Bearer " in an authorization header; empty: another scheme.
[[nodiscard]] std::string BearerToken(absl::string_view authorization);

// The names of a verified client certificate: its common name, and its alternative names that are host names or URIs.
// Others, such as e-mail addresses, are no names: many authorities sign them for their owners. `values` returns the
// values of a property of the connection (grpc_security_constants.h).
[[nodiscard]] std::vector<std::string> CertificateNames(
    const std::function<std::vector<std::string>(const char* property)>& values);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_SERVER_CREDENTIALS_H_
