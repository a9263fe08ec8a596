// Gangs that start together (SPEC D-10): which gangs a group is, and what each may expect of the others.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/gangs/eligibility.h"

namespace muster {

Reason Eligibility::GroupReason(const Gang& gang) const {
  const std::vector<std::string>& ids = gang.rules.group;
  if (ids.empty()) return {};
  if (!std::binary_search(ids.begin(), ids.end(), gang.key)) {
    return {ReasonCode::kGroupDisagrees,
            absl::StrCat("its group (", absl::StrJoin(ids, ", "), ") does not name the gang itself")};
  }
  for (const std::string& id : ids) {
    if (!cross_namespace_groups_ && id.substr(0, id.find('/')) != gang.name_space) {
      return {ReasonCode::kGroupDisagrees, absl::StrCat("gang ", id, " of its group is in another namespace, which ",
                                                        "gangs.crossNamespaceGroups forbids")};
    }
    const Gang* other = gangs_->FindGang(id);
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

Group Eligibility::GroupOf(const Gang& gang) const {
  Group out;
  if (gang.rules.group.empty() || !GroupReason(gang).none()) {
    out.push_back(&gang);
    return out;
  }
  for (const std::string& id : gang.rules.group) out.push_back(gangs_->FindGang(id));
  return out;
}

Group Eligibility::Unplaced(const Gang& gang) const {
  Group out;
  for (const Gang* each : GroupOf(gang)) {
    if (!PassesOneByOne(*each)) out.push_back(each);
  }
  return out;
}

// G-1: what keeps another gang of the group from starting keeps this one. The text names the culprit.
Reason Eligibility::MatesReason(const Gang& gang) const {
  for (const Gang* mate : GroupOf(gang)) {
    if (mate == &gang) continue;
    if (!PassesOneByOne(*mate) && mate->submitted != gang.submitted) {
      return {ReasonCode::kGroupDisagrees,
              absl::StrCat("gang ", mate->key, " of its group was ", mate->submitted ? "" : "not ",
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

bool Eligibility::GroupQuorum(const Gang& gang) const {
  if (!GroupReason(gang).none()) return false;
  for (const Gang* each : GroupOf(gang)) {
    if (!each->once_satisfied() && !each->quorum().Met()) return false;
  }
  return true;
}

const Gang& Eligibility::LeaderOf(const Gang& gang) const {
  if (gang.rules.group.empty()) return gang;
  const Group unplaced = Unplaced(gang);
  return unplaced.empty() ? gang : *unplaced.front();
}

Reason Eligibility::BarrierReason(const Gang& gang) const {
  const int32_t present = gang.quorum().Present();
  std::string text = absl::StrCat(present, " of ", gang.rules.min_member, " members wait");
  if (!gang.rules.group.empty() && present >= gang.rules.min_member) {
    for (const Gang* mate : Unplaced(gang)) {
      const int32_t here = mate->quorum().Present();
      if (mate == &gang || here >= mate->rules.min_member) continue;
      absl::StrAppend(&text, "; gang ", mate->key, " of its group: ", here, " of ", mate->rules.min_member);
      break;
    }
  }
  return {ReasonCode::kBarrier, std::move(text)};
}

void Eligibility::Register(const std::string& key, const std::vector<std::string>& before,
                           const std::vector<std::string>& now) {
  for (const std::string& id : before) {
    const auto named = named_by_.find(id);
    named->second.erase(key);
    if (named->second.empty()) named_by_.erase(named);
  }
  for (const std::string& id : now) named_by_[id].insert(key);
}

Group Eligibility::Naming(const std::string& key) const {
  Group out;
  const auto named = named_by_.find(key);
  if (named == named_by_.end()) return out;
  for (const std::string& other : named->second) {
    const Gang* gang = gangs_->FindGang(other);
    if (gang != nullptr && other != key) out.push_back(gang);
  }
  return out;
}

}  // namespace muster
