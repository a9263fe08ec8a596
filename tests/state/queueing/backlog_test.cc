// muster_queueing: the backlog and its order (SPEC G-9, P-9), compared with a list that is scanned each time.
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

// The deliberately simple twin: it scans a list for every question.
class ListedBacklog {
 public:
  struct Entry {
    int32_t item;
    QueueKey key;
    std::string needs;
  };
  struct Kind {
    WakeCondition wait_for;
    bool awake = false;
    bool alone = false;  // it would be awake without its group
  };

  void Add(int32_t item, const QueueKey& key) { entries_.push_back({item, key, ""}); }
  void Block(int32_t item, const QueueKey& key, const std::string& needs, const WakeCondition& wait_for,
             const Reason& why) {
    const bool first = FirstOf(needs) == nullptr;
    entries_.push_back({item, key, needs});
    Kind& kind = kinds_[needs];
    if (first) kind.awake = kind.alone = false;
    if (kind.wait_for != wait_for) kind.alone = kind.awake;  // another group
    kind.wait_for = wait_for;
    why_[item] = why;
  }
  void Remove(int32_t item) {
    entries_.erase(
        std::remove_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.item == item; }),
        entries_.end());
  }
  void ClearReason(int32_t item) { why_.erase(item); }
  void Sleep(const std::string& needs) { kinds_[needs].awake = kinds_[needs].alone = false; }
  void SleepGroups(const std::function<bool(const WakeCondition&)>& lost) {
    for (auto& [needs, kind] : kinds_) {
      if (!kind.alone && kind.wait_for.in_group() && lost(kind.wait_for)) kind.awake = false;
    }
  }
  void Wake(bool alone, const std::function<bool(const std::string&, const WakeCondition&)>& helps) {
    for (auto& [needs, kind] : kinds_) {
      if (!helps(needs, kind.wait_for)) continue;
      kind.awake = true;
      kind.alone = kind.alone || alone;
    }
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
    const bool held_up = BlockingItem() != nullptr && first != nullptr && !first->key.partially_bound;
    return held_up ? nullptr : first;
  }
  [[nodiscard]] const std::string* BlockingItem() const {
    const Entry* first = nullptr;
    for (const Entry& entry : entries_) {
      if (entry.needs.empty() || !entry.key.partially_bound) continue;
      if (first == nullptr || entry.key < first->key) first = &entry;
    }
    return first == nullptr ? nullptr : &first->key.name;
  }
  [[nodiscard]] bool AnyBlocked() const {
    return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.needs.empty(); });
  }
  [[nodiscard]] Reason Why(int32_t item) const { return why_.count(item) > 0 ? why_.at(item) : Reason(); }
  [[nodiscard]] const WakeCondition& WaitsFor(const std::string& needs) const { return kinds_.at(needs).wait_for; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, Kind> kinds_;
  std::map<int32_t, Reason> why_;
};

constexpr int32_t kItems = 14;
const std::vector<std::string>& Needs() {
  static const auto* const kNeeds = new std::vector<std::string>{"a", "b", "c", "d", "e", "f"};
  return *kNeeds;
}

void ExpectAlike(const Backlog& backlog, const ListedBacklog& twin) {
  for (int32_t item = 0; item < kItems; ++item) {
    const ListedBacklog::Entry* entry = twin.Find(item);
    ASSERT_EQ(backlog.queued(item) != nullptr, entry != nullptr) << "item " << item;
    if (entry != nullptr) {
      ASSERT_EQ(*backlog.queued(item), entry->key) << "item " << item;
    }
    ASSERT_EQ(backlog.needs_of(item), entry == nullptr ? "" : entry->needs) << "item " << item;
    ASSERT_EQ(backlog.why(item), twin.Why(item)) << "item " << item;
  }
  for (const std::string& needs : Needs()) {
    const ListedBacklog::Entry* first = twin.FirstOf(needs);
    const WakeCondition* asleep = backlog.SleepingCondition(needs);
    ASSERT_EQ(asleep != nullptr, first != nullptr && !twin.Awake(needs)) << "needs " << needs;
    if (asleep != nullptr) {
      ASSERT_EQ(asleep->holds, twin.WaitsFor(needs).holds);
      ASSERT_EQ(asleep->classes, twin.WaitsFor(needs).classes);
    }
    if (first != nullptr) {
      ASSERT_EQ(backlog.why(*backlog.FirstOf(needs)), twin.Why(first->item)) << "needs " << needs;
    }
  }
  const ListedBacklog::Entry* next = twin.Next();
  ASSERT_EQ(backlog.Next(), next == nullptr ? std::nullopt : std::make_optional(next->item));
  const std::string* held_up = twin.BlockingItem();
  ASSERT_EQ(backlog.BlockingItem() == nullptr ? "" : *backlog.BlockingItem(), held_up == nullptr ? "" : *held_up);
  ASSERT_EQ(backlog.AnyBlocked(), twin.AnyBlocked());
}

TEST(BacklogTest, RandomOperations_AgreeWithScannedList) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto roll = [&](int sides) { return static_cast<int>(random() % static_cast<unsigned>(sides)); };
    Backlog backlog;
    ListedBacklog twin;
    for (int step = 0; step < 400; ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      const int32_t item = roll(kItems);
      const std::string& needs = Needs()[static_cast<size_t>(roll(6))];
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
          WakeCondition wait_for{{}, needs == "d"};
          wait_for.queue = needs == "e";
          if (roll(4) != 0) {
            wait_for.classes.push_back(roll(2));
            wait_for.at_least = roll(2);
          }
          const Reason why{ReasonCode::kNoRoom, absl::StrCat("step ", step)};
          backlog.Remove(item);
          twin.Remove(item);
          backlog.Block(item, key, needs, wait_for, why, /*lane=*/needs < "c" || needs == "f" ? 0 : 2);
          twin.Block(item, key, needs, wait_for, why);
          break;
        }
        case 4:
          backlog.Remove(item);
          twin.Remove(item);
          break;
        case 5: {
          const int cls = roll(2);
          const int most = roll(2);
          const bool forced = roll(4) == 0;
          const auto fits = [&](const WakeCondition& w) {
            return w.classes.empty() || (w.classes.front() == cls && w.at_least <= most);
          };
          backlog.Wake(forced, [&](const WakeCondition& w, int32_t first) {
            EXPECT_EQ(first >= 0, w.queue);
            return fits(w);
          });
          twin.Wake(forced, [&](const std::string&, const WakeCondition& w) { return w.in_group() && fits(w); });
          twin.Wake(true,
                    [&](const std::string&, const WakeCondition& w) { return !w.in_group() && !w.holds && fits(w); });
          break;
        }
        case 6:
          backlog.WakeSameNeeds(needs);
          twin.Wake(true, [&](const std::string& kind, const WakeCondition&) { return kind == needs; });
          break;
        case 7:
          if (const int kind = roll(3); kind == 0) {
            backlog.WakeWaitingForHolds();
            twin.Wake(true, [](const std::string&, const WakeCondition& w) { return w.holds; });
          } else if (kind == 1) {
            const int cls = roll(2);
            const auto lost = [&](const WakeCondition& w) { return !w.classes.empty() && w.classes.front() == cls; };
            backlog.SleepGroups(lost);
            twin.SleepGroups(lost);
          } else {
            backlog.ClearReason(item);
            twin.ClearReason(item);
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

// SPEC G-9: partially bound gangs first (K-13), then priority, fewer requeues, earlier creation, name. A total order.
TEST(QueueKeyTest, Order_MatchesG9) {
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

TEST(BacklogTest, ItemsOfSeveralLanes_AreInOneOrder) {
  Backlog backlog;
  backlog.Add(1, QueueKey{.priority = 1, .name = "d/a"}, 0);
  backlog.Add(2, QueueKey{.priority = 3, .name = "d/b"}, 1);
  backlog.Add(3, QueueKey{.priority = 2, .name = "d/c"}, 0);
  EXPECT_EQ(backlog.New(), (std::vector<int32_t>{2, 3, 1}));
  EXPECT_EQ(backlog.Next(), 2);
  EXPECT_EQ(backlog.NextIn(0), 3);
  EXPECT_EQ(backlog.Next([](int32_t a, int32_t b) { return a > b; }), 3) << "of the first of each lane";
  backlog.Remove(2);
  EXPECT_EQ(backlog.Next(), 3);
  EXPECT_EQ(backlog.NextIn(1), std::nullopt);
  backlog.Block(2, QueueKey{.priority = 3, .name = "d/b"}, "needs", {}, {}, 1);
  EXPECT_EQ(backlog.Next(), 3) << "it sleeps";
  backlog.WakeSameNeeds("needs");
  EXPECT_EQ(backlog.Next(), 2);
  EXPECT_EQ(backlog.New(), (std::vector<int32_t>{3, 1})) << "it was tried";
}

TEST(BacklogTest, Details_FollowTheReason) {
  Backlog backlog;
  const BlockDetails details{QueueBound{"team", QueueBound::Kind::kQuota, false, "cpu", 2, 4},
                             {MainObstacle::Kind::kStaleNodes, ""}};
  backlog.Block(1, Key(1, "a/1"), "big", {}, {ReasonCode::kQueueLimit, "one"}, 0, details);
  EXPECT_EQ(backlog.details(1), details);
  EXPECT_EQ(backlog.details(*backlog.FirstOf("big")), details);
  backlog.SetReason(1, {ReasonCode::kNoRoom, "two"}, {});
  EXPECT_EQ(backlog.details(1), BlockDetails());
  backlog.SetReason(1, {ReasonCode::kQueueLimit, "one"}, details);
  backlog.ClearReason(1);
  EXPECT_EQ(backlog.details(1), BlockDetails());
}

// SPEC P-9: new capacity wakes items that wait for capacity; ended holds wake items that wait for holds.
TEST(BacklogTest, Wake_OnlyMatchingCondition) {
  Backlog backlog;
  backlog.Block(1, Key(0, "a/1"), "room", {{4}, false}, {});
  backlog.Block(2, Key(0, "a/2"), "holds", {{}, true}, {});
  backlog.Block(3, Key(0, "a/3"), "other room", {{5}, false}, {});
  backlog.Block(4, Key(0, "a/4"), "same room", {{4}, false}, {}, /*lane=*/1);
  std::vector<std::vector<int32_t>> asked;
  backlog.Wake(/*forced=*/false, [&](const WakeCondition& wait_for, int32_t /*first*/) {
    asked.emplace_back(wait_for.classes.begin(), wait_for.classes.end());
    return false;
  });
  EXPECT_EQ(asked, (std::vector<std::vector<int32_t>>{{4}, {5}})) << "once for all that wait for the same room";
  EXPECT_NE(backlog.SleepingCondition("room"), nullptr) << "it would not have helped";
  backlog.Wake(/*forced=*/false, [](const WakeCondition&, int32_t) { return true; });
  EXPECT_EQ(backlog.SleepingCondition("room"), nullptr);
  EXPECT_NE(backlog.SleepingCondition("holds"), nullptr);
  backlog.WakeWaitingForHolds();
  EXPECT_EQ(backlog.SleepingCondition("holds"), nullptr);
}

TEST(BacklogDeathTest, AddTwice_Dies) {
  Backlog backlog;
  backlog.Add(1, Key(0, "a/1"));
  EXPECT_DEATH(backlog.Add(1, Key(0, "a/1")), "invariant");
  EXPECT_DEATH(backlog.Block(1, Key(0, "a/1"), "big", {}, {}), "invariant");
}

}  // namespace
}  // namespace muster
