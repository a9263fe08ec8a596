// libFuzzer: a quantity is refused or in range; a larger unit never gives a smaller number.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "state/base/quantity.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto whole = muster::ParseQuantity(text, muster::QuantityUnit::kWhole);
  const auto milli = muster::ParseQuantity(text, muster::QuantityUnit::kMilli);
  if (whole.ok() && *whole < 0) std::abort();
  if (milli.ok() && !whole.ok()) std::abort();
  if (milli.ok() && *milli < *whole) std::abort();
  return 0;
}
