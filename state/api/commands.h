// What goes into the core. Every change is one of these commands; the time is an argument of Apply.
#ifndef MUSTER_STATE_API_COMMANDS_H_
#define MUSTER_STATE_API_COMMANDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "state/api/offer.h"
#include "state/model/facts.h"
#include "state/model/gang.h"
#include "state/model/node.h"
#include "state/model/pod.h"
#include "state/model/queue.h"

namespace muster {

using HoldToken = uint64_t;  // names one held call, unique per process

// --- facts: what the outside world says ---
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
  // kCreate: AlreadyExists when it is there. kReplace: NotFound when it is not.
  enum class Mode : uint8_t { kAny, kCreate, kReplace };
  GangObject object;
  Mode mode = Mode::kAny;
};
struct RemoveGangObject {
  GangDialect dialect = GangDialect::kPodGroupSigs;
  std::string name_space;
  std::string name;
  bool must_exist = false;  // NotFound otherwise
};
// Something was announced that could not even be read; what was known of it before stands. Refused, so that it is
// counted and told like everything that the core refuses.
struct UnreadableFact {
  FactKind kind = FactKind::kNode;
  std::string name;  // of a node; "namespace/name" otherwise
  std::string why;
};
// Everything that existed has been announced by this source; planning begins when that is so of every source that is
// expected (K-13). Empty: by whoever announces, where none in particular is expected.
struct FactsRead {
  std::string source;
};
// The sources that must be read before anything is planned.
struct ExpectFacts {
  std::vector<std::string> sources;
};

// What an earlier process was told, where that was kept (S-2), counts as announced; see Machine::Load. The first
// command.
struct TakeUpFacts {};

// Facts in numbered steps, from one announcer (S-1). A step is applied as a whole or, when something in it cannot be
// right, not at all. FailedPrecondition: steps are missing, or another announcer has taken over; a snapshot is needed.
struct FactsStep {
  std::string source;   // who announces
  int64_t version = 0;  // of the state that holds after this step; 0: an edit by hand, outside the sequence
};
// All nodes and pods there are. Members of submitted gangs that are not confirmed yet are not touched.
struct ReplaceFacts {
  FactsStep step;
  std::vector<NodeDescription> nodes;
  std::vector<PodDescription> pods;
};
struct UpdateFacts {
  FactsStep step;
  std::vector<NodeDescription> nodes;
  std::vector<std::string> removed_nodes;
  std::vector<PodDescription> pods;
  std::vector<std::string> removed_pods;  // UIDs
  std::vector<GangObject> gangs;
  std::vector<RemoveGangObject> removed_gangs;
};

// --- questions of a scheduler ---
// Where may the pod go, of the nodes that kube-scheduler offers for it?
struct Filter {
  std::string uid;
  std::shared_ptr<const NodeOffer> offer;
};
// A bind call: held until its gang's quorum, answered through Outcome::answers.
struct Bind {
  std::string uid;
  std::string node;
  HoldToken token = 0;
};
// The caller of a held bind or of a waiting Permit is gone.
struct EndHold {
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
  bool names_gang = false;  // the pod as the caller has it belongs to a gang: it may come before any announcement
};
// The framework verbs for callers that place pods themselves (G-1, G-4).
struct PreFilter {
  std::string uid;
};
struct Permit {
  std::string uid;
  std::string node;
  HoldToken token = 0;
  int64_t bind_within_ms = 0;  // once permitted, PostBind must come within it, else the place is given back; 0: default
};
// Where a pod may go now, best first: for callers that place pods themselves. Nodes outside `offered` are left out;
// empty: every node there is.
struct FindNodes {
  std::string uid;
  std::vector<std::string> offered;
};

// G-3: the caller found no node for the pod. `message` says why.
struct PostFilter {
  std::string uid;
  std::string message;
};
// G-7: the caller gives the pod's place back.
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
// Places `pods` as one gang. The same id again: the answer tells how it stands. AlreadyExists: the gang or a pod's UID
// is known already. What is planned and not confirmed within `ttl_ms`, or waits and is not asked about for as long, is
// dropped with its pods.
struct SubmitGang {
  std::string id;
  std::string name_space;
  std::string name;
  Shared<GangDeclaration> declaration;
  std::vector<PodDescription> pods;
  int64_t ttl_ms = 0;
  uint64_t fingerprint = 0;  // of the whole request: the same id with another one is InvalidArgument
};
// The caller takes the plan: its pods are bound from now on. FailedPrecondition: there is no such plan (any more).
struct ConfirmGang {
  std::string id;
  int64_t plan = 0;  // as answered by SubmitGang or AskGang
};
// Gives the plan back and forgets the pods. A confirmed gang is left alone (FailedPrecondition).
// Somebody asks why the gang waits: what is said of the room that it lacks is said as of now (S-5). Decides nothing.
struct LookAgain {
  std::string gang;  // "namespace/name"
};
struct AbandonGang {
  std::string id;
};
// How a submitted gang stands; who asks is still there. NotFound: no such id, or forgotten.
struct AskGang {
  std::string id;
};

// --- outcomes of effects ---
enum class BindingResult : uint8_t {
  kBound,    // the pod is on the node, as asked
  kRetry,    // not known or not done; may be tried again while its time lasts
  kRefused,  // will never succeed, and did not
};
struct BindingOutcome {
  std::string uid;
  std::string node;
  BindingResult result = BindingResult::kBound;
  std::string message;
};

// --- what operators declare ---
// The queues as they are declared now, in place of those that were. Refused as a whole where anything is wrong.
struct SetQueues {
  QueueRules rules;
};
// Some queues are declared, anew or otherwise, and some are no more; the rest stays. Refused as a whole where
// anything is wrong with the tree that comes of it. NotFound: one that is to go does not exist.
struct ApplyQueues {
  std::vector<QueueSpec> put;
  std::vector<std::string> remove;
  bool only = false;  // whatever is not put is no more
};

// --- time and process ---
struct PlanRound {
  int32_t max_gangs = 64;
};
struct Tick {};
// Answers every hold that is not committed (graceful shutdown).
struct Shutdown {};

using Command = std::variant<UpsertNode, RemoveNode, UpsertPod, RemovePod, UpsertGangObject, RemoveGangObject,
                             UnreadableFact, FactsRead, ExpectFacts, TakeUpFacts, ReplaceFacts, UpdateFacts, Filter,
                             FindNodes, Bind, EndHold, Preempt, PreFilter, Permit, PostFilter, Unreserve, PostBind,
                             SubmitGang, ConfirmGang, AbandonGang, AskGang, BindingOutcome, PlanRound, Tick, Shutdown,
                             SetQueues, ApplyQueues, UpsertNamespace, RemoveNamespace, LookAgain>;

}  // namespace muster

#endif  // MUSTER_STATE_API_COMMANDS_H_
