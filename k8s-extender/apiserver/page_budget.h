// Bounds the bytes of list pages that are requested and read at a time, over all informers of a client (SPEC S-6).
#ifndef MUSTER_K8S_EXTENDER_APISERVER_PAGE_BUDGET_H_
#define MUSTER_K8S_EXTENDER_APISERVER_PAGE_BUDGET_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "support/sync.h"

namespace muster {

// Thread-safe.
class PageBudget {
 public:
  explicit PageBudget(size_t bytes) : bytes_(bytes) {}

  // The part of the budget that one page has. Its end returns it. REQUIRES: it ends before the budget.
  class Share {
   public:
    Share(Share&& other) noexcept;
    Share& operator=(Share&&) = delete;
    ~Share() { ReduceTo(0); }
    // The page has fewer bytes than it was expected to have at most.
    void ReduceTo(size_t bytes);

   private:
    friend class PageBudget;
    Share(PageBudget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}
    PageBudget* budget_;  // nullptr: moved away
    size_t bytes_;
  };

  // Waits until `bytes` are free. A share that is larger than the budget waits until it is the only one. Cancelled:
  // after Close.
  [[nodiscard]] absl::StatusOr<Share> Acquire(size_t bytes);
  // Ends every wait.
  void Close();

 private:
  void Release(size_t bytes);

  const size_t bytes_;
  Mutex mutex_;
  CondVar changed_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_PAGE_BUDGET_H_
