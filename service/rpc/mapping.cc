#include "service/rpc/mapping.h"

#include <algorithm>
#include <iterator>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "service/rpc/enums.h"
#include "service/rpc/times.h"
#include "state/base/quantity.h"
#include "state/base/text.h"

namespace muster {
namespace {

template <typename Amounts>
void WriteAmounts(const Amounts& from, google::protobuf::Map<std::string, std::string>* to) {
  for (const auto& [name, amount] : from) (*to)[name] = FormatQuantity(name, amount);
}

// Time after which a scheduler should have asked for an activated pod.
constexpr int64_t kUnaskedWarningAge = 10'000;

// The age, at least one second: "40s", "1h2m3s"; from two days on in days and hours: "330d10h".
std::string Ago(int64_t then_ms, int64_t now_ms) {
  const absl::Duration age = absl::Seconds(std::max<int64_t>(1, (now_ms - then_ms) / 1000));
  const absl::Duration day = absl::Hours(24);
  if (age < 2 * day) return absl::FormatDuration(age);
  const int64_t hours = (age % day) / absl::Hours(1);
  return absl::StrCat(age / day, "d", hours == 0 ? "" : absl::StrCat(hours, "h"));
}

// "gang default/a nvidia.com/gpu: 16 (2 pods, created 40m ago)"
std::string Describe(const HolderView& holder, const std::string& resource, const Unconfirmed& unconfirmed,
                     int64_t now_ms) {
  std::string out = holder.gang.empty() ? "pods of no gang" : absl::StrCat("gang ", holder.gang);
  if (holder.amount > 0) absl::StrAppend(&out, " ", FormatResources({{resource, ClampToInt64(holder.amount)}}));
  absl::StrAppend(&out, " (");
  if (holder.awaited > 0) {
    absl::StrAppend(&out, "head of queue: capacity for ", holder.awaited, " is reserved until other pods end",
                    holder.pods > 0 || holder.promised > 0 ? ", " : "");
  }
  if (holder.pods > 0) absl::StrAppend(&out, holder.pods, holder.pods == 1 ? " pod" : " pods");
  if (holder.promised > 0) {
    absl::StrAppend(&out, holder.pods > 0 ? ", " : "", holder.promised);
    if (holder.reserved_since_ms == kNever) {
      absl::StrAppend(&out, " reserved until terminating pods are gone");
    } else if (unconfirmed.contains(holder.gang)) {
      absl::StrAppend(&out, " planned ", Ago(holder.reserved_since_ms, now_ms), " ago and not confirmed yet");
    } else {
      absl::StrAppend(&out, " reserved ", Ago(holder.reserved_since_ms, now_ms), " ago for future members");
    }
  }
  if (!holder.gang.empty()) absl::StrAppend(&out, ", created ", Ago(holder.created_ms, now_ms), " ago");
  return out + ")";
}

std::string Describe(const HoldersView& view, const Unconfirmed& unconfirmed, int64_t now_ms) {
  constexpr size_t kMost = 3;
  std::string out;
  for (size_t i = 0; i < std::min(view.holders.size(), kMost); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : "; ", Describe(view.holders[i], view.resource, unconfirmed, now_ms));
  }
  if (view.holders.size() > kMost) {
    WideSum rest = 0;
    for (size_t i = kMost; i < view.holders.size(); ++i) rest += view.holders[i].amount;
    const size_t others = view.holders.size() - kMost;
    absl::StrAppend(&out, "; ", others,
                    others == 1 ? " other: " : " others: ", FormatResources({{view.resource, ClampToInt64(rest)}}));
  }
  return out;
}

// "It is number 3 of 12 waiting gangs in queue team, behind default/a, default/b."
std::string Describe(const QueuePositionView& line) {
  const std::string where = line.queue.empty() ? "" : absl::StrCat(" in queue ", line.queue);
  if (line.places == 1) return absl::StrCat("It is the only waiting gang", where, ".");
  if (line.place == 1) return absl::StrCat("It is the head of ", line.places, " waiting gangs", where, ".");
  return absl::StrCat("It is number ", line.place, " of ", line.places, " waiting gangs", where, ", behind ",
                      Names(line.first, 0, line.place - 1), ".");
}

// ": 2 members have a node, the minimum is 2"; empty if the reason of the gang has these figures.
std::string Placed(const GangView& view) {
  const int32_t with_node = view.bound + view.committed;
  const bool in_reason = view.planned == 0 && with_node > 0 && with_node + view.succeeded < view.rules.min_member;
  if (in_reason) return "";
  return absl::StrCat(": ", WriteCount(with_node, "member"), with_node == 1 ? " has" : " have", " a node",
                      view.succeeded > 0 ? absl::StrCat(", ", view.succeeded, " succeeded") : "", ", the minimum is ",
                      view.rules.min_member);
}

// "2 members wait, the first is a-1: insufficient cpu [NoRoom]."
std::string Describe(const WaitingMembers& waits) {
  const std::string subject = waits.count == 1 ? absl::StrCat("Member ", waits.first, " waits")
                                               : absl::StrCat(waits.count, " members wait, the first is ", waits.first);
  if (waits.reason.none())
    return absl::StrCat(subject, ": some node can take it, its scheduler has not placed it yet.");
  return absl::StrCat(subject, ": ", waits.reason.text, " [", ReasonName(waits.reason.code), "].");
}

// " 2 members are on nodes that are gone: n-1, n-2."; empty: none is.
std::string DescribeGoneNodes(const std::vector<MemberView>& members) {
  constexpr size_t kMost = 3;
  int64_t lost = 0;
  absl::btree_set<absl::string_view> nodes;
  for (const MemberView& member : members) {
    if (!member.node_gone) continue;
    ++lost;
    nodes.insert(member.node);
  }
  if (lost == 0) return "";
  const size_t more = nodes.size() > kMost ? nodes.size() - kMost : 0;
  while (nodes.size() > kMost) nodes.erase(std::prev(nodes.end()));
  return absl::StrCat(" ", WriteCount(lost, "member"), lost == 1 ? " is" : " are",
                      " on nodes that are gone: ", absl::StrJoin(nodes, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "", ".");
}

}  // namespace

void FillReason(const Reason& from, v1::Reason* to) {
  to->set_code(ToMessage(from.code));
  to->set_text(from.text);
}

v1::Member ToMessage(const MemberView& member) {
  v1::Member out;
  out.set_uid(member.uid);
  out.set_name(member.name);
  out.set_state(ToMessage(member.state));
  out.set_node(member.node);
  out.set_priority(member.priority);
  out.set_subgroup(member.subgroup);
  if (!member.reason.none()) FillReason(member.reason, out.mutable_reason());
  if (member.binding.phase == BindingPhase::kNone) return out;
  v1::Binding* binding = out.mutable_binding();
  binding->set_phase(ToMessage(member.binding.phase));
  binding->set_node(member.binding.node);
  binding->set_message(member.binding.reason);
  binding->set_attempts(member.binding.attempts);
  if (member.binding.next_try_ms != kNever)
    *binding->mutable_next_try_time() = TimestampOfMs(member.binding.next_try_ms);
  return out;
}

namespace {

template <typename Message>
void FillTopology(const TopologyRule& rule, Message message) {
  if (rule.none()) return;
  v1::Topology* topology = message();
  topology->set_required(rule.required);
  topology->set_preferred(rule.preferred);
  topology->set_spread(rule.spread);
}

}  // namespace

v1::Gang ToMessage(const GangView& view) {
  v1::Gang out;
  out.set_namespace_(view.name_space);
  out.set_name(view.name);
  out.set_phase(ToMessage(view.phase));
  for (const GangDialect source : view.sources) out.add_sources(ToMessage(source));
  v1::GangRules* rules = out.mutable_rules();
  rules->set_min_member(view.rules.min_member);
  rules->set_total_number(view.rules.total_number);
  *rules->mutable_wait_timeout() = DurationOfMs(view.rules.wait_time_ms);
  rules->set_mode(ToMessage(view.rules.mode));
  rules->set_match_policy(ToMessage(view.rules.match_policy));
  rules->set_queue(view.rules.queue);
  rules->set_preemptible(view.rules.preemptible);
  if (view.rules.duration_ms > 0) *rules->mutable_expected_duration() = DurationOfMs(view.rules.duration_ms);
  rules->set_on_timeout(ToMessage(view.rules.on_timeout));
  rules->set_on_member_failure(ToMessage(view.rules.on_member_failure));
  WriteAmounts(view.rules.min_resources, rules->mutable_min_resources());
  for (const std::string& id : view.rules.group) rules->add_group(id);
  FillTopology(view.rules.topology, [rules] { return rules->mutable_topology(); });
  for (const Subgroup& each : view.rules.tree.nodes) {
    v1::Subgroup* subgroup = rules->add_subgroups();
    subgroup->set_name(each.name);
    if (each.parent >= 0) subgroup->set_parent(view.rules.tree.nodes[static_cast<size_t>(each.parent)].name);
    subgroup->set_minimum(each.minimum);
    subgroup->set_leaf(each.leaf >= 0);
    FillTopology(each.topology, [subgroup] { return subgroup->mutable_topology(); });
    if (each.leaf < 0) continue;
    const MemberCounts& counts = view.leaves[static_cast<size_t>(each.leaf)];
    subgroup->set_pending(counts.pending);
    subgroup->set_waiting(counts.waiting);
    subgroup->set_placed(counts.active);
    subgroup->set_future_members(view.future_slots_by_leaf[static_cast<size_t>(each.leaf)]);
  }
  v1::GangCounts* counts = out.mutable_counts();
  counts->set_members(view.children);
  counts->set_waiting(view.waiting);
  counts->set_binding(view.committed);
  counts->set_bound(view.bound);
  counts->set_running(view.running);
  counts->set_succeeded(view.succeeded);
  counts->set_failed(view.failed);
  counts->set_planned(view.planned);
  counts->set_held(view.held);
  out.set_satisfied(view.satisfied);
  out.set_timed_out(view.timed_out);
  out.set_priority(view.priority);
  out.set_requeues(view.requeues);
  *out.mutable_create_time() = TimestampOfMs(view.created_ms);
  FillReason(view.reason, out.mutable_reason());
  *out.mutable_reason()->mutable_since_time() = TimestampOfMs(view.reason_since_ms);
  out.mutable_reason()->set_suggestion(view.would_help);
  for (const std::string& warning : view.warnings) out.add_warnings(warning);
  for (const MemberView& member : view.members) *out.add_members() = ToMessage(member);
  return out;
}

v1::Node ToMessage(const NodeView& view) {
  v1::Node out;
  out.set_name(view.name);
  out.set_unschedulable(view.unschedulable);
  WriteAmounts(view.allocatable, out.mutable_allocatable());
  WriteAmounts(view.used, out.mutable_used());
  WriteAmounts(view.reserved, out.mutable_reserved());
  WriteAmounts(view.free, out.mutable_free());
  out.set_refusal(view.refused);
  if (view.stale_since_ms != kNever) *out.mutable_stale_since_time() = TimestampOfMs(view.stale_since_ms);
  out.set_stale_too_long(view.expired);
  return out;
}

v1::QueuedGang ToMessage(const QueuedGangView& view) {
  v1::QueuedGang out;
  out.set_namespace_(view.name_space);
  out.set_name(view.name);
  out.set_queue(view.queue);
  FillReason(view.reason, out.mutable_reason());
  return out;
}

std::string Names(const std::vector<QueuedGangView>& gangs, size_t from, int32_t all) {
  constexpr size_t kMost = 3;
  std::string out;
  size_t listed = 0;
  for (size_t i = from; i < gangs.size() && listed < kMost; ++i, ++listed) {
    absl::StrAppend(&out, listed == 0 ? "" : ", ", gangs[i].name_space, "/", gangs[i].name);
  }
  const auto rest = static_cast<size_t>(std::max(all, 0)) - listed;
  if (rest > 0) absl::StrAppend(&out, listed == 0 ? "" : " and ", rest, listed == 0 ? " gangs" : " more");
  return out;
}

bool Waits(const GangView& view) { return !view.reason.none() && view.reason.code != ReasonCode::kSatisfied; }

int64_t WaitsSince(const GangView& view) { return std::min(view.waits_since_ms, view.reason_since_ms); }

std::string ExplainText(const GangView& view, int64_t now_ms, const Unconfirmed& unconfirmed) {
  std::string out = absl::StrCat("Gang ", view.key, " (", ToString(view.phase), "): ");
  if (view.reason.none()) {
    absl::StrAppend(&out, "has no minimum, so nothing holds it.");
  } else if (view.reason.code == ReasonCode::kSatisfied) {
    absl::StrAppend(&out, view.reason.text, Placed(view), "; since ", Ago(view.reason_since_ms, now_ms), ".");
  } else {
    const std::string since = Ago(WaitsSince(view), now_ms);
    const std::string reason_since = Ago(view.reason_since_ms, now_ms);
    if (view.phase == GangPhase::kFailed) {
      absl::StrAppend(&out, "it has ended: ", WriteCount(view.failed, "member"), " failed",
                      view.succeeded > 0 ? absl::StrCat(", ", view.succeeded, " succeeded") : "",
                      ". To start again it ");
    }
    absl::StrAppend(&out, "waits since ", since,
                    since == reason_since ? "" : absl::StrCat(", for this reason since ", reason_since), ": ",
                    view.reason.text, " [", ReasonName(view.reason.code), "].");
  }
  if (view.waits.has_value()) absl::StrAppend(&out, " ", Describe(*view.waits));
  absl::StrAppend(&out, DescribeGoneNodes(view.members));
  if (!view.would_help.empty()) absl::StrAppend(&out, " Suggestion: ", view.would_help, ".");
  if (view.backoff_until_ms > now_ms) {
    absl::StrAppend(&out, " Its back-off ends in ", WriteDuration(view.backoff_until_ms - now_ms), ".");
  }
  if (view.planned > 0 && view.asked == 0 && now_ms - view.planned_ms >= kUnaskedWarningAge) {
    absl::StrAppend(
        &out, " Its pods were activated ", Ago(view.planned_ms, now_ms),
        " ago, and no scheduler has asked for one of them since: check that the scheduler they name runs and calls "
        "Muster.");
  }
  // The wait time runs while capacity is held for the gang: its plan, or slots of members at the barrier.
  if ((view.planned > 0 || view.waiting > 0) && view.wait_left_ms > 0) {
    absl::StrAppend(&out, " Of its wait time of ", WriteDuration(view.rules.wait_time_ms), ", ",
                    WriteDuration(view.wait_left_ms), " are left.");
  }
  if (!view.holders.holders.empty()) {
    const std::string holders = Describe(view.holders, unconfirmed, now_ms);
    absl::StrAppend(&out, "\nThe capacity of the nodes that it may use is held by ", holders, ".");
  }
  if (view.queue_position.place > 0) absl::StrAppend(&out, "\n", Describe(view.queue_position));
  for (const std::string& warning : view.warnings) absl::StrAppend(&out, "\nWarning: ", warning, ".");
  return out;
}

std::string ExplainText(const PodView& view, int64_t now_ms, const Unconfirmed& unconfirmed) {
  std::string out = absl::StrCat("Pod ", view.name_space, "/", view.pod.name, " (", ToString(view.pod.state), "): ");
  if (!view.pod.reason.none()) {
    absl::StrAppend(&out, view.pod.reason.text, " [", ReasonName(view.pod.reason.code), "].");
  } else if (!view.pod.node.empty()) {
    absl::StrAppend(&out, "is on node ", view.pod.node, view.pod.node_gone ? ", which is gone." : ".");
  } else {
    absl::StrAppend(&out, "nothing holds it back.");
  }
  if (!view.would_help.empty()) absl::StrAppend(&out, " Suggestion: ", view.would_help, ".");
  for (const std::string& ignored : view.ignored) absl::StrAppend(&out, "\nWarning: ", ignored, ".");
  if (view.in_gang) absl::StrAppend(&out, "\n", ExplainText(view.gang, now_ms, unconfirmed));
  return out;
}

}  // namespace muster
