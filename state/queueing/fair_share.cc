#include "state/queueing/fair_share.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "state/base/check.h"
#include "state/base/checked.h"

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

// Gives one unit each by the largest remainder, then to the oldest; returns what is left.
int64_t GiveRest(int64_t amount, absl::Span<Party> parties) {
  std::vector<Party*> next;
  for (Party& each : parties) {
    if (each.remainder >= 0) next.push_back(&each);
  }
  std::sort(next.begin(), next.end(), [](const Party* a, const Party* b) {
    return a->remainder != b->remainder ? a->remainder > b->remainder : a->age < b->age;
  });
  for (Party* each : next) {
    if (amount == 0) break;
    ++each->got;
    --amount;
  }
  return amount;
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
    if (!any_full) return GiveRest(amount, parties);
  }
  return amount;
}

// Divides `amount`, the highest priority first; returns what no party takes.
int64_t Divide(int64_t amount, std::vector<Party>* parties) {
  std::stable_sort(parties->begin(), parties->end(),
                   [](const Party& a, const Party& b) { return a.priority > b.priority; });
  for (auto begin = parties->begin(); begin != parties->end() && amount > 0;) {
    const auto end =
        std::find_if(begin, parties->end(), [&](const Party& each) { return each.priority != begin->priority; });
    amount = DivideAmong(amount, absl::MakeSpan(&*begin, static_cast<size_t>(end - begin)));
    begin = end;
  }
  return amount;
}

class Shares {
 public:
  explicit Shares(absl::Span<const ShareClaim> claims)
      : claims_(claims), children_(claims.size() + 1), wants_(claims.size()), shares_(claims.size()) {
    for (size_t i = claims.size(); i-- > 0;) {
      const ShareClaim& claim = claims[i];
      MUSTER_CHECK(claim.parent < static_cast<int32_t>(i));
      int64_t wanted = claim.requested;
      for (const size_t child : children_[i]) {
        wanted = CheckedAdd(wanted, wants_[child]).value_or(std::numeric_limits<int64_t>::max());
      }
      wants_[i] = claim.limit < 0 ? wanted : std::min(wanted, claim.limit);
      (claim.parent < 0 ? children_.back() : children_[static_cast<size_t>(claim.parent)]).push_back(i);
    }
  }
  std::vector<int64_t> Of(int64_t total) {
    Among(total, &children_.back());
    for (size_t i = 0; i < claims_.size(); ++i) Among(shares_[i], &children_[i]);
    return shares_;
  }

 private:
  void Among(int64_t total, std::vector<size_t>* siblings) {
    if (siblings->empty()) return;
    std::sort(siblings->begin(), siblings->end());
    std::vector<Party> parties;
    parties.reserve(siblings->size());
    Wide deserved = 0;
    for (const size_t i : *siblings) {
      const ShareClaim& claim = claims_[i];
      const int64_t quota = std::min(claim.quota, wants_[i]);
      deserved += quota;
      parties.push_back({i, quota, claim.quota, claim.priority, claim.age, 0, 0});
    }
    int64_t rest = total;
    if (deserved <= total) {
      for (Party& each : parties) each.got = each.most;
      rest -= static_cast<int64_t>(deserved);
    } else {
      for (Party& each : parties) each.priority = 0;  // quotas ignore priority
      rest = Divide(total, &parties);
    }
    for (size_t i = 0; i < parties.size(); ++i) {
      Party& each = parties[i];
      const ShareClaim& claim = claims_[each.claim];
      shares_[each.claim] = each.got;
      each = {each.claim, wants_[each.claim] - each.got, claim.weight, claim.priority, claim.age, 0, 0};
    }
    if (deserved > total) return;
    Divide(rest, &parties);
    for (const Party& each : parties) shares_[each.claim] += each.got;
  }

  absl::Span<const ShareClaim> claims_;
  std::vector<std::vector<size_t>> children_;  // by claim; the last entry: claims without a parent
  std::vector<int64_t> wants_;                 // requests of the claim and its descendants, up to its limit
  std::vector<int64_t> shares_;
};

}  // namespace

std::vector<int64_t> FairShares(int64_t total, absl::Span<const ShareClaim> claims) { return Shares(claims).Of(total); }

}  // namespace muster
