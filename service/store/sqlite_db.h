// SQLite's handles as values that close themselves, and its errors as absl::Status. Private to the store library.
#ifndef MUSTER_SERVICE_STORE_SQLITE_DB_H_
#define MUSTER_SERVICE_STORE_SQLITE_DB_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// A connection. Not thread-safe.
class SqliteDb {
 public:
  // kImmutable: for reading a file that no process writes, in a directory where no file can be made.
  enum class Mode : uint8_t { kRead, kImmutable, kWrite, kCreate };

  // `vfs`: empty for the operating system's.
  [[nodiscard]] static absl::StatusOr<SqliteDb> Open(const std::string& path, Mode mode, const std::string& vfs);

  // Runs statements that return no rows.
  [[nodiscard]] absl::Status Run(const char* sql);
  // SQLite's last error as a status that names the file and the remedy.
  [[nodiscard]] absl::Status Error(int code) const;
  // The first column of the first row, as a number; 0 if there is no row.
  [[nodiscard]] absl::StatusOr<int64_t> Number(const char* sql);
  [[nodiscard]] absl::StatusOr<std::string> Text(const char* sql);

  [[nodiscard]] sqlite3* get() const { return db_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Closer {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  SqliteDb(std::string path, sqlite3* db) : path_(std::move(path)), db_(db) {}

  std::string path_;
  std::unique_ptr<sqlite3, Closer> db_;
};

// A prepared statement. Bound values are read when Step is called and must live until then.
class SqliteStatement {
 public:
  [[nodiscard]] static absl::StatusOr<SqliteStatement> Prepare(const SqliteDb& db, absl::string_view sql);

  // Parameters are numbered from 1.
  void Bind(int at, int64_t value) { sqlite3_bind_int64(statement_.get(), at, value); }
  void Bind(int at, absl::string_view text);
  void BindBlob(int at, absl::string_view bytes);

  // Returns true if there is a row. Resets itself after the last row.
  [[nodiscard]] absl::StatusOr<bool> Step();
  // Call it if the remaining rows are not read.
  void Reset() { sqlite3_reset(statement_.get()); }

  // Columns are numbered from 0.
  [[nodiscard]] int64_t Number(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  [[nodiscard]] std::string Bytes(int column) const;

 private:
  struct Closer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  SqliteStatement(const SqliteDb* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}

  const SqliteDb* db_;
  std::unique_ptr<sqlite3_stmt, Closer> statement_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_SQLITE_DB_H_
