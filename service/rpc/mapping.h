// The core's views -> messages of the public API. Pure functions.
#ifndef MUSTER_SERVICE_RPC_MAPPING_H_
#define MUSTER_SERVICE_RPC_MAPPING_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "proto/muster/v1/muster.pb.h"
#include "state/views/view.h"

namespace muster {

void FillReason(const Reason& from, v1::Reason* to);
[[nodiscard]] v1::Member ToMessage(const MemberView& member);
[[nodiscard]] v1::Gang ToMessage(const GangView& view);
[[nodiscard]] v1::Node ToMessage(const NodeView& view);
[[nodiscard]] v1::GangInLine ToMessage(const InLineView& view);
// "default/a, default/b and 7 more", of those from `from` on; `all`: how many there are from there on.
[[nodiscard]] std::string Names(const std::vector<InLineView>& gangs, size_t from, int32_t all);
// Of gangs that hold room, "namespace/name": those that were submitted, have all members and a plan, and wait for their
// caller to confirm it.
using Unconfirmed = absl::flat_hash_set<std::string>;
// Something keeps the gang from starting.
[[nodiscard]] bool Waits(const GangView& view);
// Since when, for whatever reason. REQUIRES Waits.
[[nodiscard]] int64_t WaitsSince(const GangView& view);
// Why the gang waits, since when and what would let it go, as one paragraph (SPEC S-5).
[[nodiscard]] std::string ExplainText(const GangView& view, int64_t now_ms, const Unconfirmed& unconfirmed = {});
[[nodiscard]] std::string ExplainText(const PodView& view, int64_t now_ms, const Unconfirmed& unconfirmed = {});

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_MAPPING_H_
