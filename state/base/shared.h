// A value that its copies share until one of them is changed: what is long, and alike for many.
//
// It is read as a pointer is, and never empty. Copies may be read, made and given up by different threads; a value is
// written to by the thread that makes it, before others have copies of it.
#ifndef MUSTER_STATE_BASE_SHARED_H_
#define MUSTER_STATE_BASE_SHARED_H_

#include <memory>
#include <utility>

namespace muster {

template <typename T>
class Shared {
 public:
  using shared_type = T;

  Shared() = default;                                                 // as a default T
  Shared(T value) : value_(std::make_shared<T>(std::move(value))) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const T& operator*() const { return *Read(); }
  const T* operator->() const { return Read(); }
  // To be written to, by nobody else: a copy first, where somebody shares it.
  [[nodiscard]] T& Own() {
    if (value_ == nullptr) {
      value_ = std::make_shared<T>();
    } else if (value_.use_count() > 1) {
      value_ = std::make_shared<T>(std::as_const(*value_));
    }
    return *value_;
  }
  operator const T&() const { return *Read(); }  // NOLINT(google-explicit-constructor)

  // They are one copy, and so equal.
  [[nodiscard]] bool SharesWith(const Shared& other) const { return value_ == other.value_; }
  friend bool operator==(const Shared& a, const Shared& b) requires requires(const T& t) { t == t; }
  { return a.SharesWith(b) || *a.Read() == *b.Read(); }

 private:
  [[nodiscard]] const T* Read() const {
    static const T kDefault{};
    return value_ == nullptr ? &kDefault : value_.get();
  }

  std::shared_ptr<T> value_;
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_SHARED_H_
