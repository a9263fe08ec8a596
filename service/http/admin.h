// The read-only admin door: /healthz, /readyz, /metrics and /traces.
#ifndef MUSTER_SERVICE_HTTP_ADMIN_H_
#define MUSTER_SERVICE_HTTP_ADMIN_H_

#include <functional>
#include <string>

namespace httplib {
class Server;
}  // namespace httplib

namespace muster {

struct AdminSources {
  std::function<std::string()> not_ready;  // why the process is not ready; empty when it is
  std::function<std::string()> metrics;    // the Prometheus exposition text
  // JSON of the traces of a gang ("namespace/name"), or of its or no gang's pod; both empty: which gangs there are.
  std::function<std::string(const std::string& gang, const std::string& pod)> traces;
};

void RegisterAdmin(httplib::Server* server, const AdminSources& sources);

}  // namespace muster

#endif  // MUSTER_SERVICE_HTTP_ADMIN_H_
