#include "service/rpc/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>

#include "support/sync.h"

namespace muster {
namespace {

class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(std::unique_ptr<TlsContext> context) : context_(std::move(context)) {
    const TlsFiles& files = context_->files();
    const grpc_ssl_client_certificate_request_type asked =
        files.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
        : files.client_required ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(asked, &TlsCredentials::Fetch, this));
  }
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }
  TlsCredentials(const TlsCredentials&) = delete;
  TlsCredentials& operator=(const TlsCredentials&) = delete;

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // Called before each handshake: returns a newer configuration than the last one, if there is one.
  static grpc_ssl_certificate_config_reload_status Fetch(void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsCredentials*>(self)->Give(config);
  }
  grpc_ssl_certificate_config_reload_status Give(grpc_ssl_server_certificate_config** config) {
    const std::shared_ptr<const TlsPem> pem = context_->CurrentPem();
    MutexLock lock(&mutex_);
    if (pem->generation == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{pem->key.c_str(), pem->certificate.c_str()};
    // gRPC requires roots even when no client certificate is requested; then nothing is verified with them.
    const std::string& roots = pem->client_ca.empty() ? pem->certificate : pem->client_ca;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    if (*config == nullptr) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
    given_ = pem->generation;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::unique_ptr<TlsContext> context_;
  grpc_server_credentials* credentials_ = nullptr;
  Mutex mutex_;
  uint64_t given_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(std::unique_ptr<TlsContext> context) {
  return std::make_shared<TlsCredentials>(std::move(context));
}

}  // namespace muster
