// SQLite's write-ahead log, read beside SQLite, for what SQLite does not say: it takes the first frame that it cannot
// read for the end of the log, so that one damaged byte would take away every commit behind it without a word.
#ifndef MUSTER_SERVICE_STORE_SQLITE_LOG_H_
#define MUSTER_SERVICE_STORE_SQLITE_LOG_H_

#include <string>

namespace muster {

// What is damaged in the log of the database at `path`, in words; empty: nothing, or nothing that can be told from a
// commit that was being written when the power went. `vfs`: empty for the operating system's. To be asked before SQLite
// opens the database; while somebody writes to it, it may be mistaken once, but not twice in the same words.
[[nodiscard]] std::string LogDamage(const std::string& path, const std::string& vfs);

// Makes durable what stands in the log, if there is one: a commit of which the process was killed, or the sync failed,
// is read as one that was synced, and must be before another is written behind it. False: it cannot be.
[[nodiscard]] bool SyncLog(const std::string& path, const std::string& vfs);

}  // namespace muster

#endif  // MUSTER_SERVICE_STORE_SQLITE_LOG_H_
