// Test fixture: an engine with one node, and doubles that observe and block it.
#ifndef MUSTER_TESTS_SERVICE_ENGINE_ENGINE_FIXTURE_H_
#define MUSTER_TESTS_SERVICE_ENGINE_ENGINE_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "service/engine/engine.h"
#include "support/sync.h"
#include "tests/support/facts.h"

namespace muster {

// Counts the bindings that it receives and reports no result.
class CountingSink : public EffectSink {
 public:
  void Carry(std::vector<Effect> effects) override {
    for (const Effect& effect : effects) bindings += std::holds_alternative<BindPod>(effect) ? 1 : 0;
  }
  std::atomic<int> bindings{0};
};

inline NodeDescription SomeNode() { return NodeWith("n", {{"cpu", 1'000'000}, {"pods", 5000}}); }

inline std::shared_ptr<const NodeOffer> OfferOfNode() {
  return std::make_shared<NodeOffer>(std::vector<std::string>{"n"});
}

// A lone pod if `min` is 0.
inline PodDescription SomePod(const std::string& name, const std::string& gang, int min) {
  PodDescription pod = min > 0 ? Member(name, gang, min) : Lone(name, 1);
  pod.uid = "u-" + name;
  return pod;
}

// Records the events around the engine, in order.
class Witness : public Store, public EffectSink {
 public:
  absl::Status Commit(int64_t, const std::vector<Record>& records) override {
    Note(absl::StrCat("stored ", records.size()));
    return absl::OkStatus();
  }
  absl::StatusOr<Contents> TakeOver() override { return Contents(); }
  void Carry(std::vector<Effect> effects) override { Note(absl::StrCat("carried ", effects.size())); }
  void Note(const std::string& what) {
    MutexLock lock(&mutex_);
    notes_.push_back(what);
  }
  std::vector<std::string> Take() {
    MutexLock lock(&mutex_);
    return std::exchange(notes_, {});
  }

 private:
  Mutex mutex_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
};

// Blocks the engine's thread until Release() or destruction, so that later commands pile up and are applied as one
// batch.
class Busy {
 public:
  explicit Busy(Engine* engine)
      : thread_([this, engine] {
          EXPECT_TRUE(engine
                          ->ReadDurableSync([this](const Machine&) {
                            entered_.Notify();
                            leave_.WaitForNotification();
                          })
                          .ok());
        }) {
    entered_.WaitForNotification();
  }
  ~Busy() {
    if (thread_.joinable()) Release();
  }
  void Release() {
    leave_.Notify();
    thread_.join();
  }

 private:
  Notification entered_;
  Notification leave_;
  std::thread thread_;
};

inline std::chrono::steady_clock::time_point In(absl::Duration duration) {
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(duration);
}

class RunningEngine : public testing::Test {
 protected:
  explicit RunningEngine(const MachineSettings& settings = MachineSettings(), EngineOptions options = EngineOptions())
      : engine_(settings, options, &witness_, &witness_) {
    EXPECT_TRUE(engine_.Start().ok());
    EXPECT_TRUE(engine_.Announce(UpsertNode{SomeNode()}).ok());
    EXPECT_TRUE(engine_.Announce(FactsRead{}).ok());
    Flush();
  }
  // Waits until the replies of all earlier commands are delivered.
  void Flush() {
    EXPECT_TRUE(engine_.ReadDurableSync([](const Machine&) {}).ok());
  }
  // The replies of a batch leave before its held calls are answered: after the next batch both are delivered.
  void FlushAnswers() {
    Flush();
    Flush();
  }
  void Put(const PodDescription& pod) { EXPECT_TRUE(engine_.Announce(UpsertPod{pod}).ok()); }

  Witness witness_;
  Engine engine_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SERVICE_ENGINE_ENGINE_FIXTURE_H_
