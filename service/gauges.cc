// The gauges of /metrics (SPEC S-4), read from the parts of App when it is scraped.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "k8s-extender/actuator/actuator.h"
#include "k8s-extender/actuator/disruption_budgets.h"
#include "k8s-extender/apiserver/cluster_feed.h"
#include "service/app.h"
#include "service/engine/engine.h"
#include "service/recorder/recorder.h"
#include "service/tracing/otlp_exporter.h"
#include "service/tracing/trace_log.h"

namespace muster {
namespace {

// Converts to Prometheus units: CPU in cores, everything else unchanged.
double Natural(const std::string& resource, int64_t amount) {
  return resource == "cpu" ? static_cast<double>(amount) / 1000 : static_cast<double>(amount);
}

void ReadQueueGauges(Engine* engine, const Metrics::SetGauge& set) {
  QueueTree tree;
  std::vector<Queues::Figures> standings;
  const absl::Status read = engine->ReadLatestSync([&](const Machine& machine) {
    tree = machine.reader().queues.tree();
    standings = machine.reader().queues.ComputeFigures();
  });
  if (!read.ok()) return;  // busy or stopping: report no figures rather than stale ones
  for (QueueId id = 0; id < tree.size(); ++id) {
    const QueueSpec& spec = tree.at(id).spec;
    const Queues::Figures& standing = standings[static_cast<size_t>(id)];
    const std::pair<const char*, const ResourceList*> lists[] = {{"muster_queue_quota", &spec.quota},
                                                                 {"muster_queue_limit", &spec.limit},
                                                                 {"muster_queue_share", &standing.share},
                                                                 {"muster_queue_used", &standing.used},
                                                                 {"muster_queue_pending", &standing.waiting}};
    for (const auto& [name, list] : lists) {
      for (const auto& [resource, amount] : *list) {
        set(name, {{"queue", spec.name}, {"resource", resource}}, Natural(resource, amount));
      }
    }
    set("muster_queue_running_gangs", "queue", spec.name, standing.running_gangs);
    set("muster_queue_pending_gangs", "queue", spec.name, standing.waiting_gangs);
  }
}

}  // namespace

void App::ReadGauges(const Metrics::SetGauge& set) const {
  const std::shared_ptr<const ReadView> view = engine_->view();
  for (size_t phase = 0; phase < kGangPhases; ++phase) {
    set("muster_gangs", "phase", ToString(static_cast<GangPhase>(phase)), static_cast<double>(view->phases[phase]));
  }
  set("muster_build_info", "version", MUSTER_VERSION, 1);
  set("muster_nodes", "", "", static_cast<double>(view->present_nodes));
  set("muster_stale_nodes", "", "", static_cast<double>(view->stale_nodes));
  for (size_t kind = 0; kind < kFactKinds; ++kind) {
    set("muster_refused_facts_total", "kind", ToString(static_cast<FactKind>(kind)),
        static_cast<double>(view->refused[kind]));
  }
  set("muster_pods", "", "", static_cast<double>(view->pods));
  ReadQueueGauges(engine_.get(), set);
  set("muster_held_binds", "", "", view->held_binds);
  set("muster_planner_gangs_placed_total", "", "", view->planning.placed);
  set("muster_planner_tries_total", "", "", view->planning.tries);
  set("muster_planner_abandoned_searches_total", "", "", view->planning.given_up);
  set("muster_planner_reservations_total", "", "", view->planning.reservations);
  set("muster_reserved_holds", "", "", view->promised_holds);
  const EngineStats engine = engine_->stats();
  set("muster_mailbox_depth", "", "", static_cast<double>(engine.mailbox_depth));
  set("muster_commands_total", "", "", static_cast<double>(engine.commands));
  set("muster_long_steps_total", "", "", static_cast<double>(engine.long_steps));
  set("muster_rejected_calls_total", "", "", static_cast<double>(engine.rejected));
  set("muster_standby", "", "", 0);
  set("muster_store_failing", "", "", engine.store_error.empty() ? 0 : 1);
  set("muster_store_pending_batches", "", "", static_cast<double>(engine.store_waiting));
  set("muster_store_commits_total", "", "", static_cast<double>(engine.commits));
  set("muster_trace_spans_total", "", "", static_cast<double>(traces_->ended()));
  set("muster_trace_spans_skipped_total", "", "", static_cast<double>(engine.spans_skipped));
  if (exporter_ != nullptr) {
    const OtlpExporter::Stats stats = exporter_->stats();
    set("muster_trace_spans_exported_total", "", "", static_cast<double>(stats.exported));
    set("muster_trace_spans_dropped_total", "", "", static_cast<double>(stats.dropped));
  }
  if (recorder_ != nullptr) {
    const RecorderStats stats = recorder_->stats();
    set("muster_recording_failing", "", "", stats.last_error.empty() ? 0 : 1);
    set("muster_recording_bytes_total", "", "", static_cast<double>(stats.bytes));
    set("muster_recording_dropped_commands_total", "", "", static_cast<double>(stats.lost));
  }
  if (actuator_ != nullptr) {
    const ActuatorStats stats = actuator_->stats();
    set("muster_bindings_total", "result", "bound", static_cast<double>(stats.bound));
    set("muster_bindings_total", "result", "retried", static_cast<double>(stats.bind_retries));
    set("muster_bindings_total", "result", "refused", static_cast<double>(stats.bind_refused));
    set("muster_activations_total", "", "", static_cast<double>(stats.activations));
    set("muster_effects_pending", "", "", static_cast<double>(stats.waiting));
    set("muster_effects_failed_total", "", "", static_cast<double>(stats.failed));
    set("muster_effect_retries_total", "", "", static_cast<double>(stats.retries));
    set("muster_events_dropped_total", "", "", static_cast<double>(stats.dropped_events));
  }
  if (feed_ == nullptr) return;
  auto informers = feed_->stats();
  if (budgets_ != nullptr) informers.emplace_back(budgets_->informer().path(), budgets_->informer().stats());
  for (const auto& [path, stats] : informers) {
    set("muster_informer_synced", "path", path, stats.synced ? 1 : 0);
    set("muster_informer_failing", "path", path, stats.error.ok() ? 0 : 1);
    set("muster_informer_objects", "path", path, static_cast<double>(stats.objects));
    set("muster_informer_errors_total", "path", path, static_cast<double>(stats.errors));
    set("muster_informer_lag_seconds", "path", path,
        stats.synced ? absl::ToDoubleSeconds(SteadyNow() - stats.last_contact) : 0);
  }
}

}  // namespace muster
