// Which gang is planned next, what a plan is, and how it ends before its commit (SPEC P-2, P-9 to P-11, K-7).
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "state/base/check.h"
#include "state/base/checked.h"
#include "state/machine/machine.h"
#include "state/placement/planner.h"

namespace muster {
namespace {

constexpr int64_t kBackoffStartMs = 1'000;
constexpr int64_t kBackoffMaxMs = 60'000;

}  // namespace

void Machine::On(const PlanRound& command) {
  if (!facts_read_) return;
  WakeGroups();
  for (int32_t tried = 0; tried < command.max_gangs; ++tried) {
    // The first in order among new gangs and the heads of groups that were woken.
    const QueueKey* best = queue_.empty() ? nullptr : &*queue_.begin();
    for (const std::string& signature : awake_) {
      const QueueKey& head = *blocked_.find(signature)->second.waiting.begin();
      if (best == nullptr || head < *best) best = &head;
    }
    if (best == nullptr) return;
    Gang* gang = gangs_.find(best->name)->second.get();
    Touch(gang);
    if (!TryPlan(gang)) continue;
    const std::string alike = gang->blocked_signature;
    LeaveQueue(gang);
    // What let this one go may let the next of its kind go.
    if (!alike.empty() && blocked_.contains(alike)) awake_.insert(alike);
  }
}

void Machine::WakeGroups() {
  const int64_t end = cluster_.log_end();
  if (blocked_.empty()) {
    gain_position_ = end;
    return;
  }
  const bool missed = gain_position_ < cluster_.log_start();
  absl::flat_hash_set<NodeId> seen;
  std::vector<NodeId> gained;
  if (!missed) {
    for (int64_t at = gain_position_; at < end; ++at) {
      const ClusterChange& change = cluster_.log_at(at);
      if (change.gained && seen.insert(change.node).second) gained.push_back(change.node);
    }
  }
  gain_position_ = end;
  if (!missed && gained.empty()) return;
  for (const auto& [signature, group] : blocked_) {
    if (group.holds || awake_.contains(signature)) continue;
    bool helps = missed || group.classes.empty();
    for (size_t i = 0; !helps && i < gained.size(); ++i) {
      helps = std::any_of(group.classes.begin(), group.classes.end(), [&](ClassId cls) {
        return cluster_.FindObstacle(gained[i], cls) == Obstacle::kNone && cluster_.Room(gained[i], cls, 1) > 0;
      });
    }
    if (helps) awake_.insert(signature);
  }
}

const std::vector<Candidates>& Machine::CandidateRuns(Gang* gang) const {
  std::vector<Candidates>& runs = gang->runs;
  if (std::exchange(gang->runs_current, true)) return runs;
  runs.clear();
  for (const Pod* pod : gang->in(MemberState::kPending)) {
    if (!Plannable(*pod)) continue;
    if (runs.empty() || runs.back().cls != pod->cls || runs.back().priority != pod->facts.priority) {
      runs.push_back({pod->cls, pod->facts.priority, 0});
    }
    ++runs.back().pods;
  }
  return runs;
}

// What the gang asks of the cluster, as text: equal for gangs that need the same.
std::string Machine::Needs(Gang* gang) const {
  std::string out =
      absl::StrCat(Missing(*gang), "/", GangPriority(*gang), "/", FormatResources(gang->rules.min_resources));
  for (const Candidates& run : CandidateRuns(gang)) {
    absl::StrAppend(&out, "|", run.cls, ",", run.priority, ",", run.pods);
  }
  return out;
}

// The needs of the gang, or of all of its group. A group is like no other: what it waits for names its gangs.
std::string Machine::Signature(Gang* gang) const {
  if (gang->rules.group.empty()) return Needs(gang);
  std::string out = absl::StrJoin(gang->rules.group, ",");
  for (Gang* each : Unplaced(*gang)) absl::StrAppend(&out, "+", Needs(each));
  return out;
}

bool Machine::TryPlan(Gang* gang) {
  std::string signature = Signature(gang);
  const auto group = blocked_.find(signature);
  const bool is_head = gang->blocked_signature == signature && awake_.contains(signature);
  if (group != blocked_.end() && !awake_.contains(signature)) {
    // P-9: an identical gang failed and nothing changed since that could help.
    Gang* twin = gangs_.find(group->second.waiting.begin()->name)->second.get();
    Block(gang, group->second.classes.empty(), group->second.holds, twin->blocked);
    return false;
  }
  if (is_head) awake_.erase(signature);
  const Group gangs = Unplaced(*gang);
  int32_t needed = 0;  // held binds
  for (const Gang* each : gangs) needed += each->submission == nullptr ? Missing(*each) : 0;
  if (Reason reason = NoChance(gangs, needed); !reason.none()) {
    const bool holds = reason.code == ReasonCode::kTooManyHolds;
    Block(gang, /*any_gain=*/true, holds, std::move(reason));
    return false;
  }
  ReleaseNominated(KeyOf(*gang).priority);
  Statement statement(&cluster_);
  std::vector<size_t> ends;     // of each gang's operations
  std::vector<int32_t> lowest;  // and the lowest priority it was planned for
  for (Gang* each : gangs) {
    const int32_t missing = Missing(*each);
    PlacementResult result = PlaceGang(CandidateRuns(each), missing, &index_, cluster_, &statement);
    if (!result.placed) {
      statement.Rollback(0);
      ChargeNominated();
      const std::string whose =
          gangs.size() == 1 ? "" : absl::StrCat(" of gang ", each->key, ", which starts with its group");
      Block(gang, /*any_gain=*/false, /*holds=*/false,
            Reason{ReasonCode::kNoRoom, absl::StrCat("room for ", result.placed_pods, " of ", missing, " members",
                                                     whose, "; ", result.explanation)});
      return false;
    }
    ends.push_back(statement.Mark());
    lowest.push_back(result.lowest_priority);
  }
  for (const Statement::Operation& operation : statement.operations()) {
    // Verify what was planned before it becomes a promise.
    MUSTER_CHECK(cluster_.FindObstacle(operation.node, operation.cls) == Obstacle::kNone);
    MUSTER_CHECK(!cluster_.ReservationsExceed(operation.node));
  }
  const std::vector<Statement::Operation> operations = statement.Commit();
  const int64_t id = next_plan_++;
  size_t begin = 0;
  for (size_t i = 0; i < gangs.size(); ++i) {
    AdoptPlan(gangs[i], id, absl::MakeConstSpan(operations).subspan(begin, ends[i] - begin));
    begin = ends[i];
    gangs[i]->plan->lowest_priority = lowest[i];
    for (const Gang* mate : gangs) {
      if (mate != gangs[i]) gangs[i]->plan->mates.push_back(mate->key);
    }
    Touch(gangs[i]);
  }
  ChargeNominated();
  return true;
}

// What keeps the gangs from being planned whatever room there is on single nodes (K-4, P-10).
Reason Machine::NoChance(const Group& gangs, int32_t needed) {
  if (needed > settings_.max_holds) {
    return {ReasonCode::kTooManyHolds,
            absl::StrCat("needs ", needed, " held binds at once, the limit is ", settings_.max_holds, " (max_holds)")};
  }
  if (promised_holds_ + needed > settings_.max_holds) {
    return {ReasonCode::kTooManyHolds, absl::StrCat("needs ", needed, " held binds, other gangs use too many of the ",
                                                    settings_.max_holds, " there are")};
  }
  ResourceList wanted;
  for (const Gang* gang : gangs) {
    for (const auto& [name, amount] : gang->rules.min_resources) {
      int64_t& sum = wanted[name];
      sum = CheckedAdd(sum, amount).value_or(std::numeric_limits<int64_t>::max());
    }
  }
  if (wanted.empty()) return {};
  const ResourceVector free = cluster_.TotalFree();
  for (const auto& [name, amount] : wanted) {
    const ResourceId id = cluster_.names().Intern(name);
    const int64_t have = id < 0 ? 0 : free.Get(id);
    if (amount <= have) continue;
    return {ReasonCode::kMinResources, absl::StrCat("minResources asks for ", FormatResources({{name, amount}}), ", ",
                                                    FormatResources({{name, have}}), " is free in the cluster")};
  }
  return {};
}

void Machine::Block(Gang* gang, bool any_gain, bool holds, Reason reason) {
  std::string signature = Signature(gang);
  LeaveQueue(gang);
  gang->queued = KeyOf(*gang);
  gang->blocked = std::move(reason);
  BlockedGroup& group = blocked_[signature];
  group.classes.clear();
  for (Gang* each : Unplaced(*gang)) {
    for (const Candidates& run : CandidateRuns(each)) {
      if (!any_gain && !absl::c_linear_search(group.classes, run.cls)) group.classes.push_back(run.cls);
    }
  }
  group.holds = holds;
  group.waiting.insert(*gang->queued);
  gang->blocked_signature = std::move(signature);
}

void Machine::LeaveQueue(Gang* gang) {
  if (!gang->queued.has_value()) return;
  if (gang->blocked_signature.empty()) {
    queue_.erase(*gang->queued);
  } else {
    const auto group = blocked_.find(gang->blocked_signature);
    group->second.waiting.erase(*gang->queued);
    if (group->second.waiting.empty()) {
      awake_.erase(gang->blocked_signature);
      blocked_.erase(group);
    }
    gang->blocked_signature.clear();
  }
  gang->queued.reset();
}

void Machine::AdoptPlan(Gang* gang, int64_t id, absl::Span<const Statement::Operation> operations) {
  auto plan = std::make_unique<Plan>();
  plan->id = id;
  plan->created_ms = plan->last_arrival_ms = plan->wake_base_ms = now_ms_;
  plan->next_wake_ms = NextWake(*plan, now_ms_);
  for (const Statement::Operation& operation : operations) {
    Promised(gang, operation.node, operation.cls, operation.pods);
    for (int32_t i = 0; i < operation.pods; ++i)
      plan->slots.push_back({operation.cls, operation.node, SlotState::kFree});
  }
  if (gang->submission == nullptr) promised_holds_ += static_cast<int32_t>(plan->slots.size());
  gang->plan = std::move(plan);
  gang->blocked = Reason();
  gang->root_cause.clear();
  if (gang->submission != nullptr) {
    AssignSlots(gang);
    return;
  }
  for (Pod* pod : gang->in(MemberState::kPending)) pod->called = pod->arrived = false;
  gang->holding_by_plan = true;
  StartHolding(gang);
  CallMembers(gang, /*again=*/false);
}

void Machine::StartHolding(Gang* gang) {
  if (gang->holding_since_ms == kNever) gang->holding_since_ms = now_ms_;
}

void Machine::StopHolding(Gang* gang) {
  if (gang->holding_since_ms == kNever) return;
  if (gang->holding_by_plan) gang->held_ms += now_ms_ - gang->holding_since_ms;
  gang->holding_since_ms = kNever;
}

void Machine::Call(Pod* pod, NodeId hint, int64_t plan) {
  CallPod call;
  call.pod = RefOf(*pod);
  call.remove_gate = pod->facts.our_gate;
  if (call.remove_gate && settings_.nominate && hint != kNoNode) call.nominated_node = cluster_.node(hint).facts.name;
  call.plan = plan;
  out_->effects.emplace_back(std::move(call));
  pod->called = true;
}

void Machine::CallMembers(Gang* gang, bool again) {
  Plan* plan = gang->plan.get();
  absl::btree_map<ClassId, std::vector<NodeId>> open;  // nodes of slots without a pod
  for (auto slot = plan->slots.rbegin(); slot != plan->slots.rend(); ++slot) {
    if (slot->state == SlotState::kFree) open[slot->cls].push_back(slot->node);
  }
  for (Pod* pod : gang->in(MemberState::kPending)) {
    if (!Plannable(*pod)) continue;
    NodeId hint = kNoNode;
    if (pod->slot < 0) {
      const auto nodes = open.find(pod->cls);
      if (nodes == open.end() || nodes->second.empty()) continue;
      hint = nodes->second.back();
      nodes->second.pop_back();
    }
    const bool parked = pod->facts.our_gate || pod->refused || (again && pod->slot >= 0);
    if (parked && (again || !pod->called)) Call(pod, hint, plan->id);
  }
}

void Machine::CallExtras(Gang* gang) {
  for (Pod* pod : gang->in(MemberState::kPending)) {
    if ((pod->facts.our_gate || pod->refused) && !pod->called && Plannable(*pod)) Call(pod, kNoNode, 0);
  }
}

void Machine::CallGuarded() {
  for (const std::string& uid : guarded_) {
    Pod* pod = pods_.find(uid)->second.get();
    if (pod->state == MemberState::kPending) Call(pod, kNoNode, 0);
  }
  guarded_.clear();
}

void Machine::Requeue(Gang* gang) {
  const int32_t doublings = std::min(gang->requeues, 16);
  gang->requeues = std::min(gang->requeues + 1, 1 << 20);
  gang->retry_at_ms = now_ms_ + std::min(kBackoffMaxMs, kBackoffStartMs << doublings);
  Touch(gang);
}

void Machine::WithdrawPlan(Gang* gang, ReasonCode code, absl::string_view why) {
  const Reason reason{code, absl::StrCat("gang ", gang->key, ": ", why)};
  // D-10: what was promised together is given up together.
  if (!gang->plan->committed) {
    const std::vector<std::string> mates = std::exchange(gang->plan->mates, {});
    for (const std::string& key : mates) {
      const auto mate = gangs_.find(key);
      if (mate == gangs_.end() || mate->second->plan == nullptr || mate->second->plan->id != gang->plan->id) continue;
      mate->second->plan->mates.clear();  // it need not look back
      WithdrawPlan(mate->second.get(), code, absl::StrCat("gang ", gang->key, " of its group: ", why));
    }
  }
  DropOpenSlots(gang, reason);
  EndPlanIfDone(gang);
  if (gang->plan == nullptr) StopHolding(gang);
  ExtendSubmission(gang);
  Touch(gang);
  CallGuarded();
}

// Gives back every slot that is not committed; members at the barrier are answered with `reason`.
void Machine::DropOpenSlots(Gang* gang, const Reason& reason) {
  Plan* plan = gang->plan.get();
  std::vector<Slot> open;
  std::vector<Slot> kept;
  for (const Slot& slot : plan->slots) (slot.state == SlotState::kCommitted ? kept : open).push_back(slot);
  for (const Slot& slot : open) {
    if (slot.pod == nullptr) continue;
    if (slot.state == SlotState::kHeld) EndPodHold(slot.pod, reason);
    slot.pod->slot = -1;
    slot.pod->refused = true;
    slot.pod->called = false;
  }
  for (const Slot& slot : open) ReleaseSlotCharge(gang, slot, /*gained=*/true);
  plan->slots = std::move(kept);
  plan->held = 0;
  for (size_t i = 0; i < plan->slots.size(); ++i) {
    if (plan->slots[i].pod != nullptr) plan->slots[i].pod->slot = static_cast<int32_t>(i);
  }
  if (gang->submission == nullptr) promised_holds_ -= static_cast<int32_t>(open.size());
  if (!open.empty()) WakeHoldGroups();
}

// A plan ends when every slot that is left has been bound.
void Machine::EndPlanIfDone(Gang* gang) {
  Plan* plan = gang->plan.get();
  if (plan == nullptr || plan->bound < static_cast<int32_t>(plan->slots.size())) return;
  promised_holds_ -= static_cast<int32_t>(plan->slots.size());
  gang->plan.reset();
  WakeHoldGroups();
  Touch(gang);
}

void Machine::WakeHoldGroups() {
  for (const auto& [signature, group] : blocked_) {
    if (group.holds) awake_.insert(signature);
  }
}

void Machine::Promised(Gang* gang, NodeId node, ClassId cls, int32_t pods) {
  std::vector<Promise>& here = promises_[node];
  auto entry = std::find_if(here.begin(), here.end(), [&](const Promise& p) { return p.gang == gang && p.cls == cls; });
  if (entry == here.end()) entry = here.insert(here.end(), Promise{gang, cls, 0});
  entry->pods += pods;
  MUSTER_CHECK(entry->pods >= 0);
  if (pods > 0) cluster_.HoldClass(cls, pods);
  if (entry->pods == 0) here.erase(entry);
  if (here.empty()) promises_.erase(node);
  MarkNode(node);
}

void Machine::ReleaseSlotCharge(Gang* gang, const Slot& slot, bool gained) {
  Promised(gang, slot.node, slot.cls, -1);
  cluster_.Discharge(slot.node, slot.cls, ChargeKind::kReserved, 1, gained);
  cluster_.ReleaseClass(slot.cls);
}

void Machine::ChargeSlot(Gang* gang, const Slot& slot) {
  cluster_.Charge(slot.node, slot.cls, ChargeKind::kReserved, 1);
  Promised(gang, slot.node, slot.cls, 1);
}

// A fact changed `node`: plans that it no longer carries are withdrawn, the last in order first.
void Machine::ReverifyNode(NodeId node) {
  while (true) {
    const auto here = promises_.find(node);
    Gang* worst = nullptr;
    const bool exceeded = cluster_.ReservationsExceed(node);
    if (here != promises_.end()) {
      for (const Promise& promise : here->second) {
        if (!exceeded && cluster_.FindObstacle(node, promise.cls) == Obstacle::kNone) continue;
        if (worst == nullptr || KeyOf(*worst) < KeyOf(*promise.gang)) worst = promise.gang;
      }
    }
    if (worst != nullptr) {
      WithdrawPlan(worst, ReasonCode::kWithdrawn,
                   absl::StrCat("node ", cluster_.node(node).facts.name, " can no longer take its members"));
      continue;
    }
    if (!exceeded) return;
    Pod* nominated = nullptr;
    for (const std::string& uid : nominated_) {
      Pod* pod = pods_.find(uid)->second.get();
      if (pod->charged_node == node && pod->charge_kind == ChargeKind::kReserved) nominated = pod;
    }
    MUSTER_CHECK(nominated != nullptr);
    ClearCharge(nominated, /*gained=*/true);
  }
}

}  // namespace muster
