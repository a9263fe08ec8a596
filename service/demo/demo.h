// The built-in cluster of `musterd --demo`: a few nodes in memory and a small scheduler that calls Muster as
// kube-scheduler does: HTTP filter, then HTTP bind, which Muster holds until the gang's quorum.
#ifndef MUSTER_SERVICE_DEMO_DEMO_H_
#define MUSTER_SERVICE_DEMO_DEMO_H_

#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "service/rpc/rpc_server.h"
#include "state/api/port.h"
#include "support/json.h"
#include "support/sync.h"

namespace muster {

class Engine;

// The ports of Muster's servers.
struct DemoPorts {
  int extender = 0;
  int bind = 0;
  int admin = 0;
};

// Takes the role of the API server and of kube-scheduler. Thread-safe.
class DemoCluster : public EffectSink {
 public:
  // `read` parses Kubernetes objects as Muster does.
  explicit DemoCluster(ManifestReader read) : read_(std::move(read)) {}
  ~DemoCluster() override;

  // Starts the scheduler, which calls the filter and bind addresses of the extender.
  void Start(DecisionPort* port, const DemoPorts& ports);
  void AddNode(const std::string& name, int gpus);
  // Adds a pod of gang `gang` (minimum `min`) that requests `gpus`.
  void AddPod(const std::string& name, const std::string& gang, int min, int gpus);
  void DeletePod(const std::string& name);
  void Carry(std::vector<Effect> effects) override;
  // Waits until every pod is bound or unschedulable.
  void WaitUntilIdle();
  [[nodiscard]] std::string NodeOf(const std::string& pod) const;
  // Returns the scheduler's log, one line per call, since the previous TakeLog.
  [[nodiscard]] std::vector<std::string> TakeLog();

 private:
  void RunScheduler();
  void RunEffects();
  void Schedule(const std::string& name);
  void BindPodOverHttp(const std::string& name, const std::string& node);
  void Announce(const Json& object);

  const ManifestReader read_;
  DecisionPort* port_ = nullptr;
  DemoPorts ports_;
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Json> pods_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> nodes_ ABSL_GUARDED_BY(mutex_);
  CondVar changed_;
  std::deque<std::string> queue_ ABSL_GUARDED_BY(mutex_);  // pods to schedule
  std::deque<Effect> effects_ ABSL_GUARDED_BY(mutex_);     // to carry out
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
  std::thread scheduler_;
  std::thread carrier_;
  std::vector<std::thread> binds_ ABSL_GUARDED_BY(mutex_);
};

// Runs the demo scenario on the started parts and prints it.
void RunDemo(Engine* engine, const DemoPorts& ports, DemoCluster* cluster);

}  // namespace muster

#endif  // MUSTER_SERVICE_DEMO_DEMO_H_
