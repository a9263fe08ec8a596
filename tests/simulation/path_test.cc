// Simulates the whole path (S-2, K-4, K-13, P-6). Whatever dies, is lost, late or refused: no promise precedes its
// durable record, no gang is released in part, and no capacity is given twice. No queue exceeds its limit, and every
// waiting gang starts in the end.
//
// A failure prints the last events, and the command that replays it with the fewest turns that still fail.
// MUSTER_SEED=n runs only that seed, MUSTER_SEEDS=n that many seeds, MUSTER_TURNS=n turns each, MUSTER_ONLY=3-7,12 only
// these turns. MUSTER_SHORTEN_S=n limits the shortening to n seconds (60).
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/simulation/caller_world.h"
#include "tests/simulation/path_world.h"
#include "tests/simulation/verb_world.h"
#include "tests/support/share.h"

namespace muster {
namespace {

constexpr int kSeeds = 500;
constexpr int kTurns = 60'000;

// "S-2: pod u1-2 was confirmed ..." and "S-2: pod u7-1 was confirmed ..." are one failure: the numbers depend on the
// turns.
std::string Kind(const std::string& violation) {
  std::string kind;
  for (const char c : violation) kind += absl::ascii_isdigit(static_cast<unsigned char>(c)) ? '#' : c;
  return kind.substr(0, 40);
}

template <typename World>
void Tell(int seed, const World& failed, const Turns& turns) {
  const std::string kind = Kind(failed.violation());
  std::unique_ptr<World> last;
  const auto fails = [&](const Turns& fewer) {
    auto world = std::make_unique<World>(static_cast<uint64_t>(seed));
    world->Run(fewer);
    const bool same = Kind(world->violation()) == kind;
    if (same) last = std::move(world);
    return same;
  };
  const Turns until = turns.Without(turns.count() - (turns.end() - failed.turns()), turns.count());
  const Turns few = Shorten(fails(until) ? until : turns, fails, absl::Seconds(FromEnv("MUSTER_SHORTEN_S", 60)));
  const World& shown = last == nullptr ? failed : *last;
  ADD_FAILURE() << shown.violation() << "\nreplay: MUSTER_SEED=" << seed << " MUSTER_ONLY=" << few.ToString()
                << " path_test --gtest_filter='"
                << testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() << "."
                << testing::UnitTest::GetInstance()->current_test_info()->name() << "'\n"
                << few.count() << " of " << turns.count() << " turns\n"
                << absl::StrJoin(shown.events(), "\n");
}

// Figures of all worlds together; empty: a world failed, or not the whole run was taken.
template <typename World>
std::optional<std::map<std::string, int64_t>> RunAll(int seeds) {
  const int only = FromEnv("MUSTER_SEED", 0);
  Turns turns(FromEnv("MUSTER_TURNS", kTurns));
  if (const char* named = std::getenv("MUSTER_ONLY"); named != nullptr) {
    const absl::StatusOr<Turns> read = Turns::Parse(named);
    if (!read.ok()) ADD_FAILURE() << "MUSTER_ONLY: " << read.status().message();
    if (read.ok()) turns = *read;
  }
  std::map<std::string, int64_t> figures;
  for (int seed = only > 0 ? only : 1; seed <= (only > 0 ? only : seeds); ++seed) {
    World world(static_cast<uint64_t>(seed));
    world.Run(turns);
    for (const auto& [name, count] : world.figures()) figures[name] += count;
    if (world.violation().empty()) continue;
    Tell(seed, world, turns);
    return std::nullopt;
  }
  for (const auto& [name, count] : figures) std::printf("%s: %lld\n", name.c_str(), static_cast<long long>(count));
  if (only > 0 || seeds < 40 || turns.count() < kTurns) return std::nullopt;
  return figures;
}

// A kind that never occurred was not tested. `kinds`: what follows `prefix`.
void ExpectEach(std::map<std::string, int64_t> figures, const std::string& prefix, absl::string_view kinds) {
  for (const absl::string_view kind : absl::StrSplit(kinds, "; ")) {
    EXPECT_GT(figures[absl::StrCat(prefix, kind)], 0) << prefix << kind;
  }
}

class Path : public testing::Test {
 protected:
  Path() { spdlog::set_level(spdlog::level::off); }  // stores fail thousands of times
};

TEST_F(Path, RandomFaults_NoLossNoDoubleUseNoPartialStart) {
  const int seeds = FromEnv("MUSTER_SEEDS", ShareOf(kSeeds));
  const std::optional<std::map<std::string, int64_t>> all = RunAll<PathWorld>(seeds);
  if (!all.has_value()) return;
  std::map<std::string, int64_t> figures = *all;
  ExpectEach(figures, "",
             "at rest: a gang waits that does not fit; gangs of a group started; gangs of subgroups started; "
             "gangs started in one rack; pods of no gang started; pods preempted; the queues change");
  ExpectEach(figures, "command: ",
             "Bind; BindingOutcome; CallerGone; ExpectFacts; FactsRead; Filter; PlanRound; Preempt; RemoveNode; "
             "RemovePod; RestoreFacts; Tick; UpsertNode; UpsertPod");
  ExpectEach(figures, "effect: ", "BindPod; ActivatePod; EvictPod; EmitPodEvent");
  ExpectEach(figures, "fault: ",
             "a binding's outcome is not known; a crash between two turns; a crash in the middle of what left; "
             "a dead process' binding arrives; a held call's caller goes; a node is cordoned, or not any more; "
             "a node leaves; a pod is deleted; a sample of nodes is offered; an older store is put back; "
             "kube-scheduler restarts; kube-scheduler restarts too; the API server refuses a write; the store fails; "
             "the store's file is lost; the watch breaks");
  ExpectEach(figures, "reason: ",
             "Backoff; BindFailed; Evicted; Guarded; NoRoom; NodeNotOffered; NotEnoughPods; QueueLimit; SlotsTaken; "
             "Starting; TooManyHolds; UnknownPod");
  ExpectEach(figures, "record: ", "commit; gang; plans; start");
  EXPECT_GT(figures["starts within limits"], seeds * 20);
  EXPECT_GT(figures["commands"], seeds * 5'000);
  EXPECT_GT(figures["crashes"], seeds * 5);
  EXPECT_GT(figures["gangs started"], seeds * 100);
}

// Without Kubernetes: replies to callers hold after any crash, gangs are confirmed whole, facts stay stored (S-1, S-2).
TEST_F(Path, GangCallers_RepliesHoldAcrossCrashes) {
  const int seeds = FromEnv("MUSTER_SEEDS", ShareOf(kSeeds));
  const std::optional<std::map<std::string, int64_t>> all = RunAll<CallerWorld>(seeds);
  if (!all.has_value()) return;
  std::map<std::string, int64_t> figures = *all;
  ExpectEach(figures, "answer: ", "Abandoned; Confirmed; Expired; Planned; Waiting");
  ExpectEach(figures, "command: ",
             "AbandonGang; ConfirmGang; PlanRound; ReplaceFacts; SubmitGang; RestoreFacts; Tick; UpdateFacts");
  ExpectEach(figures, "fault: ", "a crash behind an answer; the store fails");
  ExpectEach(figures, "", "confirmed by their submission; gangs of a group started; snapshots; the queues change");
  ExpectEach(figures, "record: ", "announcer; gang; node; plans; pod; submission");
  EXPECT_GT(figures["confirmed within limits"], seeds * 20);
  EXPECT_GT(figures["crashes"], seeds * 20);
  EXPECT_GT(figures["gangs started"], seeds * 100);
}

// Without Kubernetes, pod by pod: no pod starts without its gang, and a permit stays valid after any crash (G-4, S-2).
TEST_F(Path, PermittedPod_StaysPermittedAcrossCrashes) {
  const int seeds = FromEnv("MUSTER_SEEDS", ShareOf(kSeeds / 2));
  const std::optional<std::map<std::string, int64_t>> all = RunAll<VerbWorld>(seeds);
  if (!all.has_value()) return;
  std::map<std::string, int64_t> figures = *all;
  ExpectEach(figures, "", "PreFilter refuses; a waiting pod is given up; no node is found; refused: NoRoom; snapshots");
  ExpectEach(figures, "command: ",
             "CallerGone; FindNodes; Permit; PostBind; PostFilter; PreFilter; ReplaceFacts; Unreserve; UpdateFacts");
  ExpectEach(figures, "fault: ", "a crash behind an answer; the store fails");
  ExpectEach(figures, "record: ", "commit");
  EXPECT_GT(figures["crashes"], seeds * 20);
  EXPECT_GT(figures["gangs started"], seeds * 50);
}

// The same seed gives the same run, to the last event: otherwise no failure could be replayed.
TEST_F(Path, SameSeed_SameRun) {
  PathWorld one(7);
  PathWorld other(7);
  one.Run(Turns(5'000));
  other.Run(Turns(5'000));
  EXPECT_EQ(one.events(), other.events());
  EXPECT_EQ(one.figures(), other.figures());
}

}  // namespace
}  // namespace muster
