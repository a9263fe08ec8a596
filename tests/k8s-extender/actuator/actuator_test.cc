// The actuator against an API server (SPEC K-4): deadlines by one clock, connections that were dropped unnoticed, and a
// stop in the middle of a burst.
#include "k8s-extender/actuator/actuator.h"

#include <httplib.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/service/engine/engine_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/local_server.h"
#include "tests/support/test_folder.h"
#include "tests/support/warm_libraries.h"

namespace muster {
namespace {

// Accepts bindings, as slowly as the test sets, and reports the nodes of pods. `Server`: httplib::Server or SSLServer.
template <typename Server>
class FakeApiServer {
 public:
  template <typename... Arguments>
  explicit FakeApiServer(const Arguments&... arguments) : server_(arguments...) {
    server_->set_keep_alive_timeout(1);
    server_->Post(R"(/api/v1/namespaces/d/pods/([^/]+)/binding)",
                  [this](const httplib::Request& request, httplib::Response& response) {
                    ++posts;
                    const absl::Time end = SteadyNow() + delay;
                    while (SteadyNow() < end && !closing_) absl::SleepFor(absl::Milliseconds(1));
                    MutexLock lock(&mutex_);
                    bound_.insert(request.matches[1]);
                    response.status = 201;
                    response.set_content("{}", "application/json");
                  });
    server_->Get(R"(/api/v1/namespaces/d/pods/([^/]+))",
                 [this](const httplib::Request& request, httplib::Response& response) {
                   ++gets;
                   const std::string name = request.matches[1];
                   MutexLock lock(&mutex_);
                   const char* node = bound_.count(name) > 0 ? "n" : "";
                   response.set_content(
                       absl::StrCat(R"({"metadata":{"uid":"u-)", name, R"("},"spec":{"nodeName":")", node, R"("}})"),
                       "application/json");
                 });
    server_->Patch(R"(/api/v1/namespaces/d/pods/([^/]+))",
                   [this](const httplib::Request& request, httplib::Response& response) { Change(request, response); });
    server_->Post(R"(/api/v1/namespaces/d/pods/([^/]+)/eviction)",
                  [this](const httplib::Request& request, httplib::Response& response) { Change(request, response); });
    EXPECT_TRUE(WarmLibraries());
    port = server_.Start();
  }
  ~FakeApiServer() { closing_ = true; }
  size_t bound() {
    MutexLock lock(&mutex_);
    return bound_.size();
  }
  void Bind(const std::string& pod) {
    MutexLock lock(&mutex_);
    bound_.insert(pod);
  }

  // Sets the response to all other requests about pods. `retry_after_s`: sent with it, unless it is 0.
  void Answer(int status, int retry_after_s = 0) {
    status_ = status;
    retry_after_s_ = retry_after_s;
  }
  // The other requests about pods since the last call, with their response: "200 POST a/eviction {..}".
  std::vector<std::string> TakeChanges() {
    MutexLock lock(&mutex_);
    return std::exchange(changes_, {});
  }

  int port = 0;
  absl::Duration delay = absl::ZeroDuration();  // set before the burst only
  std::atomic<int> posts{0};
  std::atomic<int> gets{0};

 private:
  void Change(const httplib::Request& request, httplib::Response& response) {
    response.status = status_;
    if (retry_after_s_ > 0) response.set_header("Retry-After", std::to_string(retry_after_s_));
    response.set_content("{}", "application/json");
    MutexLock lock(&mutex_);
    const std::string path = request.path.substr(request.path.find("pods/") + 5);
    changes_.push_back(absl::StrCat(response.status, " ", request.method, " ", path, " ", request.body));
  }

  std::atomic<int> status_{200};
  std::atomic<int> retry_after_s_{0};
  std::atomic<bool> closing_{false};
  Mutex mutex_;
  std::set<std::string> bound_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> changes_ ABSL_GUARDED_BY(mutex_);
  LocalServer<Server> server_;
};

// A gang of 40 members at the barrier: its burst of bindings is under way, two at a time.
class Burst : public testing::Test {
 protected:
  static constexpr int kPods = 40;

  void Begin(absl::Duration delay) {
    api_.delay = delay;
    actuator_.Start(&engine_);
    ASSERT_TRUE(engine_.Start().ok());
    ASSERT_TRUE(engine_.Announce(UpsertNode{SomeNode()}).ok());
    ASSERT_TRUE(engine_.Announce(FactsRead{}).ok());
    for (int i = 0; i < kPods; ++i) {
      ASSERT_TRUE(engine_.Announce(UpsertPod{SomePod(absl::StrCat("p-", i), "g", kPods)}).ok());
    }
    const auto offer = std::make_shared<NodeOffer>(NodeOffer::AllNodes());
    for (int i = 0; i < kPods; ++i) {
      const std::string uid = absl::StrCat("u-p-", i);
      for (int tries = 0; tries < 1000; ++tries) {  // until it is planned
        const absl::StatusOr<Reply> reply = engine_.Ask(Filter{uid, offer});
        ASSERT_TRUE(reply.ok());
        if (std::get<FilterReply>(*reply).kind == FilterReply::Kind::kSingleNode) break;
      }
      const auto answered = [this](const HoldAnswer& answer) { ++(answer.permitted ? permitted_ : refused_); };
      ASSERT_TRUE(engine_.Hold(Bind{uid, "n", 0}, answered).ok());
    }
    while (api_.posts == 0) absl::SleepFor(absl::Milliseconds(1));
  }
  static ActuatorOptions Two() {
    ActuatorOptions options;
    options.workers = 2;
    return options;
  }
  // Stops as musterd does.
  void End(absl::Duration drain) {
    engine_.Drain(In(drain));
    actuator_.Halt();
    client_.Stop();
    actuator_.Stop();
    engine_.Stop();
  }

  FakeApiServer<httplib::Server> api_;
  KubeClient client_{ServerAt(api_.port)};
  Actuator actuator_{&client_, Two()};
  MemoryStore store_;
  Engine engine_{MachineSettings(), EngineOptions(), &store_, &actuator_};
  std::atomic<int> permitted_{0};
  std::atomic<int> refused_{0};
};

// Committed pods are bound, and their callers receive the result.
TEST_F(Burst, StopInBurst_FinishesBindings) {
  Begin(absl::Milliseconds(10));
  EXPECT_LT(permitted_, kPods);
  End(absl::Seconds(20));
  EXPECT_EQ(permitted_, kPods);
  EXPECT_EQ(refused_, 0);
  EXPECT_EQ(api_.bound(), static_cast<size_t>(kPods));
  EXPECT_TRUE(absl::IsUnavailable(engine_.Ask(Tick{}).status()));
}

TEST_F(Burst, Draining_RefusesNewCommands) {
  Begin(absl::Milliseconds(10));
  std::thread ending([this] { End(absl::Seconds(20)); });
  absl::Status status;
  while (status.ok()) status = engine_.Ask(Tick{}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(permitted_, kPods) << "the call failed at once";
  ending.join();
  EXPECT_EQ(permitted_, kPods);
}

// A hanging API server does not block the stop, and nothing is sent after the callers were answered.
TEST_F(Burst, HangingApiServer_DoesNotBlockStop) {
  Begin(absl::Hours(1));
  const absl::Time begun = SteadyNow();
  End(absl::Milliseconds(300));
  EXPECT_LT(SteadyNow() - begun, absl::Seconds(5));
  EXPECT_EQ(permitted_, 0);
  EXPECT_EQ(refused_, kPods);
  const int sent = api_.posts;
  EXPECT_LE(sent, 2) << "two workers";
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_EQ(api_.posts, sent);
  // The next process finds every promise, and finishes the start.
  const absl::StatusOr<Store::Contents> contents = store_.TakeOver();
  int commits = 0;
  for (const Record& record : contents->records) commits += record.kind == "commit" ? 1 : 0;
  EXPECT_EQ(commits, kPods);
}

// --- deadlines ---

class ManualClock : public Clock {
 public:
  [[nodiscard]] int64_t NowMs() const override { return now_ms; }
  std::atomic<int64_t> now_ms{1'000'000};
};

// Receives outcomes, as the engine would.
class Outcomes : public DecisionPort {
 public:
  absl::StatusOr<Reply> Ask(Command, absl::Duration) override { return absl::UnimplementedError("not asked"); }
  absl::StatusOr<HoldToken> Hold(Bind, HoldCallback) override { return absl::UnimplementedError("not asked"); }
  absl::Status Announce(Command command) override {
    MutexLock lock(&mutex_);
    outcomes_.push_back(std::get<BindingOutcome>(std::move(command)));
    changed_.SignalAll();
    return absl::OkStatus();
  }
  BindingOutcome Next() {
    MutexLock lock(&mutex_);
    while (outcomes_.empty()) changed_.Wait(&mutex_);
    BindingOutcome first = std::move(outcomes_.front());
    outcomes_.erase(outcomes_.begin());
    return first;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<BindingOutcome> outcomes_ ABSL_GUARDED_BY(mutex_);
};

// Activations, marks and evictions reach the API server however long it refuses them (SPEC S-2, K-7).
class RefusedRequest : public testing::Test {
 protected:
  RefusedRequest() {
    client_ = std::make_unique<KubeClient>(ServerAt(server_.port));
    ActuatorOptions options;
    options.min_pause = absl::Milliseconds(1);
    options.max_pause = absl::Milliseconds(4);
    options.max_server_pause = absl::Seconds(1);
    actuator_ = std::make_unique<Actuator>(client_.get(), options);
    actuator_->Start(nullptr);
  }
  ~RefusedRequest() override { actuator_->Stop(); }
  static PodRef Pod(const std::string& name) { return {"d", name, "u-" + name}; }
  // Waits for `times` requests that contain `text` and a moment longer; returns all requests.
  std::vector<std::string> Changes(const std::string& text, int times) {
    std::vector<std::string> all;
    const auto gather = [&] {
      for (std::string& change : server_.TakeChanges()) all.push_back(std::move(change));
    };
    for (int i = 0; i < 2'000 && Count(all, text) < times; ++i, gather()) absl::SleepFor(absl::Milliseconds(5));
    absl::SleepFor(absl::Milliseconds(150));
    gather();
    return all;
  }
  static int Count(const std::vector<std::string>& changes, const std::string& text) {
    int count = 0;
    for (const std::string& change : changes) count += absl::StrContains(change, text) ? 1 : 0;
    return count;
  }

  FakeApiServer<httplib::Server> server_;
  std::unique_ptr<KubeClient> client_;
  std::unique_ptr<Actuator> actuator_;
};

TEST_F(RefusedRequest, TransientFailure_RetriedUntilDone) {
  for (const int status : {500, 503, 429, 401, 403}) {
    server_.Answer(status);
    actuator_->Carry({ActivatePod{Pod("a"), true}, MarkTimedOut{Pod("b")}, EvictPod{Pod("c"), "why"}});
    for (const char* path : {" PATCH a ", " PATCH b ", " POST c/eviction "}) {
      EXPECT_GT(Count(Changes(path, 9), path), 8) << status;
    }
    server_.Answer(200);
    const std::vector<std::string> done = Changes("200 ", 3);
    EXPECT_EQ(Count(done, "200 PATCH a "), 1) << status;
    EXPECT_EQ(Count(done, "200 PATCH b "), 1) << status;
    EXPECT_EQ(Count(done, "200 POST c/eviction "), 1) << status;
    EXPECT_EQ(actuator_->stats().waiting, 0U);
    EXPECT_EQ(actuator_->stats().failed, 0U);
  }
}

// As with a PodDisruptionBudget: a refused eviction is retried after the time in Retry-After, not before.
TEST_F(RefusedRequest, RetryAfter_IsRespected) {
  server_.Answer(429, /*retry_after_s=*/1);
  const absl::Time begun = SteadyNow();
  actuator_->Carry({EvictPod{Pod("a"), "why"}});
  EXPECT_EQ(Changes("429 POST a/eviction ", 1).size(), 1U);
  server_.Answer(200);
  EXPECT_EQ(Changes("200 POST a/eviction ", 1).size(), 1U);
  EXPECT_GE(SteadyNow() - begun, absl::Seconds(1));
}

TEST_F(RefusedRequest, RepeatedRequest_DoneOnceAsLastWanted) {
  server_.Answer(503);
  for (int i = 0; i < 50; ++i) {
    actuator_->Carry({ActivatePod{Pod("a"), false}, EvictPod{Pod("a"), "why"}});
    absl::SleepFor(absl::Milliseconds(1));
  }
  actuator_->Carry({ActivatePod{Pod("a"), /*remove_gate=*/true}});
  EXPECT_LE(actuator_->stats().waiting, 2U);
  static_cast<void>(Changes("schedulingGates", 3));
  server_.Answer(200);
  const std::vector<std::string> done = Changes("200 ", 2);
  EXPECT_EQ(Count(done, "200 PATCH a "), 1);
  EXPECT_EQ(Count(done, "schedulingGates"), Count(done, "PATCH a ")) << "the last wish was to take the gate";
  EXPECT_EQ(Count(done, "200 POST a/eviction "), 1);
}

TEST_F(RefusedRequest, GoneOrInvalid_NotRetried) {
  for (const int status : {404, 409, 422}) {
    server_.Answer(status);
    const auto other = [&](const std::string& name) {
      return status == 409 ? PodRef{"d", name, "u-before"} : Pod(name);
    };
    actuator_->Carry({ActivatePod{other("a"), true}, MarkTimedOut{other("b")}});
    EXPECT_EQ(Changes("PATCH", 2).size(), 2U) << status;
    EXPECT_EQ(actuator_->stats().failed, status == 422 ? 2U : 0U) << "gone is not failed";
  }
}

// A 409 means that another pod has the name, or that the object changed during the write; the pod's UID decides.
TEST_F(RefusedRequest, ConflictOnExistingPod_IsRetried) {
  server_.Answer(409);
  actuator_->Carry({ActivatePod{Pod("a"), true}, MarkTimedOut{Pod("b")}, EvictPod{Pod("c"), "why"}});
  for (const char* path : {" PATCH a ", " PATCH b ", " POST c/eviction "}) EXPECT_GT(Count(Changes(path, 4), path), 3);
  server_.Answer(200);
  EXPECT_EQ(Count(Changes("200 ", 3), "200 "), 3);
  EXPECT_GT(actuator_->stats().retries, 9U);
}

// A Retry-After from an API server or a proxy must not delay a pod for days.
TEST_F(RefusedRequest, HugeRetryAfter_IsCapped) {
  server_.Answer(429, /*retry_after_s=*/2'000'000'000);
  actuator_->Carry({ActivatePod{Pod("a"), true}});
  EXPECT_GE(Count(Changes("429 PATCH a ", 1), "429 PATCH a "), 1);
  server_.Answer(200);
  EXPECT_EQ(Count(Changes("200 PATCH a ", 1), "200 PATCH a "), 1);
}

// Invalid text from outside does not end a thread.
TEST_F(RefusedRequest, EventWithInvalidUtf8_DoesNotStopActuator) {
  actuator_->Carry(
      {EmitPodEvent{Pod("a"), true, Reason{ReasonCode::kBindFailed, "refus\xe9"}}, ActivatePod{Pod("b"), true}});
  EXPECT_EQ(Count(Changes("200 PATCH b ", 1), "200 PATCH b "), 1);
  absl::SleepFor(absl::Milliseconds(100));
}

// A deadline is a time of the clock that set it, whatever the wall clock shows.
TEST(Deadlines, Deadline_UsesClockThatSetIt) {
  FakeApiServer<httplib::Server> api;
  KubeClient client(ServerAt(api.port));
  ManualClock clock;  // in 1970: by the wall clock, each of its deadlines passed long ago
  ActuatorOptions options;
  options.clock = &clock;
  Actuator actuator(&client, options);
  Outcomes outcomes;
  actuator.Start(&outcomes);
  const auto bind = [&](const std::string& pod) {
    actuator.Carry({BindPod{{"d", pod, absl::StrCat("u-", pod)}, "n", 1'045'000}});
    return outcomes.Next().result;
  };
  EXPECT_EQ(bind("a"), BindingResult::kBound);
  clock.now_ms = 1'040'000;  // what is left is also the time that the API server has to answer
  EXPECT_EQ(bind("b"), BindingResult::kBound);
  clock.now_ms = 1'045'000;
  EXPECT_EQ(api.posts, 2);
  EXPECT_EQ(bind("c"), BindingResult::kRefused);
  EXPECT_EQ(api.posts, 2) << "nothing is sent when the time is over";
  // An earlier request may have arrived.
  api.Bind("d");
  EXPECT_EQ(bind("d"), BindingResult::kBound);
  EXPECT_EQ(api.posts, 2);
  actuator.Stop();
  // K-4: without any response the result is unknown.
  KubeClient unreachable(ServerAt(1));
  Actuator deaf(&unreachable, options);
  deaf.Start(&outcomes);
  deaf.Carry({BindPod{{"d", "e", "u-e"}, "n", 1'045'000}});
  EXPECT_EQ(outcomes.Next().result, BindingResult::kRetry);
  deaf.Stop();
}

// --- connections ---

// Connections that the server dropped while they were idle cost one failed request, not one each.
TEST(Connections, DroppedConnections_CostOneTry) {
  const TestFolder folder;
  const TestAuthority authority(folder.path(), "kube");
  authority.Issue("api", "api");
  FakeApiServer<httplib::SSLServer> api(authority.cert_file("api").c_str(), authority.key_file("api").c_str());
  KubeConfig config = ServerAt(api.port);
  config.tls = true;
  config.skip_verify = true;
  KubeClient client(config);
  const auto send = [&] { return client.Send(KubeMethod::kGet, "/api/v1/namespaces/d/pods/p", "", absl::Seconds(5)); };
  {
    api.delay = absl::Milliseconds(100);
    std::vector<std::thread> together;
    for (int i = 0; i < 8; ++i) {
      together.emplace_back([&] {
        client.Send(KubeMethod::kPost, "/api/v1/namespaces/d/pods/p/binding", "{}", absl::Seconds(5))
            .status()
            .IgnoreError();
      });
    }
    for (std::thread& thread : together) thread.join();
  }
  EXPECT_EQ(api.posts, 8);
  absl::SleepFor(absl::Milliseconds(1'500));  // the server keeps an idle connection for a second
  int failures = 0;
  while (!send().ok() && failures < 8) ++failures;
  EXPECT_LE(failures, 1);
}

TEST(Connections, HangingRequest_EndsWithClient) {
  FakeApiServer<httplib::Server> api;
  api.delay = absl::Hours(1);
  KubeClient client(ServerAt(api.port));
  std::thread stopper([&] {
    while (api.posts == 0) absl::SleepFor(absl::Milliseconds(1));
    client.Stop();
  });
  const absl::Time begun = SteadyNow();
  EXPECT_FALSE(client.Send(KubeMethod::kPost, "/api/v1/namespaces/d/pods/p/binding", "{}", absl::Minutes(5)).ok());
  EXPECT_LT(SteadyNow() - begun, absl::Seconds(5));
  stopper.join();
  EXPECT_TRUE(absl::IsCancelled(client.Send(KubeMethod::kGet, "/x", "", absl::Seconds(5)).status()));
}

}  // namespace
}  // namespace muster
