// SPDX-License-Identifier: BSD-3-Clause
//
// How many packets of a shared-memory ring can be taken at once (RxRing::count_small). One thread.
//
// A run ends where progress is reported, so that the sender is told of it in time.
#include "shm_pair.hpp"

namespace canele::drivers::shm {
namespace {

/// Packets in a run lie in lines, are as long as the first, and can be freed in one step.
TEST(ShmRing, CountsThoseThatAreAlike) {
  Pair pair;
  const auto count = [&](int most) { return pair.in.count_small(pair.in.peek(), most); };
  for (std::uint64_t seed = 0; seed < 20; ++seed) ASSERT_TRUE(pair.send({seed < 7 ? 24u : 25u, seed}));
  EXPECT_EQ(count(100), 7);
  EXPECT_EQ(count(3), 3);
  EXPECT_EQ(count(1), 1);
  EXPECT_FALSE(pair.in.pop_each(7));
  EXPECT_EQ(count(100), 13);
  ASSERT_TRUE(pair.send({1'000, 20}));  // in the ring of data
  for (std::uint64_t seed = 21; seed < 60; ++seed) ASSERT_TRUE(pair.send({25, seed}));
  EXPECT_EQ(count(100), 13) << "the long one comes first";
  EXPECT_FALSE(pair.in.pop_each(13));
  ASSERT_TRUE(pair.receive({1'000, 20}));
  EXPECT_EQ(count(100), static_cast<int>(lines_told) - 20) << "progress is told there";
  EXPECT_TRUE(pair.in.pop_each(static_cast<int>(lines_told) - 20));
  EXPECT_EQ(count(100), 39 - (static_cast<int>(lines_told) - 20));
}

TEST(ShmRing, CountsToTheEndOfTheRingAndOn) {
  Pair pair;
  std::uint64_t sent = 0, taken = 0;
  while (taken < 10 * line_count) {
    while (pair.send({24, sent})) ++sent;
    const std::uint64_t mail = pair.in.peek();
    ASSERT_NE(mail, 0u);
    const auto first = pair.in.small(mail);
    const int count = pair.in.count_small(mail, 1 + static_cast<int>(taken % 50));
    ASSERT_GE(count, 1);
    for (int i = 0; i < count; ++i) {
      const std::byte* const at = first.data() + static_cast<std::size_t>(i) * line_size;
      for (std::size_t k = 0; k < 24; ++k) ASSERT_EQ(at[k], expected(taken + static_cast<std::uint64_t>(i), k));
    }
    pair.in.pop_each(count);
    taken += static_cast<std::uint64_t>(count);
  }
}

}  // namespace
}  // namespace canele::drivers::shm
