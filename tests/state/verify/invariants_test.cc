// The checker is checked: each count that is made wrong is found, and what changes a later answer changes the hash.
#include "tests/state/machine/machine_fixture.h"

namespace muster {
namespace {

class Invariants : public WholeMachine {
 protected:
  Invariants() {
    Apply(UpsertNode{Node("n", 4)});
    PutGang("g", 2);
    AskAndBind("g-1", 1);
    Apply(UpsertPod{Lone("lone", 1)});
    Apply(Bind{"lone", "n", 2});
  }
  // The same thing, to be broken.
  template <typename Thing>
  static Thing& Break(const Thing& thing) {
    return const_cast<Thing&>(thing);
  }
  void ExpectBroken(const std::string& what) const {
    const absl::Status status = machine_.CheckInvariants();
    EXPECT_NE(status.message().find(what), absl::string_view::npos) << status;
  }
};

TEST_F(Invariants, CountsOfMembers) {
  Gang& gang = Break(GangAt("g"));
  ++gang.gated;
  ExpectBroken("counts 1 gated and 1 plannable members, has 0 and 1");
  --gang.gated;
  --gang.plannable;
  ExpectBroken("counts 0 gated and 0 plannable members, has 0 and 1");
  ++gang.plannable;
  ++gang.turned;
  ExpectBroken("counts 1 turns, has 0");
  --gang.turned;
  EXPECT_TRUE(machine_.CheckInvariants().ok());
  Break(PodAt("g-1")).state = MemberState::kCommitted;
  ExpectBroken("wrong member set");
  Break(PodAt("g-1")).state = MemberState::kWaiting;
  Break(PodAt("g-1")).gang = nullptr;
  ExpectBroken("wrong member set");
  Break(PodAt("g-1")).gang = &gang;
  Break(PodAt("lone")).gang = &gang;
  ExpectBroken("member sets and pods disagree");
  Break(PodAt("lone")).gang = nullptr;
}

TEST_F(Invariants, Plans) {
  Plan& plan = Break(*machine_.plans().Of(GangAt("g")));
  ++plan.held;
  ExpectBroken("counts 2 held slots, has 1");
  --plan.held;
  std::swap(plan.slots[0], plan.slots[1]);
  ExpectBroken("slot 1 and its pod disagree");
  std::swap(plan.slots[0], plan.slots[1]);
  plan.slots[1].state = SlotState::kHeld;
  ExpectBroken("is held without a waiting pod");
  plan.slots[1].state = SlotState::kCommitted;
  ExpectBroken("counts 0 bound, has 1");
  plan.slots[1].state = SlotState::kFree;
  Break(GangAt("g")).rules.min_member = 3;
  ExpectBroken("has 2 slots and misses 3");
  Break(GangAt("g")).rules.min_member = 2;
  Break(GangAt("g")).submitted = true;
  ExpectBroken("was submitted and slot 1 has no pod");
  Break(GangAt("g")).submitted = false;
  plan.uses_holds = false;
  ExpectBroken("counts 2 promised holds, has 0");
  plan.uses_holds = true;
  plan.last_arrival_ms -= 60'000;
  ExpectBroken("is due earlier");
  plan.last_arrival_ms += 60'000;
  EXPECT_TRUE(machine_.CheckInvariants().ok());
}

TEST_F(Invariants, Charges) {
  auto& node = Break(machine_.cluster().node(machine_.cluster().FindNode("n")));
  for (int32_t* count : {&node.used_pods, &node.reserved_pods}) {
    ++*count;
    ExpectBroken("charges differ");
    --*count;
  }
  for (ResourceSum* amounts : {&node.used, &node.reserved}) {
    amounts->Set(0, amounts->Get(0) + 1);
    ExpectBroken("charges differ");
    amounts->Set(0, amounts->Get(0) - 1);
  }
  const int64_t free = node.free.Get(0);
  node.free.Set(0, -1);
  ExpectBroken("reservations exceed");
  node.free.Set(0, free);
  EXPECT_TRUE(machine_.CheckInvariants().ok());
}

TEST_F(Invariants, WhatIsFreeAndPromised) {
  muster::Node& node = Break(machine_.cluster().node(0));
  node.free.Add(kCpu, 1);
  ExpectBroken("what is free is not what is left");
  node.free.Add(kCpu, -1);
  EXPECT_TRUE(machine_.CheckInvariants().ok());
  auto& promised = Break(machine_.ledger().promised());
  promised.push_back(promised.front());
  ExpectBroken("the nodes that are promised are listed wrongly");
}

TEST_F(Invariants, Pods) {
  Pod& lone = Break(PodAt("lone"));
  const ClassId cls = lone.cls;
  lone.cls = kNoClass;
  ExpectBroken("is charged for another class than its own");
  lone.cls = cls;
  Ledger::PodCharge& charge = Break(machine_.ledger().ChargeOf(lone.id));
  EXPECT_EQ(charge.going, lone.state == MemberState::kCommitted);
  charge.going = !charge.going;
  ExpectBroken("is on its way to its node, or there");
  charge.going = false;
  lone.state = MemberState::kBound;
  lone.facts.node_name = "m";
  ExpectBroken("does not use node m, where it is");
  lone.facts.node_name = "n";
  EXPECT_TRUE(machine_.CheckInvariants().ok()) << machine_.CheckInvariants();
  charge.kind = ChargeKind::kReserved;
  ExpectBroken("does not use node n, where it is");
  charge.kind = ChargeKind::kUsed;
}

// --- the hash tells states apart (P-1) ---

TEST_F(Invariants, WhatChangesALaterAnswerChangesTheHash) {
  const uint64_t whole = machine_.Hash();
  const uint64_t durable = machine_.DurableHash();
  Gang& gang = Break(GangAt("g"));
  Plan& plan = Break(*machine_.plans().Of(gang));
  const auto differs = [&](auto* value, auto other, bool is_durable) {
    const auto before = std::exchange(*value, other);
    const bool both = machine_.Hash() != whole && (machine_.DurableHash() != durable) == is_durable;
    *value = before;
    return both && machine_.Hash() == whole;
  };
  EXPECT_TRUE(differs(&gang.kept.satisfied, true, true));
  EXPECT_TRUE(differs(&gang.kept.timed_out, true, true));
  EXPECT_TRUE(differs(&gang.kept.held_ms, 5, true));
  EXPECT_TRUE(differs(&gang.kept.requeues, 5, true));
  EXPECT_TRUE(differs(&gang.kept.cycle, 5, true));
  EXPECT_TRUE(differs(&gang.kept.cycle_valid, false, true));
  EXPECT_TRUE(differs(&gang.key, "d/other", true));
  EXPECT_TRUE(differs(&gang.created_ms, 5, false));
  EXPECT_TRUE(differs(&gang.retry_at_ms, 5, false));
  EXPECT_TRUE(differs(&gang.kept.evicting, true, true));
  EXPECT_TRUE(differs(&gang.reason.code, ReasonCode::kNoRoom, false));
  EXPECT_TRUE(differs(&gang.reason.text, "other", false));
  EXPECT_TRUE(differs(&gang.warnings, std::vector<std::string>{"x"}, false));
  EXPECT_TRUE(differs(&plan.id, 99, false));
  EXPECT_TRUE(differs(&plan.committed, true, false));
  EXPECT_TRUE(differs(&plan.held, 0, false));
  EXPECT_TRUE(differs(&plan.last_arrival_ms, 5, false));
  EXPECT_TRUE(differs(&plan.slots[0].state, SlotState::kOffered, false));
  EXPECT_TRUE(differs(&plan.slots[0].pod, nullptr, false));
  EXPECT_TRUE(differs(&Break(PodAt("g-2")).state, MemberState::kRunning, false));
  EXPECT_TRUE(differs(&Break(PodAt("g-2")).submitted, true, false));
  Binding& binding = Break(machine_.bindings().Of(PodAt("lone")));
  EXPECT_TRUE(differs(&binding.phase, BindingPhase::kFailed, false));
  EXPECT_TRUE(differs(&binding.attempts, 7, false));
  EXPECT_TRUE(differs(&Break(machine_.bindings().PermissionOf(PodAt("lone"))).bind_by_ms, 7, false));
}

}  // namespace
}  // namespace muster
