// Durable records of facts that Muster received over gRPC, because no other system stores them (SPEC S-2). In
// Kubernetes, the API server stores the facts. Not thread-safe.
#ifndef MUSTER_STATE_PERSISTENCE_FACTS_H_
#define MUSTER_STATE_PERSISTENCE_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/api/apply_context.h"
#include "state/api/effects.h"
#include "state/model/gang.h"
#include "state/model/node.h"
#include "state/model/pod.h"

namespace muster {

struct DurablePod {
  PodDescription facts;
  bool submitted = false;  // part of a submitted gang that is not confirmed yet (S-1)
};

// A submission.
struct DurableSubmission {
  std::string id;
  std::string gang;  // "namespace/name"
  uint64_t fingerprint = 0;
  int64_t ttl_ms = 0;
  bool ended = false;
  SubmissionReply reply;  // if ended: the result
  int64_t sequence = 0;   // if ended: the order in which submissions ended
};

// The kinds of records that an announcer's snapshot replaces: nodes and the announcer. Without these records, nothing
// is placed before a snapshot arrives.
[[nodiscard]] std::vector<std::string> SnapshotKinds();

// --- writing ---
void WriteNodeRecord(const NodeDescription& node, ApplyContext* ctx);
void DeleteNodeRecord(absl::string_view name, ApplyContext* ctx);
void WritePodRecord(const PodDescription& pod, bool submitted, ApplyContext* ctx);
void DeletePodRecord(absl::string_view uid, ApplyContext* ctx);
void WriteObjectRecord(const GangObject& object, ApplyContext* ctx);
void DeleteObjectRecord(GangDialect dialect, absl::string_view name_space, absl::string_view name, ApplyContext* ctx);
// The record of a gang created over gRPC while Kubernetes is the source of facts.
void WriteCreatedRecord(const GangObject& object, ApplyContext* ctx);
void DeleteCreatedRecord(absl::string_view name_space, absl::string_view name, ApplyContext* ctx);
// `stale_since_ms`: since when the announcer is silent; 0: it is not.
void WriteAnnouncerRecord(absl::string_view source, int64_t version, int64_t stale_since_ms, ApplyContext* ctx);
void WriteSubmissionRecord(const DurableSubmission& submission, ApplyContext* ctx);
void DeleteSubmissionRecord(absl::string_view id, ApplyContext* ctx);

// The facts that an earlier process received.
struct DurableFacts {
  std::vector<NodeDescription> nodes;
  std::vector<DurablePod> pods;
  std::vector<GangObject> objects;
  std::vector<DurableSubmission> submissions;
  std::vector<GangObject> created;  // gangs created over gRPC, which Kubernetes does not store
  std::string announcer;
  int64_t version = 0;
  int64_t stale_since_ms = 0;  // since when the announcer is silent; 0: it was not

  // Whether the store was written in gRPC-only use, without Kubernetes.
  [[nodiscard]] bool any() const {
    return !nodes.empty() || !pods.empty() || !objects.empty() || !submissions.empty() || !announcer.empty();
  }
  // Adds the record if its kind is one of these (`*known`). InvalidArgument, without the record's name: it cannot be
  // read.
  [[nodiscard]] absl::Status Read(const Record& record, bool* known);
};

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_FACTS_H_
