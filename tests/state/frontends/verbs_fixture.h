// One node of four CPUs, and members whose scheduler places them itself.
#ifndef MUSTER_TESTS_STATE_FRONTENDS_VERBS_FIXTURE_H_
#define MUSTER_TESTS_STATE_FRONTENDS_VERBS_FIXTURE_H_

#include <string>

#include "tests/state/frontends/frontends_fixture.h"

namespace muster {

class VerbsTest : public DriversTest {
 protected:
  VerbsTest() {
    AddNode("n", 4);
    scheduler_ = "mine";
  }
  // Pods put from here on are placed by Muster.
  void Serve() { scheduler_.clear(); }
  const Pod& PutNonStrict(const std::string& name, const std::string& gang, int32_t min) {
    PodDescription facts = Facts(name, 1, gang, min);
    facts.gang.declaration.Own().mode = GangMode::kNonStrict;
    return Put(facts);
  }
  void PostFilter(const std::string& uid, const std::string& message = "") {
    verbs_.OnPostFilter(PodAt(uid), message, &*step_);
  }
  void Unreserve(const std::string& uid, UnreserveCause cause) { verbs_.OnUnreserve(PodAt(uid), cause, &*step_); }
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_FRONTENDS_VERBS_FIXTURE_H_
