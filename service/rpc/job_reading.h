// A gang with its members, as SubmitGang and PlanGang are told it -> the core's command (SPEC S-6).
#ifndef MUSTER_SERVICE_RPC_JOB_READING_H_
#define MUSTER_SERVICE_RPC_JOB_READING_H_

#include <cstdint>
#include <string>

#include "proto/muster/v1/decisions.pb.h"
#include "service/rpc/errors.h"
#include "service/rpc/rpc_server.h"
#include "state/api/commands.h"

namespace muster {

// Fills all of `out` but its id, which must be there, its TTL and its fingerprint. What is wrong goes into `violations`
// with `path` ("" or "job.") before each field; then `out` must not be used. `manifests` may be nullptr.
void ReadJob(const v1::SubmitGangRequest& request, const std::string& path, const ManifestReader& manifests,
             int64_t now_ms, Violations* violations, SubmitGang* out);

// Whether so many pods can meet the minimum, and each is in one of the gang's subgroups. Looked at only where nothing
// else is wrong.
void CheckMinimum(const v1::SubmitGangRequest& request, const std::string& path, const SubmitGang& job,
                  Violations* violations);

// For a question only: adds a pod for each member that does not exist yet and of which it is declared what it asks for
// (P-7), "GANG-SUBGROUP-0" and so on. What a submitted gang starts with are its pods.
void AddMembersToCome(SubmitGang* job);

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_JOB_READING_H_
