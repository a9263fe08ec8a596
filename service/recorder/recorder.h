// The flight recorder (S-3): writes every input of musterd with its time, so that each decision can be replayed
// elsewhere (`musterctl replay`).
//
// The engine's thread only appends bytes to a buffer; the recorder's own thread writes them within kFlush. A slow or
// full disk makes the recording incomplete and has no other effect. Commands that cannot be stored are left out and
// counted. The recording continues with a new file that begins with the state at that time.
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
  std::string path;               // the current file; older ones are PATH.1, PATH.2 and so on, the newest first
  int64_t max_bytes = 256 << 20;  // of all files, and of what waits when one is full
  std::string version;            // of this musterd
  MachineSettings settings;       // of the machine
  size_t max_waiting = 64 << 20;  // bytes of commands that wait to be written; commands beyond it are left out
  absl::Duration retry = absl::Seconds(30);  // after a file could not be written
};

struct RecorderStats {
  int64_t bytes = 0;       // written
  int64_t commands = 0;    // written
  int64_t lost = 0;        // commands that are in no file
  std::string last_error;  // why nothing is recorded at the moment; empty: recording works
};

class Recorder : public CommandRecorder {
 public:
  static constexpr absl::Duration kFlush = absl::Milliseconds(50);

  // The error says what is wrong with the path and what to do.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Recorder>> Open(RecorderOptions options);
  ~Recorder() override { Stop(); }

  void BeforeApply(const Machine& machine, int64_t now_ms) override;
  void AfterApply(const Command& command, int64_t now_ms, const Outcome& outcome) override;
  void OnStopped(const Machine& machine) override;

  // Writes what waits, and ends the thread. REQUIRES: the engine has stopped.
  void Stop();
  // Thread-safe.
  [[nodiscard]] RecorderStats stats() const;

 private:
  // The next thing to write, in order.
  struct Part {
    std::optional<SegmentHeader> begin;  // begins a new file
    std::string state;                   // the state at its beginning
    SegmentCommands commands;
    SegmentEnd end = SegmentEnd::kNone;
    uint64_t state_hash = 0;
  };

  explicit Recorder(RecorderOptions options);
  // Until Stop the files belong to one process. The lock file is hidden, because "FILE*" are recordings.
  [[nodiscard]] absl::Status Lock();
  void Run();
  void Write(const Part& part);
  [[nodiscard]] absl::Status BeginFile(const Part& part);
  // Sizes of the existing files by age; 0 is the one without a number. The error names a file that is not a recording.
  [[nodiscard]] absl::StatusOr<std::map<size_t, int64_t>> Files() const;
  // Deletes the oldest files until there is room for `bytes`.
  [[nodiscard]] absl::Status DeleteOldestFiles(int64_t bytes) const;
  // Renames each file to the next number, up to the first free one.
  [[nodiscard]] absl::Status RotateFiles() const;
  void OnWriteStatus(const absl::Status& status);

  const RecorderOptions options_;
  int lock_ = -1;

  // Used by the engine's thread only.
  int64_t applied_ = 0;
  int64_t last_ms_ = 0;
  bool recording_ = false;

  std::atomic<bool> snapshot_needed_{true};  // the next command opens a new file

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Part> parts_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes of waiting commands; at most one state waits
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  RecorderStats stats_ ABSL_GUARDED_BY(mutex_);

  // Used by the recorder's thread only.
  std::optional<SegmentWriter> file_;
  int64_t snapshot_bytes_ = 0;       // bytes of the state in the current file
  bool snapshot_requested_ = false;  // a state for the next file was requested
  absl::Time retry_at_ = absl::InfiniteFuture();

  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RECORDER_RECORDER_H_
