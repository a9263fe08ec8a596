// Fixture: the whole machine, for rules that hold across components. After each command it runs planning rounds and
// checks the invariants.
#ifndef MUSTER_TESTS_STATE_MACHINE_MACHINE_FIXTURE_H_
#define MUSTER_TESTS_STATE_MACHINE_MACHINE_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "state/machine/machine.h"
#include "tests/support/facts.h"
#include "tests/support/lines.h"
#include "tests/verify/invariants.h"

namespace muster {

class WholeMachine : public testing::Test {
 protected:
  explicit WholeMachine(const MachineSettings& settings = MachineSettings()) : machine_(settings) {
    Apply(FactsRead{});
  }

  // Returns the outcome as lines, planning rounds included. The reply and the status are in `out_`.
  Lines Apply(const Command& command) {
    out_ = Outcome();
    machine_.Apply(command, now_ms_, &out_);
    Lines lines = LinesOf(out_);
    for (int rounds = 0; machine_.PlanningDue(); ++rounds) {
      EXPECT_LT(rounds, 100) << "planning does not end";
      if (rounds == 100) break;
      Outcome planned;
      machine_.Apply(PlanRound{}, now_ms_, &planned);
      for (std::string& line : LinesOf(planned)) lines.push_back(std::move(line));
    }
    EXPECT_TRUE(CheckInvariants(machine_).ok()) << CheckInvariants(machine_);
    EXPECT_GT(machine_.NextDeadline(), 0);
    return lines;
  }
  // Members "g-1" to "g-n", all of them needed.
  void PutGang(const std::string& gang, int32_t members) {
    for (int32_t i = 1; i <= members; ++i) Apply(UpsertPod{Member(absl::StrCat(gang, "-", i), gang, members)});
  }
  FilterReply Ask(const std::string& uid) {
    Apply(Filter{uid, std::make_shared<NodeOffer>(NodeOffer::AllNodes())});
    return std::get<FilterReply>(out_.reply);
  }
  // Calls filter, then bind with the node of its reply.
  Lines AskAndBind(const std::string& uid, HoldToken token) {
    const FilterReply reply = Ask(uid);
    EXPECT_EQ(reply.kind, FilterReply::Kind::kSingleNode) << reply.reason.text;
    return Apply(Bind{uid, reply.node, token});
  }
  // Both members of "g" arrive at the barrier and are committed.
  void Start() {
    AskAndBind("g-1", 1);
    AskAndBind("g-2", 2);
    EXPECT_TRUE(machine_.reader().FindPlan(GangAt("g"))->committed);
  }
  [[nodiscard]] const Gang& GangAt(const std::string& name) const { return *machine_.reader().FindGang("d/" + name); }
  [[nodiscard]] const Pod& PodAt(const std::string& uid) const { return *machine_.reader().FindPod(uid); }
  [[nodiscard]] bool Planned(const std::string& gang) const {
    return machine_.reader().FindPlan(GangAt(gang)) != nullptr;
  }
  [[nodiscard]] GangView View(const std::string& gang) const {
    return machine_.reader().gangs.View(GangAt(gang), true);
  }

  Machine machine_;
  int64_t now_ms_ = kT0;
  Outcome out_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_MACHINE_MACHINE_FIXTURE_H_
