// The rules for every state of a small world, and the comparison of states.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/store/v1/records.pb.h"
#include "tests/simulation/small_world.h"
#include "tests/verify/invariants.h"

namespace muster {

void SmallWorld::Violate(const std::string& text) {
  if (violation_.empty()) violation_ = text;
}

// K-13: a pod of a gang that was never whole is bound with all of its minimum, or not at all.
void SmallWorld::CheckWhole(const std::string& uid) {
  const Pod* pod = machine_->reader().FindPod(uid);
  if (pod == nullptr || pod->gang == nullptr || pod->gang->rules.min_member <= 0) return;
  if (machine_->rooms().pod_lifecycle.BindingOf(*pod).attempts > 1 || whole_.count(pod->gang->name) > 0) return;
  // D-10: with its whole group.
  std::vector<std::string> together = pod->gang->rules.group;
  if (together.empty()) together.push_back(pod->gang->key);
  for (const std::string& key : together) {
    const Gang* each = machine_->reader().FindGang(key);
    const int32_t placed = each == nullptr ? 0 : each->active() + each->count(MemberState::kSucceeded);
    std::set<std::string> subgroups;
    for (const MemberState state :
         {MemberState::kCommitted, MemberState::kBound, MemberState::kRunning, MemberState::kSucceeded}) {
      if (each == nullptr) break;
      for (const Pod* member : each->in(state)) subgroups.insert(member->facts.gang.subgroup);
    }
    const bool of_each =
        each != nullptr && std::all_of(cast_.jobs.begin(), cast_.jobs.end(), [&](const Cast::Job& job) {
          return job.name != each->name || job.leaves == 0 || subgroups.size() == static_cast<size_t>(job.leaves);
        });
    if (of_each && placed >= each->rules.min_member) continue;
    Violate(absl::StrCat("K-13: pod ", uid, " is bound although gang ", key, " has ", placed, " members placed, of ",
                         subgroups.size(), " subgroups"));
  }
}

// P-4: a gang that requires one rack is in one rack at every moment.
void SmallWorld::CheckRacks() {
  std::map<std::string, std::string> racks;  // by job
  for (const Body& body : bodies_) {
    if (!body.exists || body.facts.phase != PodPhase::kRunning || !JobOf(body).one_rack) continue;
    const std::string rack = RackOf(body.facts.node_name);
    const auto [at, first] = racks.emplace(JobOf(body).name, rack);
    if (!first && at->second != rack) {
      Violate(absl::StrCat("P-4: gang ", JobOf(body).name, " runs in racks ", at->second, " and ", rack));
    }
  }
}

void SmallWorld::Check() {
  if (!repeats_) {
    if (const absl::Status ok = CheckInvariants(*machine_); !ok.ok()) Violate(std::string(ok.message()));
    for (const auto& [node, free] : LeftBeside(Running()).free) {
      if (free < 0) Violate(absl::StrCat("node ", node, " is given to more pods than it carries"));
    }
  }
  if (!repeats_) {
    CheckRacks();
    CheckQueues();
  }
  std::map<std::string, int> running;
  for (const Body& body : bodies_) {
    if (body.exists && body.facts.phase == PodPhase::kRunning) ++running[JobOf(body).name];
  }
  for (size_t j = 0; j < cast_.jobs.size(); ++j) {
    const Cast::Job& job = cast_.jobs[j];
    if (job.min > 0 && Whole(j)) whole_.insert(job.name);
    if (running[job.name] == 0) whole_.erase(job.name);
  }
}

// Records contain plan numbers and times: they are parsed, so that these are separated from what matters.
void SmallWorld::AddRecords(CanonicalHasher* hasher) const {
  for (const auto& [name, record] : records_) {
    if (record.kind == "plans") continue;  // the numbers that may have been used
    hasher->Add(record.kind);
    hasher->Add(record.incarnation);
    if (record.kind == "start") {
      store::v1::StartRecord start;
      start.ParseFromString(record.value);
      hasher->AddSequenceNumber(CanonicalHasher::Given::kPlan, std::stoll(record.key));
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
      hasher->AddSequenceNumber(CanonicalHasher::Given::kPlan, commit.start());
      hasher->Add(commit.permitted());
    } else {
      hasher->Add(record.key);
      hasher->Add(record.value);
    }
  }
}

uint64_t SmallWorld::Canonical() const {
  CanonicalHasher hasher(now_ms_);
  hasher.Add(CanonicalHash(*machine_));
  AddRecords(&hasher);
  hasher.Add(last_node_there_);
  hasher.Add(other_queues_);
  hasher.Add(queues_changed_);
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
    hasher.AddTime(passed_[j].since_ms);
    hasher.Add(static_cast<bool>(planned_[j]));
    for (const size_t late : passed_[j].late) hasher.Add(static_cast<int64_t>(late));
  }
  for (const std::string& gang : whole_) hasher.Add(gang);
  return hasher.value();
}

}  // namespace muster
