// Which gangs list which gangs as their group (SPEC D-10): each distinct list once, with the gangs that list it.
//
// Holds declarations only; Eligibility decides whether a group may start. Not thread-safe.
#ifndef MUSTER_STATE_GANGS_GROUP_REGISTER_H_
#define MUSTER_STATE_GANGS_GROUP_REGISTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "state/base/by_id.h"
#include "state/model/ids.h"

namespace muster {

class GroupRegister {
 public:
  struct List {
    int64_t serial = 0;            // unique over time; never reused
    std::vector<std::string> ids;  // "namespace/name", in order, without duplicates
    bool one_namespace = true;
    absl::btree_set<std::string> listed_by;  // keys of gangs
    int32_t agreeing = 0;                    // gangs in listed_by that the list names
    // Every gang that the list names has this same list.
    [[nodiscard]] bool Agreed() const { return static_cast<size_t>(agreeing) == ids.size(); }
  };

  // Sets the list of the gang with this id and key; empty: none. Before an id is reused, its list must be set to empty.
  void Set(int32_t gang, const std::string& key, const std::vector<std::string>& ids);
  // kNoGroup: the gang lists nothing.
  [[nodiscard]] GroupId Of(int32_t gang) const { return members_.Of(gang).group; }
  // Whether the gang's own list names it. REQUIRES: it has a list.
  [[nodiscard]] bool NamesItself(int32_t gang) const { return members_.Of(gang).names_itself; }
  // REQUIRES: some gang lists it.
  [[nodiscard]] const List& list(GroupId id) const { return *lists_[static_cast<size_t>(id)]; }
  // The serial of the gang's list; 0: it lists nothing.
  [[nodiscard]] int64_t SerialOf(int32_t gang) const { return Of(gang) == kNoGroup ? 0 : list(Of(gang)).serial; }
  // Keys of the gangs that list `key`, itself aside, in order.
  [[nodiscard]] std::vector<std::string> Naming(const std::string& key) const;
  [[nodiscard]] bool IsNamed(const std::string& key) const { return naming_.contains(key); }
  // Grows with every change.
  [[nodiscard]] int64_t changes() const { return changes_; }

  static constexpr auto Recorded() {
    return std::tuple(&GroupRegister::members_, &GroupRegister::lists_, &GroupRegister::unused_,
                      &GroupRegister::by_ids_, &GroupRegister::naming_, &GroupRegister::changes_);
  }

 private:
  struct Member {
    GroupId group = kNoGroup;
    bool names_itself = false;
  };
  [[nodiscard]] GroupId Intern(const std::vector<std::string>& ids);
  void Drop(GroupId id);

  ById<Member> members_;
  std::vector<std::unique_ptr<List>> lists_;
  std::vector<GroupId> unused_;
  absl::btree_map<std::vector<std::string>, GroupId> by_ids_;
  absl::btree_map<std::string, absl::btree_set<GroupId>> naming_;  // key of a gang -> the lists that name it
  int64_t changes_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_GROUP_REGISTER_H_
