// The server side of TLS for the HTTP doors: certificate, key and client CA from files that are read again when they
// change, without a restart (SPEC S-6).
#ifndef MUSTER_SERVICE_SECURITY_TLS_CONTEXT_H_
#define MUSTER_SERVICE_SECURITY_TLS_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "support/sync.h"

struct ssl_ctx_st;

namespace muster {

struct TlsFiles {
  std::string certificate;      // PEM: the server's, then its chain
  std::string key;              // PEM
  std::string client_ca;        // PEM; empty: clients show no certificate
  bool client_required = true;  // a client without a certificate is refused (else it must show a token)

  [[nodiscard]] bool enabled() const { return !certificate.empty(); }
};

// What the files hold, as it was when all of it could be used together.
struct TlsPem {
  std::string certificate;
  std::string key;
  std::string client_ca;
  uint64_t generation = 0;  // another number for other contents; 0: nothing was read yet
};

// Thread-safe.
class TlsContext {
 public:
  explicit TlsContext(TlsFiles files) : files_(std::move(files)) {}

  // Reads the files. InvalidArgument names the one that cannot be used.
  [[nodiscard]] absl::Status Load();
  // For a new connection; looks at the files at most once a second. When changed files cannot be used, what was read
  // before stays in use.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> Current();
  // The same, for who makes contexts of its own.
  [[nodiscard]] std::shared_ptr<const TlsPem> CurrentPem();
  [[nodiscard]] const TlsFiles& files() const { return files_; }

 private:
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::StatusOr<std::shared_ptr<ssl_ctx_st>> Build() const;
  [[nodiscard]] uint64_t Stamp() const;

  const TlsFiles files_;
  Mutex mutex_;
  std::shared_ptr<ssl_ctx_st> context_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsPem> pem_ ABSL_GUARDED_BY(mutex_) = std::make_shared<TlsPem>();
  uint64_t stamp_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time looked_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace muster

#endif  // MUSTER_SERVICE_SECURITY_TLS_CONTEXT_H_
