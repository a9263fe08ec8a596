// Fixture: the components up to the frontends, wired as in the machine. Nothing is reconciled: a test that needs a plan
// makes it.
#ifndef MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_
#define MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_

#include "state/frontends/extender_frontend.h"
#include "state/frontends/submissions_frontend.h"
#include "state/frontends/verbs_frontend.h"
#include "tests/support/rooms_fixture.h"

namespace muster {

inline constexpr int64_t kLearnedMs = 60'000;
inline constexpr int64_t kTtlMs = 60'000;

class FrontendsTest : public RoomsTest {
 protected:
  ExtenderFrontend extender_frontend_{
      {&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &sources_, &reasons_, &plans_, &activations_,
       &pod_lifecycle_, &plan_lifecycle_, &bindings_, &domains_, &queues_},
      {kLearnedMs, 0}};
  VerbsFrontend verbs_frontend_{{&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &reasons_, &plans_,
                                 &pod_lifecycle_, &nominations_, &clock_, &plan_lifecycle_, &bindings_, &domains_,
                                 &queues_}};
  SubmissionsFrontend submissions_frontend_{
      {&cluster_, &ledger_, &gangs_, &reasons_, &plans_, &submissions_, &pod_lifecycle_, &plan_lifecycle_, &bindings_},
      {kTtlMs, 2}};
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_
