// SPDX-License-Identifier: BSD-3-Clause
//
// The recent receives alone, against a list. One thread.
//
// Few keys, so that many receives look alike, and lists of all lengths.
#include "comm/matching/recent_receives.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace canele::comm {
namespace {

bool is_for(const PostedNode* receive, std::uint64_t tag, std::int32_t source) {
  return receive->tag == tag && receive->source == source;
}

PostedNode* find(const RecentReceives& recent, std::uint64_t tag, std::int32_t source) {
  matching::Tally tally;
  PostedNode* const found = recent.find<matching::Counted>(tag, source, tally);
  EXPECT_LE(tally.steps(), 1 + 4 + RecentReceives::slot_count);
  return found;
}

class RecentReceivesDrive {
 public:
  RecentReceivesDrive(unsigned length, std::uint64_t seed) : length_(length), recent_(length), random_(seed) {}

  void step() {
    const std::uint64_t tag = random_() % 4 << 32;
    const auto source = static_cast<std::int32_t>(random_() % 3);
    const auto oldest =
        std::find_if(list_.begin(), list_.end(), [&](const PostedNode* r) { return is_for(r, tag, source); });
    ASSERT_EQ(find(recent_, tag, source), oldest != list_.end() ? *oldest : nullptr);
    switch (random_() % 4) {
      case 0:
      case 1:
        return post(tag, source);
      case 2:
        if (!list_.empty()) take_out(list_.begin() + static_cast<std::ptrdiff_t>(random_() % list_.size()));
        return;
      default:
        if (list_.empty()) return;
        const bool fits = oldest == list_.begin();
        ASSERT_EQ(recent_.take_oldest(tag, source), fits ? list_.front() : nullptr);
        if (fits) list_.pop_front();
    }
  }
  void check() {
    ASSERT_EQ(recent_.empty(), list_.empty());
    std::vector<PostedNode*> listed;
    recent_.each([&](PostedNode& receive) { listed.push_back(&receive); });
    ASSERT_TRUE(std::equal(listed.begin(), listed.end(), list_.begin(), list_.end()));
    if (list_.empty()) return;
    ASSERT_EQ(&recent_.youngest(), list_.back());
  }
  std::size_t refused() const { return refused_; }

 private:
  void post(std::uint64_t tag, std::int32_t source) {
    PostedNode& receive = nodes_.emplace_back();
    receive.tag = tag;
    receive.source = source;
    if (recent_.append(receive, tag, source)) {
      list_.push_back(&receive);
    } else {
      ++refused_;
      ASSERT_FALSE(list_.empty()) << "there is room for one";
    }
    ASSERT_LE(list_.size(), length_);
  }
  void take_out(std::deque<PostedNode*>::iterator at) {
    recent_.remove(**at);
    ASSERT_FALSE(recent_.holds(**at));
    list_.erase(at);
  }

  const unsigned length_;
  RecentReceives recent_;
  std::mt19937_64 random_;
  std::deque<PostedNode> nodes_;
  std::deque<PostedNode*> list_;
  std::size_t refused_ = 0;
};

TEST(RecentReceivesTest, AgreesWithAList) {
  for (const unsigned length : {1u, 2u, 3u, 17u, 63u, 64u}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(testing::Message() << "recent receives, at most " << length << ", seed " << seed);
      RecentReceivesDrive drive(length, seed);
      for (int i = 0; i < 2'000 && !testing::Test::HasFatalFailure(); ++i) {
        drive.step();
        drive.check();
      }
      EXPECT_TRUE(drive.refused() != 0 || length > 17);
    }
  }
}

TEST(RecentReceivesTest, AStreamOfSixtyFourAtATimeStaysInIt) {
  RecentReceives recent;
  std::vector<PostedNode> receives(64);
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    PostedNode& receive = receives[i % 64];
    if (i >= 64) {
      ASSERT_EQ(recent.take_oldest(i - 64, 0), &receive);
    }
    receive.tag = i;
    ASSERT_TRUE(recent.append(receive, i, 0));
  }
}

TEST(RecentReceivesTest, WhoIsLeftBehindBlocksIt) {
  RecentReceives recent;
  std::vector<PostedNode> receives(65);
  for (std::uint64_t i = 0; i < 65; ++i) receives[i].tag = i;
  ASSERT_TRUE(recent.append(receives[0], 0, 0));
  for (std::uint64_t i = 1; i < 64; ++i) {
    ASSERT_TRUE(recent.append(receives[i], i, 0));
    recent.remove(receives[i]);
  }
  EXPECT_FALSE(recent.append(receives[64], 64, 0));
  recent.remove(receives[0]);
  EXPECT_TRUE(recent.append(receives[64], 64, 0));
}

}  // namespace
}  // namespace canele::comm
