// Visits the members of a type one by one, so that its serialised form omits none of them.
//
// A struct without private members is decomposed by structured bindings: a member that is added to it is visited too,
// or the code does not compile. A class lists its recorded members, which are all except caches:
//
//   static constexpr auto Recorded() { return std::tuple(&Ledger::pods_, &Ledger::in_flight_); }
//
// A struct with a base class names it `Base`; the members of the base class come first.
#ifndef MUSTER_STATE_BASE_MEMBERS_H_
#define MUSTER_STATE_BASE_MEMBERS_H_

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace muster::archive {

template <typename T>
concept NamesRecorded = requires {
  std::remove_const_t<T>::Recorded();
};

// Converts to a value of any type, in unevaluated expressions only.
struct AnyValue {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor): its purpose is the implicit conversion
};

template <typename T, typename... Members>
consteval size_t MemberCount() {
  if constexpr (requires { T{Members{}..., AnyValue{}}; }) {
    return MemberCount<T, Members..., AnyValue>();
  } else {
    return sizeof...(Members);
  }
}

// Decomposes an aggregate with `count` members.
#define MUSTER_MEMBERS(count, ...)    \
  if constexpr (kCount == count) {    \
    auto& [__VA_ARGS__] = value;      \
    return Visit(visit, __VA_ARGS__); \
  }

template <typename Visitor, typename... Members>
void Visit(const Visitor& visit, Members&... members) {
  (visit(members), ...);
}

// Calls `visit` with a reference to each member, in order.
template <typename T, typename Visitor>
void ForEachMember(T& value, const Visitor& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (NamesRecorded<T>) {
    constexpr bool kHasBase = requires { typename Plain::Base; };
    if constexpr (kHasBase) {
      using Base = typename Plain::Base;
      ForEachMember(static_cast<std::conditional_t<std::is_const_v<T>, const Base, Base>&>(value), visit);
    }
    if constexpr (requires { Plain::kNotRecorded; }) {
      // A base class counts as one member.
      static_assert(MemberCount<Plain>() ==
                        std::tuple_size_v<decltype(Plain::Recorded())> + Plain::kNotRecorded + (kHasBase ? 1 : 0),
                    "a member is neither recorded nor counted as not recorded");
    }
    std::apply([&](auto... member) { (visit(value.*member), ...); }, Plain::Recorded());
  } else {
    static_assert(std::is_aggregate_v<Plain>, "it has something private: it must say what is recorded of it");
    constexpr size_t kCount = MemberCount<Plain>();
    static_assert(kCount <= 25, "more members than are listed here: add a line");
    MUSTER_MEMBERS(1, a)
    MUSTER_MEMBERS(2, a, b)
    MUSTER_MEMBERS(3, a, b, c)
    MUSTER_MEMBERS(4, a, b, c, d)
    MUSTER_MEMBERS(5, a, b, c, d, e)
    MUSTER_MEMBERS(6, a, b, c, d, e, f)
    MUSTER_MEMBERS(7, a, b, c, d, e, f, g)
    MUSTER_MEMBERS(8, a, b, c, d, e, f, g, h)
    MUSTER_MEMBERS(9, a, b, c, d, e, f, g, h, i)
    MUSTER_MEMBERS(10, a, b, c, d, e, f, g, h, i, j)
    MUSTER_MEMBERS(11, a, b, c, d, e, f, g, h, i, j, k)
    MUSTER_MEMBERS(12, a, b, c, d, e, f, g, h, i, j, k, l)
    MUSTER_MEMBERS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
    MUSTER_MEMBERS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
    MUSTER_MEMBERS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
    MUSTER_MEMBERS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
    MUSTER_MEMBERS(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
    MUSTER_MEMBERS(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
    MUSTER_MEMBERS(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
    MUSTER_MEMBERS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
    MUSTER_MEMBERS(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
    MUSTER_MEMBERS(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
    MUSTER_MEMBERS(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
    MUSTER_MEMBERS(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
    MUSTER_MEMBERS(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
  }
}

#undef MUSTER_MEMBERS

}  // namespace muster::archive

#endif  // MUSTER_STATE_BASE_MEMBERS_H_
