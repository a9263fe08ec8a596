// What is kept over a restart, as the store sees it (SPEC S-2): keys, formats, and what was read back and not yet
// claimed.
#ifndef MUSTER_STATE_RECORDS_RECORDS_H_
#define MUSTER_STATE_RECORDS_RECORDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/gangs/types.h"
#include "state/messages/step.h"

namespace muster {

// --- writing ---
// Returns whether the store holds a record from now on: a gang of which everything is at its default needs none.
bool WriteGangRecord(const Gang& gang, Step* step);
void DeleteGangRecord(absl::string_view gang, Step* step);
void WriteCommitRecord(const Pod& pod, const std::string& node, Step* step);
void DeleteCommitRecord(absl::string_view uid, Step* step);

// What an earlier process wrote, until its things appear. Not thread-safe.
class Restored {
 public:
  // InvalidArgument names a record that cannot be read.
  [[nodiscard]] absl::Status Load(const std::vector<Record>& records);
  // What was kept of the gang, once.
  [[nodiscard]] std::optional<Kept> ClaimGang(const std::string& key);
  // A binding that was decided and of which no outcome is recorded.
  struct Commit {
    std::string uid;
    std::string gang;  // empty: of a pod in no gang
  };
  [[nodiscard]] const std::vector<Commit>& commits() const { return commits_; }
  // Everything was announced: what nobody claimed belongs to nobody.
  void ForgetRest(Step* step);

 private:
  absl::btree_map<std::string, Kept> gangs_;
  std::vector<Commit> commits_;
};

}  // namespace muster

#endif  // MUSTER_STATE_RECORDS_RECORDS_H_
