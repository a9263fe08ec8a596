// Ends what is not over in time, however much of it comes meanwhile. cpp-httplib's time-outs are for each read and
// write: whoever is answered a byte at a time would wait without an end.
#ifndef MUSTER_SUPPORT_OVERDUE_H_
#define MUSTER_SUPPORT_OVERDUE_H_

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "support/sync.h"

namespace muster {

// Thread-safe.
class Overdue {
 public:
  Overdue() : thread_([this] { Run(); }) {}
  // REQUIRES: everything is done.
  ~Overdue();
  Overdue(const Overdue&) = delete;
  Overdue& operator=(const Overdue&) = delete;

  // `end` is called from `by` on, of SteadyNow, again and again: what was about to begin does not hear of it the first
  // time. One that takes long delays those of others. Returns what Done is told.
  [[nodiscard]] int64_t Watch(absl::Time by, std::function<void()> end);
  // Another time than before. REQUIRES: not done.
  void SetTime(int64_t id, absl::Time by);
  // It is over: its `end` is not being called, and never will be. False: its time had come.
  bool Done(int64_t id);

 private:
  struct Watched {
    absl::Time by;
    std::function<void()> end;
    bool over = false;
  };
  void Run();

  Mutex mutex_;
  CondVar changed_;
  absl::btree_map<int64_t, Watched> watched_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  // Whose `end` is being called; 0: nobody's.
  int64_t ending_ ABSL_GUARDED_BY(mutex_) = 0;
  // As long as nobody says otherwise.
  absl::Time waits_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SUPPORT_OVERDUE_H_
