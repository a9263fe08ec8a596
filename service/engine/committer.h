// Between the engine and the store: makes what was decided durable, in order and off the engine's thread, and lets go
// of what depends on it - answers, effects, the published picture - once that is so (SPEC S-2).
//
// Deliveries are numbered in the order of Add. A thread takes all that have gathered, commits their records at once and
// delivers them in order; meanwhile the next ones gather. Where some have when a commit ends, theirs begins at once,
// and a second thread delivers what is committed. A store that fails is tried again, with the same records: what
// depends on them waits, nothing else does. Where the store does not wait for a disk, and for what has no records while
// nothing is under way, Add delivers at once, on the caller's thread.
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
enum class Stored : uint8_t { kYes, kStopping, kFenced };

// Add from one thread; everything else is thread-safe.
class Committer {
 public:
  using Deliver = std::function<void(Stored)>;
  // Each is some 10 KB of memory, whether its caller still waits or not.
  static constexpr size_t kMostCallers = 50'000;

  // `backlog`: records that may wait for the store before the engine takes nothing that may need more of them.
  // `stepped`: there is no thread; whoever owns it calls TryOnce.
  Committer(Store* store, absl::Duration grace, size_t backlog, bool stepped)
      : store_(store), grace_(grace), backlog_(backlog), stepped_(stepped) {}
  ~Committer() { Stop(); }

  // Takes the store over; returns what is in it.
  [[nodiscard]] absl::StatusOr<std::vector<Record>> Start();
  // From now on a store that takes nothing for the grace time is given up: the rest is delivered as not kept.
  void Hurry();
  // Hurries, delivers what was added, and ends the thread. Nothing is added any more.
  void Stop();

  // `callers`: how many wait for it.
  void Add(std::vector<Record> records, size_t callers, Deliver deliver);
  // Commits what has gathered, or what failed the last time, and delivers it unless the store fails. False: there is
  // nothing. Stepped only.
  bool TryOnce();

  [[nodiscard]] int store_format() const { return store_->format(); }
  [[nodiscard]] std::string store_name() const { return store_->name(); }
  [[nodiscard]] bool full() const { return waiting_records_ >= backlog_; }
  // So many callers wait for it that no more are taken.
  [[nodiscard]] bool crowded() const { return waiting_callers_ >= kMostCallers; }
  // Another process has the store: nothing will be kept any more.
  [[nodiscard]] bool fenced() const { return stored_ == Stored::kFenced; }
  // Why the store takes nothing now; empty: it does.
  [[nodiscard]] std::string trouble() const;
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

  // Committed, or given up, and not delivered yet.
  struct Finished {
    std::deque<Batch> batches;
    Stored stored = Stored::kYes;
  };

  void Run();
  void DeliverBeside();
  // Until as many callers wait as were answered last, none has come for a moment, or the time has passed that a commit
  // takes: who was answered mostly comes again at once, and would just miss this commit and wait for two. Where so many
  // come that it takes them longer, nobody is awaited: one part of them calls while the other's commit is under way.
  void AwaitCallers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes what has gathered. False: nothing has.
  bool Gather() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DeliverGathered(Stored stored);
  void DeliverAll(Finished* finished);
  // Until it is done, or given up.
  [[nodiscard]] Stored Commit(const std::vector<Record>& records);
  // False: it is to be tried again.
  [[nodiscard]] bool CommitOnce(const std::vector<Record>& records);
  // False: given up.
  [[nodiscard]] bool Pause(absl::Duration pause);
  void Note(const absl::Status& status);

  Store* const store_;
  const absl::Duration grace_;
  const size_t backlog_;
  const bool stepped_;
  int64_t epoch_ = 0;
  // What is being committed; of whoever commits.
  std::deque<Batch> gathered_;
  std::vector<Record> gathered_records_;
  size_t gathered_callers_ = 0;
  absl::Time committed_;  // when the last commit ended, on the steady clock
  absl::Duration took_;   // how long it took, as far as anybody is awaited
  int in_vain_ = 0;       // how often in a row not all came who were awaited
  int skipped_ = 0;       // commits that awaited nobody, because of it

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Batch> queue_ ABSL_GUARDED_BY(mutex_);
  size_t callers_ ABSL_GUARDED_BY(mutex_) = 0;  // that wait for what is in queue_
  size_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;   // the thread is not to be woken for fewer
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;   // the thread commits or delivers
  CondVar finished_some_;
  std::deque<Finished> finished_ ABSL_GUARDED_BY(mutex_);  // for the second thread
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;        // the second thread delivers
  bool over_ ABSL_GUARDED_BY(mutex_) = false;              // the first thread has ended
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time give_up_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // on the steady clock
  std::string trouble_ ABSL_GUARDED_BY(mutex_);

  std::atomic<Stored> stored_{Stored::kYes};  // once something was not kept, nothing later is
  std::atomic<size_t> waiting_records_{0};
  std::atomic<size_t> waiting_callers_{0};
  std::atomic<int64_t> added_{0};
  std::atomic<int64_t> delivered_{0};
  std::atomic<int64_t> commits_{0};
  std::thread thread_;
  std::thread beside_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_ENGINE_COMMITTER_H_
