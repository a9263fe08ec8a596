#include "clients/cpp/muster_client.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "muster/v1/decision.grpc.pb.h"
#include "muster/v1/event.grpc.pb.h"
#include "muster/v1/facts.grpc.pb.h"
#include "muster/v1/gang.grpc.pb.h"
#include "muster/v1/node.grpc.pb.h"
#include "muster/v1/placement.grpc.pb.h"
#include "muster/v1/queue.grpc.pb.h"
#include "muster/v1/trace.grpc.pb.h"
#include "muster/v1/version.grpc.pb.h"
#include "muster/v1/what_if.grpc.pb.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kFirstPause(50);
constexpr std::chrono::milliseconds kMaxPause(1'000);

absl::StatusOr<std::string> ReadFile(const std::string& what, const std::string& path) {
  std::ifstream in(path);
  if (!in) return absl::InvalidArgumentError(absl::StrCat(what, ": cannot read ", path));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool IsLoopback(const std::string& server) {
  const std::string host = server.substr(0, server.rfind(':'));
  in_addr address{};
  if (host == "localhost" || host == "[::1]") return true;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

// gRPC silently takes the port modulo 65536.
absl::Status CheckPort(const std::string& server) {
  const absl::string_view port = absl::string_view(server).substr(server.rfind(':') + 1);
  const bool number = !port.empty() && port.size() < server.size() && absl::c_all_of(port, absl::ascii_isdigit);
  int value = 0;
  if (!number || absl::StartsWith(server, "unix") || (absl::SimpleAtoi(port, &value) && value > 0 && value <= 65535)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("server: ", server, ": port ", port, "; expected 1 to 65535"));
}

// `reached`: the server has answered before, so the connection settings are right.
absl::Status ToStatus(const grpc::Status& status, const std::string& server, bool reached) {
  if (status.ok()) return absl::OkStatus();
  std::string text = status.error_message();
  if (!reached && (text == "Socket closed" || text.find("andshake") != std::string::npos)) {
    text += "; does it ask for TLS, or for a client certificate (--ca, --cert, --key)?";
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE)
    text = absl::StrCat("cannot reach musterd at ", server, ": ", text);
  if (text == "Deadline Exceeded") {
    text =
        absl::StrCat("musterd at ", server,
                     " did not answer in time: its store may refuse commits (see /readyz of the admin listener), or it "
                     "is overloaded. The call may still take effect: check, or try again");
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), text);
}

// Whether waiting may help: a rate limit has RetryInfo, a message that is too large has not.
bool HasRetryInfo(const grpc::Status& status) {
  google::rpc::Status details;
  if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED || !details.ParseFromString(status.error_details())) {
    return false;
  }
  return std::any_of(details.details().begin(), details.details().end(),
                     [](const google::protobuf::Any& detail) { return detail.Is<google::rpc::RetryInfo>(); });
}

template <typename Request>
Request WithId(Request request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return request;
}

}  // namespace

std::string NewRequestId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

struct MusterClient::Impl {
  class Stream;

  Impl(const ClientOptions& given, const std::shared_ptr<grpc::ChannelCredentials>& credentials) : options(given) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);  // large clusters have large answers, and this server is trusted
    if (!options.server_name.empty()) arguments.SetSslTargetNameOverride(options.server_name);
    channel = grpc::CreateCustomChannel(options.server, credentials, arguments);
    gangs = v1::GangService::NewStub(channel);
    nodes = v1::NodeService::NewStub(channel);
    queues = v1::QueueService::NewStub(channel);
    facts = v1::FactsService::NewStub(channel);
    decisions = v1::DecisionService::NewStub(channel);
    placements = v1::PlacementService::NewStub(channel);
    events = v1::EventService::NewStub(channel);
    traces = v1::TraceService::NewStub(channel);
    what_ifs = v1::WhatIfService::NewStub(channel);
    versions = v1::VersionService::NewStub(channel);
  }

  void Prepare(grpc::ClientContext* context) const {
    if (!options.token.empty()) context->AddMetadata("authorization", absl::StrCat("Bearer ", options.token));
  }

  // Makes one call and retries it while that may help: attempt(context, response) -> grpc::Status.
  template <typename Response, typename Attempt>
  absl::StatusOr<Response> Try(const Attempt& attempt) {
    const auto deadline = std::chrono::system_clock::now() + options.timeout;
    for (std::chrono::milliseconds pause = kFirstPause;; pause = std::min(pause * 2, kMaxPause)) {
      grpc::ClientContext context;
      context.set_deadline(deadline);
      Prepare(&context);
      Response response;
      const grpc::Status status = attempt(&context, &response);
      if (status.ok()) {
        reached = true;
        return response;
      }
      const bool away = status.error_code() == grpc::StatusCode::UNAVAILABLE && options.wait_for_server;
      if ((!away && !HasRetryInfo(status)) || std::chrono::system_clock::now() + pause >= deadline)
        return ToStatus(status, options.server, reached);
      std::this_thread::sleep_for(pause);
    }
  }
  template <typename Response, typename Stub, typename Request>
  absl::StatusOr<Response> Call(Stub* stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    return Try<Response>(
        [&](grpc::ClientContext* context, Response* response) { return (stub->*method)(context, request, response); });
  }
  // Makes the call for every page and returns all objects in one response.
  template <typename Response, typename Stub, typename Request>
  absl::StatusOr<Response> AllPages(Stub* stub,
                                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                    Request request) {
    Response all;
    do {
      absl::StatusOr<Response> page = Call(stub, method, request);
      if (!page.ok()) return page.status();
      request.set_page_token(page->next_page_token());
      page->clear_next_page_token();
      all.MergeFrom(*page);
    } while (!request.page_token().empty());
    return all;
  }
  template <typename Response, typename Reader>
  absl::Status ReadAll(grpc::ClientContext* context, Reader reader, const std::function<bool(const Response&)>& event) {
    Response received;
    bool enough = false;
    while (!enough && reader->Read(&received)) {
      reached = true;
      enough = !event(received);
    }
    if (enough) context->TryCancel();
    const grpc::Status status = reader->Finish();
    return enough ? absl::OkStatus() : ToStatus(status, options.server, reached);
  }

  const ClientOptions options;
  std::atomic<bool> reached{false};
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::GangService::Stub> gangs;
  std::unique_ptr<v1::NodeService::Stub> nodes;
  std::unique_ptr<v1::QueueService::Stub> queues;
  std::unique_ptr<v1::FactsService::Stub> facts;
  std::unique_ptr<v1::DecisionService::Stub> decisions;
  std::unique_ptr<v1::PlacementService::Stub> placements;
  std::unique_ptr<v1::EventService::Stub> events;
  std::unique_ptr<v1::TraceService::Stub> traces;
  std::unique_ptr<v1::WhatIfService::Stub> what_ifs;
  std::unique_ptr<v1::VersionService::Stub> versions;
};

MusterClient::MusterClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MusterClient::~MusterClient() = default;

absl::StatusOr<std::unique_ptr<MusterClient>> MusterClient::Connect(const ClientOptions& options) {
  if (absl::Status port = CheckPort(options.server); !port.ok()) return port;
  const bool tls = options.tls || !options.ca_file.empty() || !options.cert_file.empty();
  if (!tls && !options.token.empty() && !IsLoopback(options.server)) {
    return absl::InvalidArgumentError(absl::StrCat("token: would be sent to ", options.server,
                                                   " unencrypted; expected TLS (a CA file), or a loopback address"));
  }
  if (std::any_of(options.token.begin(), options.token.end(), [](char c) { return c < '!' || c > '~'; })) {
    return absl::InvalidArgumentError(
        "token: has characters that no token has; expected printable ASCII without spaces");
  }
  if (options.cert_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError("key: expected together with cert, both or neither");
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (tls) {
    grpc::SslCredentialsOptions ssl;
    for (const auto& [what, path, text] : {std::tuple{"ca", &options.ca_file, &ssl.pem_root_certs},
                                           {"cert", &options.cert_file, &ssl.pem_cert_chain},
                                           {"key", &options.key_file, &ssl.pem_private_key}}) {
      if (path->empty()) continue;
      absl::StatusOr<std::string> read = ReadFile(what, *path);
      if (!read.ok()) return read.status();
      *text = *std::move(read);
    }
    credentials = grpc::SslCredentials(ssl);
  }
  return std::unique_ptr<MusterClient>(new MusterClient(std::make_unique<Impl>(options, credentials)));
}

absl::StatusOr<v1::Gang> MusterClient::CreateGang(v1::CreateGangRequest request) {
  return impl_->Call(impl_->gangs.get(), &v1::GangService::Stub::CreateGang, WithId(std::move(request)));
}
absl::StatusOr<v1::Gang> MusterClient::UpdateGang(v1::UpdateGangRequest request) {
  return impl_->Call(impl_->gangs.get(), &v1::GangService::Stub::UpdateGang, WithId(std::move(request)));
}
absl::Status MusterClient::DeleteGang(v1::DeleteGangRequest request) {
  return impl_->Call(impl_->gangs.get(), &v1::GangService::Stub::DeleteGang, WithId(std::move(request))).status();
}

absl::StatusOr<v1::Gang> MusterClient::GetGang(const std::string& name_space, const std::string& name) {
  v1::GetGangRequest request;
  request.set_namespace_(name_space);
  request.set_name(name);
  return impl_->Call(impl_->gangs.get(), &v1::GangService::Stub::GetGang, request);
}

absl::StatusOr<v1::ListGangsResponse> MusterClient::ListGangs(const std::string& name_space) {
  v1::ListGangsRequest request;
  request.set_namespace_(name_space);
  return impl_->AllPages(impl_->gangs.get(), &v1::GangService::Stub::ListGangs, std::move(request));
}

absl::StatusOr<v1::ExplainGangResponse> MusterClient::ExplainGang(const std::string& name_space,
                                                                  const std::string& name) {
  v1::ExplainGangRequest request;
  request.set_namespace_(name_space);
  request.set_name(name);
  return impl_->Call(impl_->gangs.get(), &v1::GangService::Stub::ExplainGang, request);
}

absl::StatusOr<v1::ExplainPodResponse> MusterClient::ExplainPod(const std::string& name_space,
                                                                const std::string& name) {
  v1::ExplainPodRequest request;
  request.set_namespace_(name_space);
  request.set_name(name);
  return impl_->Call(impl_->gangs.get(), &v1::GangService::Stub::ExplainPod, request);
}

absl::StatusOr<v1::Node> MusterClient::GetNode(const std::string& name) {
  v1::GetNodeRequest request;
  request.set_name(name);
  return impl_->Call(impl_->nodes.get(), &v1::NodeService::Stub::GetNode, request);
}

absl::StatusOr<v1::ListNodesResponse> MusterClient::ListNodes() {
  return impl_->AllPages(impl_->nodes.get(), &v1::NodeService::Stub::ListNodes, v1::ListNodesRequest());
}

absl::StatusOr<v1::Queue> MusterClient::GetQueue(const std::string& name) {
  v1::GetQueueRequest request;
  request.set_name(name);
  return impl_->Call(impl_->queues.get(), &v1::QueueService::Stub::GetQueue, request);
}

absl::StatusOr<v1::ExplainQueueResponse> MusterClient::ExplainQueue(const std::string& name) {
  v1::ExplainQueueRequest request;
  request.set_name(name);
  return impl_->Call(impl_->queues.get(), &v1::QueueService::Stub::ExplainQueue, request);
}

absl::StatusOr<v1::ListQueuesResponse> MusterClient::ListQueues() {
  return impl_->AllPages(impl_->queues.get(), &v1::QueueService::Stub::ListQueues, v1::ListQueuesRequest());
}

absl::Status MusterClient::ApplyQueues(v1::ApplyQueuesRequest request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return impl_->Call(impl_->queues.get(), &v1::QueueService::Stub::ApplyQueues, request).status();
}

absl::Status MusterClient::DeleteQueue(const std::string& name) {
  v1::DeleteQueueRequest request;
  request.set_request_id(NewRequestId());
  request.set_name(name);
  return impl_->Call(impl_->queues.get(), &v1::QueueService::Stub::DeleteQueue, request).status();
}

absl::Status MusterClient::WatchGangs(const std::string& name_space,
                                      const std::function<bool(const v1::GangEvent&)>& event) {
  grpc::ClientContext context;
  impl_->Prepare(&context);
  v1::WatchGangsRequest request;
  request.set_namespace_(name_space);
  return impl_->ReadAll<v1::GangEvent>(&context, impl_->gangs->WatchGangs(&context, request), event);
}

absl::Status MusterClient::WatchNodes(const std::function<bool(const v1::NodeEvent&)>& event) {
  grpc::ClientContext context;
  impl_->Prepare(&context);
  return impl_->ReadAll<v1::NodeEvent>(&context, impl_->nodes->WatchNodes(&context, v1::WatchNodesRequest()), event);
}

absl::Status MusterClient::WatchQueues(const std::function<bool(const v1::QueueEvent&)>& event) {
  grpc::ClientContext context;
  impl_->Prepare(&context);
  return impl_->ReadAll<v1::QueueEvent>(&context, impl_->queues->WatchQueues(&context, v1::WatchQueuesRequest()),
                                        event);
}

absl::StatusOr<v1::FactsStatus> MusterClient::SendSnapshot(std::vector<v1::SendSnapshotRequest> parts) {
  if (!parts.empty()) parts.back().set_last(true);
  return impl_->Try<v1::FactsStatus>([&](grpc::ClientContext* context, v1::FactsStatus* response) {
    const auto writer = impl_->facts->SendSnapshot(context, response);
    for (const v1::SendSnapshotRequest& part : parts) {
      if (!writer->Write(part)) break;  // Finish returns the reason
    }
    writer->WritesDone();
    return writer->Finish();
  });
}
absl::StatusOr<v1::FactsStatus> MusterClient::UpdateFacts(v1::UpdateFactsRequest request) {
  return impl_->Call(impl_->facts.get(), &v1::FactsService::Stub::UpdateFacts, WithId(std::move(request)));
}
absl::StatusOr<v1::FactsStatus> MusterClient::GetFactsStatus() {
  return impl_->Call(impl_->facts.get(), &v1::FactsService::Stub::GetFactsStatus, v1::GetFactsStatusRequest());
}

absl::StatusOr<v1::Submission> MusterClient::SubmitGang(v1::SubmitGangRequest request) {
  return impl_->Call(impl_->placements.get(), &v1::PlacementService::Stub::SubmitGang, WithId(std::move(request)));
}
absl::StatusOr<v1::Submission> MusterClient::ConfirmGang(const std::string& id, int64_t plan) {
  v1::ConfirmGangRequest request;
  request.set_id(id);
  request.set_plan(plan);
  return impl_->Call(impl_->placements.get(), &v1::PlacementService::Stub::ConfirmGang, request);
}
absl::StatusOr<v1::Submission> MusterClient::AbandonGang(const std::string& id) {
  v1::AbandonGangRequest request;
  request.set_id(id);
  return impl_->Call(impl_->placements.get(), &v1::PlacementService::Stub::AbandonGang, request);
}
absl::StatusOr<v1::Submission> MusterClient::GetSubmission(const std::string& id) {
  v1::GetSubmissionRequest request;
  request.set_id(id);
  return impl_->Call(impl_->placements.get(), &v1::PlacementService::Stub::GetSubmission, request);
}
absl::Status MusterClient::WatchSubmission(const std::string& id,
                                           const std::function<bool(const v1::Submission&)>& event) {
  grpc::ClientContext context;
  impl_->Prepare(&context);
  v1::WatchSubmissionRequest request;
  request.set_id(id);
  return impl_->ReadAll<v1::Submission>(&context, impl_->placements->WatchSubmission(&context, request), event);
}

absl::StatusOr<v1::ListSubmissionsResponse> MusterClient::ListSubmissions(const std::string& name_space) {
  v1::ListSubmissionsRequest request;
  request.set_namespace_(name_space);
  return impl_->AllPages(impl_->placements.get(), &v1::PlacementService::Stub::ListSubmissions, std::move(request));
}
absl::Status MusterClient::WatchSubmissions(const std::string& name_space,
                                            const std::function<bool(const v1::SubmissionEvent&)>& event) {
  grpc::ClientContext context;
  impl_->Prepare(&context);
  v1::WatchSubmissionsRequest request;
  request.set_namespace_(name_space);
  return impl_->ReadAll<v1::SubmissionEvent>(&context, impl_->placements->WatchSubmissions(&context, request), event);
}

class MusterClient::Impl::Stream final : public PlacementStream {
 public:
  explicit Stream(Impl* client) : client_(client) {
    client->Prepare(&context_);
    stream_ = client->placements->PlaceGangs(&context_);
  }
  ~Stream() override { context_.TryCancel(); }
  bool Write(const v1::PlaceGangsRequest& calls) override {
    unanswered_ += calls.calls_size();
    return stream_->Write(calls);
  }
  void WritesDone() override { stream_->WritesDone(); }
  bool Read(v1::PlaceGangsResponse* answers) override {
    if (!stream_->Read(answers)) return false;
    client_->reached = true;
    unanswered_ -= answers->results_size();
    return true;
  }
  void Cancel() override { context_.TryCancel(); }
  absl::Status Finish() override {
    const grpc::Status status = stream_->Finish();
    if (!status.ok() || unanswered_ == 0) return ToStatus(status, client_->options.server, client_->reached);
    return absl::InternalError(absl::StrCat(unanswered_.load(), " calls have no answer: musterd could not read them"));
  }

 private:
  Impl* const client_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::PlaceGangsRequest, v1::PlaceGangsResponse>> stream_;
  std::atomic<int64_t> unanswered_{0};
};

std::unique_ptr<PlacementStream> MusterClient::PlaceGangs() { return std::make_unique<Impl::Stream>(impl_.get()); }

absl::Status MusterClient::AwaitSubmission(const std::string& id,
                                           const std::function<bool(const v1::Submission&)>& event,
                                           const std::function<bool(const absl::Status&)>& lost) {
  for (;; std::this_thread::sleep_for(kMaxPause)) {
    bool enough = false;
    absl::Status ended = WatchSubmission(id, [&](const v1::Submission& now) {
      enough = !event(now);
      return !enough;
    });
    // A server that stops cancels its streams.
    const bool away = absl::IsUnavailable(ended) || absl::IsCancelled(ended);
    if (enough || !away || !lost(ended)) return ended;
  }
}

absl::StatusOr<v1::PreFilterResponse> MusterClient::PreFilter(v1::PreFilterRequest request) {
  return impl_->Call(impl_->decisions.get(), &v1::DecisionService::Stub::PreFilter, WithId(std::move(request)));
}
absl::StatusOr<v1::FilterResponse> MusterClient::Filter(const v1::FilterRequest& request) {
  return impl_->Call(impl_->decisions.get(), &v1::DecisionService::Stub::Filter, request);
}
absl::StatusOr<v1::PrioritizeResponse> MusterClient::Prioritize(const v1::PrioritizeRequest& request) {
  return impl_->Call(impl_->decisions.get(), &v1::DecisionService::Stub::Prioritize, request);
}
absl::Status MusterClient::Permit(const v1::PermitRequest& request,
                                  const std::function<bool(const v1::PermitEvent&)>& event) {
  grpc::ClientContext context;
  impl_->Prepare(&context);
  return impl_->ReadAll<v1::PermitEvent>(&context, impl_->decisions->Permit(&context, request), event);
}
absl::Status MusterClient::PostFilter(v1::PostFilterRequest request) {
  return impl_->Call(impl_->decisions.get(), &v1::DecisionService::Stub::PostFilter, WithId(std::move(request)))
      .status();
}
absl::Status MusterClient::Unreserve(v1::UnreserveRequest request) {
  return impl_->Call(impl_->decisions.get(), &v1::DecisionService::Stub::Unreserve, WithId(std::move(request)))
      .status();
}
absl::Status MusterClient::PostBind(v1::PostBindRequest request) {
  return impl_->Call(impl_->decisions.get(), &v1::DecisionService::Stub::PostBind, WithId(std::move(request))).status();
}

absl::StatusOr<v1::ListEventsResponse> MusterClient::ListEvents(v1::ListEventsRequest request) {
  return impl_->AllPages(impl_->events.get(), &v1::EventService::Stub::ListEvents, std::move(request));
}
absl::StatusOr<v1::PlanGangResponse> MusterClient::PlanGang(const v1::PlanGangRequest& request) {
  return impl_->Call(impl_->what_ifs.get(), &v1::WhatIfService::Stub::PlanGang, request);
}
absl::StatusOr<v1::Version> MusterClient::GetVersion() {
  return impl_->Call(impl_->versions.get(), &v1::VersionService::Stub::GetVersion, v1::GetVersionRequest());
}
absl::StatusOr<v1::GetTraceResponse> MusterClient::GetTrace(const v1::GetTraceRequest& request) {
  return impl_->Call(impl_->traces.get(), &v1::TraceService::Stub::GetTrace, request);
}
absl::Status MusterClient::WatchEvents(const v1::WatchEventsRequest& request,
                                       const std::function<bool(const v1::Event&)>& event) {
  grpc::ClientContext context;
  impl_->Prepare(&context);
  return impl_->ReadAll<v1::Event>(&context, impl_->events->WatchEvents(&context, request), event);
}

}  // namespace muster
