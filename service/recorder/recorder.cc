#include "service/recorder/recorder.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "state/recording/snapshot.h"

namespace muster {
namespace {

constexpr size_t kChunk = size_t{64} << 10;  // written at once, as soon as there is as much
constexpr int64_t kFiles = 4;                // so many share the bytes
constexpr size_t kBytesPerName = 16;         // of an offer that waits, about

std::string Older(const std::string& path, size_t age) { return age == 0 ? path : absl::StrCat(path, ".", age); }

// -1: there is none.
int64_t SizeOf(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 ? info.st_size : -1;
}

absl::Status CheckOurs(const std::string& path) {
  if (LooksLikeSegment(path)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is there, and is no recording that can be read: it stays; name another file"));
}

std::string MiB(int64_t bytes) { return absl::StrCat((bytes + (1 << 20) - 1) >> 20, " MiB"); }

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Open(RecorderOptions options) {
  const std::filesystem::path path(options.path);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("recording.file: ", options.path, ": cannot write into ", folder,
                                                   "; it must exist and be writable"));
  }
  for (size_t age = 0; SizeOf(Older(options.path, age)) >= 0; ++age) {
    const absl::Status ours = CheckOurs(Older(options.path, age));
    if (!ours.ok()) return absl::Status(ours.code(), absl::StrCat("recording.file: ", ours.message()));
  }
  return std::unique_ptr<Recorder>(new Recorder(std::move(options)));
}

Recorder::Recorder(RecorderOptions options) : options_(std::move(options)), thread_([this] { Run(); }) {}

void Recorder::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

RecorderStats Recorder::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

// --- the engine's thread ---

void Recorder::Before(const Machine& machine, int64_t now_ms) {
  if (!wants_state_.exchange(false)) return;
  Part part;
  part.begin = SegmentHeader{.version = options_.version,
                             .layout = RecordingLayout(),
                             .first_command = applied_ + 1,
                             .begun_ms = now_ms,
                             .settings = recording::WriteSettings(options_.settings),
                             .first_of_process = applied_ == 0};
  part.state = recording::SaveState(machine);
  recording_ = true;
  last_ms_ = now_ms;
  MutexLock lock(&mutex_);
  waiting_ += part.size();
  parts_.push_back(std::move(part));
  changed_.Signal();
}

void Recorder::Applied(const Command& command, int64_t now_ms, const Outcome& outcome) {
  ++applied_;
  MutexLock lock(&mutex_);
  if (!recording_) {
    ++stats_.lost;
    return;
  }
  if (waiting_ >= options_.max_waiting) {
    recording_ = false;
    ++stats_.lost;
    parts_.emplace_back().end = SegmentEnd::kGap;
    return;
  }
  const bool idle = parts_.empty();
  if (idle || parts_.back().begin.has_value() || parts_.back().end != SegmentEnd::kNone ||
      parts_.back().commands.bytes.size() >= kChunk) {
    parts_.emplace_back();
  }
  SegmentCommands& commands = parts_.back().commands;
  const size_t bytes = commands.bytes.size();
  const size_t offers = commands.offers.size();
  AppendCommand(command, now_ms, last_ms_, outcome, &commands);
  last_ms_ = now_ms;
  waiting_ += commands.bytes.size() - bytes;
  if (commands.offers.size() > offers) waiting_ += commands.offers.back()->names().size() * kBytesPerName;
  if (idle || waiting_ >= kChunk) changed_.Signal();
}

void Recorder::Ended(const Machine& machine) {
  if (!recording_) return;
  Part part;
  part.end = SegmentEnd::kStopped;
  part.state_hash = machine.Hash();
  MutexLock lock(&mutex_);
  parts_.push_back(std::move(part));
  changed_.Signal();
}

// --- the recorder's thread ---

void Recorder::Run() {
  for (;;) {
    std::deque<Part> parts;
    size_t taken = 0;
    {
      MutexLock lock(&mutex_);
      while (parts_.empty() && !stopping_) {
        const absl::Duration pause = retry_at_ - SteadyNow();
        if (pause <= absl::ZeroDuration()) {
          retry_at_ = absl::InfiniteFuture();
          wants_state_ = true;
        } else {
          changed_.WaitWithTimeout(&mutex_, pause);
        }
      }
      if (waiting_ < kChunk && !stopping_) changed_.WaitWithTimeout(&mutex_, kFlush);
      if (parts_.empty()) return;
      parts.swap(parts_);
      taken = waiting_;
    }
    if (retry_at_ <= SteadyNow()) {
      retry_at_ = absl::InfiniteFuture();
      wants_state_ = true;
    }
    for (const Part& part : parts) Write(part);
    MutexLock lock(&mutex_);
    waiting_ -= taken;
  }
}

void Recorder::Write(const Part& part) {
  absl::Status status;
  if (part.begin.has_value()) {
    if (file_.has_value()) file_->End(SegmentEnd::kFull, 0).IgnoreError();  // it ends here in any case
    file_.reset();
    asked_ = false;
    return Note(BeginFile(part));
  }
  if (!file_.has_value()) {
    MutexLock lock(&mutex_);
    stats_.lost += part.commands.count;
    return;
  }
  const int64_t before = file_->bytes();
  if (part.commands.count > 0) status = file_->Add(part.commands);
  if (status.ok() && part.end != SegmentEnd::kNone) status = file_->End(part.end, part.state_hash);
  {
    MutexLock lock(&mutex_);
    stats_.bytes += file_->bytes() - before;
    (status.ok() ? stats_.commands : stats_.lost) += part.commands.count;
  }
  if (!status.ok()) return Note(status);
  const bool full = file_->bytes() - opened_with_ >= options_.max_bytes / kFiles;
  if (part.end != SegmentEnd::kNone) file_.reset();
  if (part.end == SegmentEnd::kGap || (full && !asked_)) wants_state_ = asked_ = true;
}

absl::Status Recorder::BeginFile(const Part& part) {
  const auto state = static_cast<int64_t>(part.state.size());
  if (state > options_.max_bytes / kFiles * (kFiles - 1)) {
    return absl::FailedPreconditionError(absl::StrCat("the state alone takes ", MiB(state), ": recording.maxMiB of ",
                                                      MiB(options_.max_bytes), " leaves no room for commands; give it ",
                                                      MiB(4 * state), " or more"));
  }
  if (absl::Status moved = MoveOn(state + options_.max_bytes / kFiles); !moved.ok()) return moved;
  absl::StatusOr<SegmentWriter> file = SegmentWriter::Create(options_.path);
  if (!file.ok()) return file.status();
  if (absl::Status begun = file->Begin(*part.begin, part.state); !begun.ok()) {
    unlink(options_.path.c_str());  // nothing can be replayed from it
    return begun;
  }
  file_.emplace(*std::move(file));
  opened_with_ = file_->bytes();
  MutexLock lock(&mutex_);
  stats_.bytes += opened_with_;
  return absl::OkStatus();
}

absl::Status Recorder::MoveOn(int64_t bytes) const {
  std::vector<int64_t> sizes;
  if (SizeOf(options_.path) < 0) sizes.push_back(0);  // not made, or taken away
  while (SizeOf(Older(options_.path, sizes.size())) >= 0) {
    const std::string path = Older(options_.path, sizes.size());
    if (absl::Status ours = CheckOurs(path); !ours.ok()) return ours;
    sizes.push_back(SizeOf(path));
  }
  int64_t sum = bytes;
  for (const int64_t size : sizes) sum += size;
  for (; !sizes.empty() && sum > options_.max_bytes; sizes.pop_back()) {
    sum -= sizes.back();
    unlink(Older(options_.path, sizes.size() - 1).c_str());
  }
  for (size_t age = sizes.size(); age-- > 0;) {
    const std::string from = Older(options_.path, age);
    const std::string to = Older(options_.path, age + 1);
    if (SizeOf(from) >= 0 && rename(from.c_str(), to.c_str()) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", from, " to ", to));
    }
  }
  return absl::OkStatus();
}

void Recorder::Note(const absl::Status& status) {
  const std::string trouble(status.message());
  if (!status.ok()) {
    file_.reset();
    retry_at_ = SteadyNow() + options_.retry;
  }
  bool news = false;
  {
    MutexLock lock(&mutex_);
    news = stats_.trouble != trouble;
    stats_.trouble = trouble;
  }
  if (!news) return;
  if (status.ok()) {
    spdlog::info("recording to {}", options_.path);
  } else {
    spdlog::warn("nothing is recorded now: {}; it is tried again every {}", trouble,
                 absl::FormatDuration(options_.retry));
  }
}

}  // namespace muster
