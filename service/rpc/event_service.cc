// What Muster did about pods.
#include <algorithm>
#include <atomic>
#include <utility>

#include "proto/muster/v1/decisions.grpc.pb.h"
#include "service/engine/event_log.h"
#include "service/rpc/door.h"
#include "service/rpc/mapping.h"
#include "service/rpc/services.h"
#include "service/rpc/stream.h"
#include "service/rpc/wakes.h"

namespace muster {
namespace {

v1::Event ToMessage(const EventRecord& event) {
  v1::Event out;
  out.set_sequence(event.sequence);
  out.set_unix_ms(event.unix_ms);
  out.set_type(std::string(event.type));
  out.set_namespace_(event.pod.name_space);
  out.set_pod_name(event.pod.name);
  out.set_pod_uid(event.pod.uid);
  out.set_node(event.node);
  FillReason(event.reason, out.mutable_reason());
  return out;
}

// A reader of the log at its own pace. What it was not quick enough for is counted in the next event that it gets.
class EventReactor final : public StreamReactor<v1::Event> {
 public:
  EventReactor(RpcDoor* door, Wakes* wakes, const v1::WatchEventsRequest& request)
      : StreamReactor(door), wakes_(wakes), wanted_(request.namespace_()), after_(request.after_sequence()) {}

 protected:
  void OnAdmitted() override {
    if (door()->options().events == nullptr) return Close({grpc::StatusCode::UNIMPLEMENTED, "no events are kept here"});
    reader_ = wakes_->Join([handle = handle()] {
      handle->With([](StreamReactor* stream) { static_cast<EventReactor*>(stream)->Fill(); });
    });
    joined_ = true;
    wakes_->Soon(reader_);
  }
  void OnGone() override {
    if (joined_.exchange(false)) wakes_->Leave(reader_);
  }
  // Only after OnAdmitted: something was sent.
  void OnWritten() override {
    const size_t left = waiting();
    if (left == kAhead / 2 || left == 0) wakes_->Soon(reader_);
  }

 private:
  static constexpr size_t kAhead = 64;  // messages on their way to a reader

  // Under the handle's lock. Sends on until enough is on its way.
  void Fill() {
    while (waiting() < kAhead) {
      const EventLog::Page page = door()->options().events->After(after_, kAhead);
      missed_ += page.missed;  // once: the next page begins behind them
      after_ = std::min(std::max<int64_t>(after_, 0) + page.missed, page.last);  // or is of another life
      if (page.events.empty()) return;
      for (const auto& event : page.events) {
        after_ = event->sequence;
        if (!wanted_.empty() && event->pod.name_space != wanted_) continue;
        v1::Event message = ToMessage(*event);
        message.set_missed(std::exchange(missed_, 0));
        Send(std::move(message));
      }
    }
  }

  Wakes* const wakes_;
  const std::string wanted_;
  int64_t after_;         // the last that was sent, or was not wanted
  int64_t missed_ = 0;    // not told yet
  Wakes::Reader reader_;  // set once, before anything is sent
  std::atomic<bool> joined_{false};
};

class EventServiceImpl final : public v1::EventService::CallbackService {
 public:
  explicit EventServiceImpl(RpcDoor* door) : door_(door) {
    if (EventLog* log = door_->options().events; log != nullptr) log->SetNews([this] { wakes_.News(); });
  }
  ~EventServiceImpl() override {
    if (EventLog* log = door_->options().events; log != nullptr) log->SetNews(nullptr);
  }

  grpc::ServerUnaryReactor* ListEvents(grpc::CallbackServerContext* context, const v1::ListEventsRequest* request,
                                       v1::ListEventsResponse* response) override {
    return Serve(door_, context, "ListEvents", Role::kReadOnly,
                 [=, this](const std::string&, const FinishCall& finish) {
                   const EventLog* log = door_->options().events;
                   if (log == nullptr) return finish({grpc::StatusCode::UNIMPLEMENTED, "no events are kept here"});
                   const EventLog::Page page = log->After(request->after_sequence());
                   response->set_missed(page.missed);
                   for (const auto& event : page.events) {
                     if (request->namespace_().empty() || event->pod.name_space == request->namespace_()) {
                       *response->add_events() = ToMessage(*event);
                     }
                   }
                   finish(grpc::Status::OK);
                 });
  }
  grpc::ServerWriteReactor<v1::Event>* WatchEvents(grpc::CallbackServerContext* context,
                                                   const v1::WatchEventsRequest* request) override {
    auto* stream = new EventReactor(door_, &wakes_, *request);
    stream->Begin(context, Role::kReadOnly);
    return stream;
  }

 private:
  RpcDoor* const door_;
  Wakes wakes_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeEventService(RpcDoor* door) { return std::make_unique<EventServiceImpl>(door); }

}  // namespace muster
