// The flight recorder (S-3): writes down what musterd is told and when, so that every decision can be looked at again
// elsewhere (`musterctl replay`).
//
// The engine's thread only adds bytes to what is waiting; a thread of the recorder's writes them, within kFlush. A disk
// that is slow or full makes the recording incomplete, and nothing else: what cannot be kept is left out, counted, and
// the recording goes on with a new file that opens with the state as it is then.
#ifndef MUSTER_SERVICE_RECORDER_RECORDER_H_
#define MUSTER_SERVICE_RECORDER_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "service/engine/command_recorder.h"
#include "service/recorder/segment.h"
#include "support/sync.h"

namespace muster {

struct RecorderOptions {
  std::string path;  // the file that is being written; older ones are PATH.1, PATH.2 and so on, the newest first
  int64_t max_bytes = 256 << 20;             // of all of them, and what waits when one is full
  std::string version;                       // of this musterd
  MachineSettings settings;                  // of the machine
  size_t max_waiting = 64 << 20;             // bytes of commands that wait to be written; beyond that they are left out
  absl::Duration retry = absl::Seconds(30);  // after a file could not be written
};

struct RecorderStats {
  int64_t bytes = 0;     // written
  int64_t commands = 0;  // written
  int64_t lost = 0;      // commands that no file has
  std::string trouble;   // why nothing is recorded now; empty: it is
};

class Recorder : public CommandRecorder {
 public:
  static constexpr absl::Duration kFlush = absl::Milliseconds(50);

  // The error says what is wrong with the path, and what to do.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Recorder>> Open(RecorderOptions options);
  ~Recorder() override { Stop(); }

  void Before(const Machine& machine, int64_t now_ms) override;
  void Applied(const Command& command, int64_t now_ms, const Outcome& outcome) override;
  void Ended(const Machine& machine) override;

  // Writes what waits, and ends the thread. Call it when the engine has stopped.
  void Stop();
  // Thread-safe.
  [[nodiscard]] RecorderStats stats() const;

 private:
  // What is written next, in order.
  struct Part {
    std::optional<SegmentHeader> begin;  // of a new file,
    std::string state;                   // which opens with this
    SegmentCommands commands;
    SegmentEnd end = SegmentEnd::kNone;
    uint64_t state_hash = 0;
  };

  explicit Recorder(RecorderOptions options);
  // Until Stop the files are of one process. The lock is hidden: "FILE*" are recordings.
  [[nodiscard]] absl::Status Lock();
  void Run();
  void Write(const Part& part);
  [[nodiscard]] absl::Status BeginFile(const Part& part);
  // Sizes of the files that are there, by age; 0 is the one without a number. The error names one that is not ours.
  [[nodiscard]] absl::StatusOr<std::map<size_t, int64_t>> Files() const;
  // The oldest go, until there is room for `bytes`.
  [[nodiscard]] absl::Status MakeRoom(int64_t bytes) const;
  // Each gets the next number, up to the first that nobody has.
  [[nodiscard]] absl::Status MoveOn() const;
  void Note(const absl::Status& status);

  const RecorderOptions options_;
  int lock_ = -1;

  // The engine's thread only.
  int64_t applied_ = 0;
  int64_t last_ms_ = 0;
  bool recording_ = false;

  std::atomic<bool> wants_state_{true};  // the next command opens a new file

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Part> parts_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes of commands; of states there is one at the most
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  RecorderStats stats_ ABSL_GUARDED_BY(mutex_);

  // The recorder's thread only.
  std::optional<SegmentWriter> file_;
  int64_t opened_with_ = 0;  // bytes of the file's state
  bool asked_ = false;       // for the state that opens the next one
  absl::Time retry_at_ = absl::InfiniteFuture();

  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RECORDER_RECORDER_H_
