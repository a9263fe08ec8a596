#include "service/engine/committer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace muster {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
constexpr absl::Duration kMaxPause = absl::Seconds(2);
constexpr int kPausesPerCommit = 4;
// After kMaxFutileWaits futile waits in a row, the committer waits for callers only once in kCommitsPerProbe commits. A
// wait is futile if more than one in kMissingTolerance of the expected callers is missing.
constexpr size_t kMissingTolerance = 8;
constexpr int kMaxFutileWaits = 3;
constexpr int kCommitsPerProbe = 32;
constexpr absl::Duration kMaxCallerWait = absl::Milliseconds(20);
constexpr absl::Duration kMinWait = absl::Microseconds(50);
constexpr absl::Duration kGracePause = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<std::vector<Record>> Committer::Start() {
  absl::StatusOr<Store::Contents> contents = store_->TakeOver();
  if (!contents.ok()) return contents.status();
  epoch_ = contents->epoch;
  if (contents->dropped_records > 0) {
    spdlog::warn(
        "the store is a copy and may be outdated: {} records of nodes and sources are dropped until they "
        "are announced again",
        contents->dropped_records);
  }
  MutexLock lock(&mutex_);
  running_ = true;
  if (stepped_) return std::move(contents->records);
  thread_ = std::thread([this] { Run(); });
  delivery_thread_ = std::thread([this] { RunDelivery(); });
  return std::move(contents->records);
}

void Committer::StartGracePeriod() {
  MutexLock lock(&mutex_);
  give_up_ = std::min(give_up_, SteadyNow() + grace_);
  changed_.SignalAll();
}

void Committer::Stop() {
  StartGracePeriod();
  {
    MutexLock lock(&mutex_);
    if (!running_) return;
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  {
    MutexLock lock(&mutex_);
    commits_ended_ = true;
    finished_added_.Signal();
  }
  if (delivery_thread_.joinable()) delivery_thread_.join();
  MutexLock lock(&mutex_);
  running_ = false;
}

void Committer::Add(std::vector<Record> records, size_t callers, Deliver deliver) {
  ++added_;
  bool at_once = false;
  {
    MutexLock lock(&mutex_);
    at_once =
        queue_.empty() && !busy_ && !delivering_ && finished_.empty() && (records.empty() || !store_->waits_for_disk());
    if (!at_once || !running_) {
      waiting_records_ += records.size();
      waiting_callers_ += callers;
      queue_.push_back({std::move(records), callers, std::move(deliver)});
      callers_ += callers;
      if (callers_ >= wake_at_callers_) changed_.Signal();
      return;
    }
  }
  deliver(Commit(records));  // no commit runs, and only this thread adds
  ++delivered_;
}

void Committer::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      AwaitCallers();
      if (!Gather()) return;
    }
    const absl::Time begin = SteadyNow();
    const Stored stored = Commit(gathered_records_);
    // bounded: the commit may have been retried for long
    last_commit_duration_ = std::min(SteadyNow() - begin, kMaxCallerWait);
    DeliverGathered(stored);
  }
}

void Committer::RunDelivery() {
  while (true) {
    Finished next;
    {
      MutexLock lock(&mutex_);
      delivering_ = false;
      while (finished_.empty() && !commits_ended_) finished_added_.Wait(&mutex_);
      if (finished_.empty()) return;
      next = std::move(finished_.front());
      finished_.pop_front();
      delivering_ = true;
    }
    DeliverAll(&next);
  }
}

void Committer::AwaitCallers() {  // short cut
  if (callers_ >= gathered_callers_ ||
      (futile_waits_ >= kMaxFutileWaits && ++commits_without_wait_ % kCommitsPerProbe != 0))
    return;
  // The first caller needs longer: its answer has to be delivered first.
  absl::Duration pause = std::max(last_commit_duration_ / 2, kMinWait);
  wake_at_callers_ = gathered_callers_;
  bool progress = true;
  while (progress && callers_ < wake_at_callers_ && !stopping_ && give_up_ == absl::InfiniteFuture()) {
    const absl::Duration left = last_commit_end_ + last_commit_duration_ - SteadyNow();
    if (left < kMinWait) break;
    const size_t before = callers_;
    changed_.WaitWithTimeout(&mutex_, std::min(pause, left));
    progress = callers_ > before;
    pause = std::max(last_commit_duration_ / kPausesPerCommit, kMinWait);
  }
  futile_waits_ = callers_ + wake_at_callers_ / kMissingTolerance >= wake_at_callers_ ? 0 : futile_waits_ + 1;
  wake_at_callers_ = 0;
}

bool Committer::TryOnce() {
  if (gathered_.empty()) {
    MutexLock lock(&mutex_);
    if (!Gather()) return false;
  }
  if (gathered_records_.empty() || stored_ != Stored::kDurable || CommitOnce(gathered_records_))
    DeliverGathered(stored_);
  return true;
}

bool Committer::Gather() {
  gathered_ = std::exchange(queue_, {});
  gathered_callers_ = std::exchange(callers_, 0);
  busy_ = !gathered_.empty();
  for (Batch& batch : gathered_) {
    std::move(batch.records.begin(), batch.records.end(), std::back_inserter(gathered_records_));
  }
  return busy_;
}

void Committer::DeliverGathered(Stored stored) {
  waiting_records_ -= gathered_records_.size();
  waiting_callers_ -= gathered_callers_;
  gathered_records_.clear();
  last_commit_end_ = SteadyNow();
  Finished finished{std::exchange(gathered_, {}), stored};
  {
    MutexLock lock(&mutex_);
    if (!stepped_ && (!queue_.empty() || delivering_ || !finished_.empty())) {
      finished_.push_back(std::move(finished));
      finished_added_.Signal();
      busy_ = false;
      return;
    }
  }
  DeliverAll(&finished);
  last_commit_end_ = SteadyNow();
  MutexLock lock(&mutex_);
  busy_ = false;
}

void Committer::DeliverAll(Finished* finished) {
  for (Batch& batch : finished->batches) {
    batch.deliver(finished->stored);
    ++delivered_;
  }
}

Stored Committer::Commit(const std::vector<Record>& records) {
  for (absl::Duration pause = kFirstPause; !records.empty() && stored_ == Stored::kDurable;
       pause = std::min(pause * 2, kMaxPause)) {
    if (CommitOnce(records)) break;
    if (!Pause(pause)) stored_ = Stored::kStopping;
  }
  return stored_;
}

bool Committer::CommitOnce(const std::vector<Record>& records) {
  const absl::Status status = store_->Commit(epoch_, records);
  OnCommitStatus(status);
  if (ClassifyStoreError(status) == StoreErrorKind::kFenced) stored_ = Stored::kFenced;
  if (status.ok()) ++commits_;
  return status.ok() || stored_ == Stored::kFenced;
}

bool Committer::Pause(absl::Duration pause) {
  MutexLock lock(&mutex_);
  const absl::Time begun = SteadyNow();
  while (true) {
    const absl::Time now = SteadyNow();
    if (now >= give_up_) return false;
    const bool hurried = give_up_ != absl::InfiniteFuture();
    const absl::Time again = begun + (hurried ? std::min(pause, kGracePause) : pause);
    if (now >= again) return true;
    changed_.WaitWithTimeout(&mutex_, std::min(again, give_up_) - now);  // woken by Add and by StartGracePeriod
  }
}

void Committer::OnCommitStatus(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (status.ok() && !last_error_.empty()) spdlog::info("the store accepts commits again");
  if (!status.ok() && last_error_ != status.message()) {
    spdlog::error("the store refuses commits, answers wait: {}", std::string(status.message()));
  }
  last_error_ = std::string(status.message());
}

std::string Committer::last_error() const {
  MutexLock lock(&mutex_);
  return last_error_;
}

}  // namespace muster
