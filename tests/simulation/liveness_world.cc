#include "tests/simulation/liveness_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kFaults = 120;

}  // namespace

LivenessWorld::LivenessWorld(uint64_t seed, const LivenessOptions& options) : random_(seed), options_(options) {
  settings_.gang.wait_time_ms = 20'000 + 1000 * Roll(60);
  if (Roll(3) == 0) settings_.max_holds = 6;
  machine_ = std::make_unique<Machine>(settings_);
}

void LivenessWorld::Log(std::string text) { events_.push_back(absl::StrCat(now_ms_, " ", text)); }

void LivenessWorld::Violate(std::string text) {
  if (!violation_.empty()) return;
  LogState();
  Log(absl::StrCat("VIOLATION: ", text));
  violation_ = std::move(text);
}

void LivenessWorld::Run() {
  MakeNodes();
  MakeJobs();
  Apply(FactsRead{});
  for (int i = 0; i < kFaults && violation_.empty(); ++i) {
    Fault();
    MakePods();
    Deliver();
    while (machine_->PlanningDue()) Apply(PlanRound{1});
    if (Roll(3) != 0) Ask();
    Deliver();
  }
  for (Job& job : jobs_) job.arrives_ms = 0;
  Log("faults stop");
  quiet_ = true;
  Quiet();
}

void LivenessWorld::MakeNodes() {
  const int count = 2 + Roll(4);
  for (int i = 0; i < count; ++i) {
    NodeDescription node;
    node.name = absl::StrCat("n", i);
    node.labels = {{"zone", absl::StrCat("z", Roll(2))}};
    if (Roll(8) == 0) node.taints.push_back({"dedicated", "", TaintEffect::kNoSchedule});
    node.allocatable = {{"cpu", 1000 * (1 + Roll(6))}, {"memory", 1 << 30}, {"pods", 2 + Roll(6)}};
    if (Roll(3) == 0) node.allocatable["nvidia.com/gpu"] = 1 + Roll(3);
    nodes_[node.name] = node;
    Log(absl::StrCat("node ", node.name, " ", FormatResources(node.allocatable), " ", node.labels["zone"],
                     node.taints.empty() ? "" : " tainted"));
    Apply(UpsertNode{node});
  }
}

Instance::Pod LivenessWorld::RandomMember() {
  Instance::Pod pod;
  pod.shape.requests = {{"cpu", 500 * (1 + Roll(5))}};
  if (Roll(5) == 0) pod.shape.requests["nvidia.com/gpu"] = 1;
  if (Roll(5) == 0) pod.shape.node_selector = {{"zone", absl::StrCat("z", Roll(2))}};
  if (Roll(6) == 0) pod.shape.tolerations.push_back({"dedicated", true, "", {}});
  if (Roll(8) == 0) pod.shape.host_ports.push_back({Protocol::kTcp, 80, "0.0.0.0"});
  return pod;
}

void LivenessWorld::MakeJobs() {
  const int gangs = 1 + Roll(3);
  bool verbs = false;
  for (int i = 0; i < gangs; ++i) {
    Job job;
    job.name = absl::StrCat("g", i);
    const bool gated = Roll(3) == 0;
    job.arrives_ms = now_ms_ + Roll(60'000);
    const int priority = Roll(3);
    const int kinds = Roll(8);
    if (kinds == 0 && (!verbs || options_.many_callers)) {
      job.driver = Driver::kVerbs;
      verbs = true;
    }
    if (kinds == 1) job.driver = Driver::kSubmission;
    if (options_.hidden_filters && job.driver == Driver::kKube && Roll(3) == 0) job.hidden = absl::StrCat("n", Roll(4));
    const int total = 1 + Roll(4);
    job.declaration.min_member = total - (Roll(3) == 0 ? Roll(total) : 0);
    const Instance::Pod like = RandomMember();
    const bool alike = job.driver == Driver::kVerbs || Roll(3) == 0;  // its caller packs no better than one by one
    const bool mixed = Roll(5) == 0;
    for (int m = 0; m < total; ++m) {
      job.members.push_back(alike ? like : RandomMember());
      job.members.back().priority = priority + (mixed ? Roll(2) : 0);
    }
    job.gated = gated && job.driver == Driver::kKube;
    if (job.driver == Driver::kSubmission) job.declaration.min_member = total;
    job.declaration.on_timeout = Roll(3) == 0 ? OnTimeout::kFail : OnTimeout::kRequeue;
    if (Roll(4) == 0) job.declaration.on_member_failure = OnMemberFailure::kAll;
    if (Roll(4) == 0) job.declaration.mode = GangMode::kNonStrict;
    if (Roll(5) == 0)
      job.declaration.match_policy =
          Roll(2) == 0 ? MatchPolicy::kWaitingAndRunning : MatchPolicy::kWaitingRunningSucceed;
    jobs_.push_back(std::move(job));
  }
  if (gangs > 1 && Roll(3) == 0) MakeGroup();
  for (int i = Roll(5); i > 0; --i) {
    Job job;
    job.name = absl::StrCat("lone", i);
    job.gang = false;
    job.declaration.min_member = 1;
    job.members.push_back(RandomMember());
    job.members.back().priority = Roll(3);
    job.arrives_ms = now_ms_ + Roll(60'000);
    jobs_.push_back(std::move(job));
  }
  for (const Job& job : jobs_) {
    Log(absl::StrCat("job ", job.name, job.gang ? "" : " of no gang", " driver ", static_cast<int>(job.driver),
                     job.gated ? " gated" : "", job.hidden.empty() ? "" : absl::StrCat(" never on ", job.hidden),
                     " group ", job.declaration.groups.size(), " policy ",
                     job.declaration.match_policy.has_value() ? ToString(*job.declaration.match_policy) : "default",
                     " ", job.declaration.on_member_failure.has_value() ? "all" : "keep"));
    Instance described;
    described.gangs.push_back({job.members, *job.declaration.min_member});
    Log(Describe(described));
  }
}

void LivenessWorld::MakeGroup() {
  std::vector<std::string> ids;
  std::vector<Job*> group;
  for (Job& job : jobs_) {
    if (job.driver != Driver::kKube || group.size() == 2) continue;
    group.push_back(&job);
    ids.push_back(absl::StrCat("d/", job.name));
  }
  if (group.size() < 2) return;
  for (Job* job : group) job->declaration.groups = ids;
}

std::vector<std::string> LivenessWorld::Uids() const {
  std::vector<const ApiPod*> order;
  for (const auto& [uid, pod] : pods_) order.push_back(&pod);
  std::stable_sort(order.begin(), order.end(), [](const ApiPod* a, const ApiPod* b) {
    return std::make_pair(-a->facts.priority, a->facts.created_ms) <
           std::make_pair(-b->facts.priority, b->facts.created_ms);
  });
  std::vector<std::string> uids;
  uids.reserve(order.size());
  for (const ApiPod* pod : order) uids.push_back(pod->facts.uid);
  return uids;
}

void LivenessWorld::MakePods() {
  for (size_t j = 0; j < jobs_.size(); ++j) {
    Job& job = jobs_[j];
    if (job.over || job.arrives_ms > now_ms_ || job.driver == Driver::kSubmission) continue;
    std::set<size_t> there;
    std::vector<std::string> marked;
    for (const std::string& uid : Uids()) {
      const ApiPod& pod = pods_[uid];
      if (pod.job != j) continue;
      if ((quiet_ || Roll(8) == 0) && (pod.facts.deleting || pod.facts.phase == PodPhase::kFailed)) {
        Remove(uid, "is over");
        continue;
      }
      there.insert(pod.member);
      if (pod.facts.timed_out_mark) marked.push_back(uid);
    }
    if (!marked.empty() && (quiet_ || Roll(4) == 0)) {  // their owner makes them anew
      for (const std::string& uid : marked) Remove(uid, "timed out");
      continue;
    }
    for (size_t m = 0; m < job.members.size(); ++m) {
      if (there.count(m) == 0 && (quiet_ || Roll(3) != 0)) MakePod(j, m);
    }
  }
}

void LivenessWorld::MakePod(size_t j, size_t member) {
  const Job& job = jobs_[j];
  ApiPod pod;
  pod.job = j;
  pod.member = member;
  pod.facts.uid = absl::StrCat("u", next_uid_++);
  pod.facts.name_space = "d";
  pod.facts.name = absl::StrCat(job.name, "-", member);
  pod.facts.created_ms = now_ms_;
  pod.facts.priority = job.members[member].priority;
  pod.facts.scheduler_name = job.driver == Driver::kVerbs ? "mine" : "default-scheduler";
  pod.facts.shape = job.members[member].shape;
  pod.facts.our_gate = job.gated;
  if (job.gang) {
    pod.facts.gang.name = job.name;
    pod.facts.gang.declares = true;
    pod.facts.gang.declaration = job.declaration;
  }
  const std::string uid = pod.facts.uid;
  Log(absl::StrCat("pod ", uid, " is ", pod.facts.name));
  pods_[uid] = pod;
  if (job.driver == Driver::kKube && !job.gated && Roll(4) == 0) AskKube(uid);  // before it was announced
  Apply(UpsertPod{pods_[uid].facts});
}

void LivenessWorld::Remove(const std::string& uid, const char* why) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return;
  Log(absl::StrCat("pod ", uid, " ", pod->second.facts.name, " goes: ", why));
  const bool assigned = !pod->second.facts.node_name.empty();
  tokens_.erase(pod->second.token);
  pods_.erase(pod);
  Apply(RemovePod{uid});
  Unpark(assigned);
}

void LivenessWorld::EndJob(size_t j) {
  jobs_[j].over = true;
  for (const std::string& uid : Uids()) {
    if (pods_[uid].job == j) Remove(uid, "its job ends");
  }
}

Outcome LivenessWorld::Apply(const Command& command) {
  Outcome outcome;
  machine_->Apply(command, now_ms_, &outcome);
  for (const Record& record : outcome.records) {
    records_[RecordName(record)] = record;
    if (record.value.empty()) records_.erase(RecordName(record));
  }
  for (Effect& effect : outcome.effects) effects_.push_back(std::move(effect));
  for (const HoldAnswer& answer : outcome.answers) answers_.push_back(answer);
  return outcome;
}

void LivenessWorld::Deliver() {
  while (!effects_.empty() || !answers_.empty()) {
    for (const HoldAnswer& answer : std::exchange(answers_, {})) Answered(answer);
    std::vector<Effect> later;
    for (const Effect& effect : std::exchange(effects_, {})) {
      if (const auto* bind = std::get_if<BindPod>(&effect)) {
        if (!quiet_ && Roll(5) == 0) {
          later.push_back(effect);  // on its way
          continue;
        }
        BindNow(*bind);
      } else if (const auto* call = std::get_if<CallPod>(&effect)) {
        const auto pod = pods_.find(call->pod.uid);
        if (pod == pods_.end()) continue;
        Log(absl::StrCat("pod ", call->pod.uid, " is called"));
        pod->second.parked = Parked::kNo;
        if (!call->remove_gate) {
          pod->second.facts.called = absl::StrCat(++calls_);
          if (!call->note.empty()) pod->second.facts.unschedulable = call->note;
        } else if (!std::exchange(pod->second.facts.our_gate, false)) {
          continue;
        }
        Apply(UpsertPod{pod->second.facts});
      } else if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) {
        const auto pod = pods_.find(mark->pod.uid);
        if (pod == pods_.end()) continue;
        Log(absl::StrCat("pod ", mark->pod.uid, " is marked as timed out"));
        pod->second.facts.timed_out_mark = true;
        Apply(UpsertPod{pod->second.facts});
      } else if (const auto* evict = std::get_if<EvictPod>(&effect)) {
        Remove(evict->pod.uid, "evicted");
      }
    }
    const bool done = effects_.empty() && answers_.empty();
    effects_.insert(effects_.end(), later.begin(), later.end());
    if (done) return;
  }
}

void LivenessWorld::BindNow(const BindPod& bind) {
  const auto found = pods_.find(bind.pod.uid);
  if (found == pods_.end()) return;
  ApiPod& pod = found->second;
  BindingOutcome outcome{bind.pod.uid, bind.node, BindingResult::kBound, ""};
  const bool elsewhere = !pod.facts.node_name.empty() && pod.facts.node_name != bind.node;
  if (elsewhere || (!quiet_ && Roll(8) == 0)) outcome.result = BindingResult::kRefused;
  if (!quiet_ && Roll(8) == 0) outcome.result = BindingResult::kRetry;
  if (outcome.result == BindingResult::kBound) {
    pod.facts.node_name = bind.node;
  } else {
    Log(absl::StrCat("pod ", bind.pod.uid, ": binding fails"));
  }
  Apply(outcome);
  if (outcome.result == BindingResult::kBound) NoteBound(&pod, bind.node);
}

void LivenessWorld::NoteBound(ApiPod* pod, const std::string& node) {
  Log(absl::StrCat("pod ", pod->facts.uid, " ", pod->facts.name, " is bound to ", node));
  progress_ = true;
  pod->facts.node_name = node;
  pod->facts.phase = PodPhase::kRunning;
  pod->facts.unschedulable.clear();
  Apply(UpsertPod{pod->facts});
}

void LivenessWorld::Answered(const HoldAnswer& answer) {
  const auto token = tokens_.find(answer.token);
  if (token == tokens_.end()) return;
  const std::string uid = token->second;
  tokens_.erase(token);
  ApiPod& pod = pods_.find(uid)->second;
  pod.token = 0;
  const bool verbs = jobs_[pod.job].driver == Driver::kVerbs;
  if (answer.permitted) {
    if (!verbs) return;
    const Outcome bound = Apply(PostBind{uid, pod.assumed});
    if (bound.status.ok()) NoteBound(&pod, pod.assumed);
    return;
  }
  Log(absl::StrCat("pod ", uid, " is sent back: ", answer.reason.text));
  pod.assumed.clear();
  pod.ask_at_ms = std::max(pod.ask_at_ms, now_ms_ + 1000);
  if (verbs) Apply(Unreserve{uid, UnreserveCause::kRejected});
  Unpark(/*guarded=*/false);
}

}  // namespace muster
