#include "tests/simulation/shorten.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace muster {
namespace {

constexpr int kMaxTurns = 100'000'000;

}  // namespace

absl::StatusOr<Turns> Turns::Parse(absl::string_view text) {
  Turns turns(0);
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0;
    int last = 0;
    const bool read =
        ends.size() <= 2 && absl::SimpleAtoi(ends.front(), &first) && absl::SimpleAtoi(ends.back(), &last);
    if (!read || first < turns.end() || last < first || last >= kMaxTurns) {
      return absl::InvalidArgumentError(absl::StrCat("\"", part, "\": expected turns in order, such as 3-7,12"));
    }
    turns.taken_.resize(static_cast<size_t>(first), false);
    turns.taken_.resize(static_cast<size_t>(last) + 1, true);
  }
  return turns;
}

std::string Turns::ToString() const {
  std::string text;
  for (int turn = 0; turn < end(); ++turn) {
    if (!Has(turn)) continue;
    const int first = turn;
    while (turn + 1 < end() && Has(turn + 1)) ++turn;
    absl::StrAppend(&text, text.empty() ? "" : ",", first);
    if (turn > first) absl::StrAppend(&text, "-", turn);
  }
  return text;
}

int Turns::count() const { return static_cast<int>(std::count(taken_.begin(), taken_.end(), true)); }

Turns Turns::Without(int from, int to) const {
  Turns rest = *this;
  int at = 0;
  for (size_t turn = 0; turn < taken_.size(); ++turn) {
    if (!taken_[turn]) continue;
    rest.taken_[turn] = at < from || at >= to;
    ++at;
  }
  while (!rest.taken_.empty() && !rest.taken_.back()) rest.taken_.pop_back();
  return rest;
}

// Delta debugging (Zeller and Hildebrandt, 2002) by omission: large parts first, then smaller ones, down to single
// turns, until no part can be left out.
Turns Shorten(Turns failing, const std::function<bool(const Turns&)>& fails, absl::Duration patience) {
  const absl::Time end = absl::Now() + patience;
  for (int part = failing.count() / 2; part > 0;) {
    bool removed_any = false;
    // From the end: fewer turns depend on late ones.
    for (int to = failing.count(); to > 0 && absl::Now() < end; to -= part) {
      Turns rest = failing.Without(std::max(to - part, 0), to);
      if (!fails(rest)) continue;
      failing = std::move(rest);
      removed_any = true;
    }
    if (absl::Now() >= end) break;
    if (part == 1 && !removed_any) break;
    part = part == 1 ? 1 : part / 2;
  }
  return failing;
}

}  // namespace muster
