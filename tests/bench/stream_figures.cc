#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/bench/rpc_figures.h"

namespace muster {

// Gangs of one, submitted and confirmed in one call each, by one PlaceGangs. Some 10,000 run; the oldest end, a
// thousand in one call.
void StreamFigure(MusterClient* client, pid_t musterd, const std::string& where) {
  constexpr int kBatch = 64;
  constexpr int kWindow = 2'048;  // calls that are not answered yet
  std::vector<double> rates;
  std::vector<double> cpu;
  int number = 0;
  for (int round = 0; round < kRounds; ++round) {
    int64_t sent = 0;
    std::mutex mutex;
    std::condition_variable answered;
    int open = 0;
    int64_t started = 0;
    std::deque<std::string> running;
    bool over = false;
    std::thread ending([&] {
      for (;;) {
        v1::UpdateFactsRequest ended;
        {
          std::unique_lock<std::mutex> lock(mutex);
          answered.wait(lock, [&] { return over || running.size() >= 10'000; });
          if (over && running.empty()) return;
          for (int i = 0; i < 1'000 && !running.empty(); ++i, running.pop_front())
            ended.add_removed_pods(running.front());
        }
        if (!client->UpdateFacts(ended).ok()) return;
      }
    });
    const double used = CpuOf(musterd);
    const auto begun = Steady::now();
    const std::unique_ptr<PlacementStream> stream = client->PlaceGangs();
    std::thread writer([&] {
      while (Steady::now() - begun < std::chrono::seconds(1)) {
        v1::PlaceGangsRequest request;
        {
          std::unique_lock<std::mutex> lock(mutex);
          answered.wait(lock, [&] { return over || open + kBatch <= kWindow; });
          if (over) return;
          open += kBatch;
        }
        for (int i = 0; i < kBatch; ++i) {
          v1::SubmitGangRequest* submit = request.add_calls()->mutable_submit();
          *submit = GangRequest(absl::StrCat("stream-", number++), 1);
          submit->set_confirm(true);
        }
        sent += kBatch;
        if (!stream->Write(request)) return;
      }
      stream->WritesDone();
    });
    v1::PlaceGangsResponse response;
    while (stream->Read(&response)) {
      const std::lock_guard<std::mutex> lock(mutex);
      for (const v1::PlacementResult& result : response.results()) {
        if (result.submission().state() == v1::Submission::STATE_CONFIRMED) ++started;
        for (const v1::Placement& place : result.submission().placements()) running.push_back(place.pod_uid());
      }
      open -= response.results_size();
      if (open <= kWindow - kBatch || running.size() >= 10'000) answered.notify_all();
    }
    const double seconds = std::chrono::duration<double>(Steady::now() - begun).count();
    const double cpu_s = CpuOf(musterd) - used;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      over = true;
    }
    answered.notify_all();
    ending.join();
    writer.join();
    const absl::Status status = stream->Finish();
    if (!status.ok() || started != sent) {
      std::fprintf(stderr, "%s; %ld of %ld gangs started\n", status.ToString().c_str(), started, sent);
      return;
    }
    rates.push_back(static_cast<double>(started) / seconds);
    cpu.push_back(cpu_s / static_cast<double>(started) * 1e6);
  }
  Print(absl::StrCat("gangs of 1 by one stream", where), rates, "/s");
  Print(absl::StrCat("CPU of musterd for a gang of 1 by stream", where), cpu, "us");
}

}  // namespace muster
