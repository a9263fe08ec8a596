#include "service/telemetry/logging.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "absl/time/time.h"

namespace muster {
namespace {

// One JSON object per line. The message is escaped.
class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(message.level);
    const nlohmann::json line = {
        {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(message.time), absl::UTCTimeZone())},
        {"level", std::string(level.data(), level.size())},
        {"message", std::string(message.payload.data(), message.payload.size())}};
    const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

// Standard error with a bounded wait: decisions must not wait for the reader of the log. If the pipe is full, a line
// that cannot be written within kPatienceMs is dropped and counted.
class BoundedWaitSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (lost_ > 0) {
      if (!Takes(0)) return void(++lost_);
      const std::string text = fmt::format("{} lines were dropped: the log reader is too slow", lost_);
      lost_ = 0;
      Write({message.logger_name, spdlog::level::warn, text});
    }
    Write(message);
  }
  void flush_() override {}

 private:
  static constexpr int kPatienceMs = 100;

  static bool Takes(int within_ms) {
    pollfd out = {STDERR_FILENO, POLLOUT, 0};
    return poll(&out, 1, within_ms) != 0;  // write() reports an error
  }
  // A pipe that is ready accepts PIPE_BUF bytes without blocking.
  void Write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    for (size_t at = 0; at < line.size();) {
      if (!Takes(kPatienceMs)) return void(++lost_);
      const ssize_t written = write(STDERR_FILENO, line.data() + at, std::min<size_t>(line.size() - at, PIPE_BUF));
      if (written < 0 && errno != EINTR) return;  // there is no place to report it
      at += written < 0 ? 0 : static_cast<size_t>(written);
    }
  }

  int64_t lost_ = 0;  // dropped lines since the last written one
};

}  // namespace

void StartLogging(const std::string& level, const std::string& format) {
  auto logger = std::make_shared<spdlog::logger>("musterd", std::make_shared<BoundedWaitSink>());
  if (format == "json") logger->set_formatter(std::make_unique<JsonFormatter>());
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace muster
