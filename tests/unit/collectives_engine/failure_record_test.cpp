// SPDX-License-Identifier: BSD-3-Clause
//
// The record of failed collectives.
#include <gtest/gtest.h>

#include "comm/collectives/failures.hpp"

namespace canele::test {
namespace {

using comm::collectives::Ending;
using comm::collectives::Failures;

constexpr Ending mismatch{CANELE_EPROTOCOL, 1}, shortage{CANELE_ENOMEM, 2}, death{CANELE_EPEER, 3};

TEST(Failures, BelongToTheirNumber) {
  Failures failures;
  EXPECT_FALSE(failures.has_any());
  EXPECT_TRUE(failures.note(5, mismatch));
  EXPECT_TRUE(failures.has_any());
  EXPECT_FALSE(failures.has_all());
  for (const std::uint64_t number : {0u, 4u, 6u, 1000u}) EXPECT_FALSE(failures.has(number)) << number;
  EXPECT_TRUE(failures.has(5));
  EXPECT_EQ(failures.of(5), mismatch);
  EXPECT_EQ(failures.of(4), Ending{});
}

TEST(Failures, TheFirstOfANumberCounts) {
  Failures failures;
  EXPECT_TRUE(failures.note(5, mismatch));
  EXPECT_FALSE(failures.note(5, shortage));
  EXPECT_EQ(failures.of(5), mismatch);
}

/// In every order of three neighbours and one apart, with endings that are equal or not.
TEST(Failures, AreFoundInWhateverOrderTheyCame) {
  const std::uint64_t orders[][4] = {{3, 4, 5, 9}, {5, 4, 3, 9}, {9, 4, 3, 5}, {4, 9, 5, 3}, {3, 5, 9, 4}};
  for (const auto& order : orders) {
    Failures failures;
    for (const std::uint64_t number : order) EXPECT_TRUE(failures.note(number, number == 4 ? shortage : mismatch));
    for (std::uint64_t number = 0; number < 12; ++number) {
      const bool fails = (number >= 3 && number <= 5) || number == 9;
      EXPECT_EQ(failures.has(number), fails) << number;
      EXPECT_EQ(failures.of(number), !fails ? Ending{} : number == 4 ? shortage : mismatch) << number;
    }
    for (const std::uint64_t number : order) EXPECT_FALSE(failures.note(number, death)) << number;
  }
}

TEST(Failures, ALongRowOfThemIsOneRange) {
  Failures failures;
  for (std::uint64_t number = 0; number < 100'000; ++number) ASSERT_TRUE(failures.note(number, mismatch));
  EXPECT_TRUE(failures.has(0));
  EXPECT_TRUE(failures.has(99'999));
  EXPECT_FALSE(failures.has(100'000));
}

TEST(Failures, TheEndOfTheGroupIsAllNumbers) {
  Failures failures;
  EXPECT_TRUE(failures.note(5, mismatch));
  EXPECT_TRUE(failures.note(Failures::all, death));
  EXPECT_TRUE(failures.has_all());
  EXPECT_EQ(failures.of(Failures::all), death);
  EXPECT_EQ(failures.of(5), mismatch) << "it had failed before";
  EXPECT_EQ(failures.of(4), death);
  EXPECT_TRUE(failures.has(1'000'000));
  EXPECT_FALSE(failures.note(6, mismatch));
  EXPECT_FALSE(failures.note(Failures::all, shortage));
}

}  // namespace
}  // namespace canele::test
