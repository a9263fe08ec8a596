// Records, hashes and the invariant check (SPEC S-2, P-1).
#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/muster/store/v1/records.pb.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

constexpr absl::string_view kGangPrefix = "gang/";
constexpr absl::string_view kCommitPrefix = "commit/";

}  // namespace

void Machine::WriteRecord(Gang* gang) {
  const DurableGang now{gang->satisfied, gang->timed_out, gang->held_ms,
                        gang->requeues,  gang->cycle,     gang->cycle_valid};
  if (now == gang->durable) return;
  gang->durable = now;
  gang->recorded = true;
  store::v1::GangRecord record;
  record.set_satisfied(now.satisfied);
  record.set_timed_out(now.timed_out);
  record.set_held_ms(now.held_ms);
  record.set_requeues(now.requeues);
  record.set_cycles_passed(now.cycle - 1);
  record.set_cycle_invalid(!now.cycle_valid);
  std::string value;
  record.SerializeToString(&value);
  if (value.empty()) gang->recorded = false;  // everything is at its default: as good as no record
  out_->records.push_back({absl::StrCat(kGangPrefix, gang->key), std::move(value)});
}

void Machine::WriteCommit(const Pod& pod) {
  store::v1::CommitRecord record;
  record.set_node(pod.binding.node);
  std::string value;
  record.SerializeToString(&value);
  out_->records.push_back({absl::StrCat(kCommitPrefix, pod.facts.uid), std::move(value)});
}

void Machine::ForgetCommit(const Pod& pod) {
  if (pod.binding.phase == BindingPhase::kPending)
    out_->records.push_back({absl::StrCat(kCommitPrefix, pod.facts.uid), ""});
}

absl::Status Machine::Load(const std::vector<Record>& records) {
  for (const Record& record : records) {
    absl::string_view key = record.key;
    if (absl::ConsumePrefix(&key, kCommitPrefix)) {
      if (store::v1::CommitRecord parsed; !parsed.ParseFromString(record.value)) {
        return absl::InvalidArgumentError(absl::StrCat("record \"", record.key, "\": not a readable CommitRecord"));
      }
      restored_commits_.push_back(record.key);
      continue;
    }
    if (!absl::ConsumePrefix(&key, kGangPrefix)) {
      return absl::InvalidArgumentError(
          absl::StrCat("record \"", record.key, "\": unknown type; expected gang/ or commit/"));
    }
    store::v1::GangRecord parsed;
    if (!parsed.ParseFromString(record.value)) {
      return absl::InvalidArgumentError(absl::StrCat("record \"", record.key, "\": not a readable GangRecord"));
    }
    restored_[key] = DurableGang{parsed.satisfied(), parsed.timed_out(),         parsed.held_ms(),
                                 parsed.requeues(),  parsed.cycles_passed() + 1, !parsed.cycle_invalid()};
  }
  return absl::OkStatus();
}

// Takes the record that an earlier process wrote.
void Machine::RestoreGang(Gang* gang) {
  const auto restored = restored_.find(gang->key);
  if (restored == restored_.end()) return;
  gang->durable = restored->second;
  gang->recorded = true;
  restored_.erase(restored);
  gang->satisfied = gang->durable.satisfied;
  gang->timed_out = gang->durable.timed_out;
  gang->held_ms = gang->durable.held_ms;
  gang->requeues = gang->durable.requeues;
  gang->cycle = gang->durable.cycle;
  gang->cycle_valid = gang->durable.cycle_valid;
  gang->cycles_used = gang->cycle > 1 || !gang->cycle_valid;
}

// What is bound is a fact by now: the API server says which bindings were made, half-bound gangs are finished (K-13).
void Machine::ForgetRestored() {
  for (const std::string& key : restored_commits_) out_->records.push_back({key, ""});
  restored_commits_.clear();
  for (const auto& [key, record] : restored_) out_->records.push_back({absl::StrCat(kGangPrefix, key), ""});
  restored_.clear();
}

uint64_t Machine::DurableHash() const {
  StateHasher hasher;
  for (const auto& [key, gang] : gangs_) {
    hasher.Add(key);
    hasher.Add(gang->satisfied);
    hasher.Add(gang->timed_out);
    hasher.Add(gang->held_ms);
    hasher.Add(gang->requeues);
    hasher.Add(gang->cycle);
    hasher.Add(gang->cycle_valid);
  }
  return hasher.value();
}

uint64_t Machine::Hash() const {
  StateHasher hasher;
  cluster_.Hash(&hasher);
  hasher.Add(DurableHash());
  hasher.Add(facts_read_);
  hasher.Add(held_binds_);
  hasher.Add(promised_holds_);
  hasher.Add(facts_source_);
  hasher.Add(facts_version_);
  for (const auto& [key, gang] : gangs_) {
    hasher.Add(gang->rules.min_member);
    hasher.Add(gang->rules.wait_time_ms);
    hasher.Add(gang->created_ms);
    hasher.Add(gang->retry_at_ms);
    hasher.Add(gang->holding_since_ms);
    hasher.Add(gang->evicting);
    hasher.Add(gang->evict_again_ms);
    hasher.Add(gang->repair_until_ms);
    hasher.Add(ReasonName(gang->reason.code));
    hasher.Add(gang->reason.text);
    hasher.Add(gang->queued.has_value());
    for (const std::string& warning : gang->warnings) hasher.Add(warning);
    for (const MemberSet& set : gang->members) {
      hasher.Add(static_cast<int64_t>(set.size()));
      for (const Pod* pod : set) hasher.Add(pod->facts.uid);
    }
    hasher.Add(gang->submission == nullptr ? absl::string_view() : absl::string_view(gang->submission->id));
    if (gang->submission != nullptr) hasher.Add(gang->submission->expires_ms);
    hasher.Add(gang->plan != nullptr);
    if (gang->plan == nullptr) continue;
    hasher.Add(gang->plan->id);
    hasher.Add(gang->plan->committed);
    hasher.Add(gang->plan->held);
    hasher.Add(gang->plan->last_arrival_ms);
    for (const Slot& slot : gang->plan->slots) {
      hasher.Add(cluster_.node(slot.node).facts.name);
      hasher.Add(static_cast<int>(slot.state));
      hasher.Add(slot.pod == nullptr ? absl::string_view() : absl::string_view(slot.pod->facts.uid));
    }
  }
  std::vector<const Pod*> pods;
  for (const auto& [uid, pod] : pods_) pods.push_back(pod.get());
  std::sort(pods.begin(), pods.end(), [](const Pod* a, const Pod* b) { return a->facts.uid < b->facts.uid; });
  for (const Pod* pod : pods) {
    hasher.Add(pod->facts.uid);
    hasher.Add(static_cast<int>(pod->state));
    hasher.Add(pod->charged_node == kNoNode ? absl::string_view()
                                            : absl::string_view(cluster_.node(pod->charged_node).facts.name));
    hasher.Add(pod->slot >= 0);
    hasher.Add(static_cast<int64_t>(pod->holds.size()));
    hasher.Add(pod->hold_until_ms);
    hasher.Add(static_cast<int>(pod->binding.phase));
    hasher.Add(pod->binding.attempts);
    hasher.Add(pod->refused);
    hasher.Add(pod->submitted);
    hasher.Add(pod->bind_by_ms);
  }
  return hasher.value();
}

absl::Status Machine::CheckInvariants() const {
  const auto broken = [](absl::string_view text) { return absl::InternalError(text); };
  std::vector<std::tuple<ResourceVector, ResourceVector, int32_t, int32_t>> expected(
      static_cast<size_t>(cluster_.node_limit()));
  const auto charge = [&](NodeId node, ClassId cls, ChargeKind kind) {
    auto& [used, reserved, used_pods, reserved_pods] = expected[static_cast<size_t>(node)];
    (kind == ChargeKind::kUsed ? used : reserved).AddTimes(cluster_.pod_class(cls).request, 1);
    ++(kind == ChargeKind::kUsed ? used_pods : reserved_pods);
  };
  size_t in_gangs = 0;
  int32_t holds = 0;
  int32_t promised = 0;
  for (const auto& [key, gang] : gangs_) {
    for (size_t state = 0; state < kMemberStates; ++state) {
      for (const Pod* pod : gang->members[state]) {
        ++in_gangs;
        if (pod->gang != gang.get() || static_cast<size_t>(pod->state) != state) {
          return broken(absl::StrCat("pod ", pod->facts.uid, " is in the wrong member set of ", key));
        }
      }
    }
    int32_t gated = 0;
    int32_t plannable = 0;
    for (const Pod* pod : gang->in(MemberState::kPending)) {
      gated += pod->facts.other_gates ? 1 : 0;
      plannable += !pod->facts.other_gates && Serves(*pod) && pod->facts.gang.problem.none() && !pod->stranger &&
                   pod->cls != kNoClass;
    }
    int32_t turned = 0;
    for (const MemberState state : {MemberState::kPending, MemberState::kWaiting}) {
      for (const Pod* pod : gang->in(state)) {
        turned += pod->round == gang->cycle && !(state == MemberState::kPending && pod->facts.other_gates);
      }
    }
    if (turned != gang->turned) return broken(absl::StrCat(key, " counts ", gang->turned, " turns, has ", turned));
    if (gated != gang->gated || plannable != gang->plannable) {
      return broken(absl::StrCat(key, " counts ", gang->gated, " gated and ", gang->plannable,
                                 " plannable members, has ", gated, " and ", plannable));
    }
    if (!gang->queued.has_value() && !gang->blocked_signature.empty())
      return broken(absl::StrCat(key, " is blocked, not queued"));
    if (gang->plan == nullptr) continue;
    if (gang->submission == nullptr) promised += static_cast<int32_t>(gang->plan->slots.size());
    int32_t held = 0;
    int32_t open = 0;
    for (size_t i = 0; i < gang->plan->slots.size(); ++i) {
      const Slot& slot = gang->plan->slots[i];
      if (slot.pod != nullptr && (slot.pod->slot != static_cast<int32_t>(i) || slot.pod->gang != gang.get())) {
        return broken(absl::StrCat(key, " slot ", i, " and its pod disagree"));
      }
      if (gang->submission != nullptr && slot.pod == nullptr) {
        return broken(absl::StrCat(key, " was submitted and slot ", i, " has no pod"));
      }
      if (slot.state == SlotState::kHeld) {
        ++held;
        if (slot.pod == nullptr || slot.pod->state != MemberState::kWaiting) {
          return broken(absl::StrCat(key, " slot ", i, " is held without a waiting pod"));
        }
      }
      if (slot.state != SlotState::kCommitted) {
        charge(slot.node, slot.cls, ChargeKind::kReserved);
        ++open;
      }
    }
    if (held != gang->plan->held)
      return broken(absl::StrCat(key, " counts ", gang->plan->held, " held slots, has ", held));
    holds += held;
    if (!gang->plan->committed && gang->plan->slots.size() != static_cast<size_t>(Missing(*gang))) {
      return broken(absl::StrCat(key, " has ", gang->plan->slots.size(), " slots and misses ", Missing(*gang)));
    }
    // No partial gang is committed: a plan is committed as a whole or has no committed slot.
    if (!gang->plan->committed && open != static_cast<int32_t>(gang->plan->slots.size())) {
      return broken(absl::StrCat(key, " has committed slots in an uncommitted plan"));
    }
  }
  size_t with_gang = 0;
  for (const auto& [uid, pod] : pods_) {
    if (pod->gang != nullptr) ++with_gang;
    if (pod->charged_node != kNoNode) charge(pod->charged_node, pod->cls, pod->charge_kind);
    if (pod->slot >= 0 && (pod->gang == nullptr || pod->gang->plan == nullptr)) {
      return broken(absl::StrCat("pod ", uid, " has a slot without a plan"));
    }
    if (!pod->on_node() || pod->cls == kNoClass) continue;
    const bool used = pod->charged_node != kNoNode && pod->charge_kind == ChargeKind::kUsed;
    if (!used || cluster_.node(pod->charged_node).facts.name != pod->facts.node_name) {
      return broken(absl::StrCat("pod ", uid, " does not use node ", pod->facts.node_name, ", where it is"));
    }
  }
  if (with_gang != in_gangs) return broken("member sets and pods disagree");
  if (holds != held_binds_) return broken(absl::StrCat("counts ", held_binds_, " held binds, has ", holds));
  if (promised != promised_holds_)
    return broken(absl::StrCat("counts ", promised_holds_, " promised holds, has ", promised));
  for (NodeId id = 0; id < cluster_.node_limit(); ++id) {
    const Node& node = cluster_.node(id);
    const auto& [used, reserved, used_pods, reserved_pods] = expected[static_cast<size_t>(id)];
    if (!(node.used == used) || !(node.reserved == reserved) || node.used_pods != used_pods ||
        node.reserved_pods != reserved_pods) {
      return broken(absl::StrCat("node ", node.facts.name, ": charges differ from the sum of pods and slots"));
    }
    if (cluster_.ReservationsExceed(id))
      return broken(absl::StrCat("node ", node.facts.name, ": reservations exceed it"));
  }
  return absl::OkStatus();
}

}  // namespace muster
