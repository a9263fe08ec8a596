// A small world in which everything happens to everything, for the random test.
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

// 6 nodes, 8 gangs, some 40 pods, and callers that do anything at any time; now and then the process dies and another
// one goes on from its records and what the API server knows. After each command the machine's invariants and the rules
// of whole gangs are recomputed; random_world_checks.cc holds those.
class RandomWorld {
 public:
  // The life of one process: what it took over and what it was told when.
  struct Life {
    std::vector<Record> records;
    std::vector<std::pair<Command, int64_t>> commands;
  };

  // `keeps_facts`: there is no API server; what was announced is kept with the promises.
  explicit RandomWorld(uint64_t seed, bool keeps_facts = false);

  // One thing happens, and every rule is checked.
  void Step();

  [[nodiscard]] const Machine& machine() const { return *machine_; }
  // From now on nothing is checked: only the transcript grows.
  void OnlyTranscribe() { only_transcribe_ = true; }
  [[nodiscard]] uint64_t transcript();
  // Empty, or the first rule that was broken.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  // What the store holds, loaded into a new machine and given the facts that users own, has the same durable hash
  // (S-2). Empty, or what differs.
  [[nodiscard]] std::string RestoreDiffers() const;
  // The same without anybody who announces: every node, pod, PodGroup and submission is there, as it was.
  [[nodiscard]] std::string FactsDiffer() const;

  // How often what the test is about came to pass.
  [[nodiscard]] int restarts() const { return restarts_; }
  [[nodiscard]] int rounds_without_plan() const { return rounds_without_plan_; }
  // Steps after which room was kept for some gang (P-8).
  [[nodiscard]] int steps_with_room_kept() const { return steps_with_room_kept_; }
  // Steps after which a gang waited for room in its queue.
  [[nodiscard]] int steps_held_by_queue() const { return steps_held_by_queue_; }
  // Steps after which room was kept for a gang where others run, or gangs waited behind a head.
  [[nodiscard]] int steps_with_head() const { return steps_with_head_; }
  [[nodiscard]] int groups_started() const { return groups_started_; }
  // Bindings of gangs that require a domain.
  [[nodiscard]] int64_t in_domains() const { return in_domains_; }
  [[nodiscard]] int64_t met() const { return met_; }
  // Pods bound that want some other pods not near them, or that others want so.
  [[nodiscard]] int64_t kept_apart() const { return kept_apart_; }
  [[nodiscard]] int commits() const { return commits_; }
  [[nodiscard]] int confirmed() const { return confirmed_; }

  static MachineSettings Settings();
  [[nodiscard]] MachineSettings OwnSettings() const {
    MachineSettings settings = Settings();
    settings.keeps_facts = keeps_facts_;
    settings.keeps_created = !keeps_facts_;
    settings.stale_after_ms = 5'000;
    return settings;
  }
  // The lives of all processes from now on are written down.
  void WriteLives() { writing_ = true; }
  [[nodiscard]] const std::vector<Life>& lives() const { return lives_; }

 private:
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
  static std::string NodeName(int i) { return absl::StrCat("n", i); }

  NodeDescription RandomNode(int i);

  void AddPod();
  // Pods come to nodes without anybody asking, and end in their time (P-8).
  void FillAndEnd();
  void DriveSome();
  std::string SomeUid();
  void RemoveSomePod();
  void ChangeSomePod();
  void ChangeFacts(PodDescription* pod);
  void ChangeGangObject();
  // Queues come, change and go while gangs run.
  void ChangeQueues();
  std::string SomeQueue();
  // What is used of each queue, by resource; and how many gangs run in it.
  using QueueUse = std::map<std::string, std::pair<ResourceList, int32_t>>;
  [[nodiscard]] QueueUse UseOfQueues() const;
  // Nothing that Muster does takes a queue beyond its limits; what is announced may. `finishing`: some gang was
  // bound in part before the command.
  void CheckQueues(const Command& command, const QueueUse& before, bool finishing);
  [[nodiscard]] bool AnyHalfBound() const;
  void FilterSome();
  void BindSome();
  void PermitSome();
  // As kube-scheduler goes through its queue: every member of gangs g5 and g6 that may come, one after the other.
  void ScheduleGroup();
  void FindNoNode();
  void GiveBack();
  // A caller of the verbs binds what it was permitted to.
  void BindPermitted();
  // A caller without a scheduler: submits gangs, confirms, abandons or forgets them, and reports facts in steps.
  void WholeGang();
  void SubmitSome();
  // A member of a gang that is not confirmed fails, is removed, or changes.
  void HurtSubmission();
  // Confirmed pods are facts like others from now on: they are changed, removed and restored with them.
  void NoteConfirmed(const SubmissionReply& reply);
  void AnnounceStep();
  // random_world_odd.cc
  void AskOddly();
  void PreemptSome();
  void AddOddShape(PodDescription* pod);
  void AddOddRules(GangDeclaration* said);
  void HangUp();
  void FinishBindings();
  // Marks arrive at the API server; who is evicted starts to go.
  void FinishWrites();

  // The process dies, and another one takes over (random_world_restart.cc).
  void Restart();
  void TakeOver(const std::vector<Command>& nodes);
  // PodGroups and pods as the API server knows them; what was on its way when the process died arrived or not. Then the
  // whole is put into any order.
  void AddOutside(std::vector<Command>* out);
  // kube-scheduler and callers of the verbs do not wait until everything is read.
  void AskEarly();

  // A round of planning that promises nothing leaves the cluster exactly as it was (P-1): everything was rolled back.
  // Nominated pods are left aside: a round may find room for one of them.
  void Plan();
  // When nothing changes any more, planning ends.
  void ComeToRest();
  // A plan that was made takes nothing that is kept for a head, but one of higher priority, or one that is over in
  // time; under `hold` it passes no head.
  void CheckHeads(const std::set<std::string>& held_before, int64_t newest_plan);
  [[nodiscard]] std::set<std::string> HeldFor() const;
  [[nodiscard]] int64_t KeptBehind(const Gang& gang, const Gang& head, NodeId node, ResourceId resource) const;
  void ChangeHead();
  [[nodiscard]] int64_t Plans() const;
  [[nodiscard]] uint64_t ClusterHash() const;

  Outcome Apply(const Command& command);
  void TakeOut(const Outcome& outcome);
  // No member may be bound unless its gang is satisfied: the quorum, all of it, was permitted in the same step.
  [[nodiscard]] bool Whole(const Gang& gang, const std::vector<MemberState>& states) const;
  void CheckDomains(const Outcome& outcome);
  void CheckNeighbours(const Outcome& outcome, const std::set<std::string>& placed);
  [[nodiscard]] std::set<std::string> Placed() const;
  void AddShape(GangDeclaration* said);
  // What the pod says of pods around it, and the label that they may mean it by.
  void AddNeighbours(PodDescription* pod);
  // The labels of the pods' namespace change, or nothing is known of it any more.
  void NameNamespace();
  void CheckWholeGang(const std::string& uid);
  void NoteWholeGangs();
  void NoteMet(const std::string& uid);
  // D-10: when a gang becomes satisfied, so is every gang of its group, in the same step or before.
  void CheckWholeGroups();

  const bool plain_;   // nobody has host ports or neighbours: for those no room is kept (P-8)
  const bool queued_;  // there are queues
  const bool driven_;  // drivers come before their workers (P-7)
  const bool headed_;  // who comes first and waits is looked after
  const bool odd_;     // what is seldom is asked and said
  const bool keeps_facts_;
  std::mt19937_64 random_;
  std::unique_ptr<Machine> machine_;
  int64_t now_ms_ = 1'000'000;
  int next_uid_ = 1;
  HoldToken next_token_ = 1;
  int next_submission_ = 0;
  int64_t facts_version_ = 0;
  int confirmed_ = 0;
  int64_t in_domains_ = 0;
  int64_t met_ = 0;  // members that were bound where room was kept for them before they came (P-7)
  int64_t kept_apart_ = 0;
  std::optional<Labels> of_namespace_;  // as the API server has it
  int commits_ = 0;
  int groups_started_ = 0;
  int rounds_without_plan_ = 0;
  int steps_with_room_kept_ = 0;
  int steps_held_by_queue_ = 0;
  int steps_with_head_ = 0;
  QueueRules queues_;
  int restarts_ = 0;
  bool writing_ = false;
  std::vector<Life> lives_;
  std::set<std::string> satisfied_before_;
  std::set<std::string> started_;  // gangs that had their minimum at once since the process began
  std::set<std::string> whole_;    // gangs that had it bound at once, as the API server knows
  std::string violation_;
  std::map<std::string, PodDescription> pods_;
  std::map<std::string, GangObject> objects_;
  std::map<std::string, std::string> offered_;
  std::map<std::string, std::string> bindings_;  // on their way
  std::set<std::string> marks_;                  // UIDs of pods whose timeout mark is on its way
  std::set<std::string> evictions_;              // UIDs
  std::map<HoldToken, std::string> tokens_;
  std::map<std::string, Record> records_;  // by name
  bool only_transcribe_ = false;
  Transcript transcript_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_RANDOM_WORLD_H_
