// muster_base: names, names of enums, hashes, checked arithmetic, reasons and ById.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "state/base/archive.h"
#include "state/base/by_id.h"
#include "state/base/check.h"
#include "state/base/enum_names.h"
#include "state/base/hash.h"
#include "state/base/problem.h"
#include "state/base/reason.h"
#include "state/base/resources.h"
#include "state/base/shared.h"
#include "state/base/text.h"

namespace muster {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

// SPEC D-8: names are RFC 1123 subdomains.
TEST(NamesTest, IsSubdomain_AcceptsOnlyRfc1123Names) {
  const std::vector<std::string> good = {"a",   "z",   "0",      "9",       "a-b",  "a--b",
                                         "a.b", "0.9", "a.b.c1", "x-1.y-2", "abc9", std::string(253, 'a')};
  for (const std::string& name : good) EXPECT_TRUE(IsSubdomain(name)) << name;
  const std::vector<std::string> bad = {"",    "A",   "-",   "-a",   "a-",   ".",   ".a", "a.",       "a..b", "a_b",
                                        "a b", "a/b", "a:b", "`a",   "a`b",  "a{b", "{a", "a`",       "a{",   "/a",
                                        ":a",  "a/",  "a:",  "a-.b", "a.-b", "a@b", "aB", "a\xc3\xa4"};
  for (const std::string& name : bad) EXPECT_FALSE(IsSubdomain(name)) << name;
  EXPECT_FALSE(IsSubdomain(std::string(254, 'a')));
}

TEST(NamesTest, IsLabelKey_AcceptsNamesOfUpTo63Characters) {
  for (const std::string& key : {std::string(63, 'a'), "x.io/" + std::string(63, 'a'), std::string("a.b_C-9"),
                                 std::string("9"), std::string("A")}) {
    EXPECT_TRUE(IsLabelKey(key)) << key;
  }
  for (const std::string& key : {std::string(64, 'a'), "x.io/" + std::string(64, 'a'), std::string("-a"),
                                 std::string("a."), std::string("a b"), std::string("x.io/"), std::string("X.io/a")}) {
    EXPECT_FALSE(IsLabelKey(key)) << key;
  }
}

// The Unicode Standard, table 3-7: the first and the last of each range of well-formed sequences, and what is beside.
TEST(TextTest, Plain_KeepsWellFormedUtf8Only) {
  for (const char* text :
       {"a", "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xe1\x80\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf1\x80\x80\x80", "\xf3\xbf\xbf\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(Plain(text), text);
  }
  for (const std::string& text : std::vector<std::string>{
           "\x80\x80", "\xbf\x80", "\xc0\x80", "\xc1\xbf", "\xc2\xc0", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe1\x80\xc0",
           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf1\x80\x80", "\xe1\x80", "\xc2"}) {
    EXPECT_EQ(Plain(text), std::string(text.size(), '?')) << Quoted(text);
  }
  EXPECT_EQ(Plain("\xdf\x7e"), "?~");
  EXPECT_EQ(Plain("\xc2\x80\xc2\x9f"), "??") << "C1 controls";
  EXPECT_EQ(Plain("a\tb\nc\rd\x1f\x7f \x20~"), "a b c d??  ~");
}

TEST(TextTest, Beginning_NeverCutsCharacter) {
  const std::string text = "a\xc3\xa5z\xe2\x82\xac!";  // a, a-ring of two bytes, z, euro of three, !
  const std::vector<std::string> beginnings = {
      "", "a", "a", "a\xc3\xa5", "a\xc3\xa5z", "a\xc3\xa5z", "a\xc3\xa5z", "a\xc3\xa5z\xe2\x82\xac", text};
  for (size_t bytes = 0; bytes < beginnings.size(); ++bytes)
    EXPECT_EQ(Beginning(text, bytes), beginnings[bytes]) << bytes;
  EXPECT_EQ(Beginning(text, 1'000), text);
  EXPECT_EQ(Beginning("\x80\x80\x80", 2), "") << "no character begins here at all";
  EXPECT_EQ(Beginning("", 0), "");
}

TEST(TextTest, Quoted_EscapesControlsAndTruncates) {
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("a b"), "\"a b\"");
  EXPECT_EQ(Quoted("say \"x\"\n\x1b[2J"), "\"say \\\"x\\\"\\n\\x1b[2J\"") << "nothing that a terminal obeys";
  EXPECT_EQ(Quoted("gr\xc3\xb6\xc3\x9f"), "\"gr\xc3\xb6\xc3\x9f\"") << "people's letters stay";
  EXPECT_EQ(Quoted(std::string(64, 'x')), "\"" + std::string(64, 'x') + "\"");
  EXPECT_EQ(Quoted(std::string(65, 'x')), "\"" + std::string(64, 'x') + "...\"");
  EXPECT_EQ(Quoted(std::string(63, 'x') + "\xc3\xb6"), "\"" + std::string(63, 'x') + "...\"");
}

TEST(TextTest, WriteCount_OnlyOneIsSingular) {
  EXPECT_EQ(WriteCount(0, "member"), "0 members");
  EXPECT_EQ(WriteCount(1, "member"), "1 member");
  EXPECT_EQ(WriteCount(2, "member"), "2 members");
}

TEST(TextTest, WriteDuration_UsesSecondsFromOneSecond) {
  const std::vector<std::pair<int64_t, const char*>> cases = {
      {0, "0 ms"},        {999, "999 ms"},      {1'000, "1 s"},  {1'001, "1.001 s"},
      {1'998, "1.998 s"}, {59'999, "59.999 s"}, {60'001, "60 s"}};
  for (const auto& [ms, text] : cases) EXPECT_EQ(WriteDuration(ms), text);
}

TEST(CheckedTest, Overflow_ReturnsNullopt) {
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedAdd(kMin, -1), std::nullopt);
  EXPECT_EQ(CheckedAdd(-2, 5), 3);
  EXPECT_EQ(CheckedMul(kMax / 2, 2), kMax - 1);
  EXPECT_EQ(CheckedMul(kMax / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(CheckedMul(kMin, -1), std::nullopt);
  EXPECT_EQ(CheckedMul(-3, 5), -15);
}

TEST(EnumNamesTest, ValuesAndNames_MapBothWays) {
  enum class Color : uint8_t { kRed, kBlue };
  constexpr EnumNames<Color, 2> kColors{{"red", "blue"}};
  EXPECT_EQ(kColors.Of(Color::kBlue), "blue");
  EXPECT_EQ(kColors.Of(static_cast<Color>(2)), "");
  EXPECT_EQ(kColors.Find("red"), Color::kRed);
  EXPECT_EQ(kColors.Find("green"), std::nullopt);
}

template <typename... Values>
uint64_t HashValues(const Values&... values) {
  StateHasher hasher;
  (hasher.Add(values), ...);
  return hasher.value();
}

// Equal input has the same hash on every machine and in every build: these values never change.
TEST(StateHasherTest, EqualInput_HasFixedHash) {
  EXPECT_EQ(HashValues(), 0x6d7573746572U);
  EXPECT_EQ(HashValues(uint64_t{0}), UINT64_C(0x4bb626fc0867b61b));
  EXPECT_EQ(HashValues(uint64_t{1}), UINT64_C(0x4dc117743611fdf4));
  EXPECT_EQ(HashValues(int64_t{-1}), UINT64_C(0x4c6477241a18733e));
  EXPECT_EQ(HashValues(absl::string_view()), UINT64_C(0xf31d45da778ebdb0));
  EXPECT_EQ(HashValues(absl::string_view("node-a")), UINT64_C(0xc2137a2a132f9681));
  EXPECT_EQ(HashValues(absl::string_view("\xff")), UINT64_C(0xc0e65bef51ba7b69)) << "bytes are unsigned";
  EXPECT_EQ(HashValues(1, 2, absl::string_view("x")), UINT64_C(0xfc3f9dcadfe95362));
}

TEST(StateHasherTest, EqualNumbers_HashAlikeForEveryType) {
  EXPECT_EQ(HashValues(1), HashValues(uint64_t{1}));
  EXPECT_EQ(HashValues(int64_t{1}), HashValues(uint64_t{1}));
  EXPECT_EQ(HashValues(true), HashValues(uint64_t{1}));
  EXPECT_EQ(HashValues(false), HashValues(uint64_t{0}));
  EXPECT_EQ(HashValues(-1), HashValues(int64_t{-1})) << "a negative int is the same number as a negative int64";
}

TEST(StateHasherTest, DifferentInput_HashesDiffer) {
  const std::set<uint64_t> values = {HashValues(),          HashValues(0),         HashValues(0, 0),
                                     HashValues(1, 2),      HashValues(2, 1),      HashValues(""),
                                     HashValues("a", "bc"), HashValues("ab", "c"), HashValues("abc", ""),
                                     HashValues("abc"),     HashValues("acb")};
  EXPECT_EQ(values.size(), 11U);
}

struct One {
  int32_t a = 0;
};
struct Two {
  int32_t a = 0;
  int32_t b = 0;
  bool operator==(const Two&) const = default;
};
template <typename Number>
struct Parent {
  Number a = 0;
  static constexpr auto Recorded() { return std::tuple(&Parent::a); }
  bool operator==(const Parent&) const = default;
};
template <typename Number>
struct Child : Parent<Number> {
  using Base = Parent<Number>;
  int32_t b = 0;
  static constexpr auto Recorded() { return std::tuple(&Child::b); }
  bool operator==(const Child&) const = default;
};

// One value of each kind that is serialised.
struct Every {
  std::array<uint64_t, 3> numbers = {};
  std::pair<int64_t, bool> pair;
  WideSum wide = 0;
  std::vector<Two> parts;
  std::map<std::string, int32_t> map;
  std::set<int32_t> set;
  std::optional<int32_t> optional;
  std::variant<int32_t, std::string> variant;
  Shared<std::string> shared;
  Child<int32_t> child;
  std::string text;
  bool operator==(const Every&) const = default;
};

TEST(ArchiveTest, EveryKindOfValue_IsReadBackAndOtherBytesAreRefused) {
  constexpr WideSum kWide = (WideSum{kMin} << 32) - 3;
  const Every every = {{127, 128, UINT64_MAX}, {kMin, true}, kWide, {{1, -2}, {0, 64}},
                       {{"a", 1}, {"b", -1}},  {4, 2},       7,     "text",
                       std::string("shared"),  {{5}, 6},     "end"};
  const std::string bytes = archive::BytesOf(every);
  Every read = {{9}, {}, 1, {{}}, {{"c", 3}}, {9}, {}, 0, {}, {}, "x"};
  ASSERT_TRUE(archive::ReadBytes(bytes, &read));
  EXPECT_EQ(read, every);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(archive::ReadBytes(bytes.substr(0, size), &read));
  EXPECT_FALSE(archive::ReadBytes(bytes + '\0', &read));
  EXPECT_FALSE(archive::ReadBytes("\2", &read.variant)) << "there is no third alternative";
  ASSERT_TRUE(archive::ReadBytes(archive::BytesOf(Every()), &read));
  EXPECT_EQ(read, Every());
  ById<std::unique_ptr<int32_t>> owners;
  owners[70] = std::make_unique<int32_t>(-8);
  ById<std::unique_ptr<int32_t>> others;
  others[0] = std::make_unique<int32_t>(1);
  ASSERT_TRUE(archive::ReadBytes(archive::BytesOf(owners), &others));
  EXPECT_EQ(others.Of(0), nullptr);
  EXPECT_EQ(*others.Of(70), -8);
}

template <typename... Types>
std::set<uint64_t> LayoutsOf() {
  const auto layout = []<typename Type>(std::type_identity<Type>) {
    StateHasher hasher;
    archive::AddLayout<Type>(&hasher);
    return hasher.value();
  };
  return {layout(std::type_identity<Types>())...};
}

// S-3: a recording that was written with other types is refused.
TEST(ArchiveTest, DifferentTypes_HaveDifferentLayouts) {
  const std::set<uint64_t> layouts =
      LayoutsOf<int32_t, int64_t, uint32_t, std::string, int*, std::vector<std::string>, std::optional<std::string>,
                std::vector<int32_t>, std::unique_ptr<std::string>, std::unique_ptr<int32_t>,
                std::pair<int64_t, std::string>, std::pair<std::string, std::string>, std::pair<int64_t, int64_t>,
                std::array<std::string, 2>, std::array<std::string, 3>, std::variant<int32_t, std::string>,
                std::variant<std::string, int32_t>, std::monostate, Two, Parent<int32_t>, Parent<int64_t>,
                Child<int32_t>, Child<int64_t>>();
  EXPECT_EQ(layouts.size(), 23U);
  EXPECT_EQ((LayoutsOf<One, Parent<int32_t>, Shared<One>>().size()), 1U) << "they are serialised alike";
}

TEST(ReasonTest, Codes_HaveUniqueNames) {
  std::set<std::string> names;
  const int last = static_cast<int>(ReasonCode::kEvicted);
  for (int code = 0; code <= last; ++code) {
    const std::string name(ReasonName(static_cast<ReasonCode>(code)));
    EXPECT_FALSE(name.empty()) << code;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(ReasonName(ReasonCode::kNotEnoughPods), "NotEnoughPods");
  EXPECT_DEATH(static_cast<void>(ReasonName(static_cast<ReasonCode>(last + 1))), "kReasonNames.size");
}

TEST(ReasonTest, Equality_ComparesCodeAndText) {
  EXPECT_TRUE(Reason().none());
  const Reason reason{ReasonCode::kNoRoom, "full"};
  EXPECT_FALSE(reason.none());
  EXPECT_TRUE(reason == (Reason{ReasonCode::kNoRoom, "full"}));
  EXPECT_FALSE(reason == (Reason{ReasonCode::kNoRoom, "fuller"}));
  EXPECT_FALSE(reason == (Reason{ReasonCode::kQueued, "full"}));
}

TEST(ByIdTest, Values_AreStoredById) {
  ById<std::string> values_by_id;
  const auto expect = [&](const std::map<int32_t, std::string>& stored) {
    for (const int32_t id : {-1, 0, 2, 3, 4, 63, 64, 67, 99'999, 100'000}) {
      EXPECT_EQ(values_by_id.Of(id), stored.contains(id) ? stored.at(id) : "") << id;
    }
  };
  expect({});
  const std::string* third = &(values_by_id[3] = "three");
  values_by_id[0] = "nought";
  values_by_id[100'000] = "far";
  expect({{0, "nought"}, {3, "three"}, {100'000, "far"}});
  EXPECT_EQ(&values_by_id.Of(3), third) << "stored values never move";
  for (const int32_t id : {4, 0, 500, 100'000, 200'000}) values_by_id.Reset(id);
  expect({{3, "three"}});
}

TEST(CheckTest, BrokenInvariant_StopsProcess) {
  MUSTER_CHECK(1 + 1 == 2);
  EXPECT_DEATH(MUSTER_CHECK(1 + 1 == 3), "base_test.cc:[0-9]+: invariant broken: 1 \\+ 1 == 3");
}

TEST(SharedTest, Copies_ShareUntilFirstWrite) {
  Shared<std::string> a;
  EXPECT_EQ(*a, "");
  EXPECT_TRUE(a.IsSameCopy({})) << "nothing is stored for a default value";
  a.Mutable() = "x";
  Shared<std::string> b = a;
  EXPECT_TRUE(b.IsSameCopy(a));
  b.Mutable() += "y";
  EXPECT_EQ(*a, "x");
  EXPECT_EQ(*b, "xy");
  EXPECT_FALSE(a == b);
  a.Mutable() += "y";
  EXPECT_TRUE(a == b) << "equal by value";
  EXPECT_FALSE(a.IsSameCopy(b));
  EXPECT_EQ(b->size(), 2U);
}

// Errors carry what they are about; the message is only for people.
TEST(ProblemTest, InvalidArgument_KeepsProblemsAndWritesLines) {
  const std::vector<Problem> problems = {{Subject::kField, "min_member", "0; expected 1 or more"},
                                         {Subject::kQueue, "", ""},
                                         {Subject::kPod, "u\n1", "pod a:\nits uid is wrong"},
                                         {Subject::kRequest, "", "nothing fits"}};
  const absl::Status status = InvalidArgument(problems);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "min_member: 0; expected 1 or more\n\npod a:\nits uid is wrong\nnothing fits");
  EXPECT_EQ(ProblemsOf(status), problems);
}

TEST(ProblemTest, PlainStatus_HasNoProblems) {
  EXPECT_TRUE(ProblemsOf(absl::OkStatus()).empty());
  EXPECT_TRUE(ProblemsOf(absl::InvalidArgumentError("min_member: 0")).empty());
}

}  // namespace
}  // namespace muster
