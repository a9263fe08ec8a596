// A real musterd process for tests. It is started with a configuration, logs its ports, and is stopped by the
// destructor. Not thread-safe.
#ifndef MUSTER_TESTS_SUPPORT_RUNNING_MUSTERD_H_
#define MUSTER_TESTS_SUPPORT_RUNNING_MUSTERD_H_

#include <sys/types.h>

#include <string>

namespace muster {

class RunningMusterd {
 public:
  // `yaml` is added to a configuration with free ports. `kubernetes`: that section. `files`: the number of files that
  // the process may open; 0: as this process.
  explicit RunningMusterd(const std::string& yaml = "", const std::string& kubernetes = "{enabled: false}",
                          size_t files = 0);
  ~RunningMusterd();
  RunningMusterd(const RunningMusterd&) = delete;
  RunningMusterd& operator=(const RunningMusterd&) = delete;

  // The path of the musterd program.
  [[nodiscard]] static std::string Path();
  [[nodiscard]] bool running() const { return grpc_port_ > 0; }
  [[nodiscard]] std::string grpc() const;
  [[nodiscard]] int grpc_port() const { return grpc_port_; }
  [[nodiscard]] int extender_port() const { return extender_port_; }
  [[nodiscard]] int bind_port() const { return bind_port_; }
  [[nodiscard]] int admin_port() const { return admin_port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string log() const;
  // Resident memory in KiB.
  [[nodiscard]] int64_t ResidentKib() const;
  void Stop();
  // Ends the process with SIGKILL, as in a crash.
  void Kill();
  // Starts the process again in the same folder with the same configuration. The old log is lost.
  void Start();
  // Waits until a standby process (store.standby) serves.
  void AwaitServing();
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  void Await(bool standing_by);
  // The port after `word` in the line that starts with `beginning`; 0 if there is no such line yet.
  [[nodiscard]] static int PortAfter(const std::string& beginning, const std::string& word, const std::string& text);
  const size_t files_;
  std::string folder_;
  pid_t pid_ = -1;
  int grpc_port_ = 0;
  int extender_port_ = 0;
  int bind_port_ = 0;
  int admin_port_ = 0;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_RUNNING_MUSTERD_H_
