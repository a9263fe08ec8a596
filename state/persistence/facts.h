// What was told over gRPC as records: there nobody else keeps it (SPEC S-2). In Kubernetes it is the API server's.
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

struct KeptPod {
  PodDescription facts;
  bool submitted = false;  // came with a whole gang that is not confirmed yet (S-1)
};

// A whole gang that was submitted.
struct KeptSubmission {
  std::string id;
  std::string gang;  // "namespace/name"
  uint64_t fingerprint = 0;
  int64_t ttl_ms = 0;
  bool ended = false;
  SubmissionReply reply;  // ended: how
  int64_t sequence = 0;   // ended: in which order
};

// Kinds of records that an announcer's snapshot says anew: its nodes, and that it spoke. Without them nothing is placed
// before one comes.
[[nodiscard]] std::vector<std::string> AnnouncedKinds();

// --- writing ---
void WriteNodeRecord(const NodeDescription& node, Step* step);
void DeleteNodeRecord(absl::string_view name, Step* step);
void WritePodRecord(const PodDescription& pod, bool submitted, Step* step);
void DeletePodRecord(absl::string_view uid, Step* step);
void WriteObjectRecord(const GangObject& object, Step* step);
void DeleteObjectRecord(GangDialect dialect, absl::string_view name_space, absl::string_view name, Step* step);
// Of a gang created over gRPC beside Kubernetes.
void WriteCreatedRecord(const GangObject& object, Step* step);
void DeleteCreatedRecord(absl::string_view name_space, absl::string_view name, Step* step);
// `stale_since_ms`: since when it is silent; 0: it is not.
void WriteAnnouncerRecord(absl::string_view source, int64_t version, int64_t stale_since_ms, Step* step);
void WriteSubmissionRecord(const KeptSubmission& submission, Step* step);
void DeleteSubmissionRecord(absl::string_view id, Step* step);

// What an earlier process was told.
struct KeptFacts {
  std::vector<NodeDescription> nodes;
  std::vector<KeptPod> pods;
  std::vector<GangObject> objects;
  std::vector<KeptSubmission> submissions;
  std::vector<GangObject> created;  // gangs created over gRPC beside Kubernetes, which is not asked for them
  std::string announcer;
  int64_t version = 0;
  int64_t stale_since_ms = 0;  // since when the announcer is silent; 0: it was not

  // Whether it was written without Kubernetes.
  [[nodiscard]] bool any() const {
    return !nodes.empty() || !pods.empty() || !objects.empty() || !submissions.empty() || !announcer.empty();
  }
  // The record, if it is of such a kind: `*known`. InvalidArgument, without the record's name: it cannot be read.
  [[nodiscard]] absl::Status Read(const Record& record, bool* known);
};

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_FACTS_H_
