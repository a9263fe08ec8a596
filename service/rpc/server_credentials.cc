#include "service/rpc/server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "support/sync.h"

namespace muster {
namespace {

constexpr absl::string_view kHealthCheck = "/grpc.health.v1.Health/Check";

absl::string_view TextOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

std::vector<std::string> ValuesOf(const grpc_auth_context* connection, const char* property) {
  std::vector<std::string> values;
  grpc_auth_property_iterator each = grpc_auth_context_find_properties_by_name(connection, property);
  while (const grpc_auth_property* value = grpc_auth_property_iterator_next(&each)) {
    values.emplace_back(value->value, value->value_length);
  }
  return values;
}

class ListenerCredentials final : public grpc::ServerCredentials {
 public:
  ListenerCredentials(std::unique_ptr<TlsContext> tls, Access* access) : tls_(std::move(tls)), access_(access) {
    credentials_ = tls_ == nullptr ? grpc_insecure_server_credentials_create() : Tls();
    if (access_ == nullptr || !access_->required()) return;
    grpc_server_credentials_set_auth_metadata_processor(credentials_,
                                                        {&ListenerCredentials::Identify, [](void*) {}, /*state=*/this});
  }
  ~ListenerCredentials() override { grpc_server_credentials_release(credentials_); }
  ListenerCredentials(const ListenerCredentials&) = delete;
  ListenerCredentials& operator=(const ListenerCredentials&) = delete;

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* Tls() {
    const TlsFiles& files = tls_->files();
    const grpc_ssl_client_certificate_request_type asked =
        files.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
        : files.client_required ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(asked, &ListenerCredentials::Fetch, this));
  }

  // Called before each handshake: returns a newer configuration than the last one, if there is one.
  static grpc_ssl_certificate_config_reload_status Fetch(void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ListenerCredentials*>(self)->Give(config);
  }
  grpc_ssl_certificate_config_reload_status Give(grpc_ssl_server_certificate_config** config) {
    const std::shared_ptr<const TlsPem> pem = tls_->CurrentPem();
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

  // Called when the headers of a call have arrived. `done` lets it continue, or ends it with a status.
  static void Identify(void* self, grpc_auth_context* connection, const grpc_metadata* headers, size_t count,
                       grpc_process_auth_metadata_done_cb done, void* call) {
    std::string bearer;
    for (size_t i = 0; i < count; ++i) {
      const absl::string_view key = TextOf(headers[i].key);
      if (key == ":path" && TextOf(headers[i].value) == kHealthCheck) {
        return done(call, nullptr, 0, nullptr, 0, GRPC_STATUS_OK, nullptr);
      }
      if (key == "authorization") bearer = BearerToken(TextOf(headers[i].value));
    }
    // The client's address is not available here. The connection replaces it as the unit that is limited.
    const std::string client = absl::StrCat("connection:", reinterpret_cast<uintptr_t>(connection));
    const std::vector<std::string> certificate =
        CertificateNames([connection](const char* property) { return ValuesOf(connection, property); });
    static_cast<ListenerCredentials*>(self)->access_->Identify(
        bearer, certificate, client, [done, call](const absl::StatusOr<Identity>& identity) {
          const absl::Status& status = identity.status();
          // Clients send a call again when it was UNAVAILABLE; other codes need details, which cannot be sent here.
          const absl::StatusCode code =
              absl::IsResourceExhausted(status) ? absl::StatusCode::kUnavailable : status.code();
          const std::string text(status.message());
          done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(code), text.c_str());
        });
  }

  const std::unique_ptr<TlsContext> tls_;
  Access* const access_;
  grpc_server_credentials* credentials_ = nullptr;
  Mutex mutex_;
  uint64_t given_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(std::unique_ptr<TlsContext> tls, Access* access) {
  return std::make_shared<ListenerCredentials>(std::move(tls), access);
}

std::string BearerToken(absl::string_view authorization) {
  return absl::ConsumePrefix(&authorization, "Bearer ") ? std::string(authorization) : "";
}

std::vector<std::string> CertificateNames(const std::function<std::vector<std::string>(const char* property)>& values) {
  std::vector<std::string> names;
  for (const char* property : {GRPC_X509_CN_PROPERTY_NAME, GRPC_PEER_DNS_PROPERTY_NAME, GRPC_PEER_URI_PROPERTY_NAME}) {
    for (std::string& name : values(property)) {
      // Some consumer might cut off a name at a control character.
      const bool plain = absl::c_none_of(name, [](unsigned char c) { return absl::ascii_iscntrl(c); });
      if (plain) names.push_back(std::move(name));
    }
  }
  if (names.empty() && !values(GRPC_X509_PEM_CERT_PROPERTY_NAME).empty()) names.emplace_back("(no name)");
  return names;
}

}  // namespace muster
