// Reads Kubernetes manifests in YAML and converts them into JSON objects for the API.
#ifndef MUSTER_CLIENTS_MUSTERCTL_MANIFESTS_H_
#define MUSTER_CLIENTS_MUSTERCTL_MANIFESTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/queue.pb.h"

namespace muster {

// Reads the objects of `path` ("-": standard input). InvalidArgument or NotFound names the file and the position.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> ReadManifests(const std::string& path);

// The objects of a text: each document, or each item of a List. Empty documents are left out.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> ManifestsOf(const std::string& yaml);

// Sets the namespace of an object that has none. InvalidArgument if it has a different one and `strict` is set.
[[nodiscard]] absl::Status SetNamespace(const std::string& name_space, bool strict, std::string* manifest);

// For a Job (batch/v1): the pods that run at the same time, "NAME-0" and so on. For anything else: the object itself.
// InvalidArgument: no pod template, or a parallelism that is not a number.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> PodsOf(const std::string& manifest);

// Whether `kind` is Node.
[[nodiscard]] bool IsNode(const std::string& manifest);

// Whether `kind` and `apiVersion` are those of Muster's Queue.
[[nodiscard]] bool IsQueue(const std::string& manifest);
// Reads the declaration. InvalidArgument names the field, the value and what was expected. musterd validates the
// amounts.
[[nodiscard]] absl::StatusOr<v1::QueueSpec> QueueOf(const std::string& manifest);

// Converts JSON into block-style YAML that parses to the same values.
[[nodiscard]] std::string YamlOf(const std::string& json);

// "Pod default/train-0", as in messages.
[[nodiscard]] std::string DescribeManifest(const std::string& json);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_MANIFESTS_H_
