// Time passes and nothing goes wrong any more; what must come of it (SPEC P-6, P-9, G-9).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/liveness_world.h"

namespace muster {
namespace {

// Longer than anything that may keep a gang back: back-off, learned refusals, idle plans, most wait times.
constexpr int64_t kPatienceMs = 150'000;
constexpr int kMaxPasses = 6'000;

}  // namespace

void LivenessWorld::Quiet() {
  int64_t moved_ms = now_ms_;
  for (int pass = 0; violation_.empty(); ++pass) {
    if (pass > kMaxPasses) return Violate("P-6: it never comes to rest");
    progress_ = false;
    MakePods();
    Deliver();
    Plan();
    Deliver();
    Ask();
    Deliver();
    Plan();
    Deliver();
    NoteStarted();
    if (progress_) moved_ms = now_ms_;
    const bool waits = std::any_of(jobs_.begin(), jobs_.end(), [this](const Job& job) {
      const auto members = static_cast<int32_t>(job.members.size());
      return !job.over && Bound(static_cast<size_t>(&job - jobs_.data())) < members;
    });
    if (!waits) return;
    if (now_ms_ - moved_ms > kPatienceMs) {
      const bool idle = BoundPods().empty();
      CheckAtRest(idle);
      if (idle || !violation_.empty()) return;
      EndOneThatRuns();
      moved_ms = now_ms_;
    }
    now_ms_ = NextTime();
    Apply(Tick{});
  }
}

int64_t LivenessWorld::NextTime() const {
  int64_t next = std::min(machine_->NextDeadline(), now_ms_ + 5'000);
  for (const auto& [uid, pod] : pods_) {
    if (pod.ask_at_ms > now_ms_) next = std::min(next, pod.ask_at_ms);
    if (pod.token != 0 && pod.until_ms > now_ms_) next = std::min(next, pod.until_ms);
  }
  return std::max(next, now_ms_ + (progress_ ? 1 : 100));
}

void LivenessWorld::NoteStarted() {
  if (const absl::Status ok = machine_->CheckInvariants(); !ok.ok()) Violate(std::string(ok.message()));
  for (size_t j = 0; j < jobs_.size(); ++j) {
    Job& job = jobs_[j];
    if (job.over || job.driver == Driver::kSubmission) continue;
    const bool whole = Bound(j) >= *job.declaration.min_member;
    if (whole && !job.started) Log(absl::StrCat("job ", job.name, " has started"));
    job.started = whole;
  }
}

void LivenessWorld::EndOneThatRuns() {
  std::vector<size_t> whole;
  std::vector<size_t> half;
  for (size_t j = 0; j < jobs_.size(); ++j) {
    if (jobs_[j].over || Bound(j) == 0) continue;
    (Bound(j) >= *jobs_[j].declaration.min_member ? whole : half).push_back(j);
  }
  std::vector<size_t>& from = whole.empty() ? half : whole;
  figures_[whole.empty() ? "half started, and what is left does not fit" : "started"] += 1;
  EndJob(from[static_cast<size_t>(Roll(static_cast<int>(from.size())))]);
}

int32_t LivenessWorld::Bound(size_t job) const {
  return static_cast<int32_t>(std::count_if(pods_.begin(), pods_.end(), [job](const auto& entry) {
    const PodDescription& facts = entry.second.facts;
    return entry.second.job == job && !facts.node_name.empty() && facts.phase != PodPhase::kFailed && !facts.deleting;
  }));
}

std::vector<Standing> LivenessWorld::BoundPods() const {
  std::vector<Standing> out;
  for (const auto& [uid, pod] : pods_) {
    if (!pod.facts.node_name.empty() && pod.facts.phase != PodPhase::kFailed) {
      out.push_back({pod.facts.shape, pod.facts.node_name});
    }
  }
  return out;
}

// As the machine counts: with what it has promised.
std::vector<Standing> LivenessWorld::Charged() const {
  std::vector<Standing> out;
  const Cluster& cluster = machine_->cluster();
  for (const auto& [uid, api] : pods_) {
    const Pod* pod = machine_->FindPod(uid);
    if (pod == nullptr) continue;
    const Ledger::PodCharge& charge = machine_->ledger().ChargeOf(pod->id);
    if (charge.node != kNoNode) out.push_back({pod->facts.shape, cluster.node(charge.node).facts.name});
  }
  machine_->ForEachGang([&](const Gang& gang) {
    const muster::Plan* plan = machine_->plans().Of(gang);
    if (plan == nullptr) return;
    for (const Slot& slot : plan->slots) {
      if (slot.state == SlotState::kCommitted) continue;
      out.push_back({cluster.pod_class(slot.cls).shape, cluster.node(slot.node).facts.name});
    }
  });
  return out;
}

// A group of which one job is over never stands again.
bool LivenessWorld::MateIsOver(const Job& job) const {
  return !job.declaration.groups.empty() && std::any_of(jobs_.begin(), jobs_.end(), [&](const Job& other) {
    return other.over && other.declaration.groups == job.declaration.groups;
  });
}

// Jobs that have less than their minimum, those of a group together.
std::vector<LivenessWorld::Item> LivenessWorld::Items() const {
  std::map<std::string, Item> items;
  for (size_t j = 0; j < jobs_.size(); ++j) {
    const Job& job = jobs_[j];
    if (job.over || Bound(j) >= *job.declaration.min_member) continue;
    const std::vector<std::string>& group = job.declaration.groups;
    items[group.empty() ? job.name : group.front()].push_back(j);
  }
  std::vector<Item> out;
  for (auto& [key, item] : items) {
    if (!MateIsOver(jobs_[item[0]])) out.push_back(std::move(item));
  }
  return out;
}

std::string LivenessWorld::Name(const Item& item) const {
  std::string out;
  for (const size_t j : item) absl::StrAppend(&out, out.empty() ? "" : "+", jobs_[j].name);
  return out;
}

PodTemplate LivenessWorld::TrueShape(const ApiPod& pod) const {
  PodTemplate shape = pod.facts.shape;
  const Job& job = jobs_[pod.job];
  if (job.hidden.empty() || pod.member > 0) return shape;
  shape.has_affinity = true;
  shape.affinity.push_back({{{kHostLabel, SelectorOperator::kNotIn, {job.hidden}}}, {}});
  return shape;
}

Fit LivenessWorld::JudgeItem(const Item& item, const std::vector<Standing>& standing) const {
  std::vector<Instance::Gang> gangs;
  int32_t holds = 0;
  for (const size_t j : item) {
    const Job& job = jobs_[j];
    Instance::Gang& gang = gangs.emplace_back();
    gang.minimum = *job.declaration.min_member - Bound(j);
    if (job.driver == Driver::kSubmission) {
      gang.pods = job.members;
    } else {
      if (job.gang && job.driver == Driver::kKube) holds += gang.minimum;
      for (const std::string& uid : Uids()) {
        const ApiPod& pod = pods_.find(uid)->second;
        if (pod.job == j && pod.facts.node_name.empty()) {
          gang.pods.push_back({TrueShape(pod), pod.facts.priority});
        }
      }
    }
    std::stable_sort(gang.pods.begin(), gang.pods.end(),
                     [](const Instance::Pod& a, const Instance::Pod& b) { return a.priority > b.priority; });
    if (static_cast<int32_t>(gang.pods.size()) < gang.minimum) return Fit::kNo;
  }
  if (holds > settings_.max_holds) return Fit::kNo;
  std::vector<NodeDescription> nodes;
  for (const auto& [name, node] : nodes_) nodes.push_back(node);
  return Judge(nodes, standing, gangs);
}

// In line to be planned, or blocked for want of room.
bool LivenessWorld::Queued(const Item& item) const {
  return std::all_of(item.begin(), item.end(), [this](size_t j) {
    const Job& job = jobs_[j];
    if (!job.gang || job.driver == Driver::kVerbs) return false;
    const Gang* gang = machine_->FindGang(absl::StrCat("d/", job.name));
    if (gang == nullptr || machine_->plans().Of(*gang) != nullptr) return false;
    return gang->reason.code == ReasonCode::kQueued || gang->reason.code == ReasonCode::kNoRoom;
  });
}

// G-9.
QueueKey LivenessWorld::KeyOf(const Item& item) const {
  QueueKey key;
  bool first = true;
  for (const size_t j : item) {
    const Gang& gang = *machine_->FindGang(absl::StrCat("d/", jobs_[j].name));
    int32_t priority = INT32_MIN;
    for (const MemberSet& set : gang.members) {
      for (const Pod* pod : set) priority = std::max(priority, pod->facts.priority);
    }
    key.half_bound = key.half_bound || (!gang.kept.satisfied && gang.active() > 0);
    key.priority = first ? priority : std::max(key.priority, priority);
    key.requeues = std::max(key.requeues, gang.kept.requeues);
    key.created_ms = first ? gang.created_ms : std::min(key.created_ms, gang.created_ms);
    if (first) key.name = gang.key;
    first = false;
  }
  return key;
}

void LivenessWorld::Plan() {
  while (machine_->PlanningDue() && violation_.empty()) {
    std::vector<std::pair<QueueKey, Item>> queued;
    for (Item& item : Items()) {
      if (Queued(item)) queued.emplace_back(KeyOf(item), std::move(item));
    }
    std::sort(queued.begin(), queued.end());
    const std::vector<Standing> charged = Charged();
    Apply(PlanRound{1});
    const auto planned = std::find_if(queued.begin(), queued.end(), [this](const auto& entry) {
      return machine_->plans().Of(*machine_->FindGang(absl::StrCat("d/", jobs_[entry.second[0]].name))) != nullptr;
    });
    if (planned == queued.end()) continue;
    Log(absl::StrCat("planned: ", Name(planned->second)));
    if (options_.hidden_filters)
      continue;  // the machine knows of refusals that the judge does not, and the other way round
    for (auto before = queued.begin(); before != planned; ++before) {
      const Fit fit = JudgeItem(before->second, charged);
      if (fit == Fit::kLaterTry) figures_["times that a later try would have come first"] += 1;
      if (fit == Fit::kFirstTry || (fit == Fit::kLaterTry && options_.later_tries)) {
        Violate(absl::StrCat("G-9: ", Name(before->second), " is first in order and fits, ", Name(planned->second),
                             " was planned"));
      }
    }
  }
}

void LivenessWorld::LogState() {
  for (const auto& [name, node] : nodes_) Log(absl::StrCat("there: ", name, node.unschedulable ? " cordoned" : ""));
  for (const auto& [uid, pod] : pods_) {
    Log(absl::StrCat("pod ", uid, " ", pod.facts.name, " node ", pod.facts.node_name, " assumed ", pod.assumed,
                     " parked ", static_cast<int>(pod.parked), pod.facts.our_gate ? " gated" : "", " says ",
                     pod.facts.unschedulable));
  }
  for (const Standing& pod : Charged()) {
    Log(absl::StrCat("charged: ", pod.node, " ", FormatResources(pod.shape.requests)));
  }
  machine_->ForEachGang([this](const Gang& gang) { Log(absl::StrCat("gang ", gang.key, ": ", gang.reason.text)); });
}

void LivenessWorld::CheckAtRest(bool idle) {
  const std::vector<Standing> standing = BoundPods();
  for (const Item& item : Items()) {
    const Fit fit = JudgeItem(item, standing);
    const Gang* gang = machine_->FindGang(absl::StrCat("d/", jobs_[item[0]].name));
    const std::string says = gang == nullptr ? "of no gang" : gang->reason.text;
    if (idle) figures_[fit == Fit::kNo ? "do not fit" : fit == Fit::kGaveUp ? "given up" : "need a later try"] += 1;
    if (fit == Fit::kDisproved) Violate(absl::StrCat("P-6: ", Name(item), " fits, the planner says it has proven not"));
    if (fit != Fit::kFirstTry && (fit != Fit::kLaterTry || !options_.later_tries)) continue;
    if (!options_.later_tries && !idle && GoesAfterAnotherLook(item)) {
      figures_["times that a greedy try depends on when it is made"] += 1;
      return;
    }
    Violate(absl::StrCat("P-6: ", Name(item), " fits and waits for ever; it says: ", says));
  }
  CheckExtras(standing);
}

bool LivenessWorld::GoesAfterAnotherLook(const Item& item) {
  const Job& job = jobs_[item[0]];
  if (!job.gang || job.driver == Driver::kVerbs || !Queued(item) || nodes_.empty()) return false;
  for (auto& [name, node] : nodes_) {
    node.labels["looked"] = absl::StrCat(now_ms_);
    Apply(UpsertNode{node});
  }
  Plan();
  const auto has_plan = [&] {
    return machine_->plans().Of(*machine_->FindGang(absl::StrCat("d/", job.name))) != nullptr;
  };
  return has_plan() || Bound(item[0]) >= *job.declaration.min_member;
}

// Members beyond the minimum come one by one.
void LivenessWorld::CheckExtras(const std::vector<Standing>& standing) {
  std::vector<NodeDescription> nodes;
  for (const auto& [name, node] : nodes_) nodes.push_back(node);
  for (const auto& [uid, pod] : pods_) {
    const Job& job = jobs_[pod.job];
    if (!pod.facts.node_name.empty() || Bound(pod.job) < *job.declaration.min_member || MateIsOver(job)) continue;
    if (Judge(nodes, standing, {{{{TrueShape(pod), 0}}, 1}}) == Fit::kNo) continue;
    Violate(absl::StrCat("P-6: pod ", uid, " ", pod.facts.name, " beyond the minimum fits and waits for ever"));
  }
}

}  // namespace muster
