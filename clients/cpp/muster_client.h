// The C++ client of muster.v1: a blocking interface over the generated stubs. Depends on the public API only.
//
// Errors carry the server's code and message, with one field violation per line. A call is retried within its timeout
// if musterd cannot be reached or asks for a retry. Mutating calls carry a request id (generated if the caller gives
// none), so that a retry has no second effect.
#ifndef MUSTER_CLIENTS_CPP_MUSTER_CLIENT_H_
#define MUSTER_CLIENTS_CPP_MUSTER_CLIENT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/decision.pb.h"
#include "muster/v1/event.pb.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/gang.pb.h"
#include "muster/v1/node.pb.h"
#include "muster/v1/placement.pb.h"
#include "muster/v1/queue.pb.h"
#include "muster/v1/trace.pb.h"
#include "muster/v1/version.pb.h"
#include "muster/v1/what_if.pb.h"

namespace muster {

struct ClientOptions {
  std::string server = "127.0.0.1:9091";  // host:port
  bool tls = false;                       // also when any of the files is given
  std::string ca_file;                    // PEM; empty: the system's certificate authorities
  std::string cert_file;                  // PEM: this client's certificate, with key_file
  std::string key_file;
  std::string server_name;                    // name in the server's certificate, if it differs from the host
  std::string token;                          // bearer token; only over TLS or to a loopback address
  std::chrono::milliseconds timeout{10'000};  // of one call, retries included
  bool wait_for_server = true;                // retry while the server cannot be reached
};

// Returns a new request id: 32 hexadecimal digits.
[[nodiscard]] std::string NewRequestId();

// Many calls on one stream, without a deadline. One thread may write while another one reads. After a broken stream,
// send again what was not answered: a call with the same id has no second effect.
class PlacementStream {
 public:
  virtual ~PlacementStream() = default;
  // Sends calls; blocks while musterd reads none. False: the stream is over, see Finish.
  virtual bool Write(const v1::PlaceGangsRequest& calls) = 0;
  // No more calls follow.
  virtual void WritesDone() = 0;
  // Waits for the next answers, in the order of the calls. False: there are no more, see Finish.
  virtual bool Read(v1::PlaceGangsResponse* answers) = 0;
  // Ends Write and Read, on any thread.
  virtual void Cancel() = 0;
  // OK: every call is answered. REQUIRES: Read has returned false, and no thread writes.
  [[nodiscard]] virtual absl::Status Finish() = 0;
};

// Thread-safe.
class MusterClient {
 public:
  // InvalidArgument when a file cannot be read, or a token would be sent without TLS to another host.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<MusterClient>> Connect(const ClientOptions& options);
  ~MusterClient();

  // --- gangs and nodes ---
  [[nodiscard]] absl::StatusOr<v1::Gang> CreateGang(v1::CreateGangRequest request);
  [[nodiscard]] absl::StatusOr<v1::Gang> UpdateGang(v1::UpdateGangRequest request);
  [[nodiscard]] absl::Status DeleteGang(v1::DeleteGangRequest request);
  // NotFound when there is no such gang.
  [[nodiscard]] absl::StatusOr<v1::Gang> GetGang(const std::string& name_space, const std::string& name);
  // Lists return all pages, each with the timeout of a call.
  [[nodiscard]] absl::StatusOr<v1::ListGangsResponse> ListGangs(const std::string& name_space);
  [[nodiscard]] absl::StatusOr<v1::ExplainGangResponse> ExplainGang(const std::string& name_space,
                                                                    const std::string& name);
  [[nodiscard]] absl::StatusOr<v1::ExplainPodResponse> ExplainPod(const std::string& name_space,
                                                                  const std::string& name);
  // NotFound when there is no such node.
  [[nodiscard]] absl::StatusOr<v1::Node> GetNode(const std::string& name);
  [[nodiscard]] absl::StatusOr<v1::ListNodesResponse> ListNodes();
  // NotFound when there is no such queue.
  [[nodiscard]] absl::StatusOr<v1::Queue> GetQueue(const std::string& name);
  [[nodiscard]] absl::StatusOr<v1::ListQueuesResponse> ListQueues();
  [[nodiscard]] absl::StatusOr<v1::ExplainQueueResponse> ExplainQueue(const std::string& name);
  // A request without an id gets one.
  [[nodiscard]] absl::Status ApplyQueues(v1::ApplyQueuesRequest request);
  [[nodiscard]] absl::Status DeleteQueue(const std::string& name);
  // The watches call `event` for each message until it returns false or the stream ends (no deadline).
  [[nodiscard]] absl::Status WatchGangs(const std::string& name_space,
                                        const std::function<bool(const v1::GangEvent&)>& event);
  [[nodiscard]] absl::Status WatchNodes(const std::function<bool(const v1::NodeEvent&)>& event);
  [[nodiscard]] absl::Status WatchQueues(const std::function<bool(const v1::QueueEvent&)>& event);

  // --- facts --- Sends all nodes and pods, in parts of one message each; the first part names source and version.
  [[nodiscard]] absl::StatusOr<v1::FactsStatus> SendSnapshot(std::vector<v1::SendSnapshotRequest> parts);
  [[nodiscard]] absl::StatusOr<v1::FactsStatus> UpdateFacts(v1::UpdateFactsRequest request);
  [[nodiscard]] absl::StatusOr<v1::FactsStatus> GetFactsStatus();

  // --- whole gangs ---
  [[nodiscard]] absl::StatusOr<v1::Submission> SubmitGang(v1::SubmitGangRequest request);
  [[nodiscard]] absl::StatusOr<v1::Submission> ConfirmGang(const std::string& id, int64_t plan);
  [[nodiscard]] absl::StatusOr<v1::Submission> AbandonGang(const std::string& id);
  [[nodiscard]] absl::StatusOr<v1::Submission> GetSubmission(const std::string& id);
  [[nodiscard]] absl::Status WatchSubmission(const std::string& id,
                                             const std::function<bool(const v1::Submission&)>& event);
  // Submissions of the namespace (empty: all) that have not ended, and the last ones that have. Renews none.
  [[nodiscard]] absl::StatusOr<v1::ListSubmissionsResponse> ListSubmissions(const std::string& name_space);
  [[nodiscard]] absl::Status WatchSubmissions(const std::string& name_space,
                                              const std::function<bool(const v1::SubmissionEvent&)>& event);
  // Opens a stream of calls; it must not outlive the client.
  [[nodiscard]] std::unique_ptr<PlacementStream> PlaceGangs();
  // Awaits a submission without a deadline. A lost connection is made again one second later. `lost` receives the
  // reason each time and returns whether to continue.
  [[nodiscard]] absl::Status AwaitSubmission(const std::string& id,
                                             const std::function<bool(const v1::Submission&)>& event,
                                             const std::function<bool(const absl::Status&)>& lost);

  // --- pod by pod ---
  [[nodiscard]] absl::StatusOr<v1::PreFilterResponse> PreFilter(v1::PreFilterRequest request);
  [[nodiscard]] absl::StatusOr<v1::FilterResponse> Filter(const v1::FilterRequest& request);
  [[nodiscard]] absl::StatusOr<v1::PrioritizeResponse> Prioritize(const v1::PrioritizeRequest& request);
  // Waits until PERMIT or REJECT (no deadline). If `event` returns false, the call ends and the slot is released.
  [[nodiscard]] absl::Status Permit(const v1::PermitRequest& request,
                                    const std::function<bool(const v1::PermitEvent&)>& event);
  [[nodiscard]] absl::Status PostFilter(v1::PostFilterRequest request);
  [[nodiscard]] absl::Status Unreserve(v1::UnreserveRequest request);
  [[nodiscard]] absl::Status PostBind(v1::PostBindRequest request);

  // --- events ---
  // All pages; dropped_events counts those that were missing before the first one.
  [[nodiscard]] absl::StatusOr<v1::ListEventsResponse> ListEvents(v1::ListEventsRequest request);
  [[nodiscard]] absl::Status WatchEvents(const v1::WatchEventsRequest& request,
                                         const std::function<bool(const v1::Event&)>& event);

  // --- what if ---
  [[nodiscard]] absl::StatusOr<v1::PlanGangResponse> PlanGang(const v1::PlanGangRequest& request);

  // --- the server ---
  [[nodiscard]] absl::StatusOr<v1::Version> GetVersion();

  // --- traces ---
  [[nodiscard]] absl::StatusOr<v1::GetTraceResponse> GetTrace(const v1::GetTraceRequest& request);

 private:
  struct Impl;
  explicit MusterClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster

#endif  // MUSTER_CLIENTS_CPP_MUSTER_CLIENT_H_
