// Follows one kind of object at the API server (SPEC K-10): paged list, read by several threads; watch with bookmarks,
// resume, relist on 410, detection of missed deletions, jittered back-off.
//
// Of each object it keeps "namespace/name" and its identity: about 250 bytes, at most 600. While it lists, PageBudget
// bounds the bytes of pages, and of an object only what its announcement needs outlives the page.
#ifndef MUSTER_K8S_EXTENDER_APISERVER_INFORMER_H_
#define MUSTER_K8S_EXTENDER_APISERVER_INFORMER_H_

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "k8s-extender/apiserver/client.h"
#include "k8s-extender/apiserver/page_requests.h"
#include "support/json.h"
#include "support/sync.h"

namespace muster {

struct InformerStats {
  bool synced = false;
  uint64_t objects = 0;
  uint64_t events = 0;
  uint64_t relists = 0;
  uint64_t errors = 0;
  absl::Time last_contact = absl::InfinitePast();     // the last list or event, steady clock
  absl::Status error;                                 // of the last list or watch; OK: the informer is not failing
  absl::Time failing_since = absl::InfiniteFuture();  // the first failure in a row, steady clock; infinite: none
};

class Informer {
 public:
  // Makes an object known. Called in the order of the server's answers, one at a time.
  using Announcement = absl::AnyInvocable<void()>;
  struct Handlers {
    // Reads an object and returns its announcement. Called on several threads at a time, in any order.
    std::function<Announcement(const Json& object)> read;
    // `identity` is the earlier result of Identity() for the object. Also called for objects whose deletion was missed.
    std::function<void(const std::string& identity, const std::string& key)> remove;
    std::function<std::string(const Json& object)> identity;  // e.g. the UID
    std::function<void()> synced;                             // after the first complete list
  };

  // `path`: for example "/api/v1/pods".
  Informer(std::string path, KubeClient* client, Handlers handlers);
  ~Informer();
  void Start();
  void Stop();
  // An object that another client has read and that may be newer than what the watch has sent. Handles it as if the
  // watch had sent it, unless the watch has: then it is known, or deleted. Returns whether it is known now.
  // Thread-safe.
  [[nodiscard]] bool Offer(const Json& object) ABSL_LOCKS_EXCLUDED(objects_mutex_);
  [[nodiscard]] InformerStats stats() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void Run();
  // An object that was read.
  struct Object {
    std::string key;  // "namespace/name"
    std::string identity;
    Announcement announce;
  };
  struct PageHead {
    std::string version;
    std::string token;  // of the next page; empty: there is none
  };
  struct Page {
    absl::Status status;
    std::vector<Object> objects;
    int limit = 0;  // the number of objects that was asked for
  };
  [[nodiscard]] absl::Status List();
  // Announces the objects of a page. `seen`: the keys of the list so far. `missing`: how many objects its pages lacked
  // of those that were asked for. Unavailable: the list does not end.
  [[nodiscard]] absl::Status TakePage(Page page, std::set<std::string>* seen, int64_t* missing);
  // Requests all pages and reads up to kPageReaders at a time; `on_page` is called for each, in order, until it fails.
  // The result is the version of the list.
  [[nodiscard]] absl::StatusOr<std::string> ReadPages(absl::FunctionRef<absl::Status(Page)> on_page);
  // On a thread of its own.
  [[nodiscard]] std::future<Page> ReadPage(PageRequests::Page requested, std::promise<absl::StatusOr<PageHead>> head);
  [[nodiscard]] Object Read(const Json& object) const;
  [[nodiscard]] absl::Status Watch();
  // Whether a watch has been open long enough to be in order without an event.
  [[nodiscard]] bool WatchIsSteady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool OnLine(absl::string_view line, absl::Status* failure) ABSL_LOCKS_EXCLUDED(objects_mutex_);
  [[nodiscard]] std::string version() const ABSL_LOCKS_EXCLUDED(objects_mutex_);
  void ForgetVersion() ABSL_LOCKS_EXCLUDED(objects_mutex_);
  void OnEvent(const std::string& type, const Json& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(objects_mutex_);
  void Upsert(Object object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(objects_mutex_);
  void Fail(const absl::Status& status, int* failures);
  // Converts a response other than 200. Stores its Retry-After for Fail.
  [[nodiscard]] absl::Status Refused(const KubeResponse& response);

  const std::string path_;
  KubeClient* const client_;
  const Handlers handlers_;
  // Held while an object is handled, so that handlers are called one at a time.
  mutable Mutex objects_mutex_;
  std::map<std::string, std::string> known_ ABSL_GUARDED_BY(objects_mutex_);  // "namespace/name" -> identity
  // resourceVersion to watch from; empty: list first, or a list is under way.
  std::string version_ ABSL_GUARDED_BY(objects_mutex_);
  uint64_t events_ = 0;     // received by watches; used by the thread only, as are the next two
  int futile_watches_ = 0;  // watches in a row that were answered and had no event
  int retry_after_s_ = 0;   // from the API server's last answer; 0: none
  std::atomic<bool> stop_{false};
  Mutex wait_mutex_;
  CondVar stopped_;
  mutable Mutex mutex_;
  InformerStats stats_ ABSL_GUARDED_BY(mutex_);
  absl::Time watch_opened_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // steady clock; infinite: none is open
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_INFORMER_H_
