// Which sources of facts have been read, and which announcer sends them (SPEC K-13, S-1). Not thread-safe.
#ifndef MUSTER_STATE_GANGS_SOURCES_H_
#define MUSTER_STATE_GANGS_SOURCES_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "state/base/reason.h"
#include "state/base/time.h"

namespace muster {

class Sources {
 public:
  // `expected`: sources that must all be read before anything is planned; empty: the announcer reports when all is
  // read. `stale_after_ms`: how long facts that only an earlier process received are used; 0: without limit.
  explicit Sources(const std::vector<std::string>& expected = {}, int64_t stale_after_ms = 0)
      : stale_after_ms_(stale_after_ms) {
    Expect(expected);
  }

  // All existing facts have been announced: planning may begin.
  [[nodiscard]] bool complete() const { return complete_; }
  // Names of the expected sources that have not been read yet.
  [[nodiscard]] const absl::btree_set<std::string>& unread() const { return unread_; }
  // Why nothing is planned yet. REQUIRES: !complete().
  [[nodiscard]] Reason Reading() const {
    return {ReasonCode::kStarting, absl::StrCat("Muster is still reading the cluster", unread_.empty() ? "" : ": ",
                                                absl::StrJoin(unread_, ", "))};
  }

  // Replaces the expected sources. No effect once complete.
  void Expect(const std::vector<std::string>& sources) {
    unread_ = absl::btree_set<std::string>(sources.begin(), sources.end());
    expects_ = !sources.empty();
  }
  // All facts of `source` have been announced; empty: all facts, when no source is expected. Returns whether this
  // completes the reading.
  bool Complete(const std::string& source = "") {
    unread_.erase(source);
    if (complete_ || !unread_.empty() || expects_ == source.empty()) return false;
    complete_ = true;
    return true;
  }

  // The announcer of facts in numbered steps, and its last version; empty and 0: none yet.
  [[nodiscard]] const std::string& announcer() const { return announcer_; }
  [[nodiscard]] int64_t version() const { return version_; }
  // Checks a step of facts that is not a snapshot. FailedPrecondition: it must not be applied (S-1). Version 0: a
  // manual edit, always allowed.
  [[nodiscard]] absl::Status CheckStep(absl::string_view announcer, int64_t version) const {
    if (version == 0) return absl::OkStatus();
    if (announcer_.empty()) {
      return absl::FailedPreconditionError("nothing was announced since this process started; send a snapshot");
    }
    if (announcer != announcer_) {
      return absl::FailedPreconditionError(
          absl::StrCat("facts are announced by \"", announcer_, "\" now; to take over, send a snapshot"));
    }
    if (version - 1 <= version_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("version ", version, " follows a gap: the last version here is ", version_, "; send a snapshot"));
  }
  void TakeStep(const std::string& announcer, int64_t version) {
    announcer_ = announcer;
    version_ = version;
  }

  // Since when the facts are those that an earlier process received, and the announcer has been silent (S-2); kNever:
  // this process received them.
  [[nodiscard]] int64_t stale_since_ms() const { return stale_since_ms_; }
  void SetStaleSince(int64_t now_ms) {
    stale_since_ms_ = now_ms;
    shut_ = false;
  }
  // When restored facts become too old for placing; kNever: never, or they already are.
  [[nodiscard]] int64_t ExpiresAt() const {
    const bool expires = stale_since_ms_ != kNever && stale_after_ms_ > 0 && !shut_;
    return expires ? stale_since_ms_ + stale_after_ms_ : kNever;
  }
  void SetExpired() { shut_ = true; }

  static constexpr auto Recorded() {
    return std::tuple(&Sources::complete_, &Sources::expects_, &Sources::unread_, &Sources::announcer_,
                      &Sources::version_, &Sources::stale_since_ms_, &Sources::shut_);
  }

 private:
  const int64_t stale_after_ms_;
  bool complete_ = false;
  bool expects_ = false;
  absl::btree_set<std::string> unread_;
  std::string announcer_;
  int64_t version_ = 0;
  int64_t stale_since_ms_ = kNever;
  bool shut_ = false;
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_SOURCES_H_
