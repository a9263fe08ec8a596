// Sends spans to an OpenTelemetry collector: OTLP over HTTP, in its JSON form
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp). It never blocks decisions: spans that cannot be sent in time
// are dropped and counted.
#ifndef MUSTER_SERVICE_TRACING_OTLP_EXPORTER_H_
#define MUSTER_SERVICE_TRACING_OTLP_EXPORTER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "service/tracing/span.h"
#include "support/sync.h"
#include "support/watchdog.h"

namespace muster {

struct OtlpOptions {
  std::string url;           // "http://collector:4318"; the default path is "/v1/traces"
  int sample_percent = 100;  // of traces: all spans of a trace, or none
  size_t queue = 16'384;     // waiting spans; more are dropped
  size_t batch = 512;        // spans in one request
  absl::Duration every = absl::Seconds(1);
  absl::Duration timeout = absl::Seconds(2);  // of a request
  int tries = 4;                              // of a batch, with doubling pauses
  std::string instance;                       // service.instance.id
  std::string version;                        // service.version
};

// The parts of a collector's URL. InvalidArgument: not an http or https URL.
struct OtlpTarget {
  std::string server;  // "http://host:port"
  std::string path;
};
[[nodiscard]] absl::StatusOr<OtlpTarget> ParseOtlpUrl(const std::string& url);

// Thread-safe.
class OtlpExporter : public SpanSink {
 public:
  // REQUIRES: ParseOtlpUrl(options.url) is OK.
  explicit OtlpExporter(OtlpOptions options);
  ~OtlpExporter() override;
  void OnSpansEnded(const Spans& spans) override;
  // Sends what waits, for at most kStopFor, and ends. A request in progress is then cancelled, unless it resolves a
  // name.
  void Stop();
  static constexpr absl::Duration kStopFor = absl::Seconds(2);

  struct Stats {
    int64_t exported = 0;
    int64_t dropped = 0;  // the queue was full, or the collector accepted nothing
  };
  [[nodiscard]] Stats stats() const;

 private:
  void Run();
  // Returns false if the collector finally did not accept the spans.
  [[nodiscard]] bool Send(const std::string& body);
  struct Answer {
    int status = 0;    // 0: no answer
    std::string text;  // the beginning of the answer, or why there was none
  };
  // Sends one request; takes at most `left`, however slowly the answer arrives.
  [[nodiscard]] Answer Post(const std::string& body, absl::Duration left);
  [[nodiscard]] bool Pause(absl::Duration pause);
  // How long a request may take; zero: the exporter is stopping and its time is over.
  [[nodiscard]] absl::Duration TimeLeft() const;

  const OtlpOptions options_;
  const OtlpTarget target_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<const Span>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time give_up_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // on the steady clock
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  int64_t post_ ABSL_GUARDED_BY(mutex_) = 0;  // the request in progress, as registered with watchdog_; 0: none
  absl::Time post_end_ ABSL_GUARDED_BY(mutex_);
  Watchdog watchdog_;
  std::thread thread_;
};

// An ExportTraceServiceRequest in JSON.
[[nodiscard]] std::string OtlpJson(const Spans& spans, const OtlpOptions& options);

}  // namespace muster

#endif  // MUSTER_SERVICE_TRACING_OTLP_EXPORTER_H_
