// Takes announced facts - nodes, pods, namespaces, gang objects - into the components that own them, and restores them
// after a restart (SPEC D-9, D-12, K-13, S-1). Not thread-safe.
#ifndef MUSTER_STATE_MACHINE_INGEST_H_
#define MUSTER_STATE_MACHINE_INGEST_H_

#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "state/binding/bindings.h"
#include "state/gangs/refused_facts.h"
#include "state/gangs/sources.h"
#include "state/machine/fact_recorder.h"
#include "state/persistence/records.h"
#include "state/queueing/queues.h"
#include "state/scheduling/planning.h"

namespace muster {

struct IngestRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  Eligibility* eligibility;
  Sources* sources;
  RefusedFacts* refused;
  Backlog* backlog;
  Plans* plans;
  Activations* activations;
  PodLifecycle* pod_lifecycle;
  Nominations* nominations;
  PlanLifecycle* plan_lifecycle;
  Repair* repair;
  Bindings* bindings;
  RestoredRecords* restored;
  Deadlines* deadlines;  // of pods
  Submissions* submissions;
  FactRecorder* facts;
  FutureReservations* future_reservations;
  Queues* queues;
  Planning* planning;
};

class Ingest {
 public:
  explicit Ingest(const IngestRooms& rooms) : r_(rooms) {}

  // A fact was announced that could not be read. Always returns InvalidArgument.
  [[nodiscard]] absl::Status OnUnreadableFact(const UnreadableFact& fact);

  // --- nodes ---
  [[nodiscard]] absl::Status PutNode(const NodeDescription& node, ApplyContext* ctx);
  void RemoveNode(const std::string& name, ApplyContext* ctx);

  // --- pods ---
  // `submitted`: the pod is part of a submission. InvalidArgument: its UID or name is empty, or its UID belongs to
  // another pod.
  [[nodiscard]] absl::Status PutPod(const PodDescription& facts, bool submitted, ApplyContext* ctx);
  // No effect if the pod is not known.
  void RemovePod(const std::string& uid, ApplyContext* ctx);

  // --- namespaces ---
  // `labels` nullptr: the namespace was deleted.
  void PutNamespace(const std::string& name, const Labels* labels, ApplyContext* ctx);

  // --- gangs ---
  // The gang of that name; added if it is not known.
  [[nodiscard]] const Gang& InternGang(absl::string_view name_space, absl::string_view name, int64_t created_ms,
                                       int64_t now_ms);
  // AlreadyExists: mode kCreate and the object exists. NotFound: mode kReplace, or `must_exist`, and it does not.
  [[nodiscard]] absl::Status PutObject(const UpsertGangObject& command, ApplyContext* ctx);
  [[nodiscard]] absl::Status RemoveObject(const RemoveGangObject& command, ApplyContext* ctx);
  // Recomputes the gang's rules after its declarations changed.
  void Redeclare(const Gang& gang);

  // --- snapshots, updates and restart ---
  // Replays the facts that an earlier process recorded. If it recorded all facts, they are then complete. No effect if
  // there are no records.
  void RestoreFacts(ApplyContext* ctx);
  // `source` has announced everything that it knows; see Sources. After the last source, unfinished starts are restored
  // and planning begins.
  void Complete(const std::string& source, ApplyContext* ctx);
  // Planning does not begin before these sources are complete.
  void ExpectSources(const std::vector<std::string>& sources);
  // InvalidArgument: the nodes and pods cannot all be valid. Call it before the first of them is taken.
  [[nodiscard]] absl::Status Check(const std::vector<NodeDescription>& nodes,
                                   const std::vector<PodDescription>& pods) const;
  void PutAll(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods, ApplyContext* ctx);
  // A numbered update of the announcer was applied: records the announcer and its version.
  void OnFactsStep(const FactsVersion& taken, ApplyContext* ctx);
  // The announcer confirms the facts that it announced to an earlier process: they are no longer stale.
  void ConfirmRestoredFacts(ApplyContext* ctx);
  // The announcer has been silent for too long: nothing new is placed on the nodes that only an earlier process knew.
  void ExpireStaleNodes(ApplyContext* ctx);
  // Applies removals first, then gangs, nodes and pods.
  void ApplyUpdate(const UpdateFacts& update, ApplyContext* ctx);
  // Removes pods, nodes and PodGroups that the snapshot does not contain; members of submitted gangs stay.
  void RemoveAbsent(const ReplaceFacts& snapshot, ApplyContext* ctx);

 private:
  struct Change;  // the differences between two announcements of a pod
  void MarkObserved(NodeId id);
  void ClearStale();
  // Changes the freshness of all present nodes that have `from`.
  void SetFreshness(Freshness from, Freshness to);
  void AddPod(PodDescription facts, bool submitted, ApplyContext* ctx);
  void UpdatePod(const Pod& pod, PodDescription facts, ApplyContext* ctx);
  void ApplyFacts(const Pod& pod, PodDescription facts, bool shape_changed, ApplyContext* ctx);
  void MoveToGang(const Pod& pod, const Change& change, ApplyContext* ctx);
  void RefreshReadStatus();
  void OnGateChanged(const Pod& pod, bool was_gated, ApplyContext* ctx);
  void OnPodStateChanged(const Pod& pod, ApplyContext* ctx);
  void OnTermination(const Pod& pod, ApplyContext* ctx);
  void OnNominationChanged(const Pod& pod);
  void JoinGang(const Pod& pod, ApplyContext* ctx);
  void LeaveGang(const Pod& pod);
  void OnUnschedulable(const Pod& pod, ApplyContext* ctx);
  void MarkObserved(const Pod& pod, int64_t now_ms);
  void ScheduleNotification(const Gang& gang, int64_t now_ms);
  void OnRulesChanged(const Gang& gang);
  // P-7: acquires the classes of the gang's future members, and releases those of before.
  void RetainFutureClasses(const Gang& gang);
  [[nodiscard]] static bool IsIncarnationOf(const Gang& gang, const std::string& incarnation);
  using InterruptedStarts = absl::btree_map<int64_t, std::vector<Commitment>>;  // by id of the start
  [[nodiscard]] InterruptedStarts RestoreCommitments(ApplyContext* ctx);
  void RestorePlans(const std::vector<Commitment>& start, ApplyContext* ctx);
  enum class OwnerMatch : uint8_t {
    kKnown,   // the pod's owner is the known one, or the pod has no owner
    kFormer,  // the pod's owner was deleted: the known owner is newer than the pod
    kUnread,  // the pod's owner is not read yet: the known owner is older than the pod
  };
  [[nodiscard]] OwnerMatch MatchOwner(const PodDescription& facts) const;
  void OnOwnerChanged(const Gang& gang, ApplyContext* ctx);
  void Learn(const PodTemplate& shape, ApplyContext* ctx);
  void Reclassify(const std::string* name_space, ApplyContext* ctx);
  // Returns kNoClass, with the cause in facts->invalid, if the pod cannot be planned.
  [[nodiscard]] ClassId AcquireClass(PodDescription* facts);

  const IngestRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_INGEST_H_
