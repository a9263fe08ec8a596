// The rooms up to drivers, wired as the machine wires them. Nothing is settled: a test that needs a plan makes it.
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

class DriversTest : public RoomsTest {
 protected:
  FilterReply Filter(const std::string& uid, const std::vector<std::string>& nodes) {
    return kube_scheduler_.OnFilter({uid, std::make_shared<NodeOffer>(nodes)}, &*step_);
  }
  // "node n", "pass", "pass but n m", or "refuse Code".
  std::string Ask(const std::string& uid, const std::vector<std::string>& nodes) {
    const FilterReply reply = Filter(uid, nodes);
    if (reply.kind == FilterReply::Kind::kOneNode) return "node " + reply.node;
    if (reply.kind == FilterReply::Kind::kRefuse) return absl::StrCat("refuse ", ReasonName(reply.reason.code));
    std::string text = "pass";
    for (const std::string& node : reply.guarded) text += (&node == &reply.guarded[0] ? " but " : " ") + node;
    return text;
  }
  // What came out of a bind call.
  Lines Bind(const std::string& uid, const std::string& node, HoldToken token) {
    At(step_->now_ms());
    kube_scheduler_.OnBind({uid, node, token}, &*step_);
    return Done();
  }
  PermitReply AskPermit(const std::string& uid, const std::string& node, HoldToken token) {
    return verbs_.OnPermit({uid, node, token, 0}, &*step_);
  }
  // "permit", "wait Code" or "reject Code".
  std::string Permit(const std::string& uid, const std::string& node, HoldToken token) {
    const PermitReply reply = AskPermit(uid, node, token);
    if (reply.kind == PermitReply::Kind::kPermit) return "permit";
    return absl::StrCat(reply.kind == PermitReply::Kind::kWait ? "wait " : "reject ", ReasonName(reply.reason.code));
  }
  ReasonCode PreFilter(const std::string& uid) { return verbs_.OnPreFilter({uid}, step_->now_ms()).reason.code; }

  KubeScheduler kube_scheduler_{{&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &sources_, &reasons_, &plans_,
                                 &calls_, &barrier_, &claims_, &bindings_, &domains_, &queues_},
                                {kLearnedMs, 0}};
  Verbs verbs_{{&cluster_, &ledger_, &index_, &gangs_, &eligibility_, &reasons_, &plans_, &barrier_, &nominations_,
                &clock_, &claims_, &bindings_, &domains_, &queues_}};
  SubmissionDriver submission_driver_{
      {&cluster_, &ledger_, &gangs_, &reasons_, &plans_, &submissions_, &claims_, &bindings_}, {kTtlMs, 2}};
};

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_FRONTENDS_FRONTENDS_FIXTURE_H_
