// What the figures of rpc_bench share.
#ifndef MUSTER_TESTS_BENCH_RPC_FIGURES_H_
#define MUSTER_TESTS_BENCH_RPC_FIGURES_H_

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/muster_client.h"

namespace muster {

using Steady = std::chrono::steady_clock;
inline constexpr int kRounds = 5;

// Prints the samples of a figure as a line of JSON.
inline void Print(const std::string& figure, std::vector<double> samples, const char* unit) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double q) { return samples[static_cast<size_t>(q * static_cast<double>(samples.size() - 1))]; };
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  std::printf(R"({"figure":"%s","unit":"%s","n":%zu,"mean":%.6g,"median":%.6g,"p99":%.6g,"min":%.6g,"max":%.6g})"
              "\n",
              figure.c_str(), unit, samples.size(), mean, at(0.5), at(0.99), samples.front(), samples.back());
  std::fflush(stdout);
}

// A request for a gang of `size`.
inline v1::SubmitGangRequest GangRequest(const std::string& id, int size) {
  v1::SubmitGangRequest request;
  request.set_request_id(id);
  request.mutable_gang()->set_name(id);
  request.mutable_gang()->set_min_member(size);
  v1::MemberSet* members = request.add_members();
  members->set_count(size);
  (*members->mutable_shape()->mutable_requests())["cpu"] = "1m";
  return request;
}

// CPU seconds of a process.
inline double CpuOf(pid_t pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::istringstream rest(text.substr(text.rfind(')') + 1));
  std::string field;
  int64_t ticks = 0;
  for (int i = 3; i <= 15 && rest >> field; ++i) {
    if (i >= 14) ticks += std::strtoll(field.c_str(), nullptr, 10);  // utime, stime (proc(5))
  }
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Rate and musterd's CPU of gangs of one that start by one PlaceGangs. `where` is appended to the figures' names.
void StreamFigure(MusterClient* client, pid_t musterd, const std::string& where);

}  // namespace muster

#endif  // MUSTER_TESTS_BENCH_RPC_FIGURES_H_
