// muster_gangs: announced facts that were refused.
#include "state/gangs/refused_facts.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

TEST(RefusedFactsTest, NodeRefusal_LatestUntilCleared) {
  RefusedFacts refused;
  EXPECT_EQ(refused.NodeRefusalReason("n"), "");
  refused.NoteNode("n", "one");
  refused.NoteNode("n", "two");
  EXPECT_EQ(refused.NodeRefusalReason("n"), "two");
  EXPECT_EQ(refused.TakeChanged(), (Names{"n", "n"}));
  refused.NoteNode("n", "two");
  EXPECT_EQ(refused.TakeChanged(), Names{}) << "nothing new for readers";
  EXPECT_EQ(refused.counts(), (FactCounts{3, 0, 0}));
  refused.ClearNode("n");
  refused.ClearNode("m");
  EXPECT_EQ(refused.NodeRefusalReason("n"), "");
  EXPECT_EQ(refused.TakeChanged(), Names{"n"});
  EXPECT_EQ(refused.counts(), (FactCounts{3, 0, 0})) << "since the start";
}

TEST(RefusedFactsTest, Refusals_CountedByKind) {
  RefusedFacts refused;
  refused.Note(FactKind::kPod);
  refused.Note(FactKind::kGang);
  refused.Note(FactKind::kGang);
  refused.NoteNode("", "it has no name");
  EXPECT_EQ(refused.counts(), (FactCounts{1, 1, 2}));
  EXPECT_TRUE(refused.nodes().empty());
  EXPECT_EQ(ToString(FactKind::kNode), "node");
  EXPECT_EQ(ToString(FactKind::kPod), "pod");
  EXPECT_EQ(ToString(FactKind::kGang), "gang");
}

TEST(RefusedFactsTest, FullTable_DropsOldest) {
  RefusedFacts refused;
  for (int i = 0; i < 1'024; ++i) refused.NoteNode(absl::StrCat("n", i), "x");
  refused.NoteNode("n0", "still");
  EXPECT_EQ(refused.NodeRefusalReason("n0"), "still");
  EXPECT_EQ(refused.TakeChanged().size(), 1'025U);
  refused.NoteNode("one-more", "x");
  EXPECT_EQ(refused.nodes().size(), 1'024U);
  EXPECT_EQ(refused.NodeRefusalReason("n0"), "") << "the first to be refused";
  EXPECT_EQ(refused.NodeRefusalReason("n1"), "x");
  EXPECT_EQ(refused.TakeChanged(), (Names{"one-more", "n0"}));
  refused.ClearNode("n1");
  refused.ClearNode("not refused");
  refused.NoteNode("again", "x");
  EXPECT_EQ(refused.NodeRefusalReason("n2"), "x") << "there was room";
  refused.NoteNode("full again", "x");
  EXPECT_EQ(refused.NodeRefusalReason("n2"), "");
  refused.ClearNodes();
  EXPECT_TRUE(refused.nodes().empty());
  EXPECT_EQ(refused.TakeChanged().size(), 4U + 1'024U);
  for (int i = 0; i < 1'025; ++i) refused.NoteNode(absl::StrCat("m", i), "x");
  EXPECT_EQ(refused.nodes().size(), 1'024U);
  EXPECT_EQ(refused.NodeRefusalReason("m0"), "");
  refused.ClearNodes();
  const std::string huge(100'000, 'x');
  refused.NoteNode(huge, huge);
  EXPECT_EQ(refused.nodes().begin()->first.size(), 253U);
  EXPECT_EQ(refused.NodeRefusalReason(huge).size(), 512U);
  refused.ClearNode(huge);
  EXPECT_TRUE(refused.nodes().empty());
}

}  // namespace
}  // namespace muster
