// The callers of a small world: kube-scheduler, callers of the verbs and of whole gangs; and the replies of the API
// server.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/small_world.h"

namespace muster {
namespace {

constexpr char kNoNodeFits[] = "0 nodes are available";

}  // namespace

// kube-scheduler's own filters, computed from pods that it knows or assumes.
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
  if (reply.kind == FilterReply::Kind::kSingleNode) {
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
    submit.declaration.Mutable().min_member = cast_.jobs[job].min;
    submit.ttl_ms = 10'000;
    if (!cast_.jobs[job].queue.empty()) submit.declaration.Mutable().queue = cast_.jobs[job].queue;
    for (const std::string& peer : cast_.jobs[job].group) submit.declaration.Mutable().groups.push_back("d/" + peer);
    for (Body& body : bodies_) {
      if (body.job != job) continue;
      PodDescription& pod = submit.pods.emplace_back();
      pod.name = absl::StrCat(cast_.jobs[job].name, "-", body.member);
      pod.uid = absl::StrCat(pod.name, "#", ++body.lives);
      pod.shape.Mutable().requests = {{"cpu", cast_.jobs[job].cpu}};
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
      body.facts = machine_->reader().FindPod(place.uid)->facts;
      NoteBound(&body, place.node);
    }
  }
  submissions_[job].clear();
}

}  // namespace muster
