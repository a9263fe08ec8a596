// The informers that Muster needs, each announcing what it sees to the core (SPEC K-10, K-13).
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

  // Pods of such owners are gangs (D-7); those of a kind that cannot be read are as large as the pods that came before
  // none did for `quiet`. Before Start. REQUIRES: FindOwnerKind knows them.
  void GroupBy(std::vector<std::string> owner_kinds, absl::Duration quiet = OwnerSizes::kQuiet) {
    owner_kinds_ = std::move(owner_kinds);
    quiet_ = quiet;
  }
  // How often it is looked for what the server does not have yet, or does not let us read. Before Start.
  void LookAgainEvery(absl::Duration pause) { look_again_ = pause; }
  // Reads queues too. Before Start.
  void WithQueues(QueueObjects* queues) { queues_ = queues; }
  // Asks the server which PodGroup APIs it has, then starts informers for nodes, pods and those. When all have listed
  // once, each has announced FactsRead; what comes later is read from then on. The error says why the server could not
  // be asked.
  [[nodiscard]] absl::Status Start();
  void Stop();
  [[nodiscard]] bool synced() const;
  [[nodiscard]] std::vector<std::pair<std::string, InformerStats>> stats() const;

 private:
  // What the server need not have.
  struct Source {
    std::string name;                                   // as ExpectFacts has it
    std::function<absl::StatusOr<std::string>()> find;  // its path; empty: it is not there, or not to be read
    std::function<Informer::Handlers()> handlers;
  };
  [[nodiscard]] std::vector<Source> OptionalSources();
  void LookForMissing();
  [[nodiscard]] absl::StatusOr<Json> Discover(const std::string& path);
  [[nodiscard]] absl::StatusOr<std::string> Find(const char* resource, const char* group, const char* version);
  void OnSynced(const std::string& source);
  // What could not be read is the core's to count and to tell.
  void NoteUnreadable(FactKind kind, const Json& object, const absl::Status& status);
  [[nodiscard]] Informer::Handlers NodeHandlers();
  [[nodiscard]] Informer::Handlers PodHandlers();
  [[nodiscard]] Informer::Handlers NamespaceHandlers();
  // `source`: as ExpectFacts has it. `name_prefix` and the object's name are the gang's.
  [[nodiscard]] Informer::Handlers GangHandlers(GangDialect dialect, std::string source,
                                                std::function<absl::StatusOr<GangObject>(const Json&)> parse,
                                                const std::string& name_prefix);
  // Whether objects there may be read.
  [[nodiscard]] absl::StatusOr<bool> Allowed(const std::string& path);
  [[nodiscard]] absl::Status AddOwners(const std::function<void(const std::string&, Informer::Handlers)>& add,
                                       ExpectFacts* expected);

  KubeClient* const client_;
  const absl::Time made_ = SteadyNow();
  DecisionPort* const port_;
  QueueObjects* queues_ = nullptr;
  std::vector<std::string> owner_kinds_;
  absl::Duration quiet_;
  absl::Duration look_again_ = absl::Seconds(60);
  std::set<std::string> said_;  // paths of which was said that they may not be looked at; of whoever looks
  // Set by Start, before there are threads.
  std::set<std::string> unread_kinds_;
  std::unique_ptr<OwnerSizes> sizes_;  // nullptr: every kind is read
  std::vector<Source> missing_;        // of the thread that looks for them
  std::thread looker_;
  mutable Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Informer>> informers_ ABSL_GUARDED_BY(mutex_);
  size_t expected_ ABSL_GUARDED_BY(mutex_) = 0;  // informers that were there from the start
  size_t listed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_CLUSTER_FEED_H_
