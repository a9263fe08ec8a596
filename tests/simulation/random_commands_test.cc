// Random commands against the machine: after each one every invariant is recomputed (SPEC P-1, P-6, Q-7, G-4, G-10).
//
// The same seed gives the same hash; what the store would hold restores the same durable state. A failure prints the
// command line that replays it: MUSTER_SEED=n MUSTER_STEPS=n random_commands_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "state/machine/machine.h"
#include "state/placement/statement.h"

namespace muster {
namespace {

constexpr int kSeeds = 20;
constexpr int kSteps = 100'000;

class AnyNode : public NodeOffer {
 public:
  explicit AnyNode(std::set<std::string> names) : names_(std::move(names)) {}
  bool Contains(absl::string_view node) const override { return names_.count(std::string(node)) > 0; }
  size_t size() const override { return names_.size(); }

 private:
  std::set<std::string> names_;
};

int FromEnv(const char* name, int otherwise) {
  int value = 0;
  const char* text = std::getenv(name);
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

// A small world in which everything happens to everything: 6 nodes, 8 gangs, some 40 pods.
class RandomWorld {
 public:
  explicit RandomWorld(uint64_t seed) : random_(seed), machine_(Settings()) {
    for (int i = 0; i < 6; ++i) Apply(UpsertNode{RandomNode(i)});
    Apply(FactsRead{});
  }

  void Step() {
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
    if (machine_.PlanningDue()) Plan();
  }

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const std::map<std::string, std::string>& records() const { return records_; }
  [[nodiscard]] int rounds_without_plan() const { return rounds_without_plan_; }
  [[nodiscard]] int groups_started() const { return groups_started_; }
  [[nodiscard]] int commits() const { return commits_; }
  [[nodiscard]] int confirmed() const { return confirmed_; }
  [[nodiscard]] const std::string& violation() const { return violation_; }

  // What the store holds, loaded into a new machine and given the facts that users own, has the same durable hash
  // (S-2).
  [[nodiscard]] std::string RestoreDiffers() const {
    std::vector<Record> records;
    for (const auto& [key, value] : records_) records.push_back({key, value});
    Machine other(Settings());
    if (const absl::Status loaded = other.Load(records); !loaded.ok()) return std::string(loaded.message());
    // Before the facts are complete nothing is settled: the gangs are there as they were promised.
    Outcome outcome;
    for (const auto& [key, object] : objects_) other.Apply(UpsertGangObject{object}, now_ms_, &outcome);
    for (const auto& [uid, pod] : pods_) {
      other.Apply(UpsertPod{machine_.FindPod(uid)->facts}, now_ms_, &outcome);
    }
    // Submitted gangs are their callers' to submit again; the records of theirs are compared all the same.
    machine_.ForEachGang([&](const Gang& gang) {
      for (const MemberSet& set : gang.members) {
        for (const Pod* pod : set) {
          if (pods_.count(pod->facts.uid) == 0) other.Apply(UpsertPod{pod->facts}, now_ms_, &outcome);
        }
      }
    });
    if (other.DurableHash() == machine_.DurableHash()) return "";
    return "the durable state is restored otherwise";
  }

 private:
  static MachineSettings Settings() {
    MachineSettings settings;
    settings.max_holds = 24;
    settings.gang.wait_time_ms = 20'000;
    return settings;
  }
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
  static std::string NodeName(int i) { return absl::StrCat("n", i); }

  NodeDescription RandomNode(int i) {
    NodeDescription node;
    node.name = NodeName(i);
    node.unschedulable = Roll(10) == 0;
    node.labels = {{"zone", absl::StrCat("z", Roll(2))}};
    if (Roll(8) == 0) node.taints.push_back({"dedicated", "x", TaintEffect::kNoSchedule});
    node.allocatable = {
        {"cpu", 1000 * (1 + Roll(8))}, {"memory", 1 << 30}, {"pods", 3 + Roll(8)}, {"nvidia.com/gpu", Roll(5)}};
    return node;
  }

  void AddPod() {
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
    pods_.emplace(pod.uid, pod);
    Apply(UpsertPod{pod});
  }

  std::string SomeUid() {
    auto it = pods_.begin();
    std::advance(it, Roll(static_cast<int>(pods_.size())));
    return it->first;
  }
  void RemoveSomePod() {
    if (pods_.empty()) return;
    const std::string uid = SomeUid();
    pods_.erase(uid);
    Apply(RemovePod{uid});
  }
  void ChangeSomePod() {
    if (pods_.empty()) return;
    const std::string uid = SomeUid();
    PodDescription& pod = pods_.find(uid)->second;
    const Pod* known = machine_.FindPod(uid);
    pod.node_name = known->facts.node_name;
    switch (Roll(9)) {
      case 0:
        if (!pod.node_name.empty()) pod.phase = PodPhase::kRunning;
        break;
      case 1:
        if (!pod.node_name.empty()) pod.phase = PodPhase::kSucceeded;
        break;
      case 2:
        pod.phase = PodPhase::kFailed;
        break;
      case 3:
        pod.deleting = true;
        break;
      case 4:
        pod.our_gate = false;
        break;
      case 5:
        pod.unschedulable = absl::StrCat("0/6 nodes: ", Roll(3));
        break;
      case 6:
        if (pod.node_name.empty() && known->state == MemberState::kPending) pod.node_name = NodeName(Roll(7));
        break;
      case 7:
        if (pod.gang.declares) pod.gang.declaration.min_member = 1 + Roll(4);
        break;
      default:
        if (Roll(6) != 0) break;
        pod.nominated_node = Roll(2) == 0 ? "" : NodeName(Roll(6));
        break;
    }
    Apply(UpsertPod{pod});
  }
  void ChangeGangObject() {
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
  void FilterSome() {
    if (pods_.empty()) return;
    std::set<std::string> names;
    for (int i = 0; i < 6; ++i) {
      if (Roll(5) != 0) names.insert(NodeName(i));
    }
    const std::string uid = SomeUid();
    Outcome outcome = Apply(Filter{uid, std::make_shared<AnyNode>(names)});
    const FilterReply& reply = std::get<FilterReply>(outcome.reply);
    if (reply.kind != FilterReply::Kind::kOneNode) return;
    if (names.count(reply.node) == 0) violation_ = "filter answered a node that was not offered";
    offered_[uid] = reply.node;
  }
  void BindSome() {
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
  void PermitSome() {
    if (pods_.empty()) return;
    const HoldToken token = next_token_++;
    const std::string uid = SomeUid();
    const Outcome outcome = Apply(Permit{uid, NodeName(Roll(6)), token});
    if (std::get<PermitReply>(outcome.reply).kind == PermitReply::Kind::kWait) tokens_[token] = uid;
  }
  // As kube-scheduler goes through its queue: every member of gangs g5 and g6 that may come, one after the other.
  void ScheduleGroup() {
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
  void FindNoNode() {
    if (!pods_.empty()) Apply(PostFilter{SomeUid(), "nothing fits"});
  }
  void GiveBack() {
    if (!pods_.empty()) Apply(Unreserve{SomeUid(), static_cast<UnreserveCause>(Roll(3))});
  }
  // A caller of the verbs binds what it was permitted to.
  void BindPermitted() {
    if (pods_.empty()) return;
    const std::string uid = SomeUid();
    const Pod* pod = machine_.FindPod(uid);
    if (pod->state != MemberState::kCommitted || pod->binding.phase != BindingPhase::kNone) return;
    Apply(PostBind{uid,
                   pod->charged_node == kNoNode ? NodeName(0) : machine_.cluster().node(pod->charged_node).facts.name});
  }
  // A caller without a scheduler: submits gangs, confirms, abandons or forgets them, and reports facts in steps.
  void WholeGang() {
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
  void SubmitSome() {
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
    const Outcome outcome = Apply(submit);
    if (outcome.status.ok()) return;
    for (const PodDescription& pod : submit.pods) {
      if (machine_.FindPod(pod.uid) != nullptr) violation_ = "a refused submission left a pod behind";
    }
  }
  // A member of a gang that is not confirmed fails, is removed, or changes.
  void HurtSubmission() {
    std::vector<std::string> uids;
    machine_.ForEachGang([&](const Gang& gang) {
      if (gang.submission == nullptr) return;
      for (const MemberSet& set : gang.members) {
        for (const Pod* pod : set) {
          if (pod->submitted) uids.push_back(pod->facts.uid);
        }
      }
    });
    if (uids.empty()) return;
    const std::string uid = uids[static_cast<size_t>(Roll(static_cast<int>(uids.size())))];
    PodDescription pod = machine_.FindPod(uid)->facts;
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
  // Confirmed pods are facts like others from now on: they are changed, removed and restored with them.
  void NoteConfirmed(const SubmissionReply& reply) {
    for (const SubmissionReply::Place& place : reply.places) {
      const Pod* pod = machine_.FindPod(place.uid);
      if (pod == nullptr) continue;
      ++confirmed_;
      if (pod->state == MemberState::kPending) violation_ = "a confirmed pod has no node";
      pods_.emplace(place.uid, pod->facts);
    }
  }
  void AnnounceStep() {
    UpdateFacts update;
    update.step = {"test", facts_version_ + Roll(3)};
    update.nodes.push_back(RandomNode(Roll(6)));
    if (!pods_.empty() && Roll(3) == 0) update.removed_pods.push_back(SomeUid());
    const uint64_t before = machine_.Hash();
    const Outcome outcome = Apply(update);
    if (!outcome.status.ok()) {
      if (machine_.Hash() != before) violation_ = "a refused step changed something";
      ReplaceFacts all;
      all.step = {"test", ++facts_version_};
      for (int i = 0; i < 6; ++i) all.nodes.push_back(RandomNode(i));
      for (const auto& [uid, pod] : pods_) all.pods.push_back(machine_.FindPod(uid)->facts);
      Apply(all);
      return;
    }
    if (update.step.version != 0 && update.step.version <= facts_version_) return;  // known already
    facts_version_ = std::get<FactsReply>(outcome.reply).version;
    for (const std::string& uid : update.removed_pods) pods_.erase(uid);
  }
  void HangUp() {
    auto it = tokens_.begin();
    std::advance(it, Roll(static_cast<int>(tokens_.size())));
    Apply(EndHold{it->second, it->first});
  }
  void FinishBindings() {
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

  // A round of planning that promises nothing leaves the cluster exactly as it was (P-1): everything was rolled back.
  // Nominated pods are left aside: a round may find room for one of them.
  void Plan() {
    const bool nominated = std::any_of(pods_.begin(), pods_.end(), [](const auto& entry) {
      return !entry.second.gang.in_gang() && !entry.second.nominated_node.empty();
    });
    const int64_t plans = Plans();
    const uint64_t before = ClusterHash();
    Apply(PlanRound{2});
    if (nominated || Plans() != plans) return;
    ++rounds_without_plan_;
    if (ClusterHash() != before) violation_ = "a round of planning that promised nothing changed the cluster";
  }
  [[nodiscard]] int64_t Plans() const {
    int64_t newest = 0;
    machine_.ForEachGang([&](const Gang& gang) {
      if (gang.plan != nullptr) newest = std::max(newest, gang.plan->id);
    });
    return newest;
  }
  [[nodiscard]] uint64_t ClusterHash() const {
    StateHasher hasher;
    machine_.cluster().Hash(&hasher);
    return hasher.value();
  }

  Outcome Apply(const Command& command) {
    Outcome outcome;
    machine_.Apply(command, now_ms_, &outcome);
    for (const Record& record : outcome.records) {
      if (record.value.empty()) {
        records_.erase(record.key);
      } else {
        records_[record.key] = record.value;
      }
    }
    std::set<HoldToken> once;
    for (const HoldAnswer& answer : outcome.answers) {
      tokens_.erase(answer.token);
      if (!once.insert(answer.token).second) violation_ = absl::StrCat("token ", answer.token, " was answered twice");
    }
    for (const Effect& effect : outcome.effects) {
      if (const auto* bind = std::get_if<BindPod>(&effect)) {
        bindings_[bind->pod.uid] = bind->node;
        ++commits_;
        CheckWholeGang(bind->pod.uid);
      }
      if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) {
        if (pods_.count(mark->pod.uid) > 0) pods_.find(mark->pod.uid)->second.timed_out_mark = true;
      }
    }
    CheckWholeGroups();
    if (const absl::Status ok = machine_.CheckInvariants(); !ok.ok() && violation_.empty())
      violation_ = std::string(ok.message());
    return outcome;
  }
  // No member may be bound unless its gang is satisfied: the quorum, all of it, was permitted in the same step.
  void CheckWholeGang(const std::string& uid) {
    const Pod* pod = machine_.FindPod(uid);
    if (pod == nullptr || pod->gang == nullptr || pod->gang->rules.min_member <= 0) return;
    if (pod->binding.attempts > 1) return;  // decided earlier, sent again; its gang's minimum may have grown since
    const Gang& gang = *pod->gang;
    if (!gang.satisfied && gang.active() + gang.count(MemberState::kSucceeded) < gang.rules.min_member) {
      violation_ = absl::StrCat("pod ", uid, " is bound although its gang ", gang.key, " has ", gang.active(), " of ",
                                gang.rules.min_member);
    }
  }
  // D-10: when a gang becomes satisfied, so is every gang of its group, in the same step or before.
  void CheckWholeGroups() {
    std::set<std::string> satisfied;
    machine_.ForEachGang([&](const Gang& gang) {
      if (!gang.satisfied) return;
      satisfied.insert(gang.key);
      if (satisfied_before_.count(gang.key) > 0) return;
      for (const std::string& id : gang.rules.group) {
        const Gang* mate = machine_.FindGang(id);
        if (mate == nullptr || mate->rules.group != gang.rules.group) return;
      }
      for (const std::string& id : gang.rules.group) {
        const Gang* mate = machine_.FindGang(id);
        const int32_t placed = mate->active() + mate->count(MemberState::kSucceeded);
        if (mate->satisfied || placed >= mate->rules.min_member) continue;
        violation_ = absl::StrCat("gang ", gang.key, " is satisfied although gang ", id, " of its group is not");
      }
      if (!gang.rules.group.empty()) ++groups_started_;
    });
    satisfied_before_ = std::move(satisfied);
  }

  std::mt19937_64 random_;
  Machine machine_;
  int64_t now_ms_ = 1'000'000;
  int next_uid_ = 1;
  HoldToken next_token_ = 1;
  int next_submission_ = 0;
  int64_t facts_version_ = 0;
  int confirmed_ = 0;
  int commits_ = 0;
  int groups_started_ = 0;
  int rounds_without_plan_ = 0;
  std::set<std::string> satisfied_before_;
  std::string violation_;
  std::map<std::string, PodDescription> pods_;
  std::map<std::string, GangObject> objects_;
  std::map<std::string, std::string> offered_;
  std::map<std::string, std::string> bindings_;
  std::map<HoldToken, std::string> tokens_;
  std::map<std::string, std::string> records_;
};

TEST(RandomCommands, KeepEveryInvariant) {
  const int only = FromEnv("MUSTER_SEED", 0);
  const int steps = FromEnv("MUSTER_STEPS", kSteps);
  int64_t commits = 0;
  int64_t groups = 0;
  int64_t rolled_back = 0;
  int64_t confirmed = 0;
  for (int seed = only > 0 ? only : 1; seed <= (only > 0 ? only : kSeeds); ++seed) {
    RandomWorld world(static_cast<uint64_t>(seed));
    for (int step = 0; step < steps; ++step) {
      world.Step();
      ASSERT_EQ(world.violation(), "") << "replay: MUSTER_SEED=" << seed << " MUSTER_STEPS=" << step + 1;
      if (step % 1000 == 999) {
        ASSERT_EQ(world.RestoreDiffers(), "") << "replay: MUSTER_SEED=" << seed << " MUSTER_STEPS=" << step + 1;
      }
    }
    commits += world.commits();
    groups += world.groups_started();
    confirmed += world.confirmed();
    rolled_back += world.rounds_without_plan();
  }
  EXPECT_GT(commits, only > 0 ? 0 : steps / 20) << "hardly anything was ever bound: the test would prove nothing";
  EXPECT_GT(groups, only > 0 ? -1 : steps / 1000) << "hardly any gang group ever started";
  EXPECT_GT(confirmed, only > 0 ? -1 : steps / 100) << "hardly any submitted gang was ever confirmed";
  EXPECT_GT(rolled_back, only > 0 ? -1 : steps / 100) << "hardly any plan was ever rolled back";
  std::printf("%lld bindings decided, %lld gangs of groups started, %lld rounds rolled back, %lld pods confirmed\n",
              static_cast<long long>(commits), static_cast<long long>(groups), static_cast<long long>(rolled_back),
              static_cast<long long>(confirmed));
}

TEST(RandomCommands, SameSeedSameHash) {
  RandomWorld first(7);
  RandomWorld second(7);
  for (int step = 0; step < 5000; ++step) {
    first.Step();
    second.Step();
    if (step % 500 != 0) continue;
    ASSERT_EQ(first.machine().Hash(), second.machine().Hash()) << "at step " << step;
  }
  EXPECT_EQ(first.machine().Hash(), second.machine().Hash());
  RandomWorld other(8);
  for (int step = 0; step < 5000; ++step) other.Step();
  EXPECT_NE(first.machine().Hash(), other.machine().Hash());
}

}  // namespace
}  // namespace muster
