// Short builders of pods and gangs, and a fixture, for tests of muster_gangs. The cluster has no nodes: a class is a
// number.
// Not thread-safe.
#ifndef MUSTER_TESTS_STATE_GANGS_GANG_WORLD_H_
#define MUSTER_TESTS_STATE_GANGS_GANG_WORLD_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "state/cluster/cluster.h"
#include "state/gangs/eligibility.h"
#include "state/gangs/gangs.h"
#include "state/model/queue.h"

namespace muster {

class GangWorld : public testing::Test {
 protected:
  explicit GangWorld(bool one_priority = false, bool cross_namespace_groups = true)
      : gangs_(GangsSettings{{}, {"default-scheduler", "other-scheduler"}, one_priority, /*notes_facts=*/true}),
        eligibility_(&gangs_, &queue_tree_, &cluster_, cross_namespace_groups) {}

  // Pod d/NAME that names gang d/GANG by a PodGroup; in no gang if `gang` is empty.
  static PodDescription Facts(const std::string& name, const std::string& gang) {
    PodDescription facts;
    facts.uid = facts.name = name;
    facts.name_space = "d";
    facts.scheduler_name = "default-scheduler";
    facts.created_ms = 1'000;
    facts.gang.name = gang;
    facts.gang.dialect = GangDialect::kPodGroupSigs;
    return facts;
  }
  // The same with a declaration of its own (D-1).
  static PodDescription Declaring(const std::string& name, const std::string& gang, int32_t minimum) {
    PodDescription facts = Facts(name, gang);
    facts.gang.dialect = GangDialect::kKoordinator;
    facts.gang.declares = true;
    facts.gang.declaration.Mutable().min_member = minimum;
    return facts;
  }
  // The same facts with one change.
  static PodDescription CreatedAt(int64_t created_ms, PodDescription facts) {
    facts.created_ms = created_ms;
    return facts;
  }
  static PodDescription OfPriority(int32_t priority, PodDescription facts) {
    facts.priority = priority;
    return facts;
  }
  static PodDescription OfDialect(GangDialect dialect, PodDescription facts) {
    facts.gang.dialect = dialect;
    return facts;
  }
  static PodDescription Gated(PodDescription facts) {
    facts.other_gates = true;
    return facts;
  }
  // Muster does not serve its scheduler.
  static PodDescription Unserved(PodDescription facts) {
    facts.scheduler_name = "volcano";
    return facts;
  }
  const Pod& Add(PodDescription facts, MemberState state = MemberState::kPending, ClassId cls = 1,
                 bool submitted = false) {
    const Pod& pod = gangs_.AddPod(std::move(facts), cls, state, submitted);
    if (!pod.facts.gang.in_gang()) return pod;
    const Gang& gang = *gangs_.Intern(pod.facts.name_space, pod.facts.gang.name, pod.facts.created_ms, 0).gang;
    gangs_.Join(pod, gang);
    if (gangs_.Adopt(pod)) gangs_.ReadRules(gang);
    return pod;
  }
  const Pod& Add(const std::string& name, const std::string& gang, MemberState state = MemberState::kPending) {
    return Add(Facts(name, gang), state);
  }
  static GangObject Object(const std::string& name, GangDeclaration declaration,
                           GangDialect dialect = GangDialect::kPodGroupSigs) {
    GangObject object;
    object.dialect = dialect;
    object.name_space = "d";
    object.name = name;
    object.created_ms = 500;
    object.declaration = std::move(declaration);
    return object;
  }
  // Gang d/NAME, declared by a PodGroup.
  const Gang& Declare(const std::string& name, GangDeclaration declaration,
                      GangDialect dialect = GangDialect::kPodGroupSigs) {
    const Gang& gang = *gangs_.Intern("d", name, 500, 0).gang;
    gangs_.PutObject(gang, Object(name, std::move(declaration), dialect));
    gangs_.ReadRules(gang);
    return gang;
  }
  const Gang& Declare(const std::string& name, int32_t minimum, std::vector<std::string> groups = {}) {
    GangDeclaration declaration;
    declaration.min_member = minimum;
    declaration.groups = std::move(groups);
    return Declare(name, std::move(declaration));
  }
  // Gang d/NAME with a minimum and a number of members in one state, named NAME-0 and so on.
  const Gang& With(const std::string& name, int32_t minimum, int32_t members, MemberState state,
                   std::vector<std::string> groups = {}) {
    const Gang& gang = Declare(name, minimum, std::move(groups));
    for (int32_t i = 0; i < members; ++i) Add(absl::StrCat(name, "-", i), name, state);
    return gang;
  }
  const Gang& GangOf(const std::string& name) { return *gangs_.FindGang("d/" + name); }
  void ClearTouched() {
    while (gangs_.TakeTouched() != nullptr) {
    }
  }

  Gangs gangs_;
  QueueTree queue_tree_;
  Cluster cluster_;
  Eligibility eligibility_;
};

inline std::vector<std::string> Keys(const Group& group) {
  std::vector<std::string> keys;
  for (const Gang* gang : group) keys.push_back(gang->key);
  return keys;
}

// Succeeds if the reason has this code, its text contains `part`, and `names_gang` agrees with the text.
inline testing::AssertionResult IsReason(const Reason& reason, ReasonCode code, absl::string_view part = "") {
  const bool names_gang = absl::StartsWith(reason.text, "gang ");
  if (reason.code == code && absl::StrContains(reason.text, part) && reason.names_gang == names_gang)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << ReasonName(reason.code) << ": " << reason.text;
}

}  // namespace muster

#endif  // MUSTER_TESTS_STATE_GANGS_GANG_WORLD_H_
