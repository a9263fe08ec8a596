// Adds announced facts of pods and gangs to the hash of the state (state/verify/hash.cc).
#ifndef MUSTER_STATE_VERIFY_FACTS_HASH_H_
#define MUSTER_STATE_VERIFY_FACTS_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "state/base/hash.h"
#include "state/base/reason.h"
#include "state/model/gang.h"
#include "state/model/pod.h"

namespace muster {

template <typename Names>
void AddNames(const Names& names, StateHasher* hasher) {
  hasher->Add(static_cast<int64_t>(names.size()));
  for (const absl::string_view name : names) hasher->Add(name);
}

void AddReason(const Reason& reason, StateHasher* hasher);
void AddDeclaration(const GangDeclaration& declaration, StateHasher* hasher);
void AddFacts(const PodDescription& facts, StateHasher* hasher);

}  // namespace muster

#endif  // MUSTER_STATE_VERIFY_FACTS_HASH_H_
