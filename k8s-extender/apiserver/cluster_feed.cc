#include "k8s-extender/apiserver/cluster_feed.h"

#include <spdlog/spdlog.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "k8s-extender/dialects/dialects.h"

namespace muster {
namespace {

struct PodGroupApi {
  GangDialect dialect;
  const char* group;
};
constexpr std::array<PodGroupApi, 2> kPodGroupApis = {{{GangDialect::kPodGroupSigs, "scheduling.sigs.k8s.io/v1alpha1"},
                                                       {GangDialect::kPodGroupX, "scheduling.x-k8s.io/v1alpha1"}}};

std::string UidOf(const Json& object) { return StringOrEmpty(Child(object, "metadata"), "uid"); }
std::string NameOf(const Json& object) { return StringOrEmpty(Child(object, "metadata"), "name"); }

void LogRefused(absl::string_view kind, const Json& object, const absl::Status& status) {
  spdlog::warn("{} {}/{} is ignored: {}", std::string(kind), StringOrEmpty(Child(object, "metadata"), "namespace"),
               NameOf(object), std::string(status.message()));
}

}  // namespace

ClusterFeed::ClusterFeed(KubeClient* client, DecisionPort* port) : client_(client), port_(port) {}
ClusterFeed::~ClusterFeed() { Stop(); }

Informer::Handlers ClusterFeed::NodeHandlers() {
  return {.upsert =
              [this](const Json& object) {
                absl::StatusOr<NodeDescription> node = ParseNode(object);
                if (!node.ok()) return LogRefused("node", object, node.status());
                port_->Announce(UpsertNode{*std::move(node)}).IgnoreError();
              },
          .remove = [this](const std::string& name,
                           const std::string&) { port_->Announce(RemoveNode{name}).IgnoreError(); },
          .identity = NameOf,
          .synced = [this] { OnSynced(); }};
}

Informer::Handlers ClusterFeed::PodHandlers() {
  return {
      .upsert =
          [this](const Json& object) {
            absl::StatusOr<PodDescription> pod = ParsePod(object);
            if (!pod.ok()) return LogRefused("pod", object, pod.status());
            port_->Announce(UpsertPod{*std::move(pod)}).IgnoreError();
          },
      .remove = [this](const std::string& uid, const std::string&) { port_->Announce(RemovePod{uid}).IgnoreError(); },
      .identity = UidOf,
      .synced = [this] { OnSynced(); }};
}

Informer::Handlers ClusterFeed::PodGroupHandlers(GangDialect dialect) {
  return {.upsert =
              [this, dialect](const Json& object) {
                absl::StatusOr<GangObject> group = ParsePodGroup(object, dialect);
                if (!group.ok()) return LogRefused("PodGroup", object, group.status());
                port_->Announce(UpsertGangObject{*std::move(group)}).IgnoreError();
              },
          .remove =
              [this, dialect](const std::string&, const std::string& key) {
                const size_t slash = key.find('/');
                port_->Announce(RemoveGangObject{dialect, key.substr(0, slash), key.substr(slash + 1)}).IgnoreError();
              },
          .identity = UidOf,
          .synced = [this] { OnSynced(); }};
}

void ClusterFeed::Add(const std::string& path, Informer::Handlers handlers) {
  informers_.push_back(std::make_unique<Informer>(path, client_, std::move(handlers)));
}

absl::Status ClusterFeed::Start() {
  Add("/api/v1/nodes", NodeHandlers());
  Add("/api/v1/pods", PodHandlers());
  for (const PodGroupApi& api : kPodGroupApis) {
    const absl::StatusOr<KubeResponse> response =
        client_->Send(KubeMethod::kGet, absl::StrCat("/apis/", api.group), "", absl::Seconds(10));
    if (!response.ok()) {
      informers_.clear();
      return response.status();
    }
    if (response->status == 404) {
      spdlog::info("the API server has no {}: PodGroups of that group are not read", api.group);
      continue;
    }
    if (response->status != 200) {
      informers_.clear();
      return absl::UnavailableError(absl::StrCat("/apis/", api.group, ": ", StatusMessage(*response)));
    }
    const absl::StatusOr<Json> list = ParseJson(response->body, "APIResourceList");
    bool has = false;
    if (list.ok() && Child(*list, "resources").is_array()) {
      for (const Json& resource : Child(*list, "resources"))
        has = has || StringOrEmpty(resource, "name") == "podgroups";
    }
    if (has) Add(absl::StrCat("/apis/", api.group, "/podgroups"), PodGroupHandlers(api.dialect));
  }
  for (const auto& informer : informers_) informer->Start();
  return absl::OkStatus();
}

void ClusterFeed::OnSynced() {
  MutexLock lock(&mutex_);
  if (++listed_ < informers_.size()) return;
  port_->Announce(FactsRead{}).IgnoreError();
  spdlog::info("the whole cluster has been read; planning begins");
}

bool ClusterFeed::synced() const {
  MutexLock lock(&mutex_);
  return !informers_.empty() && listed_ >= informers_.size();
}

void ClusterFeed::Stop() {
  for (const auto& informer : informers_) informer->Stop();
}

std::vector<std::pair<std::string, InformerStats>> ClusterFeed::stats() const {
  std::vector<std::pair<std::string, InformerStats>> out;
  for (const auto& informer : informers_) out.emplace_back(informer->path(), informer->stats());
  return out;
}

}  // namespace muster
