#include "tests/support/running_musterd.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {

RunningMusterd::RunningMusterd(const std::string& yaml, const std::string& kubernetes, size_t files) : files_(files) {
  std::string folder = "/tmp/muster-test-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return;
  folder_ = folder;
  const std::string config = folder_ + "/musterd.yaml";
  std::ofstream(config) << "log: {format: text}\nkubernetes: " << kubernetes << "\n"
                        << "listen: {admin: 127.0.0.1:0, grpc: 127.0.0.1:0, extender: 127.0.0.1:0, bind: 127.0.0.1:0}\n"
                        << yaml;
  Start();
}

std::string RunningMusterd::Path() { return MUSTERD_PATH; }

void RunningMusterd::Start() {
  const std::string config = folder_ + "/musterd.yaml";
  const std::string log = folder_ + "/log";
  grpc_port_ = 0;
  std::ofstream(log).flush();
  pid_ = fork();
  if (pid_ == 0) {
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    const rlimit limit{files_, files_};
    if (files_ > 0 && setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(127);
    if (chdir(folder_.c_str()) != 0) _exit(127);  // where its store will be
    execl(MUSTERD_PATH, "musterd", "--config", config.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  Await(/*standing_by=*/true);
}

void RunningMusterd::AwaitServing() { Await(/*standing_by=*/false); }

void RunningMusterd::Await(bool standing_by) {
  constexpr char kServes[] = "musterd serves:";
  constexpr char kStandsBy[] = "musterd is on standby:";
  for (int i = 0; i < 1000 && grpc_port_ == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::string text = this->log();  // read once: lines may appear between two reads
    admin_port_ = PortAfter(kStandsBy, "admin ", text);
    if (standing_by && admin_port_ > 0) return;
    extender_port_ = PortAfter(kServes, "extender ", text);
    bind_port_ = PortAfter(kServes, "bind ", text);
    admin_port_ = PortAfter(kServes, "admin ", text);
    grpc_port_ = PortAfter(kServes, "gRPC ", text);
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return;
    }
  }
}

RunningMusterd::~RunningMusterd() {
  Stop();
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

void RunningMusterd::Stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  for (int i = 0; i < 1000; ++i) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Kill();
}

void RunningMusterd::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string RunningMusterd::log() const {
  std::ostringstream text;
  text << std::ifstream(folder_ + "/log").rdbuf();
  return text.str();
}

int RunningMusterd::PortAfter(const std::string& beginning, const std::string& word, const std::string& text) {
  const size_t line = text.find(beginning);
  const size_t at = line == std::string::npos ? line : text.find(word, line);
  if (at == std::string::npos || text.find('\n', at) == std::string::npos) return 0;
  return std::atoi(text.c_str() + at + word.size());
}

std::string RunningMusterd::grpc() const { return absl::StrCat("127.0.0.1:", grpc_port_); }

int64_t RunningMusterd::ResidentKib() const {
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmRSS:", 0) == 0) return std::atoll(line.c_str() + 6);
  }
  return 0;
}

}  // namespace muster
