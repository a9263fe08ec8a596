// A small world with random operations of every kind, for the random test.
#ifndef MUSTER_TESTS_SIMULATION_RANDOM_WORLD_H_
#define MUSTER_TESTS_SIMULATION_RANDOM_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "state/machine/machine.h"
#include "tests/simulation/transcript.h"

namespace muster {

// 6 nodes, 8 gangs, some 40 pods, and callers that may do anything at any time. Now and then the process dies, and
// another one continues from its records and from the state of the API server. After each command the machine's
// invariants and the rules of whole gangs are recomputed; random_world_checks.cc has those rules. Single-threaded.
class RandomWorld {
 public:
  // The life of one process: its initial state and its commands with their times.
  struct Life {
    std::vector<Record> records;
    std::vector<std::pair<Command, int64_t>> commands;
  };

  // `persist_facts`: there is no API server; announced facts are stored with the promises.
  explicit RandomWorld(uint64_t seed, bool persist_facts = false);

  // One random event, followed by all checks.
  void Step();

  [[nodiscard]] const Machine& machine() const { return *machine_; }
  // From now on nothing is checked: only the transcript grows.
  void OnlyTranscribe() { only_transcribe_ = true; }
  [[nodiscard]] uint64_t transcript() const { return transcript_.digest(); }
  // Empty, or the first rule that was broken.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  // The records of the store, loaded into a new machine and completed with the facts that users own, give the same
  // durable hash (S-2). Empty, or the difference.
  [[nodiscard]] std::string RestoreDiffers() const;
  // The same without an announcer: every node, pod, PodGroup and submission exists unchanged.
  [[nodiscard]] std::string FactsDiffer() const;

  // How often occurred what the test is about.
  [[nodiscard]] const std::map<std::string, int64_t>& figures() const { return figures_; }

  static MachineSettings Settings();
  [[nodiscard]] MachineSettings OwnSettings() const {
    MachineSettings settings = Settings();
    settings.persist_facts = keeps_facts_;
    settings.persist_created = !keeps_facts_;
    settings.stale_after_ms = 5'000;
    return settings;
  }
  // Records the lives of all processes from now on.
  void WriteLives() { writing_ = true; }
  [[nodiscard]] const std::vector<Life>& lives() const { return lives_; }

 private:
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
  static std::string NodeName(int i) { return absl::StrCat("n", i); }
  // The first `count` nodes.
  static std::vector<std::string> NodeNames(int count);

  NodeDescription RandomNode(int i);

  // A pod of no gang that requests nothing yet.
  PodDescription NewPod();
  void Put(const PodDescription& pod);
  void Remove(const std::string& uid);
  void AddPod();
  // Pods appear on nodes without a call, and end in their time (P-8).
  void FillAndEnd();
  void DriveSome();
  std::string SomeUid();
  void RemoveSomePod();
  void ChangeSomePod();
  void ChangeFacts(PodDescription* pod);
  void ChangeGangObject();
  // Queues are added, changed and removed while gangs run.
  void ChangeQueues();
  std::string SomeQueue();
  // Usage of each queue by resource, and the number of running gangs.
  using QueueUse = std::map<std::string, std::pair<ResourceList, int32_t>>;
  [[nodiscard]] QueueUse UseOfQueues() const;
  // No action of Muster takes a queue beyond its limits; announcements may. `finishing`: some gang was partially
  // bound before the command.
  void CheckQueues(const Command& command, const QueueUse& before, bool finishing);
  [[nodiscard]] bool AnyPartiallyBound() const;
  FilterReply AskFilter(const std::string& uid, std::vector<std::string> nodes);
  void AskBind(const std::string& uid, const std::string& node);
  void FilterSome();
  void BindSome();
  void PermitSome();
  // As kube-scheduler processes its queue: every member of gangs g5 and g6 that may be scheduled, one after the other.
  void ScheduleGroup();
  void FindNoNode();
  void GiveBack();
  // A caller of the verbs binds its permitted pod.
  void BindPermitted();
  // A caller without a scheduler: submits gangs, confirms, abandons or forgets them, and reports facts in steps.
  void WholeGang();
  void SubmitSome();
  // A member of an unconfirmed gang fails, is removed, or changes.
  void HurtSubmission();
  // From now on confirmed pods are facts like others: they are changed, removed and restored with them.
  void OnConfirmed(const SubmissionReply& reply);
  void AnnounceStep();
  // random_world_odd.cc
  void AskOddly();
  void PreemptSome();
  void AddOddShape(PodDescription* pod);
  void AddOddRules(GangDeclaration* declaration);
  void HangUp();
  void FinishBindings();
  // Timeout marks arrive at the API server; evicted pods begin to terminate.
  void FinishWrites();

  // The process dies, and another one takes over (random_world_restart.cc).
  void Restart();
  void TakeOver(const std::vector<Command>& nodes);
  // PodGroups and pods as the API server knows them; writes that were in flight at the crash have arrived or not. The
  // whole is put in random order.
  void AddOutside(std::vector<Command>* out);
  // kube-scheduler and callers of the verbs do not wait until everything is read.
  void AskEarly();

  // A round of planning that promises nothing leaves the cluster unchanged (P-1): everything was rolled back. Nominated
  // pods are excluded: a round may find room for one of them.
  void Plan();
  // Without further changes, planning ends.
  void ComeToRest();
  // A new plan takes nothing that is reserved for a head, unless the plan has a higher priority or ends in time; under
  // `hold` it bypasses no head.
  void CheckHeads(const std::set<std::string>& held_before, int64_t newest_plan);
  [[nodiscard]] std::set<std::string> HeldFor() const;
  [[nodiscard]] int64_t ReservedBehind(const Gang& gang, const Gang& head, NodeId node, ResourceId resource) const;
  void ChangeHead();
  [[nodiscard]] int64_t Plans() const;

  Outcome Apply(const Command& command);
  void TakeOut(const Outcome& outcome);
  // A member may be bound only if its gang is satisfied: the whole quorum was permitted in the same step.
  [[nodiscard]] bool Whole(const Gang& gang, const std::vector<MemberState>& states) const;
  void CheckDomains(const Outcome& outcome);
  void CheckPodAffinity(const Outcome& outcome, const std::set<std::string>& placed);
  [[nodiscard]] std::set<std::string> Placed() const;
  void AddShape(GangDeclaration* declaration);
  // Adds the pod's affinity terms, and the label that the terms of others may select.
  void AddPodAffinity(PodDescription* pod);
  // The labels of the pods' namespace change, or become unknown.
  void NameNamespace();
  void CheckWholeGang(const std::string& uid);
  void NoteWholeGangs();
  void NoteMet(const std::string& uid);
  // D-10: when a gang becomes satisfied, so is every gang of its group, in the same step or before.
  void CheckWholeGroups();

  const bool plain_;   // no pod has host ports or pod affinity: no capacity is reserved for those (P-8)
  const bool queued_;  // there are queues
  const bool driven_;  // drivers come before their workers (P-7)
  const bool headed_;  // the head of the queue is protected
  const bool odd_;     // rare calls and declarations occur
  const bool keeps_facts_;
  std::mt19937_64 random_;
  std::unique_ptr<Machine> machine_;
  int64_t now_ms_ = 1'000'000;
  int next_uid_ = 1;
  HoldToken next_token_ = 1;
  int next_submission_ = 0;
  int64_t facts_version_ = 0;
  std::optional<Labels> of_namespace_;  // as the API server has it
  std::map<std::string, int64_t> figures_;
  QueueRules queues_;
  bool writing_ = false;
  std::vector<Life> lives_;
  std::set<std::string> satisfied_before_;
  std::set<std::string> started_;  // gangs that had their minimum at once since the process began
  std::set<std::string> whole_;    // gangs that had their minimum bound at once, in the state of the API server
  std::string violation_;
  std::map<std::string, PodDescription> pods_;
  std::map<std::string, GangObject> objects_;
  std::map<std::string, std::string> offered_;
  std::map<std::string, std::string> bindings_;  // in flight
  std::set<std::string> marks_;                  // UIDs of pods whose timeout mark is in flight
  std::set<std::string> evictions_;              // UIDs
  std::map<HoldToken, std::string> tokens_;
  std::map<std::string, Record> records_;  // by name
  bool only_transcribe_ = false;
  Transcript transcript_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_RANDOM_WORLD_H_
