// Fixture: a machine whose process can end at any moment, and the store that outlives it.
#ifndef MUSTER_TESTS_STATE_MACHINE_RESTART_FIXTURE_H_
#define MUSTER_TESTS_STATE_MACHINE_RESTART_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "state/machine/machine.h"
#include "state/persistence/records.h"
#include "state/verify/invariants.h"

namespace muster {

class Restarts : public testing::Test {
 protected:
  Restarts() { Begin(); }

  Outcome Apply(const Command& command) {
    Outcome outcome;
    machine_->Apply(command, ++now_ms_, &outcome);
    for (const Record& record : outcome.records) {
      store_[RecordName(record)] = record;
      if (record.value.empty()) store_.erase(RecordName(record));
    }
    for (const Effect& effect : outcome.effects) {
      const auto* call = std::get_if<ActivatePod>(&effect);
      if (call != nullptr && !call->remove_gate) activated_.push_back(call->pod.uid);
      if (const auto* mark = std::get_if<MarkTimedOut>(&effect)) marked_.insert(mark->pod.uid);
    }
    EXPECT_EQ(CheckInvariants(*machine_), absl::OkStatus());
    if (machine_->PlanningDue() && !std::holds_alternative<PlanRound>(command)) Apply(PlanRound{});
    return outcome;
  }
  // The process ends; a new one reads the same nodes and `pods`.
  void Restart(const std::vector<PodDescription>& pods) {
    Begin();
    Apply(UpsertNode{Node()});
    for (const PodDescription& pod : pods) Apply(UpsertPod{pod});
    Apply(FactsRead{});
  }
  void Begin() {
    std::vector<Record> records;
    for (const auto& [name, record] : store_) records.push_back(record);
    machine_ = std::make_unique<Machine>(settings_);
    ASSERT_EQ(machine_->Load(records), absl::OkStatus());
  }
  static NodeDescription Node() {
    NodeDescription node;
    node.name = "n";
    node.allocatable = {{"cpu", 8'000}, {"pods", 100}};
    return node;
  }
  // Member `uid` of gang `gang`, which needs two; placed by its own caller.
  static PodDescription Member(const std::string& gang, const std::string& uid, std::vector<std::string> group = {}) {
    PodDescription pod;
    pod.uid = pod.name = uid;
    pod.name_space = "d";
    pod.scheduler_name = "own";
    pod.shape.Mutable().requests = {{"cpu", 1'000}};
    pod.gang.name = gang;
    pod.gang.declares = true;
    pod.gang.declaration.Mutable().min_member = 2;
    pod.gang.declaration.Mutable().groups = std::move(group);
    return pod;
  }
  // UIDs of the pods activated by an annotation since the last call of this function.
  std::vector<std::string> TakeActivated() { return std::exchange(activated_, {}); }
  PermitReply::Kind Permit(const std::string& uid) {
    const Outcome outcome = Apply(muster::Permit{uid, "n", ++token_});
    return std::get<PermitReply>(outcome.reply).kind;
  }
  FilterReply FilterOn(const std::string& uid, std::vector<std::string> offered) {
    return std::get<FilterReply>(Apply(Filter{uid, std::make_shared<NodeOffer>(std::move(offered))}).reply);
  }
  [[nodiscard]] const Gang& At(const std::string& gang) const { return *machine_->reader().FindGang("d/" + gang); }
  [[nodiscard]] MemberState StateOf(const std::string& uid) const { return machine_->reader().FindPod(uid)->state; }

  MachineSettings settings_;
  std::unique_ptr<Machine> machine_;
  std::map<std::string, Record> store_;
  std::vector<std::string> activated_;
  std::set<std::string> marked_;  // UIDs of the pods that are to be marked as timed out
  int64_t now_ms_ = 1'000'000;
  HoldToken token_ = 0;
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_MACHINE_RESTART_FIXTURE_H_
