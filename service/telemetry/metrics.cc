#include "service/telemetry/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "support/sync.h"

namespace muster {
namespace {

const std::map<std::string, std::string>& Help() {
  static const auto* const kHelp = new std::map<std::string, std::string>{
      {"muster_build_info", "1, with the version of musterd"},
      {"muster_gangs", "Gangs by phase"},
      {"muster_pods", "Pods that Muster knows"},
      {"muster_nodes", "Nodes that Muster knows"},
      {"muster_stale_nodes", "Nodes not announced since the restart (facts.staleAfter)"},
      {"muster_trace_spans_total", "Spans of decisions, since the start"},
      {"muster_trace_spans_skipped_total", "Decisions without a span: more than 20,000 in a second"},
      {"muster_trace_spans_exported_total", "Spans that the collector accepted (tracing.otlp)"},
      {"muster_trace_spans_dropped_total", "Spans that were not sent in time, or that the collector refused"},
      {"muster_recording_failing", "1 while recording fails (recording.file)"},
      {"muster_recording_bytes_total", "Bytes written by the flight recorder"},
      {"muster_recording_dropped_commands_total", "Commands that were dropped from the recording"},
      {"muster_refused_facts_total", "Announcements that were refused, by kind, since the start"},
      {"muster_mailbox_depth", "Commands that wait for the engine"},
      {"muster_commands_total", "Commands applied since the start"},
      {"muster_long_steps_total", "Commands that occupied the single writer for more than 4 ms"},
      {"muster_rejected_calls_total", "Calls rejected because the mailbox is full"},
      {"muster_held_binds", "Bind calls held at the barrier"},
      {"muster_planner_gangs_placed_total", "Gangs, or groups of them, that the planner placed since the start"},
      {"muster_planner_tries_total", "Orders that the planner tried since the start"},
      {"muster_planner_abandoned_searches_total",
       "Searches abandoned without a proof that nothing fits (gangs.planTries)"},
      {"muster_planner_reservations_total", "Future reservations of capacity that terminating pods still use"},
      {"muster_reserved_holds", "Holds reserved for the pods of plans"},
      {"muster_queue_quota", "What a queue is entitled to, by resource; CPU in cores"},
      {"muster_queue_limit", "Limit of a queue, by resource"},
      {"muster_queue_share", "A queue's fair share now, of resources that any queue names"},
      {"muster_queue_used", "Capacity used by and reserved for a queue's gangs, including child queues"},
      {"muster_queue_pending", "Requests of a queue's waiting gangs, including child queues"},
      {"muster_queue_running_gangs", "Gangs of a queue with a member that has a node or a slot"},
      {"muster_queue_pending_gangs", "Waiting gangs of a queue; gangs that start together count as one"},
      {"muster_standby", "1 while another musterd has the store and this one is on standby"},
      {"muster_store_failing", "1 while the store refuses commits and answers wait"},
      {"muster_store_pending_batches", "Batches of commands that wait for the store"},
      {"muster_store_commits_total", "Commits of the store since the start"},
      {"muster_informer_synced", "1 when the informer has listed its objects"},
      {"muster_informer_failing", "1 while the informer's last list or watch failed"},
      {"muster_informer_objects", "Objects the informer knows"},
      {"muster_informer_lag_seconds", "Time since the API server was last heard of"},
      {"muster_informer_errors_total", "Failed lists and watches"},
      {"muster_bindings_total", "Bindings by result"},
      {"muster_activations_total", "Activations sent: annotations patched and gates removed"},
      {"muster_effects_pending", "Effects that wait to be carried out"},
      {"muster_effects_failed_total", "Effects that failed and are not retried"},
      {"muster_effect_retries_total", "Activations, marks and evictions that are retried"},
      {"muster_events_dropped_total", "Events dropped: the queue was full, or the API server refused them"},
  };
  return *kHelp;
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& decisions = prometheus::BuildCounter()
                                                           .Name("muster_decisions_total")
                                                           .Help("Decisions by verb and outcome")
                                                           .Register(registry);
  prometheus::Family<prometheus::Histogram>& seconds = prometheus::BuildHistogram()
                                                           .Name("muster_decision_seconds")
                                                           .Help("How long decisions took, by verb")
                                                           .Register(registry);

  struct Verb {
    prometheus::Histogram* seconds = nullptr;
    absl::flat_hash_map<std::string, prometheus::Counter*> outcomes;
  };
  Mutex mutex;
  absl::flat_hash_map<std::string, Verb> verbs ABSL_GUARDED_BY(mutex);  // cache of verbs seen before
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::RecordDecision(absl::string_view verb, absl::string_view outcome, absl::Duration took) {
  static const auto* const kBuckets = new prometheus::Histogram::BucketBoundaries{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
  prometheus::Counter* counter = nullptr;
  prometheus::Histogram* seconds = nullptr;
  {
    MutexLock lock(&impl_->mutex);
    Impl::Verb& known = impl_->verbs[verb];
    if (known.seconds == nullptr) known.seconds = &impl_->seconds.Add({{"verb", std::string(verb)}}, *kBuckets);
    prometheus::Counter*& of = known.outcomes[outcome];
    if (of == nullptr) of = &impl_->decisions.Add({{"verb", std::string(verb)}, {"outcome", std::string(outcome)}});
    counter = of;
    seconds = known.seconds;
  }
  counter->Increment();
  seconds->Observe(absl::ToDoubleSeconds(took));
}

void Metrics::SetGauge::operator()(absl::string_view name, absl::string_view label_name, absl::string_view label_value,
                                   double value) const {
  Labels labels;
  if (!label_name.empty()) labels.emplace(std::string(label_name), std::string(label_value));
  sink_(name, labels, value);
}

std::string Metrics::Scrape(const std::function<void(const SetGauge&)>& read) {
  prometheus::Registry gauges;
  read(SetGauge([&](absl::string_view name, const Labels& labels, double value) {
    const auto help = Help().find(std::string(name));
    const std::string text = help == Help().end() ? "" : help->second;
    // OpenMetrics derives the type from the name.
    if (absl::EndsWith(name, "_total")) {
      prometheus::BuildCounter().Name(std::string(name)).Help(text).Register(gauges).Add(labels).Increment(value);
    } else {
      prometheus::BuildGauge().Name(std::string(name)).Help(text).Register(gauges).Add(labels).Set(value);
    }
  }));
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  for (prometheus::MetricFamily& family : gauges.Collect()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace muster
