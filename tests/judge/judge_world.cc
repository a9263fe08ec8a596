#include "tests/judge/judge_world.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/judge/peek.h"

namespace muster {
namespace {

class AnyNode : public NodeOffer {
 public:
  explicit AnyNode(std::set<std::string> names) : names_(std::move(names)) {}
  bool Contains(absl::string_view node) const override { return names_.count(std::string(node)) > 0; }
  size_t size() const override { return names_.size(); }

 private:
  std::set<std::string> names_;
};

}  // namespace

JudgeWorld::JudgeWorld(uint64_t seed)
    : random_(seed), settings_(Settings(seed)), machine_(std::make_unique<Machine>(settings_)) {
  for (int i = 0; i < 6; ++i) Apply(UpsertNode{RandomNode(i)});
  Apply(FactsRead{});
}

void JudgeWorld::Step() {
  now_ms_ += Roll(20) == 0 ? Roll(40'000) : Roll(200);
  switch (Roll(22)) {
    case 0:
      Apply(UpsertNode{RandomNode(Roll(6))});
      break;
    case 1:
      if (Roll(8) == 0) Apply(RemoveNode{NodeName(Roll(6))});
      break;
    case 2:
    case 3:
      AddPod();
      break;
    case 4:
      RemoveSomePod();
      break;
    case 5:
      ChangeSomePod();
      break;
    case 6:
      ChangeGangObject();
      break;
    case 7:
    case 8:
    case 9:
      for (int i = 0; i < 8; ++i) FilterSome();
      break;
    case 10:
    case 11:
      for (int i = 0; i < 6; ++i) BindSome();
      break;
    case 12:
      FinishBindings();
      break;
    case 13:
      if (!tokens_.empty()) HangUp();
      break;
    case 14:
      for (int i = 0; i < 4; ++i) PermitSome();
      break;
    case 15:
      Apply(PreFilter{pods_.empty() ? "" : SomeUid()});
      break;
    case 16:
      Roll(2) == 0 ? FindNoNode() : GiveBack();
      break;
    case 19:
      WholeGang();
      break;
    case 18:
      ScheduleGroup();
      break;
    case 17:
      for (int i = 0; i < 4; ++i) BindPermitted();
      break;
    default:
      Apply(Tick{});
      break;
  }
  if (machine_->PlanningDue()) Apply(PlanRound{2});
  if (Roll(4000) == 0) Restart();
  if (Roll(50) == 0) Rare();
}

MachineSettings JudgeWorld::Settings(uint64_t seed) {
  MachineSettings settings;
  settings.max_holds = 24;
  settings.gang.wait_time_ms = 20'000;
  if (seed % 5 == 1) settings.one_priority = true;
  if (seed % 7 == 2) settings.nominate = false;
  if (seed % 6 == 3) settings.cross_namespace_groups = false;
  if (seed % 4 == 2) settings.plan_idle_ms = 5'000;
  if (seed % 4 == 3) settings.max_holds = 8;
  if (seed % 8 == 5) settings.gang.match_policy = MatchPolicy::kWaitingAndRunning;
  settings.max_submissions = 12;
  return settings;
}

NodeDescription JudgeWorld::RandomNode(int i) {
  NodeDescription node;
  node.name = NodeName(i);
  node.unschedulable = Roll(10) == 0;
  node.labels = {{"zone", absl::StrCat("z", Roll(2))}};
  if (Roll(8) == 0) node.taints.push_back({"dedicated", "x", TaintEffect::kNoSchedule});
  node.allocatable = {
      {"cpu", 1000 * (1 + Roll(8))}, {"memory", 1 << 30}, {"pods", 3 + Roll(8)}, {"nvidia.com/gpu", Roll(5)}};
  return node;
}

void JudgeWorld::AddPod() {
  if (pods_.size() >= 48) return RemoveSomePod();
  PodDescription pod;
  pod.uid = absl::StrCat("u", next_uid_++);
  pod.name_space = "d";
  pod.name = absl::StrCat("p", next_uid_);
  pod.created_ms = now_ms_;
  pod.priority = Roll(3);
  pod.scheduler_name = "default-scheduler";
  pod.shape.requests = {{"cpu", 500 * (1 + Roll(3))}};
  if (Roll(3) == 0) pod.shape.requests["nvidia.com/gpu"] = 1;
  if (Roll(6) == 0) pod.shape.node_selector = {{"zone", "z0"}};
  if (Roll(8) == 0) pod.shape.host_ports.push_back({Protocol::kTcp, 80 + Roll(2), "0.0.0.0"});
  pod.our_gate = Roll(4) == 0;
  pod.other_gates = Roll(12) == 0;
  const int gang = Roll(9);
  if (gang < 5) {
    pod.gang.name = absl::StrCat("g", gang);
    pod.gang.declares = true;
    pod.gang.declaration.min_member = 1 + gang;
    if (gang == 4) pod.gang.declaration.on_timeout = OnTimeout::kRequeue;
    if (gang == 3) pod.gang.declaration.on_member_failure = OnMemberFailure::kAll;
    if (gang == 2) pod.gang.declaration.match_policy = static_cast<MatchPolicy>(Roll(4));
  } else if (gang < 8) {
    pod.gang.name = absl::StrCat("g", gang);
    pod.gang.dialect = GangDialect::kPodGroupSigs;
  }
  if (gang == 0) pod.scheduler_name = "mine";
  if (gang == 8 && Roll(3) == 0) {  // an ordinary gang in a group of submitted ones
    pod.gang.name = "w1";
    pod.gang.declares = true;
    pod.gang.declaration.min_member = 1;
    pod.gang.declaration.groups = {"d/w0", "d/w1"};
  }
  if (Roll(12) == 0) {  // it was there before Muster was, in whatever state
    for (int i = Roll(4); i >= 0; --i) ChangeFacts(&pod);
  }
  pods_.emplace(pod.uid, pod);
  Apply(UpsertPod{pod});
}

std::string JudgeWorld::SomeUid() {
  auto it = pods_.begin();
  std::advance(it, Roll(static_cast<int>(pods_.size())));
  return it->first;
}

void JudgeWorld::RemoveSomePod() {
  if (pods_.empty()) return;
  const std::string uid = SomeUid();
  pods_.erase(uid);
  Apply(RemovePod{uid});
}

void JudgeWorld::ChangeSomePod() {
  if (pods_.empty()) return;
  PodDescription& pod = pods_.find(SomeUid())->second;
  pod.node_name = Peek(*machine_, pod.uid).facts.node_name;
  for (int i = Roll(4) == 0 ? 2 : 1; i > 0; --i) ChangeFacts(&pod);  // as a list after a gap: several changes at once
  Apply(UpsertPod{pod});
}

void JudgeWorld::ChangeFacts(PodDescription* pod) {
  const PodPeek known = Peek(*machine_, pod->uid);
  const bool pending = !known.known || known.state == MemberState::kPending;
  switch (Roll(14)) {
    case 0:
      if (!pod->node_name.empty()) pod->phase = PodPhase::kRunning;
      break;
    case 1:
      if (!pod->node_name.empty()) pod->phase = PodPhase::kSucceeded;
      break;
    case 2:
      pod->phase = PodPhase::kFailed;
      break;
    case 3:
      pod->deleting = true;
      break;
    case 4:
      pod->our_gate = false;
      break;
    case 5:
      pod->unschedulable = absl::StrCat("0/6 nodes: ", Roll(3));
      break;
    case 6:
      if (pod->node_name.empty() && (pending || Roll(8) == 0)) pod->node_name = NodeName(Roll(7));
      break;
    case 7:
      if (pod->gang.declares) pod->gang.declaration.min_member = 1 + Roll(4);
      break;
    case 8:
      if (Roll(3) == 0) pod->nominated_node = Roll(2) == 0 ? "" : NodeName(Roll(6));
      break;
    case 9:
      pod->shape.requests["cpu"] = 500 * (1 + Roll(3));
      break;
    case 10:
      if (Roll(4) == 0) pod->gang.name = Roll(3) == 0 ? "" : absl::StrCat(Roll(4) == 0 ? "w" : "g", Roll(5));
      break;
    case 11:
      if (!pod->node_name.empty() && Roll(4) == 0) pod->node_name = NodeName(Roll(7));  // reported otherwise before
      break;
    case 12:
      if (Roll(4) == 0) pod->invalid = pod->invalid.empty() ? "requests: cpu: cannot be read" : "";
      break;
    default:
      if (pending) pod->other_gates = Roll(6) == 0;
      break;
  }
}
void JudgeWorld::ChangeGangObject() {
  GangObject object;
  object.name_space = "d";
  object.name = absl::StrCat("g", 5 + Roll(3));
  object.created_ms = 5;
  object.declaration.min_member = 1 + Roll(3);
  if (Roll(2) == 0) object.declaration.wait_time_ms = 5'000;
  if (object.name != "g7" && Roll(20) != 0) object.declaration.groups = {"d/g5", "d/g6"};
  if (Roll(30) == 0) object.declaration.groups = {"d/g6", "d/g7"};
  if (Roll(10) == 0) {
    objects_.erase(object.name);
    Apply(RemoveGangObject{object.dialect, "d", object.name});
  } else {
    objects_[object.name] = object;
    Apply(UpsertGangObject{object});
  }
}

void JudgeWorld::FilterSome() {
  if (pods_.empty()) return;
  std::set<std::string> names;
  for (int i = 0; i < 6; ++i) {
    if (Roll(5) != 0) names.insert(NodeName(i));
  }
  const std::string uid = SomeUid();
  Outcome outcome = Apply(Filter{uid, std::make_shared<AnyNode>(names)});
  const FilterReply& reply = std::get<FilterReply>(outcome.reply);
  if (reply.kind != FilterReply::Kind::kOneNode) return;
  offered_[uid] = reply.node;
}

void JudgeWorld::BindSome() {
  if (pods_.empty()) return;
  std::string uid = SomeUid();
  if (!offered_.empty() && Roll(4) != 0) {
    auto it = offered_.begin();
    std::advance(it, Roll(static_cast<int>(offered_.size())));
    uid = it->first;
  }
  const auto offer = offered_.find(uid);
  const std::string node = offer != offered_.end() && Roll(10) != 0 ? offer->second : NodeName(Roll(6));
  const HoldToken token = next_token_++;
  tokens_[token] = uid;
  Apply(Bind{uid, node, token});
  offered_.erase(uid);
}

void JudgeWorld::PermitSome() {
  if (pods_.empty()) return;
  const HoldToken token = next_token_++;
  const std::string uid = SomeUid();
  const Outcome outcome = Apply(Permit{uid, NodeName(Roll(6)), token});
  if (std::get<PermitReply>(outcome.reply).kind == PermitReply::Kind::kWait) tokens_[token] = uid;
}

void JudgeWorld::ScheduleGroup() {
  std::set<std::string> names;
  for (int i = 0; i < 6; ++i) names.insert(NodeName(i));
  for (const auto& [uid, pod] : std::map<std::string, PodDescription>(pods_)) {
    if (pod.gang.name != "g5" && pod.gang.name != "g6") continue;
    const Outcome outcome = Apply(Filter{uid, std::make_shared<AnyNode>(names)});
    const FilterReply& reply = std::get<FilterReply>(outcome.reply);
    if (reply.kind != FilterReply::Kind::kOneNode || Roll(12) == 0) continue;
    const HoldToken token = next_token_++;
    tokens_[token] = uid;
    Apply(Bind{uid, reply.node, token});
  }
}

void JudgeWorld::FindNoNode() {
  if (!pods_.empty()) Apply(PostFilter{SomeUid(), "nothing fits"});
}

void JudgeWorld::GiveBack() {
  if (!pods_.empty()) Apply(Unreserve{SomeUid(), static_cast<UnreserveCause>(Roll(3))});
}

void JudgeWorld::BindPermitted() {
  if (pods_.empty()) return;
  const std::string uid = SomeUid();
  const PodPeek pod = Peek(*machine_, uid);
  if (!pod.permitted_by_verbs) return;
  Apply(PostBind{uid, pod.charged_node.empty() || Roll(9) == 0 ? NodeName(0) : pod.charged_node});
}

void JudgeWorld::WholeGang() {
  const std::string id = absl::StrCat("s", Roll(2) == 0 ? next_submission_ : Roll(next_submission_ + 1));
  switch (Roll(7)) {
    case 0:
    case 1:
      SubmitSome();
      break;
    case 2:
      Apply(AskGang{id});
      break;
    case 3:
    case 4: {
      const Outcome asked = Apply(AskGang{id});
      const auto* reply = std::get_if<SubmissionReply>(&asked.reply);
      if (reply == nullptr) break;
      const Outcome outcome = Apply(ConfirmGang{id, reply->plan});
      const auto* confirmed = std::get_if<SubmissionReply>(&outcome.reply);
      if (confirmed != nullptr && confirmed->state == SubmissionReply::State::kConfirmed) NoteConfirmed(*confirmed);
      break;
    }
    case 5:
      Roll(2) == 0 ? HurtSubmission() : void(Apply(AbandonGang{id}));
      break;
    default:
      AnnounceStep();
      break;
  }
}

void JudgeWorld::SubmitSome() {
  SubmitGang submit;
  submit.id = absl::StrCat("s", ++next_submission_);
  submit.name_space = "d";
  submit.name = absl::StrCat("w", Roll(4));
  submit.declaration.min_member = 1 + Roll(4);
  if (Roll(3) == 0) submit.declaration.groups = {"d/w0", "d/w1"};
  submit.ttl_ms = 500 + Roll(20'000);
  for (int i = 0; i < *submit.declaration.min_member + Roll(2); ++i) {
    PodDescription& pod = submit.pods.emplace_back();
    pod.uid = absl::StrCat("u", next_uid_++);
    pod.name = absl::StrCat("p", next_uid_);
    pod.priority = Roll(3);
    pod.shape.requests = {{"cpu", 500 * (1 + Roll(3))}};
  }
  Apply(submit);
}

void JudgeWorld::HurtSubmission() {
  const std::vector<std::string> uids = SubmittedUids(*machine_);
  if (uids.empty()) return;
  const std::string uid = uids[static_cast<size_t>(Roll(static_cast<int>(uids.size())))];
  PodDescription pod = Peek(*machine_, uid).facts;
  switch (Roll(4)) {
    case 0:
      pod.phase = PodPhase::kFailed;
      break;
    case 1:
      pod.shape.requests = {{"cpu", 700}};
      break;
    default:
      Apply(RemovePod{uid});
      return;
  }
  Apply(UpsertPod{pod});
}

void JudgeWorld::NoteConfirmed(const SubmissionReply& reply) {
  for (const SubmissionReply::Place& place : reply.places) {
    const PodPeek pod = Peek(*machine_, place.uid);
    if (pod.known) pods_.emplace(place.uid, pod.facts);
  }
}

void JudgeWorld::AnnounceStep() {
  UpdateFacts update;
  update.step = {"test", facts_version_ + Roll(3)};
  update.nodes.push_back(RandomNode(Roll(6)));
  if (!pods_.empty() && Roll(3) == 0) update.removed_pods.push_back(SomeUid());
  const Outcome outcome = Apply(update);
  if (!outcome.status.ok()) {
    ReplaceFacts all;
    all.step = {"test", ++facts_version_};
    for (int i = 0; i < 6; ++i) {
      if (Roll(8) != 0) all.nodes.push_back(RandomNode(i));
    }
    for (auto it = pods_.begin(); it != pods_.end();) {  // what the snapshot does not tell is gone
      const bool told = Roll(16) != 0;
      if (told) all.pods.push_back(Peek(*machine_, it->first).facts);
      it = told ? std::next(it) : pods_.erase(it);
    }
    Apply(all);
    return;
  }
  if (update.step.version != 0 && update.step.version <= facts_version_) return;  // known already
  facts_version_ = std::get<FactsReply>(outcome.reply).version;
  for (const std::string& uid : update.removed_pods) pods_.erase(uid);
}

void JudgeWorld::HangUp() {
  auto it = tokens_.begin();
  std::advance(it, Roll(static_cast<int>(tokens_.size())));
  Apply(EndHold{it->second, it->first});
}

void JudgeWorld::FinishBindings() {
  const std::vector<std::pair<std::string, std::string>> todo(bindings_.begin(), bindings_.end());
  for (const auto& [uid, node] : todo) {
    if (Roll(3) == 0) continue;
    bindings_.erase(uid);
    const BindingResult result = Roll(8) == 0   ? BindingResult::kRefused
                                 : Roll(8) == 0 ? BindingResult::kRetry
                                                : BindingResult::kBound;
    Apply(BindingOutcome{uid, node, result, "said so"});
  }
}

void JudgeWorld::Rare() {
  switch (Roll(5)) {
    case 0:
      Apply(Shutdown{});
      break;
    case 1: {
      Preempt preempt{pods_.empty() ? "" : SomeUid(), {}};
      for (int i = 0; i < 4; ++i) {
        PreemptCandidate& candidate = preempt.candidates.emplace_back();
        candidate.node = NodeName(i);
        for (int k = Roll(3); k > 0 && !pods_.empty(); --k) candidate.victim_uids.push_back(SomeUid());
      }
      Apply(preempt);
      break;
    }
    case 2:
    case 3: {
      FindNodes find{pods_.empty() ? "" : SomeUid(), {}};
      for (int i = Roll(4); i > 0; --i) find.offered.push_back(NodeName(Roll(7)));
      Apply(find);
      break;
    }
    default:
      Apply(Filter{absl::StrCat("u", next_uid_), std::make_shared<AnyNode>(std::set<std::string>{"n1"})});
      break;
  }
}

void JudgeWorld::Restart() {
  std::vector<Record> records;
  for (const auto& [key, value] : records_) records.push_back({key, value});
  std::map<std::string, PodDescription> facts;
  for (const auto& [uid, pod] : pods_) facts[uid] = Peek(*machine_, uid).facts;
  machine_ = std::make_unique<Machine>(settings_);
  Note(absl::StrCat("restart: ", machine_->Load(records).ToString(), "\n"));
  offered_.clear();
  bindings_.clear();
  tokens_.clear();
  facts_version_ = 0;
  for (int i = 0; i < 6; ++i) Apply(UpsertNode{RandomNode(i)});
  for (const auto& [name, object] : objects_) Apply(UpsertGangObject{object});
  int some = 0;
  for (const auto& [uid, pod] : facts) {
    if (some++ % 3 == 0) Apply(UpsertPod{pod});
  }
  for (int i = 0; i < 4; ++i) FilterKnown();
  for (const auto& [uid, pod] : facts) Apply(UpsertPod{pod});
  Apply(FactsRead{});
}

void JudgeWorld::FilterKnown() {
  const std::string uid = pods_.empty() ? "x" : SomeUid();
  Apply(Filter{uid, std::make_shared<AnyNode>(std::set<std::string>{"n0", "n1", "n2"})});
}

Outcome JudgeWorld::Apply(const Command& command) {
  Outcome outcome;
  ++commands_;
  machine_->Apply(command, now_ms_, &outcome);
  for (const Record& record : outcome.records) {
    if (record.value.empty()) {
      records_.erase(record.key);
    } else {
      records_[record.key] = record.value;
    }
  }
  for (const HoldAnswer& answer : outcome.answers) tokens_.erase(answer.token);
  for (const Effect& effect : outcome.effects) {
    if (const auto* bind = std::get_if<BindPod>(&effect)) bindings_[bind->pod.uid] = bind->node;
    if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) {
      if (pods_.count(mark->pod.uid) > 0) pods_.find(mark->pod.uid)->second.timed_out_mark = true;
    }
  }
  if (const absl::Status ok = machine_->CheckInvariants(); !ok.ok()) {
    std::printf("INVARIANT %s\n", ok.ToString().c_str());
    std::exit(1);
  }
  Note(absl::StrCat("command ", command.index(), " at ", now_ms_, "\n", Print(outcome), ChangedViews(machine_.get()),
                    "due ", machine_->PlanningDue(), " held ", machine_->held_binds(), " promised ",
                    machine_->promised_holds(), "\n"));
  return outcome;
}

void JudgeWorld::Note(const std::string& text) {
  for (const char c : text) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  if (trace_) std::fputs(text.c_str(), stdout);
}

void JudgeWorld::Trace(long step) {
  trace_ = true;
  std::printf("--- step %ld\n", step);
}

uint64_t JudgeWorld::Digest() {
  Note(AllViews(*machine_));
  return digest_;
}

}  // namespace muster
