// Submissions as messages, and the watch of all of them.
#ifndef MUSTER_SERVICE_RPC_SUBMISSION_MAPPING_H_
#define MUSTER_SERVICE_RPC_SUBMISSION_MAPPING_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/strings/string_view.h"
#include "muster/v1/placement.pb.h"
#include "state/api/effects.h"

namespace muster {

class RpcGate;

[[nodiscard]] v1::Submission ToMessage(const std::string& id, const SubmissionReply& reply);
// Whether the gang ("namespace/name") is in the namespace; an empty namespace has all.
[[nodiscard]] bool IsIn(absl::string_view name_space, absl::string_view gang);
// Streams the submissions of the namespace ("": all) that have not ended, then their changes.
[[nodiscard]] grpc::ServerWriteReactor<v1::SubmissionEvent>* BeginSubmissionsWatch(RpcGate* gate,
                                                                                   grpc::CallbackServerContext* context,
                                                                                   const std::string& name_space);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_SUBMISSION_MAPPING_H_
