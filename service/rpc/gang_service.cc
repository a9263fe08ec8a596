// The gang and node services: declare, list, watch, explain.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/gang.grpc.pb.h"
#include "muster/v1/node.grpc.pb.h"
#include "service/rpc/mapping.h"
#include "service/rpc/pages.h"
#include "service/rpc/reading.h"
#include "service/rpc/rpc_gate.h"
#include "service/rpc/services.h"
#include "service/rpc/times.h"
#include "service/rpc/watch.h"
#include "support/clock.h"

namespace muster {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

grpc::Status Missing(const char* field) {
  Violations violations;
  violations.Add(field, "is empty; expected a name");
  return violations.ToStatus();
}

// Reads on the engine's thread in steps. Then calls `end` on a gRPC thread, or finishes with the error. `why`: the
// answer is an explanation, on which no caller builds (ReadLatest).
void ReadInSteps(Engine* engine, bool why, const FinishCall& finish, Engine::ReadStep step, std::function<void()> end) {
  const auto done = [finish, end = std::move(end)](const absl::Status& read) {
    if (!read.ok()) return finish(ToGrpc(read));
    OnGrpcThread(end);
  };
  if (why) return engine->ReadLatest(std::move(step), done);
  engine->ReadDurable(std::move(step), done);
}

// Limits for one step.
constexpr int32_t kPodsAtOnce = 512;
constexpr int32_t kGangsAtOnce = 2'048;

// Reads why a gang waits: what holds the capacity that it lacks, and which gangs are before it.
class ExplanationRead {
 public:
  // Returns false if another step is needed.
  bool Step(const Reader& reader, const Gang& gang) {
    if (!holders_seen_) {
      holders_seen_ = reader.queues.ViewHolders(gang, kPodsAtOnce, &holders_read_, &holders_);
      if (!holders_seen_) return false;
      FindUnconfirmedSubmissions(reader);
      since_ms_ = reader.gangs.WaitsSince(gang);
      return false;
    }
    return reader.queues.ViewPosition(&gang, kNoQueue, kGangsAtOnce, &line_read_, &line_);
  }
  void Give(GangView* view) {
    view->waits_since_ms = since_ms_;
    view->holders = std::move(holders_);
    view->queue_position = std::move(line_);
  }
  [[nodiscard]] const Unconfirmed& unconfirmed() const { return unconfirmed_; }

 private:
  void FindUnconfirmedSubmissions(const Reader& reader) {
    for (const HolderView& holder : holders_.holders) {
      const Gang* gang = holder.promised > 0 ? reader.FindGang(holder.gang) : nullptr;
      const Plan* plan = gang != nullptr && gang->submitted ? reader.FindPlan(*gang) : nullptr;
      if (plan != nullptr && plan->future_slots == 0) unconfirmed_.insert(holder.gang);
    }
  }

  bool holders_seen_ = false;
  int64_t since_ms_ = kNever;
  Unconfirmed unconfirmed_;
  HoldersCursor holders_read_;
  HoldersView holders_;
  QueuePositionCursor line_read_;
  QueuePositionView line_;
};

// Reads a gang with its members on the engine's thread, in order with commands. It reads in parts, so that a large gang
// does not delay decisions.
class GangReading : public std::enable_shared_from_this<GangReading> {
 public:
  using Done = std::function<void(const GangView&, const Unconfirmed&)>;

  // Calls `done`, then `finish`, on a gRPC thread. `why`: the gang is to be explained.
  GangReading(Engine* engine, std::string key, bool why, FinishCall finish, Done done)
      : engine_(engine), key_(std::move(key)), with_why_(why), finish_(std::move(finish)), done_(std::move(done)) {}

  void Begin() {
    members_.clear();
    read_ = {};
    members_read_ = false;
    why_ = ExplanationRead();
    if (!with_why_) return ReadOn();
    engine_->AskAsync(RefreshExplanation{key_}, std::chrono::steady_clock::time_point::max(),
                      [self = shared_from_this()](const absl::StatusOr<Reply>&) { self->ReadOn(); });
  }

 private:
  static constexpr size_t kMembersAtOnce = 256;
  static constexpr int kTries = 5;

  void ReadOn() {
    ReadInSteps(
        engine_, with_why_, finish_,
        [self = shared_from_this()](const Machine& machine) { return self->Step(machine.reader()); },
        [self = shared_from_this()] { self->End(); });
  }

  bool Step(const Reader& reader) {
    const Gang* gang = reader.FindGang(key_);
    found_ = gang != nullptr;
    if (!found_) return true;
    if (!members_read_) {
      members_read_ = reader.gangs.ViewMembers(*gang, kMembersAtOnce, &read_, &members_);
      all_ = static_cast<size_t>(gang->children());
      return members_read_ && !with_why_ ? See(reader, *gang) : false;
    }
    if (!why_.Step(reader, *gang)) return false;
    return See(reader, *gang);
  }
  bool See(const Reader& reader, const Gang& gang) {
    view_ = reader.gangs.View(gang, /*with_members=*/false);
    if (with_why_) view_.waits = reader.gangs.ViewWaitingMembers(gang);
    return true;
  }
  void End() {
    if (!found_) return finish_(ToGrpc(absl::NotFoundError(absl::StrCat("there is no gang ", key_))));
    KeepLast();
    // Members that changed their state meanwhile may be missing.
    if (members_.size() != all_ && ++tries_ < kTries) return Begin();
    view_.members = std::move(members_);
    why_.Give(&view_);
    done_(view_, why_.unconfirmed());
    finish_(grpc::Status::OK);
  }
  // If a member was read twice, keeps the later result.
  void KeepLast() {
    absl::flat_hash_set<absl::string_view> seen;
    std::vector<MemberView> kept;
    kept.reserve(members_.size());
    for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
      if (seen.insert(member->uid).second) kept.push_back(*member);
    }
    members_.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  }

  Engine* const engine_;
  const std::string key_;
  const bool with_why_;
  const FinishCall finish_;
  const Done done_;
  bool found_ = false;
  int tries_ = 0;
  size_t all_ = 0;
  bool members_read_ = false;
  ExplanationRead why_;
  MembersCursor read_;
  std::vector<MemberView> members_;
  GangView view_;
};

void ReadGang(Engine* engine, const std::string& name_space, const std::string& name, bool why,
              const FinishCall& finish, const GangReading::Done& done) {
  if (name_space.empty()) return finish(Missing("namespace"));
  if (name.empty()) return finish(Missing("name"));
  std::make_shared<GangReading>(engine, absl::StrCat(name_space, "/", name), why, finish, done)->Begin();
}

// Finds a pod on the engine's thread, in parts like a gang. Pods are indexed by UID; a search by name visits all of
// them.
class PodReading : public std::enable_shared_from_this<PodReading> {
 public:
  PodReading(Engine* engine, const v1::ExplainPodRequest& request, FinishCall finish, v1::ExplainPodResponse* response)
      : engine_(engine),
        uid_(request.uid()),
        name_space_(request.namespace_().empty() ? "default" : request.namespace_()),
        name_(request.name()),
        finish_(std::move(finish)),
        response_(response) {}

  void Begin() {
    ReadInSteps(
        engine_, /*why=*/true, finish_,
        [self = shared_from_this()](const Machine& machine) { return self->Step(machine.reader()); },
        [self = shared_from_this()] { self->End(); });
  }

 private:
  bool Step(const Reader& reader) {
    const std::string& uid = uid_.empty() ? found_ : uid_;
    const Pod* pod =
        uid.empty() ? reader.gangs.FindPodNamed(name_space_, name_, kPodsAtOnce, &from_) : reader.FindPod(uid);
    if (pod == nullptr) return !uid.empty() || from_ >= reader.gangs.pod_limit();
    found_ = pod->facts.uid;
    if (pod->gang != nullptr && !why_.Step(reader, *pod->gang)) return false;
    view_ = reader.gangs.ViewPod(*pod);
    why_.Give(&view_->gang);
    return true;
  }
  void End() {
    if (!view_.has_value()) {
      const std::string what = uid_.empty() ? absl::StrCat(name_space_, "/", name_) : absl::StrCat("with uid ", uid_);
      return finish_(ToGrpc(absl::NotFoundError(absl::StrCat("there is no pod ", what))));
    }
    response_->set_text(ExplainText(*view_, ProcessClock().NowMs(), why_.unconfirmed()));
    response_->set_namespace_(view_->name_space);
    *response_->mutable_pod() = ToMessage(view_->pod);
    if (!view_->would_help.empty()) response_->mutable_pod()->mutable_reason()->set_suggestion(view_->would_help);
    if (view_->in_gang) *response_->mutable_gang() = ToMessage(view_->gang);
    finish_(grpc::Status::OK);
  }

  Engine* const engine_;
  const std::string uid_;
  const std::string name_space_;
  const std::string name_;
  const FinishCall finish_;
  v1::ExplainPodResponse* const response_;
  PodId from_ = 0;
  std::string found_;  // the UID of the pod with that name
  ExplanationRead why_;
  std::optional<PodView> view_;
};

// The part of a publication for watches.
template <typename Event, typename Changes>
typename WatchHub<Event>::Part PartOf(const std::shared_ptr<const Changes>& changes) {
  const auto translate = [changes] {
    std::vector<typename WatchHub<Event>::NamedEvent> out;
    out.reserve(changes->size());
    for (const auto& [name, view] : *changes) {
      auto& event = out.emplace_back();
      event.name = name;
      if (view == nullptr) {
        event.event.set_removed(name);
      } else {
        *event.event.mutable_upserted() = ToMessage(*view);
      }
    }
    return out;
  };
  return {changes->size(), translate};
}

const std::string& KeyOf(const GangView& gang) { return gang.key; }
const std::string& KeyOf(const NodeView& node) { return node.name; }

// Fills a page with the objects of `map` after `begin` and after the page before, until one is not `in_list`.
template <typename Map, typename Request, typename InList, typename Objects>
grpc::Status ListPage(const Map& map, const Request& request, const std::string& begin, const InList& in_list,
                      Objects* objects, std::string* next_page_token) {
  Violations violations;
  const PageStart page = ReadPage(request, &violations);
  if (!violations.none()) return violations.ToStatus();
  std::string last = std::max(begin, page.after);
  for (auto object = map.After(last); object != nullptr && in_list(*object); object = map.After(last)) {
    if (static_cast<size_t>(objects->size()) == page.size) {
      *next_page_token = PageToken(last);
      break;
    }
    *objects->Add() = ToMessage(*object);
    last = KeyOf(*object);
  }
  return grpc::Status::OK;
}

bool InNamespace(const std::string& wanted, const std::string& name_space) {
  return wanted.empty() || wanted == name_space;
}

class GangServiceImpl final : public v1::GangService::CallbackService {
 public:
  explicit GangServiceImpl(RpcGate* gate)
      : gate_(gate),
        watches_(&gate->engine(), [](const ViewChange& change) { return PartOf<v1::GangEvent>(change.gangs); }) {}

  ServerUnaryReactor* CreateGang(CallbackServerContext* context, const v1::CreateGangRequest* request,
                                 v1::Gang* response) override {
    return ServeIdempotent(gate_, context, "CreateGang", request, response, [=](const IdempotentCall& call) {
      UpsertGangObject create;
      create.mode = UpsertGangObject::Mode::kCreate;
      Declare(request->gang(), std::move(create), response, call);
    });
  }
  ServerUnaryReactor* UpdateGang(CallbackServerContext* context, const v1::UpdateGangRequest* request,
                                 v1::Gang* response) override {
    return ServeIdempotent(gate_, context, "UpdateGang", request, response, [=](const IdempotentCall& call) {
      Violations violations;
      UpsertGangObject update;
      update.mode = UpsertGangObject::Mode::kReplace;
      update.fields = ReadGangMask(request->update_mask(), "update_mask", &violations);
      if (!violations.none()) return call.Finish(violations.ToStatus());
      Declare(MaskGang(request->gang(), request->update_mask()), std::move(update), response, call);
    });
  }
  ServerUnaryReactor* DeleteGang(CallbackServerContext* context, const v1::DeleteGangRequest* request,
                                 v1::DeleteGangResponse* response) override {
    return ServeIdempotent(gate_, context, "DeleteGang", request, response, [=](const IdempotentCall& call) {
      v1::GangSpec named;
      named.set_namespace_(request->namespace_());
      named.set_name(request->name());
      Violations violations;
      RemoveGangObject remove{GangDialect::kApi, "", "", /*must_exist=*/true};
      ReadGangName(named, "", &violations, &remove.name_space, &remove.name);
      if (!violations.none()) return call.Finish(violations.ToStatus());
      call.Ask(std::move(remove));
    });
  }
  ServerUnaryReactor* GetGang(CallbackServerContext* context, const v1::GetGangRequest* request,
                              v1::Gang* response) override {
    return Serve(gate_, context, "GetGang", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      ReadGang(&gate_->engine(), request->namespace_(), request->name(), /*why=*/false, finish,
               [response](const GangView& view, const Unconfirmed&) { *response = ToMessage(view); });
    });
  }
  ServerUnaryReactor* ListGangs(CallbackServerContext* context, const v1::ListGangsRequest* request,
                                v1::ListGangsResponse* response) override {
    return Serve(gate_, context, "ListGangs", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      const std::string& wanted = request->namespace_();
      const auto in_list = [&wanted](const GangView& gang) { return InNamespace(wanted, gang.name_space); };
      const std::string begin = wanted.empty() ? "" : wanted + "/";
      finish(ListPage(gate_->engine().view()->gangs, *request, begin, in_list, response->mutable_gangs(),
                      response->mutable_next_page_token()));
    });
  }
  ServerUnaryReactor* ExplainGang(CallbackServerContext* context, const v1::ExplainGangRequest* request,
                                  v1::ExplainGangResponse* response) override {
    return Serve(gate_, context, "ExplainGang", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      ReadGang(&gate_->engine(), request->namespace_(), request->name(), /*why=*/true, finish,
               [response](const GangView& view, const Unconfirmed& unconfirmed) {
                 response->set_text(ExplainText(view, ProcessClock().NowMs(), unconfirmed));
                 *response->mutable_gang() = ToMessage(view);
                 if (Waits(view) && view.waits_since_ms != kNever) {
                   *response->mutable_wait_start_time() = TimestampOfMs(WaitsSince(view));
                 }
                 response->set_queue_position(view.queue_position.place);
                 response->set_queue_length(view.queue_position.places);
                 for (const QueuedGangView& each : view.queue_position.first) *response->add_ahead() = ToMessage(each);
               });
    });
  }
  ServerUnaryReactor* ExplainPod(CallbackServerContext* context, const v1::ExplainPodRequest* request,
                                 v1::ExplainPodResponse* response) override {
    return Serve(gate_, context, "ExplainPod", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      if (request->name().empty() && request->uid().empty()) return finish(Missing("name"));
      std::make_shared<PodReading>(&gate_->engine(), *request, finish, response)->Begin();
    });
  }
  grpc::ServerWriteReactor<v1::GangEvent>* WatchGangs(CallbackServerContext* context,
                                                      const v1::WatchGangsRequest* request) override {
    // Copy: the request is destroyed before the stream ends.
    const auto of_name_space = [wanted = request->namespace_()](const std::string& key) {
      return InNamespace(wanted, key.substr(0, key.find('/')));
    };
    const auto open = [wanted = request->namespace_()](const ReadView& view) {
      return [wanted, gangs = view.gangs](std::string* name) -> std::optional<v1::GangEvent> {
        if (name->empty() && !wanted.empty()) *name = wanted + "/";
        const auto gang = gangs.After(*name);
        if (gang == nullptr || !InNamespace(wanted, gang->name_space)) return std::nullopt;
        *name = gang->key;
        v1::GangEvent event;
        *event.mutable_upserted() = ToMessage(*gang);
        return event;
      };
    };
    auto* watch = new WatchReactor<v1::GangEvent>(gate_, &watches_, open, of_name_space);
    watch->Begin(context, Role::kReadOnly);
    return watch;
  }

 private:
  static void Declare(const v1::GangSpec& gang, UpsertGangObject upsert, v1::Gang* response,
                      const IdempotentCall& call) {
    Violations violations;
    upsert.object.dialect = GangDialect::kApi;
    upsert.object.created_ms = ProcessClock().NowMs();
    ReadGangName(gang, "gang", &violations, &upsert.object.name_space, &upsert.object.name);
    ReadDeclaration(gang, "gang", &violations, &upsert.object.declaration.Mutable());
    const std::string key = absl::StrCat(upsert.object.name_space, "/", upsert.object.name);
    CheckGroup(*upsert.object.declaration, key, "gang", &violations);
    if (!violations.none()) return call.Finish(violations.ToStatus());
    call.Ask(std::move(upsert), [key, response](const Machine& machine, const Reply&) {
      const Gang* declared = machine.reader().FindGang(key);
      if (declared != nullptr) *response = ToMessage(machine.reader().gangs.View(*declared, /*with_members=*/false));
    });
  }

  RpcGate* const gate_;
  WatchHub<v1::GangEvent> watches_;
};

class NodeServiceImpl final : public v1::NodeService::CallbackService {
 public:
  explicit NodeServiceImpl(RpcGate* gate)
      : gate_(gate),
        watches_(&gate->engine(), [](const ViewChange& change) { return PartOf<v1::NodeEvent>(change.nodes); }) {}

  ServerUnaryReactor* GetNode(CallbackServerContext* context, const v1::GetNodeRequest* request,
                              v1::Node* response) override {
    return Serve(gate_, context, "GetNode", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      if (request->name().empty()) return finish(Missing("name"));
      const auto node = gate_->engine().view()->nodes.Find(request->name());
      if (node == nullptr) {
        return finish(ToGrpc(absl::NotFoundError(absl::StrCat("there is no node ", request->name()))));
      }
      *response = ToMessage(*node);
      finish(grpc::Status::OK);
    });
  }
  ServerUnaryReactor* ListNodes(CallbackServerContext* context, const v1::ListNodesRequest* request,
                                v1::ListNodesResponse* response) override {
    return Serve(gate_, context, "ListNodes", Role::kReadOnly, [=, this](const RpcCaller&, const FinishCall& finish) {
      const auto every = [](const NodeView&) { return true; };
      finish(ListPage(gate_->engine().view()->nodes, *request, "", every, response->mutable_nodes(),
                      response->mutable_next_page_token()));
    });
  }
  grpc::ServerWriteReactor<v1::NodeEvent>* WatchNodes(CallbackServerContext* context,
                                                      const v1::WatchNodesRequest*) override {
    const auto open = [](const ReadView& view) {
      return [nodes = view.nodes](std::string* name) -> std::optional<v1::NodeEvent> {
        const auto node = nodes.After(*name);
        if (node == nullptr) return std::nullopt;
        *name = node->name;
        v1::NodeEvent event;
        *event.mutable_upserted() = ToMessage(*node);
        return event;
      };
    };
    auto* watch = new WatchReactor<v1::NodeEvent>(gate_, &watches_, open, [](const std::string&) { return true; });
    watch->Begin(context, Role::kReadOnly);
    return watch;
  }

 private:
  RpcGate* const gate_;
  WatchHub<v1::NodeEvent> watches_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGangService(RpcGate* gate) { return std::make_unique<GangServiceImpl>(gate); }
std::unique_ptr<grpc::Service> MakeNodeService(RpcGate* gate) { return std::make_unique<NodeServiceImpl>(gate); }

}  // namespace muster
