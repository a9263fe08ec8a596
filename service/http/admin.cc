#include "service/http/admin.h"

#include <httplib.h>

#include <utility>

namespace muster {

void RegisterAdmin(httplib::Server* server, const AdminSources& sources) {
  server->Get("/healthz",
              [](const httplib::Request&, httplib::Response& response) { response.set_content("ok\n", "text/plain"); });
  server->Get("/readyz", [not_ready = sources.not_ready](const httplib::Request&, httplib::Response& response) {
    const std::string why = not_ready();
    response.status = why.empty() ? 200 : 503;
    response.set_content(why.empty() ? "ok\n" : why + "\n", "text/plain");
  });
  server->Get("/metrics", [metrics = sources.metrics](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics(), "text/plain; version=0.0.4");
  });
}

}  // namespace muster
