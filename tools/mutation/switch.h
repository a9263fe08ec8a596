// The run-time switch of mutants: included by the mutated copy of a file only, never by the tree itself (make mutants).
//
// MUSTER_MUTANT=17 turns mutant 17 on; unset or 0: none. MUSTER_MUTANT=record:FILE turns none on and sets byte N of
// FILE to 1 for each mutant N that is asked for. FILE is mapped, shared: processes that are started add to it, and one
// that crashes has added. Thread-safe.
#ifndef MUSTER_TOOLS_MUTATION_SWITCH_H_
#define MUSTER_TOOLS_MUTATION_SWITCH_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace muster_mutation {

inline constexpr int kBytes = 65536;  // as many as FILE has; ids are below
inline constexpr int kUnread = -1;
inline constexpr int kRecord = -2;
inline std::atomic<int> active{kUnread};
inline std::atomic<unsigned char*> reached{nullptr};

[[gnu::noinline, gnu::cold]] inline int Read() {
  constexpr char kPrefix[] = "record:";
  const char* text = std::getenv("MUSTER_MUTANT");
  int value = 0;
  if (text != nullptr && std::strncmp(text, kPrefix, sizeof(kPrefix) - 1) == 0) {
    const int file = open(text + sizeof(kPrefix) - 1, O_RDWR | O_CLOEXEC);
    void* bytes = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) std::abort();
    close(file);
    reached = static_cast<unsigned char*>(bytes);
    value = kRecord;
  } else if (text != nullptr) {
    value = std::atoi(text);
  }
  active = value;
  return value;
}

}  // namespace muster_mutation

// Is mutant `id` the one that is turned on?
inline bool muster_mutant(int id) {
  int active = muster_mutation::active.load(std::memory_order_acquire);
  if (active >= 0) [[likely]]
    return active == id;
  if (active == muster_mutation::kUnread) active = muster_mutation::Read();
  if (active == muster_mutation::kRecord) muster_mutation::reached.load(std::memory_order_relaxed)[id] = 1;
  return active == id;
}

#endif  // MUSTER_TOOLS_MUTATION_SWITCH_H_
