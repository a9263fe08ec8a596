// A gang as its user declares it, independent of the dialect (SPEC section 2). Pure values.
#ifndef MUSTER_STATE_MODEL_GANG_H_
#define MUSTER_STATE_MODEL_GANG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/base/reason.h"
#include "state/base/resources.h"
#include "state/base/shared.h"
#include "state/model/subgroups.h"

namespace muster {

enum class GangMode : uint8_t { kStrict, kNonStrict };
enum class MatchPolicy : uint8_t { kOnceSatisfied, kOnlyWaiting, kWaitingAndRunning, kWaitingRunningSucceed };
enum class OnTimeout : uint8_t { kFail, kRequeue };
enum class OnMemberFailure : uint8_t { kKeep, kAll };

[[nodiscard]] absl::string_view ToString(GangMode mode);
[[nodiscard]] absl::string_view ToString(MatchPolicy policy);
// Parses the form of ToString; nullopt for anything else.
[[nodiscard]] std::optional<MatchPolicy> ParseMatchPolicy(absl::string_view text);
// All match policies, for messages.
inline constexpr char kMatchPolicies[] = "once-satisfied, only-waiting, waiting-and-running or waiting-running-succeed";
[[nodiscard]] absl::string_view ToString(OnTimeout policy);
[[nodiscard]] absl::string_view ToString(OnMemberFailure policy);

// The source of a declaration.
enum class GangDialect : uint8_t {
  kKoordinator,   // D-1: pod annotations gang.scheduling.koordinator.sh/*
  kSigsPods,      // D-2: pod labels or annotations pod-group.scheduling.sigs.k8s.io/*
  kPodGroupSigs,  // D-3: PodGroup scheduling.sigs.k8s.io/v1alpha1
  kPodGroupX,     // D-3: PodGroup scheduling.x-k8s.io/v1alpha1
  kNative,        // D-6: PodGroup scheduling.k8s.io, read only
  kApi,           // the gRPC API: a gang created there, or the pods of a submitted one (S-1)
  kKai,           // D-4: PodGroup scheduling.run.ai/v2alpha2, read only
  kVolcano,       // D-15: PodGroup scheduling.volcano.sh/v1beta1, read only
  kOwner,         // D-7: the pods' controller, read only
};
[[nodiscard]] absl::string_view ToString(GangDialect dialect);

// The fields that the user set and that could be parsed; an absent field takes its default (D-8, D-13). `warnings` has
// one sentence for the user about each repair made while parsing.
struct GangDeclaration {
  std::optional<int32_t> min_member;  // >= 0
  std::string unreadable_minimum;     // why min_member is absent although its key is present; names key and value
  std::optional<int32_t> total_number;
  std::optional<int64_t> wait_time_ms;  // > 0
  std::optional<GangMode> mode;
  std::optional<MatchPolicy> match_policy;
  std::optional<ResourceList> min_resources;
  std::optional<int32_t> priority;
  std::optional<std::string> queue;
  std::optional<OnTimeout> on_timeout;
  std::optional<OnMemberFailure> on_member_failure;
  std::optional<int64_t> stale_grace_ms;  // negative: never stale
  std::optional<bool> preemptible;
  std::optional<int64_t> duration_ms;  // > 0: the run time after the start that the owner expects
  std::vector<std::string> groups;     // "namespace/name" of every gang of its group (D-10); empty: the gang alone
  std::optional<TopologyRule> topology;
  std::vector<SubgroupDeclaration> subgroups;  // P-5; if there are any, min_member counts top-level subgroups
  std::vector<std::string> warnings;
  std::string caller;  // the authenticated gRPC caller that made it, as "token:NAME"; empty: none

  friend bool operator==(const GangDeclaration&, const GangDeclaration&) = default;
};

// The fields of a declaration that its user may replace one by one.
enum class GangField : uint8_t {
  kMinMember,
  kTotalNumber,
  kWaitTime,
  kMode,
  kMatchPolicy,
  kOnTimeout,
  kOnMemberFailure,
  kMinResources,
  kPriority,
  kGroups,
  kSubgroups,
  kTopology,
  kQueue,
  kPreemptible,
  kDuration,
};
// Returns `known` with the named fields of `update`; with the queue, also its caller. InvalidArgument, with the
// field attached ("gang.total_number"), if fields of the result contradict each other.
[[nodiscard]] absl::StatusOr<GangDeclaration> ReplaceFields(const GangDeclaration& known, const GangDeclaration& update,
                                                            const std::vector<GangField>& fields);

// The gang that a pod declares as its own.
struct GangMembership {
  std::string name;  // in the pod's namespace; empty: the pod is in no gang
  GangDialect dialect = GangDialect::kKoordinator;
  std::optional<GangDialect> key_dialect;  // the dialect of the pod's keys, if the gang has another dialect
  bool declares = false;  // the pod itself declares the gang (D-1), rather than referring to an object (D-3)
  std::string owner_uid;  // D-7: UID of the controller that owns the gang's pods; empty: not known
  std::string subgroup;   // the gang's subgroup that the pod names (P-5); empty: none
  Shared<GangDeclaration> declaration;
  Reason problem;  // D-8, D-14: the name is unusable, or the pod names two gangs; none otherwise
  // For a pod in no gang: one sentence for its owner about each key that should put it into a gang and does not.
  std::vector<std::string> ignored;

  [[nodiscard]] bool in_gang() const { return !name.empty(); }
  [[nodiscard]] GangDialect declared_in() const { return key_dialect.value_or(dialect); }
  // True if the gang is created from its pods, not from an object that they name.
  [[nodiscard]] bool declares_gang() const {
    return dialect == GangDialect::kKoordinator || dialect == GangDialect::kSigsPods ||
           (dialect == GangDialect::kApi && declares);
  }
  friend bool operator==(const GangMembership&, const GangMembership&) = default;
};

// A PodGroup object.
struct GangObject {
  GangDialect dialect = GangDialect::kPodGroupSigs;
  std::string name_space;
  std::string name;
  std::string uid;
  int64_t created_ms = 0;
  Shared<GangDeclaration> declaration;
};

// A gang's rules with every default filled in.
struct GangRules {
  int32_t min_member = 0;  // with subgroups: the fewest members with which it can start
  int32_t total_number = 0;
  bool declares_total = false;  // by its total number or minResources
  GangMode mode = GangMode::kStrict;
  MatchPolicy match_policy = MatchPolicy::kOnceSatisfied;
  OnTimeout on_timeout = OnTimeout::kFail;
  OnMemberFailure on_member_failure = OnMemberFailure::kKeep;
  bool preemptible = true;
  bool domains = false;            // the gang or a subgroup requires a domain
  SubgroupTree tree;               // empty: the gang has no subgroups
  std::vector<std::string> group;  // D-10: ids in order, without duplicates; empty: the gang alone
  int64_t wait_time_ms = 0;
  ResourceList min_resources;
  std::optional<int32_t> priority;
  std::string queue;
  std::string caller;  // of the declaration that names the queue; empty: none
  int64_t stale_grace_ms = -1;
  int64_t duration_ms = 0;  // 0: not known
  TopologyRule topology;
  std::string tree_problem;  // the error in the subgroups, if any; then min_member is -1

  // True if the gang has subgroups or a topology rule.
  [[nodiscard]] bool shaped() const { return !tree.empty() || !topology.none(); }
};

// Defaults that the operator may configure (D-8).
struct GangDefaults {
  int64_t wait_time_ms = 600'000;
  MatchPolicy match_policy = MatchPolicy::kOnceSatisfied;
};

// The largest number of gangs in one group that a declaration may name.
inline constexpr size_t kMaxGroupGangs = 256;

// The gang's topology and subgroups as text: equal for equal values; empty if it has neither.
[[nodiscard]] std::string ShapeOf(const GangRules& rules);

// Merges the declarations field by field: `annotations` before `object` (D-9), then the defaults of the gang's dialect
// (G-6, D-13). Either may be nullptr. min_member of the result is -1 if neither has a readable minimum.
[[nodiscard]] GangRules ResolveRules(const GangDeclaration* annotations, const GangDeclaration* object,
                                     GangDialect dialect, const GangDefaults& defaults);

// The fields in which `later` contradicts `first` (D-9), as a phrase with both values; empty if they agree.
[[nodiscard]] std::string DescribeContradiction(const GangDeclaration& first, const GangDeclaration& later);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_GANG_H_
