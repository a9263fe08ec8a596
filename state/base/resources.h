// Amounts of resources in base units: milli-CPU, bytes, and whole counts for everything else.
//
// Interfaces of the core use ResourceList (resource name -> amount). Inside the core, ResourceNames interns each name
// into a small id, and amounts are in a ResourceVector or a ResourceSum, so that checking whether a pod fits takes a
// few comparisons. Not thread-safe: both belong to one machine.
#ifndef MUSTER_STATE_BASE_RESOURCES_H_
#define MUSTER_STATE_BASE_RESOURCES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/base/check.h"

namespace muster {

// --- checked arithmetic: an overflow gives nullopt, never a wrapped value (SPEC section 1) ---

// The sum; nullopt if it does not fit an int64.
[[nodiscard]] inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// The product; nullopt if it does not fit an int64.
[[nodiscard]] inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// --- amounts ---

// Resource name -> amount >= 0. Ordered, so that output and hashes have one order.
using ResourceList = absl::btree_map<std::string, int64_t>;

// "cpu: 2, nvidia.com/gpu: 8".
[[nodiscard]] std::string FormatResources(const ResourceList& resources);

using ResourceId = int32_t;
inline constexpr ResourceId kCpu = 0;
inline constexpr ResourceId kMemory = 1;
inline constexpr ResourceId kEphemeralStorage = 2;
inline constexpr ResourceId kPods = 3;

// The largest amount of one resource that one pod may request or one node may offer: 2^53 (8 PiB of memory). A
// ResourceSum can hold this amount for the largest possible number of pods.
inline constexpr int64_t kMaxAmount = int64_t{1} << 53;

// Amounts by ResourceId, in order of ids; an absent resource counts as zero. T is int64_t for the request of one pod or
// the capacity of one node (ResourceVector), and a wider integer for sums of charges and of free capacity
// (ResourceSum). A sum never wraps: facts with excessive amounts make a node over-committed, not roomy (SPEC section
// 1).
template <typename T>
class Amounts {
 public:
  struct Entry {
    ResourceId id;
    T amount;
  };

  [[nodiscard]] T Get(ResourceId id) const {
    // Most vectors contain the first few ids, so that the index of an entry equals its id.
    const auto at = static_cast<size_t>(id);
    if (at < entries_.size() && entries_[at].id == id) return entries_[at].amount;
    for (const Entry& entry : entries_) {
      if (entry.id == id) return entry.amount;
    }
    return 0;
  }
  void Clear() { entries_.clear(); }
  void Set(ResourceId id, T amount) { At(id) = amount; }
  void Add(ResourceId id, T amount) { At(id) += amount; }
  // this += times * other.
  template <typename U>
  void AddTimes(const Amounts<U>& other, int64_t times) {
    for (const auto& entry : other.entries()) At(entry.id) += static_cast<T>(entry.amount) * times;
  }
  // In order of ids; some amounts may be zero.
  [[nodiscard]] const auto& entries() const { return entries_; }

  // True when every amount of `this` that is above zero is at most that of `free`.
  template <typename U>
  [[nodiscard]] bool FitsIn(const Amounts<U>& free) const {
    return FirstInsufficient(free) < 0;
  }
  // How many times `this` fits into `free`, at most `limit`; `limit` if nothing is requested.
  template <typename U>
  [[nodiscard]] int64_t CountFitting(const Amounts<U>& free, int64_t limit) const {
    for (const Entry& entry : entries_) {
      if (entry.amount <= 0) continue;
      const U have = free.Get(entry.id);
      if (have < entry.amount) return 0;
      constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
      const int64_t near = have > kMost ? kMost : static_cast<int64_t>(have);  // wide divisions are slow
      limit = std::min(limit, static_cast<int64_t>(near / entry.amount));
    }
    return limit;
  }
  // The first resource that does not fit `free`, or -1.
  template <typename U>
  [[nodiscard]] ResourceId FirstInsufficient(const Amounts<U>& free) const {
    for (const Entry& entry : entries_) {
      if (entry.amount > 0 && entry.amount > free.Get(entry.id)) return entry.id;
    }
    return -1;
  }

  friend bool operator==(const Amounts& a, const Amounts& b) {
    const auto covers = [](const Amounts& one, const Amounts& other) {
      return absl::c_all_of(one.entries_, [&](const Entry& entry) { return entry.amount == other.Get(entry.id); });
    };
    return covers(a, b) && covers(b, a);
  }

  static constexpr auto Recorded() { return std::tuple(&Amounts::entries_); }

 private:
  T& At(ResourceId id) {
    const auto at = static_cast<size_t>(id);
    if (at < entries_.size() && entries_[at].id == id) return entries_[at].amount;
    auto entry = entries_.begin();
    while (entry != entries_.end() && entry->id < id) ++entry;
    if (entry == entries_.end() || entry->id != id) entry = entries_.insert(entry, Entry{id, 0});
    return entry->amount;
  }

  absl::InlinedVector<Entry, 6> entries_;
};

using ResourceVector = Amounts<int64_t>;
__extension__ using WideSum = __int128;
using ResourceSum = Amounts<WideSum>;

// The sum, clamped to the range from -INT64_MAX to INT64_MAX.
[[nodiscard]] int64_t ClampToInt64(WideSum sum);

inline constexpr int32_t kNoAccount = -1;

// Sums of amounts by account, in a tree: an amount booked on an account is also booked on every account above it.
// Accounts are numbered from 0; this class does not know their owners.
class Accounts {
 public:
  // Creates one account per entry of `parents`: the account above it, or kNoAccount. All sums become zero.
  void Reset(std::vector<int32_t> parents) {
    parents_ = std::move(parents);
    sums_.assign(parents_.size(), ResourceSum());
  }
  // Books `times` times the amounts; `times` may be negative. Does nothing for kNoAccount.
  template <typename T>
  void AddAmounts(int32_t account, const Amounts<T>& amounts, int64_t times) {
    MUSTER_CHECK(account < size());
    for (; account != kNoAccount; account = parents_[static_cast<size_t>(account)]) {
      sums_[static_cast<size_t>(account)].AddTimes(amounts, times);
    }
  }
  [[nodiscard]] const ResourceSum& Of(int32_t account) const { return sums_[static_cast<size_t>(account)]; }
  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(parents_.size()); }

  static constexpr auto Recorded() { return std::tuple(&Accounts::parents_, &Accounts::sums_); }

 private:
  std::vector<int32_t> parents_;
  std::vector<ResourceSum> sums_;
};

// OK if every amount is in the range that a pod may request or a node may offer: 0 to kMaxAmount. InvalidArgument names
// the first amount that is not.
[[nodiscard]] absl::Status CheckAmounts(const ResourceList& list);

// The names of the ResourceIds that pods and nodes use now. When the last user of a name is gone, the name is removed
// and its id may be reused.
class ResourceNames {
 public:
  ResourceNames();

  // -1 if the name is not in use.
  [[nodiscard]] ResourceId Find(absl::string_view name) const;
  [[nodiscard]] const std::string& Name(ResourceId id) const { return names_[static_cast<size_t>(id)].name; }
  // The number of names in use.
  [[nodiscard]] size_t size() const { return ids_.size(); }

  // The names in the result are in use until Release is called with it. InvalidArgument as CheckAmounts.
  [[nodiscard]] absl::StatusOr<ResourceVector> ToVector(const ResourceList& list);
  // REQUIRES: `vector` came from ToVector, or has the same ids, and was not released.
  void Release(const ResourceVector& vector);
  // Omits zero amounts. `List`: a container of pairs of name and amount.
  template <typename List = ResourceList, typename T>
  [[nodiscard]] List ToList(const Amounts<T>& amounts) const {
    List out;
    for (const auto& [id, amount] : amounts.entries()) {
      if (amount != 0) out.insert(out.end(), {Name(id), ClampToInt64(amount)});
    }
    return out;
  }

  static constexpr auto Recorded() {
    return std::tuple(&ResourceNames::names_, &ResourceNames::unused_, &ResourceNames::ids_);
  }

 private:
  struct Entry {
    std::string name;
    int64_t users = 0;
  };

  std::vector<Entry> names_;
  std::vector<ResourceId> unused_;
  absl::flat_hash_map<std::string, ResourceId> ids_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_RESOURCES_H_
