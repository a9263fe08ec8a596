// The event service: what Muster did about pods.
#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/event.grpc.pb.h"
#include "service/engine/event_log.h"
#include "service/rpc/mapping.h"
#include "service/rpc/pages.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "service/rpc/stream.h"
#include "service/rpc/stream_notifier.h"
#include "service/rpc/times.h"

namespace muster {
namespace {

v1::Event::Type TypeOf(EventType type) {
  switch (type) {
    case EventType::kBind:
      return v1::Event::TYPE_BIND;
    case EventType::kActivate:
      return v1::Event::TYPE_ACTIVATE;
    case EventType::kTimedOut:
      return v1::Event::TYPE_TIMED_OUT;
    case EventType::kEvict:
      return v1::Event::TYPE_EVICT;
    case EventType::kNote:
      return v1::Event::TYPE_NOTE;
    case EventType::kWarning:
      return v1::Event::TYPE_WARNING;
  }
  return v1::Event::TYPE_UNSPECIFIED;
}

v1::Event ToMessage(const EventRecord& event) {
  v1::Event out;
  out.set_sequence(event.sequence);
  *out.mutable_event_time() = TimestampOfMs(event.unix_ms);
  out.set_type(TypeOf(event.type));
  out.set_namespace_(event.pod.name_space);
  out.set_pod_name(event.pod.name);
  out.set_pod_uid(event.pod.uid);
  out.set_node(event.node);
  FillReason(event.reason, out.mutable_reason());
  return out;
}

// A reader of the log at its own pace. Missed events are counted in the next event that it receives.
class EventReactor final : public StreamReactor<v1::Event> {
 public:
  EventReactor(RpcGate* gate, StreamNotifier* wakes, const v1::WatchEventsRequest& request)
      : StreamReactor(gate), notifier_(wakes), wanted_(request.namespace_()), after_(request.after_sequence()) {}

 protected:
  void OnAdmitted() override {
    if (gate()->options().events == nullptr)
      return Close({grpc::StatusCode::UNIMPLEMENTED, "this server records no events"});
    reader_ = notifier_->Subscribe([handle = handle()] {
      handle->With([](StreamReactor* stream) { static_cast<EventReactor*>(stream)->Fill(); });
    });
    joined_ = true;
    notifier_->NotifyOne(reader_);
  }
  void OnStreamEnd() override {
    if (joined_.exchange(false)) notifier_->Unsubscribe(reader_);
  }
  // Always after OnAdmitted: a message was sent.
  void OnWritten() override {
    const size_t left = waiting();
    if (left == kAhead / 2 || left == 0) notifier_->NotifyOne(reader_);
  }

 private:
  static constexpr size_t kAhead = 64;  // messages in flight to a reader

  // REQUIRES: the handle's lock. Sends until kAhead messages are in flight.
  void Fill() {
    while (waiting() < kAhead) {
      const EventLog::Page page = gate()->options().events->After(after_, kAhead);
      missed_ += page.missed;  // once: the next page begins after them
      // or the number is of an earlier process
      after_ = std::min(std::max<int64_t>(after_, 0) + page.missed, page.last);
      if (page.events.empty()) return;
      for (const auto& event : page.events) {
        after_ = event->sequence;
        if (!wanted_.empty() && event->pod.name_space != wanted_) continue;
        v1::Event message = ToMessage(*event);
        message.set_dropped_events(std::exchange(missed_, 0));
        Send(std::move(message));
      }
    }
  }

  StreamNotifier* const notifier_;
  const std::string wanted_;
  int64_t after_;                  // the last event that was sent or filtered out
  int64_t missed_ = 0;             // not reported yet
  StreamNotifier::Reader reader_;  // set once, before the first message
  std::atomic<bool> joined_{false};
};

grpc::Status List(const EventLog& log, const v1::ListEventsRequest& request, v1::ListEventsResponse* response) {
  Violations violations;
  const PageStart start = ReadPage(request, &violations);
  int64_t after = request.after_sequence();
  if (!start.after.empty() && !absl::SimpleAtoi(start.after, &after)) {
    violations.Add("page_token", "is no token of a page of events; expected next_page_token of the page before");
  }
  if (!violations.none()) return violations.ToStatus();
  const EventLog::Page page = log.After(after);
  response->set_dropped_events(page.missed);
  const v1::Event* last = nullptr;
  for (const auto& event : page.events) {
    if (!request.namespace_().empty() && event->pod.name_space != request.namespace_()) continue;
    if (static_cast<size_t>(response->events_size()) == start.size) {
      response->set_next_page_token(PageToken(absl::StrCat(last->sequence())));
      break;
    }
    *response->add_events() = ToMessage(*event);
    last = &response->events(response->events_size() - 1);
  }
  return grpc::Status::OK;
}

class EventServiceImpl final : public v1::EventService::CallbackService {
 public:
  explicit EventServiceImpl(RpcGate* gate) : gate_(gate) {
    if (EventLog* log = gate_->options().events; log != nullptr) log->SetListener([this] { notifier_.NotifyAll(); });
  }
  ~EventServiceImpl() override {
    if (EventLog* log = gate_->options().events; log != nullptr) log->SetListener(nullptr);
  }

  grpc::ServerUnaryReactor* ListEvents(grpc::CallbackServerContext* context, const v1::ListEventsRequest* request,
                                       v1::ListEventsResponse* response) override {
    return Serve(gate_, context, "ListEvents", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      const EventLog* log = gate_->options().events;
      if (log == nullptr) return finish({grpc::StatusCode::UNIMPLEMENTED, "this server records no events"});
      finish(List(*log, *request, response));
    });
  }
  grpc::ServerWriteReactor<v1::Event>* WatchEvents(grpc::CallbackServerContext* context,
                                                   const v1::WatchEventsRequest* request) override {
    auto* stream = new EventReactor(gate_, &notifier_, *request);
    stream->Begin(context, Role::kReadOnly);
    return stream;
  }

 private:
  RpcGate* const gate_;
  StreamNotifier notifier_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeEventService(RpcGate* gate) { return std::make_unique<EventServiceImpl>(gate); }

}  // namespace muster
