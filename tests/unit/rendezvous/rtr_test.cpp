// SPDX-License-Identifier: BSD-3-Clause
//
// Large receives with an RTR: either end alone moves the data. Cancelling, wildcards, messages in progress
// and lengths that do not fit; a random mixture against the order that matching promises.
//
// An end that "computes" is an engine that is not stepped, so nothing here depends on time.
#include <cstring>
#include <deque>
#include <random>

#include "comm/rendezvous/receiver_initiated.hpp"
#include "tests/slowness.hpp"
#include "unit/engine/local_job.hpp"
#include "unit/rendezvous/rtr_fixture.hpp"

namespace canele::test {
namespace {

using rtrs::Rtrs, rtrs::word_pattern, rtrs::Words;

TEST_F(Rtrs, AReceiverThatComputesGetsItsData) {
  post(&received_, in_);
  step(0);
  send(&sent_, out_);
  EXPECT_NE(in_, out_) << "posting a send does not wait for the copy";
  step(0);
  EXPECT_EQ(in_, out_) << "the receiver has done nothing meanwhile";
  EXPECT_TRUE(comm::request_of(&sent_).finalized());
  EXPECT_FALSE(comm::request_of(&received_).finalized());
  EXPECT_EQ(count(0, comm::Counter::rma_put_bytes), large);
  expect_received(received_, in_, out_);
  EXPECT_EQ(count(1, comm::Counter::rma_get_bytes), 0u);
}

TEST_F(Rtrs, ASenderThatComputesIsReadFrom) {
  post(&received_, in_);
  step(0);
  send(&sent_, out_);
  step(1);
  ASSERT_TRUE(comm::request_of(&received_).finalized());
  EXPECT_FALSE(comm::request_of(&sent_).finalized());
  expect_received(received_, in_, out_);
  EXPECT_EQ(count(1, comm::Counter::rma_get_bytes), large);
  ASSERT_TRUE(job_.finish(sent_));
  EXPECT_EQ(count(0, comm::Counter::rma_put_bytes), 0u);
}

TEST_F(Rtrs, AReceiverWhoseOnDemandThreadSharesItsCoreCopiesAllOfIt) {
  job_.engine(1).placement.no_core_for_worker = true;
  ASSERT_EQ(canele_worker_use(job_.handle(1), CANELE_WORKER_AUTO), CANELE_OK);
  for (const bool announced_first : {false, true}) {
    if (announced_first) send(&sent_, out_);
    post(&received_, in_);
    if (!announced_first) send(&sent_, out_);
    expect_received(received_, in_, out_);
    ASSERT_TRUE(job_.finish(sent_));
  }
  EXPECT_EQ(rtrs_to(1), nullptr);
}

/// The on-demand thread may be quick, and copy all of a message before the message's sender comes to it; but not each
/// time.
TEST_F(Rtrs, ALongCopyIsSharedThoughTheOnDemandThreadSharesItsCore) {
  job_.engine(1).placement.no_core_for_worker = true;
  ASSERT_EQ(canele_worker_use(job_.handle(1), CANELE_WORKER_AUTO), CANELE_OK);
  const Words out = word_pattern(5 * large, 4);
  for (const bool announced_first : {false, true}) {
    const std::uint64_t before = count(0, comm::Counter::rma_put_bytes);
    constexpr int most_rounds = 50;
    for (int round = 0; round < most_rounds && count(0, comm::Counter::rma_put_bytes) == before; ++round) {
      Words in(out.size());
      if (announced_first) send(&sent_, out);
      post(&received_, in);
      step(0, 5);
      if (!announced_first) send(&sent_, out);
      for (int i = 0; i < 8; ++i) job_.engine(i % 2).step();
      expect_received(received_, in, out);
      ASSERT_TRUE(job_.finish(sent_));
    }
    EXPECT_GT(count(0, comm::Counter::rma_put_bytes), before);
  }
  EXPECT_GT(count(1, comm::Counter::rma_get_bytes), 0u);
}

TEST_F(Rtrs, BothCopyWhenBothHaveTime) {
  const Words out = word_pattern(5 * large, 4);                     // more chunks than one end copies in one step
  for (int round = 0; round < 2 * comm::RtrTable::most; ++round) {  // lines are reused
    Words in(out.size());
    post(&received_, in);
    step(0, 5);
    send(&sent_, out);
    for (int i = 0; i < 8; ++i) job_.engine(i % 2).step();
    expect_received(received_, in, out);
    ASSERT_TRUE(job_.finish(sent_));
  }
  const std::uint64_t pushed = count(0, comm::Counter::rma_put_bytes), pulled = count(1, comm::Counter::rma_get_bytes);
  EXPECT_EQ(pushed + pulled, 2 * comm::RtrTable::most * 5 * large);
  EXPECT_GT(pushed, 0u);
  EXPECT_GT(pulled, 0u);
}

TEST_F(Rtrs, CancelledBeforeTheSenderTakesIt) {
  post(&received_, in_);
  step(0);
  ASSERT_EQ(canele_cancel(&received_), CANELE_OK);
  ASSERT_TRUE(job_.finish(received_));
  EXPECT_EQ(status_of(received_).cancelled, 1);
  send(&sent_, out_);
  step(0);
  EXPECT_EQ(in_, Words(large / 8)) << "no rank writes to the memory of a cancelled receive";
  Words other(large / 8);
  canele_request_t again{};
  post(&again, other);
  expect_received(again, other, out_);
  ASSERT_TRUE(job_.finish(sent_));
}

TEST_F(Rtrs, NotCancelledOnceItsSenderHasTakenIt) {
  post(&received_, in_);
  step(0);
  send(&sent_, out_);
  ASSERT_EQ(canele_cancel(&received_), CANELE_OK);
  expect_received(received_, in_, out_);
  EXPECT_EQ(status_of(received_).cancelled, 0);
  ASSERT_TRUE(job_.finish(sent_));
}

TEST_F(Rtrs, AMessageUnderWayComesFirst) {
  const Words little = word_pattern(64, 3);
  canele_request_t early{}, second{};
  Words more(large / 8);
  send(&early, little);  // rank 1 has not polled when it posts
  post(&received_, in_);
  post(&second, more);
  step(0);
  EXPECT_TRUE(rtrs_to(0) == nullptr || rtrs_to(0)->remote.empty()) << "the RTR may be for what is under way";
  expect_little_then_large(early, second, more);
}

TEST_F(Rtrs, AnRtrThatCrossesItsMessageIsAcquired) {
  post(&received_, in_);
  send(&sent_, out_);  // neither end has been told of the other's call
  step(0);             // the receiver computes
  EXPECT_EQ(in_, out_);
  EXPECT_EQ(status_of(sent_).error, CANELE_OK);
  expect_received(received_, in_, out_);
  ASSERT_TRUE(job_.finish(sent_));
  EXPECT_EQ(count(0, comm::Counter::rma_put_bytes), large);
}

TEST_F(Rtrs, AnRtrThatCrossesTwoMessagesIsForTheFirst) {
  canele_request_t second{};
  Words more(large / 8);
  post(&received_, in_);
  send(&sent_, out_);
  send(&second, out2_);
  step(0);
  EXPECT_EQ(in_, out_);
  canele_request_t last{};
  post(&last, more);
  expect_received(received_, in_, out_);
  expect_received(last, more, out2_);
  ASSERT_TRUE(job_.finish(sent_) && job_.finish(second));
}

TEST_F(Rtrs, AnRtrThatCrossesMessagesOfOtherTagsIsKept) {
  canele_request_t other{}, in_other{};
  Words more(large / 8);
  post(&received_, in_);
  send(&other, out2_, 2);
  step(0);
  ASSERT_TRUE(rtrs_to(0) != nullptr && rtrs_to(0)->remote.size() == 1);
  post(&in_other, more, 2);
  expect_received(in_other, more, out2_);
  send(&sent_, out_);
  step(0);
  EXPECT_EQ(in_, out_);
  expect_received(received_, in_, out_);
  ASSERT_TRUE(job_.finish(sent_) && job_.finish(other));
}

TEST_F(Rtrs, ASmallMessageUsesTheRtrUp) {
  const Words little = word_pattern(64, 3);
  canele_request_t early{}, second{};
  Words more(large / 8);
  post(&received_, in_);
  post(&second, more);
  step(0);
  ASSERT_TRUE(rtrs_to(0) != nullptr && rtrs_to(0)->remote.size() == 1) << "only the first of its tag has an RTR";
  send(&early, little);
  EXPECT_TRUE(rtrs_to(0)->remote.empty());
  expect_little_then_large(early, second, more);
}

TEST_F(Rtrs, NoneBesideAWildcard) {
  canele_request_t any{};
  Words more(large / 8);
  post(&any, more, 1, CANELE_ANY_SOURCE);
  post(&received_, in_);
  step(0);
  EXPECT_TRUE(rtrs_to(0) == nullptr || rtrs_to(0)->remote.empty());
  canele_request_t second{};
  send(&sent_, out_);
  send(&second, out2_);
  expect_received(any, more, out_);
  ASSERT_TRUE(job_.finish(received_) && job_.finish(sent_) && job_.finish(second));
  EXPECT_EQ(in_, out2_);
}

TEST_F(Rtrs, LengthsThatDiffer) {
  for (const std::size_t room : {std::size_t{200'000}, 3 * large}) {
    Words into(room / 8);
    post(&received_, into);
    step(0);
    ASSERT_EQ(rtrs_to(0)->remote.size(), 1u);
    send(&sent_, out_);
    ASSERT_TRUE(job_.finish(received_) && job_.finish(sent_));
    EXPECT_EQ(status_of(received_).error, room < large ? CANELE_ETRUNC : CANELE_OK);
    EXPECT_EQ(status_of(received_).length, large);
    EXPECT_TRUE(
        std::equal(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(std::min(room, large) / 8), out_.begin()));
  }
}

/// Messages whose receives have no RTR: both ends copy as soon as the message is matched.
class Shares : public Rtrs {
 protected:
  /// Makes the second message of a tag match its receive; rank 1 has announced it and has copied nothing.
  void meet(const Words& out, Words& in) {
    post(&first_, none_);
    post(&received_, in);
    send(&first_sent_, none_);
    send(&sent_, out);
    step(0);
    poll(1);
    ASSERT_EQ(comm::request_of(&received_).stage, comm::Request::Stage::moving);
  }
  void poll(int rank) {
    comm::Engine& engine = job_.engine(rank);
    engine.lock_for_callback();
    for (const auto* instance : engine.driver_set.polled) instance->driver->poll(64);
    engine.unlock();
  }
  std::uint64_t pushed() { return count(0, comm::Counter::rma_put_bytes); }
  std::uint64_t pulled() { return count(1, comm::Counter::rma_get_bytes); }

  Words none_;
  canele_request_t first_{}, first_sent_{};
};

TEST_F(Shares, ASenderThatComputesIsReadFrom) {
  meet(out_, in_);
  step(1);
  EXPECT_TRUE(comm::request_of(&received_).finalized());
  EXPECT_EQ(pulled(), large);
  expect_received(received_, in_, out_);
  ASSERT_TRUE(job_.finish(sent_));
  EXPECT_EQ(pushed(), 0u) << "the share came when all was copied";
}

TEST_F(Shares, AReceiverThatComputesGetsItsData) {
  meet(out_, in_);
  step(0);
  EXPECT_EQ(in_, out_);
  EXPECT_TRUE(comm::request_of(&sent_).finalized());
  EXPECT_EQ(pushed(), large);
  EXPECT_FALSE(comm::request_of(&received_).finalized());
  expect_received(received_, in_, out_);
  EXPECT_EQ(pulled(), 0u);
}

TEST_F(Shares, MoreThanThereAreLines) {
  constexpr std::size_t window = 2 * comm::RtrTable::most + 5;
  std::vector<canele_request_t> sends(window), receives(window);
  std::vector<Words> out(window), in(window, Words(large / 8));
  for (std::size_t i = 0; i < window; ++i) post(&receives[i], in[i]);  // one tag: only the first has an RTR
  for (std::size_t i = 0; i < window; ++i) send(&sends[i], out[i] = word_pattern(large, i));
  poll(1);
  ASSERT_NE(rtrs_to(1)->first_waiting, nullptr);
  poll(0);
  for (int i = 0; i < 8; ++i) job_.engine(i % 2).step();
  for (std::size_t i = 0; i < window; ++i) expect_received(receives[i], in[i], out[i]);
  for (canele_request_t& one : sends) ASSERT_TRUE(job_.finish(one));
  EXPECT_EQ(pushed() + pulled(), window * large);
  EXPECT_GT(pushed(), large) << "more than what had an RTR";
  EXPECT_GT(pulled(), 0u);
  for (const auto& mine : rtrs_to(1)->local) EXPECT_EQ(mine.request, nullptr);
}

TEST_F(Shares, NoneOfOneChunk) {
  const Words out = word_pattern(128 * 1024, 3);
  Words in(out.size());
  meet(out, in);
  step(0);
  EXPECT_EQ(pushed(), 0u);
  expect_received(received_, in, out);
  ASSERT_TRUE(job_.finish(sent_));
  EXPECT_EQ(pushed(), 0u);
}

TEST_F(Shares, ThePeerDies) {
  meet(out_, in_);
  comm::Engine& engine = job_.engine(1);
  engine.lock_for_callback();
  engine.fail_peer(engine.peer(0), CANELE_EPEER, true, "a test");
  engine.unlock();
  step(1);
  ASSERT_TRUE(comm::request_of(&received_).finalized());
  EXPECT_EQ(status_of(received_).error, CANELE_EPEER);
  std::fill(in_.begin(), in_.end(), 0);
  step(0);
  EXPECT_EQ(in_, Words(large / 8)) << "rank 0 lives in truth: it may not write there any more";
}

TEST_F(Shares, ThePeerDiesWhileMoreThanThereAreLinesWait) {
  constexpr std::size_t window = 2 * comm::RtrTable::most;
  std::vector<canele_request_t> sends(window), receives(window);
  std::vector<Words> in(window, Words(large / 8));
  for (std::size_t i = 0; i < window; ++i) post(&receives[i], in[i]);
  for (canele_request_t& one : sends) send(&one, out_);
  poll(1);
  ASSERT_NE(rtrs_to(1)->first_waiting, nullptr);
  comm::Engine& engine = job_.engine(1);
  engine.lock_for_callback();
  engine.fail_peer(engine.peer(0), CANELE_EPEER, true, "a test");
  engine.unlock();
  step(1);
  EXPECT_EQ(rtrs_to(1)->first_waiting, nullptr);
  for (canele_request_t& one : receives) {
    ASSERT_TRUE(comm::request_of(&one).finalized());
    EXPECT_EQ(status_of(one).error, CANELE_EPEER);
  }
}

/// Two ranks whose driver declares that messages shorter than `large` are cheaper by packets.
class ShortCopiesAreDear : public Rtrs {
 protected:
  static constexpr std::size_t below = large - 8;
  ShortCopiesAreDear() : Rtrs({"CANELE_VERBOSE=0", "CANELE_EXPERT_SHM_CMA_MIN=" + std::to_string(large)}) {}
};

TEST_F(ShortCopiesAreDear, TheyAreStreamed) {
  const Words out = word_pattern(below, 5);
  for (const bool posted_first : {true, false}) {
    move(out, posted_first);
    EXPECT_EQ(rtrs_to(0), nullptr);
    EXPECT_EQ(copied(), 0u);
  }
}

TEST_F(ShortCopiesAreDear, ForAnRtrOfMoreToo) {
  const Words out = word_pattern(below, 5);
  post(&received_, in_);
  step(0);
  ASSERT_TRUE(rtrs_to(0) != nullptr && rtrs_to(0)->remote.size() == 1);
  send(&sent_, out);
  ASSERT_TRUE(job_.finish(received_) && job_.finish(sent_));
  EXPECT_EQ(status_of(received_).length, below);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), in_.begin()));
  EXPECT_EQ(copied(), 0u);
}

TEST_F(ShortCopiesAreDear, LongOnesAreCopied) {
  post(&received_, in_);
  send(&sent_, out_);
  expect_received(received_, in_, out_);
  ASSERT_TRUE(job_.finish(sent_));
  EXPECT_EQ(copied(), large);
}

TEST_F(Rtrs, SwitchedOff) {
  job_.engine(1).receiver_initiated = false;
  post(&received_, in_);
  step(0);
  send(&sent_, out_);
  step(0);
  EXPECT_NE(in_, out_);
  expect_received(received_, in_, out_);
  EXPECT_EQ(count(0, comm::Counter::rma_put_bytes), 0u);
  ASSERT_TRUE(job_.finish(sent_));
}

/// In all the states of a receive: RTR sent, RTR acquired, announced with its copy not begun.
TEST_F(Rtrs, ThePeerDies) {
  canele_request_t taken{}, other{};
  Words more(large / 8), third(large / 8);
  post(&received_, in_);
  post(&other, more, 2);
  post(&taken, third, 3);
  step(0);
  send(&sent_, out_);
  comm::Engine& engine = job_.engine(1);
  engine.lock_for_callback();
  for (const auto* instance : engine.driver_set.polled) instance->driver->poll(64);
  engine.unlock();
  ASSERT_EQ(comm::request_of(&received_).stage, comm::Request::Stage::moving);
  canele_request_t late{};
  send(&late, out_, 3);
  engine.lock_for_callback();
  engine.fail_peer(engine.peer(0), CANELE_EPEER, true, "a test");
  engine.unlock();
  step(1);
  for (const canele_request_t* request : {&received_, &other, &taken}) {
    ASSERT_TRUE(comm::request_of(request).finalized());
    EXPECT_EQ(status_of(*request).error, CANELE_EPEER);
  }
  std::fill(in_.begin(), in_.end(), 0);
  step(0);
  EXPECT_EQ(in_, Words(large / 8)) << "rank 0 lives in truth: it may not write there any more";
  EXPECT_EQ(third, Words(large / 8));
}

TEST_F(Rtrs, ANewRtrReplacesOneThatWasWithdrawn) {
  canele_request_t second{}, third{};
  Words more(large / 8);
  post(&received_, in_);
  step(0);
  ASSERT_EQ(canele_cancel(&received_), CANELE_OK);
  post(&second, more);
  step(0);
  EXPECT_EQ(rtrs_to(0)->remote.size(), 1u);
  send(&sent_, out_);
  send(&third, out2_);  // may not take what the first message is for
  expect_received(second, more, out_);
  post(&received_, in_);
  expect_received(received_, in_, out2_);
  ASSERT_TRUE(job_.finish(sent_) && job_.finish(third));
}

/// Both ends send to each other, and have posted their receives before.
class Exchange : public Rtrs {
 protected:
  void begin_exchange() {
    post(&received_, in_);
    ASSERT_EQ(canele_irecv(s_[0], 1, 1, CANELE_TAG_EXACT, in_of_other_.data(), large, &received_by_other_), CANELE_OK);
    for (const int rank : {0, 1, 0}) step(rank);
    send(&sent_, out_);
    ASSERT_EQ(canele_isend(s_[1], 0, 1, out2_.data(), large, &sent_by_other_), CANELE_OK);
  }
  void end_exchange() {
    expect_received(received_, in_, out_);
    expect_received(received_by_other_, in_of_other_, out2_);
    ASSERT_TRUE(job_.finish(sent_) && job_.finish(sent_by_other_));
  }

  Words in_of_other_ = Words(large / 8);
  canele_request_t sent_by_other_{}, received_by_other_{};
};

TEST_F(Exchange, AnEndCopiesItsReceivesBeforeItsSends) {
  begin_exchange();
  for (const int rank : {0, 1}) job_.engine(rank).advance();
  for (bool any = true; any;) {
    any = false;
    for (const int rank : {0, 1}) any = job_.engine(rank).tasks.run(1) > 0 || any;
  }
  end_exchange();
  for (const int rank : {0, 1}) {
    EXPECT_EQ(count(rank, comm::Counter::rma_get_bytes), large) << "rank " << rank;
    EXPECT_EQ(count(rank, comm::Counter::rma_put_bytes), 0u) << "rank " << rank;
  }
}

/// The other end does nothing: this end copies for both once its own receive is done.
TEST_F(Exchange, ASendThatGaveWayIsCopiedAfterTheReceives) {
  begin_exchange();
  step(0);
  EXPECT_EQ(count(0, comm::Counter::rma_get_bytes), large);
  EXPECT_EQ(count(0, comm::Counter::rma_put_bytes), large);
  end_exchange();
}

/// Receives and messages of all kinds cross, in an order from the seed, while the RTRs pass through all their states.
class RandomRtrs : public Rtrs, public testing::WithParamInterface<unsigned> {};

TEST_P(RandomRtrs, MatchingKeepsItsOrder) {
  constexpr int messages = 300 / slowness, tags = 3;
  std::mt19937_64 random(GetParam());
  struct Message {
    Words words;
    canele_request_t request{};
    std::uint64_t tag = 0;
    bool any = false, cancelled = false;
  };
  std::deque<Message> sends, receives;
  const auto kick = [&] {
    for (auto n = random() % 6; n > 0; --n) job_.engine(static_cast<int>(random() % 2)).step();
  };
  const auto size = [&] { return std::size_t{8} << (random() % 18); };
  while (sends.size() < messages || receives.size() < 2 * messages) {
    kick();
    if (sends.size() < messages && random() % 2 == 0) {
      Message& one = sends.emplace_back();
      one.tag = 1 + random() % tags;
      one.words = word_pattern(size(), sends.size());
      send(&one.request, one.words, one.tag);
    } else if (receives.size() < 2 * messages) {
      Message& one = receives.emplace_back();
      one.tag = 1 + random() % tags;
      one.any = random() % 16 == 0;
      one.words.resize((std::size_t{1} << 20) / 8);
      post(&one.request, one.words, one.tag, one.any ? CANELE_ANY_SOURCE : 0);
      if (random() % 8 == 0) {
        kick();
        canele_cancel(&one.request);
      }
    }
  }
  for (Message& one : sends) ASSERT_TRUE(job_.finish(one.request));
  step(1);
  for (Message& one : receives) {
    if (!comm::request_of(&one.request).finalized()) canele_cancel(&one.request);
    ASSERT_TRUE(job_.finish(one.request));
    one.cancelled = status_of(one.request).cancelled != 0;
  }
  for (std::uint64_t tag = 1; tag <= tags; ++tag) {  // the k-th message matches the k-th receive that was not cancelled
    auto next = receives.begin();
    for (const Message& one : sends) {
      if (one.tag != tag) continue;
      while (next != receives.end() && (next->tag != tag || next->cancelled)) ++next;
      if (next == receives.end()) break;  // more messages than receives
      ASSERT_EQ(status_of(next->request).length, one.words.size() * 8);
      ASSERT_TRUE(std::equal(one.words.begin(), one.words.end(), next->words.begin()));
      ++next;
    }
  }
}

#if defined(__SANITIZE_THREAD__)
constexpr unsigned last_seed = 1;  // one thread, so little to find, and every byte is slow
#else
constexpr unsigned last_seed = 4;
#endif
INSTANTIATE_TEST_SUITE_P(Seeds, RandomRtrs, testing::Range(1u, last_seed + 1));

}  // namespace
}  // namespace canele::test
