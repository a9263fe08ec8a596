// What has been read of the outside world, and from whom (SPEC K-13, S-1). Not thread-safe.
#ifndef MUSTER_STATE_GANGS_SOURCES_H_
#define MUSTER_STATE_GANGS_SOURCES_H_

#include <cstdint>
#include <string>
#include <utility>

namespace muster {

class Sources {
 public:
  // Everything that existed has been announced: planning may begin.
  [[nodiscard]] bool complete() const { return complete_; }
  // Returns whether it was not so before.
  bool Complete() { return !std::exchange(complete_, true); }

  // Who announces facts in numbered steps, and the last version; empty and 0: nobody yet.
  [[nodiscard]] const std::string& announcer() const { return announcer_; }
  [[nodiscard]] int64_t version() const { return version_; }
  void TakeStep(const std::string& announcer, int64_t version) {
    announcer_ = announcer;
    version_ = version;
  }

 private:
  bool complete_ = false;
  std::string announcer_;
  int64_t version_ = 0;
};

}  // namespace muster

#endif  // MUSTER_STATE_GANGS_SOURCES_H_
