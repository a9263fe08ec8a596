// A running digest of the decisions of a core, to compare two builds that must behave alike.
//
// The program build/release/tests/transcript writes a line for every thousand steps of the random worlds.
// The digest covers replies, effects, keys of records and ended holds; of reasons only the code, as texts may change.
// Not thread-safe.
#ifndef MUSTER_TESTS_SIMULATION_TRANSCRIPT_H_
#define MUSTER_TESTS_SIMULATION_TRANSCRIPT_H_

#include <cstdint>
#include <variant>

#include "state/api/effects.h"
#include "state/base/hash.h"

namespace muster {

class Transcript {
 public:
  void Add(const Outcome& outcome) {
    hasher_.Add(static_cast<int64_t>(outcome.status.code()));
    hasher_.Add(outcome.reply_after_commit);
    hasher_.Add(static_cast<uint64_t>(outcome.reply.index()));
    std::visit([&](const auto& reply) { AddReply(reply); }, outcome.reply);
    for (const Effect& effect : outcome.effects) {
      hasher_.Add(static_cast<uint64_t>(effect.index()));
      std::visit([&](const auto& one) { AddEffect(one); }, effect);
    }
    for (const Record& record : outcome.records) {
      hasher_.Add(record.key);
      hasher_.Add(record.incarnation);
      hasher_.Add(record.format);
      hasher_.Add(record.value.empty());
    }
    for (const HoldAnswer& answer : outcome.answers) {
      hasher_.Add(answer.token);
      hasher_.Add(answer.permitted);
      AddReason(answer.reason);
    }
  }
  [[nodiscard]] uint64_t digest() const { return hasher_.value(); }

 private:
  void AddReason(const Reason& reason) { hasher_.Add(static_cast<int64_t>(reason.code)); }
  void AddReply(const std::monostate&) {}
  void AddReply(const FilterReply& reply) {
    hasher_.Add(static_cast<int64_t>(reply.kind));
    hasher_.Add(reply.node);
    for (const auto& node : reply.guarded) hasher_.Add(node);
    AddReason(reply.reason);
  }
  void AddReply(const PreemptReply& reply) {
    for (const auto& node : reply.nodes) hasher_.Add(node);
  }
  void AddReply(const PermitReply& reply) {
    hasher_.Add(static_cast<int64_t>(reply.kind));
    hasher_.Add(reply.wait_ms);
    AddReason(reply.reason);
    for (const auto& uid : reply.activate) hasher_.Add(uid);
  }
  void AddReply(const PreFilterReply& reply) {
    hasher_.Add(reply.passes);
    AddReason(reply.reason);
  }
  void AddReply(const NodesReply& reply) {
    for (const auto& scored : reply.nodes) {
      hasher_.Add(scored.node);
      hasher_.Add(scored.score);
    }
    for (const auto& refused : reply.refused) {
      hasher_.Add(refused.node);
      AddReason(refused.reason);
    }
    AddReason(reply.reason);
  }
  void AddReply(const FactsReply& reply) { hasher_.Add(reply.version); }
  void AddReply(const SubmissionReply& reply) {
    hasher_.Add(static_cast<int64_t>(reply.state));
    hasher_.Add(reply.gang);
    hasher_.Add(reply.plan);
    for (const auto& place : reply.places) {
      hasher_.Add(place.uid);
      hasher_.Add(place.node);
    }
    hasher_.Add(reply.expires_ms);
    AddReason(reply.reason);
  }
  void AddPod(const PodRef& pod) { hasher_.Add(pod.uid); }
  void AddEffect(const BindPod& bind) {
    AddPod(bind.pod);
    hasher_.Add(bind.node);
    hasher_.Add(bind.deadline_ms);
  }
  void AddEffect(const ActivatePod& call) {
    AddPod(call.pod);
    hasher_.Add(call.remove_gate);
    hasher_.Add(call.nominated_node);
    hasher_.Add(call.plan);
  }
  void AddEffect(const MarkTimedOut& mark) { AddPod(mark.pod); }
  void AddEffect(const EvictPod& evict) { AddPod(evict.pod); }
  void AddEffect(const EmitPodEvent& tell) {
    AddPod(tell.pod);
    hasher_.Add(tell.warning);
    hasher_.Add(tell.urgent);
    AddReason(tell.reason);
  }

  StateHasher hasher_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_TRANSCRIPT_H_
