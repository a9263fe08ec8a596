#include "service/http/admin.h"

#include <httplib.h>

#include <algorithm>
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
  server->Get("/traces", [traces = sources.traces](const httplib::Request& request, httplib::Response& response) {
    for (const char* name : {"gang", "pod"}) {
      const std::string value = request.get_param_value(name);
      if (value.empty() || std::count(value.begin(), value.end(), '/') == 1) continue;
      response.status = 400;
      response.set_content(std::string(name) + ": expected NAMESPACE/NAME\n", "text/plain");
      return;
    }
    response.set_content(traces(request.get_param_value("gang"), request.get_param_value("pod")), "application/json");
  });
}

}  // namespace muster
