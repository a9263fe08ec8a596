#include "service/rpc/enums.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

template <typename Message, typename Core>
using Pairs = std::pair<Message, Core>[];

constexpr Pairs<v1::Gang::Phase, GangPhase> kGangPhase = {
    {v1::Gang::PHASE_PENDING, GangPhase::kPending},       {v1::Gang::PHASE_PRE_SCHEDULING, GangPhase::kPreScheduling},
    {v1::Gang::PHASE_SCHEDULING, GangPhase::kScheduling}, {v1::Gang::PHASE_SCHEDULED, GangPhase::kScheduled},
    {v1::Gang::PHASE_RUNNING, GangPhase::kRunning},       {v1::Gang::PHASE_UNKNOWN, GangPhase::kUnknown},
    {v1::Gang::PHASE_FINISHED, GangPhase::kFinished},     {v1::Gang::PHASE_FAILED, GangPhase::kFailed}};
constexpr Pairs<v1::Gang::Source, GangDialect> kSource = {
    {v1::Gang::SOURCE_KOORDINATOR_ANNOTATIONS, GangDialect::kKoordinator},
    {v1::Gang::SOURCE_POD_GROUP_ANNOTATIONS, GangDialect::kSigsPods},
    {v1::Gang::SOURCE_POD_GROUP_SIGS, GangDialect::kPodGroupSigs},
    {v1::Gang::SOURCE_POD_GROUP_X, GangDialect::kPodGroupX},
    {v1::Gang::SOURCE_POD_GROUP_NATIVE, GangDialect::kNative},
    {v1::Gang::SOURCE_API, GangDialect::kApi},
    {v1::Gang::SOURCE_POD_GROUP_KAI, GangDialect::kKai},
    {v1::Gang::SOURCE_POD_GROUP_VOLCANO, GangDialect::kVolcano},
    {v1::Gang::SOURCE_OWNER, GangDialect::kOwner}};
constexpr Pairs<v1::Member::State, MemberState> kMemberState = {
    {v1::Member::STATE_PENDING, MemberState::kPending},   {v1::Member::STATE_WAITING, MemberState::kWaiting},
    {v1::Member::STATE_BINDING, MemberState::kCommitted}, {v1::Member::STATE_BOUND, MemberState::kBound},
    {v1::Member::STATE_RUNNING, MemberState::kRunning},   {v1::Member::STATE_SUCCEEDED, MemberState::kSucceeded},
    {v1::Member::STATE_FAILED, MemberState::kFailed},     {v1::Member::STATE_TERMINATING, MemberState::kTerminating}};
constexpr Pairs<v1::Binding::Phase, BindingPhase> kBindingPhase = {
    {v1::Binding::PHASE_PENDING, BindingPhase::kPending},
    {v1::Binding::PHASE_SUCCEEDED, BindingPhase::kSucceeded},
    {v1::Binding::PHASE_FAILED, BindingPhase::kFailed}};
constexpr Pairs<v1::GangMode, GangMode> kGangMode = {{v1::GANG_MODE_STRICT, GangMode::kStrict},
                                                     {v1::GANG_MODE_NON_STRICT, GangMode::kNonStrict}};
constexpr Pairs<v1::MatchPolicy, MatchPolicy> kMatchPolicy = {
    {v1::MATCH_POLICY_ONCE_SATISFIED, MatchPolicy::kOnceSatisfied},
    {v1::MATCH_POLICY_ONLY_WAITING, MatchPolicy::kOnlyWaiting},
    {v1::MATCH_POLICY_WAITING_AND_RUNNING, MatchPolicy::kWaitingAndRunning},
    {v1::MATCH_POLICY_WAITING_RUNNING_SUCCEED, MatchPolicy::kWaitingRunningSucceed}};
constexpr Pairs<v1::TimeoutAction, OnTimeout> kTimeoutAction = {{v1::TIMEOUT_ACTION_FAIL, OnTimeout::kFail},
                                                                {v1::TIMEOUT_ACTION_REQUEUE, OnTimeout::kRequeue}};
constexpr Pairs<v1::MemberFailureAction, OnMemberFailure> kMemberFailureAction = {
    {v1::MEMBER_FAILURE_ACTION_KEEP, OnMemberFailure::kKeep},
    {v1::MEMBER_FAILURE_ACTION_EVICT_ALL, OnMemberFailure::kAll}};
constexpr Pairs<v1::QueueSort, QueueSort> kQueueSort = {{v1::QUEUE_SORT_FIFO, QueueSort::kFifo},
                                                        {v1::QUEUE_SORT_FAIR, QueueSort::kFair}};
constexpr Pairs<v1::PodFacts::Phase, PodPhase> kPodPhase = {{v1::PodFacts::PHASE_PENDING, PodPhase::kPending},
                                                            {v1::PodFacts::PHASE_RUNNING, PodPhase::kRunning},
                                                            {v1::PodFacts::PHASE_SUCCEEDED, PodPhase::kSucceeded},
                                                            {v1::PodFacts::PHASE_FAILED, PodPhase::kFailed}};
constexpr Pairs<v1::TaintEffect, TaintEffect> kTaintEffect = {
    {v1::TAINT_EFFECT_NO_SCHEDULE, TaintEffect::kNoSchedule},
    {v1::TAINT_EFFECT_PREFER_NO_SCHEDULE, TaintEffect::kPreferNoSchedule},
    {v1::TAINT_EFFECT_NO_EXECUTE, TaintEffect::kNoExecute}};
constexpr Pairs<v1::SelectorRequirement::Operator, SelectorOperator> kSelectorOperator = {
    {v1::SelectorRequirement::OPERATOR_IN, SelectorOperator::kIn},
    {v1::SelectorRequirement::OPERATOR_NOT_IN, SelectorOperator::kNotIn},
    {v1::SelectorRequirement::OPERATOR_EXISTS, SelectorOperator::kExists},
    {v1::SelectorRequirement::OPERATOR_DOES_NOT_EXIST, SelectorOperator::kDoesNotExist},
    {v1::SelectorRequirement::OPERATOR_GT, SelectorOperator::kGt},
    {v1::SelectorRequirement::OPERATOR_LT, SelectorOperator::kLt}};
constexpr Pairs<v1::HostPort::Protocol, Protocol> kProtocol = {{v1::HostPort::PROTOCOL_TCP, Protocol::kTcp},
                                                               {v1::HostPort::PROTOCOL_UDP, Protocol::kUdp},
                                                               {v1::HostPort::PROTOCOL_SCTP, Protocol::kSctp}};
constexpr Pairs<v1::NodeInclusionPolicy, bool> kHonor = {{v1::NODE_INCLUSION_POLICY_HONOR, true},
                                                         {v1::NODE_INCLUSION_POLICY_IGNORE, false}};
constexpr Pairs<v1::Toleration::Operator, bool> kExists = {{v1::Toleration::OPERATOR_EQUAL, false},
                                                           {v1::Toleration::OPERATOR_EXISTS, true}};

// UNSPECIFIED if the table has no such value.
template <typename Message, typename Core, size_t kSize>
Message Find(const std::pair<Message, Core> (&table)[kSize], Core value) {
  for (const auto& [message, core] : table) {
    if (core == value) return message;
  }
  return Message{};
}

// "GANG_MODE_STRICT or GANG_MODE_NON_STRICT"
template <typename Message, typename Core, size_t kSize>
std::string NamesOf(const std::pair<Message, Core> (&table)[kSize]) {
  const google::protobuf::EnumDescriptor* type = google::protobuf::GetEnumDescriptor<Message>();
  std::string out;
  for (size_t i = 0; i < kSize; ++i) {
    const google::protobuf::EnumValueDescriptor* value = type->FindValueByNumber(static_cast<int>(table[i].first));
    absl::StrAppend(&out, i == 0 ? "" : i + 1 == kSize ? " or " : ", ", value->name());
  }
  return out;
}

template <typename Message, typename Core, size_t kSize>
std::optional<Core> Find(const std::pair<Message, Core> (&table)[kSize], Message value, const std::string& field,
                         Violations* violations) {
  if (value == Message{}) return std::nullopt;
  for (const auto& [message, core] : table) {
    if (message == value) return core;
  }
  violations->Add(field, absl::StrCat(static_cast<int>(value), "; expected ", NamesOf(table)));
  return std::nullopt;
}

}  // namespace

// The numbers are the same; tests/service/rpc/contract_test.cc compares the names.
v1::ReasonCode ToMessage(ReasonCode code) { return static_cast<v1::ReasonCode>(code); }

v1::Gang::Phase ToMessage(GangPhase phase) { return Find(kGangPhase, phase); }
v1::Gang::Source ToMessage(GangDialect dialect) { return Find(kSource, dialect); }
v1::Member::State ToMessage(MemberState state) { return Find(kMemberState, state); }
v1::Binding::Phase ToMessage(BindingPhase phase) { return Find(kBindingPhase, phase); }
v1::GangMode ToMessage(GangMode mode) { return Find(kGangMode, mode); }
v1::MatchPolicy ToMessage(MatchPolicy policy) { return Find(kMatchPolicy, policy); }
v1::TimeoutAction ToMessage(OnTimeout action) { return Find(kTimeoutAction, action); }
v1::MemberFailureAction ToMessage(OnMemberFailure action) { return Find(kMemberFailureAction, action); }
v1::QueueSort ToMessage(QueueSort sort) { return Find(kQueueSort, sort); }
v1::SelectorRequirement::Operator ToMessage(SelectorOperator op) { return Find(kSelectorOperator, op); }

std::optional<GangMode> Read(v1::GangMode mode, const std::string& field, Violations* violations) {
  return Find(kGangMode, mode, field, violations);
}
std::optional<MatchPolicy> Read(v1::MatchPolicy policy, const std::string& field, Violations* violations) {
  return Find(kMatchPolicy, policy, field, violations);
}
std::optional<OnTimeout> Read(v1::TimeoutAction action, const std::string& field, Violations* violations) {
  return Find(kTimeoutAction, action, field, violations);
}
std::optional<OnMemberFailure> Read(v1::MemberFailureAction action, const std::string& field, Violations* violations) {
  return Find(kMemberFailureAction, action, field, violations);
}
std::optional<QueueSort> Read(v1::QueueSort sort, const std::string& field, Violations* violations) {
  return Find(kQueueSort, sort, field, violations);
}
std::optional<PodPhase> Read(v1::PodFacts::Phase phase, const std::string& field, Violations* violations) {
  return Find(kPodPhase, phase, field, violations);
}
std::optional<TaintEffect> Read(v1::TaintEffect effect, const std::string& field, Violations* violations) {
  return Find(kTaintEffect, effect, field, violations);
}
std::optional<SelectorOperator> Read(v1::SelectorRequirement::Operator op, const std::string& field,
                                     Violations* violations) {
  return Find(kSelectorOperator, op, field, violations);
}
std::optional<Protocol> Read(v1::HostPort::Protocol protocol, const std::string& field, Violations* violations) {
  return Find(kProtocol, protocol, field, violations);
}
bool ReadHonor(v1::NodeInclusionPolicy policy, bool by_default, const std::string& field, Violations* violations) {
  return Find(kHonor, policy, field, violations).value_or(by_default);
}
bool ReadExists(v1::Toleration::Operator op, const std::string& field, Violations* violations) {
  return Find(kExists, op, field, violations).value_or(false);
}

}  // namespace muster
