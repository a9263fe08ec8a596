// Gang groups (SPEC D-10): the gangs of a group, and how they affect each other's start.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/gangs/group_register.h"

namespace muster {
namespace {

// "gang d/x of its group", then `parts`.
template <typename... Parts>
Reason About(ReasonCode code, const std::string& key, const Parts&... parts) {
  return {code, absl::StrCat("gang ", key, " of its group", parts...), /*names_gang=*/true};
}

}  // namespace

Reason Eligibility::GroupReason(const Gang& gang) const {
  const GroupId group = gangs_->groups().Of(gang.id);
  if (group == kNoGroup) return {};
  const GroupRegister::List& list = gangs_->groups().list(group);
  if (!gangs_->groups().NamesItself(gang.id)) {
    return {ReasonCode::kGroupDisagrees,
            absl::StrCat("its group (", absl::StrJoin(list.ids, ", "), ") does not name the gang itself")};
  }
  if (!list.one_namespace && !cross_namespace_groups_) return Disagreement(gang, list.ids);
  return SnapshotOf(gang).disagreement;
}

// REQUIRES: the gang is one of `ids`.
Reason Eligibility::Disagreement(const Gang& gang, const std::vector<std::string>& ids) const {
  const GroupRegister& groups = gangs_->groups();
  for (const std::string& id : ids) {
    if (!cross_namespace_groups_ && id.substr(0, id.find('/')) != gang.name_space) {
      return About(ReasonCode::kGroupDisagrees, id,
                   " is in another namespace, which gangs.crossNamespaceGroups forbids");
    }
    const Gang* other = gangs_->FindGang(id);
    if (other == nullptr) return About(ReasonCode::kUnknownGang, id, " does not exist yet");
    if (groups.Of(other->id) == groups.Of(gang.id)) continue;
    return About(ReasonCode::kGroupDisagrees, id, " lists ",
                 other->rules.group.empty() ? "no group" : absl::StrJoin(other->rules.group, ", "),
                 " instead; every gang of a group must list the same gangs");
  }
  return {};
}

const Eligibility::GroupSnapshot* Eligibility::FreshSnapshot(const Gang& gang) const {
  if (gang.rules.group.empty() || !gangs_->groups().NamesItself(gang.id)) return nullptr;
  const GroupRegister::List& list = gangs_->groups().list(gangs_->groups().Of(gang.id));
  if (!list.Agreed() || (!list.one_namespace && !cross_namespace_groups_)) return nullptr;
  return &SnapshotOf(gang);
}

const Eligibility::GroupSnapshot& Eligibility::SnapshotOf(const Gang& gang) const {
  const GroupId group = gangs_->groups().Of(gang.id);
  GroupSnapshot& snapshot = snapshots_[group];
  if (snapshot.changes != gangs_->changes()) {
    snapshot = GroupSnapshot();
    RecomputeSnapshot(gang, gangs_->groups().list(group).ids, &snapshot);
    snapshot.changes = gangs_->changes();
  }
  return snapshot;
}

void Eligibility::RecomputeSnapshot(const Gang& gang, const std::vector<std::string>& ids,
                                    GroupSnapshot* snapshot) const {
  snapshot->disagreement = Disagreement(gang, ids);
  if (!snapshot->disagreement.none()) return;
  snapshot->quorum = true;
  for (const std::string& id : ids) {
    const Gang& each = *gangs_->FindGang(id);
    snapshot->gangs.push_back(&each);
    const bool placed = SchedulesIndividuallyAlone(each);
    snapshot->partially_bound = snapshot->partially_bound || each.partially_bound();
    if (!placed) AddUnplaced(each, snapshot);
    snapshot->quorum = snapshot->quorum && (each.once_satisfied() || each.quorum().Met());
    if (snapshot->not_startable.gang != nullptr) continue;
    snapshot->not_startable.reason = StructureReason(each);
    if (snapshot->not_startable.reason.none() && !placed) snapshot->not_startable.reason = ChildrenReason(each);
    if (!snapshot->not_startable.reason.none()) snapshot->not_startable.gang = &each;
  }
}

// Adds a gang that still needs slots to the snapshot.
void Eligibility::AddUnplaced(const Gang& gang, GroupSnapshot* snapshot) const {
  if (snapshot->unplaced.empty()) {
    snapshot->key = {false, Priority(gang), gang.durable.requeues, gang.created_ms, ""};
  } else {
    snapshot->key.priority = std::max(snapshot->key.priority, Priority(gang));
    snapshot->key.requeues = std::max(snapshot->key.requeues, gang.durable.requeues);
    snapshot->key.created_ms = std::min(snapshot->key.created_ms, gang.created_ms);
  }
  snapshot->unplaced.push_back(&gang);
  const Gang*& first = gang.submitted ? snapshot->submitted : snapshot->not_submitted;
  if (first == nullptr) first = &gang;
  if (snapshot->by_callers == nullptr && gang.by_callers > 0 && gang.plannable == 0) snapshot->by_callers = &gang;
  if (snapshot->by_plan == nullptr && gang.by_callers == 0 && gang.plannable > 0) snapshot->by_plan = &gang;
  snapshot->last_retry_ms = std::max(snapshot->last_retry_ms, gang.retry_at_ms);
  if (snapshot->short_of_members.gang != nullptr) return;
  snapshot->short_of_members.reason = MembersReason(gang);
  if (!snapshot->short_of_members.reason.none()) snapshot->short_of_members.gang = &gang;
}

Group Eligibility::GroupOf(const Gang& gang) const {
  const GroupSnapshot* snapshot = FreshSnapshot(gang);
  return snapshot == nullptr ? Group{&gang} : snapshot->gangs;
}

Group Eligibility::Unplaced(const Gang& gang) const {
  if (const GroupSnapshot* snapshot = FreshSnapshot(gang); snapshot != nullptr) return snapshot->unplaced;
  return SchedulesIndividually(gang) ? Group() : Group{&gang};
}

Claims Eligibility::PlacedTogether(const Claim& claim) const { return ClaimsOf(Unplaced(gangs_->GangOf(claim))); }

// G-1: a gang of the group that cannot start blocks all others of the group. The text names that gang.
Reason Eligibility::GroupMatesReason(const Gang& gang) const {
  const GroupSnapshot* snapshot = FreshSnapshot(gang);
  if (snapshot == nullptr) return {};
  const Gang* other = gang.submitted ? snapshot->not_submitted : snapshot->submitted;
  const Gang* blocker = snapshot->not_startable.gang;
  if (other != nullptr && (blocker == nullptr || other->key <= blocker->key)) {
    return About(ReasonCode::kGroupDisagrees, other->key, " was ", other->submitted ? "" : "not ",
                 "submitted as a whole; all gangs of a group must be, or none");
  }
  if (blocker == nullptr) return {};
  return About(snapshot->not_startable.reason.code, blocker->key, ": ", snapshot->not_startable.reason.text);
}

std::string Eligibility::GroupHint(const Gang& gang) const {
  const GroupId group = gangs_->groups().Of(gang.id);
  if (const GroupSnapshot* snapshot = FreshSnapshot(gang); snapshot != nullptr && snapshot->disagreement.none()) {
    if (snapshot->submitted != nullptr && snapshot->not_submitted != nullptr) {
      return absl::StrCat("submit gang ", snapshot->not_submitted->key,
                          " as a whole too (SubmitGang), or none of the group");
    }
    return "let Muster place all gangs of the group, or let their own schedulers place all of them";
  }
  const bool forbidden = group != kNoGroup && gangs_->groups().NamesItself(gang.id) &&
                         !gangs_->groups().list(group).one_namespace && !cross_namespace_groups_;
  return forbidden ? "list gangs of one namespace only, or set gangs.crossNamespaceGroups"
                   : "list the same gangs, itself included, on every gang of the group";
}

Reason Eligibility::GroupMatesMembersReason(const Gang& gang, int64_t now_ms) const {
  const GroupSnapshot* snapshot = FreshSnapshot(gang);
  if (snapshot == nullptr) return {};
  if (snapshot->by_callers != nullptr && snapshot->by_plan != nullptr) {
    return About(ReasonCode::kGroupDisagrees, snapshot->by_callers->key,
                 " is placed pod by pod by a scheduler of its own, gang ", snapshot->by_plan->key,
                 " as a whole by Muster; all gangs of a group must be placed alike");
  }
  const Gang* culprit = snapshot->short_of_members.gang;
  if (snapshot->last_retry_ms > now_ms) {
    for (const Gang* peer : snapshot->unplaced) {
      if (peer == culprit) break;
      if (peer->retry_at_ms > now_ms) return About(ReasonCode::kBackoff, peer->key, ": waiting before the next try");
    }
  }
  if (culprit == nullptr) return {};
  return About(snapshot->short_of_members.reason.code, culprit->key, ": ", snapshot->short_of_members.reason.text);
}

bool Eligibility::GroupQuorum(const Gang& gang) const {
  if (const GroupSnapshot* snapshot = FreshSnapshot(gang); snapshot != nullptr) return snapshot->quorum;
  return GroupReason(gang).none() && (gang.once_satisfied() || gang.quorum().Met());
}

const Gang& Eligibility::LeaderOf(const Gang& gang) const {
  const GroupSnapshot* snapshot = FreshSnapshot(gang);
  return snapshot == nullptr || snapshot->unplaced.empty() ? gang : *snapshot->unplaced.front();
}

Reason Eligibility::BarrierReason(const Gang& gang) const {
  const bool met = gang.quorum().Met();
  std::string text = gang.rules.tree.empty() || met
                         ? absl::StrCat(gang.quorum().Present(), " of ", gang.rules.min_member, " members wait")
                         : gang.quorum().DescribeMissingPresent();
  if (!gang.rules.group.empty() && met) {
    for (const Gang* peer : Unplaced(gang)) {
      const int32_t present = peer->quorum().Present();
      if (peer == &gang || peer->quorum().Met()) continue;
      absl::StrAppend(&text, "; gang ", peer->key, " of its group: ", present, " of ", peer->rules.min_member);
      break;
    }
  }
  return {ReasonCode::kBarrier, std::move(text)};
}

}  // namespace muster
