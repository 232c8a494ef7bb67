// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of the C API with usual arguments, and wrong arguments made of these by their types.
//
// Used by entry_points.cpp. One thread.
#pragma once

#include <canele/canele.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace entry_points {

// ---- arguments ------------------------------------------------------------------------------------------------------

/// An argument that may be NULL.
template <class T>
struct Optional {
  T usual;
};
/// An argument that stays as it is: any other value would block, or be read beyond its end.
template <class T>
struct Kept {
  T usual;
};
/// A number that the function must check, or that may be anything.
template <class T>
struct Any {
  T usual;
};
/// A length in bytes: a length larger than memory is CANELE_EINVAL.
struct Length {
  std::size_t usual;
};
/// A zeroed object of the caller's, a new one for each call.
template <class T>
struct Fresh {};
/// The same, which may be NULL.
template <class T>
struct OptionalFresh {};

template <class T>
T value(const T& plain) {
  return plain;
}
template <class T>
T value(const Optional<T>& optional) {
  return optional.usual;
}
template <class T>
T value(const Kept<T>& kept) {
  return kept.usual;
}
template <class T>
T value(const Any<T>& any) {
  return any.usual;
}
inline std::size_t value(const Length& length) { return length.usual; }
template <class T>
T* value(const Fresh<T>&) {
  return static_cast<T*>(std::calloc(1, sizeof(T)));  // never freed: it may be in use until this process ends
}

template <class T>
T* value(const OptionalFresh<T>&) {
  return value(Fresh<T>{});
}

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<Optional<T>> = true;
template <class T>
inline constexpr bool is_optional<OptionalFresh<T>> = true;
template <class T>
inline constexpr bool is_kept = false;
template <class T>
inline constexpr bool is_kept<Kept<T>> = true;
template <class T>
inline constexpr bool is_any = false;
template <class T>
inline constexpr bool is_any<Any<T>> = true;

// ---- what is called -------------------------------------------------------------------------------------------------

/// How a function answers in the child of a fork.
enum class InChild {
  refused,   ///< CANELE_EFORK
  harmless,  ///< it needs no engine, or returns nothing
  ends       ///< the process
};

struct Entry {
  std::string name;
  InChild in_child;
  std::function<long()> usual;
  std::function<int()> misuse;  ///< returns the number of wrong answers
};

inline int complain(const std::string& name, const std::string& what, long answer) {
  std::printf("%s: %s: answered %ld, CANELE_EINVAL was expected\n", name.c_str(), what.c_str(), answer);
  return 1;
}

template <class R, class Function, class Arguments>
long apply(Function function, const Arguments& arguments) {
  if constexpr (std::is_void_v<R>) {
    std::apply(function, arguments);
    return 0;
  } else if constexpr (std::is_same_v<R, int>) {
    return std::apply(function, arguments);
  } else {
    static_cast<void>(std::apply(function, arguments));
    return 0;
  }
}

template <class R, class... P, class... A, std::size_t... I>
int misuse(const std::string& name, R (*function)(P...), const std::tuple<A...>& usual, std::index_sequence<I...>) {
  int wrong = 0;
  [[maybe_unused]] const auto one = [&]<std::size_t At>(std::integral_constant<std::size_t, At>) {
    using Given = std::tuple_element_t<At, std::tuple<A...>>;
    using Type = std::tuple_element_t<At, std::tuple<P...>>;
    const auto with = [&](Type bad) {
      std::tuple<P...> arguments(static_cast<P>(value(std::get<I>(usual)))...);
      std::get<At>(arguments) = bad;
      return apply<R>(function, arguments);
    };
    const std::string number = "argument " + std::to_string(At + 1);
    if constexpr (is_kept<Given>) {
      return;
    } else if constexpr (std::is_pointer_v<Type>) {
      const long answer = with(nullptr);
      if (std::is_same_v<R, int> && !is_optional<Given> && answer != CANELE_EINVAL)
        wrong += complain(name, number + " is NULL", answer);
    } else if constexpr (std::is_same_v<Given, Length>) {
      for (const std::size_t bad : {std::size_t{PTRDIFF_MAX} + 1, SIZE_MAX}) {
        const long answer = with(static_cast<Type>(bad));
        if (std::is_same_v<R, int> && answer != CANELE_EINVAL) wrong += complain(name, number + " is huge", answer);
      }
    } else if constexpr (is_any<Given>) {
      for (const auto bad : {INT64_MIN, INT64_MAX, std::int64_t{INT_MIN}, std::int64_t{INT_MAX}, std::int64_t{-1}})
        with(static_cast<Type>(bad));
    }
  };
  (one(std::integral_constant<std::size_t, I>{}), ...);
  return wrong;
}

}  // namespace entry_points
