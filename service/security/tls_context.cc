#include "service/security/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>

#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/security/file_stamp.h"
#include "support/file.h"

namespace muster {
namespace {

std::string LastError() {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  ERR_clear_error();
  return text;
}

}  // namespace

uint64_t TlsContext::Stamp() const {
  return FileStamp(files_.certificate) ^ (FileStamp(files_.key) * 3) ^ (FileStamp(files_.client_ca) * 7);
}

absl::Status TlsContext::Load() {
  MutexLock lock(&mutex_);
  checked_at_ = SteadyNow();
  return Read();
}

std::shared_ptr<SSL_CTX> TlsContext::Current() {
  MutexLock lock(&mutex_);
  ReloadIfChanged();
  return context_;
}

std::shared_ptr<const TlsPem> TlsContext::CurrentPem() {
  MutexLock lock(&mutex_);
  ReloadIfChanged();
  return pem_;
}

void TlsContext::ReloadIfChanged() {
  if (SteadyNow() - checked_at_ < absl::Seconds(1)) return;
  checked_at_ = SteadyNow();
  if (Stamp() == stamp_) return;
  if (const absl::Status read = Read(); !read.ok()) {
    spdlog::warn("{}; the previous certificate stays in use", std::string(read.message()));
  } else {
    spdlog::info("tls: certificate {} was read again", files_.certificate);
  }
}

absl::Status TlsContext::Read() {
  const uint64_t stamp = Stamp();
  auto pem = std::make_shared<TlsPem>();
  pem->generation = pem_->generation + 1;
  for (const auto& [field, path, out] : {std::tuple{"tls.certFile", &files_.certificate, &pem->certificate},
                                         std::tuple{"tls.keyFile", &files_.key, &pem->key},
                                         std::tuple{"tls.clientCaFile", &files_.client_ca, &pem->client_ca}}) {
    if (path->empty()) continue;
    absl::StatusOr<std::string> text = ReadFile(*path);
    if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat(field, ": ", text.status().message()));
    *out = *std::move(text);
  }
  absl::StatusOr<std::shared_ptr<SSL_CTX>> built = Build();
  if (!built.ok()) return built.status();
  if (Stamp() != stamp) {
    return absl::InvalidArgumentError(
        absl::StrCat("tls.certFile ", files_.certificate, ": the files are being changed"));
  }
  stamp_ = stamp;
  context_ = *std::move(built);
  pem_ = std::move(pem);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<SSL_CTX>> TlsContext::Build() const {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files_.certificate.c_str()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("tls.certFile ", files_.certificate, ": ", LastError()));
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files_.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("tls.keyFile ", files_.key, ": ", LastError()));
  }
  if (files_.client_ca.empty()) return context;
  if (SSL_CTX_load_verify_locations(context.get(), files_.client_ca.c_str(), nullptr) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("tls.clientCaFile ", files_.client_ca, ": ", LastError()));
  }
  SSL_CTX_set_client_CA_list(context.get(), SSL_load_client_CA_file(files_.client_ca.c_str()));
  const unsigned char session[] = "muster";
  SSL_CTX_set_session_id_context(context.get(), session, sizeof(session) - 1);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | (files_.client_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  return context;
}

}  // namespace muster
