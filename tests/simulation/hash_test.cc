// LogicalHash differs for states that answer differently, and equal hashes imply equal answers (SPEC P-1).
#include "tests/verify/hash.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/recording/recording.h"
#include "tests/simulation/random_world.h"
#include "tests/support/facts.h"
#include "tests/support/share.h"

namespace muster {
namespace {

// A digest of the complete outcome.
uint64_t Apply(const Command& command, int64_t now_ms, Machine* machine) {
  Outcome outcome;
  machine->Apply(command, now_ms, &outcome);
  return recording::DigestOf(outcome);
}

struct Timed {
  int64_t at_ms;
  Command command;
};
using Sequence = std::vector<Timed>;

Command ANode(const std::string& name, int64_t cpu) { return UpsertNode{SmallNode(name, 1000 * cpu)}; }

// `gang` empty: a lone pod.
UpsertPod APod(const std::string& uid, const std::string& gang, int32_t minimum, const char* scheduler) {
  UpsertPod out{gang.empty() ? Lone(uid, 1000) : Member(uid, gang, minimum, 1000)};
  out.pod.scheduler_name = scheduler;
  if (!gang.empty()) out.pod.gang.declaration.Mutable().wait_time_ms = 5'000;
  return out;
}

Command Named(UpsertPod pod, const std::string& name) {
  pod.pod.name = name;
  return pod;
}

Command Gated(UpsertPod pod) {
  pod.pod.our_gate = true;
  return pod;
}

Command Patient(UpsertPod pod) {
  pod.pod.gang.declaration.Mutable().wait_time_ms = 600'000;
  return pod;
}

Command Submit(const std::string& id, uint64_t fingerprint) {
  SubmitGang out;
  out.id = id;
  out.name_space = "d";
  out.name = id;
  out.declaration.Mutable().min_member = 1;
  out.pods.push_back(APod("p-" + id, "", 0, "").pod);
  out.ttl_ms = 60'000;
  out.fingerprint = fingerprint;
  return out;
}

constexpr char kKube[] = "default-scheduler";
const std::shared_ptr<const NodeOffer> kAll = std::make_shared<NodeOffer>(NodeOffer::AllNodes());

struct Pair {
  const char* what;
  Sequence before;
  Sequence one;
  Sequence other;
  Sequence probe;  // the replies differ
};

std::vector<Pair> Pairs() {
  const Sequence idle = {{1000, ANode("n1", 2)}, {1000, FactsRead{}}};
  const auto with = [](Sequence sequence, const Sequence& more) {
    sequence.insert(sequence.end(), more.begin(), more.end());
    return sequence;
  };
  const Sequence verbs = with(idle, {{1000, APod("u1", "g", 2, "mine")}, {1000, APod("u2", "g", 2, "mine")}});
  const Sequence lone = with(idle, {{1000, APod("l", "", 0, kKube)}});
  const Sequence gang = with(idle, {{1000, APod("u1", "g", 2, kKube)}, {1000, APod("u2", "g", 2, kKube)}});
  const Sequence planned = with(gang, {{1000, PlanRound{}}});
  const Sequence patient = with(idle, {{1000, Patient(APod("u1", "g", 2, kKube))},
                                       {1000, Patient(APod("u2", "g", 2, kKube))},
                                       {1000, PlanRound{}},
                                       {1000, Filter{"u1", kAll}}});
  const Sequence large = with(
      idle, {{1000, APod("u1", "g", 3, kKube)}, {1000, APod("u2", "g", 3, kKube)}, {1000, APod("u3", "g", 3, kKube)}});
  const Sequence bound = with(lone, {{1000, Filter{"l", kAll}}, {1000, Bind{"l", "n1", 1}}});
  return {
      {"name",
       idle,
       {{1000, Named(APod("l", "", 0, kKube), "x")}},
       {{1000, Named(APod("l", "", 0, kKube), "y")}},
       {{1000, Named(APod("l", "", 0, kKube), "x")}}},
      {"minimum",
       idle,
       {{1000, APod("u1", "g", 2, kKube)}},
       {{1000, APod("u1", "g", 3, kKube)}},
       {{1000, PreFilter{"u1"}}}},
      {"asked early", idle, {{1000, Filter{"l", kAll}}}, {}, {{1000, APod("l", "", 0, kKube)}}},
      {"round", verbs, {{1000, PreFilter{"u1"}}}, {}, {{1000, PreFilter{"u1"}}}},
      {"cycle", verbs, {{1000, PostFilter{"u1", "x"}}}, {}, {{1000, PreFilter{"u2"}}}},
      {"wait clock", verbs, {{1000, Permit{"u1", "n1", 1}}}, {{3000, Permit{"u1", "n1", 1}}}, {{6000, Tick{}}}},
      {"bind within",
       lone,
       {{1000, Permit{"l", "n1", 1, 1000}}},
       {{1000, Permit{"l", "n1", 1, 3000}}},
       {{2000, Tick{}}}},
      {"guarded",
       with(planned, {{1000, APod("l", "", 0, kKube)}}),
       {{1000, Filter{"l", kAll}}},
       {},
       {{1000, RemovePod{"u1"}}}},
      {"finished submission",
       idle,
       {{1000, Submit("s", 1)}, {1000, AbandonGang{"s"}}},
       {{1000, Submit("t", 1)}, {1000, AbandonGang{"t"}}},
       {{1000, AskGang{"s"}}}},
      {"fingerprint", idle, {{1000, Submit("s", 1)}}, {{1000, Submit("s", 2)}}, {{1000, Submit("s", 1)}}},
      {"next plan id",
       idle,
       {{1000, APod("u1", "g", 1, kKube)}, {1000, PlanRound{}}, {1000, RemovePod{"u1"}}},
       {},
       {{1000, Submit("s", 1)}}},
      {"next try", bound, {{1000, BindingOutcome{"l", "n1", BindingResult::kRetry, "x"}}}, {}, {{1200, Tick{}}}},
      {"answer by",
       lone,
       {{1000, Bind{"l", "n1", 1}}},
       {{3000, Bind{"l", "n1", 1}}},
       {{3000, BindingOutcome{"l", "n1", BindingResult::kRetry, "x"}}, {4000, Tick{}}}},
      {"hold token", lone, {{1000, Bind{"l", "n1", 1}}}, {{1000, Bind{"l", "n1", 2}}}, {{1000, CallerGone{"l", 1}}}},
      {"parked", large, {{1000, Filter{"u1", kAll}}}, {}, {{1000, ANode("n2", 4)}, {1000, PlanRound{}}}},
      {"blocked", large, {{1000, PlanRound{}}}, {}, {{10'000, Tick{}}}},
      {"wake time",
       with(idle, {{1000, Gated(APod("u1", "g", 1, kKube))}}),
       {{1000, PlanRound{}}},
       {{2500, PlanRound{}}},
       {{3000, Tick{}}}},
      {"offered", planned, {{1000, Filter{"u1", kAll}}}, {}, {{3000, Tick{}}}},
      {"held since", patient, {{1000, Bind{"u1", "n1", 1}}}, {{4000, Bind{"u1", "n1", 1}}}, {{21'000, Tick{}}}},
      {"repair",
       with(bound, {{1000, RemovePod{"l"}},
                    {1000, APod("u1", "g", 2, kKube)},
                    {1000, APod("u2", "g", 2, kKube)},
                    {1000, PlanRound{}},
                    {1000, Bind{"u1", "n1", 1}},
                    {1000, Bind{"u2", "n1", 2}},
                    {1000, Filter{"u1", kAll}},
                    {1000, Filter{"u2", kAll}},
                    {1000, Bind{"u1", "n1", 3}},
                    {1000, Bind{"u2", "n1", 4}}}),
       {{1000, BindingOutcome{"u1", "n1", BindingResult::kRefused, "x"}}},
       {{3000, BindingOutcome{"u1", "n1", BindingResult::kRefused, "x"}}},
       {{3100, Tick{}}, {31'000, Tick{}}, {31'500, Filter{"u1", kAll}}}},
  };
}

TEST(Hash, DifferentAnswers_DifferentHashes) {
  for (const Pair& pair : Pairs()) {
    SCOPED_TRACE(pair.what);
    std::vector<uint64_t> hashes;
    std::vector<std::vector<uint64_t>> answers;
    for (const Sequence* sequence : {&pair.one, &pair.other}) {
      Machine machine(MachineSettings{});
      for (const Timed& each : pair.before) Apply(each.command, each.at_ms, &machine);
      for (const Timed& each : *sequence) Apply(each.command, each.at_ms, &machine);
      hashes.push_back(LogicalHash(machine));
      std::vector<uint64_t>& answer = answers.emplace_back();
      for (const Timed& each : pair.probe) answer.push_back(Apply(each.command, each.at_ms, &machine));
    }
    EXPECT_NE(answers[0], answers[1]) << "the pair proves nothing";
    EXPECT_NE(hashes[0], hashes[1]);
  }
}

std::unique_ptr<Machine> Born(const RandomWorld::Life& life) {
  auto machine = std::make_unique<Machine>(RandomWorld::Settings());
  EXPECT_TRUE(machine->Load(life.records).ok());
  return machine;
}

// Swaps two adjacent commands of one life. If the hashes are equal afterwards, every later reply must be equal.
int SwapAdjacent(const RandomWorld::Life& life, std::mt19937_64* random) {
  constexpr size_t kSwaps = 20;
  constexpr size_t kFollow = 300;
  int met = 0;
  for (size_t swap = 0; swap < kSwaps && life.commands.size() > 2; ++swap) {
    const size_t at = (*random)() % (life.commands.size() - 1);
    const auto one = Born(life);
    const auto other = Born(life);
    for (size_t i = 0; i < at; ++i) {
      Apply(life.commands[i].first, life.commands[i].second, one.get());
      Apply(life.commands[i].first, life.commands[i].second, other.get());
    }
    const int64_t now_ms = life.commands[at + 1].second;
    Apply(life.commands[at].first, now_ms, one.get());
    Apply(life.commands[at + 1].first, now_ms, one.get());
    Apply(life.commands[at + 1].first, now_ms, other.get());
    Apply(life.commands[at].first, now_ms, other.get());
    if (LogicalHash(*one) != LogicalHash(*other)) continue;
    ++met;
    for (size_t i = at + 2; i < std::min(life.commands.size(), at + 2 + kFollow); ++i) {
      const auto& [command, time_ms] = life.commands[i];
      EXPECT_EQ(Apply(command, time_ms, one.get()), Apply(command, time_ms, other.get()))
          << "command " << i << ", after " << at << " and " << at + 1 << " changed places";
      if (testing::Test::HasFailure()) return met;
    }
    EXPECT_EQ(LogicalHash(*one), LogicalHash(*other));
  }
  return met;
}

TEST(Hash, EqualHashes_EqualAnswers) {
  std::mt19937_64 random(1);
  int met = 0;
  size_t lives = 0;
  const int seeds = ShareOf(6);
  for (int seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    RandomWorld world(static_cast<uint64_t>(seed));
    world.WriteLives();
    for (int step = 0; step < 4000; ++step) world.Step();
    for (const RandomWorld::Life& life : world.lives()) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", life ", lives));
      met += SwapAdjacent(life, &random);
      ++lives;
      if (HasFailure()) break;
    }
  }
  EXPECT_GT(met, 15 * seeds) << "hardly any two orders met: the test would prove nothing";
  std::printf("%d times two orders of %zu lives met\n", met, lives);
}

// In canonical form a sequence number is hashed by its order of first appearance; 0 means no number.
TEST(CanonicalHasherTest, CanonicalForm_NumbersByOrderOfAppearance) {
  const auto hash_of = [](std::initializer_list<int64_t> plans) {
    CanonicalHasher hasher(1'000);
    for (const int64_t plan : plans) hasher.AddSequenceNumber(CanonicalHasher::Given::kPlan, plan);
    return hasher.value();
  };
  EXPECT_EQ(hash_of({7, 9, 7}), hash_of({70, 3, 70}));
  EXPECT_NE(hash_of({7, 9, 7}), hash_of({7, 9, 9}));
  EXPECT_NE(hash_of({7, 0}), hash_of({7, 9}));
  EXPECT_EQ(hash_of({0, 7}), hash_of({0, 8}));
  CanonicalHasher as_given;
  as_given.AddSequenceNumber(CanonicalHasher::Given::kPlan, 7);
  StateHasher plain;
  plain.Add(7);
  EXPECT_EQ(as_given.value(), plain.value());
}

}  // namespace
}  // namespace muster
