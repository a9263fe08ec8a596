// Fixture for tests of the verbs: one node with four CPUs, and pods whose own scheduler places them.
#ifndef MUSTER_TESTS_STATE_FRONTENDS_VERBS_FIXTURE_H_
#define MUSTER_TESTS_STATE_FRONTENDS_VERBS_FIXTURE_H_

#include <string>

#include "tests/state/frontends/frontends_fixture.h"

namespace muster {

class VerbsTest : public FrontendsTest {
 protected:
  VerbsTest() {
    AddNode("n", 4);
    scheduler_ = "mine";
  }
  // Pods added after this call are placed by Muster.
  void Serve() { scheduler_.clear(); }
  const Pod& PutNonStrict(const std::string& name, const std::string& gang, int32_t min) {
    PodDescription facts = Facts(name, 1, gang, min);
    facts.gang.declaration.Mutable().mode = GangMode::kNonStrict;
    return Put(facts);
  }
  void PostFilter(const std::string& uid, const std::string& message = "") {
    verbs_frontend_.OnPostFilter(PodAt(uid), message, &*ctx_);
  }
  void Unreserve(const std::string& uid, UnreserveCause cause) {
    verbs_frontend_.OnUnreserve(PodAt(uid), cause, &*ctx_);
  }
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_FRONTENDS_VERBS_FIXTURE_H_
