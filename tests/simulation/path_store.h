// A simulated clock, and a store that retains what was committed; a crash loses the rest. Single-threaded.
#ifndef MUSTER_TESTS_SIMULATION_PATH_STORE_H_
#define MUSTER_TESTS_SIMULATION_PATH_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "service/store/store.h"
#include "support/clock.h"

namespace muster {

class SimClock : public Clock {
 public:
  [[nodiscard]] int64_t NowMs() const override { return now_ms_; }
  void Pass(int64_t ms) { now_ms_ += ms; }

 private:
  int64_t now_ms_ = 1'000'000;
};

class PathStore : public Store {
 public:
  enum class Fate : uint8_t { kStored, kRejected, kStoredWithoutReply };
  // `fate` is called for each commit.
  explicit PathStore(std::function<Fate()> fate) : fate_(std::move(fate)) {}

  absl::StatusOr<Contents> TakeOver() override {
    Contents contents{++epoch_, {}};
    for (const auto& [name, record] : records_) contents.records.push_back(record);
    return contents;
  }
  absl::Status Commit(int64_t epoch, const std::vector<Record>& records) override {
    if (epoch != epoch_) return FencedError();
    const Fate fate = fate_();
    if (fate == Fate::kRejected) return absl::ResourceExhaustedError("the disk is full");
    for (const Record& record : records) {
      records_[RecordName(record)] = record;
      if (record.value.empty()) records_.erase(RecordName(record));
    }
    return fate == Fate::kStored ? absl::OkStatus() : absl::UnavailableError("the disk did not answer");
  }
  // The records and epoch of the last copy; empty if no copy was made.
  void Copy() { copy_ = {epoch_, records_}; }
  // Restores the copy, or an empty store. REQUIRES: no process has opened the store.
  void PutBack() { std::tie(epoch_, records_) = copy_; }
  void Lose() { std::tie(epoch_, records_) = Saved(); }
  [[nodiscard]] bool Has(const std::string& name) const { return records_.contains(name); }
  [[nodiscard]] const std::map<std::string, Record>& records() const { return records_; }

 private:
  using Saved = std::pair<int64_t, std::map<std::string, Record>>;

  const std::function<Fate()> fate_;
  int64_t epoch_ = 0;
  std::map<std::string, Record> records_;  // by name
  Saved copy_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_PATH_STORE_H_
