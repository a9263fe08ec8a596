// What the core refuses of announced facts is counted, shown and told, never dropped in silence: from the informer's
// announcement to what musterctl prints (SPEC S-4, S-6).
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/musterctl/output.h"
#include "service/engine/refused_log.h"
#include "tests/contract/rpc_fixture.h"

namespace muster {
namespace {

NodeDescription NodeOf(const std::string& name, int64_t cpu) {
  NodeDescription node;
  node.name = name;
  node.allocatable = {{"cpu", cpu}};
  return node;
}

class RefusedFactsShown : public Rpc {
 protected:
  // Announces as an informer does, which gets no answer.
  void Announce(Command command) {
    ASSERT_TRUE(engine_.Announce(std::move(command)).ok());
    ASSERT_TRUE(engine_.Query([](const Machine&) {}).ok());
  }
  std::string GetNodes() {
    const auto list = client_->ListNodes();
    if (!list.ok()) return list.status().ToString();
    testing::internal::CaptureStdout();
    PrintNodes(*list);
    return testing::internal::GetCapturedStdout();
  }
  [[nodiscard]] FactCounts Counts() const { return engine_.view()->refused; }
};

TEST_F(RefusedFactsShown, ANodeThatWasKnownKeepsWhatStoodAndSaysSo) {
  EXPECT_FALSE(absl::StrContains(GetNodes(), "Warning"));
  Announce(UpsertNode{NodeOf("n", kMaxAmount + 1)});
  EXPECT_EQ(Counts(), (FactCounts{1, 0, 0}));
  const auto node = engine_.view()->nodes.Find("n");
  ASSERT_NE(node, nullptr);
  EXPECT_TRUE(node->present);
  EXPECT_EQ(node->allocatable.at("cpu"), 2'000);
  EXPECT_TRUE(absl::StrContains(node->refused, "resource cpu")) << node->refused;
  std::string printed = GetNodes();
  EXPECT_TRUE(absl::StrContains(printed, "Warning: what was announced of node n last is refused: resource cpu"))
      << printed;
  EXPECT_TRUE(absl::StrContains(printed, "n      yes")) << printed;
  Announce(UpsertNode{NodeOf("n", 3'000)});
  EXPECT_EQ(Counts(), (FactCounts{1, 0, 0}));
  printed = GetNodes();
  EXPECT_FALSE(absl::StrContains(printed, "Warning")) << printed;
}

TEST_F(RefusedFactsShown, ANodeThatWasNeverTakenIsShownToo) {
  Announce(UpsertNode{NodeOf("bad", -1)});
  Announce(UnreadableFact{FactKind::kNode, "worse", "Node.status.allocatable.cpu: \"1e99\" is not a quantity"});
  EXPECT_EQ(Counts(), (FactCounts{2, 0, 0}));
  ASSERT_NE(engine_.view()->nodes.Find("worse"), nullptr);
  EXPECT_FALSE(engine_.view()->nodes.Find("worse")->present);
  std::string printed = GetNodes();
  for (const char* text : {"bad     no", "worse   no", "(refused)", "node bad last is refused: resource cpu: -1",
                           "node worse last is refused: Node.status.allocatable.cpu: \"1e99\""}) {
    EXPECT_TRUE(absl::StrContains(printed, text)) << text << " in\n" << printed;
  }
  Announce(RemoveNode{"bad"});
  Announce(UpsertNode{NodeOf("worse", 1'000)});
  printed = GetNodes();
  EXPECT_FALSE(absl::StrContains(printed, "bad")) << printed;
  EXPECT_FALSE(absl::StrContains(printed, "refused")) << printed;
}

TEST_F(RefusedFactsShown, PodsAndGangsAreCounted) {
  PodDescription another;
  another.uid = "u-a";
  another.name_space = "d";
  another.name = "not-a";
  Announce(UpsertPod{another});
  Announce(UnreadableFact{FactKind::kPod, "d/p", "Pod.metadata.uid: is missing"});
  Announce(UnreadableFact{FactKind::kGang, "d/g", "PodGroup.spec: is text"});
  EXPECT_EQ(Counts(), (FactCounts{0, 2, 1}));
}

// Whoever announces a thing every few seconds does not fill the log.
TEST(RefusedLog, OneLineForEachObjectAndReason) {
  RefusedLog log;
  const absl::Status broken = absl::InvalidArgumentError("cpu: -1 is out of range");
  EXPECT_TRUE(log.Write(UpsertNode{NodeOf("a", -1)}, broken));
  EXPECT_FALSE(log.Write(UpsertNode{NodeOf("a", -1)}, broken));
  EXPECT_TRUE(log.Write(UpsertNode{NodeOf("b", -1)}, broken));
  EXPECT_TRUE(log.Write(UpsertNode{NodeOf("a", -1)}, absl::InvalidArgumentError("cpu: -2 is out of range")));
  EXPECT_TRUE(log.Write(UnreadableFact{FactKind::kGang, "d/g", "x"}, absl::InvalidArgumentError("x")));
  EXPECT_FALSE(log.Write(Tick{}, broken)) << "no fact";
  for (int i = 0; i < 5'000; ++i) log.Write(UpsertNode{NodeOf(absl::StrCat("c", i), -1)}, broken);
  EXPECT_TRUE(log.Write(UpsertNode{NodeOf("a", -1)}, broken)) << "what is remembered is bounded";
}

}  // namespace
}  // namespace muster
