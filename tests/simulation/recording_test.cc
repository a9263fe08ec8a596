// A recorded machine can be restored at any moment and continues exactly like the saved one; commands are read as they
// were written (S-3).
#include "state/recording/recording.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/simulation/random_world.h"
#include "tests/support/facts.h"
#include "tests/verify/invariants.h"

namespace muster {
namespace {

using archive::Reader;
using recording::CommandReader;
using recording::CommandWriter;
using recording::DigestOf;
using recording::Offer;
using recording::OfferReader;
using recording::OfferWriter;
using recording::RestoreState;
using recording::SaveState;
using recording::StateHash;

constexpr int kSeeds = 8;
constexpr int kSteps = 3'000;
constexpr int kSaveEvery = 40;   // commands, on average
constexpr int kCheckEvery = 10;  // whole hashes

// One life of a process, applied to a machine and to a second one that is repeatedly restored from it and decodes its
// commands from bytes. Returns the difference; empty: none.
class Twin {
 public:
  Twin(const MachineSettings& settings, uint64_t seed) : settings_(settings), random_(seed) {}

  std::string Live(const RandomWorld::Life& life) {
    Machine machine(settings_);
    if (absl::Status loaded = machine.Load(life.records); !loaded.ok()) return std::string(loaded.message());
    if (std::string wrong = Restore(machine); !wrong.empty()) return wrong;
    OfferWriter offer_writer;
    OfferReader offer_reader;
    for (const auto& [command, now_ms] : life.commands) {
      if (random_() % kSaveEvery == 0) {
        if (std::string wrong = Restore(machine); !wrong.empty()) return wrong;
      }
      std::string bytes, offer_bytes;
      std::vector<Offer> put_aside;
      CommandWriter writer(&bytes, &put_aside);
      archive::Pass(writer, command);
      for (const Offer& offer : put_aside) offer_writer.Write(*offer, &offer_bytes);
      Reader from(offer_bytes);
      std::deque<Offer> offers;
      while (!from.done() && from.ok()) offers.push_back(offer_reader.Read(&from));
      CommandReader reader(bytes, &offers);
      Command read;
      archive::Pass(reader, read);
      if (!reader.ok() || !reader.done() || !offers.empty()) return "a command cannot be read";
      Outcome one;
      Outcome other;
      machine.Apply(command, now_ms, &one);
      twin_->Apply(read, now_ms, &other);
      ++commands_;
      if (DigestOf(one) != DigestOf(other)) return "outcomes differ";
      if (machine.PlanningDue() != twin_->PlanningDue() || machine.NextDeadline() != twin_->NextDeadline()) {
        return "what is due differs";
      }
      std::vector<std::string> gangs, nodes, twin_gangs, twin_nodes;
      machine.TakeChanged(&gangs, &nodes);
      twin_->TakeChanged(&twin_gangs, &twin_nodes);
      if (gangs != twin_gangs || nodes != twin_nodes) return "what changed differs";
      if (random_() % kCheckEvery == 0 && StateHash(machine) != StateHash(*twin_)) return "states differ";
    }
    return StateHash(machine) == StateHash(*twin_) ? "" : "states differ";
  }

  [[nodiscard]] int restored() const { return restored_; }
  [[nodiscard]] int64_t commands() const { return commands_; }

 private:
  std::string Restore(const Machine& machine) {
    ++restored_;
    twin_ = std::make_unique<Machine>(settings_);
    if (absl::Status read = RestoreState(SaveState(machine), twin_.get()); !read.ok())
      return std::string(read.message());
    if (absl::Status right = CheckInvariants(*twin_); !right.ok()) return std::string(right.message());
    return StateHash(*twin_) == StateHash(machine) ? "" : "what was restored differs";
  }

  const MachineSettings settings_;
  std::mt19937_64 random_;
  std::unique_ptr<Machine> twin_;
  int restored_ = 0;
  int64_t commands_ = 0;
};

TEST(Recording, RestoredAtAnyMoment_ContinuesEqually) {
  int restored = 0;
  int64_t commands = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomWorld world(seed, /*persist_facts=*/seed % 4 == 0);
    world.WriteLives();
    for (int step = 0; step < kSteps; ++step) world.Step();
    ASSERT_FALSE(world.lives().empty());
    Twin twin(world.OwnSettings(), seed);
    for (size_t life = 0; life < world.lives().size(); ++life) {
      ASSERT_EQ(twin.Live(world.lives()[life]), "") << "seed " << seed << ", life " << life;
    }
    restored += twin.restored();
    commands += twin.commands();
  }
  EXPECT_GT(restored, 1000);
  std::printf("%lld commands, restored %d times\n", static_cast<long long>(commands), restored);
}

// More of everything than the random world has at once.
TEST(Recording, LargeState_IsRestored) {
  MachineSettings settings;
  Machine machine(settings);
  Outcome outcome;
  for (int i = 0; i < 200; ++i) {
    machine.Apply(UpsertNode{SmallNode(absl::StrCat("n", i), 4'000)}, 1'000, &outcome);
  }
  machine.Apply(FactsRead{}, 1'000, &outcome);
  for (int i = 0; i < 1'000; ++i) {
    const PodDescription pod = Member(absl::StrCat("p", i), absl::StrCat("g", i / 5), 5, 1'000);
    machine.Apply(UpsertPod{pod}, 2'000 + i, &outcome);
  }
  while (machine.PlanningDue()) machine.Apply(PlanRound{}, 4'000, &outcome);
  Machine restored(settings);
  ASSERT_TRUE(RestoreState(SaveState(machine), &restored).ok());
  EXPECT_TRUE(CheckInvariants(restored).ok()) << CheckInvariants(restored);
  EXPECT_EQ(StateHash(restored), StateHash(machine));
  EXPECT_GT(restored.reader().gangs.promised_holds(), 500);
}

// An incomplete state is refused, wherever it ends, and never read past its end.
TEST(Recording, TruncatedState_IsRefused) {
  RandomWorld world(1);
  for (int step = 0; step < 500; ++step) world.Step();
  const std::string whole = SaveState(world.machine());
  for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 500) {
    Machine machine(world.OwnSettings());
    ASSERT_FALSE(RestoreState(absl::string_view(whole).substr(0, size), &machine).ok()) << size;
  }
}

// Any difference in an outcome changes its digest.
TEST(Recording, DifferentOutcomes_DifferentDigests) {
  std::vector<Outcome> outcomes(9);
  outcomes[1].status = absl::NotFoundError("no");
  outcomes[2].status = absl::NotFoundError("yes");
  outcomes[3].reply = FilterReply{.kind = FilterReply::Kind::kSingleNode, .node = "n"};
  outcomes[4].reply = FilterReply{.kind = FilterReply::Kind::kSingleNode, .node = "m"};
  outcomes[5].effects.push_back(EvictPod{{"d", "p", "u"}, ""});
  outcomes[6].records.push_back({.kind = "gang", .key = "d/g"});
  outcomes[7].answers.push_back({.token = 7, .permitted = true});
  outcomes[8].answers.push_back({.token = 7, .permitted = false});
  std::set<uint64_t> digests;
  for (const Outcome& outcome : outcomes) digests.insert(DigestOf(outcome));
  EXPECT_EQ(digests.size(), outcomes.size());
  EXPECT_EQ(DigestOf(Outcome()), DigestOf(outcomes[0]));
}

Offer Named(std::vector<std::string> names) { return std::make_shared<const NodeOffer>(std::move(names)); }

// Offers are decoded as they were encoded, in any order and with any repetition of node names, also in the offer that
// names a node first; a repeated name costs nearly no bytes.
TEST(Recording, Offer_EncodesEachNodeNameOnce) {
  std::vector<std::string> many;
  for (int i = 0; i < 5'000; ++i) many.push_back("a-node-with-a-long-name-" + std::to_string(i));
  std::vector<std::string> turned(many.begin() + 2'000, many.end());
  turned.insert(turned.end(), many.begin(), many.begin() + 2'000);
  std::vector<Offer> offers = {Named({"a", "a", "b"}),
                               Named({"c", "a", "b", "b"}),
                               Named({"d", "a", "e", "e", "d", "f"}),
                               Named({}),
                               std::make_shared<const NodeOffer>(NodeOffer::AllNodes()),
                               Named(many),
                               Named(many),
                               Named(turned)};
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<std::string> names;
    for (uint64_t left = random() % 8; left > 0; --left) names.push_back(absl::StrCat("n", random() % (4 + i / 10)));
    offers.push_back(Named(std::move(names)));
  }
  std::string bytes;
  OfferWriter writer;
  std::vector<size_t> sizes;
  for (const Offer& offer : offers) {
    const size_t before = bytes.size();
    writer.Write(*offer, &bytes);
    sizes.push_back(bytes.size() - before);
  }
  EXPECT_LT(sizes[6], 20U);
  EXPECT_LT(sizes[7], 20U);
  OfferReader reader;
  Reader from(bytes);
  for (const Offer& offer : offers) {
    const Offer again = reader.Read(&from);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(again->every(), offer->every());
    ASSERT_EQ(again->names(), offer->names());
    for (const absl::string_view name : offer->names()) EXPECT_TRUE(again->Contains(name));
  }
  EXPECT_TRUE(from.done());
  EXPECT_EQ(reader.Read(&from), nullptr);
}

// What a caller's bytes refer to has to be there: a command needs its offer, and an offer the names of earlier ones.
TEST(Recording, MissingReference_IsRefused) {
  for (const Offer& offer : {Offer(), Named({"n"})}) {
    std::string bytes;
    std::vector<Offer> put_aside;
    CommandWriter writer(&bytes, &put_aside);
    const Command command = Filter{"u", offer};
    archive::Pass(writer, command);
    std::deque<Offer> none;
    CommandReader reader(bytes, &none);
    Command read;
    archive::Pass(reader, read);
    EXPECT_EQ(reader.ok(), offer == nullptr);
    EXPECT_TRUE(reader.done() && std::get<Filter>(read).uid == "u");
  }
  OfferWriter writer;
  std::string first, second;
  writer.Write(*Named({"a"}), &first);
  writer.Write(*Named({"a"}), &second);
  Reader reader(second);
  EXPECT_EQ(OfferReader().Read(&reader), nullptr);
}

}  // namespace
}  // namespace muster
