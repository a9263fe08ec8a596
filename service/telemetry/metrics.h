// Prometheus metrics (SPEC S-4). Counters and histograms are updated when events happen; gauges are read at a scrape.
#ifndef MUSTER_SERVICE_TELEMETRY_METRICS_H_
#define MUSTER_SERVICE_TELEMETRY_METRICS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// Thread-safe.
class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;
  // Sets one figure of the current scrape: a counter if its name ends in _total, otherwise a gauge.
  class SetGauge {
   public:
    using Sink = std::function<void(absl::string_view name, const Labels& labels, double value)>;
    explicit SetGauge(Sink sink) : sink_(std::move(sink)) {}
    void operator()(absl::string_view name, const Labels& labels, double value) const { sink_(name, labels, value); }
    // Sets it with one label, or without one if `label_name` is empty.
    void operator()(absl::string_view name, absl::string_view label_name, absl::string_view label_value,
                    double value) const;

   private:
    Sink sink_;
  };

  Metrics();
  ~Metrics();

  // Counts one decision: muster_decisions_total{verb,outcome}, muster_decision_seconds{verb}.
  void RecordDecision(absl::string_view verb, absl::string_view outcome, absl::Duration took);
  // Returns the exposition text. Calls `read` first for the figures that only the caller has.
  [[nodiscard]] std::string Scrape(const std::function<void(const SetGauge&)>& read);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_TELEMETRY_METRICS_H_
