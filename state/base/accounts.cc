#include "state/base/accounts.h"

#include <utility>

namespace muster {

void Accounts::Reset(std::vector<int32_t> parents) {
  parents_ = std::move(parents);
  sums_.assign(parents_.size(), ResourceSum());
}

}  // namespace muster
