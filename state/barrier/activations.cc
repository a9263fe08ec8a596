#include "state/barrier/activations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "state/base/hash.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr size_t kMaxAskedEarly = 10'000;
constexpr absl::string_view kNote =
    "muster: room is reserved for the pod's gang; its scheduler was asked to look again. It said before: ";
constexpr size_t kMaxWords = 600;
constexpr absl::string_view kBefore = "nodes are available: ";

}  // namespace

PodRef RefOf(const Pod& pod) { return PodRef{pod.facts.name_space, pod.facts.name, pod.facts.uid}; }

bool SaysNothingOfUs(const Pod& pod) {
  return !pod.facts.unschedulable.empty() && pod.facts.unschedulable.find("muster:") == std::string::npos;
}

bool TellsOfNodes(const Pod& pod) { return absl::StrContains(pod.facts.unschedulable, kBefore); }

absl::string_view OwnWords(const Pod& pod) {
  const absl::string_view message = pod.facts.unschedulable;
  if (absl::StartsWith(message, kNote)) return message.substr(kNote.size());
  return SaysNothingOfUs(pod) ? message : absl::string_view();
}

bool Unmodelled(absl::string_view words) {
  if (words.empty()) return false;
  // "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) were unschedulable. preemption: ..."
  const size_t at = words.find(kBefore);
  if (at == absl::string_view::npos) return true;
  words.remove_prefix(at + kBefore.size());
  words = words.substr(0, words.find(". "));
  constexpr absl::string_view kModelled[] = {
      "Insufficient ",      "Too many pods",          "untolerated taint",
      "were unschedulable", "node affinity/selector", "free ports",
  };
  return absl::c_any_of(absl::StrSplit(words, ", "), [&](absl::string_view reason) {
    return absl::c_none_of(kModelled, [&](absl::string_view known) { return absl::StrContains(reason, known); });
  });
}

void Calls::Tell(const Pod& pod, bool warning, const Reason& reason, Step* step) {
  step->Do(TellPod{RefOf(pod), warning, reason});
  states_[pod.id].told = WordOf(reason);
  states_[pod.id].told_ms = step->now_ms();
}

Calls::Word Calls::WordOf(const Reason& reason) {
  StateHasher hasher;
  hasher.Add(reason.text);
  return {reason.code, hasher.value()};
}

int64_t Calls::WhenToTell(const Pod& pod, const Word& word, int64_t now_ms) const {
  const State& state = Of(pod);
  const bool condition_says = state.said == word && !pod.facts.our_gate && !SaysNothingOfUs(pod);
  if (condition_says || state.told == word) return kNever;
  if (state.told.code != word.code) return now_ms;
  return std::max(now_ms, state.told_ms + kOtherWordsMs);
}

void Calls::SetParked(const Pod& pod, bool refused) {
  State& state = states_[pod.id];
  state.refused = refused;
  state.called = false;
}

bool Calls::Heard(const Pod& pod, int64_t plan) const {
  const State& state = Of(pod);
  return state.plan == plan && !pod.facts.our_gate && (state.by_gate || pod.facts.called != state.called_before);
}

void Calls::Forget(const Pod& pod) {
  Unguard(pod);
  states_.Reset(pod.id);
}

void Calls::NoteAskedEarly(const std::string& uid) {
  if (!early_turns_.emplace(uid, next_turn_).second) return;
  asked_early_.emplace(next_turn_++, uid);
  if (asked_early_.size() <= kMaxAskedEarly) return;
  // Whoever asked first has most likely gone: it asks about pods that are there again and again.
  early_turns_.erase(asked_early_.begin()->second);
  asked_early_.erase(asked_early_.begin());
}

bool Calls::TakeAskedEarly(const std::string& uid) {
  const auto turn = early_turns_.find(uid);
  if (turn == early_turns_.end()) return false;
  asked_early_.erase(turn->second);
  early_turns_.erase(turn);
  return true;
}

void Calls::Call(const Pod& pod, NodeId hint, int64_t plan, Step* step) {
  CallPod call;
  call.pod = RefOf(pod);
  call.remove_gate = pod.facts.our_gate;
  if (call.remove_gate && nominate_ && hint != kNoNode) call.nominated_node = cluster_->node(hint).facts.name;
  call.plan = plan;
  const absl::string_view words = OwnWords(pod);
  if (plan != 0 && !call.remove_gate && !words.empty()) call.note = absl::StrCat(kNote, Beginning(words, kMaxWords));
  State& state = states_[pod.id];
  state.doubted = !call.note.empty() && Unmodelled(words) ? plan : 0;
  state.called = true;
  state.plan = plan;
  state.by_gate = call.remove_gate;
  state.called_before = pod.facts.called;
  step->Do(std::move(call));
}

void Calls::CallMembers(const Gang& gang, const Plan& plan, const Plans& plans, bool again, Step* step) {
  const auto parked = [&](const Pod* pod, bool has_slot) {
    return pod->facts.our_gate || Of(*pod).refused || (again && has_slot);
  };
  const MemberSet& pending = gang.in(MemberState::kPending);
  if (!again && absl::c_none_of(pending, [&](const Pod* pod) { return parked(pod, false); })) return;
  FreePlaces places(plan);
  for (const Pod* pod : pending) {
    if (!gangs_->Plannable(*pod) || pod->stuck || !pod->facts.node_name.empty()) continue;
    const bool has_slot = plans.SlotIndex(*pod) >= 0;
    NodeId hint = kNoNode;
    if (!has_slot) {
      const int32_t place = places.Take(*pod);
      if (place < 0) continue;
      hint = plan.slots[static_cast<size_t>(place)].node;
    }
    if (parked(pod, has_slot) && (again || !Of(*pod).called)) Call(*pod, hint, plan.id, step);
  }
}

std::string Calls::StillGated(const Gang& gang, int64_t plan) const {
  const auto gated = absl::c_count_if(gang.in(MemberState::kPending), [&](const Pod* pod) {
    return pod->facts.our_gate && Of(*pod).by_gate && Of(*pod).plan == plan;
  });
  if (gated == 0) return "";
  return absl::StrCat(gated, gated == 1 ? " member still has" : " members still have",
                      " Muster's scheduling gate, which the API server was asked to take away: musterd's log says "
                      "what it answers");
}

void Calls::CallExtras(const Gang& gang, absl::FunctionRef<bool(const Pod&)> may, Step* step) {
  for (const Pod* pod : gang.in(MemberState::kPending)) {
    const State& state = Of(*pod);
    if (state.called || !gangs_->Plannable(*pod)) continue;
    const bool parked = state.refused && state.guarded == kNoClass && may(*pod);
    if (pod->facts.our_gate || parked) Call(*pod, kNoNode, 0, step);
  }
}

std::vector<absl::string_view> Calls::Guarded() const {
  std::vector<absl::string_view> uids;
  for (const auto& [cls, alike] : guarded_) {
    for (const PodId id : alike) {
      const Pod* pod = gangs_->PodAt(id);
      uids.push_back(pod == nullptr ? absl::string_view() : absl::string_view(pod->facts.uid));
    }
  }
  std::sort(uids.begin(), uids.end());
  return uids;
}

void Calls::NoteGuarded(const Pod& pod) {
  Unguard(pod);
  guarded_[pod.cls].insert(pod.id);
  states_[pod.id].guarded = pod.cls;
}

void Calls::Unguard(const Pod& pod) {
  if (Of(pod).guarded == kNoClass) return;
  const auto alike = guarded_.find(std::exchange(states_[pod.id].guarded, kNoClass));
  alike->second.erase(pod.id);
  if (alike->second.empty()) guarded_.erase(alike);
}

void Calls::CallGuarded(Step* step) {
  const int64_t end = cluster_->log_end();
  const int64_t position = std::exchange(gain_position_, end);
  if (guarded_.empty()) return;
  if (position < cluster_->log_start()) return CallGuardedIf([](ClassId) { return true; }, step);
  for (int64_t at = position; at < end && !guarded_.empty(); ++at) {
    const ClusterChange& change = cluster_->log_at(at);
    if (!change.gained) continue;
    CallGuardedIf(
        [&](ClassId cls) {
          return cluster_->FindObstacle(change.node, cls) == Obstacle::kNone && cluster_->Room(change.node, cls, 1) > 0;
        },
        step);
  }
}

void Calls::CallGuardedIf(const std::function<bool(ClassId)>& fits, Step* step) {
  std::vector<const Pod*> called;
  for (auto alike = guarded_.begin(); alike != guarded_.end();) {
    if (!fits(alike->first)) {
      ++alike;
      continue;
    }
    for (const PodId id : alike->second) called.push_back(&gangs_->pod(id));
    alike = guarded_.erase(alike);
  }
  std::sort(called.begin(), called.end(), [](const Pod* a, const Pod* b) { return a->facts.uid < b->facts.uid; });
  for (const Pod* pod : called) {
    states_[pod->id].guarded = kNoClass;
    if (pod->state != MemberState::kPending) continue;
    Call(*pod, kNoNode, 0, step);
    if (pod->gang != nullptr) gangs_->Touch(*pod->gang);  // what is said of its members' gates
  }
}

}  // namespace muster
