// Memory that the allocator keeps after a peak (SPEC S-11).
#ifndef MUSTER_SERVICE_TELEMETRY_FREE_MEMORY_H_
#define MUSTER_SERVICE_TELEMETRY_FREE_MEMORY_H_

namespace muster {

// Returns a part of the allocator's free memory to the system, while there is much of it: some 1 GiB a minute when
// called twice a second. No effect with another allocator than musterd's (docs/project/decisions/0016).
void ReleaseFreeMemory();

}  // namespace muster

#endif  // MUSTER_SERVICE_TELEMETRY_FREE_MEMORY_H_
