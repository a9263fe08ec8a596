// Checks SQLite's write-ahead log for damage that SQLite does not report. SQLite takes the first unreadable frame for
// the end of the log: one damaged byte would silently remove every later commit.
#ifndef MUSTER_SERVICE_STORE_SQLITE_LOG_H_
#define MUSTER_SERVICE_STORE_SQLITE_LOG_H_

#include <string>

namespace muster {

// Describes the damage in the log of the database at `path`; empty: none, or none that differs from a commit that was
// being written when the power failed. `vfs`: empty for the operating system's.
//
// REQUIRES: called before SQLite opens the database. While another process writes, a result may be wrong once, but not
// twice with the same text.
[[nodiscard]] std::string LogDamage(const std::string& path, const std::string& vfs);

// Makes the contents of the log durable, if there is one. Returns false on failure. A commit whose process was killed,
// or whose sync failed, is read like a synced one. It must be synced before another commit is written after it.
[[nodiscard]] bool SyncLog(const std::string& path, const std::string& vfs);

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_SQLITE_LOG_H_
