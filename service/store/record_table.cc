#include "service/store/record_table.h"

#include <zlib.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr int64_t kApplication = 0x4d737472;  // "Mstr": PRAGMA application_id of a Muster store
constexpr char kSchema[] =
    "CREATE TABLE owner(id INTEGER PRIMARY KEY CHECK(id = 1), epoch INTEGER NOT NULL) STRICT;"
    "INSERT INTO owner VALUES(1, 0);"
    "CREATE TABLE record(kind TEXT NOT NULL, key TEXT NOT NULL, incarnation TEXT NOT NULL, format INTEGER NOT NULL, "
    "value BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY(kind, key)) STRICT, WITHOUT ROWID;";

// CRC-32 of a record, each field preceded by its length.
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

std::pair<absl::string_view, absl::string_view> Place(const Record& record) { return {record.kind, record.key}; }

// Reads records up to the end, the first unreadable one, or `until` (if not nullptr). Those with a correct checksum are
// added to `records`.
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

}  // namespace

absl::StatusOr<int> ReadFormat(SqliteDb* db) {
  const absl::StatusOr<int64_t> tables = db->Number("SELECT count(*) FROM sqlite_schema");
  if (!tables.ok()) return tables.status();
  if (*tables == 0) return 0;
  const absl::StatusOr<int64_t> application = db->Number("PRAGMA application_id");
  const absl::StatusOr<int64_t> format = db->Number("PRAGMA user_version");
  if (!application.ok() || !format.ok()) return application.ok() ? format.status() : application.status();
  if (*application != kApplication) {
    return absl::FailedPreconditionError(
        absl::StrCat("store ", db->path(), ": an SQLite file of another program; use another file"));
  }
  if (*format < 1 || *format > Store::kNewestFormat) {
    return absl::FailedPreconditionError(absl::StrCat("store ", db->path(), ": written in format ", *format,
                                                      ", this Muster reads up to ", Store::kNewestFormat,
                                                      "; run the version that wrote it, or a newer one"));
  }
  return static_cast<int>(*format);
}

absl::Status MakeSchema(SqliteDb* db) {
  const std::string sql = absl::StrCat("BEGIN IMMEDIATE;", kSchema, "PRAGMA application_id = ", kApplication,
                                       ";PRAGMA user_version = ", Store::kNewestFormat, ";COMMIT;");
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

absl::Status ReadAll(SqliteDb* db, std::vector<Record>* records, std::vector<std::string>* problems) {
  auto check = SqliteStatement::Prepare(*db, "PRAGMA quick_check(10)");
  absl::Status checked = check.status();
  while (checked.ok()) {
    const absl::StatusOr<bool> row = check->Step();
    checked = row.status();
    if (!row.ok() || !*row) break;
    if (std::string message = check->Bytes(0); message != "ok") problems->push_back(std::move(message));
  }
  if (!checked.ok() && !absl::IsDataLoss(checked)) return checked;
  if (!checked.ok()) problems->emplace_back(checked.message());
  absl::Status read = ReadRows(db, "kind, key", nullptr, records, problems);
  if (!absl::IsDataLoss(read)) return read;
  problems->emplace_back(read.message());
  // Records after an unreadable place may be readable from the other end.
  std::vector<Record> from_end;
  read = ReadRows(db, "kind DESC, key DESC", records->empty() ? nullptr : &records->back(), &from_end, problems);
  if (!read.ok() && !absl::IsDataLoss(read)) return read;
  std::move(from_end.rbegin(), from_end.rend(), std::back_inserter(*records));
  return absl::OkStatus();
}

}  // namespace muster
