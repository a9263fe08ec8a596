// Models of the API server and kube-scheduler, as far as Muster interacts with them.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/path_world.h"

namespace muster {
namespace {

constexpr size_t kAtOnce = 16;        // effects of one process that are in flight together
constexpr int64_t kMaxEndMs = 5'000;  // of a pod that is being deleted

}  // namespace

// --- the API server ---

void PathWorld::ApiTurn() {
  if (!ghosts_.empty() && Roll(2) == 0) {
    const BindPod ghost = ghosts_.front();
    ghosts_.pop_front();
    // No request is in flight beyond its deadline.
    if (clock_.NowMs() <= ghost.deadline_ms && Bind(ghost.pod.uid, ghost.node)) {
      figures_["fault: a dead process' binding arrives"] += 1;
      if (Listing()) ListAgain();  // see Notify
    }
  }
  if (api_.empty()) return;
  const size_t at = static_cast<size_t>(Roll(static_cast<int>(std::min(api_.size(), kAtOnce))));
  const Effect effect = std::move(api_[at]);
  api_.erase(api_.begin() + static_cast<std::ptrdiff_t>(at));
  Do(effect);
}

void PathWorld::Do(const Effect& effect) {
  if (const auto* bind = std::get_if<BindPod>(&effect)) return DoBind(*bind);
  if (Chance(30)) {  // 429, 500 or a broken connection: it is sent again
    figures_["fault: the API server refuses a write"] += 1;
    api_.push_back(effect);
    return;
  }
  if (const auto* evict = std::get_if<EvictPod>(&effect)) return RemovePod(evict->pod.uid, "evicted");
  if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) {
    const auto pod = pods_.find(mark->pod.uid);
    if (pod == pods_.end()) return;
    pod->second.facts.timed_out_mark = true;
    return PodChanged(pod->second);
  }
  const auto* call = std::get_if<ActivatePod>(&effect);
  if (call == nullptr) return;
  const auto found = pods_.find(call->pod.uid);
  if (found == pods_.end()) return;
  ApiPod& pod = found->second;
  if (call->remove_gate) {
    if (!std::exchange(pod.facts.our_gate, false)) return;
    if (!call->nominated_node.empty()) pod.facts.nominated_node = call->nominated_node;
  } else {
    pod.facts.activation_mark = absl::StrCat(++calls_);
    if (!call->note.empty()) pod.facts.unschedulable = call->note;
  }
  Log(absl::StrCat("pod ", call->pod.uid, " ", pod.facts.name, " is called"));
  PodChanged(pod);
}

bool PathWorld::Bind(const std::string& uid, const std::string& node) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.facts.node_name.empty() || !nodes_.contains(node)) return false;
  ApiPod& pod = found->second;
  if (pod.facts.deleting) return false;
  Log(absl::StrCat("pod ", uid, " ", pod.facts.name, " is bound to ", node));
  pod.facts.node_name = node;
  pod.facts.phase = PodPhase::kRunning;
  pod.facts.unschedulable.clear();
  for (const auto& [name, amount] : FreeOn(nodes_.at(node))) {
    if (amount < 0) Violate(absl::StrCat("Q-7: node ", node, " has ", amount, " of ", name, " left"));
  }
  CheckRack(pod);
  PodChanged(pod);
  return true;
}

// P-4: a required domain is never left. Pods that are being deleted belong to an earlier start.
void PathWorld::CheckRack(const ApiPod& pod) {
  if (!jobs_[pod.job].declaration.topology.has_value()) return;
  const std::string rack = nodes_.at(pod.facts.node_name).labels.at("rack");
  for (const auto& [uid, other] : pods_) {
    const bool beside = other.job == pod.job && !other.facts.node_name.empty() && !other.facts.deleting;
    const auto node = nodes_.find(other.facts.node_name);
    if (!beside || node == nodes_.end() || node->second.labels.at("rack") == rack) continue;
    Violate(absl::StrCat("P-4: ", pod.facts.name, " is bound in rack ", rack, ", ", other.facts.name, " runs in ",
                         node->second.labels.at("rack")));
  }
}

void PathWorld::DoBind(const BindPod& bind) {
  BindingOutcome outcome{bind.pod.uid, bind.node, BindingResult::kRetry, "the API server did not answer"};
  const bool late = clock_.NowMs() > bind.deadline_ms;  // it is not sent any more
  const bool fails = Chance(12);
  if (!late && (!fails || Roll(2) == 0)) {
    const auto pod = pods_.find(bind.pod.uid);
    const bool there = pod != pods_.end() && pod->second.facts.node_name == bind.node;
    const bool done = there || Bind(bind.pod.uid, bind.node);
    if (!fails) outcome.result = done ? BindingResult::kBound : BindingResult::kRefused;
  } else if (!fails) {
    const auto pod = pods_.find(bind.pod.uid);
    const bool there = pod != pods_.end() && pod->second.facts.node_name == bind.node;
    outcome.result = there ? BindingResult::kBound : BindingResult::kRefused;
  }
  if (fails) figures_["fault: a binding's outcome is not known"] += 1;
  engine_->Announce(std::move(outcome)).IgnoreError();
}

// --- kube-scheduler ---

ResourceList PathWorld::FreeOn(const NodeDescription& node) const {
  ResourceList free = node.allocatable;
  for (const auto& [uid, pod] : pods_) {
    if (pod.facts.node_name != node.name) continue;
    free["pods"] -= 1;
    for (const auto& [name, amount] : pod.facts.shape->requests) free[name] -= amount;
  }
  return free;
}

// Receives news in order, earlier or later than musterd, and schedules one pod at a time.
void PathWorld::SchedulerTurn() {
  HearNews(static_cast<size_t>(Roll(6)));
  scheduler_->SampleAtLeast(Chance(6) ? 2 : 100);
  scheduler_->Step(clock_.NowMs());
}

void PathWorld::HearNews(size_t count) {
  for (; count > 0 && !news_.empty(); --count) {
    const std::function<void()> one = std::move(news_.front());
    news_.pop_front();
    one();
  }
}

void PathWorld::StartScheduler() {
  scheduler_ = std::make_unique<SchedulerModel>(static_cast<SchedulerModel::Surroundings*>(this));
  news_.clear();
  for (const auto& [name, node] : nodes_) scheduler_->NodeIs(node, clock_.NowMs());
  for (const auto& [uid, pod] : pods_) scheduler_->PodIs(pod.facts, clock_.NowMs());
}

void PathWorld::RestartScheduler() {
  figures_["fault: kube-scheduler restarts"] += 1;
  Log("kube-scheduler restarts");
  for (const auto& [uid, call] : held_) CallerGoes(uid);
  held_.clear();
  asked_filter_.reset();
  asked_preempt_.reset();
  StartScheduler();
}

void PathWorld::FailCalls() {
  if (const auto uid = std::exchange(asked_filter_, std::nullopt); uid.has_value()) {
    scheduler_->Filtered(*uid, {.error = true}, clock_.NowMs());
  }
  if (const auto uid = std::exchange(asked_preempt_, std::nullopt); uid.has_value()) {
    scheduler_->Preempted(*uid, {}, clock_.NowMs());
  }
  for (const auto& [uid, call] : std::exchange(held_, {})) {
    scheduler_->Bound(uid, call.attempt, false, clock_.NowMs());
  }
}

void PathWorld::AskFilter(const std::string& uid, const std::vector<std::string>& nodes) {
  if (scheduler_->sampled()) figures_["fault: a sample of nodes is offered"] += 1;
  asked_filter_ = uid;
  engine_->AskAsync(Filter{uid, std::make_shared<const NodeOffer>(nodes)}, std::chrono::steady_clock::time_point::max(),
                    [this, life = life_, uid, nodes](const absl::StatusOr<Reply>& reply) {
                      if (life->alive) Filtered(uid, nodes, reply);
                    });
}

void PathWorld::Filtered(const std::string& uid, const std::vector<std::string>& offered,
                         const absl::StatusOr<Reply>& reply) {
  if (asked_filter_ != uid) return;  // its caller is gone
  asked_filter_.reset();
  SchedulerModel::FilterAnswer answer;
  answer.error = !reply.ok();
  if (reply.ok()) {
    const FilterReply& filter = std::get<FilterReply>(*reply);
    answer.words = absl::StrCat("muster: ", filter.reason.text);
    const bool one = filter.kind == FilterReply::Kind::kSingleNode;
    for (const std::string& node : offered) {
      const bool left = one ? node == filter.node
                            : filter.kind == FilterReply::Kind::kPass && !absl::c_linear_search(filter.guarded, node);
      (left ? answer.nodes : answer.hopeless).push_back(node);
    }
    if (one && answer.nodes.empty()) {
      Violate(absl::StrCat("K-6: pod ", uid, " is sent to ", filter.node, ", which was not offered"));
    }
  }
  scheduler_->Filtered(uid, answer, clock_.NowMs());
}

void PathWorld::AskPreempt(const std::string& uid, const SchedulerModel::Victims& victims) {
  asked_preempt_ = uid;
  Preempt question{.uid = uid};
  for (const auto& [node, pods] : victims) question.candidates.push_back({node, pods});
  const auto pod = pods_.find(uid);
  question.names_gang = pod != pods_.end() && pod->second.facts.gang.in_gang();
  engine_->AskAsync(std::move(question), std::chrono::steady_clock::time_point::max(),
                    [this, life = life_, uid](const absl::StatusOr<Reply>& reply) {
                      if (!life->alive || asked_preempt_ != uid) return;
                      asked_preempt_.reset();
                      std::vector<std::string> nodes;
                      if (reply.ok()) nodes = std::get<PreemptReply>(*reply).nodes;
                      CheckPreemptor(uid, nodes);
                      scheduler_->Preempted(uid, nodes, clock_.NowMs());
                    });
}

// K-9: no pod is evicted for a gang that does not start.
void PathWorld::CheckPreemptor(const std::string& uid, const std::vector<std::string>& nodes) {
  const auto preemptor = pods_.find(uid);
  if (nodes.empty() || preemptor == pods_.end()) return;
  const Job& job = jobs_[preemptor->second.job];
  const bool strict = job.declaration.mode != GangMode::kNonStrict;  // otherwise its members are placed one by one
  if (job.gang.empty() || !strict || job.minimum <= 1 || job.decided) return;
  Violate(absl::StrCat("K-9: member ", uid, " of ", job.gang, ", which has not started, may preempt"));
}

void PathWorld::AfterApply(const Command& command, int64_t now_ms, const Outcome& outcome) {
  SimWorld::AfterApply(command, now_ms, outcome);
  if (const auto* question = std::get_if<Preempt>(&command)) {
    CheckVictims(*question, std::get<PreemptReply>(outcome.reply).nodes);
  }
}

// K-9: no gang is left with less than it needs, as far as the process knows at the time.
void PathWorld::CheckVictims(const Preempt& question, const std::vector<std::string>& nodes) {
  for (const PreemptCandidate& candidate : question.candidates) {
    if (!absl::c_linear_search(nodes, candidate.node)) continue;
    CheckPreemptorsRack(question.uid, candidate.node);
    std::set<const Gang*> lose;
    for (const std::string& uid : candidate.victim_uids) {
      const Pod* victim = machine_->reader().FindPod(uid);
      const bool leaves = victim == nullptr || victim->facts.deleting;  // it leaves anyway
      if (leaves || victim->gang == nullptr) continue;
      if (victim->gang->rules.min_member > 1 || !victim->gang->rules.group.empty()) lose.insert(victim->gang);
    }
    for (const Gang* gang : lose) {
      int32_t left = 0;
      for (const MemberSet& alike : gang->members) {
        for (const Pod* member : alike) {
          const bool there = !member->facts.node_name.empty() && !member->facts.deleting;
          left += there && !absl::c_linear_search(candidate.victim_uids, member->facts.uid) ? 1 : 0;
        }
      }
      if (left >= gang->rules.min_member) continue;
      Violate(absl::StrCat("K-9: pods on ", candidate.node, " may be taken, which leaves ", gang->key, " with ", left,
                           " of ", gang->rules.min_member));
    }
  }
}

// P-4: a preemptor evicts no pod from a node that it could not use afterwards, as far as the process knows at the time.
void PathWorld::CheckPreemptorsRack(const std::string& uid, const std::string& node) {
  const Pod* pod = machine_->reader().FindPod(uid);
  const auto here = nodes_.find(node);
  if (pod == nullptr || pod->gang == nullptr || !pod->gang->rules.domains || here == nodes_.end()) return;
  for (const MemberSet& alike : pod->gang->members) {
    for (const Pod* peer : alike) {
      const auto there = nodes_.find(peer->facts.node_name);
      if (peer->facts.deleting || there == nodes_.end()) continue;
      if (there->second.labels.at("rack") == here->second.labels.at("rack")) continue;
      Violate(absl::StrCat("P-4: pods on ", node, " may be taken for ", uid, ", of which a mate runs in ",
                           there->second.labels.at("rack")));
    }
  }
}

void PathWorld::AskBind(const std::string& uid, const std::string& node, int64_t attempt) {
  const absl::StatusOr<HoldToken> token =
      engine_->Hold(muster::Bind{uid, node}, [this, life = life_, uid](const HoldAnswer& answer) {
        if (life->alive) OnHoldEnded(uid, answer);
      });
  if (!token.ok()) return scheduler_->Bound(uid, attempt, false, clock_.NowMs());
  held_[uid] = {attempt, *token};
}

void PathWorld::OnHoldEnded(const std::string& uid, const HoldAnswer& answer) {
  const auto call = held_.find(uid);
  if (call == held_.end() || call->second.token != answer.token) return;
  const int64_t attempt = held_.extract(call).mapped().attempt;
  const auto pod = pods_.find(uid);
  if (answer.permitted && pod != pods_.end() && pod->second.facts.node_name.empty()) {
    Violate(absl::StrCat("K-4: the bind call of pod ", uid, " succeeds, and the pod is not bound"));
  }
  scheduler_->Bound(uid, attempt, answer.permitted, clock_.NowMs());
}

void PathWorld::CallerGoes(const std::string& uid) {
  engine_->Announce(CallerGone{uid, held_.at(uid).token}).IgnoreError();
}

// --- what kube-scheduler writes ---

void PathWorld::SayUnschedulable(const std::string& uid, const std::string& reason, const std::string& message) {
  const auto pod = pods_.find(uid);
  const std::string says = reason == "Unschedulable" ? message : "";
  if (pod == pods_.end() || pod->second.facts.unschedulable == says || !pod->second.facts.node_name.empty()) return;
  if (Chance(30)) return;  // it is not tried again
  Log(absl::StrCat("pod ", uid, " ", pod->second.facts.name, " says: ", says));
  pod->second.facts.unschedulable = says;
  PodChanged(pod->second);
}

void PathWorld::Nominate(const std::string& uid, const std::string& node) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.facts.nominated_node == node) return;
  pod->second.facts.nominated_node = node;
  PodChanged(pod->second);
}

void PathWorld::Delete(const std::string& uid) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.facts.deleting) return;
  figures_["pods preempted"] += 1;
  if (pod->second.facts.node_name.empty()) return RemovePod(uid, "preempted");
  pod->second.facts.deleting = true;
  pod->second.gone_ms = clock_.NowMs() + Roll(kMaxEndMs);
  Log(absl::StrCat("pod ", uid, " ", pod->second.facts.name, " is preempted"));
  PodChanged(pod->second);
}

}  // namespace muster
