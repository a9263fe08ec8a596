// The HTTP figures of docs/project/performance.md: filter over HTTP with and without held binds, and the cost of a held
// bind. A child process creates the load, so that only the server's memory is counted.
#include <httplib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "k8s-extender/webhook/extender.h"
#include "service/engine/engine.h"
#include "service/http/http_listener.h"
#include "support/json.h"
#include "tests/bench/traced.h"
#include "tests/support/facts.h"
#include "tests/support/loopback.h"

namespace muster {
namespace {

using Steady = std::chrono::steady_clock;
double Ms(Steady::time_point from) { return std::chrono::duration<double, std::milli>(Steady::now() - from).count(); }

class BoundAtOnce : public EffectSink {
 public:
  void Carry(std::vector<Effect> effects) override {
    std::thread([this, effects = std::move(effects)] {
      for (const Effect& effect : effects) {
        if (const auto* bind = std::get_if<BindPod>(&effect)) {
          port->Announce(BindingOutcome{bind->pod.uid, bind->node, BindingResult::kBound, ""}).IgnoreError();
        }
      }
    }).detach();
  }
  DecisionPort* port = nullptr;
};

double ResidentKiB() {
  std::ifstream in("/proc/self/statm");
  long size = 0;
  long resident = 0;
  in >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

void AddPod(Engine* engine, const std::string& uid, const std::string& gang, int min) {
  engine->Announce(UpsertPod{gang.empty() ? Lone(uid, 1) : Member(uid, gang, min)}).IgnoreError();
}

// A filter body as kube-scheduler sends it: a complete pod of some 3 KB, and node names.
std::string FilterBody(const std::string& uid, int names) {
  Json pod = {{"metadata", {{"uid", uid}, {"name", uid}, {"namespace", "d"}, {"managedFields", Json::array()}}},
              {"spec", Json::object()}};
  for (int i = 0; i < 20; ++i) {
    pod["metadata"]["managedFields"].push_back(
        {{"manager", "controller"},
         {"operation", "Update"},
         {"fieldsV1", {{"f:metadata", {{"f:annotations", {{"k:example", {}}}}}}, {"f:spec", {{"f:containers", {}}}}}}});
  }
  Json list = Json::array();
  for (int i = 0; i < names; ++i) list.push_back(absl::StrCat("node-", i));
  return Json{{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", list}}.dump();
}

void FilterFigure(int port, int names, const std::string& what) {
  httplib::Client client("127.0.0.1", port);
  client.set_keep_alive(true);
  client.set_tcp_nodelay(true);
  const std::string body = FilterBody("plain", names);
  std::vector<double> took;
  for (int i = 0; i < 1200; ++i) {
    const Steady::time_point start = Steady::now();
    const httplib::Result result = client.Post("/filter", body, "application/json");
    if (!result || result->status != 200) std::abort();
    if (i >= 200) took.push_back(Ms(start));
  }
  std::sort(took.begin(), took.end());
  std::printf(
      "{\"figure\": \"filter over HTTP, %d names%s\", \"median\": %.4g, \"p99\": %.4g, \"runs\": %zu, \"unit\": "
      "\"ms\"}\n",
      names, what.c_str(), took[took.size() / 2], took[took.size() * 99 / 100], took.size());
  std::fflush(stdout);
}

void SendBind(int fd, const std::string& uid) {
  const std::string body =
      absl::StrCat("{\"PodName\":\"", uid, "\",\"PodNamespace\":\"d\",\"PodUID\":\"", uid, "\",\"Node\":\"node-0\"}");
  const std::string request =
      absl::StrCat("POST /bind HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
                   "\r\n\r\n", body);
  if (write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size())) std::abort();
}

// A child process that opens `holds` bind calls for <gang>-0 ..., and ends when all are answered.
pid_t StartHolders(int port, const std::string& gang, int holds, bool fill) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<int> sockets;
  for (int i = 0; i < holds; ++i) {
    sockets.push_back(ConnectLoopback(port));
    if (sockets.back() < 0) std::abort();
    SendBind(sockets.back(), absl::StrCat(gang, "-", i));
  }
  if (!fill) {
    pause();
    _exit(0);
  }
  char buffer[4096];
  for (const int fd : sockets) {
    std::string answer;
    while (answer.find("Error") == std::string::npos) {
      const ssize_t got = read(fd, buffer, sizeof(buffer));
      if (got <= 0) _exit(1);
      answer.append(buffer, static_cast<size_t>(got));
    }
  }
  _exit(0);
}

void WaitHeld(Engine* engine, int holds) {
  for (int i = 0; i < 3000 && engine->view()->held_binds != holds; ++i) absl::SleepFor(absl::Milliseconds(10));
  if (engine->view()->held_binds != holds) {
    std::fprintf(stderr, "only %d of %d binds are held\n", engine->view()->held_binds, holds);
    std::exit(1);
  }
}

class Bench {
 public:
  Bench()
      : engine_(Settings(), Traced(&traces_), &store_, &sink_),
        extender_(&engine_, [](absl::string_view, absl::string_view, absl::Duration) {}) {
    sink_.port = &engine_;
    HttpListenerOptions options;
    options.max_connections = 8000;
    decisions_ = std::make_unique<HttpListener>("decisions", options);
    options.one_request_per_connection = true;
    binds_ = std::make_unique<HttpListener>("binds", options);
    extender_.RegisterDecisions(&decisions_->server());
    extender_.RegisterBind(&binds_->server());
    if (!engine_.Start().ok() || !decisions_->Start().ok() || !binds_->Start().ok()) std::abort();
    for (int i = 0; i < 5000; ++i) {
      const NodeDescription node = NodeWith(absl::StrCat("node-", i), {{"cpu", 64'000}, {"pods", 20'000}});
      engine_.Announce(UpsertNode{node}).IgnoreError();
    }
    AddPod(&engine_, "plain", "", 0);
    engine_.Announce(FactsRead{}).IgnoreError();
  }
  static MachineSettings Settings() {
    MachineSettings settings;
    settings.max_holds = 10'000;
    settings.hold_limit_ms = 120'000;
    settings.answer_limit_ms = 200'000;
    settings.plan_idle_ms = 600'000;
    return settings;
  }
  // A gang of `holds` + 1, of which all but the last are offered node-0 and are ready to bind.
  void PrepareGang(const std::string& gang, int holds) {
    for (int i = 0; i <= holds; ++i) AddPod(&engine_, absl::StrCat(gang, "-", i), gang, holds + 1);
    for (int i = 0; i <= holds; ++i) Filter(absl::StrCat(gang, "-", i));
  }
  void Filter(const std::string& uid) {
    for (int i = 0; i < 100; ++i) {
      const absl::StatusOr<Reply> reply =
          engine_.Ask(muster::Filter{uid, std::make_shared<NodeOffer>(std::vector<std::string>{"node-0"})});
      if (reply.ok() && std::get<FilterReply>(*reply).kind == FilterReply::Kind::kSingleNode) return;
      absl::SleepFor(absl::Milliseconds(10));
    }
    std::abort();
  }
  void Run() {
    FilterFigure(decisions_->port(), 1000, "");
    FilterFigure(decisions_->port(), 5000, "");
    PrepareGang("held", 2000);
    const pid_t holders = StartHolders(binds_->port(), "held", 2000, false);
    WaitHeld(&engine_, 2000);
    FilterFigure(decisions_->port(), 1000, ", 2,000 binds held");
    FilterFigure(decisions_->port(), 5000, ", 2,000 binds held");
    kill(holders, SIGKILL);
    waitpid(holders, nullptr, 0);
    WaitHeld(&engine_, 0);
    for (int i = 0; i <= 2000; ++i) engine_.Announce(RemovePod{absl::StrCat("held-", i)}).IgnoreError();

    PrepareGang("many", 5000);
    const double before = ResidentKiB();
    const pid_t many = StartHolders(binds_->port(), "many", 5000, true);
    WaitHeld(&engine_, 5000);
    std::printf("{\"figure\": \"a held bind, 5,000 at once\", \"median\": %.4g, \"unit\": \"KiB\"}\n",
                (ResidentKiB() - before) / 5000);
    const Steady::time_point start = Steady::now();
    const int last = ConnectLoopback(binds_->port());
    if (last < 0) std::abort();
    SendBind(last, "many-5000");
    int status = 0;
    waitpid(many, &status, 0);
    std::printf(
        "{\"figure\": \"5,000 held binds answered after the quorum\", \"median\": %.4g, \"unit\": \"s\", \"all\": "
        "%s}\n",
        Ms(start) / 1000, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "true" : "false");
  }

 private:
  MemoryStore store_;
  BoundAtOnce sink_;
  TraceLog traces_{50'000, nullptr};
  Engine engine_;
  Extender extender_;
  std::unique_ptr<HttpListener> decisions_;
  std::unique_ptr<HttpListener> binds_;
};

}  // namespace
}  // namespace muster

int main() {
  rlimit limit{20'000, 20'000};
  setrlimit(RLIMIT_NOFILE, &limit);
  muster::Bench().Run();
  std::fflush(stdout);
  _exit(0);
}
