// Subgroups and domains over gRPC (SPEC P-4, P-5, S-1, S-6).
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/service/rpc/rpc_fixture.h"

namespace muster {
namespace {

class Shapes : public Rpc {
 protected:
  void AddNode(const std::string& name, const std::string& rack, int64_t cpu) {
    Rpc::AddNode(NodeWith(name, {{"cpu", cpu}, {"memory", int64_t{1} << 30}, {"pods", 10}}, {{"rack", rack}}));
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

TEST_F(Shapes, SubmittedTree_IsPlacedByItsRules) {
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
  const auto planned = ExpectOk(client_->SubmitGang(request));
  ASSERT_EQ(planned.state(), v1::Submission::STATE_PLANNED) << planned.reason().text();
  std::map<std::string, std::set<std::string>> racks;  // by subgroup
  for (const v1::Placement& place : planned.placements()) {
    racks[place.pod_name().substr(0, 8)].insert(place.node().substr(0, 2));
  }
  ASSERT_EQ(racks.size(), 2U) << planned.ShortDebugString();
  EXPECT_EQ(racks["serve-w0"].size(), 1U);
  EXPECT_EQ(racks["serve-w1"].size(), 1U);
  EXPECT_NE(racks["serve-w0"], racks["serve-w1"]);

  const auto gang = ExpectOk(client_->GetGang("default", "serve"));
  EXPECT_EQ(gang.rules().min_member(), 4);
  ASSERT_EQ(gang.rules().subgroups_size(), 2);
  EXPECT_EQ(gang.rules().subgroups(0).name(), "w0");
  EXPECT_EQ(gang.rules().subgroups(0).minimum(), 2);
  EXPECT_TRUE(gang.rules().subgroups(0).leaf());
  EXPECT_EQ(gang.rules().subgroups(0).topology().required(), "rack");
  EXPECT_EQ(gang.rules().subgroups(0).pending(), 2);
  EXPECT_EQ(gang.members(0).subgroup(), "w0");
  ASSERT_TRUE(client_->ConfirmGang("tree", planned.plan()).ok());
  EXPECT_EQ(client_->GetGang("default", "serve")->rules().subgroups(1).placed(), 2);
}

TEST_F(Shapes, NoFittingDomain_ReportsCounts) {
  AddNode("r1-0", "r1", 3000);
  AddNode("r2-0", "r2", 3000);
  v1::SubmitGangRequest request;
  request.set_request_id("wide");
  request.mutable_gang()->set_name("wide");
  request.mutable_gang()->set_min_member(2);
  request.mutable_gang()->mutable_topology()->set_required("rack");
  AddMembers("", 2, &request);
  const auto waiting = ExpectOk(client_->SubmitGang(request));
  EXPECT_EQ(waiting.state(), v1::Submission::STATE_WAITING);
  EXPECT_EQ(waiting.reason().text(),
            "no domain of rack has room for the gang: r1: 1 of 2, r2: 1 of 2; can never fit: no such domain holds more "
            "than 1 of 2 when empty");
}

// S-6: the field, its value, and what was expected.
TEST_F(Shapes, InvalidShape_NamesFieldAndValue) {
  const auto refused = [&](v1::SubmitGangRequest request, const std::string& text) {
    request.mutable_gang()->set_name("wrong");
    ExpectInvalid(client_->SubmitGang(request).status(), {text});
  };
  v1::SubmitGangRequest twice;
  AddSubgroup("a", 1, twice.mutable_gang());
  AddSubgroup("a", 1, twice.mutable_gang());
  AddMembers("a", 1, &twice);
  refused(twice, "gang.subgroups");
  refused(twice, "subgroup a is declared twice");
  v1::SubmitGangRequest unknown_subgroup;
  AddSubgroup("a", 1, unknown_subgroup.mutable_gang());
  AddMembers("b", 1, &unknown_subgroup);
  refused(unknown_subgroup, "subgroup \"b\" is not in the gang");
  v1::SubmitGangRequest few;
  AddSubgroup("a", 3, few.mutable_gang());
  AddMembers("a", 2, &few);
  refused(few, "min_member: 3 of 2 pods");
  v1::SubmitGangRequest label;
  label.mutable_gang()->set_min_member(1);
  label.mutable_gang()->mutable_topology()->set_required("no label");
  AddMembers("", 1, &label);
  refused(label, "gang.topology.required");
  v1::CreateGangRequest create = CreateOf("g", 2);
  AddSubgroup("a", 1, create.mutable_gang());
  ExpectInvalid(client_->CreateGang(create).status(), {"the gang needs 2 of its 1 subgroups"});
}

v1::SubmitGangRequest OneMember() {
  v1::SubmitGangRequest request;
  request.mutable_gang()->set_name("one");
  request.mutable_gang()->set_min_member(1);
  request.add_members()->set_count(1);
  return request;
}

using Operator = v1::SelectorRequirement::Operator;

void Require(const std::string& key, Operator op, const std::vector<std::string>& values,
             v1::SelectorRequirement* out) {
  out->set_key(key);
  out->set_operator_(op);
  for (const std::string& value : values) out->add_values(value);
}

// S-6: a shape that no node could ever meet, or with a field without effect, is refused with the name of the field.
TEST_F(Shapes, ShapeInvalidForKubernetes_IsRefused) {
  using Edit = std::function<void(v1::PodShape*)>;
  const auto expression = [](const std::string& key, Operator op, const std::vector<std::string>& values) {
    return [=](v1::PodShape* shape) { Require(key, op, values, shape->add_affinity()->add_expressions()); };
  };
  const auto name = [](const std::string& key, Operator op, const std::vector<std::string>& values) {
    return [=](v1::PodShape* shape) { Require(key, op, values, shape->add_affinity()->add_fields()); };
  };
  const auto toleration = [](const std::string& key, v1::Toleration::Operator op, const std::string& value) {
    return [=](v1::PodShape* shape) {
      v1::Toleration* added = shape->add_tolerations();
      added->set_key(key);
      added->set_operator_(op);
      added->set_value(value);
    };
  };
  const auto ports = [](const std::vector<std::pair<int, std::string>>& of) {
    return [=](v1::PodShape* shape) {
      for (const auto& [port, ip] : of) {
        v1::HostPort* added = shape->add_host_ports();
        added->set_port(port);
        added->set_host_ip(ip);
      }
    };
  };
  const auto request = [](const std::string& resource) {
    return [=](v1::PodShape* shape) { (*shape->mutable_requests())[resource] = "0"; };
  };
  const std::vector<std::pair<std::string, Edit>> wrong = {
      {"affinity[0].expressions[0].values: 0 values; with OPERATOR_IN",
       expression("rack", v1::SelectorRequirement::OPERATOR_IN, {})},
      {"affinity[0].expressions[0].values: 0 values; with OPERATOR_NOT_IN",
       expression("rack", v1::SelectorRequirement::OPERATOR_NOT_IN, {})},
      {"affinity[0].expressions[0].values: 1 value; with OPERATOR_EXISTS",
       expression("rack", v1::SelectorRequirement::OPERATOR_EXISTS, {"r1"})},
      {"affinity[0].expressions[0].values: 1 value; with OPERATOR_DOES_NOT_EXIST",
       expression("rack", v1::SelectorRequirement::OPERATOR_DOES_NOT_EXIST, {"r1"})},
      {"affinity[0].expressions[0].values: 2 values; with OPERATOR_GT",
       expression("index", v1::SelectorRequirement::OPERATOR_GT, {"1", "2"})},
      {"affinity[0].expressions[0].values: \"x\"; with OPERATOR_LT",
       expression("index", v1::SelectorRequirement::OPERATOR_LT, {"x"})},
      {"affinity[0].expressions[0].key: \"\"", expression("", v1::SelectorRequirement::OPERATOR_EXISTS, {})},
      {"affinity[0].fields[0].key: \"spec.x\"; expected metadata.name",
       name("spec.x", v1::SelectorRequirement::OPERATOR_IN, {"n"})},
      {"affinity[0].fields[0].operator: OPERATOR_EXISTS; expected OPERATOR_IN or OPERATOR_NOT_IN",
       name("metadata.name", v1::SelectorRequirement::OPERATOR_EXISTS, {})},
      {"tolerations[0].value: \"x\"; with OPERATOR_EXISTS", toleration("team", v1::Toleration::OPERATOR_EXISTS, "x")},
      {"tolerations[0].key: is empty", toleration("", v1::Toleration::OPERATOR_EQUAL, "x")},
      {"tolerations[0].key: is empty", toleration("", v1::Toleration::OPERATOR_UNSPECIFIED, "x")},
      {"host_ports[0].host_ip: \"nonsense\"", ports({{80, "nonsense"}})},
      {"host_ports[1].port: 80 is listed twice", ports({{80, ""}, {80, "0.0.0.0"}})},
      {"node_selector: \"a b\"", [](v1::PodShape* shape) { (*shape->mutable_node_selector())["a b"] = "x"; }},
      {"requests: \"\"", request("")},
      {"requests: \"a b\"", request("a b")},
      {"requests: \"a\\x01\"", request("a\x01")},
  };
  for (const auto& [field, edit] : wrong) {
    v1::SubmitGangRequest submit = OneMember();
    edit(submit.mutable_members(0)->mutable_shape());
    ExpectInvalid(client_->SubmitGang(submit).status(), {absl::StrCat("members[0].shape.", field)});
  }
  v1::SubmitGangRequest right = OneMember();
  v1::PodShape* shape = right.mutable_members(0)->mutable_shape();
  for (const Edit& edit :
       std::vector<Edit>{expression("topology.kubernetes.io/zone", v1::SelectorRequirement::OPERATOR_IN, {""}),
                         expression("index", v1::SelectorRequirement::OPERATOR_GT, {"-1"}),
                         name("metadata.name", v1::SelectorRequirement::OPERATOR_NOT_IN, {"a", "b"}),
                         toleration("", v1::Toleration::OPERATOR_EXISTS, ""),
                         toleration("team", v1::Toleration::OPERATOR_UNSPECIFIED, ""),
                         ports({{80, "10.0.0.1"}, {80, "::1"}, {81, ""}}), request("nvidia.com/mig-1g.5gb"),
                         request("hugepages-2Mi")}) {
    edit(shape);
  }
  const auto taken = client_->SubmitGang(right);
  EXPECT_TRUE(taken.ok()) << taken.status();
}

// The same for members and the declaration of their gang.
TEST_F(Shapes, MembersContradictingGang_AreRefused) {
  const auto refused = [&](const v1::SubmitGangRequest& request, const std::string& text) {
    ExpectInvalid(client_->SubmitGang(request).status(), {text});
  };
  v1::SubmitGangRequest request = OneMember();
  request.mutable_members(0)->set_subgroup("a");
  refused(request, "members[0].subgroup: \"a\"; its gang declares no subgroups");
  request = OneMember();
  request.mutable_gang()->add_group("default/other");
  refused(request, "gang.group: does not name default/one");
  request = OneMember();
  request.mutable_gang()->set_min_member(2);
  refused(request, "gang.min_member: 2 of 1 pods; expected 1 to 1");
  request = OneMember();
  *request.add_members() = request.members(0);
  refused(request, "members: pod one-0 is given twice");
  request = OneMember();
  request.clear_members();
  for (const char* uid : {"u-1", "u-2"}) {
    v1::PodFacts* pod = request.add_pods();
    pod->set_uid(uid);
    pod->set_name("same");
  }
  refused(request, "pods[1].name: pod same is given twice");
  request.mutable_pods(1)->set_name("another");
  request.mutable_pods(1)->set_uid("u-1");
  refused(request, "pods[1].uid: pod another: uid u-1 is given twice");
  request.mutable_pods(1)->set_uid("u-2");
  EXPECT_TRUE(client_->SubmitGang(request).ok());
  // For manifests, the error names the manifest.
  v1::SubmitGangRequest manifests;
  for (const char* name : {"a", "b"}) {
    manifests.add_manifests(absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                                         R"(","labels":{"pod-group.scheduling.sigs.k8s.io":"g"}},)",
                                         R"("spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":")", name,
                                         R"("}}}]}})"));
  }
  refused(manifests, "manifests[1]: ");

  v1::CreateGangRequest create = CreateOf("lone", 1);
  create.mutable_gang()->add_group("default/other");
  ExpectInvalid(client_->CreateGang(create).status(), {"gang.group: does not name default/lone"});
}

}  // namespace
}  // namespace muster
