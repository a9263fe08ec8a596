#include "state/gangs/gangs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/by_id.h"
#include "state/base/check.h"
#include "state/base/enum_names.h"

namespace muster {
namespace {

bool LaterKey(const Gang* a, const Gang* b) { return b->key < a->key; }

}  // namespace

absl::string_view ToString(MemberState state) {
  static constexpr EnumNames<MemberState, kMemberStates> kNames{
      {"Pending", "Waiting", "Binding", "Bound", "Running", "Succeeded", "Failed", "Leaving"}};
  return kNames.Of(state);
}

[[gnu::flatten]] const Pod* Gangs::FindPod(absl::string_view uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : found->second;
}

[[gnu::flatten]] const Gang* Gangs::FindGang(absl::string_view key) const {
  const auto found = gangs_.find(key);
  return found == gangs_.end() ? nullptr : found->second;
}

std::vector<std::string> Gangs::Uids() const {
  std::vector<std::string> uids;
  uids.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) uids.push_back(uid);
  std::sort(uids.begin(), uids.end());
  return uids;
}

void Gangs::ForEachGang(const std::function<void(const Gang&)>& visit) const {
  for (const auto& [key, gang] : gangs_) visit(*gang);
}

bool Gangs::Serves(const Pod& pod) const {
  return pod.submitted || absl::c_linear_search(settings_.scheduler_names, pod.facts.scheduler_name);
}

bool Gangs::Plannable(const Pod& pod) const {
  if (pod.state != MemberState::kPending || pod.facts.other_gates || !pod.served || !pod.valid) return false;
  return pod.gang == nullptr || !OnePriority(*pod.gang) || FirstMember(*pod.gang).facts.priority == pod.facts.priority;
}

// With one priority for all, a member depends on another one: counted here each time.
int32_t Gangs::PlannableMembers(const Gang& gang) const {
  if (!OnePriority(gang)) return gang.plannable;
  return static_cast<int32_t>(
      absl::c_count_if(gang.in(MemberState::kPending), [this](const Pod* pod) { return Plannable(*pod); }));
}

const Pod& Gangs::FirstMember(const Gang& gang) {
  if (gang.first != nullptr) return *gang.first;
  Pod below;  // sorts before all members of the next lower priority
  below.facts.created_ms = std::numeric_limits<int64_t>::min();
  for (const MemberSet& set : gang.members) {
    // Among members of one priority, the first of the set was created first.
    for (auto member = set.begin(); member != set.end(); member = set.lower_bound(&below)) {
      if (gang.first == nullptr || CreatedBefore(**member, *gang.first)) gang.first = *member;
      if ((*member)->facts.priority == std::numeric_limits<int32_t>::min()) break;
      below.facts.priority = (*member)->facts.priority - 1;
    }
  }
  MUSTER_CHECK(gang.first != nullptr);
  return *gang.first;
}

const std::vector<Candidates>& Gangs::CandidateRuns(const Claim& claim) {
  if (claim.runs_current) return claim.runs;  // short cut
  Gang& changed = MutateUntracked(GangOf(claim));
  changed.runs_current = true;
  changed.runs.clear();
  std::vector<const Pod*> unplaceable;
  const auto add = [&](const Pod& pod) {
    std::vector<Candidates>& runs = changed.runs;
    if (runs.empty() || runs.back().cls != pod.cls || runs.back().priority != pod.facts.priority ||
        runs.back().leaf != pod.leaf) {
      runs.push_back({pod.cls, pod.facts.priority, 0, pod.leaf});
    }
    ++runs.back().pods;
  };
  for (const Pod* pod : claim.in(MemberState::kPending)) {
    if (!Plannable(*pod)) continue;
    if (pod->unplaceable) {
      unplaceable.push_back(pod);
    } else {
      add(*pod);
    }
  }
  for (const Pod* pod : unplaceable) add(*pod);
  if (!claim.rules.tree.empty()) AddFutureRuns(&changed);
  return claim.runs;
}

// P-7: future members come after all existing members.
void Gangs::AddFutureRuns(Gang* gang) {
  if (gang->quorum().FutureMembers() == 0) return;
  int32_t priority = gang->rules.priority.value_or(FirstMember(*gang).facts.priority);
  for (const Candidates& run : gang->runs) priority = std::min(priority, run.priority);
  const std::vector<int32_t> pods = gang->quorum().FutureMembersByLeaf();
  for (size_t leaf = 0; leaf < pods.size(); ++leaf) {
    if (pods[leaf] == 0) continue;
    gang->runs.push_back(
        {gang->future_classes[leaf], priority, pods[leaf], static_cast<int32_t>(leaf), /*future=*/true});
  }
}

std::vector<ClassId> Gangs::SetFutureClasses(const Gang& gang, std::vector<ClassId> classes) {
  MutateTracked(gang).runs_current = false;
  return std::exchange(MutateTracked(gang).future_classes, std::move(classes));
}

const Pod& Gangs::AddPod(PodDescription facts, ClassId cls, MemberState state, bool submitted) {
  const PodId id = TakeId(&free_pods_, &pod_table_);
  std::unique_ptr<Pod>& pod = pod_table_[static_cast<size_t>(id)];
  pod = std::make_unique<Pod>();
  pod->id = id;
  pod->facts = std::move(facts);
  pod->cls = cls;
  pod->state = state;
  pod->submitted = submitted;
  pods_.emplace(pod->facts.uid, pod.get());
  lone_.resize(pod_table_.size());
  lone_[static_cast<size_t>(id)] = true;
  Judge(pod.get());
  MarkFactsChanged(id);
  return *pod;
}

std::vector<PodId> Gangs::TakeChangedFacts() {
  std::vector<PodId> changed = std::exchange(facts_changed_, {});
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  std::erase_if(changed, [this](PodId id) { return PodAt(id) == nullptr; });
  return changed;
}

void Gangs::RemovePod(const Pod& pod) {
  MUSTER_CHECK(pod.gang == nullptr);
  const PodId id = pod.id;
  lone_[static_cast<size_t>(id)] = false;
  pods_.erase(pods_.find(pod.facts.uid));
  pod_table_[static_cast<size_t>(id)].reset();
  free_pods_.push_back(id);
}

void Gangs::Join(const Pod& pod, const Gang& gang) {
  Pod& joins = MutateTracked(pod);
  joins.last_cycle = 0;  // the number of another gang's cycle (G-2)
  joins.gang = &gang;
  lone_[static_cast<size_t>(pod.id)] = false;
  UpdateForeignMember(pod);
  EnterSet(&joins);
  Gang& joined = MutateTracked(gang);
  if (gang.objects.empty()) joined.created_ms = std::min(gang.created_ms, pod.facts.created_ms);
}

void Gangs::Leave(const Pod& pod) {
  if (pod.gang == nullptr) return;
  Pod& leaves = MutateTracked(pod);
  const Gang& gang = *pod.gang;
  LeaveSet(&leaves);
  leaves.gang = nullptr;
  lone_[static_cast<size_t>(pod.id)] = true;
  leaves.foreign = false;
  Judge(&leaves);
  Touch(gang);
}

void Gangs::SetState(const Pod& pod, MemberState state) {
  if (pod.state == state) return;
  Pod& changed = MutateTracked(pod);
  if (state != MemberState::kPending) changed.passed_ms = kNever;
  if (pod.gang == nullptr) {
    changed.state = state;
    return;
  }
  LeaveSet(&changed);
  changed.state = state;
  EnterSet(&changed);
  Touch(*pod.gang);
}

void Gangs::SetFacts(const Pod& pod, PodDescription facts, ClassId cls) {
  Pod& changed = MutateTracked(pod);
  // Removed from its ordered set first: the order depends on the facts.
  if (pod.gang != nullptr) LeaveSet(&changed);
  changed.facts = std::move(facts);
  changed.cls = cls;
  MarkFactsChanged(pod.id);
  Judge(&changed);
  if (pod.gang == nullptr) return;
  UpdateForeignMember(pod);
  EnterSet(&changed);
}

void Gangs::SetNode(const Pod& pod, std::string node_name) {
  MutateTracked(pod).facts.node_name = std::move(node_name);
  MarkFactsChanged(pod.id);
}

void Gangs::SetTimedOutMark(const Pod& pod) {
  MutateTracked(pod).facts.timed_out_mark = true;
  MarkFactsChanged(pod.id);
}

void Gangs::UpdateForeignMember(const Pod& pod) {
  Pod& judged = MutateTracked(pod);
  judged.foreign = pod.gang != nullptr && pod.gang->submitted && !pod.submitted;
  Judge(&judged);
}

Gangs::Interned Gangs::Intern(absl::string_view name_space, absl::string_view name, int64_t created_ms,
                              int64_t now_ms) {
  std::string key = absl::StrCat(name_space, "/", name);
  if (const Gang* known = FindGang(key); known != nullptr) return {known, false};
  const GangId id = TakeId(&free_gangs_, &gang_table_);
  std::unique_ptr<Gang>& gang = gang_table_[static_cast<size_t>(id)];
  gang = std::make_unique<Gang>();
  gang->id = id;
  gang->key = key;
  gang->name_space = std::string(name_space);
  gang->name = std::string(name);
  gang->created_ms = created_ms;
  gang->rules = ResolveRules(nullptr, nullptr, gang->declared_as, settings_.defaults);
  gang->reason_since_ms = now_ms;
  gangs_.emplace(std::move(key), gang.get());
  ++changes_;
  return {gang.get(), true};
}

void Gangs::Restore(const Gang& gang, const DurableGangState& kept) {
  Gang& restored = MutateTracked(gang);
  restored.durable = restored.written = kept;
  restored.recorded = true;
  restored.has_cycle_attempts = kept.cycle > 1 || !kept.cycle_valid;
}

void Gangs::UpdateIncarnation(const Gang& gang) {
  const auto object = absl::c_find_if(gang.objects, [](const auto& each) { return !each.second.uid.empty(); });
  absl::string_view uid;
  if (object != gang.objects.end()) {
    uid = object->second.uid;
  } else if (gang.children() > 0) {
    uid = FirstMember(gang).facts.uid;
  }
  if (gang.durable.incarnation != uid) MutateUntracked(gang).durable.incarnation = std::string(uid);
}

void Gangs::RecordFailedMembers(const Gang& gang) {
  if (gang.durable.failed.empty() && gang.in(MemberState::kFailed).empty()) return;
  std::vector<std::string> failed;
  if (gang.rules.on_member_failure == OnMemberFailure::kAll) {
    for (const Pod* pod : gang.in(MemberState::kFailed)) failed.push_back(pod->facts.uid);
    std::sort(failed.begin(), failed.end());
  }
  if (gang.durable.failed != failed) MutateUntracked(gang).durable.failed = std::move(failed);
}

void Gangs::DiscardRestored(const Gang& gang) {
  Gang& dropped = MutateTracked(gang);
  dropped.durable = DurableGangState();
  dropped.has_cycle_attempts = false;
}

void Gangs::RemoveGang(const Gang& gang) {
  MUSTER_CHECK(gang.children() == 0);
  MUSTER_CHECK(absl::c_all_of(gang.future_classes, [](ClassId cls) { return cls == kNoClass; }));
  if (gang.touched) Untouch(gang);
  MarkChanged(gang);
  const GangId id = gang.id;
  ++changes_;
  groups_.Set(id, gang.key, {});
  gangs_.erase(gang.key);
  gang_table_[static_cast<size_t>(id)].reset();
  free_gangs_.push_back(id);
}

void Gangs::ClearSubmitted(const Gang& gang) {
  MutateTracked(gang).submitted = false;
  for (const Pod* pod : gang.AllMembers()) {
    Pod& member = MutateTracked(*pod);
    LeaveSet(&member);
    member.submitted = member.foreign = false;
    MarkFactsChanged(member.id);
    Judge(&member);
    EnterSet(&member);
  }
}

bool Gangs::SetReason(const Gang& gang, Reason reason, int64_t now_ms, int64_t notify_at_ms, int64_t reword_at_ms) {
  if (reason == gang.reason) return false;
  Gang& changed = MutateUntracked(gang);
  const bool other_code = reason.code != gang.reason.code;
  if (other_code) changed.reason_since_ms = now_ms;
  changed.notify_at_ms = std::min(gang.notify_at_ms, other_code ? notify_at_ms : reword_at_ms);
  changed.reason = std::move(reason);
  return true;
}

void Gangs::OnRecordWritten(const Gang& gang, bool recorded) {
  MutateUntracked(gang).written = gang.durable;
  MutateUntracked(gang).recorded = recorded;
}

void Gangs::Touch(const Claim& claim) {
  Gang& touched = MutateUntracked(GangOf(claim));
  if (std::exchange(touched.touched, true)) return;
  touched_.push_back(&touched);
  std::push_heap(touched_.begin(), touched_.end(), LaterKey);
}

void Gangs::Untouch(const Gang& gang) {
  touched_.erase(std::find(touched_.begin(), touched_.end(), &gang));
  std::make_heap(touched_.begin(), touched_.end(), LaterKey);
  MutateUntracked(gang).touched = false;
}

const Gang* Gangs::TakeTouched() {
  if (touched_.empty()) return nullptr;
  std::pop_heap(touched_.begin(), touched_.end(), LaterKey);
  Gang* gang = touched_.back();
  touched_.pop_back();
  gang->touched = false;
  return gang;
}

void Gangs::MarkChanged(const Gang& gang) {
  if (!std::exchange(MutateUntracked(gang).changed, true)) changed_.push_back(gang.key);
}

void Gangs::AfterRestore() {
  for (const std::unique_ptr<Pod>& pod : pod_table_) {
    if (pod != nullptr) pods_[pod->facts.uid] = pod.get();
    lone_.push_back(pod != nullptr);
  }
  for (const std::unique_ptr<Gang>& gang : gang_table_) {
    if (gang == nullptr) continue;
    gangs_[gang->key] = gang.get();
    for (const Pod* member : gang->AllMembers()) {
      pod_table_[static_cast<size_t>(member->id)]->gang = gang.get();
      lone_[static_cast<size_t>(member->id)] = false;
    }
  }
}

std::vector<std::string> Gangs::TakeChanged() {
  std::vector<std::string> keys = std::exchange(changed_, {});
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const std::string& key : keys) {
    if (const auto gang = gangs_.find(key); gang != gangs_.end()) gang->second->changed = false;
  }
  return keys;
}

}  // namespace muster
