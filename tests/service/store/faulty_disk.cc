#include "tests/service/store/faulty_disk.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace muster {
namespace {

// The size of an atomic disk write.
constexpr int64_t kSector = 512;

}  // namespace

FaultyDisk::FaultyDisk(const std::string& name) : name_(name) {
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(Handle);
  vfs_.mxPathname = 512;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = [](sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out) {
    std::unique_ptr<File>& known = Of(vfs).files_[path == nullptr ? "temporary" : path];
    // SQLite's user creates the main file, on the system's disk.
    const bool make = (flags & (SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB)) != 0;
    if (known == nullptr && !make) return SQLITE_CANTOPEN;
    if (known == nullptr) known = std::make_unique<File>();
    new (file) Handle{{&Methods()}, &Of(vfs), known.get()};
    if (out != nullptr) *out = flags;
    return SQLITE_OK;
  };
  vfs_.xDelete = [](sqlite3_vfs* vfs, const char* path, int) {
    Of(vfs).files_.erase(path);
    return SQLITE_OK;
  };
  vfs_.xAccess = [](sqlite3_vfs* vfs, const char* path, int, int* out) {
    const auto found = Of(vfs).files_.find(path);
    *out = found != Of(vfs).files_.end() && !found->second->now.empty() ? 1 : 0;
    return SQLITE_OK;
  };
  vfs_.xFullPathname = [](sqlite3_vfs*, const char* path, int size, char* out) {
    sqlite3_snprintf(size, out, "%s", path);
    return SQLITE_OK;
  };
  // Random numbers distinguish frames of a restarted log from older ones.
  vfs_.xRandomness = [](sqlite3_vfs* vfs, int size, char* out) {
    for (int i = 0; i < size; ++i) out[i] = static_cast<char>(Of(vfs).salt_());
    return size;
  };
  vfs_.xSleep = [](sqlite3_vfs*, int) { return 0; };
  vfs_.xCurrentTime = [](sqlite3_vfs*, double* out) {
    *out = 2'461'000;
    return SQLITE_OK;
  };
  vfs_.xGetLastError = [](sqlite3_vfs*, int, char*) { return 0; };
  sqlite3_vfs_register(&vfs_, /*makeDflt=*/0);
}

FaultyDisk::~FaultyDisk() { sqlite3_vfs_unregister(&vfs_); }

const sqlite3_io_methods& FaultyDisk::Methods() {
  static const sqlite3_io_methods* const kMethods = [] {
    auto* m = new sqlite3_io_methods{};
    m->iVersion = 2;
    m->xClose = [](sqlite3_file*) { return SQLITE_OK; };
    m->xRead = [](sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
      const std::string& now = Of(file).file->now;
      const auto have = std::clamp<int64_t>(static_cast<int64_t>(now.size()) - offset, 0, size);
      if (have > 0) std::memcpy(out, now.data() + offset, static_cast<size_t>(have));
      std::memset(static_cast<char*>(out) + have, 0, static_cast<size_t>(size - have));
      return have == size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
    };
    m->xWrite = [](sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
      return Of(file).disk->Write(Of(file).file,
                                  {offset, std::string(static_cast<const char*>(bytes), static_cast<size_t>(size))});
    };
    m->xTruncate = [](sqlite3_file* file, sqlite3_int64 size) {
      return Of(file).disk->Write(Of(file).file, {-size - 1, ""});
    };
    m->xSync = [](sqlite3_file* file, int) { return Of(file).disk->Sync(Of(file).file); };
    m->xFileSize = [](sqlite3_file* file, sqlite3_int64* out) {
      *out = static_cast<sqlite3_int64>(Of(file).file->now.size());
      return SQLITE_OK;
    };
    m->xLock = [](sqlite3_file*, int) { return SQLITE_OK; };
    m->xUnlock = [](sqlite3_file*, int) { return SQLITE_OK; };
    m->xCheckReservedLock = [](sqlite3_file*, int* out) {
      *out = 0;
      return SQLITE_OK;
    };
    m->xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; };
    m->xSectorSize = [](sqlite3_file*) { return static_cast<int>(kSector); };
    m->xDeviceCharacteristics = [](sqlite3_file*) { return 0; };
    m->xShmMap = [](sqlite3_file* file, int region, int size, int extend, void volatile** out) {
      auto& shared = Of(file).file->shared;
      *out = nullptr;
      if (static_cast<size_t>(region) >= shared.size() && extend == 0) return SQLITE_OK;
      while (shared.size() <= static_cast<size_t>(region)) {
        shared.push_back(std::make_unique<char[]>(static_cast<size_t>(size)));
      }
      *out = shared[static_cast<size_t>(region)].get();
      return SQLITE_OK;
    };
    m->xShmLock = [](sqlite3_file*, int, int, int) { return SQLITE_OK; };
    m->xShmBarrier = [](sqlite3_file*) {};
    m->xShmUnmap = [](sqlite3_file* file, int) {
      Of(file).file->shared.clear();
      return SQLITE_OK;
    };
    return m;
  }();
  return *kMethods;
}

void FaultyDisk::Put(const Change& change, std::string* content) {
  if (change.offset < 0) {
    content->resize(static_cast<size_t>(-change.offset - 1), '\0');
    return;
  }
  const auto end = static_cast<size_t>(change.offset) + change.bytes.size();
  if (content->size() < end) content->resize(end, '\0');
  content->replace(static_cast<size_t>(change.offset), change.bytes.size(), change.bytes);
}

int FaultyDisk::Spend() {
  if (left_ == 0) return SQLITE_IOERR;
  ++operations_;
  if (left_ > 0) --left_;
  return SQLITE_OK;
}

int FaultyDisk::Write(File* file, Change change) {
  // A write during the power loss may be on the disk, whole or in part, or not.
  const bool power = Spend() == SQLITE_OK;
  if (power && write_answer_ != SQLITE_OK) return write_answer_;
  if (!power) return SQLITE_IOERR_WRITE;
  Put(change, &file->now);
  file->pending.push_back(std::move(change));
  return SQLITE_OK;
}

int FaultyDisk::Sync(File* file) {
  if (Spend() != SQLITE_OK) return SQLITE_IOERR_FSYNC;
  if (sync_answer_ != SQLITE_OK) return sync_answer_;
  if (lies_) return SQLITE_OK;
  for (const Change& change : file->pending) Put(change, &file->synced);
  file->pending.clear();
  file->exists_synced = true;
  return SQLITE_OK;
}

void FaultyDisk::PowerBack(std::mt19937_64* random) {
  const auto roll = [&](size_t sides) { return static_cast<size_t>((*random)() % sides); };
  left_ = -1;
  for (auto at = files_.begin(); at != files_.end();) {
    File& file = *at->second;
    file.shared.clear();
    // A file that was never synced may be lost, as its directory was not synced either.
    if (!file.exists_synced && roll(2) == 0) {
      at = files_.erase(at);
      continue;
    }
    file.now = file.synced;
    const bool in_order = roll(2) == 0;  // as most disks do most of the time
    const size_t reached = roll(file.pending.size() + 1);
    for (size_t i = 0; i < file.pending.size(); ++i) {
      Change change = file.pending[i];
      if (in_order ? i > reached : roll(2) == 0) continue;
      const bool torn = in_order ? i == reached : roll(4) == 0;
      if (torn && change.offset >= 0) {
        const size_t sectors = change.bytes.size() / kSector;
        change.bytes.resize(sectors == 0 ? roll(change.bytes.size() + 1) : roll(sectors + 1) * kSector);
      }
      if (change.offset < 0 || !change.bytes.empty()) Put(change, &file.now);
    }
    file.synced = file.now;
    file.pending.clear();
    ++at;
  }
}

void FaultyDisk::Damage(const std::string& file, int64_t offset) {
  char& byte = files_.at(file)->now.at(static_cast<size_t>(offset));
  byte = static_cast<char>(byte ^ 1);
}

int64_t FaultyDisk::SizeOf(const std::string& file) const {
  const auto found = files_.find(file);
  return found == files_.end() ? 0 : static_cast<int64_t>(found->second->now.size());
}

}  // namespace muster
