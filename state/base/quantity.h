// Parses the Kubernetes quantity grammar (k8s.io/apimachinery/pkg/api/resource, type Quantity) into exact integers.
// Pure functions.
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
  kUp,    // for requests: an amount above zero is at least 1
  kDown,  // for capacity
};

// Parses `text` ("1500m", "2", "1.5Gi", "2e3", "12E") and returns the value in `unit`, rounded once. The default is to
// round up, as Kubernetes does. InvalidArgument if the text is not a quantity, is negative, or does not fit an int64 in
// that unit; the message names the text and the expected form.
[[nodiscard]] absl::StatusOr<int64_t> ParseQuantity(absl::string_view text, QuantityUnit unit,
                                                    Rounding rounding = Rounding::kUp);

// As ParseQuantity, but returns the largest int64 for a value that does not fit.
[[nodiscard]] absl::StatusOr<int64_t> ParseQuantityCapped(absl::string_view text, QuantityUnit unit,
                                                          Rounding rounding = Rounding::kUp);

// As ParseQuantity, in the unit of the resource: milli for CPU, whole units for all others. InvalidArgument also for an
// empty resource name and for a fraction of that unit.
[[nodiscard]] absl::StatusOr<int64_t> ParseExactAmount(absl::string_view resource, absl::string_view text);

// Formats a value for people: "1500m" or "2" for CPU, "4Gi" for bytes, "8" for the rest.
[[nodiscard]] std::string FormatQuantity(absl::string_view resource_name, int64_t value);

}  // namespace muster

#endif  // MUSTER_STATE_BASE_QUANTITY_H_
