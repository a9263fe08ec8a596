// The random world as it was when the judge was called: its commands go to both cores alike.
#ifndef MUSTER_TESTS_JUDGE_JUDGE_WORLD_H_
#define MUSTER_TESTS_JUDGE_JUDGE_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "state/machine/machine.h"

namespace muster {

// 6 nodes, 8 gangs, some 40 pods, and callers that do anything at any time. After each command the machine's invariants
// and the rules of whole gangs are recomputed; random_world_checks.cc holds those.
class JudgeWorld {
 public:
  explicit JudgeWorld(uint64_t seed);

  // One thing happens, and every rule is checked.
  void Step();

  // Prints everything from now on.
  void Trace(long step);
  // Of all that came out so far and of what readers see now.
  [[nodiscard]] uint64_t Digest();
  [[nodiscard]] long commands() const { return commands_; }

 private:
  static MachineSettings Settings(uint64_t seed);
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
  static std::string NodeName(int i) { return absl::StrCat("n", i); }

  NodeDescription RandomNode(int i);

  void AddPod();
  std::string SomeUid();
  void RemoveSomePod();
  void ChangeSomePod();
  void ChangeFacts(PodDescription* pod);
  void ChangeGangObject();
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
  void HangUp();
  void FinishBindings();

  void Rare();
  // A new process: what the store holds, then the facts.
  void Restart();
  void FilterKnown();
  void Note(const std::string& text);
  Outcome Apply(const Command& command);

  std::mt19937_64 random_;
  const MachineSettings settings_;
  std::unique_ptr<Machine> machine_;
  int64_t now_ms_ = 1'000'000;
  int next_uid_ = 1;
  HoldToken next_token_ = 1;
  int next_submission_ = 0;
  int64_t facts_version_ = 0;
  long commands_ = 0;
  uint64_t digest_ = 0xcbf29ce484222325ULL;
  bool trace_ = false;
  std::map<std::string, PodDescription> pods_;
  std::map<std::string, GangObject> objects_;
  std::map<std::string, std::string> offered_;
  std::map<std::string, std::string> bindings_;
  std::map<HoldToken, std::string> tokens_;
  std::map<std::string, std::string> records_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_JUDGE_JUDGE_WORLD_H_
