// The Kubernetes quantity grammar, read into exact integers.
// Source: k8s.io/apimachinery/pkg/api/resource, type Quantity.
#ifndef MUSTER_STATE_BASE_QUANTITY_H_
#define MUSTER_STATE_BASE_QUANTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The unit that a parsed number counts.
enum class QuantityUnit {
  kWhole,  // bytes, devices, pods
  kMilli,  // thousandths (CPU)
};

enum class Rounding {
  kUp,    // what is asked for: what is not nothing is at least 1
  kDown,  // what is offered
};

// Reads `text` ("1500m", "2", "1.5Gi", "2e3", "12E") and returns the value in `unit`, rounded once: up, as Kubernetes
// does, unless said otherwise.
// InvalidArgument when the text is not a quantity, is negative, or does not fit an int64 in that unit; the message
// names the text and what was expected.
[[nodiscard]] absl::StatusOr<int64_t> ParseQuantity(absl::string_view text, QuantityUnit unit,
                                                    Rounding rounding = Rounding::kUp);

// The same, and the largest int64 for what does not fit one.
[[nodiscard]] absl::StatusOr<int64_t> ParseQuantityCapped(absl::string_view text, QuantityUnit unit,
                                                          Rounding rounding = Rounding::kUp);

// The same of an amount that nobody may round, by resource: CPU in milli, of all others whole ones.
[[nodiscard]] absl::StatusOr<int64_t> ParseExactAmount(absl::string_view resource, absl::string_view text);

// A value of resource `name` as a person reads it: "1500m" or "2" for CPU, "4Gi" for bytes, "8" for the rest.
[[nodiscard]] std::string FormatQuantity(absl::string_view resource_name, int64_t value);

}  // namespace muster

#endif  // MUSTER_STATE_BASE_QUANTITY_H_
