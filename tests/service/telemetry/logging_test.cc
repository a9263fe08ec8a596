#include "service/telemetry/logging.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <string>

namespace muster {
namespace {

// Logs to an unread pipe until much was left out, then compares the reported and the actual loss; the result is the
// exit code, 0 or 1.
[[noreturn]] void LogWithoutReader() {
  alarm(30);
  int ends[2];
  if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(2);
  StartLogging("info", "text");
  for (int i = 0; i < 20'000; ++i) spdlog::info("line {} of many, and some more of it", i);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  std::string text(1 << 20, '\0');
  ssize_t got = read(ends[0], text.data(), text.size());
  const bool first = got > 0 && text.find("line 0 of many") != std::string::npos;
  spdlog::info("the last line");
  got = read(ends[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  const bool reported = text.find("lines were dropped") != std::string::npos;
  _exit(first && reported && text.find("the last line") != std::string::npos ? 0 : 1);
}

// A log without a reader blocks nothing; the number of missing lines is reported to the next reader.
TEST(LoggingDeathTest, UnreadPipe_DoesNotBlock) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(LogWithoutReader(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace muster
