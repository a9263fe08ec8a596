// The decision core: a deterministic state machine.
//
// Every change is a command handed to Apply with its time; Apply returns an immediate reply, the records to make
// durable, the held calls that ended, and the effects to carry out. Whoever drives the machine makes the records
// durable *before* answers and effects leave (DESIGN.md, "Order"). The same commands at the same times give the same
// state hash on any machine: there is no clock, no randomness, no thread and no I/O in here.
//
// The machine itself only leads a command through the rooms, which own the state (docs/architecture.md), and settles
// what they touched. Not thread-safe: one writer.
#ifndef MUSTER_STATE_MACHINE_MACHINE_H_
#define MUSTER_STATE_MACHINE_MACHINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/drivers/kube_scheduler.h"
#include "state/drivers/submission_driver.h"
#include "state/drivers/verbs.h"
#include "state/machine/announcements.h"
#include "state/machine/settings.h"
#include "state/machine/settling.h"
#include "state/machine/view.h"
#include "state/messages/commands.h"
#include "state/messages/effects.h"
#include "state/placement/class_index.h"
#include "state/placement/cluster.h"
#include "state/placement/ledger.h"
#include "state/queueing/backlog.h"
#include "state/records/records.h"
#include "state/starts/planning.h"

namespace muster {

class Machine {
 public:
  explicit Machine(const MachineSettings& settings);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Takes over records written before a restart. REQUIRES: nothing was applied yet. InvalidArgument names a record that
  // cannot be read.
  [[nodiscard]] absl::Status Load(const std::vector<Record>& records);

  // Applies one command. `now_ms` must not go back (a smaller value is taken as the last one).
  void Apply(const Command& command, int64_t now_ms, Outcome* outcome);

  // Whether PlanRound has something to look at.
  [[nodiscard]] bool PlanningDue() const { return planning_.Due(); }
  // When Tick is due next; kNever: not at all.
  [[nodiscard]] int64_t NextDeadline() const;

  // Equal for equal states, whatever path led there.
  [[nodiscard]] uint64_t Hash() const;
  // As Hash, in canonical form: times count from the last command's, and plans and tokens by their order.
  [[nodiscard]] uint64_t CanonicalHash() const;
  // As Hash, of what the records describe only.
  [[nodiscard]] uint64_t DurableHash() const;
  // Recomputes everything derived and compares; the first difference, or OK.
  [[nodiscard]] absl::Status CheckInvariants() const;

  // --- reading; valid until the next Apply ---
  [[nodiscard]] const Pod* FindPod(absl::string_view uid) const { return gangs_.FindPod(uid); }
  [[nodiscard]] const Gang* FindGang(absl::string_view key) const { return gangs_.FindGang(key); }
  [[nodiscard]] GangView ViewGang(const Gang& gang, bool with_members) const;
  // At most `limit` of its members behind `*read`, which moves on; true: these were the last. A member that changes its
  // state between two calls may be told twice, or not at all if it went back.
  bool ViewMembers(const Gang& gang, size_t limit, MembersRead* read, std::vector<MemberView>* out) const;
  // Who holds what a gang without room waits for: nobody, where its reason is another (LacksRoom). Looks at no more
  // than `limit` pods behind `*read`, which moves on; true: these were the last, and `out` has all of it.
  bool ViewHolders(const Gang& gang, int32_t limit, HoldersRead* read, HoldersView* out) const;
  [[nodiscard]] PodView ViewPod(const Pod& pod) const;
  // Looks at no more than `limit` pods, from `*from` on (first 0), which moves on and is pod_limit() at the end;
  // nullptr: none of them.
  [[nodiscard]] const Pod* FindPodNamed(absl::string_view name_space, absl::string_view name, int32_t limit,
                                        PodId* from) const;
  [[nodiscard]] PodId pod_limit() const { return gangs_.pod_limit(); }
  [[nodiscard]] NodeView ViewNode(NodeId id) const;
  // Also of a node of which nothing was ever taken; nullopt: nobody announces it.
  [[nodiscard]] std::optional<NodeView> ViewNode(const std::string& name) const;
  void ForEachGang(const std::function<void(const Gang&)>& visit) const { gangs_.ForEachGang(visit); }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const Plans& plans() const { return plans_; }
  [[nodiscard]] const Bindings& bindings() const { return bindings_; }
  [[nodiscard]] const PlanningStats& planning_stats() const { return planning_.stats(); }
  [[nodiscard]] const Sources& sources() const { return sources_; }
  [[nodiscard]] const RefusedFacts& refused_facts() const { return refused_facts_; }
  // Keys of gangs and names of nodes that changed since the last call.
  void TakeChanged(std::vector<std::string>* gangs, std::vector<std::string>* nodes);
  [[nodiscard]] int32_t held_binds() const { return barrier_.held_binds(); }
  [[nodiscard]] int32_t promised_holds() const { return plans_.promised_holds(); }
  [[nodiscard]] size_t pod_count() const { return gangs_.pod_count(); }

 private:
  // What is announced.
  void On(const UpsertNode& command, Step* step);
  void On(const RemoveNode& command, Step* step);
  void On(const UpsertPod& command, Step* step);
  void On(const RemovePod& command, Step* step);
  void On(const UpsertGangObject& command, Step* step);
  void On(const RemoveGangObject& command, Step* step);
  void On(const UnreadableFact& command, Step* step);
  void On(const FactsRead& command, Step* step);
  void On(const ExpectFacts& command, Step* step);
  void On(const TakeUpFacts& command, Step* step);
  void On(const ReplaceFacts& command, Step* step);
  void On(const UpdateFacts& command, Step* step);
  // Questions of a scheduler.
  void On(const Filter& command, Step* step);
  void On(const Bind& command, Step* step);
  void On(const Preempt& command, Step* step);
  void On(const PreFilter& command, Step* step);
  void On(const FindNodes& command, Step* step);
  void On(const Permit& command, Step* step);
  void On(const PostFilter& command, Step* step);
  void On(const Unreserve& command, Step* step);
  void On(const PostBind& command, Step* step);
  void On(const EndHold& command, Step* step);
  // Whole gangs.
  void On(const SubmitGang& command, Step* step);
  void On(const ConfirmGang& command, Step* step);
  void On(const AbandonGang& command, Step* step);
  void On(const AskGang& command, Step* step);
  // Outcomes, time, process.
  void On(const BindingOutcome& command, Step* step);
  void On(const PlanRound& command, Step* step);
  void On(const Tick& command, Step* step);
  void On(const Shutdown& command, Step* step);

  [[nodiscard]] uint64_t Hash(StateHasher hasher) const;
  // A numbered step of facts may not be taken; OK: it may.
  [[nodiscard]] absl::Status CheckStep(const FactsStep& step) const;
  void TakeStep(const FactsStep& taken, Step* step);
  [[nodiscard]] absl::Status CheckPod(const Pod& pod) const;
  [[nodiscard]] absl::Status CheckReason(const Gang& gang) const;
  [[nodiscard]] Reason WhyMemberWaits(const Pod& pod) const;
  [[nodiscard]] MemberView ViewMember(const Pod& pod) const;
  void FindRoomless(const Gang& gang, HoldersRead* read) const;
  void DropSubmission(const Gang& gang, SubmissionReply::State state, Reason reason, Step* step);
  void SettleDeadlines(int64_t now_ms);

  // The rooms, in the order in which they may know each other.
  Cluster cluster_;
  ClassIndex index_;
  Ledger ledger_;
  Gangs gangs_;
  Eligibility eligibility_;
  Sources sources_;
  RefusedFacts refused_facts_;
  Backlog backlog_;
  Restored restored_;
  Deadlines gang_deadlines_;
  Deadlines pod_deadlines_;
  Plans plans_;
  Calls calls_;
  Barrier barrier_;
  Nominations nominations_;
  WaitClock clock_;
  Submissions submissions_;
  FactKeeper facts_;
  WaitReasons reasons_;
  Claims claims_;
  Repair repair_;
  Bindings bindings_;
  Planning planning_;
  KubeScheduler kube_scheduler_;
  Verbs verbs_;
  SubmissionDriver submission_driver_;
  Announcements announcements_;
  Settling settling_;
  int64_t now_ms_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_MACHINE_MACHINE_H_
