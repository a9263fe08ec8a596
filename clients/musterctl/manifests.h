// Kubernetes' own YAML, as files have it -> JSON objects for the API to read.
#ifndef MUSTER_CLIENTS_MUSTERCTL_MANIFESTS_H_
#define MUSTER_CLIENTS_MUSTERCTL_MANIFESTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/muster/v1/muster.pb.h"

namespace muster {

// The objects of `path` ("-": standard input). InvalidArgument or NotFound names the file and the place.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> ReadManifests(const std::string& path);

// The objects of a text: each document, or each item of a List. Empty documents are left out.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> ManifestsOf(const std::string& yaml);

// Puts an object into `name_space` where it names none. InvalidArgument when it names another and `strict`.
[[nodiscard]] absl::Status SetNamespace(const std::string& name_space, bool strict, std::string* manifest);

// Of a Job (batch/v1) the pods that run at once, "NAME-0" and so on; of anything else the object itself.
// InvalidArgument: it has no pod template, or a parallelism that is no number.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> PodsOf(const std::string& manifest);

// A Node, as `kind` says.
[[nodiscard]] bool IsNode(const std::string& manifest);

// A Queue of muster.dev, as `kind` and `apiVersion` say.
[[nodiscard]] bool IsQueue(const std::string& manifest);
// What it declares. InvalidArgument names the field, the value and what was expected; whether amounts can be read is
// musterd's to say.
[[nodiscard]] absl::StatusOr<v1::QueueSpec> QueueOf(const std::string& manifest);

// JSON as block-style YAML that reads back as the same values.
[[nodiscard]] std::string YamlOf(const std::string& json);

// "Pod default/train-0", as messages name it.
[[nodiscard]] std::string DescribeManifest(const std::string& json);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_MANIFESTS_H_
