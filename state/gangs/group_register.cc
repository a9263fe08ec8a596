#include "state/gangs/group_register.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace muster {

void GroupRegister::Set(int32_t gang, const std::string& key, const std::vector<std::string>& ids) {
  const Member before = members_.Of(gang);
  if (before.group == kNoGroup ? ids.empty() : list(before.group).ids == ids) return;
  ++changes_;
  members_.Reset(gang);
  if (before.group != kNoGroup) {
    List& left = *lists_[static_cast<size_t>(before.group)];
    left.listed_by.erase(key);
    left.agreeing -= before.names_itself ? 1 : 0;
    if (left.listed_by.empty()) Drop(before.group);
  }
  if (ids.empty()) return;
  const GroupId group = Intern(ids);
  List& joined = *lists_[static_cast<size_t>(group)];
  const bool names_itself = std::binary_search(ids.begin(), ids.end(), key);
  joined.listed_by.insert(key);
  joined.agreeing += names_itself ? 1 : 0;
  members_[gang] = {group, names_itself};
}

GroupId GroupRegister::Intern(const std::vector<std::string>& ids) {
  if (const auto known = by_ids_.find(ids); known != by_ids_.end()) return known->second;
  const GroupId id = TakeId(&unused_, &lists_);
  auto list = std::make_unique<List>();
  list->serial = changes_;  // unique: Set just incremented it
  list->ids = ids;
  const auto namespace_of = [](absl::string_view id) { return id.substr(0, id.find('/')); };
  for (const std::string& each : ids) {
    list->one_namespace = list->one_namespace && namespace_of(each) == namespace_of(ids.front());
    naming_[each].insert(id);
  }
  lists_[static_cast<size_t>(id)] = std::move(list);
  by_ids_.emplace(ids, id);
  return id;
}

void GroupRegister::Drop(GroupId id) {
  std::unique_ptr<List>& list = lists_[static_cast<size_t>(id)];
  for (const std::string& each : list->ids) {
    const auto named = naming_.find(each);
    named->second.erase(id);
    if (named->second.empty()) naming_.erase(named);
  }
  by_ids_.erase(list->ids);
  list.reset();
  unused_.push_back(id);
}

std::vector<std::string> GroupRegister::Naming(const std::string& key) const {
  std::vector<std::string> out;
  const auto named = naming_.find(key);
  if (named == naming_.end()) return out;
  for (const GroupId id : named->second) {
    for (const std::string& gang : list(id).listed_by) {
      if (gang != key) out.push_back(gang);
    }
  }
  std::sort(out.begin(), out.end());  // without duplicates: a gang has one list
  return out;
}

}  // namespace muster
