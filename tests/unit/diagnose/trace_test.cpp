// SPDX-License-Identifier: BSD-3-Clause
//
// What a traced engine records: two engines in one thread, over shared memory and over TCP. And that an engine that is
// not traced still takes the fast path, for which a traced one has no events.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

using comm::Event;
using comm::EventLog;

constexpr std::uint64_t traced_tag = 77;

class Trace : public testing::TestWithParam<const char*> {
 protected:
  Trace() : job_(options()), s_(job_.open("test")) {}
  static JobOptions options() {
    JobOptions chosen;
    chosen.drivers = {comm::find_driver("self"), comm::find_driver(GetParam())};
    chosen.settings = {"CANELE_TRACE=/dev/null", "CANELE_EXPERT_TRACE_EVENTS=4096"};
    return chosen;
  }

  /// Returns the kinds of events with our tag that a rank has seen of the other one, in their order.
  std::vector<Event> seen(int rank) {
    const EventLog& log = *job_.engine(rank).event_log;
    std::vector<Event> kinds;
    for (std::size_t i = 0; i < log.kept(); ++i) {
      if (log.at(i).tag != traced_tag) continue;
      EXPECT_EQ(log.at(i).peer, 1 - rank);
      EXPECT_NE(log.at(i).session, EventLog::no_session);
      kinds.push_back(log.at(i).kind);
    }
    return kinds;
  }
  std::ptrdiff_t count(int rank, Event kind) {
    const std::vector<Event> all = seen(rank);
    return std::count(all.begin(), all.end(), kind);
  }
  void exchange(std::size_t size, bool receive_first) {
    const auto out = pattern(size, 3);
    std::vector<std::uint8_t> in(size);
    canele_request_t send{}, receive{};
    const auto post = [&] {
      ASSERT_EQ(canele_irecv(s_[1], 0, traced_tag, CANELE_TAG_EXACT, in.data(), size, &receive), CANELE_OK);
    };
    if (receive_first) post();
    ASSERT_EQ(canele_isend(s_[0], 1, traced_tag, out.data(), size, &send), CANELE_OK);
    if (!receive_first) {
      ASSERT_TRUE(job_.until([&] { return count(1, Event::unexpected_stored) == 1; }));
      post();
    }
    ASSERT_TRUE(job_.finish(receive));
    ASSERT_TRUE(job_.finish(send));
    ASSERT_EQ(in, out);
  }

  LocalJob job_;
  std::vector<canele_session_t*> s_;
};

TEST_P(Trace, ASmallMessage) {
  exchange(8, true);
  EXPECT_EQ(seen(0), (std::vector{Event::send_posted, Event::send_done}));
  EXPECT_EQ(seen(1), (std::vector{Event::receive_posted, Event::receive_done}));
  exchange(8, true);  // the connection is up: the fast path would be open
  EXPECT_EQ(seen(0).size(), 4u);
  EXPECT_EQ(seen(1).size(), 4u);
}

TEST_P(Trace, AMessageThatNobodyWaitedFor) {
  exchange(100, false);
  EXPECT_EQ(seen(1), (std::vector{Event::unexpected_stored, Event::receive_posted, Event::receive_matched,
                                  Event::receive_done}));
}

TEST_P(Trace, ALargeMessage) {
  exchange(3'000'000, false);
  for (const Event kind : {Event::send_posted, Event::rts_sent, Event::send_done}) EXPECT_EQ(count(0, kind), 1);
  for (const Event kind : {Event::rts_received, Event::unexpected_stored, Event::receive_matched, Event::receive_done})
    EXPECT_EQ(count(1, kind), 1);
  EXPECT_GE(count(1, Event::bulk_received), 1);
  EXPECT_EQ(count(0, Event::cts_received), count(1, Event::cts_sent));
}

TEST_P(Trace, ACancelledReceive) {
  canele_request_t receive{};
  int in = 0;
  ASSERT_EQ(canele_irecv(s_[1], 0, traced_tag, CANELE_TAG_EXACT, &in, sizeof in, &receive), CANELE_OK);
  ASSERT_EQ(canele_cancel(&receive), CANELE_OK);
  ASSERT_TRUE(job_.finish(receive));
  EXPECT_EQ(seen(1), (std::vector{Event::receive_posted, Event::receive_cancelled}));
}

TEST_P(Trace, AReceiveWhosePeerIsLost) {
  if (GetParam() == std::string_view("shm")) GTEST_SKIP() << "there the launcher tells of deaths, and here is none";
  exchange(8, true);
  canele_request_t receive{};
  int in = 0;
  ASSERT_EQ(canele_irecv(s_[1], 0, traced_tag, CANELE_TAG_EXACT, &in, sizeof in, &receive), CANELE_OK);
  job_.destroy(0);
  ASSERT_TRUE(job_.finish(receive));
  EXPECT_EQ(seen(1).back(), Event::receive_failed);
}

TEST_P(Trace, TimeDoesNotGoBack) {
  for (int i = 0; i < 20; ++i) exchange(1u << i, true);
  const EventLog& log = *job_.engine(1).event_log;
  for (std::size_t i = 1; i < log.kept(); ++i) ASSERT_LE(log.at(i - 1).time_ns, log.at(i).time_ns);
}

INSTANTIATE_TEST_SUITE_P(Drivers, Trace, testing::Values("shm", "tcp"),
                         [](const auto& driver) { return std::string(driver.param); });

TEST(NoTrace, CostsNothing) {
  LocalJob job;
  EXPECT_EQ(job.engine(0).event_log, nullptr);
  EXPECT_FALSE(job.engine(0).inspect_deliveries);
}

}  // namespace
}  // namespace canele::test
