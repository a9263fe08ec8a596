// Room that is kept for a gang until ending pods give back the rest (SPEC P-8), or until others are over.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "state/reservations/projected_release.h"
#include "state/scheduling/planning.h"

namespace muster {

bool Planning::KeepSome(const Gang& gang, const Group& gangs, const Pipeline::Lifted& lifted, int64_t* lending,
                        int64_t now_ms, Reason* reason) {
  if (lifted.held) {
    NameHeldRoom(gang, reason);
    return false;
  }
  const bool cluster = reason->code != ReasonCode::kTooManyHolds && !Queues::Said(*reason);
  if (cluster && KeepRoom(gang, gangs, lending, now_ms)) {
    // Under policy hold it comes first like any that waits for what others use.
    if (r_.queues->tree().rules().head == HeadPolicy::kHold) {
      r_.heads->NoteCouldRun(gang, /*could=*/true, /*strict=*/false, now_ms);
    }
    NameKeptRoom(gang, reason);
    return true;
  }
  return HoldRoom(gang, gangs, lifted, now_ms, reason);
}

bool Planning::Keepable(const Group& gangs) const {
  for (const Gang* each : gangs) {
    for (const Candidates& run : r_.gangs->CandidateRuns(*each)) {
      const PodClass& cls = r_.cluster->pod_class(run.cls);
      if (cls.has_neighbours || !cls.shape->host_ports.empty()) return false;
    }
  }
  return true;
}

bool Planning::KeepRoom(const Gang& gang, const Group& gangs, int64_t* lending, int64_t now_ms) {
  if (*lending < r_.pipeline->CostOfLending() || !r_.pipeline->AnyEnding(now_ms)) return false;
  if (!Keepable(gangs)) return false;
  *lending -= r_.pipeline->CostOfLending();
  const std::vector<Statement::Operation> lent = r_.pipeline->Lend(now_ms);
  const std::vector<const Pod*> nominated = r_.nominations->Borrow();  // some of it was made for them (K-9)
  std::vector<Statement::Operation> places;
  Statement statement(r_.cluster);
  if (LacksMinResources(gangs).none() && Fits(gangs, settings_.tries, &statement)) places = statement.operations();
  statement.Rollback(0);
  r_.nominations->GiveBack(nominated);
  r_.pipeline->TakeBack(lent);
  if (places.empty()) return false;
  ++stats_.kept;
  r_.pipeline->Keep(gang, places, now_ms);
  return true;
}

int64_t Planning::OverBy(const Group& gangs, int64_t now_ms) {
  int64_t over_ms = now_ms;
  for (const Gang* gang : gangs) {
    if (gang->rules.duration_ms == 0) return kNever;
    over_ms = std::max(over_ms, now_ms + gang->rules.duration_ms);
  }
  return over_ms;
}

bool Planning::HoldRoom(const Gang& gang, const Group& gangs, const Pipeline::Lifted& lifted, int64_t now_ms,
                        Reason* reason) {
  const bool starved = r_.heads->Starved(gang, now_ms);
  const bool hold = r_.queues->tree().rules().head == HeadPolicy::kHold;
  if (Queues::Said(*reason)) {
    if (reason->code == ReasonCode::kQueueRejected) return false;
    const bool first = hold && !r_.queues->HeldForOthers(gang);
    if (!starved && !first) return false;
    if (!CouldRun(gang, gangs, lifted, now_ms)) {
      if (r_.heads->Of(gang).could == Heads::State::Could::kNo) r_.queues->EndHold(gang);
      return false;
    }
    r_.queues->Hold(gang);
    absl::StrAppend(&reason->text, r_.queues->HeldWords());
    return false;
  }
  if (reason->code == ReasonCode::kTooManyHolds) return false;
  const bool timed = !starved && !hold;
  if (timed && (!r_.heads->AnyTimed() || !r_.heads->First(gang))) return false;
  if (!hold && !r_.heads->MayTry(gang, now_ms)) {
    r_.heads->Doubt(gang);
    return false;
  }
  const bool keepable = Keepable(gangs);
  int64_t starts_ms = kNever;
  std::vector<Statement::Operation> places = RoomOnceOver(gangs, timed, KeptBefore(gang, lifted), now_ms, &starts_ms);
  if (timed) {
    r_.heads->NoteTried(gang, now_ms);
  } else {
    r_.heads->NoteCouldRun(gang, !places.empty(), /*strict=*/!keepable && !places.empty(), now_ms);
    // Who could not run if nothing ran keeps nobody out of its queues.
    places.empty() ? r_.queues->EndHold(gang) : r_.queues->Hold(gang);
  }
  if (places.empty() || !keepable) return false;
  ++stats_.held;
  r_.pipeline->Hold(gang, places, starts_ms);
  NameHeldRoom(gang, reason);
  return true;
}

// Of a gang that its queues hold back: there would be room for it on nodes if nothing else ran.
bool Planning::CouldRun(const Gang& gang, const Group& gangs, const Pipeline::Lifted& lifted, int64_t now_ms) {
  using Could = Heads::State::Could;
  if (r_.heads->Of(gang).could == Could::kYes || !r_.heads->MayTry(gang, now_ms)) {
    return r_.heads->Of(gang).could == Could::kYes;
  }
  int64_t starts_ms = kNever;
  const bool could = !RoomOnceOver(gangs, /*timed=*/false, KeptBefore(gang, lifted), now_ms, &starts_ms).empty();
  r_.heads->NoteCouldRun(gang, could, /*strict=*/false, now_ms);
  return could;
}

// What is kept for gangs that this one does not go before.
std::vector<RunningRoom::Kept> Planning::KeptBefore(const Gang& gang, const Pipeline::Lifted& lifted) const {
  std::vector<RunningRoom::Kept> kept;
  for (const GangId id : r_.pipeline->KeptGangs()) {
    if (id == gang.id || absl::c_linear_search(lifted.others, id)) continue;
    kept.push_back({&r_.gangs->gang(id), r_.pipeline->KeptFor(r_.gangs->gang(id))});
  }
  return kept;
}

std::vector<Statement::Operation> Planning::RoomOnceOver(const Group& gangs, bool timed,
                                                         absl::Span<const RunningRoom::Kept> kept, int64_t now_ms,
                                                         int64_t* starts_ms) {
  constexpr size_t kFirstPart = 64;
  RunningRoom running(*r_.gangs, *r_.plans, *r_.ledger, kept, r_.cluster, now_ms);
  const std::vector<const Pod*> nominated = r_.nominations->Borrow();
  std::vector<Statement::Operation> places;
  const auto fits = [&](size_t over) {
    running.Lend(over);
    Statement statement(r_.cluster);
    if (!LacksMinResources(gangs).none() || !Fits(gangs, settings_.tries, &statement)) return false;
    places = statement.operations();
    return true;
  };
  const size_t most = timed ? running.timed() : running.size();
  size_t too_few = 0;
  size_t enough = std::min(most, std::max<size_t>(1, most / kFirstPart));
  while (!fits(enough) && too_few < most) {
    too_few = enough;
    enough = std::min(most, 2 * enough);
  }
  while (!places.empty() && enough - too_few > 1) {
    const size_t middle = too_few + (enough - too_few) / 2;
    (fits(middle) ? enough : too_few) = middle;
  }
  *starts_ms = running.OverAt(enough);
  running.Lend(0);
  r_.nominations->GiveBack(nominated);
  return places;
}

namespace {

std::string Named(const std::vector<std::string>& nodes) {
  constexpr size_t kNamed = 3;
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), kNamed));
  const std::string first = absl::StrJoin(nodes.begin(), end, ", ");
  return nodes.size() > kNamed ? absl::StrCat(first, " and ", nodes.size() - kNamed, " more") : first;
}

}  // namespace

// Adds on which nodes it is still in use.
void Planning::NameKeptRoom(const Gang& gang, Reason* reason) const {
  absl::StrAppend(&reason->text, "; room is kept for it, of which pods that are being deleted still use some on ",
                  Named(r_.pipeline->Awaited(gang)));
}

void Planning::NameHeldRoom(const Gang& gang, Reason* reason) const {
  const int64_t starts_ms = r_.pipeline->StartsAt(gang);
  absl::StrAppend(&reason->text, "; room is kept for it until others are over, on ", Named(r_.pipeline->Nodes(gang)));
  if (starts_ms == kNever) return;
  absl::StrAppend(&reason->text, ", by ",
                  absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(starts_ms), absl::UTCTimeZone()));
}

}  // namespace muster
