// The spans of the engine: one for each decision, and one for a gang's start (SPEC S-4).
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/engine/engine.h"
#include "tests/service/engine/engine_fixture.h"

namespace muster {
namespace tracing_test {

constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

// Stores ended spans, and waits for them.
class SpanKeeper : public SpanSink {
 public:
  void OnSpansEnded(const Spans& spans) override {
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
  TracedEngine() : engine_(MachineSettings(), EngineOptions{.spans = &spans_}, &store_, &binder_) {
    binder_.engine = &engine_;
    EXPECT_TRUE(engine_.Start().ok());
    EXPECT_TRUE(engine_.Announce(UpsertNode{SomeNode()}).ok());
    EXPECT_TRUE(engine_.Announce(FactsRead{}).ok());
  }
  ~TracedEngine() override {
    binder_.Join();
    engine_.Stop();
  }
  void Put(const PodDescription& pod) { ASSERT_TRUE(engine_.Announce(UpsertPod{pod}).ok()); }
  void AwaitPlan() {
    bool planned = false;
    while (!planned) {
      ASSERT_TRUE(engine_
                      .ReadDurableSync([&](const Machine& machine) {
                        planned = machine.reader().FindPlan(*machine.reader().FindGang("d/g")) != nullptr;
                      })
                      .ok());
    }
  }
  bool GangHasStarted() {
    bool started = false;
    EXPECT_TRUE(engine_
                    .ReadDurableSync([&](const Machine& machine) {
                      const Gang* gang = machine.reader().FindGang("d/g");
                      started =
                          gang != nullptr && gang->durable.satisfied && machine.reader().FindPlan(*gang) == nullptr;
                    })
                    .ok());
    return started;
  }
  void AskFilter(const std::string& uid) {
    ASSERT_TRUE(engine_.Ask(Filter{uid, std::make_shared<NodeOffer>(NodeOffer::AllNodes())}).ok());
  }
  // A filter call, and then a bind call that is held.
  absl::StatusOr<HoldToken> Schedule(const std::string& uid) {
    AskFilter(uid);
    return engine_.Hold(Bind{uid, "n", 0}, [](const HoldAnswer&) {});
  }

  SpanKeeper spans_;
  MemoryStore store_;
  LateBinder binder_;
  Engine engine_;
};

// From the first call to the last binding: one trace, in which every span is below the start.
TEST_F(TracedEngine, GangStart_IsOneTrace) {
  Put(SomePod("a", "g", 2));
  Put(SomePod("b", "g", 2));
  AwaitPlan();
  ASSERT_TRUE(Schedule("u-a").ok());
  absl::SleepFor(absl::Milliseconds(30));
  ASSERT_TRUE(Schedule("u-b").ok());
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
  EXPECT_LT(last->parts.held, held->parts.held) << "no member was missing any more";
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
  // A member that comes later is not part of the start, which is over.
  Put(SomePod("c", "g", 2));
  ASSERT_TRUE(Schedule("u-c").ok());
  EXPECT_EQ(spans_.Wait("bind", 3).size(), 3U);
  EXPECT_EQ(spans_.Wait("gang start", 1).size(), 1U) << "once";
}

// A watch may report a bound pod before the bind call is answered.
TEST_F(TracedEngine, BindingSeenByWatchFirst_IsTraced) {
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

// A span that a caller traces stays in its trace, and is linked with the gang's start.
TEST_F(TracedEngine, CallerTrace_IsLinkedNotMerged) {
  Put(SomePod("a", "g", 1));
  Put(SomePod("alone", "", 0));
  AwaitPlan();
  const SpanRef caller = ParseTraceparent(kParent);
  {
    const ScopedCaller on(caller);
    ASSERT_TRUE(Schedule("u-a").ok());
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

// A waiting Permit ends with its verdict, and its span names what ended the wait.
TEST_F(TracedEngine, WaitingPermit_NamesWhatEndedIt) {
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
  ASSERT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
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

// The span of a decision names its subject and the answer that the caller received.
TEST_F(TracedEngine, Decision_NamesSubjectAndAnswer) {
  Put(SomePod("a", "g", 2));
  Put(SomePod("alone", "", 0));
  PodDescription own = SomePod("own", "h", 2);
  own.scheduler_name = "own";
  Put(own);
  const SubmitGang submit{"s", "d", "k", GangDeclaration{.min_member = 1}, {SomePod("k-1", "", 0)}};
  const auto offer = std::make_shared<NodeOffer>(NodeOffer::AllNodes());
  const std::vector<std::tuple<Command, std::string, std::string>> expected = {
      {Filter{"u-a", offer}, "filter", "d/a d/g refused  NotEnoughPods 0"},
      {Filter{"u-unknown", offer}, "filter", "  refused  UnknownPod 0"},
      {Filter{"u-alone", offer}, "filter", "d/alone  any node  None 0"},
      {FindNodes{"u-alone", {}}, "find nodes", "d/alone  nodes n None 0"},
      {FindNodes{"u-a", {}}, "find nodes", "d/a d/g refused  NotEnoughPods 0"},
      {Preempt{"u-alone", {{"n", {}}}}, "preempt", "d/alone  candidates  None 0"},
      {Preempt{"u-a", {}}, "preempt", "d/a d/g none  None 0"},
      {PreFilter{"u-alone"}, "prefilter", "d/alone  passes  None 0"},
      {PreFilter{"u-a"}, "prefilter", "d/a d/g refused  NotEnoughPods 0"},
      {Permit{"u-unknown", "n"}, "permit", "  rejected n UnknownPod 0"},
      {Permit{"u-own", "n"}, "permit", "d/own d/h waits n Barrier 0"},
      {Permit{"u-alone", "n"}, "permit", "d/alone  permitted n None 0"},
      {PostBind{"u-alone", "n"}, "postbind", "d/alone  done n None 0"},
      {Unreserve{"u-own"}, "unreserve", "d/own d/h done  None 0"},
      {PostFilter{"u-own", "full"}, "postfilter", "d/own d/h done  None 0"},
      {submit, "submit", " d/k Planned  Planned 1"},
      {ConfirmGang{"nothing", 1}, "confirm", "  error  InvalidRequest 0"},
      {AbandonGang{"s"}, "abandon", " d/k Abandoned  Gone 0"},
      {PreFilter{std::string(100'000, 'u')}, "prefilter", "  refused  UnknownPod 0"}};
  std::map<std::string, size_t> asked;
  for (const auto& [command, name, answer] : expected) {
    EXPECT_EQ(engine_.Ask(command).ok(), name != "confirm") << name;
    const auto spans = spans_.Wait(name, ++asked[name]);
    ASSERT_EQ(spans.size(), asked[name]) << name;
    const Span& span = *spans.back();
    EXPECT_EQ(absl::StrCat(span.pod, " ", span.gang, " ", span.outcome, " ", span.node, " ",
                           ReasonName(span.reason.code), " ", span.pods),
              answer)
        << name;
    EXPECT_FALSE(span.trace.none()) << name;
    EXPECT_EQ(span.parent != 0, !span.gang.empty() && name != "abandon")
        << "below the start of its gang, if there is one";
    EXPECT_EQ(span.reason.none(), span.reason.text.empty()) << name;
    EXPECT_LE(span.pod_uid.size() + span.reason.text.size(), 2'048U) << "a caller's text is truncated";
  }
  EXPECT_EQ(spans_.Wait("filter", 2)[1]->pod_uid, "u-unknown");
}

// A held call's time is the sum of its parts. A binding that is sent again has a span of its own below the call's, and
// the call counts the last one.
TEST_F(TracedEngine, HeldCall_PartsAddUp) {
  Put(SomePod("a", "g", 1));
  Tracer tracer(&spans_);
  const auto pause = [] { absl::SleepFor(absl::Milliseconds(5)); };
  const Bind bind{"u-a", "n", 0};
  std::shared_ptr<Span> span;
  {
    const ScopedCaller on(ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"));
    span = tracer.Begin(bind);
  }
  pause();
  const auto decide = [&](const Machine& machine) {
    tracer.OnDequeued(machine, bind, span.get());
    pause();
    tracer.OnDecided(machine, bind, absl::OkStatus(), Reply(), span.get());
  };
  ASSERT_TRUE(engine_.ReadDurableSync(decide).ok());
  tracer.OnHeld(*span);
  tracer.OnBindingAnswered(nullptr);
  tracer.OnBindingOutcome({"u-a", "n", BindingResult::kBound, "not sent by this process"});
  pause();
  for (const BindingResult result : {BindingResult::kRetry, BindingResult::kRefused, BindingResult::kBound}) {
    tracer.OnEffectsSent({ActivatePod{}, BindPod{{"d", "x", "u-x"}, "n", 0}, BindPod{{"d", "a", "u-a"}, "n", 0}});
    tracer.OnHeld(*span);
    pause();
    tracer.OnBindingOutcome({"u-x", "n", result, ""});
    tracer.OnBindingOutcome({"u-a", "n", result, result == BindingResult::kBound ? "" : "busy"});
  }
  tracer.OnHoldEnded({1, true, {}}, {}, span.get());
  tracer.OnBindingOutcome({"u-a", "n", BindingResult::kBound, "the hold is over"});
  pause();
  tracer.End({span}, /*slow=*/true);
  const auto& [waited, decided, held, bound, stored] = span->parts;
  for (const int64_t part : {waited, decided, bound, stored}) EXPECT_GE(part, 5'000);
  EXPECT_GE(held, 15'000) << "at the barrier, and two bindings that failed";
  EXPECT_EQ(waited + decided + held + bound + stored, span->took_us);
  const auto bindings = spans_.Wait("binding", 3);
  ASSERT_EQ(bindings.size(), 3U);
  std::string outcomes;
  std::set<uint64_t> ids = {span->id};
  for (const auto& sent : bindings) {
    absl::StrAppend(&outcomes, sent->outcome, " ", sent->reason.text, ";");
    EXPECT_TRUE(ids.insert(sent->id).second);
    EXPECT_EQ(sent->parent, span->id);
    EXPECT_TRUE(sent->callers && !sent->sampled) << "as the call";
    EXPECT_EQ(absl::StrCat(sent->pod, " ", sent->pod_uid, " ", sent->gang, " ", sent->node), "d/a u-a d/g n");
  }
  EXPECT_EQ(outcomes, "failed busy;refused busy;bound ;");
  EXPECT_EQ(bindings.back()->took_us, bound);
  EXPECT_TRUE(Tracer(nullptr).Begin(bind) == nullptr && tracer.Begin(Tick{}) == nullptr) << "no decision, no span";
}

// The time until the answer was stored is what remains of the call's time.
TEST_F(TracedEngine, End_StoredIsTheRest) {
  struct Row {
    int64_t decided, held, bound;
    bool slow;
    int64_t others;  // waited, decided, held and bound; -1: the call has no part for storing
  };
  for (const auto& [decided, held, bound, slow, others] :
       {Row{200, 300, 400, true, 1'000}, Row{200, -1, -1, true, 300}, Row{0, 0, 0, true, 100},
        Row{-1, -1, -1, true, -1}, Row{200, 300, 400, false, -1}, Row{1'000'000'000, 0, 0, true, -2}}) {
    Tracer tracer(&spans_);
    auto span = tracer.Begin(Bind{"u", "n", 0});
    span->begun_us -= 50'000;
    const int64_t stored_before = span->parts.stored;
    span->parts.waited = 100;
    span->parts.decided = decided;
    span->parts.held = held;
    span->parts.bound = bound;
    tracer.End({span}, slow);
    EXPECT_GE(span->took_us, 50'000);
    EXPECT_EQ(span->parts.stored, others == -1   ? stored_before
                                  : others == -2 ? 0
                                                 : span->took_us - others)
        << decided << " " << slow;
  }
}

// The start of a gang is linked with the calls that permitted its members, and with no other call.
TEST_F(TracedEngine, GangStart_LinksPermittingCalls) {
  Put(SomePod("a", "g", 1));
  AwaitPlan();
  Tracer tracer(&spans_);
  const auto made = [&](const char* name, const char* outcome, const char* gang) {
    auto span = tracer.Begin(Bind{"u-a", "n", 0});
    EXPECT_TRUE(engine_
                    .ReadDurableSync([&](const Machine& machine) {
                      tracer.OnDequeued(machine, Bind{"u-a", "n", 0}, span.get());
                    })
                    .ok());
    span->name = name;
    span->outcome = outcome;
    span->gang = gang;
    return span;
  };
  std::vector<std::shared_ptr<Span>> ended = {
      made("permit", "waits", "d/g"),         made("confirm", "Planned", "d/g"),
      made("submit", "Confirmed", "d/g"),     made("permit", "permitted", ""),
      made("permit", "permitted", "d/other"), made("permit", "permitted", "d/g"),
      made("confirm", "Confirmed", "d/g"),    made("bind", "bound", "d/g")};
  const std::vector<uint64_t> linked = {ended[2]->id, ended[5]->id, ended[6]->id, ended[7]->id};
  ended[2]->pod.clear();  // a submission that is confirmed at once
  ended[6]->pod.clear();
  ASSERT_TRUE(Schedule("u-a").ok());
  binder_.Join();
  while (!GangHasStarted()) absl::SleepFor(absl::Milliseconds(1));
  ASSERT_TRUE(engine_.ReadDurableSync([&](const Machine& machine) { tracer.AddStarts(machine, &ended); }).ok());
  ASSERT_EQ(ended.size(), 9U);
  const Span& start = *ended.back();
  EXPECT_EQ(absl::StrCat(start.name, " ", start.gang, " ", start.outcome, " ", start.pods), "gang start d/g started 1");
  ASSERT_EQ(start.links.size(), linked.size());
  for (size_t i = 0; i < linked.size(); ++i) {
    EXPECT_EQ(start.links[i].to.span, linked[i]);
    EXPECT_EQ(start.links[i].why, i % 2 == 0 ? "its confirmation" : "a pod of it");
  }
  std::vector<std::shared_ptr<Span>> later = {ended[5]};
  ASSERT_TRUE(engine_.ReadDurableSync([&](const Machine& machine) { tracer.AddStarts(machine, &later); }).ok());
  EXPECT_EQ(later.size(), 1U) << "it starts once";
}

// Excess spans cost nothing: of very many decisions in a second the excess leaves no span, and is counted.
TEST_F(TracedEngine, ExcessDecisions_AreCountedNotTraced) {
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

// A gang that started before this process began does not start again with a pod that comes later.
TEST_F(TracedEngine, GangStartedBeforeProcess_DoesNotStartAgain) {
  for (const char* name : {"a", "b"}) {
    PodDescription pod = SomePod(name, "g", 2);
    pod.node_name = "n";
    pod.phase = PodPhase::kRunning;
    Put(pod);
  }
  Put(SomePod("c", "g", 2));
  ASSERT_TRUE(Schedule("u-c").ok());
  EXPECT_EQ(spans_.Wait("bind", 1).size(), 1U);
  ASSERT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
  EXPECT_TRUE(spans_.Wait("gang start", 0).empty());
}

// G-8: all its pods are gone, and others come under the same name: it starts again, in another trace.
TEST_F(TracedEngine, RestartedGang_HasAnotherTrace) {
  const GangObject object{GangDialect::kPodGroupSigs, "d", "g", "o", 0, GangDeclaration{.min_member = 1}};
  ASSERT_TRUE(engine_.Announce(UpsertGangObject{object}).ok());
  for (const std::string name : {"a", "b"}) {
    PodDescription pod = SomePod(name, "g", 1);
    pod.gang.declares = false;
    pod.gang.dialect = GangDialect::kPodGroupSigs;
    Put(pod);
    AwaitPlan();
    ASSERT_TRUE(Schedule("u-" + name).ok());
    ASSERT_EQ(spans_.Wait("gang start", name == "a" ? 1 : 2).size(), name == "a" ? 1U : 2U);
    ASSERT_TRUE(engine_.Announce(RemovePod{"u-" + name}).ok());
  }
  const auto starts = spans_.Wait("gang start", 2);
  EXPECT_FALSE(starts[0]->trace == starts[1]->trace);
  EXPECT_GE(starts[1]->begun_us, starts[0]->begun_us + starts[0]->took_us);
}

// The last member's caller hangs up: the gang still starts.
TEST_F(TracedEngine, CallersGone_StartIsStillTraced) {
  Put(SomePod("a", "g", 2));
  Put(SomePod("b", "g", 2));
  AwaitPlan();
  std::vector<HoldToken> tokens;
  for (const std::string uid : {"u-a", "u-b"}) {
    const absl::StatusOr<HoldToken> token = Schedule(uid);
    ASSERT_TRUE(token.ok());
    tokens.push_back(*token);
  }
  while (binder_.sent < 2) absl::SleepFor(absl::Milliseconds(1));
  ASSERT_TRUE(engine_.Announce(CallerGone{"u-a", tokens[0]}).ok());
  ASSERT_TRUE(engine_.Announce(CallerGone{"u-b", tokens[1]}).ok());
  const auto starts = spans_.Wait("gang start", 1);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0]->pods, 2);
  EXPECT_EQ(spans_.Wait("binding", 2).size(), 2U) << "they are reported although no call waits";
}

}  // namespace tracing_test
}  // namespace muster
