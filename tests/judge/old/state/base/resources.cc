#include "state/base/resources.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
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
    names_.emplace_back(name);
  }
}

ResourceId ResourceNames::Intern(absl::string_view name) {
  const auto found = ids_.find(name);
  if (found != ids_.end()) return found->second;
  if (names_.size() >= kMaxNames) return -1;
  const auto id = static_cast<ResourceId>(names_.size());
  ids_.emplace(name, id);
  names_.emplace_back(name);
  return id;
}

absl::StatusOr<ResourceVector> ResourceNames::ToVector(const ResourceList& list) {
  ResourceVector out;
  for (const auto& [name, amount] : list) {
    if (amount < 0 || amount > kMaxAmount) {
      return absl::InvalidArgumentError(
          absl::StrCat("resource ", name, ": ", amount, " is out of range; expected 0 to ", kMaxAmount));
    }
    if (amount == 0) continue;
    const ResourceId id = Intern(name);
    if (id < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("resource ", name, ": more than ", kMaxNames, " different resource names"));
    }
    out.Set(id, amount);
  }
  return out;
}

ResourceList ResourceNames::ToList(const ResourceVector& vector) const {
  ResourceList out;
  for (ResourceId id = 0; id < vector.size(); ++id) {
    if (vector.Get(id) != 0) out.emplace(Name(id), vector.Get(id));
  }
  return out;
}

void ResourceVector::AddTimes(const ResourceVector& other, int64_t times) {
  if (other.amounts_.size() > amounts_.size()) amounts_.resize(other.amounts_.size(), 0);
  for (size_t i = 0; i < other.amounts_.size(); ++i) amounts_[i] += times * other.amounts_[i];
}

int64_t ResourceVector::TimesIn(const ResourceVector& free, int64_t limit) const {
  int64_t times = limit;
  for (ResourceId id = 0; id < size(); ++id) {
    const int64_t want = amounts_[static_cast<size_t>(id)];
    if (want <= 0) continue;
    const int64_t have = free.Get(id);
    if (have < want) return 0;
    times = std::min(times, have / want);
  }
  return times;
}

ResourceId ResourceVector::FirstLacking(const ResourceVector& free) const {
  for (ResourceId id = 0; id < size(); ++id) {
    const int64_t want = amounts_[static_cast<size_t>(id)];
    if (want > 0 && want > free.Get(id)) return id;
  }
  return -1;
}

bool operator==(const ResourceVector& a, const ResourceVector& b) {
  const ResourceId size = std::max(a.size(), b.size());
  for (ResourceId id = 0; id < size; ++id) {
    if (a.Get(id) != b.Get(id)) return false;
  }
  return true;
}

}  // namespace muster
