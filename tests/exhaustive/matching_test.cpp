// SPDX-License-Identifier: BSD-3-Clause
//
// Every matcher against the obvious model, in every order of a few posts, arrivals, cancels and probes.
//
// Run by ctest, and by tests/run.sh --soak, which sets CANELE_TEST_DEEP. Then probes are among the six operations, and
// vector and fuzzy run with each set of instructions. One thread. All worlds share one matcher, and each must leave its
// tables empty for the next. A session that is ordered across tags is no separate case here: the order concerns
// arrivals, and the matcher is never told of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "tests/unit/matching/matchers.hpp"

namespace canele::comm {
namespace {

constexpr std::uint64_t full = ~std::uint64_t{0}, partial = 1;

struct Operation {
  enum Kind : std::uint8_t { post, arrive, cancel, take } kind;
  std::int32_t source = 0;  ///< cancel: which of the receives posted so far
  std::uint64_t tag = 0, mask = full;
  std::uint32_t session = 0;
};

/// What can happen next, besides the cancelling of a receive.
struct Alphabet {
  std::vector<Operation> posts, others;
  bool cancels = true;
  bool symmetric = false;  ///< two sources and two tags; sequences that differ only by a swap of them are one
  std::size_t length = 4, most_posts = 99, most_others = 99;

  /// Returns the number of sequences of that length. A cancel names any receive posted so far; for one that is matched
  /// or already cancelled, the cancel comes too late.
  std::uint64_t worlds(std::size_t left, std::size_t posted, std::size_t other) const {
    if (left == 0) return 1;
    std::uint64_t sum = cancels && posted > 0 ? posted * worlds(left - 1, posted, other) : 0;
    if (posted < most_posts) sum += posts.size() * worlds(left - 1, posted + 1, other);
    if (other < most_others) sum += others.size() * worlds(left - 1, posted, other + 1);
    return sum;
  }
};

/// The matcher, and beside it the model that defines matching: two lists in order, per session.
class Worlds {
 public:
  explicit Worlds(Alphabet alphabet, const MatcherKind& kind = all_matchers[0])
      : alphabet_(std::move(alphabet)), matcher_(1, kind.make(1)) {}

  /// Runs every sequence of operations, each from the beginning. Returns their number, those left out by symmetry
  /// included.
  std::uint64_t run() {
    extend(0, 0);
    return stands_for_;
  }
  std::uint64_t played() const { return count_; }

 private:
  static constexpr std::size_t most = 8, sessions = 2;

  static bool fits(const PostedNode& receive, const MatchNode& message) { return fits(receive, message, receive.mask); }
  static bool fits(const MatchNode& wanted, const MatchNode& message, std::uint64_t mask) {
    return ((wanted.tag ^ message.tag) & mask) == 0 && (wanted.source == rank_any || wanted.source == message.source);
  }

  static bool names_source(const Operation& o) { return o.kind != Operation::cancel && o.source != rank_any; }
  static bool names_tag(const Operation& o) { return o.kind != Operation::cancel && o.mask != 0; }
  /// Where both sources, or both tags, are still interchangeable, the first one to be named is 0.
  bool would_mirror(const Operation& operation) const {
    if (!alphabet_.symmetric) return false;
    if (names_source(operation) && operation.source != 0 &&
        std::none_of(sequence_.begin(), sequence_.end(), names_source))
      return true;
    return names_tag(operation) && operation.tag != 0 && std::none_of(sequence_.begin(), sequence_.end(), names_tag);
  }
  std::uint64_t mirrors() const {
    if (!alphabet_.symmetric) return 1;
    return (std::any_of(sequence_.begin(), sequence_.end(), names_source) ? 2u : 1u) *
           (std::any_of(sequence_.begin(), sequence_.end(), names_tag) ? 2u : 1u);
  }

  void extend(std::size_t posted, std::size_t other) {
    if (testing::Test::HasFailure()) return;
    if (sequence_.size() == alphabet_.length) return play();
    const auto with = [&](const Operation& operation, std::size_t p, std::size_t o) {
      if (would_mirror(operation)) return;
      sequence_.push_back(operation);
      extend(p, o);
      sequence_.pop_back();
    };
    if (posted < alphabet_.most_posts) {
      for (const Operation& operation : alphabet_.posts) with(operation, posted + 1, other);
    }
    if (other < alphabet_.most_others) {
      for (const Operation& operation : alphabet_.others) with(operation, posted, other + 1);
    }
    for (std::size_t i = 0; alphabet_.cancels && i < posted; ++i) {
      with({Operation::cancel, static_cast<std::int32_t>(i)}, posted, other);
    }
  }

  /// Plays one world; for the table matcher, also with few receives outside of the table.
  void play() {
    ++count_;
    stands_for_ += mirrors();
    play(RecentReceives::slot_count);
    for (const unsigned few : {1u, 3u}) {
      if (matcher_.is_table()) play(few);
    }
  }
  void play(unsigned most_apart) {
    posted_ = arrived_ = 0;
    for (std::uint32_t i = 0; i < sessions; ++i) {
      std::destroy_at(&sessions_[i]);
      std::construct_at(&sessions_[i], most_apart)->id = i;
    }
    bool right = true;
    for (const Operation& operation : sequence_) right = right && apply(operation) && agrees();
    right = right && lists();
    for (std::uint32_t i = 0; i < sessions; ++i) right = right && ends_empty(i);
    if (!right) ADD_FAILURE() << "world " << count_ << ": window of " << most_apart << ", after " << text();
  }

  bool apply(const Operation& operation) {
    MatchSession& session = sessions_[operation.session];
    switch (operation.kind) {
      case Operation::post:
        return post(session, operation);
      case Operation::arrive:
        return arrive(session, operation);
      case Operation::cancel: {
        PostedNode& receive = receives_[static_cast<std::size_t>(operation.source)];
        if (std::erase(waiting_[receive.session], &receive) != 0) matcher_.cancel(sessions_[receive.session], receive);
        return !receive.queued;
      }
      default:
        return take(session, operation);
    }
  }
  bool post(MatchSession& session, const Operation& operation) {
    PostedNode& receive = receives_[posted_++];
    receive = PostedNode();
    receive.source = operation.source;
    receive.tag = operation.tag;
    receive.mask = operation.mask;
    UnexpectedNode* const right = first_message(session.id, receive, receive.mask);
    UnexpectedNode* const got = matcher_.post(session, receive);
    (got != nullptr) ? (void)std::erase(unexpected_[session.id], got) : waiting_[session.id].push_back(&receive);
    return got == right;
  }
  bool arrive(MatchSession& session, const Operation& operation) {
    UnexpectedNode& message = messages_[arrived_++];
    message = UnexpectedNode();
    message.source = operation.source;
    message.tag = operation.tag;
    auto& queue = waiting_[session.id];
    const auto right = std::find_if(queue.begin(), queue.end(), [&](const PostedNode* r) { return fits(*r, message); });
    PostedNode* const got = matcher_.arrive(session, operation.tag, operation.source);
    if (got != (right == queue.end() ? nullptr : *right)) return false;
    if (got != nullptr) {
      queue.erase(right);
      return !got->queued;
    }
    matcher_.store(session, message);
    unexpected_[session.id].push_back(&message);
    return true;
  }
  bool take(MatchSession& session, const Operation& operation) {
    PostedNode wanted;
    wanted.source = operation.source;
    wanted.tag = operation.tag;
    UnexpectedNode* const right = first_message(session.id, wanted, operation.mask);
    UnexpectedNode* const got = matcher_.find(session, operation.source, operation.tag, operation.mask);
    if (got != right) return false;
    if (got == nullptr) return true;
    matcher_.take(session, *got);
    std::erase(unexpected_[session.id], got);
    return !got->queued;
  }
  UnexpectedNode* first_message(std::uint32_t session, const MatchNode& wanted, std::uint64_t mask) const {
    const auto& queue = unexpected_[session];
    const auto found =
        std::find_if(queue.begin(), queue.end(), [&](const UnexpectedNode* m) { return fits(wanted, *m, mask); });
    return found == queue.end() ? nullptr : *found;
  }

  /// Checks that every receive is listed once.
  bool lists() {
    std::size_t listed = 0, expected = 0;
    const auto count = [&](PostedNode& receive) { listed += receive.queued ? 1 : 100; };
    matcher_.each_in_tables(count);
    for (std::uint32_t i = 0; i < sessions; ++i) {
      Matcher::each_in_session(sessions_[i], count);
      expected += waiting_[i].size();
    }
    return listed == expected;
  }

  /// Checks the counters, and which entry is next.
  bool agrees() {
    for (std::uint32_t i = 0; i < sessions; ++i) {
      const MatchSession& session = sessions_[i];
      if (session.posted != waiting_[i].size() || session.unexpected != unexpected_[i].size()) return false;
      const bool all_exact = std::all_of(waiting_[i].begin(), waiting_[i].end(), [](const PostedNode* receive) {
        return receive->source != rank_any && receive->mask == full;
      });
      for (const PostedNode* receive : waiting_[i]) {
        const auto& queue = waiting_[i];
        const bool first = *std::find_if(queue.begin(), queue.end(),
                                         [&](const PostedNode* r) { return fits(*r, *receive); }) == receive;
        const bool said = matcher_.is_next(session, *receive);
        if ((said && !first) || (all_exact && first && !said)) return false;
      }
    }
    return true;
  }

  /// Checks that the remaining entries can be taken out, and that no class then finds anything.
  bool ends_empty(std::uint32_t id) {
    MatchSession& session = sessions_[id];
    for (PostedNode* receive : waiting_[id]) matcher_.cancel(session, *receive);
    for (UnexpectedNode* message : unexpected_[id]) matcher_.take(session, *message);
    waiting_[id].clear();
    unexpected_[id].clear();
    bool empty = session.posted == 0 && session.unexpected == 0 && session.posted_inexact == 0 &&
                 session.posted_any_source == 0 && session.posted_any_tag == 0 && session.filed == 0 &&
                 session.recent_receives.empty() && session.any_any.first == nullptr &&
                 session.masked.first == nullptr && session.arrival_index.empty() && session.any_any.last == nullptr &&
                 session.masked.last == nullptr;
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
      for (std::int32_t source = 0; source < 2; ++source) empty = empty && !matcher_.find(session, source, tag, full);
      empty = empty && matcher_.find(session, rank_any, tag, full) == nullptr;
    }
    for (std::int32_t source = 0; source < 2; ++source) empty = empty && !matcher_.find(session, source, 0, 0);
    return empty;
  }

  std::string text() const {
    static constexpr std::array names = {"post", "arrive", "cancel", "take"};
    std::string made;
    for (const Operation& o : sequence_) {
      made += std::string(names[o.kind]) + "(" + std::to_string(o.source);
      if (o.kind != Operation::cancel) made += ", tag " + std::to_string(o.tag);
      if (o.mask != full) made += o.mask == 0 ? ", any tag" : ", one bit of it";
      made += o.session != 0 ? ") in another session, " : "), ";
    }
    return made;
  }

  const Alphabet alphabet_;
  std::vector<Operation> sequence_;
  std::uint64_t count_ = 0, stands_for_ = 0;
  Matcher matcher_;
  std::array<MatchSession, sessions> sessions_;
  std::array<PostedNode, most> receives_;
  std::array<UnexpectedNode, most> messages_;
  std::size_t posted_ = 0, arrived_ = 0;
  std::array<std::vector<PostedNode*>, sessions> waiting_;
  std::array<std::vector<UnexpectedNode*>, sessions> unexpected_;
};

void in_all_worlds(const char* name, const Alphabet& alphabet, const MatcherKind& kind = all_matchers[0]) {
  Worlds worlds(alphabet, kind);
  const std::uint64_t count = worlds.run();
  std::printf("%-50s %10llu worlds, %9llu played\n", name, static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(worlds.played()));
  if (!testing::Test::HasFailure()) {
    EXPECT_EQ(count, alphabet.worlds(alphabet.length, 0, 0));
  }
}

std::uint64_t power(std::uint64_t base, unsigned exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

/// Returns every receive that differs from the others, of two sources and three tags, two of which share the lowest
/// bit.
std::vector<Operation> all_patterns(Operation::Kind kind) {
  std::vector<Operation> made;
  for (const std::int32_t source : {rank_any, 0, 1}) {
    for (std::uint64_t tag = 0; tag < 3; ++tag) made.push_back({kind, source, tag});
    for (std::uint64_t bit = 0; bit < 2; ++bit) made.push_back({kind, source, bit, partial});
    made.push_back({kind, source, 0, 0});
  }
  return made;
}
/// Returns one receive of each class that takes the message of tag 0 from rank 0.
std::vector<Operation> one_of_each(Operation::Kind kind) {
  return {{kind, 0, 0}, {kind, rank_any, 0}, {kind, 0, 0, 0}, {kind, rank_any, 0, 0}, {kind, rank_any, 0, partial}};
}

TEST(MatchingInAllWorlds, FourOperationsOfAllKinds) {
  Alphabet all{all_patterns(Operation::post), one_of_each(Operation::take)};
  for (std::int32_t source = 0; source < 2; ++source) {
    for (std::uint64_t tag = 0; tag < 3; ++tag) all.others.push_back({Operation::arrive, source, tag});
  }
  ASSERT_EQ(all.posts.size(), 18u);
  ASSERT_EQ(all.others.size(), 11u);
  Alphabet without_cancels = all;
  without_cancels.cancels = false;
  EXPECT_EQ(without_cancels.worlds(4, 0, 0), power(29, 4));  // the recurrence, compared where there is a formula
  in_all_worlds("4 posts, arrivals, cancels, probes", all);
}

TEST(MatchingInAllWorlds, FourPostsOfAnyClassAndFourArrivals) {
  Alphabet deep{one_of_each(Operation::post), {{Operation::arrive, 0, 0}, {Operation::arrive, 1, 2}}};
  deep.cancels = false;
  deep.length = 8;
  deep.most_posts = deep.most_others = 4;
  EXPECT_EQ(deep.worlds(8, 0, 0), 70 * power(5, 4) * power(2, 4));  // 70 = 8! / (4! 4!)
  in_all_worlds("4 posts and 4 arrivals, interleaved", deep);
}

bool deep() { return from_environment("CANELE_TEST_DEEP", 0) != 0; }

/// Returns the matchers to test. One set of instructions is enough, except in deep runs.
std::vector<MatcherKind> matchers() {
  std::vector<MatcherKind> some;
  for (const MatcherKind& kind : all_matchers) {
    const bool best = *kind.suffix == '\0' || kind.isa == matching::best_isa();
    if (kind.available() && (best || deep())) some.push_back(kind);
  }
  return some;
}

class EveryMatcherInAllWorlds : public testing::TestWithParam<MatcherKind> {};

TEST_P(EveryMatcherInAllWorlds, SixOperationsOnTwoPeersAndTwoTags) {
  Alphabet all;
  all.symmetric = true;
  for (const std::int32_t source : {rank_any, 0, 1}) {
    for (const Operation::Kind kind : {Operation::post, Operation::take}) {
      if (kind == Operation::take && !deep()) continue;
      auto& list = kind == Operation::post ? all.posts : all.others;
      for (std::uint64_t tag = 0; tag < 2; ++tag) list.push_back({kind, source, tag});
      list.push_back({kind, source, 0, 0});
    }
    for (std::uint64_t tag = 0; tag < 2 && source != rank_any; ++tag) {
      all.others.push_back({Operation::arrive, source, tag});
    }
  }
  for (all.length = 1; all.length <= 6; ++all.length) in_all_worlds("posts, arrivals, cancels", all, GetParam());
}

TEST_P(EveryMatcherInAllWorlds, ReceivesThatCompete) {
  Alphabet tight{one_of_each(Operation::post), {{Operation::arrive, 0, 0}, {Operation::arrive, 1, 2}}};
  tight.length = deep() ? 6 : 5;
  tight.most_posts = 4;
  in_all_worlds("posts, arrivals, cancels, receives that compete", tight, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Matchers, EveryMatcherInAllWorlds, testing::ValuesIn(matchers()), name_of);

TEST(MatchingInAllWorlds, CancelsAmongReceivesThatCompete) {
  Alphabet tight{one_of_each(Operation::post), {{Operation::arrive, 0, 0}, {Operation::arrive, 1, 2}}};
  tight.length = 6;
  tight.most_posts = 4;
  in_all_worlds("6 posts, arrivals, cancels, receives that compete", tight);
}

TEST(MatchingInAllWorlds, TwoSessionsInTheSameTables) {
  Alphabet two;
  for (std::uint32_t session = 0; session < 2; ++session) {
    two.posts.push_back({Operation::post, 0, 0, full, session});
    two.posts.push_back({Operation::post, rank_any, 0, full, session});
    two.others.push_back({Operation::arrive, 0, 0, full, session});
  }
  two.length = 6;
  in_all_worlds("6 posts, arrivals, cancels in two sessions", two);
}

}  // namespace
}  // namespace canele::comm
