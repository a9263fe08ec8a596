// Sums of amounts by account, in a tree: an amount booked on an account is also booked on every account above it.
//
// Accounts are numbered from 0; this class does not know their owners. Not thread-safe.
#ifndef MUSTER_STATE_BASE_ACCOUNTS_H_
#define MUSTER_STATE_BASE_ACCOUNTS_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "state/base/check.h"
#include "state/base/resources.h"

namespace muster {

inline constexpr int32_t kNoAccount = -1;

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

  // The members that a recording contains (state/base/members.h).
  static constexpr auto Recorded() { return std::tuple(&Accounts::parents_, &Accounts::sums_); }

 private:
  std::vector<int32_t> parents_;
  std::vector<ResourceSum> sums_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_ACCOUNTS_H_
