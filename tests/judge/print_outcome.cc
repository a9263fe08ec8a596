#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/judge/peek.h"

namespace muster {
namespace {

std::string Why(const Reason& reason) { return absl::StrCat(" [", ReasonName(reason.code), ": ", reason.text, "]"); }

struct ReplyWriter {
  std::string operator()(const std::monostate&) const { return ""; }
  std::string operator()(const FilterReply& reply) const {
    return absl::StrCat("filter ", static_cast<int>(reply.kind), " ", reply.node, " but ",
                        absl::StrJoin(reply.guarded, ","), Why(reply.reason), "\n");
  }
  std::string operator()(const PreemptReply& reply) const {
    return absl::StrCat("preempt ", absl::StrJoin(reply.nodes, ","), "\n");
  }
  std::string operator()(const PermitReply& reply) const {
    return absl::StrCat("permit ", static_cast<int>(reply.kind), " ", reply.wait_ms, " ",
                        absl::StrJoin(reply.activate, ","), Why(reply.reason), "\n");
  }
  std::string operator()(const PreFilterReply& reply) const {
    return absl::StrCat("prefilter ", reply.passes, Why(reply.reason), "\n");
  }
  std::string operator()(const NodesReply& reply) const {
    std::string out = absl::StrCat("nodes", Why(reply.reason));
    for (const auto& node : reply.nodes) absl::StrAppend(&out, " ", node.node, "=", node.score);
    for (const auto& node : reply.refused) absl::StrAppend(&out, " not ", node.node, Why(node.reason));
    return out + "\n";
  }
  std::string operator()(const FactsReply& reply) const { return absl::StrCat("facts ", reply.version, "\n"); }
  std::string operator()(const SubmissionReply& reply) const {
    std::string out = absl::StrCat("submission ", ToString(reply.state), " ", reply.gang, " plan ", reply.plan,
                                   " until ", reply.expires_ms, Why(reply.reason));
    for (const auto& place : reply.places) absl::StrAppend(&out, " ", place.uid, "@", place.node);
    return out + "\n";
  }
};

struct EffectWriter {
  std::string operator()(const BindPod& bind) const {
    return absl::StrCat("bind ", bind.pod.uid, " ", bind.node, " by ", bind.deadline_ms, "\n");
  }
  std::string operator()(const CallPod& call) const {
    return absl::StrCat("call ", call.pod.uid, " ", call.remove_gate, " ", call.nominated_node, " ", call.plan, "\n");
  }
  std::string operator()(const MarkTimedOut& mark) const { return absl::StrCat("mark ", mark.pod.uid, "\n"); }
  std::string operator()(const EvictPod& evict) const {
    return absl::StrCat("evict ", evict.pod.uid, " ", evict.note, "\n");
  }
  std::string operator()(const TellPod& tell) const {
    return absl::StrCat("tell ", tell.pod.uid, " ", tell.warning, Why(tell.reason), "\n");
  }
};

}  // namespace

std::string WriteView(const GangView& v) {
  std::string out =
      absl::StrCat(v.key, " ", v.source, " ", v.has_object, " ", ToString(v.phase), " min ", v.rules.min_member,
                   " sat ", v.satisfied, " to ", v.timed_out, " ", v.children, " ", v.waiting, " ", v.committed, " ",
                   v.bound, " ", v.running, " ", v.succeeded, " ", v.failed);
  absl::StrAppend(&out, " prio ", v.priority, " req ", v.requeues, " ", v.created_ms, Why(v.reason), " since ",
                  v.reason_since_ms, " left ", v.wait_left_ms, " ", v.planned, " ", v.held, " ", v.would_help, " ",
                  absl::StrJoin(v.warnings, "|"), "\n");
  for (const MemberView& m : v.members) {
    absl::StrAppend(&out, "  ", m.uid, " ", ToString(m.state), " ", m.node, " ", m.priority, Why(m.reason), " ",
                    ToString(m.binding.phase), " ", m.binding.node, " ", m.binding.reason, " ", m.binding.attempts, " ",
                    m.binding.next_try_ms, "\n");
  }
  return out;
}

std::string WriteView(const NodeView& v) {
  return absl::StrCat(v.name, " ", v.present, v.unschedulable, " ", FormatResources(v.allocatable), "|",
                      FormatResources(v.used), "|", FormatResources(v.reserved), "|", FormatResources(v.free), "\n");
}

std::string Print(const Outcome& outcome) {
  std::string out;
  if (!outcome.status.ok()) absl::StrAppend(&out, "status ", outcome.status.ToString(), "\n");
  absl::StrAppend(&out, std::visit(ReplyWriter(), outcome.reply));
  for (const Effect& effect : outcome.effects) absl::StrAppend(&out, std::visit(EffectWriter(), effect));
  for (const Record& record : outcome.records) {
    absl::StrAppend(&out, "record ", record.key, " ", absl::BytesToHexString(record.value), "\n");
  }
  for (const HoldAnswer& answer : outcome.answers) {
    absl::StrAppend(&out, "answer ", answer.token, " ", answer.permitted, Why(answer.reason), "\n");
  }
  return out;
}

}  // namespace muster
