// Keeps a PodDisruptionBudget for each running gang, so that evictions which would leave it below its minimum are
// refused, and kube-scheduler's preemption takes other pods first (docs/how-to/protect-running-gangs.md).
#ifndef MUSTER_K8S_EXTENDER_ACTUATOR_DISRUPTION_BUDGETS_H_
#define MUSTER_K8S_EXTENDER_ACTUATOR_DISRUPTION_BUDGETS_H_

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/time/time.h"
#include "k8s-extender/apiserver/client.h"
#include "k8s-extender/apiserver/informer.h"
#include "state/views/view.h"
#include "support/json.h"
#include "support/sync.h"

namespace muster {

struct DisruptionBudgetOptions {
  absl::Duration min_pause = absl::Seconds(1);  // before a failed write is tried again; it doubles up to max_pause
  absl::Duration max_pause = absl::Minutes(1);
  // A budget of an earlier process is removed if no gang has needed it for this long after Start.
  absl::Duration grace = absl::Seconds(10);
};

// Thread-safe.
class DisruptionBudgets {
 public:
  DisruptionBudgets(KubeClient* client, DisruptionBudgetOptions options);
  ~DisruptionBudgets();

  // Reads the budgets at the API server and writes what differs from now on. REQUIRES: the cluster's gangs have been
  // read, or are about to be.
  void Start();
  void Stop();
  // The latest view of a gang replaces earlier ones.
  void Update(const GangView& gang);
  // The gang "namespace/name" was removed.
  void Remove(const std::string& gang);

  // Of the budgets.
  [[nodiscard]] const Informer& informer() const { return informer_; }

  // The number of pods that must stay; 0: the gang has no budget. A gang has one from its start to its end, if it needs
  // at least two pods and is not being evicted to start again as a whole (G-13). `before`: the number of the budget
  // that it has.
  [[nodiscard]] static int32_t Required(const GangView& gang, int32_t before);

 private:
  struct Budget {
    std::string label;    // of the gang's pods (GangLabel); empty: no gang of this process has needed it
    int32_t wanted = 0;   // minAvailable; 0: no budget
    int32_t written = 0;  // at the API server
    int64_t events = 0;   // that set `written`: what they say is newer than a write that began before them
    int attempts = 0;     // failed ones in a row
  };
  [[nodiscard]] Informer::Handlers Handlers();
  [[nodiscard]] Informer::Announcement Read(const Json& object);
  // Muster's budget `key` has this minAvailable at the API server.
  void OnBudget(const std::string& key, int32_t minimum) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnGone(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run();
  // Waits until a budget is to be written, and returns its key. Empty: stopping.
  [[nodiscard]] std::string Next() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns why it failed; empty: the API server has what is wanted.
  [[nodiscard]] std::string Write(const std::string& key, const Budget& budget);
  // Writes the budget at this time, if it differs from what the API server has.
  void WriteAt(absl::Time at, const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  KubeClient* const client_;
  const DisruptionBudgetOptions options_;
  Mutex mutex_;
  CondVar changed_;
  absl::btree_map<std::string, Budget> budgets_ ABSL_GUARDED_BY(mutex_);  // by "namespace/name" of the object
  absl::btree_set<std::pair<absl::Time, std::string>> due_ ABSL_GUARDED_BY(mutex_);  // on the steady clock
  bool listed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Informer informer_;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_ACTUATOR_DISRUPTION_BUDGETS_H_
