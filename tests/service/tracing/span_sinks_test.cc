// Where ended spans go (SPEC S-4): the log of the most recent ones and its queries; the data that a collector receives,
// and the behaviour when it accepts nothing.
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/tracing/otlp_exporter.h"
#include "service/tracing/trace_log.h"
#include "support/clock.h"
#include "tests/support/warm_libraries.h"

namespace muster {
namespace {

std::shared_ptr<const Span> SpanOf(const std::string& gang, int64_t begun_us, const std::string& pod = "d/p") {
  auto span = std::make_shared<Span>();
  span->name = "filter";
  span->gang = gang;
  span->pod = pod;
  span->begun_us = begun_us;
  span->trace = {1, static_cast<uint64_t>(begun_us)};
  span->id = 7;
  return span;
}

TEST(TraceLogTest, TooManySpans_OldestAreDropped) {
  TraceLog log(5, nullptr);
  for (int i = 1; i <= 4; ++i) log.OnSpansEnded({SpanOf("d/a", i)});
  EXPECT_EQ(log.Of("d/a").spans.size(), 4U);
  EXPECT_EQ(log.Of("d/a").retained_since_us, 0) << "everything";
  log.OnSpansEnded({SpanOf("d/b", 5), SpanOf("d/b", 6), SpanOf("d/b", 7)});
  EXPECT_EQ(log.Of("d/a").spans.size(), 2U);
  EXPECT_EQ(log.Of("d/a").spans.front()->begun_us, 3);
  EXPECT_EQ(log.Of("d/a").retained_since_us, 2);
  for (int i = 0; i < 100; ++i) log.OnSpansEnded({SpanOf("", 10 + i)});
  EXPECT_EQ(log.Of("").spans.size(), 1U) << "pods of no gang push out their own kind only";
  EXPECT_EQ(log.Of("d/b").spans.size(), 3U);
  const auto gangs = log.Gangs(10);
  ASSERT_EQ(gangs.size(), 2U);
  EXPECT_EQ(gangs[0].gang, "d/b");
  EXPECT_EQ(gangs[0].spans, 3);
  EXPECT_EQ(log.Gangs(1).size(), 1U);
  EXPECT_EQ(log.Gangs(1)[0].spans, 3);
  EXPECT_EQ(log.ended(), 107);
  TraceLog none(0, nullptr);
  none.OnSpansEnded({SpanOf("d/a", 1)});
  EXPECT_TRUE(none.Of("d/a").spans.empty());
}

TEST(TraceLogTest, ManySpans_ReturnsMostRecent) {
  TraceLog log(10'000, nullptr);
  for (int i = 1; i <= 3'000; ++i) log.OnSpansEnded({SpanOf("d/a", i)});
  const TraceLog::Page page = log.Of("d/a");
  ASSERT_EQ(page.spans.size(), TraceLog::kMaxPageSpans);
  EXPECT_EQ(page.spans.front()->begun_us, 1'001);
  EXPECT_EQ(page.spans.back()->begun_us, 3'000);
  EXPECT_EQ(page.retained_since_us, 1'000);
}

TEST(TraceLogTest, Query_ReturnsSpansInOrderAndByPod) {
  TraceLog log(100, nullptr);
  log.OnSpansEnded({SpanOf("", 5, "d/x"), SpanOf("", 3, "d/y"), SpanOf("", 4, "d/x")});
  const TraceLog::Page page = log.Of("", "d/x");
  ASSERT_EQ(page.spans.size(), 2U);
  EXPECT_EQ(page.spans[0]->begun_us, 4);
  log.OnSpansEnded({SpanOf("d/g", 6, "d/x"), SpanOf("d/g", 7, "d/z")});
  EXPECT_EQ(log.Of("d/g", "d/x").spans.size(), 1U);
  EXPECT_EQ(log.Of("", "d/x").spans.size(), 3U) << "whether it was in a gang or not";
  EXPECT_EQ(log.Of("").spans.size(), 3U);
  EXPECT_EQ(log.Gangs(10).size(), 1U);
  TraceLog pods(100, nullptr);
  pods.OnSpansEnded({SpanOf("", 1)});
  EXPECT_TRUE(pods.Gangs(10).empty()) << "pods of no gang are none";
  const auto json = nlohmann::json::parse(TraceJson("", page));
  EXPECT_EQ(json["spans"][1]["beginUnixUs"], 5);
  EXPECT_EQ(json["spans"][1]["pod"], "d/x");
}

// A collector with scripted responses.
class Collector {
 public:
  Collector() {
    server_.Post("/v1/traces", [this](const httplib::Request& request, httplib::Response& response) {
      ++asked;
      response.status = failures.fetch_sub(1) > 0 ? status.load() : 200;
      if (response.status != 200) return;
      const auto body = nlohmann::json::parse(request.body);
      for (const auto& span : body["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
        MutexLock lock(&mutex_);
        traces_.push_back(span["traceId"]);
      }
    });
    EXPECT_TRUE(WarmLibraries());
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Collector() {
    server_.stop();
    thread_.join();
  }
  [[nodiscard]] OtlpOptions Options() const {
    return {.url = absl::StrCat("http://127.0.0.1:", port_), .every = absl::Milliseconds(20)};
  }
  [[nodiscard]] std::vector<std::string> traces() {
    MutexLock lock(&mutex_);
    return traces_;
  }
  std::atomic<int> failures{0};
  std::atomic<int> status{503};
  std::atomic<int> asked{0};

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  Mutex mutex_;
  std::vector<std::string> traces_ ABSL_GUARDED_BY(mutex_);
};

TEST(OtlpExporterTest, TemporaryError_IsRetried) {
  Collector collector;
  collector.failures = 1;
  OtlpExporter exporter(collector.Options());
  exporter.OnSpansEnded({SpanOf("d/a", 1), SpanOf("d/a", 2)});
  exporter.OnSpansEnded({SpanOf("d/a", 3)});
  for (int i = 0; i < 500 && exporter.stats().exported < 3; ++i) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(exporter.stats().exported, 3);
  EXPECT_EQ(exporter.stats().dropped, 0);
  EXPECT_GE(collector.asked, 2);
  EXPECT_EQ(collector.traces().size(), 3U);
}

TEST(OtlpExporterTest, PermanentError_DropsSpans) {
  Collector collector;
  collector.failures = 1;
  collector.status = 400;
  OtlpExporter exporter(collector.Options());
  exporter.OnSpansEnded({SpanOf("d/a", 1)});
  for (int i = 0; i < 500 && exporter.stats().dropped < 1; ++i) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(exporter.stats().dropped, 1);
  EXPECT_EQ(collector.asked, 1);
}

// The collector accepts nothing: neither decisions nor a stop wait for it.
TEST(OtlpExporterTest, CollectorUnreachable_DoesNotBlock) {
  OtlpExporter exporter({.url = "http://127.0.0.1:1", .queue = 100, .batch = 1'000, .every = absl::Seconds(60)});
  const absl::Time begun = SteadyNow();
  for (int i = 0; i < 1'000; ++i) exporter.OnSpansEnded({SpanOf("d/a", i)});
  EXPECT_EQ(exporter.stats().dropped, 900);
  exporter.Stop();
  EXPECT_EQ(exporter.stats().dropped, 1'000);
  EXPECT_LT(SteadyNow() - begun, absl::Seconds(10));
}

// The collector accepts the connection and never answers: a stop still ends in time.
TEST(OtlpExporterTest, SilentCollector_StopEndsInTime) {
  httplib::Server silent;
  std::atomic<bool> over{false};
  silent.Post("/v1/traces", [&](const httplib::Request&, httplib::Response&) {
    while (!over) absl::SleepFor(absl::Milliseconds(10));
  });
  const int port = silent.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { silent.listen_after_bind(); });
  OtlpExporter exporter(
      {.url = absl::StrCat("http://127.0.0.1:", port), .batch = 1, .timeout = absl::Milliseconds(600)});
  for (int i = 0; i < 100; ++i) exporter.OnSpansEnded({SpanOf("d/a", i)});
  absl::SleepFor(absl::Milliseconds(50));
  const absl::Time begun = SteadyNow();
  exporter.Stop();
  EXPECT_LT(SteadyNow() - begun, OtlpExporter::kStopFor + absl::Seconds(3));
  EXPECT_EQ(exporter.stats().dropped, 100);
  over = true;
  silent.stop();
  serving.join();
}

// Answers every request with `head`, then repeats `more` at the given rate until the client hangs up.
class Endless {
 public:
  Endless(std::string head, std::string more, absl::Duration pause)
      : head_(std::move(head)), more_(std::move(more)), pause_(pause) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~Endless() {
    over_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  int port = 0;
  std::atomic<int64_t> sent{0};

 private:
  void Serve() {
    while (!over_) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) continue;
      char request[512];
      bool open = recv(fd, request, sizeof(request), 0) > 0 && send(fd, head_.data(), head_.size(), MSG_NOSIGNAL) > 0;
      while (open && !over_) {
        const ssize_t took = send(fd, more_.data(), more_.size(), MSG_NOSIGNAL);
        open = took > 0;
        sent += std::max<ssize_t>(took, 0);
        if (pause_ > absl::ZeroDuration()) absl::SleepFor(pause_);
      }
      close(fd);
    }
  }
  const std::string head_;
  const std::string more_;
  const absl::Duration pause_;
  int listener_ = -1;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// For any response, however slow: a stop ends in time, and the response is not accumulated.
TEST(OtlpExporterTest, EndlessResponse_StopEndsInTime) {
  constexpr char kOk[] = "HTTP/1.1 200 OK\r\n";
  const std::string large(32 << 10, 'x');
  for (const auto& [head, more, pause] :
       {std::tuple<std::string, std::string, absl::Duration>{kOk, "X: y\r\n", absl::Milliseconds(20)},
        {absl::StrCat(kOk, "Content-Length: 1000000\r\n\r\n"), "x", absl::Milliseconds(20)},
        {absl::StrCat(kOk, "\r\n"), large, absl::ZeroDuration()}}) {
    Endless collector(head, more, pause);
    OtlpExporter exporter(
        {.url = absl::StrCat("http://127.0.0.1:", collector.port), .batch = 1, .timeout = absl::Seconds(30)});
    exporter.OnSpansEnded({SpanOf("d/a", 1)});
    for (int i = 0; i < 10'000 && collector.sent == 0; ++i) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_GT(collector.sent, 0);
    absl::SleepFor(absl::Milliseconds(200));
    const absl::Time begun = SteadyNow();
    exporter.Stop();
    EXPECT_LT(SteadyNow() - begun, OtlpExporter::kStopFor + absl::Seconds(1)) << head;
    EXPECT_LT(collector.sent, 16 << 20) << "what the sockets hold";
  }
}

// The caller decides about the sampling of its own trace, whatever the local sampling rate is.
TEST(OtlpExporterTest, CallerTrace_IsSampledByCaller) {
  Collector collector;
  OtlpOptions options = collector.Options();
  options.sample_percent = 1;
  OtlpExporter exporter(options);
  for (const bool sampled : {true, false}) {
    auto span = std::make_shared<Span>(*SpanOf("d/a", 99));
    span->callers = true;
    span->sampled = sampled;
    span->trace = {7, sampled ? uint64_t{99} : uint64_t{0}};
    exporter.OnSpansEnded({span});
  }
  exporter.Stop();
  EXPECT_EQ(collector.traces(), std::vector<std::string>{TraceHex({7, 99})});
}

TEST(OtlpExporterTest, SamplePercent_AppliesToWholeTraces) {
  Collector collector;
  OtlpOptions options = collector.Options();
  options.sample_percent = 25;
  OtlpExporter exporter(options);
  for (int64_t trace = 0; trace < 200; ++trace) exporter.OnSpansEnded({SpanOf("d/a", trace), SpanOf("d/a", trace)});
  exporter.Stop();
  const std::vector<std::string> traces = collector.traces();
  EXPECT_EQ(traces.size(), 100U);
  const std::multiset<std::string> all(traces.begin(), traces.end());
  for (const std::string& trace : all) EXPECT_EQ(all.count(trace), 2U);
}

TEST(OtlpExporterTest, CollectorUrl_IsParsed) {
  EXPECT_EQ(ParseOtlpUrl("http://c:4318")->path, "/v1/traces");
  EXPECT_EQ(ParseOtlpUrl("http://c:4318/")->path, "/v1/traces");
  EXPECT_EQ(ParseOtlpUrl("https://c/otlp/v1/traces")->path, "/otlp/v1/traces");
  EXPECT_EQ(ParseOtlpUrl("https://c/otlp/v1/traces")->server, "https://c");
  for (const char* bad :
       {"", "c:4318", "grpc://c:4317", "http://", "http:///x", "http://c d", "http://u:p@c", "http://c:0",
        "http://c:99999999999", "http://c:4318x", "http://[fd00::a1]:4318", "http://c/?a"}) {
    EXPECT_FALSE(ParseOtlpUrl(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace muster
