#include "service/store/sqlite_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/store/record_table.h"
#include "service/store/sqlite_log.h"
#include "service/store/store_file.h"

namespace muster {
namespace {

constexpr int kDamageRechecks = 5;
constexpr absl::Duration kRecheckPause = absl::Milliseconds(20);
// The mark of a copy. The process that takes over the copy drops this table.
constexpr char kMarkCopied[] = "CREATE TABLE IF NOT EXISTS copied(id INTEGER PRIMARY KEY) STRICT";

// As LogDamage, for a file that another process may be writing.
std::string LastingLogDamage(const std::string& path, const std::string& vfs = "") {
  std::string damage = LogDamage(path, vfs);
  for (int check = 0; check < kDamageRechecks && !damage.empty(); ++check) {
    absl::SleepFor(kRecheckPause);
    const std::string before = std::exchange(damage, LogDamage(path, vfs));
    if (damage == before) break;
  }
  return damage;
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("store ", path, ": damaged: ", what, "; restore a backup, or see `musterctl store verify`"));
}

// For a directory in which no file can be made, such as a read-only medium. SQLite would make files there.
absl::StatusOr<SqliteDb> OpenImmutable(const std::string& path) {
  struct stat info {};
  if (stat(absl::StrCat(RealPath(path), "-wal").c_str(), &info) == 0 && info.st_size > 0) {
    return absl::UnavailableError(absl::StrCat("store ", path, ": its directory cannot be written, and ", path,
                                               "-wal has the last commits; copy both into another directory, "
                                               "and use the copy"));
  }
  return SqliteDb::Open(RealPath(path), SqliteDb::Mode::kImmutable, "");
}

absl::StatusOr<SqliteDb> OpenStore(const std::string& path, SqliteDb::Mode mode) {
  if (absl::Status file = CheckRegularFile(path); !file.ok()) return file;
  const bool unchanging =
      mode == SqliteDb::Mode::kRead && access(std::filesystem::path(RealPath(path)).parent_path().c_str(), W_OK) != 0;
  absl::StatusOr<SqliteDb> db = unchanging ? OpenImmutable(path) : SqliteDb::Open(path, mode, "");
  if (!db.ok()) return db;
  const absl::StatusOr<int> format = ReadFormat(&*db);
  if (!format.ok()) return format.status();
  if (*format == 0) return absl::FailedPreconditionError(absl::StrCat("store ", path, ": empty, it has no records"));
  return db;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(Options options) {
  options.path = RealPath(options.path);
  const absl::StatusOr<int> lock = Lock(options.path);
  if (!lock.ok()) return lock.status();
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(options), *lock));
  if (absl::Status made = MakeFile(store->options_.path); !made.ok()) return made;
  MutexLock hold(&store->mutex_);
  if (absl::Status opened = store->OpenDb(/*may_create=*/true); !opened.ok()) return opened;
  return store;
}

bool SqliteStore::IsFileUnavailable(const absl::Status& opened, const std::string& path) {
  if (absl::IsAlreadyExists(opened)) return true;
  return (absl::IsPermissionDenied(opened) || absl::IsNotFound(opened)) && access(path.c_str(), F_OK) != 0;
}

SqliteStore::~SqliteStore() {
  {
    MutexLock lock(&mutex_);
    if (open_ != nullptr) CheckSameFile().IgnoreError();  // closing writes to the file
    open_.reset();
  }
  close(lock_fd_);
}

SqliteStore::Stamp SqliteStore::StampOf(const struct stat& info) {
  return {info.st_size, int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

void SqliteStore::RecordOwnStamp() {
  struct stat info {};
  if (open_ == nullptr || stat(options_.path.c_str(), &info) != 0) return own_stamp_.reset();
  if (own_stamp_ == StampOf(info)) return;
  own_stamp_ = StampOf(info);
  header_ = ReadHeader();
}

// The log belongs to the original file: it is renamed, once, and not written into the foreign file.
absl::Status SqliteStore::DetachForeignFile() {
  const std::string log = options_.path + "-wal";
  if (open_ != nullptr) sqlite3_db_config(open_->db.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  struct stat info {};
  const bool ours = open_ != nullptr && stat(log.c_str(), &info) == 0 &&
                    (!log_.has_value() || *log_ == std::pair<uint64_t, uint64_t>(info.st_dev, info.st_ino));
  if (ours && detached_log_.empty()) {
    detached_log_ = log + ".left";
    for (int i = 2; access(detached_log_.c_str(), F_OK) == 0; ++i) detached_log_ = absl::StrCat(log, ".left.", i);
    rename(log.c_str(), detached_log_.c_str());
    unlink((options_.path + "-shm").c_str());
  }
  return absl::UnavailableError(absl::StrCat(
      "store ", options_.path, ": written by another program while Muster has it open; ",
      detached_log_.empty() ? "" : absl::StrCat("the commits since the last checkpoint are in ", detached_log_, ". "),
      "Stop Muster, restore a backup"));
}

// Uses SQLite's own descriptor: closing another descriptor of the file would release SQLite's locks on it.
SqliteStore::Header SqliteStore::ReadHeader() {
  Header header = {};
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(open_->db.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK) {
    static_cast<void>(file->pMethods->xRead(file, header.data(), static_cast<int>(header.size()), 0));
  }
  return header;
}

void SqliteStore::Close() {
  open_.reset();
  log_.reset();
  own_stamp_.reset();
}

absl::Status SqliteStore::CheckSameFile() {
  struct stat info {};
  if (stat(options_.path.c_str(), &info) == 0) {
    const std::pair<uint64_t, uint64_t> now(info.st_dev, info.st_ino);
    if (!file_.has_value()) file_ = now;
    if (had_content_ && info.st_size == 0) {
      return absl::UnavailableError(absl::StrCat(
          "store ", options_.path, ": emptied while Muster has it open; stop Muster and restore a backup"));
    }
    had_content_ = had_content_ || info.st_size > 0;
    if (*file_ == now && own_stamp_.has_value() && *own_stamp_ != StampOf(info)) {
      if (own_stamp_->size != info.st_size || header_ != ReadHeader()) return DetachForeignFile();
      own_stamp_ = StampOf(info);  // only the time stamp changed
    }
    if (*file_ == now) return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("store ", options_.path, ": removed or replaced while Muster has it open; put it back"));
}

// Commits are written to the log first. If the log was removed, its contents are moved into the file, as long as SQLite
// can still read them, and a new log is begun.
absl::Status SqliteStore::CheckLog() {
  if (open_ == nullptr) return absl::OkStatus();
  struct stat info {};
  std::optional<std::pair<uint64_t, uint64_t>> now;
  if (stat(absl::StrCat(options_.path, "-wal").c_str(), &info) == 0) now.emplace(info.st_dev, info.st_ino);
  if (!log_.has_value()) log_ = now;
  if (log_ == now) return absl::OkStatus();
  const absl::StatusOr<int64_t> busy = open_->db.Number("PRAGMA wal_checkpoint(TRUNCATE)");
  RecordOwnStamp();  // the checkpoint wrote as much as it could
  if (!busy.ok() || *busy != 0) {
    return absl::UnavailableError(absl::StrCat("store ", options_.path, ": its log, ", options_.path,
                                               "-wal, was removed while Muster has it open, and cannot be saved"));
  }
  Close();
  return absl::OkStatus();
}

absl::Status SqliteStore::OpenDb(bool may_create) {
  if (absl::Status same = CheckSameFile(); !same.ok()) return same;
  if (may_create) {
    const std::string damage = LastingLogDamage(options_.path, options_.vfs);
    if (!damage.empty()) return Damaged(options_.path, damage);
  }
  if (!SyncLog(options_.path, options_.vfs)) {
    return absl::UnavailableError(
        absl::StrCat("store ", options_.path, ": its log, ", options_.path, "-wal, cannot be synced; its disk fails"));
  }
  absl::StatusOr<SqliteDb> db = SqliteDb::Open(options_.path, SqliteDb::Mode::kWrite, options_.vfs);
  if (!db.ok()) return db.status();
  const absl::StatusOr<int> format = ReadFormat(&*db);
  if (!format.ok()) return format.status();
  if (*format == 0 && !may_create) {
    return absl::UnavailableError(absl::StrCat("store ", options_.path, ": emptied while Muster runs; put it back"));
  }
  const absl::StatusOr<std::string> journal = db->Text("PRAGMA journal_mode = WAL");
  if (!journal.ok()) return journal.status();
  if (*journal != "wal") {
    return absl::UnavailableError(absl::StrCat("store ", options_.path, ": its file system has no write-ahead log (",
                                               *journal, "); use a local one"));
  }
  if (absl::Status set = db->Run("PRAGMA synchronous = FULL"); !set.ok()) return set;
  // A checkpoint waits for the disk twice more; run it after 16 MiB of log instead of 4.
  if (absl::Status set = db->Run("PRAGMA wal_autocheckpoint = 4000"); !set.ok()) return set;
  if (*format == 0) {
    if (absl::Status made = MakeSchema(&*db); !made.ok()) return made;
  } else if (may_create) {
    format_ = *format;
  }
  open_ = std::make_unique<Connection>(Connection{*std::move(db), {}, {}, {}, {}, {}});
  for (auto& [statement, sql] : std::initializer_list<std::pair<std::optional<SqliteStatement>*, const char*>>{
           {&open_->begin, "BEGIN IMMEDIATE"},
           {&open_->owner, "SELECT epoch FROM owner"},
           {&open_->put, kPut},
           {&open_->remove, kRemove},
           {&open_->commit, "COMMIT"}}) {
    absl::StatusOr<SqliteStatement> prepared = SqliteStatement::Prepare(open_->db, sql);
    if (!prepared.ok()) {
      open_.reset();
      return prepared.status();
    }
    *statement = *std::move(prepared);
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::Transact(const std::function<absl::Status()>& write) {
  if (open_ == nullptr) {
    if (absl::Status opened = OpenDb(/*may_create=*/false); !opened.ok()) return opened;
  }
  absl::Status done = open_->begin->Step().status();
  if (done.ok()) done = write();
  if (done.ok()) done = open_->commit->Step().status();
  if (done.ok()) {
    RecordOwnStamp();
    return done;
  }
  // After a disk error the state of the cached pages is unknown: read them again.
  open_->db.Run("ROLLBACK").IgnoreError();
  if (ClassifyStoreError(done) == StoreErrorKind::kTryAgain) Close();
  return done;
}

absl::StatusOr<Store::Contents> SqliteStore::TakeOver() {
  MutexLock lock(&mutex_);
  Contents out;
  std::vector<std::string> problems;
  absl::Status taken = Transact([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (absl::Status read = ReadAll(&open_->db, &out.records, &problems); !read.ok()) return read;
    if (!problems.empty()) {
      return Damaged(options_.path,
                     absl::StrCat(problems.front(),
                                  problems.size() > 1 ? absl::StrCat(" and ", problems.size() - 1, " more") : ""));
    }
    const size_t copied = out.records.size();
    if (absl::Status copy = DropReannouncedRecords(&out.records); !copy.ok()) return copy;
    out.dropped_records = static_cast<int64_t>(copied - out.records.size());
    if (absl::Status next = open_->db.Run("UPDATE owner SET epoch = epoch + 1"); !next.ok()) return next;
    const absl::StatusOr<int64_t> epoch = open_->db.Number("SELECT epoch FROM owner");
    if (!epoch.ok()) return epoch.status();
    out.epoch = *epoch;
    return absl::OkStatus();
  });
  if (!taken.ok()) return taken;
  return out;
}

absl::Status SqliteStore::DropReannouncedRecords(std::vector<Record>* records) {
  const absl::StatusOr<int64_t> copied =
      open_->db.Number("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'copied'");
  if (!copied.ok()) return copied.status();
  if (*copied == 0) return absl::OkStatus();
  std::vector<Record> forgotten;
  const auto is_kept = [&](const Record& record) {
    return std::find(options_.reannounced_kinds.begin(), options_.reannounced_kinds.end(), record.kind) ==
           options_.reannounced_kinds.end();
  };
  const auto rest = std::stable_partition(records->begin(), records->end(), is_kept);
  for (auto record = rest; record != records->end(); ++record) {
    record->value.clear();
    forgotten.push_back(std::move(*record));
  }
  records->erase(rest, records->end());
  if (absl::Status removed = Upsert(forgotten, &*open_->put, &*open_->remove); !removed.ok()) return removed;
  return open_->db.Run("DROP TABLE copied");
}

absl::Status SqliteStore::Write(int64_t epoch, const std::vector<Record>& records) {
  const absl::StatusOr<bool> row = open_->owner->Step();
  if (!row.ok()) return row.status();
  const int64_t owner = *row ? open_->owner->Number(0) : 0;
  open_->owner->Reset();
  if (owner != epoch) return FencedError();
  return Upsert(records, &*open_->put, &*open_->remove);
}

absl::Status SqliteStore::Commit(int64_t epoch, const std::vector<Record>& records) {
  MutexLock lock(&mutex_);
  if (absl::Status same = CheckSameFile(); !same.ok()) return same;
  if (absl::Status log = CheckLog(); !log.ok()) return log;
  return Transact([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Write(epoch, records); });
}

absl::StatusOr<StoreReport> ReadStore(const std::string& path) {
  StoreReport report;
  if (std::string damage = LastingLogDamage(RealPath(path)); !damage.empty())
    report.problems.push_back(std::move(damage));
  absl::StatusOr<SqliteDb> db = OpenStore(path, SqliteDb::Mode::kRead);
  if (!db.ok() && !report.problems.empty()) return Damaged(path, report.problems.front());
  if (!db.ok()) return db.status();
  // One snapshot, whatever is written meanwhile.
  if (absl::Status begun = db->Run("BEGIN"); !begun.ok()) return begun;
  if (absl::Status read = ReadAll(&*db, &report.records, &report.problems); !read.ok()) return read;
  const absl::StatusOr<int64_t> format = db->Number("PRAGMA user_version");
  const absl::StatusOr<int64_t> epoch = db->Number("SELECT epoch FROM owner");
  if (!format.ok() || !epoch.ok()) return format.ok() ? epoch.status() : format.status();
  report.format = static_cast<int>(*format);
  report.epoch = *epoch;
  return report;
}

namespace {

absl::Status MarkCopied(const std::string& path) {
  absl::StatusOr<SqliteDb> db = SqliteDb::Open(path, SqliteDb::Mode::kWrite, "");
  return db.ok() ? db->Run(kMarkCopied) : db.status();
}

}  // namespace

absl::Status BackUpStore(const std::string& from, const std::string& to) {
  if (absl::Status free = CheckAbsent(to); !free.ok()) return free;
  if (const std::string damage = LastingLogDamage(RealPath(from)); !damage.empty()) return Damaged(from, damage);
  absl::StatusOr<SqliteDb> source = OpenStore(from, SqliteDb::Mode::kRead);
  if (!source.ok()) return source.status();
  if (absl::Status made = MakeFile(to); !made.ok()) return made;
  absl::Status copied;
  {
    absl::StatusOr<SqliteDb> target = SqliteDb::Open(to, SqliteDb::Mode::kWrite, "");
    if (target.ok()) {
      sqlite3_backup* backup = sqlite3_backup_init(target->get(), "main", source->get(), "main");
      int code = sqlite3_errcode(target->get());
      if (backup != nullptr) code = sqlite3_backup_step(backup, -1);  // all pages at once: one snapshot
      sqlite3_backup_finish(backup);
      if (code != SQLITE_DONE) copied = target->Error(code);
      if (copied.ok()) copied = target->Run(kMarkCopied);
    } else {
      copied = target.status();
    }
  }
  if (!copied.ok()) unlink(to.c_str());
  return copied;
}

absl::StatusOr<int> UpgradeStore(const std::string& path) {
  if (absl::Status file = CheckRegularFile(path); !file.ok()) return file;
  const absl::StatusOr<int> lock = Lock(RealPath(path));
  if (!lock.ok()) return lock.status();
  absl::StatusOr<int> before = 0;
  if (const std::string damage = LastingLogDamage(RealPath(path)); !damage.empty()) {
    before = Damaged(path, damage);
  } else {
    absl::StatusOr<SqliteDb> db = OpenStore(path, SqliteDb::Mode::kWrite);
    if (!db.ok()) {
      before = db.status();
    } else if (before = ReadFormat(&*db); before.ok() && *before < SqliteStore::kFormat) {
      // Durable without further steps: SQLite's default is synchronous=FULL.
      const std::string sql = absl::StrCat("PRAGMA user_version = ", SqliteStore::kFormat);
      if (absl::Status set = db->Run(sql.c_str()); !set.ok()) before = set;
    }
  }
  close(*lock);
  return before;
}

absl::Status MakeStore(const std::string& path, const std::vector<Record>& records) {
  const std::string real = RealPath(path);
  for (const char* suffix : {"", "-wal", "-shm"}) {  // a leftover log would belong to an earlier file
    if (absl::Status free = CheckAbsent(real + suffix); !free.ok()) return free;
  }
  absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({real, ""});
  if (absl::IsAlreadyExists(store.status())) return store.status();  // the owner of the lock owns these files
  absl::Status made = store.status();
  if (made.ok()) {
    const absl::StatusOr<Store::Contents> mine = (*store)->TakeOver();
    made = mine.ok() ? (*store)->Commit(mine->epoch, records) : mine.status();
    store->reset();
  }
  // The contents of the records may have changed since they were written elsewhere.
  if (made.ok()) made = MarkCopied(real);
  unlink((real + ".lock").c_str());
  for (const char* suffix : {"", "-wal", "-shm"}) {
    if (!made.ok()) unlink((real + suffix).c_str());
  }
  return made;
}

}  // namespace muster
