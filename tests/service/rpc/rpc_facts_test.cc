// Facts and submissions over gRPC: numbered steps, snapshots that stall or break, limits (SPEC S-1, S-6).
#include <grpcpp/grpcpp.h>

#include <set>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "muster/v1/decision.grpc.pb.h"
#include "muster/v1/facts.grpc.pb.h"
#include "tests/service/rpc/rpc_fixture.h"

namespace muster {
namespace {

v1::SendSnapshotRequest Part(int64_t version, const std::string& node) {
  v1::SendSnapshotRequest part;
  part.set_source("orchestrator-1");
  part.set_version(version);
  v1::NodeFacts* facts = part.add_nodes();
  facts->set_name(node);
  (*facts->mutable_allocatable())["cpu"] = "4";
  return part;
}

// SPEC S-1: a snapshot, then updates without a gap; a gap is answered with "send a snapshot".
TEST_F(Rpc, NumberedSteps_GapIsRefused) {
  v1::UpdateFactsRequest update;
  update.set_source("orchestrator-1");
  update.set_version(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(client_->UpdateFacts(update).status())) << "nothing was announced yet";
  v1::SendSnapshotRequest more;
  *more.add_nodes() = Part(0, "n2").nodes(0);
  const auto snapshot = ExpectOk(client_->SendSnapshot({Part(7, "n1"), more}));
  EXPECT_EQ(snapshot.version(), 7);
  EXPECT_EQ(snapshot.node_count(), 2) << "what was there before is gone";
  EXPECT_EQ(snapshot.pod_count(), 0);

  update.set_version(8);
  *update.add_pods() = PodOf("u1", "1");
  update.mutable_pods(0)->set_node_name("n1");
  ASSERT_TRUE(client_->UpdateFacts(update).ok());
  update.set_request_id("");
  const auto known = client_->UpdateFacts(update);
  ASSERT_TRUE(known.ok()) << "announced again";
  EXPECT_EQ(known->version(), 8);

  update.set_version(10);
  grpc::ClientContext context;
  v1::FactsStatus response;
  const auto stub = v1::FactsService::NewStub(Channel());
  const grpc::Status gap = stub->UpdateFacts(&context, update, &response);
  EXPECT_EQ(gap.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(gap.error_details()));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "SEND_SNAPSHOT");

  // A step with an invalid part is not applied at all.
  v1::UpdateFactsRequest bad;
  bad.set_source("orchestrator-1");
  bad.set_version(9);
  bad.add_removed_pods("u1");
  bad.add_nodes()->set_name("n3");
  *bad.add_pods() = PodOf("another", "1");
  bad.mutable_pods(0)->set_uid("u1");
  EXPECT_TRUE(absl::IsInvalidArgument(client_->UpdateFacts(bad).status()));
  const auto status = ExpectOk(client_->GetFactsStatus());
  EXPECT_EQ(status.version(), 8);
  EXPECT_EQ(status.node_count(), 2);
  EXPECT_EQ(status.pod_count(), 1);

  // Another announcer takes over with a snapshot; the first one gets an error.
  v1::SendSnapshotRequest other = Part(1, "n9");
  other.set_source("orchestrator-2");
  ASSERT_TRUE(client_->SendSnapshot({other}).ok());
  update.set_version(9);
  EXPECT_TRUE(absl::IsFailedPrecondition(client_->UpdateFacts(update).status()));
}

// Four snapshots are received at once. A stalled one blocks others only for a limited time, and a finished one frees
// its place.
TEST_F(Rpc, StalledSnapshot_GivesWay) {
  for (int version = 1; version <= 12; ++version) {
    const auto sent = client_->SendSnapshot({Part(version, "n1")});
    ASSERT_TRUE(sent.ok()) << "snapshot " << version << ": " << sent.status();
  }
  const auto stub = v1::FactsService::NewStub(Channel());
  struct Stalled {
    grpc::ClientContext context;
    v1::FactsStatus status;
    std::unique_ptr<grpc::ClientWriter<v1::SendSnapshotRequest>> writer;
  };
  std::vector<std::unique_ptr<Stalled>> stalled;
  for (int i = 0; i < 8; ++i) {  // more than there are places: all are received, in any order
    auto each = std::make_unique<Stalled>();
    each->writer = stub->SendSnapshot(&each->context, &each->status);
    static_cast<void>(each->writer->Write(Part(20 + i, "stalled")));
    stalled.push_back(std::move(each));
  }
  bool refused = false;
  bool sent = false;
  for (int i = 0; i < 500 && !sent; ++i) {
    grpc::ClientContext context;
    v1::FactsStatus status;
    const auto writer = stub->SendSnapshot(&context, &status);
    v1::SendSnapshotRequest whole = Part(30 + i, "n2");
    whole.set_last(true);
    static_cast<void>(writer->Write(whole));
    writer->WritesDone();
    const grpc::Status answer = writer->Finish();
    if (!answer.ok()) {
      EXPECT_EQ(answer.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << answer.error_message();
    }
    refused = refused || !answer.ok();
    sent = refused && answer.ok();
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(refused) << "those that stall are not counted";
  EXPECT_TRUE(sent) << "those that stall keep others out";
  for (const auto& each : stalled) {
    each->context.TryCancel();
    EXPECT_FALSE(each->writer->Finish().ok());
  }
}

// A stream that ends before its last part, or has an unreadable one, changes nothing.
TEST_F(Rpc, BrokenSnapshot_IsNotApplied) {
  ASSERT_TRUE(client_->SendSnapshot({Part(1, "n1")}).ok());
  const auto stub = v1::FactsService::NewStub(Channel());
  for (const bool unreadable : {false, true}) {
    grpc::ClientContext context;
    v1::FactsStatus status;
    const auto writer = stub->SendSnapshot(&context, &status);
    ASSERT_TRUE(writer->Write(Part(2, "n2")));
    if (unreadable) {
      v1::SendSnapshotRequest bad = Part(0, "n3\xff\xfe");  // not UTF-8: the server cannot parse it
      bad.set_last(true);
      static_cast<void>(writer->Write(bad));
    }
    writer->WritesDone();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << unreadable;
  }
  EXPECT_EQ(ExpectOk(client_->GetFactsStatus()).version(), 1);
}

TEST_F(Rpc, PartAfterLast_IsRefused) {
  const auto stub = v1::FactsService::NewStub(Channel());
  grpc::ClientContext context;
  v1::FactsStatus status;
  const auto writer = stub->SendSnapshot(&context, &status);
  v1::SendSnapshotRequest part = Part(1, "n1");
  part.set_last(true);
  ASSERT_TRUE(writer->Write(part));
  static_cast<void>(writer->Write(Part(0, "n2")));
  writer->WritesDone();
  const grpc::Status answer = writer->Finish();
  EXPECT_EQ(answer.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(answer.error_message().find("last: a part follows"), std::string::npos) << answer.error_message();
}

// Every reply is readable, whatever the input: texts are cut between characters, and errors fit into a header.
TEST_F(Rpc, LongTexts_AreCutBetweenCharacters) {
  v1::UpdateFactsRequest update;
  for (const char* name : {"v-a", "v-b"}) *update.add_pods() = MemberOf("cut", 2, name);
  ASSERT_TRUE(client_->UpdateFacts(update).ok());
  v1::PostFilterRequest post;
  post.set_pod_uid("v-a");
  post.set_message(std::string(1023, 'a') + "\u00e9\u00e9");
  const auto stub = v1::DecisionService::NewStub(Channel());
  grpc::ClientContext context;
  v1::PostFilterResponse response;
  ASSERT_TRUE(stub->PostFilter(&context, post, &response).ok());
  const auto gang = ExpectOk(client_->GetGang("default", "cut"));
  EXPECT_NE(gang.reason().text().find(std::string(1000, 'a')), std::string::npos) << gang.reason().text();
  EXPECT_EQ(gang.reason().text().find('\xc3'), std::string::npos) << "half a character is left";

  v1::UpdateFactsRequest wrong;
  for (int i = 0; i < 40; ++i) {
    v1::PodFacts* pod = wrong.add_pods();
    *pod = PodOf(absl::StrCat("w-", i), "0");
    (*pod->mutable_shape()->mutable_requests())[std::string(250, 'r')] = std::string(200, 'x');
  }
  EXPECT_TRUE(absl::IsInvalidArgument(client_->UpdateFacts(wrong).status()));
  const absl::Status missing = client_->GetGang("default", std::string(20'000, 'g')).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
}

// The size of a submission is checked before its pods are created, and they must be pods without a node.
TEST_F(Rpc, SubmittedPods_AreBoundedAndUnplaced) {
  v1::SubmitGangRequest submit;
  submit.mutable_gang()->set_name("big");
  submit.mutable_gang()->set_min_member(1);
  v1::MemberSet* set = submit.add_members();
  set->set_count(100'000);
  set->set_name(std::string(100'000, 'n'));
  EXPECT_TRUE(absl::IsInvalidArgument(client_->SubmitGang(submit).status()));
  submit.clear_members();
  v1::PodFacts* pod = submit.add_pods();
  *pod = PodOf("big-0", "0");
  pod->set_node_name("n");
  pod->set_phase(v1::PodFacts::PHASE_RUNNING);
  ExpectInvalid(client_->SubmitGang(submit).status(), {"big-0 has a node"});
  pod->clear_node_name();
  pod->clear_phase();
  pod->set_gang("another");
  EXPECT_TRUE(absl::IsInvalidArgument(client_->SubmitGang(submit).status()));
  pod->clear_gang();
  EXPECT_TRUE(client_->SubmitGang(submit).ok());
}

v1::SelectorRequirement In(const std::string& key, const std::string& value) {
  v1::SelectorRequirement requirement;
  requirement.set_key(key);
  requirement.set_operator_(v1::SelectorRequirement::OPERATOR_IN);
  requirement.add_values(value);
  return requirement;
}

// SPEC P-3 over gRPC: members with anti-affinity by their label are placed on different nodes.
TEST_F(Rpc, SubmittedAntiAffinity_SeparatesMembers) {
  AddNode(SmallNode("n2", 2'000));
  v1::SubmitGangRequest submit = SubmitOf("apart", 2, "100m");
  v1::MemberSet* set = submit.mutable_members(0);
  (*set->mutable_labels())["job"] = "apart";
  v1::PodAffinityTerm* term = set->mutable_shape()->add_pod_anti_affinity();
  term->set_topology_key("kubernetes.io/hostname");
  v1::SelectorRequirement* expression = term->mutable_selector()->add_expressions();
  *expression = In("job", "apart");
  const auto planned = ExpectOk(client_->SubmitGang(submit));
  ASSERT_EQ(planned.placements_size(), 2) << planned.DebugString();
  EXPECT_NE(planned.placements(0).node(), planned.placements(1).node());

  submit.set_request_id("more");
  submit.mutable_gang()->set_name("more");
  expression->set_operator_(v1::SelectorRequirement::OPERATOR_GT);
  term->set_topology_key("no key");
  set->mutable_shape()->add_topology_spread()->set_topology_key("zone");
  set->mutable_shape()->mutable_topology_spread(0)->set_node_affinity_policy(static_cast<v1::NodeInclusionPolicy>(5));
  set->mutable_shape()->mutable_topology_spread(0)->set_node_taints_policy(static_cast<v1::NodeInclusionPolicy>(-1));
  (*set->mutable_labels())["not a key"] = "x";
  ExpectInvalid(
      client_->SubmitGang(submit).status(),
      {"members[0].shape.pod_anti_affinity[0].topology_key",
       "members[0].shape.pod_anti_affinity[0].selector.expressions[0]", "members[0].shape.topology_spread[0].max_skew",
       "members[0].shape.topology_spread[0].node_affinity_policy: 5; expected NODE_INCLUSION_POLICY_HONOR or "
       "NODE_INCLUSION_POLICY_IGNORE",
       "members[0].shape.topology_spread[0].node_taints_policy: -1;", "members[0].labels"});
}

// SPEC P-3 over gRPC: preferences of members choose among feasible nodes, and no member waits for them.
TEST_F(Rpc, SubmittedPreferences_ChooseAmongFeasibleNodes) {
  for (const char* name : {"p1", "p2", "p3"}) {
    AddNode(NodeWith(name, {{"cpu", 2'000}, {"example.com/seat", 4}, {"pods", 10}}, {{"room", name}}));
  }
  v1::SubmitGangRequest submit = SubmitOf("", 2, "0");
  v1::MemberSet* set = submit.mutable_members(0);
  (*set->mutable_labels())["job"] = "guests";
  set->mutable_shape()->clear_requests();
  (*set->mutable_shape()->mutable_requests())["example.com/seat"] = "1";
  // The nodes of its two members, as one text: both have the same preferences.
  const auto nodes_of = [&](const std::string& name) -> std::string {
    submit.set_request_id(name);
    submit.mutable_gang()->set_name(name);
    const auto planned = client_->SubmitGang(submit);
    if (!planned.ok()) return std::string(planned.status().message());
    std::set<std::string> nodes;
    for (const auto& placement : planned->placements()) nodes.insert(placement.node());
    return absl::StrJoin(nodes, " ");
  };
  v1::PreferredNodeTerm* room = set->mutable_shape()->add_preferred_nodes();
  room->set_weight(50);
  v1::SelectorRequirement* in = room->mutable_term()->add_expressions();
  *in = In("room", "p3");
  EXPECT_EQ(nodes_of("third"), "p3");
  in->set_values(0, "p2");
  EXPECT_EQ(nodes_of("second"), "p2");

  set->mutable_shape()->clear_preferred_nodes();
  v1::PreferredPodAffinityTerm* guests = set->mutable_shape()->add_preferred_pods();
  guests->set_weight(-10);
  guests->mutable_term()->set_topology_key("kubernetes.io/hostname");
  *guests->mutable_term()->mutable_selector()->add_expressions() = In("job", "guests");
  set->set_count(1);
  submit.mutable_gang()->set_min_member(1);
  EXPECT_EQ(nodes_of("away"), "p1");
  guests->set_weight(10);
  set->set_count(2);
  submit.mutable_gang()->set_min_member(2);
  EXPECT_EQ(nodes_of("near").find("p1"), std::string::npos);  // its node has one guest, the other nodes have two
  set->set_count(3);
  submit.mutable_gang()->set_min_member(3);
  // The other nodes have room for two, or none: no member waits for a preference.
  EXPECT_EQ(nodes_of("wherever").find("p1 "), 0);

  guests->set_weight(0);
  guests->mutable_term()->set_topology_key("no key");
  set->mutable_shape()->add_preferred_nodes()->set_weight(101);
  submit.set_request_id("wrong");
  submit.mutable_gang()->set_name("wrong");
  ExpectInvalid(client_->SubmitGang(submit).status(),
                {"members[0].shape.preferred_nodes[0].weight", "members[0].shape.preferred_pods[0].weight",
                 "members[0].shape.preferred_pods[0].term.topology_key"});
}

}  // namespace
}  // namespace muster
