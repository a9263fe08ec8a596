#include "k8s-extender/apiserver/page_budget.h"

#include <utility>

namespace muster {

PageBudget::Share::Share(Share&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

void PageBudget::Share::ReduceTo(size_t bytes) {
  if (bytes >= bytes_) return;
  budget_->Release(bytes_ - bytes);
  bytes_ = bytes;
}

absl::StatusOr<PageBudget::Share> PageBudget::Acquire(size_t bytes) {
  MutexLock lock(&mutex_);
  while (!closed_ && used_ > 0 && used_ + bytes > bytes_) changed_.Wait(&mutex_);
  if (closed_) return absl::CancelledError("stopping");
  used_ += bytes;
  return Share(this, bytes);
}

void PageBudget::Release(size_t bytes) {
  MutexLock lock(&mutex_);
  used_ -= bytes;
  changed_.SignalAll();
}

void PageBudget::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  changed_.SignalAll();
}

}  // namespace muster
