// What a user declares about a gang, whatever dialect it was written in (SPEC section 2).
#ifndef MUSTER_STATE_MODEL_GANG_H_
#define MUSTER_STATE_MODEL_GANG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
// As ToString writes it; nullopt for anything else.
[[nodiscard]] std::optional<MatchPolicy> ParseMatchPolicy(absl::string_view text);
// What there is, for messages.
inline constexpr char kMatchPolicies[] = "once-satisfied, only-waiting, waiting-and-running or waiting-running-succeed";
[[nodiscard]] absl::string_view ToString(OnTimeout policy);
[[nodiscard]] absl::string_view ToString(OnMemberFailure policy);

// Where a declaration came from.
enum class GangDialect : uint8_t {
  kKoordinator,   // D-1: pod annotations gang.scheduling.koordinator.sh/*
  kSigsPods,      // D-2: pod labels or annotations pod-group.scheduling.sigs.k8s.io/*
  kPodGroupSigs,  // D-3: PodGroup scheduling.sigs.k8s.io/v1alpha1
  kPodGroupX,     // D-3: PodGroup scheduling.x-k8s.io/v1alpha1
  kNative,        // D-6: PodGroup scheduling.k8s.io, read only
  kApi,           // the gRPC API: a gang created there, or the pods of a submitted one (S-1)
  kKai,           // D-4: PodGroup scheduling.run.ai/v2alpha2, read only
  kVolcano,       // D-15: PodGroup scheduling.volcano.sh/v1beta1, read only
  kOwner,         // D-7: the pods' controller, which is read only
};
[[nodiscard]] absl::string_view ToString(GangDialect dialect);

// Fields that the user set and that could be read; what is absent takes its default (D-8, D-13). Repairs made while
// reading are in `warnings`, one sentence each, for the user to see.
struct GangDeclaration {
  std::optional<int32_t> min_member;  // >= 0
  std::string unreadable_minimum;     // why min_member is absent although its key is there; names key and value
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
  std::optional<int64_t> duration_ms;  // > 0: how long it runs once it has started, as its owner expects
  std::vector<std::string> groups;     // "namespace/name" of every gang of its group (D-10); empty: the gang alone
  std::optional<TopologyRule> topology;
  std::vector<SubgroupDeclaration> subgroups;  // P-5; then min_member counts those at the top
  std::vector<std::string> warnings;

  friend bool operator==(const GangDeclaration&, const GangDeclaration&) = default;
};

// The gang that a pod says it belongs to.
struct GangMembership {
  std::string name;  // in the pod's namespace; empty: the pod is in no gang
  GangDialect dialect = GangDialect::kKoordinator;
  std::optional<GangDialect> said_in;  // whose keys declare it, where the gang is another dialect's besides
  bool declares = false;  // the pod itself declares the gang (D-1), rather than referring to an object (D-3)
  std::string owner_uid;  // D-7: of the controller whose pods are the gang; empty: not known
  std::string subgroup;   // which of the gang's it belongs to (P-5); empty: none is named
  Shared<GangDeclaration> declaration;
  Reason problem;  // D-8, D-14: the name is unusable, or the pod names two gangs; none otherwise
  // Keys of a pod in no gang that were meant to put it into one and do not, a sentence each, for its owner.
  std::vector<std::string> ignored;

  [[nodiscard]] bool in_gang() const { return !name.empty(); }
  [[nodiscard]] GangDialect declared_in() const { return said_in.value_or(dialect); }
  // The gang comes into being from its pods, not from an object that they name.
  [[nodiscard]] bool declares_gang() const {
    return dialect == GangDialect::kKoordinator || dialect == GangDialect::kSigsPods ||
           (dialect == GangDialect::kApi && declares);
  }
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
  bool domains = false;            // it, or a subgroup, requires a domain
  SubgroupTree tree;               // empty: the gang has no subgroups
  std::vector<std::string> group;  // D-10: ids in order, without duplicates; empty: the gang alone
  int64_t wait_time_ms = 0;
  ResourceList min_resources;
  std::optional<int32_t> priority;
  std::string queue;
  int64_t stale_grace_ms = -1;
  int64_t duration_ms = 0;  // 0: not known
  TopologyRule topology;
  std::string tree_problem;  // what is wrong with the subgroups; min_member is -1 then

  // Placed as a tree, or by domains.
  [[nodiscard]] bool shaped() const { return !tree.empty() || !topology.none(); }
};

// Defaults that the operator may configure (D-8).
struct GangDefaults {
  int64_t wait_time_ms = 600'000;
  MatchPolicy match_policy = MatchPolicy::kOnceSatisfied;
};

// The largest number of gangs in one group that a declaration may name.
inline constexpr size_t kMaxGroupGangs = 256;

// Its domains and subgroups as text: equal for equal ones; empty: there are none.
[[nodiscard]] std::string ShapeOf(const GangRules& rules);

// `annotations` over `object`, field by field (D-9), over the defaults of the dialect that the gang is declared in
// (G-6, D-13). Either may be nullptr. The result's min_member is -1 when neither gives a readable minimum.
[[nodiscard]] GangRules ResolveRules(const GangDeclaration* annotations, const GangDeclaration* object,
                                     GangDialect dialect, const GangDefaults& defaults);

// What `later` says otherwise than `first` (D-9), as a phrase naming both values; empty when they agree.
[[nodiscard]] std::string Contradiction(const GangDeclaration& first, const GangDeclaration& later);

}  // namespace muster

#endif  // MUSTER_STATE_MODEL_GANG_H_
