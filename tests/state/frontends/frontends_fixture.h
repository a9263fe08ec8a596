// Fixture: the components up to the frontends, wired as in the machine. Nothing is reconciled: a test that needs a plan
// makes it.
#ifndef MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_
#define MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "state/frontends/extender_frontend.h"
#include "state/frontends/submissions_frontend.h"
#include "state/frontends/verbs_frontend.h"
#include "tests/support/rooms_fixture.h"

namespace muster {

inline constexpr int64_t kLearnedMs = 60'000;
inline constexpr int64_t kTtlMs = 60'000;

class FrontendsTest : public RoomsTest {
 protected:
  FilterReply Filter(const std::string& uid, const std::vector<std::string>& nodes) {
    return extender_frontend_.OnFilter({uid, std::make_shared<NodeOffer>(nodes)}, &*ctx_);
  }
  // "node n", "pass", "pass but n m", or "refuse Code".
  std::string Ask(const std::string& uid, const std::vector<std::string>& nodes) {
    const FilterReply reply = Filter(uid, nodes);
    if (reply.kind == FilterReply::Kind::kSingleNode) return "node " + reply.node;
    if (reply.kind == FilterReply::Kind::kRefuse) return absl::StrCat("refuse ", ReasonName(reply.reason.code));
    std::string text = "pass";
    for (const std::string& node : reply.guarded) text += (&node == &reply.guarded[0] ? " but " : " ") + node;
    return text;
  }
  // The outcome of a bind call.
  Lines Bind(const std::string& uid, const std::string& node, HoldToken token) {
    At(ctx_->now_ms());
    extender_frontend_.OnBind({uid, node, token}, &*ctx_);
    return Done();
  }
  PermitReply AskPermit(const std::string& uid, const std::string& node, HoldToken token) {
    return verbs_frontend_.OnPermit({uid, node, token, 0}, &*ctx_);
  }
  // "permit", "wait Code" or "reject Code".
  std::string Permit(const std::string& uid, const std::string& node, HoldToken token) {
    const PermitReply reply = AskPermit(uid, node, token);
    if (reply.kind == PermitReply::Kind::kPermit) return "permit";
    return absl::StrCat(reply.kind == PermitReply::Kind::kWait ? "wait " : "reject ", ReasonName(reply.reason.code));
  }
  ReasonCode PreFilter(const std::string& uid) {
    return verbs_frontend_.OnPreFilter({uid}, ctx_->now_ms()).reason.code;
  }

  ExtenderFrontend extender_frontend_{
      {&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &sources_, &reasons_, &plans_, &activations_,
       &pod_lifecycle_, &plan_lifecycle_, &bindings_, &domains_, &queues_},
      {kLearnedMs, 0}};
  VerbsFrontend verbs_frontend_{{&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &reasons_, &plans_,
                                 &pod_lifecycle_, &nominations_, &clock_, &plan_lifecycle_, &bindings_, &domains_,
                                 &queues_}};
  SubmissionsFrontend submissions_frontend_{
      {&cluster_, &ledger_, &gangs_, &reasons_, &plans_, &submissions_, &pod_lifecycle_, &plan_lifecycle_,
                                              &bindings_}, {kTtlMs, 2}};
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_
