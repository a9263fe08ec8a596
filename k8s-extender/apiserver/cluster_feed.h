// The informers that Muster needs; each announces its objects to the core (SPEC K-10, K-13).
#ifndef MUSTER_K8S_EXTENDER_APISERVER_CLUSTER_FEED_H_
#define MUSTER_K8S_EXTENDER_APISERVER_CLUSTER_FEED_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "k8s-extender/apiserver/informer.h"
#include "k8s-extender/apiserver/owner_sizes.h"
#include "k8s-extender/apiserver/queue_objects.h"
#include "state/api/port.h"
#include "support/sync.h"

namespace muster {

class ClusterFeed {
 public:
  ClusterFeed(KubeClient* client, DecisionPort* port);
  ~ClusterFeed();

  // Pods of owners of these kinds are gangs (D-7). If a kind cannot be read, the size of a gang is the number of its
  // pods once none arrived for `quiet`. REQUIRES: before Start; FindOwnerKind knows the kinds.
  void SetOwnerKinds(std::vector<std::string> owner_kinds, absl::Duration quiet = OwnerSizes::kQuiet) {
    owner_kinds_ = std::move(owner_kinds);
    quiet_ = quiet;
  }
  // Sets how often to look for sources that the server does not have yet or does not allow us to read. REQUIRES: before
  // Start.
  void SetDiscoveryInterval(absl::Duration pause) { discovery_interval_ = pause; }
  // Sets for how long lists and watches may fail before the facts count as out of date. REQUIRES: before Start.
  void SetFailureTolerance(absl::Duration tolerance) { failure_tolerance_ = tolerance; }
  // Reads queues too. REQUIRES: before Start.
  void WithQueues(QueueObjects* queues) { queues_ = queues; }
  // Asks the server which PodGroup APIs it has, then starts informers for nodes, pods and these. When all have listed
  // once, each has announced FactsRead; sources that appear later are read from then on. The error says why the server
  // could not be asked.
  [[nodiscard]] absl::Status Start();
  void Stop();
  [[nodiscard]] bool synced() const;
  // Why the facts are incomplete or out of date, with the path and the last error. Empty: they are neither. They are
  // out of date if all lists and watches of a path have failed for the tolerance. An optional API that was removed
  // (404) does not count, nor does one that appeared later and was never read.
  [[nodiscard]] std::string NotReadyReason() const;
  // A pod that kube-scheduler knows and that may be newer than what the watch of pods has sent (K-2). Returns whether
  // it is announced now.
  [[nodiscard]] bool OfferPod(const Json& pod);
  [[nodiscard]] std::vector<std::pair<std::string, InformerStats>> stats() const;

 private:
  // A source that the server may lack.
  struct Source {
    std::string name;                                   // as in ExpectFacts
    std::function<absl::StatusOr<std::string>()> find;  // returns its path; empty: absent, or reading is not permitted
    std::function<Informer::Handlers()> handlers;
  };
  [[nodiscard]] absl::Status StartInformers();
  [[nodiscard]] std::string UnreadReason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::vector<Source> OptionalSources();
  void DiscoverMissing();
  [[nodiscard]] absl::StatusOr<Json> Discover(const std::string& path);
  [[nodiscard]] absl::StatusOr<std::string> Find(const char* resource, const char* group, const char* version);
  void OnSynced(const std::string& source);
  [[nodiscard]] Informer::Announcement Announces(Command command);
  // Reports an unreadable object to the core, which counts and logs it.
  [[nodiscard]] Informer::Announcement Unreadable(FactKind kind, const Json& object, const absl::Status& status);
  [[nodiscard]] Informer::Handlers NodeHandlers();
  [[nodiscard]] Informer::Handlers PodHandlers();
  [[nodiscard]] Informer::Handlers NamespaceHandlers();
  // `source`: as in ExpectFacts. The gang's name is `name_prefix` and the object's name.
  [[nodiscard]] Informer::Handlers GangHandlers(GangDialect dialect, std::string source,
                                                std::function<absl::StatusOr<GangObject>(const Json&)> parse,
                                                const std::string& name_prefix);
  // Whether reading objects at `path` is permitted.
  [[nodiscard]] absl::StatusOr<bool> Allowed(const std::string& path);
  [[nodiscard]] absl::Status AddOwners(const std::function<void(const std::string&, Informer::Handlers)>& add,
                                       ExpectFacts* expected);

  KubeClient* const client_;
  const absl::Time created_at_ = SteadyNow();
  DecisionPort* const port_;
  QueueObjects* queues_ = nullptr;
  std::vector<std::string> owner_kinds_;
  absl::Duration quiet_;
  absl::Duration discovery_interval_ = absl::Seconds(60);
  absl::Duration failure_tolerance_ = absl::Seconds(60);
  std::set<std::string> logged_paths_;  // paths already logged as not permitted; used by the thread that looks
  // Set by Start, before any thread exists.
  std::set<std::string> unread_kinds_;
  std::unique_ptr<OwnerSizes> sizes_;  // nullptr: every kind is readable
  std::vector<Source> missing_;        // used by the thread that looks for them
  std::thread discovery_thread_;
  mutable Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string start_error_ ABSL_GUARDED_BY(mutex_);                           // of the last Start
  std::vector<std::unique_ptr<Informer>> informers_ ABSL_GUARDED_BY(mutex_);  // those from the start come first
  size_t expected_ ABSL_GUARDED_BY(mutex_) = 0;                               // informers that exist from the start
  size_t listed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_CLUSTER_FEED_H_
