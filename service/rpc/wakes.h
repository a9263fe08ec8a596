// The streams that are to hear that something is new, called by one thread of their own: many who read at once use one
// core, and leave the others to decisions.
#ifndef MUSTER_SERVICE_RPC_WAKES_H_
#define MUSTER_SERVICE_RPC_WAKES_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "support/sync.h"

namespace muster {

// Thread-safe.
class Wakes {
 public:
  // Must not block.
  using Wake = std::function<void()>;
  using Reader = std::shared_ptr<const Wake>;

  Wakes();
  ~Wakes();
  Wakes(const Wakes&) = delete;
  Wakes& operator=(const Wakes&) = delete;

  // `wake` is called whenever something is new, until Leave; once more may be on its way then.
  [[nodiscard]] Reader Join(Wake wake);
  void Leave(const Reader& reader);
  [[nodiscard]] bool empty();
  // Something is new: all are called soon, once for what comes close together.
  void News();
  // Has this one called soon.
  void Soon(const Reader& reader);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Reader> readers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Reader> ready_ ABSL_GUARDED_BY(mutex_);  // to be called though nothing is new
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_WAKES_H_
