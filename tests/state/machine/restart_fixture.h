// Fixture: a machine whose process can end at any moment, and the store that outlives it.
#ifndef MUSTER_TESTS_STATE_MACHINE_RESTART_FIXTURE_H_
#define MUSTER_TESTS_STATE_MACHINE_RESTART_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "state/machine/machine.h"
#include "state/persistence/records.h"
#include "tests/support/facts.h"
#include "tests/verify/invariants.h"

namespace muster {

class Restarts : public testing::Test {
 protected:
  Restarts() { Begin(); }

  Outcome Apply(const Command& command) {
    ++now_ms_;
    Outcome outcome = ApplyOnly(command);
    if (machine_->PlanningDue() && !std::holds_alternative<PlanRound>(command)) Apply(PlanRound{});
    return outcome;
  }
  // At the same time, without planning.
  Outcome ApplyOnly(const Command& command) {
    Outcome outcome;
    machine_->Apply(command, now_ms_, &outcome);
    for (const Record& record : outcome.records) {
      store_[RecordName(record)] = record;
      if (record.value.empty()) store_.erase(RecordName(record));
    }
    EXPECT_EQ(CheckInvariants(*machine_), absl::OkStatus());
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
  static NodeDescription Node() { return NodeWith("n", {{"cpu", 8'000}, {"pods", 100}}); }
  // Member `uid` of gang `gang`, which needs two; placed by its own caller.
  static PodDescription PlacedByCaller(const std::string& gang, const std::string& uid,
                                       std::vector<std::string> group = {}) {
    PodDescription pod = Member(uid, gang, 2, 1'000);
    pod.scheduler_name = "own";
    pod.gang.declaration.Mutable().groups = std::move(group);
    return pod;
  }
  PermitReply::Kind Permit(const std::string& uid) {
    const Outcome outcome = Apply(muster::Permit{uid, "n", ++token_});
    return std::get<PermitReply>(outcome.reply).kind;
  }
  [[nodiscard]] const Gang& At(const std::string& gang) const { return *machine_->reader().FindGang("d/" + gang); }

  MachineSettings settings_;
  std::unique_ptr<Machine> machine_;
  std::map<std::string, Record> store_;
  int64_t now_ms_ = 1'000'000;
  HoldToken token_ = 0;
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_MACHINE_RESTART_FIXTURE_H_
