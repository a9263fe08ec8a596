// Structured logs to standard error through spdlog.
#ifndef MUSTER_SERVICE_TELEMETRY_LOGGING_H_
#define MUSTER_SERVICE_TELEMETRY_LOGGING_H_

#include <string>

namespace muster {

// `level` and `format` as in the configuration ("info", "json").
void StartLogging(const std::string& level, const std::string& format);

}  // namespace muster

#endif  // MUSTER_SERVICE_TELEMETRY_LOGGING_H_
