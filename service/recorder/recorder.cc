#include "service/recorder/recorder.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "state/base/archive.h"
#include "state/recording/recording.h"

namespace muster {
namespace {

constexpr size_t kChunk = size_t{64} << 10;  // write as soon as this much waits
constexpr int64_t kFiles = 4;                // files that share max_bytes
constexpr size_t kBytesPerName = 80;         // approximate, of an offer that waits

std::string Older(const std::string& path, size_t age) { return age == 0 ? path : absl::StrCat(path, ".", age); }

// -1: no file.
int64_t SizeOf(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 ? info.st_size : -1;
}

absl::Status CheckOurs(const std::string& path) {
  if (LooksLikeSegment(path)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, " exists and is not a readable recording; use another file"));
}

std::string FolderOf(const std::string& path) {
  const std::filesystem::path file(path);
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

std::string MiB(int64_t bytes) { return absl::StrCat((bytes + (1 << 20) - 1) >> 20, " MiB"); }

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Open(RecorderOptions options) {
  const std::string folder = FolderOf(options.path);
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("recording.file: ", options.path, ": cannot write into ", folder,
                                                   "; it must exist and be writable"));
  }
  auto recorder = std::unique_ptr<Recorder>(new Recorder(std::move(options)));
  const absl::Status ours = recorder->Files().status();
  if (!ours.ok()) return absl::Status(ours.code(), absl::StrCat("recording.file: ", ours.message()));
  if (absl::Status locked = recorder->Lock(); !locked.ok()) return locked;
  recorder->thread_ = std::thread([recorder = recorder.get()] { recorder->Run(); });
  return recorder;
}

Recorder::Recorder(RecorderOptions options) : options_(std::move(options)) {}

absl::Status Recorder::Lock() {
  const std::filesystem::path path(options_.path);
  const std::string name = (path.parent_path() / absl::StrCat(".", path.filename().string(), ".lock")).string();
  lock_ = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat("recording.file: cannot make ", name));
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("recording.file: ", options_.path,
                                               " is being written by another musterd; use another file, or stop that "
                                               "process"));
}

void Recorder::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  if (lock_ >= 0) close(std::exchange(lock_, -1));
}

RecorderStats Recorder::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

// --- the engine's thread ---

void Recorder::BeforeApply(const Machine& machine, int64_t now_ms) {
  if (!snapshot_needed_.exchange(false)) return;
  Part part;
  part.begin = SegmentHeader{.version = options_.version,
                             .layout = RecordingLayout(),
                             .first_command = applied_ + 1,
                             .begun_ms = now_ms,
                             .settings = archive::BytesOf(options_.settings),
                             .first_of_process = applied_ == 0};
  part.state = recording::SaveState(machine);
  recording_ = true;
  last_ms_ = now_ms;
  MutexLock lock(&mutex_);
  parts_.push_back(std::move(part));
  changed_.Signal();
}

void Recorder::AfterApply(const Command& command, int64_t now_ms, const Outcome& outcome) {
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

void Recorder::OnStopped(const Machine& machine) {
  if (!recording_) return;
  Part part;
  part.end = SegmentEnd::kStopped;
  part.state_hash = recording::StateHash(machine);
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
          snapshot_needed_ = true;
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
      snapshot_needed_ = true;
    }
    for (const Part& part : parts) Write(part);
    MutexLock lock(&mutex_);
    waiting_ -= taken;
  }
}

void Recorder::Write(const Part& part) {
  absl::Status status;
  if (part.begin.has_value()) {
    if (file_.has_value()) file_->End(SegmentEnd::kFull, 0).IgnoreError();  // the file ends here even if this fails
    file_.reset();
    snapshot_requested_ = false;
    return OnWriteStatus(BeginFile(part));
  }
  if (!file_.has_value()) {
    MutexLock lock(&mutex_);
    stats_.lost += part.commands.count;
    return;
  }
  const int64_t before = file_->bytes();
  status = file_->CheckStillLinked();
  if (status.ok() && part.commands.count > 0) status = file_->Add(part.commands);
  if (status.ok() && part.end != SegmentEnd::kNone) status = file_->End(part.end, part.state_hash);
  {
    MutexLock lock(&mutex_);
    stats_.bytes += file_->bytes() - before;
    (status.ok() ? stats_.commands : stats_.lost) += part.commands.count;
  }
  if (!status.ok()) {
    // A file without commands is useless, and each retry might leave one.
    if (file_->commands() == 0 && file_->CheckStillLinked().ok()) unlink(options_.path.c_str());
    return OnWriteStatus(status);
  }
  const bool full = file_->bytes() - snapshot_bytes_ >= options_.max_bytes / kFiles;
  if (part.end != SegmentEnd::kNone) file_.reset();
  if (part.end == SegmentEnd::kGap) {
    spdlog::warn("writing {} is too slow: commands were dropped; the recording continues in a new file", options_.path);
  }
  if (part.end == SegmentEnd::kGap || (full && !snapshot_requested_)) snapshot_needed_ = snapshot_requested_ = true;
}

absl::Status Recorder::BeginFile(const Part& part) {
  const auto state = static_cast<int64_t>(part.state.size());
  const int64_t share = options_.max_bytes / kFiles;
  if (state > share) {
    return absl::FailedPreconditionError(
        absl::StrCat("the state alone takes ", MiB(state), ": recording.maxSizeMiB of ", MiB(options_.max_bytes),
                     " leaves no room for commands; set it to ", MiB(kFiles * state), " or more"));
  }
  if (absl::Status room = DeleteOldestFiles(state + share); !room.ok()) return room;
  // The previous recording keeps its name until the new file is usable.
  const std::string fresh = absl::StrCat(options_.path, ".new");
  if (LooksLikeSegment(fresh)) unlink(fresh.c_str());
  absl::StatusOr<SegmentWriter> file = SegmentWriter::Create(fresh);
  if (!file.ok()) return file.status();
  absl::Status status = file->Begin(*part.begin, part.state);
  if (status.ok()) status = RotateFiles();
  if (status.ok()) status = file->MoveTo(options_.path);
  if (!status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  file_.emplace(*std::move(file));
  snapshot_bytes_ = file_->bytes();
  MutexLock lock(&mutex_);
  stats_.bytes += snapshot_bytes_;
  return absl::OkStatus();
}

absl::StatusOr<std::map<size_t, int64_t>> Recorder::Files() const {
  std::map<size_t, int64_t> files;
  const auto add = [&](size_t age) {
    const std::string path = Older(options_.path, age);
    if (SizeOf(path) < 0) return absl::OkStatus();
    files[age] = SizeOf(path);
    return CheckOurs(path);
  };
  if (absl::Status ours = add(0); !ours.ok()) return ours;
  // Numbers may be missing if files were removed.
  const std::filesystem::path path(options_.path);
  const std::string begins = absl::StrCat(path.filename().string(), ".");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(FolderOf(options_.path), error)) {
    const std::string name = entry.path().filename().string();
    size_t age = 0;
    if (!absl::StartsWith(name, begins) || !absl::SimpleAtoi(name.substr(begins.size()), &age) || age == 0) continue;
    if (Older(path.filename().string(), age) != name) continue;
    if (absl::Status ours = add(age); !ours.ok()) return ours;
  }
  return files;
}

absl::Status Recorder::DeleteOldestFiles(int64_t bytes) const {
  absl::StatusOr<std::map<size_t, int64_t>> files = Files();
  if (!files.ok()) return files.status();
  int64_t sum = bytes;
  for (const auto& [age, size] : *files) sum += size;
  for (; !files->empty() && sum > options_.max_bytes; files->erase(std::prev(files->end()))) {
    sum -= files->rbegin()->second;
    unlink(Older(options_.path, files->rbegin()->first).c_str());
  }
  return absl::OkStatus();
}

absl::Status Recorder::RotateFiles() const {
  const absl::StatusOr<std::map<size_t, int64_t>> files = Files();
  if (!files.ok()) return files.status();
  size_t free = 0;
  while (files->contains(free)) ++free;
  for (size_t age = free; age-- > 0;) {
    const std::string from = Older(options_.path, age);
    const std::string to = Older(options_.path, age + 1);
    if (rename(from.c_str(), to.c_str()) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", from, " to ", to));
    }
  }
  return absl::OkStatus();
}

void Recorder::OnWriteStatus(const absl::Status& status) {
  const std::string trouble(status.message());
  retry_at_ = absl::InfiniteFuture();
  if (!status.ok()) {
    file_.reset();
    retry_at_ = SteadyNow() + options_.retry;
  }
  bool news = false;
  {
    MutexLock lock(&mutex_);
    news = stats_.last_error != trouble;
    stats_.last_error = trouble;
  }
  if (!news) return;
  if (status.ok()) {
    spdlog::info("recording to {}", options_.path);
  } else {
    spdlog::warn("recording failed: {}; retrying every {}", trouble, absl::FormatDuration(options_.retry));
  }
}

}  // namespace muster
