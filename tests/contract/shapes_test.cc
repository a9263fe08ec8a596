// Subgroups and domains over gRPC (SPEC P-4, P-5, S-1, S-6).
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "tests/contract/rpc_fixture.h"

namespace muster {
namespace {

class Shapes : public Rpc {
 protected:
  void AddNode(const std::string& name, const std::string& rack, int64_t cpu) {
    NodeDescription node;
    node.name = name;
    node.labels = {{"rack", rack}};
    node.allocatable = {{"cpu", cpu}, {"memory", int64_t{1} << 30}, {"pods", 10}};
    ASSERT_TRUE(engine_.Announce(UpsertNode{node}).ok());
  }
  static void AddMembers(const std::string& subgroup, int count, v1::SubmitGangRequest* request) {
    v1::MemberSet* members = request->add_members();
    members->set_subgroup(subgroup);
    members->set_count(count);
    (*members->mutable_shape()->mutable_requests())["cpu"] = "3";
  }
  static v1::SubgroupSpec* AddSubgroup(const std::string& name, int min, v1::GangSpec* gang) {
    v1::SubgroupSpec* subgroup = gang->add_subgroups();
    subgroup->set_name(name);
    subgroup->set_min_member(min);
    return subgroup;
  }
};

TEST_F(Shapes, ASubmittedTreeIsPlacedByItsRules) {
  for (const char* rack : {"r1", "r2"}) {
    for (int i = 0; i < 2; ++i) AddNode(absl::StrCat(rack, "-", i), rack, 3000);
  }
  v1::SubmitGangRequest request;
  request.set_request_id("tree");
  request.mutable_gang()->set_name("serve");
  for (const char* name : {"w0", "w1"}) {
    AddSubgroup(name, 2, request.mutable_gang())->mutable_topology()->set_required("rack");
    AddMembers(name, 2, &request);
  }
  const auto planned = client_->SubmitGang(request);
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_EQ(planned->state(), v1::Submission::PLANNED) << planned->reason().text();
  std::map<std::string, std::set<std::string>> racks;  // by subgroup
  for (const v1::Placement& place : planned->placements()) {
    racks[place.pod_name().substr(0, 8)].insert(place.node().substr(0, 2));
  }
  ASSERT_EQ(racks.size(), 2U) << planned->ShortDebugString();
  EXPECT_EQ(racks["serve-w0"].size(), 1U);
  EXPECT_EQ(racks["serve-w1"].size(), 1U);
  EXPECT_NE(racks["serve-w0"], racks["serve-w1"]);

  const auto gang = client_->GetGang("default", "serve");
  ASSERT_TRUE(gang.ok()) << gang.status();
  EXPECT_EQ(gang->rules().min_member(), 4);
  ASSERT_EQ(gang->rules().subgroups_size(), 2);
  EXPECT_EQ(gang->rules().subgroups(0).name(), "w0");
  EXPECT_EQ(gang->rules().subgroups(0).minimum(), 2);
  EXPECT_TRUE(gang->rules().subgroups(0).leaf());
  EXPECT_EQ(gang->rules().subgroups(0).topology().required(), "rack");
  EXPECT_EQ(gang->rules().subgroups(0).pending(), 2);
  EXPECT_EQ(gang->members(0).subgroup(), "w0");
  ASSERT_TRUE(client_->ConfirmGang("tree", planned->plan()).ok());
  EXPECT_EQ(client_->GetGang("default", "serve")->rules().subgroups(1).placed(), 2);
}

TEST_F(Shapes, NoDomainHoldsIt) {
  AddNode("r1-0", "r1", 3000);
  AddNode("r2-0", "r2", 3000);
  v1::SubmitGangRequest request;
  request.set_request_id("wide");
  request.mutable_gang()->set_name("wide");
  request.mutable_gang()->set_min_member(2);
  request.mutable_gang()->mutable_topology()->set_required("rack");
  AddMembers("", 2, &request);
  const auto waiting = client_->SubmitGang(request);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  EXPECT_EQ(waiting->state(), v1::Submission::WAITING);
  EXPECT_EQ(waiting->reason().text(), "no domain of rack holds the gang: r1: 1 of 2, r2: 1 of 2");
}

// S-6: which field, which value, what was expected.
TEST_F(Shapes, WhatIsWrongIsSaid) {
  const auto refused = [&](v1::SubmitGangRequest request, absl::string_view text) {
    request.mutable_gang()->set_name("wrong");
    const auto answer = client_->SubmitGang(request);
    EXPECT_TRUE(absl::IsInvalidArgument(answer.status())) << answer.status();
    EXPECT_TRUE(absl::StrContains(answer.status().message(), text)) << answer.status();
  };
  v1::SubmitGangRequest twice;
  AddSubgroup("a", 1, twice.mutable_gang());
  AddSubgroup("a", 1, twice.mutable_gang());
  AddMembers("a", 1, &twice);
  refused(twice, "gang.subgroups");
  refused(twice, "subgroup a is declared twice");
  v1::SubmitGangRequest stranger;
  AddSubgroup("a", 1, stranger.mutable_gang());
  AddMembers("b", 1, &stranger);
  refused(stranger, "subgroup \"b\" is none of the gang's");
  v1::SubmitGangRequest few;
  AddSubgroup("a", 3, few.mutable_gang());
  AddMembers("a", 2, &few);
  refused(few, "min_member: 3 of 2 pods");
  v1::SubmitGangRequest label;
  label.mutable_gang()->set_min_member(1);
  label.mutable_gang()->mutable_topology()->set_required("no label");
  AddMembers("", 1, &label);
  refused(label, "gang.topology.required");
  v1::CreateGangRequest create;
  create.mutable_gang()->set_name("g");
  create.mutable_gang()->set_min_member(2);
  AddSubgroup("a", 1, create.mutable_gang());
  EXPECT_TRUE(absl::StrContains(client_->CreateGang(create).status().message(), "the gang needs 2 of its 1 subgroups"));
}

}  // namespace
}  // namespace muster
