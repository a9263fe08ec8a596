#include "tests/simulation/small_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/facts.h"

namespace muster {
std::string ToString(const Action& action, const Cast& cast) {
  static constexpr const char* kNames[] = {
      "plan", "ask",    "bind",    "give-up", "bound", "seen-bound", "retry",  "refuse",  "post-bind",   "leave",
      "fail", "submit", "confirm", "abandon", "node",  "time",       "queues", "restart", "restart-done"};
  std::string out = kNames[static_cast<size_t>(action.kind)];
  std::vector<std::string> pods;
  std::vector<std::string> jobs;
  for (const Cast::Job& job : cast.jobs) {
    jobs.push_back(job.name);
    for (int i = 0; i < job.members; ++i) pods.push_back(absl::StrCat(job.name, "-", i));
  }
  switch (action.kind) {
    case Action::Kind::kPlan:
    case Action::Kind::kNode:
    case Action::Kind::kTime:
    case Action::Kind::kQueues:
    case Action::Kind::kRestart:
    case Action::Kind::kRestartDone:
      return out;
    case Action::Kind::kSubmit:
    case Action::Kind::kConfirm:
    case Action::Kind::kAbandon:
      return absl::StrCat(out, " ", jobs[action.index]);
    default:
      return absl::StrCat(out, " ", pods[action.index]);
  }
}

SmallWorld::SmallWorld(const Cast& cast, int64_t start_ms)
    : cast_(cast),
      now_ms_(start_ms),
      submissions_(cast.jobs.size()),
      plans_(cast.jobs.size(), 0),
      submitted_(cast.jobs.size(), 0),
      ended_(cast.jobs.size(), false),
      disturbed_(cast.jobs.size(), false),
      passed_(cast.jobs.size()),
      planned_(cast.jobs.size(), false) {
  settings_.gang.wait_time_ms = 30'000;
  settings_.queues = cast.queues;
  machine_ = std::make_unique<Machine>(settings_);
  for (size_t i = 0; i < cast.nodes.size(); ++i) Apply(UpsertNode{NodeOf(i)});
  Apply(FactsRead{});
  for (size_t j = 0; j < cast.jobs.size(); ++j) {
    for (int i = 0; i < cast.jobs[j].members; ++i) {
      Body& body = bodies_.emplace_back();
      body.job = j;
      body.member = i;
    }
  }
  for (Body& body : bodies_) {
    if (JobOf(body).driver != Cast::Driver::kSubmission) Create(&body);
  }
}

NodeDescription SmallWorld::NodeOf(size_t index) const {
  NodeDescription node = SmallNode(cast_.nodes[index].first, cast_.nodes[index].second);
  if (!cast_.racks.empty()) node.labels = {{"rack", cast_.racks[index]}};
  return node;
}

std::string SmallWorld::RackOf(const std::string& node) const {
  for (size_t i = 0; i < cast_.racks.size(); ++i) {
    if (cast_.nodes[i].first == node) return cast_.racks[i];
  }
  return "";
}

int SmallWorld::LeafOf(const Body& body) const {
  const int leaves = JobOf(body).leaves;
  return leaves == 0 ? 0 : body.member % leaves;
}

void SmallWorld::Create(Body* body) {
  const Cast::Job& job = JobOf(*body);
  ++body->lives;
  body->exists = true;
  body->parked = Parked::kNo;
  body->chosen.clear();
  body->token = 0;
  body->permitted = false;
  body->sent_to.clear();
  const std::string name = absl::StrCat(job.name, "-", body->member);
  PodDescription facts = job.min > 0 ? Member(name, job.name, job.min, job.cpu) : Lone(name, job.cpu);
  facts.uid = absl::StrCat(name, "#", body->lives);
  facts.created_ms = now_ms_;
  facts.priority = job.priority;
  if (job.driver == Cast::Driver::kVerbs) facts.scheduler_name = "mine";
  if (job.port > 0) facts.shape.Mutable().host_ports = {{Protocol::kTcp, job.port, "0.0.0.0"}};
  if (job.min > 0) {
    facts.gang.declaration.Mutable().on_timeout = job.on_timeout;
    if (job.one_rack) facts.gang.declaration.Mutable().topology = TopologyRule{"rack", "", ""};
    for (int leaf = 0; leaf < job.leaves; ++leaf) {
      facts.gang.declaration.Mutable().subgroups.push_back({absl::StrCat("s", leaf), "", 1, {}, {}});
    }
    if (job.leaves > 0) {
      facts.gang.declaration.Mutable().min_member = job.leaves;
      facts.gang.subgroup = absl::StrCat("s", LeafOf(*body));
    }
    for (const std::string& peer : job.group) facts.gang.declaration.Mutable().groups.push_back("d/" + peer);
    if (!job.queue.empty()) facts.gang.declaration.Mutable().queue = job.queue;
    facts.gang.declaration.Mutable().preemptible = job.preemptible;
  }
  body->facts = std::move(facts);
  Tell(*body);
}

void SmallWorld::Tell(const Body& body) { Apply(UpsertPod{body.facts}); }

bool SmallWorld::Pending(const Body& body) const {
  return body.exists && body.facts.node_name.empty() && body.facts.phase == PodPhase::kPending;
}

void SmallWorld::EnabledOf(size_t index, std::vector<Action>* out) const {
  const Body& body = bodies_[index];
  const auto add = [&](Action::Kind kind) { out->push_back({kind, static_cast<uint8_t>(index)}); };
  if (!body.exists) return;
  const Cast::Driver driver = JobOf(body).driver;
  const bool free = Pending(body) && body.chosen.empty();
  if (free && driver != Cast::Driver::kSubmission && body.parked == Parked::kNo) add(Action::Kind::kAsk);
  if (Pending(body) && !body.chosen.empty() && body.token == 0 && !body.permitted && body.sent_to.empty()) {
    add(Action::Kind::kBind);
  }
  if (body.token != 0) add(Action::Kind::kGiveUp);
  if (!body.sent_to.empty()) {
    for (const Action::Kind kind :
         {Action::Kind::kBound, Action::Kind::kSeenBound, Action::Kind::kRetry, Action::Kind::kRefused}) {
      add(kind);
    }
  }
  if (body.permitted) add(Action::Kind::kPostBind);
  if (cast_.pods_leave && driver != Cast::Driver::kSubmission) {
    add(body.facts.phase == PodPhase::kRunning ? Action::Kind::kFail : Action::Kind::kLeave);
  }
}

std::vector<Action> SmallWorld::Enabled() const {
  std::vector<Action> out;
  if (machine_->PlanningDue()) out.push_back({Action::Kind::kPlan});
  for (size_t i = 0; i < bodies_.size(); ++i) EnabledOf(i, &out);
  for (size_t j = 0; j < cast_.jobs.size(); ++j) {
    if (cast_.jobs[j].driver != Cast::Driver::kSubmission || ended_[j]) continue;
    const auto job = static_cast<uint8_t>(j);
    if (Bound(j) == 0) out.push_back({Action::Kind::kSubmit, job});
    if (plans_[j] != 0) out.push_back({Action::Kind::kConfirm, job});
    if (!submissions_[j].empty()) out.push_back({Action::Kind::kAbandon, job});
  }
  if (cast_.node_leaves) out.push_back({Action::Kind::kNode});
  if (cast_.others) out.push_back({Action::Kind::kQueues});
  if (machine_->NextDeadline() != kNever) out.push_back({Action::Kind::kTime});
  if (cast_.restarts) {
    out.push_back({Action::Kind::kRestart});
    const bool sent = std::any_of(bodies_.begin(), bodies_.end(), [](const Body& b) { return !b.sent_to.empty(); });
    if (sent) out.push_back({Action::Kind::kRestartDone});
  }
  return out;
}

void SmallWorld::Repeat(const Action& action) {
  repeats_ = true;
  Do(action);
  repeats_ = false;
}

void SmallWorld::Do(const Action& action) {
  Body* const body = action.index < bodies_.size() ? &bodies_[action.index] : nullptr;
  switch (action.kind) {
    case Action::Kind::kPlan:
      Apply(PlanRound{1});
      break;
    case Action::Kind::kAsk:
      JobOf(*body).driver == Cast::Driver::kVerbs ? AskVerbs(body) : AskKube(body);
      break;
    case Action::Kind::kBind:
      if (JobOf(*body).driver == Cast::Driver::kVerbs) {
        Permit(body);
      } else {
        body->token = next_token_++;
        Apply(Bind{body->facts.uid, body->chosen, body->token});
      }
      break;
    case Action::Kind::kGiveUp: {
      const HoldToken token = std::exchange(body->token, 0);
      body->chosen.clear();
      Apply(CallerGone{body->facts.uid, token});
      if (JobOf(*body).driver == Cast::Driver::kVerbs)
        Apply(Unreserve{body->facts.uid, UnreserveCause::kPermitTimeout});
      Unpark(/*guarded=*/false);
      break;
    }
    case Action::Kind::kBound:
    case Action::Kind::kSeenBound:
      Answer(body, BindingResult::kBound, action.kind == Action::Kind::kSeenBound);
      break;
    case Action::Kind::kRetry:
      Answer(body, BindingResult::kRetry, false);
      break;
    case Action::Kind::kRefused:
      disturbed_[body->job] = true;
      Answer(body, BindingResult::kRefused, false);
      break;
    case Action::Kind::kPostBind:
      body->permitted = false;
      if (Apply(PostBind{body->facts.uid, body->chosen}).status.ok()) NoteBound(body, body->chosen);
      break;
    case Action::Kind::kLeave:
      Leave(body);
      break;
    case Action::Kind::kFail:
      disturbed_[body->job] = true;
      body->facts.phase = PodPhase::kFailed;
      Tell(*body);
      Unpark(/*guarded=*/true);
      break;
    case Action::Kind::kSubmit:
      Submit(action.index);
      break;
    case Action::Kind::kConfirm:
      Confirm(action.index);
      break;
    case Action::Kind::kAbandon:
      Apply(AbandonGang{std::exchange(submissions_[action.index], "")});
      plans_[action.index] = 0;
      break;
    case Action::Kind::kNode:
      ToggleNode();
      break;
    case Action::Kind::kTime:
      now_ms_ = std::max(now_ms_ + 1, machine_->NextDeadline());
      Apply(Tick{});
      break;
    case Action::Kind::kQueues:
      ChangeQueues();
      break;
    case Action::Kind::kRestart:
    case Action::Kind::kRestartDone:
      Restart(action.kind == Action::Kind::kRestartDone);
      break;
  }
  Check();
}

void SmallWorld::Leave(Body* body) {
  const std::string uid = body->facts.uid;
  disturbed_[body->job] = true;
  body->exists = false;
  body->token = 0;
  body->chosen.clear();
  body->permitted = false;
  body->sent_to.clear();
  body->facts = PodDescription();
  Apply(RemovePod{uid});
  Unpark(/*guarded=*/true);
}

void SmallWorld::ToggleNode() {
  const size_t last = cast_.nodes.size() - 1;
  const std::string name = cast_.nodes[last].first;
  last_node_there_ = !last_node_there_;
  if (last_node_there_) {
    Apply(UpsertNode{NodeOf(last)});
  } else {
    Apply(RemoveNode{name});
    for (Body& body : bodies_) {
      if (body.exists && body.facts.node_name == name) Leave(&body);
    }
  }
  Unpark(/*guarded=*/true);
}

void SmallWorld::Restart(bool done) {
  for (Body& body : bodies_) {
    if (const std::string node = std::exchange(body.sent_to, ""); !node.empty() && done) {
      body.facts.node_name = node;
      body.facts.phase = PodPhase::kRunning;
      body.facts.unschedulable.clear();
      body.chosen.clear();
    }
    const bool held = std::exchange(body.token, 0) != 0;
    if (held || (Pending(body) && JobOf(body).driver == Cast::Driver::kKube)) body.chosen.clear();
    if (body.parked == Parked::kByMuster) continue;
    body.parked = Parked::kNo;
  }
  effects_.clear();
  answers_.clear();
  for (std::string& submission : submissions_) submission.clear();
  std::fill(plans_.begin(), plans_.end(), 0);
  std::vector<Record> records;
  for (const auto& [name, record] : records_) records.push_back(record);
  settings_.queues = Queues();
  machine_ = std::make_unique<Machine>(settings_);
  if (const absl::Status loaded = machine_->Load(records); !loaded.ok()) return Violate(loaded.ToString());
  for (size_t i = 0; i < cast_.nodes.size(); ++i) {
    if (i + 1 < cast_.nodes.size() || last_node_there_) Apply(UpsertNode{NodeOf(i)});
  }
  for (const Body& body : bodies_) {
    if (body.exists) Tell(body);
  }
  Apply(FactsRead{});
}

Outcome SmallWorld::Apply(const Command& command) {
  Outcome outcome;
  machine_->Apply(command, now_ms_, &outcome);
  for (const Record& record : outcome.records) {
    records_[RecordName(record)] = record;
    if (record.value.empty()) records_.erase(RecordName(record));
  }
  for (const Effect& effect : outcome.effects) {
    if (const auto* bind = std::get_if<BindPod>(&effect)) CheckWhole(bind->pod.uid);
  }
  if (!cast_.queues.queues.empty()) NotePlans();
  // Follow-up actions run at once, but never inside the action that caused them.
  const bool first = effects_.empty() && answers_.empty();
  effects_.insert(effects_.end(), outcome.effects.begin(), outcome.effects.end());
  answers_.insert(answers_.end(), outcome.answers.begin(), outcome.answers.end());
  if (!first) return outcome;
  for (size_t e = 0, a = 0; e < effects_.size() || a < answers_.size();) {
    if (a < answers_.size()) {
      const HoldAnswer answer = answers_[a++];
      Answered(answer);
    } else {
      const Effect effect = effects_[e++];
      Carry(effect);
    }
  }
  effects_.clear();
  answers_.clear();
  return outcome;
}

SmallWorld::Body* SmallWorld::Find(const std::string& uid) {
  const auto found = std::find_if(bodies_.begin(), bodies_.end(),
                                  [&](const Body& body) { return body.exists && body.facts.uid == uid; });
  return found == bodies_.end() ? nullptr : &*found;
}

void SmallWorld::Carry(const Effect& effect) {
  if (const auto* bind = std::get_if<BindPod>(&effect)) {
    Body* body = Find(bind->pod.uid);
    if (body == nullptr) return;
    body->sent_to = bind->node;
    body->sent_until_ms = bind->deadline_ms;
  } else if (const auto* call = std::get_if<ActivatePod>(&effect)) {
    Body* body = Find(call->pod.uid);
    if (body == nullptr || !Pending(*body)) return;
    body->parked = Parked::kNo;
    if (call->note.empty() || call->note == body->facts.unschedulable) return;
    body->facts.unschedulable = call->note;
    Tell(*body);
  } else if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) {
    Body* body = Find(mark->pod.uid);
    if (body == nullptr || body->facts.timed_out_mark) return;
    body->facts.timed_out_mark = true;
    Tell(*body);
  } else if (const auto* evict = std::get_if<EvictPod>(&effect)) {
    if (Body* body = Find(evict->pod.uid); body != nullptr) Leave(body);
  }
}

void SmallWorld::Answered(const HoldAnswer& answer) {
  const auto found = std::find_if(bodies_.begin(), bodies_.end(),
                                  [&](const Body& body) { return body.token == answer.token && answer.token != 0; });
  if (found == bodies_.end()) return;
  const bool verbs = JobOf(*found).driver == Cast::Driver::kVerbs;
  found->token = 0;
  if (answer.permitted) {
    found->permitted = verbs;
    return;
  }
  found->chosen.clear();
  if (verbs) Apply(Unreserve{found->facts.uid, UnreserveCause::kRejected});
  Unpark(/*guarded=*/false);
}

}  // namespace muster
