// The C++ client of muster.v1: a blocking face over the generated stubs. Sees the public contract only.
//
// Errors carry the server's code and message; field violations are one a line. Calls that cannot reach musterd, or are
// told to come back, are tried again for as long as the call's time lasts; calls that change something carry a request
// id (made up where the caller gives none), so that nothing happens twice.
#ifndef MUSTER_CLIENTS_CPP_MUSTER_CLIENT_H_
#define MUSTER_CLIENTS_CPP_MUSTER_CLIENT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/muster/v1/decisions.pb.h"
#include "proto/muster/v1/facts.pb.h"
#include "proto/muster/v1/muster.pb.h"

namespace muster {

struct ClientOptions {
  std::string server = "127.0.0.1:9091";  // host:port
  bool tls = false;                       // also when any of the files is given
  std::string ca_file;                    // PEM; empty: the system's
  std::string cert_file;                  // PEM: this client's certificate, with key_file
  std::string key_file;
  std::string server_name;                    // as the server's certificate has it, where that is not the host
  std::string token;                          // bearer token; only over TLS or to a loopback address
  std::chrono::milliseconds timeout{10'000};  // of one call, with what is tried again
  bool wait_for_server = true;                // a server that cannot be reached is tried again too
};

// A new id for a request: 32 hexadecimal digits.
[[nodiscard]] std::string NewRequestId();

// Thread-safe.
class MusterClient {
 public:
  // InvalidArgument when a file cannot be read, or a token would travel in the clear.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<MusterClient>> Connect(const ClientOptions& options);
  ~MusterClient();

  // --- gangs and nodes ---
  [[nodiscard]] absl::StatusOr<v1::Gang> CreateGang(v1::CreateGangRequest request);
  [[nodiscard]] absl::StatusOr<v1::Gang> UpdateGang(v1::UpdateGangRequest request);
  [[nodiscard]] absl::Status DeleteGang(v1::DeleteGangRequest request);
  // NotFound when there is no such gang.
  [[nodiscard]] absl::StatusOr<v1::Gang> GetGang(const std::string& name_space, const std::string& name);
  [[nodiscard]] absl::StatusOr<v1::ListGangsResponse> ListGangs(const std::string& name_space);
  [[nodiscard]] absl::StatusOr<v1::ExplainGangResponse> ExplainGang(const std::string& name_space,
                                                                    const std::string& name);
  [[nodiscard]] absl::StatusOr<v1::ExplainPodResponse> ExplainPod(const std::string& name_space,
                                                                  const std::string& name);
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

  // --- facts ---
  // All nodes and pods there are, in parts of one message each; the first names source and version.
  [[nodiscard]] absl::StatusOr<v1::FactsStatus> SendSnapshot(std::vector<v1::SnapshotPart> parts);
  [[nodiscard]] absl::StatusOr<v1::FactsStatus> UpdateFacts(v1::UpdateFactsRequest request);
  [[nodiscard]] absl::StatusOr<v1::FactsStatus> GetFactsStatus();

  // --- whole gangs ---
  [[nodiscard]] absl::StatusOr<v1::Submission> SubmitGang(v1::SubmitGangRequest request);
  [[nodiscard]] absl::StatusOr<v1::Submission> ConfirmGang(const std::string& id, int64_t plan);
  [[nodiscard]] absl::StatusOr<v1::Submission> AbandonGang(const std::string& id);
  [[nodiscard]] absl::StatusOr<v1::Submission> GetSubmission(const std::string& id);
  [[nodiscard]] absl::Status WatchSubmission(const std::string& id,
                                             const std::function<bool(const v1::Submission&)>& event);
  // The same for as long as it takes: a connection that is lost is made again, a second later. `lost` is told why each
  // time, and returns whether to go on.
  [[nodiscard]] absl::Status AwaitSubmission(const std::string& id,
                                             const std::function<bool(const v1::Submission&)>& event,
                                             const std::function<bool(const absl::Status&)>& lost);

  // --- pod by pod ---
  [[nodiscard]] absl::StatusOr<v1::PreFilterResponse> PreFilter(v1::PreFilterRequest request);
  [[nodiscard]] absl::StatusOr<v1::FilterResponse> Filter(const v1::FilterRequest& request);
  [[nodiscard]] absl::StatusOr<v1::PrioritizeResponse> Prioritize(const v1::PrioritizeRequest& request);
  // Until PERMIT or REJECT; `event` returning false gives the place back (no deadline).
  [[nodiscard]] absl::Status Permit(const v1::PermitRequest& request,
                                    const std::function<bool(const v1::PermitEvent&)>& event);
  [[nodiscard]] absl::Status PostFilter(v1::PostFilterRequest request);
  [[nodiscard]] absl::Status Unreserve(v1::UnreserveRequest request);
  [[nodiscard]] absl::Status PostBind(v1::PostBindRequest request);

  // --- events ---
  [[nodiscard]] absl::StatusOr<v1::ListEventsResponse> ListEvents(const v1::ListEventsRequest& request);
  [[nodiscard]] absl::Status WatchEvents(const v1::WatchEventsRequest& request,
                                         const std::function<bool(const v1::Event&)>& event);

  // --- what if ---
  [[nodiscard]] absl::StatusOr<v1::PlanGangResponse> PlanGang(const v1::PlanGangRequest& request);

  // --- traces ---
  [[nodiscard]] absl::StatusOr<v1::GetTraceResponse> GetTrace(const v1::GetTraceRequest& request);

 private:
  struct Impl;
  explicit MusterClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster

#endif  // MUSTER_CLIENTS_CPP_MUSTER_CLIENT_H_
