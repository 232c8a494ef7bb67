// SPDX-License-Identifier: BSD-3-Clause
//
// What leaves in which packet while a rail is busy: the engine and each strategy on a driver whose sends end when the
// test says so.
//
// The driver hands packets to the peer at once and delays only their completion, so nothing here depends on time.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

/// A driver between engines of one process, under the test's control.
class HeldDriver final : public drivers::Driver {
 public:
  inline static std::vector<HeldDriver*> all;  ///< by rank
  inline static int packets = 0;               ///< sent by rank 0
  inline static bool hold = false;             ///< sends stay pending
  inline static std::mutex mutex;

  static void reset() {
    all.assign(2, nullptr);
    packets = 0;
    hold = false;
  }

 private:
  struct Event {
    int from;
    std::vector<std::byte> bytes;
  };

  drivers::Status open_impl(drivers::DriverContext& context, drivers::Address* address, std::string*) override {
    capabilities_.name = "held";
    capabilities_.max_packet = 4096;
    capabilities_.bulk_stream = true;  // but nothing here is large
    capabilities_.reaches_local = true;
    events_ = context.events;
    rank_ = context.rank;
    address->assign(1, std::byte{1});
    const std::lock_guard guard(mutex);
    all[static_cast<std::size_t>(rank_)] = this;
    return drivers::Status::ok;
  }
  drivers::Status connect_impl(drivers::Rank peer, std::span<const std::byte>) override {
    connecting_.push_back(peer);
    return drivers::Status::pending;
  }
  drivers::Status send_packet_impl(drivers::Rank peer, const iovec* pieces, int count, std::size_t,
                                   drivers::Token token) override {
    Event event{rank_, {}};
    for (int i = 0; i < count; ++i) {
      const auto* begin = static_cast<const std::byte*>(pieces[i].iov_base);
      event.bytes.insert(event.bytes.end(), begin, begin + pieces[i].iov_len);
    }
    const std::lock_guard guard(mutex);
    packets += rank_ == 0;
    all[static_cast<std::size_t>(peer)]->inbox_.push_back(std::move(event));
    if (!hold || rank_ != 0) return drivers::Status::ok;
    pending_.push_back(token);
    return drivers::Status::pending;
  }
  int poll_impl(int) override {
    int events = 0;
    for (; !connecting_.empty(); connecting_.pop_back(), ++events) events_->connected(connecting_.back());
    for (Event event; take(&event); ++events) events_->packet(event.from, event.bytes);
    std::deque<drivers::Token> done;
    {
      const std::lock_guard guard(mutex);
      if (!hold) done.swap(pending_);
    }
    for (drivers::Token token : done) events_->done(token, drivers::Status::ok), ++events;
    return events;
  }
  void close_impl() override {}

  bool take(Event* event) {
    const std::lock_guard guard(mutex);
    if (inbox_.empty()) return false;
    *event = std::move(inbox_.front());
    inbox_.pop_front();
    return true;
  }

  drivers::DriverEvents* events_ = nullptr;
  int rank_ = 0;
  std::vector<int> connecting_;
  std::deque<Event> inbox_;
  std::deque<drivers::Token> pending_;
};

const drivers::DriverFactory held_factory{drivers::contract_version, "held", "for tests",
                                          [] { return std::unique_ptr<drivers::Driver>(new HeldDriver); },
                                          [] { return std::string(); }};

class BusyRail : public testing::Test {
 protected:
  void start(const char* strategy) {
    HeldDriver::reset();
    JobOptions options;
    options.drivers = {comm::find_driver("self"), &held_factory};
    options.strategy = strategy;
    job_ = std::make_unique<LocalJob>(options);
    s_ = job_->open("busy");
    send_one(0, 0);  // connects, announces the session
    receive_all(1);
    HeldDriver::hold = true;
    send_one(1, 0);  // this one keeps the rail busy
    ASSERT_TRUE(job_->until([&] { return HeldDriver::packets >= 2; }));
    HeldDriver::packets = 0;
  }
  void send_one(std::uint64_t tag, std::int32_t priority) {
    auto request = std::make_unique<canele_request_t>();
    *request = {};
    const canele_data_t data = canele_data_contiguous(&value_, sizeof value_);
    const canele_send_options_t options{sizeof options, priority, 0, 0};
    EXPECT_EQ(canele_isend_data(s_[0], 1, tag, &data, &options, request.get()), CANELE_OK);
    const std::lock_guard guard(mutex_);
    sends_.push_back(std::move(request));
  }
  /// Returns the tags of the next `count` messages, in the order in which they arrive.
  std::vector<std::uint64_t> receive_all(int count) {
    std::vector<std::uint64_t> tags;
    for (int i = 0; i < count; ++i) {
      canele_request_t receive{};
      std::uint64_t value = 0;
      canele_irecv(s_[1], 0, 0, CANELE_TAG_ANY, &value, sizeof value, &receive);
      EXPECT_TRUE(job_->finish(receive));
      tags.push_back(status_of(receive).tag);
    }
    return tags;
  }
  void send_from_four_threads() {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([this, t] {
        for (int i = 0; i < 16; ++i) send_one(static_cast<std::uint64_t>(100 * (t + 1) + i), 0);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::unique_ptr<LocalJob> job_;
  std::vector<canele_session_t*> s_;
  std::uint64_t value_ = 7;
  std::mutex mutex_;
  std::vector<std::unique_ptr<canele_request_t>> sends_;
};

TEST_F(BusyRail, AggregateSends64MessagesInAtMostTwoPackets) {
  start("aggregate");
  send_from_four_threads();
  HeldDriver::hold = false;
  receive_all(1 + 64);
  EXPECT_LE(HeldDriver::packets, 2);
  EXPECT_GE(HeldDriver::packets, 1);
}

TEST_F(BusyRail, FifoSends64MessagesIn64Packets) {
  start("fifo");
  send_from_four_threads();
  HeldDriver::hold = false;
  receive_all(1 + 64);
  EXPECT_EQ(HeldDriver::packets, 64);
}

TEST_F(BusyRail, PrioritySendsTheHighestFirstAndKeepsTheOrderPerTag) {
  start("priority");
  send_one(1, -5);
  send_one(2, 3);
  send_one(3, 8);
  send_one(2, 3);
  send_one(4, 8);
  HeldDriver::hold = false;
  EXPECT_EQ(receive_all(1 + 5), (std::vector<std::uint64_t>{1, 3, 4, 2, 2, 1}));
}

TEST_F(BusyRail, APriorityRaisedInTheBacklogCounts) {
  start("priority");
  send_one(10, 1);
  send_one(11, 0);
  EXPECT_EQ(canele_send_set_priority(sends_.back().get(), 9), CANELE_OK);
  HeldDriver::hold = false;
  EXPECT_EQ(receive_all(1 + 2), (std::vector<std::uint64_t>{1, 11, 10}));
  EXPECT_EQ(canele_send_set_priority(sends_.back().get(), 1), CANELE_ESTATE);
}

TEST_F(BusyRail, TheLowestLeavesWithinNinePackets) {
  start("priority");
  send_one(1000, -1000);
  for (std::uint64_t i = 0; i < 1000; ++i) send_one(i, 10);
  HeldDriver::hold = false;
  const std::vector<std::uint64_t> tags = receive_all(1 + 1001);
  const auto place = static_cast<std::size_t>(std::find(tags.begin(), tags.end(), 1000u) - tags.begin());
  EXPECT_LE(place, 8u * 64u);  // packets hold at most 64 messages
}

/// A peer that leaves ends our sends to it, but not before the driver no longer accesses their memory.
TEST(LentMemory, IsGivenBackBeforeItsSendEnds) {
  HeldDriver::reset();
  JobOptions options;
  options.drivers = {comm::find_driver("self"), &held_factory};
  LocalJob job(options);
  const auto s = job.open("lent");
  canele_request_t hello{}, receive{}, held{}, waits{};
  canele_irecv(s[1], 0, 1, CANELE_TAG_EXACT, nullptr, 0, &receive);
  canele_isend(s[0], 1, 1, nullptr, 0, &hello);
  ASSERT_TRUE(job.finish(receive) && job.finish(hello));
  HeldDriver::hold = true;
  HeldDriver::packets = 0;
  const std::vector<char> memory(3000);  // long enough not to be copied
  canele_isend(s[0], 1, 2, memory.data(), memory.size(), &held);
  canele_isend(s[0], 1, 2, memory.data(), memory.size(), &waits);
  ASSERT_TRUE(job.until([&] { return HeldDriver::packets == 1; }));

  comm::Engine& engine = job.engine(0);
  engine.lock_for_callback();
  engine.fail_peer(engine.peer(1), CANELE_EPEER, false, "it has left the job");
  engine.unlock();
  for (int i = 0; i < 100; ++i) job.step_all();
  EXPECT_FALSE(comm::request_of(&held).finalized()) << "the driver still reads its memory";
  ASSERT_TRUE(job.finish(waits)) << "no driver has this one";
  EXPECT_EQ(status_of(waits).error, CANELE_EPEER);
  HeldDriver::hold = false;
  ASSERT_TRUE(job.finish(held));
  EXPECT_EQ(status_of(held).error, CANELE_EPEER);
}

}  // namespace
}  // namespace canele::test
