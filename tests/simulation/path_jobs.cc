// Models the users of PathWorld: jobs arrive, controllers re-create lost pods, jobs end.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/path_world.h"

namespace muster {
namespace {

constexpr size_t kMaxPods = 48;

}  // namespace

void PathWorld::MakeJobs() {
  if (pods_.size() >= kMaxPods || Roll(12) != 0) return;
  const size_t number = jobs_.size();
  std::vector<Job> made = {DrawJob(number)};
  const bool grouped = !made[0].gang.empty() && !made[0].declaration.topology.has_value() && Roll(5) == 0;
  if (grouped) made.push_back(DrawPeer(number + 1, number, &made[0]));
  int32_t size = 0;
  int32_t minimum = 0;
  for (size_t i = 0; i < made.size(); ++i) {
    const Job& job = made[i];
    size += job.size;
    minimum += job.minimum;
    Log(absl::StrCat("job ", number + i, " ", job.gang, " ", job.minimum, " of ", job.size, " ",
                     FormatResources(job.requests), grouped ? ", of a group" : ""));
  }
  // Every job and every group fits the empty cluster; otherwise it would rightly wait.
  const Job& first = made.front();
  if (Places(first) < size || (!first.gang.empty() && minimum > settings_.max_holds)) return;
  if (first.declaration.queue.has_value()) {
    ResourceList all = first.requests;
    for (auto& [resource, amount] : all) amount *= size;
    const bool preemptible = first.declaration.preemptible.value_or(true);
    if (!queues_->Fits(*first.declaration.queue, all, preemptible, static_cast<int>(made.size()))) return;
  }
  for (Job& job : made) {
    const size_t j = jobs_.size();
    jobs_.push_back(std::move(job));
    open_.insert(j);
  }
  for (size_t j = number; j < jobs_.size(); ++j) {
    for (int32_t member = 0; member < jobs_[j].size; ++member) MakePod(j, member);
  }
}

PathWorld::Job PathWorld::DrawJob(size_t number) {
  Job job;
  const bool gang = Roll(5) != 0;
  job.priority = Roll(3);
  job.requests = {{"cpu", 500 * (1 + Roll(4))}};
  if (Roll(4) == 0) job.requests["nvidia.com/gpu"] = 1;
  if (!gang) return job;
  job.gang = absl::StrCat("g", number);
  job.size = 1 + Roll(6);
  job.minimum = Roll(4) == 0 ? 1 + Roll(job.size) : job.size;
  job.gated = Roll(2) == 0;
  job.declaration.min_member = job.minimum;
  job.declaration.on_timeout = OnTimeout::kRequeue;
  if (Roll(4) == 0) job.declaration.on_member_failure = OnMemberFailure::kAll;
  if (Roll(4) == 0) job.declaration.mode = GangMode::kNonStrict;
  Shape(&job);
  if (queues_->any()) job.declaration.queue = SimQueues::Name([this](int sides) { return Roll(sides); });
  if (queues_->any() && Roll(6) == 0) job.declaration.preemptible = false;
  return job;
}

// D-10: a gang that starts together with `first`, with similar pods.
PathWorld::Job PathWorld::DrawPeer(size_t number, size_t first_number, Job* first) {
  Job peer = *first;
  peer.gang = absl::StrCat("g", number);
  peer.size = peer.minimum = 1 + Roll(3);
  peer.gated = Roll(2) == 0;
  peer.leaves.clear();
  peer.declaration.subgroups.clear();
  peer.declaration.min_member = peer.minimum;
  peer.peers = {first_number};
  first->peers = {number};
  peer.declaration.groups =
      first->declaration.groups = {absl::StrCat("d/", first->gang), absl::StrCat("d/", peer.gang)};
  return peer;
}

// Some gangs require one rack; some have two subgroups, each with its own minimum.
void PathWorld::Shape(Job* job) {
  if (Roll(4) == 0) job->declaration.topology = TopologyRule{"rack", "", ""};
  if (job->size < 2 || Roll(4) != 0) return;
  job->leaves = {1 + Roll((job->size + 1) / 2), 1 + Roll(job->size / 2)};
  job->minimum = job->leaves[0] + job->leaves[1];
  job->declaration.min_member.reset();
  for (size_t leaf = 0; leaf < job->leaves.size(); ++leaf) {
    job->declaration.subgroups.push_back({absl::StrCat("s", leaf), "", job->leaves[leaf], {}, {}});
  }
}

int64_t PathWorld::Places(const Job& job) const {
  const bool one_rack = job.declaration.topology.has_value();
  std::map<std::string, int64_t> places;  // by rack
  for (const auto& [name, node] : nodes_) {
    int64_t here = 110;
    for (const auto& [resource, amount] : job.requests) {
      const auto has = node.allocatable.find(resource);
      here = std::min(here, has == node.allocatable.end() ? 0 : has->second / amount);
    }
    places[one_rack ? node.labels.at("rack") : ""] += here;
  }
  int64_t most = 0;
  for (const auto& [rack, sum] : places) most = std::max(most, sum);
  return most;
}

void PathWorld::MakePod(size_t j, int32_t member) {
  const Job& job = jobs_[j];
  ApiPod pod;
  pod.job = j;
  pod.member = member;
  pod.facts.uid = absl::StrCat("u", next_uid_++);
  pod.facts.name_space = "d";
  pod.facts.name = absl::StrCat(job.gang.empty() ? absl::StrCat("lone", j) : job.gang, "-", member);
  pod.facts.created_ms = clock_.NowMs();
  pod.facts.priority = job.priority;
  pod.facts.scheduler_name = "default-scheduler";
  pod.facts.shape.Mutable().requests = job.requests;
  pod.facts.our_gate = job.gated;
  if (!job.gang.empty()) {
    pod.facts.gang.name = job.gang;
    pod.facts.gang.declares = true;
    pod.facts.gang.declaration = job.declaration;
    if (!job.leaves.empty()) {
      pod.facts.gang.subgroup = absl::StrCat("s", static_cast<size_t>(member) % job.leaves.size());
    }
  }
  const std::string uid = pod.facts.uid;
  PodChanged(pods_.emplace(uid, std::move(pod)).first->second);
}

void PathWorld::RemovePod(const std::string& uid, const char* why) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Log(absl::StrCat("pod ", uid, " ", found->second.facts.name, " goes: ", why));
  pods_.erase(found);
  watch_.emplace_back(muster::RemovePod{uid});
  news_.emplace_back([this, uid] { scheduler_->PodGone(uid, clock_.NowMs()); });
}

void PathWorld::PodChanged(const ApiPod& pod) {
  watch_.emplace_back(UpsertPod{pod.facts});
  news_.emplace_back([this, facts = pod.facts] { scheduler_->PodIs(facts, clock_.NowMs()); });
}

void PathWorld::NodeChanged(const NodeDescription& node) {
  watch_.emplace_back(UpsertNode{node});
  news_.emplace_back([this, node] { scheduler_->NodeIs(node, clock_.NowMs()); });
}

void PathWorld::EndPods() {
  std::vector<std::string> over;
  for (const auto& [uid, pod] : pods_) {
    if (pod.facts.deleting && pod.gone_ms <= clock_.NowMs()) over.push_back(uid);
  }
  for (const std::string& uid : over) RemovePod(uid, "it has ended");
}

// Jobs end after they have run for a while; controllers re-create lost pods.
void PathWorld::EndJobs() {
  std::map<size_t, std::vector<std::string>> members;
  for (const auto& [uid, pod] : pods_) members[pod.job].push_back(uid);
  std::vector<size_t> over;
  for (const size_t j : open_) {
    Job& job = jobs_[j];
    Parts bound;
    std::set<int32_t> there;
    for (const std::string& uid : members[j]) {
      const ApiPod& pod = pods_.at(uid);
      if (!pod.facts.node_name.empty()) CountMember(pod, job, &bound);
      there.insert(pod.member);
    }
    if (Enough(job, bound) && !std::exchange(job.whole, true)) {
      job.ends_ms = clock_.NowMs() + 1'000 + Roll(30'000);
      if (job.declaration.topology.has_value()) figures_["gangs started in one rack"] += 1;
      if (!job.leaves.empty()) figures_["gangs of subgroups started"] += 1;
      if (!job.peers.empty()) figures_["gangs of a group started"] += 1;
      figures_[job.gang.empty() ? "pods of no gang started" : "gangs started"] += 1;
    }
    // A job ends with the members that it has: extra or re-created members may have found no place. A group ends
    // together: a gang alone could not start again.
    const auto through = [&](const Job& each) { return !frozen_ && each.whole && each.ends_ms <= clock_.NowMs(); };
    if (through(job) && absl::c_all_of(job.peers, [&](size_t peer) { return through(jobs_[peer]); })) {
      over.push_back(j);
      continue;
    }
    for (int32_t member = 0; member < job.size; ++member) {
      if (!there.contains(member)) MakePod(j, member);
    }
    // A member fails, or a user deletes it.
    if (!bound.empty() && Chance(3'000)) {
      figures_["fault: a pod is deleted"] += 1;
      RemovePod(members[j][static_cast<size_t>(Roll(static_cast<int>(members[j].size())))], "deleted");
    }
  }
  for (const size_t j : over) {
    for (const std::string& uid : members[j]) RemovePod(uid, "its job ends");
    open_.erase(j);
  }
}

}  // namespace muster
