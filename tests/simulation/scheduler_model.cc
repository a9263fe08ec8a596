#include "tests/simulation/scheduler_model.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

constexpr int64_t kBackoffMs = 1'000;
constexpr int64_t kMaxBackoffMs = 10'000;
constexpr int64_t kWindowMs = 1'000;  // back-offs end at multiples of this window

int64_t Backoff(int attempts) {
  int64_t backoff = kBackoffMs;
  for (int i = 1; i < attempts && backoff < kMaxBackoffMs; ++i) backoff *= 2;
  return std::min(backoff, kMaxBackoffMs);
}

bool Ended(int64_t until_ms, int64_t now_ms) { return now_ms / kWindowMs * kWindowMs >= until_ms; }

}  // namespace

// --- watches ---

void SchedulerModel::NodeIs(const NodeDescription& node, int64_t now_ms) {
  const auto [at, joins] = nodes_.try_emplace(node.name, node);
  const NodeDescription before = std::exchange(at->second, node);
  if (joins) return Happens({Change::kNodeAdd, node.name}, now_ms);
  if (before.unschedulable && !node.unschedulable) Happens({Change::kNodeUncordoned, node.name}, now_ms);
  if (before.allocatable != node.allocatable) Happens({Change::kNodeGrows, node.name}, now_ms);
  if (before.labels != node.labels) Happens({Change::kNodeLabels, node.name}, now_ms);
}

void SchedulerModel::NodeGone(const std::string& name, int64_t now_ms) {
  if (nodes_.erase(name) > 0) Happens({Change::kNodeGoes, ""}, now_ms);
}

void SchedulerModel::PodIs(const PodDescription& pod, int64_t now_ms, bool patient) {
  const auto [at, made] = pods_.try_emplace(pod.uid);
  Entry& entry = at->second;
  entry.facts = pod;
  entry.patient = patient;
  if (!pod.node_name.empty()) {
    const bool assigned = entry.queue == Queue::kAssigned;
    Move(&entry, Queue::kAssigned, now_ms);
    entry.assumed.clear();
    return Happens({assigned ? Change::kPodChanges : Change::kPodIsAssigned, ""}, now_ms);
  }
  if (made) return Move(&entry, pod.our_gate ? Queue::kGated : Queue::kActive, now_ms);
  if (entry.queue == Queue::kGated && !pod.our_gate) return Move(&entry, Queue::kActive, now_ms);
  const Event update{Change::kOwnUpdate, ""};
  if (entry.queue == Queue::kInCycle) entry.meanwhile.push_back(update);
  if (entry.queue == Queue::kUnschedulable && Wakes(update, entry)) Requeue(&entry, now_ms);
}

void SchedulerModel::PodGone(const std::string& uid, int64_t now_ms) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  const Entry& entry = found->second;
  const bool counted = !entry.facts.node_name.empty() || !entry.assumed.empty() || !entry.facts.nominated_node.empty();
  pods_.erase(found);
  if (counted) Happens({Change::kPodGoes, ""}, now_ms);
}

// --- queues ---

void SchedulerModel::Move(Entry* entry, Queue queue, int64_t now_ms) {
  entry->queue = queue;
  entry->since_ms = now_ms;
}

bool SchedulerModel::Wakes(const Event& event, const Entry& entry) const {
  const Rejectors& by = entry.rejectors;
  if (by.extender) return true;
  const auto node = nodes_.find(event.node);
  const auto fits_empty = [&] {
    return node != nodes_.end() && absl::c_all_of(entry.facts.shape->requests, [&](const auto& request) {
             const auto has = node->second.allocatable.find(request.first);
             return has != node->second.allocatable.end() && has->second >= request.second;
           });
  };
  switch (event.change) {
    case Change::kPodGoes:
      return by.room;
    case Change::kNodeAdd:
      return (by.room || by.cordon) && fits_empty();
    case Change::kNodeGrows:
      return by.room && fits_empty();
    case Change::kNodeUncordoned:
      return by.cordon;
    default:
      return false;
  }
}

void SchedulerModel::Happens(const Event& event, int64_t now_ms, const std::string& not_to) {
  for (auto& [uid, entry] : pods_) {
    if (uid == not_to) continue;
    if (entry.queue == Queue::kInCycle || entry.queue == Queue::kBinding) entry.meanwhile.push_back(event);
    if (entry.queue == Queue::kUnschedulable && Wakes(event, entry)) Requeue(&entry, now_ms);
  }
}

void SchedulerModel::Requeue(Entry* entry, int64_t now_ms) {
  entry->until_ms = entry->since_ms + Backoff(entry->unschedulable);
  Move(entry, Ended(entry->until_ms, now_ms) ? Queue::kActive : Queue::kBackoff, now_ms);
}

void SchedulerModel::FlushBackoffs(int64_t now_ms) {
  for (auto& [uid, entry] : pods_) {
    const bool waits = entry.queue == Queue::kBackoff || entry.queue == Queue::kErrorBackoff;
    if (waits && Ended(entry.until_ms, now_ms)) Move(&entry, Queue::kActive, now_ms);
  }
}

// The first by priority, then age. If none is ready, pods that were woken and still back off are tried early, but not
// those that met an error.
SchedulerModel::Entry* SchedulerModel::Next() {
  Entry* active = nullptr;
  Entry* early = nullptr;
  const auto order = [](const Entry& e) { return std::tuple(-e.facts.priority, e.since_ms, e.facts.created_ms); };
  for (auto& [uid, entry] : pods_) {
    if (entry.queue == Queue::kActive && (active == nullptr || order(entry) < order(*active))) active = &entry;
    const auto ends = [&](const Entry& e) { return std::tuple(e.until_ms / kWindowMs, order(e)); };
    if (entry.queue == Queue::kBackoff && (early == nullptr || ends(entry) < ends(*early))) early = &entry;
  }
  return active != nullptr ? active : early;
}

// --- one scheduling cycle ---

bool SchedulerModel::Step(int64_t now_ms) {
  if (cycle_.has_value()) return false;
  FlushBackoffs(now_ms);
  Entry* entry = Next();
  if (entry == nullptr) return false;
  Move(entry, Queue::kInCycle, now_ms);
  entry->meanwhile.clear();
  cycle_.emplace(Cycle{});
  cycle_->uid = entry->facts.uid;
  if (nodes_.empty()) {
    cycle_.reset();
    Fail(entry, "", now_ms);
    return true;
  }
  const auto nominated = nodes_.find(entry->facts.nominated_node);
  if (nominated != nodes_.end() && FitsOn(*entry, nominated->second, {}) == Fit::kFits) {
    cycle_->nominated_only = true;
    cycle_->offered = {nominated->first};
    around_->AskFilter(cycle_->uid, cycle_->offered);
    return true;
  }
  AskAll(entry, now_ms);
  return true;
}

// A sample of the feasible nodes, beginning where the last one ended.
void SchedulerModel::AskAll(Entry* entry, int64_t now_ms) {
  const size_t count = nodes_.size();
  const size_t percent = std::max<size_t>(5, 50 - std::min<size_t>(50, count / 125));
  const size_t wanted = count <= sample_at_least_ ? count : std::max(sample_at_least_, count * percent / 100);
  cycle_->nominated_only = false;
  cycle_->offered.clear();
  cycle_->words.clear();
  auto at = nodes_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(first_node_ % count));
  size_t looked = 0;
  for (; looked < count && cycle_->offered.size() < wanted; ++looked) {
    const Fit fit = FitsOn(*entry, at->second, {});
    if (fit == Fit::kFits) {
      cycle_->offered.push_back(at->first);
    } else if (at->second.unschedulable) {
      cycle_->rejectors.cordon = true;
      ++cycle_->words["node(s) were unschedulable"];
    } else {
      cycle_->rejectors.room = true;
      ++cycle_->words["Insufficient cpu"];
    }
    if (++at == nodes_.end()) at = nodes_.begin();
  }
  first_node_ = (first_node_ + looked) % count;
  cycle_->sampled = looked < count;
  if (cycle_->offered.empty()) return NoNode(entry, now_ms);
  around_->AskFilter(cycle_->uid, cycle_->offered);
}

void SchedulerModel::Filtered(const std::string& uid, const FilterAnswer& answer, int64_t now_ms) {
  if (!cycle_.has_value() || cycle_->uid != uid) return;
  const auto found = pods_.find(uid);
  // it was deleted meanwhile
  if (found == pods_.end() || found->second.queue != Queue::kInCycle) return cycle_.reset();
  Entry& entry = found->second;
  const bool unknown_node = absl::c_any_of(
      answer.nodes, [&](const std::string& node) { return !absl::c_linear_search(cycle_->offered, node); });
  if (answer.error || unknown_node) {
    cycle_.reset();
    return Fail(&entry, "the extender fails", now_ms);
  }
  if (!answer.nodes.empty()) {
    const size_t chosen = static_cast<size_t>(around_->Roll(static_cast<int>(answer.nodes.size())));
    return Assume(&entry, answer.nodes[chosen], now_ms);
  }
  cycle_->rejectors.extender = true;
  cycle_->hopeless.insert(answer.hopeless.begin(), answer.hopeless.end());
  if (cycle_->nominated_only) return AskAll(&entry, now_ms);
  cycle_->words[answer.words] += static_cast<int>(cycle_->offered.size());
  NoNode(&entry, now_ms);
}

void SchedulerModel::Assume(Entry* entry, const std::string& node, int64_t now_ms) {
  entry->assumed = node;
  entry->attempt = ++attempts_;
  Move(entry, Queue::kBinding, now_ms);
  cycle_.reset();
  around_->AskBind(entry->facts.uid, node, entry->attempt);
}

void SchedulerModel::Bound(const std::string& uid, int64_t attempt, bool ok, int64_t now_ms) {
  const auto found = pods_.find(uid);
  if (ok || found == pods_.end() || found->second.attempt != attempt) return;
  if (found->second.queue != Queue::kBinding) {
    return around_->SayUnschedulable(uid, "SchedulerError", "");  // another client has bound it
  }
  found->second.assumed.clear();
  Happens({Change::kPodGoes, ""}, now_ms, uid);
  Fail(&found->second, "the binding failed", now_ms);
}

void SchedulerModel::Fail(Entry* entry, const std::string& message, int64_t now_ms) {
  const std::string uid = entry->facts.uid;
  ++entry->errors;
  entry->rejectors = {};
  entry->until_ms = now_ms + Backoff(entry->errors);
  Move(entry, Queue::kErrorBackoff, now_ms);
  SetNominated(entry, "");
  around_->SayUnschedulable(uid, message.empty() ? "Unschedulable" : "SchedulerError",
                            message.empty() ? "no nodes available to schedule pods" : message);
}

void SchedulerModel::Park(Entry* entry, int64_t now_ms) {
  const std::string uid = entry->facts.uid;
  ++entry->unschedulable;
  entry->errors = 0;
  entry->rejectors = cycle_->rejectors;
  const auto say = [](std::string* out, const auto& word) { absl::StrAppend(out, word.second, " ", word.first); };
  const std::string message =
      absl::StrCat("0/", nodes_.size(), " nodes are available: ", absl::StrJoin(cycle_->words, ", ", say), ".");
  cycle_.reset();
  Move(entry, Queue::kUnschedulable, now_ms);
  const bool woken =
      absl::c_any_of(std::exchange(entry->meanwhile, {}), [&](const Event& event) { return Wakes(event, *entry); });
  if (woken) Requeue(entry, now_ms);
  around_->SayUnschedulable(uid, "Unschedulable", message);
}

void SchedulerModel::SetNominated(Entry* entry, const std::string& node) {
  if (entry->facts.nominated_node == node) return;
  const std::string uid = entry->facts.uid;
  entry->facts.nominated_node = node;
  around_->Nominate(uid, node);
}

// --- preemption ---

void SchedulerModel::NoNode(Entry* entry, int64_t now_ms) {
  const std::string& nominated = entry->facts.nominated_node;
  // The victims of an earlier preemption are still terminating.
  const bool victims_go = !nominated.empty() && absl::c_any_of(pods_, [&](const auto& other) {
    const PodDescription& pod = other.second.facts;
    return pod.deleting && pod.node_name == nominated && pod.priority < entry->facts.priority;
  });
  if (victims_go) return Park(entry, now_ms);
  if (!entry->patient) cycle_->victims = FindVictims(*entry);
  if (!cycle_->victims.empty()) return around_->AskPreempt(cycle_->uid, cycle_->victims);
  SetNominated(entry, "");
  Park(entry, now_ms);
}

SchedulerModel::Victims SchedulerModel::FindVictims(const Entry& entry) const {
  Victims out;
  for (const auto& [name, node] : nodes_) {
    if (cycle_->hopeless.contains(name) || FitsOn(entry, node, {}) != Fit::kNoRoom) continue;
    std::vector<const Entry*> lower;
    std::set<std::string> without;
    for (const auto& [uid, other] : pods_) {
      const bool there = other.facts.node_name == name || other.assumed == name;
      if (!there || other.facts.priority >= entry.facts.priority) continue;
      lower.push_back(&other);
      without.insert(uid);
    }
    if (FitsOn(entry, node, without) != Fit::kFits) continue;
    // As many as possible are spared, the most important first.
    absl::c_sort(lower, [](const Entry* a, const Entry* b) {
      return std::tuple(-a->facts.priority, a->facts.created_ms, a->facts.uid) <
             std::tuple(-b->facts.priority, b->facts.created_ms, b->facts.uid);
    });
    for (const Entry* other : lower) {
      without.erase(other->facts.uid);
      if (FitsOn(entry, node, without) == Fit::kFits) continue;
      without.insert(other->facts.uid);
      out[name].push_back(other->facts.uid);
    }
  }
  return out;
}

// Prefers the least important victims, then the smallest sum of priorities, then the youngest.
std::string SchedulerModel::BestToPreempt(const std::vector<std::string>& nodes) const {
  const auto cost = [&](const std::string& node) {
    int32_t highest = INT32_MIN;
    int64_t sum = 0;
    int64_t oldest = INT64_MAX;
    for (const std::string& uid : cycle_->victims.at(node)) {
      const auto victim = pods_.find(uid);
      if (victim == pods_.end()) continue;
      const PodDescription& facts = victim->second.facts;
      if (facts.priority > highest) oldest = INT64_MAX;
      highest = std::max(highest, facts.priority);
      sum += facts.priority + (int64_t{1} << 31);
      if (facts.priority == highest) oldest = std::min(oldest, facts.created_ms);
    }
    return std::tuple(highest, sum, -oldest);
  };
  std::string best;
  for (const std::string& node : nodes) {
    if (cycle_->victims.contains(node) && (best.empty() || cost(node) < cost(best))) best = node;
  }
  return best;
}

void SchedulerModel::Preempted(const std::string& uid, const std::vector<std::string>& nodes, int64_t now_ms) {
  if (!cycle_.has_value() || cycle_->uid != uid) return;
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.queue != Queue::kInCycle) return cycle_.reset();
  const std::string node = BestToPreempt(nodes);
  if (node.empty()) {
    SetNominated(&found->second, "");
    return Park(&found->second, now_ms);
  }
  const int32_t priority = found->second.facts.priority;
  for (auto& [other_uid, other] : pods_) {
    const bool yields = other.facts.nominated_node == node && other.facts.priority < priority &&
                        other.facts.node_name.empty() && other.assumed.empty();
    if (yields) SetNominated(&other, "");
  }
  SetNominated(&found->second, node);
  for (const std::string& victim : std::vector<std::string>(cycle_->victims.at(node))) around_->Delete(victim);
  // The preemptor was not evicted meanwhile: victims have a lower priority.
  Park(&found->second, now_ms);
}

// --- room ---

SchedulerModel::Fit SchedulerModel::FitsOn(const Entry& entry, const NodeDescription& node,
                                           const std::set<std::string>& without) const {
  if (node.unschedulable) return Fit::kHopeless;
  const ResourceList& wants = entry.facts.shape->requests;
  ResourceList free = node.allocatable;
  const auto allocatable_at = node.allocatable.find("pods");
  int64_t pods = allocatable_at == node.allocatable.end() ? 0 : allocatable_at->second;
  for (const auto& [name, amount] : wants) {
    if (!free.contains(name) || free.at(name) < amount) return Fit::kHopeless;
  }
  for (const auto& [uid, other] : pods_) {
    if (uid == entry.facts.uid || without.contains(uid)) continue;
    const std::string& at = !other.facts.node_name.empty() ? other.facts.node_name : other.assumed;
    const bool nominated =
        at.empty() && other.facts.nominated_node == node.name && other.facts.priority >= entry.facts.priority;
    if (at != node.name && !nominated) continue;
    --pods;
    for (const auto& [name, amount] : other.facts.shape->requests) free[name] -= amount;
  }
  const bool fits =
      pods >= 1 && absl::c_all_of(wants, [&](const auto& want) { return free.at(want.first) >= want.second; });
  return fits ? Fit::kFits : Fit::kNoRoom;
}

// --- queries ---

std::string SchedulerModel::Describe(const std::string& uid) const {
  static constexpr const char* kNames[] = {"gated",         "active",   "backing off", "backing off after an error",
                                           "unschedulable", "in cycle", "binding",     "assigned"};
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return "not known to kube-scheduler";
  const Entry& entry = found->second;
  return absl::StrCat(kNames[static_cast<int>(entry.queue)], " since ", entry.since_ms, ", assumed on \"",
                      entry.assumed, "\", refused by", entry.rejectors.room ? " room" : "",
                      entry.rejectors.cordon ? " cordon" : "", entry.rejectors.extender ? " extender" : "");
}

}  // namespace muster
