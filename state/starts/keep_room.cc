// Room that is kept for a gang until ending pods give back the rest (SPEC P-8).
#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/starts/planning.h"

namespace muster {

bool Planning::KeepRoom(const Gang& gang, const Group& gangs, int64_t* lending, int64_t now_ms) {
  if (*lending < r_.pipeline->CostOfLending() || !r_.pipeline->AnyEnding(now_ms)) return false;
  for (const Gang* each : gangs) {
    for (const Candidates& run : r_.gangs->CandidateRuns(*each)) {
      const PodClass& cls = r_.cluster->pod_class(run.cls);
      if (cls.has_neighbours || !cls.shape.host_ports.empty()) return false;
    }
  }
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

bool Planning::Fits(const Group& gangs, int32_t tries, Statement* statement) const {
  const bool shaped =
      absl::c_any_of(gangs, [&](const Gang* each) { return each->rules.shaped() || !TogetherIn(*each).empty(); });
  return (shaped ? PlaceTrees(gangs, tries, statement) : PlaceRoom(gangs, tries, statement)).placed;
}

// Adds on which nodes it is still in use.
void Planning::NameKeptRoom(const Gang& gang, Reason* reason) const {
  constexpr size_t kNamed = 3;
  const std::vector<std::string> awaited = r_.pipeline->Awaited(gang);
  const auto end = awaited.begin() + static_cast<std::ptrdiff_t>(std::min(awaited.size(), kNamed));
  absl::StrAppend(&reason->text, "; room is kept for it, of which pods that are being deleted still use some on ",
                  absl::StrJoin(awaited.begin(), end, ", "));
  if (awaited.size() > kNamed) absl::StrAppend(&reason->text, " and ", awaited.size() - kNamed, " more");
}

}  // namespace muster
