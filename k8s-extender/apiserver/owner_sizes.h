// Gangs by owner whose owner cannot be read (SPEC D-7): as large as the pods that came, once no other came for a while.
//
// A guess, and said to be one on the gang: a controller that is slower than that starts its job in part.
#ifndef MUSTER_K8S_EXTENDER_APISERVER_OWNER_SIZES_H_
#define MUSTER_K8S_EXTENDER_APISERVER_OWNER_SIZES_H_

#include <map>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "state/api/port.h"
#include "state/model/pod.h"
#include "support/sync.h"

namespace muster {

// Thread-safe.
class OwnerSizes {
 public:
  // No other pod for so long: those are all.
  static constexpr absl::Duration kQuiet = absl::Seconds(10);

  explicit OwnerSizes(DecisionPort* port, absl::Duration quiet = kQuiet);
  ~OwnerSizes();

  // A pod of a gang by owner, as it is now. `kind`: the owner's.
  void See(const PodDescription& pod, const std::string& kind);
  // One that is gone; no harm if it was never seen.
  void Forget(const std::string& uid);
  // The pods there were have all been seen: gangs that run in part have their size at once, as before a restart.
  void Synced();
  void Stop();

 private:
  struct Member {
    bool counts = false;  // it is not over
    bool bound = false;
  };
  struct Gang {
    std::string name_space;
    std::string name;
    std::string kind;
    int64_t created_ms = 0;  // of its oldest pod
    std::map<std::string, Member> members;
    int32_t told = -1;                        // the size that was announced; -1: none
    absl::Time due = absl::InfiniteFuture();  // when it has been quiet for long enough; steady clock
  };
  using Gangs = std::map<std::string, Gang>;  // by namespace/name

  void Run();
  void Await(Gang* gang) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(const std::string& uid, Gangs::iterator gang) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(Gang* gang) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  DecisionPort* const port_;
  const absl::Duration quiet_;
  Mutex mutex_;
  CondVar changed_;
  Gangs gangs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> gang_of_ ABSL_GUARDED_BY(mutex_);  // by the pod's UID
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();    // the first that is due
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_OWNER_SIZES_H_
