// The verbs of kube-scheduler's HTTP extender, as HTTP routes on a server of the caller (SPEC K-1 to K-6, K-9, K-14).
//
// Only HTTP 200 is success to kube-scheduler. Therefore every decision and every refusal is a 200 with the reason
// inside; 400 is for unreadable bodies.
#ifndef MUSTER_K8S_EXTENDER_WEBHOOK_EXTENDER_H_
#define MUSTER_K8S_EXTENDER_WEBHOOK_EXTENDER_H_

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "state/api/port.h"
#include "support/json.h"
#include "support/sync.h"

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace muster {

struct ExtenderArgs;
struct PreemptionArgs;

// Called for every decision: verb ("filter"), outcome ("one-node", "refused", ...) and duration.
using DecisionObserver = std::function<void(absl::string_view verb, absl::string_view outcome, absl::Duration took)>;

// Thread-safe. Must outlive the servers it is registered with.
class Extender {
 public:
  Extender(DecisionPort* port, DecisionObserver observer);
  // Pods of owners of these kinds are gangs (D-7). REQUIRES: before it serves.
  void SetOwnerKinds(std::vector<std::string> owner_kinds) { owner_kinds_ = std::move(owner_kinds); }
  // `announce` gets a pod that filter asks about and that is not known yet (K-2): kube-scheduler's watch may be ahead
  // of ours. It returns whether the pod is announced now. REQUIRES: before it serves.
  void AnnounceUnknownPods(std::function<bool(const Json& pod)> announce) { announce_ = std::move(announce); }

  // POST /filter, /prioritize, /preempt.
  void RegisterDecisions(httplib::Server* server);
  // POST /bind, alone: it holds its caller, so it needs a listener of its own.
  void RegisterBind(httplib::Server* server);

  // The pure part of each handler: request body in, response body out. Sets `*http_status`.
  [[nodiscard]] std::string Filter(const std::string& body, int* http_status);
  [[nodiscard]] std::string Prioritize(const std::string& body, int* http_status);
  [[nodiscard]] std::string Preempt(const std::string& body, int* http_status);

 private:
  void Bind(const httplib::Request& request, httplib::Response& response);
  // Returns whether the pod of the request is announced now.
  [[nodiscard]] bool Announce(const std::string& body);
  [[nodiscard]] std::string WriteFilterResult(const FilterReply& reply, const ExtenderArgs& args,
                                              const std::string& body);
  [[nodiscard]] absl::StatusOr<PreemptionArgs> ReadPreemption(const std::string& body);

  DecisionPort* const port_;
  const DecisionObserver observer_;
  std::vector<std::string> owner_kinds_;
  std::function<bool(const Json& pod)> announce_;
  std::atomic<int> held_{0};  // calls at the barrier
  Mutex document_;            // held while the body of a request is a document: at most one is in memory
};

}  // namespace muster

#endif  // MUSTER_K8S_EXTENDER_WEBHOOK_EXTENDER_H_
