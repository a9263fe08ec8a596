// Schedulers as they are when nothing goes wrong: kube-scheduler, a caller of the verbs, one that submits whole gangs.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/liveness_world.h"

namespace muster {
namespace {

bool Allows(const NodeDescription& node, const PodTemplate& shape) {
  if (node.unschedulable || FirstUntolerated(node.taints, shape.tolerations) != nullptr) return false;
  for (const auto& [key, value] : shape.node_selector) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return false;
  }
  return true;
}

}  // namespace

void LivenessWorld::Ask() {
  for (const std::string& uid : Uids()) {
    const auto found = pods_.find(uid);
    if (found == pods_.end()) continue;
    const ApiPod& pod = found->second;
    if (!pod.assumed.empty() && pod.token != 0 && pod.until_ms > 0 && pod.until_ms <= now_ms_) {
      Log(absl::StrCat("pod ", uid, ": its caller waits no more"));
      Apply(EndHold{uid, pod.token});
      Apply(Unreserve{uid, UnreserveCause::kPermitTimeout});
      Deliver();
      continue;
    }
    const bool pending = pod.facts.node_name.empty() && pod.assumed.empty() && !pod.facts.our_gate &&
                         !pod.facts.deleting && pod.facts.phase == PodPhase::kPending;
    if (!pending || pod.parked != Parked::kNo || pod.ask_at_ms > now_ms_) continue;
    jobs_[pod.job].driver == Driver::kVerbs ? AskVerbs(uid) : AskKube(uid);
  }
  for (size_t j = 0; j < jobs_.size(); ++j) {
    const Job& job = jobs_[j];
    if (job.driver == Driver::kSubmission && !job.over && job.arrives_ms <= now_ms_) AskSubmission(j);
  }
}

// kube-scheduler's own filters: what it knows to be there or assumes.
bool LivenessWorld::KubeFits(const ApiPod& pod, const NodeDescription& node) const {
  const PodTemplate& shape = pod.facts.shape;
  if (!Allows(node, shape) || (pod.member == 0 && node.name == jobs_[pod.job].hidden)) return false;
  ResourceList free = node.allocatable;
  for (const auto& [uid, other] : pods_) {
    const bool over = other.facts.phase == PodPhase::kSucceeded || other.facts.phase == PodPhase::kFailed;
    if (over || (other.facts.node_name != node.name && other.assumed != node.name)) continue;
    free["pods"] -= 1;
    for (const auto& [name, amount] : other.facts.shape->requests) free[name] -= amount;
    for (const HostPort& held : other.facts.shape->host_ports) {
      for (const HostPort& port : shape.host_ports) {
        if (Conflicts(held, port)) return false;
      }
    }
  }
  if (free["pods"] < 1) return false;
  for (const auto& [name, amount] : shape.requests) {
    if (amount > free[name]) return false;
  }
  return true;
}

void LivenessWorld::Unpark(bool guarded) {
  for (auto& [uid, pod] : pods_) {
    if (pod.parked == Parked::kByKube || (guarded && pod.parked == Parked::kByGuard)) pod.parked = Parked::kNo;
  }
}

void LivenessWorld::Park(ApiPod* pod, Parked by, const std::string& reason) {
  pod->parked = by;
  const std::string message = absl::StrCat("0/", nodes_.size(), " nodes are available: muster: ", reason);
  if (message == pod->facts.unschedulable) return;
  Log(absl::StrCat("pod ", pod->facts.uid, " ", pod->facts.name, " is refused: ", reason));
  pod->facts.unschedulable = message;
  if (machine_->FindPod(pod->facts.uid) != nullptr) Apply(UpsertPod{pod->facts});
}

void LivenessWorld::AskKube(const std::string& uid) {
  ApiPod& pod = pods_[uid];
  std::set<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (KubeFits(pod, node) && (quiet_ || Roll(6) != 0)) names.insert(name);
  }
  if (names.empty()) {
    pod.parked = quiet_ ? Parked::kByKube : Parked::kNo;
    if (pod.facts.unschedulable == "0 nodes are available") return;
    pod.facts.unschedulable = "0 nodes are available";
    if (machine_->FindPod(uid) != nullptr) Apply(UpsertPod{pod.facts});
    return;
  }
  const Outcome outcome =
      Apply(Filter{uid, std::make_shared<NodeOffer>(std::vector<std::string>(names.begin(), names.end()))});
  const FilterReply& reply = std::get<FilterReply>(outcome.reply);
  if (reply.kind == FilterReply::Kind::kRefuse) return Park(&pod, Parked::kByMuster, reply.reason.text);
  std::string node = reply.node;
  if (reply.kind == FilterReply::Kind::kPass) {
    for (const std::string& guarded : reply.guarded) names.erase(guarded);
    if (names.empty()) return Park(&pod, Parked::kByGuard, reply.reason.text);
    auto it = names.begin();
    std::advance(it, Roll(static_cast<int>(names.size())));
    node = *it;
  } else if (names.count(node) == 0) {
    return Violate(absl::StrCat("K-6: filter answered node ", node, ", which was not offered to pod ", uid));
  }
  Log(absl::StrCat("pod ", uid, " ", pod.facts.name, " goes to ", node));
  pod.assumed = node;
  pod.until_ms = 0;
  pod.token = next_token_++;
  tokens_[pod.token] = uid;
  Apply(Bind{uid, node, pod.token});
  Deliver();
}

void LivenessWorld::AskVerbs(const std::string& uid) {
  ApiPod& pod = pods_[uid];
  // A caller backs off, as kube-scheduler does.
  pod.tries = std::min(pod.tries + 1, 4);
  pod.ask_at_ms = now_ms_ + (500 << pod.tries) + Roll(1000);
  const Outcome pre = Apply(PreFilter{uid});
  if (!std::get<PreFilterReply>(pre.reply).passes) return;
  const Outcome found = Apply(FindNodes{uid, {}});
  const auto* nodes = std::get_if<NodesReply>(&found.reply);
  if (nodes == nullptr || nodes->nodes.empty()) {
    Log(absl::StrCat("pod ", uid, " ", pod.facts.name, ": its caller finds no node"));
    Apply(PostFilter{uid, "none"});
    return Deliver();
  }
  const std::string node = nodes->nodes.front().node;
  const HoldToken token = next_token_++;
  pod.assumed = node;
  pod.token = token;
  tokens_[token] = uid;
  const Outcome outcome = Apply(Permit{uid, node, token});
  const PermitReply& reply = std::get<PermitReply>(outcome.reply);
  Log(absl::StrCat("pod ", uid, " ", pod.facts.name, ": permit on ", node, " says ", static_cast<int>(reply.kind), " ",
                   reply.reason.text));
  if (reply.kind == PermitReply::Kind::kWait) {
    pod.until_ms = now_ms_ + std::max<int64_t>(reply.wait_ms, 1);
    return Deliver();
  }
  tokens_.erase(token);
  pod.token = 0;
  if (reply.kind == PermitReply::Kind::kReject) {
    pod.assumed.clear();
    Apply(Unreserve{uid, UnreserveCause::kRejected});
  } else if (Apply(PostBind{uid, node}).status.ok()) {
    NoteBound(&pod, node);
  }
  Deliver();
}

void LivenessWorld::AskSubmission(size_t j) {
  Job& job = jobs_[j];
  if (job.started) {  // its caller lets what is left of it go, and comes again
    if (Bound(j) == static_cast<int32_t>(job.members.size())) return;
    for (const std::string& uid : Uids()) {
      if (pods_[uid].job == j) Remove(uid, "its gang lost a member");
    }
    job.started = false;
    job.submission.clear();
  }
  Outcome outcome;
  if (job.submission.empty()) {
    SubmitGang submit;
    submit.id = absl::StrCat("s", next_uid_++);
    submit.name_space = "d";
    submit.name = job.name;
    submit.declaration = job.declaration;
    submit.ttl_ms = 10'000;
    for (size_t m = 0; m < job.members.size(); ++m) {
      PodDescription& pod = submit.pods.emplace_back();
      pod.uid = absl::StrCat("u", next_uid_++);
      pod.name = absl::StrCat(job.name, "-", m);
      pod.priority = job.members[m].priority;
      pod.shape = job.members[m].shape;
    }
    outcome = Apply(submit);
    if (!outcome.status.ok()) return;
    job.submission = submit.id;
  } else {
    outcome = Apply(AskGang{job.submission});
  }
  const auto* reply = std::get_if<SubmissionReply>(&outcome.reply);
  if (reply != nullptr && reply->state == SubmissionReply::State::kPlanned && (quiet_ || Roll(3) != 0)) {
    outcome = Apply(ConfirmGang{job.submission, reply->plan});
    reply = std::get_if<SubmissionReply>(&outcome.reply);
    if (!outcome.status.ok()) return;
  }
  if (reply == nullptr || reply->state == SubmissionReply::State::kAbandoned ||
      reply->state == SubmissionReply::State::kExpired) {
    job.submission.clear();
  } else if (reply->state == SubmissionReply::State::kConfirmed) {
    TakePlaces(j, *reply);
  }
}

void LivenessWorld::TakePlaces(size_t j, const SubmissionReply& reply) {
  for (size_t m = 0; m < reply.places.size(); ++m) {
    ApiPod& pod = pods_[reply.places[m].uid];
    pod.job = j;
    pod.member = m;
    pod.facts = machine_->FindPod(reply.places[m].uid)->facts;
    NoteBound(&pod, reply.places[m].node);
  }
  jobs_[j].started = true;
}

}  // namespace muster
