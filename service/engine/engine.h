// The single writer around the machine: a bounded mailbox and one thread. For each batch of commands, in this order:
// apply in memory -> make the records durable -> publish the read view -> reply and send effects. While one batch
// becomes durable, the next ones are applied (see Committer).
#ifndef MUSTER_SERVICE_ENGINE_ENGINE_H_
#define MUSTER_SERVICE_ENGINE_ENGINE_H_

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "service/engine/command_recorder.h"
#include "service/engine/committer.h"
#include "service/engine/read_view.h"
#include "service/engine/refused_log.h"
#include "service/engine/step_watch.h"
#include "service/engine/tracer.h"
#include "service/store/store.h"
#include "state/api/port.h"
#include "state/machine/machine.h"
#include "state/persistence/records.h"
#include "support/clock.h"
#include "support/sync.h"

namespace muster {

struct EngineOptions {
  size_t mailbox_capacity = 16'384;                       // commands; a call beyond it fails with "overloaded"
  size_t batch = 256;                                     // commands applied per commit
  int32_t gangs_per_round = 32;                           // the largest number planned between two batches
  absl::Duration planning_slice = absl::Milliseconds(1);  // time limit for that; the last gang is planned to its end
  absl::Duration store_grace = absl::Seconds(5);          // how long a failing store may delay Stop
  // records that may wait for the store; one snapshot of a large cluster needs as many
  size_t store_backlog = 1'000'000;
  const Clock* clock = &ProcessClock();
  bool stepped = false;                       // no threads: the owner calls Step and TryCommit (simulations)
  CommandRecorder* recorder = nullptr;        // receives every applied command; may be nullptr
  SpanSink* spans = nullptr;                  // receives a span of each decision; nullptr: no tracing
  std::function<void(int64_t)> first_effect;  // called before the first effect with its number, which is above
                                              // those of all earlier processes with this store
  std::function<void()> on_fenced;  // another process has the store: this one must end. Called once, must not block
};

struct EngineStats {
  size_t mailbox_depth = 0;
  uint64_t commands = 0;
  uint64_t batches = 0;
  uint64_t rejected = 0;      // answered "overloaded"
  std::string store_error;    // why the store accepts nothing, so that answers wait; empty: it accepts
  int64_t store_waiting = 0;  // batches that wait for the store
  int64_t commits = 0;
  int64_t long_steps = 0;     // commands that took longer than StepWatch::kLong
  int64_t spans_skipped = 0;  // decisions without a span: beyond the limit of spans per second
};

// Thread-safe. Stop or destroy it before the store and the effect sink. Callbacks run on a thread of the engine, those
// of one call in order, and must not block.
class Engine : public DecisionPort {
 public:
  using Listener = std::function<void(const ViewChange&)>;

  Engine(const MachineSettings& settings, EngineOptions options, Store* store, EffectSink* effects);
  ~Engine() override;

  // Loads the store, starts the thread, and returns when the loaded state is published. The error names the record that
  // cannot be read.
  [[nodiscard]] absl::Status Start();
  // From now on accepts only outcomes of bindings. Answers every hold that is not committed. Returns when every
  // committed call has its final answer (K-4), or at `end`. Next, stop the parts that send to the API server, then call
  // Stop.
  void Drain(std::chrono::steady_clock::time_point end);
  // Answers every held call, applies the commands that were submitted, and ends the thread.
  void Stop();

  absl::StatusOr<Reply> Ask(Command command, absl::Duration patience) override;
  absl::StatusOr<Reply> Ask(Command command) { return Ask(std::move(command), absl::InfiniteDuration()); }
  absl::Status Announce(Command command) override;
  absl::StatusOr<HoldToken> Hold(Bind bind, HoldCallback answered) override;

  using ReplyCallback = std::function<void(absl::StatusOr<Reply>)>;
  // As Ask, without waiting: `done` is called once; immediately if nothing was submitted. DeadlineExceeded: `deadline`
  // passed while the command waited for its turn; nothing happened. For a command that was applied, `applied` is called
  // first, on the engine's thread. The records that it returns become durable together with the command's own, or not
  // at all.
  using AppliedCallback = std::function<std::vector<Record>(const Machine&, const absl::StatusOr<Reply>&)>;
  void AskAsync(Command command, std::chrono::steady_clock::time_point deadline, ReplyCallback done,
                AppliedCallback applied = nullptr);
  // Submits a Permit: `done` receives the reply. If it is WAIT, `answered` is called once later. OnPermitCallerGone
  // ends the wait early.
  HoldToken AskPermit(Permit permit, std::chrono::steady_clock::time_point deadline, ReplyCallback done,
                      HoldCallback answered);
  // The caller of a Permit is gone. Accepted even if the mailbox is full: each waiting Permit causes at most one.
  void OnPermitCallerGone(const std::string& uid, HoldToken token);

  [[nodiscard]] const MachineSettings& settings() const { return settings_; }
  // Whether the store accepts answers by request id. TakeStoredAnswers returns those of earlier processes, once.
  // REQUIRES: after Start.
  [[nodiscard]] bool stores_answers() const { return stores_answers_; }
  [[nodiscard]] std::vector<DurableAnswer> TakeStoredAnswers() { return std::exchange(stored_answers_, {}); }

  // Stepped only: applies a batch of what waits, plans, and delivers the results. Destroying the object without Stop
  // simulates a crash.
  void Step();
  // Stepped only: commits once, as the thread that commits would. Returns false if there is nothing to commit.
  bool TryCommit() { return committer_.TryOnce(); }
  // Stepped only: whether Step has work.
  [[nodiscard]] bool StepDue() const;

  // Reads on the engine's thread. The first `step` runs in order with commands. While `step` returns false, it runs
  // again after each batch of commands, so that a long read does not delay commands. Then `done` is called once, when
  // all that was read is durable. ResourceExhausted and Unavailable are returned at once, as for Ask.
  using ReadStep = std::function<bool(const Machine&)>;
  void ReadDurable(ReadStep step, std::function<void(const absl::Status&)> done);
  // As ReadDurable, for answers that promise nothing: current states and reasons. What it reads need not be durable, so
  // it is answered even while the store accepts nothing.
  void ReadLatest(ReadStep step, std::function<void(const absl::Status&)> done);
  // As ReadDurable and ReadLatest, in one step; return after `read`. REQUIRES: not called on the engine's thread.
  [[nodiscard]] absl::Status ReadDurableSync(const std::function<void(const Machine&)>& read);
  [[nodiscard]] absl::Status ReadLatestSync(const std::function<void(const Machine&)>& read);

  [[nodiscard]] std::shared_ptr<const ReadView> view() const;
  // `listener` is called after each publication, in order, and must not block. Returns an id for RemoveListener.
  int AddListener(const Listener& listener);
  void RemoveListener(int id);

  [[nodiscard]] EngineStats stats() const;

 private:
  struct Item {
    Command command;
    ReadStep read;  // instead of a command
    ReplyCallback done;
    HoldCallback answered;
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::shared_ptr<Span> span = nullptr;
    AppliedCallback applied = nullptr;
    bool must_be_durable = true;  // of a read: what it reads
  };
  struct Held {
    HoldCallback answered;
    std::shared_ptr<Span> span;
  };
  struct Ended {
    HoldAnswer answer;
    SpanRef by;  // the decision that ended the hold
  };
  enum class WhenFull : uint8_t { kRefuse, kWait, kExceed };
  using Answered = std::pair<std::function<void(absl::StatusOr<Reply>)>, absl::StatusOr<Reply>>;
  // What leaves the engine once the records that it depends on are durable.
  struct Delivery {
    std::shared_ptr<const ReadView> view;  // nullptr: unchanged
    ViewChange change;
    std::vector<Effect> effects;
    std::vector<Answered> replies;
    std::vector<std::pair<HoldCallback, HoldAnswer>> answers;
    std::vector<std::shared_ptr<Span>> spans;  // spans of the answers in this delivery
    bool stores = false;

    [[nodiscard]] bool empty() const {
      return view == nullptr && effects.empty() && replies.empty() && answers.empty();
    }
  };

  // Moves from `item` only when it returns OK.
  [[nodiscard]] absl::Status Submit(Item* item, WhenFull when_full);
  [[nodiscard]] absl::Status Load(std::vector<Record> records);
  void Run();
  void RestoreFacts();
  // Returns false when the thread must stop. `wait`: block until there is work.
  bool Work(bool wait);
  void ApplyOne(Item item);
  [[nodiscard]] absl::Status ReadAndWait(const std::function<void(const Machine&)>& read, bool must_be_durable);
  void SubmitRead(ReadStep step, std::function<void(const absl::Status&)> done, bool must_be_durable);
  void ContinueRead(Item item);
  void Apply(const Command& command, Outcome* outcome);
  void SendImmediateReplies();
  void PlanWithinSlice();
  void Deliver();
  void NumberEffects(size_t effects);
  void OnStored(Delivery* delivery, Stored stored);
  void BuildReadView(Delivery* delivery);
  [[nodiscard]] GangChanges ViewGangs(const std::vector<std::string>& gangs, ReadView* next) const;
  [[nodiscard]] NodeChanges ViewNodes(const std::vector<std::string>& nodes, ReadView* next) const;
  [[nodiscard]] int64_t NowMs() const { return options_.clock->NowMs(); }

  const MachineSettings settings_;
  const EngineOptions options_;
  EffectSink* const effects_;
  Machine machine_;  // used by the engine's thread only

  mutable Mutex mutex_;
  std::deque<Item> mailbox_ ABSL_GUARDED_BY(mutex_);
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;  // the thread waits for work
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t rejected_ ABSL_GUARDED_BY(mutex_) = 0;
  CondVar filled_;
  CondVar drained_;

  Notification facts_restored_;  // the loaded state is published
  Committer committer_;
  bool stores_answers_ = false;                // valid after Start
  std::vector<DurableAnswer> stored_answers_;  // not taken yet
  Tracer tracer_;
  StepWatch step_watch_;
  std::shared_ptr<const ReadView> latest_view_;  // the newest one built; published when its batch is durable
  std::atomic<bool> fenced_notified_{false};

  mutable Mutex view_mutex_;
  std::shared_ptr<const ReadView> view_ ABSL_GUARDED_BY(view_mutex_);
  Mutex listeners_mutex_;
  absl::flat_hash_map<int, Listener> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  int next_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 1;

  // State of the current batch; used by the engine's thread only.
  std::vector<Item> batch_;
  std::vector<Record> records_;
  std::vector<Effect> batch_effects_;
  std::vector<Ended> answers_;
  std::vector<std::shared_ptr<Span>> immediate_spans_;
  std::vector<std::shared_ptr<Span>> spans_;
  std::vector<Answered> immediate_replies_;  // replies that promise nothing
  std::vector<Answered> replies_;            // replies that wait for the records
  absl::flat_hash_map<HoldToken, Held> holds_;
  std::deque<Item> pending_reads_;  // long reads in progress
  RefusedLog refused_log_;
  int64_t effects_numbered_ = 0;
  int64_t effects_reserved_ = 0;  // numbers up to this one need no further record

  std::atomic<size_t> open_holds_{0};  // held calls at the end of the last batch
  std::atomic<HoldToken> next_token_{1};
  std::atomic<uint64_t> commands_{0};
  std::atomic<uint64_t> batches_{0};
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_ENGINE_H_
