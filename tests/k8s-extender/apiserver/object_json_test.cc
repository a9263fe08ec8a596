// What informers read of the API server's JSON, beside the parser of everything else (SPEC K-10).
#include "k8s-extender/apiserver/object_json.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

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
  static const std::set<std::string> kUnreadOfStatuses = {"containerID", "image", "imageID",
                                                          "lastState",   "state", "volumeMounts"};
  if (value->is_array()) {
    for (Json& each : *value) Prune(&each, within);
  }
  if (!value->is_object()) return;
  const bool container = within == "containers" || within == "initContainers" || within == "ephemeralContainers";
  const bool status =
      within == "containerStatuses" || within == "initContainerStatuses" || within == "ephemeralContainerStatuses";
  for (auto field = value->begin(); field != value->end();) {
    const bool unread =
        (within == "metadata" && field.key() == "managedFields") || (within == "spec" && field.key() == "volumes") ||
        (within == "status" && field.key() == "images") || (container && kUnread.contains(field.key())) ||
        (status && kUnreadOfStatuses.contains(field.key()));
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
  "initContainers": [{"name": "init", "command": ["sh", "-c", "true"], "restartPolicy": "Always"}],
  "volumes": [{"name": "token"}]}, "volumes": "kept", "status": {"phase": "Running", "images": [{"names": ["x"]}],
  "containerStatuses": [{"name": "main", "image": "i:1", "state": {"running": {}}, "resources": {"requests":
  {"cpu": "2"}}}], "initContainerStatuses": [{"name": "init", "lastState": {}, "allocatedResources": {"cpu": "3"}}]}})";

TEST(ObjectJson, Pod_IsReadWithoutItsUnreadParts) {
  Json expected = *ParseJson(kPod, "pod");
  Prune(&expected);
  const absl::StatusOr<Json> read = ParseObjects(kPod, "pod");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->dump(), expected.dump());
  EXPECT_EQ(read->at("metadata").at("labels").at("env"), "prod") << "a label is no part of a container";
  EXPECT_EQ(read->at("volumes"), "kept") << "only those of a spec are left out";
  const Json& status = read->at("status");
  EXPECT_EQ(status.at("containerStatuses").at(0).at("resources").at("requests").at("cpu"), "2");
  EXPECT_EQ(status.at("initContainerStatuses").at(0).at("allocatedResources").at("cpu"), "3");
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

// What ReadList calls, in order: "head N" with the number of its fields, then each item.
struct ListCalls {
  absl::Status status;
  std::vector<std::string> heads;
  std::vector<Json> items;
};

ListCalls Read(const std::string& text, size_t stop_after = SIZE_MAX) {
  ListCalls calls;
  calls.status = ReadList(
      text, "list",
      [&](const Json& head) {
        EXPECT_TRUE(calls.items.empty());
        calls.heads.push_back(head.dump());
        return head.contains("refused") ? absl::NotFoundError("refused") : absl::OkStatus();
      },
      [&](const Json& item) {
        calls.items.push_back(item);
        return calls.items.size() < stop_after;
      });
  return calls;
}

TEST(ListOfObjects, Read_HeadFirstThenEachItem) {
  Json pod = *ParseJson(kPod, "pod");
  Prune(&pod);
  // The head comes first, wherever it stands.
  const std::string text = absl::StrCat(R"({"items":[)", kPod, R"(,{"second":true}],"kind":"PodList"})");
  const ListCalls calls = Read(text);
  EXPECT_TRUE(calls.status.ok()) << calls.status;
  EXPECT_EQ(calls.heads, std::vector<std::string>{R"({"items":[],"kind":"PodList"})"});
  EXPECT_EQ(calls.items, (std::vector<Json>{pod, {{"second", true}}}));
  const ListCalls stopped = Read(text, 1);
  EXPECT_TRUE(absl::IsCancelled(stopped.status)) << stopped.status;
  EXPECT_EQ(stopped.items.size(), 1U);
}

TEST(ListOfObjects, WithoutItems_HeadOnly) {
  for (const std::string& text : {std::string(R"({"items":null})"), std::string(R"({"kind":"x"})"),
                                  std::string(R"({"items":{"a":1}})"), std::string(R"({"refused":1,"items":[{}]})")}) {
    const ListCalls calls = Read(text);
    EXPECT_EQ(calls.heads.size(), 1U) << text;
    EXPECT_TRUE(calls.items.empty()) << text;
    EXPECT_EQ(absl::IsNotFound(calls.status), text.find("refused") != std::string::npos) << calls.status;
  }
}

TEST(ListOfObjects, NestedTooDeeply_ItemIsCutAndAllOthersAreRead) {
  const std::string deep = absl::StrCat(R"({"a":)", std::string(300, '['), std::string(300, ']'), R"(,"b":1})");
  const ListCalls calls = Read(absl::StrCat(R"({"kind":"x","items":[{"first":1},)", deep, R"(,{"last":1}]})"));
  EXPECT_TRUE(calls.status.ok()) << calls.status;
  EXPECT_EQ(calls.heads.size(), 1U) << "the next page is requested once";
  ASSERT_EQ(calls.items.size(), 3U) << "each once";
  EXPECT_EQ(calls.items[0], (Json{{"first", 1}}));
  EXPECT_EQ(calls.items[1].at("b"), 1);
  EXPECT_EQ(calls.items[2], (Json{{"last", 1}}));
}

// Numbers, texts and lists are no objects, and the number is one that simdjson does not read.
TEST(ListOfObjects, ItemsOfAnyKind_AreRead) {
  const ListCalls calls = Read(R"({"kind":"x","items":[{"a":123456789012345678901234567890},[1,{"b":2}],"c",3,null]})");
  EXPECT_TRUE(calls.status.ok()) << calls.status;
  EXPECT_EQ(
      calls.items,
      (std::vector<Json>{{{"a", 123456789012345678901234567890.0}}, Json::array({1, {{"b", 2}}}), "c", 3, nullptr}));
}

TEST(ListOfObjects, NoJson_IsRefused) {
  for (const char* text : {"", "{", "[1]", "7", "not json", R"({"kind":"x","items":[{"a":1},{"a":]})",
                           R"({"kind":"x","items":[{"a":1}] x)", R"({"kind":"x","items":[{"a":1}]} x)"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Read(text).status)) << text << Read(text).status;
  }
}

TEST(ListOfObjects, Damaged_ErrorOrTheSameItems) {
  std::mt19937 random(1);
  const std::string whole = absl::StrCat(R"({"kind":"x","items":[)", kPod, ",", kPod, "]}");
  int damaged = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string text = whole;
    text[random() % text.size()] = "{}[]\",:\\0x\xc3 "[random() % 13];
    const ListCalls calls = Read(text);
    absl::StatusOr<Json> other = ParseJsonCut(text, "list");
    if (!other.ok()) {
      damaged += calls.status.ok() ? 0 : 1;
      continue;  // the damage may be in what is left out
    }
    ASSERT_TRUE(calls.status.ok()) << calls.status << text;
    Prune(&*other);
    const Json& items = Child(*other, "items");
    EXPECT_EQ(Json(calls.items), items.is_array() ? items : Json::array()) << text;
  }
  EXPECT_GT(damaged, 500);
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
