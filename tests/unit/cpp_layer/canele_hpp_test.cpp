// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ layer on a job of one rank: ownership, ranges, outcomes as exceptions and as values, destruction while
// pending.
//
// The main thread, and the library's worker. All messages go to the own rank, so every path of the layer is taken
// without a launcher.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <canele/active.hpp>
#include <canele/canele.hpp>
#include <canele/job.hpp>
#include <canele/settings.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

static_assert(!std::is_copy_constructible_v<canele::engine> && std::is_nothrow_move_constructible_v<canele::engine>);
static_assert(!std::is_copy_constructible_v<canele::session> && std::is_nothrow_move_constructible_v<canele::session>);
static_assert(!std::is_copy_constructible_v<canele::request> && !std::is_move_constructible_v<canele::request>);
static_assert(canele::detail::sendable<const std::vector<int>&> && canele::detail::sendable<std::span<const int>>);
static_assert(!canele::detail::sendable<std::vector<int>>, "a temporary would be gone before it is sent");
static_assert(!canele::detail::sendable<std::vector<std::string>&>, "strings are not their bytes");
static_assert(canele::detail::receivable<std::vector<int>&> && !canele::detail::receivable<const std::vector<int>&>);

class CppLayer : public ::testing::Test {
 protected:
  canele::engine engine{"CANELE_WORKER=none"};  // callbacks run in this thread
  canele::session session{engine, "cpp-layer"};
};

TEST_F(CppLayer, JobOfOneRank) {
  EXPECT_EQ(engine.rank(), 0);
  EXPECT_EQ(engine.size(), 1);
  EXPECT_EQ(engine.local_rank(), 0);
  EXPECT_EQ(engine.local_size(), 1);
  EXPECT_GT(engine.now(), 0u);
  EXPECT_FALSE(canele::version().empty());
}

TEST_F(CppLayer, RangesArriveAsTheyLeft) {
  const std::vector<double> out = {1, 2, 3};
  std::array<double, 3> in{};
  auto received = session.irecv(0, 1, in);
  auto sent = session.isend(0, 1, out);
  const canele::status outcome = received.wait();
  sent.wait();
  EXPECT_EQ(outcome.source, 0);
  EXPECT_EQ(outcome.tag, 1u);
  EXPECT_EQ(outcome.length, sizeof in);
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
}

TEST_F(CppLayer, WildcardsTakeAnything) {
  int value = 0;
  const int out = 42;
  auto received = session.irecv(canele::any_source, canele::any_tag, canele::one(value));
  session.send(0, 0xFFFF'FFFF'FFFF'FFFF, canele::one(out));
  EXPECT_EQ(received.wait().tag, 0xFFFF'FFFF'FFFF'FFFFu);
  EXPECT_EQ(value, 42);
}

TEST_F(CppLayer, WaitForManyAndForAny) {
  std::array<int, 4> in{};
  const std::array<int, 4> out = {10, 11, 12, 13};
  canele::request receives[4], sends[4];
  for (std::size_t i = 0; i < 4; ++i) session.irecv(0, i, canele::one(in[i]), receives[i]);
  session.isend(0, 2, canele::one(out[2]), sends[2]);
  EXPECT_EQ(canele::wait_any(receives), 2u);
  for (const std::size_t i : {0, 1, 3}) session.isend(0, i, canele::one(out[i]), sends[i]);
  canele::wait_all(receives);
  canele::wait_all(sends);
  EXPECT_EQ(in, out);
  EXPECT_EQ(canele::wait_any(receives), 4u);  // all had finished before
}

TEST_F(CppLayer, TestTellsWhenDone) {
  int in = 0;
  const int out = 5;
  auto received = session.irecv(0, 3, canele::one(in));
  EXPECT_FALSE(received.test().has_value());
  session.send(0, 3, canele::one(out));
  std::optional<canele::status> outcome;
  while (!outcome) outcome = received.test();
  EXPECT_EQ(outcome->length, sizeof out);
}

TEST_F(CppLayer, ALongMessageIsAnExceptionOrAValue) {
  const std::array<int, 2> out = {1, 2};
  for (const bool as_exception : {true, false}) {
    int in = 0;
    auto received = session.irecv(0, 4, canele::one(in));
    auto sent = session.isend(0, 4, out);
    if (as_exception) {
      try {
        received.wait();
        FAIL() << "a truncated message did not throw";
      } catch (const canele::error& problem) {
        EXPECT_EQ(problem.code(), CANELE_ETRUNC);
        EXPECT_EQ(problem.rank(), 0);
      }
    } else {
      const canele::status outcome = received.wait(std::nothrow);
      EXPECT_EQ(outcome.code, CANELE_ETRUNC);
      EXPECT_EQ(outcome.length, sizeof out);
    }
    EXPECT_EQ(in, 1);
    sent.wait();
  }
}

TEST_F(CppLayer, AWrongRankIsRefusedAndTheRequestStaysUsable) {
  const int out = 1;
  canele::request request;
  try {
    session.isend(1, 0, canele::one(out), request);
    FAIL() << "rank 1 of 1 was accepted";
  } catch (const canele::error& problem) {
    EXPECT_EQ(problem.code(), CANELE_ERANK);
    EXPECT_NE(std::string(problem.what()).find("canele_isend"), std::string::npos) << problem.what();
  }
  int in = 0;
  auto received = session.irecv(0, 0, canele::one(in));
  session.isend(0, 0, canele::one(out), request);
  canele::wait_all(request, received);
  EXPECT_EQ(in, 1);
}

TEST_F(CppLayer, APendingReceiveMayBeDestroyed) {
  int in = 0;
  { auto forgotten = session.irecv(0, 5, canele::one(in)); }
  const int out = 3;
  auto sent = session.isend(0, 5, canele::one(out));  // finds no receive: the forgotten one was cancelled
  EXPECT_EQ(session.recv(0, 5, canele::one(in)).length, sizeof in);
  sent.wait();
  EXPECT_EQ(in, 3);
}

TEST_F(CppLayer, CancelledIsTold) {
  int in = 0;
  auto received = session.irecv(0, 6, canele::one(in));
  received.cancel();
  const canele::status outcome = received.wait(std::nothrow);
  EXPECT_EQ(outcome.code, CANELE_ECANCELED);
  EXPECT_TRUE(outcome.cancelled);
}

TEST_F(CppLayer, AnUnboundReceiveGetsItsBufferAfterTheHeader) {
  const std::vector<int> out = {7, 8, 9};
  canele::request unbound, sent;
  session.isend(0, 7, out, {.header = sizeof(int)}, sent);
  std::optional<canele::status> envelope;
  while (!envelope) envelope = session.improbe(0, 7, unbound);
  EXPECT_EQ(envelope->length, out.size() * sizeof(int));
  EXPECT_EQ(unbound.envelope().tag, 7u);
  int first = 0;
  unbound.peek(std::as_writable_bytes(std::span(&first, 1)));
  EXPECT_EQ(first, 7);
  std::vector<int> in(3);
  unbound.bind(in);
  canele::wait_all(unbound, sent);
  EXPECT_EQ(in, out);
}

TEST_F(CppLayer, AProbedMessageMayBeDropped) {
  const int out = 1;
  canele::request sent;
  {
    canele::request unbound;
    session.isend(0, 8, canele::one(out), sent);
    while (!session.improbe(0, 8, unbound)) {
    }
  }  // bound to nothing and waited for
  sent.wait();
  EXPECT_FALSE(session.iprobe(0, 8).has_value());
}

/// Counts the events HEADER of a receive without a buffer.
void count_header(canele_request_t*, unsigned events, void* count) {
  if ((events & CANELE_EVENT_HEADER) != 0) ++*static_cast<int*>(count);
}

TEST_F(CppLayer, AReceiveWithoutABufferIsBoundAfterItsHeader) {
  const int out = 6;
  int in = 0, headers = 0;
  canele::request unbound, sent;
  session.irecv_late(0, 9, unbound);
  unbound.on_event(CANELE_EVENT_HEADER, count_header, &headers);
  EXPECT_THROW(unbound.envelope(), canele::error) << "no message yet";
  EXPECT_THROW(unbound.bind(canele::one(in)), canele::error);
  session.isend(0, 9, canele::one(out), sent);
  while (headers == 0) engine.progress();
  EXPECT_EQ(unbound.envelope().length, sizeof out);
  unbound.bind(canele::one(in));
  canele::wait_all(unbound, sent);
  EXPECT_EQ(in, 6);
}

TEST_F(CppLayer, AMatchedReceiveWithoutABufferMayBeDestroyed) {
  const int out = 1, second = 2;
  int headers = 0, in = 0;
  canele::request sent;
  {
    canele::request unbound;
    session.irecv_late(0, 10, unbound);
    unbound.on_event(CANELE_EVENT_HEADER, count_header, &headers);
    session.isend(0, 10, canele::one(out), {.synchronous = true}, sent);
    while (headers == 0) engine.progress();
  }  // its message is dropped
  sent.wait();
  auto received = session.irecv(0, 10, canele::one(in));
  session.send(0, 10, canele::one(second));
  received.wait();
  EXPECT_EQ(in, 2);
}

TEST_F(CppLayer, AnUnmatchedReceiveWithoutABufferMayBeDestroyed) {
  {
    canele::request unbound;
    session.irecv_late(0, 11, unbound);
  }  // cancelled
  const int out = 1;
  int in = 0;
  canele::request sent;
  session.isend(0, 11, canele::one(out), sent);
  EXPECT_EQ(session.recv(0, 11, canele::one(in)).length, sizeof in);
  sent.wait();
}

TEST_F(CppLayer, AReceiveWithoutABufferMayBeDestroyedWhileAThreadMatchesIt) {
  engine.use_workers(CANELE_WORKER_BOUND);
  const int out = 1;
  for (int i = 0; i < 200; ++i) {
    canele::request sent;
    {
      canele::request unbound;
      session.irecv_late(0, 12, unbound);
      session.isend(0, 12, canele::one(out), sent);
    }  // matched by now, or not
    sent.wait();
    int in = 0;
    if (session.iprobe(0, 12)) session.recv(0, 12, canele::one(in));
  }
  engine.stop_worker();
}

TEST_F(CppLayer, MovedEnginesAndSessionsGoOn) {
  canele::session moved = std::move(session);
  int in = 0;
  const int out = 2;
  auto received = moved.irecv(0, 9, canele::one(in));
  moved.send(0, 9, canele::one(out));
  received.wait();
  EXPECT_EQ(in, 2);
  session = std::move(moved);
  EXPECT_NE(session.native(), nullptr);
}

TEST_F(CppLayer, ReportsSayWhatIsPending) {
  int in = 0;
  auto received = session.irecv(0, 77, canele::one(in));
  EXPECT_NE(engine.report().find("cpp-layer  77   4 "), std::string::npos) << engine.report();
  engine.on_hang([](canele_engine_t*, const char*, void*) {});
  engine.on_hang(nullptr);
  canele::on_peer(engine, [](canele_engine_t*, int, int, const char*, void*) {});
  canele::on_peer(engine, nullptr);
  EXPECT_EQ(canele::peer_state(engine, 0), CANELE_PEER_CONNECTING) << "it has a receive from itself";
  EXPECT_THROW(canele::peer_state(engine, 1), canele::error);
  session.send(0, 77, canele::one(in));
  received.wait();
  EXPECT_NE(engine.report().find(" 0 requests pending"), std::string::npos) << engine.report();
}

TEST_F(CppLayer, AHandlerIsCalledForActiveMessages) {
  std::vector<int> headers;
  std::vector<double> payload;
  {
    const canele::handler handler(session, 4, [&](const canele_am_message_t& message) {
      headers.push_back(*static_cast<const int*>(message.header));
      const auto* values = static_cast<const double*>(message.payload);
      payload.assign(values, values + message.payload_length / sizeof(double));
    });
    const int first = 1, second = 2;
    const std::vector<double> values = {1.5, 2.5};
    canele::active_message one, two;
    one.send(session, 0, 4, canele::one(first));
    two.send(session, 0, 4, canele::one(second), values);
    one.wait();
    two.wait();
    while (headers.size() < 2) engine.progress();
    EXPECT_EQ(payload, values);
  }
  EXPECT_EQ(headers, (std::vector<int>{1, 2}));
  canele::active_message message;
  EXPECT_THROW(message.send(session, 99, 4, std::span<const int>{}), canele::error);
}

TEST_F(CppLayer, ReportsAreWholeJson) {
  for (const std::string& text : {engine.counters_json(), engine.info_json()}) {
    ASSERT_FALSE(text.empty());
    EXPECT_EQ(text.front(), '{');
    EXPECT_EQ(text.back(), '}');
  }
}

TEST_F(CppLayer, SettingsCanBeRead) {
  ASSERT_GT(canele_setting_count(), 20);
  for (int i = 0; i < canele_setting_count(); ++i) {
    EXPECT_GT(std::string(canele_setting_help(i)).size(), 20U) << canele_setting_name(i);
    const std::string value = canele::setting(engine, i);
    EXPECT_TRUE(canele_setting_name(i) != std::string("STRATEGY") || value == "aggregate") << value;
  }
  EXPECT_EQ(canele_setting_name(canele_setting_count()), nullptr);
  EXPECT_EQ(canele_setting_help(-1), nullptr);
  EXPECT_THROW(canele::setting(engine, canele_setting_count()), canele::error);
  std::size_t needed = 0;
  EXPECT_EQ(canele_setting_read(nullptr, 0, nullptr, 0, &needed), CANELE_ENOMEM);
  EXPECT_GT(needed, 1U);
}

TEST(CppLayerStart, AWrongSettingIsAnError) {
  try {
    canele::engine engine{"CANELE_STRATEGY=fastest"};
    FAIL() << "strategy \"fastest\" was accepted";
  } catch (const canele::error& problem) {
    EXPECT_EQ(problem.code(), CANELE_EINVAL);
    EXPECT_NE(std::string(problem.what()).find("fastest"), std::string::npos) << problem.what();
  }
}

TEST(CppLayerStart, FinalizeMayBeCalledAndTheDestructorThenDoesNothing) {
  canele::engine engine;
  engine.finalize();
  EXPECT_EQ(engine.native(), nullptr);
}

}  // namespace
