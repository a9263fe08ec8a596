#include "service/store/store.h"

namespace muster {

StoreErrorKind ClassifyStoreError(const absl::Status& status) {
  if (status.ok()) return StoreErrorKind::kNone;
  if (absl::IsAborted(status)) return StoreErrorKind::kFenced;
  return absl::IsResourceExhausted(status) ? StoreErrorKind::kFull : StoreErrorKind::kTryAgain;
}

absl::Status MemoryStore::Commit(int64_t epoch, const std::vector<Record>& records) {
  MutexLock lock(&mutex_);
  if (epoch != epoch_) return FencedError();
  for (const Record& record : records) {
    if (record.value.empty()) {
      records_.erase({record.kind, record.key});
    } else {
      records_[{record.kind, record.key}] = record;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Store::Contents> MemoryStore::TakeOver() {
  MutexLock lock(&mutex_);
  Contents out;
  out.epoch = ++epoch_;
  for (const auto& [name, record] : records_) out.records.push_back(record);
  return out;
}

}  // namespace muster
