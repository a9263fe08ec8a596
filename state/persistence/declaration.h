// Conversion of a gang's declaration to and from its message, which is part of other records. Thread-safe.
#ifndef MUSTER_STATE_PERSISTENCE_DECLARATION_H_
#define MUSTER_STATE_PERSISTENCE_DECLARATION_H_

#include "state/model/gang.h"

namespace muster {

namespace store::v1 {
class Declaration;
}  // namespace store::v1

// Enums are stored as their number.
template <typename Enum>
Enum As(int32_t number) {
  return static_cast<Enum>(number);
}

void PutDeclaration(const GangDeclaration& from, store::v1::Declaration* to);
[[nodiscard]] GangDeclaration GetDeclaration(const store::v1::Declaration& from);

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_DECLARATION_H_
