// Test fixture: the folder of a test's stores, and their contents.
#ifndef MUSTER_TESTS_SERVICE_STORE_STORE_FIXTURE_H_
#define MUSTER_TESTS_SERVICE_STORE_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/store/sqlite_store.h"

namespace muster {

class Folder {
 public:
  Folder() {
    path_ = "/tmp/muster-store-XXXXXX";
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, error);
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

// "kind/key=value", in the order of the store.
inline std::vector<std::string> Lines(const std::vector<Record>& records) {
  std::vector<std::string> lines;
  for (const Record& record : records) lines.push_back(absl::StrCat(RecordName(record), "=", record.value));
  return lines;
}

inline std::unique_ptr<SqliteStore> OpenSqlite(const std::string& path, const std::string& vfs = "") {
  absl::StatusOr<std::unique_ptr<SqliteStore>> store = SqliteStore::Open({path, vfs});
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SERVICE_STORE_STORE_FIXTURE_H_
