// The embedded store: one SQLite file (SPEC S-2, S-3). Write-ahead log, synchronous=FULL: an acknowledged Commit
// survives the loss of power. One commit serves many commands: the caller collects them.
//
// Files, all readable by their owner alone: FILE, FILE-wal and FILE-shm while it is open, FILE.lock. The lock prevents
// a second musterd on this machine from opening the file. The epoch in the file fences a process that bypassed the
// lock.
#ifndef MUSTER_SERVICE_STORE_SQLITE_STORE_H_
#define MUSTER_SERVICE_STORE_SQLITE_STORE_H_

#include <sys/stat.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "service/store/sqlite_db.h"
#include "service/store/store.h"

namespace muster {

class SqliteStore : public Store {
 public:
  // Format of the file as a whole; records have formats of their own. Format N is read by versions that know N. A file
  // keeps its format until it is upgraded, so that a rollback to the previous version is possible.
  static constexpr int kFormat = kNewestFormat;

  struct Options {
    std::string path;
    std::string vfs;  // name of a registered SQLite VFS; empty: the operating system's. For tests.
    // Kinds of records that are not taken from a copy: they may be outdated and are announced again.
    std::vector<std::string> reannounced_kinds = {};
  };

  // Opens the file, or makes one if there is none. Errors say what to do:
  //   AlreadyExists       another musterd has it open
  //   FailedPrecondition  written by a newer Muster, or not a Muster file
  //   DataLoss            damaged, or not an SQLite file
  //   PermissionDenied, NotFound, Unavailable   it cannot be opened or written
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(Options options);
  ~SqliteStore() override;
  // An error of Open: there is no file and none can be made here, or another process has it. The contents are not
  // damaged.
  [[nodiscard]] static bool IsFileUnavailable(const absl::Status& opened, const std::string& path);

  absl::StatusOr<Contents> TakeOver() override;
  absl::Status Commit(int64_t epoch, const std::vector<Record>& records) override;
  [[nodiscard]] std::string name() const override { return "store " + options_.path; }
  [[nodiscard]] int format() const override { return format_; }

 private:
  SqliteStore(Options options, int lock_fd) : options_(std::move(options)), lock_fd_(lock_fd) {}
  [[nodiscard]] absl::Status OpenDb(bool may_create) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs `write` in one transaction; always ends the transaction.
  [[nodiscard]] absl::Status Transact(const std::function<absl::Status()>& write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status Write(int64_t epoch, const std::vector<Record>& records)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // If the file is a copy, removes the records that are announced again, once.
  [[nodiscard]] absl::Status DropReannouncedRecords(std::vector<Record>* records) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Size and time of the last change of the file; only our own checkpoints change them.
  struct Stamp {
    int64_t size = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  static Stamp StampOf(const struct stat& info);
  void RecordOwnStamp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The database header as it is in the file now.
  using Header = std::array<char, 100>;
  [[nodiscard]] Header ReadHeader() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status DetachForeignFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The file of the first Open, with its last known contents. Another file in its place is detected, and so are foreign
  // bytes in it.
  [[nodiscard]] absl::Status CheckSameFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status CheckLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const int lock_fd_;
  int format_ = kFormat;                                                       // valid after Open
  std::optional<std::pair<uint64_t, uint64_t>> file_ ABSL_GUARDED_BY(mutex_);  // device and inode
  std::optional<std::pair<uint64_t, uint64_t>> log_ ABSL_GUARDED_BY(mutex_);   // device and inode of its log, once seen
  std::string detached_log_ ABSL_GUARDED_BY(mutex_);        // name to which the log was renamed; empty: it was not
  bool had_content_ ABSL_GUARDED_BY(mutex_) = false;        // the file was not empty
  std::optional<Stamp> own_stamp_ ABSL_GUARDED_BY(mutex_);  // after the last commit
  Header header_ ABSL_GUARDED_BY(mutex_) = {};              // taken together with own_stamp_
  Mutex mutex_;
  // The connection and its prepared statements for a commit.
  struct Connection {
    SqliteDb db;
    std::optional<SqliteStatement> begin, owner, put, remove, commit;
  };
  std::unique_ptr<Connection> open_ ABSL_GUARDED_BY(mutex_);  // empty: closed after an error; Commit opens it again
};

// The contents of a store's file, read without a take-over; musterd may be running.
struct StoreReport {
  int format = 0;
  int64_t epoch = 0;
  std::vector<Record> records;
  std::vector<std::string> problems;  // damaged pages and records, which are not in `records`; empty: none
};
[[nodiscard]] absl::StatusOr<StoreReport> ReadStore(const std::string& path);

// Makes a consistent copy of the file while musterd may write to it. The copy is marked as one. AlreadyExists: `to`
// exists.
[[nodiscard]] absl::Status BackUpStore(const std::string& from, const std::string& to);

// Converts the file to the newest format, which older versions of Muster refuse, and returns the old format.
// AlreadyExists: a musterd has it open.
[[nodiscard]] absl::StatusOr<int> UpgradeStore(const std::string& path);

// Makes a new file with these records, marked as a copy. AlreadyExists: `path` or its log exists, or a musterd has it
// open.
[[nodiscard]] absl::Status MakeStore(const std::string& path, const std::vector<Record>& records);

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_SQLITE_STORE_H_
