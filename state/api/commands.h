// The inputs of the core. Every change is one of these commands; the time is an argument of Apply. Plain values.
#ifndef MUSTER_STATE_API_COMMANDS_H_
#define MUSTER_STATE_API_COMMANDS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "state/model/facts.h"
#include "state/model/gang.h"
#include "state/model/queue.h"

namespace muster {

using HoldToken = uint64_t;  // names one held call, unique per process

// --- facts: the state of other systems ---
struct UpsertNode {
  NodeDescription node;
};
struct RemoveNode {
  std::string name;
};
struct UpsertPod {
  PodDescription pod;
};
struct RemovePod {
  std::string uid;
};
struct UpsertNamespace {
  std::string name;
  Labels labels;
};
struct RemoveNamespace {
  std::string name;
};
struct UpsertGangObject {
  // kCreate: AlreadyExists if the object exists. kReplace: NotFound if it does not.
  enum class Mode : uint8_t { kAny, kCreate, kReplace };
  GangObject object;
  Mode mode = Mode::kAny;
  std::vector<GangField> fields;  // kReplace: the fields of the declaration to replace; empty: all
};
struct RemoveGangObject {
  GangDialect dialect = GangDialect::kPodGroupSigs;
  std::string name_space;
  std::string name;
  bool must_exist = false;  // NotFound if it does not exist
};
// An announced fact that could not be parsed. The last valid state of the object stays in force. The command is
// refused, so that it is counted and reported like every refused fact.
struct UnreadableFact {
  FactKind kind = FactKind::kNode;
  std::string name;  // of a node; "namespace/name" for other facts
  std::string why;
};
// The source has announced everything that exists. Planning begins when this holds for every expected source (K-13).
// `source` is empty if no particular source is expected.
struct FactsRead {
  std::string source;
};
// The sources that must be read before planning begins.
struct ExpectFacts {
  std::vector<std::string> sources;
};

// The facts that an earlier process stored (S-2) count as announced; see Machine::Load. It is the first command.
struct RestoreFacts {};

// The version of facts that one announcer sends as numbered updates (S-1). An update is applied as a whole or, if any
// part of it is invalid, not at all. FailedPrecondition if updates are missing or another announcer has taken over: a
// snapshot is needed.
struct FactsVersion {
  std::string source;   // the announcer
  int64_t version = 0;  // of the state after this update; 0: a manual edit, outside the sequence
};
// A snapshot of all nodes, pods and PodGroups. It changes neither members of submitted gangs that are not confirmed yet
// nor gangs that were declared over the gRPC API.
struct ReplaceFacts {
  FactsVersion facts_version;
  std::vector<NodeDescription> nodes;
  std::vector<PodDescription> pods;
  std::vector<GangObject> gangs;
};
struct UpdateFacts {
  FactsVersion facts_version;
  std::vector<NodeDescription> nodes;
  std::vector<std::string> removed_nodes;
  std::vector<PodDescription> pods;
  std::vector<std::string> removed_pods;  // UIDs
  std::vector<GangObject> gangs;
  std::vector<RemoveGangObject> removed_gangs;
};

// --- requests of a scheduler ---
// The nodes that a scheduler offers for one pod (SPEC K-2), or all nodes. Thousands of names, of which a decision looks
// at few or none: they are stored as one text, and the set of them is made by the first Contains. Not thread-safe.
class NodeOffer {
 public:
  NodeOffer() = default;  // no node
  explicit NodeOffer(const std::vector<std::string>& names) {
    for (const std::string& name : names) Add(name);
  }
  [[nodiscard]] static NodeOffer AllNodes() {
    NodeOffer all;
    all.every_ = true;
    return all;
  }
  // The views in set_ are of this offer's own text.
  NodeOffer(NodeOffer&& other) noexcept
      : every_(other.every_), text_(std::move(other.text_)), ends_(std::move(other.ends_)) {}
  NodeOffer& operator=(NodeOffer&&) = delete;

  // Room for names of so many bytes in all, to be added.
  void Reserve(size_t bytes) {
    constexpr size_t kShortName = 8;
    text_.reserve(bytes);
    ends_.reserve(bytes / kShortName);
  }
  // REQUIRES: nothing was asked yet.
  void Add(absl::string_view name) {
    text_.append(name.data(), name.size());
    ends_.push_back(text_.size());
  }
  [[nodiscard]] bool every() const { return every_; }
  [[nodiscard, gnu::flatten]] bool Contains(absl::string_view node) const {
    if (every_) return true;
    if (set_.empty()) {
      set_.reserve(ends_.size());
      for (const absl::string_view name : names()) set_.insert(name);
    }
    return set_.contains(node);
  }
  [[nodiscard]] size_t size() const { return every_ ? std::numeric_limits<size_t>::max() : ends_.size(); }
  // The names in the order of the offer; empty if every node is offered.
  [[nodiscard]] std::vector<absl::string_view> names() const {
    std::vector<absl::string_view> names;
    names.reserve(ends_.size());
    for (size_t i = 0; i < ends_.size(); ++i) names.push_back(name(i));
    return names;
  }
  // One of them. REQUIRES: i < size(), and not every().
  [[nodiscard]] absl::string_view name(size_t i) const {
    const size_t start = i == 0 ? 0 : ends_[i - 1];
    return {text_.data() + start, ends_[i] - start};
  }

  static constexpr auto Recorded() { return std::tuple(&NodeOffer::every_, &NodeOffer::text_, &NodeOffer::ends_); }

 private:
  bool every_ = false;
  std::string text_;                                    // the names, one after the other
  std::vector<size_t> ends_;                            // where each ends
  mutable absl::flat_hash_set<absl::string_view> set_;  // empty: not made
};
// Which of the nodes that kube-scheduler offers may the pod use?
struct Filter {
  std::string uid;
  std::shared_ptr<const NodeOffer> offer;
};
// A bind call. It is held until the gang's quorum and answered through Outcome::answers.
struct Bind {
  std::string uid;
  std::string node;
  HoldToken token = 0;
};
// The caller of a held bind or of a waiting Permit is gone.
struct CallerGone {
  std::string uid;
  HoldToken token = 0;
};
struct PreemptCandidate {
  std::string node;
  std::vector<std::string> victim_uids;
};
struct Preempt {
  std::string uid;
  std::vector<PreemptCandidate> candidates;
  bool names_gang = false;  // in the caller's copy, the pod is in a gang; it may not be announced yet
};
// The framework verbs for callers that place pods themselves (G-1, G-4).
struct PreFilter {
  std::string uid;
};
struct Permit {
  std::string uid;
  std::string node;
  HoldToken token = 0;
  int64_t bind_within_ms = 0;  // time from the permit to PostBind, after which the slot is released; 0: default
};
// The nodes that a pod may use now, best first, for callers that place pods themselves. Only nodes in `offered` are
// considered; empty: all nodes.
struct FindNodes {
  std::string uid;
  std::vector<std::string> offered;
};

// G-3: the caller found no node for the pod. `message`: the reason.
struct PostFilter {
  std::string uid;
  std::string message;
};
// G-7: the caller releases the pod's slot.
enum class UnreserveCause : uint8_t { kPermitTimeout, kRejected, kBindFailed };
struct Unreserve {
  std::string uid;
  UnreserveCause cause = UnreserveCause::kRejected;
};
// The caller has bound the pod.
struct PostBind {
  std::string uid;
  std::string node;
};

// --- whole gangs for callers without a scheduler of their own (S-1) ---
// Places `pods` as one gang. A repeated id returns the state of the submission. AlreadyExists if the gang or a pod's
// UID is known already. A submission is removed with its pods if its plan is not confirmed within `ttl_ms`, or if it
// waits and its caller does not ask about it for that time.
struct SubmitGang {
  std::string id;
  std::string name_space;
  std::string name;
  Shared<GangDeclaration> declaration;
  std::vector<PodDescription> pods;
  int64_t ttl_ms = 0;
  uint64_t fingerprint = 0;  // of the whole request; a repeated id with another one is InvalidArgument
  bool confirm = false;      // also confirms the plan, if there is one now
};
// The caller accepts the plan: its pods are bound from now on. FailedPrecondition if there is no such plan (any more).
struct ConfirmGang {
  std::string id;
  int64_t plan = 0;  // from the reply to SubmitGang or AskGang
};
// A caller asks why the gang waits: the explanation of the missing capacity is computed again (S-5). Changes no
// decision.
struct RefreshExplanation {
  std::string gang;  // "namespace/name"
};
// Withdraws the plan and removes the submission with its pods. FailedPrecondition for a confirmed gang, which is not
// changed.
struct AbandonGang {
  std::string id;
};
// Returns the state of a submitted gang, and shows that its caller is still present. NotFound if the id is unknown or
// was removed.
struct AskGang {
  std::string id;
};

// --- outcomes of effects ---
enum class BindingResult : uint8_t {
  kBound,    // the pod is bound to the node as requested
  kRetry,    // unknown or not done; may be tried again until the deadline
  kRefused,  // failed, and can never succeed
};
struct BindingOutcome {
  std::string uid;
  std::string node;
  BindingResult result = BindingResult::kBound;
  std::string message;
};

// --- what operators declare ---
// Replaces the queues by the declared ones. Refused as a whole if any of them is invalid.
struct SetQueues {
  QueueRules rules;
};
// Adds or replaces some queues and removes others; the rest stays. Refused as a whole if the resulting tree is
// invalid. NotFound if a queue to remove does not exist.
struct ApplyQueues {
  std::vector<QueueSpec> put;
  std::vector<std::string> remove;
  bool only = false;  // also removes every queue that is not in `put`
};

// --- time and process ---
struct PlanRound {
  int32_t max_gangs = 64;
};
// What is due now, or a part of it: NextDeadline tells whether there is more.
struct Tick {};
// Answers every hold that is not committed (graceful shutdown).
struct Shutdown {};

using Command = std::variant<UpsertNode, RemoveNode, UpsertPod, RemovePod, UpsertGangObject, RemoveGangObject,
                             UnreadableFact, FactsRead, ExpectFacts, RestoreFacts, ReplaceFacts, UpdateFacts, Filter,
                             FindNodes, Bind, CallerGone, Preempt, PreFilter, Permit, PostFilter, Unreserve, PostBind,
                             SubmitGang, ConfirmGang, AbandonGang, AskGang, BindingOutcome, PlanRound, Tick, Shutdown,
                             SetQueues, ApplyQueues, UpsertNamespace, RemoveNamespace, RefreshExplanation>;

}  // namespace muster

#endif  // MUSTER_STATE_API_COMMANDS_H_
