// One file of a flight recording (S-3): a header, the whole state of the machine, then every command applied to it.
// Each file can be replayed alone.
//
// A file begins with "MUSTERRC". Frames follow. A frame is the payload's length, its CRC-32 (four bytes each, the
// lowest first) and the payload. The first byte of the payload is its kind: 'H' header, 'S' a piece of the state, 'O'
// node offers, 'C' commands, 'E' the end. state/recording defines the contents. A file without 'E' was cut short: its
// writer was killed or had no space.
#ifndef MUSTER_SERVICE_RECORDER_SEGMENT_H_
#define MUSTER_SERVICE_RECORDER_SEGMENT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "state/machine/settings.h"
#include "state/recording/recording.h"

namespace muster {

// Version of the layout above and of SegmentHeader.
inline constexpr int32_t kRecordingFormat = 17;

struct SegmentHeader {
  int32_t format = kRecordingFormat;
  std::string version;        // of the musterd that wrote it
  uint64_t layout = 0;        // its RecordingLayout()
  int64_t first_command = 0;  // its number: the first command of a process is 1
  int64_t begun_ms = 0;       // Unix time
  int64_t state_bytes = 0;    // size of the state that follows; Begin sets it
  std::string settings;       // serialised MachineSettings
  bool first_of_process = false;
};

enum class SegmentEnd : uint8_t {
  kNone,     // cut short
  kFull,     // the next file continues
  kGap,      // commands came faster than they could be written; the next file begins after lost ones
  kStopped,  // the process stopped
};

struct SegmentEnding {
  SegmentEnd why = SegmentEnd::kNone;
  int64_t commands = 0;     // in this file
  uint64_t state_hash = 0;  // StateHash after the last command and Machine::TakeChanged; 0: not taken
};

// Commands that are written together.
struct SegmentCommands {
  int64_t from_ms = 0;  // base of the first command's relative time
  int64_t count = 0;
  std::string bytes;  // of each: time since the previous one, lower half of its outcome's digest, the command
  std::vector<recording::Offer> offers;
};

// Equal in programs that can replay each other's files.
[[nodiscard]] uint64_t RecordingLayout();

// Adds a command to `commands`. `last_ms`: the time of the previous command.
void AppendCommand(const Command& command, int64_t now_ms, int64_t last_ms, const Outcome& outcome,
                   SegmentCommands* commands);

// Not thread-safe.
class SegmentWriter {
 public:
  // Makes the file, readable by its owner alone. AlreadyExists: it exists.
  [[nodiscard]] static absl::StatusOr<SegmentWriter> Create(const std::string& path);
  SegmentWriter(SegmentWriter&& other) noexcept;
  SegmentWriter& operator=(SegmentWriter&& other) = delete;
  ~SegmentWriter();

  // Begin is called first, once. An error of any call says why the file accepts no more; its contents up to there are
  // valid.
  [[nodiscard]] absl::Status Begin(const SegmentHeader& header, absl::string_view state);
  [[nodiscard]] absl::Status Add(const SegmentCommands& commands);
  [[nodiscard]] absl::Status End(SegmentEnd why, uint64_t state_hash);

  // Renames the file; an existing file of that name is replaced.
  [[nodiscard]] absl::Status MoveTo(const std::string& path);
  // NotFound: the name is gone or belongs to another file, so that what is written would be lost.
  [[nodiscard]] absl::Status CheckStillLinked() const;
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] int64_t commands() const { return commands_; }

 private:
  SegmentWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  [[nodiscard]] absl::Status Write(absl::string_view bytes);
  [[nodiscard]] absl::Status Frame(char kind, absl::string_view payload);

  int fd_;
  std::string path_;
  int64_t bytes_ = 0;
  int64_t commands_ = 0;
  recording::OfferWriter offers_;
};

// Whether a file begins like a recording, or is empty.
[[nodiscard]] bool LooksLikeSegment(const std::string& path);

// Reads a whole file. Not thread-safe.
class SegmentReader {
 public:
  struct Entry {
    Command command;
    int64_t now_ms = 0;
    uint32_t digest = 0;  // lower half of its outcome's digest
  };

  // InvalidArgument: not a recording, of another format, or broken before its first command. FailedPrecondition:
  // written by another version, whose commands or state this one cannot read.
  [[nodiscard]] static absl::StatusOr<SegmentReader> Open(const std::string& path);

  [[nodiscard]] const SegmentHeader& header() const { return header_; }
  [[nodiscard]] const MachineSettings& settings() const { return settings_; }
  [[nodiscard]] const std::string& state() const { return state_; }
  // Returns true with the next command; false at the end, where ending() gives the reason.
  [[nodiscard]] absl::StatusOr<bool> Next(Entry* entry);
  [[nodiscard]] const SegmentEnding& ending() const { return ending_; }

 private:
  explicit SegmentReader(std::string bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] absl::Status ReadHead();
  // Returns false if the file ends here, between two frames or within one.
  [[nodiscard]] absl::StatusOr<bool> NextFrame();
  [[nodiscard]] absl::Status DecodeFrame();

  std::string bytes_;
  size_t at_ = 0;
  char kind_ = 0;
  absl::string_view payload_;
  SegmentHeader header_;
  MachineSettings settings_;
  std::string state_;
  std::deque<recording::Offer> offers_;
  recording::OfferReader offer_reader_;
  recording::CommandReader commands_{"", nullptr};
  int64_t left_ = 0;  // bytes left of the current frame
  int64_t read_ = 0;  // commands read so far
  int64_t last_ms_ = 0;
  SegmentEnding ending_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RECORDER_SEGMENT_H_
