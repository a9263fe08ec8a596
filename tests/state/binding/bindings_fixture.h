// Fixture for tests of bindings: a gang of two members, planned on one node.
#ifndef MUSTER_TESTS_STATE_BINDING_BINDINGS_FIXTURE_H_
#define MUSTER_TESTS_STATE_BINDING_BINDINGS_FIXTURE_H_

#include <string>

#include "tests/support/rooms_fixture.h"

namespace muster {

class BindingsTest : public RoomsTest {
 protected:
  BindingsTest() {
    AddNode("n", 4);
    PutGang("g", 2);
    PlanNow(GangAt("g"));
  }
  // The two members of g arrive at the barrier 5 ms apart; the second arrival commits the plan.
  void Start() {
    At(kT0);
    ReachBarrier("g-1", "n", 1);
    At(kT0 + 5);
    ReachBarrier("g-2", "n", 2);
  }
  // Expects that nothing is charged or promised and no bind call is held.
  void ExpectNothingLeft() {
    ExpectNothingPromised();
    EXPECT_EQ(NodeAt("n").used_pods, 0);
    EXPECT_EQ(NodeAt("n").reserved_pods, 0);
  }
  [[nodiscard]] const Binding& BindingOf(const std::string& uid) const { return pod_lifecycle_.BindingOf(PodAt(uid)); }
  void OnTime(const std::string& uid, int64_t now_ms) {
    At(now_ms);
    bindings_.OnTime(PodAt(uid), &*ctx_);
  }
  void Delete(const std::string& uid) { bindings_.OnStateChanged(PodAt(uid), MemberState::kTerminating, &*ctx_); }
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_BINDING_BINDINGS_FIXTURE_H_
