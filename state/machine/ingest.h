// What the outside world announces - nodes, pods, PodGroups - taken into the rooms (SPEC D-9, D-12, K-13, S-1).
// Not thread-safe.
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

struct AnnouncementRooms {
  Cluster* cluster;
  Ledger* ledger;
  Gangs* gangs;
  Eligibility* eligibility;
  Sources* sources;
  RefusedFacts* refused;
  Backlog* backlog;
  Plans* plans;
  Calls* calls;
  Barrier* barrier;
  Nominations* nominations;
  Claims* claims;
  Repair* repair;
  Bindings* bindings;
  Restored* restored;
  Deadlines* deadlines;  // of pods
  Submissions* submissions;
  FactKeeper* facts;
  Pipeline* pipeline;
  Queues* queues;
  Planning* planning;
};

class Announcements {
 public:
  explicit Announcements(const AnnouncementRooms& rooms) : r_(rooms) {}

  // Announced, and could not be read. InvalidArgument, always.
  [[nodiscard]] absl::Status NoteUnreadable(const UnreadableFact& fact);

  // --- nodes ---
  [[nodiscard]] absl::Status PutNode(const NodeDescription& node, Step* step);
  void RemoveNode(const std::string& name, Step* step);

  // --- pods ---
  // `submitted`: came with a whole gang. InvalidArgument: it has no identity, or another's.
  [[nodiscard]] absl::Status PutPod(const PodDescription& facts, bool submitted, Step* step);
  // Harmless when it is not known.
  void RemovePod(const std::string& uid, Step* step);

  // --- namespaces ---
  // `labels` nullptr: it is gone.
  void PutNamespace(const std::string& name, const Labels* labels, Step* step);

  // --- gangs ---
  // The gang of that name, which is made up when it is not known.
  [[nodiscard]] const Gang& InternGang(absl::string_view name_space, absl::string_view name, int64_t created_ms,
                                       int64_t now_ms);
  // AlreadyExists, NotFound: as the command's mode asks.
  [[nodiscard]] absl::Status PutObject(const UpsertGangObject& command, Step* step);
  [[nodiscard]] absl::Status RemoveObject(const RemoveGangObject& command, Step* step);
  // The gang's pods say all there is to say about it, now that what stood above them is gone.
  void Redeclare(const Gang& gang);

  // --- all of it ---
  // What was kept of an earlier process's facts is announced again, and that is everything. Nothing was kept:
  // everything is still to come.
  void TakeUpFacts(Step* step);
  // Everything that `source` knows has been announced; see Sources.
  void Complete(const std::string& source, Step* step);
  // Planning begins when these were read too.
  void Expect(const std::vector<std::string>& sources);
  // What makes nodes and pods impossible as a whole, found before anything of them is taken.
  [[nodiscard]] absl::Status Check(const std::vector<NodeDescription>& nodes,
                                   const std::vector<PodDescription>& pods) const;
  void PutAll(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods, Step* step);
  // Who announced, and how far it is: a numbered step of its facts was taken.
  void TakeStep(const FactsStep& taken, Step* step);
  // The announcer has spoken, and stands by all it said to an earlier process.
  void NoteSpoke(Step* step);
  // It has not for too long: nothing new goes where nobody has said for so long what is there.
  void ShutStale(Step* step);
  // What is gone first, then gangs, nodes and pods.
  void TakeUpdate(const UpdateFacts& update, Step* step);
  // Pods and nodes that a snapshot does not name are gone; members of submitted gangs stay.
  void RemoveUnnamed(const ReplaceFacts& snapshot, Step* step);

 private:
  struct Change;  // what is new about a known pod
  void NoteHeard(NodeId id);
  void Unstale();
  // Of every node that is there and was heard so.
  void SetHeard(Heard from, Heard to);
  void AddPod(PodDescription facts, bool submitted, Step* step);
  void ChangePod(const Pod& pod, PodDescription facts, Step* step);
  void TakeFacts(const Pod& pod, PodDescription facts, bool shape_changed, Step* step);
  void ChangeGang(const Pod& pod, const Change& change, Step* step);
  void SayWhatIsRead();
  void FollowGate(const Pod& pod, bool was_gated, Step* step);
  void FollowState(const Pod& pod, Step* step);
  void FollowEnd(const Pod& pod, Step* step);
  void FollowNomination(const Pod& pod);
  void JoinGang(const Pod& pod, Step* step);
  void LeaveGang(const Pod& pod);
  void NoteUnschedulable(const Pod& pod, Step* step);
  void NoteHeard(const Pod& pod, int64_t now_ms);
  void NotifySoon(const Gang& gang, int64_t now_ms);
  void RulesChanged(const Gang& gang);
  // P-7: the classes of members that the gang says are to come.
  void HoldToCome(const Gang& gang);
  [[nodiscard]] static bool IsThatGang(const Gang& gang, const std::string& incarnation);
  using Interrupted = absl::btree_map<int64_t, std::vector<Commitment>>;  // by the start that they are part of
  [[nodiscard]] Interrupted TakeUpCommitments(Step* step);
  void PlanAgain(const std::vector<Commitment>& start, Step* step);
  enum class OwnerOf : uint8_t {
    kKnown,   // or it has none
    kFormer,  // deleted: the one that is known came after the pod
    kUnread,  // the one that is known is the former one
  };
  [[nodiscard]] OwnerOf OwnerIs(const PodDescription& facts) const;
  void FollowOwner(const Gang& gang, Step* step);
  void Learn(const PodTemplate& shape, Step* step);
  void TakeAnew(const std::string* name_space, Step* step);
  // kNoClass, and why in facts->invalid: the pod cannot be planned.
  [[nodiscard]] ClassId AcquireClass(PodDescription* facts);

  const AnnouncementRooms r_;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_INGEST_H_
