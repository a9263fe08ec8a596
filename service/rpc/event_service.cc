// What Muster did about pods.
#include <atomic>
#include <utility>

#include "proto/muster/v1/decisions.grpc.pb.h"
#include "service/engine/event_log.h"
#include "service/rpc/door.h"
#include "service/rpc/mapping.h"
#include "service/rpc/services.h"
#include "service/rpc/stream.h"

namespace muster {
namespace {

using Events = std::vector<std::shared_ptr<const EventRecord>>;

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

class EventReactor final : public StreamReactor<v1::Event> {
 public:
  EventReactor(RpcDoor* door, const v1::WatchEventsRequest& request)
      : StreamReactor(door), wanted_(request.namespace_()), after_(request.after_sequence()) {}

 protected:
  void OnAdmitted() override {
    EventLog* log = door()->options().events;
    if (log == nullptr) return Close({grpc::StatusCode::UNIMPLEMENTED, "no events are kept here"});
    int id = 0;
    const EventLog::Page page = log->Listen(
        after_,
        [handle = handle()](const Events& events) {
          handle->With([&](StreamReactor* stream) { static_cast<EventReactor*>(stream)->Add(events); });
        },
        &id);
    listener_ = id;
    missed_ = page.missed;
    Add(page.events);
  }
  void OnGone() override {
    if (const int listener = listener_.exchange(0); listener != 0) door()->options().events->Unlisten(listener);
  }

 private:
  void Add(const Events& events) {
    for (const auto& event : events) {
      if (!wanted_.empty() && event->pod.name_space != wanted_) continue;
      v1::Event message = ToMessage(*event);
      message.set_missed(std::exchange(missed_, 0));
      Send(std::move(message));
    }
    if (waiting() > EventLog::kKept) {
      DropWaiting();
      Close(
          {grpc::StatusCode::ABORTED, "events come faster than they are read; go on after the last sequence you have"});
    }
  }

  const std::string wanted_;
  const int64_t after_;
  int64_t missed_ = 0;  // not told yet
  std::atomic<int> listener_{0};
};

class EventServiceImpl final : public v1::EventService::CallbackService {
 public:
  explicit EventServiceImpl(RpcDoor* door) : door_(door) {}

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
    auto* stream = new EventReactor(door_, *request);
    stream->Begin(context, Role::kReadOnly);
    return stream;
  }

 private:
  RpcDoor* const door_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeEventService(RpcDoor* door) { return std::make_unique<EventServiceImpl>(door); }

}  // namespace muster
