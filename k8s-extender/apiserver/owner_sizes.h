// Sizes of gangs whose owner cannot be read (SPEC D-7): the number of their pods, once no other arrived for a while.
//
// This is an estimate, and a warning on the gang says so: with a slower controller the job starts in part.
#ifndef MUSTER_K8S_EXTENDER_APISERVER_OWNER_SIZES_H_
#define MUSTER_K8S_EXTENDER_APISERVER_OWNER_SIZES_H_

#include <map>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "state/api/port.h"
#include "state/model/facts.h"
#include "support/sync.h"

namespace muster {

// Thread-safe.
class OwnerSizes {
 public:
  // A gang is complete when no other pod arrives for this time.
  static constexpr absl::Duration kQuiet = absl::Seconds(10);

  explicit OwnerSizes(DecisionPort* port, absl::Duration quiet = kQuiet);
  ~OwnerSizes();

  // Adds or updates a pod of a gang by owner. `kind`: the owner's.
  void AddPod(const PodDescription& pod, const std::string& kind);
  // Removes a pod; no effect if it is unknown.
  void RemovePod(const std::string& uid);
  // All existing pods have been seen: gangs that already run in part get their size at once, as before a restart.
  void OnSynced();
  void Stop();

 private:
  struct Member {
    bool counts = false;  // it has not ended
    bool bound = false;
  };
  struct Gang {
    std::string name_space;
    std::string name;
    std::string kind;
    int64_t created_ms = 0;  // of its oldest pod
    std::map<std::string, Member> members;
    int32_t announced_size = -1;              // -1: none
    absl::Time due = absl::InfiniteFuture();  // end of the quiet time; steady clock
  };
  using Gangs = std::map<std::string, Gang>;  // by namespace/name

  void Run();
  void Await(Gang* gang) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFromGang(const std::string& uid, Gangs::iterator gang) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnnounceSize(Gang* gang) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  DecisionPort* const port_;
  const absl::Duration quiet_;
  Mutex mutex_;
  CondVar changed_;
  Gangs gangs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> gang_of_ ABSL_GUARDED_BY(mutex_);  // by the pod's UID
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();    // the earliest due time
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_OWNER_SIZES_H_
