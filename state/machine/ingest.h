// Takes announced facts - nodes, gang objects, snapshots, updates, and the facts that an earlier process recorded -
// into the components that own them (SPEC D-9, D-12, S-1, S-2, S-6). Not thread-safe.
#ifndef MUSTER_STATE_MACHINE_INGEST_H_
#define MUSTER_STATE_MACHINE_INGEST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "state/api/commands.h"
#include "state/base/components.h"
#include "state/cluster/cluster.h"
#include "state/model/facts.h"
#include "state/model/gang.h"
#include "state/model/ids.h"
#include "state/persistence/records.h"

namespace muster {

struct IngestRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  Sources* sources;
  RefusedFacts* refused;
  PlanLifecycle* plan_lifecycle;
  BrokenPlans* broken_plans;
  FactRecorder* recorder;
  GangFacts* gang_facts;
  PodFacts* pod_facts;
};

class Ingest {
 public:
  explicit Ingest(const IngestRooms& rooms) : r_(rooms) {}

  // --- one fact ---
  // A fact was announced that could not be read. Always returns InvalidArgument.
  [[nodiscard]] absl::Status OnUnreadableFact(const UnreadableFact& fact);
  [[nodiscard]] absl::Status PutNode(const NodeDescription& node, ApplyContext* ctx);
  void RemoveNode(const std::string& name, ApplyContext* ctx);
  // PodFacts::Put, and counts a refusal.
  [[nodiscard]] absl::Status PutPod(const PodDescription& facts, bool submitted, ApplyContext* ctx);
  // AlreadyExists: mode kCreate and the object exists. NotFound: mode kReplace, or `must_exist`, and it does not.
  [[nodiscard]] absl::Status PutObject(const UpsertGangObject& command, ApplyContext* ctx);
  [[nodiscard]] absl::Status RemoveObject(const RemoveGangObject& command, ApplyContext* ctx);

  // --- snapshots and updates ---
  // InvalidArgument: the nodes and pods cannot all be valid. Call it before the first of them is taken.
  [[nodiscard]] absl::Status Check(const std::vector<NodeDescription>& nodes,
                                   const std::vector<PodDescription>& pods) const;
  // Removes pods, nodes and PodGroups that the snapshot does not contain, then takes what it contains. Members of
  // submitted gangs stay. REQUIRES: Check.
  void Replace(const ReplaceFacts& snapshot, ApplyContext* ctx);
  // Applies removals first, then gangs, nodes and pods. REQUIRES: Check.
  void Update(const UpdateFacts& update, ApplyContext* ctx);
  // A numbered update of the announcer was applied: records the announcer and its version.
  void OnFactsStep(const FactsVersion& taken, ApplyContext* ctx);

  // --- after a restart ---
  // Replays the facts that an earlier process recorded. Returns whether it recorded all facts.
  [[nodiscard]] bool RestoreFacts(DurableFacts restored, ApplyContext* ctx);
  // The announcer confirms the facts that it announced to an earlier process: they are no longer stale.
  void ConfirmRestoredFacts(ApplyContext* ctx);
  // The announcer has been silent for too long: nothing new is placed on the nodes that only an earlier process knew.
  void ExpireStaleNodes(ApplyContext* ctx);

 private:
  void RemoveAbsent(const ReplaceFacts& snapshot, ApplyContext* ctx);
  void PutAll(const std::vector<GangObject>& gangs, const std::vector<NodeDescription>& nodes,
              const std::vector<PodDescription>& pods, ApplyContext* ctx);
  void RestoreAnnouncer(const Announcer& restored, ApplyContext* ctx);
  void ClearStale();
  void SetFreshness(NodeId id, Freshness freshness);
  void ReplaceFreshness(Freshness from, Freshness to);

  const IngestRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_INGEST_H_
