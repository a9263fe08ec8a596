// Rules of the machine that need settings or clocks that the scenarios do not have.
#include "state/machine/machine.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/facts.h"
#include "tests/verify/invariants.h"

namespace muster {
namespace {

class MachineTest : public testing::Test {
 protected:
  explicit MachineTest(MachineSettings settings = {}) : machine_(std::move(settings)) {
    Apply(UpsertNode{NodeWith("n", {{"cpu", 8'000}, {"pods", 100}})});
    Apply(FactsRead{});
  }
  Outcome Apply(const Command& command) {
    Outcome outcome;
    machine_.Apply(command, now_ms_, &outcome);
    if (machine_.PlanningDue()) {
      Outcome planned;
      machine_.Apply(PlanRound{}, now_ms_, &planned);
    }
    EXPECT_TRUE(CheckInvariants(machine_).ok()) << CheckInvariants(machine_);
    return outcome;
  }

  Machine machine_;
  int64_t now_ms_ = 1'000'000;
};

class LongHolds : public MachineTest {
 protected:
  static MachineSettings Settings() {
    MachineSettings settings;
    settings.hold_limit_ms = 44'000;
    settings.answer_limit_ms = 45'000;
    settings.plan_idle_ms = 600'000;
    return settings;
  }
  LongHolds() : MachineTest(Settings()) {}
};

// K-4: a commit needs some time before the first caller gives up; otherwise no pod is bound.
TEST_F(LongHolds, HeldCallTooOld_IsNotCommitted) {
  Apply(UpsertPod{Member("a", "g", 2, 1'000)});
  Apply(UpsertPod{Member("b", "g", 2, 1'000)});
  const auto offer = std::make_shared<NodeOffer>(NodeOffer::AllNodes());
  Apply(Filter{"a", offer});
  Apply(Filter{"b", offer});
  EXPECT_TRUE(Apply(Bind{"a", "n", 1}).answers.empty());
  now_ms_ += 40'000;
  const Outcome late = Apply(Bind{"b", "n", 2});
  for (const Effect& effect : late.effects) EXPECT_FALSE(std::holds_alternative<BindPod>(effect));
  ASSERT_EQ(late.answers.size(), 2U);
  EXPECT_FALSE(late.answers[0].permitted);
  EXPECT_FALSE(late.answers[1].permitted);
  EXPECT_FALSE(machine_.reader().FindGang("d/g")->durable.satisfied);
}

class OneNamespace : public MachineTest {
 protected:
  static MachineSettings Settings() {
    MachineSettings settings;
    settings.cross_namespace_groups = false;
    return settings;
  }
  OneNamespace() : MachineTest(Settings()) {}
};

// D-10: a setting forbids groups across namespaces.
TEST_F(OneNamespace, GroupAcrossNamespaces_IsRefused) {
  PodDescription here = Member("a", "g", 1, 1'000);
  PodDescription there = Member("b", "g", 1, 1'000);
  there.name_space = "e";
  here.gang.declaration.Mutable().groups = there.gang.declaration.Mutable().groups = {"d/g", "e/g"};
  Apply(UpsertPod{here});
  Apply(UpsertPod{there});
  const Gang* gang = machine_.reader().FindGang("d/g");
  EXPECT_EQ(gang->reason.code, ReasonCode::kGroupDisagrees);
  EXPECT_NE(gang->reason.text.find("e/g"), std::string::npos) << gang->reason.text;
  EXPECT_EQ(machine_.reader().FindPlan(*gang), nullptr);
}

// S-2: an unreadable record of an earlier process is named.
TEST(MachineLoad, UnreadableRecord_IsNamed) {
  Machine machine{MachineSettings()};
  const absl::Status bad = machine.Load({{.kind = "queue", .key = "x", .value = "1"}});
  EXPECT_TRUE(absl::IsInvalidArgument(bad));
  EXPECT_NE(bad.message().find("queue/x"), absl::string_view::npos) << bad;
}

// S-1: an announcer begins with a snapshot; then each update follows the one before it. A known update is answered
// again.
TEST_F(MachineTest, FactUpdates_LeaveNoGap) {
  const auto announce = [this](const std::string& source, int64_t version) {
    return Apply(UpdateFacts{{source, version}, {}, {}, {}, {}, {}, {}});
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(announce("me", 1).status)) << "no snapshot came before";
  EXPECT_TRUE(Apply(ReplaceFacts{{"me", 7}, {}, {}}).status.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(announce("me", 9).status)) << "8 is missing";
  EXPECT_TRUE(absl::IsFailedPrecondition(announce("you", 8).status)) << "another announcer";
  for (const int64_t version : {8, 8, 3}) {
    const Outcome taken = announce("me", version);
    EXPECT_TRUE(taken.status.ok()) << taken.status;
    EXPECT_EQ(std::get<FactsReply>(taken.reply).version, 8);
  }
}

// S-1: an update with an invalid fact changes nothing.
TEST_F(MachineTest, FactUpdate_OneInvalidFact_ChangesNothing) {
  Apply(UpsertPod{Member("a", "g", 2, 1'000)});
  Apply(ReplaceFacts{{"me", 1}, {}, {Member("a", "g", 2, 1'000)}});
  PodDescription without_uid = Member("b", "g", 2, 1'000);
  without_uid.uid = "";
  UpdateFacts update{{"me", 2}, {}, {}, {without_uid}, {"a"}, {}, {}};
  EXPECT_TRUE(absl::IsInvalidArgument(Apply(update).status));
  EXPECT_NE(machine_.reader().FindPod("a"), nullptr);
  EXPECT_EQ(machine_.rooms().sources.version(), 1);
  update.pods = {Member("b", "g", 2, 1'000)};
  EXPECT_TRUE(Apply(update).status.ok());
  EXPECT_EQ(machine_.reader().FindPod("a"), nullptr);
  EXPECT_NE(machine_.reader().FindPod("b"), nullptr);
}

}  // namespace
}  // namespace muster
