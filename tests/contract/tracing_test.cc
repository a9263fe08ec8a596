// What is told of decisions: a span each, and one of a gang's start (SPEC S-4).
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/engine/engine.h"
#include "service/tracing/otlp_exporter.h"
#include "service/tracing/trace_log.h"
#include "tests/contract/engine_fixture.h"
#include "tests/contract/warm_libraries.h"

namespace muster {
namespace {

constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

// https://www.w3.org/TR/trace-context/#traceparent-header
TEST(Traceparent, IsReadOrLeftAlone) {
  const SpanRef caller = ParseTraceparent(kParent);
  EXPECT_EQ(TraceHex(caller.trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(SpanHex(caller.span), "b7ad6b7169203331");
  EXPECT_FALSE(ParseTraceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-later").none());
  const std::string good = kParent;
  const std::vector<std::string> wrong = {std::string(),
                                          good.substr(1),
                                          good + "-x",
                                          good.substr(0, 54),
                                          "ff" + good.substr(2),
                                          "0X" + good.substr(2),
                                          "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                          "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                          "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                                          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01",
                                          "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
  for (const std::string& bad : wrong) {
    EXPECT_TRUE(ParseTraceparent(bad).none()) << bad;
  }
  EXPECT_TRUE(caller.sampled);
  EXPECT_FALSE(ParseTraceparent(good.substr(0, 53) + "00").sampled);
}

TEST(Traceparent, IsTheThreadsForAsLongAsItServes) {
  EXPECT_TRUE(CurrentCaller().none());
  {
    const ScopedCaller outer(ParseTraceparent(kParent));
    EXPECT_FALSE(CurrentCaller().none());
    {
      const ScopedCaller inner{SpanRef()};
      EXPECT_TRUE(CurrentCaller().none());
    }
    EXPECT_FALSE(CurrentCaller().none());
    std::thread([] { EXPECT_TRUE(CurrentCaller().none()); }).join();
  }
  EXPECT_TRUE(CurrentCaller().none());
}

// Keeps what ends, and waits for it.
class SpanKeeper : public SpanSink {
 public:
  void Ended(const Spans& spans) override {
    MutexLock lock(&mutex_);
    kept_.insert(kept_.end(), spans.begin(), spans.end());
    changed_.SignalAll();
  }
  std::vector<std::shared_ptr<const Span>> Wait(absl::string_view name, size_t count) {
    MutexLock lock(&mutex_);
    const absl::Time until = SteadyNow() + absl::Seconds(20);
    std::vector<std::shared_ptr<const Span>> out;
    while (true) {
      out.clear();
      for (const auto& span : kept_) {
        if (span->name == name) out.push_back(span);
      }
      if (out.size() >= count || SteadyNow() > until) return out;
      changed_.WaitWithTimeout(&mutex_, absl::Milliseconds(50));
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  Spans kept_ ABSL_GUARDED_BY(mutex_);
};

// Binds as the API server would, a little later, one after the other.
class LateBinder : public EffectSink {
 public:
  ~LateBinder() override { Join(); }
  void Carry(std::vector<Effect> effects) override {
    for (const Effect& effect : effects) {
      const auto* bind = std::get_if<BindPod>(&effect);
      if (bind == nullptr) continue;
      MutexLock lock(&mutex_);
      ++sent;
      const auto delay = absl::Milliseconds(20) * (threads_.size() + 1);
      threads_.emplace_back([this, delay, uid = bind->pod.uid, node = bind->node] {
        absl::SleepFor(delay);
        engine->Announce(BindingOutcome{uid, node, BindingResult::kBound, ""}).IgnoreError();
      });
    }
  }
  void Join() {
    MutexLock lock(&mutex_);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  Engine* engine = nullptr;
  std::atomic<int> sent{0};

 private:
  Mutex mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

class TracedEngine : public testing::Test {
 protected:
  TracedEngine() : engine_(MachineSettings(), Options(&spans_), &store_, &binder_) {
    binder_.engine = &engine_;
    EXPECT_TRUE(engine_.Start().ok());
    EXPECT_TRUE(engine_.Announce(UpsertNode{SomeNode()}).ok());
    EXPECT_TRUE(engine_.Announce(FactsRead{}).ok());
  }
  ~TracedEngine() override {
    binder_.Join();
    engine_.Stop();
  }
  static EngineOptions Options(SpanSink* spans) {
    EngineOptions options;
    options.spans = spans;
    return options;
  }
  void Put(const PodDescription& pod) { ASSERT_TRUE(engine_.Announce(UpsertPod{pod}).ok()); }
  void AwaitPlan() {
    bool planned = false;
    while (!planned) {
      ASSERT_TRUE(
          engine_
              .Query([&](const Machine& machine) { planned = machine.plans().Of(*machine.FindGang("d/g")) != nullptr; })
              .ok());
    }
  }
  void AskFilter(const std::string& uid) {
    ASSERT_TRUE(engine_.Ask(Filter{uid, std::make_shared<NodeOffer>(NodeOffer::Every())}).ok());
  }

  SpanKeeper spans_;
  MemoryStore store_;
  LateBinder binder_;
  Engine engine_;
};

// From the first question to the last binding: one trace, in which everybody is below the start.
TEST_F(TracedEngine, AGangsStartIsOneTrace) {
  Put(SomePod("a", "g", 2));
  Put(SomePod("b", "g", 2));
  AwaitPlan();
  AskFilter("u-a");
  ASSERT_TRUE(engine_.Hold(Bind{"u-a", "n", 0}, [](const HoldAnswer&) {}).ok());
  absl::SleepFor(absl::Milliseconds(30));
  AskFilter("u-b");
  ASSERT_TRUE(engine_.Hold(Bind{"u-b", "n", 0}, [](const HoldAnswer&) {}).ok());
  const auto starts = spans_.Wait("gang start", 1);
  ASSERT_EQ(starts.size(), 1U);
  const Span& start = *starts.front();
  EXPECT_EQ(start.gang, "d/g");
  EXPECT_EQ(start.pods, 2);
  EXPECT_EQ(start.parent, 0U);
  EXPECT_GE(start.took_us, 50'000) << "30 ms apart, and 20 ms to bind";
  const auto filters = spans_.Wait("filter", 2);
  const auto binds = spans_.Wait("bind", 2);
  const auto bindings = spans_.Wait("binding", 2);
  ASSERT_EQ(filters.size(), 2U);
  ASSERT_EQ(binds.size(), 2U);
  ASSERT_EQ(bindings.size(), 2U);
  std::set<uint64_t> ids = {start.id};
  for (const auto& span : {filters[0], filters[1], binds[0], binds[1]}) {
    EXPECT_EQ(span->trace, start.trace);
    EXPECT_EQ(span->parent, start.id);
    EXPECT_EQ(span->gang, "d/g");
    EXPECT_GE(span->begun_us, start.begun_us);
    EXPECT_LE(span->begun_us + span->took_us, start.begun_us + start.took_us);
    EXPECT_TRUE(ids.insert(span->id).second);
  }
  EXPECT_EQ(filters[0]->begun_us, start.begun_us) << "the first question begins it";
  EXPECT_EQ(filters[0]->outcome, "one node");
  EXPECT_EQ(filters[0]->parts.held, -1);
  EXPECT_GE(filters[0]->took_us, filters[0]->parts.waited + filters[0]->parts.decided);
  const Span* held = nullptr;
  const Span* last = nullptr;
  for (const auto& bind : binds) (bind->pod == "d/a" ? held : last) = bind.get();
  ASSERT_TRUE(held != nullptr && last != nullptr);
  EXPECT_EQ(held->outcome, "bound");
  EXPECT_EQ(held->node, "n");
  EXPECT_GE(held->parts.held, 30'000);
  EXPECT_LT(last->parts.held, held->parts.held) << "nobody was missing any more";
  for (const Span* bind : {held, last}) {
    EXPECT_GE(bind->parts.bound, 20'000);
    EXPECT_NEAR(static_cast<double>(bind->took_us),
                static_cast<double>(bind->parts.waited + bind->parts.decided + bind->parts.held + bind->parts.bound),
                20'000);
  }
  for (const auto& binding : bindings) {
    const Span* of = binding->pod == "d/a" ? held : last;
    EXPECT_EQ(binding->parent, of->id);
    EXPECT_EQ(binding->trace, start.trace);
    EXPECT_GE(binding->took_us, 20'000);
    EXPECT_EQ(binding->outcome, "bound");
  }
  ASSERT_EQ(start.links.size(), 2U);
  // One that comes later is no part of the start, which is over.
  Put(SomePod("c", "g", 2));
  AskFilter("u-c");
  ASSERT_TRUE(engine_.Hold(Bind{"u-c", "n", 0}, [](const HoldAnswer&) {}).ok());
  EXPECT_EQ(spans_.Wait("bind", 3).size(), 3U);
  EXPECT_EQ(spans_.Wait("gang start", 1).size(), 1U) << "once";
}

// A watch may tell that a pod is bound before the call that bound it is answered.
TEST_F(TracedEngine, ABindingIsToldWhoeverTellsOfItFirst) {
  Put(SomePod("a", "g", 1));
  AwaitPlan();
  AskFilter("u-a");
  Notification answered;
  ASSERT_TRUE(engine_.Hold(Bind{"u-a", "n", 0}, [&](const HoldAnswer&) { answered.Notify(); }).ok());
  while (binder_.sent == 0) absl::SleepFor(absl::Milliseconds(1));
  PodDescription bound = SomePod("a", "g", 1);
  bound.node_name = "n";
  Put(bound);
  answered.WaitForNotification();
  const auto binds = spans_.Wait("bind", 1);
  const auto bindings = spans_.Wait("binding", 1);
  ASSERT_EQ(binds.size() + bindings.size(), 2U);
  EXPECT_GE(binds[0]->parts.bound, 0);
  EXPECT_GT(bindings[0]->took_us, binds[0]->parts.bound);
  EXPECT_EQ(bindings[0]->parent, binds[0]->id);
}

// What a caller traces stays in its trace, and is linked with the gang's start.
TEST_F(TracedEngine, ACallersTraceIsItsOwn) {
  Put(SomePod("a", "g", 1));
  Put(SomePod("alone", "", 0));
  AwaitPlan();
  const SpanRef caller = ParseTraceparent(kParent);
  {
    const ScopedCaller on(caller);
    AskFilter("u-a");
    ASSERT_TRUE(engine_.Hold(Bind{"u-a", "n", 0}, [](const HoldAnswer&) {}).ok());
    AskFilter("u-alone");
  }
  const auto starts = spans_.Wait("gang start", 1);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_FALSE(starts[0]->trace == caller.trace);
  for (const auto& span : {spans_.Wait("filter", 2)[0], spans_.Wait("bind", 1)[0]}) {
    EXPECT_TRUE(span->trace == caller.trace);
    EXPECT_EQ(span->parent, caller.span);
    ASSERT_EQ(span->links.size(), 1U) << span->name;
    EXPECT_TRUE(span->links[0].to.trace == starts[0]->trace);
    EXPECT_EQ(span->links[0].to.span, starts[0]->id);
  }
  EXPECT_TRUE(spans_.Wait("filter", 2)[1]->links.empty()) << "of no gang";
  EXPECT_TRUE(spans_.Wait("binding", 1)[0]->trace == caller.trace);
}

// A Permit that waits ends with its verdict, and says who let it go.
TEST_F(TracedEngine, WhoLetsAHoldGo) {
  for (const char* name : {"a", "b"}) {
    PodDescription pod = SomePod(name, "g", 2);
    pod.scheduler_name = "own";
    Put(pod);
  }
  const auto never = std::chrono::steady_clock::time_point::max();
  const auto permit = [&](const std::string& uid) {
    engine_.AskPermit(
        Permit{uid, "n"}, never, [](const absl::StatusOr<Reply>&) {}, [](const HoldAnswer&) {});
  };
  permit("u-a");
  ASSERT_TRUE(engine_.Query([](const Machine&) {}).ok());
  permit("u-b");
  const auto permits = spans_.Wait("permit", 2);
  ASSERT_EQ(permits.size(), 2U);
  const bool first = permits[0]->pod == "d/a";
  const Span& waited = *permits[first ? 0 : 1];
  const Span& last = *permits[first ? 1 : 0];
  EXPECT_EQ(waited.outcome, "permitted");
  EXPECT_EQ(last.outcome, "permitted");
  ASSERT_EQ(waited.links.size(), 1U);
  EXPECT_EQ(waited.links[0].to.span, last.id);
  EXPECT_EQ(spans_.Wait("gang start", 1)[0]->pods, 2);
}

TEST_F(TracedEngine, RefusalsSayWhy) {
  Put(SomePod("a", "g", 2));
  AskFilter("u-a");
  AskFilter("u-nobody");
  const auto filters = spans_.Wait("filter", 2);
  ASSERT_EQ(filters.size(), 2U);
  EXPECT_EQ(filters[0]->outcome, "refused");
  EXPECT_EQ(filters[0]->reason.code, ReasonCode::kNotEnoughPods);
  EXPECT_EQ(filters[1]->reason.code, ReasonCode::kUnknownPod);
  EXPECT_EQ(filters[1]->pod_uid, "u-nobody");
  EXPECT_FALSE(filters[1]->trace.none());
  EXPECT_FALSE(engine_.Ask(ConfirmGang{"nothing", 1}).ok());
  EXPECT_EQ(spans_.Wait("confirm", 1)[0]->outcome, "error");
}

// What nobody could read costs nothing: of very many decisions in a second the rest leave no span, and are counted.
TEST_F(TracedEngine, TooManyAreNotTraced) {
  Put(SomePod("alone", "", 0));
  Tracer tracer(&spans_);
  const Command filter = Filter{"u-alone", nullptr};
  int64_t made = 0;
  const int64_t tries = 4 * Tracer::kPerSecond;
  for (int64_t i = 0; i < tries; ++i) made += tracer.Begin(filter) != nullptr ? 1 : 0;
  EXPECT_GE(made, Tracer::kPerSecond);
  EXPECT_EQ(made + tracer.skipped(), tries);
  EXPECT_GT(tracer.skipped(), 0) << "unless four times as many take four seconds";
  absl::SleepFor(absl::Seconds(1));
  EXPECT_NE(tracer.Begin(filter), nullptr) << "the next second";
  AskFilter("u-alone");
  EXPECT_EQ(engine_.stats().spans_skipped, 0);
}

// A gang that had started before this process began does not start again with a pod that comes later.
TEST_F(TracedEngine, WhatHadStartedBeforeDoesNotStartAgain) {
  for (const char* name : {"a", "b"}) {
    PodDescription pod = SomePod(name, "g", 2);
    pod.node_name = "n";
    pod.phase = PodPhase::kRunning;
    Put(pod);
  }
  Put(SomePod("c", "g", 2));
  AskFilter("u-c");
  ASSERT_TRUE(engine_.Hold(Bind{"u-c", "n", 0}, [](const HoldAnswer&) {}).ok());
  EXPECT_EQ(spans_.Wait("bind", 1).size(), 1U);
  ASSERT_TRUE(engine_.Query([](const Machine&) {}).ok());
  EXPECT_TRUE(spans_.Wait("gang start", 0).empty());
}

// G-8: all its pods are gone, and others come under the same name: it starts anew, in a trace of its own.
TEST_F(TracedEngine, AGangThatStartsAnewHasAnotherTrace) {
  GangObject object;
  object.dialect = GangDialect::kPodGroupSigs;
  object.name_space = "d";
  object.name = "g";
  object.uid = "o";
  object.declaration.min_member = 1;
  ASSERT_TRUE(engine_.Announce(UpsertGangObject{object}).ok());
  for (const std::string name : {"a", "b"}) {
    PodDescription pod = SomePod(name, "g", 1);
    pod.gang.declares = false;
    pod.gang.dialect = GangDialect::kPodGroupSigs;
    Put(pod);
    AwaitPlan();
    AskFilter("u-" + name);
    ASSERT_TRUE(engine_.Hold(Bind{"u-" + name, "n", 0}, [](const HoldAnswer&) {}).ok());
    ASSERT_EQ(spans_.Wait("gang start", name == "a" ? 1 : 2).size(), name == "a" ? 1U : 2U);
    ASSERT_TRUE(engine_.Announce(RemovePod{"u-" + name}).ok());
  }
  const auto starts = spans_.Wait("gang start", 2);
  EXPECT_FALSE(starts[0]->trace == starts[1]->trace);
  EXPECT_GE(starts[1]->begun_us, starts[0]->begun_us + starts[0]->took_us);
}

// The last member's caller hangs up: the gang starts all the same.
TEST_F(TracedEngine, AStartNeedsNobodyToWait) {
  Put(SomePod("a", "g", 2));
  Put(SomePod("b", "g", 2));
  AwaitPlan();
  std::vector<HoldToken> tokens;
  for (const std::string uid : {"u-a", "u-b"}) {
    AskFilter(uid);
    const absl::StatusOr<HoldToken> token = engine_.Hold(Bind{uid, "n", 0}, [](const HoldAnswer&) {});
    ASSERT_TRUE(token.ok());
    tokens.push_back(*token);
  }
  while (binder_.sent < 2) absl::SleepFor(absl::Milliseconds(1));
  ASSERT_TRUE(engine_.Announce(EndHold{"u-a", tokens[0]}).ok());
  ASSERT_TRUE(engine_.Announce(EndHold{"u-b", tokens[1]}).ok());
  const auto starts = spans_.Wait("gang start", 1);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0]->pods, 2);
  EXPECT_EQ(spans_.Wait("binding", 2).size(), 2U) << "they are told though nobody waits";
}

// What a caller sends is not kept at whatever length.
TEST_F(TracedEngine, LongWordsAreClipped) {
  const std::string uid(100'000, 'u');
  ASSERT_TRUE(engine_.Ask(PreFilter{uid}).ok());
  const auto spans = spans_.Wait("prefilter", 1);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_LE(spans[0]->pod_uid.size() + spans[0]->reason.text.size() + spans[0]->node.size(), 4'096U);
}

// --- what is kept ---

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

TEST(TraceLogTest, IsBounded) {
  TraceLog log(5, nullptr);
  for (int i = 1; i <= 4; ++i) log.Ended({SpanOf("d/a", i)});
  EXPECT_EQ(log.Of("d/a").spans.size(), 4U);
  EXPECT_EQ(log.Of("d/a").kept_since_us, 0) << "everything";
  log.Ended({SpanOf("d/b", 5), SpanOf("d/b", 6), SpanOf("d/b", 7)});
  EXPECT_EQ(log.Of("d/a").spans.size(), 2U);
  EXPECT_EQ(log.Of("d/a").spans.front()->begun_us, 3);
  EXPECT_EQ(log.Of("d/a").kept_since_us, 2);
  for (int i = 0; i < 100; ++i) log.Ended({SpanOf("", 10 + i)});
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
  none.Ended({SpanOf("d/a", 1)});
  EXPECT_TRUE(none.Of("d/a").spans.empty());
}

TEST(TraceLogTest, TellsTheLastOfMany) {
  TraceLog log(10'000, nullptr);
  for (int i = 1; i <= 3'000; ++i) log.Ended({SpanOf("d/a", i)});
  const TraceLog::Page page = log.Of("d/a");
  ASSERT_EQ(page.spans.size(), TraceLog::kMostTold);
  EXPECT_EQ(page.spans.front()->begun_us, 1'001);
  EXPECT_EQ(page.spans.back()->begun_us, 3'000);
  EXPECT_EQ(page.kept_since_us, 1'000);
}

TEST(TraceLogTest, InOrderAndByPod) {
  TraceLog log(100, nullptr);
  log.Ended({SpanOf("", 5, "d/x"), SpanOf("", 3, "d/y"), SpanOf("", 4, "d/x")});
  const TraceLog::Page page = log.Of("", "d/x");
  ASSERT_EQ(page.spans.size(), 2U);
  EXPECT_EQ(page.spans[0]->begun_us, 4);
  log.Ended({SpanOf("d/g", 6, "d/x"), SpanOf("d/g", 7, "d/z")});
  EXPECT_EQ(log.Of("d/g", "d/x").spans.size(), 1U);
  EXPECT_EQ(log.Of("", "d/x").spans.size(), 3U) << "whether it was in a gang or not";
  EXPECT_EQ(log.Of("").spans.size(), 3U);
  EXPECT_EQ(log.Gangs(10).size(), 1U);
  TraceLog pods(100, nullptr);
  pods.Ended({SpanOf("", 1)});
  EXPECT_TRUE(pods.Gangs(10).empty()) << "pods of no gang are none";
  const auto json = nlohmann::json::parse(TraceJson("", page));
  EXPECT_EQ(json["spans"][1]["beginUnixUs"], 5);
  EXPECT_EQ(json["spans"][1]["pod"], "d/x");
}

// --- what is sent ---

// A collector that answers as it is told.
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
    OtlpOptions options;
    options.url = absl::StrCat("http://127.0.0.1:", port_);
    options.every = absl::Milliseconds(20);
    return options;
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

TEST(OtlpExporterTest, TriesAgainWhatMayBeTakenLater) {
  Collector collector;
  collector.failures = 1;
  OtlpExporter exporter(collector.Options());
  exporter.Ended({SpanOf("d/a", 1), SpanOf("d/a", 2)});
  exporter.Ended({SpanOf("d/a", 3)});
  for (int i = 0; i < 500 && exporter.stats().exported < 3; ++i) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(exporter.stats().exported, 3);
  EXPECT_EQ(exporter.stats().dropped, 0);
  EXPECT_GE(collector.asked, 2);
  EXPECT_EQ(collector.traces().size(), 3U);
}

TEST(OtlpExporterTest, DropsWhatIsRefusedForGood) {
  Collector collector;
  collector.failures = 1;
  collector.status = 400;
  OtlpExporter exporter(collector.Options());
  exporter.Ended({SpanOf("d/a", 1)});
  for (int i = 0; i < 500 && exporter.stats().dropped < 1; ++i) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(exporter.stats().dropped, 1);
  EXPECT_EQ(collector.asked, 1);
}

// Nobody takes them: what is decided does not wait, and a stop neither.
TEST(OtlpExporterTest, IsNeverInTheWay) {
  OtlpOptions options;
  options.url = "http://127.0.0.1:1";
  options.queue = 100;
  options.every = absl::Seconds(60);
  options.batch = 1'000;
  OtlpExporter exporter(options);
  const absl::Time begun = SteadyNow();
  for (int i = 0; i < 1'000; ++i) exporter.Ended({SpanOf("d/a", i)});
  EXPECT_EQ(exporter.stats().dropped, 900);
  exporter.Stop();
  EXPECT_EQ(exporter.stats().dropped, 1'000);
  EXPECT_LT(SteadyNow() - begun, absl::Seconds(10));
}

// It takes the connection and never answers: a stop is over in time all the same.
TEST(OtlpExporterTest, AStopIsBounded) {
  httplib::Server silent;
  std::atomic<bool> over{false};
  silent.Post("/v1/traces", [&](const httplib::Request&, httplib::Response&) {
    while (!over) absl::SleepFor(absl::Milliseconds(10));
  });
  const int port = silent.bind_to_any_port("127.0.0.1");
  std::thread serving([&] { silent.listen_after_bind(); });
  OtlpOptions options;
  options.url = absl::StrCat("http://127.0.0.1:", port);
  options.batch = 1;
  options.timeout = absl::Milliseconds(600);
  OtlpExporter exporter(options);
  for (int i = 0; i < 100; ++i) exporter.Ended({SpanOf("d/a", i)});
  absl::SleepFor(absl::Milliseconds(50));
  const absl::Time begun = SteadyNow();
  exporter.Stop();
  EXPECT_LT(SteadyNow() - begun, OtlpExporter::kStopFor + absl::Seconds(3));
  EXPECT_EQ(exporter.stats().dropped, 100);
  over = true;
  silent.stop();
  serving.join();
}

// A trace of the caller's is sent as the caller says, whatever part of our own is.
TEST(OtlpExporterTest, ACallersTraceIsSampledByIt) {
  Collector collector;
  OtlpOptions options = collector.Options();
  options.sample_percent = 1;
  OtlpExporter exporter(options);
  for (const bool sampled : {true, false}) {
    auto span = std::make_shared<Span>(*SpanOf("d/a", 99));
    span->callers = true;
    span->sampled = sampled;
    span->trace = {7, sampled ? uint64_t{99} : uint64_t{0}};
    exporter.Ended({span});
  }
  exporter.Stop();
  EXPECT_EQ(collector.traces(), std::vector<std::string>{TraceHex({7, 99})});
}

TEST(OtlpExporterTest, SamplesWholeTraces) {
  Collector collector;
  OtlpOptions options = collector.Options();
  options.sample_percent = 25;
  OtlpExporter exporter(options);
  for (int64_t trace = 0; trace < 200; ++trace) exporter.Ended({SpanOf("d/a", trace), SpanOf("d/a", trace)});
  exporter.Stop();
  const std::vector<std::string> traces = collector.traces();
  EXPECT_EQ(traces.size(), 100U);
  const std::multiset<std::string> all(traces.begin(), traces.end());
  for (const std::string& trace : all) EXPECT_EQ(all.count(trace), 2U);
}

TEST(OtlpExporterTest, WhereACollectorIs) {
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
