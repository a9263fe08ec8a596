// A disk in memory, as an SQLite VFS. At a power loss it drops or tears writes that were not synced; the test can make
// it full, broken or slow. Not thread-safe.
#ifndef MUSTER_TESTS_SERVICE_STORE_FAULTY_DISK_H_
#define MUSTER_TESTS_SERVICE_STORE_FAULTY_DISK_H_

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace muster {

// Supports one connection at a time. Registered under its name during its lifetime.
class FaultyDisk {
 public:
  explicit FaultyDisk(const std::string& name);
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }

  // The power fails after this number of writes, syncs and truncations: they and all later ones fail. < 0: never.
  void PowerFailsAfter(int64_t operations) { left_ = operations; }
  [[nodiscard]] bool power() const { return left_ != 0; }
  [[nodiscard]] int64_t operations() const { return operations_; }
  // Power returns, with everything that was synced and a random part of the rest: writes that succeeded, failed, or are
  // partial, in any order. REQUIRES: nothing is open.
  void PowerBack(std::mt19937_64* random);

  // The result of every write from now on; SQLITE_OK: it succeeds.
  void FailWrites(int code) { write_answer_ = code; }
  void FailSyncs(int code) { sync_answer_ = code; }
  // Syncs report success and do nothing.
  void LieAboutSyncs(bool lie) { lies_ = lie; }
  // Flips a bit of the stored data.
  void Damage(const std::string& file, int64_t offset);
  [[nodiscard]] int64_t SizeOf(const std::string& file) const;

 private:
  struct Change {
    int64_t offset = 0;  // < 0: truncated to -offset-1
    std::string bytes;
  };
  struct File {
    std::string now;
    std::string synced;
    bool exists_synced = false;
    std::vector<Change> pending;                  // since the last sync
    std::vector<std::unique_ptr<char[]>> shared;  // the index of the write-ahead log
  };
  struct Handle {
    sqlite3_file base;
    FaultyDisk* disk;
    File* file;
  };
  static FaultyDisk& Of(sqlite3_vfs* vfs) { return *static_cast<FaultyDisk*>(vfs->pAppData); }
  static Handle& Of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
  static const sqlite3_io_methods& Methods();
  static void Put(const Change& change, std::string* content);
  // SQLITE_OK, or the error of the operation, which is then not executed.
  int Spend();
  int Write(File* file, Change change);
  int Sync(File* file);

  const std::string name_;
  sqlite3_vfs vfs_{};
  std::map<std::string, std::unique_ptr<File>> files_;
  int64_t left_ = -1;
  int64_t operations_ = 0;
  int write_answer_ = SQLITE_OK;
  int sync_answer_ = SQLITE_OK;
  bool lies_ = false;
  std::mt19937_64 salt_{7};
};

}  // namespace muster

#endif  // MUSTER_TESTS_SERVICE_STORE_FAULTY_DISK_H_
