// The admission webhook: how it changes pods, and what it refuses (SPEC K-8).
#include "k8s-extender/webhook/admission.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "support/json.h"

namespace muster {
namespace {

class AdmissionTest : public testing::Test {
 protected:
  Json Admit(const std::string& pod, const char* name_space = "d", const char* operation = "CREATE") {
    const Json review = {{"request",
                          {{"uid", "r1"},
                           {"kind", {{"kind", "Pod"}}},
                           {"operation", operation},
                           {"namespace", name_space},
                           {"object", *ParseJson(pod, "pod")}}}};
    int status = 200;
    const absl::StatusOr<Json> answer = ParseJson(admission_.Review(review.dump(), &status), "answer");
    EXPECT_EQ(status, 200);
    EXPECT_EQ(StringOrEmpty(*answer, "kind"), "AdmissionReview");
    EXPECT_EQ(StringOrEmpty(*answer, "apiVersion"), "admission.k8s.io/v1");
    EXPECT_EQ(StringOrEmpty(Child(*answer, "response"), "uid"), "r1");
    return Child(*answer, "response");
  }
  // The patch as JSON; empty if there is none.
  static std::string Patch(const Json& response) {
    std::string text;
    EXPECT_TRUE(BoolOrFalse(response, "allowed")) << response;
    EXPECT_TRUE(absl::Base64Unescape(StringOrEmpty(response, "patch"), &text));
    EXPECT_EQ(StringOrEmpty(response, "patchType"), text.empty() ? "" : "JSONPatch");
    return text;
  }

  std::string observed_;
  Admission admission_{
      {{"muster"}, {"Job"}, {"kube-system", "muster-system"}},
      [this](absl::string_view, absl::string_view outcome, absl::Duration) { observed_ = std::string(outcome); }};
};

constexpr char kGang[] = R"({"metadata":{"generateName":"g-","annotations":{"gang.scheduling.koordinator.sh/name":"g",
    "gang.scheduling.koordinator.sh/min-available":"2"}},"spec":{"containers":[{"name":"c"}]}})";

TEST_F(AdmissionTest, GangPod_GetsGateAndScheduler) {
  const std::string patch = Patch(Admit(kGang));
  EXPECT_EQ(*ParseJson(patch, "patch"), *ParseJson(R"([{"op":"add","path":"/spec/schedulerName","value":"muster"},
                           {"op":"add","path":"/spec/schedulingGates","value":[{"name":"muster.dev/gang"}]}])",
                                                   "patch"));
  EXPECT_EQ(observed_, "patched");
}

// For disruption budgets: the label that they select.
TEST_F(AdmissionTest, GangPod_GetsLabel) {
  const Admission labels({{"muster"}, {}, {}, /*label_gangs=*/true},
                         [](absl::string_view, absl::string_view, absl::Duration) {});
  const auto patched = [&](Json pod) {
    const Json review = {
        {"request",
         {{"uid", "r1"}, {"kind", {{"kind", "Pod"}}}, {"operation", "CREATE"}, {"namespace", "d"}, {"object", pod}}}};
    int status = 200;
    return pod.patch(*ParseJson(Patch(Child(*ParseJson(labels.Review(review.dump(), &status), ""), "response")), ""));
  };
  Json pod = *ParseJson(kGang, "pod");
  EXPECT_EQ(patched(pod)["metadata"]["labels"], Json({{"muster.dev/gang-name", "g"}}));
  pod["metadata"]["labels"] = {{"a", "b"}, {"muster.dev/gang-name", "another"}};
  EXPECT_EQ(patched(pod)["metadata"]["labels"], Json({{"a", "b"}, {"muster.dev/gang-name", "g"}}));
}

TEST_F(AdmissionTest, ExistingFields_Stay) {
  const auto with = [](const char* spec) {
    Json pod = *ParseJson(kGang, "pod");
    pod["spec"] = *ParseJson(spec, "spec");
    return pod.dump();
  };
  EXPECT_EQ(Patch(Admit(with(R"({"schedulerName":"muster","schedulingGates":[{"name":"muster.dev/gang"}]})"))), "");
  EXPECT_EQ(Patch(Admit(with(R"({"schedulerName":"muster","schedulingGates":[{"name":"other"}]})"))),
            R"([{"op":"add","path":"/spec/schedulingGates/-","value":{"name":"muster.dev/gang"}}])");
  EXPECT_EQ(Patch(Admit(with(R"({"schedulerName":"volcano"})"))), "") << "another scheduler's pod";
  EXPECT_EQ(Patch(Admit(with(R"({"nodeName":"n1"})"))), "") << "it has its node";
}

TEST_F(AdmissionTest, OtherPods_NotPatched) {
  EXPECT_EQ(Patch(Admit(R"({"metadata":{"name":"p"},"spec":{}})")), "");
  EXPECT_EQ(Patch(Admit(kGang, "kube-system")), "");
  EXPECT_EQ(Patch(Admit(kGang, "muster-system")), "");
  EXPECT_EQ(Patch(Admit(kGang, "d", "UPDATE")), "");
  EXPECT_EQ(observed_, "passed");
}

TEST_F(AdmissionTest, OwnedPod_IsGated) {  // SPEC D-7
  const std::string patch = Patch(Admit(R"({"metadata":{"generateName":"train-","ownerReferences":[
      {"apiVersion":"batch/v1","kind":"Job","name":"train","controller":true}]},"spec":{}})"));
  EXPECT_TRUE(absl::StrContains(patch, "muster.dev/gang")) << patch;
}

TEST_F(AdmissionTest, InvalidDeclaration_DeniedWithReason) {
  const auto denied = [this](const char* annotations) {
    const std::string pod = absl::StrCat(R"({"metadata":{"name":"p","annotations":)", annotations, R"(},"spec":{}})");
    const Json response = Admit(pod);
    EXPECT_FALSE(BoolOrFalse(response, "allowed")) << response;
    EXPECT_FALSE(response.contains("patch"));
    EXPECT_EQ(IntAt(Child(response, "status"), "code"), 422);
    return StringOrEmpty(Child(response, "status"), "message");
  };
  EXPECT_EQ(denied(R"({"gang.scheduling.koordinator.sh/name":"a","pod-group-name":"b"})")
                .rfind("muster: the pod names two gangs", 0),
            0U);
  EXPECT_TRUE(absl::StrContains(
      denied(R"({"gang.scheduling.koordinator.sh/name":"g","gang.scheduling.koordinator.sh/min-available":"many"})"),
      "min-available"));
  EXPECT_TRUE(absl::StrContains(denied(R"({"gang.scheduling.koordinator.sh/name":"No Name"})"), "not a gang name"));
  EXPECT_EQ(observed_, "denied");
}

TEST_F(AdmissionTest, Warnings_ReachCreator) {
  const Json response = Admit(R"({"metadata":{"name":"p","labels":{"kai.scheduler/subgroup-name":"s"}},"spec":{}})");
  EXPECT_TRUE(BoolOrFalse(response, "allowed"));
  ASSERT_EQ(Child(response, "warnings").size(), 1U) << response;
}

TEST_F(AdmissionTest, MalformedReview_IsBadRequest) {
  for (const char* body : {"", "{", "[]", "{}", R"({"request":{"uid":""}})", R"({"request":3})"}) {
    int status = 200;
    EXPECT_FALSE(admission_.Review(body, &status).empty());
    EXPECT_EQ(status, 400) << body;
  }
}

}  // namespace
}  // namespace muster
