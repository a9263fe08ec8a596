// Sends spans to an OpenTelemetry collector: OTLP over HTTP, in its JSON form
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp). Never in the way: what does not leave in time is dropped, and
// counted.
#ifndef MUSTER_SERVICE_TRACING_OTLP_EXPORTER_H_
#define MUSTER_SERVICE_TRACING_OTLP_EXPORTER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "service/tracing/span.h"
#include "support/overdue.h"
#include "support/sync.h"

namespace muster {

struct OtlpOptions {
  std::string url;           // "http://collector:4318"; without a path "/v1/traces" is meant
  int sample_percent = 100;  // of traces: all spans of one, or none
  size_t queue = 16'384;     // spans that wait; more are dropped
  size_t batch = 512;        // spans of one request
  absl::Duration every = absl::Seconds(1);
  absl::Duration timeout = absl::Seconds(2);  // of a request
  int tries = 4;                              // of a batch, with pauses that double
  std::string instance;                       // service.instance.id
  std::string version;                        // service.version
};

// Where a collector is, taken apart. InvalidArgument: it is no http or https URL.
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
  void Ended(const Spans& spans) override;
  // Sends what waits, for kStopFor at most, and ends. A request under way is ended then, unless it looks up a name.
  void Stop();
  static constexpr absl::Duration kStopFor = absl::Seconds(2);

  struct Stats {
    int64_t exported = 0;
    int64_t dropped = 0;  // the queue was full, or the collector took nothing
  };
  [[nodiscard]] Stats stats() const;

 private:
  void Run();
  // False: it was not taken, for good.
  [[nodiscard]] bool Send(const std::string& body);
  struct Answer {
    int status = 0;    // 0: there was none
    std::string text;  // the beginning of what it said, or why there was none
  };
  // One request, of `left` in all, however much of an answer comes.
  [[nodiscard]] Answer Post(const std::string& body, absl::Duration left);
  [[nodiscard]] bool Pause(absl::Duration pause);
  // How long a request may take; zero: it is told to stop, and the time for that is over.
  [[nodiscard]] absl::Duration TimeLeft() const;

  const OtlpOptions options_;
  const OtlpTarget target_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<const Span>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time give_up_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // on the steady clock
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  int64_t post_ ABSL_GUARDED_BY(mutex_) = 0;  // the request under way, as overdue_ knows it; 0: none is
  absl::Time post_end_ ABSL_GUARDED_BY(mutex_);
  Overdue overdue_;
  std::thread thread_;
};

// An ExportTraceServiceRequest in JSON.
[[nodiscard]] std::string OtlpJson(const Spans& spans, const OtlpOptions& options);

}  // namespace muster

#endif  // MUSTER_SERVICE_TRACING_OTLP_EXPORTER_H_
