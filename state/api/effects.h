// What comes out of the core: answers, records to keep, and effects to carry out.
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
  int64_t deadline_ms = 0;  // nothing may be sent after this time
};
struct CallPod {  // make the scheduler look at the pod again (K-7)
  PodRef pod;
  bool remove_gate = false;    // by taking our scheduling gate away; otherwise by an annotation
  std::string nominated_node;  // a hint to set first; empty: none
  int64_t plan = 0;
  // What its condition PodScheduled says from now on: it says why no node was found before, and kube-scheduler writes
  // nothing when it finds the same again. Empty: it stays.
  std::string note;
};
struct MarkTimedOut {  // G-6: gang.scheduling.koordinator.sh/timeout=true
  PodRef pod;
};
struct EvictPod {
  PodRef pod;
  std::string note;
};
struct TellPod {  // an Event on the pod
  PodRef pod;
  bool warning = false;
  Reason reason;
};
using Effect = std::variant<BindPod, CallPod, MarkTimedOut, EvictPod, TellPod>;

// A record to upsert, or to delete when `value` is empty (SPEC S-2). Kind and key together name it.
struct Record {
  std::string kind;         // what it is about; see state/records
  std::string key;          // of the thing, among those of its kind
  std::string incarnation;  // UID of what was meant: another of the same name is not it; empty: the key says it
  int32_t format = 1;       // of `value`
  std::string value;
};
// "kind/key".
[[nodiscard]] inline std::string RecordName(const Record& record) { return record.kind + "/" + record.key; }

// The end of one held call.
struct HoldAnswer {
  HoldToken token = 0;
  bool permitted = false;
  Reason reason;
};

// --- immediate replies ---
struct FilterReply {
  enum class Kind : uint8_t {
    kPass,     // every offered node except `guarded`
    kOneNode,  // exactly `node`
    kRefuse,   // none
  };
  Kind kind = Kind::kRefuse;
  std::string node;
  std::vector<std::string> guarded;
  Reason reason;
};
struct PreemptReply {
  std::vector<std::string> nodes;  // the candidates that remain
};
struct PermitReply {
  enum class Kind : uint8_t { kPermit, kWait, kReject };
  Kind kind = Kind::kReject;
  int64_t wait_ms = 0;  // kWait: the time left
  Reason reason;
  // kWait, of the first member at the barrier: UIDs of the gang's and its group's other members that should be tried
  // now, before pods of other gangs (G-4, ActiveGang).
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
  std::vector<Refused> refused;  // of those that were offered by name
  Reason reason;                 // when there is none
};
struct FactsReply {
  int64_t version = 0;  // that holds now
};
// How a submitted gang stands.
struct SubmissionReply {
  enum class State : uint8_t { kWaiting, kPlanned, kConfirmed, kAbandoned, kExpired };
  struct Place {
    std::string uid;
    std::string name;
    std::string node;
  };
  State state = State::kWaiting;
  std::string gang;           // "namespace/name"
  int64_t plan = 0;           // kPlanned: to be named when it is confirmed
  std::vector<Place> places;  // kPlanned, kConfirmed
  int64_t expires_ms = 0;     // kWaiting, kPlanned
  uint64_t fingerprint = 0;   // of the request that submitted it
  Reason reason;              // why it waits, or what became of it
};
using Reply = std::variant<std::monostate, FilterReply, PreemptReply, PermitReply, PreFilterReply, NodesReply,
                           FactsReply, SubmissionReply>;
[[nodiscard]] absl::string_view ToString(SubmissionReply::State state);

struct Outcome {
  absl::Status status;  // not OK: the command was refused; nothing of what it asked was done
  Reply reply;
  bool reply_promises = true;  // the reply waits until the records are durable; false: it says how things stand
  std::vector<Effect> effects;
  std::vector<Record> records;
  std::vector<HoldAnswer> answers;
};

}  // namespace muster

#endif  // MUSTER_STATE_API_EFFECTS_H_
