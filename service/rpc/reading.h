// Converts messages of the public API into the core's descriptions, field by field (SPEC S-6). Pure functions. Problems
// are added to `violations` with `path` before each field; then the result must not be used.
#ifndef MUSTER_SERVICE_RPC_READING_H_
#define MUSTER_SERVICE_RPC_READING_H_

#include <google/protobuf/field_mask.pb.h>

#include <string>
#include <vector>

#include "muster/v1/facts.pb.h"
#include "muster/v1/gang.pb.h"
#include "muster/v1/placement.pb.h"
#include "muster/v1/queue.pb.h"
#include "service/rpc/errors.h"
#include "state/api/commands.h"
#include "state/base/quantity.h"

namespace muster {

// Reads the declaration of a gang; ReadGangName reads its namespace and name.
void ReadDeclaration(const v1::GangSpec& gang, const std::string& path, Violations* violations, GangDeclaration* out);
// The fields of a declaration that an update replaces; empty: all. A path that names none is a violation of `field`.
[[nodiscard]] std::vector<GangField> ReadGangMask(const google::protobuf::FieldMask& mask, const std::string& field,
                                                  Violations* violations);
// The gang's namespace and name, and the fields of the mask. REQUIRES: ReadGangMask found no violation.
[[nodiscard]] v1::GangSpec MaskGang(const v1::GangSpec& gang, const google::protobuf::FieldMask& mask);
// Reads the namespace ("default" when empty) and name of a gang.
void ReadGangName(const v1::GangSpec& gang, const std::string& path, Violations* violations, std::string* name_space,
                  std::string* name);
// Checks that the declared group names the gang itself, `id`, too. REQUIRES: no other violations.
void CheckGroup(const GangDeclaration& gang, const std::string& id, const std::string& path, Violations* violations);
// `name_space`: the pod's.
void ReadShape(const v1::PodShape& shape, const std::string& path, const std::string& name_space,
               Violations* violations, PodTemplate* out);
// Requirements on labels of pods or namespaces, with operators IN, NOT_IN, EXISTS and DOES_NOT_EXIST.
[[nodiscard]] std::vector<SelectorRequirement> ReadLabelSelector(
    const google::protobuf::RepeatedPtrField<v1::SelectorRequirement>& from, const std::string& path,
    Violations* violations);
// `name_space`: the default for pods without one.
void ReadPod(const v1::PodFacts& pod, const std::string& path, int64_t now_ms, Violations* violations,
             PodDescription* out, absl::string_view name_space = "default");
// Parses quantities in Kubernetes' notation, by resource. Requests are rounded up, capacities of a node down.
[[nodiscard]] ResourceList ReadAmounts(const google::protobuf::Map<std::string, std::string>& amounts,
                                       const std::string& path, Violations* violations,
                                       Rounding rounding = Rounding::kUp);
// Checks the value of a label, and that of a taint.
void CheckLabelValue(const std::string& value, const std::string& field, Violations* violations);
[[nodiscard]] Labels ReadLabelMap(const google::protobuf::Map<std::string, std::string>& labels,
                                  const std::string& path, Violations* violations);
// Reads one queue by itself; the core checks the tree.
[[nodiscard]] QueueSpec ReadQueue(const v1::QueueSpec& queue, const std::string& path, Violations* violations);
void ReadNode(const v1::NodeFacts& node, const std::string& path, Violations* violations, NodeDescription* out);
// Reads the members of a submission from its member sets and pods. The caller adds those of manifests first. `before`
// is put before each field. Checks names, UIDs and subgroups of all members.
void ReadMembers(const v1::SubmitGangRequest& request, const std::string& before, const std::string& id, int64_t now_ms,
                 Violations* violations, SubmitGang* out);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_READING_H_
