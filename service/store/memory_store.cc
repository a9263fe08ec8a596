#include "service/store/store.h"

namespace muster {

absl::Status MemoryStore::Commit(const std::vector<Record>& records) {
  MutexLock lock(&mutex_);
  for (const Record& record : records) {
    if (record.value.empty()) {
      records_.erase(RecordName(record));
    } else {
      records_[RecordName(record)] = record;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Record>> MemoryStore::Load() {
  MutexLock lock(&mutex_);
  std::vector<Record> out;
  for (const auto& [name, record] : records_) out.push_back(record);
  return out;
}

}  // namespace muster
