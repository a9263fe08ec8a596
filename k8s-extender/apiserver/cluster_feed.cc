#include "k8s-extender/apiserver/cluster_feed.h"

#include <spdlog/spdlog.h>

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/dialects.h"
#include "k8s-extender/dialects/metadata.h"
#include "k8s-extender/dialects/owners.h"
#include "k8s-extender/dialects/queues.h"

namespace muster {
namespace {

struct PodGroupApi {
  GangDialect dialect;
  const char* group;
  const char* version;  // nullptr: any version that the server has
};
// For this time after the start a 403 may mean that permissions are not granted yet.
constexpr absl::Duration kPermissionRecheck = absl::Seconds(30);
// The version of the native PodGroup changes with Kubernetes' releases (D-6).
constexpr std::array<PodGroupApi, 5> kPodGroupApis = {
    {{GangDialect::kPodGroupSigs, "scheduling.sigs.k8s.io", "v1alpha1"},
     {GangDialect::kPodGroupX, "scheduling.x-k8s.io", "v1alpha1"},
     {GangDialect::kNative, "scheduling.k8s.io", nullptr},
     {GangDialect::kKai, "scheduling.run.ai", "v2alpha2"},
     {GangDialect::kVolcano, "scheduling.volcano.sh", "v1beta1"}}};

constexpr char kNamespaces[] = "/api/v1/namespaces";
constexpr char kNodesPath[] = "/api/v1/nodes";
constexpr char kPodsPath[] = "/api/v1/pods";

std::string UidOf(const Json& object) { return StringOrEmpty(Child(object, "metadata"), "uid"); }
std::string NameOf(const Json& object) { return StringOrEmpty(Child(object, "metadata"), "name"); }

}  // namespace

ClusterFeed::ClusterFeed(KubeClient* client, DecisionPort* port) : client_(client), port_(port) {}
ClusterFeed::~ClusterFeed() { Stop(); }

Informer::Announcement ClusterFeed::Announces(Command command) {
  return [this, command = std::move(command)]() mutable { port_->Announce(std::move(command)).IgnoreError(); };
}

Informer::Announcement ClusterFeed::Unreadable(FactKind kind, const Json& object, const absl::Status& status) {
  std::string name = NameOf(object);
  if (kind != FactKind::kNode) {
    name = absl::StrCat(StringOrEmpty(Child(object, "metadata"), "namespace"), "/", name);
  }
  return Announces(UnreadableFact{kind, std::move(name), std::string(status.message())});
}

Informer::Handlers ClusterFeed::NodeHandlers() {
  return {.read =
              [this](const Json& object) {
                absl::StatusOr<NodeDescription> node = ParseNode(object);
                if (!node.ok()) return Unreadable(FactKind::kNode, object, node.status());
                return Announces(UpsertNode{*std::move(node)});
              },
          .remove = [this](const std::string& name,
                           const std::string&) { port_->Announce(RemoveNode{name}).IgnoreError(); },
          .identity = NameOf,
          .synced = [this] { OnSynced("nodes"); }};
}

Informer::Handlers ClusterFeed::PodHandlers() {
  return {.read = [this](const Json& object) -> Informer::Announcement {
            absl::StatusOr<PodDescription> pod = ParsePod(object);
            if (!pod.ok()) return Unreadable(FactKind::kPod, object, pod.status());
            const OwnerKind* owner = GroupByOwner(object, owner_kinds_, &*pod);
            const bool counted = owner != nullptr && unread_kinds_.contains(owner->kind);
            if (counted) pod->gang.owner_uid.clear();  // unknown: the owner cannot be read
            if (sizes_ == nullptr) return Announces(UpsertPod{*std::move(pod)});
            return [this, counted, owner, pod = *std::move(pod)]() mutable {
              if (counted) {
                sizes_->AddPod(pod, owner->kind);
              } else {
                sizes_->RemovePod(pod.uid);
              }
              port_->Announce(UpsertPod{std::move(pod)}).IgnoreError();
            };
          },
          .remove =
              [this](const std::string& uid, const std::string&) {
                port_->Announce(RemovePod{uid}).IgnoreError();
                if (sizes_ != nullptr) sizes_->RemovePod(uid);
              },
          .identity = UidOf,
          .synced =
              [this] {
                if (sizes_ != nullptr) sizes_->OnSynced();
                OnSynced("pods");
              }};
}

Informer::Handlers ClusterFeed::NamespaceHandlers() {
  return {.read =
              [this](const Json& object) {
                return Announces(UpsertNamespace{NameOf(object), StringMapAt(Child(object, "metadata"), "labels")});
              },
          .remove = [this](const std::string& name,
                           const std::string&) { port_->Announce(RemoveNamespace{name}).IgnoreError(); },
          .identity = NameOf,
          .synced = [this] { OnSynced("namespaces"); }};
}

Informer::Handlers ClusterFeed::GangHandlers(GangDialect dialect, std::string source,
                                             std::function<absl::StatusOr<GangObject>(const Json&)> parse,
                                             const std::string& name_prefix) {
  return {.read =
              [this, parse = std::move(parse)](const Json& object) {
                absl::StatusOr<GangObject> group = parse(object);
                if (!group.ok()) return Unreadable(FactKind::kGang, object, group.status());
                return Announces(UpsertGangObject{*std::move(group)});
              },
          .remove =
              [this, dialect, name_prefix](const std::string&, const std::string& key) {
                const size_t slash = key.find('/');
                port_
                    ->Announce(RemoveGangObject{dialect, key.substr(0, slash),
                                                absl::StrCat(name_prefix, key.substr(slash + 1))})
                    .IgnoreError();
              },
          .identity = UidOf,
          .synced = [this, source = std::move(source)] { OnSynced(source); }};
}

absl::Status ClusterFeed::AddOwners(const std::function<void(const std::string&, Informer::Handlers)>& add,
                                    ExpectFacts* expected) {
  unread_kinds_.clear();
  for (const std::string& name : owner_kinds_) {
    const OwnerKind& kind = *FindOwnerKind(name);
    const absl::StatusOr<std::string> path = Find(kind.plural, kind.group, kind.version);
    if (!path.ok()) return path.status();
    bool readable = !path->empty();
    if (readable) {
      const absl::StatusOr<bool> allowed = Allowed(*path);
      if (!allowed.ok()) return allowed.status();
      readable = *allowed;
      if (!readable) {
        spdlog::warn(
            "gangs.byOwner: musterd lacks permission to read {} of {}: the size of such a gang is the number of its "
            "pods that "
            "arrive; grant get, list and watch and restart musterd",
            kind.plural, kind.group);
      }
    } else {
      spdlog::info("the API server has no {} of {}: gangs.byOwner finds none", kind.plural, kind.group);
    }
    if (!readable) {
      unread_kinds_.insert(kind.kind);
      continue;
    }
    const std::string source = absl::StrCat(kind.plural, ".", kind.group);
    add(*path, GangHandlers(
                   GangDialect::kOwner, source, [&kind](const Json& object) { return ParseOwner(object, kind); },
                   absl::StrCat(absl::AsciiStrToLower(kind.kind), "-")));
    expected->sources.push_back(source);
  }
  if (!unread_kinds_.empty()) sizes_ = std::make_unique<OwnerSizes>(port_, quiet_);
  return absl::OkStatus();
}

absl::StatusOr<bool> ClusterFeed::Allowed(const std::string& path) {
  const absl::StatusOr<KubeResponse> response =
      client_->Send(KubeMethod::kGet, path + "?limit=1", "", absl::Seconds(10));
  if (!response.ok()) return response.status();
  if (response->status == 403) return false;
  if (response->status != 200) return absl::UnavailableError(absl::StrCat(path, ": ", StatusMessage(*response)));
  return true;
}

// Returns the document at `path`; null when the server has none (404).
absl::StatusOr<Json> ClusterFeed::Discover(const std::string& path) {
  const absl::StatusOr<KubeResponse> response = client_->Send(KubeMethod::kGet, path, "", absl::Seconds(10));
  if (!response.ok()) return response.status();
  if (response->status == 404) return Json();
  // Permissions may be granted shortly after musterd starts.
  if (response->status == 403 && SteadyNow() - created_at_ < kPermissionRecheck) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": ", StatusMessage(*response)));
  }
  if (response->status == 403) {
    if (logged_paths_.insert(path).second) {
      spdlog::warn("musterd lacks permission to read {}: these objects are ignored until it is granted", path);
    }
    return Json();
  }
  if (response->status != 200) return absl::UnavailableError(absl::StrCat(path, ": ", StatusMessage(*response)));
  return ParseJson(response->body, path);
}

// Returns the path of the group's objects, in the first version that has them; empty when the server has none.
absl::StatusOr<std::string> ClusterFeed::Find(const char* resource, const char* group, const char* version) {
  std::vector<std::string> versions;
  if (version != nullptr) {
    versions.emplace_back(version);
  } else {
    const absl::StatusOr<Json> known = Discover(absl::StrCat("/apis/", group));
    if (!known.ok()) return known.status();
    if (const Json& list = Child(*known, "versions"); list.is_array()) {
      for (const Json& entry : list) versions.push_back(StringOrEmpty(entry, "version"));
    }
  }
  for (const std::string& candidate : versions) {
    const std::string path = absl::StrCat("/apis/", group, "/", candidate);
    const absl::StatusOr<Json> list = Discover(path);
    if (!list.ok()) return list.status();
    const Json& resources = Child(*list, "resources");
    if (!resources.is_array()) continue;
    for (const Json& each : resources) {
      if (StringOrEmpty(each, "name") == resource) return absl::StrCat(path, "/", resource);
    }
  }
  return std::string();
}

std::vector<ClusterFeed::Source> ClusterFeed::OptionalSources() {
  std::vector<Source> sources;
  sources.push_back({"namespaces",
                     [this]() -> absl::StatusOr<std::string> {
                       const absl::StatusOr<bool> allowed = Allowed(kNamespaces);
                       if (!allowed.ok()) return allowed.status();
                       if (*allowed) return kNamespaces;
                       if (logged_paths_.insert(kNamespaces).second) {
                         spdlog::warn(
                             "musterd lacks permission to read namespaces: until get, list and watch are granted, pod "
                             "affinity with a namespaceSelector by labels is left to kube-scheduler, and the "
                             "namespaceSelector of a queue selects no namespace");
                       }
                       return "";
                     },
                     [this] { return NamespaceHandlers(); }});
  for (const PodGroupApi& api : kPodGroupApis) {
    sources.push_back({std::string(ToString(api.dialect)),
                       [this, api] { return Find("podgroups", api.group, api.version); },
                       [this, api] {
                         return GangHandlers(
                             api.dialect, std::string(ToString(api.dialect)),
                             [api](const Json& object) { return ParsePodGroup(object, api.dialect); }, "");
                       }});
  }
  return sources;
}

absl::Status ClusterFeed::Start() {
  absl::Status started = StartInformers();
  MutexLock lock(&mutex_);
  start_error_ = std::string(started.message());
  return started;
}

absl::Status ClusterFeed::StartInformers() {
  std::vector<std::unique_ptr<Informer>> made;
  ExpectFacts expected{{"nodes", "pods"}};
  const auto add = [&](const std::string& path, Informer::Handlers handlers) {
    made.push_back(std::make_unique<Informer>(path, client_, std::move(handlers)));
  };
  add(kNodesPath, NodeHandlers());
  add(kPodsPath, PodHandlers());
  missing_.clear();
  for (Source& source : OptionalSources()) {
    const absl::StatusOr<std::string> path = source.find();
    if (!path.ok()) return path.status();
    if (path->empty()) {
      spdlog::info("the API server has no {} that musterd reads; checking every {}", source.name,
                   absl::FormatDuration(discovery_interval_));
      missing_.push_back(std::move(source));
    } else {
      add(*path, source.handlers());
      expected.sources.push_back(source.name);
    }
  }
  if (absl::Status owners = AddOwners(add, &expected); !owners.ok()) return owners;
  if (queues_ != nullptr) {
    const absl::StatusOr<std::string> path = Find("queues", kQueueApi, kQueueApiVersion);
    if (!path.ok()) return path.status();
    if (path->empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("queues.source is kubernetes, and the API server has no queues of ", kQueueApi, "/",
                       kQueueApiVersion, ": apply deploy/crds/queues.muster.dev.yaml"));
    }
    add(*path, queues_->Handlers([this] { OnSynced("queues"); }));
    expected.sources.emplace_back("queues");
  }
  port_->Announce(std::move(expected)).IgnoreError();
  std::vector<Informer*> start;
  start.reserve(made.size());
  for (const auto& informer : made) start.push_back(informer.get());
  {
    MutexLock lock(&mutex_);
    informers_ = std::move(made);
    expected_ = informers_.size();
  }
  for (Informer* informer : start) informer->Start();
  if (!missing_.empty()) discovery_thread_ = std::thread([this] { DiscoverMissing(); });
  return absl::OkStatus();
}

// PodGroup types are often installed after the scheduler, and permissions granted later.
void ClusterFeed::DiscoverMissing() {
  while (!missing_.empty()) {
    {
      MutexLock lock(&mutex_);
      if (!stopping_) stopped_.WaitWithTimeout(&mutex_, discovery_interval_);
      if (stopping_) return;
    }
    for (auto source = missing_.begin(); source != missing_.end();) {
      const absl::StatusOr<std::string> path = source->find();
      if (!path.ok() || path->empty()) {  // on an error, try again the next time
        ++source;
        continue;
      }
      spdlog::info("the API server has {} now: they are read from {}", source->name, *path);
      Informer::Handlers handlers = source->handlers();
      handlers.synced = nullptr;  // the start does not wait for it
      auto informer = std::make_unique<Informer>(*path, client_, std::move(handlers));
      source = missing_.erase(source);
      MutexLock lock(&mutex_);
      if (stopping_) return;
      informer->Start();
      informers_.push_back(std::move(informer));
    }
  }
}

void ClusterFeed::OnSynced(const std::string& source) {
  port_->Announce(FactsRead{source}).IgnoreError();
  MutexLock lock(&mutex_);
  if (++listed_ == expected_) spdlog::info("the whole cluster has been read; planning begins");
}

bool ClusterFeed::synced() const {
  MutexLock lock(&mutex_);
  return expected_ > 0 && listed_ >= expected_;
}

std::string ClusterFeed::NotReadyReason() const {
  MutexLock lock(&mutex_);
  if (expected_ == 0 || listed_ < expected_) return UnreadReason();
  for (const auto& informer : informers_) {
    const InformerStats stats = informer->stats();
    const std::string& path = informer->path();
    const bool removed = absl::IsNotFound(stats.error) && path != kNodesPath && path != kPodsPath;
    if (!stats.synced || stats.error.ok() || removed) continue;
    const absl::Duration failing = SteadyNow() - stats.failing_since;
    if (failing <= failure_tolerance_) continue;
    return absl::StrCat("no list or watch of ", path, " has succeeded for ",
                        absl::FormatDuration(absl::Trunc(failing, absl::Seconds(1))), ": ", stats.error.message());
  }
  return "";
}

std::string ClusterFeed::UnreadReason() const {
  std::string detail = start_error_;
  for (size_t i = 0; i < expected_; ++i) {
    const InformerStats stats = informers_[i]->stats();
    if (stats.synced) continue;
    detail = informers_[i]->path();
    if (stats.error.ok()) continue;
    absl::StrAppend(&detail, ": ", stats.error.message());
    break;
  }
  return absl::StrCat("the cluster has not been read yet", detail.empty() ? "" : ": ", detail);
}

bool ClusterFeed::OfferPod(const Json& pod) {
  Informer* pods = nullptr;
  {
    MutexLock lock(&mutex_);
    for (const auto& informer : informers_) {
      if (informer->path() == kPodsPath) pods = informer.get();
    }
  }
  return pods != nullptr && pods->Offer(pod);
}

void ClusterFeed::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stopped_.SignalAll();
  }
  std::vector<Informer*> stop;
  {
    MutexLock lock(&mutex_);
    stop.reserve(informers_.size());
    for (const auto& informer : informers_) stop.push_back(informer.get());
  }
  for (Informer* informer : stop) informer->Stop();
  if (discovery_thread_.joinable()) discovery_thread_.join();
  if (sizes_ != nullptr) sizes_->Stop();
}

std::vector<std::pair<std::string, InformerStats>> ClusterFeed::stats() const {
  std::vector<std::pair<std::string, InformerStats>> out;
  MutexLock lock(&mutex_);
  for (const auto& informer : informers_) out.emplace_back(informer->path(), informer->stats());
  return out;
}

}  // namespace muster
