// Dense ids of objects, and state that one component stores for each object of another component, by its id.
//
// Ids are reused: the component must call Reset when the object is removed. Stored values never move, and the cost of
// growing does not depend on the values already stored. Not thread-safe.
#ifndef MUSTER_STATE_BASE_BY_ID_H_
#define MUSTER_STATE_BASE_BY_ID_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace muster {

template <typename Value>
class ById {
 public:
  using value_type = Value;

  // The value for `id`; a default value if none is stored.
  [[nodiscard]] const Value& Of(int32_t id) const {
    static const Value kNothing{};
    const size_t chunk = ChunkOf(id);
    return chunk < chunks_.size() && chunks_[chunk] != nullptr ? chunks_[chunk][At(id)] : kNothing;
  }
  // REQUIRES: id >= 0.
  [[nodiscard]] Value& operator[](int32_t id) {
    const size_t chunk = ChunkOf(id);
    if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
    if (chunks_[chunk] == nullptr) chunks_[chunk] = std::make_unique<Value[]>(kChunk);
    return chunks_[chunk][At(id)];
  }
  void Reset(int32_t id) {
    const size_t chunk = ChunkOf(id);
    if (chunk < chunks_.size() && chunks_[chunk] != nullptr) chunks_[chunk][At(id)] = Value();
  }
  // No value is stored for this id or any id above it.
  [[nodiscard]] int32_t limit() const { return static_cast<int32_t>(chunks_.size() * kChunk); }

 private:
  static constexpr size_t kChunk = 64;
  static size_t ChunkOf(int32_t id) { return static_cast<size_t>(id) / kChunk; }
  static size_t At(int32_t id) { return static_cast<size_t>(id) % kChunk; }

  std::vector<std::unique_ptr<Value[]>> chunks_;
};

// Returns an id for a new entry of `table`: the last of `unused`, or the next one, with which the table grows.
template <typename Table>
[[nodiscard]] int32_t TakeId(std::vector<int32_t>* unused, Table* table) {
  if (unused->empty()) {
    table->emplace_back();
    return static_cast<int32_t>(table->size()) - 1;
  }
  const int32_t id = unused->back();
  unused->pop_back();
  return id;
}

}  // namespace muster

#endif  // MUSTER_STATE_BASE_BY_ID_H_
