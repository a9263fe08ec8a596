#include "service/telemetry/free_memory.h"

#include <cstddef>

// Of gperftools; null without it.
extern "C" {
int MallocExtension_GetNumericProperty(const char* property, size_t* value) __attribute__((weak));
void MallocExtension_ReleaseToSystem(size_t bytes) __attribute__((weak));
}

namespace muster {
namespace {

constexpr size_t kKept = size_t{16} << 20;  // for the next allocations
constexpr size_t kStep = size_t{8} << 20;   // the allocator is locked meanwhile

}  // namespace

void ReleaseFreeMemory() {
  size_t free_bytes = 0;
  if (MallocExtension_GetNumericProperty == nullptr || MallocExtension_ReleaseToSystem == nullptr) return;
  if (MallocExtension_GetNumericProperty("tcmalloc.pageheap_free_bytes", &free_bytes) == 0) return;
  if (free_bytes > kKept) MallocExtension_ReleaseToSystem(kStep);
}

}  // namespace muster
