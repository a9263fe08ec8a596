// Serialises values to bytes and back. One traversal serves both directions, so that they cannot disagree.
//
// Numbers are varints (state/base/varint.h); every other value is its size followed by its parts. The format contains
// no names and no types: only the same types can read it, which AddLayout describes. Not thread-safe.
#ifndef MUSTER_STATE_BASE_ARCHIVE_H_
#define MUSTER_STATE_BASE_ARCHIVE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "state/base/by_id.h"
#include "state/base/hash.h"
#include "state/base/members.h"
#include "state/base/resources.h"
#include "state/base/varint.h"

namespace muster::archive {

// --- the kinds of types ---
template <typename T>
inline constexpr bool kIsNumber = std::is_integral_v<T> || std::is_enum_v<T> || std::is_same_v<T, WideSum>;
template <typename T>
concept Optional = requires(T& value) {
  value.has_value();
  value.emplace();
};
template <typename T>
concept Owner = requires(T& value) {
  value.reset();
  typename T::element_type;
};
template <typename T>
concept SharedCopy = requires {
  typename T::shared_type;
};
template <typename T>
concept Map = requires {
  typename T::mapped_type;
};
template <typename T>
concept Set = requires {
  typename T::key_compare;
}
&&!Map<T>;
template <typename T>
concept Sequence = requires(T& value) {
  value.resize(0);
  value.begin();
}
&&!Map<T> && !Set<T>;
template <typename T>
inline constexpr bool kIsArray = false;
template <typename T, size_t n>
inline constexpr bool kIsArray<std::array<T, n>> = true;
template <typename T>
inline constexpr bool kIsVariant = false;
template <typename... Ts>
inline constexpr bool kIsVariant<std::variant<Ts...>> = true;
template <typename T>
inline constexpr bool kIsById = false;
template <typename T>
inline constexpr bool kIsById<ById<T>> = true;

// --- the archives; StateHasher is one too ---
class Writer {
 public:
  static constexpr bool kReads = false;
  // Appends to `out`. REQUIRES: `out` outlives the writer.
  explicit Writer(std::string* out) : out_(out) {}

  void Number(uint64_t value) { AppendVarint(value, out_); }
  void Bytes(absl::string_view bytes) { AppendBytes(bytes, out_); }

 private:
  std::string* out_;
};

// A read past the end, or of an invalid value, returns zero or empty and sets ok() to false.
class Reader {
 public:
  static constexpr bool kReads = true;
  // REQUIRES: `bytes` outlives the reader.
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] uint64_t Number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  // The number of parts that follow. Fails if it exceeds the number of bytes left: each part takes at least one byte.
  [[nodiscard]] size_t Size() {
    const uint64_t size = Number();
    if (size <= bytes_.size()) return size;
    ok_ = false;
    return 0;
  }
  [[nodiscard]] absl::string_view Bytes() {
    const absl::string_view bytes = bytes_.substr(0, Size());
    bytes_.remove_prefix(bytes.size());
    return bytes;
  }
  void Fail() { ok_ = false; }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool done() const { return bytes_.empty(); }

 private:
  absl::string_view bytes_;
  bool ok_ = true;
};

// --- the traversal ---
template <typename Archive, typename T>
void Pass(Archive& archive, T& value);

template <typename Archive, typename T>
void PassNumber(Archive& archive, T& value) {
  if constexpr (std::is_same_v<std::remove_const_t<T>, WideSum>) {
    __extension__ using Wide = unsigned __int128;
    if constexpr (Archive::kReads) {
      const Wide low = archive.Number();
      value = static_cast<WideSum>(static_cast<Wide>(archive.Number()) << 64 | low);
    } else {
      archive.Number(static_cast<uint64_t>(static_cast<Wide>(value)));
      archive.Number(static_cast<uint64_t>(static_cast<Wide>(value) >> 64));
    }
  } else if constexpr (Archive::kReads) {
    const uint64_t number = archive.Number();
    value = static_cast<T>(std::is_signed_v<T> ? static_cast<uint64_t>(UnZigZag(number)) : number);
  } else {
    archive.Number(std::is_signed_v<T> ? ZigZag(static_cast<int64_t>(value)) : static_cast<uint64_t>(value));
  }
}

template <typename Archive, typename T>
void PassParts(Archive& archive, T& value) {
  if constexpr (!Archive::kReads) {
    archive.Number(value.size());
    for (auto& part : value) Pass(archive, part);
  } else {
    value.clear();
    const size_t size = archive.Size();
    for (size_t i = 0; i < size && archive.ok(); ++i) {
      if constexpr (Sequence<T>) {
        value.emplace_back();
        Pass(archive, value.back());
      } else if constexpr (Map<T>) {
        typename T::key_type key{};
        typename T::mapped_type mapped{};
        Pass(archive, key);
        Pass(archive, mapped);
        if (archive.ok()) value.emplace(std::move(key), std::move(mapped));
      } else {
        typename T::value_type part{};
        Pass(archive, part);
        if (archive.ok()) value.insert(std::move(part));
      }
    }
  }
}

template <typename Archive, typename T>
void PassById(Archive& archive, T& value) {
  if constexpr (Archive::kReads) {
    const size_t limit = archive.Size();
    for (size_t id = 0; id < limit && archive.ok(); ++id) Pass(archive, value[static_cast<int32_t>(id)]);
  } else {
    archive.Number(static_cast<uint64_t>(value.limit()));
    for (int32_t id = 0; id < value.limit(); ++id) Pass(archive, value.Of(id));
  }
}

// An optional value, or one that is owned by a pointer: whether it is present, then the value.
template <typename Archive, typename T>
void PassOptional(Archive& archive, T& value) {
  if constexpr (!Archive::kReads) {
    archive.Number(value ? 1 : 0);
    if (value) Pass(archive, *value);
  } else {
    value.reset();
    if (archive.Number() == 0) return;
    if constexpr (Optional<T>) {
      Pass(archive, value.emplace());
    } else {
      auto element = std::make_unique<std::remove_const_t<typename T::element_type>>();
      Pass(archive, *element);
      value = std::move(element);
    }
  }
}

// The index of the alternative, then the alternative.
template <typename Archive, typename T>
void PassVariant(Archive& archive, T& value) {
  if constexpr (!Archive::kReads) {
    archive.Number(value.index());
    std::visit([&](auto& alternative) { Pass(archive, alternative); }, value);
  } else {
    constexpr size_t kSize = std::variant_size_v<T>;
    const uint64_t index = archive.Number();
    if (index >= kSize) return archive.Fail();
    [&]<size_t... i>(std::index_sequence<i...>) {
      ((i == index ? Pass(archive, value.template emplace<i>()) : void()), ...);
    }
    (std::make_index_sequence<kSize>());
  }
}

template <typename Archive, typename T>
void Pass(Archive& archive, T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (requires { archive.Special(value); }) {
    archive.Special(value);
  } else if constexpr (kIsNumber<Plain>) {
    PassNumber(archive, value);
  } else if constexpr (std::is_same_v<Plain, std::string>) {
    if constexpr (Archive::kReads) {
      value = std::string(archive.Bytes());
    } else {
      archive.Bytes(value);
    }
  } else if constexpr (std::is_same_v<Plain, absl::Status>) {
    static_assert(!Archive::kReads, "a status is not read");
    archive.Number(static_cast<uint64_t>(value.code()));
    archive.Bytes(value.message());
  } else if constexpr (Optional<Plain> || Owner<Plain>) {
    PassOptional(archive, value);
  } else if constexpr (SharedCopy<Plain>) {
    if constexpr (Archive::kReads) {
      Pass(archive, value.Mutable());
    } else {
      Pass(archive, *value);
    }
  } else if constexpr (kIsArray<Plain>) {
    for (auto& part : value) Pass(archive, part);
  } else if constexpr (kIsVariant<Plain>) {
    PassVariant(archive, value);
  } else if constexpr (kIsById<Plain>) {
    PassById(archive, value);
  } else if constexpr (Map<Plain> || Set<Plain> || Sequence<Plain>) {
    PassParts(archive, value);
  } else if constexpr (requires {
                         value.first;
                         value.second;
                       }) {
    Pass(archive, value.first);
    Pass(archive, value.second);
  } else if constexpr (!std::is_empty_v<Plain>) {
    ForEachMember(value, [&](auto& member) { Pass(archive, member); });
    if constexpr (Archive::kReads && requires { value.AfterRestore(); }) {
      if (archive.ok()) value.AfterRestore();
    }
  }
}

// The bytes of the value. Equal exactly for values with equal members.
template <typename T>
[[nodiscard]] std::string BytesOf(const T& value) {
  std::string bytes;
  Writer writer(&bytes);
  Pass(writer, value);
  return bytes;
}

// Reads what BytesOf wrote. Returns whether the bytes are those of a T.
template <typename T>
[[nodiscard]] bool ReadBytes(absl::string_view bytes, T* value) {
  Reader reader(bytes);
  Pass(reader, *value);
  return reader.ok() && reader.done();
}

// Adds the layout of T, so that bytes that were written with other types are not read. Equal for types with the same
// serialised form.
template <typename T>
void AddLayout(StateHasher* hasher) {
  if constexpr (kIsNumber<T>) {
    hasher->Add(sizeof(T));
    hasher->Add(std::is_signed_v<T> || std::is_same_v<T, WideSum>);
  } else if constexpr (std::is_pointer_v<T>) {
    hasher->Add("pointer");
  } else if constexpr (std::is_same_v<T, std::string>) {
    hasher->Add("string");
  } else if constexpr (SharedCopy<T>) {
    AddLayout<typename T::shared_type>(hasher);
  } else if constexpr (Owner<T>) {
    hasher->Add("owner");
    AddLayout<std::remove_const_t<typename T::element_type>>(hasher);
  } else if constexpr (requires { typename T::value_type; }) {  // maps, sets, sequences, arrays, optionals
    hasher->Add(Optional<T> ? "optional" : "parts");
    if constexpr (kIsArray<T>) hasher->Add(std::tuple_size_v<T>);  // its size is not serialised
    AddLayout<std::remove_const_t<typename T::value_type>>(hasher);
  } else if constexpr (kIsVariant<T>) {
    [&]<size_t... i>(std::index_sequence<i...>) { (AddLayout<std::variant_alternative_t<i, T>>(hasher), ...); }
    (std::make_index_sequence<std::variant_size_v<T>>());
  } else if constexpr (requires(T & value) {
                         value.first;
                         value.second;
                       }) {
    AddLayout<std::remove_const_t<decltype(T::first)>>(hasher);
    AddLayout<decltype(T::second)>(hasher);
  } else if constexpr (NamesRecorded<T>) {
    hasher->Add("{");
    if constexpr (requires { typename T::Base; }) AddLayout<typename T::Base>(hasher);
    const auto add = [&]<typename Class, typename Member>(Member Class::*) { AddLayout<Member>(hasher); };
    std::apply([&](auto... member) { (add(member), ...); }, T::Recorded());
    hasher->Add("}");
  } else if constexpr (!std::is_empty_v<T>) {
    hasher->Add("{");
    T value{};
    ForEachMember(value, [&](const auto& member) { AddLayout<std::decay_t<decltype(member)>>(hasher); });
    hasher->Add("}");
  } else {
    hasher->Add("nothing");
  }
}

}  // namespace muster::archive

#endif  // MUSTER_STATE_BASE_ARCHIVE_H_
