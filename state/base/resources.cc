#include "state/base/resources.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "state/base/by_id.h"
#include "state/base/quantity.h"

namespace muster {

std::string FormatResources(const ResourceList& resources) {
  std::string out;
  for (const auto& [name, amount] : resources) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", name, ": ", FormatQuantity(name, amount));
  }
  return out;
}

ResourceNames::ResourceNames() {
  for (const absl::string_view name : {"cpu", "memory", "ephemeral-storage", "pods"}) {
    ids_.emplace(name, static_cast<ResourceId>(names_.size()));
    names_.push_back({std::string(name), 1});  // never released
  }
}

int64_t ClampToInt64(WideSum sum) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp<WideSum>(sum, -kMost, kMost));
}

absl::Status CheckAmounts(const ResourceList& list) {
  for (const auto& [name, amount] : list) {
    if (amount >= 0 && amount <= kMaxAmount) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("resource ", name, ": ", amount, " is out of range; expected 0 to ", kMaxAmount));
  }
  return absl::OkStatus();
}

ResourceId ResourceNames::Find(absl::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? -1 : found->second;
}

absl::StatusOr<ResourceVector> ResourceNames::ToVector(const ResourceList& list) {
  if (absl::Status amounts = CheckAmounts(list); !amounts.ok()) return amounts;
  ResourceVector out;
  for (const auto& [name, amount] : list) {
    if (amount == 0) continue;
    ResourceId id = Find(name);
    if (id < 0) {
      id = TakeId(&unused_, &names_);
      names_[static_cast<size_t>(id)].name = name;
      ids_.emplace(name, id);
    }
    ++names_[static_cast<size_t>(id)].users;
    out.Set(id, amount);
  }
  return out;
}

void ResourceNames::Release(const ResourceVector& vector) {
  for (const ResourceVector::Entry& entry : vector.entries()) {
    if (entry.amount == 0) continue;
    Entry& name = names_[static_cast<size_t>(entry.id)];
    MUSTER_CHECK(name.users > 0);
    if (--name.users > 0) continue;
    ids_.erase(name.name);
    name.name.clear();
    unused_.push_back(entry.id);
  }
}

}  // namespace muster
