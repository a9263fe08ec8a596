// What was declared about a gang, as a part of other records.
#ifndef MUSTER_STATE_PERSISTENCE_DECLARATION_H_
#define MUSTER_STATE_PERSISTENCE_DECLARATION_H_

#include "state/model/gang.h"

namespace muster {

namespace store::v1 {
class Declaration;
}  // namespace store::v1

// An enum is kept as its number.
template <typename Enum>
Enum As(int32_t number) {
  return static_cast<Enum>(number);
}

void PutDeclaration(const GangDeclaration& from, store::v1::Declaration* to);
[[nodiscard]] GangDeclaration GetDeclaration(const store::v1::Declaration& from);

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_DECLARATION_H_
