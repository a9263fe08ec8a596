// Amounts of resources, in base units: milli-CPU, bytes, whole counts for everything else.
//
// ResourceList is what crosses the core's border: resource name -> amount. Inside, names are interned once into small
// ids (ResourceNames) and amounts live in a ResourceVector, so that "does this pod fit there" is a few comparisons.
// Not thread-safe: both belong to one machine.
#ifndef MUSTER_STATE_BASE_RESOURCES_H_
#define MUSTER_STATE_BASE_RESOURCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Resource name -> amount >= 0. Ordered, so that whatever is printed or hashed from it has one order.
using ResourceList = absl::btree_map<std::string, int64_t>;

// "cpu: 2, nvidia.com/gpu: 8".
[[nodiscard]] std::string FormatResources(const ResourceList& resources);

using ResourceId = int32_t;
inline constexpr ResourceId kCpu = 0;
inline constexpr ResourceId kMemory = 1;
inline constexpr ResourceId kEphemeralStorage = 2;
inline constexpr ResourceId kPods = 3;

class ResourceVector;

// The names behind ResourceIds. Ids are dense and never reused; the number of names is bounded.
class ResourceNames {
 public:
  static constexpr size_t kMaxNames = 256;

  ResourceNames();

  // The id of `name`, interned when new. Past kMaxNames distinct names: -1.
  [[nodiscard]] ResourceId Intern(absl::string_view name);
  [[nodiscard]] const std::string& Name(ResourceId id) const { return names_[static_cast<size_t>(id)]; }

  // ResourceExhausted when a name is new and kMaxNames is reached, naming it.
  [[nodiscard]] absl::StatusOr<ResourceVector> ToVector(const ResourceList& list);
  // Zero amounts are left out.
  [[nodiscard]] ResourceList ToList(const ResourceVector& vector) const;

 private:
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, ResourceId> ids_;
};

// Amounts by ResourceId; ids past size() are zero. Amounts may be negative only as free capacity of a node that the
// outside world over-committed.
class ResourceVector {
 public:
  ResourceVector() = default;

  [[nodiscard]] int64_t Get(ResourceId id) const {
    return static_cast<size_t>(id) < amounts_.size() ? amounts_[static_cast<size_t>(id)] : 0;
  }
  void Set(ResourceId id, int64_t amount) {
    if (static_cast<size_t>(id) >= amounts_.size()) amounts_.resize(static_cast<size_t>(id) + 1, 0);
    amounts_[static_cast<size_t>(id)] = amount;
  }
  [[nodiscard]] ResourceId size() const { return static_cast<ResourceId>(amounts_.size()); }

  // this += times * other. REQUIRES: no overflow (amounts are bounded by kMaxAmount when they enter).
  void AddTimes(const ResourceVector& other, int64_t times);

  // True when every amount of `this` that is above zero is at most that of `free`.
  [[nodiscard]] bool FitsIn(const ResourceVector& free) const {
    for (ResourceId id = 0; id < size(); ++id) {
      const int64_t want = amounts_[static_cast<size_t>(id)];
      if (want > 0 && want > free.Get(id)) return false;
    }
    return true;
  }
  // How many times `this` fits into `free`, at most `limit`; `limit` when nothing is requested.
  [[nodiscard]] int64_t TimesIn(const ResourceVector& free, int64_t limit) const;
  // The first resource that does not fit `free`, or -1.
  [[nodiscard]] ResourceId FirstLacking(const ResourceVector& free) const;

  friend bool operator==(const ResourceVector& a, const ResourceVector& b);

 private:
  absl::InlinedVector<int64_t, 6> amounts_;
};

// The largest amount of one resource that one pod may request or one node may offer: 2^53 (8 PiB of memory): over a
// thousand of the largest can be added before an int64 is full.
inline constexpr int64_t kMaxAmount = int64_t{1} << 53;

}  // namespace muster

#endif  // MUSTER_STATE_BASE_RESOURCES_H_
