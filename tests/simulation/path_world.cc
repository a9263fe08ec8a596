#include "tests/simulation/path_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/judge.h"

namespace muster {
namespace {

constexpr int64_t kPathPatienceMs = 1'800'000;  // simulated; longer than any back-off and any job
constexpr int64_t kPartialPatienceMs = 120'000;
constexpr int64_t kRestMs = 300'000;  // several times the longest back-off and learned refusal
constexpr int64_t kMaxLagMs = 5'000;  // of kube-scheduler's watch

}  // namespace

PathWorld::PathWorld(uint64_t seed) : SimWorld(seed) {
  settings_.fact_sources = {"Kubernetes"};
  settings_.gang.wait_time_ms = 20'000 + 1'000 * Roll(60);
  if (Roll(3) == 0) settings_.max_holds = 8 + Roll(8);
  const int nodes = 4 + Roll(5);
  for (int i = 0; i < nodes; ++i) {
    NodeDescription node;
    node.name = absl::StrCat("n", i);
    node.allocatable = {{"cpu", 1000 * (4 + Roll(5))}, {"pods", 110}};
    if (Roll(2) == 0) node.allocatable["nvidia.com/gpu"] = 4;
    node.labels = {{"rack", absl::StrCat("r", i % 2)}};
    nodes_[node.name] = node;
  }
  int64_t cpu = 0;
  for (const auto& [name, node] : nodes_) cpu += node.allocatable.at("cpu");
  MakeQueues(cpu);
  StartScheduler();
  Start();
}

void PathWorld::Run(const Turns& turns) {
  for (int i = 0; i < turns.end() && violation_.empty(); ++i) {
    if (!turns.Has(i)) continue;
    BeginTurn(i);
    MakeJobs();
    Turn();
  }
  StopFaults();
  while (!absent_.empty()) NodeBack(absent_.begin()->first);
  for (auto& [name, node] : nodes_) {
    if (!std::exchange(node.unschedulable, false)) continue;
    NodeChanged(node);
  }
  frozen_ = true;
  for (const int64_t rest = clock_.NowMs() + kRestMs; violation_.empty() && clock_.NowMs() < rest;) Turn();
  CheckAtRest();
  frozen_ = false;
  const int64_t end = clock_.NowMs() + kPathPatienceMs;
  while (violation_.empty() && !AllRest()) {
    Turn();
    CheckPartialStarts();
    if (clock_.NowMs() <= end) continue;
    std::string waits;
    for (const size_t j : open_) {
      absl::StrAppend(&waits, " ", jobs_[j].gang.empty() ? absl::StrCat("pod of job ", j) : jobs_[j].gang);
      if (const Gang* gang = machine_->reader().FindGang(absl::StrCat("d/", jobs_[j].gang)); gang != nullptr) {
        absl::StrAppend(&waits, " (", gang->reason.text, ")");
      }
    }
    const EngineStats stats = engine_->stats();
    Log(absl::StrCat("watch ", watch_.size(), ", api ", api_.size(), asked_filter_ ? ", asking" : "", ", mailbox ",
                     stats.mailbox_depth, ", store waits for ", stats.store_waiting, " ", stats.store_error));
    for (const auto& [uid, pod] : pods_) {
      Log(absl::StrCat("pod ", uid, " ", pod.facts.name, " on \"", pod.facts.node_name,
                       "\": ", scheduler_->Describe(uid)));
    }
    Violate(absl::StrCat("P-6: nothing goes wrong any more, and these never start or end:", waits));
  }
}

// K-13: an interrupted start is completed before any other starts: no gang can delay it for long.
void PathWorld::CheckPartialStarts() {
  std::map<size_t, Parts> bound;
  for (const auto& [uid, pod] : pods_) {
    if (!pod.facts.node_name.empty()) CountMember(pod, jobs_[pod.job], &bound[pod.job]);
  }
  for (const size_t j : open_) {
    const Job& job = jobs_[j];
    if (job.gang.empty() || bound[j].empty() || Enough(job, bound[j])) {
      partial_since_ms_.erase(j);
      continue;
    }
    // A gang with members in flight is not partially bound.
    const bool on_the_way = std::any_of(api_.begin(), api_.end(), [&](const Effect& effect) {
      const auto* bind = std::get_if<BindPod>(&effect);
      const auto pod = bind == nullptr ? pods_.end() : pods_.find(bind->pod.uid);
      return pod != pods_.end() && pod->second.job == j;
    });
    if (on_the_way ||
        partial_since_ms_.try_emplace(j, clock_.NowMs()).first->second + kPartialPatienceMs > clock_.NowMs())
      continue;
    Violate(absl::StrCat("K-13: ", job.gang, " has too few members bound, and needs ", job.minimum));
  }
}

void PathWorld::CheckAtRest() {
  if (!violation_.empty()) return;
  std::vector<NodeDescription> nodes;
  for (const auto& [name, node] : nodes_) nodes.push_back(node);
  std::vector<Standing> standing;
  std::map<size_t, Instance::Gang> waiting;
  for (const auto& [uid, pod] : pods_) {
    if (!pod.facts.node_name.empty()) {
      standing.push_back({pod.facts.shape, pod.facts.node_name});
    } else {
      waiting[pod.job].pods.push_back({pod.facts.shape, pod.facts.priority});
    }
  }
  std::set<std::string> reserving;  // keys of gangs with reserved capacity
  machine_->reader().ForEachGang([&](const Gang& gang) {
    const Plan* plan = machine_->reader().FindPlan(gang);
    const bool planned = plan != nullptr && !plan->committed;
    if (planned || machine_->rooms().future_reservations.HasReservation(gang)) reserving.insert(gang.key);
  });
  for (auto& [j, gang] : waiting) {
    const Job& job = jobs_[j];
    const std::string key = absl::StrCat("d/", job.gang);
    // The judge knows neither domains nor subgroups, groups and queues, nor capacity that is reserved for others.
    const bool judged = job.leaves.empty() && job.peers.empty() && !job.declaration.topology.has_value() &&
                        !queues_->any() && !job.whole && reserving.size() == reserving.count(key);
    if (job.gang.empty() || !judged) continue;
    gang.minimum = job.minimum - (job.size - static_cast<int32_t>(gang.pods.size()));
    const Fit fit = Judge(nodes, standing, {gang});
    figures_[fit == Fit::kNo ? "at rest: a gang waits that does not fit" : "at rest: a gang waits that fits"] += 1;
    if (fit == Fit::kNo || fit == Fit::kGaveUp) continue;
    const Gang* known = machine_->reader().FindGang(key);
    Violate(absl::StrCat("P-6: ", job.gang, " fits, and waits although nothing changes: ",
                         known == nullptr ? "it is not known" : known->reason.text));
  }
}

bool PathWorld::Enough(const Job& job, const Parts& parts) {
  if (job.leaves.empty()) return !parts.empty() && parts.begin()->second >= job.minimum;
  for (size_t leaf = 0; leaf < job.leaves.size(); ++leaf) {
    const auto part = parts.find(leaf);
    if (part == parts.end() || part->second < job.leaves[leaf]) return false;
  }
  return true;
}

bool PathWorld::AllRest() const { return open_.empty(); }

void PathWorld::Turn() {
  const int roll = Roll(14);
  if (!EngineTurn(roll)) OutsideTurn(roll);
  if (!life_->alive) return Crash("in the middle of what left");
  if (Chance(1'500)) Crash("between two turns");
  if (Chance(4'000)) LoseWatch();
  if (Chance(3'000)) NodeFault();
  if (Chance(6'000)) RestartScheduler();
  if (Chance(8'000)) ChangeQueues();
  if (Chance(2'000)) store_.Copy();
}

void PathWorld::OutsideTurn(int roll) {
  switch (roll) {
    case 7:
    case 8:
      Tell();
      break;
    case 9:
    case 10:
      ApiTurn();
      break;
    case 11:
    case 12:
      SchedulerTurn();
      break;
    default:
      PassTime();
      break;
  }
}

void PathWorld::PassTime() {
  const int64_t passes = Roll(frozen_ ? 2 : 40) == 0 ? Roll(faults_ ? 20'000 : 3'000) : Roll(60);
  if (passes > kMaxLagMs) HearNews(news_.size());
  clock_.Pass(passes);
  EndJobs();
  EndPods();
  std::vector<std::string> go;
  for (const auto& [uid, call] : held_) {
    if (Chance(200)) go.push_back(uid);
  }
  for (const std::string& uid : go) {
    figures_["fault: a held call's caller goes"] += 1;
    CallerGoes(uid);
    scheduler_->Bound(uid, held_.extract(uid).mapped().attempt, false, clock_.NowMs());
  }
}

// --- the process ---

void PathWorld::Start() {
  StartProcess();
  List();
}

void PathWorld::Crash(const char* when) {
  EndProcess(when);
  // Effects in flight to the API server have left, or have not; those that have left arrive now or later.
  for (const Effect& effect : std::exchange(api_, {})) {
    if (const auto* bind = std::get_if<BindPod>(&effect); bind != nullptr && Roll(2) == 0) ghosts_.push_back(*bind);
  }
  FailCalls();
  LoseStore();
  if (Roll(3) == 0) clock_.Pass(Roll(30'000));
  if (Roll(4) == 0) {
    figures_["fault: kube-scheduler restarts too"] += 1;
    StartScheduler();
  }
  Start();
}

// docs/how-to/upgrade-and-back-up.md: later decisions are read from the API server.
void PathWorld::LoseStore() {
  if (Roll(4) == 0) {
    figures_["fault: the store's file is lost"] += 1;
    Log("the store's file is lost");
    store_.Lose();
  } else if (Roll(4) == 0) {
    figures_["fault: an older store is put back"] += 1;
    Log("an older store is put back");
    store_.PutBack();
  }
}

// All existing objects, nodes and pods in any order, and then the end of the list.
void PathWorld::List() {
  watch_.clear();
  known_pods_.clear();
  known_nodes_.clear();
  watch_.emplace_back(ExpectFacts{{"nodes", "pods"}});
  std::deque<Command> nodes;
  std::deque<Command> pods;
  for (const auto& [name, node] : nodes_) nodes.emplace_back(UpsertNode{node});
  for (const auto& [uid, pod] : pods_) pods.emplace_back(UpsertPod{pod.facts});
  nodes.emplace_back(FactsRead{"nodes"});
  pods.emplace_back(FactsRead{"pods"});
  while (!nodes.empty() || !pods.empty()) {
    std::deque<Command>& from = pods.empty() || (!nodes.empty() && Roll(2) == 0) ? nodes : pods;
    watch_.push_back(std::move(from.front()));
    from.pop_front();
  }
}

void PathWorld::NodeFault() {
  if (!absent_.empty() && Roll(2) == 0) return NodeBack(absent_.begin()->first);
  auto it = nodes_.begin();
  std::advance(it, Roll(static_cast<int>(nodes_.size())));
  const std::string name = it->first;
  if (Roll(3) != 0 || nodes_.size() < 3) {
    it->second.unschedulable = !it->second.unschedulable;
    figures_["fault: a node is cordoned, or not any more"] += 1;
    return NodeChanged(it->second);
  }
  figures_["fault: a node leaves"] += 1;
  Log(absl::StrCat("node ", name, " leaves"));
  absent_[name] = it->second;
  nodes_.erase(it);
  watch_.emplace_back(RemoveNode{name});
  news_.emplace_back([this, name] { scheduler_->NodeGone(name, clock_.NowMs()); });
  std::vector<std::string> there;
  for (const auto& [uid, pod] : pods_) {
    if (pod.facts.node_name == name) there.push_back(uid);
  }
  for (const std::string& uid : there) RemovePod(uid, "its node left");
}

void PathWorld::NodeBack(std::string name) {
  Log(absl::StrCat("node ", name, " is back"));
  nodes_[name] = absent_.at(name);
  absent_.erase(name);
  NodeChanged(nodes_.at(name));
}

bool PathWorld::Listing() const {
  return std::any_of(watch_.begin(), watch_.end(),
                     [](const Command& command) { return std::holds_alternative<FactsRead>(command); });
}

// Restarts a list that has begun; objects that the first list reported and that are gone are reported as removed.
void PathWorld::ListAgain() {
  const std::set<std::string> pods = known_pods_;
  const std::set<std::string> nodes = known_nodes_;
  List();
  known_pods_ = pods;
  known_nodes_ = nodes;
  for (const std::string& uid : pods) {
    if (!pods_.contains(uid)) watch_.emplace_front(muster::RemovePod{uid});
  }
  for (const std::string& name : nodes) {
    if (!nodes_.contains(name)) watch_.emplace_front(RemoveNode{name});
  }
}

// The watch breaks: its undelivered events are lost, and the informer lists again.
void PathWorld::LoseWatch() {
  // During the first list, the list is simply restarted.
  figures_["fault: the watch breaks"] += 1;
  if (Listing()) return;
  watch_.clear();
  for (const std::string& uid : known_pods_) {
    if (!pods_.contains(uid)) watch_.emplace_back(muster::RemovePod{uid});
  }
  for (const auto& [uid, pod] : pods_) watch_.emplace_back(UpsertPod{pod.facts});
  for (const std::string& name : known_nodes_) {
    if (!nodes_.contains(name)) watch_.emplace_back(RemoveNode{name});
  }
  for (const auto& [name, node] : nodes_) watch_.emplace_back(UpsertNode{node});
}

void PathWorld::Tell() {
  for (int i = 1 + Roll(4); i > 0 && !watch_.empty(); --i) {
    Command fact = std::move(watch_.front());
    // Requests of a dead process that the API server accepts only after everything that the next process has read are
    // left out: their capacity may be used by others by then.
    if (std::holds_alternative<FactsRead>(fact)) ghosts_.clear();
    watch_.pop_front();
    if (const auto* node = std::get_if<UpsertNode>(&fact)) known_nodes_.insert(node->node.name);
    if (const auto* node = std::get_if<RemoveNode>(&fact)) known_nodes_.erase(node->name);
    if (const auto* pod = std::get_if<UpsertPod>(&fact)) known_pods_.insert(pod->pod.uid);
    if (const auto* pod = std::get_if<muster::RemovePod>(&fact)) known_pods_.erase(pod->uid);
    engine_->Announce(std::move(fact)).IgnoreError();
  }
}

// --- what the engine does ---

// S-2: nothing leaves before it is durable. K-4: a gang is released all at once, or not at all.
void PathWorld::CheckCarried(const std::vector<Effect>& effects) {
  std::map<size_t, Parts> released;
  for (const Effect& effect : effects) {
    const auto* bind = std::get_if<BindPod>(&effect);
    if (bind == nullptr) continue;
    const auto pod = pods_.find(bind->pod.uid);
    if (pod == pods_.end()) continue;
    // The same batch may have reported the pod as bound, so that the promise is no longer stored.
    const bool bound = pod->second.facts.node_name == bind->node;
    if (!bound && !store_.Has(absl::StrCat("commit/", bind->pod.uid))) {
      Violate(absl::StrCat("S-2: pod ", bind->pod.uid, " is bound before its promise is durable"));
    }
    Parts& parts = released[pod->second.job];
    if (!bound) CountMember(pod->second, jobs_[pod->second.job], &parts);
  }
  for (auto& [j, parts] : released) {
    Job& job = jobs_[j];
    if (job.gang.empty() || job.decided) continue;
    // Some members were created again after their gang was whole, or were bound by a ghost.
    for (const auto& [uid, pod] : pods_) {
      if (pod.job == j && !pod.facts.node_name.empty()) CountMember(pod, job, &parts);
    }
    if (!Enough(job, parts)) {
      Violate(absl::StrCat("K-4: too few members of ", job.gang, " are bound together; its minimum is ", job.minimum));
    }
    job.decided = true;
    CheckQueues(job, effects);
    CheckPeers(job, released);
  }
}

// D-10: the gangs of a group are released together, or none is.
void PathWorld::CheckPeers(const Job& job, const std::map<size_t, Parts>& released) {
  for (const size_t peer : job.peers) {
    if (jobs_[peer].decided) continue;
    const auto found = released.find(peer);
    Parts parts = found == released.end() ? Parts() : found->second;
    for (const auto& [uid, pod] : pods_) {
      if (pod.job == peer && !pod.facts.node_name.empty()) CountMember(pod, jobs_[peer], &parts);
    }
    if (Enough(jobs_[peer], parts)) continue;
    Violate(absl::StrCat("D-10: ", job.gang, " is let go without enough of ", jobs_[peer].gang));
  }
}

// a released gang fits in its queues beside everything that runs or is in flight.
void PathWorld::CheckQueues(const Job& job, const std::vector<Effect>& effects) {
  if (!job.declaration.queue.has_value()) return;
  std::set<std::string> on_the_way;
  const auto add = [&](const Effect& effect) {
    if (const auto* bind = std::get_if<BindPod>(&effect)) on_the_way.insert(bind->pod.uid);
  };
  for (const Effect& effect : effects) add(effect);
  for (const Effect& effect : api_) add(effect);
  std::vector<SimQueues::Runs> running;
  std::map<size_t, Parts> bound;
  for (const auto& [uid, pod] : pods_) {
    const Job& of = jobs_[pod.job];
    if (of.gang.empty() || (pod.facts.node_name.empty() && !on_the_way.contains(uid))) continue;
    CountMember(pod, of, &bound[pod.job]);
    running.push_back({of.gang, of.declaration.queue.value_or(""), of.requests});
  }
  // A partially bound gang is completed, whatever its queue has granted meanwhile (K-13).
  for (const auto& [j, parts] : bound) {
    if (!Enough(jobs_[j], parts)) return;
  }
  const std::string wrong = queues_->TooMuch(*job.declaration.queue, running);
  figures_["starts within limits"] += 1;
  if (!wrong.empty()) Violate(absl::StrCat("Q-2: ", job.gang, " is let go, and ", wrong));
}

void PathWorld::Carry(std::vector<Effect> effects) {
  if (!life_->alive) return;
  CheckCarried(effects);
  for (Effect& effect : effects) {
    // The process may die when only a part of the effects has left.
    if (Chance(3'000)) life_->alive = false;
    if (!life_->alive) return;
    if (!std::holds_alternative<EmitPodEvent>(effect)) api_.push_back(std::move(effect));
  }
}

}  // namespace muster
