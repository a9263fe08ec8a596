// Models of callers and executors: schedulers, orchestrators that submit whole gangs, and the API server.
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "state/base/check.h"
#include "tests/simulation/random_world.h"
#include "tests/verify/hash.h"

namespace muster {

FilterReply RandomWorld::AskFilter(const std::string& uid, std::vector<std::string> nodes) {
  return std::get<FilterReply>(Apply(Filter{uid, std::make_shared<NodeOffer>(std::move(nodes))}).reply);
}

void RandomWorld::AskBind(const std::string& uid, const std::string& node) {
  const HoldToken token = next_token_++;
  tokens_[token] = uid;
  Apply(Bind{uid, node, token});
}

void RandomWorld::FilterSome() {
  if (pods_.empty()) return;
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) {
    if (Roll(5) != 0) names.push_back(NodeName(i));
  }
  const std::string uid = SomeUid();
  const FilterReply reply = AskFilter(uid, names);
  if (reply.kind != FilterReply::Kind::kSingleNode) return;
  if (!absl::c_linear_search(names, reply.node)) violation_ = "filter answered a node that was not offered";
  offered_[uid] = reply.node;
}

void RandomWorld::BindSome() {
  if (pods_.empty()) return;
  std::string uid = SomeUid();
  if (!offered_.empty() && Roll(4) != 0) {
    auto it = offered_.begin();
    std::advance(it, Roll(static_cast<int>(offered_.size())));
    uid = it->first;
  }
  const auto offer = offered_.find(uid);
  const std::string node = offer != offered_.end() && Roll(10) != 0 ? offer->second : NodeName(Roll(6));
  AskBind(uid, node);
  offered_.erase(uid);
}

// Gang "dr" is a driver and its workers. The driver creates the workers when it runs; their slots are reserved before
// (P-7). Workers come and go, and are filtered and bound at once, or not. The driver ends now and then, and a new gang
// takes its place.
void RandomWorld::DriveSome() {
  GangObject object;
  object.name_space = "d";
  object.name = "dr";
  object.created_ms = 5;
  object.declaration.Mutable().subgroups = {{"s0", "", 1, {}, {}, {}}, {"s1", "", 1 + Roll(3), {}, {}, PodTemplate()}};
  object.declaration.Mutable().subgroups.back().members->Mutable().requests = {{"cpu", 500 * (1 + Roll(2))}};
  if (objects_.count(object.name) == 0 || Roll(60) == 0) {
    objects_[object.name] = object;
    Apply(UpsertGangObject{object});
    return;
  }
  std::vector<std::string> drivers;
  std::vector<std::string> workers;
  for (const auto& [uid, pod] : pods_) {
    if (pod.gang.name == object.name) (pod.gang.subgroup == "s0" ? drivers : workers).push_back(uid);
  }
  if (drivers.empty() || (workers.size() < 4 && Roll(4) == 0)) {
    PodDescription pod = NewPod();
    pod.priority = 2;
    pod.gang.name = object.name;
    pod.gang.dialect = GangDialect::kPodGroupSigs;
    pod.gang.subgroup = drivers.empty() ? "s0" : "s1";
    pod.shape.Mutable().requests = {{"cpu", 500 * (1 + Roll(Roll(3) == 0 ? 3 : 1))}};
    pod.other_gates = Roll(12) == 0;
    return Put(pod);
  }
  std::vector<std::string>& some = workers.empty() || Roll(6) == 0 ? drivers : workers;
  const std::string uid = some[static_cast<size_t>(Roll(static_cast<int>(some.size())))];
  if (Roll(8) == 0) {
    std::vector<std::string> gone = {uid};
    if (Roll(2) == 0) {  // the job is over
      gone = drivers;
      gone.insert(gone.end(), workers.begin(), workers.end());
    }
    for (const std::string& each : gone) Remove(each);
    return;
  }
  const FilterReply reply = AskFilter(uid, NodeNames(6));
  if (reply.kind == FilterReply::Kind::kRefuse) return;
  AskBind(uid, reply.kind == FilterReply::Kind::kSingleNode ? reply.node : NodeName(Roll(6)));
  if (Roll(2) == 0) FinishBindings();
}

void RandomWorld::PermitSome() {
  if (pods_.empty()) return;
  const HoldToken token = next_token_++;
  const std::string uid = SomeUid();
  const Outcome outcome = Apply(Permit{uid, NodeName(Roll(6)), token});
  // Promises from before a restart are unknown until everything is read.
  MUSTER_CHECK(outcome.status.ok() == machine_->rooms().sources.complete());
  if (!outcome.status.ok()) return;
  if (std::get<PermitReply>(outcome.reply).kind == PermitReply::Kind::kWait) tokens_[token] = uid;
}

void RandomWorld::ScheduleGroup() {
  for (const auto& [uid, pod] : std::map<std::string, PodDescription>(pods_)) {
    if (pod.gang.name != "g5" && pod.gang.name != "g6") continue;
    const FilterReply reply = AskFilter(uid, NodeNames(6));
    if (reply.kind == FilterReply::Kind::kSingleNode && Roll(12) != 0) AskBind(uid, reply.node);
  }
}

void RandomWorld::FindNoNode() {
  if (!pods_.empty()) Apply(PostFilter{SomeUid(), "nothing fits"});
}

void RandomWorld::GiveBack() {
  if (!pods_.empty()) Apply(Unreserve{SomeUid(), static_cast<UnreserveCause>(Roll(3))});
}

void RandomWorld::BindPermitted() {
  if (pods_.empty()) return;
  const std::string uid = SomeUid();
  const Pod* pod = machine_->reader().FindPod(uid);
  if (pod->state != MemberState::kCommitted ||
      machine_->rooms().pod_lifecycle.BindingOf(*pod).phase != BindingPhase::kNone)
    return;
  const NodeId charged = machine_->rooms().ledger.ChargeOf(pod->id).node;
  Apply(PostBind{uid, charged == kNoNode ? NodeName(0) : machine_->rooms().cluster.node(charged).facts.name});
}

void RandomWorld::WholeGang() {
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
      if (confirmed != nullptr && confirmed->state == SubmissionReply::State::kConfirmed) OnConfirmed(*confirmed);
      break;
    }
    case 5:
      Roll(2) == 0 ? HurtSubmission() : void(Apply(AbandonGang{id}));
      Apply(RefreshExplanation{absl::StrCat("d/g", now_ms_ % 8)});
      break;
    default:
      AnnounceStep();
      break;
  }
}

void RandomWorld::SubmitSome() {
  SubmitGang submit;
  submit.id = absl::StrCat("s", ++next_submission_);
  submit.name_space = "d";
  submit.name = absl::StrCat("w", Roll(4));
  submit.declaration.Mutable().min_member = 1 + Roll(4);
  if (queued_) submit.declaration.Mutable().queue = SomeQueue();
  if (Roll(3) == 0) submit.declaration.Mutable().groups = {"d/w0", "d/w1"};
  submit.ttl_ms = 500 + Roll(20'000);
  submit.confirm = Roll(4) == 0;
  if (Roll(3) == 0) submit.declaration.Mutable().topology = TopologyRule{Roll(2) == 0 ? "zone" : "rack", "", ""};
  for (int i = 0; i < *submit.declaration->min_member + Roll(2); ++i) {
    PodDescription& pod = submit.pods.emplace_back();
    pod.uid = absl::StrCat("u", next_uid_++);
    pod.name = absl::StrCat("p", next_uid_);
    pod.priority = Roll(3);
    pod.shape.Mutable().requests = {{"cpu", 500 * (1 + Roll(3))}};
    if (Roll(3) == 0) AddPodAffinity(&pod);
  }
  const Outcome outcome = Apply(submit);
  if (outcome.status.ok()) {
    const auto& reply = std::get<SubmissionReply>(outcome.reply);
    if (reply.state == SubmissionReply::State::kConfirmed) OnConfirmed(reply);
    return;
  }
  for (const PodDescription& pod : submit.pods) {
    if (machine_->reader().FindPod(pod.uid) != nullptr) violation_ = "a refused submission left a pod behind";
  }
}

void RandomWorld::HurtSubmission() {
  std::vector<std::string> uids;
  machine_->reader().ForEachGang([&](const Gang& gang) {
    if (!gang.submitted) return;
    for (const MemberSet& set : gang.members) {
      for (const Pod* pod : set) {
        if (pod->submitted) uids.push_back(pod->facts.uid);
      }
    }
  });
  if (uids.empty()) return;
  const std::string uid = uids[static_cast<size_t>(Roll(static_cast<int>(uids.size())))];
  PodDescription pod = machine_->reader().FindPod(uid)->facts;
  switch (Roll(4)) {
    case 0:
      pod.phase = PodPhase::kFailed;
      break;
    case 1:
      pod.shape.Mutable().requests = {{"cpu", 700}};
      break;
    default:
      Apply(RemovePod{uid});
      return;
  }
  Apply(UpsertPod{pod});
}

void RandomWorld::OnConfirmed(const SubmissionReply& reply) {
  for (const SubmissionReply::Place& place : reply.places) {
    const Pod* pod = machine_->reader().FindPod(place.uid);
    if (pod == nullptr) continue;
    ++figures_["pods confirmed"];
    if (pod->state == MemberState::kPending) violation_ = "a confirmed pod has no node";
    pods_.emplace(place.uid, pod->facts);
  }
}

void RandomWorld::AnnounceStep() {
  UpdateFacts update;
  update.facts_version = {"test", facts_version_ + Roll(3)};
  update.nodes.push_back(RandomNode(Roll(6)));
  if (!pods_.empty() && Roll(3) == 0) update.removed_pods.push_back(SomeUid());
  const uint64_t before = LogicalHash(*machine_);
  const Outcome outcome = Apply(update);
  if (!outcome.status.ok()) {
    if (LogicalHash(*machine_) != before) violation_ = "a refused step changed something";
    ReplaceFacts all;
    all.facts_version = {"test", ++facts_version_};
    for (int i = 0; i < 6; ++i) {
      if (Roll(8) != 0) all.nodes.push_back(RandomNode(i));
    }
    for (auto it = pods_.begin(); it != pods_.end();) {  // pods that the snapshot does not list are gone
      const bool listed = Roll(16) != 0;
      if (listed) all.pods.push_back(machine_->reader().FindPod(it->first)->facts);
      it = listed ? std::next(it) : pods_.erase(it);
    }
    for (auto it = objects_.begin(); it != objects_.end();) {
      const bool listed = Roll(16) != 0;
      if (listed) all.gangs.push_back(it->second);
      it = listed ? std::next(it) : objects_.erase(it);
    }
    Apply(all);
    return;
  }
  if (update.facts_version.version != 0 && update.facts_version.version <= facts_version_) return;  // known already
  facts_version_ = std::get<FactsReply>(outcome.reply).version;
  for (const std::string& uid : update.removed_pods) pods_.erase(uid);
}

void RandomWorld::HangUp() {
  auto it = tokens_.begin();
  std::advance(it, Roll(static_cast<int>(tokens_.size())));
  Apply(CallerGone{it->second, it->first});
}

void RandomWorld::FinishBindings() {
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

void RandomWorld::FinishWrites() {
  const auto finish = [this](std::set<std::string>* uids, int sides, bool PodDescription::*fact) {
    for (const std::string& uid : std::set<std::string>(*uids)) {
      if (Roll(sides) == 0) continue;
      uids->erase(uid);
      const auto pod = pods_.find(uid);
      if (pod == pods_.end()) continue;
      pod->second.node_name = machine_->reader().FindPod(uid)->facts.node_name;
      pod->second.*fact = true;
      Apply(UpsertPod{pod->second});
    }
  };
  finish(&marks_, 3, &PodDescription::timed_out_mark);
  finish(&evictions_, 2, &PodDescription::deleting);
}

}  // namespace muster
