// The single writer around the machine: a bounded mailbox, one thread, and the order that keeps promises -
// apply in memory -> the batch's records durable -> publish the read view -> reply and act. While one batch becomes
// durable the next ones are applied (see Committer).
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
#include "service/engine/tracer.h"
#include "service/store/store.h"
#include "state/api/port.h"
#include "state/machine/machine.h"
#include "state/persistence/answers.h"
#include "support/clock.h"
#include "support/sync.h"

namespace muster {

struct EngineOptions {
  size_t mailbox_capacity = 16'384;                       // commands; past it callers are told "overloaded"
  size_t batch = 256;                                     // commands applied per commit
  int32_t gangs_per_round = 32;                           // planned between two batches, at most
  absl::Duration planning_slice = absl::Milliseconds(1);  // and for how long; the last one is planned to its end
  absl::Duration store_grace = absl::Seconds(5);          // how long a store that fails may keep Stop from ending
  size_t store_backlog = 1'000'000;  // records that may wait for the store; one snapshot of a large cluster is as many
  const Clock* clock = &ProcessClock();
  bool stepped = false;                 // no threads: whoever owns the engine calls Step and TryCommit (simulations)
  CommandRecorder* recorder = nullptr;  // gets every command that is applied; nullptr: nobody does
  SpanSink* spans = nullptr;            // gets a span of each decision; nullptr: nothing is traced
  std::function<void(int64_t)> first_effect;  // told the number of the first effect, before there is any: above those
                                              // of every process before that had this store
  std::function<void()> on_fenced;  // another process has the store: this one must end. Called once, must not block
};

struct EngineStats {
  size_t mailbox_depth = 0;
  uint64_t commands = 0;
  uint64_t batches = 0;
  uint64_t rejected = 0;      // told "overloaded"
  std::string store_trouble;  // why the store takes nothing, and answers wait; empty: it does
  int64_t store_waiting = 0;  // batches that wait for it
  int64_t commits = 0;
  int64_t spans_skipped = 0;  // decisions that left none: too many in a second
};

// Thread-safe. Stop (or destroy) it before the store and the effect sink. Callbacks come from a thread of the engine's,
// those of one call in order, and must not block.
class Engine : public DecisionPort {
 public:
  using Listener = std::function<void(const ViewChange&)>;

  Engine(const MachineSettings& settings, EngineOptions options, Store* store, EffectSink* effects);
  ~Engine() override;

  // Loads the store, starts the thread, and returns when readers are shown what was loaded. The error names what in the
  // store cannot be read.
  [[nodiscard]] absl::Status Start();
  // Answers every hold that is not committed, takes nothing new but the outcomes of bindings, and returns when what was
  // committed is answered with the truth (K-4), or at `end`. Then stop whatever sends to the API server, and Stop.
  void Drain(std::chrono::steady_clock::time_point end);
  // Answers every held call, finishes what was submitted, and ends the thread.
  void Stop();

  absl::StatusOr<Reply> Ask(Command command, absl::Duration patience) override;
  absl::StatusOr<Reply> Ask(Command command) { return Ask(std::move(command), absl::InfiniteDuration()); }
  absl::Status Announce(Command command) override;
  absl::StatusOr<HoldToken> Hold(Bind bind, HoldCallback answered) override;

  using ReplyCallback = std::function<void(absl::StatusOr<Reply>)>;
  // As Ask, without waiting: `done` is called once; when nothing was submitted, at once.
  // DeadlineExceeded: `deadline` passed while the command waited for its turn; nothing happened.
  // `applied` is called before that, on the engine's thread, of a command that was applied; the records that it returns
  // are made durable together with the command's own, or not at all.
  using AppliedCallback = std::function<std::vector<Record>(const Machine&, const absl::StatusOr<Reply>&)>;
  void AskAsync(Command command, std::chrono::steady_clock::time_point deadline, ReplyCallback done,
                AppliedCallback applied = nullptr);
  // A Permit: `done` gets the reply; when that is WAIT, `answered` is called once later. EndPermit ends the wait early.
  HoldToken AskPermit(Permit permit, std::chrono::steady_clock::time_point deadline, ReplyCallback done,
                      HoldCallback answered);
  // The caller of a Permit is gone. Never refused: there are no more of these than Permits that wait.
  void EndPermit(const std::string& uid, HoldToken token);

  [[nodiscard]] const MachineSettings& settings() const { return settings_; }
  // Whether the store takes answers by request id; those that an earlier process kept, once. After Start.
  [[nodiscard]] bool keeps_answers() const { return keeps_answers_; }
  [[nodiscard]] std::vector<KeptAnswer> TakeKeptAnswers() { return std::exchange(kept_answers_, {}); }

  // Stepped only: applies a batch of what waits, plans, and hands on what came of it. A crash is the end of the object
  // without Stop.
  void Step();
  // Stepped only: what the thread that commits does, once. False: there was nothing.
  bool TryCommit() { return committer_.TryOnce(); }
  // Stepped only: whether Step would do something now.
  [[nodiscard]] bool StepDue() const;

  // Reads on the engine's thread: the first `step` in order with commands, the next ones, for as long as they return
  // false, one after each batch of commands, so that what is long to read keeps nobody waiting. Then `done`, once;
  // ResourceExhausted or Unavailable, at once, as for Ask.
  using ReadStep = std::function<bool(const Machine&)>;
  void Read(ReadStep step, std::function<void(const absl::Status&)> done);
  // As Read, for what nobody builds on: how things stand, and why. What it reads need not be durable, so that it is
  // answered too where the store takes nothing.
  void Look(ReadStep step, std::function<void(const absl::Status&)> done);
  // As Read and as Look, in one step and waiting for it. Not from the engine's thread.
  [[nodiscard]] absl::Status Query(const std::function<void(const Machine&)>& read);
  [[nodiscard]] absl::Status Peek(const std::function<void(const Machine&)>& read);

  [[nodiscard]] std::shared_ptr<const ReadView> view() const;
  // `listener` is called after each publication, in their order; must not block. Returns an id for Unlisten.
  int Listen(const Listener& listener);
  void Unlisten(int id);

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
    bool promises = true;  // of a read
  };
  struct Held {
    HoldCallback answered;
    std::shared_ptr<Span> span;
  };
  struct Ended {
    HoldAnswer answer;
    SpanRef by;  // the decision that ended it
  };
  enum class WhenFull : uint8_t { kRefuse, kWait, kExceed };
  using Answered = std::pair<std::function<void(absl::StatusOr<Reply>)>, absl::StatusOr<Reply>>;
  // What leaves once the records that it depends on are durable.
  struct Delivery {
    std::shared_ptr<const ReadView> view;  // nullptr: as it was
    ViewChange change;
    std::vector<Effect> effects;
    std::vector<Answered> replies;
    std::vector<std::pair<HoldCallback, HoldAnswer>> answers;
    std::vector<std::shared_ptr<Span>> spans;  // of what is answered here
    bool stores = false;

    [[nodiscard]] bool empty() const {
      return view == nullptr && effects.empty() && replies.empty() && answers.empty();
    }
  };

  // Moves from `item` only when it returns OK.
  [[nodiscard]] absl::Status Submit(Item* item, WhenFull when_full);
  [[nodiscard]] absl::Status Load(std::vector<Record> records);
  void Run();
  void TakeUpFacts();
  // False: it is to stop. `wait`: until there is something to do.
  bool Work(bool wait);
  void ApplyOne(Item item);
  [[nodiscard]] absl::Status ReadNow(const std::function<void(const Machine&)>& read, bool promises);
  void SubmitRead(ReadStep step, std::function<void(const absl::Status&)> done, bool promises);
  void ReadOn(Item item);
  void Apply(const Command& command, Outcome* outcome);
  void Tell();
  void PlanForAWhile();
  void Deliver();
  void NumberEffects(size_t effects);
  void LetGo(Delivery* delivery, Stored stored);
  void Picture(Delivery* delivery);
  [[nodiscard]] GangChanges ViewGangs(const std::vector<std::string>& gangs, ReadView* next) const;
  [[nodiscard]] NodeChanges ViewNodes(const std::vector<std::string>& nodes, ReadView* next) const;
  [[nodiscard]] int64_t NowMs() const { return options_.clock->NowMs(); }

  const MachineSettings settings_;
  const EngineOptions options_;
  EffectSink* const effects_;
  Machine machine_;  // touched by the engine's thread only

  mutable Mutex mutex_;
  std::deque<Item> mailbox_ ABSL_GUARDED_BY(mutex_);
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;  // the thread waits for work
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t rejected_ ABSL_GUARDED_BY(mutex_) = 0;
  CondVar filled_;
  CondVar drained_;

  Notification taken_up_;  // what was loaded is published
  Committer committer_;
  bool keeps_answers_ = false;            // since Start
  std::vector<KeptAnswer> kept_answers_;  // not taken yet
  Tracer tracer_;
  std::shared_ptr<const ReadView> pictured_;  // the last one taken; published when its batch is durable
  std::atomic<bool> told_fenced_{false};

  mutable Mutex view_mutex_;
  std::shared_ptr<const ReadView> view_ ABSL_GUARDED_BY(view_mutex_);
  Mutex listeners_mutex_;
  absl::flat_hash_map<int, Listener> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  int next_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 1;

  // Of the batch being applied; the engine's thread only.
  std::vector<Item> batch_;
  std::vector<Record> records_;
  std::vector<Effect> batch_effects_;
  std::vector<Ended> answers_;
  std::vector<std::shared_ptr<Span>> told_spans_;
  std::vector<std::shared_ptr<Span>> spans_;
  std::vector<Answered> told_;     // replies that promise nothing
  std::vector<Answered> replies_;  // and those that wait for the records
  absl::flat_hash_map<HoldToken, Held> holds_;
  std::deque<Item> readings_;  // begun, and not done
  RefusedLog refused_log_;
  int64_t effects_numbered_ = 0;
  int64_t effects_reserved_ = 0;  // numbers up to here may be given without another record

  std::atomic<size_t> holds_left_{0};  // calls that are held, when the last batch was done
  std::atomic<HoldToken> next_token_{1};
  std::atomic<uint64_t> commands_{0};
  std::atomic<uint64_t> batches_{0};
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_ENGINE_H_
