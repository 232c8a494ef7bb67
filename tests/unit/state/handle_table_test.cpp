// SPDX-License-Identifier: BSD-3-Clause
//
// Names for objects: many, stale ones, invented ones; and the cost of one. One thread.
#include "comm/state/handle_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <type_traits>
#include <vector>

namespace canele::test {
namespace {

static_assert(sizeof(comm::Handle) == 8 && std::is_trivially_copyable_v<comm::Handle>, "as on the wire");
static_assert(!std::is_convertible_v<comm::Handle, std::uint64_t> &&
                  !std::is_convertible_v<std::uint64_t, comm::Handle>,
              "a handle is no other number");
template <typename T>
concept HasArithmetic = requires(T a, T b) {
  a + b;
}
|| requires(T a) { a + 1; }
|| requires(T a) { ++a; };
static_assert(!HasArithmetic<comm::Handle>);
static_assert(comm::Handle{} == comm::Handle::none, "a request that is cleared has no name");

struct Thing {
  int value = 0;
};

TEST(HandleTable, FindsEachOfManyAndNoneThatHasGone) {
  constexpr int count = 2000;
  comm::HandleTable<Thing> table;
  std::vector<Thing> things(count);
  std::vector<comm::Handle> handles;
  for (Thing& thing : things) handles.push_back(table.add(thing));
  EXPECT_EQ(std::set<comm::Handle>(handles.begin(), handles.end()).size(), handles.size());
  for (int i = 0; i < count; i += 2) table.remove(handles[static_cast<std::size_t>(i)]);
  EXPECT_EQ(table.used(), count / 2u);
  for (int i = 0; i < count; ++i) {
    Thing* const expected = i % 2 == 0 ? nullptr : &things[static_cast<std::size_t>(i)];
    EXPECT_EQ(table.find(handles[static_cast<std::size_t>(i)]), expected);
  }
  Thing late;
  const comm::Handle handle = table.add(late);  // in a place that was used before
  EXPECT_EQ(table.find(handle), &late);
  int met = 0;
  table.each([&](Thing& thing) { met += &thing == &late || (&thing - things.data()) % 2 == 1 ? 1 : 10'000; });
  EXPECT_EQ(met, count / 2 + 1);
}

TEST(HandleTable, DoesNotBelieveInventedHandles) {
  comm::HandleTable<Thing> table;
  EXPECT_EQ(table.find(comm::Handle::none), nullptr);
  EXPECT_EQ(table.find(comm::Handle{~std::uint64_t{0}}), nullptr);
  Thing thing;
  const std::uint64_t word = word_of(table.add(thing));
  for (const std::uint64_t invented : {word + 1, word - 1, word + 511, word + 512, word + (std::uint64_t{1} << 32)}) {
    EXPECT_EQ(table.find(comm::Handle{invented}), nullptr);
  }
}

TEST(HandleTable, TakesTwelveBytesForEach) { EXPECT_EQ(comm::HandleTable<Thing>::bytes_each(), 12u); }

}  // namespace
}  // namespace canele::test
