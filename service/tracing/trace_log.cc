#include "service/tracing/trace_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace muster {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string Dump(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson PartsJson(const Span::Parts& parts) {
  OrderedJson out = OrderedJson::object();
  const auto add = [&](const char* name, int64_t us) {
    if (us >= 0) out[name] = us;
  };
  add("waited", parts.waited);
  add("decided", parts.decided);
  add("held", parts.held);
  add("bound", parts.bound);
  add("stored", parts.stored);
  return out;
}

OrderedJson SpanOf(const Span& span) {
  OrderedJson out = {{"traceId", TraceHex(span.trace)}, {"spanId", SpanHex(span.id)}};
  if (span.parent != 0) out["parentSpanId"] = SpanHex(span.parent);
  out["name"] = std::string(span.name);
  const auto add = [&](const char* name, absl::string_view text) {
    if (!text.empty()) out[name] = std::string(text);
  };
  add("pod", span.pod);
  add("podUid", span.pod_uid);
  add("node", span.node);
  add("outcome", span.outcome);
  if (!span.reason.none()) {
    add("reason", ReasonName(span.reason.code));
    add("text", span.reason.text);
  }
  out["beginUnixUs"] = span.begun_us;
  out["durationUs"] = span.took_us;
  if (OrderedJson parts = PartsJson(span.parts); !parts.empty()) out["partsUs"] = std::move(parts);
  if (span.pods > 0) out["pods"] = span.pods;
  for (const Span::Link& link : span.links) {
    out["links"].push_back(
        {{"traceId", TraceHex(link.to.trace)}, {"spanId", SpanHex(link.to.span)}, {"why", std::string(link.why)}});
  }
  return out;
}

}  // namespace

void TraceLog::Ring::Add(std::shared_ptr<const Span> span) {
  if (size_ == 0) return;
  if (spans_.size() < size_) {
    spans_.push_back(std::move(span));
  } else {
    std::shared_ptr<const Span>& oldest = spans_[static_cast<size_t>(added_) % size_];
    retained_since_us_ = std::max(retained_since_us_, oldest->begun_us + oldest->took_us);
    oldest = std::move(span);
  }
  ++added_;
}

// The lock is released after every few spans, so that a reader does not delay decisions.
int64_t TraceLog::Walk(const Ring& ring, const std::function<bool(const std::shared_ptr<const Span>&)>& visit) const {
  constexpr int kAtOnce = 256;
  int64_t next = -1;
  while (true) {
    MutexLock lock(&mutex_);
    if (next < 0) next = ring.end();
    for (int i = 0; i < kAtOnce; ++i) {
      if (next <= ring.first()) return ring.retained_since_us();
      if (!visit(ring.at(--next))) return ring.retained_since_us();
    }
  }
}

void TraceLog::OnSpansEnded(const Spans& spans) {
  {
    MutexLock lock(&mutex_);
    ended_ += static_cast<int64_t>(spans.size());
    for (const auto& span : spans) (span->gang.empty() ? pod_spans_ : gang_spans_).Add(span);
  }
  if (next_ != nullptr) next_->OnSpansEnded(spans);
}

TraceLog::Page TraceLog::Of(absl::string_view gang, absl::string_view pod) const {
  Page page;
  bool more = false;
  const auto take = [&](const std::shared_ptr<const Span>& span) {
    const bool meant = (pod.empty() || span->pod == pod) && (span->gang == gang || (gang.empty() && !pod.empty()));
    if (!meant) return true;
    if (page.spans.size() == kMaxPageSpans) {
      page.retained_since_us = span->begun_us + span->took_us;
      more = true;
      return false;
    }
    page.spans.push_back(span);
    return true;
  };
  int64_t since = 0;
  if (!gang.empty() || !pod.empty()) since = Walk(gang_spans_, take);
  if (gang.empty() && !more) since = std::max(since, Walk(pod_spans_, take));
  if (!more) page.retained_since_us = since;
  std::stable_sort(page.spans.begin(), page.spans.end(),
                   [](const auto& a, const auto& b) { return a->begun_us < b->begun_us; });
  return page;
}

std::vector<TraceLog::Summary> TraceLog::Gangs(size_t limit) const {
  std::vector<Summary> out;
  absl::flat_hash_map<std::string, size_t> places;
  Walk(gang_spans_, [&](const std::shared_ptr<const Span>& span) {
    const auto found = places.find(span->gang);
    if (found == places.end() && out.size() == limit) return true;
    const size_t at = found == places.end() ? out.size() : found->second;
    if (found == places.end()) {
      places.emplace(span->gang, at);
      out.push_back({span->gang, 0, 0, false});
    }
    ++out[at].spans;
    out[at].last_us = std::max(out[at].last_us, span->begun_us + span->took_us);
    out[at].started = out[at].started || span->name == "gang start";
    return true;
  });
  return out;
}

int64_t TraceLog::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

std::string TraceJson(const std::string& gang, const TraceLog::Page& page) {
  OrderedJson out = {{"gang", gang}, {"keptSinceUnixUs", page.retained_since_us}, {"spans", OrderedJson::array()}};
  for (const auto& span : page.spans) out["spans"].push_back(SpanOf(*span));
  return Dump(out);
}

std::string TracesJson(const std::vector<TraceLog::Summary>& gangs) {
  OrderedJson out = {{"gangs", OrderedJson::array()}};
  for (const TraceLog::Summary& gang : gangs) {
    out["gangs"].push_back(
        {{"gang", gang.gang}, {"spans", gang.spans}, {"lastUnixUs", gang.last_us}, {"started", gang.started}});
  }
  return Dump(out);
}

}  // namespace muster
