#include "service/engine/committer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace muster {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Seconds(2);
constexpr int kPausesInACommit = 4;
// After so many times in vain in a row, callers are awaited once in so many commits. Not in vain: but for one in eight
// all came.
constexpr size_t kMayLack = 8;
constexpr int kInVain = 3;
constexpr int kSkipped = 32;
constexpr absl::Duration kLongestAwaited = absl::Milliseconds(20);
constexpr absl::Duration kShortestWait = absl::Microseconds(50);
constexpr absl::Duration kHurriedPause = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<std::vector<Record>> Committer::Start() {
  absl::StatusOr<Store::Contents> contents = store_->TakeOver();
  if (!contents.ok()) return contents.status();
  epoch_ = contents->epoch;
  if (contents->forgotten > 0) {
    spdlog::warn(
        "the store is a copy, which may be old: {} records of nodes and of who announces them are forgotten until they "
        "are announced again",
        contents->forgotten);
  }
  MutexLock lock(&mutex_);
  running_ = true;
  if (stepped_) return std::move(contents->records);
  thread_ = std::thread([this] { Run(); });
  beside_ = std::thread([this] { DeliverBeside(); });
  return std::move(contents->records);
}

void Committer::Hurry() {
  MutexLock lock(&mutex_);
  give_up_ = std::min(give_up_, SteadyNow() + grace_);
  changed_.SignalAll();
}

void Committer::Stop() {
  Hurry();
  {
    MutexLock lock(&mutex_);
    if (!running_) return;
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  {
    MutexLock lock(&mutex_);
    over_ = true;
    finished_some_.Signal();
  }
  if (beside_.joinable()) beside_.join();
  MutexLock lock(&mutex_);
  running_ = false;
}

void Committer::Add(std::vector<Record> records, size_t callers, Deliver deliver) {
  ++added_;
  bool at_once = false;
  {
    MutexLock lock(&mutex_);
    at_once = queue_.empty() && !busy_ && !delivering_ && finished_.empty() && (records.empty() || !store_->slow());
    if (!at_once || !running_) {
      waiting_records_ += records.size();
      waiting_callers_ += callers;
      queue_.push_back({std::move(records), callers, std::move(deliver)});
      callers_ += callers;
      if (callers_ >= wanted_) changed_.Signal();
      return;
    }
  }
  deliver(Commit(records));  // nothing is under way, and only this thread adds
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
    const absl::Time begun = SteadyNow();
    const Stored stored = Commit(gathered_records_);
    took_ = std::min(SteadyNow() - begun, kLongestAwaited);  // it may have been tried for long
    DeliverGathered(stored);
  }
}

void Committer::DeliverBeside() {
  while (true) {
    Finished next;
    {
      MutexLock lock(&mutex_);
      delivering_ = false;
      while (finished_.empty() && !over_) finished_some_.Wait(&mutex_);
      if (finished_.empty()) return;
      next = std::move(finished_.front());
      finished_.pop_front();
      delivering_ = true;
    }
    DeliverAll(&next);
  }
}

void Committer::AwaitCallers() {
  if (callers_ >= gathered_callers_ || (in_vain_ >= kInVain && ++skipped_ % kSkipped != 0)) return;
  // The first needs longer: he has to be answered.
  absl::Duration pause = std::max(took_ / 2, kShortestWait);
  wanted_ = gathered_callers_;
  bool some = true;
  while (some && callers_ < wanted_ && !stopping_ && give_up_ == absl::InfiniteFuture()) {
    const absl::Duration left = committed_ + took_ - SteadyNow();
    if (left < kShortestWait) break;
    const size_t before = callers_;
    changed_.WaitWithTimeout(&mutex_, std::min(pause, left));
    some = callers_ > before;
    pause = std::max(took_ / kPausesInACommit, kShortestWait);
  }
  in_vain_ = callers_ + wanted_ / kMayLack >= wanted_ ? 0 : in_vain_ + 1;
  wanted_ = 0;
}

bool Committer::TryOnce() {
  if (gathered_.empty()) {
    MutexLock lock(&mutex_);
    if (!Gather()) return false;
  }
  if (gathered_records_.empty() || stored_ != Stored::kYes || CommitOnce(gathered_records_)) DeliverGathered(stored_);
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
  committed_ = SteadyNow();
  Finished finished{std::exchange(gathered_, {}), stored};
  {
    MutexLock lock(&mutex_);
    if (!stepped_ && (!queue_.empty() || delivering_ || !finished_.empty())) {
      finished_.push_back(std::move(finished));
      finished_some_.Signal();
      busy_ = false;
      return;
    }
  }
  DeliverAll(&finished);
  committed_ = SteadyNow();
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
  for (absl::Duration pause = kFirstPause; !records.empty() && stored_ == Stored::kYes;
       pause = std::min(pause * 2, kLongestPause)) {
    if (CommitOnce(records)) break;
    if (!Pause(pause)) stored_ = Stored::kStopping;
  }
  return stored_;
}

bool Committer::CommitOnce(const std::vector<Record>& records) {
  const absl::Status status = store_->Commit(epoch_, records);
  Note(status);
  if (TroubleOf(status) == StoreTrouble::kFenced) stored_ = Stored::kFenced;
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
    const absl::Time again = begun + (hurried ? std::min(pause, kHurriedPause) : pause);
    if (now >= again) return true;
    changed_.WaitWithTimeout(&mutex_, std::min(again, give_up_) - now);  // woken by Add and by Hurry
  }
}

void Committer::Note(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (status.ok() && !trouble_.empty()) spdlog::info("the store takes commits again");
  if (!status.ok() && trouble_ != status.message()) {
    spdlog::error("the store takes no commit, answers wait for it: {}", std::string(status.message()));
  }
  trouble_ = std::string(status.message());
}

std::string Committer::trouble() const {
  MutexLock lock(&mutex_);
  return trouble_;
}

}  // namespace muster
