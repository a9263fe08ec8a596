// The stores of a test, and their contents.
#ifndef MUSTER_TESTS_SERVICE_STORE_STORE_FIXTURE_H_
#define MUSTER_TESTS_SERVICE_STORE_STORE_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/store/sqlite_store.h"
#include "tests/support/expect_ok.h"
#include "tests/support/test_folder.h"

namespace muster {

// "kind/key=value", in the order of the store.
inline std::vector<std::string> Lines(const std::vector<Record>& records) {
  std::vector<std::string> lines;
  for (const Record& record : records) lines.push_back(absl::StrCat(RecordName(record), "=", record.value));
  return lines;
}

inline std::unique_ptr<SqliteStore> OpenSqlite(const std::string& path, const std::string& vfs = "") {
  return ExpectOk(SqliteStore::Open({path, vfs}));
}

}  // namespace muster

#endif  // MUSTER_TESTS_SERVICE_STORE_STORE_FIXTURE_H_
