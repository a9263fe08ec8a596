// SPEC S-3: the SQLite store's errors and contents when its disk fails or its file is damaged, removed or replaced; and
// its copies.
#include "service/store/sqlite_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/service/store/faulty_disk.h"
#include "tests/service/store/store_fixture.h"

namespace muster {
namespace {

using testing::HasSubstr;

// A store that this process has taken over.
struct OwnedStore {
  explicit OwnedStore(const std::string& path, const std::string& vfs = "")
      : store(OpenSqlite(path, vfs)), epoch(store->TakeOver()->epoch) {}
  absl::Status Commit(const std::vector<Record>& records) const { return store->Commit(epoch, records); }
  // Commits one value of kind "a".
  absl::Status Put(const std::string& key, const std::string& value) const {
    return Commit({{"a", key, "", 1, value}});
  }

  std::unique_ptr<SqliteStore> store;
  const int64_t epoch;
};

class SqliteTrouble : public testing::Test {
 protected:
  [[nodiscard]] absl::Status Opening() const {
    const absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({path_, ""});
    if (!store.ok()) return store.status();
    return (*store)->TakeOver().status();
  }
  void Make() const {
    const auto store = OpenSqlite(path_);
    ASSERT_TRUE(store->Commit(store->TakeOver()->epoch, {{"gang", "d/g", "u", 1, "value"}}).ok());
  }
  void Sql(const std::string& sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  TestFolder folder_;
  const std::string path_ = folder_ / "muster.db";
};

TEST_F(SqliteTrouble, SecondProcess_IsRefused) {
  const auto mine = OpenSqlite(path_);
  const absl::Status second = Opening();
  EXPECT_TRUE(absl::IsAlreadyExists(second));
  EXPECT_THAT(std::string(second.message()), HasSubstr(absl::StrCat("another musterd (pid ", getpid(), ")")));
  EXPECT_TRUE(SqliteStore::IsFileUnavailable(second, path_));
}

TEST_F(SqliteTrouble, Files_AreReadableByOwnerOnly) {
  const mode_t before = umask(0);
  Make();
  const auto store = OpenSqlite(path_);
  ASSERT_TRUE(store->Commit(store->TakeOver()->epoch, {{"gang", "d/h", "", 1, "x"}}).ok());
  umask(before);
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    struct stat info {};
    ASSERT_EQ(stat((path_ + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << suffix;
  }
}

TEST_F(SqliteTrouble, NewerFormat_IsRefusedUnchanged) {
  Make();
  Sql("PRAGMA user_version = 99");
  const absl::Status opened = Opening();
  EXPECT_TRUE(absl::IsFailedPrecondition(opened));
  EXPECT_THAT(std::string(opened.message()), HasSubstr(absl::StrCat("written in format 99, this Muster reads up to ",
                                                                    SqliteStore::kFormat, "; run the version")));
  EXPECT_FALSE(SqliteStore::IsFileUnavailable(opened, path_));
}

TEST_F(SqliteTrouble, ForeignSqliteFile_IsRefusedUnchanged) {
  Sql("CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
  const absl::Status opened = Opening();
  EXPECT_TRUE(absl::IsFailedPrecondition(opened));
  EXPECT_THAT(std::string(opened.message()), HasSubstr("an SQLite file of another program"));
  Sql("SELECT * FROM theirs");
}

TEST_F(SqliteTrouble, FileOfOtherType_IsRefused) {
  std::ofstream(path_) << std::string(5'000, 'n');
  const absl::Status opened = Opening();
  EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
  EXPECT_THAT(std::string(opened.message()), HasSubstr("not an SQLite file"));
}

TEST_F(SqliteTrouble, MissingDirectory_IsReported) {
  const absl::StatusOr<std::unique_ptr<SqliteStore>> opened = SqliteStore::Open({folder_ / "no/such/dir.db", ""});
  EXPECT_TRUE(absl::IsNotFound(opened.status())) << opened.status();
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("its directory must exist and be writable"));
  EXPECT_TRUE(SqliteStore::IsFileUnavailable(opened.status(), folder_ / "no/such/dir.db"));
}

TEST_F(SqliteTrouble, DamagedRecord_IsNamed) {
  Make();
  Sql("UPDATE record SET value = CAST('walue' AS BLOB)");
  const absl::Status opened = Opening();
  EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
  EXPECT_THAT(std::string(opened.message()), HasSubstr("record \"gang/d/g\": its checksum is wrong; restore a backup"));
  const StoreReport report = ExpectOk(ReadStore(path_));
  EXPECT_THAT(report.problems, testing::ElementsAre("record \"gang/d/g\": its checksum is wrong"));
  EXPECT_TRUE(report.records.empty());
}

// A flipped bit anywhere in the file is detected, or was in unused bytes.
TEST_F(SqliteTrouble, FlippedBit_IsNeverReadAsRecord) {
  FaultyDisk disk("bits");
  std::vector<std::string> before;
  {
    const OwnedStore owned(path_, "bits");
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(owned.Commit({{"gang", absl::StrCat("d/g-", i), "u", 1, std::string(300, 'v')}}).ok());
    }
    before = Lines(owned.store->TakeOver()->records);
  }
  int found = 0;
  const int64_t size = disk.SizeOf(path_);
  for (int64_t offset = 0; offset < size; offset += 37) {
    disk.Damage(path_, offset);
    const absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({path_, "bits"});
    const absl::StatusOr<Store::Contents> contents = store.ok() ? (*store)->TakeOver() : store.status();
    if (contents.ok()) {
      ASSERT_EQ(Lines(contents->records), before) << "offset " << offset;
    } else {
      ++found;
    }
    // A take-over writes: restore the bit only after a failed one; otherwise the written data counts.
    disk.Damage(path_, offset);
    if (contents.ok()) break;
  }
  EXPECT_GT(found, 0);
}

TEST_F(SqliteTrouble, FailingDisk_ResumesWhenDiskWorks) {
  const struct {
    int code;
    bool at_sync;
    int tries;
    StoreErrorKind kind;
    const char* text;
  } cases[] = {
      {SQLITE_FULL, false, 3, StoreErrorKind::kFull, "no room on its disk; a musterd that has it open continues"},
      {SQLITE_READONLY, false, 1, StoreErrorKind::kTryAgain,
       "cannot be written; a musterd that has it open continues when it can be written"},
      {SQLITE_IOERR_WRITE, false, 3, StoreErrorKind::kTryAgain, ""},
      {SQLITE_IOERR_FSYNC, true, 1, StoreErrorKind::kTryAgain, ""},
  };
  for (const auto& [code, at_sync, tries, kind, text] : cases) {
    FaultyDisk disk("failing");
    const OwnedStore owned(folder_ / absl::StrCat(code), "failing");
    ASSERT_TRUE(owned.Put("x", "1").ok());
    at_sync ? disk.FailSyncs(code) : disk.FailWrites(code);
    for (int i = 0; i < tries; ++i) {
      const absl::Status failed = owned.Commit({{"a", "x", "", 1, "2"}, {"a", "y", "", 1, "2"}});
      EXPECT_EQ(ClassifyStoreError(failed), kind) << failed;
      EXPECT_THAT(std::string(failed.message()), HasSubstr(text));
    }
    disk.FailWrites(SQLITE_OK);
    disk.FailSyncs(SQLITE_OK);
    ASSERT_TRUE(owned.Commit({{"a", "x", "", 1, "2"}, {"a", "y", "", 1, "2"}}).ok()) << code;
    EXPECT_EQ(Lines(owned.store->TakeOver()->records), (std::vector<std::string>{"a/x=2", "a/y=2"})) << code;
  }
}

TEST_F(SqliteTrouble, RemovedFile_IsDetected) {
  const OwnedStore owned(path_);
  ASSERT_TRUE(owned.Put("x", "1").ok());
  ASSERT_EQ(rename(path_.c_str(), (folder_ / "away").c_str()), 0);
  const absl::Status missed = owned.Put("x", "2");
  EXPECT_EQ(ClassifyStoreError(missed), StoreErrorKind::kTryAgain);
  EXPECT_THAT(std::string(missed.message()), HasSubstr("removed or replaced while Muster has it open; put it back"));
  ASSERT_EQ(rename((folder_ / "away").c_str(), path_.c_str()), 0);
  EXPECT_TRUE(owned.Put("x", "2").ok());
}

// Its log is removed, as before a restore, but while musterd runs: no acknowledged record is lost.
TEST_F(SqliteTrouble, RemovedLog_IsWrittenAgain) {
  const OwnedStore owned(path_);
  ASSERT_TRUE(owned.Put("x", "1").ok());
  ASSERT_TRUE(owned.Put("y", "2").ok());
  ASSERT_EQ(unlink((path_ + "-wal").c_str()), 0);
  ASSERT_TRUE(owned.Put("z", "3").ok());
  // The files after a power loss, by name.
  for (const char* suffix : {"", "-wal"}) std::filesystem::copy_file(path_ + suffix, (folder_ / "left") + suffix);
  EXPECT_EQ(Lines(ReadStore(folder_ / "left")->records), (std::vector<std::string>{"a/x=1", "a/y=2", "a/z=3"}));
}

TEST_F(SqliteTrouble, EmptiedFile_IsDetected) {
  const OwnedStore owned(path_);
  ASSERT_TRUE(owned.Put("x", "1").ok());
  ASSERT_EQ(truncate(path_.c_str(), 0), 0);
  const absl::Status missed = owned.Put("y", "2");
  EXPECT_EQ(ClassifyStoreError(missed), StoreErrorKind::kTryAgain);
  EXPECT_THAT(std::string(missed.message()), HasSubstr("emptied while Muster has it open"));
}

// A backup that replaces the file while the connection is closed after an error is rejected: later promises would be
// lost, in a valid epoch.
TEST_F(SqliteTrouble, ReplacedFile_IsDetected) {
  FaultyDisk disk("closed");
  const OwnedStore owned(path_, "closed");
  ASSERT_TRUE(owned.Put("x", "1").ok());
  disk.FailWrites(SQLITE_IOERR_WRITE);
  EXPECT_EQ(ClassifyStoreError(owned.Put("x", "2")), StoreErrorKind::kTryAgain);
  disk.FailWrites(SQLITE_OK);
  ASSERT_EQ(rename(path_.c_str(), (folder_ / "away").c_str()), 0);
  std::ofstream(path_) << "";
  const absl::Status replaced = owned.Put("x", "2");
  EXPECT_THAT(std::string(replaced.message()), HasSubstr("removed or replaced while Muster has it open"));
  ASSERT_EQ(rename((folder_ / "away").c_str(), path_.c_str()), 0);
  EXPECT_TRUE(owned.Put("x", "2").ok());
}

// As `cp` does it while musterd runs: nothing is promised on top of the copy and nothing written into it, whether there
// is a commit before the stop or not.
TEST_F(SqliteTrouble, BackupCopiedOver_IsDetected) {
  for (const bool commits : {true, false}) {
    const std::string path = folder_ / absl::StrCat("over-", commits);
    OwnedStore owned(path);
    ASSERT_TRUE(owned.Put("x", "1").ok());
    ASSERT_TRUE(BackUpStore(path, path + ".copy").ok());
    ASSERT_TRUE(owned.Put("x", "2").ok());
    std::filesystem::copy_file(path + ".copy", path, std::filesystem::copy_options::overwrite_existing);
    if (commits) {
      const absl::Status replaced = owned.Put("x", "3");
      EXPECT_EQ(ClassifyStoreError(replaced), StoreErrorKind::kTryAgain);
      EXPECT_THAT(std::string(replaced.message()), HasSubstr("written by another program while Muster has it open"));
      std::ofstream(path + "-wal") << "";  // as a reader of the new file leaves it
      EXPECT_FALSE(owned.Put("x", "3").ok());
      EXPECT_GT(std::filesystem::file_size(path + "-wal.left"), 0U);
    }
    owned.store.reset();
    EXPECT_EQ(Lines(OpenSqlite(path)->TakeOver()->records), std::vector<std::string>{"a/x=1"})
        << "as the backup had it";
    EXPECT_TRUE(std::filesystem::exists(path + "-wal.left"));
  }
}

TEST_F(SqliteTrouble, TouchedFile_IsAccepted) {
  const OwnedStore owned(path_);
  ASSERT_TRUE(owned.Put("x", "1").ok());
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_TRUE(owned.Put("x", "2").ok());
}

// A reader keeps the log from being emptied; what was written to it meanwhile is our own.
TEST_F(SqliteTrouble, RemovedLogWithReader_LosesNothing) {
  OwnedStore owned(path_);
  ASSERT_TRUE(owned.Put("x", "1").ok());
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &reader, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM record", nullptr, nullptr, nullptr), SQLITE_OK);
  ASSERT_TRUE(owned.Put("y", "2").ok());
  ASSERT_EQ(unlink((path_ + "-wal").c_str()), 0);
  const absl::Status kept_waiting = owned.Put("z", "3");
  EXPECT_EQ(kept_waiting.message().find("written by another program"), std::string::npos) << kept_waiting;
  sqlite3_close(reader);
  ASSERT_TRUE(owned.Put("z", "3").ok());
  owned.store.reset();
  EXPECT_EQ(Lines(OpenSqlite(path_)->TakeOver()->records), (std::vector<std::string>{"a/x=1", "a/y=2", "a/z=3"}));
}

// Commits are in the log first, and stay there for long if few are made.
TEST_F(SqliteTrouble, DamagedLog_IsNotReadAsShorter) {
  const std::string left = folder_ / "left";
  {
    const OwnedStore owned(path_);
    for (int i = 0; i < 40; ++i) {
      const std::string value = absl::StrCat(i, std::string(100, 'v'));
      const Record gang{"gang", absl::StrCat("d/g-", i), "u", 1, value};
      ASSERT_TRUE(owned.Commit({gang, {"pod", absl::StrCat("p-", i), "u", 1, value}}).ok());
    }
    for (const char* suffix : {"", "-wal"}) std::filesystem::copy_file(path_ + suffix, left + suffix);
  }
  ASSERT_EQ(ReadStore(left)->records.size(), 80U);
  ASSERT_TRUE(ReadStore(left)->problems.empty());
  const auto size = static_cast<int64_t>(std::filesystem::file_size(left + "-wal"));
  int found = 0;
  int tried = 0;
  for (int64_t offset = 32 + 4; offset < size; offset += 4099, ++tried) {
    std::fstream log(left + "-wal", std::ios::in | std::ios::out | std::ios::binary);
    const auto turn = [&] {
      log.seekg(offset);
      const auto byte = static_cast<char>(log.get() ^ 4);
      log.seekp(offset);
      log.put(byte).flush();
    };
    turn();
    const absl::StatusOr<StoreReport> report = ReadStore(left);
    if (report.ok() && report->records.size() == 80) {
      EXPECT_TRUE(report->problems.empty()) << "offset " << offset;
    } else if (!report.ok() || !report->problems.empty()) {
      ++found;
      EXPECT_THAT(report.ok() ? report->problems.front() : std::string(report.status().message()),
                  HasSubstr("of its log, "));
      const absl::StatusOr<std::unique_ptr<SqliteStore>> opened = SqliteStore::Open({left, ""});
      EXPECT_TRUE(absl::IsDataLoss(opened.status())) << opened.status();
      EXPECT_TRUE(absl::IsDataLoss(BackUpStore(left, folder_ / "copy")));
      EXPECT_TRUE(absl::IsDataLoss(UpgradeStore(left).status()));
    } else {
      // The last commit may have been torn during its write.
      EXPECT_GE(report->records.size(), 76U) << "offset " << offset;
    }
    turn();
  }
  EXPECT_GT(found, tried * 9 / 10);
  EXPECT_EQ(ReadStore(left)->records.size(), 80U) << "nothing of it was changed";
}

// The same page again and again, as in a small store.
TEST_F(SqliteTrouble, DamagedRewrittenPage_IsDetected) {
  const std::string left = folder_ / "left";
  {
    const OwnedStore owned(path_);
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(owned.Commit({{"gang", "d/g", "u", 1, absl::StrCat("value ", i)}}).ok());
    }
    for (const char* suffix : {"", "-wal"}) std::filesystem::copy_file(path_ + suffix, left + suffix);
  }
  const auto size = static_cast<int64_t>(std::filesystem::file_size(left + "-wal"));
  std::fstream log(left + "-wal", std::ios::in | std::ios::out | std::ios::binary);
  log.seekp(32 + (size - 32) / 4120 / 2 * 4120 + 2000);
  log.put('!').flush();
  EXPECT_FALSE(ExpectOk(ReadStore(left)).problems.empty());
}

TEST_F(SqliteTrouble, LinkToFile_IsTheSameStore) {
  const auto mine = OpenSqlite(path_);
  ASSERT_EQ(symlink(path_.c_str(), (folder_ / "link").c_str()), 0);
  const absl::StatusOr<std::unique_ptr<SqliteStore>> second = SqliteStore::Open({folder_ / "link", ""});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  // Also a link whose target does not exist yet.
  ASSERT_EQ(symlink((folder_ / "new.db").c_str(), (folder_ / "early").c_str()), 0);
  const auto first = OpenSqlite(folder_ / "early");
  EXPECT_TRUE(absl::IsAlreadyExists(SqliteStore::Open({folder_ / "new.db", ""}).status()));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "early.lock"));
}

TEST_F(SqliteTrouble, DamagedPage_RestIsReadable) {
  constexpr int kRecords = 400;
  {
    const OwnedStore owned(path_);
    for (int i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(owned.Commit({{"gang", absl::StrCat("d/g-", i), "u", 1, std::string(200, 'v')}}).ok());
    }
  }
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path_));
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(size / 4096 / 2 * 4096);
  file << std::string(4096, '\0') << std::flush;
  const StoreReport report = ExpectOk(ReadStore(path_));
  EXPECT_FALSE(report.problems.empty());
  EXPECT_GT(report.records.size(), kRecords / 2U);
  EXPECT_LT(report.records.size(), static_cast<size_t>(kRecords));
  EXPECT_TRUE(std::is_sorted(report.records.begin(), report.records.end(),
                             [](const Record& a, const Record& b) { return a.key < b.key; }));
  EXPECT_TRUE(absl::IsDataLoss(Opening()));
}

// --- files: backup, export, import ---

TEST_F(SqliteTrouble, FailedCreation_ChangesNothing) {
  const Record record{"a", "x", "u", 1, "1"};
  ASSERT_TRUE(std::filesystem::create_directory(folder_ / "link-to"));
  ASSERT_EQ(symlink((folder_ / "link-to").c_str(), path_.c_str()), 0);
  EXPECT_FALSE(MakeStore(path_, {record}).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  // Its file is gone, and a musterd uses the remaining files: they stay.
  const std::string lost = folder_ / "lost";
  const auto store = OpenSqlite(lost);
  ASSERT_TRUE(store->Commit(store->TakeOver()->epoch, {record}).ok());
  ASSERT_EQ(unlink(lost.c_str()), 0);
  EXPECT_TRUE(absl::IsAlreadyExists(MakeStore(lost, {record})));
  for (const char* suffix : {".lock", "-wal"}) EXPECT_TRUE(std::filesystem::exists(lost + suffix)) << suffix;
}

TEST_F(SqliteTrouble, BackupDuringWrites_IsConsistent) {
  const OwnedStore owned(path_);
  ASSERT_TRUE(owned.Put("x", "1").ok());
  const std::string copy = folder_ / "copy.db";
  ASSERT_TRUE(BackUpStore(path_, copy).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(BackUpStore(path_, copy))) << "nothing is overwritten";
  ASSERT_TRUE(owned.Put("x", "2").ok()) << "the backup did not take it over";
  const StoreReport report = ExpectOk(ReadStore(copy));
  EXPECT_EQ(Lines(report.records), std::vector<std::string>{"a/x=1"});
  EXPECT_EQ(report.epoch, owned.epoch);
  EXPECT_EQ(Lines(ReadStore(path_)->records), std::vector<std::string>{"a/x=2"}) << "and may be read meanwhile";
  const auto restored = OpenSqlite(copy);
  EXPECT_EQ(Lines(restored->TakeOver()->records), std::vector<std::string>{"a/x=1"});
}

TEST_F(SqliteTrouble, Records_BecomeStore) {
  const std::vector<Record> records = {{"a", "x", "u", 1, "1"}, {"b", "y", "", 2, std::string("\0z", 2)}};
  ASSERT_TRUE(MakeStore(path_, records).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(MakeStore(path_, records)));
  const StoreReport report = ExpectOk(ReadStore(path_));
  EXPECT_EQ(Lines(report.records), Lines(records));
  EXPECT_EQ(report.format, SqliteStore::kFormat);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".lock"));
  EXPECT_TRUE(absl::IsNotFound(ReadStore(folder_ / "nothing").status()));
}

}  // namespace
}  // namespace muster
