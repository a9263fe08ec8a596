// The extender over real HTTP with a real engine: what kube-scheduler sees (SPEC K-1, K-3, K-4, K-14). Also built for
// ThreadSanitizer: it tests the threads of the engine and the listeners.
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "k8s-extender/webhook/extender.h"
#include "service/engine/engine.h"
#include "service/http/http_listener.h"
#include "support/json.h"
#include "tests/support/facts.h"

namespace muster {
namespace {

// An API server that accepts every binding, on its own threads.
class BindingSink : public EffectSink {
 public:
  ~BindingSink() override {
    for (std::thread& thread : threads_) thread.join();
  }
  void Carry(std::vector<Effect> effects) override {
    threads_.emplace_back([this, effects = std::move(effects)] {
      for (const Effect& effect : effects) {
        const auto* bind = std::get_if<BindPod>(&effect);
        if (bind == nullptr) continue;
        ++bound;
        port->Announce(BindingOutcome{bind->pod.uid, bind->node, BindingResult::kBound, ""}).IgnoreError();
      }
    });
  }
  DecisionPort* port = nullptr;
  std::atomic<int> bound{0};

 private:
  std::vector<std::thread> threads_;  // the engine's thread only
};

// Refuses every commit while it is closed.
class ClosableStore : public MemoryStore {
 public:
  absl::Status Commit(int64_t epoch, const std::vector<Record>& records) override {
    if (closed) return absl::UnavailableError("disk full");
    return MemoryStore::Commit(epoch, records);
  }
  std::atomic<bool> closed{false};
};

class ExtenderHttp : public testing::Test {
 protected:
  ExtenderHttp() { Start(MachineSettings()); }
  ~ExtenderHttp() override { StopAll(); }

  void Start(const MachineSettings& settings) {
    engine_ = std::make_unique<Engine>(settings, EngineOptions(), &store_, &sink_);
    sink_.port = engine_.get();
    EXPECT_TRUE(engine_->Start().ok());
    extender_ = std::make_unique<Extender>(engine_.get(), [](absl::string_view, absl::string_view, absl::Duration) {});
    HttpListenerOptions options;
    options.max_body_bytes = 1 << 20;
    decisions_ = std::make_unique<HttpListener>("decisions", options);
    options.one_request_per_connection = true;
    binds_ = std::make_unique<HttpListener>("binds", options);
    extender_->RegisterDecisions(&decisions_->server());
    extender_->RegisterBind(&binds_->server());
    ASSERT_TRUE(decisions_->Start().ok());
    ASSERT_TRUE(binds_->Start().ok());
  }
  void StopAll() {
    engine_->Stop();
    binds_->Stop();
    decisions_->Stop();
  }
  void AddNode(const std::string& name, int64_t cpu) {
    ASSERT_TRUE(engine_->Announce(UpsertNode{NodeWith(name, {{"cpu", cpu * 1000}, {"pods", 5000}})}).ok());
  }
  void AddPod(const std::string& name, const std::string& gang, int min) {
    PodDescription pod = gang.empty() ? Lone(name, 1'000) : Member(name, gang, min, 1'000);
    pod.uid = "u-" + name;
    pod.name_space = "default";
    ASSERT_TRUE(engine_->Announce(UpsertPod{pod}).ok());
  }
  Json Filter(const std::string& pod, const std::vector<std::string>& nodes) {
    httplib::Client client("127.0.0.1", decisions_->port());
    const Json body = {{"Pod", {{"metadata", {{"uid", "u-" + pod}}}}}, {"Nodes", nullptr}, {"NodeNames", nodes}};
    const httplib::Result result = client.Post("/filter", body.dump(), "application/json");
    EXPECT_TRUE(result) << httplib::to_string(result.error());
    EXPECT_EQ(result->status, 200);
    return *ParseJson(result->body, "answer");
  }
  // The error of the bind call; empty: bound.
  std::string Bind(const std::string& pod, const std::string& node, int timeout_s = 30) {
    httplib::Client client("127.0.0.1", binds_->port());
    client.set_read_timeout(timeout_s);
    const Json body = {{"PodName", pod}, {"PodNamespace", "default"}, {"PodUID", "u-" + pod}, {"Node", node}};
    const httplib::Result result = client.Post("/bind", body.dump(), "application/json");
    if (!result) return httplib::to_string(result.error());
    return (*ParseJson(result->body, "answer"))["Error"].get<std::string>();
  }
  // Announces FactsRead and waits until gang "g" is planned.
  void AnnounceFactsRead() {
    ASSERT_TRUE(engine_->Announce(FactsRead{}).ok());
    for (int i = 0; i < 500; ++i) {
      const auto gang = engine_->view()->gangs.Find("default/g");
      if (gang != nullptr && gang->planned > 0) return;
      absl::SleepFor(absl::Milliseconds(10));
    }
    FAIL() << "the gang is not planned";
  }
  int HeldBinds() const { return engine_->view()->held_binds; }
  void WaitHeld(int wanted) {
    for (int i = 0; i < 500 && HeldBinds() != wanted; ++i) absl::SleepFor(absl::Milliseconds(10));
    ASSERT_EQ(HeldBinds(), wanted);
  }

  ClosableStore store_;
  BindingSink sink_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Extender> extender_;
  std::unique_ptr<HttpListener> decisions_;
  std::unique_ptr<HttpListener> binds_;
};

TEST_F(ExtenderHttp, Gang_BoundOnlyAtQuorum) {
  AddNode("n", 8);
  for (int i = 0; i < 8; ++i) AddPod(absl::StrCat("p", i), "g", 8);
  AnnounceFactsRead();
  std::vector<std::thread> callers;
  std::atomic<int> bound{0};
  for (int i = 0; i < 8; ++i) {
    const std::string pod = absl::StrCat("p", i);
    ASSERT_EQ(Filter(pod, {"n"})["NodeNames"], Json::array({"n"}));
    if (i == 7) {
      WaitHeld(7);
      EXPECT_EQ(sink_.bound, 0) << "nothing may be bound before the last member is there";
    }
    callers.emplace_back([this, pod, &bound] {
      const std::string error = Bind(pod, "n");
      EXPECT_EQ(error, "");
      if (error.empty()) ++bound;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(bound, 8);
  EXPECT_EQ(sink_.bound, 8);
}

TEST_F(ExtenderHttp, ClientGone_HoldNeverBinds) {
  AddNode("n", 8);
  for (int i = 0; i < 2; ++i) AddPod(absl::StrCat("p", i), "g", 2);
  AnnounceFactsRead();
  Filter("p0", {"n"});
  EXPECT_NE(Bind("p0", "n", /*timeout_s=*/1), "") << "the client leaves after a second";
  WaitHeld(0);
  Filter("p1", {"n"});
  std::thread caller([this] { EXPECT_EQ(Bind("p1", "n"), ""); });
  WaitHeld(1);
  EXPECT_EQ(sink_.bound, 0);
  Filter("p0", {"n"});
  EXPECT_EQ(Bind("p0", "n"), "");
  caller.join();
}

// SPEC K-2: filter only reads, however many bind calls are held.
TEST_F(ExtenderHttp, ManyHolds_FilterStillAnswers) {
  constexpr int kHolds = 200;
  AddNode("n", 2 * kHolds);
  for (int i = 0; i <= kHolds; ++i) AddPod(absl::StrCat("p", i), "g", kHolds + 1);
  AddPod("plain", "", 0);
  AnnounceFactsRead();
  std::vector<std::thread> callers;
  for (int i = 0; i < kHolds; ++i) {
    Filter(absl::StrCat("p", i), {"n"});
    callers.emplace_back([this, i] { EXPECT_EQ(Bind(absl::StrCat("p", i), "n"), ""); });
  }
  WaitHeld(kHolds);
  EXPECT_EQ(Filter("plain", {"n"})["NodeNames"], Json::array({"n"}));
  Filter(absl::StrCat("p", kHolds), {"n"});
  EXPECT_EQ(Bind(absl::StrCat("p", kHolds), "n"), "");
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sink_.bound, kHolds + 1);
}

TEST_F(ExtenderHttp, Shutdown_AnswersHolds) {
  AddNode("n", 8);
  for (int i = 0; i < 2; ++i) AddPod(absl::StrCat("p", i), "g", 2);
  AnnounceFactsRead();
  Filter("p0", {"n"});
  std::thread caller([this] { EXPECT_NE(Bind("p0", "n").find("stopping"), std::string::npos); });
  WaitHeld(1);
  engine_->Stop();
  caller.join();
  EXPECT_EQ(sink_.bound, 0);
}

// SPEC S-6.
TEST_F(ExtenderHttp, BadBody_GetsPreciseError) {
  ASSERT_TRUE(engine_->Announce(FactsRead{}).ok());
  httplib::Client client("127.0.0.1", decisions_->port());
  const httplib::Result malformed = client.Post("/filter", "{\"Pod\":", "application/json");
  ASSERT_TRUE(malformed);
  EXPECT_EQ(malformed->status, 400);
  EXPECT_NE(malformed->body.find("ExtenderArgs: not the expected JSON object"), std::string::npos) << malformed->body;
  const httplib::Result huge = client.Post("/filter", std::string(2 << 20, ' '), "application/json");
  EXPECT_TRUE(!huge || huge->status == 413);
  const httplib::Result preempt = client.Post("/preempt", "nonsense", "application/json");
  ASSERT_TRUE(preempt);
  EXPECT_EQ(preempt->status, 400);
  const Json unknown = Filter("unknown", {"n"});
  EXPECT_NE(unknown["FailedAndUnresolvableNodes"]["n"].get<std::string>().find("not known"), std::string::npos);
}

// K-2: kube-scheduler may ask about a pod before the API server's watch has sent it.
TEST_F(ExtenderHttp, UnknownPod_ReadFromRequest) {
  AddNode("n", 1);
  ASSERT_TRUE(engine_->Announce(FactsRead{}).ok());
  std::vector<std::string> offered;
  bool announces = true;
  extender_->AnnounceUnknownPods([&](const Json& pod) {
    offered.push_back(pod["metadata"]["uid"]);
    if (announces) AddPod("late", "", 0);
    return announces;
  });
  EXPECT_EQ(Filter("late", {"n"})["NodeNames"], Json({"n"}));
  EXPECT_EQ(Filter("late", {"n"})["NodeNames"], Json({"n"}));
  announces = false;
  EXPECT_EQ(Filter("deleted", {"n"})["NodeNames"], Json::array());
  EXPECT_EQ(offered, (std::vector<std::string>{"u-late", "u-deleted"})) << "known pods are not read again";
}

// K-2, S-3: a store that refuses commits delays every reply that promises something. The preempt call is answered
// nevertheless: if waiting preempt calls took all connections, filter calls would not be served.
TEST_F(ExtenderHttp, FailingStore_PreemptStillAnswers) {
  AddNode("n", 1);
  AddPod("g-1", "g", 1);
  AnnounceFactsRead();
  store_.closed = true;
  std::thread binding([&] { static_cast<void>(Bind("g-1", "n")); });
  Filter("g-1", {"n"});
  for (int i = 0; i < 500 && engine_->view()->held_binds == 0; ++i) absl::SleepFor(absl::Milliseconds(1));
  AddPod("lone", "", 0);
  httplib::Client client("127.0.0.1", decisions_->port());
  client.set_read_timeout(20);
  const Json body = {{"Pod", {{"metadata", {{"uid", "u-lone"}, {"name", "lone"}, {"namespace", "default"}}}}},
                     {"NodeNameToMetaVictims", {{"n", {{"Pods", Json::array()}, {"NumPDBViolations", 0}}}}}};
  const absl::Time begun = SteadyNow();
  const httplib::Result preempt = client.Post("/preempt", body.dump(), "application/json");
  ASSERT_TRUE(preempt) << httplib::to_string(preempt.error());
  EXPECT_EQ(preempt->status, 200);
  EXPECT_LT(SteadyNow() - begun, absl::Seconds(10));
  store_.closed = false;
  binding.join();
}

// S-6: a client that does not read its response does not block other clients, and a stop does not wait for it.
TEST(HttpListenerTest, SilentClient_GivesWayToOthers) {
  constexpr int kMaxConnections = 4;
  HttpListenerOptions options;
  options.max_connections = kMaxConnections;
  HttpListener listener("test", options);
  std::atomic<int> asked{0};
  listener.server().Get("/large", [&](const httplib::Request&, httplib::Response& response) {
    ++asked;
    response.set_content(std::string(16 << 20, 'x'), "text/plain");
  });
  listener.server().Get(
      "/small", [](const httplib::Request&, httplib::Response& response) { response.set_content("ok", "text/plain"); });
  ASSERT_TRUE(listener.Start().ok());
  const auto ask = [&] {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const int unread_bytes = 64 << 10;  // buffered at the client; the response is larger than all buffers
    EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &unread_bytes, sizeof(unread_bytes)), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(listener.port()));
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    constexpr char kRequest[] = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
    EXPECT_GT(send(fd, kRequest, sizeof(kRequest) - 1, MSG_NOSIGNAL), 0);
    return fd;
  };
  std::vector<int> silent;
  for (int i = 0; i < kMaxConnections; ++i) silent.push_back(ask());
  for (int i = 0; i < 10'000 && asked < kMaxConnections; ++i) absl::SleepFor(absl::Milliseconds(1));
  ASSERT_EQ(asked, kMaxConnections);
  httplib::Client client("127.0.0.1", listener.port());
  client.set_read_timeout(10);
  const absl::Time begun = SteadyNow();
  const httplib::Result small = client.Get("/small");
  ASSERT_TRUE(small) << "no request was dropped";
  EXPECT_EQ(small->body, "ok");
  EXPECT_LT(SteadyNow() - begun, absl::Seconds(5));
  absl::SleepFor(absl::Milliseconds(1'200));  // the other clients do not read either
  const absl::Time stopping = SteadyNow();
  listener.Stop();
  EXPECT_LT(SteadyNow() - stopping, absl::Seconds(1));
  for (const int fd : silent) close(fd);
}

}  // namespace
}  // namespace muster
