#include "tests/simulation/caller_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/facts.h"
#include "tests/verify/invariants.h"

namespace muster {
namespace {

constexpr size_t kMaxJobs = 10;
constexpr int64_t kCallerPatienceMs = 1'800'000;
constexpr char kAnnouncer[] = "orchestrator";

}  // namespace

CallerWorld::CallerWorld(uint64_t seed) : SimWorld(seed) {
  settings_.persist_facts = true;
  settings_.stale_after_ms = Roll(2) == 0 ? 5'000 : 600'000;
  const int nodes = 3 + Roll(4);
  for (int i = 0; i < nodes; ++i) {
    const std::string name = absl::StrCat("n", i);
    nodes_[name] = NodeWith(name, {{"cpu", 1000 * (3 + Roll(4))}, {"pods", 110}});
  }
  int64_t cpu = 0;
  for (const auto& [name, node] : nodes_) cpu += node.allocatable.at("cpu");
  MakeQueues(cpu);
  Start();
}

void CallerWorld::Run(const Turns& turns) {
  for (int i = 0; i < turns.end() && violation_.empty(); ++i) {
    if (!turns.Has(i)) continue;
    BeginTurn(i);
    if (jobs_.size() < kMaxJobs && Roll(12) == 0) MakeJobs();
    Turn();
  }
  StopFaults();
  const int64_t end = clock_.NowMs() + kCallerPatienceMs;
  while (violation_.empty() && !jobs_.empty()) {
    Turn();
    if (clock_.NowMs() <= end) continue;
    for (PodId id = 0; id < machine_->reader().gangs.pod_limit(); ++id) {
      if (const Pod* pod = machine_->reader().gangs.PodAt(id); pod != nullptr) {
        Log(absl::StrCat("there: pod ", pod->facts.uid, " of ", pod->facts.gang.name, " on ", pod->facts.node_name));
      }
    }
    for (const auto& [id, job] : jobs_) {
      Log(absl::StrCat("job ", id, " ", job.submit.name, job.asked ? " asked" : "", job.confirming ? " confirming" : "",
                       job.leaving ? " leaving" : "", " places ", job.places.size()));
    }
    Log(absl::StrCat("announcing ", announcing_, " snapshot ", snapshot_, " version ", version_));
    const Job& job = jobs_.begin()->second;
    const Gang* gang = machine_->reader().FindGang(absl::StrCat("d/", job.submit.name));
    Violate(absl::StrCat("P-6: nothing goes wrong any more, and ", job.submit.name,
                         " never starts or ends: ", gang == nullptr ? "it is not there" : gang->reason.text));
  }
}

void CallerWorld::Turn() {
  const int roll = Roll(12);
  if (!EngineTurn(roll)) OutsideTurn(roll);
  if (!life_->alive) return Crash("behind an answer");
  if (Chance(800)) Crash("between two turns");
  if (Chance(2'000)) ChangeQueues();
}

void CallerWorld::OutsideTurn(int roll) {
  switch (roll) {
    case 7:
    case 8:
    case 9:
      CallerTurn();
      break;
    case 10:
      AnnouncerTurn();
      break;
    default:
      clock_.Pass(Roll(40) == 0 ? Roll(20'000) : Roll(100));
      break;
  }
}

void CallerWorld::Start() {
  StartProcess();
  CheckPromises();
}

void CallerWorld::Crash(const char* when) {
  EndProcess(when);
  announcing_ = false;
  for (auto& [id, job] : jobs_) job.asked = false;  // their calls fail, and they call again
  if (Roll(3) == 0) clock_.Pass(Roll(30'000));
  Start();
}

// --- whole gangs ---

void CallerWorld::MakeJobs() {
  if (Roll(4) != 0) return MakeJob({}, 4);
  const std::string one = absl::StrCat("g", next_id_);
  const std::string other = absl::StrCat("g", next_id_ + 1);
  for (int i = 0; i < 2; ++i) MakeJob({absl::StrCat("d/", one), absl::StrCat("d/", other)}, 2);
}

void CallerWorld::MakeJob(const std::vector<std::string>& group, int most) {
  Job job;
  const int number = next_id_++;
  job.submit.id = absl::StrCat("s", number);
  job.submit.name_space = "d";
  job.submit.name = absl::StrCat("g", number);
  job.submit.ttl_ms = 2'000 + Roll(20'000);
  job.submit.confirm = Roll(3) == 0;
  const int64_t cpu = 500 * (1 + Roll(4));
  int64_t places = 0;  // every job fits the empty cluster
  for (const auto& [name, node] : nodes_) places += node.allocatable.at("cpu") / cpu;
  if (!group.empty()) places /= 4;  // the pods of its peer may be twice as large
  const int size = 1 + Roll(static_cast<int>(std::clamp<int64_t>(places, 1, most)));
  job.submit.declaration.Mutable().min_member = size;
  job.submit.declaration.Mutable().groups = group;
  for (int i = 0; i < size; ++i) {
    PodDescription& pod = job.submit.pods.emplace_back();
    pod.uid = absl::StrCat("u", number, "-", i);
    pod.name = absl::StrCat(job.submit.name, "-", i);
    pod.priority = Roll(2);
    pod.shape.Mutable().requests = {{"cpu", cpu}};
  }
  // A group requests as much as both of its gangs together.
  const std::string queue = SimQueues::Name([this](int sides) { return Roll(sides); });
  if (queues_->any() &&
      queues_->Fits(queue, {{"cpu", cpu * size * (group.empty() ? 1 : 5)}}, true, group.empty() ? 1 : 2)) {
    job.submit.declaration.Mutable().queue = queue;
  }
  jobs_.emplace(job.submit.id, std::move(job));
}

// everything that is confirmed and not over fits in the queues.
void CallerWorld::CheckQueues(const Job& job) {
  if (!job.submit.declaration->queue.has_value()) return;
  std::vector<SimQueues::Runs> running;
  for (const auto& [id, other] : jobs_) {
    for (const PodDescription& pod : other.submit.pods) {
      if (running_.count(pod.uid) == 0) continue;
      running.push_back({other.submit.name, other.submit.declaration->queue.value_or(""), pod.shape->requests});
    }
  }
  figures_["confirmed within limits"] += 1;
  const std::string wrong = queues_->TooMuch(*job.submit.declaration->queue, running);
  if (!wrong.empty()) Violate(absl::StrCat("Q-2: ", job.submit.name, " is confirmed, and ", wrong));
}

void CallerWorld::CallerTurn() {
  std::vector<std::string> ready;
  for (const auto& [id, job] : jobs_) {
    if (!job.asked && !job.leaving && job.next_ms <= clock_.NowMs()) ready.push_back(id);
  }
  if (!ready.empty()) Come(ready[static_cast<size_t>(Roll(static_cast<int>(ready.size())))]);
}

void CallerWorld::Come(const std::string& id) {
  Job& job = jobs_.at(id);
  if (!job.places.empty()) {
    // The caller knows that its gang is confirmed; it may repeat the same call at any time.
    if (job.ends_ms <= clock_.NowMs()) {
      job.leaving = true;
      return;
    }
    job.next_ms = clock_.NowMs() + 500 + Roll(5'000);
    figures_["a confirmed gang is asked about"] += 1;
  }
  // While a snapshot is in flight nothing is confirmed: the snapshot lists every confirmed pod.
  const bool snapshot = step_.has_value() && std::holds_alternative<ReplaceFacts>(*step_);
  if (job.submit.confirm && job.places.empty() && snapshot) return;
  job.asked = true;
  job.submitting = false;
  const auto on_reply = [this, id](const absl::StatusOr<Reply>& reply) { OnCallReply(id, reply); };
  if (job.plan != 0 && job.places.empty() && !snapshot && !Chance(6)) {
    job.confirming = true;
    Call(ConfirmGang{id, std::exchange(job.plan, 0)}, on_reply);
  } else if (job.places.empty() && Chance(40)) {
    figures_["gangs abandoned"] += 1;
    Call(AbandonGang{id}, on_reply);
  } else {
    job.submitting = true;
    job.confirming = job.confirming || (job.submit.confirm && job.places.empty());
    Call(job.submit, on_reply);
  }
}

void CallerWorld::OnCallReply(const std::string& id, const absl::StatusOr<Reply>& reply) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  job.asked = false;
  job.next_ms = std::max(job.next_ms, clock_.NowMs() + Roll(1'000));
  if (!reply.ok()) {
    if (!job.places.empty() && !absl::IsUnavailable(reply.status())) {
      Violate(absl::StrCat("S-2: ", id, " was confirmed, and is told: ", reply.status().ToString()));
    }
    return;
  }
  const SubmissionReply& answer = std::get<SubmissionReply>(*reply);
  // A call for a peer may confirm a gang of a group.
  const bool hangs_on_others =
      answer.state == SubmissionReply::State::kPlanned && !job.submit.declaration->groups.empty();
  job.confirming = job.confirming && hangs_on_others;
  figures_[absl::StrCat("answer: ", ToString(answer.state))] += 1;
  if (!job.places.empty() && answer.state != SubmissionReply::State::kConfirmed) {
    return Violate(absl::StrCat("S-2: ", id, " was confirmed, and is ", ToString(answer.state), " now"));
  }
  job.plan = answer.plan;
  switch (answer.state) {
    case SubmissionReply::State::kWaiting:
    case SubmissionReply::State::kPlanned:
      return;
    case SubmissionReply::State::kConfirmed:
      return Confirmed(&job, answer);
    case SubmissionReply::State::kAbandoned:
    case SubmissionReply::State::kExpired: {
      // Its caller submits it again, under another id.
      Job again = std::move(job);
      jobs_.erase(found);
      again.plan = 0;
      again.submit.id = absl::StrCat("s", next_id_++);
      const std::string new_id = again.submit.id;
      jobs_.emplace(new_id, std::move(again));
      return;
    }
  }
}

void CallerWorld::Confirmed(Job* job, const SubmissionReply& reply) {
  Places places;
  for (const SubmissionReply::Place& place : reply.places) places[place.uid] = place.node;
  if (places.size() != job->submit.pods.size()) {
    return Violate(absl::StrCat("S-1: ", job->submit.id, " is confirmed with ", places.size(), " places"));
  }
  if (!job->places.empty()) {
    if (places != job->places) Violate(absl::StrCat("S-2: ", job->submit.id, " is told other places than before"));
    return;
  }
  CheckPeers(*job);
  if (job->submitting) figures_["confirmed by their submission"] += 1;
  Log(absl::StrCat("gang ", job->submit.name, " is confirmed"));
  figures_["gangs started"] += 1;
  job->places = places;
  job->ends_ms = clock_.NowMs() + 1'000 + Roll(20'000);
  std::map<std::string, int64_t> cpu;
  for (const auto& [id, other] : jobs_) {
    for (const PodDescription& pod : other.submit.pods) {
      const auto place = other.places.find(pod.uid);
      if (place != other.places.end() && running_.count(pod.uid) + places.count(pod.uid) > 0) {
        cpu[place->second] += pod.shape->requests.at("cpu");
      }
    }
  }
  for (const auto& [uid, node] : places) running_.insert(uid);
  CheckQueues(*job);
  for (const auto& [node, amount] : cpu) {
    if (amount > nodes_.at(node).allocatable.at("cpu")) Violate(absl::StrCat("Q-7: node ", node, " is given twice"));
  }
}

// D-10: the gangs of a group start at once, also those whose callers have no reply yet.
void CallerWorld::CheckPeers(const Job& job) {
  for (const auto& [id, peer] : jobs_) {
    const bool peers = peer.submit.name != job.submit.name && !job.submit.declaration->groups.empty() &&
                       peer.submit.declaration->groups == job.submit.declaration->groups;
    if (!peers) continue;
    figures_["gangs of a group started"] += 1;
    if (!peer.places.empty()) continue;
    for (const PodDescription& described : peer.submit.pods) {
      const Pod* pod = machine_->reader().FindPod(described.uid);
      if (pod != nullptr && !pod->facts.node_name.empty()) continue;
      return Violate(absl::StrCat("D-10: ", job.submit.name, " is confirmed, and pod ", described.uid, " of ",
                                  peer.submit.name, " of its group has no node"));
    }
  }
}

// --- facts ---

// One announcer, in steps: at first and after a refusal a snapshot, then updates.
void CallerWorld::AnnouncerTurn() {
  if (announcing_) return;
  if (!step_.has_value() && !MakeStep()) return;
  // A step whose reply was lost is sent again unchanged: a version means one step.
  announcing_ = true;
  Call(*step_, [this](const absl::StatusOr<Reply>& reply) { Announced(reply); });
}

bool CallerWorld::MakeStep() {
  gone_.clear();
  for (const auto& [id, job] : jobs_) {
    if (!job.leaving) continue;
    for (const auto& [uid, node] : job.places) gone_.push_back(uid);
  }
  if (gone_.empty() && !snapshot_ && Roll(10) != 0) return false;
  const bool whole = snapshot_ || Chance(50);
  // A snapshot lists every confirmed pod: before sending one, the announcer queries the result of open confirmations.
  const bool open = std::any_of(jobs_.begin(), jobs_.end(), [](const auto& entry) { return entry.second.confirming; });
  if (whole && open) return false;
  for (const std::string& uid : gone_) running_.erase(uid);  // from here on Muster may use their capacity
  const FactsVersion number{kAnnouncer, version_ + 1};
  if (!whole) {
    step_ = UpdateFacts{.facts_version = number, .removed_pods = gone_};
    return true;
  }
  figures_["snapshots"] += 1;
  ReplaceFacts facts;
  facts.facts_version = number;
  for (const auto& [name, node] : nodes_) facts.nodes.push_back(node);
  for (const auto& [id, job] : jobs_) {
    for (const PodDescription& pod : job.submit.pods) {
      const auto place = job.places.find(pod.uid);
      if (place == job.places.end() || job.leaving) continue;
      PodDescription there = pod;
      there.name_space = "d";
      there.node_name = place->second;
      there.phase = PodPhase::kRunning;
      there.gang.name = job.submit.name;
      there.gang.dialect = GangDialect::kApi;
      there.gang.declares = true;
      there.gang.declaration = job.submit.declaration;
      facts.pods.push_back(std::move(there));
    }
  }
  step_ = std::move(facts);
  return true;
}

void CallerWorld::Announced(const absl::StatusOr<Reply>& reply) {
  announcing_ = false;
  if (!reply.ok()) {
    figures_["announcements refused"] += 1;
    if (absl::IsUnavailable(reply.status())) return;
    snapshot_ = true;
    step_.reset();
    return;
  }
  const int64_t holds = std::get<FactsReply>(*reply).version;
  if (holds != version_ + 1) Violate(absl::StrCat("S-1: version ", version_ + 1, " was taken, ", holds, " holds"));
  version_ = holds;
  snapshot_ = false;
  step_.reset();
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const std::string& uid = it->second.submit.pods.front().uid;
    const bool over = it->second.leaving && std::find(gone_.begin(), gone_.end(), uid) != gone_.end();
    it = over ? jobs_.erase(it) : std::next(it);
  }
}

// --- what must hold ---

void CallerWorld::CheckPromises() {
  if (machine_ == nullptr) return;
  if (machine_->rooms().sources.version() < version_) {
    return Violate(absl::StrCat("S-2: version ", version_, " was acknowledged, ", machine_->rooms().sources.version(),
                                " is kept"));
  }
  if (version_ > 0 && machine_->rooms().cluster.present_nodes() != static_cast<int32_t>(nodes_.size())) {
    return Violate("S-2: nodes are missing");
  }
  for (const auto& [id, job] : jobs_) {
    for (const auto& [uid, node] : job.places) {
      if (job.leaving) continue;
      const Pod* pod = machine_->reader().FindPod(uid);
      if (pod == nullptr || pod->facts.node_name != node) {
        return Violate(absl::StrCat("S-2: pod ", uid, " was confirmed on ", node, " and is ",
                                    pod == nullptr ? "forgotten" : absl::StrCat("on \"", pod->facts.node_name, "\"")));
      }
    }
  }
  if (const absl::Status ok = CheckInvariants(*machine_); !ok.ok()) Violate(std::string(ok.message()));
}

}  // namespace muster
