// The hash of everything that changes a later answer: equal states hash alike, whatever path led there (SPEC P-1).
#include "state/base/hash.h"

#include "state/machine/machine.h"

namespace muster {
namespace {

void AddKept(const Gang& gang, StateHasher* hasher) {
  hasher->Add(gang.key);
  hasher->Add(gang.kept.satisfied);
  hasher->Add(gang.kept.timed_out);
  hasher->Add(gang.kept.held_ms);
  hasher->Add(gang.kept.requeues);
  hasher->Add(gang.kept.cycle);
  hasher->Add(gang.kept.cycle_valid);
}

void AddPlan(const Plan& plan, const Cluster& cluster, StateHasher* hasher) {
  hasher->Add(plan.id);
  hasher->Add(plan.committed);
  hasher->Add(plan.held);
  hasher->Add(plan.last_arrival_ms);
  for (const Slot& slot : plan.slots) {
    hasher->Add(cluster.node(slot.node).facts.name);
    hasher->Add(static_cast<int>(slot.state));
    hasher->Add(slot.pod == nullptr ? absl::string_view() : absl::string_view(slot.pod->facts.uid));
  }
}

}  // namespace

uint64_t Machine::DurableHash() const {
  StateHasher hasher;
  gangs_.ForEachGang([&](const Gang& gang) { AddKept(gang, &hasher); });
  return hasher.value();
}

uint64_t Machine::Hash() const {
  StateHasher hasher;
  cluster_.Hash(&hasher);
  hasher.Add(DurableHash());
  hasher.Add(sources_.complete());
  hasher.Add(held_binds());
  hasher.Add(promised_holds());
  hasher.Add(sources_.announcer());
  hasher.Add(sources_.version());
  gangs_.ForEachGang([&](const Gang& gang) {
    hasher.Add(gang.rules.min_member);
    hasher.Add(gang.rules.wait_time_ms);
    hasher.Add(gang.created_ms);
    hasher.Add(gang.retry_at_ms);
    hasher.Add(clock_.Deadline(gang));
    hasher.Add(gang.evicting);
    hasher.Add(repair_.Deadline(gang));
    hasher.Add(ReasonName(gang.reason.code));
    hasher.Add(gang.reason.text);
    hasher.Add(backlog_.queued(gang.id) != nullptr);
    for (const std::string& warning : gang.warnings) hasher.Add(warning);
    for (const MemberSet& set : gang.members) {
      hasher.Add(static_cast<int64_t>(set.size()));
      for (const Pod* pod : set) hasher.Add(pod->facts.uid);
    }
    const Submission* submission = submissions_.Of(gang);
    hasher.Add(submission == nullptr ? absl::string_view() : absl::string_view(submission->id));
    if (submission != nullptr) hasher.Add(submission->expires_ms);
    const Plan* plan = plans_.Of(gang);
    hasher.Add(plan != nullptr);
    if (plan != nullptr) AddPlan(*plan, cluster_, &hasher);
  });
  for (const std::string& uid : gangs_.Uids()) {
    const Pod& pod = *FindPod(uid);
    const Ledger::PodCharge& charge = ledger_.ChargeOf(pod.id);
    hasher.Add(uid);
    hasher.Add(static_cast<int>(pod.state));
    hasher.Add(charge.node == kNoNode ? absl::string_view() : absl::string_view(cluster_.node(charge.node).facts.name));
    hasher.Add(plans_.SlotIndex(pod) >= 0);
    hasher.Add(static_cast<int64_t>(barrier_.Of(pod).holds.size()));
    hasher.Add(barrier_.Of(pod).until_ms);
    hasher.Add(static_cast<int>(bindings_.Of(pod).phase));
    hasher.Add(bindings_.Of(pod).attempts);
    hasher.Add(calls_.Of(pod).refused);
    hasher.Add(pod.submitted);
    hasher.Add(bindings_.PermissionOf(pod).bind_by_ms);
  }
  return hasher.value();
}

}  // namespace muster
