// The liveness rules of a small world, when nothing goes wrong any more.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/simulation/small_world.h"

namespace muster {
namespace {

constexpr int kMaxSteps = 400;
constexpr int kMaxTimers = 40;
// Rounds without a visible change: a schedule cycle may end in each (G-2).
constexpr int kIdleSteps = 3;

}  // namespace

void SmallWorld::CalmDown(Calmed* calmed) {
  Calmed on_the_way;
  if (!Calm(*calmed, &on_the_way)) return;
  CheckStarted();
  TakeTurns();
  // Running jobs end one after the other: then the others must have their turn.
  for (size_t j = 0; j < cast_.jobs.size() && violation_.empty(); ++j) {
    if (Bound(j) == 0) continue;
    ended_[j] = true;
    for (Body& body : bodies_) {
      if (body.exists && body.job == j) Leave(&body);
    }
    if (!Calm(*calmed, &on_the_way)) break;
    CheckStarted();
  }
  if (violation_.empty()) calmed->merge(on_the_way);
}

bool SmallWorld::Calm(const Calmed& known, Calmed* on_the_way) {
  int timers = 0;
  int idle = 0;
  for (int step = 0; step < kMaxSteps && violation_.empty(); ++step) {
    const uint64_t station = Station(idle);
    if (known.contains(station)) return false;
    on_the_way->insert(station);
    const std::string before = Seen();
    StepOfCalm();
    idle = Seen() == before ? idle + 1 : 0;
    if (idle < kIdleSteps) continue;
    idle = 0;
    const bool all = std::all_of(bodies_.begin(), bodies_.end(), [this](const Body& body) {
      return ended_[body.job] || body.facts.phase == PodPhase::kRunning;
    });
    if (all || machine_->NextDeadline() == kNever || ++timers > kMaxTimers) break;
    Do({Action::Kind::kTime});
  }
  return true;
}

uint64_t SmallWorld::Station(int idle) const {
  StateHasher hasher;
  hasher.Add(Canonical());
  hasher.Add(idle);
  for (const bool ended : ended_) hasher.Add(ended);
  return hasher.value();
}

// The visible state and activity of all callers.
std::string SmallWorld::Seen() const {
  std::string out;
  for (const Body& body : bodies_) {
    absl::StrAppend(&out, body.exists, static_cast<int>(body.facts.phase), static_cast<int>(body.parked), body.chosen,
                    "/", body.token != 0, body.permitted, body.sent_to, ";");
  }
  for (size_t j = 0; j < cast_.jobs.size(); ++j) absl::StrAppend(&out, submissions_[j], plans_[j] != 0, ";");
  return out;
}

// Every caller takes its next action once.
void SmallWorld::StepOfCalm() {
  if (cast_.node_leaves && !last_node_there_) Do({Action::Kind::kNode});
  for (int round = 0; round < 20 && machine_->PlanningDue(); ++round) Do({Action::Kind::kPlan});
  for (size_t i = 0; i < bodies_.size(); ++i) {
    Body& body = bodies_[i];
    const auto index = static_cast<uint8_t>(i);
    if (JobOf(body).driver == Cast::Driver::kSubmission) continue;
    if (!body.sent_to.empty()) Do({Action::Kind::kBound, index});
    if (body.permitted) Do({Action::Kind::kPostBind, index});
    // Its owner creates a failed or timed-out pod again.
    if (body.exists && (body.facts.phase == PodPhase::kFailed || body.facts.timed_out_mark)) Leave(&body);
    if (!body.exists && !ended_[body.job]) Create(&body);
    if (!Pending(body)) continue;
    if (body.chosen.empty() && body.parked == Parked::kNo) Do({Action::Kind::kAsk, index});
    if (Pending(body) && !body.chosen.empty() && body.token == 0 && !body.permitted && body.sent_to.empty()) {
      Do({Action::Kind::kBind, index});
    }
  }
  for (size_t j = 0; j < cast_.jobs.size(); ++j) {
    if (cast_.jobs[j].driver != Cast::Driver::kSubmission || ended_[j]) continue;
    if (Bound(j) >= cast_.jobs[j].min) continue;
    for (Body& body : bodies_) {  // its caller removes the rest and submits again
      if (body.job == j && body.exists) Leave(&body);
    }
    const auto job = static_cast<uint8_t>(j);
    Do({Action::Kind::kSubmit, job});
    if (plans_[j] != 0) Do({Action::Kind::kConfirm, job});
  }
}

int SmallWorld::Bound(size_t job) const {
  return static_cast<int>(std::count_if(bodies_.begin(), bodies_.end(), [&](const Body& body) {
    return body.job == job && body.exists && body.facts.phase == PodPhase::kRunning;
  }));
}

int SmallWorld::BoundBeside(const Body& body) const {
  return static_cast<int>(std::count_if(bodies_.begin(), bodies_.end(), [&](const Body& other) {
    return other.job == body.job && LeafOf(other) == LeafOf(body) && other.exists &&
           other.facts.phase == PodPhase::kRunning;
  }));
}

bool SmallWorld::Whole(size_t job) const {
  if (cast_.jobs[job].leaves == 0) return Bound(job) >= std::max(1, cast_.jobs[job].min);
  return std::all_of(bodies_.begin(), bodies_.end(),
                     [&](const Body& body) { return body.job != job || BoundBeside(body) > 0; });
}

bool SmallWorld::Fits(const std::vector<const Body*>& bodies, size_t from, Left* left) const {
  if (from == bodies.size()) return true;
  const size_t at = bodies[from]->job;
  const Cast::Job& job = cast_.jobs[at];
  for (auto& [node, cpu] : left->free) {
    if (cpu < job.cpu) continue;
    const auto [begin, end] = left->ports.equal_range(node);
    if (job.port > 0 && std::any_of(begin, end, [&](const auto& held) { return held.second == job.port; })) continue;
    const auto rack = left->racks.find(at);
    const bool first = job.one_rack && rack == left->racks.end();
    if (job.one_rack && !first && rack->second != RackOf(node)) continue;
    if (first) left->racks.emplace(at, RackOf(node));
    cpu -= job.cpu;
    const auto held = left->ports.emplace(node, job.port);
    const bool fits = Fits(bodies, from + 1, left);
    cpu += job.cpu;
    left->ports.erase(held);
    if (first) left->racks.erase(at);
    if (fits) return true;
  }
  return false;
}

SmallWorld::Left SmallWorld::LeftBeside(const std::vector<const Body*>& running) const {
  Left left;
  for (size_t i = 0; i < cast_.nodes.size(); ++i) {
    if (i + 1 < cast_.nodes.size() || last_node_there_) left.free.insert(cast_.nodes[i]);
  }
  for (const Body* body : running) {
    const std::string& node = body->facts.node_name;
    if (const auto at = left.free.find(node); at != left.free.end()) at->second -= JobOf(*body).cpu;
    left.ports.emplace(node, JobOf(*body).port);
    if (JobOf(*body).one_rack) left.racks.emplace(body->job, RackOf(node));
  }
  return left;
}

std::optional<std::vector<const SmallWorld::Body*>> SmallWorld::Missing(size_t job) const {
  std::vector<const Body*> missing;
  const std::vector<std::string>& group = cast_.jobs[job].group;
  for (const Body& body : bodies_) {
    const bool together = body.job == job || std::count(group.begin(), group.end(), JobOf(body).name) > 0;
    if (!together || body.facts.phase == PodPhase::kRunning) continue;
    // The minimum of each gang.
    const auto beside = std::count_if(missing.begin(), missing.end(), [&](const Body* other) {
      return other->job == body.job && LeafOf(*other) == LeafOf(body);
    });
    const int32_t needed = JobOf(body).leaves > 0 ? 1 : std::max(1, JobOf(body).min);
    if (BoundBeside(body) + beside < needed) missing.push_back(&body);
    if (ended_[body.job]) return std::nullopt;  // a group with an unwanted gang does not start
  }
  return missing;
}

// No gang is partially bound, and every gang that fits beside the running ones has started.
void SmallWorld::CheckStarted() {
  Left left = LeftBeside(Running());
  for (size_t j = 0; j < cast_.jobs.size(); ++j) {
    const Cast::Job& job = cast_.jobs[j];
    const int bound = Bound(j);
    // A gang that lost a member during its start retains what runs (G-13's policy by default) until there is room for
    // the rest.
    if (bound > 0 && !Whole(j) && !disturbed_[j]) {
      Violate(absl::StrCat("gang ", job.name, " stays partial: ", bound, " of ", job.min, " run"));
    }
    if (ended_[j] || Whole(j)) continue;
    const std::optional<std::vector<const Body*>> missing = Missing(j);
    if (!missing.has_value()) return;
    if (!Fits(*missing, 0, &left) || !Allowed(*missing, Running()) || MayBeHeldUp(j)) continue;
    const Gang* gang = machine_->reader().FindGang("d/" + job.name);
    Violate(absl::StrCat(job.name,
                         " does not start although there is room: ", gang == nullptr ? "no gang" : gang->reason.text));
  }
}

}  // namespace muster
