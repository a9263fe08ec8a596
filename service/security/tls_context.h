// The server side of TLS: certificate, key and client CA from files, which are read again when they change, without a
// restart (SPEC S-6).
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
  std::string client_ca;        // PEM; empty: no client certificates
  bool client_required = true;  // a client without a certificate is refused (otherwise it must present a token)

  [[nodiscard]] bool enabled() const { return !certificate.empty(); }
};

// The contents of the files when they were last usable together.
struct TlsPem {
  std::string certificate;
  std::string key;
  std::string client_ca;
  uint64_t generation = 0;  // changes with the contents; 0: nothing was read yet
};

// Thread-safe.
class TlsContext {
 public:
  explicit TlsContext(TlsFiles files) : files_(std::move(files)) {}

  // Reads the files. InvalidArgument names the one that cannot be used.
  [[nodiscard]] absl::Status Load();
  // The context for a new connection; checks the files at most once a second. If changed files cannot be used, the
  // previous contents stay in use.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> Current();
  // The same contents, for callers that make contexts of their own.
  [[nodiscard]] std::shared_ptr<const TlsPem> CurrentPem();
  [[nodiscard]] const TlsFiles& files() const { return files_; }

 private:
  void ReloadIfChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::StatusOr<std::shared_ptr<ssl_ctx_st>> Build() const;
  [[nodiscard]] uint64_t Stamp() const;

  const TlsFiles files_;
  Mutex mutex_;
  std::shared_ptr<ssl_ctx_st> context_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsPem> pem_ ABSL_GUARDED_BY(mutex_) = std::make_shared<TlsPem>();
  uint64_t stamp_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time checked_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace muster

#endif  // MUSTER_SERVICE_SECURITY_TLS_CONTEXT_H_
