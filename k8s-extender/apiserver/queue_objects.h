// Builds one queue tree from the Queue objects at the API server (SPEC Q-1). The tree is announced as a whole when all
// objects are valid; otherwise the last valid tree stays in force. Condition Accepted of each object gives its problem.
#ifndef MUSTER_K8S_EXTENDER_APISERVER_QUEUE_OBJECTS_H_
#define MUSTER_K8S_EXTENDER_APISERVER_QUEUE_OBJECTS_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "k8s-extender/apiserver/client.h"
#include "k8s-extender/apiserver/informer.h"
#include "state/api/port.h"
#include "state/model/queue.h"
#include "support/sync.h"

namespace muster {

// Condition Accepted of a Queue object.
struct QueueCondition {
  bool accepted = false;
  std::string reason;
  std::string message;
  int64_t generation = 0;
  friend bool operator==(const QueueCondition&, const QueueCondition&) = default;
};

// Thread-safe.
class QueueObjects {
 public:
  // `rules`: the operator's settings besides the queues.
  QueueObjects(KubeClient* writer, DecisionPort* port, QueueRules rules);
  ~QueueObjects();
  // For an informer of queues; `synced` is called when the first tree was validated.
  [[nodiscard]] Informer::Handlers Handlers(std::function<void()> synced);
  void Stop();
  // The number of objects that are invalid, or that wait for an invalid one.
  [[nodiscard]] int32_t not_accepted() const;

 private:
  using Condition = QueueCondition;
  struct Object {
    std::string created;  // as the API server writes it: sorts by time
    int64_t generation = 0;
    absl::StatusOr<QueueSpec> spec;
    Condition has;      // as stored at the API server
    std::string since;  // time of its last transition
    Condition wanted;
  };
  [[nodiscard]] static Object Read(const Json& object);
  void Upsert(const std::string& name, Object object);
  void Remove(const std::string& name);
  void ValidateTree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  // Returns whether the API server has stored the condition, or the object is gone.
  [[nodiscard]] bool Write(const std::string& name, const Object& object);

  KubeClient* const writer_;
  DecisionPort* const port_;
  const QueueRules rules_;
  mutable Mutex mutex_;
  CondVar changed_;
  absl::btree_map<std::string, Object> objects_ ABSL_GUARDED_BY(mutex_);  // by name
  absl::btree_map<std::string, QueueSpec> in_force_ ABSL_GUARDED_BY(mutex_);
  bool listed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_QUEUE_OBJECTS_H_
