// The read-only admin server: /healthz, /readyz, /metrics and /traces.
#ifndef MUSTER_SERVICE_HTTP_ADMIN_H_
#define MUSTER_SERVICE_HTTP_ADMIN_H_

#include <functional>
#include <string>

namespace httplib {
class Server;
}  // namespace httplib

namespace muster {

struct AdminSources {
  std::function<std::string()> not_ready;  // why the process is not ready; empty: it is ready
  std::function<std::string()> metrics;    // returns the Prometheus exposition text
  // Returns JSON: the traces of a gang ("namespace/name"), of a pod in it, or of a pod without a gang. Both empty: the
  // list of gangs.
  std::function<std::string(const std::string& gang, const std::string& pod)> traces;
};

void RegisterAdmin(httplib::Server* server, const AdminSources& sources);

}  // namespace muster

#endif  // MUSTER_SERVICE_HTTP_ADMIN_H_
