// The names of an enum's values: a table in the order of the values, which count from 0. Pure functions.
#ifndef MUSTER_STATE_BASE_ENUM_NAMES_H_
#define MUSTER_STATE_BASE_ENUM_NAMES_H_

#include <array>
#include <optional>

#include "absl/strings/string_view.h"

namespace muster {

template <typename Enum, size_t n>
struct EnumNames {
  std::array<absl::string_view, n> names;

  // Empty if the enum has no such value.
  [[nodiscard]] absl::string_view Of(Enum value) const {
    const auto index = static_cast<size_t>(value);
    return index < n ? names[index] : absl::string_view();
  }
  [[nodiscard]] std::optional<Enum> Find(absl::string_view name) const {
    for (size_t i = 0; i < n; ++i) {
      if (names[i] == name) return static_cast<Enum>(i);
    }
    return std::nullopt;
  }
};

}  // namespace muster

#endif  // MUSTER_STATE_BASE_ENUM_NAMES_H_
