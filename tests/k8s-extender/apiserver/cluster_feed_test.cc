// The cluster feed against a small API server: it discovers the PodGroup APIs, announces everything, and sends
// FactsRead once, at the end (SPEC K-10, K-13, D-3, D-6).
#include "k8s-extender/apiserver/cluster_feed.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "support/sync.h"
#include "tests/support/local_server.h"

namespace muster {
namespace {

// Records what is announced.
class Notebook : public DecisionPort {
 public:
  absl::StatusOr<Reply> Ask(Command, absl::Duration) override { return absl::UnimplementedError("unexpected Ask"); }
  absl::StatusOr<HoldToken> Hold(Bind, HoldCallback) override { return absl::UnimplementedError("unexpected Hold"); }
  absl::Status Announce(Command command) override {
    MutexLock lock(&mutex_);
    if (const auto* node = std::get_if<UpsertNode>(&command)) announced_.push_back("node " + node->node.name);
    if (const auto* pod = std::get_if<UpsertPod>(&command)) {
      const std::string& owner = pod->pod.gang.owner_uid;
      announced_.push_back(absl::StrCat("pod ", pod->pod.name, owner.empty() ? "" : " of ", owner));
    }
    if (const auto* space = std::get_if<UpsertNamespace>(&command)) {
      announced_.push_back(absl::StrCat("namespace ", space->name, " of team ", space->labels.at("team")));
    }
    if (const auto* group = std::get_if<UpsertGangObject>(&command)) {
      announced_.push_back(absl::StrCat("group ", group->object.name, " min ",
                                        group->object.declaration->min_member.value_or(-1), " by ",
                                        ToString(group->object.dialect)));
    }
    if (const auto* gone = std::get_if<RemoveGangObject>(&command)) announced_.push_back("no group " + gone->name);
    if (const auto* fact = std::get_if<UnreadableFact>(&command)) {
      announced_.push_back(absl::StrCat("unreadable ", ToString(fact->kind), " ", fact->name));
      EXPECT_NE(fact->why, "");
    }
    if (const auto* expect = std::get_if<ExpectFacts>(&command)) unread_ = expect->sources;
    if (const auto* read = std::get_if<FactsRead>(&command)) {
      EXPECT_EQ(std::count(unread_.begin(), unread_.end(), read->source), 1) << read->source;
      unread_.erase(std::remove(unread_.begin(), unread_.end(), read->source), unread_.end());
      if (unread_.empty()) announced_.push_back("everything is read");
    }
    return absl::OkStatus();
  }
  [[nodiscard]] std::vector<std::string> announced() const {
    MutexLock lock(&mutex_);
    return announced_;
  }
  // How often this was announced.
  [[nodiscard]] int64_t Times(const std::string& line) const {
    MutexLock lock(&mutex_);
    return std::count(announced_.begin(), announced_.end(), line);
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> announced_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> unread_ ABSL_GUARDED_BY(mutex_);
};

std::string ListOf(const std::string& items) {
  return absl::StrCat(R"({"kind":"AList","metadata":{"resourceVersion":"1"},"items":[)", items, "]}");
}

class FakeApiServer {
 public:
  // A server with Jobs that may not be read.
  struct WithJobs {};
  explicit FakeApiServer(WithJobs) {
    Answer("/api/v1/nodes", ListOf(""));
    Answer("/apis/batch/v1", R"({"resources":[{"name":"jobs"}]})");
    Forbid("/apis/batch/v1/jobs");
    Forbid("/api/v1/namespaces");
    server_->Get("/api/v1/pods", [this](const httplib::Request& request, httplib::Response& response) {
      MutexLock lock(&mutex_);
      if (request.has_param("watch")) {
        response.status = watches_.empty() ? 429 : 200;
        response.set_content(watches_, "application/json; charset=utf-8");
        watches_.clear();
      } else {
        response.set_content(ListOf(PodOf("a", 1) + "," + PodOf("b", 1, "n1")), "application/json; charset=utf-8");
      }
    });
    port_ = server_.Start();
  }
  // A pod of Job `job`.
  static std::string PodOf(const std::string& job, int number, const std::string& node = "") {
    return absl::StrCat(R"({"metadata":{"name":")", job, number, R"(","namespace":"d","uid":")", job, number,
                        R"(","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":")", job,
                        R"(","uid":"job-)", job, R"(","controller":true}]},"spec":{"nodeName":")", node, R"("}})");
  }
  // Adds an event to the next watch of pods.
  void AddWatchEvent(const char* type, const std::string& pod) {
    MutexLock lock(&mutex_);
    absl::StrAppend(&watches_, R"({"type":")", type, R"(","object":)", pod, "}\n");
  }
  explicit FakeApiServer(bool native) {
    const std::string namespaces = ListOf(R"({"metadata":{"name":"d","labels":{"team":"x"}}})");
    Answer("/api/v1/nodes", ListOf(R"({"metadata":{"name":"n1"}},
              {"metadata":{"name":"n2"},"status":{"allocatable":{"cpu":"much"}}})"));
    Answer("/api/v1/pods", ListOf(R"({"metadata":{"name":"p1","namespace":"d","uid":"u1"},
               "spec":{"schedulingGroup":{"podGroupName":"train"}}},{"metadata":{"name":"P 2","namespace":"d","uid":"u2"}})"));
    if (native) {
      Answer("/api/v1/namespaces", namespaces);
      Answer("/apis/scheduling.k8s.io", R"({"versions":[{"version":"v1"},{"version":"v1alpha2"}]})");
      Answer("/apis/scheduling.k8s.io/v1", R"({"resources":[{"name":"priorityclasses"}]})");
      Answer("/apis/scheduling.k8s.io/v1alpha2", R"({"resources":[{"name":"podgroups"},{"name":"podgroups/status"}]})");
      Answer("/apis/scheduling.k8s.io/v1alpha2/podgroups",
             ListOf(R"({"metadata":{"name":"train","namespace":"d","uid":"g1"},
                 "spec":{"schedulingPolicy":{"gang":{"minCount":3}}}})"));
    } else {
      AnswerOnceGrown("/api/v1/namespaces", 403, namespaces);
      AnswerOnceGrown("/apis/scheduling.sigs.k8s.io/v1alpha1", 404, R"({"resources":[{"name":"podgroups"}]})");
      AnswerOnceGrown("/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups", 404,
                      ListOf(R"({"metadata":{"name":"late","namespace":"d","uid":"g2"},"spec":{"minMember":2}})"));
    }
    port_ = server_.Start();
  }
  [[nodiscard]] KubeConfig config() const { return ServerAt(port_); }
  // From now on the server also serves the APIs that were missing or forbidden.
  void Grow() { grown_ = true; }

 private:
  void Forbid(const std::string& path) {
    server_->Get(path, [](const httplib::Request&, httplib::Response& response) {
      response.status = 403;
      response.set_content(R"({"kind":"Status","message":"it is forbidden"})", "application/json; charset=utf-8");
    });
  }
  void Answer(const std::string& path, const std::string& body) {
    server_->Get(path, [body](const httplib::Request& request, httplib::Response& response) {
      if (request.has_param("watch")) {
        response.status = 429;  // this test is about lists
      } else {
        response.set_content(body, "application/json; charset=utf-8");
      }
    });
  }

  void AnswerOnceGrown(const std::string& path, int until, const std::string& body) {
    server_->Get(path, [this, until, body](const httplib::Request& request, httplib::Response& response) {
      response.status = !grown_ ? until : request.has_param("watch") ? 429 : 200;
      response.set_content(response.status == 200 ? body : R"({"kind":"Status"})", "application/json; charset=utf-8");
    });
  }

  std::atomic<bool> grown_{false};
  Mutex mutex_;
  std::string watches_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  LocalServer<> server_;
};

std::vector<std::string> AnnouncedFacts(bool native) {
  FakeApiServer server(native);
  Notebook notebook;
  KubeClient client(server.config());
  ClusterFeed feed(&client, &notebook);
  EXPECT_FALSE(feed.synced());
  EXPECT_TRUE(feed.Start().ok());
  for (int i = 0; i < 500 && !feed.synced(); ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_TRUE(feed.synced());
  EXPECT_EQ(feed.stats().size(), native ? 4U : 2U);
  feed.Stop();
  return notebook.announced();
}

TEST(ClusterFeed, NativePodGroups_ReadInAnyVersion) {
  std::vector<std::string> announced = AnnouncedFacts(/*native=*/true);
  ASSERT_EQ(announced.size(), 7U);
  EXPECT_EQ(announced.back(), "everything is read") << "planning begins when everything was announced, once";
  std::sort(announced.begin(), announced.end());
  EXPECT_EQ(announced, (std::vector<std::string>{
                           "everything is read", "group train min 3 by PodGroup scheduling.k8s.io",
                           "namespace d of team x", "node n1", "pod p1", "unreadable node n2", "unreadable pod d/P 2"}))
      << "unreadable objects are reported too";
}

TEST(ClusterFeed, MissingApis_StillSyncs) {
  const std::vector<std::string> announced = AnnouncedFacts(/*native=*/false);
  ASSERT_EQ(announced.size(), 5U);
  EXPECT_EQ(announced.back(), "everything is read");
}

// PodGroups that are installed and rights that are granted after musterd has started.
TEST(ClusterFeed, LateApisAndRights_AreRead) {
  FakeApiServer server(/*native=*/false);
  Notebook notebook;
  KubeClient client(server.config());
  ClusterFeed feed(&client, &notebook);
  feed.SetDiscoveryInterval(absl::Milliseconds(20));
  ASSERT_TRUE(feed.Start().ok());
  for (int i = 0; i < 500 && !feed.synced(); ++i) absl::SleepFor(absl::Milliseconds(10));
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(notebook.announced().back(), "everything is read");
  server.Grow();
  const auto seen = [&](const std::string& line) { return notebook.Times(line); };
  const char* group = "group late min 2 by PodGroup scheduling.sigs.k8s.io/v1alpha1";
  for (int i = 0; i < 500 && (seen(group) == 0 || seen("namespace d of team x") == 0); ++i) {
    EXPECT_TRUE(feed.synced()) << "planning does not wait for objects that are read again";
    absl::SleepFor(absl::Milliseconds(10));
  }
  absl::SleepFor(absl::Milliseconds(100));
  feed.Stop();
  EXPECT_EQ(seen(group), 1) << "once";
  EXPECT_EQ(seen("namespace d of team x"), 1);
  EXPECT_EQ(seen("everything is read"), 1);
  EXPECT_EQ(feed.stats().size(), 4U);
}

// D-7: if an owner may not be read, its gang is as large as the number of its pods once no new pod has come for a
// while.
TEST(ClusterFeed, UnreadableOwner_GangSizeIsPodCount) {
  FakeApiServer server(FakeApiServer::WithJobs{});
  Notebook notebook;
  KubeClient client(server.config());
  ClusterFeed feed(&client, &notebook);
  feed.SetOwnerKinds({"Job"}, absl::Milliseconds(600));
  ASSERT_TRUE(feed.Start().ok());
  const auto seen = [&](const std::string& line) {
    for (int i = 0; i < 800 && notebook.Times(line) == 0; ++i) absl::SleepFor(absl::Milliseconds(10));
    return notebook.Times(line) > 0;
  };
  ASSERT_TRUE(seen("everything is read")) << "planning does not wait for Jobs";
  EXPECT_EQ(notebook.Times("group job-b min 1 by its owner"), 1) << "it runs: before planning begins";
  EXPECT_EQ(notebook.Times("group job-a min 1 by its owner"), 0) << "other pods may follow";
  server.AddWatchEvent("ADDED", FakeApiServer::PodOf("a", 2));
  server.AddWatchEvent("ADDED", FakeApiServer::PodOf("a", 3));
  server.AddWatchEvent("ADDED", FakeApiServer::PodOf("b", 2));
  EXPECT_TRUE(seen("pod a3")) << "no owner that is known by its UID is ever announced";
  EXPECT_TRUE(seen("group job-a min 3 by its owner"));
  server.AddWatchEvent("DELETED", FakeApiServer::PodOf("a", 3));
  EXPECT_TRUE(seen("group job-a min 2 by its owner"));
  for (int i = 1; i <= 2; ++i) server.AddWatchEvent("DELETED", FakeApiServer::PodOf("a", i));
  EXPECT_TRUE(seen("no group job-a"));
  EXPECT_EQ(notebook.Times("group job-b min 2 by its owner"), 0) << "some of it run";
  feed.Stop();
}

// Nodes, pods and PodGroups of an API server that can be made to fail.
class FailingApiServer {
 public:
  FailingApiServer() {
    Serve("/api/v1/nodes", &nodes);
    Serve("/api/v1/pods", &pods);
    Serve("/api/v1/namespaces", &namespaces);
    Serve("/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups", &groups);
    server_->Get("/apis/scheduling.sigs.k8s.io/v1alpha1", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(R"({"resources":[{"name":"podgroups"}]})", "application/json; charset=utf-8");
    });
    port_ = server_.Start();
  }
  [[nodiscard]] KubeConfig config() const { return ServerAt(port_); }
  // What lists and watches are answered with. Open watches end when it changes from 200.
  std::atomic<int> nodes{200};
  std::atomic<int> pods{200};
  std::atomic<int> namespaces{200};
  std::atomic<int> groups{200};

 private:
  void Serve(const char* path, const std::atomic<int>* status) {
    server_->Get(path, [status](const httplib::Request& request, httplib::Response& response) {
      response.status = *status;
      if (response.status != 200) {
        response.set_content(R"({"kind":"Status","message":"for a test"})", "application/json; charset=utf-8");
      } else if (request.has_param("watch")) {
        response.set_chunked_content_provider("application/json", [status](size_t, httplib::DataSink& sink) {
          absl::SleepFor(absl::Milliseconds(5));
          return *status == 200 && sink.is_writable();
        });
      } else {
        response.set_content(ListOf(""), "application/json; charset=utf-8");
      }
    });
  }

  LocalServer<> server_;
  int port_ = 0;
};

// The reason, once it contains `text`; the last one after 20 s.
std::string AwaitReason(const ClusterFeed& feed, const std::string& text) {
  std::string reason = feed.NotReadyReason();
  for (int i = 0; i < 2'000 && (text.empty() ? !reason.empty() : reason.find(text) == std::string::npos); ++i) {
    absl::SleepFor(absl::Milliseconds(10));
    reason = feed.NotReadyReason();
  }
  return reason;
}

TEST(ClusterFeedReadiness, NotRead_NamesPathAndError) {
  FailingApiServer server;
  server.pods = 403;
  Notebook notebook;
  KubeClient client(server.config());
  ClusterFeed feed(&client, &notebook);
  EXPECT_EQ(feed.NotReadyReason(), "the cluster has not been read yet");
  server.namespaces = 500;
  ASSERT_FALSE(feed.Start().ok());
  EXPECT_EQ(feed.NotReadyReason(), "the cluster has not been read yet: /api/v1/namespaces: HTTP 500: for a test");
  server.namespaces = 200;
  ASSERT_TRUE(feed.Start().ok());
  EXPECT_EQ(AwaitReason(feed, "HTTP 403"), "the cluster has not been read yet: /api/v1/pods: HTTP 403: for a test");
  server.pods = 200;
  EXPECT_EQ(AwaitReason(feed, ""), "");
  feed.Stop();
}

TEST(ClusterFeedReadiness, FailsForLong_NamesPathAndErrorUntilItSucceeds) {
  for (const int status : {401, 403, 404, 429, 500, 503}) {
    FailingApiServer server;
    Notebook notebook;
    KubeClient client(server.config());
    ClusterFeed feed(&client, &notebook);
    feed.SetFailureTolerance(absl::Milliseconds(300));
    ASSERT_TRUE(feed.Start().ok());
    EXPECT_EQ(AwaitReason(feed, ""), "");
    server.pods = status;
    const std::string reason = AwaitReason(feed, "no list or watch of /api/v1/pods has succeeded for ");
    EXPECT_NE(reason.find(absl::StrCat("HTTP ", status, ": for a test")), std::string::npos) << reason;
    server.pods = 200;
    EXPECT_EQ(AwaitReason(feed, ""), "");
    feed.Stop();
  }
}

// A PodGroup API may be removed while musterd runs (K-10). The failure is shown, and the other facts are current.
TEST(ClusterFeedReadiness, RemovedApi_StaysReady) {
  FailingApiServer server;
  Notebook notebook;
  KubeClient client(server.config());
  ClusterFeed feed(&client, &notebook);
  feed.SetFailureTolerance(absl::ZeroDuration());
  ASSERT_TRUE(feed.Start().ok());
  EXPECT_EQ(AwaitReason(feed, ""), "");
  server.groups = 404;
  const auto failing = [&] {
    for (const auto& [path, stats] : feed.stats()) {
      if (absl::IsNotFound(stats.error)) return path;
    }
    return std::string();
  };
  for (int i = 0; i < 2'000 && failing().empty(); ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(failing(), "/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups");
  EXPECT_EQ(feed.NotReadyReason(), "");
  server.groups = 500;
  EXPECT_NE(AwaitReason(feed, "HTTP 500").find("podgroups"), std::string::npos);
  feed.Stop();
}

TEST(ClusterFeed, UnreachableServer_StartFails) {
  Notebook notebook;
  KubeClient client(ServerAt(1));
  ClusterFeed feed(&client, &notebook);
  EXPECT_FALSE(feed.Start().ok());
  EXPECT_FALSE(feed.synced());
  EXPECT_TRUE(notebook.announced().empty());
}

}  // namespace
}  // namespace muster
