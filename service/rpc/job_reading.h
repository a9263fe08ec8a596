// Converts a gang with its members, as SubmitGang and PlanGang receive it, into the core's command (SPEC S-6). Pure
// functions.
#ifndef MUSTER_SERVICE_RPC_JOB_READING_H_
#define MUSTER_SERVICE_RPC_JOB_READING_H_

#include <cstdint>
#include <string>

#include "muster/v1/placement.pb.h"
#include "service/rpc/errors.h"
#include "service/rpc/rpc_server.h"
#include "state/api/commands.h"

namespace muster {

// Fills `out` except its id (which must be set), its TTL and its fingerprint. Problems are added to `violations` with
// `path` ("" or "job.") before each field; then `out` must not be used. `manifests` may be nullptr.
void ReadJob(const v1::SubmitGangRequest& request, const std::string& path, const ManifestReader& manifests,
             int64_t now_ms, Violations* violations, SubmitGang* out);

// Checks that there are enough pods for the minimum and that each is in one of the gang's subgroups. REQUIRES: no other
// violations.
void CheckMinimum(const v1::SubmitGangRequest& request, const std::string& path, const SubmitGang& job,
                  Violations* violations);

// For questions only: adds a pod for each future member with declared requests (P-7), named "GANG-SUBGROUP-0" and so
// on. A submitted gang starts with its pods only.
void AddFutureMembers(SubmitGang* job);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_JOB_READING_H_
