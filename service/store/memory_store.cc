#include "service/store/store.h"

namespace muster {

absl::Status MemoryStore::Commit(const std::vector<Record>& records) {
  MutexLock lock(&mutex_);
  for (const Record& record : records) {
    if (record.value.empty()) {
      records_.erase(record.key);
    } else {
      records_[record.key] = record.value;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Record>> MemoryStore::Load() {
  MutexLock lock(&mutex_);
  std::vector<Record> out;
  for (const auto& [key, value] : records_) out.push_back({key, value});
  return out;
}

}  // namespace muster
