// The embedded store: one SQLite file (SPEC S-2, S-3). Write-ahead log, synchronous=FULL: what Commit answered survives
// the loss of power. One commit for many commands: the caller brings what has gathered.
//
// Files, all readable by their owner alone: FILE, FILE-wal and FILE-shm while it is open, FILE.lock. The lock keeps a
// second musterd of this machine from opening the file; the epoch in it fences whoever got past that.
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
  // Of the file as a whole; records have formats of their own. Format N is read by versions that know N. A file keeps
  // its format until it is upgraded, so that the version before can go back to it.
  static constexpr int kFormat = kNewestFormat;

  struct Options {
    std::string path;
    std::string vfs;  // name of a registered SQLite VFS; empty: the operating system's. For tests.
    // Kinds of records that are not taken from a copy: what they say may have changed since, and is told again.
    std::vector<std::string> told_again = {};
  };

  // Opens the file; makes one where there is none. Errors say what to do:
  //   AlreadyExists       another musterd has it open
  //   FailedPrecondition  it was written by a newer Muster; it is something else's
  //   DataLoss            damaged, or no SQLite file at all
  //   PermissionDenied, NotFound, Unavailable   it cannot be opened or written
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(Options options);
  ~SqliteStore() override;
  // An error of Open: there is no file and none can be made here, or another process has it. Nothing is wrong with what
  // is in it.
  [[nodiscard]] static bool CannotBeHad(const absl::Status& opened, const std::string& path);

  absl::StatusOr<Contents> TakeOver() override;
  absl::Status Commit(int64_t epoch, const std::vector<Record>& records) override;
  [[nodiscard]] std::string name() const override { return "store " + options_.path; }
  [[nodiscard]] int format() const override { return format_; }

 private:
  SqliteStore(Options options, int lock_fd) : options_(std::move(options)), lock_fd_(lock_fd) {}
  [[nodiscard]] absl::Status OpenDb(bool may_create) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // In one transaction; leaves none behind.
  [[nodiscard]] absl::Status Transact(const std::function<absl::Status()>& write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status Write(int64_t epoch, const std::vector<Record>& records)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Leaves out what is told again, if the file is a copy: once.
  [[nodiscard]] absl::Status TakeFromCopy(std::vector<Record>* records) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Of the file; only our own checkpoints change it.
  struct Stamp {
    int64_t size = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  static Stamp StampOf(const struct stat& said);
  void NoteMine() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The database header, as the file has it now.
  using Header = std::array<char, 100>;
  [[nodiscard]] Header ReadHeader() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status LeaveToOthers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The file of the first opening, as it was left: another one in its place is not taken for it, nor another's bytes.
  [[nodiscard]] absl::Status CheckSameFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status CheckLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const int lock_fd_;
  int format_ = kFormat;                                                       // since Open
  std::optional<std::pair<uint64_t, uint64_t>> file_ ABSL_GUARDED_BY(mutex_);  // device and inode
  std::optional<std::pair<uint64_t, uint64_t>> log_ ABSL_GUARDED_BY(mutex_);   // the same of its log, once it is seen
  std::string left_ ABSL_GUARDED_BY(mutex_);           // what the log was put aside as; empty: it was not
  bool filled_ ABSL_GUARDED_BY(mutex_) = false;        // it had something in it
  std::optional<Stamp> mine_ ABSL_GUARDED_BY(mutex_);  // after the last commit
  Header header_ ABSL_GUARDED_BY(mutex_) = {};         // with mine_
  Mutex mutex_;
  // The file, and what every commit says, prepared once.
  struct Connection {
    SqliteDb db;
    std::optional<SqliteStatement> begin, owner, put, remove, commit;
  };
  std::unique_ptr<Connection> open_ ABSL_GUARDED_BY(mutex_);  // empty: closed after an error; Commit opens it again
};

// What is in a store's file, read without taking it over; musterd may be running.
struct StoreReport {
  int format = 0;
  int64_t epoch = 0;
  std::vector<Record> records;
  std::vector<std::string> problems;  // damaged pages and records, which are not among `records`; empty: none
};
[[nodiscard]] absl::StatusOr<StoreReport> ReadStore(const std::string& path);

// A copy of the file as it is at one moment, while musterd goes on writing; whoever takes it over knows that it is one.
// AlreadyExists: `to` is there.
[[nodiscard]] absl::Status BackUpStore(const std::string& from, const std::string& to);

// Gives the file the newest format, which older versions of Muster refuse; returns the one that it had. AlreadyExists:
// a musterd has it open.
[[nodiscard]] absl::StatusOr<int> UpgradeStore(const std::string& path);

// A new file with these records, marked as a copy. AlreadyExists: `path`, or its log, is there; a musterd has it open.
[[nodiscard]] absl::Status MakeStore(const std::string& path, const std::vector<Record>& records);

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_SQLITE_STORE_H_
