// SPDX-License-Identifier: BSD-3-Clause
//
// Names for objects: many, stale ones, invented ones; and the cost of one. One thread.
#include "comm/state/handle_table.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace canele::test {
namespace {

struct Thing {
  int value = 0;
};

TEST(HandleTable, FindsEachOfManyAndNoneThatHasGone) {
  constexpr int count = 2000;
  comm::HandleTable<Thing> table;
  std::vector<Thing> things(count);
  std::vector<std::uint64_t> handles;
  for (Thing& thing : things) handles.push_back(table.add(thing));
  EXPECT_EQ(std::set<std::uint64_t>(handles.begin(), handles.end()).size(), handles.size());
  for (int i = 0; i < count; i += 2) table.remove(handles[static_cast<std::size_t>(i)]);
  EXPECT_EQ(table.used(), count / 2u);
  for (int i = 0; i < count; ++i) {
    Thing* const expected = i % 2 == 0 ? nullptr : &things[static_cast<std::size_t>(i)];
    EXPECT_EQ(table.find(handles[static_cast<std::size_t>(i)]), expected);
  }
  Thing late;
  const std::uint64_t handle = table.add(late);  // in a place that was used before
  EXPECT_EQ(table.find(handle), &late);
  int met = 0;
  table.each([&](Thing& thing) { met += &thing == &late || (&thing - things.data()) % 2 == 1 ? 1 : 10'000; });
  EXPECT_EQ(met, count / 2 + 1);
}

TEST(HandleTable, DoesNotBelieveInventedHandles) {
  comm::HandleTable<Thing> table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(~std::uint64_t{0}), nullptr);
  Thing thing;
  const std::uint64_t handle = table.add(thing);
  for (const std::uint64_t invented :
       {handle + 1, handle - 1, handle + 511, handle + 512, handle + (std::uint64_t{1} << 32)}) {
    EXPECT_EQ(table.find(invented), nullptr);
  }
}

TEST(HandleTable, TakesTwelveBytesForEach) { EXPECT_EQ(comm::HandleTable<Thing>::bytes_each(), 12u); }

}  // namespace
}  // namespace canele::test
