// The table of pods and gangs, and the membership and state of each pod. No other class changes a Pod or a Gang.
//
// Invariants: a pod is in exactly one member set of its gang, the set of its state. A gang's counts (sigs_members to
// attempted) match its sets. A change that reconciliation of a gang reads also touches the gang. Not thread-safe.
#ifndef MUSTER_STATE_GANGS_GANGS_H_
#define MUSTER_STATE_GANGS_GANGS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "state/gangs/group_register.h"
#include "state/gangs/types.h"

namespace muster {

struct GangsSettings {
  GangDefaults defaults;
  std::vector<std::string> scheduler_names;
  bool one_priority = false;  // D-11's switch for every dialect
  bool notes_facts = false;   // collect changes for TakeChangedFacts
};

class Gangs {
 public:
  explicit Gangs(GangsSettings settings) : settings_(std::move(settings)) {}
  Gangs(const Gangs&) = delete;
  Gangs& operator=(const Gangs&) = delete;

  // --- lookup ---
  // nullptr: not known.
  [[nodiscard]] const Pod* FindPod(absl::string_view uid) const;
  [[nodiscard]] const Gang* FindGang(absl::string_view key) const;
  // REQUIRES: known.
  [[nodiscard]] const Pod& pod(PodId id) const { return *pod_table_[static_cast<size_t>(id)]; }
  // Ids run from 0 to pod_limit()-1; nullptr: the id is not in use.
  [[nodiscard]] const Pod* PodAt(PodId id) const { return pod_table_[static_cast<size_t>(id)].get(); }
  [[nodiscard]] PodId pod_limit() const { return static_cast<PodId>(pod_table_.size()); }
  [[nodiscard]] const Gang& gang(GangId id) const { return *gang_table_[static_cast<size_t>(id)]; }
  // The gang of a claim, and the claim of an id. REQUIRES: known.
  [[nodiscard]] const Gang& GangOf(const Claim& claim) const { return gang(claim.id); }
  [[nodiscard]] const Claim& claim(ClaimId id) const { return gang(id); }
  // Like PodAt and pod_limit.
  [[nodiscard]] const Gang* GangAt(GangId id) const { return gang_table_[static_cast<size_t>(id)].get(); }
  [[nodiscard]] GangId gang_limit() const { return static_cast<GangId>(gang_table_.size()); }
  [[nodiscard]] size_t pod_count() const { return pods_.size(); }
  // By PodId: whether a pod has the id and is in no gang.
  [[nodiscard]] const std::vector<bool>& lone() const { return lone_; }
  // UIDs in order.
  [[nodiscard]] std::vector<std::string> Uids() const;
  // In order of keys.
  void ForEachGang(const std::function<void(const Gang&)>& visit) const;
  // D-11: whether all pods of the gang must have one priority.
  [[nodiscard]] bool OnePriority(const Gang& gang) const { return settings_.one_priority || gang.one_priority(); }
  // The pod was submitted, or names a scheduler that Muster serves.
  [[nodiscard]] bool Serves(const Pod& pod) const;
  // The pod may be placed by Muster now.
  [[nodiscard]] bool Plannable(const Pod& pod) const;
  // How many pending members are Plannable.
  [[nodiscard]] int32_t PlannableMembers(const Gang& gang) const;
  // The member created first. REQUIRES: the gang has members.
  [[nodiscard]] static const Pod& FirstMember(const Gang& gang);
  // The plannable members in order, unplaceable ones last, in runs of one class, priority and leaf; then the future
  // members (P-7).
  [[nodiscard]] const std::vector<Candidates>& CandidateRuns(const Claim& claim);

  // Which gangs list which, according to their rules.
  [[nodiscard]] const GroupRegister& groups() const { return groups_; }
  // Grows with every change of the state that Eligibility reads.
  [[nodiscard]] int64_t changes() const { return changes_ + groups_.changes(); }
  // The queues, which Eligibility reads as well, changed.
  void InvalidateEligibility() { ++changes_; }

  // --- pods ---
  // REQUIRES: the UID is not known.
  const Pod& AddPod(PodDescription facts, ClassId cls, MemberState state, bool submitted);
  // REQUIRES: it is in no gang.
  void RemovePod(const Pod& pod);
  void Join(const Pod& pod, const Gang& gang);
  void Leave(const Pod& pod);
  void SetState(const Pod& pod, MemberState state);
  // Replaces the facts and the class; the gang stays the same.
  void SetFacts(const Pod& pod, PodDescription facts, ClassId cls);
  void SetNode(const Pod& pod, std::string node_name);
  void SetTimedOutMark(const Pod& pod);
  // Recomputes whether the pod is foreign: a pod that names a submitted gang but was not part of the submission stays
  // foreign until the submission is confirmed or over.
  void UpdateForeignMember(const Pod& pod);

  // --- gangs ---
  struct Interned {
    const Gang* gang;
    bool fresh;
  };
  Interned Intern(absl::string_view name_space, absl::string_view name, int64_t created_ms, int64_t now_ms);
  void Restore(const Gang& gang, const DurableGangState& kept);
  // Stores the UID that distinguishes the gang from earlier gangs of the same name; empty: no object and no member has
  // one.
  void UpdateIncarnation(const Gang& gang);
  // Drops restored state that belongs to another incarnation of the gang.
  void DiscardRestored(const Gang& gang);
  // REQUIRES: the gang has no members and no future classes.
  void RemoveGang(const Gang& gang);

  // --- declarations (declarations.cc) ---
  // Both return whether the gang's declarations changed, so that its rules must be read again (ReadRules).
  bool PutObject(const Gang& gang, const GangObject& object);
  bool DropObject(const Gang& gang, GangDialect dialect);
  // Takes up the declaration of a pod that joined. Returns whether the gang's rules changed.
  bool Adopt(const Pod& pod);
  // The pod whose declaration is in force has left. Another member with the same declaration becomes its source;
  // false: there is none.
  [[nodiscard]] bool TransferDeclaration(const Gang& gang);
  // Reads all declarations of the gang again (D-9).
  void Redeclare(const Gang& gang);
  // Recomputes the gang's rules from its declarations.
  void ReadRules(const Gang& gang);
  // P-7: the class of the future members of each leaf; kNoClass: none. The caller has a reference to each class.
  // Returns the previous classes, whose references the caller releases.
  [[nodiscard]] std::vector<ClassId> SetFutureClasses(const Gang& gang, std::vector<ClassId> classes);

  // --- members that cannot be placed (K-5) ---
  // An unplaceable member is planned after all other members of its gang.
  void SetUnplaceable(const Pod& pod, bool unplaceable);
  // Clears the flag on all members of the gang. Returns whether any member had it.
  bool ClearUnplaceable(const Gang& gang);

  // Pods with changed facts since the last call (settings.notes_facts), each once; without removed pods.
  [[nodiscard]] std::vector<PodId> TakeChangedFacts();

  // --- schedule cycles (G-2) ---
  // The pod had its turn in the current cycle.
  void MarkCycleAttempt(const Pod& pod);
  // The pod passed PreFilter; kNever: it went further, or its turn is over.
  void MarkPreFilterPassed(const Pod& pod, int64_t at_ms) { MutateTracked(pod).passed_ms = at_ms; }
  // Starts the next cycle if every member that can have a turn had it.
  void AdvanceCycle(const Gang& gang);
  // A member found no node: no member passes PreFilter until the next cycle.
  void InvalidateCycle(const Gang& gang);

  // --- life cycle ---
  void SetSatisfied(const Gang& gang, bool satisfied) { MutateTracked(gang).durable.satisfied = satisfied; }
  void SetTimedOut(const Gang& gang, bool timed_out) { MutateTracked(gang).durable.timed_out = timed_out; }
  void SetPartialAbandoned(const Gang& gang, bool partial_abandoned) {
    MutateTracked(gang).partial_abandoned = partial_abandoned;
  }
  void SetEvicting(const Gang& gang, bool evicting) { MutateTracked(gang).durable.evicting = evicting; }
  void SetHeld(const Gang& gang, int64_t held_ms) { MutateTracked(gang).durable.held_ms = held_ms; }
  void SetRequeues(const Gang& gang, int32_t requeues) { MutateTracked(gang).durable.requeues = requeues; }
  void SetBypassedSince(const Claim& claim, int64_t at_ms) {
    MutateUntracked(GangOf(claim)).durable.bypassed_since_ms = at_ms;
  }
  void SetStarted(const Claim& claim, int64_t at_ms) { MutateUntracked(GangOf(claim)).durable.started_ms = at_ms; }
  // The gang's policy has been applied to the members that have failed by now (G-13).
  void RecordFailedMembers(const Gang& gang);
  void SetFutureSlotsUntil(const Gang& gang, int64_t at_ms) {
    MutateUntracked(gang).durable.future_slots_until_ms = at_ms;
  }
  void SetQueue(const Gang& gang, std::string queue) { MutateUntracked(gang).durable.queue = std::move(queue); }
  void SetRetry(const Gang& gang, int64_t retry_at_ms) { MutateTracked(gang).retry_at_ms = retry_at_ms; }
  void SetRootCause(const Gang& gang, std::string cause) { MutateTracked(gang).root_cause = std::move(cause); }
  void SetSubmitted(const Gang& gang) { MutateTracked(gang).submitted = true; }
  // The submission is confirmed or over: the remaining members are scheduled by their callers.
  void ClearSubmitted(const Gang& gang);
  // Returns whether the reason changed. It is notified at `notify_at_ms` if its code changed, at `reword_at_ms` if only
  // its text did.
  bool SetReason(const Gang& gang, Reason reason, int64_t now_ms, int64_t notify_at_ms, int64_t reword_at_ms);
  // A reason is reported as an event only after it has lasted this long: most reasons pass by themselves.
  static constexpr int64_t kNotifyDelayMs = 2'000;
  void SetNotify(const Gang& gang, int64_t at_ms) { MutateUntracked(gang).notify_at_ms = at_ms; }
  // Stores the digest that the gang's group was last notified of; returns the previous one.
  GroupDigest SetGroupDigest(const Gang& gang, const GroupDigest& digest) {
    return std::exchange(MutateUntracked(gang).group_digest, digest);
  }
  // The gang's record was written; `recorded`: the store has a record (false: it was deleted or not needed).
  void OnRecordWritten(const Gang& gang, bool recorded);

  // --- reconciliation and views ---
  // Touched gangs are reconciled at the end of the command.
  void Touch(const Claim& claim);
  void Untouch(const Gang& gang);
  // Untouches and returns the first touched gang in order of keys; nullptr: none.
  [[nodiscard]] const Gang* TakeTouched();
  // The gang has changed for readers.
  void MarkChanged(const Gang& gang);
  // Keys of the gangs that changed or were removed since the last call, in order.
  [[nodiscard]] std::vector<std::string> TakeChanged();

  // Rebuilds the members that a recording omits, after the others were read.
  void AfterRestore();
  static constexpr auto Recorded() {
    return std::tuple(&Gangs::pod_table_, &Gangs::free_pods_, &Gangs::facts_changed_, &Gangs::gang_table_,
                      &Gangs::free_gangs_, &Gangs::groups_, &Gangs::changes_, &Gangs::changed_);
  }

 private:
  // Access for changes without another lookup: this class owns all pods and gangs, and none was created const. The
  // tracked versions bump changes().
  [[nodiscard]] Pod& MutateTracked(const Pod& pod) {
    ++changes_;
    return const_cast<Pod&>(pod);
  }
  [[nodiscard]] Gang& MutateTracked(const Gang& gang) {
    ++changes_;
    return MutateUntracked(gang);
  }
  // For members of a gang that Eligibility does not read.
  [[nodiscard]] static Gang& MutateUntracked(const Gang& gang) { return const_cast<Gang&>(gang); }
  void MarkFactsChanged(PodId id) {
    if (settings_.notes_facts) facts_changed_.push_back(id);
  }
  void EnterSet(Pod* pod);
  void LeaveSet(Pod* pod);
  void Judge(Pod* pod) const;
  static void AddToCounts(const Pod& pod, int32_t times, Gang* gang);
  void SetTree(SubgroupTree tree, Gang* gang);
  static void AddFutureRuns(Gang* gang);
  void Warn(Gang* gang, std::string text);

  GangsSettings settings_;
  std::vector<std::unique_ptr<Pod>> pod_table_;
  std::vector<PodId> free_pods_;
  std::vector<bool> lone_;            // by PodId; apart from the table because searches look for the few pods with it
  std::vector<PodId> facts_changed_;  // only with settings_.notes_facts
  absl::flat_hash_map<std::string, Pod*> pods_;
  std::vector<std::unique_ptr<Gang>> gang_table_;
  std::vector<GangId> free_gangs_;
  absl::btree_map<std::string, Gang*> gangs_;
  GroupRegister groups_;
  int64_t changes_ = 0;
  std::vector<Gang*> touched_;        // a heap, the first key on top
  std::vector<std::string> changed_;  // keys; a gang that was removed and added may be listed twice
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_GANGS_H_
