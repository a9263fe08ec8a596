// Messages of the public API -> the core's descriptions, field by field (SPEC S-6). Pure functions; what is wrong goes
// into `violations`, with `path` before each field, and the result must then not be used.
#ifndef MUSTER_SERVICE_RPC_READING_H_
#define MUSTER_SERVICE_RPC_READING_H_

#include <string>

#include "proto/muster/v1/decisions.pb.h"
#include "service/rpc/errors.h"
#include "state/api/commands.h"
#include "state/base/quantity.h"

namespace muster {

// What is declared of a gang; namespace and name are read by ReadGangName.
void ReadDeclaration(const v1::GangSpec& gang, const std::string& path, Violations* violations, GangDeclaration* out);
// The namespace ("default" when empty) and name of a gang.
void ReadGangName(const v1::GangSpec& gang, const std::string& path, Violations* violations, std::string* name_space,
                  std::string* name);
// The group that it declares names the gang itself, `id`, too. Looked at only where nothing else is wrong.
void CheckGroup(const GangDeclaration& gang, const std::string& id, const std::string& path, Violations* violations);
// `name_space`: the pod's.
void ReadShape(const v1::PodShape& shape, const std::string& path, const std::string& name_space,
               Violations* violations, PodTemplate* out);
// `name_space`: of pods that name none.
void ReadPod(const v1::PodFacts& pod, const std::string& path, int64_t now_ms, Violations* violations,
             PodDescription* out, absl::string_view name_space = "default");
// Quantities as Kubernetes writes them, by resource. What is asked for is rounded up, what a node offers down.
[[nodiscard]] ResourceList ReadAmounts(const google::protobuf::Map<std::string, std::string>& amounts,
                                       const std::string& path, Violations* violations,
                                       Rounding rounding = Rounding::kUp);
// The queue by itself; whether the tree is right is the core's to say.
[[nodiscard]] QueueSpec ReadQueue(const v1::QueueSpec& queue, const std::string& path, Violations* violations);
void ReadNode(const v1::NodeFacts& node, const std::string& path, Violations* violations, NodeDescription* out);
// The members of a submission, from its member sets and pods; those of manifests are added by the caller first.
// `before` stands before each field. Names, UIDs and subgroups of all of them are compared.
void ReadMembers(const v1::SubmitGangRequest& request, const std::string& before, const std::string& id, int64_t now_ms,
                 Violations* violations, SubmitGang* out);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_READING_H_
