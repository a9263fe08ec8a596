#include "service/engine/engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "service/engine/durability.h"

namespace muster {
namespace {

constexpr absl::Duration kStorePollInterval = absl::Milliseconds(20);
constexpr absl::Duration kDrainPollInterval = absl::Milliseconds(5);
// How long Start waits until the stored state is published. If the store accepts nothing, Start returns without it.
constexpr absl::Duration kFirstViewTimeout = absl::Seconds(2);

}  // namespace

Engine::Engine(const MachineSettings& settings, EngineOptions options, Store* store, EffectSink* effects)
    : settings_(settings),
      options_(std::move(options)),
      effects_(effects),
      machine_(settings),
      committer_(store, options_.store_grace, options_.store_backlog, options_.stepped),
      tracer_(options_.spans),
      latest_view_(std::make_shared<ReadView>()),
      view_(latest_view_) {}

Engine::~Engine() { Stop(); }

absl::Status Engine::Start() {
  absl::StatusOr<std::vector<Record>> stored = committer_.Start();
  if (!stored.ok()) return stored.status();
  if (absl::Status loaded = Load(*std::move(stored)); !loaded.ok()) {
    committer_.Stop();
    return absl::Status(loaded.code(), absl::StrCat(committer_.store_name(), ": ", loaded.message()));
  }
  effects_numbered_ = effects_reserved_ = machine_.effects_reserved();
  if (options_.first_effect) options_.first_effect(effects_numbered_ + 1);
  {
    MutexLock lock(&mutex_);
    running_ = true;
    if (options_.stepped) {
      RestoreFacts();
      return absl::OkStatus();
    }
    thread_ = std::thread([this] { Run(); });
  }
  static_cast<void>(facts_restored_.WaitForNotificationWithTimeout(kFirstViewTimeout));
  return absl::OkStatus();
}

absl::Status Engine::Load(std::vector<Record> records) {
  stores_answers_ = committer_.store_format() >= Store::kFormatOfAnswers;
  absl::StatusOr<std::vector<DurableAnswer>> answers = TakeAnswers(&records);
  if (!answers.ok()) return answers.status();
  stored_answers_ = *std::move(answers);
  return machine_.Load(records);
}

void Engine::Drain(std::chrono::steady_clock::time_point end) {
  {
    MutexLock lock(&mutex_);
    if (!running_ || stopping_ || draining_) return;
    draining_ = true;
    mailbox_.push_back({.command = Shutdown{}, .read = nullptr, .done = nullptr, .answered = nullptr});
    filled_.SignalAll();
    drained_.SignalAll();
  }
  const auto busy = [&] {
    MutexLock lock(&mutex_);
    return !mailbox_.empty() || !idle_ || open_holds_ > 0 || committer_.added() != committer_.delivered();
  };
  while (busy() && std::chrono::steady_clock::now() < end) absl::SleepFor(kDrainPollInterval);
}

void Engine::Stop() {
  {
    MutexLock lock(&mutex_);
    if (!running_) return;
    stopping_ = true;
    filled_.SignalAll();
    drained_.SignalAll();
  }
  committer_.StartGracePeriod();
  if (thread_.joinable()) thread_.join();
  committer_.Stop();
  MutexLock lock(&mutex_);
  running_ = false;
}

absl::Status Engine::Submit(Item* item, WhenFull when_full) {
  if (committer_.fenced()) return absl::UnavailableError(FencedError().message());
  if (tracer_.on() && item->read == nullptr) item->span = tracer_.Begin(item->command);
  const bool may_keep = when_full != WhenFull::kExceed && item->read == nullptr && MayWriteRecords(item->command);
  const bool waits = when_full == WhenFull::kRefuse && (item->read == nullptr ? may_keep : item->must_be_durable);
  MutexLock lock(&mutex_);
  while (running_ && !stopping_ && !draining_ && when_full != WhenFull::kExceed) {
    const bool overloaded = (may_keep && committer_.full()) || (waits && committer_.too_many_callers());
    if (mailbox_.size() < options_.mailbox_capacity && !overloaded) break;
    if (when_full == WhenFull::kRefuse) {
      ++rejected_;
      return absl::ResourceExhaustedError(
          overloaded ? absl::StrCat("overloaded: the store is too slow; ", committer_.last_error())
                     : absl::StrCat("overloaded: ", mailbox_.size(), " commands wait; try again in a moment"));
    }
    if (overloaded) {
      drained_.WaitWithTimeout(&mutex_, kStorePollInterval);
    } else {
      drained_.Wait(&mutex_);
    }
  }
  const bool wanted = !draining_ || std::holds_alternative<BindingOutcome>(item->command);
  if (!running_ || stopping_ || !wanted) return absl::UnavailableError("Muster is stopping");
  mailbox_.push_back(std::move(*item));
  if (mailbox_.size() == 1) filled_.Signal();
  return absl::OkStatus();
}

absl::StatusOr<Reply> Engine::Ask(Command command, absl::Duration patience) {
  // Shared with the callback, which may outlive a caller that has received "unavailable".
  struct Wait {
    Notification done;
    absl::StatusOr<Reply> reply = absl::UnavailableError("Muster is stopping");
  };
  auto wait = std::make_shared<Wait>();
  Item item{.command = std::move(command),
            .read = nullptr,
            .done =
                [wait](absl::StatusOr<Reply> reply) {
                  wait->reply = std::move(reply);
                  wait->done.Notify();
                },
            .answered = nullptr};
  if (absl::Status submitted = Submit(&item, WhenFull::kRefuse); !submitted.ok()) return submitted;
  if (!wait->done.WaitForNotificationWithTimeout(patience)) {
    return absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(patience)));
  }
  return std::move(wait->reply);
}

absl::Status Engine::Announce(Command command) {
  Item item{.command = std::move(command), .read = nullptr, .done = nullptr, .answered = nullptr};
  return Submit(&item, WhenFull::kWait);
}

absl::StatusOr<HoldToken> Engine::Hold(Bind bind, HoldCallback answered) {
  const HoldToken token = next_token_.fetch_add(1);
  bind.token = token;
  Item item{.command = std::move(bind), .read = nullptr, .done = nullptr, .answered = std::move(answered)};
  if (absl::Status submitted = Submit(&item, WhenFull::kRefuse); !submitted.ok()) return submitted;
  return token;
}

void Engine::AskAsync(Command command, std::chrono::steady_clock::time_point deadline, ReplyCallback done,
                      AppliedCallback applied) {
  Item item{.command = std::move(command),
            .read = nullptr,
            .done = std::move(done),
            .answered = nullptr,
            .deadline = deadline,
            .applied = std::move(applied)};
  if (absl::Status submitted = Submit(&item, WhenFull::kRefuse); !submitted.ok()) item.done(submitted);
}

HoldToken Engine::AskPermit(Permit permit, std::chrono::steady_clock::time_point deadline, ReplyCallback done,
                            HoldCallback answered) {
  const HoldToken token = next_token_.fetch_add(1);
  permit.token = token;
  Item item{.command = std::move(permit),
            .read = nullptr,
            .done = std::move(done),
            .answered = std::move(answered),
            .deadline = deadline};
  if (absl::Status submitted = Submit(&item, WhenFull::kRefuse); !submitted.ok()) item.done(submitted);
  return token;
}

void Engine::OnPermitCallerGone(const std::string& uid, HoldToken token) {
  Item item{.command = CallerGone{uid, token}, .read = nullptr, .done = nullptr, .answered = nullptr};
  Submit(&item, WhenFull::kExceed).IgnoreError();  // stopping: every wait ends
}

void Engine::ReadDurable(ReadStep step, std::function<void(const absl::Status&)> done) {
  SubmitRead(std::move(step), std::move(done), /*must_be_durable=*/true);
}

void Engine::ReadLatest(ReadStep step, std::function<void(const absl::Status&)> done) {
  SubmitRead(std::move(step), std::move(done), /*must_be_durable=*/false);
}

void Engine::SubmitRead(ReadStep step, std::function<void(const absl::Status&)> done, bool must_be_durable) {
  Item item{.command = Tick{},
            .read = std::move(step),
            .done = [done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(reply.status()); },
            .answered = nullptr,
            .must_be_durable = must_be_durable};
  if (absl::Status submitted = Submit(&item, WhenFull::kRefuse); !submitted.ok()) item.done(submitted);
}

absl::Status Engine::ReadDurableSync(const std::function<void(const Machine&)>& read) {
  return ReadAndWait(read, /*must_be_durable=*/true);
}

absl::Status Engine::ReadLatestSync(const std::function<void(const Machine&)>& read) {
  return ReadAndWait(read, /*must_be_durable=*/false);
}

absl::Status Engine::ReadAndWait(const std::function<void(const Machine&)>& read, bool must_be_durable) {
  struct Wait {
    Notification done;
    absl::Status status;
  };
  auto wait = std::make_shared<Wait>();
  const auto step = [&read](const Machine& machine) {
    read(machine);
    return true;
  };
  const auto done = [wait](const absl::Status& status) {
    wait->status = status;
    wait->done.Notify();
  };
  SubmitRead(step, done, must_be_durable);
  wait->done.WaitForNotification();
  return wait->status;
}

void Engine::RestoreFacts() {
  Outcome outcome;
  Apply(muster::RestoreFacts{}, &outcome);
  if (!outcome.status.ok()) refused_log_.Write(muster::RestoreFacts{}, outcome.status);
  const Reader& reader = machine_.reader();
  if (reader.facts.sources().stale_since_ms() != kNever) {
    spdlog::info(
        "restored {} nodes and {} pods that \"{}\" announced to the previous process, version {}; they "
        "are stale until the source announces them again",
        reader.facts.present_nodes(), reader.gangs.pod_count(), reader.facts.sources().announcer(),
        reader.facts.sources().version());
  }
  Deliver();
}

void Engine::Step() { Work(/*wait=*/false); }

bool Engine::StepDue() const {
  MutexLock lock(&mutex_);
  return !mailbox_.empty() || machine_.PlanningDue() || machine_.NextDeadline() <= NowMs() || !pending_reads_.empty();
}

bool Engine::Work(bool wait) {
  bool stop = false;
  bool plans = true;
  {
    MutexLock lock(&mutex_);
    idle_ = true;
    while (wait && mailbox_.empty() && !stopping_ && (draining_ || !machine_.PlanningDue()) && pending_reads_.empty()) {
      const int64_t due = machine_.NextDeadline();
      const int64_t now = NowMs();
      if (due <= now) break;
      if (due == kNever) {
        filled_.Wait(&mutex_);
      } else {
        filled_.WaitWithTimeout(&mutex_, absl::Milliseconds(std::min<int64_t>(due - now, 60'000)));
      }
    }
    idle_ = false;
    plans = !draining_;
    const size_t take = std::min(mailbox_.size(), options_.batch);
    batch_.assign(std::make_move_iterator(mailbox_.begin()),
                  std::make_move_iterator(mailbox_.begin() + static_cast<std::ptrdiff_t>(take)));
    mailbox_.erase(mailbox_.begin(), mailbox_.begin() + static_cast<std::ptrdiff_t>(take));
    if (take > 0) drained_.SignalAll();
    stop = stopping_ && mailbox_.empty();
  }
  for (Item& item : batch_) ApplyOne(std::move(item));
  // At most one step of one long read per batch, however many reads are pending.
  if (!pending_reads_.empty() && !stop) {
    Item item = std::move(pending_reads_.front());
    pending_reads_.pop_front();
    ContinueRead(std::move(item));
  }
  Outcome outcome;
  if (machine_.NextDeadline() <= NowMs()) Apply(Tick{}, &outcome);
  SendImmediateReplies();
  if (plans) PlanWithinSlice();
  if (stop) Apply(Shutdown{}, &outcome);
  Deliver();
  return !stop;
}

void Engine::Run() {
  RestoreFacts();
  committer_.Add({}, 0, [this](Stored /*stored*/) { facts_restored_.Notify(); });
  while (Work(/*wait=*/true)) {
  }
  if (options_.recorder != nullptr) options_.recorder->OnStopped(machine_);
  // Held calls that are committed and still wait for the API server: the pod is or will be bound; its caller asks
  // again.
  auto rest = std::make_shared<Delivery>();
  for (auto& [token, held] : holds_) {
    rest->answers.emplace_back(
        std::move(held.answered),
        HoldAnswer{token, false, {ReasonCode::kShuttingDown, "Muster is stopping; the pod will be tried again"}});
  }
  holds_.clear();
  for (Item& item : pending_reads_) {
    rest->replies.emplace_back(std::move(item.done), absl::UnavailableError("Muster is stopping"));
  }
  pending_reads_.clear();
  // After the deliveries on their way to the store: callers are answered in order, one at a time.
  committer_.Add({}, 0, [this, rest](Stored stored) { OnStored(rest.get(), stored); });
}

void Engine::ApplyOne(Item item) {
  ++commands_;
  if (item.read) return ContinueRead(std::move(item));
  if (item.deadline < std::chrono::steady_clock::now()) {
    immediate_replies_.emplace_back(
        std::move(item.done),
        absl::DeadlineExceededError("the deadline passed before the command was applied; nothing changed"));
    return;
  }
  if (item.span != nullptr) tracer_.OnDequeued(machine_, item.command, item.span.get());
  if (item.answered && std::holds_alternative<Bind>(item.command)) {
    holds_.emplace(std::get<Bind>(item.command).token, Held{std::move(item.answered), item.span});
  }
  const auto* bound = std::get_if<BindingOutcome>(&item.command);
  if (bound != nullptr) tracer_.OnBindingOutcome(*bound);
  Outcome outcome;
  const size_t ended_before = answers_.size();
  Apply(item.command, &outcome);
  if (bound != nullptr) tracer_.OnBindingAnswered(machine_.reader().FindPod(bound->uid));
  // A Permit ends with its reply, unless the reply is WAIT.
  const auto* permit = std::get_if<PermitReply>(&outcome.reply);
  const bool waits = item.answered && permit != nullptr && permit->kind == PermitReply::Kind::kWait;
  if (waits) holds_.emplace(std::get<Permit>(item.command).token, Held{std::move(item.answered), item.span});
  if (item.span != nullptr) {
    tracer_.OnDecided(machine_, item.command, outcome.status, outcome.reply, item.span.get());
    if (waits || !item.done) tracer_.OnHeld(*item.span);
    for (size_t i = ended_before; i < answers_.size(); ++i) answers_[i].by = {item.span->trace, item.span->id};
  }
  if (!item.done && !outcome.status.ok()) refused_log_.Write(item.command, outcome.status);
  if (!item.done) return;
  const bool waits_for_records =
      outcome.status.ok() ? outcome.reply_after_commit : DependsOnRecords(item.command, outcome.status);
  if (item.span != nullptr && !waits) (waits_for_records ? spans_ : immediate_spans_).push_back(std::move(item.span));
  absl::StatusOr<Reply> reply = std::move(outcome.reply);
  if (!outcome.status.ok()) reply = outcome.status;
  if (item.applied) {
    std::vector<Record> more = item.applied(machine_, reply);
    std::move(more.begin(), more.end(), std::back_inserter(records_));
  }
  (waits_for_records ? replies_ : immediate_replies_).emplace_back(std::move(item.done), std::move(reply));
}

void Engine::ContinueRead(Item item) {
  if (item.read(machine_)) {
    (item.must_be_durable ? replies_ : immediate_replies_).emplace_back(std::move(item.done), Reply{});
  } else {
    pending_reads_.push_back(std::move(item));
  }
}

void Engine::Apply(const Command& command, Outcome* outcome) {
  outcome->records.clear();
  outcome->effects.clear();
  outcome->answers.clear();
  outcome->reply_after_commit = true;
  const int64_t now_ms = NowMs();
  if (options_.recorder != nullptr) options_.recorder->BeforeApply(machine_, now_ms);
  const auto begun = std::chrono::steady_clock::now();
  machine_.Apply(command, now_ms, outcome);
  step_watch_.Record(command, std::chrono::steady_clock::now() - begun);
  if (options_.recorder != nullptr) options_.recorder->AfterApply(command, now_ms, *outcome);
  std::move(outcome->records.begin(), outcome->records.end(), std::back_inserter(records_));
  std::move(outcome->effects.begin(), outcome->effects.end(), std::back_inserter(batch_effects_));
  for (HoldAnswer& answer : outcome->answers) answers_.push_back({std::move(answer), {}});
}

// Replies without a promise wait neither for the disk nor for the planner (K-2).
void Engine::SendImmediateReplies() {
  for (auto& [done, reply] : std::exchange(immediate_replies_, {})) done(std::move(reply));
  if (!immediate_spans_.empty()) tracer_.End(std::exchange(immediate_spans_, {}), /*slow=*/false);
}

// Gang by gang: a call that arrives meanwhile waits for the planning of one gang, not of a whole round.
void Engine::PlanWithinSlice() {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.planning_slice);
  Outcome outcome;
  for (int32_t gangs = 0; gangs < options_.gangs_per_round && machine_.PlanningDue(); ++gangs) {
    Apply(PlanRound{1}, &outcome);
    if (std::chrono::steady_clock::now() >= end) break;
  }
}

std::shared_ptr<const ReadView> Engine::view() const {
  MutexLock lock(&view_mutex_);
  return view_;
}

int Engine::AddListener(const Listener& listener) {
  MutexLock lock(&listeners_mutex_);
  listeners_.emplace(next_listener_, listener);
  return next_listener_++;
}

void Engine::RemoveListener(int id) {
  MutexLock lock(&listeners_mutex_);
  listeners_.erase(id);
}

EngineStats Engine::stats() const {
  EngineStats stats;
  stats.commands = commands_;
  stats.batches = batches_;
  stats.store_error = committer_.last_error();
  stats.store_waiting = committer_.added() - committer_.delivered();
  stats.commits = committer_.commits();
  stats.spans_skipped = tracer_.skipped();
  stats.long_steps = step_watch_.long_steps();
  MutexLock lock(&mutex_);
  stats.mailbox_depth = mailbox_.size();
  stats.rejected = rejected_;
  return stats;
}

}  // namespace muster
