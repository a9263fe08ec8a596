// Prometheus metrics (SPEC S-4). Counters and histograms are kept as things happen; gauges are read when scraped.
#ifndef MUSTER_SERVICE_TELEMETRY_METRICS_H_
#define MUSTER_SERVICE_TELEMETRY_METRICS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// Thread-safe.
class Metrics {
 public:
  // Sets one gauge of the present scrape.
  using SetGauge = std::function<void(absl::string_view name, absl::string_view label_name,
                                      absl::string_view label_value, double value)>;

  Metrics();
  ~Metrics();

  // One decision: muster_decisions_total{verb,outcome}, muster_decision_seconds{verb}.
  void Decided(absl::string_view verb, absl::string_view outcome, absl::Duration took);
  // The exposition text; `read` is asked for the gauges first.
  [[nodiscard]] std::string Scrape(const std::function<void(const SetGauge&)>& read);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster

#endif  // MUSTER_SERVICE_TELEMETRY_METRICS_H_
