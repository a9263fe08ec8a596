// Converts structs to messages of the store and back. Each pair of types is described once, field by field, and the
// description serves both directions, so that they cannot disagree:
//
//   void Convert(Pair<Taint, proto::Taint>, auto& value, auto& message) {
//     MUSTER_FIELDS(key, value);     // members that are called like their fields
//     MUSTER_FIELD(kind, effect);    // the struct's member, the message's field
//   }
//
// A const message is read into the value; otherwise the value is written to the message. Thread-safe.
#ifndef MUSTER_STATE_PERSISTENCE_FIELDS_H_
#define MUSTER_STATE_PERSISTENCE_FIELDS_H_

#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "state/api/effects.h"

namespace muster {

// Names a pair of types that a Convert describes.
template <typename Value, typename Message>
struct Pair {};

template <typename Message>
inline constexpr bool kReads = std::is_const_v<std::remove_reference_t<Message>>;

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
concept Container = requires(T& value) {
  value.begin();
};

// What is stored of a scalar: of an enum, its number.
template <typename Value>
decltype(auto) Stored(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return static_cast<int>(value);
  } else {
    return (value);
  }
}

// `message`: a message, a scalar, or a repeated field or map of them.
template <typename Message, typename Value>
void Read(const Message& message, Value* value) {
  if constexpr (kIsOptional<Value>) {
    Read(message, &value->emplace());
  } else if constexpr (requires { typename Value::shared_type; }) {
    Read(message, &value->Mutable());
  } else if constexpr (std::is_enum_v<Value>) {
    *value = static_cast<Value>(message);
  } else if constexpr (std::is_assignable_v<Value&, const Message&>) {
    *value = message;
  } else if constexpr (requires { typename Value::mapped_type; }) {
    *value = Value(message.begin(), message.end());
  } else if constexpr (Container<Value>) {
    for (const auto& each : message) Read(each, &value->emplace_back());
  } else {
    Convert(Pair<Value, Message>(), *value, message);
  }
}

template <typename Value, typename Message>
void Write(const Value& value, Message* message) {
  if constexpr (requires { typename Value::shared_type; }) {
    Write(*value, message);
  } else if constexpr (std::is_assignable_v<Message&, const Value&>) {
    *message = value;
  } else if constexpr (requires { typename Value::mapped_type; }) {
    message->insert(value.begin(), value.end());
  } else if constexpr (Container<Value>) {
    for (const auto& each : value) Write(each, message->Add());
  } else {
    Convert(Pair<Value, Message>(), value, *message);
  }
}

template <typename Message, typename Value>
[[nodiscard]] Message MessageOf(const Value& value) {
  Message message;
  Write(value, &message);
  return message;
}

// An absent optional member is an absent field.
#define MUSTER_FIELD(member, field)                                      \
  do {                                                                   \
    if constexpr (!kReads<decltype(message)>) {                          \
      const auto put = [](const auto& present, auto& out) {              \
        if constexpr (requires { out.set_##field(Stored(present)); }) {  \
          out.set_##field(Stored(present));                              \
        } else {                                                         \
          Write(present, out.mutable_##field());                         \
        }                                                                \
      };                                                                 \
      if constexpr (kIsOptional<std::decay_t<decltype(value.member)>>) { \
        if (value.member.has_value()) put(*value.member, message);       \
      } else {                                                           \
        put(value.member, message);                                      \
      }                                                                  \
    } else if constexpr (requires { message.has_##field(); }) {          \
      if (message.has_##field()) Read(message.field(), &value.member);   \
    } else {                                                             \
      Read(message.field(), &value.member);                              \
    }                                                                    \
  } while (false)

#define MUSTER_FIELDS(...) MUSTER_SCAN(MUSTER_FIRST_FIELD(__VA_ARGS__))
// Expands to MUSTER_FIELD for the first name, and to a call of itself for the rest. A macro is not expanded within
// itself; MUSTER_SCAN makes the preprocessor look again, often enough for 20 names.
#define MUSTER_FIRST_FIELD(name, ...) \
  MUSTER_FIELD(name, name);           \
  __VA_OPT__(MUSTER_REST MUSTER_NOTHING(__VA_ARGS__))
#define MUSTER_REST() MUSTER_FIRST_FIELD
#define MUSTER_NOTHING ()
#define MUSTER_SCAN(...) MUSTER_SCAN4(MUSTER_SCAN4(MUSTER_SCAN4(MUSTER_SCAN4(__VA_ARGS__))))
#define MUSTER_SCAN4(...) MUSTER_SCAN1(MUSTER_SCAN1(MUSTER_SCAN1(MUSTER_SCAN1(__VA_ARGS__))))
#define MUSTER_SCAN1(...) __VA_ARGS__

// Parses the record's value. InvalidArgument, without the record's name: it cannot be read.
template <typename Message>
[[nodiscard]] absl::Status ParseRecord(const Record& record, Message* message) {
  if (message->ParseFromString(record.value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a readable ", message->GetDescriptor()->name()));
}

// As ParseRecord, and reads the message into `value`.
template <typename Message, typename Value>
[[nodiscard]] absl::Status ReadRecord(const Record& record, Value* value) {
  Message message;
  absl::Status parsed = ParseRecord(record, &message);
  if (parsed.ok()) Read(message, value);
  return parsed;
}

}  // namespace muster

#endif  // MUSTER_STATE_PERSISTENCE_FIELDS_H_
