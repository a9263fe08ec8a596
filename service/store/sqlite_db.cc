#include "service/store/sqlite_db.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster {
namespace {

constexpr int kBusyMs = 2'000;

absl::Status StatusOf(const std::string& path, int code, absl::string_view said) {
  const auto with = [&](absl::string_view words) { return absl::StrCat("store ", path, ": ", words, " (", said, ")"); };
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          with("no room on its disk; a musterd that has it open continues when there is room"));
    case SQLITE_READONLY:
      return absl::UnavailableError(
          with("cannot be written; a musterd that has it open continues when it can be written"));
    case SQLITE_CORRUPT:
      return absl::DataLossError(with("damaged; restore a backup, or see `musterctl store verify`"));
    case SQLITE_NOTADB:
      return absl::DataLossError(with("not an SQLite file; use another file, or restore a backup"));
    case SQLITE_CANTOPEN:
      return absl::UnavailableError(with("cannot be opened; its directory must exist and be writable"));
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::PermissionDeniedError(with("cannot be opened"));
    default:
      return absl::UnavailableError(with("is not usable now"));
  }
}

}  // namespace

absl::StatusOr<SqliteDb> SqliteDb::Open(const std::string& path, Mode mode, const std::string& vfs) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const bool reads = mode == Mode::kRead || mode == Mode::kImmutable;
  flags |= reads ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  std::string name = path;
  if (mode == Mode::kImmutable) {
    flags |= SQLITE_OPEN_URI;
    name = absl::StrCat("file:", absl::StrReplaceAll(path, {{"%", "%25"}, {"?", "%3f"}, {"#", "%23"}}), "?immutable=1");
  }
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &opened, flags, vfs.empty() ? nullptr : vfs.c_str());
  SqliteDb db(path, opened);
  if (code != SQLITE_OK) {
    return StatusOf(path, code, opened == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(opened));
  }
  sqlite3_busy_timeout(opened, kBusyMs);
  return db;
}

absl::Status SqliteDb::Run(const char* sql) {
  const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::Status SqliteDb::Error(int code) const { return StatusOf(path_, code, sqlite3_errmsg(db_.get())); }

absl::StatusOr<int64_t> SqliteDb::Number(const char* sql) {
  absl::StatusOr<SqliteStatement> statement = SqliteStatement::Prepare(*this, sql);
  if (!statement.ok()) return statement.status();
  const absl::StatusOr<bool> row = statement->Step();
  if (!row.ok()) return row.status();
  return *row ? statement->Number(0) : 0;
}

absl::StatusOr<std::string> SqliteDb::Text(const char* sql) {
  absl::StatusOr<SqliteStatement> statement = SqliteStatement::Prepare(*this, sql);
  if (!statement.ok()) return statement.status();
  const absl::StatusOr<bool> row = statement->Step();
  if (!row.ok()) return row.status();
  return *row ? statement->Bytes(0) : "";
}

absl::StatusOr<SqliteStatement> SqliteStatement::Prepare(const SqliteDb& db, absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(db.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return db.Error(code);
  return SqliteStatement(&db, statement);
}

void SqliteStatement::Bind(int at, absl::string_view text) {
  sqlite3_bind_text64(statement_.get(), at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void SqliteStatement::BindBlob(int at, absl::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), at, bytes.data(), bytes.size(), SQLITE_STATIC);
}

absl::StatusOr<bool> SqliteStatement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  const absl::Status error = code == SQLITE_DONE ? absl::OkStatus() : db_->Error(code);
  sqlite3_reset(statement_.get());
  if (!error.ok()) return error;
  return false;
}

std::string SqliteStatement::Bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<size_t>(size));
}

}  // namespace muster
