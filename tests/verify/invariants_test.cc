// Tests of the checker: it finds each wrong count, and the hash changes with everything that changes a later answer.
#include "tests/verify/invariants.h"

#include "tests/state/machine/machine_fixture.h"
#include "tests/verify/hash.h"

namespace muster {
namespace {

class Invariants : public WholeMachine {
 protected:
  Invariants() {
    Apply(UpsertNode{SmallNode("n", 4)});
    PutGang("g", 2);
    AskAndBind("g-1", 1);
    Apply(UpsertPod{Lone("lone", 1)});
    Apply(Bind{"lone", "n", 2});
  }
  // The same object, writable, so that the test can corrupt it.
  template <typename T>
  static T& Writable(const T& object) {
    return const_cast<T&>(object);
  }
  void ExpectBroken(const std::string& what) const {
    const absl::Status status = CheckInvariants(machine_);
    EXPECT_NE(status.message().find(what), absl::string_view::npos) << status;
  }
};

TEST_F(Invariants, WrongMemberCount_IsFound) {
  Gang& gang = Writable(GangAt("g"));
  ++gang.gated;
  ExpectBroken("counts 1 gated and 1 plannable members, has 0 and 1");
  --gang.gated;
  --gang.plannable;
  ExpectBroken("counts 0 gated and 0 plannable members, has 0 and 1");
  ++gang.plannable;
  ++gang.attempted;
  ExpectBroken("counts 1 turns, has 0");
  --gang.attempted;
  EXPECT_TRUE(CheckInvariants(machine_).ok());
  Writable(PodAt("g-1")).state = MemberState::kCommitted;
  ExpectBroken("wrong member set");
  Writable(PodAt("g-1")).state = MemberState::kWaiting;
  Writable(PodAt("g-1")).gang = nullptr;
  ExpectBroken("wrong member set");
  Writable(PodAt("g-1")).gang = &gang;
  Writable(PodAt("lone")).gang = &gang;
  ExpectBroken("pod lone is listed wrongly as lone, or as a member");
  Writable(machine_.rooms().gangs.lone())[static_cast<size_t>(PodAt("lone").id)] = false;
  ExpectBroken("member sets and pods disagree");
  Writable(machine_.rooms().gangs.lone())[static_cast<size_t>(PodAt("lone").id)] = true;
  Writable(PodAt("lone")).gang = nullptr;
}

TEST_F(Invariants, WrongPlanState_IsFound) {
  Plan& plan = Writable(*machine_.reader().FindPlan(GangAt("g")));
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
  plan.first_free = 2;
  ExpectBroken("slot 1 is free before the first free one, 2");
  plan.first_free = 1;
  ++plan.by_leaf[0];
  ExpectBroken("miscounts its slots by subgroup");
  --plan.by_leaf[0];
  Writable(GangAt("g")).rules.min_member = 3;
  ExpectBroken("has 2 slots and misses 3");
  Writable(GangAt("g")).rules.min_member = 2;
  Writable(GangAt("g")).submitted = true;
  ExpectBroken("was submitted and slot 1 has no pod");
  Writable(GangAt("g")).submitted = false;
  plan.uses_holds = false;
  ExpectBroken("counts 2 promised holds, has 0");
  plan.uses_holds = true;
  plan.idle_deadline_ms -= 60'000;
  ExpectBroken("is due earlier");
  plan.idle_deadline_ms += 60'000;
  EXPECT_TRUE(CheckInvariants(machine_).ok());
}

TEST_F(Invariants, WrongCharge_IsFound) {
  auto& node = Writable(machine_.rooms().cluster.node(machine_.rooms().cluster.FindNode("n")));
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
  EXPECT_TRUE(CheckInvariants(machine_).ok());
}

TEST_F(Invariants, WrongFreeOrPromisedAmount_IsFound) {
  muster::Node& node = Writable(machine_.rooms().cluster.node(0));
  node.free.Add(kCpu, 1);
  ExpectBroken("what is free is not what is left");
  node.free.Add(kCpu, -1);
  EXPECT_TRUE(CheckInvariants(machine_).ok());
  auto& promised = Writable(machine_.rooms().ledger.promised());
  promised.push_back(promised.front());
  ExpectBroken("the nodes that are promised are listed wrongly");
}

TEST_F(Invariants, WrongPodState_IsFound) {
  Pod& lone = Writable(PodAt("lone"));
  const ClassId cls = lone.cls;
  lone.cls = kNoClass;
  ExpectBroken("is charged for another class than its own");
  lone.cls = cls;
  Ledger::PodCharge& charge = Writable(machine_.rooms().ledger.ChargeOf(lone.id));
  EXPECT_EQ(charge.in_flight, lone.state == MemberState::kCommitted);
  charge.in_flight = !charge.in_flight;
  ExpectBroken("is bound or being bound");
  charge.in_flight = false;
  lone.state = MemberState::kBound;
  lone.facts.node_name = "m";
  ExpectBroken("does not use node m, where it is");
  lone.facts.node_name = "n";
  EXPECT_TRUE(CheckInvariants(machine_).ok()) << CheckInvariants(machine_);
  charge.kind = ChargeKind::kReserved;
  ExpectBroken("does not use node n, where it is");
  charge.kind = ChargeKind::kUsed;
}

// --- the hash differs between states (P-1) ---

TEST_F(Invariants, Hash_AnyRelevantField_ChangesTheHash) {
  const uint64_t whole = LogicalHash(machine_);
  const uint64_t durable = DurableHash(machine_);
  Gang& gang = Writable(GangAt("g"));
  Plan& plan = Writable(*machine_.reader().FindPlan(gang));
  const auto differs = [&](auto* value, auto other, bool is_durable) {
    const auto before = std::exchange(*value, other);
    const bool both = LogicalHash(machine_) != whole && (DurableHash(machine_) != durable) == is_durable;
    *value = before;
    return both && LogicalHash(machine_) == whole;
  };
  EXPECT_TRUE(differs(&gang.durable.satisfied, true, true));
  EXPECT_TRUE(differs(&gang.durable.timed_out, true, true));
  EXPECT_TRUE(differs(&gang.durable.held_ms, 5, true));
  EXPECT_TRUE(differs(&gang.durable.requeues, 5, true));
  EXPECT_TRUE(differs(&gang.durable.cycle, 5, true));
  EXPECT_TRUE(differs(&gang.durable.cycle_valid, false, true));
  EXPECT_TRUE(differs(&gang.key, "d/other", true));
  EXPECT_TRUE(differs(&gang.created_ms, 5, false));
  EXPECT_TRUE(differs(&gang.retry_at_ms, 5, false));
  EXPECT_TRUE(differs(&gang.durable.evicting, true, true));
  EXPECT_TRUE(differs(&gang.reason.code, ReasonCode::kNoRoom, false));
  EXPECT_TRUE(differs(&gang.reason.text, "other", false));
  EXPECT_TRUE(differs(&gang.warnings, std::vector<std::string>{"x"}, false));
  EXPECT_TRUE(differs(&plan.id, 99, false));
  EXPECT_TRUE(differs(&plan.committed, true, false));
  EXPECT_TRUE(differs(&plan.held, 0, false));
  EXPECT_TRUE(differs(&plan.last_arrival_ms, 5, false));
  EXPECT_TRUE(differs(&plan.idle_deadline_ms, 5, false));
  EXPECT_TRUE(differs(&Writable(machine_.rooms().activations.Of(PodAt("g-2"))).queued_ms, 5, false));
  EXPECT_TRUE(differs(&Writable(machine_.rooms().activations.longest_delay()).ms, 5, false));
  EXPECT_TRUE(differs(&plan.slots[0].state, SlotState::kOffered, false));
  EXPECT_TRUE(differs(&plan.slots[0].pod, nullptr, false));
  EXPECT_TRUE(differs(&Writable(PodAt("g-2")).state, MemberState::kRunning, false));
  EXPECT_TRUE(differs(&Writable(PodAt("g-2")).submitted, true, false));
  Binding& binding = Writable(machine_.rooms().pod_lifecycle.BindingOf(PodAt("lone")));
  EXPECT_TRUE(differs(&binding.phase, BindingPhase::kFailed, false));
  EXPECT_TRUE(differs(&binding.attempts, 7, false));
  EXPECT_TRUE(differs(&Writable(machine_.rooms().pod_lifecycle.PermissionOf(PodAt("lone"))).bind_by_ms, 7, false));
}

}  // namespace
}  // namespace muster
