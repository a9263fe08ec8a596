// The table of records in a store's file, and what a file of ours is known by. Of the store's library alone.
#ifndef MUSTER_SERVICE_STORE_RECORD_TABLE_H_
#define MUSTER_SERVICE_STORE_RECORD_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "service/store/sqlite_db.h"
#include "service/store/store.h"

namespace muster {

// The file's format; 0: it is empty. The error: it is no store that this version can read.
[[nodiscard]] absl::StatusOr<int> ReadFormat(SqliteDb* db);

// Of the newest format.
[[nodiscard]] absl::Status MakeSchema(SqliteDb* db);

// `put` and `remove`: the statements kPut and kRemove.
[[nodiscard]] absl::Status Upsert(const std::vector<Record>& records, SqliteStatement* put, SqliteStatement* remove);

// Every record that can be reached and of which the checksum holds; what is wrong with the others, and with the file's
// pages, in `problems`.
[[nodiscard]] absl::Status ReadAll(SqliteDb* db, std::vector<Record>* records, std::vector<std::string>* problems);

inline constexpr char kPut[] = "INSERT OR REPLACE INTO record VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
inline constexpr char kRemove[] = "DELETE FROM record WHERE kind = ?1 AND key = ?2";

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_RECORD_TABLE_H_
