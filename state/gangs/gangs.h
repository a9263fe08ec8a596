// Who there is: pods, gangs, and who belongs to which gang in what state. The one place where a Pod or a Gang changes.
//
// Invariants: a pod is in exactly one member set of its gang, the one of its state; a gang's counts (of_sigs_pods to
// turned) are those of its sets; whoever changes what a gang's settling looks at touches the gang. Not thread-safe.
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
  bool notes_facts = false;   // for TakeChangedFacts
};

class Gangs {
 public:
  explicit Gangs(GangsSettings settings) : settings_(std::move(settings)) {}
  Gangs(const Gangs&) = delete;
  Gangs& operator=(const Gangs&) = delete;

  // --- looking ---
  // nullptr: not known.
  [[nodiscard]] const Pod* FindPod(absl::string_view uid) const;
  [[nodiscard]] const Gang* FindGang(absl::string_view key) const;
  // REQUIRES: known.
  [[nodiscard]] const Pod& pod(PodId id) const { return *pod_table_[static_cast<size_t>(id)]; }
  // Ids run from 0 to pod_limit()-1; nullptr: nobody's now.
  [[nodiscard]] const Pod* PodAt(PodId id) const { return pod_table_[static_cast<size_t>(id)].get(); }
  [[nodiscard]] PodId pod_limit() const { return static_cast<PodId>(pod_table_.size()); }
  [[nodiscard]] const Gang& gang(GangId id) const { return *gang_table_[static_cast<size_t>(id)]; }
  // As PodAt and pod_limit.
  [[nodiscard]] const Gang* GangAt(GangId id) const { return gang_table_[static_cast<size_t>(id)].get(); }
  [[nodiscard]] GangId gang_limit() const { return static_cast<GangId>(gang_table_.size()); }
  [[nodiscard]] size_t pod_count() const { return pods_.size(); }
  // UIDs in order.
  [[nodiscard]] std::vector<std::string> Uids() const;
  // In order of keys.
  void ForEachGang(const std::function<void(const Gang&)>& visit) const;
  // D-11: whether all pods of the gang must have one priority.
  [[nodiscard]] bool OnePriority(const Gang& gang) const { return settings_.one_priority || gang.one_priority(); }
  [[nodiscard]] bool Serves(const Pod& pod) const;
  // The pod may be placed by Muster now.
  [[nodiscard]] bool Plannable(const Pod& pod) const;
  // How many pending members Plannable is true of.
  [[nodiscard]] int32_t PlannableMembers(const Gang& gang) const;
  // The member created first. REQUIRES: the gang has members.
  [[nodiscard]] static const Pod& FirstMember(const Gang& gang);
  // The plannable members in order, those that are stuck last, in runs of one class and one priority; then those to
  // come (P-7).
  [[nodiscard]] const std::vector<Candidates>& CandidateRuns(const Gang& gang);

  // Who lists whom, as the gangs' rules say.
  [[nodiscard]] const GroupRegister& groups() const { return groups_; }
  // Grows with every change of what Eligibility judges by.
  [[nodiscard]] int64_t changes() const { return changes_ + groups_.changes(); }
  // What else it judges by, the queues, changed.
  void JudgeAnew() { ++changes_; }

  // --- pods ---
  // REQUIRES: the UID is not known.
  const Pod& AddPod(PodDescription facts, ClassId cls, MemberState state, bool submitted);
  // REQUIRES: it is in no gang.
  void RemovePod(const Pod& pod);
  void Join(const Pod& pod, const Gang& gang);
  void Leave(const Pod& pod);
  void SetState(const Pod& pod, MemberState state);
  // New facts and the class that goes with them; the gang stays the same.
  void SetFacts(const Pod& pod, PodDescription facts, ClassId cls);
  void SetNode(const Pod& pod, std::string node_name);
  void SetTimedOutMark(const Pod& pod);
  // A pod that names a submitted gang without having come with it stays out until that is confirmed or over.
  void JudgeStranger(const Pod& pod);

  // --- gangs ---
  struct Interned {
    const Gang* gang;
    bool fresh;
  };
  Interned Intern(absl::string_view name_space, absl::string_view name, int64_t created_ms, int64_t now_ms);
  void Restore(const Gang& gang, const Kept& kept);
  // The UID by which the gang as it is now is told from others of its name; empty: there is none.
  [[nodiscard]] static const std::string& Incarnation(const Gang& gang);
  void NoteIncarnation(const Gang& gang);
  // What was restored is of another gang of the same name: it is dropped.
  void DropRestored(const Gang& gang);
  // REQUIRES: nobody is in it, and it was settled or untouched.
  void Forget(const Gang& gang);

  // --- what was said (declarations.cc) ---
  // Both return whether the gang's declarations changed, so that its rules must be read again.
  bool PutObject(const Gang& gang, const GangObject& object);
  bool DropObject(const Gang& gang, GangDialect dialect);
  // A pod joined: what it says about its gang. Returns whether the rules must be read again (ReadRules).
  bool Adopt(const Pod& pod);
  // The pod whose declaration stood has left. Whether a member says the same: then it is that one's from now on.
  [[nodiscard]] bool HandOverDeclaration(const Gang& gang);
  // Everything that was said about the gang is read again (D-9).
  void Redeclare(const Gang& gang);
  void ReadRules(const Gang& gang);
  // P-7: by leaf, the classes of members to come, each of which the caller holds; kNoClass: none. Returns those that it
  // held before.
  [[nodiscard]] std::vector<ClassId> SetToCome(const Gang& gang, std::vector<ClassId> classes);

  // --- members that cannot be placed (K-5) ---
  // The plannable member comes after all others of its gang that are not stuck, or no more.
  void SetStuck(const Pod& pod, bool stuck);
  // Nobody of the gang is stuck any more. Returns whether somebody was.
  bool ForgetStuck(const Gang& gang);

  // --- schedule cycles (G-2) ---
  void HadTurn(const Pod& pod);
  // Pods of which the facts changed since the last call (settings.notes_facts), those that are gone left out; each
  // once.
  [[nodiscard]] std::vector<PodId> TakeChangedFacts();
  // The pod passed PreFilter; kNever: it came further, or its turn is over.
  void NotePassed(const Pod& pod, int64_t at_ms) { Mut(pod).passed_ms = at_ms; }
  void AdvanceCycle(const Gang& gang);
  void InvalidateCycle(const Gang& gang);

  // --- its life ---
  void SetSatisfied(const Gang& gang, bool satisfied) { Mut(gang).kept.satisfied = satisfied; }
  void SetTimedOut(const Gang& gang, bool timed_out) { Mut(gang).kept.timed_out = timed_out; }
  void SetLeftHalf(const Gang& gang, bool left_half) { Mut(gang).left_half = left_half; }
  void SetEvicting(const Gang& gang, bool evicting) { Mut(gang).kept.evicting = evicting; }
  void SetHeld(const Gang& gang, int64_t held_ms) { Mut(gang).kept.held_ms = held_ms; }
  void SetRequeues(const Gang& gang, int32_t requeues) { Mut(gang).kept.requeues = requeues; }
  void SetPassedSince(const Gang& gang, int64_t at_ms) { Noted(gang).kept.passed_since_ms = at_ms; }
  void SetStarted(const Gang& gang, int64_t at_ms) { Noted(gang).kept.started_ms = at_ms; }
  // What its policy does about those that failed by now is done (G-13).
  void NoteFailed(const Gang& gang);
  void SetRoomUntil(const Gang& gang, int64_t at_ms) { Noted(gang).kept.room_until_ms = at_ms; }
  void SetRetry(const Gang& gang, int64_t retry_at_ms) { Mut(gang).retry_at_ms = retry_at_ms; }
  void SetRootCause(const Gang& gang, std::string cause) { Mut(gang).root_cause = std::move(cause); }
  void SetSubmitted(const Gang& gang) { Mut(gang).submitted = true; }
  // The submission is confirmed or over: what is left of the gang is driven by the verbs.
  void EndSubmitted(const Gang& gang);
  // Returns whether it is another one than before.
  bool SetReason(const Gang& gang, Reason reason, int64_t now_ms, int64_t notify_at_ms, int64_t reword_at_ms);
  // A reason must have stood this long before events tell it: most pass by themselves.
  static constexpr int64_t kNotifyDelayMs = 2'000;
  void SetNotify(const Gang& gang, int64_t at_ms) { Noted(gang).notify_at_ms = at_ms; }
  // What its group is told of the gang; returns what was told before.
  GroupNews SetGroupNews(const Gang& gang, const GroupNews& news) {
    return std::exchange(Noted(gang).group_news, news);
  }
  // The record of what is kept was written; `recorded`: the store holds one.
  void NoteWritten(const Gang& gang, bool recorded);

  // --- what is to be looked at again ---
  void Touch(const Gang& gang);
  void Untouch(const Gang& gang);
  // The first touched gang in order of keys, which is touched no more; nullptr: none.
  [[nodiscard]] const Gang* TakeTouched();
  void MarkChanged(const Gang& gang);
  // Keys in order, of gangs that changed or went since the last call.
  [[nodiscard]] std::vector<std::string> TakeChanged();

  // After everything that is recorded of it was read: finds again what is not.
  void AfterRestore();
  // What a recording keeps (state/recording/members.h).
  static constexpr auto Recorded() {
    return std::tuple(&Gangs::pod_table_, &Gangs::free_pods_, &Gangs::facts_changed_, &Gangs::gang_table_,
                      &Gangs::free_gangs_, &Gangs::groups_, &Gangs::changes_, &Gangs::changed_);
  }

 private:
  // Pods and gangs are this room's own, none of them made const: without looking them up again.
  [[nodiscard]] Pod& Mut(const Pod& pod) {
    ++changes_;
    return const_cast<Pod&>(pod);
  }
  [[nodiscard]] Gang& Mut(const Gang& gang) {
    ++changes_;
    return Noted(gang);
  }
  // For what is kept of a gang that nobody judges by.
  [[nodiscard]] static Gang& Noted(const Gang& gang) { return const_cast<Gang&>(gang); }
  void NoteFacts(PodId id) {
    if (settings_.notes_facts) facts_changed_.push_back(id);
  }
  void EnterSet(Pod* pod);
  void LeaveSet(Pod* pod);
  void Judge(Pod* pod) const;
  static void CountLeaf(const Pod& pod, int32_t times, Gang* gang);
  void SetTree(SubgroupTree tree, Gang* gang);
  static void AddToCome(Gang* gang);
  void Warn(Gang* gang, std::string text);

  GangsSettings settings_;
  std::vector<std::unique_ptr<Pod>> pod_table_;
  std::vector<PodId> free_pods_;
  std::vector<PodId> facts_changed_;  // where they are kept
  absl::flat_hash_map<std::string, Pod*> pods_;
  std::vector<std::unique_ptr<Gang>> gang_table_;
  std::vector<GangId> free_gangs_;
  absl::btree_map<std::string, Gang*> gangs_;
  GroupRegister groups_;
  int64_t changes_ = 0;
  std::vector<Gang*> touched_;        // a heap, the first key on top
  std::vector<std::string> changed_;  // keys; a gang that went and came may be there twice
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_GANGS_H_
