// Authentication and authorization: bearer tokens and client certificates are mapped to an identity with a role (SPEC
// S-6).
//
// Tokens come from a file (a line is "NAME ROLE TOKEN", '#' begins a comment; read again when it changes) or are
// reviewed by Kubernetes (TokenReview; answers are cached for a minute). If neither they nor certificates are
// configured, every caller may do everything; the configuration then allows loopback addresses only.
#ifndef MUSTER_SERVICE_SECURITY_ACCESS_H_
#define MUSTER_SERVICE_SECURITY_ACCESS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "support/sync.h"

namespace muster {

enum class Role : uint8_t { kReadOnly, kReadWrite };

struct Identity {
  std::string name;  // "token:NAME", "user:NAME", "cert:COMMON NAME" or "anonymous"
  Role role = Role::kReadOnly;
};

struct ReviewedUser {
  std::string name;
  std::vector<std::string> groups;
};
// Asks Kubernetes for the user of a token; may block. Unauthenticated: no user. Any other error: unknown at the moment.
using TokenReviewer = std::function<absl::StatusOr<ReviewedUser>(const std::string& token)>;

struct AccessOptions {
  std::string tokens_file;
  bool token_review = false;
  bool client_certificates = false;  // verified by TLS
  // Roles of reviewed users and of certificates: "user:NAME", "group:NAME", "cert:NAME". If no certificate is named at
  // all, every verified certificate may write. Users that are not named have no permission.
  std::vector<std::string> writers;
  std::vector<std::string> readers;
};

// Parses a token file: identities by token. InvalidArgument names the line.
[[nodiscard]] absl::StatusOr<absl::flat_hash_map<std::string, Identity>> ParseTokens(absl::string_view text);

// Thread-safe.
class Access {
 public:
  using Done = std::function<void(absl::StatusOr<Identity>)>;

  Access(AccessOptions options, TokenReviewer reviewer);
  ~Access();
  // InvalidArgument when the token file cannot be used.
  [[nodiscard]] absl::Status Start();
  void Stop();

  // Whether callers must present credentials.
  [[nodiscard]] bool required() const;
  // Calls `done` once, immediately or on another thread. Unauthenticated says what is missing, ResourceExhausted that
  // too many tokens are being reviewed.
  //
  // `bearer`: what follows "Bearer " in the authorization header; empty: none. `certificate`: common and alternative
  // names of the verified client certificate. `address`: of the client, or its connection; each has a limit for
  // concurrent reviews of unknown tokens.
  void Identify(const std::string& bearer, const std::vector<std::string>& certificate, const std::string& address,
                const Done& done);

 private:
  struct Reviewed {
    absl::StatusOr<Identity> identity;
    absl::Time until;
  };
  // A token that is being reviewed: all callers with this token wait for the one answer.
  struct PendingReview {
    std::string token;
    std::string address;
    std::vector<Done> waiting;
  };
  [[nodiscard]] absl::Status ReadTokens() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::StatusOr<Identity> OfUser(const ReviewedUser& user) const;
  [[nodiscard]] absl::StatusOr<Identity> OfCertificate(const std::vector<std::string>& names) const;
  void Review();
  [[nodiscard]] int ReviewsOf(const std::string& address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CacheIdentity(const std::string& digest, const absl::StatusOr<Identity>& identity)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AccessOptions options_;
  const TokenReviewer reviewer_;
  Mutex mutex_;
  CondVar asked_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, Identity> tokens_ ABSL_GUARDED_BY(mutex_);  // by digest of the token
  uint64_t tokens_stamp_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time tokens_checked_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::flat_hash_map<std::string, Reviewed> reviewed_ ABSL_GUARDED_BY(mutex_);              // by digest
  absl::flat_hash_map<std::string, PendingReview> pending_reviews_ ABSL_GUARDED_BY(mutex_);  // by digest
  // Digests to review; those that were accepted before come first.
  std::deque<std::string> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> reviews_by_address_ ABSL_GUARDED_BY(mutex_);  // reviews in progress, by address
  std::vector<std::thread> reviewers_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_SECURITY_ACCESS_H_
