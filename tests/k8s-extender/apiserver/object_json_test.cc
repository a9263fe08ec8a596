// What informers read of the API server's JSON, beside the parser of everything else (SPEC K-10).
#include "k8s-extender/apiserver/object_json.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Removes what ParseObjects leaves out. `within`: the key at which the value, or the list with it, is.
void Prune(Json* value, const std::string& within = "") {
  static const std::set<std::string> kUnread = {
      "args",           "command",         "env",          "envFrom",
      "image",          "imagePullPolicy", "lifecycle",    "livenessProbe",
      "readinessProbe", "securityContext", "startupProbe", "terminationMessagePath",
      "volumeDevices",  "volumeMounts"};
  if (value->is_array()) {
    for (Json& each : *value) Prune(&each, within);
  }
  if (!value->is_object()) return;
  const bool container = within == "containers" || within == "initContainers" || within == "ephemeralContainers";
  for (auto field = value->begin(); field != value->end();) {
    const bool unread = (within == "metadata" && field.key() == "managedFields") ||
                        (within == "status" && field.key() == "images") || (container && kUnread.contains(field.key()));
    if (unread) {
      field = value->erase(field);
      continue;
    }
    Prune(&*field, field.key());
    ++field;
  }
}

constexpr char kPod[] =
    R"({"kind": "Pod", "metadata": {"name": "a", "uid": "u", "labels": {"env": "prod", "images": "x"},
  "annotations": {"note": "tab\t \"quoted\" \u00e9 \ud83d\ude00"}, "managedFields": [{"manager": "kubectl", "fieldsV1":
  {"f:metadata": {"f:labels": {}}}}]}, "spec": {"priority": -5, "weight": 1.5e3, "big": 18446744073709551615,
  "nothing": null, "yes": true, "no": false, "empty": {}, "none": [], "containers": [{"name": "main", "image": "i:1",
  "env": [{"name": "A", "value": "}"}], "resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}],
  "initContainers": [{"name": "init", "command": ["sh", "-c", "true"], "restartPolicy": "Always"}]},
  "status": {"phase": "Running", "images": [{"names": ["x"]}], "containerStatuses": [{"name": "main", "image": "kept"}]}})";

TEST(ObjectJson, Pod_IsReadWithoutItsUnreadParts) {
  Json expected = *ParseJson(kPod, "pod");
  Prune(&expected);
  const absl::StatusOr<Json> read = ParseObjects(kPod, "pod");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->dump(), expected.dump());
  EXPECT_EQ(read->at("metadata").at("labels").at("env"), "prod") << "a label is no part of a container";
  EXPECT_EQ(read->at("status").at("containerStatuses").at(0).at("image"), "kept");
}

TEST(ObjectJson, ListOfObjects_IsReadWithoutTheirUnreadParts) {
  Json expected = *ParseJson(kPod, "pod");
  Prune(&expected);
  std::string list = R"({"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[)";
  for (int i = 0; i < 200; ++i) absl::StrAppend(&list, i == 0 ? "" : ",", kPod);
  absl::StrAppend(&list, "]}");
  const absl::StatusOr<Json> read = ParseObjects(list, "list");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->at("items").size(), 200U);
  for (const Json& item : read->at("items")) EXPECT_EQ(item, expected);
}

TEST(ObjectJson, TextThatIsNoObject_IsReadAsByTheOtherParser) {
  const std::string deep = absl::StrCat(R"({"a":)", std::string(300, '['), std::string(300, ']'), "}");
  for (const std::string& text :
       {std::string("[1, 2]"), std::string("7"), std::string(R"("text")"), std::string(""), std::string("{"),
        std::string(R"({"a": 1} x)"), std::string(R"({"a": 123456789012345678901234567890})"),
        std::string(R"({"a": tru})"), std::string(R"({"a": nul})"), std::string("{\"a\": \"\xff\"}"),
        std::string(R"({"a": 1e999})"), deep}) {
    const absl::StatusOr<Json> read = ParseObjects(text, "text");
    const absl::StatusOr<Json> other = ParseJsonCut(text, "text");
    EXPECT_EQ(read.status(), other.status()) << text;
    if (read.ok() && other.ok()) {
      EXPECT_EQ(*read, *other) << text;
    }
  }
}

// Changed at random bytes, the text is read as by the other parser, or is damaged where nothing is read.
TEST(ObjectJson, DamagedText_NeverGivesAnotherValue) {
  std::mt19937 random(1);
  int read_both = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = kPod;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
      text[random() % text.size()] = "{}[]\",:\\0x\xc3 "[random() % 13];
    }
    const absl::StatusOr<Json> read = ParseObjects(text, "pod");
    absl::StatusOr<Json> other = ParseJsonCut(text, "pod");
    if (!other.ok()) {
      continue;  // the damage may be in what is left out
    }
    ASSERT_TRUE(read.ok()) << text;
    ++read_both;
    Prune(&*other);
    EXPECT_EQ(*read, *other) << text;
  }
  EXPECT_GT(read_both, 3'000);
}

}  // namespace
}  // namespace muster
