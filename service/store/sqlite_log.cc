// The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
#include "service/store/sqlite_log.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int64_t kHeader = 32;
constexpr int64_t kFrameHeader = 24;
constexpr uint32_t kMagic = 0x377f0682;  // lowest bit set: checksums use big-endian words
constexpr uint32_t kSmallestPage = 512;
constexpr uint32_t kLargestPage = 65'536;
uint32_t Word(const unsigned char* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | uint32_t{at[3]};
}

struct FrameSum {
  uint32_t first = 0;
  uint32_t second = 0;

  bool operator==(const FrameSum&) const = default;
  // `size`: a multiple of eight.
  void Add(const unsigned char* bytes, size_t size, bool big_endian) {
    const auto word = [&](size_t at) {
      return big_endian ? Word(bytes + at)
                        : uint32_t{bytes[at]} | uint32_t{bytes[at + 1]} << 8 | uint32_t{bytes[at + 2]} << 16 |
                              uint32_t{bytes[at + 3]} << 24;
    };
    for (size_t at = 0; at < size; at += 8) {
      first += word(at) + second;
      second += word(at + 4) + first;
    }
  }
};

// A file of an SQLite VFS.
class VfsFile {
 public:
  VfsFile(sqlite3_vfs* vfs, std::string path, int flags)
      : path_(std::move(path)), memory_(static_cast<size_t>(vfs->szOsFile) + alignof(std::max_align_t)) {
    void* at = memory_.data();
    size_t space = memory_.size();
    file_ = static_cast<sqlite3_file*>(
        std::align(alignof(std::max_align_t), static_cast<size_t>(vfs->szOsFile), at, space));
    path_.append(2, '\0');  // no parameters after the name
    int exists = 0;
    if (vfs->xAccess(vfs, path_.c_str(), SQLITE_ACCESS_EXISTS, &exists) != SQLITE_OK || exists == 0) return;
    there_ = true;
    open_ = vfs->xOpen(vfs, path_.c_str(), file_, flags | SQLITE_OPEN_WAL, nullptr) == SQLITE_OK;
  }
  ~VfsFile() {
    if (open_) file_->pMethods->xClose(file_);
  }
  VfsFile(const VfsFile&) = delete;
  VfsFile& operator=(const VfsFile&) = delete;

  [[nodiscard]] int64_t size() {
    sqlite3_int64 size = 0;
    return open_ && file_->pMethods->xFileSize(file_, &size) == SQLITE_OK ? size : 0;
  }
  [[nodiscard]] bool Read(int64_t at, std::vector<unsigned char>* to) {
    return file_->pMethods->xRead(file_, to->data(), static_cast<int>(to->size()), at) == SQLITE_OK;
  }

  [[nodiscard]] bool there() const { return there_; }
  [[nodiscard]] bool Sync() { return open_ && file_->pMethods->xSync(file_, SQLITE_SYNC_NORMAL) == SQLITE_OK; }
  // Whether SQLite pads the last sector of a commit with copies of its last frame.
  [[nodiscard]] bool pads() {
    return (file_->pMethods->xDeviceCharacteristics(file_) & SQLITE_IOCAP_POWERSAFE_OVERWRITE) == 0;
  }

 private:
  std::string path_;
  std::vector<unsigned char> memory_;
  sqlite3_file* file_ = nullptr;
  bool there_ = false;
  bool open_ = false;
};

}  // namespace

std::string LogDamage(const std::string& path, const std::string& vfs) {
  sqlite3_vfs* const system = sqlite3_vfs_find(vfs.empty() ? nullptr : vfs.c_str());
  if (system == nullptr) return "";
  VfsFile log(system, path + "-wal", SQLITE_OPEN_READONLY);
  const int64_t size = log.size();
  std::vector<unsigned char> header(kHeader);
  if (size < kHeader || !log.Read(0, &header)) return "";
  const uint32_t magic = Word(header.data());
  const uint32_t page = Word(header.data() + 8);
  const bool big_endian = (magic & 1) != 0;
  FrameSum sum;
  sum.Add(header.data(), kFrameHeader, big_endian);
  // Without a valid header it is unknown which frames are still needed.
  const bool holds = (magic & ~1U) == kMagic && page >= kSmallestPage && page <= kLargestPage &&
                     (page & (page - 1)) == 0 && sum == FrameSum{Word(header.data() + 24), Word(header.data() + 28)};
  if (!holds) return "";
  const bool pads = log.pads();
  int64_t damaged = 0;
  bool behind_commit = false;  // the last frame ended a commit and is damaged or follows damage
  uint32_t ended = 0;          // the page with which the last frame ended a commit
  std::vector<unsigned char> frame(static_cast<size_t>(kFrameHeader) + page);
  const auto frame_size = static_cast<int64_t>(frame.size());
  for (int64_t number = 1, at = kHeader; at + frame_size <= size && log.Read(at, &frame); ++number, at += frame_size) {
    const bool current = std::equal(frame.begin() + 8, frame.begin() + 16, header.begin() + 16);  // salts
    const FrameSum stored_sum{Word(frame.data() + 16), Word(frame.data() + 20)};
    sum.Add(frame.data(), 8, big_endian);
    sum.Add(frame.data() + kFrameHeader, page, big_endian);
    const bool follows = current && sum == stored_sum;
    if (!follows && damaged == 0) damaged = number;
    // The log may contain parts of commits, or whole ones, that were being written when the power failed. But a frame
    // after the end of a commit was written only after that commit was synced; until then everything before it was
    // readable.
    if (follows && behind_commit) {
      return absl::StrCat("frame ", damaged, " of its log, ", path,
                          "-wal, is damaged, and later commits cannot be read");
    }
    // Padding frames do not count as an end of a commit.
    const uint32_t ends = Word(frame.data() + 4) == 0 ? 0 : Word(frame.data());
    behind_commit = damaged != 0 && current && ends != 0 && (!pads || ends != ended);
    ended = ends;
    sum = stored_sum;
  }
  return "";
}

bool SyncLog(const std::string& path, const std::string& vfs) {
  sqlite3_vfs* const system = sqlite3_vfs_find(vfs.empty() ? nullptr : vfs.c_str());
  if (system == nullptr) return false;
  VfsFile log(system, path + "-wal", SQLITE_OPEN_READWRITE);
  return !log.there() || log.Sync();
}

}  // namespace muster
