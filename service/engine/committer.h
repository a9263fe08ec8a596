// Makes the engine's decisions durable in the store, in order, without blocking the engine's thread. What depends on a
// decision (answers, effects, the published view) is released after its records are durable (SPEC S-2).
//
// Deliveries are numbered in the order of Add. A thread takes all queued deliveries, commits their records in one
// commit and delivers them in order. Meanwhile others are queued. If the queue is not empty when a commit ends, the
// next commit begins at once, and a second thread delivers what is committed.
//
// If the store fails, the same records are tried again; only what depends on them waits. Add delivers at once, on the
// caller's thread, if the store does not wait for a disk, or if there are no records and no commit is running.
#ifndef MUSTER_SERVICE_ENGINE_COMMITTER_H_
#define MUSTER_SERVICE_ENGINE_COMMITTER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "service/store/store.h"
#include "support/sync.h"

namespace muster {

// What became of the records that a delivery depends on.
enum class Stored : uint8_t { kDurable, kStopping, kFenced };

// Add is called from one thread; everything else is thread-safe.
class Committer {
 public:
  using Deliver = std::function<void(Stored)>;
  // Each waiting call uses about 10 KB of memory, even if its caller has left.
  static constexpr size_t kMaxWaitingCallers = 50'000;

  // `backlog`: the number of records that may wait for the store before the engine refuses commands that may need more.
  // `stepped`: there is no thread; the owner calls TryOnce.
  Committer(Store* store, absl::Duration grace, size_t backlog, bool stepped)
      : store_(store), grace_(grace), backlog_(backlog), stepped_(stepped) {}
  ~Committer() { Stop(); }

  // Takes over the store and returns its records.
  [[nodiscard]] absl::StatusOr<std::vector<Record>> Start();
  // From now on, if the store accepts nothing for `grace`, all remaining deliveries receive kStopping.
  void StartGracePeriod();
  // Delivers everything added, without waiting for callers, and ends the thread. REQUIRES: no Add afterwards.
  void Stop();

  // `callers`: the number of callers that wait for the delivery.
  void Add(std::vector<Record> records, size_t callers, Deliver deliver);
  // Stepped only: commits what is queued, or what failed the last time, and delivers it unless the store fails. Returns
  // false if there is nothing to commit.
  bool TryOnce();

  [[nodiscard]] int store_format() const { return store_->format(); }
  [[nodiscard]] std::string store_name() const { return store_->name(); }
  [[nodiscard]] bool full() const { return waiting_records_ >= backlog_; }
  // kMaxWaitingCallers callers wait: no more are accepted.
  [[nodiscard]] bool too_many_callers() const { return waiting_callers_ >= kMaxWaitingCallers; }
  // Another process has the store: nothing will be stored any more.
  [[nodiscard]] bool fenced() const { return stored_ == Stored::kFenced; }
  // Why the store accepts nothing at the moment; empty: it accepts.
  [[nodiscard]] std::string last_error() const;
  // Numbers of the last delivery added and of the last one delivered.
  [[nodiscard]] int64_t added() const { return added_; }
  [[nodiscard]] int64_t delivered() const { return delivered_; }
  [[nodiscard]] int64_t commits() const { return commits_; }

 private:
  struct Batch {
    std::vector<Record> records;
    size_t callers = 0;
    Deliver deliver;
  };

  // Committed or given up, and not delivered yet.
  struct Finished {
    std::deque<Batch> batches;
    Stored stored = Stored::kDurable;
  };

  void Run();
  void RunDelivery();
  // Waits before a commit until as many callers wait as were answered last, or none arrives for a moment, or the time
  // of one commit has passed. Reason: an answered caller usually calls again at once; without the wait it would just
  // miss this commit and wait for two. If callers arrive for longer than a commit takes, there is no wait: some of them
  // then call while the commit of the others runs.
  void AwaitCallers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves what is queued to gathered_. Returns false if the queue is empty.
  bool Gather() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DeliverGathered(Stored stored);
  void DeliverAll(Finished* finished);
  // Returns when the records are committed or given up.
  [[nodiscard]] Stored Commit(const std::vector<Record>& records);
  // Returns false if the commit has to be tried again.
  [[nodiscard]] bool CommitOnce(const std::vector<Record>& records);
  // Returns false if the commit is given up.
  [[nodiscard]] bool Pause(absl::Duration pause);
  void OnCommitStatus(const absl::Status& status);

  Store* const store_;
  const absl::Duration grace_;
  const size_t backlog_;
  const bool stepped_;
  int64_t epoch_ = 0;
  // What is being committed; used only by the thread that commits.
  std::deque<Batch> gathered_;
  std::vector<Record> gathered_records_;
  size_t gathered_callers_ = 0;
  absl::Time last_commit_end_;           // end of the last commit, on the steady clock
  absl::Duration last_commit_duration_;  // its duration, bounded by kMaxCallerWait
  int futile_waits_ = 0;                 // consecutive waits that ended with too few callers
  int commits_without_wait_ = 0;         // commits that did not wait, because of futile_waits_

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Batch> queue_ ABSL_GUARDED_BY(mutex_);
  size_t callers_ ABSL_GUARDED_BY(mutex_) = 0;          // callers that wait for what is in queue_
  size_t wake_at_callers_ ABSL_GUARDED_BY(mutex_) = 0;  // the thread is not woken for fewer callers
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;           // the thread commits or delivers
  CondVar finished_added_;
  std::deque<Finished> finished_ ABSL_GUARDED_BY(mutex_);  // for the second thread
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;        // the second thread delivers
  bool commits_ended_ ABSL_GUARDED_BY(mutex_) = false;     // the first thread has ended
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time give_up_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // on the steady clock
  std::string last_error_ ABSL_GUARDED_BY(mutex_);

  std::atomic<Stored> stored_{Stored::kDurable};  // after one failure nothing later is stored
  std::atomic<size_t> waiting_records_{0};
  std::atomic<size_t> waiting_callers_{0};
  std::atomic<int64_t> added_{0};
  std::atomic<int64_t> delivered_{0};
  std::atomic<int64_t> commits_{0};
  std::thread thread_;
  std::thread delivery_thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_COMMITTER_H_
