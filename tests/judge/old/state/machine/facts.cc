// What the outside world says: nodes, pods, PodGroups.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "state/machine/machine.h"

namespace muster {
namespace {

constexpr size_t kMaxWarnings = 16;

void Warn(Gang* gang, std::string text) {
  if (text.empty() || gang->warnings.size() >= kMaxWarnings) return;
  if (std::find(gang->warnings.begin(), gang->warnings.end(), text) != gang->warnings.end()) return;
  gang->warnings.push_back(std::move(text));
}

}  // namespace

void Machine::On(const UpsertNode& command) {
  const absl::StatusOr<bool> changed = cluster_.UpsertNode(command.node);
  if (!changed.ok()) {
    out_->status = changed.status();
    return;
  }
  const NodeId id = cluster_.FindNode(command.node.name);
  if (!*changed) return;
  MarkNode(id);
  ReverifyNode(id);
}

void Machine::On(const RemoveNode& command) {
  const NodeId id = cluster_.FindNode(command.name);
  if (id == kNoNode) return;
  MarkNode(id);
  removed_nodes_.push_back(command.name);  // its id may be another node's before readers are told
  cluster_.RemoveNode(command.name);
  ReverifyNode(id);
}

MemberState Machine::StateFromFacts(const PodDescription& facts) {
  if (facts.phase == PodPhase::kSucceeded) return MemberState::kSucceeded;
  if (facts.phase == PodPhase::kFailed) return MemberState::kFailed;
  if (facts.deleting) return MemberState::kLeaving;
  if (facts.node_name.empty()) return MemberState::kPending;
  return facts.phase == PodPhase::kRunning ? MemberState::kRunning : MemberState::kBound;
}

void Machine::On(const UpsertPod& command) {
  const PodDescription& facts = command.pod;
  if (facts.uid.empty() || facts.name.empty()) {
    out_->status = absl::InvalidArgumentError("pod: metadata.uid and metadata.name must not be empty");
    return;
  }
  const auto found = pods_.find(facts.uid);
  if (found != pods_.end()) {
    Pod* pod = found->second.get();
    if (pod->facts.name != facts.name || pod->facts.name_space != facts.name_space) {
      out_->status = absl::InvalidArgumentError(absl::StrCat("pod uid ", facts.uid, ": is ", pod->facts.name_space, "/",
                                                             pod->facts.name, ", announced again as ", facts.name_space,
                                                             "/", facts.name, "; a UID belongs to one pod"));
      return;
    }
    ChangePod(pod, facts);
    return;
  }
  auto owned = std::make_unique<Pod>();
  Pod* pod = owned.get();
  pod->facts = facts;
  pod->submitted = submitting_;
  pods_.emplace(facts.uid, std::move(owned));
  if (pod->facts.invalid.empty()) {
    const absl::StatusOr<ClassId> cls = cluster_.AcquireClass(facts.shape);
    if (cls.ok()) {
      pod->cls = *cls;
    } else {
      pod->facts.invalid = std::string(cls.status().message());
    }
  }
  JudgePod(pod);
  pod->state = StateFromFacts(facts);
  const bool asked = asked_early_.erase(facts.uid) > 0;
  pod->refused = asked;
  JoinGang(pod);
  if (asked && pod->gang == nullptr && pod->state == MemberState::kPending) Call(pod, kNoNode, 0);
  if (pod->on_node()) UseNode(pod);
  if (pod->gang == nullptr && pod->state == MemberState::kPending && !facts.nominated_node.empty()) {
    nominated_.insert(facts.uid);
    ChargeNominated();
  }
  if (pod->gang == nullptr && pod->facts.our_gate && pod->state == MemberState::kPending && Serves(*pod)) {
    Call(pod, kNoNode, 0);  // no gang to wait for: nobody else would ever take the gate away
  }
}

// A pod that is on a node uses it, whatever was charged for it before.
void Machine::UseNode(Pod* pod) {
  if (pod->cls == kNoClass) return;
  const bool used = pod->charged_node != kNoNode && pod->charge_kind == ChargeKind::kUsed;
  if (used && cluster_.node(pod->charged_node).facts.name == pod->facts.node_name) return;
  const NodeId node = cluster_.InternNode(pod->facts.node_name);
  SetCharge(pod, node, ChargeKind::kUsed);
  ReverifyNode(node);
}

void Machine::JoinGang(Pod* pod) {
  pod->round = 0;  // of the cycles of another gang (G-2)
  if (!pod->facts.gang.in_gang()) return;
  Gang* gang = InternGang(pod->facts.name_space, pod->facts.gang.name, pod->facts.created_ms);
  pod->gang = gang;
  NoteStranger(pod);
  EnterSet(pod);
  if (gang->objects.empty()) gang->created_ms = std::min(gang->created_ms, pod->facts.created_ms);
  if (!pod->facts.gang.declares_gang()) gang->refers_to_object = true;
  if (pod->facts.gang.dialect == GangDialect::kSigsPods) gang->one_priority = true;
  AdoptDeclaration(gang, *pod);
  if (pod->facts.timed_out_mark) gang->timed_out = true;
  if (gang->plan != nullptr && !gang->plan->committed && pod->facts.priority > gang->plan->lowest_priority &&
      Plannable(*pod)) {
    // D-11: the driver comes before its executors, also when it was created after them.
    WithdrawPlan(gang, ReasonCode::kWithdrawn, absl::StrCat("member ", pod->facts.name, " of higher priority came"));
  }
  Touch(gang);
}

// A pod that names a submitted gang without having come with it stays out until that is confirmed or over.
void Machine::NoteStranger(Pod* pod) {
  pod->stranger = pod->gang->submission != nullptr && !pod->submitted;
  JudgePod(pod);
}

void Machine::LeaveGang(Pod* pod) {
  Gang* gang = pod->gang;
  if (gang == nullptr) return;
  LeaveSet(pod);
  pod->gang = nullptr;
  pod->stranger = false;
  JudgePod(pod);
  Touch(gang);
}

Gang* Machine::InternGang(absl::string_view name_space, absl::string_view name, int64_t created_ms) {
  std::string key = absl::StrCat(name_space, "/", name);
  std::unique_ptr<Gang>& gang = gangs_[key];
  if (gang == nullptr) {
    gang = std::make_unique<Gang>();
    gang->key = key;
    gang->name_space = std::string(name_space);
    gang->name = std::string(name);
    gang->created_ms = created_ms;
    gang->rules.min_member = -1;
    gang->reason_since_ms = now_ms_;
    RestoreGang(gang.get());
  }
  return gang.get();
}

void Machine::AdoptDeclaration(Gang* gang, const Pod& pod) {
  const GangMembership& membership = pod.facts.gang;
  if (!membership.declares) return;
  const GangDeclaration& said = membership.declaration;
  for (const std::string& warning : said.warnings) Warn(gang, absl::StrCat("pod ", pod.facts.name, ": ", warning));
  const bool readable = said.unreadable_minimum.empty();
  if (!readable) {
    if (gang->unreadable.empty())
      gang->unreadable = absl::StrCat("pod ", pod.facts.name, ": ", said.unreadable_minimum);
    Warn(gang, absl::StrCat("pod ", pod.facts.name, ": ", said.unreadable_minimum));
    return;
  }
  if (!gang->annotations.has_value()) {
    gang->annotations = said;
    gang->declared_by = pod.facts.uid;
    gang->declared_as = membership.dialect;
    ReadRules(gang);
    return;
  }
  const std::string contradiction = Contradiction(*gang->annotations, said);
  if (!contradiction.empty()) {
    Warn(gang, absl::StrCat("pod ", pod.facts.name, " contradicts an earlier pod, which stands: ", contradiction));
  }
}

// Somebody edited a declaration: everything that was said about the gang is read again. The pod whose declaration stood
// goes first, then the others in order of creation (D-9).
void Machine::Redeclare(Gang* gang) {
  gang->annotations.reset();
  gang->unreadable.clear();
  gang->warnings.clear();
  for (const auto& [dialect, object] : gang->objects) {
    for (const std::string& warning : object.declaration.warnings) Warn(gang, absl::StrCat("PodGroup: ", warning));
  }
  std::vector<const Pod*> members;
  for (const MemberSet& set : gang->members) members.insert(members.end(), set.begin(), set.end());
  const std::string first = std::exchange(gang->declared_by, "");
  std::sort(members.begin(), members.end(), [&](const Pod* a, const Pod* b) {
    return std::make_tuple(a->facts.uid != first, a->facts.created_ms, absl::string_view(a->facts.uid)) <
           std::make_tuple(b->facts.uid != first, b->facts.created_ms, absl::string_view(b->facts.uid));
  });
  for (const Pod* pod : members) AdoptDeclaration(gang, *pod);
  ReadRules(gang);
}

void Machine::ReadRules(Gang* gang) {
  const GangDeclaration* object = gang->objects.empty() ? nullptr : &gang->objects.begin()->second.declaration;
  const GangDeclaration* annotations = gang->annotations.has_value() ? &*gang->annotations : nullptr;
  gang->rules = ResolveRules(annotations, object, settings_.gang);
  if (annotations != nullptr && object != nullptr) {
    const std::string differs = Contradiction(*object, *annotations);
    if (!differs.empty()) Warn(gang, absl::StrCat("the pods' annotations override the PodGroup: ", differs));
  }
  if (gang->rules.group == std::vector<std::string>{gang->key}) gang->rules.group.clear();
  RegisterGroup(gang, gang->rules.group);
  if (!gang->blocked.none()) LeaveQueue(gang);
  gang->blocked = Reason();
  Touch(gang);
}

void Machine::On(const UpsertGangObject& command) {
  const GangObject& object = command.object;
  const std::string key = absl::StrCat(object.name_space, "/", object.name);
  const auto there = gangs_.find(key);
  const bool exists = there != gangs_.end() && there->second->objects.contains(object.dialect);
  if (command.mode == UpsertGangObject::Mode::kCreate && exists) {
    out_->status = absl::AlreadyExistsError(absl::StrCat("gang ", key, " exists already; update it instead"));
    return;
  }
  if (command.mode == UpsertGangObject::Mode::kReplace && !exists) {
    out_->status = absl::NotFoundError(absl::StrCat("there is no gang ", key, " that was created here"));
    return;
  }
  Gang* gang = InternGang(object.name_space, object.name, object.created_ms);
  const auto known = gang->objects.find(object.dialect);
  const bool said_before = known != gang->objects.end() && known->second.declaration == object.declaration &&
                           known->second.created_ms == object.created_ms;
  gang->objects[object.dialect] = object;
  if (said_before) return;  // its status changed, most often by our own hand
  gang->created_ms = object.created_ms;
  Redeclare(gang);
}

void Machine::On(const RemoveGangObject& command) {
  const std::string key = absl::StrCat(command.name_space, "/", command.name);
  const auto found = gangs_.find(key);
  if (found == gangs_.end() || found->second->objects.erase(command.dialect) == 0) {
    if (command.must_exist) {
      out_->status = absl::NotFoundError(absl::StrCat("there is no gang ", key, " that was created here"));
    }
    return;
  }
  Gang* gang = found->second.get();
  Redeclare(gang);
  // D-12: without its PodGroup the gang is gone; pods that need it wait for it to come back.
  if (StructureReason(*gang).none()) return;
  if (gang->plan != nullptr && !gang->plan->committed) {
    WithdrawPlan(gang, ReasonCode::kUnknownGang, "the PodGroup was deleted");
  }
  const MemberSet waiting = gang->in(MemberState::kWaiting);
  for (Pod* pod : waiting) {
    EndPodHold(pod, {ReasonCode::kUnknownGang, absl::StrCat("gang ", gang->key, ": the PodGroup was deleted")});
  }
}

void Machine::On(const FactsRead&) {
  if (facts_read_) return;
  facts_read_ = true;
  ForgetRestored();
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pods_) uids.push_back(uid);
  std::sort(uids.begin(), uids.end());
  for (const std::string& uid : uids) {
    Pod* pod = pods_.find(uid)->second.get();
    if (pod->state != MemberState::kPending || pod->facts.our_gate || pod->facts.other_gates || !Serves(*pod)) continue;
    // K-14: kube-scheduler parked these while nobody answered.
    if (pod->gang != nullptr || !pod->facts.unschedulable.empty()) Call(pod, kNoNode, 0);
    pod->refused = pod->gang != nullptr;
    pod->called = false;
  }
  for (auto& [key, gang] : gangs_) {
    // The wait time ran out before a restart: members whose mark was still on its way get it now.
    if (gang->timed_out) MarkMembers(gang.get(), TimedOutReason(*gang));
    Touch(gang.get());
  }
}

void Machine::ChangePod(Pod* pod, const PodDescription& said) {
  PodDescription facts = said;
  // A member of a submitted gang stays one when its orchestrator reports it without saying so, or without its rules.
  const bool came_submitted = pod->facts.gang.dialect == GangDialect::kApi && pod->facts.gang.declares;
  const bool silent = !facts.gang.in_gang() || (facts.gang.name == pod->facts.gang.name && !facts.gang.declares);
  if (came_submitted && silent) facts.gang = pod->facts.gang;
  facts.timed_out_mark = facts.timed_out_mark || pod->facts.timed_out_mark;  // our own mark may still be on its way
  if (!pod->facts.node_name.empty() && facts.node_name.empty()) facts.node_name = pod->facts.node_name;
  const std::string before_unschedulable = pod->facts.unschedulable;
  const std::string before_nominated = pod->facts.nominated_node;
  const bool gang_changed = pod->facts.gang.name != facts.gang.name;
  const bool declaration_changed =
      pod->facts.gang.declares != facts.gang.declares || !(pod->facts.gang.declaration == facts.gang.declaration);
  const bool shape_changed = pod->facts.shape.Key() != facts.shape.Key() || pod->facts.invalid != facts.invalid;

  Gang* gang = pod->gang;
  if (shape_changed || gang_changed) {
    EndPodHold(pod, Reason{ReasonCode::kGone, absl::StrCat("pod ", facts.name, " was changed")});
    FreeSlot(pod);
  }
  // Taking the pod out of its ordered set first: its place depends on its facts.
  if (gang != nullptr) LeaveSet(pod);
  pod->facts = std::move(facts);
  if (shape_changed) {
    // By name: without its last charge a node that is gone is forgotten.
    const std::string charged = pod->charged_node == kNoNode ? "" : cluster_.node(pod->charged_node).facts.name;
    const ChargeKind kind = pod->charge_kind;
    ClearCharge(pod, /*gained=*/true);
    if (pod->cls != kNoClass) cluster_.ReleaseClass(std::exchange(pod->cls, kNoClass));
    if (pod->facts.invalid.empty()) {
      const absl::StatusOr<ClassId> cls = cluster_.AcquireClass(pod->facts.shape);
      if (cls.ok()) {
        pod->cls = *cls;
      } else {
        pod->facts.invalid = std::string(cls.status().message());
      }
    }
    if (!charged.empty() && pod->cls != kNoClass) SetCharge(pod, cluster_.InternNode(charged), kind);
  }
  JudgePod(pod);
  if (gang != nullptr) {
    NoteStranger(pod);
    EnterSet(pod);
  }
  if (shape_changed && pod->charged_node != kNoNode) ReverifyNode(pod->charged_node);
  if (gang_changed) {
    if (nominated_.erase(pod->facts.uid) > 0 && pod->charge_kind == ChargeKind::kReserved) {
      ClearCharge(pod, /*gained=*/true);  // what a gang's member may use is its plan's to say
    }
    LeaveGang(pod);
    if (gang != nullptr) NoteMemberLoss(gang);
    JoinGang(pod);
  } else if (gang != nullptr) {
    if (pod->facts.timed_out_mark) gang->timed_out = true;
    Touch(gang);
    if (declaration_changed) Redeclare(gang);
    if (shape_changed) NoteMemberLoss(gang);
  }
  if (!pod->facts.our_gate) pod->called = pod->called && pod->refused;

  const MemberState now = StateFromFacts(pod->facts);
  const bool in_flight = pod->state == MemberState::kCommitted || pod->state == MemberState::kWaiting;
  if (now != MemberState::kPending || !in_flight) {
    if (now != pod->state) FollowFacts(pod, now);
  }
  if (pod->on_node()) UseNode(pod);
  if (pod->gang == nullptr && (gang_changed || before_nominated != pod->facts.nominated_node)) {
    if (pod->charge_kind == ChargeKind::kReserved) ClearCharge(pod, /*gained=*/true);
    if (pod->facts.nominated_node.empty() || pod->state != MemberState::kPending) {
      nominated_.erase(pod->facts.uid);
    } else {
      nominated_.insert(pod->facts.uid);
      ChargeNominated();
    }
  }
  if (!pod->facts.unschedulable.empty() && before_unschedulable != pod->facts.unschedulable) NoteUnschedulable(pod);
}

// The pod's facts put it into state `now`, which differs from where it stood.
void Machine::FollowFacts(Pod* pod, MemberState now) {
  Gang* gang = pod->gang;
  const MemberState before = pod->state;
  const bool was_active =
      before == MemberState::kCommitted || before == MemberState::kBound || before == MemberState::kRunning;
  nominated_.erase(pod->facts.uid);
  switch (now) {
    case MemberState::kBound:
    case MemberState::kRunning:
      NoteBound(pod);
      SetState(pod, now);
      return;
    case MemberState::kPending:
      return;  // a bound pod never becomes pending again
    case MemberState::kLeaving:
    case MemberState::kSucceeded:
    case MemberState::kFailed:
      EndPodHold(pod, Reason{ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " is being deleted")});
      ForgetCommit(*pod);
      AnswerHolds(pod, false, Reason{ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " is being deleted")});
      if (now != MemberState::kLeaving || pod->facts.node_name.empty()) ClearCharge(pod, /*gained=*/true);
      FreeSlot(pod);
      SetState(pod, now);
      break;
    case MemberState::kWaiting:
    case MemberState::kCommitted:
      MUSTER_CHECK(false && "facts never say this");
  }
  if (gang == nullptr) return;
  NoteMemberLoss(gang);
  if (was_active && now != MemberState::kSucceeded) NoteActiveLoss(gang, *pod);
}

// G-13: a member that had started is gone.
void Machine::NoteActiveLoss(Gang* gang, const Pod& pod) {
  if (gang->rules.on_member_failure != OnMemberFailure::kAll || gang->evicting || !gang->satisfied) return;
  if (gang->active() == 0) return;
  EvictGang(gang, absl::StrCat("member ", pod.facts.name, " failed and the gang's policy is all"));
}

// A plan that lost a member keeps its slots only if other members can take them.
void Machine::NoteMemberLoss(Gang* gang) {
  Touch(gang);
  Plan* plan = gang->plan.get();
  if (plan == nullptr || plan->committed) return;
  if (gang->submission != nullptr) {
    // Its caller saw who goes where: with another member it is another plan.
    const bool lost =
        std::any_of(plan->slots.begin(), plan->slots.end(), [](const Slot& s) { return s.pod == nullptr; });
    if (lost) WithdrawPlan(gang, ReasonCode::kWithdrawn, "a member left or changed");
    return;
  }
  absl::btree_map<ClassId, int32_t> open;
  for (const Slot& slot : plan->slots) {
    if (slot.pod == nullptr) ++open[slot.cls];
  }
  for (const Pod* pod : gang->in(MemberState::kPending)) {
    if (pod->slot >= 0 || !Plannable(*pod)) continue;
    const auto found = open.find(pod->cls);
    if (found != open.end() && --found->second == 0) open.erase(found);
  }
  if (open.empty() && PlanReason(*gang).none()) return;
  WithdrawPlan(gang, ReasonCode::kWithdrawn, "a member left or changed");
}

void Machine::On(const RemovePod& command) {
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) return;
  Pod* pod = found->second.get();
  Gang* gang = pod->gang;
  const bool was_active =
      pod->state == MemberState::kCommitted || pod->state == MemberState::kBound || pod->state == MemberState::kRunning;
  const Reason gone{ReasonCode::kGone, absl::StrCat("pod ", pod->facts.name, " was deleted")};
  EndPodHold(pod, gone);
  ForgetCommit(*pod);
  AnswerHolds(pod, false, gone);
  ClearCharge(pod, /*gained=*/true);
  FreeSlot(pod);
  LeaveGang(pod);
  nominated_.erase(command.uid);
  guarded_.erase(command.uid);
  pod_timers_.erase({pod->timer_ms, command.uid});
  if (gang != nullptr) {
    NoteMemberLoss(gang);
    if (was_active) NoteActiveLoss(gang, *pod);
  }
  if (pod->cls != kNoClass) cluster_.ReleaseClass(pod->cls);
  pods_.erase(found);
}

// G-3, K-7: kube-scheduler says that no node takes this pod, for a reason of its own.
void Machine::NoteUnschedulable(Pod* pod) {
  Gang* gang = pod->gang;
  if (gang == nullptr || pod->state != MemberState::kPending || !SaysNothingOfUs(*pod)) return;
  pod->refused = true;
  pod->called = false;
  if (gang->reason.code != pod->told) {
    gang->notify_at_ms = std::min(gang->notify_at_ms, now_ms_ + kNotifyDelayMs);
    Touch(gang);
  }
  if (gang->plan == nullptr || gang->plan->committed) return;
  gang->root_cause =
      absl::StrCat("kube-scheduler found no node for member ", pod->facts.name, ": ", pod->facts.unschedulable);
  Touch(gang);
  if (gang->rules.mode == GangMode::kNonStrict) return;
  ReleaseGroup(gang, Reason{ReasonCode::kMemberUnschedulable, gang->root_cause});
}

void Machine::SetState(Pod* pod, MemberState state) {
  if (pod->state == state) return;
  if (state != MemberState::kCommitted) pod->bind_by_ms = kNever;
  if (pod->gang == nullptr) {
    pod->state = state;
    return;
  }
  LeaveSet(pod);
  pod->state = state;
  EnterSet(pod);
  Touch(pod->gang);
}

// Puts the pod into the set of its state, and counts it. REQUIRES: JudgePod since its facts changed.
void Machine::EnterSet(Pod* pod) {
  Gang* gang = pod->gang;
  gang->in(pod->state).insert(pod);
  gang->runs_current = false;
  if (gang->first != nullptr && CreatedBefore(*pod, *gang->first)) gang->first = pod;
  const bool pending = pod->state == MemberState::kPending;
  pod->counted_gated = pending && pod->facts.other_gates;
  pod->counted_plannable = pending && !pod->facts.other_gates && pod->served && pod->able;
  gang->gated += pod->counted_gated ? 1 : 0;
  const bool has_turns = (pending && !pod->facts.other_gates) || pod->state == MemberState::kWaiting;
  pod->counted_turn = has_turns && pod->round == gang->cycle ? gang->cycle : 0;
  gang->turned += pod->counted_turn > 0 ? 1 : 0;
  gang->plannable += pod->counted_plannable ? 1 : 0;
}

// REQUIRES: its facts are as they were at EnterSet.
void Machine::LeaveSet(Pod* pod) {
  Gang* gang = pod->gang;
  gang->in(pod->state).erase(pod);
  gang->runs_current = false;
  if (gang->first == pod) gang->first = nullptr;
  gang->gated -= pod->counted_gated ? 1 : 0;
  gang->turned -= pod->counted_turn == gang->cycle ? 1 : 0;
  gang->plannable -= pod->counted_plannable ? 1 : 0;
}

void Machine::SetCharge(Pod* pod, NodeId node, ChargeKind kind) {
  if (pod->cls == kNoClass) return;
  if (pod->charged_node == node && pod->charge_kind == kind) return;
  cluster_.Charge(node, pod->cls, kind, 1);  // first: a node without any charge may be forgotten
  ClearCharge(pod, /*gained=*/true);
  pod->charged_node = node;
  pod->charge_kind = kind;
  MarkNode(node);
}

void Machine::ClearCharge(Pod* pod, bool gained) {
  if (pod->charged_node == kNoNode) return;
  MarkNode(pod->charged_node);
  cluster_.Discharge(std::exchange(pod->charged_node, kNoNode), pod->cls, pod->charge_kind, 1, gained);
}

void Machine::ChargeNominated() {
  for (const std::string& uid : nominated_) {
    Pod* pod = pods_.find(uid)->second.get();
    if (pod->charged_node != kNoNode || pod->cls == kNoClass) continue;
    const NodeId node = cluster_.FindNode(pod->facts.nominated_node);
    if (node == kNoNode || cluster_.Room(node, pod->cls, 1) == 0) continue;
    SetCharge(pod, node, ChargeKind::kReserved);
  }
}

// A plan of higher priority need not respect room that lower-priority pods were nominated for (K-3).
void Machine::ReleaseNominated(int32_t below_priority) {
  for (const std::string& uid : nominated_) {
    Pod* pod = pods_.find(uid)->second.get();
    if (pod->facts.priority < below_priority && pod->charge_kind == ChargeKind::kReserved)
      ClearCharge(pod, /*gained=*/false);
  }
}

}  // namespace muster
