// A copy-on-write value: copies share one object until one of them is changed. For large values that many objects have
// in common.
//
// It is dereferenced like a pointer and is never null. Different threads may read, copy and destroy copies. Only the
// thread that creates a value may change it, before other threads have copies.
#ifndef MUSTER_STATE_BASE_SHARED_H_
#define MUSTER_STATE_BASE_SHARED_H_

#include <memory>
#include <utility>

namespace muster {

template <typename T>
class Shared {
 public:
  using shared_type = T;

  Shared() = default;                                                 // equals a default T
  Shared(T value) : value_(std::make_shared<T>(std::move(value))) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const T& operator*() const { return *Read(); }
  const T* operator->() const { return Read(); }
  // For writing. Copies the value first if other copies share it.
  [[nodiscard]] T& Mutable() {
    if (value_ == nullptr) {
      value_ = std::make_shared<T>();
    } else if (value_.use_count() > 1) {
      value_ = std::make_shared<T>(std::as_const(*value_));
    }
    return *value_;
  }
  operator const T&() const { return *Read(); }  // NOLINT(google-explicit-constructor)

  // True if both share one object; they are then equal.
  [[nodiscard]] bool IsSameCopy(const Shared& other) const { return value_ == other.value_; }
  friend bool operator==(const Shared& a, const Shared& b) requires requires(const T& t) { t == t; }
  { return a.IsSameCopy(b) || *a.Read() == *b.Read(); }

 private:
  [[nodiscard]] const T* Read() const {
    static const T kDefault{};
    return value_ == nullptr ? &kDefault : value_.get();
  }

  std::shared_ptr<T> value_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_SHARED_H_
