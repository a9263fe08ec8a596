// Wakes streams when there is news, on one thread of its own: many concurrent readers use one core and leave the others
// to decisions.
#ifndef MUSTER_SERVICE_RPC_STREAM_NOTIFIER_H_
#define MUSTER_SERVICE_RPC_STREAM_NOTIFIER_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "support/sync.h"

namespace muster {

// Thread-safe.
class StreamNotifier {
 public:
  // Must not block.
  using Wake = std::function<void()>;
  using Reader = std::shared_ptr<const Wake>;

  StreamNotifier();
  ~StreamNotifier();
  StreamNotifier(const StreamNotifier&) = delete;
  StreamNotifier& operator=(const StreamNotifier&) = delete;

  // `wake` is called at each news until Unsubscribe. One more call may already be in flight then.
  [[nodiscard]] Reader Subscribe(Wake wake);
  void Unsubscribe(const Reader& reader);
  [[nodiscard]] bool empty();
  // There is news: all streams are called soon, once for news close together.
  void NotifyAll();
  // Calls this stream soon.
  void NotifyOne(const Reader& reader);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  bool notify_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Reader> readers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Reader> ready_ ABSL_GUARDED_BY(mutex_);  // to be called although there is no news
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_RPC_STREAM_NOTIFIER_H_
