// SPDX-License-Identifier: BSD-3-Clause
//
// The predefined operators: each operation of each type against plain code, for counts that fill no vector. One thread.
//
// Integers wrap round: an addition never is a signed overflow.
#include "comm/operators/operators.hpp"

#include <canele/collectives.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

namespace canele::test {
namespace {

template <typename T>
T sample(std::size_t i, unsigned salt) {
  const std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + salt * 0x85ebca6bu;
  if constexpr (std::is_integral_v<T>) {
    return i % 7 == salt ? T{0} : static_cast<T>(x >> 13);
  } else {
    return static_cast<T>(static_cast<int>(x >> 40) % 1000) / T{8};
  }
}

/// Checks that the operator applied to `count` elements is `expected` of each pair, and touches none behind them.
template <typename T>
void check(canele_operation operation, canele_element element, std::function<T(T, T)> expected) {
  canele_operator_t op{};
  ASSERT_EQ(canele_operator_of(operation, element, &op), CANELE_OK) << canele_error_detail();
  EXPECT_EQ(op.element, sizeof(T));
  EXPECT_NE(op.commutes, 0);
  for (const std::size_t count : {0u, 1u, 3u, 8u, 17u, 1000u}) {
    std::vector<T> in(count + 1), inout(count + 1);
    for (std::size_t i = 0; i <= count; ++i) {
      in[i] = sample<T>(i, 1);
      inout[i] = sample<T>(i, 2);
    }
    const std::vector<T> before = inout;
    op.combine(in.data(), inout.data(), count, op.argument);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(inout[i], expected(in[i], before[i])) << operation << " of type " << element << ", element " << i;
    }
    ASSERT_EQ(inout[count], before[count]);
  }
}

template <typename T>
void check_sums(canele_element element) {
  check<T>(CANELE_SUM, element, [](T a, T b) { return a + b; });
  check<T>(CANELE_PROD, element, [](T a, T b) { return a * b; });
}

template <typename T>
void check_floats(canele_element element) {
  check_sums<T>(element);
  check<T>(CANELE_MAX, element, [](T a, T b) { return a > b ? a : b; });
  check<T>(CANELE_MIN, element, [](T a, T b) { return a < b ? a : b; });
}

template <typename T>
void check_integers(canele_element element) {
  using U = std::make_unsigned_t<T>;
  const auto wide = [](T x) { return static_cast<std::uint64_t>(static_cast<U>(x)); };
  check<T>(CANELE_SUM, element, [=](T a, T b) { return static_cast<T>(wide(a) + wide(b)); });
  check<T>(CANELE_PROD, element, [=](T a, T b) { return static_cast<T>(wide(a) * wide(b)); });
  check<T>(CANELE_MAX, element, [](T a, T b) { return a > b ? a : b; });
  check<T>(CANELE_MIN, element, [](T a, T b) { return a < b ? a : b; });
  check<T>(CANELE_LAND, element, [](T a, T b) { return T(a != 0 && b != 0); });
  check<T>(CANELE_LOR, element, [](T a, T b) { return T(a != 0 || b != 0); });
  check<T>(CANELE_LXOR, element, [](T a, T b) { return T((a != 0) != (b != 0)); });
  check<T>(CANELE_BAND, element, [](T a, T b) { return static_cast<T>(a & b); });
  check<T>(CANELE_BOR, element, [](T a, T b) { return static_cast<T>(a | b); });
  check<T>(CANELE_BXOR, element, [](T a, T b) { return static_cast<T>(a ^ b); });
}

TEST(Operators, WideLoopsGiveTheBitsOfPlainOnes) {
  using comm::operators::kernel_of;
  if (!comm::operators::has_wide()) GTEST_SKIP() << "this processor has no wide ones";
  constexpr std::size_t count = 77;
  for (int element = CANELE_INT8; element <= CANELE_COMPLEX_DOUBLE; ++element) {
    if (element == CANELE_LONG_DOUBLE) continue;  // has padding
    const auto type = static_cast<canele_element>(element);
    const std::size_t bytes = count * comm::operators::size_of(type);
    for (int operation = CANELE_MAX; operation <= CANELE_BXOR; ++operation) {
      const auto what = static_cast<canele_operation>(operation);
      if (kernel_of(what, type, false) == nullptr) continue;
      std::vector<unsigned char> in(bytes), plain(bytes);
      for (std::size_t i = 0; i < bytes; ++i) {
        in[i] = static_cast<unsigned char>(sample<unsigned>(i, 1) & 0x3f);  // avoids NaN
        plain[i] = static_cast<unsigned char>(sample<unsigned>(i, 2) & 0x3f);
      }
      std::vector<unsigned char> wide = plain;
      kernel_of(what, type, false)(in.data(), plain.data(), count, nullptr);
      kernel_of(what, type, true)(in.data(), wide.data(), count, nullptr);
      EXPECT_EQ(plain, wide) << operation << " of type " << element;
    }
  }
}

TEST(Operators, OfIntegers) {
  check_integers<std::int8_t>(CANELE_INT8);
  check_integers<std::int16_t>(CANELE_INT16);
  check_integers<std::int32_t>(CANELE_INT32);
  check_integers<std::int64_t>(CANELE_INT64);
  check_integers<std::uint8_t>(CANELE_UINT8);
  check_integers<std::uint16_t>(CANELE_UINT16);
  check_integers<std::uint32_t>(CANELE_UINT32);
  check_integers<std::uint64_t>(CANELE_UINT64);
}

TEST(Operators, OfFloatingPointAndComplexNumbers) {
  check_floats<float>(CANELE_FLOAT);
  check_floats<double>(CANELE_DOUBLE);
  check_floats<long double>(CANELE_LONG_DOUBLE);
  check_sums<std::complex<float>>(CANELE_COMPLEX_FLOAT);
  check_sums<std::complex<double>>(CANELE_COMPLEX_DOUBLE);
  check_sums<std::complex<long double>>(CANELE_COMPLEX_LONG_DOUBLE);
}

template <typename T>
struct Pair {
  T value;
  int index;
};

template <typename T>
void check_places(canele_element element) {
  for (const canele_operation operation : {CANELE_MAXLOC, CANELE_MINLOC}) {
    canele_operator_t op{};
    ASSERT_EQ(canele_operator_of(operation, element, &op), CANELE_OK) << canele_error_detail();
    ASSERT_EQ(op.element, sizeof(Pair<T>));
    const std::vector<Pair<T>> in = {{1, 5}, {2, 5}, {3, 5}, {3, 1}};
    std::vector<Pair<T>> inout = {{2, 4}, {1, 4}, {3, 4}, {3, 4}};
    op.combine(in.data(), inout.data(), in.size(), op.argument);
    const int winner = operation == CANELE_MAXLOC ? 2 : 1;
    EXPECT_EQ(inout[0].value, T(winner));
    EXPECT_EQ(inout[0].index, operation == CANELE_MAXLOC ? 4 : 5);
    EXPECT_EQ(inout[1].value, T(winner));
    EXPECT_EQ(inout[1].index, operation == CANELE_MAXLOC ? 5 : 4);
    EXPECT_EQ(inout[2].index, 4) << "of equal values the lower index";
    EXPECT_EQ(inout[3].index, 1);
  }
}

TEST(Operators, OfValuesAndTheirPlaces) {
  check_places<std::int16_t>(CANELE_INT16_INT);
  check_places<std::int32_t>(CANELE_INT32_INT);
  check_places<std::int64_t>(CANELE_INT64_INT);
  check_places<float>(CANELE_FLOAT_INT);
  check_places<double>(CANELE_DOUBLE_INT);
  check_places<long double>(CANELE_LONG_DOUBLE_INT);
}

TEST(Operators, ExistWhereTheyMakeSense) {
  canele_operator_t op{};
  for (int element = CANELE_INT8; element <= CANELE_LONG_DOUBLE_INT; ++element) {
    const bool integer = element <= CANELE_UINT64, number = element <= CANELE_LONG_DOUBLE;
    const bool pair = element >= CANELE_INT16_INT;
    for (int operation = CANELE_MAX; operation <= CANELE_MINLOC; ++operation) {
      const bool sum = operation == CANELE_SUM || operation == CANELE_PROD;
      const bool order = operation == CANELE_MAX || operation == CANELE_MIN;
      const bool place = operation >= CANELE_MAXLOC;
      const bool exists = place ? pair : sum ? !pair : order ? number : integer;
      const int code =
          canele_operator_of(static_cast<canele_operation>(operation), static_cast<canele_element>(element), &op);
      EXPECT_EQ(code, exists ? CANELE_OK : CANELE_EINVAL) << operation << " of type " << element;
    }
  }
}

}  // namespace
}  // namespace canele::test
