// Converts the core's views into messages of the public API. Pure functions.
#ifndef MUSTER_SERVICE_RPC_MAPPING_H_
#define MUSTER_SERVICE_RPC_MAPPING_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "muster/v1/gang.pb.h"
#include "muster/v1/node.pb.h"
#include "state/views/view.h"

namespace muster {

void FillReason(const Reason& from, v1::Reason* to);
[[nodiscard]] v1::Member ToMessage(const MemberView& member);
[[nodiscard]] v1::Gang ToMessage(const GangView& view);
[[nodiscard]] v1::Node ToMessage(const NodeView& view);
[[nodiscard]] v1::QueuedGang ToMessage(const QueuedGangView& view);
// "default/a, default/b and 7 more": the gangs from index `from` on; `all` is their number from there on.
[[nodiscard]] std::string Names(const std::vector<QueuedGangView>& gangs, size_t from, int32_t all);
// Submitted gangs that hold capacity ("namespace/name"): they have all members and a plan, and wait for confirmation.
using Unconfirmed = absl::flat_hash_set<std::string>;
// Whether something prevents the gang from starting.
[[nodiscard]] bool Waits(const GangView& view);
// Since when, whatever the reason. REQUIRES: Waits(view).
[[nodiscard]] int64_t WaitsSince(const GangView& view);
// Explains why the gang waits, since when, and what would end the wait, as one paragraph (SPEC S-5).
[[nodiscard]] std::string ExplainText(const GangView& view, int64_t now_ms, const Unconfirmed& unconfirmed = {});
[[nodiscard]] std::string ExplainText(const PodView& view, int64_t now_ms, const Unconfirmed& unconfirmed = {});

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_MAPPING_H_
