#include "k8s-extender/webhook/extender.h"

#include <httplib.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "k8s-extender/webhook/extender_json.h"
#include "support/sync.h"
#include "support/trace_context.h"

namespace muster {
namespace {

// With a charset cpp-httplib does not compress, which on a local connection costs more than it saves.
constexpr char kJson[] = "application/json; charset=utf-8";
// Time limit of a preempt call, shorter than kube-scheduler waits (httpTimeout in deploy/).
constexpr absl::Duration kPreemptPatience = absl::Milliseconds(1'500);
// How often a held call checks that its client is still connected. All held calls together check at most
// kMaxClientChecksPerSecond times a second, so that holds do not slow down other calls.
constexpr absl::Duration kClientCheckInterval = absl::Milliseconds(200);
constexpr int kMaxClientChecksPerSecond = 2'000;

absl::string_view OutcomeOf(const FilterReply& reply) {
  switch (reply.kind) {
    case FilterReply::Kind::kSingleNode:
      return "one-node";
    case FilterReply::Kind::kRefuse:
      return "refused";
    case FilterReply::Kind::kPass:
      return reply.guarded.empty() ? "passed" : "guarded";
  }
  return "";
}

// One held bind: shared by the engine, which answers it, and the connection, which waits.
struct HeldCall {
  Mutex mutex;
  CondVar changed;
  bool answered ABSL_GUARDED_BY(mutex) = false;
  HoldAnswer answer ABSL_GUARDED_BY(mutex);
};

// The caller's span of which this call is a part.
SpanRef CallerOf(const httplib::Request& request) { return ParseTraceparent(request.get_header_value("traceparent")); }

}  // namespace

Extender::Extender(DecisionPort* port, DecisionObserver observer) : port_(port), observer_(std::move(observer)) {}

void Extender::RegisterDecisions(httplib::Server* server) {
  using Verb = std::string (Extender::*)(const std::string&, int*);
  const auto route = [this, server](const char* path, Verb verb) {
    server->Post(path, [this, verb](const httplib::Request& request, httplib::Response& response) {
      int status = 200;
      const ScopedCaller on(CallerOf(request));
      response.body = (this->*verb)(request.body, &status);
      response.status = status;
      response.set_header("Content-Type", kJson);
    });
  };
  route("/filter", &Extender::Filter);
  route("/prioritize", &Extender::Prioritize);
  route("/preempt", &Extender::Preempt);
}

void Extender::RegisterBind(httplib::Server* server) {
  server->Post("/bind",
               [this](const httplib::Request& request, httplib::Response& response) { Bind(request, response); });
}

std::string Extender::Filter(const std::string& body, int* http_status) {
  const absl::Time start = SteadyNow();
  absl::StatusOr<ExtenderArgs> args = ParseExtenderArgs(body);
  if (!args.ok()) {
    *http_status = 400;
    observer_("filter", "bad-request", SteadyNow() - start);
    return FilterErrorJson(args.status().message());
  }
  FilterReply reply;
  for (const bool last : {false, true}) {
    absl::StatusOr<Reply> answer = port_->Ask(muster::Filter{args->pod_uid, args->offer}, absl::InfiniteDuration());
    if (!answer.ok()) {
      observer_("filter", "error", SteadyNow() - start);
      return FilterErrorJson(answer.status().message());
    }
    reply = std::get<FilterReply>(*std::move(answer));
    if (last || reply.reason.code != ReasonCode::kUnknownPod || !Announce(body)) break;
  }
  std::string result = WriteFilterResult(reply, *args, body);
  observer_("filter", OutcomeOf(reply), SteadyNow() - start);
  return result;
}

bool Extender::Announce(const std::string& body) {
  if (!announce_) return false;
  MutexLock lock(&document_);
  return announce_(PodOf(body));
}

std::string Extender::WriteFilterResult(const FilterReply& reply, const ExtenderArgs& args, const std::string& body) {
  if (!args.whole_nodes) return FilterResultJson(reply, args, body);
  MutexLock lock(&document_);
  return FilterResultJson(reply, args, body);
}

absl::StatusOr<PreemptionArgs> Extender::ReadPreemption(const std::string& body) {
  MutexLock lock(&document_);
  return ParsePreemptionArgs(body, owner_kinds_);
}

std::string Extender::Prioritize(const std::string& body, int* http_status) {
  const absl::Time start = SteadyNow();
  const absl::StatusOr<ExtenderArgs> args = ParseExtenderArgs(body);
  if (!args.ok()) {
    *http_status = 400;
    observer_("prioritize", "bad-request", SteadyNow() - start);
    return "[]";
  }
  std::string result = PrioritiesJson(*args);
  observer_("prioritize", "answered", SteadyNow() - start);
  return result;
}

std::string Extender::Preempt(const std::string& body, int* http_status) {
  const absl::Time start = SteadyNow();
  absl::StatusOr<PreemptionArgs> args = ReadPreemption(body);
  PreemptReply reply;
  if (!args.ok()) {
    *http_status = 400;
    observer_("preempt", "bad-request", SteadyNow() - start);
    return PreemptionResultJson(reply, {});
  }
  // Without an answer nothing is evicted, which is the safe side. The answer depends on durable records, and a store
  // that accepts nothing must not occupy the server's connections, which filter needs (K-2).
  const absl::StatusOr<Reply> answer =
      port_->Ask(muster::Preempt{args->pod_uid, args->candidates, args->names_gang}, kPreemptPatience);
  if (answer.ok()) reply = std::get<PreemptReply>(*answer);
  observer_("preempt", !answer.ok() ? "error" : reply.nodes.empty() ? "none" : "candidates", SteadyNow() - start);
  return PreemptionResultJson(reply, *args);
}

void Extender::Bind(const httplib::Request& request, httplib::Response& response) {
  const absl::Time start = SteadyNow();
  const ScopedCaller on(CallerOf(request));
  const absl::StatusOr<BindingArgs> args = ParseBindingArgs(request.body);
  if (!args.ok()) {
    response.status = 400;
    response.set_content(BindingResultJson(args.status().message()), kJson);
    observer_("bind", "bad-request", SteadyNow() - start);
    return;
  }
  // Counts the call while any reference to it exists.
  const std::shared_ptr<HeldCall> call(new HeldCall, [this](HeldCall* ended) {
    --held_;
    delete ended;
  });
  ++held_;
  const absl::StatusOr<HoldToken> token =
      port_->Hold(muster::Bind{args->pod_uid, args->node}, [call](const HoldAnswer& answer) {
        MutexLock lock(&call->mutex);
        call->answer = answer;
        call->answered = true;
        call->changed.Signal();
      });
  if (!token.ok()) {
    response.set_content(BindingResultJson(token.status().message()), kJson);
    observer_("bind", "error", SteadyNow() - start);
    return;
  }
  // A handler cannot detect that its client has left; a content provider's sink can. The status line is sent before the
  // decision, therefore every answer is a 200 with the result inside.
  const auto wait = [this, call, uid = args->pod_uid, token = *token, start](size_t, httplib::DataSink& sink) {
    while (true) {
      HoldAnswer answer;
      bool answered = false;
      {
        MutexLock lock(&call->mutex);
        if (!call->answered)
          call->changed.WaitWithTimeout(&call->mutex, std::max(kClientCheckInterval, absl::Seconds(1) * held_.load() /
                                                                                         kMaxClientChecksPerSecond));
        answered = call->answered;
        answer = call->answer;
      }
      if (answered) {
        const std::string body = BindingResultJson(answer.permitted       ? ""
                                                   : answer.reason.none() ? "not permitted"
                                                                          : answer.reason.text);
        sink.write(body.data(), body.size());
        sink.done();
        observer_("bind", answer.permitted ? "bound" : "refused", SteadyNow() - start);
        return true;
      }
      if (sink.is_writable()) continue;
      port_->Announce(CallerGone{uid, token}).IgnoreError();
      observer_("bind", "client-gone", SteadyNow() - start);
      return false;
    }
  };
  response.set_chunked_content_provider(kJson, wait);
}

}  // namespace muster
