// Carries the core's effects to the API server (SPEC K-4, K-7, K-11, G-14): bindings first, then calls and marks, then
// events and status, so that what users wait for is never behind what they only read.
#ifndef MUSTER_K8S_EXTENDER_ACTUATOR_ACTUATOR_H_
#define MUSTER_K8S_EXTENDER_ACTUATOR_ACTUATOR_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "k8s-extender/apiserver/client.h"
#include "state/api/port.h"
#include "state/views/view.h"
#include "support/clock.h"
#include "support/json.h"
#include "support/sync.h"

namespace muster {

struct ActuatorOptions {
  int workers = 16;              // connections that bind and call
  int background_workers = 2;    // connections for events and status
  size_t max_background = 4096;  // events that wait; past it the oldest is dropped
  double calls_per_s = 1000;     // K-7: wakes are rate-limited
  double events_per_s = 20;
  absl::Duration first_pause = absl::Milliseconds(100);  // before what failed is tried again, bindings not;
  absl::Duration longest_pause = absl::Seconds(10);      // it doubles up to this
  int event_tries = 10;     // of an event at a server that is overloaded or away, in half a minute; meanwhile all wait
  int ill_event_tries = 3;  // of one that a server cannot take for a reason of its own (5xx); the others go before it
  // Of what the API server says of it itself. Servers say a second or so, a PodDisruptionBudget ten.
  absl::Duration longest_told = absl::Seconds(30);
  const Clock* clock = &ProcessClock();  // by which the core makes the deadlines of bindings
};

struct ActuatorStats {
  uint64_t bound = 0;
  uint64_t bind_retries = 0;
  uint64_t bind_refused = 0;
  uint64_t calls = 0;
  uint64_t retries = 0;         // of all but bindings, that the API server did not take
  uint64_t failed = 0;          // effects that the API server will not have, however often
  uint64_t dropped_events = 0;  // too many waited, or the API server did not take them
  size_t waiting = 0;           // bindings, calls, events to send; statuses that the API server does not have yet
};

// Thread-safe.
class Actuator : public EffectSink {
 public:
  Actuator(KubeClient* client, ActuatorOptions options);
  ~Actuator() override;

  // `port` receives the outcome of every binding.
  void Start(DecisionPort* port);
  // Sends nothing more; what was not sent is dropped. What is under way goes on: see KubeClient::Stop.
  void Halt();
  // Halts, and waits for what is under way.
  void Stop();
  void Carry(std::vector<Effect> effects) override;
  // Writes the PodGroup's status soon; the latest view of a gang wins.
  void UpdateStatus(const GangView& view);
  // The gang, "namespace/name", is gone.
  void ForgetStatus(const std::string& gang);
  [[nodiscard]] ActuatorStats stats() const;

 private:
  static constexpr absl::Duration kTimeout = absl::Seconds(10);  // of one request to the API server
  struct Work {
    Effect effect;
    int attempts = 0;
  };
  // What becomes of an effect: a call, a mark or an eviction is tried until the pod has it, or is gone.
  struct Verdict {
    enum class Kind : uint8_t { kDone, kAgain, kGiveUp };
    Kind kind = Kind::kDone;
    absl::Duration pause;  // kAgain: at least, as the API server said
    std::string why;       // kAgain; of an event, kGiveUp too
  };
  [[nodiscard]] static Verdict Done() { return {}; }
  [[nodiscard]] static Verdict GiveUp() { return {Verdict::Kind::kGiveUp, absl::ZeroDuration(), ""}; }
  // What there is to do to a pod, one at a time of each kind: index of the effect, UID.
  using Key = std::pair<size_t, std::string>;
  struct Wanted {
    Effect effect;         // as it was wanted last
    bool running = false;  // a worker tries it; otherwise it is in calls_ or later_
    bool anew = false;     // it was wanted again meanwhile
  };
  struct Status {
    GangView view;
    absl::Time due = absl::InfinitePast();  // on the steady clock
    int attempts = 0;
  };
  struct Event {
    TellPod tell;
    int count = 0;  // how often it was said; 0: not sent yet
    int attempts = 0;
    bool alone = false;                     // it is this one that is not taken, not all
    absl::Time due = absl::InfinitePast();  // on the steady clock
  };
  // What a PodGroup's status was written to be.
  struct WrittenStatus {
    std::string uid;  // of the PodGroup: another of its name has nothing of it
    std::string body;
    bool timed_out = false;
  };
  // Where the API server has a pod that was to be bound.
  enum class Found : uint8_t { kBound, kElsewhere, kUnbound, kUnknown };

  void RunWorker();
  void RunBackground();
  [[nodiscard]] static Verdict Again(const absl::StatusOr<KubeResponse>& response);
  [[nodiscard]] static Key KeyOf(const Effect& effect);
  void Do(Work work);
  [[nodiscard]] Verdict Try(const Effect& effect);
  void DoBind(const BindPod& bind);
  [[nodiscard]] BindingOutcome TryToBind(const BindPod& bind);
  // Of a 409: the pod is another one, or gone; otherwise what was written was refused for a passing reason.
  [[nodiscard]] Verdict AfterConflict(const PodRef& pod, const KubeResponse& refused);
  void NoteRetry(const Work& work, const Verdict& verdict) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `why`: what is said of it, where the API server does not know better.
  [[nodiscard]] Found ReadBack(const BindPod& bind, std::string* why);
  [[nodiscard]] Verdict DoCall(const CallPod& call);
  [[nodiscard]] Verdict CallWithNote(const CallPod& call, Json patch);
  [[nodiscard]] Verdict DoMark(const MarkTimedOut& mark);
  [[nodiscard]] Verdict DoEvict(const EvictPod& evict);
  [[nodiscard]] absl::Duration PauseBefore(int attempts, const Verdict& verdict) const;
  // The first event that may be sent; else `next` is when one may, if that is earlier.
  [[nodiscard]] std::optional<size_t> DueEvent(absl::Time* next) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteEvent(Event event);
  [[nodiscard]] Verdict DoTell(Event* event);
  [[nodiscard]] static Verdict AfterRefusal(const absl::StatusOr<KubeResponse>& refused, Event* event);
  [[nodiscard]] std::optional<Status> TakeStatus(absl::Time* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteStatus(const Status& status);
  [[nodiscard]] static std::string StatusPath(const GangView& view);
  // kGiveUp: the PodGroup is gone.
  [[nodiscard]] Verdict AddConditions(const GangView& view, Json* patch);
  // `first`: it is not tried again; then it is logged what is refused.
  [[nodiscard]] Verdict DoStatus(const GangView& view, bool first);
  // `refused`, where given: with which status, of 403 and 409.
  [[nodiscard]] Verdict PatchPod(const PodRef& pod, KubeMethod method, const Json& patch, const char* subresource,
                                 int* refused = nullptr);
  void Pace(absl::Time* next, double per_s) ABSL_LOCKS_EXCLUDED(pace_mutex_);

  KubeClient* const client_;
  const ActuatorOptions options_;
  DecisionPort* port_ = nullptr;

  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Work> bindings_ ABSL_GUARDED_BY(mutex_);
  std::deque<Work> calls_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Key, Wanted> wanted_ ABSL_GUARDED_BY(mutex_);
  absl::btree_multimap<absl::Time, Work> later_ ABSL_GUARDED_BY(mutex_);  // by when, on the steady clock
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  absl::Time events_due_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // not before: the API server took none
  absl::btree_map<std::string, Status> status_ ABSL_GUARDED_BY(mutex_);   // by gang
  absl::btree_set<std::string> writing_ ABSL_GUARDED_BY(mutex_);          // gangs whose status a worker writes
  bool status_was_last_ ABSL_GUARDED_BY(mutex_) = false;                  // of what background workers took
  ActuatorStats stats_ ABSL_GUARDED_BY(mutex_);
  CondVar work_;        // for a worker: bindings, calls, a new time in later_
  CondVar background_;  // for a background worker: events, status

  Mutex pace_mutex_;
  absl::Time next_call_ ABSL_GUARDED_BY(pace_mutex_) = absl::InfinitePast();
  absl::Time next_event_ ABSL_GUARDED_BY(pace_mutex_) = absl::InfinitePast();
  Mutex series_mutex_;
  absl::flat_hash_map<std::string, int> series_ ABSL_GUARDED_BY(series_mutex_);
  absl::flat_hash_map<std::string, WrittenStatus> written_ ABSL_GUARDED_BY(series_mutex_);  // by gang
  std::vector<std::thread> threads_;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_ACTUATOR_ACTUATOR_H_
