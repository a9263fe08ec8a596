// Gangs and nodes: declared, listed, watched, explained.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/muster/v1/muster.grpc.pb.h"
#include "service/rpc/door.h"
#include "service/rpc/mapping.h"
#include "service/rpc/reading.h"
#include "service/rpc/services.h"
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

// Reads on the engine's thread in steps, then goes on with `end` on one of gRPC's threads, or answers why not. `why`:
// it explains, and nobody builds on it.
void ReadInSteps(Engine* engine, bool why, const FinishCall& finish, Engine::ReadStep step, std::function<void()> end) {
  const auto done = [finish, end = std::move(end)](const absl::Status& read) {
    if (!read.ok()) return finish(ToGrpc(read));
    OnGrpcThread(end);
  };
  if (why) return engine->Look(std::move(step), done);
  engine->Read(std::move(step), done);
}

// Looked at in one step.
constexpr int32_t kPodsAtOnce = 512;
constexpr int32_t kGangsAtOnce = 2'048;

// Why a gang waits: who has the room that it lacks, and who is before it.
class WhyReading {
 public:
  // False: there is more to read, in another step.
  bool Step(const Machine& machine, const Gang& gang) {
    if (!holders_seen_) {
      holders_seen_ = machine.ViewHolders(gang, kPodsAtOnce, &holders_read_, &holders_);
      if (!holders_seen_) return false;
      FindUnconfirmed(machine);
      since_ms_ = machine.WaitsSince(gang);
      return false;
    }
    return machine.ViewLine(&gang, kNoQueue, kGangsAtOnce, &line_read_, &line_);
  }
  void Give(GangView* view) {
    view->waits_since_ms = since_ms_;
    view->holders = std::move(holders_);
    view->line = std::move(line_);
  }
  [[nodiscard]] const Unconfirmed& unconfirmed() const { return unconfirmed_; }

 private:
  void FindUnconfirmed(const Machine& machine) {
    for (const HolderView& holder : holders_.holders) {
      const Gang* gang = holder.promised > 0 ? machine.FindGang(holder.gang) : nullptr;
      const Plan* plan = gang != nullptr && gang->submitted ? machine.plans().Of(*gang) : nullptr;
      if (plan != nullptr && plan->to_come == 0) unconfirmed_.insert(holder.gang);
    }
  }

  bool holders_seen_ = false;
  int64_t since_ms_ = kNever;
  Unconfirmed unconfirmed_;
  HoldersRead holders_read_;
  HoldersView holders_;
  LineRead line_read_;
  LineView line_;
};

// A gang with its members, read on the engine's thread in order with commands, a part at a time, so that a large one
// keeps no decision waiting.
class GangReading : public std::enable_shared_from_this<GangReading> {
 public:
  using Done = std::function<void(const GangView&, const Unconfirmed&)>;

  // `done`, then `finish`, on one of gRPC's threads. `why`: it is to be explained.
  GangReading(Engine* engine, std::string key, bool why, FinishCall finish, Done done)
      : engine_(engine), key_(std::move(key)), with_why_(why), finish_(std::move(finish)), done_(std::move(done)) {}

  void Begin() {
    members_.clear();
    read_ = {};
    members_read_ = false;
    why_ = WhyReading();
    if (!with_why_) return ReadOn();
    engine_->AskAsync(LookAgain{key_}, std::chrono::steady_clock::time_point::max(),
                      [self = shared_from_this()](const absl::StatusOr<Reply>&) { self->ReadOn(); });
  }

 private:
  static constexpr size_t kMembersAtOnce = 256;
  static constexpr int kTries = 5;

  void ReadOn() {
    ReadInSteps(
        engine_, with_why_, finish_,
        [self = shared_from_this()](const Machine& machine) { return self->Step(machine); },
        [self = shared_from_this()] { self->End(); });
  }

  bool Step(const Machine& machine) {
    const Gang* gang = machine.FindGang(key_);
    found_ = gang != nullptr;
    if (!found_) return true;
    if (!members_read_) {
      members_read_ = machine.ViewMembers(*gang, kMembersAtOnce, &read_, &members_);
      all_ = static_cast<size_t>(gang->children());
      return members_read_ && !with_why_ ? See(machine, *gang) : false;
    }
    if (!why_.Step(machine, *gang)) return false;
    return See(machine, *gang);
  }
  bool See(const Machine& machine, const Gang& gang) {
    view_ = machine.ViewGang(gang, /*with_members=*/false);
    return true;
  }
  void End() {
    if (!found_) return finish_(ToGrpc(absl::NotFoundError(absl::StrCat("there is no gang ", key_))));
    KeepLast();
    // Who changed its state meanwhile may be missing.
    if (members_.size() != all_ && ++tries_ < kTries) return Begin();
    view_.members = std::move(members_);
    why_.Give(&view_);
    done_(view_, why_.unconfirmed());
    finish_(grpc::Status::OK);
  }
  // Of a member that was read twice, what was read later.
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
  WhyReading why_;
  MembersRead read_;
  std::vector<MemberView> members_;
  GangView view_;
};

void ReadGang(Engine* engine, const std::string& name_space, const std::string& name, bool why,
              const FinishCall& finish, const GangReading::Done& done) {
  if (name_space.empty()) return finish(Missing("namespace"));
  if (name.empty()) return finish(Missing("name"));
  std::make_shared<GangReading>(engine, absl::StrCat(name_space, "/", name), why, finish, done)->Begin();
}

// A pod, looked for on the engine's thread as a gang is read. Pods are known by their UIDs: a name is looked for among
// all of them, some at a time.
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
        [self = shared_from_this()](const Machine& machine) { return self->Step(machine); },
        [self = shared_from_this()] { self->End(); });
  }

 private:
  bool Step(const Machine& machine) {
    const std::string& uid = uid_.empty() ? found_ : uid_;
    const Pod* pod = uid.empty() ? machine.FindPodNamed(name_space_, name_, kPodsAtOnce, &from_) : machine.FindPod(uid);
    if (pod == nullptr) return !uid.empty() || from_ >= machine.pod_limit();
    found_ = pod->facts.uid;
    if (pod->gang != nullptr && !why_.Step(machine, *pod->gang)) return false;
    view_ = machine.ViewPod(*pod);
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
  std::string found_;  // the UID of the pod of that name
  WhyReading why_;
  std::optional<PodView> view_;
};

// What changed, for those who watch.
template <typename Event, typename Changes>
typename WatchHub<Event>::Part PartOf(const std::shared_ptr<const Changes>& changes) {
  const auto tell = [changes] {
    std::vector<typename WatchHub<Event>::Told> out;
    out.reserve(changes->size());
    for (const auto& [name, view] : *changes) {
      auto& told = out.emplace_back();
      told.name = name;
      if (view == nullptr) {
        told.event.set_removed(name);
      } else {
        *told.event.mutable_upserted() = ToMessage(*view);
      }
    }
    return out;
  };
  return {changes->size(), tell};
}

bool InNamespace(const std::string& wanted, const std::string& name_space) {
  return wanted.empty() || wanted == name_space;
}

class GangServiceImpl final : public v1::GangService::CallbackService {
 public:
  explicit GangServiceImpl(RpcDoor* door)
      : door_(door),
        watches_(&door->engine(), [](const ViewChange& change) { return PartOf<v1::GangEvent>(change.gangs); }) {}

  ServerUnaryReactor* CreateGang(CallbackServerContext* context, const v1::CreateGangRequest* request,
                                 v1::Gang* response) override {
    return ServeOnce(door_, context, "CreateGang", request, response, [=](const OnceCall& call) {
      Declare(request->gang(), UpsertGangObject::Mode::kCreate, response, call);
    });
  }
  ServerUnaryReactor* UpdateGang(CallbackServerContext* context, const v1::UpdateGangRequest* request,
                                 v1::Gang* response) override {
    return ServeOnce(door_, context, "UpdateGang", request, response, [=](const OnceCall& call) {
      Declare(request->gang(), UpsertGangObject::Mode::kReplace, response, call);
    });
  }
  ServerUnaryReactor* DeleteGang(CallbackServerContext* context, const v1::DeleteGangRequest* request,
                                 v1::DeleteGangResponse* response) override {
    return ServeOnce(door_, context, "DeleteGang", request, response, [=](const OnceCall& call) {
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
    return Serve(door_, context, "GetGang", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      ReadGang(&door_->engine(), request->namespace_(), request->name(), /*why=*/false, finish,
               [response](const GangView& view, const Unconfirmed&) { *response = ToMessage(view); });
    });
  }
  ServerUnaryReactor* ListGangs(CallbackServerContext* context, const v1::ListGangsRequest* request,
                                v1::ListGangsResponse* response) override {
    return Serve(door_, context, "ListGangs", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      door_->engine().view()->gangs.ForEach([&](const auto& gang) {
        if (InNamespace(request->namespace_(), gang->name_space)) *response->add_gangs() = ToMessage(*gang);
      });
      finish(grpc::Status::OK);
    });
  }
  ServerUnaryReactor* ExplainGang(CallbackServerContext* context, const v1::ExplainGangRequest* request,
                                  v1::ExplainGangResponse* response) override {
    return Serve(door_, context, "ExplainGang", Role::kReadOnly,
                 [=, this](const std::string&, const FinishCall& finish) {
                   ReadGang(&door_->engine(), request->namespace_(), request->name(), /*why=*/true, finish,
                            [response](const GangView& view, const Unconfirmed& unconfirmed) {
                              response->set_text(ExplainText(view, ProcessClock().NowMs(), unconfirmed));
                              *response->mutable_gang() = ToMessage(view);
                              if (Waits(view) && view.waits_since_ms != kNever) {
                                response->set_waits_since_unix_ms(WaitsSince(view));
                              }
                              response->set_place(view.line.place);
                              response->set_places(view.line.places);
                              for (const InLineView& each : view.line.first) *response->add_ahead() = ToMessage(each);
                            });
                 });
  }
  ServerUnaryReactor* ExplainPod(CallbackServerContext* context, const v1::ExplainPodRequest* request,
                                 v1::ExplainPodResponse* response) override {
    return Serve(door_, context, "ExplainPod", Role::kReadOnly,
                 [=, this](const std::string&, const FinishCall& finish) {
                   if (request->name().empty() && request->uid().empty()) return finish(Missing("name"));
                   std::make_shared<PodReading>(&door_->engine(), *request, finish, response)->Begin();
                 });
  }
  grpc::ServerWriteReactor<v1::GangEvent>* WatchGangs(CallbackServerContext* context,
                                                      const v1::WatchGangsRequest* request) override {
    // The request is gone before the stream ends.
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
    auto* watch = new WatchReactor<v1::GangEvent>(door_, &watches_, open, of_name_space);
    watch->Begin(context, Role::kReadOnly);
    return watch;
  }

 private:
  static void Declare(const v1::GangSpec& gang, UpsertGangObject::Mode mode, v1::Gang* response, const OnceCall& call) {
    Violations violations;
    UpsertGangObject upsert;
    upsert.mode = mode;
    upsert.object.dialect = GangDialect::kApi;
    upsert.object.created_ms = ProcessClock().NowMs();
    ReadGangName(gang, "gang", &violations, &upsert.object.name_space, &upsert.object.name);
    ReadDeclaration(gang, "gang", &violations, &upsert.object.declaration.Own());
    const std::string key = absl::StrCat(upsert.object.name_space, "/", upsert.object.name);
    CheckGroup(*upsert.object.declaration, key, "gang", &violations);
    if (!violations.none()) return call.Finish(violations.ToStatus());
    call.Ask(std::move(upsert), [key, response](const Machine& machine, const Reply&) {
      const Gang* declared = machine.FindGang(key);
      if (declared != nullptr) *response = ToMessage(machine.ViewGang(*declared, /*with_members=*/false));
    });
  }

  RpcDoor* const door_;
  WatchHub<v1::GangEvent> watches_;
};

class NodeServiceImpl final : public v1::NodeService::CallbackService {
 public:
  explicit NodeServiceImpl(RpcDoor* door)
      : door_(door),
        watches_(&door->engine(), [](const ViewChange& change) { return PartOf<v1::NodeEvent>(change.nodes); }) {}

  ServerUnaryReactor* GetNode(CallbackServerContext* context, const v1::GetNodeRequest* request,
                              v1::Node* response) override {
    return Serve(door_, context, "GetNode", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      if (request->name().empty()) return finish(Missing("name"));
      const auto node = door_->engine().view()->nodes.Find(request->name());
      if (node == nullptr) {
        return finish(ToGrpc(absl::NotFoundError(absl::StrCat("there is no node ", request->name()))));
      }
      *response = ToMessage(*node);
      finish(grpc::Status::OK);
    });
  }
  ServerUnaryReactor* ListNodes(CallbackServerContext* context, const v1::ListNodesRequest*,
                                v1::ListNodesResponse* response) override {
    return Serve(door_, context, "ListNodes", Role::kReadOnly, [=, this](const std::string&, const FinishCall& finish) {
      door_->engine().view()->nodes.ForEach([&](const auto& node) { *response->add_nodes() = ToMessage(*node); });
      finish(grpc::Status::OK);
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
    auto* watch = new WatchReactor<v1::NodeEvent>(door_, &watches_, open, [](const std::string&) { return true; });
    watch->Begin(context, Role::kReadOnly);
    return watch;
  }

 private:
  RpcDoor* const door_;
  WatchHub<v1::NodeEvent> watches_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGangService(RpcDoor* door) { return std::make_unique<GangServiceImpl>(door); }
std::unique_ptr<grpc::Service> MakeNodeService(RpcDoor* door) { return std::make_unique<NodeServiceImpl>(door); }

}  // namespace muster
