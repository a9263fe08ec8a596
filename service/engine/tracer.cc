#include "service/engine/tracer.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/clock.h"

namespace muster {
namespace {

constexpr size_t kMaxLinks = 128;
// What callers choose is not kept at whatever length.
constexpr size_t kMaxName = 512;
constexpr size_t kMaxText = 1'024;

std::string Clipped(absl::string_view text, size_t most) { return std::string(text.substr(0, most)); }

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

absl::string_view VerbOf(const Command& command) {
  struct Verb {
    absl::string_view operator()(const Filter&) const { return "filter"; }
    absl::string_view operator()(const FindNodes&) const { return "find nodes"; }
    absl::string_view operator()(const Bind&) const { return "bind"; }
    absl::string_view operator()(const Preempt&) const { return "preempt"; }
    absl::string_view operator()(const PreFilter&) const { return "prefilter"; }
    absl::string_view operator()(const Permit&) const { return "permit"; }
    absl::string_view operator()(const PostFilter&) const { return "postfilter"; }
    absl::string_view operator()(const Unreserve&) const { return "unreserve"; }
    absl::string_view operator()(const PostBind&) const { return "postbind"; }
    absl::string_view operator()(const SubmitGang&) const { return "submit"; }
    absl::string_view operator()(const ConfirmGang&) const { return "confirm"; }
    absl::string_view operator()(const AbandonGang&) const { return "abandon"; }
    absl::string_view operator()(const UpsertNode&) const { return ""; }
    absl::string_view operator()(const RemoveNode&) const { return ""; }
    absl::string_view operator()(const UpsertPod&) const { return ""; }
    absl::string_view operator()(const RemovePod&) const { return ""; }
    absl::string_view operator()(const UpsertNamespace&) const { return ""; }
    absl::string_view operator()(const RemoveNamespace&) const { return ""; }
    absl::string_view operator()(const UpsertGangObject&) const { return ""; }
    absl::string_view operator()(const RemoveGangObject&) const { return ""; }
    absl::string_view operator()(const UnreadableFact&) const { return ""; }
    absl::string_view operator()(const FactsRead&) const { return ""; }
    absl::string_view operator()(const ExpectFacts&) const { return ""; }
    absl::string_view operator()(const TakeUpFacts&) const { return ""; }
    absl::string_view operator()(const ReplaceFacts&) const { return ""; }
    absl::string_view operator()(const UpdateFacts&) const { return ""; }
    absl::string_view operator()(const EndHold&) const { return ""; }
    absl::string_view operator()(const AskGang&) const { return ""; }
    absl::string_view operator()(const BindingOutcome&) const { return ""; }
    absl::string_view operator()(const PlanRound&) const { return ""; }
    absl::string_view operator()(const Tick&) const { return ""; }
    absl::string_view operator()(const Shutdown&) const { return ""; }
    absl::string_view operator()(const SetQueues&) const { return ""; }
    absl::string_view operator()(const ApplyQueues&) const { return ""; }
    absl::string_view operator()(const LookAgain&) const { return ""; }
  };
  return std::visit(Verb(), command);
}

// Of which pod it is; empty: of a gang as a whole.
absl::string_view UidOf(const Command& command) {
  return std::visit(
      [](const auto& specific) -> absl::string_view {
        if constexpr (requires { specific.uid; }) return specific.uid;
        return {};
      },
      command);
}

absl::string_view NodeOf(const Command& command) {
  return std::visit(
      [](const auto& specific) -> absl::string_view {
        if constexpr (requires {
                        specific.uid;
                        specific.node;
                      })
          return specific.node;
        return {};
      },
      command);
}

struct Answer {
  Span* span;

  void operator()(std::monostate) const { span->outcome = "done"; }
  void operator()(const FilterReply& reply) const {
    span->outcome = reply.kind == FilterReply::Kind::kPass      ? "any node"
                    : reply.kind == FilterReply::Kind::kOneNode ? "one node"
                                                                : "refused";
    span->node = reply.node;
    span->reason = reply.reason;
  }
  void operator()(const PreemptReply& reply) const { span->outcome = reply.nodes.empty() ? "none" : "candidates"; }
  void operator()(const PermitReply& reply) const {
    span->outcome = reply.kind == PermitReply::Kind::kPermit ? "permitted"
                    : reply.kind == PermitReply::Kind::kWait ? "waits"
                                                             : "rejected";
    span->reason = reply.reason;
  }
  void operator()(const PreFilterReply& reply) const {
    span->outcome = reply.passes ? "passes" : "refused";
    span->reason = reply.reason;
  }
  void operator()(const NodesReply& reply) const {
    span->outcome = reply.nodes.empty() ? "refused" : "nodes";
    if (!reply.nodes.empty()) span->node = reply.nodes.front().node;
    span->reason = reply.reason;
  }
  void operator()(const FactsReply&) const { span->outcome = "done"; }
  void operator()(const SubmissionReply& reply) const {
    span->outcome = ToString(reply.state);
    span->reason = reply.reason;
    span->pods = static_cast<int64_t>(reply.places.size());
  }
};

bool LetsGo(const Span& span) { return span.outcome == "permitted" || span.outcome == "bound"; }

}  // namespace

Tracer::Tracer(SpanSink* sink)
    : sink_(sink), seed_(sink == nullptr ? 0 : RandomSeed()), started_us_(absl::ToUnixMicros(WallNow())) {}

int64_t Tracer::NowUs() const {
  return started_us_ +
         std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - started_).count();
}

// SplitMix64: ids that differ as much as drawn ones, and cost nothing.
uint64_t Tracer::NewId() {
  uint64_t id = seed_ + next_.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b97f4a7c15U;
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9U;
  id = (id ^ (id >> 27)) * 0x94d049bb133111ebU;
  return std::max<uint64_t>(1, id ^ (id >> 31));
}

std::shared_ptr<Span> Tracer::Begin(const Command& command) {
  if (sink_ == nullptr) return nullptr;
  const absl::string_view verb = VerbOf(command);
  if (verb.empty()) return nullptr;
  const int64_t now_us = NowUs();
  // Two threads may both begin a second: a few more are let through.
  if (const int64_t second = now_us / 1'000'000; second_.exchange(second) != second) in_second_ = 0;
  if (in_second_.fetch_add(1, std::memory_order_relaxed) >= kPerSecond) {
    skipped_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  auto span = std::make_shared<Span>();
  span->name = verb;
  span->id = NewId();
  span->begun_us = now_us;
  if (const SpanRef& caller = CurrentCaller(); !caller.none()) {
    span->trace = caller.trace;
    span->parent = caller.span;
    span->callers = true;
    span->sampled = caller.sampled;
  }
  return span;
}

// A gang of which nobody is left, and that is not satisfied any more, starts anew (G-8). One that had started before
// anything was remembered of it does not start again.
Tracer::Way& Tracer::WayOf(const Gang& gang, int64_t begun_us) {
  auto way = ways_.find(gang.key);
  if (way != ways_.end() && way->second.started && !gang.kept.satisfied && gang.active() == 0) {
    ways_.erase(way);
    way = ways_.end();
  }
  if (way == ways_.end()) {
    way = ways_.Add(gang.key);
    way->second.start = {{NewId(), NewId()}, NewId()};
    way->second.first_us = begun_us;
    way->second.started = gang.kept.satisfied;
  }
  return way->second;
}

void Tracer::BelongTo(const Gang& gang, Span* span) {
  span->gang = gang.key;
  const SpanRef& start = WayOf(gang, span->begun_us).start;
  if (span->trace.none()) {
    span->trace = start.trace;
    span->parent = start.span;
  } else {
    span->links.push_back({start, "start of its gang"});
  }
}

void Tracer::Turn(const Machine& machine, const Command& command, Span* span) {
  span->parts.waited = NowUs() - span->begun_us;
  const Pod* pod = machine.FindPod(UidOf(command));
  span->pod_uid = Clipped(UidOf(command), kMaxName);
  if (pod == nullptr) return;
  span->pod = absl::StrCat(pod->facts.name_space, "/", pod->facts.name);
  if (pod->gang != nullptr) BelongTo(*pod->gang, span);
}

void Tracer::Decided(const Machine& machine, const Command& command, const absl::Status& status, const Reply& reply,
                     Span* span) {
  span->parts.decided = NowUs() - span->begun_us - span->parts.waited;
  std::visit(Answer{span}, reply);
  if (!status.ok()) {
    span->outcome = "error";
    span->reason = {ReasonCode::kInvalidRequest, std::string(status.message())};
  }
  span->reason.text = Clipped(span->reason.text, kMaxText);
  if (span->node.empty()) span->node = Clipped(NodeOf(command), kMaxName);
  // A gang that was submitted may be known only now, or not any more.
  const auto* submission = std::get_if<SubmissionReply>(&reply);
  if (span->gang.empty() && submission != nullptr) {
    const Gang* gang = machine.FindGang(submission->gang);
    if (gang != nullptr) BelongTo(*gang, span);
    span->gang = Clipped(submission->gang, kMaxName);
  }
  if (span->trace.none()) span->trace = {NewId(), NewId()};
}

void Tracer::Held(const Span& span) {
  MutexLock lock(&mutex_);
  Binding& binding = bindings_.Add(span.pod_uid)->second;
  if (binding.sent && !binding.answered) return;  // asked for once more while it is under way
  binding = Binding();
  binding.span.trace = span.trace;
  binding.span.parent = span.id;
  binding.span.callers = span.callers;
  binding.span.sampled = span.sampled;
  binding.span.gang = span.gang;
  binding.span.pod = span.pod;
}

void Tracer::Sent(const std::vector<Effect>& effects) {
  if (sink_ == nullptr) return;
  const int64_t now_us = NowUs();
  MutexLock lock(&mutex_);
  for (const Effect& effect : effects) {
    const auto* bind = std::get_if<BindPod>(&effect);
    if (bind == nullptr) continue;
    const auto held = bindings_.find(bind->pod.uid);
    if (held == bindings_.end()) continue;  // of a process before this one, or forgotten
    Span& span = held->second.span;
    held->second.sent = true;
    held->second.answered = false;
    span.took_us = 0;
    span.reason = {};
    span.name = "binding";
    span.id = NewId();
    span.pod_uid = bind->pod.uid;
    span.node = bind->node;
    span.begun_us = now_us;
  }
}

void Tracer::Outcome(const BindingOutcome& outcome) {
  if (sink_ == nullptr) return;
  std::shared_ptr<Span> ended;
  {
    MutexLock lock(&mutex_);
    const auto under_way = bindings_.find(outcome.uid);
    if (under_way == bindings_.end() || !under_way->second.sent) return;
    Span& span = under_way->second.span;
    span.outcome = outcome.result == BindingResult::kBound   ? "bound"
                   : outcome.result == BindingResult::kRetry ? "failed"
                                                             : "refused";
    if (!outcome.message.empty()) span.reason = {ReasonCode::kBinding, Clipped(outcome.message, kMaxText)};
    span.took_us = NowUs() - span.begun_us;
    ended = std::make_shared<Span>(span);
    under_way->second.answered = outcome.result != BindingResult::kRetry;
    if (under_way->second.answered && under_way->second.over) bindings_.erase(under_way);
  }
  sink_->Ended({std::move(ended)});
}

void Tracer::HoldEnded(const HoldAnswer& answer, const SpanRef& by, Span* span) {
  const int64_t whole = NowUs() - span->begun_us - span->parts.waited - span->parts.decided;
  {
    MutexLock lock(&mutex_);
    if (const auto binding = bindings_.find(span->pod_uid); binding != bindings_.end()) {
      Binding& of = binding->second;
      if (of.sent) span->parts.bound = of.answered ? of.span.took_us : NowUs() - of.span.begun_us;
      of.over = true;
      // Whose caller left may be committed all the same, and is sent then.
      if (of.answered || (!of.sent && answer.reason.code != ReasonCode::kGone)) bindings_.erase(binding);
    }
  }
  span->parts.held = std::max<int64_t>(0, whole - std::max<int64_t>(0, span->parts.bound));
  span->outcome = !answer.permitted ? "refused" : span->name == "bind" ? "bound" : "permitted";
  span->reason = answer.reason;
  if (!by.none() && by.span != span->id) span->links.push_back({by, "let it go"});
}

void Tracer::Moved(const Pod* pod) {
  if (sink_ == nullptr || pod == nullptr || pod->gang == nullptr) return;
  const auto way = ways_.find(pod->gang->key);
  if (way == ways_.end() || way->second.started) return;
  if (moved_.empty() || moved_.back() != way->first) moved_.push_back(way->first);
}

void Tracer::AddStarts(const Machine& machine, std::vector<std::shared_ptr<Span>>* ended) {
  std::vector<std::string> gangs = std::exchange(moved_, {});
  for (const std::shared_ptr<Span>& span : *ended) {
    const bool confirmed = span->name == "confirm" && span->outcome == ToString(SubmissionReply::State::kConfirmed);
    if (span->gang.empty() || (!LetsGo(*span) && !confirmed)) continue;
    const auto way = ways_.find(span->gang);
    if (way == ways_.end() || way->second.started) continue;
    way->second.binds = way->second.binds || span->name == "bind";
    if (way->second.links.size() < kMaxLinks) {
      way->second.links.push_back({{span->trace, span->id}, span->pod.empty() ? "its confirmation" : "a pod of it"});
    }
    if (gangs.empty() || gangs.back() != span->gang) gangs.push_back(span->gang);
  }
  for (const std::string& key : gangs) {
    const auto way = ways_.find(key);
    const Gang* gang = machine.FindGang(key);
    if (way == ways_.end() || way->second.started || gang == nullptr || !gang->kept.satisfied) continue;
    // What Muster binds has started when all of it is bound, what was repaired too. Who was permitted is bound by its
    // caller, and that takes as long as it takes.
    const bool under_way =
        way->second.binds && (gang->count(MemberState::kCommitted) > 0 || machine.plans().Of(*gang) != nullptr);
    if (under_way || gang->count(MemberState::kWaiting) > 0) continue;
    way->second.started = true;
    auto start = std::make_shared<Span>();
    start->trace = way->second.start.trace;
    start->id = way->second.start.span;
    start->name = "gang start";
    start->gang = key;
    start->outcome = "started";
    start->begun_us = way->second.first_us;
    start->pods = gang->active();
    start->links = std::exchange(way->second.links, {});
    ended->push_back(std::move(start));
  }
}

void Tracer::End(const std::vector<std::shared_ptr<Span>>& spans, bool slow) const {
  if (sink_ == nullptr || spans.empty()) return;
  const int64_t now_us = NowUs();
  Spans out;
  out.reserve(spans.size());
  for (const std::shared_ptr<Span>& span : spans) {
    span->took_us = std::max<int64_t>(0, now_us - span->begun_us);
    if (slow && span->parts.decided >= 0) {
      const Span::Parts& parts = span->parts;
      span->parts.stored =
          std::max<int64_t>(0, span->took_us - parts.waited - parts.decided - std::max<int64_t>(0, parts.held) -
                                   std::max<int64_t>(0, parts.bound));
    }
    out.push_back(span);
  }
  sink_->Ended(out);
}

}  // namespace muster
