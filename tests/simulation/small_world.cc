#include "tests/simulation/small_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/muster/store/v1/records.pb.h"
#include "state/base/hash.h"

namespace muster {
namespace {

constexpr char kNoNodeFits[] = "0 nodes are available";

}  // namespace

std::string ToString(const Action& action, const Cast& cast) {
  static constexpr const char* kNames[] = {"plan",    "ask",     "bind",      "give-up", "bound",   "seen-bound",
                                           "retry",   "refuse",  "post-bind", "leave",   "fail",    "submit",
                                           "confirm", "abandon", "node",      "time",    "restart", "restart-done"};
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
    case Action::Kind::kRestart:
    case Action::Kind::kRestartDone:
      return out;
    case Action::Kind::kSubmit:
    case Action::Kind::kConfirm:
    case Action::Kind::kAbandon:
      return absl::StrCat(out, " ", jobs[action.who]);
    default:
      return absl::StrCat(out, " ", pods[action.who]);
  }
}

SmallWorld::SmallWorld(const Cast& cast, int64_t start_ms)
    : cast_(cast),
      now_ms_(start_ms),
      submissions_(cast.jobs.size()),
      plans_(cast.jobs.size(), 0),
      submitted_(cast.jobs.size(), 0),
      ended_(cast.jobs.size(), false),
      disturbed_(cast.jobs.size(), false) {
  settings_.gang.wait_time_ms = 30'000;
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
  NodeDescription node;
  node.name = cast_.nodes[index].first;
  node.allocatable = {{"cpu", cast_.nodes[index].second}, {"pods", 10}};
  return node;
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
  PodDescription facts;
  facts.name = absl::StrCat(job.name, "-", body->member);
  facts.uid = absl::StrCat(facts.name, "#", body->lives);
  facts.name_space = "d";
  facts.created_ms = now_ms_;
  facts.priority = job.priority;
  facts.scheduler_name = job.driver == Cast::Driver::kVerbs ? "mine" : "default-scheduler";
  facts.shape.requests = {{"cpu", job.cpu}};
  if (job.port > 0) facts.shape.host_ports = {{Protocol::kTcp, job.port, "0.0.0.0"}};
  if (job.min > 0) {
    facts.gang.name = job.name;
    facts.gang.declares = true;
    facts.gang.declaration.min_member = job.min;
    facts.gang.declaration.on_timeout = job.on_timeout;
    for (const std::string& mate : job.group) facts.gang.declaration.groups.push_back("d/" + mate);
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
  if (machine_->NextDeadline() != kNever) out.push_back({Action::Kind::kTime});
  if (cast_.restarts) {
    out.push_back({Action::Kind::kRestart});
    const bool sent = std::any_of(bodies_.begin(), bodies_.end(), [](const Body& b) { return !b.sent_to.empty(); });
    if (sent) out.push_back({Action::Kind::kRestartDone});
  }
  return out;
}

void SmallWorld::Do(const Action& action) {
  Body* const body = action.who < bodies_.size() ? &bodies_[action.who] : nullptr;
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
      Apply(EndHold{body->facts.uid, token});
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
      Submit(action.who);
      break;
    case Action::Kind::kConfirm:
      Confirm(action.who);
      break;
    case Action::Kind::kAbandon:
      Apply(AbandonGang{std::exchange(submissions_[action.who], "")});
      plans_[action.who] = 0;
      break;
    case Action::Kind::kNode:
      ToggleNode();
      break;
    case Action::Kind::kTime:
      now_ms_ = std::max(now_ms_ + 1, machine_->NextDeadline());
      Apply(Tick{});
      break;
    case Action::Kind::kRestart:
    case Action::Kind::kRestartDone:
      Restart(action.kind == Action::Kind::kRestartDone);
      break;
  }
  Check();
}

// kube-scheduler's own filters: what it knows to be there or assumes.
std::vector<std::string> SmallWorld::Offered(const Body& body) const {
  std::vector<std::string> out;
  for (size_t i = 0; i < cast_.nodes.size(); ++i) {
    if (i + 1 == cast_.nodes.size() && !last_node_there_) continue;
    const auto& [name, cpu] = cast_.nodes[i];
    int64_t free = cpu;
    bool port_taken = false;
    for (const Body& other : bodies_) {
      const bool over = other.facts.phase == PodPhase::kFailed;
      if (!other.exists || over || &other == &body) continue;
      if (other.facts.node_name != name && (!other.facts.node_name.empty() || other.chosen != name)) continue;
      free -= JobOf(other).cpu;
      port_taken = port_taken || (JobOf(body).port > 0 && JobOf(other).port == JobOf(body).port);
    }
    if (free >= JobOf(body).cpu && !port_taken) out.push_back(name);
  }
  return out;
}

void SmallWorld::Park(Body* body, Parked by, const std::string& why) {
  body->parked = by;
  const std::string message = by == Parked::kByKube ? kNoNodeFits : absl::StrCat("0 nodes: muster: ", why);
  if (message == body->facts.unschedulable) return;
  body->facts.unschedulable = message;
  Tell(*body);
}

void SmallWorld::AskKube(Body* body) {
  std::vector<std::string> offered = Offered(*body);
  if (offered.empty()) return Park(body, Parked::kByKube, "");
  const Outcome outcome = Apply(Filter{body->facts.uid, std::make_shared<NodeOffer>(offered)});
  const FilterReply& reply = std::get<FilterReply>(outcome.reply);
  if (reply.kind == FilterReply::Kind::kRefuse) return Park(body, Parked::kByMuster, reply.reason.text);
  if (reply.kind == FilterReply::Kind::kOneNode) {
    if (std::find(offered.begin(), offered.end(), reply.node) == offered.end()) {
      return Violate(absl::StrCat("K-6: node ", reply.node, " was not offered to ", body->facts.uid));
    }
    body->chosen = reply.node;
    return;
  }
  for (const std::string& name : offered) {
    if (std::find(reply.guarded.begin(), reply.guarded.end(), name) != reply.guarded.end()) continue;
    body->chosen = name;
    return;
  }
  Park(body, Parked::kByGuard, reply.reason.text);
}

void SmallWorld::AskVerbs(Body* body) {
  const Outcome pre = Apply(PreFilter{body->facts.uid});
  if (!std::get<PreFilterReply>(pre.reply).passes) return;
  const Outcome found = Apply(FindNodes{body->facts.uid, {}});
  const auto* nodes = std::get_if<NodesReply>(&found.reply);
  if (nodes == nullptr || nodes->nodes.empty()) {
    Apply(PostFilter{body->facts.uid, "none"});
  } else {
    body->chosen = nodes->nodes.front().node;
  }
}

void SmallWorld::Permit(Body* body) {
  const HoldToken token = next_token_++;
  body->token = token;
  const Outcome outcome = Apply(muster::Permit{body->facts.uid, body->chosen, token});
  const PermitReply& reply = std::get<PermitReply>(outcome.reply);
  if (reply.kind == PermitReply::Kind::kWait || body->token != token) return;
  body->token = 0;
  if (reply.kind == PermitReply::Kind::kPermit) {
    body->permitted = true;
    return;
  }
  body->chosen.clear();
  Apply(Unreserve{body->facts.uid, UnreserveCause::kRejected});
}

void SmallWorld::NoteBound(Body* body, const std::string& node) {
  body->facts.node_name = node;
  body->facts.phase = PodPhase::kRunning;
  body->facts.unschedulable.clear();
  body->chosen.clear();
  body->permitted = false;
  Tell(*body);
}

void SmallWorld::Answer(Body* body, BindingResult result, bool seen_first) {
  const std::string node = std::exchange(body->sent_to, "");
  if (result == BindingResult::kBound && seen_first) NoteBound(body, node);
  Apply(BindingOutcome{body->facts.uid, node, result, result == BindingResult::kBound ? "" : "no"});
  if (result == BindingResult::kBound && !seen_first) NoteBound(body, node);
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

void SmallWorld::Unpark(bool guarded) {
  for (Body& body : bodies_) {
    if (body.parked == Parked::kByKube || (guarded && body.parked == Parked::kByGuard)) body.parked = Parked::kNo;
  }
}

void SmallWorld::Submit(size_t job) {
  if (submissions_[job].empty()) {
    SubmitGang submit;
    submit.id = absl::StrCat(cast_.jobs[job].name, "#", ++submitted_[job]);
    submit.name_space = "d";
    submit.name = cast_.jobs[job].name;
    submit.declaration.min_member = cast_.jobs[job].min;
    submit.ttl_ms = 10'000;
    for (const std::string& mate : cast_.jobs[job].group) submit.declaration.groups.push_back("d/" + mate);
    for (Body& body : bodies_) {
      if (body.job != job) continue;
      PodDescription& pod = submit.pods.emplace_back();
      pod.name = absl::StrCat(cast_.jobs[job].name, "-", body.member);
      pod.uid = absl::StrCat(pod.name, "#", ++body.lives);
      pod.shape.requests = {{"cpu", cast_.jobs[job].cpu}};
      pod.priority = cast_.jobs[job].priority;
    }
    const Outcome outcome = Apply(submit);
    if (!outcome.status.ok()) return;
    submissions_[job] = submit.id;
  }
  const Outcome outcome = Apply(AskGang{submissions_[job]});
  const auto* reply = std::get_if<SubmissionReply>(&outcome.reply);
  const bool planned = reply != nullptr && reply->state == SubmissionReply::State::kPlanned;
  const bool waits = reply != nullptr && reply->state == SubmissionReply::State::kWaiting;
  plans_[job] = planned ? reply->plan : 0;
  if (!planned && !waits) submissions_[job].clear();
}

void SmallWorld::Confirm(size_t job) {
  const Outcome outcome = Apply(ConfirmGang{submissions_[job], std::exchange(plans_[job], 0)});
  const auto* reply = std::get_if<SubmissionReply>(&outcome.reply);
  if (reply == nullptr || reply->state != SubmissionReply::State::kConfirmed) return;
  for (const SubmissionReply::Place& place : reply->places) {
    for (Body& body : bodies_) {
      if (body.job != job || place.name != absl::StrCat(cast_.jobs[job].name, "-", body.member)) continue;
      body.exists = true;
      body.facts = machine_->FindPod(place.uid)->facts;
      NoteBound(&body, place.node);
    }
  }
  submissions_[job].clear();
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
  // What follows is done at once, but never within what it follows from.
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
  } else if (const auto* call = std::get_if<CallPod>(&effect)) {
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

void SmallWorld::Violate(const std::string& text) {
  if (violation_.empty()) violation_ = text;
}

// K-13: a pod of a gang that was never whole is bound with all of its minimum, or not at all.
void SmallWorld::CheckWhole(const std::string& uid) {
  const Pod* pod = machine_->FindPod(uid);
  if (pod == nullptr || pod->gang == nullptr || pod->gang->rules.min_member <= 0) return;
  if (machine_->bindings().Of(*pod).attempts > 1 || whole_.count(pod->gang->name) > 0) return;
  for (const Gang* each : {pod->gang}) {
    if (each->active() + each->count(MemberState::kSucceeded) >= each->rules.min_member) continue;
    Violate(absl::StrCat("K-13: pod ", uid, " is bound although its gang has ", each->active(), " of ",
                         each->rules.min_member));
  }
}

void SmallWorld::Check() {
  if (const absl::Status ok = machine_->CheckInvariants(); !ok.ok()) Violate(std::string(ok.message()));
  for (const auto& [node, free] : FreeInApi()) {
    if (free < 0) Violate(absl::StrCat("node ", node, " is given to more pods than it carries"));
  }
  std::map<std::string, int> running;
  for (const Body& body : bodies_) {
    if (body.exists && body.facts.phase == PodPhase::kRunning) ++running[JobOf(body).name];
  }
  for (const Cast::Job& job : cast_.jobs) {
    if (job.min > 0 && running[job.name] >= job.min) whole_.insert(job.name);
    if (running[job.name] == 0) whole_.erase(job.name);
  }
}

std::map<std::string, int64_t> SmallWorld::FreeInApi() const {
  std::map<std::string, int64_t> free;
  for (size_t i = 0; i < cast_.nodes.size(); ++i) {
    if (i + 1 < cast_.nodes.size() || last_node_there_) free.insert(cast_.nodes[i]);
  }
  for (const Body& body : bodies_) {
    if (!body.exists || body.facts.phase != PodPhase::kRunning) continue;
    if (const auto at = free.find(body.facts.node_name); at != free.end()) at->second -= JobOf(body).cpu;
  }
  return free;
}

// Records name plans and times: they are read, so that these can be told apart from what matters.
void SmallWorld::AddRecords(StateHasher* hasher) const {
  for (const auto& [name, record] : records_) {
    if (record.kind == "plans") continue;  // which numbers may have been given
    hasher->Add(record.kind);
    hasher->Add(record.incarnation);
    if (record.kind == "start") {
      store::v1::StartRecord start;
      start.ParseFromString(record.value);
      hasher->AddGiven(StateHasher::Given::kPlan, std::stoll(record.key));
      for (const std::string& gang : start.gangs()) hasher->Add(gang);
      for (const auto& place : start.places()) {
        hasher->Add(place.uid());
        hasher->Add(place.node());
      }
      hasher->AddTime(start.deadline_ms());
    } else if (record.kind == "commit") {
      store::v1::CommitRecord commit;
      commit.ParseFromString(record.value);
      hasher->Add(record.key);
      hasher->Add(commit.node());
      hasher->AddGiven(StateHasher::Given::kPlan, commit.start());
      hasher->Add(commit.permitted());
    } else {
      hasher->Add(record.key);
      hasher->Add(record.value);
    }
  }
}

uint64_t SmallWorld::Canonical() const {
  StateHasher hasher(now_ms_);
  hasher.Add(machine_->CanonicalHash());
  AddRecords(&hasher);
  hasher.Add(last_node_there_);
  for (const Body& body : bodies_) {
    hasher.Add(body.exists);
    hasher.Add(body.lives);
    hasher.Add(static_cast<int>(body.parked));
    hasher.Add(body.chosen);
    hasher.Add(body.token != 0);
    hasher.Add(body.permitted);
    hasher.Add(body.sent_to);
    if (!body.sent_to.empty()) hasher.AddTime(body.sent_until_ms);
    hasher.Add(body.facts.node_name);
    hasher.Add(static_cast<int>(body.facts.phase));
    hasher.Add(body.facts.timed_out_mark);
    hasher.Add(body.facts.unschedulable);
  }
  for (size_t j = 0; j < cast_.jobs.size(); ++j) {
    hasher.Add(submissions_[j]);
    hasher.Add(plans_[j] != 0);
    hasher.Add(submitted_[j]);
    hasher.Add(static_cast<bool>(disturbed_[j]));
  }
  for (const std::string& gang : whole_) hasher.Add(gang);
  return hasher.value();
}

}  // namespace muster
