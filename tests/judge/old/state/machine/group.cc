// Gangs that start together (SPEC D-10): which gangs a group is, and what each may expect of the others.
//
// A group stands only when every gang in it lists the same set, itself included. One of its gangs, the first by key
// that still needs places, stands in the queue for all; they are planned on one statement and committed in one step.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/machine/machine.h"

namespace muster {

// Why the gang's group does not stand; none when it does, or when the gang is in no group.
Reason Machine::GroupReason(const Gang& gang) const {
  const std::vector<std::string>& ids = gang.rules.group;
  if (ids.empty()) return {};
  if (!std::binary_search(ids.begin(), ids.end(), gang.key)) {
    return {ReasonCode::kGroupDisagrees,
            absl::StrCat("its group (", absl::StrJoin(ids, ", "), ") does not name the gang itself")};
  }
  for (const std::string& id : ids) {
    if (!settings_.cross_namespace_groups && id.substr(0, id.find('/')) != gang.name_space) {
      return {ReasonCode::kGroupDisagrees, absl::StrCat("gang ", id, " of its group is in another namespace, which ",
                                                        "gangs.crossNamespaceGroups forbids")};
    }
    const Gang* other = FindGang(id);
    if (other == nullptr)
      return {ReasonCode::kUnknownGang, absl::StrCat("gang ", id, " of its group does not exist yet")};
    if (other->rules.group == ids) continue;
    return {ReasonCode::kGroupDisagrees,
            absl::StrCat("gang ", id, " of its group lists ",
                         other->rules.group.empty() ? "no group" : absl::StrJoin(other->rules.group, ", "),
                         " instead; every gang of a group must list the same gangs")};
  }
  return {};
}

// The gang and those that start with it, in order of keys; the gang alone while its group does not stand.
Machine::Group Machine::GroupOf(const Gang& gang) const {
  Group out;
  if (gang.rules.group.empty() || !GroupReason(gang).none()) {
    out.push_back(gangs_.find(gang.key)->second.get());
    return out;
  }
  for (const std::string& id : gang.rules.group) out.push_back(gangs_.find(id)->second.get());
  return out;
}

// Those of its group that need places together.
Machine::Group Machine::Unplaced(const Gang& gang) const {
  Group out;
  for (Gang* each : GroupOf(gang)) {
    if (!PassesOneByOne(*each)) out.push_back(each);
  }
  return out;
}

// G-1: what keeps another gang of the group from starting keeps this one. The text names the culprit.
Reason Machine::MatesReason(const Gang& gang) const {
  for (const Gang* mate : GroupOf(gang)) {
    if (mate == &gang) continue;
    if (!PassesOneByOne(*mate) && (mate->submission == nullptr) != (gang.submission == nullptr)) {
      return {ReasonCode::kGroupDisagrees,
              absl::StrCat("gang ", mate->key, " of its group was ", mate->submission == nullptr ? "not " : "",
                           "submitted as a whole; all gangs of a group must be, or none")};
    }
    Reason reason = StructureReason(*mate);
    if (reason.none() && !PassesOneByOne(*mate)) reason = ChildrenReason(*mate);
    if (reason.none()) continue;
    reason.text = absl::StrCat("gang ", mate->key, " of its group: ", reason.text);
    return reason;
  }
  return {};
}

// G-4, G-5: the minimum of every gang of the group is met by who waits, or was met before.
bool Machine::GroupQuorum(const Gang& gang) const {
  if (!GroupReason(gang).none()) return false;
  for (const Gang* each : GroupOf(gang)) {
    if (each->satisfied && each->rules.match_policy == MatchPolicy::kOnceSatisfied) continue;
    if (each->rules.min_member < 0 || TowardsMinimum(*each) < each->rules.min_member) return false;
  }
  return true;
}

const Gang& Machine::LeaderOf(const Gang& gang) const {
  if (gang.rules.group.empty()) return gang;
  const Group unplaced = Unplaced(gang);
  return unplaced.empty() ? gang : *unplaced.front();
}

// The gang leads its group, and nobody in it holds anything yet.
bool Machine::GroupIsFree(const Gang& gang) const {
  if (gang.rules.group.empty()) return true;
  if (&LeaderOf(gang) != &gang) return false;
  const Group unplaced = Unplaced(gang);
  return std::all_of(unplaced.begin(), unplaced.end(),
                     [](const Gang* each) { return each->plan == nullptr && each->count(MemberState::kWaiting) == 0; });
}

// The plan was made together with other gangs than those the gang must start with now. REQUIRES: a plan, not committed.
bool Machine::PlannedWithOthers(const Gang& gang) const {
  if (gang.rules.group.empty()) return !gang.plan->mates.empty();
  std::vector<std::string> mates;
  for (const Gang* each : Unplaced(gang)) {
    if (each != &gang) mates.push_back(each->key);
  }
  return mates != gang.plan->mates;
}

// How far the gang is whose members wait one by one, and which gang of its group is behind.
Reason Machine::BarrierReason(const Gang& gang) const {
  std::string text = absl::StrCat(TowardsMinimum(gang), " of ", gang.rules.min_member, " members wait");
  if (!gang.rules.group.empty() && TowardsMinimum(gang) >= gang.rules.min_member) {
    for (const Gang* mate : Unplaced(gang)) {
      if (mate == &gang || TowardsMinimum(*mate) >= mate->rules.min_member) continue;
      absl::StrAppend(&text, "; gang ", mate->key, " of its group: ", TowardsMinimum(*mate), " of ",
                      mate->rules.min_member);
      break;
    }
  }
  return {ReasonCode::kBarrier, std::move(text)};
}

// The gangs that hold a plan together with this one, itself included.
Machine::Group Machine::MatesOf(const Gang& gang) const {
  Group out;
  out.push_back(gangs_.find(gang.key)->second.get());
  for (const std::string& key : gang.plan->mates) {
    const auto found = gangs_.find(key);
    if (found == gangs_.end()) continue;
    Gang* mate = found->second.get();
    if (mate->plan != nullptr && mate->plan->id == gang.plan->id) out.push_back(mate);
  }
  return out;
}

// Keeps the register of who names whom up to date. REQUIRES: called whenever rules.group changed.
void Machine::RegisterGroup(Gang* gang, std::vector<std::string> ids) {
  for (const std::string& id : gang->registered_group) {
    const auto named = named_by_.find(id);
    named->second.erase(gang->key);
    if (named->second.empty()) named_by_.erase(named);
  }
  gang->registered_group = std::move(ids);
  for (const std::string& id : gang->registered_group) named_by_[id].insert(gang->key);
}

// When what others need to know of this gang changed, those that name it look again.
void Machine::TellGroup(Gang* gang) {
  const auto named = named_by_.find(gang->key);
  if (named == named_by_.end()) return;
  const uint64_t state = StateForGroup(gang);
  if (std::exchange(gang->group_state, state) == state) return;
  TouchNaming(gang->key);
}

void Machine::TouchNaming(const std::string& key) {
  const auto named = named_by_.find(key);
  if (named == named_by_.end()) return;
  for (const std::string& other : named->second) {
    const auto found = gangs_.find(other);
    if (found != gangs_.end() && other != key) Touch(found->second.get());
  }
}

uint64_t Machine::StateForGroup(Gang* asked) const {
  const Gang& gang = *asked;
  StateHasher hasher;
  hasher.Add(absl::StrJoin(gang.rules.group, ","));
  hasher.Add(static_cast<int>(StructureReason(gang).code));
  for (const int64_t value : {int64_t{gang.rules.min_member}, int64_t{CountedChildren(gang)}, int64_t{Missing(gang)},
                              int64_t{PlannableMembers(gang)}, int64_t{gang.count(MemberState::kWaiting)},
                              int64_t{GangPriority(gang)}, gang.created_ms, int64_t{gang.requeues},
                              int64_t{gang.retry_at_ms > now_ms_}, gang.plan == nullptr ? 0 : gang.plan->id}) {
    hasher.Add(value);
  }
  hasher.Add(gang.satisfied);
  hasher.Add(gang.submission != nullptr);
  hasher.Add(gang.blocked.text);
  hasher.Add(Needs(asked));
  return hasher.value();
}

}  // namespace muster
