// The API server and kube-scheduler, as far as Muster meets them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/path_world.h"

namespace muster {
namespace {

constexpr size_t kAtOnce = 16;  // effects of a process that are under way together
constexpr int64_t kBackoffMs = 1'000;

}  // namespace

// --- the API server ---

void PathWorld::ApiTurn() {
  if (!ghosts_.empty() && Roll(2) == 0) {
    const BindPod ghost = ghosts_.front();
    ghosts_.pop_front();
    // A request is not under way for longer than its deadline.
    if (clock_.NowMs() <= ghost.deadline_ms && Bind(ghost.pod.uid, ghost.node)) {
      figures_["fault: a dead process' binding arrives"] += 1;
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
  if (Chance(30)) {  // 429, 500 or a connection that broke: it is sent again
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
  const auto* call = std::get_if<CallPod>(&effect);
  if (call == nullptr) return;
  const auto found = pods_.find(call->pod.uid);
  if (found == pods_.end()) return;
  ApiPod& pod = found->second;
  if (call->remove_gate) {
    if (!std::exchange(pod.facts.our_gate, false)) return;
  } else {
    pod.facts.called = absl::StrCat(++calls_);
    if (!call->note.empty()) pod.facts.unschedulable = call->note;
  }
  Log(absl::StrCat("pod ", call->pod.uid, " ", pod.facts.name, " is called"));
  const bool waits = pod.queue == Queue::kGated || pod.queue == Queue::kParked || pod.queue == Queue::kParkedByGuard ||
                     pod.queue == Queue::kParkedByKube;
  if (waits) pod.queue = Queue::kActive;
  PodChanged(pod);
}

bool PathWorld::Bind(const std::string& uid, const std::string& node) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.facts.node_name.empty() || !nodes_.contains(node)) return false;
  ApiPod& pod = found->second;
  Log(absl::StrCat("pod ", uid, " ", pod.facts.name, " is bound to ", node));
  pod.facts.node_name = node;
  pod.facts.phase = PodPhase::kRunning;
  pod.facts.unschedulable.clear();
  for (const auto& [name, amount] : FreeOn(nodes_.at(node), /*assumed=*/false)) {
    if (amount < 0) Violate(absl::StrCat("Q-7: node ", node, " has ", amount, " of ", name, " left"));
  }
  PodChanged(pod);
  return true;
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
  }
  if (fails) figures_["fault: a binding's outcome is not known"] += 1;
  engine_->Announce(std::move(outcome)).IgnoreError();
}

// --- kube-scheduler ---

ResourceList PathWorld::FreeOn(const NodeDescription& node, bool assumed) const {
  ResourceList free = node.allocatable;
  for (const auto& [uid, pod] : pods_) {
    if (pod.facts.node_name != node.name && !(assumed && pod.assumed == node.name)) continue;
    free["pods"] -= 1;
    for (const auto& [name, amount] : pod.facts.shape.requests) free[name] -= amount;
  }
  return free;
}

bool PathWorld::Fits(const ApiPod& pod, const NodeDescription& node) const {
  if (node.unschedulable) return false;
  const ResourceList free = FreeOn(node, /*assumed=*/true);
  for (const auto& [name, amount] : pod.facts.shape.requests) {
    const auto has = free.find(name);
    if (has == free.end() || has->second < amount) return false;
  }
  return free.at("pods") >= 1;
}

// One pod at a time: the first by priority, then age.
void PathWorld::SchedulerTurn() {
  if (asking_) return;
  ApiPod* next = nullptr;
  for (auto& [uid, pod] : pods_) {
    if (pod.queue != Queue::kActive || pod.not_before_ms > clock_.NowMs() || !pod.facts.node_name.empty()) continue;
    const auto order = [](const ApiPod& p) {
      return std::tuple(-p.facts.priority, p.not_before_ms, p.facts.created_ms);
    };
    if (next == nullptr || order(pod) < order(*next)) next = &pod;
  }
  if (next != nullptr) Ask(next);
}

void PathWorld::Ask(ApiPod* pod) {
  std::vector<std::string> offered;
  for (const auto& [name, node] : nodes_) {
    if (Fits(*pod, node)) offered.push_back(name);
  }
  if (offered.empty()) return Park(pod, Queue::kParkedByKube, "0 nodes are available: insufficient cpu");
  if (offered.size() > 3 && Chance(6)) {  // a sample (percentageOfNodesToScore)
    figures_["fault: a sample of nodes is offered"] += 1;
    std::shuffle(offered.begin(), offered.end(), random_);
    offered.resize(offered.size() / 2);
  }
  asking_ = true;
  pod->queue = Queue::kAsked;
  const std::string uid = pod->facts.uid;
  const auto offer = std::make_shared<const NodeOffer>(offered);
  engine_->AskAsync(Filter{uid, offer}, std::chrono::steady_clock::time_point::max(),
                    [this, life = life_, uid, offered](const absl::StatusOr<Reply>& reply) {
                      if (life->alive) Answered(uid, offered, reply);
                    });
}

void PathWorld::Answered(const std::string& uid, const std::vector<std::string>& offered,
                         const absl::StatusOr<Reply>& reply) {
  asking_ = false;
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.queue != Queue::kAsked) return;
  ApiPod& pod = found->second;
  if (!reply.ok()) return SendBack(&pod, Queue::kActive);
  const FilterReply& filter = std::get<FilterReply>(*reply);
  std::string node = filter.node;
  if (filter.kind == FilterReply::Kind::kRefuse) {
    return Park(&pod, Queue::kParked, absl::StrCat("muster: ", filter.reason.text));
  }
  if (filter.kind == FilterReply::Kind::kPass) {
    std::vector<std::string> left;
    for (const std::string& name : offered) {
      const auto& guarded = filter.guarded;
      if (std::find(guarded.begin(), guarded.end(), name) == guarded.end()) left.push_back(name);
    }
    if (left.empty()) return Park(&pod, Queue::kParkedByGuard, absl::StrCat("muster: ", filter.reason.text));
    node = left[static_cast<size_t>(Roll(static_cast<int>(left.size())))];
  } else if (std::find(offered.begin(), offered.end(), node) == offered.end()) {
    return Violate(absl::StrCat("K-6: pod ", uid, " is sent to ", node, ", which was not offered"));
  }
  pod.assumed = node;
  pod.queue = Queue::kHeld;
  const absl::StatusOr<HoldToken> token =
      engine_->Hold(muster::Bind{uid, node}, [this, life = life_, uid](const HoldAnswer& answer) {
        if (life->alive) HoldEnded(uid, answer);
      });
  if (!token.ok()) return SendBack(&pod, Queue::kActive);
  pod.token = *token;
}

void PathWorld::HoldEnded(const std::string& uid, const HoldAnswer& answer) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.queue != Queue::kHeld || found->second.token != answer.token) return;
  if (!answer.permitted) return SendBack(&found->second, Queue::kActive);
  if (found->second.facts.node_name.empty()) {
    Violate(absl::StrCat("K-4: the bind call of pod ", uid, " succeeds, and the pod is not bound"));
  }
}

// It is not assumed any more, and comes again after its back-off.
void PathWorld::SendBack(ApiPod* pod, Queue queue) {
  pod->assumed.clear();
  pod->token = 0;
  pod->queue = queue;
  pod->tries = std::min(pod->tries + 1, 4);
  pod->not_before_ms = clock_.NowMs() + (kBackoffMs << pod->tries) / 2;
  Unpark(/*guarded=*/false);
}

void PathWorld::Park(ApiPod* pod, Queue queue, absl::string_view message) {
  pod->queue = queue;
  const std::string says = absl::StrCat("0/", nodes_.size(), " nodes are available: ", message);
  if (pod->facts.unschedulable == says) return;
  Log(absl::StrCat("pod ", pod->facts.uid, " ", pod->facts.name, " is refused: ", message));
  pod->facts.unschedulable = says;
  PodChanged(*pod);
}

// As measured with kube-scheduler 1.35: a pod that goes, or is assumed no more, lets those come again that its own
// filters refused; one that had a node also those that were kept off guarded nodes. A refused member comes when called.
void PathWorld::Unpark(bool guarded) {
  for (auto& [uid, pod] : pods_) {
    if (pod.queue == Queue::kParkedByKube || (guarded && pod.queue == Queue::kParkedByGuard))
      pod.queue = Queue::kActive;
  }
}

}  // namespace muster
