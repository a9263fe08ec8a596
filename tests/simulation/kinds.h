// Names of counted kinds, derived from the types, so that a new type is counted automatically.
#ifndef MUSTER_TESTS_SIMULATION_KINDS_H_
#define MUSTER_TESTS_SIMULATION_KINDS_H_

#include <string>
#include <type_traits>
#include <variant>

#include "absl/strings/string_view.h"

namespace muster {

// "Filter"
template <typename T>
std::string TypeName() {
  absl::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  const size_t scope = name.rfind("::");
  return std::string(scope == absl::string_view::npos ? name : name.substr(scope + 2));
}

// Of a Command or an Effect.
template <typename Variant>
std::string KindOf(const Variant& value) {
  return std::visit([](const auto& specific) { return TypeName<std::decay_t<decltype(specific)>>(); }, value);
}

}  // namespace muster

#endif  // MUSTER_TESTS_SIMULATION_KINDS_H_
