// SPDX-License-Identifier: BSD-3-Clause
//
// Flow control: memory for messages that nobody has asked for stays under its limit, nothing is lost, nothing hangs.
//
// Who: unit_engine. Threads: the test's own; both engines are stepped by it.
// Surprise: the limit is so small that most messages are withheld, whatever the driver.
#include <gtest/gtest.h>

#include <numeric>

#include "comm/protocol/flow_in.hpp"
#include "local_job.hpp"
#include "tests/slowness.hpp"

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
  /// Messages of `length` bytes that begin with their number; tag = number.
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
  void receive(int at, int from, std::uint64_t tag, std::uint64_t mask, std::uint64_t expected, std::size_t length) {
    canele_request_t request{};
    std::vector<unsigned char> bytes(length);
    ASSERT_EQ(canele_irecv(s_[static_cast<std::size_t>(at)], from, tag, mask, bytes.data(), length, &request),
              CANELE_OK);
    ASSERT_TRUE(job_->finish(request)) << "receive of message " << expected;
    const canele_status_t status = status_of(request);
    EXPECT_EQ(status.error, CANELE_OK);
    EXPECT_EQ(status.tag, expected);
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
    ASSERT_LE(engine.credit.lent, limit);
  }
  void finish_sends() {
    for (auto& one : sends_) ASSERT_TRUE(job_->finish(one->request));
    settle();
    expect_balanced();
  }
  /// Nothing is under way: what the one may send is what the other expects, and nothing is kept.
  void expect_balanced() {
    for (int at = 0; at < job_->size(); ++at) {
      comm::Engine& engine = job_->engine(at);
      for (const auto& from : engine.active_peers) {
        const auto& entry = job_->engine(from->rank).peers[at];
        const std::uint64_t spendable = entry->credit + (entry->withheld != nullptr ? entry->withheld->credit : 0);
        EXPECT_EQ(from->allowance.granted - from->allowance.arrived, spendable) << from->rank << " to " << at;
        EXPECT_EQ(from->allowance.stored, 0u);
      }
      EXPECT_EQ(engine.counters.read(comm::Counter::withheld_now), 0u);
    }
  }
  std::uint64_t withheld_most(int rank) { return job_->engine(rank).counters.read(comm::Counter::withheld_most); }
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
  EXPECT_GT(withheld_most(0), 1000u);
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

TEST_F(Credit, AProbeFindsWhatIsWithheld) {
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

/// A probe asks for a tag; a receive of it is posted once the sender walks through what it withholds, and is cancelled
/// after the first message of that tag was refused because of it, before the second one is offered.
TEST_F(Credit, AProbeDoesNotTakeWhatIsYoungerThanARefusedMessage) {
  constexpr std::uint64_t tag = 5000, first = 1000, second = 1300;
  start(2);
  for (std::uint64_t i = 0; i < 1500; ++i) send_one(0, 1, i, i == first || i == second ? tag : i, 700);
  settle();
  const auto was_offered = [&](std::uint64_t number) { return comm::request_of(&sends_[number]->request).rendezvous; };
  int found = 0;
  canele_status_t status{};
  canele_request_t newer{};
  std::vector<unsigned char> bytes(700);
  ASSERT_EQ(canele_iprobe(s_[1], 0, tag, CANELE_TAG_EXACT, &found, &status), CANELE_OK);
  ASSERT_EQ(found, 0);
  ASSERT_FALSE(was_offered(first));
  canele_irecv(s_[1], 0, tag, CANELE_TAG_EXACT, bytes.data(), bytes.size(), &newer);
  ASSERT_TRUE(job_->until([&] { return was_offered(first + comm::Withheld::most_offered); }));
  canele_cancel(&newer);
  ASSERT_TRUE(job_->finish(newer));
  ASSERT_EQ(status_of(newer).error, CANELE_ECANCELED);
  ASSERT_FALSE(was_offered(second));
  settle();
  for (const std::uint64_t expected : {first, second}) {
    canele_request_t request{};
    canele_irecv(s_[1], 0, tag, CANELE_TAG_EXACT, bytes.data(), bytes.size(), &request);
    ASSERT_TRUE(job_->finish(request));
    EXPECT_EQ(std::memcmp(bytes.data(), &expected, sizeof expected), 0);
  }
  for (std::uint64_t i = 0; i < 1500; ++i) {
    if (i != first && i != second) receive(1, 0, i, CANELE_TAG_EXACT, i, 700);
  }
  finish_sends();
}

TEST_F(Credit, ASessionThatIsClosedGivesItsCreditBack) {
  start(2);
  send(0, 1, 0, 40, 100);
  settle();
  EXPECT_EQ(job_->engine(1).peers[0]->allowance.stored, 40 * comm::wire::charge_of_eager(100));
  ASSERT_EQ(canele_session_close(s_[1]), CANELE_OK);
  finish_sends();
  s_[1] = nullptr;
}

TEST_F(Credit, WhatIsWithheldEndsWithItsReceiver) {
  start(2);
  send(0, 1, 0, 1500, 700);
  canele_request_t last{};  // some are being offered then
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
  EXPECT_EQ(job_->engine(0).counters.read(comm::Counter::withheld_now), 0u);
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

}  // namespace
}  // namespace canele::test
