#include "state/queueing/fair_share.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "state/base/check.h"
#include "state/base/resources.h"

namespace muster {
namespace {

__extension__ using Wide = __int128;

// One participant of a division.
struct Party {
  size_t claim = 0;
  int64_t most = 0;  // the most that it takes of the divided amount
  int64_t weight = 0;
  int32_t priority = 0;
  int32_t age = 0;
  int64_t got = 0;
  Wide remainder = 0;  // of the last division, in 1/(sum of weights)
};

// floor(amount * weight / weights), and the remainder.
int64_t PartOf(int64_t amount, int64_t weight, Wide weights, Wide* remainder) {
  if (const std::optional<int64_t> product = CheckedMul(amount, weight);  // 128-bit divisions are slow
      product.has_value() && weights <= std::numeric_limits<int64_t>::max()) {
    const auto narrow = static_cast<int64_t>(weights);
    *remainder = *product % narrow;
    return *product / narrow;
  }
  *remainder = Wide{amount} * weight % weights;
  return static_cast<int64_t>(Wide{amount} * weight / weights);
}

// Gives one unit each by the largest remainder, then to the oldest. REQUIRES: fewer units than parties with a
// remainder.
void GiveRest(int64_t amount, absl::Span<Party> parties) {
  std::vector<Party*> next;
  for (Party& each : parties) next.push_back(&each);
  std::sort(next.begin(), next.end(), [](const Party* a, const Party* b) {
    return a->remainder != b->remainder ? a->remainder > b->remainder : a->age < b->age;
  });
  for (size_t i = 0; i < static_cast<size_t>(amount); ++i) ++next[i]->got;
}

// Divides `amount` among parties of one priority, in proportion to their weights; returns what no party takes.
int64_t DivideAmong(int64_t amount, absl::Span<Party> parties) {
  while (amount > 0) {
    Wide weights = 0;
    for (const Party& each : parties) weights += each.got < each.most ? each.weight : 0;
    if (weights == 0) return amount;
    bool any_full = false;  // a party took less than its part: the next round divides the rest
    const int64_t round = amount;
    for (Party& each : parties) {
      each.remainder = -1;
      if (each.got >= each.most || each.weight == 0) continue;
      Wide remainder = 0;
      const int64_t part = PartOf(round, each.weight, weights, &remainder);
      const int64_t taken = std::min(part, each.most - each.got);
      each.got += taken;
      amount -= taken;
      any_full = any_full || each.got == each.most;
      if (each.got < each.most) each.remainder = remainder;
    }
    if (any_full) continue;
    GiveRest(amount, parties);
    return 0;
  }
  return amount;
}

// Divides `amount`, the highest priority first.
void Divide(int64_t amount, std::vector<Party>* parties) {
  std::stable_sort(parties->begin(), parties->end(),
                   [](const Party& a, const Party& b) { return a.priority > b.priority; });
  for (auto begin = parties->begin(); begin != parties->end() && amount > 0;) {
    const auto end =
        std::find_if(begin, parties->end(), [&](const Party& each) { return each.priority != begin->priority; });
    amount = DivideAmong(amount, absl::MakeSpan(&*begin, static_cast<size_t>(end - begin)));
    begin = end;
  }
}

// Divides `total` among claims with the same parent and stores their shares. `wants`: the request of each claim and its
// descendants, up to its limit.
void DivideAmongSiblings(int64_t total, absl::Span<const ShareClaim> claims, absl::Span<const int64_t> wants,
                         const std::vector<size_t>& siblings, std::vector<int64_t>* shares) {
  std::vector<Party> parties;
  parties.reserve(siblings.size());
  Wide deserved = 0;
  for (const size_t i : siblings) {
    const ShareClaim& claim = claims[i];
    const int64_t quota = std::min(claim.quota, wants[i]);
    deserved += quota;
    parties.push_back({i, quota, claim.quota, /*priority=*/0, claim.age});  // quotas ignore priority
  }
  if (deserved > total) {
    Divide(total, &parties);
    for (const Party& each : parties) (*shares)[each.claim] = each.got;
    return;
  }
  for (Party& each : parties) {
    const ShareClaim& claim = claims[each.claim];
    (*shares)[each.claim] = each.most;
    each = {each.claim, wants[each.claim] - each.most, claim.weight, claim.priority, claim.age};
  }
  Divide(total - static_cast<int64_t>(deserved), &parties);
  for (const Party& each : parties) (*shares)[each.claim] += each.got;
}

}  // namespace

std::vector<int64_t> FairShares(int64_t total, absl::Span<const ShareClaim> claims) {
  std::vector<std::vector<size_t>> children(claims.size() + 1);  // by claim; the last entry: claims without a parent
  for (size_t i = 0; i < claims.size(); ++i) {
    MUSTER_CHECK(claims[i].parent < static_cast<int32_t>(i));
    (claims[i].parent < 0 ? children.back() : children[static_cast<size_t>(claims[i].parent)]).push_back(i);
  }
  std::vector<int64_t> wants(claims.size());
  for (size_t i = claims.size(); i-- > 0;) {
    int64_t wanted = claims[i].requested;
    for (const size_t child : children[i]) {
      wanted = CheckedAdd(wanted, wants[child]).value_or(std::numeric_limits<int64_t>::max());
    }
    wants[i] = claims[i].limit < 0 ? wanted : std::min(wanted, claims[i].limit);
  }
  std::vector<int64_t> shares(claims.size());
  DivideAmongSiblings(total, claims, wants, children.back(), &shares);
  for (size_t i = 0; i < claims.size(); ++i) DivideAmongSiblings(shares[i], claims, wants, children[i], &shares);
  return shares;
}

}  // namespace muster
