// Fixture: the components up to the frontends, wired as in the machine. Nothing is reconciled: a test that needs a plan
// makes it.
#ifndef MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_
#define MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_

#include "state/binding/broken_plans.h"
#include "state/binding/repair.h"
#include "state/cluster/class_index.h"
#include "state/frontends/extender_frontend.h"
#include "state/frontends/submissions_frontend.h"
#include "state/frontends/verbs_frontend.h"
#include "state/reservations/backfill.h"
#include "state/reservations/deadlines.h"
#include "state/reservations/submissions.h"
#include "state/scheduling/waker.h"
#include "state/views/reader.h"
#include "tests/support/rooms_fixture.h"

namespace muster {

inline constexpr int64_t kLearnedMs = 60'000;
inline constexpr int64_t kTtlMs = 60'000;

class FrontendsTest : public RoomsTest {
 protected:
  CapacityGuard capacity_guard_{{&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &domains_}};
  SlotFilter slot_filter_{{&cluster_, &index_, &gangs_, &plans_, &domains_, &pod_lifecycle_, &plan_lifecycle_},
                          {kLearnedMs, 0}};
  MemberFilter member_filter_{{&gangs_, &eligibility_, &reasons_, &plans_, &activations_, &pod_lifecycle_,
                               &plan_lifecycle_, &queues_, &capacity_guard_, &slot_filter_}};
  ExtenderFrontend extender_frontend_{{&cluster_, &gangs_, &sources_, &plans_, &activations_, &pod_lifecycle_,
                                       &bindings_, &capacity_guard_, &member_filter_}};
  VerbsFrontend verbs_frontend_{{&cluster_, &ledger_, &gangs_, &eligibility_, &plans_, &queues_, &nominations_,
                                 &pod_lifecycle_, &plan_lifecycle_, &bindings_}};
  PermitRooms permit_{&cluster_, &gangs_,         &eligibility_, &reasons_,  &plans_,
                      &domains_, &pod_lifecycle_, &clock_,       &bindings_, &verbs_frontend_};
  int64_t now_ms_ = kT0;
  SubmissionReader submission_reader_{{&cluster_, &plans_, &submissions_, &reasons_}, &now_ms_};
  SubmissionsFrontend submissions_frontend_{{&cluster_, &ledger_, &gangs_, &reasons_, &plans_, &submissions_,
                                             &pod_lifecycle_, &plan_lifecycle_, &bindings_, &submission_reader_},
                                            {kTtlMs, 2}};
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_
