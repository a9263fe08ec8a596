#include "service/engine/shared_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

struct Named {
  std::string name;
  int value = 0;
};
struct NameOf {
  absl::string_view operator()(const Named& named) const { return named.name; }
};
using Map = SharedMap<Named, NameOf>;
using Twin = std::map<std::string, int>;

Twin Contents(const Map& map) {
  Twin out;
  std::string last;
  map.ForEach([&](const Map::Entry& entry) {
    EXPECT_LT(last, entry->name) << "in order of keys";
    last = entry->name;
    out.emplace(entry->name, entry->value);
  });
  EXPECT_EQ(out.size(), map.size());
  return out;
}

// The contents as readers iterate over them.
Twin Walked(const Map& map) {
  Twin out;
  std::string at;
  for (auto entry = map.After(at); entry != nullptr; entry = map.After(at)) {
    at = entry->name;
    out.emplace(at, entry->value);
  }
  return out;
}

TEST(SharedMap, RandomEdits_CopiesStayUnchanged) {
  for (int seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    const int keys = seed % 3 == 0 ? 40 : 3000;
    Map map;
    Twin twin;
    std::vector<std::pair<Map, Twin>> copies;
    for (int edit = 0; edit < 200; ++edit) {
      Map::Editor editor(map);
      const bool shrinks = edit > 120;
      for (int change = 0; change < static_cast<int>(random() % 60); ++change) {
        const std::string name = absl::StrCat("key-", random() % static_cast<unsigned>(keys));
        const auto before = twin.find(name);
        const bool removed = random() % 10 < (shrinks ? 8 : 3);
        const int value = edit * 100 + change;
        const Map::Entry old =
            removed ? editor.Remove(name) : editor.Set(std::make_shared<const Named>(Named{name, value}));
        ASSERT_EQ(old == nullptr, before == twin.end()) << name;
        if (old != nullptr) {
          ASSERT_EQ(old->value, before->second) << name;
        }
        if (removed) {
          twin.erase(name);
        } else {
          twin[name] = value;
        }
      }
      map = editor.Done();
      if (edit % 20 == 0) copies.emplace_back(map, twin);
      const std::string probe = absl::StrCat("key-", random() % static_cast<unsigned>(keys));
      const auto found = twin.find(probe);
      ASSERT_EQ(map.Find(probe) == nullptr, found == twin.end()) << probe;
      const auto behind = twin.upper_bound(probe);
      const auto after = map.After(probe);
      ASSERT_EQ(after == nullptr, behind == twin.end()) << probe;
      if (after != nullptr) {
        ASSERT_EQ(after->name, behind->first);
      }
    }
    copies.emplace_back(map, twin);
    for (const auto& [copy, expected] : copies) {
      ASSERT_EQ(Contents(copy), expected) << "seed " << seed;
      ASSERT_EQ(Walked(copy), expected) << "seed " << seed;
    }
  }
}

TEST(SharedMap, EmptiedMap_CanBeFilledAgain) {
  Map map;
  EXPECT_EQ(map.Find("a"), nullptr);
  EXPECT_EQ(map.After(""), nullptr);
  for (const bool in_order : {true, false}) {
    Map::Editor fill(map);
    for (int i = 0; i < 5000; ++i) {
      fill.Set(std::make_shared<const Named>(Named{absl::StrCat(10'000 + (in_order ? i : 5000 - i)), i}));
    }
    map = fill.Done();
    EXPECT_EQ(map.size(), 5000U);
    Map::Editor empty(map);
    empty.Remove("unknown");
    Contents(map);
    for (const auto& [name, value] : Contents(map)) empty.Remove(name);
    const Map nothing = empty.Done();
    EXPECT_EQ(nothing.size(), 0U);
    EXPECT_EQ(nothing.After(""), nullptr);
    EXPECT_EQ(map.size(), 5000U) << "what it was made from stays";
    map = nothing;
  }
}

// Removed values are freed: a map that lives long does not retain them.
TEST(SharedMap, RemovedValues_AreFreed) {
  std::vector<std::weak_ptr<const Named>> values;
  Map map;
  for (int round = 0; round < 200; ++round) {
    Map::Editor edit(map);
    for (int i = 0; i < 100; ++i) {
      auto value = std::make_shared<const Named>(Named{absl::StrCat("key-", round, "-", i), i});
      values.push_back(value);
      edit.Set(std::move(value));
      if (round >= 5) edit.Remove(absl::StrCat("key-", round - 5, "-", i));
    }
    map = edit.Done();
  }
  EXPECT_EQ(map.size(), 500U);
  const auto alive = std::count_if(values.begin(), values.end(), [](const auto& value) { return !value.expired(); });
  EXPECT_LE(alive, 500 + 50) << "beside the map's own, a few that stand beside an inner node's child";
}

// Two maps share unchanged parts: copying adds one reference.
TEST(SharedMap, Edit_CopiesOnePath) {
  std::vector<Map::Entry> values;
  Map map;
  Map::Editor fill(map);
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(std::make_shared<const Named>(Named{absl::StrCat("key-", 100'000 + i), i}));
    fill.Set(values.back());
  }
  map = fill.Done();
  std::vector<long> held;
  for (const Map::Entry& value : values) held.push_back(value.use_count());
  Map::Editor edit(map);
  EXPECT_EQ(edit.Set(std::make_shared<const Named>(Named{"key-150000", -1})), values[50'000]);
  const Map changed = edit.Done();
  int copied = 0;
  for (size_t i = 0; i < values.size(); ++i) copied += values[i].use_count() > held[i] ? 1 : 0;
  EXPECT_GT(copied, 0);
  EXPECT_LE(copied, 33 * 4) << "a leaf and the nodes above it, of 100,000";
  EXPECT_EQ(map.Find("key-150000")->value, 50'000);
  EXPECT_EQ(changed.Find("key-150000")->value, -1);
}

}  // namespace
}  // namespace muster
