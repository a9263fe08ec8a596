// Enums of the public API and of the core. Each pair is one table, for both directions.
#ifndef MUSTER_SERVICE_RPC_ENUMS_H_
#define MUSTER_SERVICE_RPC_ENUMS_H_

#include <optional>
#include <string>

#include "muster/v1/facts.pb.h"
#include "muster/v1/gang.pb.h"
#include "muster/v1/queue.pb.h"
#include "service/rpc/errors.h"
#include "state/model/facts.h"
#include "state/model/gang.h"
#include "state/model/pod_template.h"
#include "state/model/queue.h"
#include "state/views/view.h"

namespace muster {

[[nodiscard]] v1::ReasonCode ToMessage(ReasonCode code);
[[nodiscard]] v1::Gang::Phase ToMessage(GangPhase phase);
[[nodiscard]] v1::Gang::Source ToMessage(GangDialect dialect);
[[nodiscard]] v1::Member::State ToMessage(MemberState state);
[[nodiscard]] v1::Binding::Phase ToMessage(BindingPhase phase);
[[nodiscard]] v1::GangMode ToMessage(GangMode mode);
[[nodiscard]] v1::MatchPolicy ToMessage(MatchPolicy policy);
[[nodiscard]] v1::TimeoutAction ToMessage(OnTimeout action);
[[nodiscard]] v1::MemberFailureAction ToMessage(OnMemberFailure action);
[[nodiscard]] v1::QueueSort ToMessage(QueueSort sort);
[[nodiscard]] v1::SelectorRequirement::Operator ToMessage(SelectorOperator op);

// Each returns nullopt for UNSPECIFIED. A value that this server does not know is a violation of `field`.
[[nodiscard]] std::optional<GangMode> Read(v1::GangMode mode, const std::string& field, Violations* violations);
[[nodiscard]] std::optional<MatchPolicy> Read(v1::MatchPolicy policy, const std::string& field, Violations* violations);
[[nodiscard]] std::optional<OnTimeout> Read(v1::TimeoutAction action, const std::string& field, Violations* violations);
[[nodiscard]] std::optional<OnMemberFailure> Read(v1::MemberFailureAction action, const std::string& field,
                                                  Violations* violations);
[[nodiscard]] std::optional<QueueSort> Read(v1::QueueSort sort, const std::string& field, Violations* violations);
[[nodiscard]] std::optional<PodPhase> Read(v1::PodFacts::Phase phase, const std::string& field, Violations* violations);
[[nodiscard]] std::optional<TaintEffect> Read(v1::TaintEffect effect, const std::string& field, Violations* violations);
[[nodiscard]] std::optional<SelectorOperator> Read(v1::SelectorRequirement::Operator op, const std::string& field,
                                                   Violations* violations);
[[nodiscard]] std::optional<Protocol> Read(v1::HostPort::Protocol protocol, const std::string& field,
                                           Violations* violations);
// Whether the policy is to honor; `by_default` for UNSPECIFIED.
[[nodiscard]] bool ReadHonor(v1::NodeInclusionPolicy policy, bool by_default, const std::string& field,
                             Violations* violations);
// Whether the operator is EXISTS.
[[nodiscard]] bool ReadExists(v1::Toleration::Operator op, const std::string& field, Violations* violations);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_ENUMS_H_
