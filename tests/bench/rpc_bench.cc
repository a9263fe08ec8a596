// The gRPC figures of docs/project/performance.md. Decisions a second with 1, 8 and 64 callers beside a plain echo with
// the same messages; gangs of one pod beside two echoes, and by one stream. The cost of 10,000 waiting Permit streams
// and 200 unread watches, in memory and for other callers. Decisions while a large gang is explained. musterd and the
// echo are separate processes. An argument runs one figure: decide gangs stream durable watch explain permits.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "clients/cpp/muster_client.h"
#include "muster/v1/decision.grpc.pb.h"
#include "muster/v1/gang.grpc.pb.h"
#include "muster/v1/placement.grpc.pb.h"
#include "tests/bench/echo.grpc.pb.h"
#include "tests/bench/rpc_figures.h"
#include "tests/support/running_musterd.h"

namespace muster {
namespace {

constexpr int kStreams = 10'000;
constexpr int kChannels = 20;
constexpr char kLimits[] = "limits: {callsPerSecond: 10000000, streamsPerClient: 20000}\n";

class EchoService final : public bench::Echo::CallbackService {
 public:
  grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context, const bench::EchoRequest*,
                                bench::EchoResponse* response) override {
    response->set_passes(true);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// Serves the echo in a child process; the child sends its port through a pipe. REQUIRES: no earlier use of gRPC in this
// process.
int StartEcho(pid_t* child) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 0;
  *child = fork();
  if (*child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    EchoService service;
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    const auto server = builder.BuildAndStart();
    if (write(pipe_ends[1], &port, sizeof(port)) != sizeof(port)) _exit(1);
    server->Wait();
    _exit(0);
  }
  int port = 0;
  if (read(pipe_ends[0], &port, sizeof(port)) != sizeof(port)) return 0;
  return port;
}

std::shared_ptr<grpc::Channel> NewChannel(const std::string& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

// Stubs that callers share: at most so many connections.
template <typename Service>
class Stubs {
 public:
  explicit Stubs(const std::string& server, int most = 8) {
    for (int i = 0; i < most; ++i) stubs_.push_back(Service::NewStub(NewChannel(server)));
  }
  [[nodiscard]] auto* Of(int caller) const { return stubs_[static_cast<size_t>(caller) % stubs_.size()].get(); }

 private:
  std::vector<std::unique_ptr<typename Service::Stub>> stubs_;
};

bool Say(bench::Echo::Stub* stub, int caller) {
  grpc::ClientContext context;
  bench::EchoRequest request;
  bench::EchoResponse response;
  request.set_pod_uid(absl::StrCat("u", caller));
  return stub->Say(&context, request, &response).ok();
}

bool AddNode(MusterClient* client, const char* pods) {
  v1::UpdateFactsRequest nodes;
  v1::NodeFacts* node = nodes.add_nodes();
  node->set_name("n");
  (*node->mutable_allocatable())["cpu"] = "100000";
  (*node->mutable_allocatable())["pods"] = pods;
  return client->UpdateFacts(nodes).ok();
}

// Calls a second of `callers` threads together; `call(thread)` makes one.
template <typename Call>
double Rate(int callers, Call call) {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> calls{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&, i] {
      while (!stop) {
        if (!call(i)) break;
        ++calls;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const int64_t before = calls;
  const auto begun = Steady::now();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const double rate =
      static_cast<double>(calls - before) / std::chrono::duration<double>(Steady::now() - begun).count();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return rate;
}

bool AddPods(MusterClient* client, int first, int count, const std::string& gang, int min) {
  v1::UpdateFactsRequest update;
  for (int i = first; i < first + count; ++i) {
    v1::PodFacts* pod = update.add_pods();
    pod->set_uid(absl::StrCat("u", i));
    pod->set_name(absl::StrCat("p", i));
    pod->set_gang(gang);
    pod->mutable_declaration()->set_min_member(min);
    pod->mutable_declaration()->set_mode(v1::GANG_MODE_NON_STRICT);
    (*pod->mutable_shape()->mutable_requests())["cpu"] = "1m";
  }
  return client->UpdateFacts(update).ok();
}

struct Permit {
  grpc::ClientContext context;
  v1::PermitRequest request;
  v1::PermitEvent event;
  std::unique_ptr<grpc::ClientAsyncReader<v1::PermitEvent>> reader;
};

class RpcBench {
 public:
  RpcBench(int echo_port, pid_t echo_pid, std::string only)
      : only_(std::move(only)),
        echo_pid_(echo_pid),
        musterd_(absl::StrCat(kLimits, "store: {path: ':memory:'}\n")),
        echo_(absl::StrCat("127.0.0.1:", echo_port)) {
    ClientOptions options;
    options.server = musterd_.grpc();
    client_ = *MusterClient::Connect(options);
  }

  bool Run() {
    if (!musterd_.running() || !AddNode(client_.get(), "10000000") || !AddPods(client_.get(), 0, 64, "asked", 64))
      return false;
    if (Wants("decide")) {
      for (const int callers : {1, 8, 64}) Decisions(callers);
    }
    if (Wants("gangs")) {
      SubmitFigure();
      GangsBesideEchoes();
    }
    if (Wants("stream")) StreamFigure(client_.get(), musterd_.pid(), "");
    for (const int sync_ms : {0, 2, 10}) {
      if (Wants("durable") && !DurableFigures(sync_ms)) return false;
    }
    return (!Wants("watch") || WatchFigure()) && (!Wants("explain") || ExplainFigure()) &&
           (!Wants("permits") || StreamsFigure());
  }

 private:
  [[nodiscard]] bool Wants(const std::string& figure) const { return only_.empty() || only_ == figure; }

  bool Ask(v1::DecisionService::Stub* stub, int caller) {
    grpc::ClientContext context;
    v1::PreFilterRequest request;
    v1::PreFilterResponse response;
    request.set_pod_uid(absl::StrCat("u", caller));
    return stub->PreFilter(&context, request, &response).ok() && response.allowed();
  }

  // In alternation with the echo, so that both run at the same speed of the machine.
  void Decisions(int callers) {
    const Stubs<v1::DecisionService> stubs(musterd_.grpc(), std::min(callers, 8));
    const Stubs<bench::Echo> echos(echo_, std::min(callers, 8));
    std::vector<double> decisions;
    std::vector<double> plain;
    std::vector<double> ratios;
    for (int round = 0; round < kRounds; ++round) {
      plain.push_back(Rate(callers, [&](int i) { return Say(echos.Of(i), i); }));
      decisions.push_back(Rate(callers, [&](int i) { return Ask(stubs.Of(i), i); }));
      ratios.push_back(decisions.back() / plain.back());
    }
    Print(absl::StrCat("gRPC decisions (PreFilter), ", callers, " callers"), decisions, "/s");
    Print(absl::StrCat("gRPC plain echo, ", callers, " callers"), plain, "/s");
    Print(absl::StrCat("gRPC decisions beside the echo, ", callers, " callers"), ratios, "x");
  }

  void SubmitFigure() {
    std::vector<double> rates;
    std::atomic<int> next{0};
    for (int round = 0; round < kRounds; ++round) {
      rates.push_back(Rate(8, [&](int) {
        const auto planned = client_->SubmitGang(GangRequest(absl::StrCat("bench-", next++), 8));
        return planned.ok() && client_->AbandonGang(planned->id()).ok();
      }));
    }
    Print("gangs of 8 submitted, planned and abandoned over gRPC, 8 callers", rates, "/s");
  }

  // A gang of one pod takes two calls: its submission and its confirmation.
  static bool StartGang(v1::PlacementService::Stub* stub, int number) {
    grpc::ClientContext submitting;
    v1::Submission planned;
    if (!stub->SubmitGang(&submitting, GangRequest(absl::StrCat("one-", number), 1), &planned).ok()) return false;
    grpc::ClientContext confirming;
    v1::ConfirmGangRequest confirm;
    confirm.set_id(planned.id());
    confirm.set_plan(planned.plan());
    return stub->ConfirmGang(&confirming, confirm, &planned).ok();
  }

  // Seconds until a small append to a file is on the disk.
  static double SyncTime(const std::string& folder) {
    const std::string path = folder + "/sync";
    const int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
    const std::string page(4096, 'x');
    std::vector<double> samples;
    for (int i = 0; i < 200; ++i) {
      const auto begun = Steady::now();
      if (write(fd, page.data(), page.size()) < 0 || fdatasync(fd) != 0) break;
      samples.push_back(std::chrono::duration<double>(Steady::now() - begun).count());
    }
    close(fd);
    unlink(path.c_str());
    std::sort(samples.begin(), samples.end());
    return samples.empty() ? 0 : samples[samples.size() / 2];
  }

  // With the store on a disk whose syncs take this much longer: every call of a gang waits for a commit.
  bool DurableFigures(int sync_ms) {
    if (sync_ms > 0) {
      setenv("LD_PRELOAD", MUSTER_SLOW_SYNC, 1);
      setenv("MUSTER_SYNC_MS", absl::StrCat(sync_ms).c_str(), 1);
    }
    RunningMusterd durable(kLimits);
    unsetenv("LD_PRELOAD");
    unsetenv("MUSTER_SYNC_MS");
    ClientOptions options;
    options.server = durable.grpc();
    if (!durable.running() || !AddNode(MusterClient::Connect(options)->get(), "10000000")) return false;
    const double sync = SyncTime(durable.folder()) + sync_ms / 1e3;
    Print("an append of 4 KiB to the same disk, synced", {sync * 1e3}, "ms");
    const std::string slow = sync_ms == 0 ? "" : absl::StrCat(", syncs ", sync_ms, " ms slower");
    std::atomic<int> next{0};
    for (const int callers : {1, 8, 64}) {
      const Stubs<v1::PlacementService> stubs(durable.grpc(), std::min(callers, 8));
      const Stubs<bench::Echo> echos(echo_, std::min(callers, 8));
      std::vector<double> decisions;
      std::vector<double> ratios;
      for (int round = 0; round < 3; ++round) {
        const double echo = Rate(callers, [&](int i) { return Say(echos.Of(i), i); });
        decisions.push_back(2 * Rate(callers, [&](int i) { return StartGang(stubs.Of(i), next++); }));
        ratios.push_back(decisions.back() / std::min(echo, callers / (sync + callers / echo)));
      }
      // One caller waits for the disk in every call.
      if (callers == 1 && sync_ms > 0 && decisions.front() > 1.2e3 / sync_ms) {
        std::fprintf(stderr,
                     "%.0f calls/s by one caller: the syncs are not %d ms slower, " MUSTER_SLOW_SYNC " has no effect\n",
                     decisions.front(), sync_ms);
        return false;
      }
      Print(absl::StrCat("durable decisions (gangs of 1 submitted, confirmed), ", callers, " callers", slow), decisions,
            "/s");
      Print(absl::StrCat("the same beside min(echo, callers / (sync + echo latency)), ", callers, " callers", slow),
            ratios, "x");
    }
    StreamFigure(MusterClient::Connect(options)->get(), durable.pid(), absl::StrCat(", durable", slow));
    return true;
  }

  void GangsBesideEchoes() {
    constexpr int kCallers = 64;
    const Stubs<v1::PlacementService> stubs(musterd_.grpc());
    const Stubs<bench::Echo> echos(echo_);
    std::atomic<int> next{0};
    std::vector<double> rates;
    std::vector<double> ratios;
    std::vector<double> cpu;
    for (int round = 0; round < kRounds; ++round) {
      double used = CpuOf(echo_pid_);
      std::atomic<int64_t> pairs{0};
      const double plain = Rate(kCallers, [&](int i) {
        if (!Say(echos.Of(i), i) || !Say(echos.Of(i), i)) return false;
        ++pairs;
        return true;
      });
      const double echo_cpu = (CpuOf(echo_pid_) - used) / static_cast<double>(pairs);
      used = CpuOf(musterd_.pid());
      std::atomic<int64_t> gangs{0};
      rates.push_back(Rate(kCallers, [&](int i) {
        if (!StartGang(stubs.Of(i), next++)) return false;
        ++gangs;
        return true;
      }));
      ratios.push_back(rates.back() / plain);
      cpu.push_back((CpuOf(musterd_.pid()) - used) / static_cast<double>(gangs) / echo_cpu);
    }
    Print("gangs of 1 submitted and confirmed over gRPC, 64 callers", rates, "/s");
    Print("gangs of 1 over gRPC beside two echoes, 64 callers", ratios, "x");
    Print("CPU of a gang of 1 over gRPC beside two echoes, 64 callers", cpu, "x");
  }

  // Readers that open a watch of many gangs and then do not read.
  bool WatchFigure() {
    constexpr int kGangs = 10'000;
    constexpr int kWatches = 200;
    for (int first = 0; first < kGangs; first += 1000) {
      v1::UpdateFactsRequest update;
      for (int i = first; i < first + 1000; ++i) {
        v1::PodFacts* pod = update.add_pods();
        pod->set_uid(absl::StrCat("w", i));
        pod->set_name(pod->uid());
        pod->set_gang(absl::StrCat("watched-", i));
        pod->mutable_declaration()->set_min_member(2);
        (*pod->mutable_shape()->mutable_requests())["cpu"] = "1m";
      }
      if (!client_->UpdateFacts(update).ok()) return false;
    }
    const int64_t before_kib = musterd_.ResidentKib();
    std::atomic<bool> over{false};
    std::vector<double> waits;
    std::thread asking([&] {
      const auto stub = v1::DecisionService::NewStub(NewChannel(musterd_.grpc()));
      while (!over) {
        const auto begun = Steady::now();
        if (!Ask(stub.get(), 1)) break;
        waits.push_back(std::chrono::duration<double, std::milli>(Steady::now() - begun).count());
      }
    });
    struct Watch {
      grpc::ClientContext context;
      std::unique_ptr<grpc::ClientReader<v1::GangEvent>> reader;
    };
    const Stubs<v1::GangService> stubs(musterd_.grpc(), kChannels);
    std::vector<std::unique_ptr<Watch>> watches;
    bool read = true;
    for (int i = 0; i < kWatches; ++i) {
      auto watch = std::make_unique<Watch>();
      watch->reader = stubs.Of(i)->WatchGangs(&watch->context, v1::WatchGangsRequest());
      v1::GangEvent first;
      read = read && watch->reader->Read(&first);
      watches.push_back(std::move(watch));
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
    over = true;
    asking.join();
    Print("200 unread watches of 10,000 gangs: memory",
          {static_cast<double>(musterd_.ResidentKib() - before_kib) / 1024}, "MiB");
    Print("a decision while 200 watches of 10,000 gangs open", waits, "ms");
    for (auto& watch : watches) watch->context.TryCancel();
    return read && !waits.empty();
  }

  // Sixteen callers that repeatedly query why a large gang waits.
  bool ExplainFigure() {
    constexpr int kMembers = 20'000;
    constexpr int kFirst = 1'000'000;
    for (int first = kFirst; first < kFirst + kMembers; first += 1000) {
      if (!AddPods(client_.get(), first, 1000, "large", kMembers + 1)) return false;
    }
    std::atomic<bool> over{false};
    std::atomic<bool> failed{false};
    std::atomic<int> explained{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 16; ++i) {
      readers.emplace_back([&] {
        ClientOptions options;
        options.server = musterd_.grpc();
        const auto client = *MusterClient::Connect(options);
        while (!over) {
          const auto why = client->ExplainGang("default", "large");
          if (!why.ok() || why->gang().members_size() != kMembers) failed = true;
          ++explained;
        }
      });
    }
    const std::vector<double> waits = Latencies();
    over = true;
    for (std::thread& reader : readers) reader.join();
    Print("a decision while 16 callers explain a gang of 20,000", waits, "ms");
    return !failed && explained > 0;
  }

  std::vector<double> Latencies() {
    const auto stub = v1::DecisionService::NewStub(NewChannel(musterd_.grpc()));
    std::vector<double> out;
    for (int i = 0; i < 3'000; ++i) {
      const auto begun = Steady::now();
      if (!Ask(stub.get(), i % 64)) break;
      out.push_back(std::chrono::duration<double, std::milli>(Steady::now() - begun).count());
    }
    return out;
  }

  bool StreamsFigure() {
    for (int first = 100; first < 100 + kStreams; first += 1'000) {
      if (!AddPods(client_.get(), first, 1'000, "waiting", kStreams + 1)) return false;
    }
    Print("gRPC decision, one caller", Latencies(), "ms");
    const int64_t before_kib = musterd_.ResidentKib();
    grpc::CompletionQueue queue;
    const Stubs<v1::DecisionService> stubs(musterd_.grpc(), kChannels);
    std::vector<std::unique_ptr<Permit>> permits;
    for (int i = 0; i < kStreams; ++i) {
      auto permit = std::make_unique<Permit>();
      permit->request.set_pod_uid(absl::StrCat("u", 100 + i));
      permit->request.set_node("n");
      permit->reader = stubs.Of(i)->PrepareAsyncPermit(&permit->context, permit->request, &queue);
      permit->reader->StartCall(nullptr);
      permit->reader->Read(&permit->event, permit.get());
      permits.push_back(std::move(permit));
    }
    const auto collect = [&](v1::PermitEvent::Verdict verdict) {
      int got = 0;
      void* tag = nullptr;
      bool ok = false;
      while (got < kStreams && queue.Next(&tag, &ok)) {
        if (tag == nullptr) continue;
        auto* permit = static_cast<Permit*>(tag);
        if (!ok || permit->event.verdict() != verdict) return false;
        ++got;
        if (verdict == v1::PermitEvent::VERDICT_WAIT) permit->reader->Read(&permit->event, permit);
      }
      return got == kStreams;
    };
    if (!collect(v1::PermitEvent::VERDICT_WAIT)) return false;
    Print("a waiting Permit stream, 10,000 at once",
          {static_cast<double>(musterd_.ResidentKib() - before_kib) / kStreams}, "KiB");
    Print("gRPC decision, one caller, 10,000 Permits waiting", Latencies(), "ms");
    // The last member arrives: all are permitted in one step.
    if (!AddPods(client_.get(), 100 + kStreams, 1, "waiting", kStreams + 1)) return false;
    v1::PermitRequest last;
    last.set_pod_uid(absl::StrCat("u", 100 + kStreams));
    last.set_node("n");
    const auto begun = Steady::now();
    std::thread permit_last([&] { client_->Permit(last, [](const v1::PermitEvent&) { return true; }).IgnoreError(); });
    const bool all = collect(v1::PermitEvent::VERDICT_PERMIT);
    Print("10,000 waiting Permits answered after the quorum",
          {std::chrono::duration<double>(Steady::now() - begun).count()}, "s");
    permit_last.join();
    queue.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
    }
    return all;
  }

  const std::string only_;
  const pid_t echo_pid_;
  RunningMusterd musterd_;
  const std::string echo_;
  std::unique_ptr<MusterClient> client_;
};

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  pid_t echo = 0;
  const int port = muster::StartEcho(&echo);
  const bool done = port > 0 && muster::RpcBench(port, echo, argc > 1 ? argv[1] : "").Run();
  if (!done) std::fprintf(stderr, "rpc_bench: a call failed\n");
  kill(echo, SIGKILL);
  waitpid(echo, nullptr, 0);
  return done ? 0 : 1;
}
