// SPDX-License-Identifier: BSD-3-Clause
//
// The matcher against the obvious model, and its table alone.
//
// Surprise: keys are drawn from a small set, so that every queue is long at some time and empty at another.
#include "comm/matching/matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <random>
#include <unordered_set>
#include <vector>

namespace canele::comm {
namespace {

/// What matching means, in the most obvious way: two lists in order.
class Model {
 public:
  struct Receive {
    std::int32_t source;
    std::uint64_t tag, mask;
    PostedNode* node;
  };
  struct Message {
    std::int32_t source;
    std::uint64_t tag;
    UnexpectedNode* node;
  };
  static bool fits(std::int32_t source, std::uint64_t tag, std::uint64_t mask, const Message& m) {
    return (source == rank_any || source == m.source) && ((tag ^ m.tag) & mask) == 0;
  }
  UnexpectedNode* find(std::int32_t source, std::uint64_t tag, std::uint64_t mask) const {
    const auto it =
        std::find_if(messages.begin(), messages.end(), [&](const Message& m) { return fits(source, tag, mask, m); });
    return it == messages.end() ? nullptr : it->node;
  }
  PostedNode* arrive(std::int32_t source, std::uint64_t tag) {
    const auto it = std::find_if(receives.begin(), receives.end(), [&](const Receive& r) {
      return fits(r.source, r.tag, r.mask, {source, tag, nullptr});
    });
    if (it == receives.end()) return nullptr;
    PostedNode* node = it->node;
    receives.erase(it);
    return node;
  }
  void take(UnexpectedNode* node) {
    messages.remove_if([&](const Message& m) { return m.node == node; });
  }
  void cancel(PostedNode* node) {
    receives.remove_if([&](const Receive& r) { return r.node == node; });
  }
  std::list<Receive> receives;
  std::list<Message> messages;
};

/// One session of the differential test.
struct World {
  MatchSession session;
  Model model;
};

class Differential : public testing::TestWithParam<std::uint64_t> {
 protected:
  Differential() : matcher_(GetParam()), random_(GetParam()) {
    for (std::uint32_t i = 0; i < worlds_.size(); ++i) worlds_[i].session.id = i;
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  std::int32_t any_or_rank() { return below(5) == 0 ? rank_any : static_cast<std::int32_t>(below(ranks)); }
  std::uint64_t mask() {
    switch (below(12)) {
      case 0:
        return 0;
      case 1:
        return 0xf0;
      default:
        return ~std::uint64_t{0};
    }
  }
  /// Wildcards come in seasons, so that sessions without them are tested too.
  void draw(World& w, std::int32_t* source, std::uint64_t* tag, std::uint64_t* m) {
    const bool wild = w.session.id != 0 && season_;
    *source = wild ? any_or_rank() : static_cast<std::int32_t>(below(ranks));
    *m = wild ? mask() : ~std::uint64_t{0};
    *tag = below(tags) & *m;
  }

  void post(World& w) {
    auto* receive = new PostedNode;
    draw(w, &receive->source, &receive->tag, &receive->mask);
    UnexpectedNode* expected = w.model.find(receive->source, receive->tag, receive->mask);
    UnexpectedNode* got = matcher_.post(w.session, *receive);
    ASSERT_EQ(got, expected);
    if (got != nullptr) {
      w.model.take(got);
      delete got;
      delete receive;
    } else {
      w.model.receives.push_back({receive->source, receive->tag, receive->mask, receive});
    }
  }
  void arrive(World& w) {
    const auto source = static_cast<std::int32_t>(below(ranks));
    const std::uint64_t tag = below(tags);
    PostedNode* expected = w.model.arrive(source, tag);
    PostedNode* got = matcher_.arrive(w.session, tag, source);
    ASSERT_EQ(got, expected);
    if (got != nullptr) {
      delete got;
      return;
    }
    auto* message = new UnexpectedNode;
    message->source = source;
    message->tag = tag;
    matcher_.store(w.session, *message);
    w.model.messages.push_back({source, tag, message});
  }
  void cancel(World& w) {
    if (w.model.receives.empty()) return;
    auto it = std::next(w.model.receives.begin(),
                        static_cast<long>(below(std::min<std::size_t>(w.model.receives.size(), 50))));
    PostedNode* node = it->node;
    matcher_.cancel(w.session, *node);
    w.model.receives.erase(it);
    delete node;
  }
  void probe_and_take(World& w) {
    std::int32_t source;
    std::uint64_t tag, m;
    draw(w, &source, &tag, &m);
    UnexpectedNode* expected = w.model.find(source, tag, m);
    UnexpectedNode* got = matcher_.find(w.session, source, tag, m);
    ASSERT_EQ(got, expected);
    if (got == nullptr || below(2) == 0) return;
    matcher_.take(w.session, *got);
    w.model.take(got);
    delete got;
  }
  void TearDown() override {
    for (World& w : worlds_) {
      for (auto& r : w.model.receives) delete r.node;
      for (auto& m : w.model.messages) delete m.node;
    }
  }

  static constexpr std::uint64_t ranks = 5, tags = 64;
  Matcher matcher_;
  std::mt19937_64 random_;
  std::vector<World> worlds_ = std::vector<World>(3);
  bool season_ = false;
};

TEST_P(Differential, AgreesWithTheModelOverAMillionOperations) {
  constexpr int operations = 1'000'000;
  for (int i = 0; i < operations && !HasFatalFailure(); ++i) {
    if (i % 10'000 == 0) season_ = below(2) == 0;
    World& w = worlds_[below(worlds_.size())];
    // lean towards posting or arriving for a while, but keep the model's lists short enough to walk
    const std::size_t waiting = w.model.receives.size() + w.model.messages.size();
    const std::uint64_t lean = (static_cast<std::uint64_t>(i) / 2'000) % 2 == 0 ? 55 : 40;
    const std::uint64_t dice = below(100);
    if (waiting > 300) {
      w.model.receives.size() > w.model.messages.size() ? cancel(w) : probe_and_take(w);
    } else if (dice < lean) {
      post(w);
    } else if (dice < 94) {
      arrive(w);
    } else if (dice < 97) {
      cancel(w);
    } else {
      probe_and_take(w);
    }
    ASSERT_EQ(w.session.posted, w.model.receives.size());
    ASSERT_EQ(w.session.unexpected, w.model.messages.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Differential, testing::Values(1, 2, 3, 20'261'120));

TEST(MatcherTest, OldestReceiveOfAnyClassWins) {
  Matcher matcher(7);
  MatchSession session;
  PostedNode any_any, any_tag, exact, any_src, masked;
  any_any.source = rank_any, any_any.mask = 0;
  any_tag.source = 3, any_tag.mask = 0;
  masked.source = rank_any, masked.tag = 0x10, masked.mask = 0xf0;
  exact.source = 3, exact.tag = 0x12;
  any_src.source = rank_any, any_src.tag = 0x12;
  for (PostedNode* node : {&masked, &any_src, &any_any, &exact, &any_tag})
    EXPECT_EQ(matcher.post(session, *node), nullptr);
  for (PostedNode* node : {&masked, &any_src, &any_any, &exact, &any_tag})
    EXPECT_EQ(matcher.arrive(session, 0x12, 3), node);
  EXPECT_EQ(matcher.arrive(session, 0x12, 3), nullptr);
}

TEST(KeyedQueuesTest, GrowsAndKeepsEveryNode) {
  KeyedQueues<FiledExact> table(1);
  constexpr std::size_t count = 200'000;
  std::vector<PostedNode> nodes(count);
  for (std::size_t i = 0; i < count; ++i) {
    nodes[i].tag = i / 2;  // two per key
    table.push(nodes[i]);
  }
  EXPECT_EQ(table.keys(), count / 2);
  std::size_t seen = 0;
  table.each([&](MatchNode&) { ++seen; });
  EXPECT_EQ(seen, count);
  for (std::size_t i = 0; i < count; i += 2) {
    ASSERT_EQ(table.find({i / 2, 0, 0}), &nodes[i]);
    table.remove(nodes[i]);
    ASSERT_EQ(table.find({i / 2, 0, 0}), &nodes[i + 1]);
    table.remove(nodes[i + 1]);
    ASSERT_EQ(table.find({i / 2, 0, 0}), nullptr);
  }
  EXPECT_EQ(table.keys(), 0u);
}

TEST(KeyedQueuesTest, RemovesFromTheMiddleAndTheEnds) {
  KeyedQueues<FiledExact> table(1);
  PostedNode a, b, c;
  for (PostedNode* node : {&a, &b, &c}) table.push(*node);
  table.remove(b);
  EXPECT_EQ(table.find({0, 0, 0}), &a);
  table.remove(c);
  table.push(b);
  table.remove(a);
  EXPECT_EQ(table.find({0, 0, 0}), &b);
  table.remove(b);
  EXPECT_EQ(table.find({0, 0, 0}), nullptr);
}

}  // namespace
}  // namespace canele::comm
