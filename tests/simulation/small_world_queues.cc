// Queues in a small world (SPEC ): the rules, computed from what runs in the state of the API server.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/simulation/small_world.h"

namespace muster {

void SmallWorld::ChangeQueues() {
  other_queues_ = !other_queues_;
  queues_changed_ = true;
  if (const Outcome outcome = Apply(SetQueues{Queues()}); !outcome.status.ok()) Violate(outcome.status.ToString());
}

std::vector<const QueueSpec*> SmallWorld::QueuesOf(size_t job) const {
  std::vector<const QueueSpec*> out;
  const std::vector<QueueSpec>& queues = Queues().queues;
  std::string name = cast_.jobs[job].queue.empty() ? kDefaultQueue : cast_.jobs[job].queue;
  if (cast_.jobs[job].min == 0) name.clear();  // pods in no gang belong to no queue
  while (!name.empty()) {
    const auto at =
        std::find_if(queues.begin(), queues.end(), [&](const QueueSpec& each) { return each.name == name; });
    if (at == queues.end()) break;
    out.push_back(&*at);
    name = at->parent;
  }
  return out;
}

bool SmallWorld::Allowed(const std::vector<const Body*>& missing, const std::vector<const Body*>& running) const {
  struct Use {
    int64_t all = 0;
    int64_t fixed = 0;
    std::set<size_t> gangs;
  };
  std::map<std::string, Use> uses;
  const auto add = [&](const Body* body) {
    for (const QueueSpec* queue : QueuesOf(body->job)) {
      Use& use = uses[queue->name];
      use.all += JobOf(*body).cpu;
      use.fixed += JobOf(*body).preemptible ? 0 : JobOf(*body).cpu;
      use.gangs.insert(body->job);
    }
  };
  for (const Body* body : running) add(body);
  for (const Body* body : missing) add(body);
  const bool fixed = std::any_of(missing.begin(), missing.end(), [&](const Body* b) { return !JobOf(*b).preemptible; });
  for (const Body* body : missing) {
    for (const QueueSpec* queue : QueuesOf(body->job)) {
      const Use& use = uses[queue->name];
      const auto limit = queue->limit.find("cpu");
      if (limit != queue->limit.end() && use.all > limit->second) return false;
      const auto quota = queue->quota.find("cpu");
      if (fixed && quota != queue->quota.end() && use.fixed > quota->second) return false;
      const auto gangs = static_cast<int32_t>(use.gangs.size());
      if (queue->max_applications > 0 && gangs > queue->max_applications) return false;
    }
  }
  return true;
}

std::vector<const SmallWorld::Body*> SmallWorld::Running() const {
  std::vector<const Body*> out;
  for (const Body& body : bodies_) {
    if (body.exists && body.facts.phase == PodPhase::kRunning) out.push_back(&body);
  }
  return out;
}

// No queue exceeds its limits. Running gangs are checked as if each came last, since it was admitted when it came.
void SmallWorld::CheckQueues() {
  if (Queues().queues.empty() || queues_changed_) return;  // gangs that ran before may exceed the other tree
  if (const std::vector<const Body*> running = Running(); !Allowed(running, {})) {
    std::string names;
    for (const Body* body : running) absl::StrAppend(&names, " ", body->facts.uid);
    Violate(absl::StrCat("Q-2: more runs than the queues allow:", names));
  }
}

bool SmallWorld::Waits(size_t job) const {
  const bool all = std::all_of(bodies_.begin(), bodies_.end(),
                               [&](const Body& body) { return body.job != job || (Pending(body) && !body.permitted); });
  const Gang* gang = machine_->reader().FindGang("d/" + cast_.jobs[job].name);
  return all && gang != nullptr && !ended_[job] && machine_->reader().FindPlan(*gang) == nullptr;
}

bool SmallWorld::CouldRun(size_t job) const {
  const std::optional<std::vector<const Body*>> missing = Missing(job);
  Left empty = LeftBeside({});
  return missing.has_value() && Allowed(*missing, {}) && Fits(*missing, 0, &empty);
}

bool SmallWorld::Before(size_t a, size_t b) const {
  const Gang* first = machine_->reader().FindGang("d/" + cast_.jobs[a].name);
  const Gang* second = machine_->reader().FindGang("d/" + cast_.jobs[b].name);
  if (first == nullptr) return false;
  if (second == nullptr) return cast_.jobs[a].priority >= cast_.jobs[b].priority;  // a pod in no gang
  return machine_->rooms().queues.Before(*first, *second);
}

bool SmallWorld::MayBeHeldUp(size_t job) const {
  for (size_t head = 0; head < cast_.jobs.size(); ++head) {
    if (head == job || cast_.jobs[head].min == 0 || !Waits(head) || !CouldRun(head) || !Before(head, job)) continue;
    if (Queues().head == HeadPolicy::kHold || passed_[head].since_ms > 0) return true;
  }
  return false;
}

// Which gang bypassed which: a planned gang bypasses at most the first gang of each queue that was tried, could
// run, and is ordered before it.
void SmallWorld::NotePlans() {
  const int64_t limit = Queues().head == HeadPolicy::kHold ? 0 : Queues().starvation_limit_ms;
  std::vector<size_t> fresh;
  for (size_t j = 0; j < cast_.jobs.size(); ++j) {
    const Gang* gang = machine_->reader().FindGang("d/" + cast_.jobs[j].name);
    const bool planned = gang != nullptr && machine_->reader().FindPlan(*gang) != nullptr;
    const bool there = planned || Bound(j) > 0;
    if (planned && !planned_[j]) fresh.push_back(j);
    if (!there) {
      for (Passed& each : passed_) each.late.erase(j);
    }
    if (there || gang == nullptr || ended_[j] || cast_.jobs[j].min == 0) passed_[j] = Passed();
    planned_[j] = there;
  }
  if (limit == 0) return;
  for (const size_t late : fresh) {
    for (size_t head = 0; head < cast_.jobs.size(); ++head) {
      const Gang* gang = machine_->reader().FindGang("d/" + cast_.jobs[head].name);
      if (head == late || gang == nullptr || !Waits(head) || !Before(head, late)) continue;
      const bool by_queue = gang->reason.code == ReasonCode::kQueueLimit;
      if (!by_queue && gang->reason.code != ReasonCode::kNoRoom) continue;  // it was not tried
      const bool share = QueuesOf(head).back() == QueuesOf(late).back();
      if ((by_queue && !share) || !CouldRun(head)) continue;
      Passed& passed = passed_[head];
      if (passed.since_ms == 0) passed.since_ms = now_ms_;
      if (now_ms_ >= passed.since_ms + limit) passed.late.insert(late);
    }
  }
  CheckPassing();
}

// A gang that was bypassed for too long starts at the latest when all gangs end that ran then: there is room for it
// beside those that were planned since.
void SmallWorld::CheckPassing() {
  for (size_t head = 0; head < cast_.jobs.size(); ++head) {
    if (passed_[head].late.empty()) continue;
    std::vector<const Body*> late;
    for (const Body& body : bodies_) {
      if (passed_[head].late.count(body.job) > 0 && body.exists) late.push_back(&body);
    }
    const std::optional<std::vector<const Body*>> missing = Missing(head);
    Left left = LeftBeside(late);
    if (missing.has_value() && Allowed(*missing, late) && Fits(*missing, 0, &left)) continue;
    std::string names;
    for (const size_t each : passed_[head].late) absl::StrAppend(&names, " ", cast_.jobs[each].name);
    Violate(absl::StrCat("Q-6: ", cast_.jobs[head].name, " was passed over for too long, and again by", names));
  }
}

// Running jobs end in turn and are created again, and no job is left behind.
void SmallWorld::TakeTurns() {
  std::vector<int> waited(cast_.jobs.size(), 0);
  size_t turn = 0;
  for (int round = 0; round < 3 * cast_.turns && violation_.empty(); ++round) {
    for (size_t tried = 0; tried < cast_.jobs.size(); ++tried) {
      const size_t job = turn++ % cast_.jobs.size();
      if (Bound(job) == 0) continue;
      for (Body& body : bodies_) {
        if (body.exists && body.job == job) Leave(&body);
      }
      break;
    }
    now_ms_ += 1'000;
    Apply(Tick{});
    for (int step = 0, idle = 0; step < 40 && idle < 2 && violation_.empty(); ++step) {
      const std::string before = Seen();
      StepOfCalm();
      idle = Seen() == before ? idle + 1 : 0;
    }
    for (size_t j = 0; j < cast_.jobs.size(); ++j) {
      const Gang* gang = machine_->reader().FindGang("d/" + cast_.jobs[j].name);
      // Requeued gangs come after all others, including new ones (G-9).
      const bool put_back = gang != nullptr && gang->durable.requeues > 0;
      waited[j] = Whole(j) || put_back || !CouldRun(j) ? 0 : waited[j] + 1;
      if (waited[j] <= (cast_.jobs[j].turns > 0 ? cast_.jobs[j].turns : cast_.turns)) continue;
      Violate(absl::StrCat(cast_.jobs[j].name, " starves: it waited while others ended ", waited[j],
                           " times: ", gang == nullptr ? "no gang" : gang->reason.text));
    }
  }
}

}  // namespace muster
