// The room muster_backlog: what waits for a place, in order (SPEC G-9, P-9), against a list that is scanned each time.
#include "state/queueing/backlog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// The deliberately simple twin: everything is looked up by scanning.
class ListedBacklog {
 public:
  struct Entry {
    int32_t item;
    QueueKey key;
    std::string needs;
  };
  struct Kind {
    WaitFor wait_for;
    bool awake = false;
  };

  void Add(int32_t item, const QueueKey& key) { entries_.push_back({item, key, ""}); }
  void Block(int32_t item, const QueueKey& key, const std::string& needs, const WaitFor& wait_for, const Reason& why) {
    const bool first = FirstOf(needs) == nullptr;
    entries_.push_back({item, key, needs});
    kinds_[needs].wait_for = wait_for;
    if (first) kinds_[needs].awake = false;
    why_[item] = why;
  }
  void Remove(int32_t item) {
    entries_.erase(
        std::remove_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.item == item; }),
        entries_.end());
  }
  void ForgetReason(int32_t item) { why_.erase(item); }
  void Sleep(const std::string& needs) { kinds_[needs].awake = false; }
  void Wake(const std::function<bool(const std::string&, const WaitFor&)>& helps) {
    for (auto& [needs, kind] : kinds_) kind.awake = kind.awake || helps(needs, kind.wait_for);
  }

  [[nodiscard]] const Entry* Find(int32_t item) const {
    for (const Entry& entry : entries_) {
      if (entry.item == item) return &entry;
    }
    return nullptr;
  }
  [[nodiscard]] const Entry* FirstOf(const std::string& needs) const {
    const Entry* first = nullptr;
    for (const Entry& entry : entries_) {
      if (entry.needs == needs && (first == nullptr || entry.key < first->key)) first = &entry;
    }
    return first;
  }
  [[nodiscard]] bool Awake(const std::string& needs) const {
    return FirstOf(needs) != nullptr && kinds_.at(needs).awake;
  }
  [[nodiscard]] const Entry* Next() const {
    const Entry* first = nullptr;
    for (const Entry& entry : entries_) {
      if (!entry.needs.empty() && !Awake(entry.needs)) continue;
      if (first == nullptr || entry.key < first->key) first = &entry;
    }
    const bool held_up = HeldUpBy() != nullptr && first != nullptr && !first->key.half_bound;
    return held_up ? nullptr : first;
  }
  [[nodiscard]] const std::string* HeldUpBy() const {
    const Entry* first = nullptr;
    for (const Entry& entry : entries_) {
      if (entry.needs.empty() || !entry.key.half_bound) continue;
      if (first == nullptr || entry.key < first->key) first = &entry;
    }
    return first == nullptr ? nullptr : &first->key.name;
  }
  [[nodiscard]] bool AnyBlocked() const {
    return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.needs.empty(); });
  }
  [[nodiscard]] Reason Why(int32_t item) const { return why_.count(item) > 0 ? why_.at(item) : Reason(); }
  [[nodiscard]] const WaitFor& WaitsFor(const std::string& needs) const { return kinds_.at(needs).wait_for; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, Kind> kinds_;
  std::map<int32_t, Reason> why_;
};

constexpr int32_t kItems = 14;
const std::vector<std::string>& Needs() {
  static const auto* const kNeeds = new std::vector<std::string>{"a", "b", "c", "d"};
  return *kNeeds;
}

void ExpectAlike(const Backlog& backlog, const ListedBacklog& twin) {
  for (int32_t item = 0; item < kItems; ++item) {
    const ListedBacklog::Entry* entry = twin.Find(item);
    ASSERT_EQ(backlog.queued(item) != nullptr, entry != nullptr) << "item " << item;
    if (entry != nullptr) {
      ASSERT_EQ(*backlog.queued(item), entry->key) << "item " << item;
    }
    ASSERT_EQ(backlog.blocked_by(item), entry == nullptr ? "" : entry->needs) << "item " << item;
    ASSERT_EQ(backlog.why(item), twin.Why(item)) << "item " << item;
  }
  for (const std::string& needs : Needs()) {
    const ListedBacklog::Entry* first = twin.FirstOf(needs);
    const WaitFor* asleep = backlog.Asleep(needs);
    ASSERT_EQ(asleep != nullptr, first != nullptr && !twin.Awake(needs)) << "needs " << needs;
    if (asleep != nullptr) {
      ASSERT_EQ(asleep->holds, twin.WaitsFor(needs).holds);
      ASSERT_EQ(asleep->classes, twin.WaitsFor(needs).classes);
    }
    if (first != nullptr) {
      ASSERT_EQ(backlog.WhyAsleep(needs), twin.Why(first->item)) << "needs " << needs;
    }
  }
  const ListedBacklog::Entry* next = twin.Next();
  ASSERT_EQ(backlog.Next(), next == nullptr ? std::nullopt : std::make_optional(next->item));
  ASSERT_EQ(backlog.Due(), next != nullptr);
  const std::string* held_up = twin.HeldUpBy();
  ASSERT_EQ(backlog.HeldUpBy() == nullptr ? "" : *backlog.HeldUpBy(), held_up == nullptr ? "" : *held_up);
  ASSERT_EQ(backlog.AnyBlocked(), twin.AnyBlocked());
}

TEST(BacklogRoom, AgreesWithAListThatIsScanned) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto roll = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
    Backlog backlog;
    ListedBacklog twin;
    for (int step = 0; step < 400; ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      const int32_t item = roll(kItems);
      const std::string& needs = Needs()[static_cast<size_t>(roll(4))];
      const QueueKey key{roll(8) == 0, roll(3), roll(2), roll(3), absl::StrCat("n/", item)};
      switch (roll(9)) {
        case 0:
        case 1:
          backlog.Remove(item);
          twin.Remove(item);
          backlog.Add(item, key, /*lane=*/roll(3));
          twin.Add(item, key);
          break;
        case 2:
        case 3: {
          const WaitFor wait_for{{roll(4), roll(4)}, needs == "d"};  // of one need all wait for the same
          const Reason why{ReasonCode::kNoRoom, absl::StrCat("step ", step)};
          backlog.Remove(item);
          twin.Remove(item);
          backlog.Block(item, key, needs, wait_for, why, /*lane=*/needs < "c" ? 0 : 2);
          twin.Block(item, key, needs, wait_for, why);
          break;
        }
        case 4:
          backlog.Remove(item);
          twin.Remove(item);
          break;
        case 5: {
          const int cls = roll(4);
          const auto waits_for = [&](const WaitFor& wait_for) {
            return std::count(wait_for.classes.begin(), wait_for.classes.end(), cls) > 0;
          };
          backlog.Wake(/*anew=*/false, [&](const WaitFor& w, int32_t /*first*/) { return waits_for(w); });
          twin.Wake([&](const std::string&, const WaitFor& w) { return !w.holds && waits_for(w); });
          break;
        }
        case 6:
          backlog.WakeAlike(needs);
          twin.Wake([&](const std::string& kind, const WaitFor&) { return kind == needs; });
          break;
        case 7:
          if (roll(2) == 0) {
            backlog.WakeHolds();
            twin.Wake([](const std::string&, const WaitFor& w) { return w.holds; });
          } else {
            backlog.ForgetReason(item);
            twin.ForgetReason(item);
          }
          break;
        default:
          backlog.Sleep(needs);
          twin.Sleep(needs);
      }
      ASSERT_NO_FATAL_FAILURE(ExpectAlike(backlog, twin));
    }
  }
}

QueueKey Key(int32_t priority, const std::string& name) { return {false, priority, 0, 0, name}; }

// SPEC G-9: half-bound gangs first (K-13), then priority, fewer requeues, earlier creation, name. A total order.
TEST(QueueKeyRoom, IsG9) {
  const std::vector<QueueKey> order = {
      {true, 0, 5, 99, "z/z"},  {false, 9, 3, 99, "z/z"}, {false, 1, 0, 40, "z/a"}, {false, 1, 0, 50, "a/b"},
      {false, 1, 0, 50, "a/c"}, {false, 1, 1, 1, "a/a"},  {false, -1, 0, 0, "a/a"},
  };
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < order.size(); ++j) {
      EXPECT_EQ(order[i] < order[j], i < j) << i << " " << j;
      EXPECT_EQ(order[i] == order[j], i == j) << i << " " << j;
    }
  }
}

TEST(BacklogRoom, NothingToDo) {
  Backlog backlog;
  EXPECT_EQ(backlog.Next(), std::nullopt);
  EXPECT_FALSE(backlog.Due());
  EXPECT_FALSE(backlog.AnyBlocked());
  EXPECT_EQ(backlog.queued(0), nullptr);
  EXPECT_EQ(backlog.Asleep("x"), nullptr);
  backlog.Remove(7);
  backlog.ForgetReason(7);
  backlog.Sleep("x");
  backlog.WakeAlike("x");
  backlog.WakeHolds();
  EXPECT_FALSE(backlog.Due()) << "nobody is there to be woken";
}

// SPEC P-9: an identical gang is not tried either; of those that wait together only the first is.
TEST(BacklogRoom, ThoseThatFailedAlikeAreTriedOneByOne) {
  Backlog backlog;
  backlog.Block(1, Key(1, "a/1"), "big", {{4}, false}, {ReasonCode::kNoRoom, "one"});
  backlog.Block(2, Key(2, "a/2"), "big", {{4}, false}, {ReasonCode::kNoRoom, "two"});
  backlog.Add(3, Key(0, "a/3"));
  EXPECT_EQ(backlog.Next(), 3) << "who is new goes before whoever sleeps";
  EXPECT_EQ(backlog.WhyAsleep("big").text, "two") << "the first in order, not the first that came";
  backlog.WakeAlike("big");
  EXPECT_EQ(backlog.Next(), 2);
  backlog.Sleep("big");
  backlog.Remove(2);
  EXPECT_EQ(backlog.Next(), 3);
  backlog.WakeAlike("big");
  EXPECT_EQ(backlog.Next(), 1);
  backlog.Remove(1);
  EXPECT_FALSE(backlog.AnyBlocked());
  backlog.Block(1, Key(1, "a/1"), "big", {{4}, false}, {});
  EXPECT_NE(backlog.Asleep("big"), nullptr) << "those that were woken are gone; who comes now sleeps";
  EXPECT_EQ(backlog.Next(), 3);
}

// SPEC P-9: capacity that came wakes whoever waits for capacity; held binds that ended wake whoever waits for those.
TEST(BacklogRoom, OnlyWhoWaitsForIt) {
  Backlog backlog;
  backlog.Block(1, Key(0, "a/1"), "room", {{4}, false}, {});
  backlog.Block(2, Key(0, "a/2"), "holds", {{}, true}, {});
  backlog.Block(3, Key(0, "a/3"), "woken", {{5}, false}, {});
  backlog.WakeAlike("woken");
  std::vector<std::vector<int32_t>> asked;
  backlog.Wake(/*anew=*/false, [&](const WaitFor& wait_for, int32_t /*first*/) {
    asked.emplace_back(wait_for.classes.begin(), wait_for.classes.end());
    return false;
  });
  EXPECT_EQ(asked, (std::vector<std::vector<int32_t>>{{4}})) << "neither holds nor who is awake is asked about";
  EXPECT_NE(backlog.Asleep("room"), nullptr) << "it would not have helped";
  backlog.Wake(/*anew=*/false, [](const WaitFor&, int32_t) { return true; });
  EXPECT_EQ(backlog.Asleep("room"), nullptr);
  EXPECT_NE(backlog.Asleep("holds"), nullptr);
  backlog.WakeHolds();
  EXPECT_EQ(backlog.Asleep("holds"), nullptr);
}

// The reason outlives waking and leaving the queue, until it is forgotten.
TEST(BacklogRoom, TheReasonStaysUntilItIsForgotten) {
  Backlog backlog;
  const Reason why{ReasonCode::kNoRoom, "full"};
  backlog.Block(1, Key(0, "a/1"), "big", {}, why);
  backlog.WakeAlike("big");
  EXPECT_EQ(backlog.why(1), why);
  backlog.Remove(1);
  EXPECT_EQ(backlog.why(1), why);
  EXPECT_EQ(backlog.blocked_by(1), "");
  backlog.Add(1, Key(0, "a/1"));
  EXPECT_EQ(backlog.why(1), why);
  backlog.ForgetReason(1);
  EXPECT_TRUE(backlog.why(1).none());
  EXPECT_NE(backlog.queued(1), nullptr);
}

TEST(BacklogRoomDeath, NobodyIsQueuedTwice) {
  Backlog backlog;
  backlog.Add(1, Key(0, "a/1"));
  EXPECT_DEATH(backlog.Add(1, Key(0, "a/1")), "invariant");
  EXPECT_DEATH(backlog.Block(1, Key(0, "a/1"), "big", {}, {}), "invariant");
}

}  // namespace
}  // namespace muster
