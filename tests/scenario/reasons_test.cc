// Every reason that a user may see: a situation that produces it (here or in a scenario), its text, and, if a gang
// waits for it, the suggestion. The test prints the table of all reasons.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "state/machine/machine.h"
#include "tests/scenario/language.h"
#include "tests/support/facts.h"

namespace muster {
namespace {

constexpr size_t kCodes = static_cast<size_t>(ReasonCode::kEvicted) + 1;

// Returned by the engine, which the core does not depend on: engine_mailbox_test and engine_test.
const std::set<ReasonCode> kOfTheEngine = {ReasonCode::kOverloaded, ReasonCode::kShuttingDown};
// No action by the user is needed: the process in question ends by itself, or the code is a reply and not a state of a
// gang.
const std::set<ReasonCode> kNothingToDo = {
    ReasonCode::kNone,      ReasonCode::kNotAGang,   ReasonCode::kUnknownPod,     ReasonCode::kScheduleCycle,
    ReasonCode::kQueued,    ReasonCode::kPlanned,    ReasonCode::kBarrier,        ReasonCode::kBinding,
    ReasonCode::kSatisfied, ReasonCode::kSlotsTaken, ReasonCode::kNodeNotOffered, ReasonCode::kMemberUnschedulable,
    ReasonCode::kGuarded,   ReasonCode::kStarting,   ReasonCode::kGone,           ReasonCode::kHoldExpired,
    ReasonCode::kWithdrawn, ReasonCode::kBindFailed, ReasonCode::kOverloaded,     ReasonCode::kShuttingDown,
    ReasonCode::kEvicted,
};

// Pod d/NAME of a gang that needs `min` members; of no gang if that is 0.
PodDescription PodOf(const std::string& name, const std::string& gang, int min, int64_t cpu) {
  PodDescription pod = min == 0 ? Lone(name, cpu) : Member(name, gang, min, cpu);
  pod.uid = "u-" + name;
  return pod;
}

class Situation {
 public:
  explicit Situation(const MachineSettings& settings = MachineSettings(), bool read = true) : machine_(settings) {
    for (const char* name : {"n1", "n2"}) {
      NodeDescription node = NodeWith(name, {{"cpu", 1}, {"pods", 110}});
      if (absl::string_view(name) == "n1") node.labels = {{"zone", "b"}};
      Apply(UpsertNode{node});
    }
    if (read) Apply(FactsRead{});
  }
  Outcome Apply(const Command& command) {
    Outcome outcome;
    machine_.Apply(command, 1000, &outcome);
    for (int i = 0; i < 10 && machine_.PlanningDue(); ++i) {
      Outcome planned;
      machine_.Apply(PlanRound{}, 1000, &planned);
    }
    return outcome;
  }
  [[nodiscard]] GangView Gang(const std::string& key) const {
    return machine_.reader().gangs.View(*machine_.reader().FindGang(key), /*with_members=*/true);
  }
  [[nodiscard]] Reason Filtered(const std::string& uid) {
    const Outcome outcome = Apply(Filter{uid, std::make_shared<NodeOffer>(std::vector<std::string>{"n1", "n2"})});
    return std::get<FilterReply>(outcome.reply).reason;
  }

 private:
  Machine machine_;
};

struct Said {
  Reason reason;
  std::string would_help;
};
using Vocabulary = std::map<ReasonCode, Said>;

void Note(const Reason& reason, const std::string& would_help, Vocabulary* out) {
  out->emplace(reason.code, Said{reason, would_help});
}
void Note(const GangView& gang, Vocabulary* out) {
  Note(gang.reason, gang.would_help, out);
  for (const MemberView& member : gang.members) Note(member.reason, gang.would_help, out);
}

// Situations that no scenario produces: special settings, and the start of the process.
void Situations(Vocabulary* out) {
  Situation starting(MachineSettings(), /*read=*/false);
  starting.Apply(UpsertPod{PodOf("a", "", 0, 1)});
  Note(starting.Filtered("u-a"), "", out);
  Situation plain;
  Note(plain.Filtered("unknown"), "", out);
  MachineSettings few;
  few.max_holds = 1;
  Situation holds(few);
  for (const char* name : {"a", "b"}) holds.Apply(UpsertPod{PodOf(name, "g", 2, 1)});
  Note(holds.Gang("d/g"), out);
  Situation elsewhere;
  for (const char* name : {"a", "b"}) {
    PodDescription pod = PodOf(name, "g", 2, 1);
    if (pod.name == "b") pod.scheduler_name = "another";
    elsewhere.Apply(UpsertPod{pod});
  }
  Note(elsewhere.Gang("d/g"), out);
  MachineSettings greedy;
  greedy.planner_tries = 1;
  Situation tries(greedy);
  PodDescription last = PodOf("b", "g", 2, 1);
  last.shape.Mutable().node_selector = {{"zone", "b"}};
  tries.Apply(UpsertPod{PodOf("a", "g", 2, 1)});
  tries.Apply(UpsertPod{last});
  Note(tries.Gang("d/g"), out);
  // One situation for each kind of reason whose text scenarios show, for its suggestion.
  Situation room;
  PodDescription running = PodOf("r", "", 0, 1);
  running.node_name = "n1";
  room.Apply(UpsertPod{running});
  for (const char* name : {"a", "b"}) room.Apply(UpsertPod{PodOf(name, "g", 2, 1)});
  Note(room.Gang("d/g"), out);
  Situation missing;
  missing.Apply(UpsertPod{PodOf("a", "g", 2, 1)});
  Note(missing.Gang("d/g"), out);
}

// Codes as scenarios write them: "(NoRoom: ..." or "NoRoom: ..." or "[NoRoom]".
std::map<ReasonCode, std::string> OfScenarios() {
  std::map<ReasonCode, std::string> out;
  for (const std::string& path : ScenarioFiles(MUSTER_SCENARIO_DIR)) {
    for (const ScenarioBlock& block : ReadScenario(path)) {
      for (const std::string& line : std::vector<std::string>(absl::StrSplit(block.expected, '\n'))) {
        for (size_t i = 0; i < kCodes; ++i) {
          const auto code = static_cast<ReasonCode>(i);
          const absl::string_view name = ReasonName(code);
          const size_t at = line.find(std::string(name));
          if (at == std::string::npos || out.count(code) > 0) continue;
          const bool begins = at == 0 || line[at - 1] == '(' || line[at - 1] == ' ' || line[at - 1] == '[';
          const size_t end = at + name.size();
          const bool ends = end < line.size() && (line[end] == ':' || line[end] == ')' || line[end] == ']');
          if (begins && ends) out[code] = line.substr(at);
        }
      }
    }
  }
  return out;
}

TEST(Reasons, EachReason_OccursWithSuggestion) {
  Vocabulary said;
  Situations(&said);
  const std::map<ReasonCode, std::string> scenarios = OfScenarios();
  for (size_t i = 1; i < kCodes; ++i) {
    const auto code = static_cast<ReasonCode>(i);
    const auto here = said.find(code);
    const auto played = scenarios.find(code);
    const bool found = here != said.end() || played != scenarios.end();
    EXPECT_TRUE(found || kOfTheEngine.count(code) > 0)
        << ReasonName(code) << " is said in no situation and no scenario";
    if (!found) continue;
    const std::string text = here != said.end() ? here->second.reason.text : played->second;
    EXPECT_NE(text, "") << ReasonName(code);
    std::printf("%-20s %s\n", std::string(ReasonName(code)).c_str(), text.c_str());
    const std::string help = HintFor(code);
    EXPECT_EQ(help.empty(), kNothingToDo.count(code) > 0) << ReasonName(code) << ": \"" << help << "\"";
    if (here != said.end() && !here->second.would_help.empty()) {
      EXPECT_EQ(here->second.would_help, help);
    }
    if (!help.empty()) std::printf("%-20s   -> %s\n", "", help.c_str());
  }
}

// The sentences about nodes, domains, subgroups and pod affinity, which users search for: each occurs in the expected
// output of a scenario.
TEST(Reasons, EachSentence_OccursInScenarios) {
  std::string expected;
  for (const std::string& file : ScenarioFiles(MUSTER_SCENARIO_DIR)) {
    for (const ScenarioBlock& block : ReadScenario(file)) absl::StrAppend(&expected, block.expected);
  }
  for (const char* words : {"node: insufficient nvidia.com/gpu",
                            "node: a taint the pod does not tolerate (team)",
                            "node: marked unschedulable",
                            "node: node selector (zone)",
                            "nodes: node affinity",
                            "node: host port taken",
                            "refused by another filter of kube-scheduler",
                            "nodes: pod anti-affinity (kubernetes.io/hostname)",
                            "node: anti-affinity of other pods (kubernetes.io/hostname)",
                            "nodes: pod affinity (zone)",
                            "node: topology spread (zone)",
                            "no domain of rack has room for the gang: a: 2 of 4, b: 2 of 4",
                            "has room for subgroup",
                            "no node has label block, which the gang requires",
                            "of 2 subgroups ready",
                            "pods exist",
                            "no node offers nvidia.com/gpus; did you mean nvidia.com/gpu?",
                            "no node offers example.com/fpga",
                            "no node has more than",
                            "can never fit: "}) {
    EXPECT_NE(expected.find(words), std::string::npos) << "no scenario expects: " << words;
  }
}

}  // namespace
}  // namespace muster
