#include "service/recorder/segment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "state/base/archive.h"
#include "support/file.h"

namespace muster {
namespace {

constexpr absl::string_view kMagic = "MUSTERRC";
constexpr size_t kFrameHead = 8;
constexpr size_t kPiece = size_t{1} << 20;  // of the state
constexpr size_t kScanBytes = size_t{4} << 20;
constexpr size_t kMaxSummed = size_t{256} << 20;
constexpr size_t kMaxFile = std::numeric_limits<int64_t>::max();

uint32_t Checksum(absl::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void AppendU32(uint32_t value, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8) out->push_back(static_cast<char>(value >> shift));
}

uint32_t ReadU32(absl::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

absl::Status Broken(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("is broken: ", what, "; the part before it can be replayed"));
}

// Whether the bytes contain a complete frame. If so, the file is damaged before that frame, not cut short.
bool FrameBehind(absl::string_view bytes) {
  size_t summed = 0;
  for (size_t at = 0; at + kFrameHead < bytes.size() && at < kScanBytes && summed < kMaxSummed; ++at) {
    const absl::string_view rest = bytes.substr(at);
    const size_t size = ReadU32(rest);
    if (size < 2 || size > rest.size() - kFrameHead) continue;
    const absl::string_view payload = rest.substr(kFrameHead, size);
    const char kind = payload.front();
    if (kind != 'S' && kind != 'O' && kind != 'C' && kind != 'E') continue;
    summed += size;
    if (Checksum(payload) == ReadU32(rest.substr(4))) return true;
  }
  return false;
}

}  // namespace

uint64_t RecordingLayout() {
  StateHasher hasher;
  archive::AddLayout<Command>(&hasher);
  archive::AddLayout<MachineSettings>(&hasher);
  archive::AddLayout<Machine>(&hasher);
  return hasher.value();
}

void AppendCommand(const Command& command, int64_t now_ms, int64_t last_ms, const Outcome& outcome,
                   SegmentCommands* commands) {
  if (commands->count == 0) commands->from_ms = last_ms;
  ++commands->count;
  recording::CommandWriter writer(&commands->bytes, &commands->offers);
  const int64_t since_ms = now_ms - last_ms;
  archive::Pass(writer, since_ms);
  writer.Number(static_cast<uint32_t>(recording::DigestOf(outcome)));
  archive::Pass(writer, command);
}

// --- writing ---

absl::StatusOr<SegmentWriter> SegmentWriter::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  return SegmentWriter(fd, path);
}

SegmentWriter::SegmentWriter(SegmentWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      bytes_(other.bytes_),
      commands_(other.commands_),
      offers_(std::move(other.offers_)) {}

SegmentWriter::~SegmentWriter() {
  if (fd_ >= 0) close(fd_);
}

absl::Status SegmentWriter::MoveTo(const std::string& path) {
  if (rename(path_.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", path_, " to ", path));
  }
  path_ = path;
  return absl::OkStatus();
}

absl::Status SegmentWriter::CheckStillLinked() const {
  struct stat here {};
  struct stat named {};
  if (fstat(fd_, &here) == 0 && lstat(path_.c_str(), &named) == 0 && here.st_ino == named.st_ino &&
      here.st_dev == named.st_dev) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat(path_, " was removed"));
}

absl::Status SegmentWriter::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_));
    bytes.remove_prefix(static_cast<size_t>(written));
    bytes_ += written;
  }
  return absl::OkStatus();
}

absl::Status SegmentWriter::Frame(char kind, absl::string_view payload) {
  if (payload.size() >= std::numeric_limits<uint32_t>::max()) {
    return absl::OutOfRangeError(absl::StrCat("cannot write ", path_, ": a command of more than 4 GiB"));
  }
  std::string frame;
  frame.reserve(kFrameHead + 1 + payload.size());
  AppendU32(static_cast<uint32_t>(payload.size() + 1), &frame);
  AppendU32(0, &frame);
  frame.push_back(kind);
  frame.append(payload.data(), payload.size());
  std::string sum;
  AppendU32(Checksum(absl::string_view(frame).substr(kFrameHead)), &sum);
  frame.replace(4, 4, sum);
  return Write(frame);
}

absl::Status SegmentWriter::Begin(const SegmentHeader& header, absl::string_view state) {
  if (absl::Status written = Write(kMagic); !written.ok()) return written;
  SegmentHeader whole = header;
  whole.state_bytes = static_cast<int64_t>(state.size());
  if (absl::Status written = Frame('H', archive::BytesOf(whole)); !written.ok()) return written;
  for (size_t at = 0; at < state.size(); at += kPiece) {
    if (absl::Status written = Frame('S', state.substr(at, kPiece)); !written.ok()) return written;
  }
  return absl::OkStatus();
}

absl::Status SegmentWriter::Add(const SegmentCommands& commands) {
  if (!commands.offers.empty()) {
    std::string offers;
    for (const recording::Offer& offer : commands.offers) offers_.Write(*offer, &offers);
    if (absl::Status written = Frame('O', offers); !written.ok()) return written;
  }
  std::string payload;
  archive::Writer writer(&payload);
  archive::Pass(writer, commands.from_ms);
  archive::Pass(writer, commands.count);
  payload += commands.bytes;
  if (absl::Status written = Frame('C', payload); !written.ok()) return written;
  commands_ += commands.count;
  return absl::OkStatus();
}

absl::Status SegmentWriter::End(SegmentEnd why, uint64_t state_hash) {
  return Frame('E', archive::BytesOf(SegmentEnding{why, commands_, state_hash}));
}

bool LooksLikeSegment(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return false;
  struct stat info {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  std::array<char, kMagic.size()> head{};
  const ssize_t size = regular ? read(fd, head.data(), head.size()) : -1;
  close(fd);
  // A shorter file was cut off when it was made.
  return size >= 0 && absl::StartsWith(kMagic, absl::string_view(head.data(), static_cast<size_t>(size)));
}

// --- reading ---

absl::StatusOr<SegmentReader> SegmentReader::Open(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadFile(path, kMaxFile);
  if (!bytes.ok()) return bytes.status();
  SegmentReader reader(*std::move(bytes));
  const absl::Status read = reader.ReadHead();
  if (!read.ok()) return absl::Status(read.code(), absl::StrCat(path, " ", read.message()));
  return reader;
}

absl::Status SegmentReader::ReadHead() {
  if (!absl::StartsWith(bytes_, kMagic)) return absl::InvalidArgumentError("is not a recording of musterd");
  at_ = kMagic.size();
  auto truncated = absl::InvalidArgumentError("ends before its first command: nothing can be replayed");
  absl::StatusOr<bool> frame = NextFrame();
  if (!frame.ok()) return frame.status();
  if (!*frame) return truncated;
  archive::Reader reader(payload_);
  archive::Pass(reader, header_.format);
  if (kind_ != 'H' || !reader.ok()) return Broken("it has no header");
  if (header_.format != kRecordingFormat) {
    return absl::FailedPreconditionError(absl::StrCat("is of format ", header_.format, "; this musterctl reads format ",
                                                      kRecordingFormat,
                                                      ": use the musterctl of the musterd that wrote it"));
  }
  if (!archive::ReadBytes(payload_, &header_)) return Broken("its header cannot be read");
  if (header_.layout != RecordingLayout()) {
    return absl::FailedPreconditionError(
        absl::StrCat("was written by musterd ", header_.version,
                     ", whose state this musterctl cannot read: use the musterctl of that version"));
  }
  if (!archive::ReadBytes(header_.settings, &settings_)) return Broken("its settings cannot be read");
  last_ms_ = header_.begun_ms;
  for (;;) {
    const size_t before = at_;
    frame = NextFrame();
    if (!frame.ok()) return frame.status();
    const bool whole = static_cast<int64_t>(state_.size()) == header_.state_bytes;
    if (!*frame) return whole ? absl::OkStatus() : truncated;
    if (kind_ != 'S') {
      at_ = before;
      return whole ? absl::OkStatus() : Broken("its state is incomplete");
    }
    state_.append(payload_.data(), payload_.size());
  }
}

absl::StatusOr<bool> SegmentReader::NextFrame() {
  const absl::string_view rest = absl::string_view(bytes_).substr(at_);
  if (rest.size() < kFrameHead) return false;
  const size_t size = ReadU32(rest);
  if (size > rest.size() - kFrameHead) {
    if (!FrameBehind(rest.substr(1))) return false;
    return Broken(absl::StrCat("the length at ", at_, " is wrong: the file continues after it"));
  }
  const absl::string_view payload = rest.substr(kFrameHead, size);
  if (size == 0 || Checksum(payload) != ReadU32(rest.substr(4))) {
    return Broken(absl::StrCat("the checksum of ", size, " bytes at ", at_, " is wrong"));
  }
  at_ += kFrameHead + size;
  kind_ = payload.front();
  payload_ = payload.substr(1);
  return true;
}

absl::Status SegmentReader::DecodeFrame() {
  if (kind_ == 'O') {
    archive::Reader reader(payload_);
    while (reader.ok() && !reader.done()) offers_.push_back(offer_reader_.Read(&reader));
    return reader.ok() ? absl::OkStatus() : Broken("offers cannot be read");
  }
  if (kind_ == 'C') {
    commands_ = recording::CommandReader(payload_, &offers_);
    archive::Pass(commands_, last_ms_);
    archive::Pass(commands_, left_);
    return commands_.ok() && left_ >= 0 ? absl::OkStatus() : Broken("commands cannot be read");
  }
  if (kind_ == 'E') {
    archive::Reader reader(payload_);
    archive::Pass(reader, ending_);
    if (!reader.ok()) return Broken("its end cannot be read");
    if (ending_.commands != read_) {
      return Broken(absl::StrCat("it should have ", ending_.commands, " commands, and has ", read_));
    }
    return at_ == bytes_.size() ? absl::OkStatus() : Broken("there is data after its end");
  }
  return Broken(absl::StrCat("unexpected frame '", absl::string_view(&kind_, 1), "'"));
}

absl::StatusOr<bool> SegmentReader::Next(Entry* entry) {
  while (left_ == 0) {
    if (ending_.why != SegmentEnd::kNone) return false;
    absl::StatusOr<bool> frame = NextFrame();
    if (!frame.ok() || !*frame) return frame;
    if (absl::Status decoded = DecodeFrame(); !decoded.ok()) return decoded;
  }
  --left_;
  ++read_;
  int64_t since_ms = 0;
  archive::Pass(commands_, since_ms);
  entry->digest = static_cast<uint32_t>(commands_.Number());
  archive::Pass(commands_, entry->command);
  if (!commands_.ok() || (left_ == 0 && !commands_.done())) return Broken("a command cannot be read");
  last_ms_ += since_ms;
  entry->now_ms = last_ms_;
  return true;
}

}  // namespace muster
