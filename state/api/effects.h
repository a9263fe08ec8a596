// The outputs of the core: replies, records to store, effects to carry out, and answers to held calls. Plain values.
#ifndef MUSTER_STATE_API_EFFECTS_H_
#define MUSTER_STATE_API_EFFECTS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "state/api/commands.h"
#include "state/base/reason.h"

namespace muster {

struct PodRef {
  std::string name_space;
  std::string name;
  std::string uid;
};

// --- effects ---
struct BindPod {  // create the binding; report with BindingOutcome
  PodRef pod;
  std::string node;
  int64_t deadline_ms = 0;  // no request may be sent after this time
};
struct ActivatePod {  // make kube-scheduler try the pod again (K-7)
  PodRef pod;
  bool remove_gate = false;    // by removing Muster's scheduling gate; otherwise by an annotation
  std::string nominated_node;  // a hint to set first; empty: none
  int64_t plan = 0;
  // The new message of the pod's condition PodScheduled; empty: unchanged. It replaces the message about the last
  // failure, because kube-scheduler writes nothing if it finds the same failure again.
  std::string note;
};
struct MarkTimedOut {  // G-6: gang.scheduling.koordinator.sh/timeout=true
  PodRef pod;
};
struct EvictPod {
  PodRef pod;
  std::string note;
};
struct EmitPodEvent {  // an Event on the pod
  PodRef pod;
  bool warning = false;
  Reason reason;
  bool urgent = true;  // false: another pod of the gang shows the reason, so this Event may wait behind all others
  // D-7: the Job or other owner that gets the same Event, by the name of its gang and its UID; empty: none.
  std::string owner_gang;
  std::string owner_uid;
};
using Effect = std::variant<BindPod, ActivatePod, MarkTimedOut, EvictPod, EmitPodEvent>;

// A record to upsert, or to delete if `value` is empty (SPEC S-2). Kind and key together identify it.
struct Record {
  std::string kind;         // the kind of object; see state/persistence
  std::string key;          // unique among the records of the kind
  std::string incarnation;  // UID of the object, as its name may be reused; empty: the key is sufficient
  int32_t format = 1;       // of `value`
  std::string value;
};
// "kind/key".
[[nodiscard]] inline std::string RecordName(const Record& record) { return record.kind + "/" + record.key; }

// The answer to one held call.
struct HoldAnswer {
  HoldToken token = 0;
  bool permitted = false;
  Reason reason;
};

// --- immediate replies ---
struct FilterReply {
  enum class Kind : uint8_t {
    kPass,        // every offered node except `guarded`
    kSingleNode,  // exactly `node`
    kRefuse,      // none
  };
  Kind kind = Kind::kRefuse;
  std::string node;
  std::vector<std::string> guarded;
  Reason reason;
};
struct PreemptReply {
  std::vector<std::string> nodes;  // the remaining candidates
};
struct PermitReply {
  enum class Kind : uint8_t { kPermit, kWait, kReject };
  Kind kind = Kind::kReject;
  int64_t wait_ms = 0;  // kWait: the time left
  Reason reason;
  // kWait, for the first member at the barrier: UIDs of the other members of the gang and of its group that the caller
  // should try now, before pods of other gangs (G-4, ActiveGang).
  std::vector<std::string> activate;
};
struct PreFilterReply {
  bool passes = false;
  Reason reason;
};
struct NodesReply {
  struct Scored {
    std::string node;
    int32_t score = 0;  // 0 to 1000
  };
  struct Refused {
    std::string node;
    Reason reason;
  };
  std::vector<Scored> nodes;     // best first
  std::vector<Refused> refused;  // of the nodes that were offered by name
  Reason reason;                 // if `nodes` is empty
};
struct FactsReply {
  int64_t version = 0;  // the current one
};
// The state of a submitted gang.
struct SubmissionReply {
  enum class State : uint8_t { kWaiting, kPlanned, kConfirmed, kAbandoned, kExpired };
  struct Place {
    std::string uid;
    std::string name;
    std::string node;
  };
  State state = State::kWaiting;
  std::string gang;           // "namespace/name"
  int64_t plan = 0;           // kPlanned: the id for ConfirmGang
  std::vector<Place> places;  // kPlanned, kConfirmed
  int64_t expires_ms = 0;     // kWaiting, kPlanned
  uint64_t fingerprint = 0;   // of the request that submitted it
  Reason reason;              // why it waits, or how it ended
};
using Reply = std::variant<std::monostate, FilterReply, PreemptReply, PermitReply, PreFilterReply, NodesReply,
                           FactsReply, SubmissionReply>;
[[nodiscard]] absl::string_view ToString(SubmissionReply::State state);

struct Outcome {
  absl::Status status;  // not OK: the command was refused and made none of its changes
  Reply reply;
  bool reply_after_commit = true;  // the reply waits until the records are durable; false: it promises nothing
  std::vector<Effect> effects;
  std::vector<Record> records;
  std::vector<HoldAnswer> answers;
};

}  // namespace muster

#endif  // MUSTER_STATE_API_EFFECTS_H_
