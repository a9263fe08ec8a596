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

#include <cstdlib>
#include <cstring>

namespace muster_mutation {

inline constexpr int kBytes = 1 << 18;  // as many as FILE has; ids are below
inline unsigned char* reached = nullptr;

inline int Read() {
  constexpr char kPrefix[] = "record:";
  constexpr size_t kPrefixLength = sizeof(kPrefix) - 1;
  const char* text = std::getenv("MUSTER_MUTANT");
  if (text == nullptr) return 0;
  if (std::strncmp(text, kPrefix, kPrefixLength) != 0) return std::atoi(text);
  const int file = open(text + kPrefixLength, O_RDWR | O_CLOEXEC);
  void* bytes = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) std::abort();
  close(file);
  reached = static_cast<unsigned char*>(bytes);
  return 0;
}

// Read before main(); what runs even earlier sees no mutant.
inline const int active = Read();

}  // namespace muster_mutation

// Is mutant `id` the one that is turned on? Ids start at 1.
inline bool muster_mutant(int id) {
  if (__builtin_expect(muster_mutation::reached != nullptr, 0)) muster_mutation::reached[id] = 1;
  return muster_mutation::active == id;
}

#endif  // MUSTER_TOOLS_MUTATION_SWITCH_H_
