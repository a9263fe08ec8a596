// A small Kubernetes API client: requests with a deadline, and watches. Reuses connections and re-reads the token.
#ifndef MUSTER_K8S_EXTENDER_APISERVER_CLIENT_H_
#define MUSTER_K8S_EXTENDER_APISERVER_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "k8s-extender/apiserver/kube_config.h"
#include "k8s-extender/apiserver/page_budget.h"
#include "support/sync.h"
#include "support/watchdog.h"

namespace httplib {
class ClientImpl;
enum class Error;
}  // namespace httplib

namespace muster {

enum class KubeMethod : uint8_t { kGet, kPost, kPatchMerge, kPatchStrategic, kDelete };

struct KubeResponse {
  int status = 0;
  std::string body;
  int retry_after_s = 0;  // of a 429 or 503; 0: not given
};

// Thread-safe.
class KubeClient {
 public:
  explicit KubeClient(KubeConfig config);
  ~KubeClient();

  static constexpr size_t kMaxAnswer = size_t{32} << 20;  // bytes of an answer, unless a request states its own bound

  // Sends one request. Any HTTP status is an answer. In all other cases the request may have arrived nevertheless:
  // - DeadlineExceeded or Unavailable: there was no answer in time;
  // - ResourceExhausted: the body of the answer is larger than `max_bytes`, and was not read to its end;
  // - FailedPrecondition: the body is compressed, although the request forbids it, and was not read.
  // Cancelled: after Stop. `timeout` bounds the whole request, however slowly the answer arrives.
  [[nodiscard]] absl::StatusOr<KubeResponse> Send(KubeMethod method, const std::string& path, const std::string& body,
                                                  absl::Duration timeout, size_t max_bytes = kMaxAnswer);

  // Streams a watch: calls `opened` when the server has answered 200, then `line` for each line until it returns false,
  // the server ends the stream, or the stream is silent for `silence`. Returns the HTTP status and, when it is not 200,
  // the beginning of the body. ResourceExhausted: a line is larger than any event. FailedPrecondition: as for Send.
  [[nodiscard]] absl::StatusOr<KubeResponse> Watch(const std::string& path, absl::Duration silence,
                                                   const std::function<void()>& opened,
                                                   const std::function<bool(absl::string_view)>& line,
                                                   const std::atomic<bool>& stop);
  // Ends every watch and every request in flight (which may have arrived nevertheless), and refuses new ones.
  void Stop();
  // For the lists that are requested over this client.
  [[nodiscard]] PageBudget& pages() { return pages_; }

 private:
  using Connection = std::shared_ptr<httplib::ClientImpl>;
  [[nodiscard]] absl::StatusOr<Connection> Connect();
  [[nodiscard]] absl::StatusOr<Connection> AcquireConnection(absl::Duration timeout);
  // `fine`: it has answered and can be reused. Returns false if its time was over.
  bool ReturnConnection(const Connection& connection, bool fine);
  // The connection is no longer in use. Returns false if its time was over.
  [[nodiscard]] bool RemoveInUse(const Connection& connection);
  [[nodiscard]] int64_t WatchTime(const Connection& connection, absl::Duration time);
  // Converts the reason for a missing answer.
  [[nodiscard]] absl::Status StatusOfError(httplib::Error error);
  [[nodiscard]] std::string Token();
  void InvalidateToken();

  const KubeConfig config_;
  PageBudget pages_;
  Watchdog watchdog_;
  Mutex mutex_;
  struct Idle {
    Connection connection;
    absl::Time since;  // on the steady clock
  };
  std::vector<Idle> idle_ ABSL_GUARDED_BY(mutex_);  // the most recently used one at the end
  struct InUse {
    Connection connection;
    int64_t watched = 0;  // registration with watchdog_
  };
  std::vector<InUse> in_use_ ABSL_GUARDED_BY(mutex_);  // watches, and requests in flight
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  absl::Time token_read_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// The message of a v1.Status body, or the first bytes of any other body.
[[nodiscard]] std::string StatusMessage(const KubeResponse& response);

// The text, percent-encoded as the value of a parameter of a query.
[[nodiscard]] std::string EscapeQuery(const std::string& text);

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_APISERVER_CLIENT_H_
