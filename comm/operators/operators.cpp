// SPDX-License-Identifier: BSD-3-Clause
//
// One loop for each operation and type, in a table.
//
// Sums and products of integers wrap around, in unsigned arithmetic. `in` and `inout` never overlap, and the loops
// declare this (__restrict). Each loop exists twice: the second one is for processors with AVX2, since data that has
// just been received lies in a near cache. No fused multiplication: all processors compute the same bits.
//
// Rejected: target_clones, which choose when the library is loaded, before a sanitizer is ready.
#include "comm/operators/operators.hpp"

#include <array>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace canele::comm::operators {
namespace {

/// Laid out as in C.
template <typename T>
struct Indexed {
  T value;
  int index;
};

template <typename T>
constexpr bool is_indexed = false;
template <typename T>
constexpr bool is_indexed<Indexed<T>> = true;
template <typename T>
constexpr bool is_complex = false;
template <typename T>
constexpr bool is_complex<std::complex<T>> = true;

template <canele_operation operation, typename T>
constexpr bool exists() {
  switch (operation) {
    case CANELE_SUM:
    case CANELE_PROD:
      return std::is_arithmetic_v<T> || is_complex<T>;
    case CANELE_MAX:
    case CANELE_MIN:
      return std::is_arithmetic_v<T>;
    case CANELE_MAXLOC:
    case CANELE_MINLOC:
      return is_indexed<T>;
    default:
      return std::is_integral_v<T>;
  }
}

/// The type in which integers are added and multiplied: unsigned, and at least as wide as int.
template <typename T, bool integral = std::is_integral_v<T>>
struct Wide {
  using type = T;
};
template <typename T>
struct Wide<T, true> {
  using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};

template <canele_operation operation, typename T>
T apply(const T& a, const T& b) {
  using W = typename Wide<T>::type;
  if constexpr (operation == CANELE_SUM) {
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  } else if constexpr (operation == CANELE_PROD) {
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  } else if constexpr (operation == CANELE_MAX) {
    return a < b ? b : a;
  } else if constexpr (operation == CANELE_MIN) {
    return b < a ? b : a;
  } else if constexpr (operation == CANELE_LAND) {
    return static_cast<T>((a != 0) & (b != 0));
  } else if constexpr (operation == CANELE_LOR) {
    return static_cast<T>((a != 0) | (b != 0));
  } else if constexpr (operation == CANELE_LXOR) {
    return static_cast<T>((a != 0) ^ (b != 0));
  } else if constexpr (operation == CANELE_BAND) {
    return static_cast<T>(a & b);
  } else if constexpr (operation == CANELE_BOR) {
    return static_cast<T>(a | b);
  } else {
    static_assert(operation == CANELE_BXOR);
    return static_cast<T>(a ^ b);
  }
}

/// Assigns member by member: the padding after the last pair of a buffer need not be accessible.
template <canele_operation operation, typename T>
void locate(const Indexed<T>& a, Indexed<T>& b) {
  if (a.value == b.value) {
    b.index = a.index < b.index ? a.index : b.index;
  } else if (operation == CANELE_MINLOC ? a.value < b.value : b.value < a.value) {
    b.value = a.value;
    b.index = a.index;
  }
}

template <canele_operation operation, typename T>
[[gnu::always_inline]] inline void combine_all(const void* in, void* inout, std::size_t count) {
  const T* __restrict const a = static_cast<const T*>(in);
  T* __restrict const b = static_cast<T*>(inout);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (is_indexed<T>) {
      locate<operation>(a[i], b[i]);
    } else {
      b[i] = apply<operation, T>(a[i], b[i]);
    }
  }
}

template <canele_operation operation, typename T>
void kernel(const void* in, void* inout, std::size_t count, void* /*argument*/) {
  combine_all<operation, T>(in, inout, count);
}

#ifdef __x86_64__
template <canele_operation operation, typename T>
[[gnu::target("avx2")]] void wide_kernel(const void* in, void* inout, std::size_t count, void* /*argument*/) {
  combine_all<operation, T>(in, inout, count);
}
#else
template <canele_operation operation, typename T>
constexpr canele_combine_fn wide_kernel = kernel<operation, T>;
#endif

template <int operation, typename T, bool wide>
constexpr canele_combine_fn entry() {
  constexpr auto which = static_cast<canele_operation>(operation);
  if constexpr (!exists<which, T>()) {
    return nullptr;
  } else if constexpr (wide) {
    return wide_kernel<which, T>;
  } else {
    return kernel<which, T>;
  }
}

struct Row {
  const char* name;
  std::size_t size;
  std::array<canele_combine_fn, operator_count> kernels, wide;
};

template <typename T, int... operation>
constexpr Row row_of(const char* name, std::integer_sequence<int, operation...>) {
  return {name, sizeof(T), {entry<operation, T, false>()...}, {entry<operation, T, true>()...}};
}
template <typename T>
constexpr Row row(const char* name) {
  return row_of<T>(name, std::make_integer_sequence<int, operator_count>());
}

/// In the order of enum canele_element.
constexpr std::array<Row, element_count> table = {
    row<std::int8_t>("CANELE_INT8"),
    row<std::int16_t>("CANELE_INT16"),
    row<std::int32_t>("CANELE_INT32"),
    row<std::int64_t>("CANELE_INT64"),
    row<std::uint8_t>("CANELE_UINT8"),
    row<std::uint16_t>("CANELE_UINT16"),
    row<std::uint32_t>("CANELE_UINT32"),
    row<std::uint64_t>("CANELE_UINT64"),
    row<float>("CANELE_FLOAT"),
    row<double>("CANELE_DOUBLE"),
    row<long double>("CANELE_LONG_DOUBLE"),
    row<std::complex<float>>("CANELE_COMPLEX_FLOAT"),
    row<std::complex<double>>("CANELE_COMPLEX_DOUBLE"),
    row<std::complex<long double>>("CANELE_COMPLEX_LONG_DOUBLE"),
    row<Indexed<std::int16_t>>("CANELE_INT16_INT"),
    row<Indexed<std::int32_t>>("CANELE_INT32_INT"),
    row<Indexed<std::int64_t>>("CANELE_INT64_INT"),
    row<Indexed<float>>("CANELE_FLOAT_INT"),
    row<Indexed<double>>("CANELE_DOUBLE_INT"),
    row<Indexed<long double>>("CANELE_LONG_DOUBLE_INT"),
};
static_assert(table[CANELE_COMPLEX_FLOAT].size == 2 * sizeof(float), "in the order of the enumeration");

constexpr std::array<const char*, operator_count> operator_names = {
    "CANELE_MAX",  "CANELE_MIN",  "CANELE_SUM", "CANELE_PROD", "CANELE_LAND",   "CANELE_LOR",
    "CANELE_LXOR", "CANELE_BAND", "CANELE_BOR", "CANELE_BXOR", "CANELE_MAXLOC", "CANELE_MINLOC",
};

}  // namespace

bool has_wide() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}
canele_combine_fn kernel_of(canele_operation operation, canele_element element, bool wide) {
  const Row& row = table[static_cast<std::size_t>(element)];
  return (wide ? row.wide : row.kernels)[static_cast<std::size_t>(operation)];
}
canele_combine_fn kernel_of(canele_operation operation, canele_element element) {
  return kernel_of(operation, element, has_wide());
}
std::size_t size_of(canele_element element) { return table[static_cast<std::size_t>(element)].size; }
const char* name_of(canele_operation operation) { return operator_names[static_cast<std::size_t>(operation)]; }
const char* name_of(canele_element element) { return table[static_cast<std::size_t>(element)].name; }

}  // namespace canele::comm::operators
