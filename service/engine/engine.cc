#include "service/engine/engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "service/engine/promises.h"

namespace muster {
namespace {

constexpr absl::Duration kStoreLook = absl::Milliseconds(20);
constexpr absl::Duration kDrainLook = absl::Milliseconds(5);
// Whoever asks first is shown what was kept. A store that takes nothing holds up its own callers, not this one.
constexpr absl::Duration kFirstPicture = absl::Seconds(2);

}  // namespace

Engine::Engine(const MachineSettings& settings, EngineOptions options, Store* store, EffectSink* effects)
    : settings_(settings),
      options_(std::move(options)),
      effects_(effects),
      machine_(settings),
      committer_(store, options_.store_grace, options_.store_backlog, options_.stepped),
      tracer_(options_.spans),
      pictured_(std::make_shared<ReadView>()),
      view_(pictured_) {}

Engine::~Engine() { Stop(); }

absl::Status Engine::Start() {
  absl::StatusOr<std::vector<Record>> kept = committer_.Start();
  if (!kept.ok()) return kept.status();
  if (absl::Status loaded = Load(*std::move(kept)); !loaded.ok()) {
    committer_.Stop();
    return absl::Status(loaded.code(), absl::StrCat(committer_.store_name(), ": ", loaded.message()));
  }
  effects_numbered_ = effects_reserved_ = machine_.effects_reserved();
  if (options_.first_effect) options_.first_effect(effects_numbered_ + 1);
  {
    MutexLock lock(&mutex_);
    running_ = true;
    if (options_.stepped) {
      TakeUpFacts();
      return absl::OkStatus();
    }
    thread_ = std::thread([this] { Run(); });
  }
  static_cast<void>(taken_up_.WaitForNotificationWithTimeout(kFirstPicture));
  return absl::OkStatus();
}

absl::Status Engine::Load(std::vector<Record> records) {
  keeps_answers_ = committer_.store_format() >= Store::kFormatOfAnswers;
  absl::StatusOr<std::vector<KeptAnswer>> answers = TakeAnswers(&records);
  if (!answers.ok()) return answers.status();
  kept_answers_ = *std::move(answers);
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
    return !mailbox_.empty() || !idle_ || holds_left_ > 0 || committer_.added() != committer_.delivered();
  };
  while (busy() && std::chrono::steady_clock::now() < end) absl::SleepFor(kDrainLook);
}

void Engine::Stop() {
  {
    MutexLock lock(&mutex_);
    if (!running_) return;
    stopping_ = true;
    filled_.SignalAll();
    drained_.SignalAll();
  }
  committer_.Hurry();
  if (thread_.joinable()) thread_.join();
  committer_.Stop();
  MutexLock lock(&mutex_);
  running_ = false;
}

absl::Status Engine::Submit(Item* item, WhenFull when_full) {
  if (committer_.fenced()) return absl::UnavailableError(FencedError().message());
  if (tracer_.on() && item->read == nullptr) item->span = tracer_.Begin(item->command);
  const bool may_keep = when_full != WhenFull::kExceed && item->read == nullptr && MayKeep(item->command);
  const bool waits = when_full == WhenFull::kRefuse && (item->read == nullptr ? may_keep : item->promises);
  MutexLock lock(&mutex_);
  while (running_ && !stopping_ && !draining_ && when_full != WhenFull::kExceed) {
    const bool behind = (may_keep && committer_.full()) || (waits && committer_.crowded());
    if (mailbox_.size() < options_.mailbox_capacity && !behind) break;
    if (when_full == WhenFull::kRefuse) {
      ++rejected_;
      return absl::ResourceExhaustedError(
          behind ? absl::StrCat("overloaded: the store does not keep up; ", committer_.trouble())
                 : absl::StrCat("overloaded: ", mailbox_.size(), " commands wait; try again in a moment"));
    }
    if (behind) {
      drained_.WaitWithTimeout(&mutex_, kStoreLook);
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
  // Shared with the callback, which may outlive a caller that was told "unavailable".
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

void Engine::EndPermit(const std::string& uid, HoldToken token) {
  Item item{.command = EndHold{uid, token}, .read = nullptr, .done = nullptr, .answered = nullptr};
  Submit(&item, WhenFull::kExceed).IgnoreError();  // stopping: every wait ends
}

void Engine::Read(ReadStep step, std::function<void(const absl::Status&)> done) {
  SubmitRead(std::move(step), std::move(done), /*promises=*/true);
}

void Engine::Look(ReadStep step, std::function<void(const absl::Status&)> done) {
  SubmitRead(std::move(step), std::move(done), /*promises=*/false);
}

void Engine::SubmitRead(ReadStep step, std::function<void(const absl::Status&)> done, bool promises) {
  Item item{.command = Tick{},
            .read = std::move(step),
            .done = [done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(reply.status()); },
            .answered = nullptr,
            .promises = promises};
  if (absl::Status submitted = Submit(&item, WhenFull::kRefuse); !submitted.ok()) item.done(submitted);
}

absl::Status Engine::Query(const std::function<void(const Machine&)>& read) { return ReadNow(read, /*promises=*/true); }

absl::Status Engine::Peek(const std::function<void(const Machine&)>& read) { return ReadNow(read, /*promises=*/false); }

absl::Status Engine::ReadNow(const std::function<void(const Machine&)>& read, bool promises) {
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
  SubmitRead(step, done, promises);
  wait->done.WaitForNotification();
  return wait->status;
}

void Engine::TakeUpFacts() {
  Outcome outcome;
  Apply(muster::TakeUpFacts{}, &outcome);
  if (!outcome.status.ok()) refused_log_.Write(muster::TakeUpFacts{}, outcome.status);
  const Sources& sources = machine_.sources();
  if (sources.stale_since_ms() != kNever) {
    spdlog::info(
        "{} nodes and {} pods are taken up as \"{}\" announced them to the process before, version {}; they "
        "are stale until it speaks again",
        machine_.cluster().present_nodes(), machine_.pod_count(), sources.announcer(), sources.version());
  }
  Deliver();
}

void Engine::Step() { Work(/*wait=*/false); }

bool Engine::StepDue() const {
  MutexLock lock(&mutex_);
  return !mailbox_.empty() || machine_.PlanningDue() || machine_.NextDeadline() <= NowMs() || !readings_.empty();
}

bool Engine::Work(bool wait) {
  bool stop = false;
  bool plans = true;
  {
    MutexLock lock(&mutex_);
    idle_ = true;
    while (wait && mailbox_.empty() && !stopping_ && (draining_ || !machine_.PlanningDue()) && readings_.empty()) {
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
  // One of those that read on: a batch waits for one step, however many they are.
  if (!readings_.empty() && !stop) {
    Item item = std::move(readings_.front());
    readings_.pop_front();
    ReadOn(std::move(item));
  }
  Outcome outcome;
  if (machine_.NextDeadline() <= NowMs()) Apply(Tick{}, &outcome);
  Tell();
  if (plans) PlanForAWhile();
  if (stop) Apply(Shutdown{}, &outcome);
  Deliver();
  return !stop;
}

void Engine::Run() {
  TakeUpFacts();
  committer_.Add({}, 0, [this](Stored /*stored*/) { taken_up_.Notify(); });
  while (Work(/*wait=*/true)) {
  }
  if (options_.recorder != nullptr) options_.recorder->Ended(machine_);
  // Calls that are committed and still wait for the API server: the pod is bound or will be; its caller asks again.
  auto rest = std::make_shared<Delivery>();
  for (auto& [token, held] : holds_) {
    rest->answers.emplace_back(
        std::move(held.answered),
        HoldAnswer{token, false, {ReasonCode::kShuttingDown, "Muster is stopping; the pod will be tried again"}});
  }
  holds_.clear();
  for (Item& item : readings_) {
    rest->replies.emplace_back(std::move(item.done), absl::UnavailableError("Muster is stopping"));
  }
  readings_.clear();
  // Behind what is on its way to the store: callers are answered in order, one at a time.
  committer_.Add({}, 0, [this, rest](Stored stored) { LetGo(rest.get(), stored); });
}

void Engine::ApplyOne(Item item) {
  ++commands_;
  if (item.read) return ReadOn(std::move(item));
  if (item.deadline < std::chrono::steady_clock::now()) {
    told_.emplace_back(std::move(item.done),
                       absl::DeadlineExceededError("the deadline passed before its turn came; nothing happened"));
    return;
  }
  if (item.span != nullptr) tracer_.Turn(machine_, item.command, item.span.get());
  if (item.answered && std::holds_alternative<Bind>(item.command)) {
    holds_.emplace(std::get<Bind>(item.command).token, Held{std::move(item.answered), item.span});
  }
  const auto* bound = std::get_if<BindingOutcome>(&item.command);
  if (bound != nullptr) tracer_.Outcome(*bound);
  Outcome outcome;
  const size_t ended_before = answers_.size();
  Apply(item.command, &outcome);
  if (bound != nullptr) tracer_.Moved(machine_.FindPod(bound->uid));
  // A Permit ends with its reply, unless that is WAIT.
  const auto* permit = std::get_if<PermitReply>(&outcome.reply);
  const bool waits = item.answered && permit != nullptr && permit->kind == PermitReply::Kind::kWait;
  if (waits) holds_.emplace(std::get<Permit>(item.command).token, Held{std::move(item.answered), item.span});
  if (item.span != nullptr) {
    tracer_.Decided(machine_, item.command, outcome.status, outcome.reply, item.span.get());
    if (waits || !item.done) tracer_.Held(*item.span);
    for (size_t i = ended_before; i < answers_.size(); ++i) answers_[i].by = {item.span->trace, item.span->id};
  }
  if (!item.done && !outcome.status.ok()) refused_log_.Write(item.command, outcome.status);
  if (!item.done) return;
  const bool waits_for_records =
      outcome.status.ok() ? outcome.reply_promises : RestsOnRecords(item.command, outcome.status);
  if (item.span != nullptr && !waits) (waits_for_records ? spans_ : told_spans_).push_back(std::move(item.span));
  absl::StatusOr<Reply> reply = std::move(outcome.reply);
  if (!outcome.status.ok()) reply = outcome.status;
  if (item.applied) {
    std::vector<Record> more = item.applied(machine_, reply);
    std::move(more.begin(), more.end(), std::back_inserter(records_));
  }
  (waits_for_records ? replies_ : told_).emplace_back(std::move(item.done), std::move(reply));
}

void Engine::ReadOn(Item item) {
  if (item.read(machine_)) {
    (item.promises ? replies_ : told_).emplace_back(std::move(item.done), Reply{});
  } else {
    readings_.push_back(std::move(item));
  }
}

void Engine::Apply(const Command& command, Outcome* outcome) {
  outcome->records.clear();
  outcome->effects.clear();
  outcome->answers.clear();
  outcome->reply_promises = true;
  const int64_t now_ms = NowMs();
  if (options_.recorder != nullptr) options_.recorder->Before(machine_, now_ms);
  machine_.Apply(command, now_ms, outcome);
  if (options_.recorder != nullptr) options_.recorder->Applied(command, now_ms, *outcome);
  std::move(outcome->records.begin(), outcome->records.end(), std::back_inserter(records_));
  std::move(outcome->effects.begin(), outcome->effects.end(), std::back_inserter(batch_effects_));
  for (HoldAnswer& answer : outcome->answers) answers_.push_back({std::move(answer), {}});
}

// What promises nothing waits neither for the disk nor for the planner (K-2).
void Engine::Tell() {
  for (auto& [done, reply] : std::exchange(told_, {})) done(std::move(reply));
  if (!told_spans_.empty()) tracer_.End(std::exchange(told_spans_, {}), /*slow=*/false);
}

// Gang by gang, so that who asks meanwhile waits for one gang's planning and not for a round of them.
void Engine::PlanForAWhile() {
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

int Engine::Listen(const Listener& listener) {
  MutexLock lock(&listeners_mutex_);
  listeners_.emplace(next_listener_, listener);
  return next_listener_++;
}

void Engine::Unlisten(int id) {
  MutexLock lock(&listeners_mutex_);
  listeners_.erase(id);
}

EngineStats Engine::stats() const {
  EngineStats stats;
  stats.commands = commands_;
  stats.batches = batches_;
  stats.store_trouble = committer_.trouble();
  stats.store_waiting = committer_.added() - committer_.delivered();
  stats.commits = committer_.commits();
  stats.spans_skipped = tracer_.skipped();
  MutexLock lock(&mutex_);
  stats.mailbox_depth = mailbox_.size();
  stats.rejected = rejected_;
  return stats;
}

}  // namespace muster
