// What has been read of the outside world, and from whom (SPEC K-13, S-1). Not thread-safe.
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
  // `expected`: sources that must be read, each, before anything is planned. None: whoever announces says when that is.
  // `stale_after_ms`: how long what only an earlier process was told is built on; 0: for ever.
  explicit Sources(const std::vector<std::string>& expected = {}, int64_t stale_after_ms = 0)
      : stale_after_ms_(stale_after_ms) {
    Expect(expected);
  }

  // Everything that existed has been announced: planning may begin.
  [[nodiscard]] bool complete() const { return complete_; }
  // Names of expected sources that were not read yet.
  [[nodiscard]] const absl::btree_set<std::string>& unread() const { return unread_; }
  // Why nothing is planned yet. REQUIRES: not complete.
  [[nodiscard]] Reason Reading() const {
    return {ReasonCode::kStarting, absl::StrCat("Muster is still reading the cluster", unread_.empty() ? "" : ": ",
                                                absl::StrJoin(unread_, ", "))};
  }

  // These are expected from now on, instead of what was before. Harmless once everything is read.
  void Expect(const std::vector<std::string>& sources) {
    unread_ = absl::btree_set<std::string>(sources.begin(), sources.end());
    expects_ = !sources.empty();
  }
  // Everything of `source` has been announced; empty: everything, where nothing in particular is expected. Returns
  // whether all is read by that, and was not before.
  bool Complete(const std::string& source = "") {
    unread_.erase(source);
    if (complete_ || !unread_.empty() || expects_ == source.empty()) return false;
    complete_ = true;
    return true;
  }

  // Who announces facts in numbered steps, and the last version; empty and 0: nobody yet.
  [[nodiscard]] const std::string& announcer() const { return announcer_; }
  [[nodiscard]] int64_t version() const { return version_; }
  // FailedPrecondition: this step of facts, which is no snapshot, may not be taken (S-1). Version 0: an edit by hand.
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
        absl::StrCat("version ", version, " comes after a gap: ", version_, " is the last one here; send a snapshot"));
  }
  void TakeStep(const std::string& announcer, int64_t version) {
    announcer_ = announcer;
    version_ = version;
  }

  // Since when what is known was only said to an earlier process, by an announcer who has not spoken since (S-2);
  // kNever: it was said to this one.
  [[nodiscard]] int64_t stale_since_ms() const { return stale_since_ms_; }
  void SetStaleSince(int64_t now_ms) {
    stale_since_ms_ = now_ms;
    shut_ = false;
  }
  // When it is too old to place anything on; kNever: not, or it is already.
  [[nodiscard]] int64_t ShutAt() const {
    const bool open = stale_since_ms_ != kNever && stale_after_ms_ > 0 && !shut_;
    return open ? stale_since_ms_ + stale_after_ms_ : kNever;
  }
  void SetShut() { shut_ = true; }

  // What a recording keeps (state/recording/members.h).
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
