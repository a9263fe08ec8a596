#include "state/base/accounts.h"

#include <utility>

#include "state/base/check.h"

namespace muster {

void Accounts::Reset(std::vector<int32_t> parents) {
  parents_ = std::move(parents);
  sums_.assign(parents_.size(), ResourceSum());
}

void Accounts::AddAmounts(int32_t account, const ResourceVector& amounts, int64_t times) {
  MUSTER_CHECK(account < size());
  for (; account != kNoAccount; account = parents_[static_cast<size_t>(account)]) {
    sums_[static_cast<size_t>(account)].AddTimes(amounts, times);
  }
}

void Accounts::AddAmounts(int32_t account, const ResourceSum& amounts, int64_t times) {
  MUSTER_CHECK(account < size());
  for (; account != kNoAccount; account = parents_[static_cast<size_t>(account)]) {
    sums_[static_cast<size_t>(account)].AddTimes(amounts, times);
  }
}

}  // namespace muster
