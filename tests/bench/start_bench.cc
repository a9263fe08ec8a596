// How long musterd takes until it is ready, beside an API server with 10,000 nodes and 100,000 running pods (SPEC
// K-10): the musterd that ships, and a server of this process that makes pages as kube-apiserver does. The server's own
// work is copying.
#include <httplib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/bench/core_world.h"
#include "tests/support/local_server.h"
#include "tests/support/running_musterd.h"

namespace muster {
namespace {

constexpr int kPods = 100'000;
constexpr int kRuns = 3;

// What several field managers wrote: a third of a usual object.
std::string ManagedFields() {
  std::string labels;
  for (int i = 0; i < 24; ++i)
    absl::StrAppend(&labels, i == 0 ? "" : ",", R"("f:app.example.com/label-)", i, R"(":{})");
  std::string out;
  for (const char* manager : {"kube-controller-manager", "kube-scheduler", "kubelet"}) {
    absl::StrAppend(
        &out, out.empty() ? "" : ",", R"({"manager":")", manager,
        R"(","operation":"Update","apiVersion":"v1","time":"2026-11-29T08:00:00Z","fieldsType":"FieldsV1",)",
        R"("fieldsV1":{"f:metadata":{"f:labels":{)", labels, "}}}}");
  }
  return out;
}

std::string NodeText() {
  std::string images;
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(
        &images, i == 0 ? "" : ",", R"({"names":["registry.example.com/team/image-)", i,
        R"(@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"],"sizeBytes":12345678})");
  }
  return absl::StrCat(
      R"({"metadata":{"name":"node-$I","uid":"node-uid-$I","resourceVersion":"1","labels":{"kubernetes.io/hostname":"node-$I",)",
      R"("topology.kubernetes.io/zone":"z1","kubernetes.io/arch":"amd64","kubernetes.io/os":"linux"},"managedFields":[)",
      ManagedFields(),
      R"(]},"spec":{"podCIDR":"10.0.0.0/24"},"status":{"capacity":{"cpu":"64","memory":"256Gi","pods":"110",)",
      R"("nvidia.com/gpu":"8"},"allocatable":{"cpu":"63500m","memory":"250Gi","pods":"110","nvidia.com/gpu":"8"},"conditions":[)",
      R"({"type":"Ready","status":"True","lastHeartbeatTime":"2026-11-29T08:00:00Z","reason":"KubeletReady"}],"images":[)",
      images, "]}}");
}

std::string PodText() {
  std::string env;
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&env, i == 0 ? "" : ",", R"({"name":"VARIABLE_)", i, R"(","value":"a value of some length )", i,
                    R"("})");
  }
  return absl::StrCat(
      R"({"metadata":{"name":"job-$G-$I","namespace":"team","uid":"pod-uid-$I","resourceVersion":"1",)",
      R"("creationTimestamp":"2026-11-29T08:00:00Z","labels":{"pod-group.scheduling.sigs.k8s.io":"job-$G","app":"train"},)",
      R"("annotations":{"gang.scheduling.koordinator.sh/name":"job-$G","gang.scheduling.koordinator.sh/min-available":"10"},)",
      R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"job-$G","uid":"job-uid-$G","controller":true}],)",
      R"("managedFields":[)", ManagedFields(),
      R"(]},"spec":{"nodeName":"node-$N","schedulerName":"default-scheduler",)",
      R"("priority":0,"serviceAccountName":"default","volumes":[{"name":"token","projected":{"sources":[{"serviceAccountToken":)",
      R"({"expirationSeconds":3607,"path":"token"}}]}}],"containers":[{"name":"main","image":"registry.example.com/train:1",)",
      R"("command":["python","train.py"],"env":[)", env, R"(],"resources":{"requests":{"cpu":"4","memory":"16Gi",)",
      R"("nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"1"}},"volumeMounts":[{"name":"token","mountPath":"/var/run"}],)",
      R"("livenessProbe":{"httpGet":{"path":"/healthz","port":8080},"periodSeconds":10}}],"tolerations":[{"key":)",
      R"("node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":)",
      R"("nvidia.com/gpu","operator":"Exists"}]},"status":{"phase":"Running","conditions":[{"type":"PodScheduled",)",
      R"("status":"True"},{"type":"Ready","status":"True"}],"podIP":"10.1.2.3","startTime":"2026-11-29T08:00:01Z",)",
      R"("containerStatuses":[{"name":"main","ready":true,"restartCount":0,"state":{"running":{"startedAt":)",
      R"("2026-11-29T08:00:02Z"}},"image":"registry.example.com/train:1"}]}})");
}

// Objects `begin` to `end` of a kind.
std::string Page(const char* kind, const std::string& text, int begin, int end, bool more) {
  std::string out = absl::StrCat(R"({"kind":")", kind, R"(List","apiVersion":"v1","metadata":{"resourceVersion":"100")",
                                 more ? absl::StrCat(R"(,"continue":")", end, R"(")") : "", R"(},"items":[)");
  out.reserve(out.size() + static_cast<size_t>(end - begin) * (text.size() + 100));
  for (int i = begin; i < end; ++i) {
    absl::StrAppend(&out, i == begin ? "" : ",",
                    absl::StrReplaceAll(
                        text, {{"$I", absl::StrCat(i)}, {"$G", absl::StrCat(i / 10)}, {"$N", absl::StrCat(i / 10)}}));
  }
  return out + "]}";
}

class ApiServer {
 public:
  ApiServer() {
    Serve("/api/v1/nodes", "Node", kNodes, NodeText());
    Serve("/api/v1/pods", "Pod", kPods, PodText());
    Serve("/api/v1/namespaces", "Namespace", 1, R"({"metadata":{"name":"team","uid":"ns","resourceVersion":"1"}})");
    port_ = server_.Start();
  }
  [[nodiscard]] int port() const { return port_; }

 private:
  void Serve(const char* path, const char* kind, int objects, const std::string& text) {
    server_->Get(path, [=](const httplib::Request& request, httplib::Response& response) {
      if (request.has_param("watch")) {  // open and silent, until the client leaves
        response.set_chunked_content_provider("application/json", [](size_t, httplib::DataSink& sink) {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          return sink.is_writable();
        });
        return;
      }
      int begin = 0;
      int limit = objects;
      static_cast<void>(absl::SimpleAtoi(request.get_param_value("continue"), &begin));
      static_cast<void>(absl::SimpleAtoi(request.get_param_value("limit"), &limit));
      const int end = std::min(objects, begin + limit);
      response.set_content(Page(kind, text, begin, end, end < objects), "application/json; charset=utf-8");
    });
  }
  LocalServer<> server_;
  int port_ = 0;
};

double CpuSeconds(pid_t pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::vector<std::string> fields = absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
  double ticks = 0;
  for (const size_t field : {size_t{11}, size_t{12}}) ticks += std::atof(fields[field].c_str());
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int Main() {
  std::vector<double> ready;
  std::vector<double> cpu;
  std::vector<double> memory;
  for (int run = 0; run < kRuns; ++run) {
    ApiServer api;
    const std::string config = absl::StrCat("/tmp/muster-start-bench-", getpid(), ".kubeconfig");
    std::ofstream(config)
        << "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "
           "'http://127.0.0.1:"
        << api.port() << "'}}], users: [{name: u, user: {}}], contexts: [{name: c, context: {cluster: c, user: u}}]}\n";
    const Steady::time_point start = Steady::now();
    RunningMusterd musterd("", absl::StrCat("{kubeconfig: ", config, "}"));
    httplib::Client admin("127.0.0.1", musterd.admin_port());
    const auto is_ready = [&] {
      const httplib::Result answer = admin.Get("/readyz");
      return answer && answer->status == 200;
    };
    while (musterd.running() && !is_ready() && Seconds(start) < 120)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!is_ready()) {
      std::fprintf(stderr, "musterd did not become ready:\n%s\n", musterd.log().c_str());
      return 1;
    }
    ready.push_back(Seconds(start));
    cpu.push_back(CpuSeconds(musterd.pid()));
    memory.push_back(static_cast<double>(musterd.ResidentKib()) / 1024);
    static_cast<void>(std::remove(config.c_str()));
  }
  Report("ready after a start, 10,000 nodes and 100,000 pods at the API server", ready, "s");
  Report("ready after a start, 10,000 nodes and 100,000 pods at the API server: CPU of musterd", cpu, "s");
  Report("ready after a start, 10,000 nodes and 100,000 pods at the API server: memory of musterd", memory, "MiB");
  return 0;
}

}  // namespace
}  // namespace muster

int main() { return muster::Main(); }
