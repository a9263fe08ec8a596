// Sums of amounts by account, in a tree: what is booked on one account is booked on all above it.
//
// Accounts are numbers from 0 on; who they belong to is not known here. Not thread-safe.
#ifndef MUSTER_STATE_BASE_ACCOUNTS_H_
#define MUSTER_STATE_BASE_ACCOUNTS_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "state/base/resources.h"

namespace muster {

inline constexpr int32_t kNoAccount = -1;

class Accounts {
 public:
  // As many accounts as `parents` has, each with the account above it, or kNoAccount; nothing is booked.
  void Reset(std::vector<int32_t> parents);
  // `times` may be negative. Nothing happens for kNoAccount.
  void Book(int32_t account, const ResourceVector& amounts, int64_t times);
  void Book(int32_t account, const ResourceSum& amounts, int64_t times);
  [[nodiscard]] const ResourceSum& Of(int32_t account) const { return sums_[static_cast<size_t>(account)]; }
  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(parents_.size()); }
  [[nodiscard]] const std::vector<int32_t>& parents() const { return parents_; }

  friend bool operator==(const Accounts&, const Accounts&) = default;

  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() { return std::tuple(&Accounts::parents_, &Accounts::sums_); }

 private:
  std::vector<int32_t> parents_;
  std::vector<ResourceSum> sums_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_ACCOUNTS_H_
