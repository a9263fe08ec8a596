#include "service/rpc/mapping.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "state/base/quantity.h"

namespace muster {
namespace {

void WriteAmounts(const ResourceList& from, google::protobuf::Map<std::string, std::string>* to) {
  for (const auto& [name, amount] : from) (*to)[name] = FormatQuantity(name, amount);
}

}  // namespace

void FillReason(const Reason& from, v1::Reason* to) {
  to->set_code(std::string(ReasonName(from.code)));
  to->set_text(from.text);
}

v1::Gang ToMessage(const GangView& view) {
  v1::Gang out;
  out.set_namespace_(view.name_space);
  out.set_name(view.name);
  out.set_phase(std::string(ToString(view.phase)));
  out.set_source(view.source);
  v1::GangRules* rules = out.mutable_rules();
  rules->set_min_member(view.rules.min_member);
  rules->set_total_number(view.rules.total_number);
  rules->set_wait_time_ms(view.rules.wait_time_ms);
  rules->set_mode(std::string(ToString(view.rules.mode)));
  rules->set_match_policy(std::string(ToString(view.rules.match_policy)));
  rules->set_queue(view.rules.queue);
  rules->set_on_timeout(std::string(ToString(view.rules.on_timeout)));
  rules->set_on_member_failure(std::string(ToString(view.rules.on_member_failure)));
  WriteAmounts(view.rules.min_resources, rules->mutable_min_resources());
  for (const std::string& id : view.rules.group) rules->add_group(id);
  v1::GangCounts* counts = out.mutable_counts();
  counts->set_children(view.children);
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
  out.set_created_unix_ms(view.created_ms);
  FillReason(view.reason, out.mutable_reason());
  out.mutable_reason()->set_since_unix_ms(view.reason_since_ms);
  out.mutable_reason()->set_would_help(view.would_help);
  for (const std::string& warning : view.warnings) out.add_warnings(warning);
  for (const MemberView& member : view.members) {
    v1::Member* message = out.add_members();
    message->set_uid(member.uid);
    message->set_name(member.name);
    message->set_state(std::string(ToString(member.state)));
    message->set_node(member.node);
    message->set_priority(member.priority);
    if (!member.reason.none()) FillReason(member.reason, message->mutable_reason());
    if (member.binding.phase == BindingPhase::kNone) continue;
    v1::Binding* binding = message->mutable_binding();
    binding->set_phase(std::string(ToString(member.binding.phase)));
    binding->set_node(member.binding.node);
    binding->set_reason(member.binding.reason);
    binding->set_attempts(member.binding.attempts);
  }
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
  out.set_refused(view.refused);
  return out;
}

std::string ExplainText(const GangView& view, int64_t now_ms) {
  const std::string since =
      absl::StrCat(absl::FormatDuration(absl::Seconds(std::max<int64_t>(1, (now_ms - view.reason_since_ms) / 1000))));
  std::string out = absl::StrCat("Gang ", view.key, " (", ToString(view.phase), "): ");
  if (view.reason.none()) {
    absl::StrAppend(&out, "has no minimum, so nothing holds it.");
  } else if (view.reason.code == ReasonCode::kSatisfied) {
    absl::StrAppend(&out, view.reason.text, ": ", view.bound + view.committed, " members have a node",
                    view.succeeded > 0 ? absl::StrCat(", ", view.succeeded, " succeeded") : "", ", the minimum is ",
                    view.rules.min_member, "; since ", since, ".");
  } else {
    absl::StrAppend(&out, "waits since ", since, ": ", view.reason.text, " [", ReasonName(view.reason.code), "].");
  }
  if (!view.would_help.empty()) absl::StrAppend(&out, " To let it go: ", view.would_help, ".");
  if (view.planned > 0) {
    absl::StrAppend(&out, " Of its wait time of ", view.rules.wait_time_ms / 1000, " s, ", view.wait_left_ms / 1000,
                    " s are left.");
  }
  for (const std::string& warning : view.warnings) absl::StrAppend(&out, "\nWarning: ", warning, ".");
  return out;
}

}  // namespace muster
