#include "service/store/sqlite_store.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/store/sqlite_log.h"
#include "service/store/store_file.h"

namespace muster {
namespace {

constexpr int kLooks = 5;
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);
constexpr int64_t kApplication = 0x4d737472;  // "Mstr": what PRAGMA application_id says of a store of Muster's
constexpr char kSchema[] =
    "CREATE TABLE owner(id INTEGER PRIMARY KEY CHECK(id = 1), epoch INTEGER NOT NULL) STRICT;"
    "INSERT INTO owner VALUES(1, 0);"
    "CREATE TABLE record(kind TEXT NOT NULL, key TEXT NOT NULL, incarnation TEXT NOT NULL, format INTEGER NOT NULL, "
    "value BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY(kind, key)) STRICT, WITHOUT ROWID;";

// In a copy: whoever takes it over drops that table.
constexpr char kMarkCopied[] = "CREATE TABLE IF NOT EXISTS copied(id INTEGER PRIMARY KEY) STRICT";

// CRC-32 of a record, its fields behind their lengths.
int64_t Checksum(const Record& record) {
  uLong sum = crc32(0, nullptr, 0);
  const auto add = [&](absl::string_view bytes) {
    sum = crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  };
  const std::string format = absl::StrCat(record.format);
  for (const absl::string_view field :
       {absl::string_view(record.kind), absl::string_view(record.key), absl::string_view(record.incarnation),
        absl::string_view(format), absl::string_view(record.value)}) {
    add(absl::StrCat(field.size(), ":"));
    add(field);
  }
  return static_cast<int64_t>(sum);
}

// The file's format; 0: it is empty. The error: it is no store that this version can read.
absl::StatusOr<int> ReadFormat(SqliteDb* db) {
  const absl::StatusOr<int64_t> tables = db->Number("SELECT count(*) FROM sqlite_schema");
  if (!tables.ok()) return tables.status();
  if (*tables == 0) return 0;
  const absl::StatusOr<int64_t> application = db->Number("PRAGMA application_id");
  const absl::StatusOr<int64_t> format = db->Number("PRAGMA user_version");
  if (!application.ok() || !format.ok()) return application.ok() ? format.status() : application.status();
  if (*application != kApplication) {
    return absl::FailedPreconditionError(
        absl::StrCat("store ", db->path(), ": an SQLite file of something else; name another one"));
  }
  if (*format < 1 || *format > SqliteStore::kFormat) {
    return absl::FailedPreconditionError(absl::StrCat("store ", db->path(), ": written in format ", *format,
                                                      ", this Muster reads up to ", SqliteStore::kFormat,
                                                      "; run the version that wrote it, or a newer one"));
  }
  return static_cast<int>(*format);
}

absl::Status MakeSchema(SqliteDb* db) {
  const std::string sql = absl::StrCat("BEGIN IMMEDIATE;", kSchema, "PRAGMA application_id = ", kApplication,
                                       ";PRAGMA user_version = ", SqliteStore::kFormat, ";COMMIT;");
  absl::Status made = db->Run(sql.c_str());
  if (!made.ok()) db->Run("ROLLBACK").IgnoreError();
  return made;
}

absl::Status Upsert(const std::vector<Record>& records, SqliteStatement* put, SqliteStatement* remove) {
  for (const Record& record : records) {
    SqliteStatement& statement = record.value.empty() ? *remove : *put;
    statement.Bind(1, absl::string_view(record.kind));
    statement.Bind(2, absl::string_view(record.key));
    if (!record.value.empty()) {
      statement.Bind(3, absl::string_view(record.incarnation));
      statement.Bind(4, int64_t{record.format});
      statement.BindBlob(5, record.value);
      statement.Bind(6, Checksum(record));
    }
    if (const absl::StatusOr<bool> done = statement.Step(); !done.ok()) return done.status();
  }
  return absl::OkStatus();
}

std::pair<absl::string_view, absl::string_view> Place(const Record& record) { return {record.kind, record.key}; }

// Reads records until there are no more, or one cannot be reached, or `until` has come, unless that is nullptr; those
// of which the checksum holds go to `records`.
absl::Status ReadRows(SqliteDb* db, absl::string_view order, const Record* until, std::vector<Record>* records,
                      std::vector<std::string>* problems) {
  auto read = SqliteStatement::Prepare(
      *db, absl::StrCat("SELECT kind, key, incarnation, format, value, checksum FROM record ORDER BY ", order));
  if (!read.ok()) return read.status();
  while (true) {
    const absl::StatusOr<bool> row = read->Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
    Record record{read->Bytes(0), read->Bytes(1), read->Bytes(2), static_cast<int32_t>(read->Number(3)),
                  read->Bytes(4)};
    if (until != nullptr && Place(record) <= Place(*until)) return absl::OkStatus();
    if (Checksum(record) == read->Number(5)) {
      records->push_back(std::move(record));
    } else {
      problems->push_back(absl::StrCat("record \"", RecordName(record), "\": its checksum is wrong"));
    }
  }
}

// Every record that can be reached and of which the checksum holds; what is wrong with the others, and with the file's
// pages, in `problems`.
absl::Status ReadAll(SqliteDb* db, std::vector<Record>* records, std::vector<std::string>* problems) {
  auto check = SqliteStatement::Prepare(*db, "PRAGMA quick_check(10)");
  absl::Status checked = check.status();
  while (checked.ok()) {
    const absl::StatusOr<bool> row = check->Step();
    checked = row.status();
    if (!row.ok() || !*row) break;
    if (std::string said = check->Bytes(0); said != "ok") problems->push_back(std::move(said));
  }
  if (!checked.ok() && !absl::IsDataLoss(checked)) return checked;
  if (!checked.ok()) problems->emplace_back(checked.message());
  absl::Status read = ReadRows(db, "kind, key", nullptr, records, problems);
  if (!absl::IsDataLoss(read)) return read;
  problems->emplace_back(read.message());
  // Behind what cannot be passed there may be more: from the other end.
  std::vector<Record> behind;
  read = ReadRows(db, "kind DESC, key DESC", records->empty() ? nullptr : &records->back(), &behind, problems);
  if (!read.ok() && !absl::IsDataLoss(read)) return read;
  std::move(behind.rbegin(), behind.rend(), std::back_inserter(*records));
  return absl::OkStatus();
}

// As LogDamage, of a file that somebody may be writing.
std::string LastingLogDamage(const std::string& path, const std::string& vfs = "") {
  std::string said = LogDamage(path, vfs);
  for (int look = 0; look < kLooks && !said.empty(); ++look) {
    absl::SleepFor(kLookAgain);
    const std::string before = std::exchange(said, LogDamage(path, vfs));
    if (said == before) break;
  }
  return said;
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("store ", path, ": damaged: ", what,
                                          "; put a backup in its place, or see `musterctl store verify`"));
}

// Where nothing can be made beside it, as on a medium that is only read: SQLite wants to.
absl::StatusOr<SqliteDb> OpenUnchanging(const std::string& path) {
  struct stat said {};
  if (stat(absl::StrCat(RealPath(path), "-wal").c_str(), &said) == 0 && said.st_size > 0) {
    return absl::UnavailableError(absl::StrCat("store ", path, ": its directory cannot be written, and ", path,
                                               "-wal has what was committed last; copy both into another directory, "
                                               "and name the copy"));
  }
  return SqliteDb::Open(RealPath(path), SqliteDb::Mode::kUnchanging, "");
}

absl::StatusOr<SqliteDb> OpenStore(const std::string& path, SqliteDb::Mode mode) {
  if (absl::Status file = IsFile(path); !file.ok()) return file;
  const bool unchanging =
      mode == SqliteDb::Mode::kRead && access(std::filesystem::path(RealPath(path)).parent_path().c_str(), W_OK) != 0;
  absl::StatusOr<SqliteDb> db = unchanging ? OpenUnchanging(path) : SqliteDb::Open(path, mode, "");
  if (!db.ok()) return db;
  const absl::StatusOr<int> format = ReadFormat(&*db);
  if (!format.ok()) return format.status();
  if (*format == 0)
    return absl::FailedPreconditionError(absl::StrCat("store ", path, ": empty, nothing was ever kept in it"));
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

bool SqliteStore::CannotBeHad(const absl::Status& opened, const std::string& path) {
  if (absl::IsAlreadyExists(opened)) return true;
  return (absl::IsPermissionDenied(opened) || absl::IsNotFound(opened)) && access(path.c_str(), F_OK) != 0;
}

SqliteStore::~SqliteStore() {
  {
    MutexLock lock(&mutex_);
    if (open_ != nullptr) CheckSameFile().IgnoreError();  // closing writes into it
    open_.reset();
  }
  close(lock_fd_);
}

SqliteStore::Stamp SqliteStore::StampOf(const struct stat& said) {
  return {said.st_size, int64_t{said.st_mtim.tv_sec} * 1'000'000'000 + said.st_mtim.tv_nsec};
}

void SqliteStore::NoteMine() {
  struct stat said {};
  mine_.reset();
  if (stat(options_.path.c_str(), &said) == 0) mine_ = StampOf(said);
}

// What is in the log belongs to the file that was there: it is put aside, and not written into this one.
absl::Status SqliteStore::LeaveToOthers() {
  const std::string log = options_.path + "-wal";
  if (open_ != nullptr) sqlite3_db_config(open_->db.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (open_ != nullptr && access(log.c_str(), F_OK) == 0) {
    rename(log.c_str(), (log + ".left").c_str());
    unlink((options_.path + "-shm").c_str());
  }
  return absl::UnavailableError(absl::StrCat("store ", options_.path,
                                             ": written by something else while Muster has it open; what was committed "
                                             "since the last checkpoint is in ",
                                             log, ".left. Stop Muster, put a backup in its place"));
}

void SqliteStore::Close() {
  open_.reset();
  log_.reset();
  mine_.reset();
}

absl::Status SqliteStore::CheckSameFile() {
  struct stat said {};
  if (stat(options_.path.c_str(), &said) == 0) {
    const std::pair<uint64_t, uint64_t> now(said.st_dev, said.st_ino);
    if (!file_.has_value()) file_ = now;
    if (filled_ && said.st_size == 0) {
      return absl::UnavailableError(
          absl::StrCat("store ", options_.path,
                       ": emptied while Muster has it open; stop Muster and put a backup in its "
                       "place"));
    }
    filled_ = filled_ || said.st_size > 0;
    if (*file_ == now && mine_.has_value() && *mine_ != StampOf(said)) {
      return LeaveToOthers();
    }
    if (*file_ == now) return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("store ", options_.path, ": removed or replaced while Muster has it open; put it back"));
}

// What is committed stands in the log first. Where somebody took that away, all of it is moved into the file, as long
// as it can be read from here, and another log begun.
absl::Status SqliteStore::CheckLog() {
  if (open_ == nullptr) return absl::OkStatus();
  struct stat said {};
  std::optional<std::pair<uint64_t, uint64_t>> now;
  if (stat(absl::StrCat(options_.path, "-wal").c_str(), &said) == 0) now.emplace(said.st_dev, said.st_ino);
  if (!log_.has_value()) log_ = now;
  if (log_ == now) return absl::OkStatus();
  const absl::StatusOr<int64_t> busy = open_->db.Number("PRAGMA wal_checkpoint(TRUNCATE)");
  NoteMine();  // what it could, it wrote
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
  // A checkpoint, which waits for the disk twice more, after 16 MiB of log instead of 4.
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
           {&open_->put, "INSERT OR REPLACE INTO record VALUES(?1, ?2, ?3, ?4, ?5, ?6)"},
           {&open_->remove, "DELETE FROM record WHERE kind = ?1 AND key = ?2"},
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
    NoteMine();
    return done;
  }
  // What became of the pages is not known after an error of the disk: they are read again.
  open_->db.Run("ROLLBACK").IgnoreError();
  if (TroubleOf(done) == StoreTrouble::kTryAgain) Close();
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
    if (absl::Status copy = TakeFromCopy(&out.records); !copy.ok()) return copy;
    if (absl::Status next = open_->db.Run("UPDATE owner SET epoch = epoch + 1"); !next.ok()) return next;
    const absl::StatusOr<int64_t> epoch = open_->db.Number("SELECT epoch FROM owner");
    if (!epoch.ok()) return epoch.status();
    out.epoch = *epoch;
    return absl::OkStatus();
  });
  if (!taken.ok()) return taken;
  return out;
}

absl::Status SqliteStore::TakeFromCopy(std::vector<Record>* records) {
  const absl::StatusOr<int64_t> copied =
      open_->db.Number("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'copied'");
  if (!copied.ok()) return copied.status();
  if (*copied == 0) return absl::OkStatus();
  std::vector<Record> forgotten;
  const auto stays = [&](const Record& record) {
    return std::find(options_.told_again.begin(), options_.told_again.end(), record.kind) == options_.told_again.end();
  };
  const auto rest = std::stable_partition(records->begin(), records->end(), stays);
  for (auto record = rest; record != records->end(); ++record) {
    record->value.clear();
    forgotten.push_back(std::move(*record));
  }
  records->erase(rest, records->end());
  if (absl::Status gone = Upsert(forgotten, &*open_->put, &*open_->remove); !gone.ok()) return gone;
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
  // One picture, whatever is written meanwhile.
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
  if (absl::Status free = NotThere(to); !free.ok()) return free;
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
      if (backup != nullptr) code = sqlite3_backup_step(backup, -1);  // all pages at once: one moment
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
  if (absl::Status file = IsFile(path); !file.ok()) return file;
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
      // Durable without more: SQLite's default is synchronous=FULL.
      const std::string sql = absl::StrCat("PRAGMA user_version = ", SqliteStore::kFormat);
      if (absl::Status set = db->Run(sql.c_str()); !set.ok()) before = set;
    }
  }
  close(*lock);
  return before;
}

absl::Status MakeStore(const std::string& path, const std::vector<Record>& records) {
  const std::string real = RealPath(path);
  for (const char* suffix : {"", "-wal", "-shm"}) {  // a log belongs to a file that was there
    if (absl::Status free = NotThere(real + suffix); !free.ok()) return free;
  }
  absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({real, ""});
  if (absl::IsAlreadyExists(store.status())) return store.status();  // whoever has its lock has what is beside it
  absl::Status made = store.status();
  if (made.ok()) {
    const absl::StatusOr<Store::Contents> mine = (*store)->TakeOver();
    made = mine.ok() ? (*store)->Commit(mine->epoch, records) : mine.status();
    store->reset();
  }
  // What its records say may have changed since they were written elsewhere.
  if (made.ok()) made = MarkCopied(real);
  unlink((real + ".lock").c_str());
  for (const char* suffix : {"", "-wal", "-shm"}) {
    if (!made.ok()) unlink((real + suffix).c_str());
  }
  return made;
}

}  // namespace muster
