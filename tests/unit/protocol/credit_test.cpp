// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control: memory for unexpected messages stays under its limit, nothing is lost, nothing hangs.
//
// The test's own thread steps both engines. The limit is so small that most messages are blocked, whatever the driver.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <random>
#include <utility>

#include "comm/protocol/credit_receiver.hpp"
#include "tests/slowness.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

constexpr std::uint64_t limit = 256 * 1024;

class Credit : public testing::Test {
 protected:
  void start(int size, const char* strategy = "aggregate", unsigned flags = 0) {
    JobOptions options;
    options.size = size;
    options.strategy = strategy;
    options.settings = {"CANELE_UNEXPECTED_MEMORY=256k"};
    job_ = std::make_unique<LocalJob>(options);
    s_ = job_->open("credit", flags);
  }
  /// Sends messages of `length` bytes that begin with their number; tag = number.
  void send(int from, int to, std::uint64_t first, std::uint64_t count, std::size_t length) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      send_one(from, to, i, i, length);
      if (i % 64 == 0) job_->step_all();
      expect_under_limit(to);
    }
  }
  void send_one(int from, int to, std::uint64_t number, std::uint64_t tag, std::size_t length) {
    auto& one = sends_.emplace_back(std::make_unique<Send>());
    one->bytes.assign(length, static_cast<unsigned char>(number));
    std::memcpy(one->bytes.data(), &number, std::min(length, sizeof number));
    ASSERT_EQ(canele_isend(s_[static_cast<std::size_t>(from)], to, tag, one->bytes.data(), length, &one->request),
              CANELE_OK);
  }
  /// `sent_as`: the tag of the message; by default its number.
  void receive(int at, int from, std::uint64_t tag, std::uint64_t mask, std::uint64_t expected, std::size_t length,
               std::uint64_t sent_as = ~std::uint64_t{0}) {
    canele_request_t request{};
    std::vector<unsigned char> bytes(length);
    ASSERT_EQ(canele_irecv(s_[static_cast<std::size_t>(at)], from, tag, mask, bytes.data(), length, &request),
              CANELE_OK);
    ASSERT_TRUE(job_->finish(request)) << "receive of message " << expected;
    const canele_status_t status = status_of(request);
    EXPECT_EQ(status.error, CANELE_OK);
    EXPECT_EQ(status.tag, sent_as == ~std::uint64_t{0} ? expected : sent_as);
    EXPECT_EQ(status.length, length);
    std::vector<unsigned char> sent(length, static_cast<unsigned char>(expected));
    std::memcpy(sent.data(), &expected, std::min(length, sizeof expected));
    EXPECT_EQ(bytes, sent);
  }
  void expect_under_limit(int rank) {
    comm::Engine& engine = job_->engine(rank);
    const auto stored = engine.counters.read(comm::Counter::unexpected_bytes_now) +
                        engine.counters.read(comm::Counter::unexpected_now) * sizeof(comm::Message);
    ASSERT_LE(stored, limit);
    ASSERT_LE(engine.credit.reserved, limit);
  }
  void finish_sends() {
    for (auto& one : sends_) ASSERT_TRUE(job_->finish(one->request));
    settle();
    expect_balanced();
  }
  /// Checks that nothing is in progress: what one rank may send is what the other expects, and nothing is stored.
  void expect_balanced() {
    for (int at = 0; at < job_->size(); ++at) {
      comm::Engine& engine = job_->engine(at);
      for (const auto& from : engine.active_peers) {
        const auto& entry = job_->engine(from->rank).peers[at];
        const std::uint64_t spendable =
            entry->credit + (entry->blocked_sends != nullptr ? entry->blocked_sends->credit : 0);
        EXPECT_EQ(from->receive_window.granted - from->receive_window.arrived, spendable) << from->rank << " to " << at;
        EXPECT_EQ(from->receive_window.stored, 0u);
      }
      EXPECT_EQ(engine.counters.read(comm::Counter::credit_blocked_now), 0u);
    }
  }
  /// Returns the blocked sends of rank 0, towards rank 1.
  const comm::BlockedSends& blocked_sends() { return *job_->engine(0).peers[1]->blocked_sends; }
  std::uint64_t credit_blocked_most(int rank) {
    return job_->engine(rank).counters.read(comm::Counter::credit_blocked_most);
  }
  void settle() {
    for (int i = 0; i < 2000; ++i) job_->step_all();
  }

  struct Send {
    std::vector<unsigned char> bytes;
    canele_request_t request{};
  };
  std::vector<std::unique_ptr<Send>> sends_;
  std::unique_ptr<LocalJob> job_;
  std::vector<canele_session_t*> s_;
};

class CreditOf : public Credit, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Strategies, CreditOf, testing::Values("fifo", "aggregate", "priority"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(CreditOf, AFloodThatIsReceivedInOrder) {
  start(2, GetParam());
  send(0, 1, 0, 3000, 1000);
  settle();
  EXPECT_GT(credit_blocked_most(0), 1000u);
  for (std::uint64_t i = 0; i < 3000; ++i) receive(1, 0, i, CANELE_TAG_EXACT, i, 1000);
  finish_sends();
  EXPECT_EQ(job_->engine(1).counters.read(comm::Counter::unexpected_now), 0u);
}

TEST_P(CreditOf, AFloodThatIsReceivedFromItsEnd) {
  start(2, GetParam());
  constexpr std::uint64_t count = 1500 / slowness;
  send(0, 1, 0, count, 700);
  for (std::uint64_t i = count; i-- > 0;) receive(1, 0, i, CANELE_TAG_EXACT, i, 700);
  finish_sends();
}

TEST_F(Credit, AnyTagGetsTheOldestWhereSessionsAreOrderedAcrossTags) {
  start(2, "aggregate", CANELE_ORDER_ACROSS_TAGS);
  send(0, 1, 0, 1500, 700);
  for (std::uint64_t i = 0; i < 1500; ++i) receive(1, 0, 0, CANELE_TAG_ANY, i, 700);
  finish_sends();
}

TEST_F(Credit, ThreeFloodOne) {
  start(4);
  for (int from = 1; from < 4; ++from) send(from, 0, static_cast<std::uint64_t>(from) * 1000, 500, 900);
  for (std::uint64_t i = 500; i-- > 0;) {
    for (int from = 1; from < 4; ++from) {
      const std::uint64_t tag = static_cast<std::uint64_t>(from) * 1000 + i;
      receive(0, i % 2 == 0 ? from : CANELE_ANY_SOURCE, tag, CANELE_TAG_EXACT, tag, 900);
    }
  }
  finish_sends();
}

TEST_F(Credit, TwoFloodEachOther) {
  start(2);
  constexpr std::uint64_t count = 1200 / slowness;
  send(0, 1, 0, count, 800);
  send(1, 0, 0, count, 800);
  for (std::uint64_t i = count; i-- > 0;) {
    receive(1, 0, i, CANELE_TAG_EXACT, i, 800);
    receive(0, 1, i, CANELE_TAG_EXACT, i, 800);
  }
  finish_sends();
}

TEST_F(Credit, LargeMessagesAreChargedForTheirEnvelopes) {
  start(2);
  send(0, 1, 0, 600, 100'000);
  for (std::uint64_t i = 600; i-- > 0;) receive(1, 0, i, CANELE_TAG_EXACT, i, 100'000);
  finish_sends();
}

TEST_F(Credit, AProbeFindsBlockedMessages) {
  start(2);
  send(0, 1, 0, 1500, 700);
  for (const std::uint64_t tag : {1499u, 1400u}) {
    int found = 0;
    canele_status_t status{};
    ASSERT_TRUE(job_->until([&] {
      EXPECT_EQ(canele_iprobe(s_[1], 0, tag, CANELE_TAG_EXACT, &found, &status), CANELE_OK);
      return found != 0;
    }));
    EXPECT_EQ(status.length, 700u);
    receive(1, 0, tag, CANELE_TAG_EXACT, tag, 700);
  }
  for (std::uint64_t i = 0; i < 1499; ++i) {
    if (i != 1400) receive(1, 0, i, CANELE_TAG_EXACT, i, 700);
  }
  finish_sends();
}

/// A probe asks for a tag, and a receive of that tag is posted before the answer. The message may match that receive or
/// a later one. Whatever is stored for the probe, no message overtakes an older one.
TEST_F(Credit, AProbeDoesNotTakeWhatIsYoungerThanARefusedMessage) {
  constexpr std::uint64_t tag = 5000, first = 1000, second = 1300;
  start(2);
  for (std::uint64_t i = 0; i < 1500; ++i) send_one(0, 1, i, i == first || i == second ? tag : i, 700);
  settle();
  int found = 0;
  canele_status_t status{};
  canele_request_t newer{};
  std::vector<unsigned char> bytes(700);
  ASSERT_EQ(canele_iprobe(s_[1], 0, tag, CANELE_TAG_EXACT, &found, &status), CANELE_OK);
  ASSERT_EQ(found, 0);
  canele_irecv(s_[1], 0, tag, CANELE_TAG_EXACT, bytes.data(), bytes.size(), &newer);
  ASSERT_TRUE(job_->until([&] { return blocked_sends().answered >= 1; }));
  canele_cancel(&newer);
  ASSERT_TRUE(job_->finish(newer));
  std::vector<std::uint64_t> expected = {first, second};
  if (status_of(newer).error == CANELE_OK) {
    EXPECT_EQ(std::memcmp(bytes.data(), &first, sizeof first), 0);
    expected.erase(expected.begin());
  }
  settle();
  for (const std::uint64_t one : expected) {
    canele_request_t request{};
    canele_irecv(s_[1], 0, tag, CANELE_TAG_EXACT, bytes.data(), bytes.size(), &request);
    ASSERT_TRUE(job_->finish(request));
    EXPECT_EQ(std::memcmp(bytes.data(), &one, sizeof one), 0);
  }
  for (std::uint64_t i = 0; i < 1500; ++i) {
    if (i != first && i != second) receive(1, 0, i, CANELE_TAG_EXACT, i, 700);
  }
  finish_sends();
}

/// Probes more patterns than the engine stores, each once in a round: all are found in few rounds.
TEST_F(Credit, AnyNumberOfProbedPatternsIsFoundInFewRounds) {
  constexpr std::uint64_t patterns = 300, flood = 600;
  start(2);
  for (std::uint64_t i = 0; i < flood; ++i) send_one(0, 1, i, 1'000'000, 700);
  for (std::uint64_t i = 0; i < patterns; ++i) send_one(0, 1, flood + i, i, 100);
  settle();
  std::vector<int> found(patterns);
  int rounds = 0;
  for (std::uint64_t left = patterns; left > 0 && rounds < 40; ++rounds) {
    for (std::uint64_t i = 0; i < patterns; ++i) {
      canele_status_t status{};
      if (found[i] != 0) continue;
      ASSERT_EQ(canele_iprobe(s_[1], 0, i, CANELE_TAG_EXACT, &found[i], &status), CANELE_OK);
      if (found[i] != 0) --left;
    }
    for (int i = 0; i < 20; ++i) job_->step_all();
  }
  EXPECT_LT(rounds, 40);
  for (std::uint64_t i = 0; i < patterns; ++i) receive(1, 0, i, CANELE_TAG_EXACT, flood + i, 100, i);
  for (std::uint64_t i = 0; i < flood; ++i) receive(1, 0, 1'000'000, CANELE_TAG_EXACT, i, 700, 1'000'000);
  finish_sends();
}

/// Each receive costs its sender a bounded number of blocked envelopes, however many sends wait: the newest are
/// received first.
TEST_F(Credit, AReceiveCostsOneLookAndNotTheList) {
  constexpr std::uint64_t count = 3000 / slowness;
  start(2);
  send(0, 1, 0, count, 700);
  settle();
  receive(1, 0, count - 1, CANELE_TAG_EXACT, count - 1,
          700);  // advertises the messages that have not been advertised yet
  settle();
  const std::uint64_t before = blocked_sends().advertised;
  for (std::uint64_t i = count - 1; i-- > 0;) receive(1, 0, i, CANELE_TAG_EXACT, i, 700);
  EXPECT_LE(blocked_sends().advertised - before, 2 * count);
  finish_sends();
}

/// A short message is the header of its own envelope: the receive that takes the envelope asks for nothing more.
TEST_F(Credit, AShortBlockedMessageComesWithItsEnvelope) {
  constexpr std::uint64_t count = 3000 / slowness;
  for (const std::size_t length : {std::size_t{CANELE_HEADER_MAX}, std::size_t{CANELE_HEADER_MAX} + 1}) {
    start(2);
    send(0, 1, 0, count, length);
    settle();
    ASSERT_GT(credit_blocked_most(0), 100u);
    for (std::uint64_t i = count; i-- > 0;) receive(1, 0, i, CANELE_TAG_EXACT, i, length);
    finish_sends();
    const std::uint64_t fetched = job_->engine(1).counters.read(comm::Counter::rma_get_bytes) +
                                  job_->engine(0).instances[0]->driver->counters.bulk_bytes_sent;
    EXPECT_EQ(fetched == 0, length <= CANELE_HEADER_MAX) << fetched << " bytes at length " << length;
    sends_.clear();
  }
}

/// A receive that is too short for such a message ends with an error, and the send does not.
TEST_F(Credit, AShortBlockedMessageIsCutToItsReceive) {
  start(2);
  send(0, 1, 0, 3000, 100);
  settle();
  ASSERT_GT(credit_blocked_most(0), 100u);
  canele_request_t request{};
  unsigned char bytes[51] = {};
  bytes[50] = 0xaa;
  ASSERT_EQ(canele_irecv(s_[1], 0, 2999, CANELE_TAG_EXACT, bytes, 50, &request), CANELE_OK);
  ASSERT_TRUE(job_->finish(request));
  EXPECT_EQ(status_of(request).error, CANELE_ETRUNC);
  EXPECT_EQ(status_of(request).length, 100u);
  EXPECT_EQ(bytes[8], 2999 & 0xff) << "the part that fits is there";
  EXPECT_EQ(bytes[50], 0xaa);
  for (std::uint64_t i = 0; i < 2999; ++i) receive(1, 0, i, CANELE_TAG_EXACT, i, 100);
  finish_sends();
}

/// Receives that are posted all at once, and of one tag, also cost few blocked envelopes each.
TEST_F(Credit, ReceivesThatWaitTogetherCostLittleEach) {
  constexpr std::uint64_t count = 2000 / slowness;
  start(2);
  send(0, 1, 0, count, 700);
  for (std::uint64_t i = 0; i < count; ++i) send_one(0, 1, count + i, 70'000, 700);
  settle();
  const std::uint64_t before = blocked_sends().advertised;
  std::vector<unsigned char> bytes(2 * count * 700);
  std::vector<canele_request_t> all(2 * count);
  for (std::uint64_t i = 0; i < 2 * count; ++i) {
    const std::uint64_t tag = i % 2 == 0 ? 70'000 : count - 1 - i / 2;
    canele_irecv(s_[1], 0, tag, CANELE_TAG_EXACT, bytes.data() + i * 700, 700, &all[i]);
  }
  for (std::uint64_t i = 0; i < 2 * count; ++i) {
    ASSERT_TRUE(job_->finish(all[i]));
    const std::uint64_t expected = i % 2 == 0 ? count + i / 2 : count - 1 - i / 2;
    EXPECT_EQ(std::memcmp(bytes.data() + i * 700, &expected, sizeof expected), 0) << i;
  }
  EXPECT_LE(blocked_sends().advertised - before, 8 * count);
  finish_sends();
}

/// Receives of every kind, posted and cancelled at random while messages are blocked: in each session the order rule
/// holds, and every message comes.
/// The memory is full of messages that no receive asks for. Then receives of one pattern are posted, more at once than
/// there may be solicitations, and their messages come behind those. Each receive gets its message, in order.
TEST_P(CreditOf, ReceivesOfOnePatternGetWhatIsBehindAFloodOfOthers) {
  constexpr std::uint64_t others = 1000, wanted = 300, kind = 1;
  for (const std::uint64_t mask : {~std::uint64_t{0}, kind}) {
    start(2, GetParam(), CANELE_ORDER_ACROSS_TAGS);
    for (std::uint64_t i = 0; i < others; ++i) send_one(0, 1, i, 2 * i, 700);
    const auto tag_of = [&](std::uint64_t i) { return mask == kind ? 2 * i + kind : kind; };
    for (std::uint64_t i = 0; i < wanted; ++i) send_one(0, 1, others + i, tag_of(i), 700);
    settle();
    std::vector<canele_request_t> requests(wanted);
    std::vector<std::uint64_t> numbers(wanted * 100);
    for (std::uint64_t i = 0; i < wanted; ++i) {
      ASSERT_EQ(canele_irecv(s_[1], 0, kind, mask, &numbers[100 * i], 700, &requests[i]), CANELE_OK);
    }
    for (std::uint64_t i = 0; i < wanted; ++i) {
      ASSERT_TRUE(job_->finish(requests[i])) << "receive " << i << " with the mask " << mask;
      EXPECT_EQ(numbers[100 * i], others + i);
    }
    for (std::uint64_t i = 0; i < others; ++i) receive(1, 0, 2 * i, CANELE_TAG_EXACT, i, 700, 2 * i);
    finish_sends();
    sends_.clear();
  }
}

TEST_P(CreditOf, ReceivesOfAllKindsKeepTheOrder) {
  for (const unsigned flags : {0u, unsigned{CANELE_ORDER_ACROSS_TAGS}}) {
    constexpr std::uint64_t count = 1200 / slowness, tags = 7;
    start(2, GetParam(), flags);
    for (std::uint64_t i = 0; i < count; ++i) send_one(0, 1, i, i * i % tags, 700);
    std::uint64_t dice = 12345;
    const auto roll = [&](std::uint64_t sides) {
      dice = dice * 6364136223846793005u + 1442695040888963407u;
      return (dice >> 33) % sides;
    };
    std::vector<std::uint64_t> left(tags);
    for (std::uint64_t i = 0; i < count; ++i) ++left[i * i % tags];
    std::vector<std::vector<std::uint64_t>> got(tags);
    std::uint64_t received = 0;
    std::vector<unsigned char> bytes(700);
    while (received < count) {
      const std::uint64_t tag = roll(tags), kind = roll(4);
      if (left[tag] == 0) continue;
      canele_request_t request{};
      const std::uint64_t mask = kind == 0 ? CANELE_TAG_ANY : CANELE_TAG_EXACT;
      canele_irecv(s_[1], kind == 1 ? CANELE_ANY_SOURCE : 0, kind == 0 ? 0 : tag, mask, bytes.data(), 700, &request);
      if (kind == 3) {
        for (std::uint64_t turns = roll(30); turns > 0; --turns) job_->step_all();
        canele_cancel(&request);
      }
      ASSERT_TRUE(job_->finish(request));
      if (status_of(request).error == CANELE_ECANCELED) continue;
      std::uint64_t number;
      std::memcpy(&number, bytes.data(), sizeof number);
      const std::uint64_t of = status_of(request).tag;
      ASSERT_EQ(number * number % tags, of);
      const std::uint64_t before = got[of].empty() ? 0 : got[of].back() + 1;
      ASSERT_GE(number, before) << "it comes after a younger one of its tag";
      got[of].push_back(number);
      --left[of];
      ++received;
      if (flags != 0 && kind == 0) {
        std::uint64_t oldest = count;  // of those that have not been received yet
        for (std::uint64_t i = 0; i < count && oldest == count; ++i) {
          const auto& mine = got[i * i % tags];
          if (std::find(mine.begin(), mine.end(), i) == mine.end()) oldest = i;
        }
        ASSERT_GT(oldest, number) << "an older message of the session was there";
      }
    }
    finish_sends();
    sends_.clear();
  }
}

/// Sends and receives of several tags in a random order, many at a time, while the ranks take turns at random.
class CreditInAnyOrder : public Credit {
 protected:
  static constexpr std::uint64_t tags = 6;
  static constexpr std::size_t length = 700;
  struct Receive {
    canele_request_t request{};
    std::uint64_t tag, mask;
    std::array<unsigned char, length> bytes{};
    bool over = false;
  };

  std::uint64_t roll(std::uint64_t sides) {
    return std::uniform_int_distribution<std::uint64_t>(0, sides - 1)(random_);
  }
  void send_some() {
    for (std::uint64_t i = roll(20); i > 0; --i) {
      const std::uint64_t tag = roll(3) == 0 ? roll(tags) : sent_ / 100 % tags;  // mostly runs of one tag
      send_one(0, 1, sent_++, tag, length);
      ++left_[tag];
    }
  }
  void receive_some() {
    const std::uint64_t kind = roll(8), tag = roll(tags);
    for (std::uint64_t i = roll(kind == 0 ? 100 : 10); i > 0; --i) {
      Receive& one = receives_.emplace_back();
      one.mask = kind == 1 ? CANELE_TAG_ANY : kind == 2 ? 1 : CANELE_TAG_EXACT;
      one.tag = tag & one.mask;
      ASSERT_EQ(canele_irecv(s_[1], 0, one.tag, one.mask, one.bytes.data(), length, &one.request), CANELE_OK);
    }
  }
  /// Notes the receives that are over. Those that can match a message get older messages the earlier they were posted.
  void check_order() {
    std::array<std::uint64_t, tags> next{};
    for (Receive& one : receives_) {
      if (!one.over && !comm::request_of(&one.request).finalized()) continue;
      const std::uint64_t tag = status_of(one.request).tag;
      std::uint64_t number = 0;
      std::memcpy(&number, one.bytes.data(), sizeof number);
      ASSERT_EQ((tag ^ one.tag) & one.mask, 0u);
      ASSERT_GE(number, next[tag]) << "it comes after a younger one of tag " << tag;
      next[tag] = number + 1;
      left_[tag] -= std::exchange(one.over, true) ? 0 : 1;
    }
  }
  /// Returns whether no receive waits for a message that was sent.
  bool quiet() {
    check_order();
    return HasFatalFailure() || std::none_of(receives_.begin(), receives_.end(), [&](const Receive& one) {
             if (one.over) return false;
             for (std::uint64_t tag = 0; tag < tags; ++tag) {
               if (((tag ^ one.tag) & one.mask) == 0 && left_[tag] != 0) return true;
             }
             return false;
           });
  }

  std::mt19937_64 random_;
  std::deque<Receive> receives_;
  std::uint64_t sent_ = 0;
  std::array<std::uint64_t, tags> left_{};
};

TEST_F(CreditInAnyOrder, EachReceiveGetsItsMessage) {
  for (std::uint64_t seed = 1; seed <= 60 / slowness; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    start(2, "aggregate");
    receives_.clear();
    sent_ = 0;
    left_ = {};
    const std::uint64_t sends_of_10 = 2 + roll(7);
    for (int i = 0; i < 400; ++i) {
      roll(10) < sends_of_10 ? send_some() : receive_some();
      for (std::uint64_t turns = roll(4); turns > 0; --turns) job_->engine(static_cast<int>(roll(2))).step();
      ASSERT_FALSE(HasFatalFailure());
    }
    for (int turn = 0; turn < 100 && !quiet(); ++turn) settle();
    ASSERT_TRUE(quiet()) << "a receive waits for a message that was sent";
    ASSERT_FALSE(HasFatalFailure());
    for (Receive& one : receives_) {
      if (!one.over) canele_cancel(&one.request);
    }
    for (std::uint64_t tag = 0; tag < tags; ++tag) {
      std::array<unsigned char, length> bytes{};
      for (; left_[tag] > 0; --left_[tag]) {
        canele_request_t request{};
        ASSERT_EQ(canele_irecv(s_[1], 0, tag, CANELE_TAG_EXACT, bytes.data(), length, &request), CANELE_OK);
        ASSERT_TRUE(job_->finish(request));
      }
    }
    finish_sends();
    sends_.clear();
  }
}

TEST_F(Credit, ASessionThatIsClosedGivesItsCreditBack) {
  start(2);
  send(0, 1, 0, 40, 100);
  settle();
  EXPECT_EQ(job_->engine(1).peers[0]->receive_window.stored, 40 * comm::wire::credit_cost_of_eager(100));
  ASSERT_EQ(canele_session_close(s_[1]), CANELE_OK);
  finish_sends();
  s_[1] = nullptr;
}

TEST_F(Credit, WhatIsBlockedEndsWithItsReceiver) {
  start(2);
  send(0, 1, 0, 1500, 700);
  canele_request_t last{};  // some messages are being advertised at that time
  std::vector<unsigned char> bytes(700);
  canele_irecv(s_[1], 0, 1499, CANELE_TAG_EXACT, bytes.data(), bytes.size(), &last);
  ASSERT_TRUE(job_->finish(last));
  job_->destroy(1);
  int failed = 0;
  for (auto& one : sends_) {
    ASSERT_TRUE(job_->finish(one->request));
    failed += status_of(one->request).error == CANELE_EPEER ? 1 : 0;
  }
  EXPECT_GT(failed, 500);
  EXPECT_EQ(job_->engine(0).counters.read(comm::Counter::credit_blocked_now), 0u);
}

TEST_F(Credit, ALimitThatIsTooSmallIsRefused) {
  comm::EngineParts parts;
  parts.platform = &posix_platform();
  const std::vector<std::string> settings = {"CANELE_UNEXPECTED_MEMORY=20k"};
  parts.settings = std::make_unique<comm::Settings>(*parts.platform, settings);
  auto board = std::make_shared<Board>();
  board->size = 2;
  parts.bootstrap = std::make_unique<LocalBootstrap>(board, 0);
  parts.drivers = {comm::find_driver("self")};
  parts.strategy = comm::find_strategy("fifo");
  std::string why;
  EXPECT_EQ(comm::Engine::create(std::move(parts), &why), nullptr);
  EXPECT_NE(why.find("CANELE_UNEXPECTED_MEMORY is 20480 bytes; 2 ranks need at least 32768"), std::string::npos) << why;
}

/// Active messages of rank 2 are taken by receives that are queued anew each time. One of rank 0, which has no credit,
/// is still asked for.
TEST_F(Credit, ABlockedActiveMessageComesBesideThoseOfAnotherRank) {
  constexpr std::uint64_t id = 9, kept = 400;
  constexpr int in_between = 32;
  start(3);
  int arrived[3] = {};
  const auto count = [](const canele_am_message_t* message, void* counts) {
    ++static_cast<int*>(counts)[message->source];
  };
  const canele_am_handler_t handler = {sizeof handler, count, nullptr, arrived};
  ASSERT_EQ(canele_am_register(s_[1], id, &handler), CANELE_OK);
  send(0, 1, 0, kept, 1000);
  settle();
  ASSERT_GT(credit_blocked_most(0), 0u);
  canele_am_t message{};
  for (int i = 1; i <= in_between; ++i) {
    ASSERT_EQ(canele_am_send(s_[2], 1, id, nullptr, 0, nullptr, nullptr, &message), CANELE_OK);
    ASSERT_TRUE(job_->finish(message.request) && job_->until([&] { return arrived[2] == i; }));
  }
  ASSERT_EQ(canele_am_send(s_[0], 1, id, nullptr, 0, nullptr, nullptr, &message), CANELE_OK);
  EXPECT_TRUE(job_->until([&] { return arrived[0] == 1; }));
  for (std::uint64_t i = 0; i < kept; ++i) receive(1, 0, i, CANELE_TAG_EXACT, i, 1000);
  EXPECT_TRUE(job_->finish(message.request));
  EXPECT_EQ(canele_am_unregister(s_[1], id), CANELE_OK);
  finish_sends();
}

}  // namespace
}  // namespace canele::test
