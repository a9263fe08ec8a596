// A failure of a simulation, shortened: which of its turns are enough to fail.
#ifndef MUSTER_TESTS_SIMULATION_SHORTEN_H_
#define MUSTER_TESTS_SIMULATION_SHORTEN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// Which turns of a run are taken: by default all of the first `count`.
class Turns {
 public:
  explicit Turns(int count) : taken_(static_cast<size_t>(count), true) {}
  // "3-7,12": these and no others. InvalidArgument: it is no such list.
  [[nodiscard]] static absl::StatusOr<Turns> Parse(absl::string_view text);
  [[nodiscard]] std::string ToString() const;

  // One behind the last that may be taken.
  [[nodiscard]] int end() const { return static_cast<int>(taken_.size()); }
  [[nodiscard]] bool Has(int turn) const { return taken_[static_cast<size_t>(turn)]; }
  [[nodiscard]] int count() const;
  // Without the `from`th to the one before the `to`th of those that it has.
  [[nodiscard]] Turns Without(int from, int to) const;

 private:
  std::vector<bool> taken_;
};

// Turns of `failing` of which none can be left out, as far as `patience` lasts, without the failure going away.
// `fails` runs the simulation with these turns, and tells whether it fails in the same way.
[[nodiscard]] Turns Shorten(Turns failing, const std::function<bool(const Turns&)>& fails, absl::Duration patience);

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_SHORTEN_H_
