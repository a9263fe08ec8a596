// Parses objects in manifest files.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/dialects.h"

namespace muster {
namespace {

absl::Status ReadObject(Json object, const std::string& path, int64_t now_ms, Facts* facts) {
  const auto wrong = [&](const char* key, const std::string& value, absl::string_view expected) {
    return absl::InvalidArgumentError(absl::StrCat(path, key, ": \"", value, "\"; expected ", expected));
  };
  const std::string kind = StringOrEmpty(object, "kind");
  const std::string version = StringOrEmpty(object, "apiVersion");
  if (kind == "Node") {
    absl::StatusOr<NodeDescription> node = ParseNode(object);
    if (!node.ok()) return absl::InvalidArgumentError(absl::StrCat(path, node.status().message()));
    // A kubelet always reports the number of pods; hand-written nodes rarely contain it.
    if (!node->allocatable.empty()) node->allocatable.try_emplace("pods", 110);
    facts->nodes.push_back(*std::move(node));
    return absl::OkStatus();
  }
  if (kind == "Pod") {
    Json& metadata = object["metadata"];
    if (!metadata.is_object()) return wrong("metadata", TypeName(metadata), "an object with a name");
    if (StringOrEmpty(metadata, "uid").empty()) {
      const std::string name_space = StringOrEmpty(metadata, "namespace");
      metadata["uid"] = absl::StrCat(name_space.empty() ? "default" : name_space, "/", StringOrEmpty(metadata, "name"));
    }
    absl::StatusOr<PodDescription> pod = ParsePod(object);
    if (!pod.ok()) return absl::InvalidArgumentError(absl::StrCat(path, pod.status().message()));
    if (pod->created_ms == 0) pod->created_ms = now_ms;
    facts->pods.push_back(*std::move(pod));
    return absl::OkStatus();
  }
  if (kind == "PodGroup") {
    GangDialect dialect = GangDialect::kPodGroupSigs;
    if (version == "scheduling.x-k8s.io/v1alpha1") {
      dialect = GangDialect::kPodGroupX;
    } else if (absl::StartsWith(version, "scheduling.k8s.io/")) {
      dialect = GangDialect::kNative;
    } else if (version == "scheduling.run.ai/v2alpha2") {
      dialect = GangDialect::kKai;
    } else if (version == "scheduling.volcano.sh/v1beta1") {
      dialect = GangDialect::kVolcano;
    } else if (version != "scheduling.sigs.k8s.io/v1alpha1") {
      return wrong("apiVersion", version,
                   "scheduling.sigs.k8s.io/v1alpha1, scheduling.x-k8s.io/v1alpha1, scheduling.run.ai/v2alpha2, "
                   "scheduling.volcano.sh/v1beta1 or scheduling.k8s.io/...");
    }
    absl::StatusOr<GangObject> group = ParsePodGroup(object, dialect);
    if (!group.ok()) return absl::InvalidArgumentError(absl::StrCat(path, group.status().message()));
    if (group->created_ms == 0) group->created_ms = now_ms;
    facts->gangs.push_back(*std::move(group));
    return absl::OkStatus();
  }
  return wrong("kind", kind, "Node, Pod, PodGroup or List");
}

}  // namespace

absl::Status ReadManifest(absl::string_view json, int64_t now_ms, Facts* facts) {
  absl::StatusOr<Json> parsed = ParseJson(json, "manifest");
  if (!parsed.ok()) return parsed.status();
  if (!parsed->is_object())
    return absl::InvalidArgumentError(absl::StrCat("is a ", TypeName(*parsed), "; expected an object"));
  // "List", and the PodList, NodeList, ... of kubectl get -o json.
  if (const Json& items = Child(*parsed, "items"); items.is_array()) {
    size_t i = 0;
    for (const Json& item : items) {
      if (absl::Status read = ReadObject(item, absl::StrCat("items[", i++, "]."), now_ms, facts); !read.ok())
        return read;
    }
    return absl::OkStatus();
  }
  return ReadObject(*std::move(parsed), "", now_ms, facts);
}

}  // namespace muster
