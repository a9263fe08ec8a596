// JSON as the API server sends it, without those parts of objects that Muster never reads.
#ifndef MUSTER_K8S_EXTENDER_APISERVER_OBJECT_JSON_H_
#define MUSTER_K8S_EXTENDER_APISERVER_OBJECT_JSON_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/json.h"

namespace muster {

// As ParseJsonCut, without managedFields, the environment, mounts and probes of containers, the state of containers,
// the volumes of pods, and the images of nodes: of a usual pod more than half. What is left out is not checked either.
[[nodiscard]] absl::StatusOr<Json> ParseObjects(absl::string_view text, absl::string_view what);

// Reads a list as ParseObjects does, one item at a time. First calls `on_head` with the fields of the list, of which
// `items` is empty, and ends with its error. Then calls `on_item` for each item, in order, until it returns false,
// which is Cancelled. InvalidArgument: the text is no JSON, in what is read of it, or a field beside `items` is nested
// too deeply; `on_item` may have been called for some items. The memory that it needs is a few times the text, and
// what one item needs.
[[nodiscard]] absl::Status ReadList(std::string text, absl::string_view what,
                                    absl::FunctionRef<absl::Status(const Json& head)> on_head,
                                    absl::FunctionRef<bool(const Json& item)> on_item);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_OBJECT_JSON_H_
