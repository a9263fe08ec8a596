// Sends the core's effects to the API server (SPEC K-4, K-7, K-11, G-14): bindings first, then activations and marks,
// then events and status. Events and status are informational and never delay bindings.
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
#include "k8s-extender/dialects/owners.h"
#include "state/api/port.h"
#include "state/views/view.h"
#include "support/clock.h"
#include "support/json.h"
#include "support/sync.h"

namespace muster {

struct ActuatorOptions {
  int workers = 16;                // connections for bindings and activations
  int background_workers = 4;      // connections for events and status
  size_t max_background = 16'384;  // events that wait; beyond it the oldest is dropped, those that are not urgent first
  double calls_per_second = 1000;  // K-7: activations are rate-limited
  double urgent_events_per_s = 500;
  double background_per_s = 20;                        // statuses, and events that are not urgent
  absl::Duration min_pause = absl::Milliseconds(100);  // before a failed effect is tried again, except bindings;
  absl::Duration max_pause = absl::Seconds(10);        // it doubles up to this
  // of an event while the server is overloaded or unreachable (half a minute); meanwhile all events wait
  int event_tries = 10;
  int refused_event_tries = 3;  // of an event that the server refuses with another 5xx; other events go first
  // Limit for the API server's own Retry-After. Servers usually say a second, a PodDisruptionBudget ten.
  absl::Duration max_server_pause = absl::Seconds(30);
  const Clock* clock = &ProcessClock();  // the clock of the core's binding deadlines
};

struct ActuatorStats {
  uint64_t bound = 0;
  uint64_t bind_retries = 0;
  uint64_t bind_refused = 0;
  uint64_t activations = 0;
  uint64_t retries = 0;         // of all effects but bindings that the API server did not accept
  uint64_t failed = 0;          // effects that the API server refused permanently
  uint64_t dropped_events = 0;  // too many waited, or the API server did not accept them
  size_t waiting = 0;           // bindings, activations and events to send; statuses that are not written yet
};

// Thread-safe.
class Actuator : public EffectSink {
 public:
  Actuator(KubeClient* client, ActuatorOptions options);
  ~Actuator() override;

  // `port` receives the outcome of every binding.
  void Start(DecisionPort* port);
  // Sends nothing more; waiting effects are dropped. Requests in flight continue: see KubeClient::Stop.
  void Halt();
  // Halts, and waits for requests in flight.
  void Stop();
  void Carry(std::vector<Effect> effects) override;
  // Writes the PodGroup's status soon; the latest view of a gang replaces earlier ones.
  void UpdateStatus(const GangView& view);
  // The gang "namespace/name" was removed.
  void RemoveStatus(const std::string& gang);
  [[nodiscard]] ActuatorStats stats() const;

 private:
  static constexpr absl::Duration kTimeout = absl::Seconds(10);  // of one request to the API server
  struct Work {
    Effect effect;
    int attempts = 0;
  };
  // The result of an effect. Activations, marks and evictions are tried until they succeed or the pod is gone.
  struct Verdict {
    enum class Kind : uint8_t { kDone, kRetry, kGiveUp };
    Kind kind = Kind::kDone;
    absl::Duration pause;  // kRetry: at least this long, as the API server requests
    std::string why;       // for kRetry; for an event, for kGiveUp too
  };
  [[nodiscard]] static Verdict Done() { return {}; }
  [[nodiscard]] static Verdict GiveUp() { return {Verdict::Kind::kGiveUp, absl::ZeroDuration(), ""}; }
  // Identifies the pending effect of one kind for one pod: index of the effect type, UID.
  using Key = std::pair<size_t, std::string>;
  struct Wanted {
    Effect effect;              // the latest request
    bool running = false;       // a worker is sending it; otherwise it is in activations_ or later_
    bool wanted_again = false;  // it was requested again meanwhile
  };
  struct Status {
    GangView view;
    absl::Time due = absl::InfinitePast();  // on the steady clock
    int attempts = 0;
  };
  // Where an event waits: urgent ones (false) first, each kind in its order.
  using EventPlace = std::pair<bool, uint64_t>;
  // The object that an event is about.
  struct Subject {
    std::string api_version;
    std::string kind;
    PodRef ref;
  };
  struct Event {
    Subject about;
    bool warning = false;
    Reason reason;
    EventPlace place;
    int count = 0;  // number of occurrences; 0: not sent yet
    int attempts = 0;
    bool alone = false;                     // the server refuses this event, not all events
    absl::Time due = absl::InfinitePast();  // on the steady clock
  };
  // The last status that was written to a PodGroup.
  struct WrittenStatus {
    std::string uid;  // of the PodGroup: the entry does not apply to another one of the same name
    std::string body;
    bool timed_out = false;
  };
  // The state at the API server of a pod that was to be bound.
  enum class BindState : uint8_t { kBound, kElsewhere, kUnbound, kUnknown };

  void RunWorker();
  void RunBackground();
  [[nodiscard]] static Verdict Retry(const absl::StatusOr<KubeResponse>& response);
  [[nodiscard]] static Key KeyOf(const Effect& effect);
  void Do(Work work);
  [[nodiscard]] Verdict Try(const Effect& effect);
  void DoBind(const BindPod& bind);
  [[nodiscard]] BindingOutcome TryToBind(const BindPod& bind);
  // Handles a 409: the pod was replaced or is gone; otherwise the write was refused for a temporary reason.
  [[nodiscard]] Verdict AfterConflict(const PodRef& pod, const KubeResponse& refused);
  void CountRetry(const Work& work, const Verdict& verdict) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `why`: the reason so far; replaced if the API server gives a better one.
  [[nodiscard]] BindState ReadBack(const BindPod& bind, std::string* why);
  [[nodiscard]] Verdict Activate(const ActivatePod& call);
  [[nodiscard]] Verdict ActivateWithCondition(const ActivatePod& call, Json patch);
  [[nodiscard]] Verdict MarkPodTimedOut(const MarkTimedOut& mark);
  [[nodiscard]] Verdict EvictOnServer(const EvictPod& evict);
  [[nodiscard]] absl::Duration PauseBefore(int attempts, const Verdict& verdict) const;
  struct BackgroundWork {
    std::optional<Event> event;
    std::optional<Status> status;
    [[nodiscard]] bool any() const { return event.has_value() || status.has_value(); }
  };
  // Returns what may be sent now; otherwise lowers `next` to the time at which something may be.
  [[nodiscard]] BackgroundWork TakeBackgroundWork(absl::Time* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] BackgroundWork TakePacedWork(absl::Time* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::optional<Event> TakeEvent(bool urgent, absl::Time* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Events of one object that replace each other: its UID, whether they are warnings.
  using EventKey = std::pair<std::string, bool>;
  [[nodiscard]] static EventKey KeyOf(const Event& event) { return {event.about.ref.uid, event.warning}; }
  [[nodiscard]] static Subject SubjectOf(const GangOwner& owner, const EmitPodEvent& tell);
  void AddEvent(const EmitPodEvent& tell, Subject about) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // No effect when none waits.
  void RemoveEvent(const EventKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteEvent(Event event);
  [[nodiscard]] Verdict SendEvent(Event* event);
  [[nodiscard]] static Verdict AfterRefusal(const absl::StatusOr<KubeResponse>& refused, Event* event);
  [[nodiscard]] std::optional<Status> TakeStatus(absl::Time* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteStatus(const Status& status);
  [[nodiscard]] static std::string StatusPath(const GangView& view);
  // kGiveUp: the PodGroup is gone.
  [[nodiscard]] Verdict AddConditions(const GangView& view, Json* patch);
  // `first`: the first attempt; only then is a refusal logged.
  [[nodiscard]] Verdict PatchStatus(const GangView& view, bool first);
  // `refused`, if not nullptr: receives the status 403 or 409.
  [[nodiscard]] Verdict PatchPod(const PodRef& pod, KubeMethod method, const Json& patch, const char* subresource,
                                 int* refused = nullptr);
  // Takes the next turn of those that `next` gives at the rate; returns when it is.
  [[nodiscard]] static absl::Time TakeTurn(absl::Time* next, double per_s);
  void Pace(absl::Time* next, double per_s) ABSL_LOCKS_EXCLUDED(pace_mutex_);

  KubeClient* const client_;
  const ActuatorOptions options_;
  DecisionPort* port_ = nullptr;

  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Work> bindings_ ABSL_GUARDED_BY(mutex_);
  std::deque<Work> activations_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Key, Wanted> wanted_ ABSL_GUARDED_BY(mutex_);
  absl::btree_multimap<absl::Time, Work> later_ ABSL_GUARDED_BY(mutex_);  // by due time, on the steady clock
  absl::btree_map<EventPlace, Event> events_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<EventKey, EventPlace> event_places_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_event_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time urgent_turn_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();      // when the next urgent event may be sent
  absl::Time background_turn_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // the same of all else
  absl::Time events_due_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // not before: the API server accepted none
  absl::btree_map<std::string, Status> status_ ABSL_GUARDED_BY(mutex_);   // by gang
  absl::btree_set<std::string> writing_ ABSL_GUARDED_BY(mutex_);          // gangs whose status a worker is writing
  // The kind of work that background workers took last: an urgent event or not; of the rest, a status or not.
  bool urgent_was_last_ ABSL_GUARDED_BY(mutex_) = false;
  bool status_was_last_ ABSL_GUARDED_BY(mutex_) = false;
  ActuatorStats stats_ ABSL_GUARDED_BY(mutex_);
  CondVar work_;        // for a worker: bindings, activations, a new time in later_
  CondVar background_;  // for a background worker: events, status

  Mutex pace_mutex_;
  absl::Time next_activation_ ABSL_GUARDED_BY(pace_mutex_) = absl::InfinitePast();
  Mutex series_mutex_;
  absl::flat_hash_map<std::string, int> series_ ABSL_GUARDED_BY(series_mutex_);
  absl::flat_hash_map<std::string, WrittenStatus> written_ ABSL_GUARDED_BY(series_mutex_);  // by gang
  std::vector<std::thread> threads_;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_ACTUATOR_ACTUATOR_H_
