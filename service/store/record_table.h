// The table of records in a store's file, and the marks of a Muster file. Private to the store library.
#ifndef MUSTER_SERVICE_STORE_RECORD_TABLE_H_
#define MUSTER_SERVICE_STORE_RECORD_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "service/store/sqlite_db.h"
#include "service/store/store.h"

namespace muster {

// Returns the file's format; 0: the file is empty. Error: not a store that this version can read.
[[nodiscard]] absl::StatusOr<int> ReadFormat(SqliteDb* db);

// Creates the schema of the newest format.
[[nodiscard]] absl::Status MakeSchema(SqliteDb* db);

// `put` and `remove`: the prepared statements kPut and kRemove.
[[nodiscard]] absl::Status Upsert(const std::vector<Record>& records, SqliteStatement* put, SqliteStatement* remove);

// Reads every reachable record with a correct checksum. `problems` lists the damaged records and pages.
[[nodiscard]] absl::Status ReadAll(SqliteDb* db, std::vector<Record>* records, std::vector<std::string>* problems);

inline constexpr char kPut[] = "INSERT OR REPLACE INTO record VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
inline constexpr char kRemove[] = "DELETE FROM record WHERE kind = ?1 AND key = ?2";

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_RECORD_TABLE_H_
