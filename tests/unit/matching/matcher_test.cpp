// SPDX-License-Identifier: BSD-3-Clause
//
// Every matcher against the obvious model: random posts, arrivals, cancels, probes.
//
// Run by ctest, 100,000 operations each, and by tests/run.sh --soak, millions (CANELE_TEST_OPERATIONS,
// CANELE_TEST_SEED). One thread. Keys are drawn from a small set, so that every queue is long at some time and empty at
// another.
#include <cstdio>
#include <deque>
#include <random>
#include <vector>

#include "matchers.hpp"

namespace canele::comm {
namespace {

/// One session of the differential test.
struct World {
  explicit World(unsigned most_apart) : session(most_apart) {}
  MatchSession session;
  Model model;
};

/// With statistics (Counting), or as in the engine.
template <typename Matching>
class Drive {
 public:
  Drive(const MatcherKind& kind, std::uint64_t seed) : matcher_(seed, kind.make(seed)), random_(seed) {
    for (const unsigned most_apart : {RecentReceives::slot_count, 1u, 5u}) {
      const auto id = static_cast<std::uint32_t>(worlds_.size());
      worlds_.emplace_back(most_apart).session.id = id;
    }
  }
  ~Drive() {
    for (World& w : worlds_) {
      for (auto& r : w.model.receives) delete r.node;
      for (auto& m : w.model.messages) delete m.node;
    }
  }
  void play(std::uint64_t operations);

 private:
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
  /// Wildcards come in phases, so that sessions without them are tested, too.
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
  /// Asks whether a receive is the next for its tag and source; a no is always right.
  void ask_who_is_next(World& w) {
    if (w.model.receives.empty()) return;
    const Model::Receive& some = w.model.receives.front();
    if (some.source == rank_any || some.mask != ~std::uint64_t{0}) {
      ASSERT_FALSE(matcher_.is_next(w.session, *some.node));
    } else if (matcher_.is_next(w.session, *some.node)) {
      ASSERT_EQ(w.model.next(some.source, some.tag), some.node);
    }
  }
  /// Checks that the listing has each receive once.
  void count_listed() {
    std::size_t listed = 0, expected = 0;
    const auto count = [&](PostedNode& node) { listed += node.queued ? 1 : 1'000'000; };
    matcher_.each_in_tables(count);
    for (World& w : worlds_) {
      Matching::each_in_session(w.session, count);
      expected += w.model.receives.size();
    }
    ASSERT_EQ(listed, expected);
  }

  static constexpr std::uint64_t ranks = 5, tags = 64;
  Matching matcher_;
  std::mt19937_64 random_;
  std::deque<World> worlds_;
  bool season_ = false;
};

template <typename Matching>
void Drive<Matching>::play(std::uint64_t operations) {
  for (std::uint64_t i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) {
    if (i % 10'000 == 0) season_ = below(2) == 0;
    World& w = worlds_[below(worlds_.size())];
    // lean towards posting or arriving for a while, but keep the model's lists short enough to walk
    const std::size_t waiting = w.model.receives.size() + w.model.messages.size();
    const std::uint64_t lean = i / 2'000 % 2 == 0 ? 55 : 40;
    const std::uint64_t dice = below(100);
    if (waiting > 300) {
      w.model.receives.size() > w.model.messages.size() ? cancel(w) : probe_and_take(w);
    } else if (dice < lean) {
      post(w);
    } else if (dice < 93) {
      arrive(w);
    } else if (dice < 96) {
      cancel(w);
    } else if (dice < 99) {
      probe_and_take(w);
    } else {
      ask_who_is_next(w);
    }
    ASSERT_EQ(w.session.posted, w.model.receives.size());
    ASSERT_EQ(w.session.unexpected, w.model.messages.size());
    if (i % 1'000 == 0) count_listed();
  }
}

class Differential : public testing::TestWithParam<MatcherKind> {};

TEST_P(Differential, AgreesWithTheModel) {
  if (!GetParam().available()) GTEST_SKIP() << "this processor has no such instructions";
  const std::uint64_t operations = from_environment("CANELE_TEST_OPERATIONS", 100'000);
  const std::uint64_t seed = from_environment("CANELE_TEST_SEED", 20'261'122);
  std::printf("%llu operations, seed %llu\n", static_cast<unsigned long long>(operations),
              static_cast<unsigned long long>(seed));
  Drive<CountingMatcher>(GetParam(), seed).play(operations);
}

INSTANTIATE_TEST_SUITE_P(Matchers, Differential, testing::ValuesIn(all_matchers), name_of);

TEST(TableAsInTheEngine, AgreesWithTheModel) {
  const std::uint64_t operations = from_environment("CANELE_TEST_OPERATIONS", 100'000);
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    SCOPED_TRACE(seed);
    Drive<Matcher>(all_matchers[0], seed).play(operations);
  }
}

class MatcherTest : public testing::TestWithParam<MatcherKind> {};

TEST_P(MatcherTest, OldestReceiveOfAnyClassWins) {
  if (!GetParam().available()) GTEST_SKIP() << "this processor has no such instructions";
  Matcher matcher(7, GetParam().make(7));
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

INSTANTIATE_TEST_SUITE_P(Matchers, MatcherTest, testing::ValuesIn(all_matchers), name_of);

}  // namespace
}  // namespace canele::comm
