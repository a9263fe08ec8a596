// State that a room keeps beside each thing of another room, by that thing's dense id.
//
// Ids are given out again: whoever keeps something must forget it (Reset) when the thing goes. Not thread-safe.
#ifndef MUSTER_STATE_BASE_BY_ID_H_
#define MUSTER_STATE_BASE_BY_ID_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster {

template <typename Value>
class ById {
 public:
  // What is kept for `id`; a default value when nothing is.
  [[nodiscard]] const Value& Of(int32_t id) const {
    static const Value kNothing{};
    return static_cast<size_t>(id) < values_.size() ? values_[static_cast<size_t>(id)] : kNothing;
  }
  [[nodiscard]] Value& operator[](int32_t id) {
    if (static_cast<size_t>(id) >= values_.size()) values_.resize(static_cast<size_t>(id) + 1);
    return values_[static_cast<size_t>(id)];
  }
  void Reset(int32_t id) {
    if (static_cast<size_t>(id) < values_.size()) values_[static_cast<size_t>(id)] = Value();
  }

 private:
  std::vector<Value> values_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_BY_ID_H_
