#include "state/machine/machine.h"

#include <algorithm>
#include <utility>

#include "state/base/check.h"

namespace muster {

absl::string_view ToString(BindingPhase phase) {
  switch (phase) {
    case BindingPhase::kNone:
      return "None";
    case BindingPhase::kPending:
      return "Pending";
    case BindingPhase::kSucceeded:
      return "Succeeded";
    case BindingPhase::kFailed:
      return "Failed";
  }
  return "";
}

absl::string_view ToString(MemberState state) {
  switch (state) {
    case MemberState::kPending:
      return "Pending";
    case MemberState::kWaiting:
      return "Waiting";
    case MemberState::kCommitted:
      return "Binding";
    case MemberState::kBound:
      return "Bound";
    case MemberState::kRunning:
      return "Running";
    case MemberState::kSucceeded:
      return "Succeeded";
    case MemberState::kFailed:
      return "Failed";
    case MemberState::kLeaving:
      return "Leaving";
  }
  return "";
}

Machine::Machine(MachineSettings settings) : settings_(std::move(settings)), index_(&cluster_) {}
Machine::~Machine() = default;

void Machine::Apply(const Command& command, int64_t now_ms, Outcome* outcome) {
  now_ms_ = std::max(now_ms_, now_ms);
  out_ = outcome;
  std::visit([this](const auto& specific) { On(specific); }, command);
  SettleTouched();
  out_ = nullptr;
}

namespace {

bool LaterKey(const Gang* a, const Gang* b) { return b->key < a->key; }

}  // namespace

void Machine::Touch(Gang* gang) {
  if (std::exchange(gang->touched, true)) return;
  touched_.push_back(gang);
  std::push_heap(touched_.begin(), touched_.end(), LaterKey);
}

void Machine::Untouch(Gang* gang) {
  touched_.erase(std::find(touched_.begin(), touched_.end(), gang));
  std::make_heap(touched_.begin(), touched_.end(), LaterKey);
  gang->touched = false;
}

// In order of keys. Settling a gang may touch another one (capacity that one gives up is planned by a later PlanRound,
// not here).
void Machine::SettleTouched() {
  while (!touched_.empty()) {
    std::pop_heap(touched_.begin(), touched_.end(), LaterKey);
    Gang* gang = touched_.back();
    touched_.pop_back();
    gang->touched = false;
    Settle(gang);
  }
}

void Machine::MarkGang(Gang* gang) {
  if (!std::exchange(gang->changed, true)) changed_gangs_.push_back(gang->key);
}

void Machine::MarkNode(NodeId node) {
  if (static_cast<size_t>(node) >= node_changed_.size()) node_changed_.resize(static_cast<size_t>(node) + 1, 0);
  if (std::exchange(node_changed_[static_cast<size_t>(node)], uint8_t{1}) == 0) changed_nodes_.push_back(node);
}

bool Machine::PlanningDue() const {
  if (!facts_read_) return false;
  return !queue_.empty() || !awake_.empty() || (!blocked_.empty() && gain_position_ != cluster_.log_end());
}

int64_t Machine::NextDeadline() const {
  int64_t next = exclusions_until_ms_;
  if (!gang_timers_.empty()) next = std::min(next, gang_timers_.begin()->due_ms);
  if (!pod_timers_.empty()) next = std::min(next, pod_timers_.begin()->first);
  return next;
}

const Pod* Machine::FindPod(absl::string_view uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : found->second.get();
}

const Gang* Machine::FindGang(absl::string_view key) const {
  const auto found = gangs_.find(key);
  return found == gangs_.end() ? nullptr : found->second.get();
}

void Machine::ForEachGang(const std::function<void(const Gang&)>& visit) const {
  for (const auto& [key, gang] : gangs_) visit(*gang);
}

void Machine::TakeChanged(std::vector<std::string>* gangs, std::vector<std::string>* nodes) {
  *gangs = std::exchange(changed_gangs_, {});
  std::sort(gangs->begin(), gangs->end());
  gangs->erase(std::unique(gangs->begin(), gangs->end()), gangs->end());
  for (const std::string& key : *gangs) {
    if (const auto gang = gangs_.find(key); gang != gangs_.end()) gang->second->changed = false;
  }
  *nodes = std::exchange(removed_nodes_, {});
  std::sort(changed_nodes_.begin(), changed_nodes_.end());
  for (const NodeId node : changed_nodes_) {
    if (cluster_.node(node).known) nodes->push_back(cluster_.node(node).facts.name);
    node_changed_[static_cast<size_t>(node)] = 0;
  }
  std::sort(nodes->begin(), nodes->end());
  nodes->erase(std::unique(nodes->begin(), nodes->end()), nodes->end());
  changed_nodes_.clear();
}

PodRef Machine::RefOf(const Pod& pod) const { return PodRef{pod.facts.name_space, pod.facts.name, pod.facts.uid}; }

}  // namespace muster
