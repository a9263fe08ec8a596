// Shortens a failure of a simulation to the turns that are needed to fail. Stateless.
#ifndef MUSTER_TESTS_SIMULATION_SHORTEN_H_
#define MUSTER_TESTS_SIMULATION_SHORTEN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// The turns of a run that are taken: by default all of the first `count`.
class Turns {
 public:
  explicit Turns(int count) : taken_(static_cast<size_t>(count), true) {}
  // Parses "3-7,12": only these turns. InvalidArgument: it is no such list.
  [[nodiscard]] static absl::StatusOr<Turns> Parse(absl::string_view text);
  [[nodiscard]] std::string ToString() const;

  // One past the last turn that may be taken.
  [[nodiscard]] int end() const { return static_cast<int>(taken_.size()); }
  [[nodiscard]] bool Has(int turn) const { return taken_[static_cast<size_t>(turn)]; }
  [[nodiscard]] int count() const;
  // Without the turns from the `from`th up to, but not including, the `to`th of the taken ones.
  [[nodiscard]] Turns Without(int from, int to) const;

 private:
  std::vector<bool> taken_;
};

// A subset of the turns of `failing` that still fails, minimal as far as `patience` lasts. `fails` runs the simulation
// with these turns and returns whether it fails in the same way.
[[nodiscard]] Turns Shorten(Turns failing, const std::function<bool(const Turns&)>& fails, absl::Duration patience);

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_SHORTEN_H_
