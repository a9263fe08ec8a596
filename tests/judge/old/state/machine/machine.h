// The decision core: a deterministic state machine.
//
// Every change is a command handed to Apply with its time; Apply returns an immediate reply, the records to make
// durable, the held calls that ended, and the effects to carry out. Whoever drives the machine makes the records
// durable *before* answers and effects leave (DESIGN.md, "Order"). The same commands at the same times give the same
// state hash on any machine: there is no clock, no randomness, no thread and no I/O in here.
//
// Not thread-safe: one writer. Invariants (checked by CheckInvariants):
//  - a node's used and reserved amounts are the sum of what pods and slots are charged;
//  - reservations never exceed what a node offers, whatever facts say;
//  - a pod is in exactly one member set of its gang, the one of its state;
//  - a plan has a slot for every member that the gang's minimum misses, or does not exist.
#ifndef MUSTER_STATE_MACHINE_MACHINE_H_
#define MUSTER_STATE_MACHINE_MACHINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "state/machine/commands.h"
#include "state/machine/effects.h"
#include "state/machine/types.h"
#include "state/machine/view.h"
#include "state/placement/class_index.h"
#include "state/placement/cluster.h"
#include "state/placement/planner.h"
#include "state/placement/statement.h"

namespace muster {

struct MachineSettings {
  GangDefaults gang;
  std::vector<std::string> scheduler_names = {"default-scheduler"};
  int32_t max_holds = 5000;             // K-4: held binds there can be at once
  int64_t hold_limit_ms = 20'000;       // K-5: the longest a bind is held
  int64_t answer_limit_ms = 45'000;     // nothing is bound this long after the call came in (below httpTimeout)
  int64_t plan_idle_ms = 30'000;        // P-11
  int64_t repair_ms = 30'000;           // G-13
  int64_t learned_refusal_ms = 60'000;  // K-6
  int32_t percentage_of_nodes = 0;      // kube-scheduler's percentageOfNodesToScore; 0: its adaptive default (K-6)
  bool cross_namespace_groups = true;   // D-10's switch
  bool one_priority = false;            // D-11's switch for every dialect
  bool nominate = true;                 // K-7: set nominated node names as a hint when gates are removed
  int64_t bind_within_ms = 300'000;     // a pod permitted to a caller of the verbs is bound within this time
  int64_t submission_ttl_ms = 60'000;   // of a submitted gang that names none
  int32_t max_submissions = 10'000;     // submitted gangs that wait or are planned; more are refused
};

class Machine {
 public:
  explicit Machine(MachineSettings settings);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Takes over records written before a restart. REQUIRES: nothing was applied yet. InvalidArgument names a record that
  // cannot be read.
  [[nodiscard]] absl::Status Load(const std::vector<Record>& records);

  // Applies one command. `now_ms` must not go back (a smaller value is taken as the last one).
  void Apply(const Command& command, int64_t now_ms, Outcome* outcome);

  // Whether PlanRound has something to look at.
  [[nodiscard]] bool PlanningDue() const;
  // When Tick is due next; kNever: not at all.
  [[nodiscard]] int64_t NextDeadline() const;

  // Equal for equal states, whatever path led there.
  [[nodiscard]] uint64_t Hash() const;
  // As Hash, of what the records describe only.
  [[nodiscard]] uint64_t DurableHash() const;
  // Recomputes everything derived and compares; the first difference, or OK.
  [[nodiscard]] absl::Status CheckInvariants() const;

  // --- reading; valid until the next Apply ---
  [[nodiscard]] const Pod* FindPod(absl::string_view uid) const;
  [[nodiscard]] const Gang* FindGang(absl::string_view key) const;
  [[nodiscard]] GangView ViewGang(const Gang& gang, bool with_members) const;
  [[nodiscard]] NodeView ViewNode(NodeId id) const;
  void ForEachGang(const std::function<void(const Gang&)>& visit) const;
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  // Keys of gangs and names of nodes that changed since the last call.
  void TakeChanged(std::vector<std::string>* gangs, std::vector<std::string>* nodes);
  // Who announces facts in numbered steps, and the last version; empty and 0: nobody yet.
  [[nodiscard]] const std::string& facts_source() const { return facts_source_; }
  [[nodiscard]] int64_t facts_version() const { return facts_version_; }
  [[nodiscard]] int32_t held_binds() const { return held_binds_; }
  [[nodiscard]] int32_t promised_holds() const { return promised_holds_; }
  [[nodiscard]] size_t pod_count() const { return pods_.size(); }

 private:
  // A gang's promise on one node, for guarding and re-verifying.
  struct Promise {
    Gang* gang;
    ClassId cls;
    int32_t pods;
  };
  // Gangs that failed alike (P-9): identical needs, tried again together when something came that one of their pods can
  // use.
  struct BlockedGroup {
    std::vector<ClassId> classes;  // of their pods; empty: any gain may help
    bool holds = false;            // waits for held binds to end, not for capacity
    absl::btree_set<QueueKey> waiting;
  };

  // When a gang is due, ties by key.
  struct GangTimer {
    int64_t due_ms;
    Gang* gang;
    friend bool operator<(const GangTimer& a, const GangTimer& b) {
      return a.due_ms != b.due_ms ? a.due_ms < b.due_ms : a.gang->key < b.gang->key;
    }
  };

  // facts.cc
  void On(const UpsertNode& command);
  void On(const RemoveNode& command);
  void On(const UpsertPod& command);
  void On(const RemovePod& command);
  void On(const UpsertGangObject& command);
  void On(const RemoveGangObject& command);
  void On(const FactsRead& command);
  // The pod that a command names; without it the command's answer is NOT_FOUND, and null is returned.
  Pod* NamedPod(const std::string& uid);
  void ChangePod(Pod* pod, const PodDescription& facts);
  void UseNode(Pod* pod);
  void JoinGang(Pod* pod);
  void LeaveGang(Pod* pod);
  void NoteStranger(Pod* pod);
  void AdoptDeclaration(Gang* gang, const Pod& pod);
  void Redeclare(Gang* gang);
  void NoteUnschedulable(Pod* pod);
  void NoteMemberLoss(Gang* gang);
  void NoteActiveLoss(Gang* gang, const Pod& pod);
  void FollowFacts(Pod* pod, MemberState now);
  Gang* InternGang(absl::string_view name_space, absl::string_view name, int64_t created_ms);
  void ReadRules(Gang* gang);
  void SetState(Pod* pod, MemberState state);
  void EnterSet(Pod* pod);
  static void LeaveSet(Pod* pod);
  void JudgePod(Pod* pod) const;
  void SetCharge(Pod* pod, NodeId node, ChargeKind kind);
  void ClearCharge(Pod* pod, bool gained);
  [[nodiscard]] static MemberState StateFromFacts(const PodDescription& facts);

  // updates.cc (S-1: facts in numbered steps)
  void On(const ReplaceFacts& command);
  void On(const UpdateFacts& command);
  [[nodiscard]] absl::Status CheckStep(const FactsStep& step, bool snapshot) const;
  [[nodiscard]] absl::Status CheckFacts(const std::vector<NodeDescription>& nodes,
                                        const std::vector<PodDescription>& pods);
  void TakeStep(const FactsStep& step);
  void UpsertAll(const std::vector<NodeDescription>& nodes, const std::vector<PodDescription>& pods);

  // submission.cc (S-1: whole gangs)
  void On(const SubmitGang& command);
  void On(const ConfirmGang& command);
  void On(const AbandonGang& command);
  void On(const AskGang& command);
  [[nodiscard]] Gang* FindSubmission(const std::string& id) const;
  [[nodiscard]] absl::Status CheckSubmission(const SubmitGang& command);
  [[nodiscard]] bool AnswerFinished(const std::string& id);
  void AnswerSubmission(const Gang& gang);
  void AssignSlots(Gang* gang);
  void BindPlan(Gang* gang);
  void DropSubmission(Gang* gang, SubmissionReply::State state, Reason reason);
  void FinishSubmission(Gang* gang, SubmissionReply reply);
  void ExtendSubmission(Gang* gang);

  // group.cc (D-10)
  using Group = absl::InlinedVector<Gang*, 4>;
  [[nodiscard]] Group GroupOf(const Gang& gang) const;
  [[nodiscard]] Reason GroupReason(const Gang& gang) const;
  [[nodiscard]] Reason MatesReason(const Gang& gang) const;
  [[nodiscard]] bool GroupQuorum(const Gang& gang) const;
  [[nodiscard]] const Gang& LeaderOf(const Gang& gang) const;
  [[nodiscard]] bool GroupIsFree(const Gang& gang) const;
  [[nodiscard]] bool PlannedWithOthers(const Gang& gang) const;
  [[nodiscard]] Reason BarrierReason(const Gang& gang) const;
  [[nodiscard]] Group Unplaced(const Gang& gang) const;
  [[nodiscard]] Group MatesOf(const Gang& gang) const;
  void RegisterGroup(Gang* gang, std::vector<std::string> ids);
  void TellGroup(Gang* gang);
  void TouchNaming(const std::string& key);
  [[nodiscard]] uint64_t StateForGroup(Gang* asked) const;

  // rules.cc
  [[nodiscard]] Reason StructureReason(const Gang& gang) const;  // the gang itself cannot start, whoever asks
  [[nodiscard]] Reason GateReason(const Gang& gang) const;       // G-1, then back-off
  [[nodiscard]] Reason PlanReason(const Gang& gang) const;       // then: enough members that may be planned
  [[nodiscard]] Reason MembersReason(const Gang& gang) const;
  [[nodiscard]] Reason ChildrenReason(const Gang& gang) const;
  [[nodiscard]] Reason WaitReason(const Gang& gang) const;  // the whole truth for users
  [[nodiscard]] Reason PodReason(const Pod& pod) const;     // what concerns only this pod; none otherwise
  [[nodiscard]] int32_t CountedChildren(const Gang& gang) const;
  [[nodiscard]] bool Plannable(const Pod& pod) const;
  [[nodiscard]] int32_t PlannableMembers(const Gang& gang) const;
  [[nodiscard]] bool OnePriority(const Gang& gang) const;
  [[nodiscard]] static const Pod& FirstMember(Gang* gang);
  [[nodiscard]] int32_t Missing(const Gang& gang) const;
  [[nodiscard]] int32_t TowardsMinimum(const Gang& gang) const;  // G-5, without pending ones
  [[nodiscard]] bool PassesOneByOne(const Gang& gang) const;
  [[nodiscard]] int32_t GangPriority(const Gang& gang) const;
  [[nodiscard]] QueueKey KeyOf(const Gang& gang) const;
  [[nodiscard]] bool Serves(const Pod& pod) const;
  void Settle(Gang* gang);
  void SettleMarks(Gang* gang);
  void SettleQueue(Gang* gang);
  void SettleReason(Gang* gang);
  void SettleTimer(Gang* gang);
  void Forget(Gang* gang);
  void Touch(Gang* gang);
  void Untouch(Gang* gang);
  void MarkGang(Gang* gang);

  // planning.cc
  void On(const PlanRound& command);
  [[nodiscard]] bool TryPlan(Gang* gang);
  [[nodiscard]] Reason NoChance(const Group& gangs, int32_t needed);
  void Block(Gang* gang, bool any_gain, bool holds, Reason reason);
  void LeaveQueue(Gang* gang);
  void WakeGroups();
  [[nodiscard]] std::string Needs(Gang* gang) const;
  [[nodiscard]] std::string Signature(Gang* gang) const;
  [[nodiscard]] const std::vector<Candidates>& CandidateRuns(Gang* gang) const;
  void AdoptPlan(Gang* gang, int64_t id, absl::Span<const Statement::Operation> operations);
  void CallMembers(Gang* gang, bool again);
  void CallExtras(Gang* gang);
  void Call(Pod* pod, NodeId hint, int64_t plan);
  void WithdrawPlan(Gang* gang, ReasonCode code, absl::string_view why);
  void DropOpenSlots(Gang* gang, const Reason& reason);
  void EndPlanIfDone(Gang* gang);
  void WakeHoldGroups();
  void CallGuarded();
  void Requeue(Gang* gang);
  void ReverifyNode(NodeId node);
  void Promised(Gang* gang, NodeId node, ClassId cls, int32_t pods);  // negative: taken back
  void ReleaseSlotCharge(Gang* gang, const Slot& slot, bool gained);
  void ChargeSlot(Gang* gang, const Slot& slot);
  void StartHolding(Gang* gang);
  void StopHolding(Gang* gang);
  void ReleaseNominated(int32_t below_priority);
  void ChargeNominated();

  // verbs.cc
  void On(const Filter& command);
  void On(const Preempt& command);
  void On(const PreFilter& command);
  void On(const Permit& command);
  [[nodiscard]] FilterReply FilterMember(Pod* pod, const NodeOffer& offer);
  [[nodiscard]] FilterReply FilterFree(const Pod& pod, const NodeOffer& offer) const;
  [[nodiscard]] int32_t ChooseSlot(Pod* pod, const NodeOffer& offer);
  [[nodiscard]] int32_t MoveSlot(Pod* pod, const NodeOffer& offer);
  void NoteAbsence(Gang* gang, const Pod& pod, const NodeOffer& offer);
  [[nodiscard]] bool BreaksGang(const std::vector<std::string>& victims) const;
  void On(const FindNodes& command);
  void PermitLone(Pod* pod, const Permit& command);
  void PermitSlot(Pod* pod, NodeId node, const Permit& command);
  [[nodiscard]] bool PermitAgain(const Pod& pod, const std::string& node);
  [[nodiscard]] std::vector<std::string> OthersToTry(const Gang& gang) const;
  [[nodiscard]] Reason Refusal(NodeId node, const Pod& pod) const;
  void EndPermit(Pod* pod);
  void AnswerByReply(HoldToken token);
  void PermitWaiting(Gang* gang);
  void PermitGroup(Gang* gang);
  [[nodiscard]] bool QuorumStands(Gang* gang);
  void PermitPod(Pod* pod);

  // turns.cc (G-2, G-3, G-7)
  void On(const PostFilter& command);
  void On(const Unreserve& command);
  void On(const PostBind& command);
  [[nodiscard]] Reason TakeTurn(Pod* pod);
  void HadTurn(Pod* pod);
  void AdvanceCycle(Gang* gang);
  void ReleaseGroup(Gang* gang, const Reason& reason);

  // binding.cc
  void On(const Bind& command);
  void On(const EndHold& command);
  void On(const BindingOutcome& command);
  void On(const Shutdown& command);
  void HoldMember(Pod* pod, NodeId node, HoldToken token);
  void CommitPlan(Gang* gang);
  [[nodiscard]] Reason VerifyPlan(const Gang& gang) const;
  void CommitPod(Pod* pod, NodeId node);
  void SendBinding(Pod* pod);
  void NoteBound(Pod* pod);
  void BindingFailed(Pod* pod, absl::string_view message);
  void AnswerHolds(Pod* pod, bool permitted, const Reason& reason);
  void EndPodHold(Pod* pod, const Reason& reason);
  void FreeSlot(Pod* pod);
  void EndRepair(Gang* gang);
  void EvictGang(Gang* gang, absl::string_view why);
  void EvictMembers(Gang* gang, absl::string_view why);
  static constexpr char kEvictedAnew[] = "its gang is being evicted so that it can start anew";

  // timers.cc
  void On(const Tick& command);
  void OnGangTimer(Gang* gang);
  void OnPodTimer(Pod* pod);
  void ExpireWait(Gang* gang);
  void MarkMembers(Gang* gang, const Reason& reason);
  [[nodiscard]] static Reason TimedOutReason(const Gang& gang);
  void SettlePodTimer(Pod* pod);
  [[nodiscard]] int64_t GangDeadline(const Gang& gang) const;
  void NotifyMembers(Gang* gang);

  // durable.cc
  void WriteRecord(Gang* gang);
  void RestoreGang(Gang* gang);
  void WriteCommit(const Pod& pod);
  void ForgetCommit(const Pod& pod);
  void ForgetRestored();

  void SettleTouched();
  [[nodiscard]] PodRef RefOf(const Pod& pod) const;
  void MarkNode(NodeId node);

  MachineSettings settings_;
  Cluster cluster_;
  ClassIndex index_;
  absl::flat_hash_map<std::string, std::unique_ptr<Pod>> pods_;
  absl::btree_map<std::string, std::unique_ptr<Gang>> gangs_;
  absl::btree_map<std::string, absl::btree_set<std::string>> named_by_;  // D-10: id -> keys of gangs that list it
  absl::btree_map<std::string, DurableGang> restored_;                   // by gang key, until its gang appears
  std::vector<std::string> restored_commits_;  // keys of commit records, until the facts are read

  absl::btree_set<QueueKey> queue_;
  absl::btree_map<std::string, BlockedGroup> blocked_;
  absl::btree_set<std::string> awake_;  // signatures of groups whose head should be tried
  int64_t gain_position_ = 0;
  absl::flat_hash_map<NodeId, std::vector<Promise>> promises_;
  absl::btree_set<std::string> guarded_;    // UIDs that were refused because of a reservation
  absl::btree_set<std::string> nominated_;  // UIDs of lone pods that hold room on their nominated node

  std::string facts_source_;                               // who announces facts in numbered steps; empty: nobody yet
  int64_t facts_version_ = 0;                              // of the last step
  absl::btree_map<std::string, std::string> submissions_;  // id -> gang key, while not confirmed
  // What became of submissions that ended, for callers that ask again; the oldest are forgotten first.
  absl::btree_map<std::string, SubmissionReply> finished_;
  std::deque<std::string> finished_order_;

  absl::btree_set<std::string> asked_early_;  // UIDs that a scheduler asked about before they were announced; bounded

  absl::btree_set<GangTimer> gang_timers_;
  std::set<std::pair<int64_t, std::string>> pod_timers_;
  int64_t exclusions_until_ms_ = kNever;

  std::vector<Gang*> touched_;              // to settle at the end of the command; a heap, the first key on top
  std::vector<std::string> changed_gangs_;  // keys; a gang that went and came may be there twice
  std::vector<NodeId> changed_nodes_;
  std::vector<std::string> removed_nodes_;  // names, since readers were told last
  std::vector<uint8_t> node_changed_;       // by NodeId: is in changed_nodes_

  Outcome* out_ = nullptr;  // during Apply
  int64_t now_ms_ = 0;
  int64_t next_plan_ = 1;
  int32_t held_binds_ = 0;
  int32_t promised_holds_ = 0;
  bool facts_read_ = false;
  bool submitting_ = false;  // the pod being announced belongs to a submitted gang
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_MACHINE_H_
