// SPDX-License-Identifier: BSD-3-Clause
//
// The numbers that a peer and we give sessions: the last one of each direction, and all others. One thread.
#include "comm/state/session_names.hpp"

#include <gtest/gtest.h>

#include "comm/state/session.hpp"

namespace canele::comm {
namespace {

TEST(SessionNames, EachOpeningIsToldOnce) {
  SessionNames names;
  EXPECT_FALSE(names.is_announced(0, 1)) << "the number that it begins with";
  EXPECT_TRUE(names.announce(0, 1));
  EXPECT_FALSE(names.announce(0, 1));
  EXPECT_TRUE(names.announce(7, 1)) << "another one";
  EXPECT_FALSE(names.announce(0, 1)) << "is known, though it was not the last";
  EXPECT_TRUE(names.is_announced(0, 1) && names.is_announced(7, 1));
  EXPECT_FALSE(names.is_announced(3, 1) || names.is_announced(8, 1)) << "between, and behind";
  EXPECT_TRUE(names.announce(7, 2)) << "opened again";
  EXPECT_FALSE(names.is_announced(7, 1));
  EXPECT_TRUE(names.is_announced(7, 2));
}

TEST(SessionNames, ThePeersNumbersLeadToItsSessions) {
  SessionNames names;
  Session one, other;
  EXPECT_EQ(names.find(0), nullptr);
  EXPECT_EQ(names.learn(0, one), nullptr);
  names.learn(9, other);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(names.find(0), &one);
    EXPECT_EQ(names.find(9), &other);
    EXPECT_EQ(names.find(5), nullptr) << "between";
    EXPECT_EQ(names.find(65'535), nullptr) << "behind";
  }
  EXPECT_EQ(names.look_up(0), &one);
  EXPECT_EQ(names.look_up(5), nullptr);
  EXPECT_EQ(names.learn(0, other), &one) << "what it meant before";
  EXPECT_EQ(names.find(0), &other) << "it has announced another one by that number";
}

}  // namespace
}  // namespace canele::comm
