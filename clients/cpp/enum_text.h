// Values of the contract's enums as people read and write them.
#ifndef MUSTER_CLIENTS_CPP_ENUM_TEXT_H_
#define MUSTER_CLIENTS_CPP_ENUM_TEXT_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <string>

namespace muster {

// "NotEnoughPods" for REASON_CODE_NOT_ENOUGH_PODS; "" for the value 0; "?" for a value of a newer server (nullptr).
[[nodiscard]] std::string EnumText(const google::protobuf::EnumValueDescriptor* value);
// The same as manifests write policies: "once-satisfied" for MATCH_POLICY_ONCE_SATISFIED.
[[nodiscard]] std::string PolicyText(const google::protobuf::EnumValueDescriptor* value);

template <typename Enum>
[[nodiscard]] const google::protobuf::EnumValueDescriptor* DescriptorOf(Enum value) {
  return google::protobuf::GetEnumDescriptor<Enum>()->FindValueByNumber(static_cast<int>(value));
}
template <typename Enum>
[[nodiscard]] std::string EnumText(Enum value) {
  return EnumText(DescriptorOf(value));
}
template <typename Enum>
[[nodiscard]] std::string PolicyText(Enum value) {
  return PolicyText(DescriptorOf(value));
}

}  // namespace muster

#endif  // MUSTER_CLIENTS_CPP_ENUM_TEXT_H_
