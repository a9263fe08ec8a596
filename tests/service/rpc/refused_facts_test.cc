// Refused facts are counted, shown and reported, never dropped silently: from the informer's announcement to the output
// of musterctl (SPEC S-4, S-6).
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "clients/musterctl/output.h"
#include "service/engine/refused_log.h"
#include "tests/service/rpc/rpc_fixture.h"

namespace muster {
namespace {

int64_t AmountOf(const NodeView::NamedAmounts& amounts, const char* resource) {
  return ResourceList(amounts.begin(), amounts.end()).at(resource);
}

class RefusedFactsShown : public Rpc {
 protected:
  // Announces as an informer does, which gets no reply.
  void Announce(Command command) {
    ASSERT_TRUE(engine_.Announce(std::move(command)).ok());
    ASSERT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
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

TEST_F(RefusedFactsShown, RefusedUpdate_RetainsKnownNodeWithWarning) {
  EXPECT_FALSE(absl::StrContains(GetNodes(), "Warning"));
  Announce(UpsertNode{NodeWith("n", {{"cpu", kMaxAmount + 1}})});
  EXPECT_EQ(Counts(), (FactCounts{1, 0, 0}));
  const auto node = engine_.view()->nodes.Find("n");
  ASSERT_NE(node, nullptr);
  EXPECT_TRUE(node->present);
  EXPECT_EQ(AmountOf(node->allocatable, "cpu"), 2'000);
  EXPECT_TRUE(absl::StrContains(node->refused, "resource cpu")) << node->refused;
  std::string printed = GetNodes();
  EXPECT_TRUE(absl::StrContains(printed, "Warning: the last announcement of node n was refused: resource cpu"))
      << printed;
  EXPECT_TRUE(absl::StrContains(printed, "n      yes")) << printed;
  Announce(UpsertNode{NodeWith("n", {{"cpu", 3'000}})});
  EXPECT_EQ(Counts(), (FactCounts{1, 0, 0}));
  printed = GetNodes();
  EXPECT_FALSE(absl::StrContains(printed, "Warning")) << printed;
}

TEST_F(RefusedFactsShown, RefusedNewNode_IsShown) {
  Announce(UpsertNode{NodeWith("bad", {{"cpu", -1}})});
  Announce(UnreadableFact{FactKind::kNode, "worse", "Node.status.allocatable.cpu: \"1e99\" is not a quantity"});
  EXPECT_EQ(Counts(), (FactCounts{2, 0, 0}));
  ASSERT_NE(engine_.view()->nodes.Find("worse"), nullptr);
  EXPECT_FALSE(engine_.view()->nodes.Find("worse")->present);
  std::string printed = GetNodes();
  for (const char* text : {"bad     no", "worse   no", "(refused)", "node bad was refused: resource cpu: -1",
                           "node worse was refused: Node.status.allocatable.cpu: \"1e99\""}) {
    EXPECT_TRUE(absl::StrContains(printed, text)) << text << " in\n" << printed;
  }
  Announce(RemoveNode{"bad"});
  Announce(UpsertNode{NodeWith("worse", {{"cpu", 1'000}})});
  printed = GetNodes();
  EXPECT_FALSE(absl::StrContains(printed, "bad")) << printed;
  EXPECT_FALSE(absl::StrContains(printed, "refused")) << printed;
}

TEST_F(RefusedFactsShown, RefusedPodsAndGangs_AreCounted) {
  PodDescription another;
  another.uid = "u-a";
  another.name_space = "d";
  another.name = "not-a";
  Announce(UpsertPod{another});
  Announce(UnreadableFact{FactKind::kPod, "d/p", "Pod.metadata.uid: is missing"});
  Announce(UnreadableFact{FactKind::kGang, "d/g", "PodGroup.spec: is text"});
  EXPECT_EQ(Counts(), (FactCounts{0, 2, 1}));
}

// S-6: an invalid gRPC announcement is refused as a whole, and the error names the field.
TEST_F(RefusedFactsShown, InvalidRpcFacts_NameField) {
  using Edit = std::function<void(v1::UpdateFactsRequest*)>;
  const auto node = [](const std::function<void(v1::NodeFacts*)>& edit) {
    return [edit](v1::UpdateFactsRequest* update) {
      update->add_nodes()->set_name("m");
      edit(update->mutable_nodes(0));
    };
  };
  const auto taint = [&](const std::string& key) {
    return node([key](v1::NodeFacts* facts) {
      facts->add_taints()->set_key(key);
      facts->mutable_taints(0)->set_effect(v1::TAINT_EFFECT_NO_SCHEDULE);
    });
  };
  const auto pods = [](const std::vector<std::pair<std::string, std::string>>& named) {
    return [named](v1::UpdateFactsRequest* update) {
      for (const auto& [uid, name] : named) {
        v1::PodFacts* pod = update->add_pods();
        pod->set_uid(uid);
        pod->set_name(name);
      }
    };
  };
  const std::vector<std::pair<std::string, Edit>> wrong = {
      {"nodes[0].labels: \"\"", node([](v1::NodeFacts* facts) { (*facts->mutable_labels())[""] = "x"; })},
      {"nodes[0].labels: \"a\\x01\"", node([](v1::NodeFacts* facts) { (*facts->mutable_labels())["a\x01"] = "x"; })},
      {"nodes[0].labels: \"a b\"", node([](v1::NodeFacts* facts) { (*facts->mutable_labels())["a b"] = "x"; })},
      {"nodes[0].labels.zone: \"a b\"; expected the value of a label",
       node([](v1::NodeFacts* facts) { (*facts->mutable_labels())["zone"] = "a b"; })},
      {"nodes[0].labels.zone: \"\xF0\x9F\x98\x80\"",
       node([](v1::NodeFacts* facts) { (*facts->mutable_labels())["zone"] = "\xF0\x9F\x98\x80"; })},
      {"nodes[0].allocatable: \"nvidia.com/gp\xC3\xBC\"; expected the name of a resource",
       node([](v1::NodeFacts* facts) { (*facts->mutable_allocatable())["nvidia.com/gp\xC3\xBC"] = "1"; })},
      {"nodes[0].taints[0].value: \"a b\"",
       [&](v1::UpdateFactsRequest* update) {
         taint("dedicated")(update);
         update->mutable_nodes(0)->mutable_taints(0)->set_value("a b");
       }},
      {"nodes[1].name: \"m\" is announced twice in this step",
       [&](v1::UpdateFactsRequest* update) {
         node([](v1::NodeFacts*) {})(update);
         update->add_nodes()->set_name("m");
         (*update->mutable_nodes(1)->mutable_allocatable())["cpu"] = "4";
       }},
      {"pods[1].uid: \"u-1\" is announced twice in this step",
       [&](v1::UpdateFactsRequest* update) {
         pods({{"u-1", "one"}, {"u-1", "one"}})(update);
         update->mutable_pods(1)->set_priority(1);
       }},
      {"pods[0].uid: \"u\\n1\"; expected an identity", pods({{"u\n1", "one"}})},
      {"pods[0].uid: \"u\\x00z\"", pods({{std::string("u\0z", 3), "one"}})},
      {"pods[0].uid: \"\"", pods({{"", "one"}})},
      {"pods[0].labels.job: \"a b\"",
       [&](v1::UpdateFactsRequest* update) {
         pods({{"u-1", "one"}})(update);
         (*update->mutable_pods(0)->mutable_labels())["job"] = "a b";
       }},
      {"pods[0].shape.node_selector.zone: \"a b\"",
       [&](v1::UpdateFactsRequest* update) {
         pods({{"u-1", "one"}})(update);
         (*update->mutable_pods(0)->mutable_shape()->mutable_node_selector())["zone"] = "a b";
       }},
      {"pods[0].shape.tolerations[0].value: \"a b\"",
       [&](v1::UpdateFactsRequest* update) {
         pods({{"u-1", "one"}})(update);
         v1::Toleration* toleration = update->mutable_pods(0)->mutable_shape()->add_tolerations();
         toleration->set_key("dedicated");
         toleration->set_value("a b");
       }},
      {"nodes[0].taints[0].key: \"\"", taint("")},
      {"nodes[0].taints[0].key: \"a\\x01\"", taint("a\x01")},
      {"nodes[0].allocatable: \"a b\"",
       node([](v1::NodeFacts* facts) { (*facts->mutable_allocatable())["a b"] = "1"; })},
      {"removed_nodes[0]: node \"m\" is announced in the same step",
       [&](v1::UpdateFactsRequest* update) {
         node([](v1::NodeFacts*) {})(update);
         update->add_removed_nodes("m");
       }},
      {"pods[1].uid: \"u-1\"; it is the UID of pod default/one", pods({{"u-1", "one"}, {"u-1", "two"}})},
      {"pods[0].uid: pod uid u-a: is d/a", pods({{"u-a", "not-a"}})},
      {"pods[0].subgroup: \"s\"; its gang declares no subgroups",
       [&](v1::UpdateFactsRequest* update) {
         pods({{"u-s", "s"}})(update);
         update->mutable_pods(0)->set_gang("g");
         update->mutable_pods(0)->mutable_declaration()->set_min_member(1);
         update->mutable_pods(0)->set_subgroup("s");
       }},
  };
  for (const auto& [text, edit] : wrong) {
    v1::UpdateFactsRequest update;
    edit(&update);
    ExpectInvalid(client_->UpdateFacts(update).status(), {text});
  }
  v1::UpdateFactsRequest right;
  node([](v1::NodeFacts* facts) {
    (*facts->mutable_labels())["topology.kubernetes.io/zone"] = "";
    facts->add_taints()->set_key("node.kubernetes.io/unreachable");
    facts->mutable_taints(0)->set_effect(v1::TAINT_EFFECT_NO_EXECUTE);
    (*facts->mutable_allocatable())["nvidia.com/mig-1g.5gb"] = "1";
  })(&right);
  pods({{"any/text", "one"}, {"any/text", "one"}})(&right);
  for (v1::PodFacts& pod : *right.mutable_pods()) pod.mutable_create_time()->set_seconds(1);
  const auto taken = client_->UpdateFacts(right);
  EXPECT_TRUE(taken.ok()) << taken.status() << ": an object may be announced twice with the same facts";
}

// S-6: the parts of a snapshot are one step.
TEST_F(RefusedFactsShown, ObjectInTwoPartsOfSnapshot_IsRefused) {
  std::vector<v1::SendSnapshotRequest> parts(2);
  for (v1::SendSnapshotRequest& part : parts) {
    part.set_source("announcer");
    part.set_version(1);
    part.add_nodes()->set_name("m");
  }
  (*parts[1].mutable_nodes(0)->mutable_allocatable())["cpu"] = "4";
  ExpectInvalid(client_->SendSnapshot(parts).status(), {"nodes: node m is announced twice in one step"});
}

// Amounts of a node are rounded down, requests of a pod are rounded up.
TEST_F(RefusedFactsShown, FractionalDevice_IsRounded) {
  v1::UpdateFactsRequest update;
  update.add_nodes()->set_name("m");
  (*update.mutable_nodes(0)->mutable_allocatable())["nvidia.com/gpu"] = "1500m";
  (*update.mutable_nodes(0)->mutable_allocatable())["cpu"] = "1500m";
  ASSERT_TRUE(client_->UpdateFacts(update).ok());
  const auto node = engine_.view()->nodes.Find("m");
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(AmountOf(node->allocatable, "nvidia.com/gpu"), 1);
  EXPECT_EQ(AmountOf(node->allocatable, "cpu"), 1'500);
  v1::SubmitGangRequest submit;
  submit.mutable_gang()->set_name("half");
  submit.mutable_gang()->set_min_member(2);
  submit.add_members()->set_count(2);
  (*submit.mutable_members(0)->mutable_shape()->mutable_requests())["nvidia.com/gpu"] = "500m";
  EXPECT_EQ(client_->SubmitGang(submit)->state(), v1::Submission::STATE_WAITING);
}

TEST_F(RefusedFactsShown, NodeWithoutCapacity_HasWarning) {
  v1::UpdateFactsRequest update;
  update.add_manifests(
      R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"m"},"status":{"capacity":{"cpu":"64"}}})");
  const auto applied = ExpectOk(client_->UpdateFacts(update));
  ASSERT_EQ(applied.warnings_size(), 1);
  EXPECT_TRUE(absl::StrContains(applied.warnings(0), "node m: offers nothing to pods; expected amounts in status."))
      << applied.warnings(0);
}

// An object that is announced every few seconds does not fill the log.
TEST(RefusedLog, RepeatedRefusal_IsLoggedOnce) {
  RefusedLog log;
  const absl::Status broken = absl::InvalidArgumentError("cpu: -1 is out of range");
  EXPECT_TRUE(log.Write(UpsertNode{NodeWith("a", {{"cpu", -1}})}, broken));
  EXPECT_FALSE(log.Write(UpsertNode{NodeWith("a", {{"cpu", -1}})}, broken));
  EXPECT_TRUE(log.Write(UpsertNode{NodeWith("b", {{"cpu", -1}})}, broken));
  EXPECT_TRUE(
      log.Write(UpsertNode{NodeWith("a", {{"cpu", -1}})}, absl::InvalidArgumentError("cpu: -2 is out of range")));
  EXPECT_TRUE(log.Write(UnreadableFact{FactKind::kGang, "d/g", "x"}, absl::InvalidArgumentError("x")));
  EXPECT_FALSE(log.Write(Tick{}, broken)) << "no fact";
  for (int i = 0; i < 5'000; ++i) log.Write(UpsertNode{NodeWith(absl::StrCat("c", i), {{"cpu", -1}})}, broken);
  EXPECT_TRUE(log.Write(UpsertNode{NodeWith("a", {{"cpu", -1}})}, broken)) << "what is remembered is bounded";
}

}  // namespace
}  // namespace muster
