#include "service/security/access.h"

#include <openssl/sha.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "service/security/file_stamp.h"

namespace muster {
namespace {

constexpr size_t kMaxQuestions = 1'024;
constexpr size_t kMaxReviewed = 10'000;
constexpr absl::Duration kKeepGood = absl::Minutes(1);
constexpr absl::Duration kKeepBad = absl::Seconds(10);
constexpr size_t kShortestToken = 16;

// Tokens are compared by digest: how long that takes tells nothing about them.
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
    if (!role || words[2].size() < kShortestToken) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": expected NAME read-only|read-write TOKEN, the token of at least ",
                       kShortestToken, " characters"));
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
  if (options_.token_review) reviewing_ = std::thread([this] { Review(); });
  return absl::OkStatus();
}

void Access::Stop() {
  std::deque<Question> unanswered;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    unanswered.swap(questions_);
    asked_.SignalAll();
  }
  for (Question& question : unanswered) question.done(absl::UnavailableError("Muster is stopping"));
  if (reviewing_.joinable()) reviewing_.join();
}

bool Access::required() const {
  return !options_.tokens_file.empty() || options_.token_review || options_.client_certificates;
}

absl::Status Access::ReadTokens() {
  tokens_looked_at_ = absl::Now();
  const int64_t stamp = FileStamp(options_.tokens_file);
  if (stamp == tokens_stamp_ && stamp != 0) return absl::OkStatus();
  std::ifstream in(options_.tokens_file);
  if (!in) return absl::NotFoundError(absl::StrCat("auth.tokensFile: cannot read ", options_.tokens_file));
  std::ostringstream text;
  text << in.rdbuf();
  absl::StatusOr<absl::flat_hash_map<std::string, Identity>> tokens = ParseTokens(text.str());
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

void Access::Identify(const std::string& bearer, const std::vector<std::string>& certificate, const Done& done) {
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
    if (!options_.tokens_file.empty() && absl::Now() - tokens_looked_at_ > absl::Seconds(1)) {
      if (const absl::Status read = ReadTokens(); !read.ok()) {
        spdlog::warn("{}; the tokens read before stay", std::string(read.message()));
      }
    }
    const auto known = tokens_.find(digest);
    if (known != tokens_.end()) {
      answer = known->second;
    } else if (options_.token_review) {
      const auto reviewed = reviewed_.find(digest);
      if (reviewed != reviewed_.end() && reviewed->second.until > absl::Now()) {
        answer = reviewed->second.identity;
      } else if (stopping_) {
        answer = absl::UnavailableError("Muster is stopping");
      } else if (questions_.size() >= kMaxQuestions) {
        answer = absl::ResourceExhaustedError("too many tokens are being reviewed; try again in a moment");
      } else {
        questions_.push_back({bearer, done});
        asked_.Signal();
        return;
      }
    }
  }
  done(std::move(answer));
}

void Access::Review() {
  while (true) {
    Question question;
    {
      MutexLock lock(&mutex_);
      while (questions_.empty() && !stopping_) asked_.Wait(&mutex_);
      if (stopping_) return;
      question = std::move(questions_.front());
      questions_.pop_front();
    }
    const std::string digest = Digest(question.token);
    absl::StatusOr<Identity> identity = absl::UnauthenticatedError("the bearer token is not known");
    const absl::StatusOr<ReviewedUser> user = reviewer_(question.token);
    if (user.ok()) {
      identity = OfUser(*user);
    } else {
      identity = user.status();
    }
    const bool known = user.ok() || absl::IsUnauthenticated(user.status());
    if (known) {
      MutexLock lock(&mutex_);
      if (reviewed_.size() >= kMaxReviewed) reviewed_.clear();
      reviewed_.insert_or_assign(digest, Reviewed{identity, absl::Now() + (identity.ok() ? kKeepGood : kKeepBad)});
    }
    question.done(std::move(identity));
  }
}

}  // namespace muster
