#include "service/security/access.h"

#include <openssl/sha.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "service/security/file_stamp.h"
#include "support/file.h"

namespace muster {
namespace {

constexpr size_t kMaxPendingReviews = 1'024;
constexpr int kMaxPendingReviewsPerAddress = 16;
constexpr int kReviewers = 8;
constexpr size_t kMaxReviewed = 10'000;
constexpr absl::Duration kAcceptedReviewAge = absl::Minutes(1);
constexpr absl::Duration kRejectedReviewAge = absl::Seconds(10);
constexpr size_t kMinToken = 16;

// Tokens are compared by digest, so that the duration reveals nothing about them.
std::string Digest(absl::string_view token) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest);
  return {reinterpret_cast<const char*>(digest), sizeof(digest)};
}

}  // namespace

absl::StatusOr<absl::flat_hash_map<std::string, Identity>> ParseTokens(absl::string_view text) {
  absl::flat_hash_map<std::string, Identity> out;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<std::string> words =
        absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    const bool role = words.size() == 3 && (words[1] == "read-only" || words[1] == "read-write");
    if (!role || words[2].size() < kMinToken) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": expected NAME read-only|read-write TOKEN, the token of at least ", kMinToken,
                       " characters"));
    }
    const Identity identity{absl::StrCat("token:", words[0]),
                            words[1] == "read-write" ? Role::kReadWrite : Role::kReadOnly};
    if (!out.emplace(words[2], identity).second) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": the token is given twice"));
    }
  }
  return out;
}

Access::Access(AccessOptions options, TokenReviewer reviewer)
    : options_(std::move(options)), reviewer_(std::move(reviewer)) {}

Access::~Access() { Stop(); }

absl::Status Access::Start() {
  if (!options_.tokens_file.empty()) {
    MutexLock lock(&mutex_);
    if (absl::Status read = ReadTokens(); !read.ok()) return read;
  }
  for (int i = 0; options_.token_review && i < kReviewers; ++i) reviewers_.emplace_back([this] { Review(); });
  return absl::OkStatus();
}

void Access::Stop() {
  absl::flat_hash_map<std::string, PendingReview> unanswered;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    unanswered.swap(pending_reviews_);
    queue_.clear();
    asked_.SignalAll();
  }
  for (const auto& [digest, question] : unanswered) {
    for (const Done& done : question.waiting) done(absl::UnavailableError("Muster is stopping"));
  }
  for (std::thread& reviewer : std::exchange(reviewers_, {})) reviewer.join();
}

bool Access::required() const {
  return !options_.tokens_file.empty() || options_.token_review || options_.client_certificates;
}

absl::Status Access::ReadTokens() {
  tokens_checked_at_ = SteadyNow();
  const uint64_t stamp = FileStamp(options_.tokens_file);
  if (stamp == tokens_stamp_ && stamp != 0) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadFile(options_.tokens_file);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("auth.tokensFile: ", text.status().message()));
  absl::StatusOr<absl::flat_hash_map<std::string, Identity>> tokens = ParseTokens(*text);
  if (!tokens.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("auth.tokensFile ", options_.tokens_file, ": ", tokens.status().message()));
  }
  tokens_stamp_ = stamp;
  tokens_.clear();
  for (auto& [token, identity] : *tokens) tokens_.emplace(Digest(token), std::move(identity));
  return absl::OkStatus();
}

absl::StatusOr<Identity> Access::OfUser(const ReviewedUser& user) const {
  const auto named = [&](const std::vector<std::string>& list) {
    return absl::c_any_of(list, [&](const std::string& entry) {
      if (entry == absl::StrCat("user:", user.name)) return true;
      return absl::StartsWith(entry, "group:") && absl::c_linear_search(user.groups, entry.substr(6));
    });
  };
  if (named(options_.writers)) return Identity{absl::StrCat("user:", user.name), Role::kReadWrite};
  if (named(options_.readers)) return Identity{absl::StrCat("user:", user.name), Role::kReadOnly};
  return absl::PermissionDeniedError(
      absl::StrCat("user ", user.name, " is in neither auth.writers nor auth.readers, nor is any of its groups"));
}

absl::StatusOr<Identity> Access::OfCertificate(const std::vector<std::string>& names) const {
  const auto is_certificate = [](const std::string& entry) { return absl::StartsWith(entry, "cert:"); };
  const auto named = [&](const std::vector<std::string>& list) {
    return absl::c_any_of(list, [&](const std::string& entry) {
      return is_certificate(entry) && absl::c_linear_search(names, entry.substr(5));
    });
  };
  const std::string name = absl::StrCat("cert:", names.front());
  if (named(options_.writers)) return Identity{name, Role::kReadWrite};
  if (named(options_.readers)) return Identity{name, Role::kReadOnly};
  if (!absl::c_any_of(options_.writers, is_certificate) && !absl::c_any_of(options_.readers, is_certificate)) {
    return Identity{name, Role::kReadWrite};
  }
  return absl::PermissionDeniedError(
      absl::StrCat("certificate ", names.front(), " is in neither auth.writers nor auth.readers"));
}

void Access::Identify(const std::string& bearer, const std::vector<std::string>& certificate,
                      const std::string& address, const Done& done) {
  if (!required()) return done(Identity{"anonymous", Role::kReadWrite});
  if (bearer.empty()) {
    if (!certificate.empty()) return done(OfCertificate(certificate));
    return done(absl::UnauthenticatedError(options_.client_certificates
                                               ? "show a client certificate, or send \"authorization: Bearer TOKEN\""
                                               : "no bearer token; send \"authorization: Bearer TOKEN\""));
  }
  const std::string digest = Digest(bearer);
  absl::StatusOr<Identity> answer = absl::UnauthenticatedError("the bearer token is not known");
  {
    MutexLock lock(&mutex_);
    if (!options_.tokens_file.empty() && SteadyNow() - tokens_checked_at_ > absl::Seconds(1)) {
      if (const absl::Status read = ReadTokens(); !read.ok()) {
        spdlog::warn("{}; the previous tokens stay in use", std::string(read.message()));
      }
    }
    const auto known = tokens_.find(digest);
    if (known != tokens_.end()) {
      answer = known->second;
    } else if (options_.token_review) {
      const auto reviewed = reviewed_.find(digest);
      const bool known_before = reviewed != reviewed_.end() && reviewed->second.identity.ok();
      if (reviewed != reviewed_.end() && reviewed->second.until > SteadyNow()) {
        answer = reviewed->second.identity;
      } else if (stopping_) {
        answer = absl::UnavailableError("Muster is stopping");
      } else if (const auto pending = pending_reviews_.find(digest); pending != pending_reviews_.end()) {
        if (pending->second.waiting.size() < kMaxPendingReviews) {
          pending->second.waiting.push_back(done);
          return;
        }
        answer = absl::ResourceExhaustedError("too many calls wait for this token's review; try again in a moment");
      } else if (!known_before && (pending_reviews_.size() >= kMaxPendingReviews ||
                                   ReviewsOf(address) >= kMaxPendingReviewsPerAddress)) {
        answer = absl::ResourceExhaustedError("too many tokens are being reviewed; try again in a moment");
      } else {
        ++reviews_by_address_[address];
        pending_reviews_[digest] = PendingReview{bearer, address, {done}};
        queue_.insert(known_before ? queue_.begin() : queue_.end(), digest);
        asked_.Signal();
        return;
      }
    }
  }
  done(std::move(answer));
}

void Access::Review() {
  while (true) {
    std::string digest;
    std::string token;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) asked_.Wait(&mutex_);
      if (stopping_) return;
      digest = std::move(queue_.front());
      queue_.pop_front();
      token = pending_reviews_.find(digest)->second.token;
    }
    const absl::StatusOr<ReviewedUser> user = reviewer_(token);
    const absl::StatusOr<Identity> identity = user.ok() ? OfUser(*user) : absl::StatusOr<Identity>(user.status());
    std::vector<Done> waiting;
    {
      MutexLock lock(&mutex_);
      if (user.ok() || absl::IsUnauthenticated(user.status())) CacheIdentity(digest, identity);
      const auto question = pending_reviews_.find(digest);
      if (question == pending_reviews_.end()) continue;  // stopping: all callers were answered
      waiting.swap(question->second.waiting);
      const auto address = reviews_by_address_.find(question->second.address);
      if (--address->second == 0) reviews_by_address_.erase(address);
      pending_reviews_.erase(question);
    }
    for (const Done& done : waiting) done(identity);
  }
}

int Access::ReviewsOf(const std::string& address) const {
  const auto found = reviews_by_address_.find(address);
  return found == reviews_by_address_.end() ? 0 : found->second;
}

// Valid answers are not evicted by invalid tokens, which any client can produce. An expired one still tells that the
// token was accepted before.
void Access::CacheIdentity(const std::string& digest, const absl::StatusOr<Identity>& identity) {
  const absl::Time now = SteadyNow();
  if (reviewed_.size() >= kMaxReviewed)
    absl::erase_if(reviewed_, [](const auto& entry) { return !entry.second.identity.ok(); });
  if (reviewed_.size() >= kMaxReviewed)
    absl::erase_if(reviewed_, [&](const auto& entry) { return entry.second.until <= now; });
  if (reviewed_.size() >= kMaxReviewed) reviewed_.clear();
  reviewed_.insert_or_assign(digest,
                             Reviewed{identity, now + (identity.ok() ? kAcceptedReviewAge : kRejectedReviewAge)});
}

}  // namespace muster
