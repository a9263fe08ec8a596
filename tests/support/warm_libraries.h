// Sends one request through cpp-httplib and uses spdlog's logger before a test starts its threads, so that one thread
// initialises their function-local statics. Debian's libraries are compiled without ThreadSanitizer. It does not see
// the compiler's guards and would report the first use by two threads as a race.
#ifndef MUSTER_TESTS_SUPPORT_WARM_LIBRARIES_H_
#define MUSTER_TESTS_SUPPORT_WARM_LIBRARIES_H_

#include <httplib.h>
#include <spdlog/spdlog.h>

#include <thread>

namespace muster {

inline bool WarmLibraries() {
  static const bool done = [] {
    if (spdlog::default_logger() == nullptr) return false;
    httplib::Server server;
    server.Post("/",
                [](const httplib::Request&, httplib::Response& response) { response.set_content("x", "text/plain"); });
    const int port = server.bind_to_any_port("127.0.0.1");
    std::thread serving([&] { server.listen_after_bind(); });
    const bool answered = static_cast<bool>(httplib::Client("127.0.0.1", port).Post("/", "x", "text/plain"));
    server.stop();
    serving.join();
    return answered;
  }();
  return done;
}

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_WARM_LIBRARIES_H_
