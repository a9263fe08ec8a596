#include "service/engine/tracer.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/clock.h"

namespace muster {
namespace {

constexpr size_t kMaxLinks = 128;
// Texts from callers are cut to these lengths.
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
    absl::string_view operator()(const RestoreFacts&) const { return ""; }
    absl::string_view operator()(const ReplaceFacts&) const { return ""; }
    absl::string_view operator()(const UpdateFacts&) const { return ""; }
    absl::string_view operator()(const CallerGone&) const { return ""; }
    absl::string_view operator()(const AskGang&) const { return ""; }
    absl::string_view operator()(const BindingOutcome&) const { return ""; }
    absl::string_view operator()(const PlanRound&) const { return ""; }
    absl::string_view operator()(const Tick&) const { return ""; }
    absl::string_view operator()(const Shutdown&) const { return ""; }
    absl::string_view operator()(const SetQueues&) const { return ""; }
    absl::string_view operator()(const ApplyQueues&) const { return ""; }
    absl::string_view operator()(const RefreshExplanation&) const { return ""; }
  };
  return std::visit(Verb(), command);
}

// UID of the pod that the command is about; empty: it is about a gang as a whole.
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
    span->outcome = reply.kind == FilterReply::Kind::kPass         ? "any node"
                    : reply.kind == FilterReply::Kind::kSingleNode ? "one node"
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

bool IsPermitting(const Span& span) { return span.outcome == "permitted" || span.outcome == "bound"; }

}  // namespace

Tracer::Tracer(SpanSink* sink)
    : sink_(sink), seed_(sink == nullptr ? 0 : RandomSeed()), started_us_(absl::ToUnixMicros(WallNow())) {}

int64_t Tracer::NowUs() const {
  return started_us_ +
         std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - started_).count();
}

// SplitMix64: ids as distinct as random ones, at almost no cost.
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
  // Two threads may both begin a second: then a few more decisions pass.
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

// A gang without members that is no longer satisfied starts again (G-8). A gang that had started before it was traced
// does not start again.
Tracer::GangTrace& Tracer::FindOrAddTrace(const Gang& gang, int64_t begun_us) {
  auto found = gang_traces_.find(gang.key);
  if (found != gang_traces_.end() && found->second.started && !gang.durable.satisfied && gang.active() == 0) {
    gang_traces_.erase(found);
    found = gang_traces_.end();
  }
  if (found == gang_traces_.end()) {
    found = gang_traces_.Add(gang.key);
    found->second.start = {{NewId(), NewId()}, NewId()};
    found->second.first_us = begun_us;
    found->second.started = gang.durable.satisfied;
  }
  return found->second;
}

void Tracer::AttachToGang(const Gang& gang, Span* span) {
  span->gang = gang.key;
  const SpanRef& start = FindOrAddTrace(gang, span->begun_us).start;
  if (span->trace.none()) {
    span->trace = start.trace;
    span->parent = start.span;
  } else {
    span->links.push_back({start, "start of its gang"});
  }
}

void Tracer::OnDequeued(const Machine& machine, const Command& command, Span* span) {
  span->parts.waited = NowUs() - span->begun_us;
  const Pod* pod = machine.reader().FindPod(UidOf(command));
  span->pod_uid = Clipped(UidOf(command), kMaxName);
  if (pod == nullptr) return;
  span->pod = absl::StrCat(pod->facts.name_space, "/", pod->facts.name);
  if (pod->gang != nullptr) AttachToGang(*pod->gang, span);
}

void Tracer::OnDecided(const Machine& machine, const Command& command, const absl::Status& status, const Reply& reply,
                       Span* span) {
  span->parts.decided = NowUs() - span->begun_us - span->parts.waited;
  std::visit(Answer{span}, reply);
  if (!status.ok()) {
    span->outcome = "error";
    span->reason = {ReasonCode::kInvalidRequest, std::string(status.message())};
  }
  span->reason.text = Clipped(span->reason.text, kMaxText);
  if (span->node.empty()) span->node = Clipped(NodeOf(command), kMaxName);
  // The gang of a submission may become known only now, or may be gone.
  const auto* submission = std::get_if<SubmissionReply>(&reply);
  if (span->gang.empty() && submission != nullptr) {
    const Gang* gang = machine.reader().FindGang(submission->gang);
    if (gang != nullptr) AttachToGang(*gang, span);
    span->gang = Clipped(submission->gang, kMaxName);
  }
  if (span->trace.none()) span->trace = {NewId(), NewId()};
}

void Tracer::OnHeld(const Span& span) {
  MutexLock lock(&mutex_);
  Binding& binding = bindings_.Add(span.pod_uid)->second;
  if (binding.sent && !binding.answered) return;  // sent again while the first one is in flight
  binding = Binding();
  binding.span.trace = span.trace;
  binding.span.parent = span.id;
  binding.span.callers = span.callers;
  binding.span.sampled = span.sampled;
  binding.span.gang = span.gang;
  binding.span.pod = span.pod;
}

void Tracer::OnEffectsSent(const std::vector<Effect>& effects) {
  if (sink_ == nullptr) return;
  const int64_t now_us = NowUs();
  MutexLock lock(&mutex_);
  for (const Effect& effect : effects) {
    const auto* bind = std::get_if<BindPod>(&effect);
    if (bind == nullptr) continue;
    const auto binding = bindings_.find(bind->pod.uid);
    if (binding == bindings_.end()) continue;  // sent by an earlier process, or no longer remembered
    Span& span = binding->second.span;
    binding->second.sent = true;
    binding->second.answered = false;
    span.took_us = 0;
    span.reason = {};
    span.name = "binding";
    span.id = NewId();
    span.pod_uid = bind->pod.uid;
    span.node = bind->node;
    span.begun_us = now_us;
  }
}

void Tracer::OnBindingOutcome(const BindingOutcome& outcome) {
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
  sink_->OnSpansEnded({std::move(ended)});
}

void Tracer::OnHoldEnded(const HoldAnswer& answer, const SpanRef& by, Span* span) {
  const int64_t whole = NowUs() - span->begun_us - span->parts.waited - span->parts.decided;
  {
    MutexLock lock(&mutex_);
    if (const auto binding = bindings_.find(span->pod_uid); binding != bindings_.end()) {
      Binding& bind = binding->second;
      if (bind.sent) span->parts.bound = bind.answered ? bind.span.took_us : NowUs() - bind.span.begun_us;
      bind.over = true;
      // A pod whose caller left may still be committed, and is sent then.
      if (bind.answered || (!bind.sent && answer.reason.code != ReasonCode::kGone)) bindings_.erase(binding);
    }
  }
  span->parts.held = std::max<int64_t>(0, whole - std::max<int64_t>(0, span->parts.bound));
  span->outcome = !answer.permitted ? "refused" : span->name == "bind" ? "bound" : "permitted";
  span->reason = answer.reason;
  if (!by.none() && by.span != span->id) span->links.push_back({by, "ended its hold"});
}

void Tracer::OnBindingAnswered(const Pod* pod) {
  if (sink_ == nullptr || pod == nullptr || pod->gang == nullptr) return;
  const auto found = gang_traces_.find(pod->gang->key);
  if (found == gang_traces_.end() || found->second.started) return;
  if (answered_gangs_.empty() || answered_gangs_.back() != found->first) answered_gangs_.push_back(found->first);
}

void Tracer::AddStarts(const Machine& machine, std::vector<std::shared_ptr<Span>>* ended) {
  std::vector<std::string> gangs = std::exchange(answered_gangs_, {});
  for (const std::shared_ptr<Span>& span : *ended) {
    const bool confirmed = (span->name == "confirm" || span->name == "submit") &&
                           span->outcome == ToString(SubmissionReply::State::kConfirmed);
    if (span->gang.empty() || (!IsPermitting(*span) && !confirmed)) continue;
    const auto found = gang_traces_.find(span->gang);
    if (found == gang_traces_.end() || found->second.started) continue;
    found->second.binds = found->second.binds || span->name == "bind";
    if (found->second.links.size() < kMaxLinks) {
      found->second.links.push_back({{span->trace, span->id}, span->pod.empty() ? "its confirmation" : "a pod of it"});
    }
    if (gangs.empty() || gangs.back() != span->gang) gangs.push_back(span->gang);
  }
  for (const std::string& key : gangs) {
    const auto found = gang_traces_.find(key);
    const Gang* gang = machine.reader().FindGang(key);
    if (found == gang_traces_.end() || found->second.started || gang == nullptr || !gang->durable.satisfied) continue;
    // A gang that Muster binds has started when all its bindings are done, repairs included. Permitted pods are bound
    // by their caller, and the gang does not wait for that.
    const bool under_way = found->second.binds &&
                           (gang->count(MemberState::kCommitted) > 0 || machine.reader().FindPlan(*gang) != nullptr);
    if (under_way || gang->count(MemberState::kWaiting) > 0) continue;
    found->second.started = true;
    auto start = std::make_shared<Span>();
    start->trace = found->second.start.trace;
    start->id = found->second.start.span;
    start->name = "gang start";
    start->gang = key;
    start->outcome = "started";
    start->begun_us = found->second.first_us;
    start->pods = gang->active();
    start->links = std::exchange(found->second.links, {});
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
  sink_->OnSpansEnded(out);
}

}  // namespace muster
